import type { AgentInterface } from '../../machines/protocol/card.ts'
import { normaliseVersion, PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'

/**
 * The interfaces (§4.4.6) of these tenants, grouped by tenant; unchanged if there are no tenants. Requests of A2A 1.0 name their
 * tenant. Those of older versions cannot, so the URL's path has it; REST of older versions has no path for it and is left out.
 */
export function tenantInterfaces(
  interfaces: readonly AgentInterface[],
  tenants: readonly string[] = []
): readonly AgentInterface[] {
  if (tenants.length === 0) return interfaces
  return tenants.flatMap(tenant => (tenant === '' ? interfaces : interfaces.flatMap(each => ofTenant(each, tenant))))
}

/** The agent's URL with the tenant as its last path segment. */
export function tenantUrl(url: string, tenant: string): string {
  return tenant === '' ? url : `${url.replace(/\/$/, '')}/${encodeURIComponent(tenant)}`
}

function ofTenant(each: AgentInterface, tenant: string): readonly AgentInterface[] {
  if (normaliseVersion(each.protocolVersion) === PROTOCOL_VERSION) return [{ ...each, tenant }]
  return each.protocolBinding === 'HTTP+JSON' ? [] : [{ ...each, url: tenantUrl(each.url, tenant) }]
}
