import type { AgentCard, AgentSkill } from '../../machines/protocol/card.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
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

type Json = Record<string, unknown>

/** Whether a document is the card of an agent that knows nothing newer than 0.3: it has an address, and no list of interfaces. */
export function isCard03(document: Json): boolean {
  return document.supportedInterfaces === undefined && typeof document.url === 'string'
}

/**
 * A document in the form of a card of 1.0: that of 0.3 is translated, every other stays. It comes from outside: what is not as 0.3 has
 * it stays as it is, for the check of the card to name it. Of several OAuth flows, of which 1.0 takes one, the first stays.
 */
export function asCurrentCard(document: unknown): unknown {
  return isObject(document) && isCard03(document) ? fromCard03(document) : document
}

function fromCard03(document: Json): Json {
  const { url, preferredTransport = 'JSONRPC', protocolVersion, additionalInterfaces, supportsAuthenticatedExtendedCard: extendedAgentCard, capabilities, security, securitySchemes, skills, ...others } = document
  const version = normaliseVersion(typeof protocolVersion === 'string' ? protocolVersion : '') ?? protocolVersion
  const main = { url, protocolBinding: preferredTransport, protocolVersion: version }
  const more = listed(additionalInterfaces).map(({ url, transport }) => ({ url, protocolBinding: transport, protocolVersion: version }))
  return {
    ...others,
    supportedInterfaces: [main, ...more.filter(({ url, protocolBinding }) => url !== main.url || protocolBinding !== preferredTransport)],
    capabilities: isObject(capabilities) ? { ...capabilities, ...(extendedAgentCard !== undefined && { extendedAgentCard }) } : capabilities,
    skills: Array.isArray(skills) ? skills.map(fromSkill03) : skills,
    ...(isObject(securitySchemes) && { securitySchemes: mapped(securitySchemes, fromScheme03) }),
    ...(security !== undefined && { securityRequirements: listed(security).map(fromSecurity03) })
  }
}

/** The members of a scheme of 1.0 by the types of 0.3. */
const SCHEMES: ReadonlyMap<unknown, string> = new Map([
  ['apiKey', 'apiKeySecurityScheme'], ['http', 'httpAuthSecurityScheme'], ['oauth2', 'oauth2SecurityScheme'],
  ['openIdConnect', 'openIdConnectSecurityScheme'], ['mutualTLS', 'mtlsSecurityScheme']
])

function fromScheme03(scheme: unknown): unknown {
  const { type, in: location, flows, ...others } = isObject(scheme) ? scheme : {}
  const name = SCHEMES.get(type)
  if (name === undefined) return scheme
  const flow = isObject(flows) ? Object.fromEntries(Object.entries(flows).slice(0, 1)) : flows
  return { [name]: { ...others, ...(location !== undefined && { location }), ...(flow !== undefined && { flows: flow }) } }
}

function fromSkill03(skill: unknown): unknown {
  if (!isObject(skill) || skill.security === undefined) return skill
  return { ...skill, securityRequirements: listed(skill.security).map(fromSecurity03) }
}

/** The JSON of REST has the form of the proto here, which 1.0 kept; so have schemes there, which have no `type`. */
function fromSecurity03(requirement: Json): Json {
  return isObject(requirement.schemes) ? requirement : { schemes: mapped(requirement, list => ({ list })) }
}

/** The objects in a list. */
function listed(list: unknown): Json[] {
  return Array.isArray(list) ? list.filter(isObject) : []
}
