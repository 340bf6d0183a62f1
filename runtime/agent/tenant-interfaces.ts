import type { AgentInterface } from '../../machines/protocol/card.ts'
import { normaliseVersion, PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'

/**
 * The interfaces (§4.4.6) at which these tenants are reached, one tenant after the other; without any as they are. Requests
 * of 1.0 name their tenant. Those of older versions cannot, so it stands in their path, but for REST, which has none for it.
 */
export function tenantInterfaces(interfaces: readonly AgentInterface[], tenants: readonly string[] = []): readonly AgentInterface[] {
  if (tenants.length === 0) return interfaces
  return tenants.flatMap(tenant => (tenant === '' ? interfaces : interfaces.flatMap(each => ofTenant(each, tenant))))
}

/** An address that names a tenant in its path, which is below that of the agent. */
export function tenantUrl(url: string, tenant: string): string {
  return tenant === '' ? url : `${url.replace(/\/$/, '')}/${encodeURIComponent(tenant)}`
}

function ofTenant(each: AgentInterface, tenant: string): readonly AgentInterface[] {
  if (normaliseVersion(each.protocolVersion) === PROTOCOL_VERSION) return [{ ...each, tenant }]
  return each.protocolBinding === 'HTTP+JSON' ? [] : [{ ...each, url: tenantUrl(each.url, tenant) }]
}
