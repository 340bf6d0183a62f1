import type { AgentCard, AgentSkill } from '../../machines/protocol/card.ts'
import type { OAuthFlows, SecurityRequirement, SecurityScheme } from '../../machines/protocol/security.ts'
import { normaliseVersion } from '../../machines/protocol/versions.ts'

const PROTOCOL_VERSION = '0.3.0'

/**
 * A card (§4.4.1) in the form of 0.3. Its interfaces are those that the card lists for 0.3, else all of it; the main one is
 * that of JSON-RPC. Left out is what 0.3 cannot say: tenants, OAuth's device flow, and signatures, which are over the other form.
 */
export function card03(card: AgentCard): object {
  const { supportedInterfaces, capabilities, securitySchemes, securityRequirements, skills, signatures: _, ...others } = card
  const { extendedAgentCard = false, ...offered } = capabilities
  const legacy = supportedInterfaces.filter(({ protocolVersion }) => normaliseVersion(protocolVersion) === '0.3')
  const interfaces = (legacy.length > 0 ? legacy : supportedInterfaces).map(({ url, protocolBinding }) => ({ url, transport: protocolBinding }))
  const main = interfaces.find(({ transport }) => transport === 'JSONRPC') ?? interfaces[0]
  return {
    ...others,
    protocolVersion: PROTOCOL_VERSION,
    ...(main && { url: main.url, preferredTransport: main.transport }),
    additionalInterfaces: interfaces,
    capabilities: offered,
    supportsAuthenticatedExtendedCard: extendedAgentCard,
    skills: skills.map(skill03),
    ...(securitySchemes && { securitySchemes: mapped(securitySchemes, scheme03) }),
    ...(securityRequirements && { security: securityRequirements.map(security03) })
  }
}

/**
 * A card with the members of 1.0 and those of 0.3, readable by clients of both. Members that both versions have are equal;
 * skills and security schemes, which differ, have the members of both forms.
 */
export function withCard03(card: AgentCard): AgentCard {
  const { securitySchemes, skills } = card
  return {
    ...card03(card),
    ...card,
    skills: skills.map(skill => ({ ...skill03(skill), ...skill })),
    ...(securitySchemes && { securitySchemes: mapped(securitySchemes, scheme => ({ ...scheme03(scheme), ...scheme })) })
  }
}

function skill03({ securityRequirements, ...skill }: AgentSkill): object {
  return { ...skill, ...(securityRequirements && { security: securityRequirements.map(security03) }) }
}

function security03({ schemes = {} }: SecurityRequirement): object {
  return mapped(schemes, ({ list = [] }) => list)
}

function scheme03(scheme: SecurityScheme): object {
  if ('apiKeySecurityScheme' in scheme) {
    const { location, ...others } = scheme.apiKeySecurityScheme
    return { type: 'apiKey', in: location, ...others }
  }
  if ('httpAuthSecurityScheme' in scheme) return { type: 'http', ...scheme.httpAuthSecurityScheme }
  if ('openIdConnectSecurityScheme' in scheme) return { type: 'openIdConnect', ...scheme.openIdConnectSecurityScheme }
  if ('mtlsSecurityScheme' in scheme) return { type: 'mutualTLS', ...scheme.mtlsSecurityScheme }
  const { flows, ...others } = scheme.oauth2SecurityScheme
  return { type: 'oauth2', ...others, flows: flows03(flows) }
}

function flows03(flows: OAuthFlows): object {
  if ('deviceCode' in flows) return {}
  if (!('authorizationCode' in flows)) return flows
  const { pkceRequired: _, ...authorizationCode } = flows.authorizationCode
  return { authorizationCode }
}

function mapped<T, U>(values: Readonly<Record<string, T>>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]))
}
