import type { AgentCard, AgentInterface, AgentSkill } from '../../machines/protocol/card.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { OAuthFlows, SecurityRequirement, SecurityScheme } from '../../machines/protocol/security.ts'
import { WEBSOCKET_BINDING } from '../../machines/protocol/uris.ts'
import { normaliseVersion } from '../../machines/protocol/versions.ts'

const PROTOCOL_VERSION = '0.3.0'

/** The content of cards of 0.3. */
export interface Card03Options {
  /**
   * Whether they list the WebSocket binding, which 0.3 does not define. Default false; they do if the agent has no
   * other.
   */
  readonly webSocketInCards?: boolean
}

/**
 * A card (§4.4.1) in the form of 0.3. Its interfaces are the card's 0.3 ones, else all; the main one is JSON-RPC. Omits
 * what 0.3 does not define: the WebSocket binding, tenants, OAuth's device flow, and signatures, which are over the 1.0
 * form.
 */
export function card03(card: AgentCard, options: Card03Options = {}): object {
  const {
    supportedInterfaces,
    capabilities,
    securitySchemes,
    securityRequirements,
    skills,
    signatures: _,
    ...others
  } = card
  const { extendedAgentCard = false, ...offered } = capabilities
  const interfaces = interfaces03(supportedInterfaces, options).map(({ url, protocolBinding }) => ({
    url,
    transport: protocolBinding
  }))
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

function interfaces03(
  all: readonly AgentInterface[],
  { webSocketInCards = false }: Card03Options
): readonly AgentInterface[] {
  const legacy = all.filter(({ protocolVersion }) => normaliseVersion(protocolVersion) === '0.3')
  const interfaces = legacy.length > 0 ? legacy : all
  const defined = webSocketInCards
    ? []
    : interfaces.filter(({ protocolBinding }) => protocolBinding !== WEBSOCKET_BINDING)
  return defined.length > 0 ? defined : interfaces
}

/**
 * A card with the members of 1.0 and of 0.3, readable by clients of both. Members that both versions define are equal;
 * skills and security schemes, which differ, have the members of both forms.
 */
export function withCard03(card: AgentCard, options?: Card03Options): AgentCard {
  const { securitySchemes, skills } = card
  return {
    ...card03(card, options),
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

/** Whether a document is a card of 0.3 or older: it has a URL, and no list of interfaces, or an empty one. */
export function isCard03(document: Json): boolean {
  const { supportedInterfaces } = document
  return (
    (supportedInterfaces === undefined || (Array.isArray(supportedInterfaces) && supportedInterfaces.length === 0)) &&
    typeof document.url === 'string'
  )
}

/**
 * Translates a card of 0.3 to 1.0; any other document is unchanged. So are members that do not have the form of 0.3, so
 * that the check of the card reports them. Of several OAuth flows the first is kept, since 1.0 allows one.
 */
export function asCurrentCard(document: unknown): unknown {
  return isObject(document) && isCard03(document) ? fromCard03(document) : document
}

function fromCard03(document: Json): Json {
  const {
    url,
    preferredTransport = 'JSONRPC',
    protocolVersion,
    additionalInterfaces,
    supportsAuthenticatedExtendedCard: extendedAgentCard,
    capabilities,
    security,
    securitySchemes,
    skills,
    ...others
  } = document
  const version = normaliseVersion(typeof protocolVersion === 'string' ? protocolVersion : '') ?? protocolVersion
  const main = { url, protocolBinding: preferredTransport, protocolVersion: version }
  const more = listed(additionalInterfaces).map(({ url, transport }) => ({
    url,
    protocolBinding: transport,
    protocolVersion: version
  }))
  return {
    ...others,
    supportedInterfaces: [
      main,
      ...more.filter(({ url, protocolBinding }) => url !== main.url || protocolBinding !== preferredTransport)
    ],
    capabilities: isObject(capabilities)
      ? { ...capabilities, ...(extendedAgentCard !== undefined && { extendedAgentCard }) }
      : capabilities,
    skills: Array.isArray(skills) ? skills.map(fromSkill03) : skills,
    ...(isObject(securitySchemes) && { securitySchemes: mapped(securitySchemes, fromScheme03) }),
    ...(security !== undefined && { securityRequirements: listed(security).map(fromSecurity03) })
  }
}

/** A card of 1.0 whose security has the form of 0.3, in that of 1.0; members in the form of 1.0 are unchanged. */
export function withCurrentSecurity(document: Json): Json {
  const { security, securitySchemes, securityRequirements = security } = document
  return {
    ...document,
    ...(isObject(securitySchemes) && {
      securitySchemes: mapped(securitySchemes, scheme =>
        isObject(scheme) && [...SCHEMES.values()].some(name => Object.hasOwn(scheme, name))
          ? scheme
          : fromScheme03(scheme)
      )
    }),
    ...(Array.isArray(securityRequirements) && {
      securityRequirements: listed(securityRequirements).map(fromSecurity03)
    })
  }
}

/** The members of a 1.0 scheme by the types of 0.3. */
const SCHEMES: ReadonlyMap<unknown, string> = new Map([
  ['apiKey', 'apiKeySecurityScheme'],
  ['http', 'httpAuthSecurityScheme'],
  ['oauth2', 'oauth2SecurityScheme'],
  ['openIdConnect', 'openIdConnectSecurityScheme'],
  ['mutualTLS', 'mtlsSecurityScheme']
])

function fromScheme03(scheme: unknown): unknown {
  const { type, in: location, flows, ...others } = isObject(scheme) ? scheme : {}
  const name = SCHEMES.get(type)
  if (name === undefined) return scheme
  const flow = isObject(flows) ? Object.fromEntries(Object.entries(flows).slice(0, 1)) : flows
  return {
    [name]: { ...others, ...(location !== undefined && { location }), ...(flow !== undefined && { flows: flow }) }
  }
}

function fromSkill03(skill: unknown): unknown {
  if (!isObject(skill) || skill.security === undefined) return skill
  return { ...skill, securityRequirements: listed(skill.security).map(fromSecurity03) }
}

/**
 * Requirements in 0.3's JSON of REST follow the proto, so they already have the form of 1.0; so do schemes there, which
 * have no `type`.
 */
function fromSecurity03(requirement: Json): Json {
  return isObject(requirement.schemes) ? requirement : { schemes: mapped(requirement, list => ({ list })) }
}

function listed(list: unknown): Json[] {
  return Array.isArray(list) ? list.filter(isObject) : []
}
