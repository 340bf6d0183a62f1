import type { AgentCard } from '../../machines/protocol/card.ts'
import type { RefusedRequest } from '../entry/admission.ts'
import { tenantIn } from '../entry/interfaces.ts'
import { basePath } from '../entry/listen.ts'

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

/**
 * The paths of an endpoint: its own, one for each tenant, and those of its metadata. Behind a proxy the URLs that
 * clients use have other paths than those of the requests.
 */
export class McpPaths {
  readonly path: string
  readonly #hasTenants: boolean
  /** The URL of the endpoint, if it does not follow from requests. */
  readonly #url: URL | undefined

  constructor(path: string, hasTenants: boolean, url: string | undefined) {
    this.path = basePath(path)
    this.#hasTenants = hasTenants
    this.#url = url === undefined ? undefined : new URL(url)
  }

  /** The tenant of a path of this endpoint; `undefined` for another path. */
  find(pathname: string): { readonly tenant: string | undefined } | undefined {
    const path = basePath(pathname)
    if (path === this.path) return { tenant: undefined }
    const folder = folderOf(this.path)
    const leaf = this.path.slice(folder.length)
    if (!this.#hasTenants || !path.startsWith(`${folder}/`) || !path.endsWith(leaf)) return undefined
    const tenant = tenantIn(path.slice(folder.length, path.length - leaf.length))
    return tenant === undefined ? undefined : { tenant }
  }

  /** The URL that clients use for a path of this endpoint; `undefined` if it follows from requests. */
  urlOf(path: string): string | undefined {
    const asked = basePath(path)
    if (!this.#url || asked === this.path) return this.#url?.href
    return `${this.#url.origin}${moved(asked, this.path, this.#url.pathname)}`
  }

  /** The path of this endpoint that a path of metadata describes: that of the requests, or that of the URL. */
  describedBy(pathname: string): string | undefined {
    const path = metadataPath(pathname)
    if (path === undefined) return undefined
    const asked = basePath(path)
    const own = this.#url ? moved(asked, basePath(this.#url.pathname), this.path) : asked
    return [own, asked].find(each => this.find(each) !== undefined)
  }
}

/** A path of one endpoint as that of another one: its own path, or one in its folder. Others stay as they are. */
function moved(path: string, from: string, to: string): string {
  if (path === from) return to
  const folder = folderOf(from)
  return path.startsWith(`${folder}/`) ? `${folderOf(to)}${path.slice(folder.length)}` : path
}

/** A path without its last segment. */
function folderOf(path: string): string {
  return path.replace(/\/[^/]*$/, '')
}
