import type { AgentCard } from '../../machines/protocol/card.ts'
import type { RefusedRequest } from '../entry/admission.ts'

/** The options about access tokens. */
export interface TokenOptions {
  readonly authorizationServers?: readonly string[]
  readonly scopes?: readonly string[]
}

/** The path of the metadata of a protected resource, in front of the path of the resource (RFC 9728 §3). */
const WELL_KNOWN = '/.well-known/oauth-protected-resource'

/** `Bearer` in a challenge, where its parameters follow. */
const BEARER = /\bBearer\b(?<parameters>\s+(?=\S))?/i

/** Whether a challenge asks for a bearer token. */
export function isBearer(challenge: string | undefined): boolean {
  return challenge !== undefined && BEARER.test(challenge)
}

/** The path that a path of metadata describes; `undefined` for another path. */
export function metadataPath(pathname: string): string | undefined {
  return pathname.startsWith(`${WELL_KNOWN}/`) ? pathname.slice(WELL_KNOWN.length) : undefined
}

/** The metadata of an endpoint as a protected resource (RFC 9728 §2). */
export function resourceMetadata(
  resource: string,
  card: AgentCard,
  options: TokenOptions
): Readonly<Record<string, unknown>> {
  const { authorizationServers = issuersOf(card), scopes = scopesOf(card) } = options
  return {
    resource,
    ...(authorizationServers.length > 0 && { authorization_servers: authorizationServers }),
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    bearer_methods_supported: ['header'],
    resource_name: card.name
  }
}

/**
 * A refusal whose challenge for a bearer token says where the metadata is (RFC 9728 §5.1), and which scopes to ask for.
 */
export function withMetadata(
  refusal: RefusedRequest,
  url: string | undefined,
  { scopes = [] }: TokenOptions
): RefusedRequest {
  const challenge = refusal.headers?.['WWW-Authenticate']
  if (url === undefined || challenge === undefined || !isBearer(challenge)) return refusal
  const { origin, pathname } = new URL(url)
  const more = [
    `resource_metadata="${origin}${WELL_KNOWN}${pathname}"`,
    ...(scopes.length > 0 ? [`scope="${scopes.join(' ')}"`] : [])
  ].join(', ')
  const hasParameters = /\bBearer\s+[\w-]+=/i.test(challenge)
  const changed = challenge.replace(BEARER, `Bearer ${more}${hasParameters ? ', ' : ''}`)
  return { ...refusal, headers: { ...refusal.headers, 'WWW-Authenticate': changed } }
}

/** The issuers in the security schemes of a card. */
function issuersOf({ securitySchemes = {} }: AgentCard): string[] {
  return Object.values(securitySchemes).flatMap(scheme => {
    if ('openIdConnectSecurityScheme' in scheme) return [issuerIn(scheme.openIdConnectSecurityScheme.openIdConnectUrl)]
    if (!('oauth2SecurityScheme' in scheme)) return []
    const { oauth2MetadataUrl } = scheme.oauth2SecurityScheme
    return oauth2MetadataUrl === undefined ? [] : [issuerIn(oauth2MetadataUrl)]
  })
}

function issuerIn(url: string): string {
  return url.replace(/\/\.well-known\/[^?#]*$/, '')
}

function scopesOf({ securitySchemes = {} }: AgentCard): string[] {
  const scopes = Object.values(securitySchemes).flatMap(scheme =>
    'oauth2SecurityScheme' in scheme
      ? Object.values(scheme.oauth2SecurityScheme.flows).flatMap(flow => Object.keys(flow.scopes ?? {}))
      : []
  )
  return [...new Set(scopes)]
}
