import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { A2AError } from '../../machines/protocol/errors.ts'
import { DEFAULT_CHALLENGE, identify, type Credentials, type Principal } from '../../runtime/access/authentication.ts'
import type { Logger } from '../../runtime/ports/logger.ts'
import { authorityOf, LOOPBACK_ORIGINS } from '../../runtime/primitives/authority.ts'
import { memoizeLast } from '../../runtime/primitives/collections.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import type { Versions } from '../json-rpc/dispatch.ts'

/** A refused request, with its HTTP status. */
export interface RefusedRequest {
  readonly status: number
  readonly message: string
  readonly headers?: Readonly<Record<string, string>>
  /** The error for the body, in place of the message. */
  readonly error?: A2AError
}

/** The result of authentication. */
export interface Authentication {
  readonly principal?: Principal
  readonly refusal?: RefusedRequest
}

type Settings = ServedRuntime['settings']

/** Names of credentials, in small letters, without `-`, `_` and a leading `x`. */
const CREDENTIAL_PARAMETERS = ['token', 'accesstoken', 'apikey', 'key', 'authorization', 'secret', 'password']

/** Whether a host is a loopback name or address. */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '').replace(/^::ffff:/i, '')
  return name === 'localhost' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'))
}

/**
 * The hosts and origins that a port accepts: that of the agent, of the page, of metrics, or of the link between nodes.
 */
export interface AllowList {
  /** The accepted host names. Default: loopback names on a loopback address, any name on another. */
  readonly hosts?: Settings['hosts'] | undefined
  /** With it, an unknown local address does not count as loopback. */
  readonly authenticate?: Settings['authenticate'] | undefined
  /** The origins of pages that may connect. */
  readonly origins?: Settings['origins'] | undefined
  /**
   * Whether pages of the port's own origin may connect: under a name in the Host rule, which is the default, under any
   * name, or never.
   */
  readonly ownPages?: 'named' | 'any' | 'none'
  /** The log for refused origins. */
  readonly logger?: Logger | undefined
}

/**
 * The Host rule, against DNS rebinding: only names in `hosts`, if given; else only loopback names on a loopback
 * address. An unknown local address counts as loopback if the agent has no `authenticate`.
 */
export function hostRefusal(
  host: string,
  localAddress: string | undefined,
  { hosts, authenticate }: AllowList
): RefusedRequest | undefined {
  if (host === '') return { status: 421, message: 'The request names no host. Send a Host header.' }
  const name = nameOf(host)
  if (name === undefined)
    return {
      status: 400,
      message: `${JSON.stringify(host.slice(0, 255))} is not a valid host. Send NAME or NAME:PORT.`
    }
  const isLocal = localAddress === undefined ? !authenticate : isLoopback(localAddress)
  if (hosts ? hosts.has(name) : isLoopback(name) || !isLocal) return undefined
  return { status: 421, message: `This server is not ${name.slice(0, 255)}. Allow the name with the option hosts.` }
}

/**
 * The rule for pages: their origin is allowed, or is this server under a name that the Host rule accepts. A refused
 * origin is logged once for each allow-list.
 */
export function originRefusal(
  origin: string | undefined,
  host: string,
  allowed: AllowList
): RefusedRequest | undefined {
  if (origin === undefined || isAllowed(origin, allowed)) return undefined
  const { hosts, ownPages = 'named' } = allowed
  const mayBeOwn =
    ownPages === 'any' || (ownPages === 'named' && (hosts !== undefined || isLoopback(nameOf(host) ?? '')))
  if (mayBeOwn && (origin === `http://${host}` || origin === `https://${host}`)) return undefined
  const name = origin.slice(0, 255)
  logOnce(name, allowed)
  return {
    status: 403,
    message: `Pages of ${name} may not connect. Allow the origin with the option origins, or with --origin.`
  }
}

function isAllowed(origin: string, { origins = [] }: AllowList): boolean {
  return (
    origins.includes(origin) ||
    (origins.includes(LOOPBACK_ORIGINS) && URL.canParse(origin) && isLoopback(new URL(origin).hostname))
  )
}

/** The refused origins that were logged, by allow-list. */
const LOGGED = new WeakMap<object, Set<string>>()

/** The maximum number of refused origins that are logged for an allow-list. */
const MOST_LOGGED = 100

function logOnce(origin: string, allowed: AllowList): void {
  const logged = LOGGED.get(allowed) ?? new Set()
  if (logged.has(origin) || logged.size >= MOST_LOGGED) return
  LOGGED.set(allowed, logged.add(origin))
  allowed.logger?.warn('a page may not connect, because its origin is not allowed', {
    origin,
    allow: `--origin ${origin}, or origins: [${JSON.stringify(origin)}]`
  })
}

/** Credentials in a URL are refused, since URLs are logged. */
export function queryRefusal(parameters: URLSearchParams): RefusedRequest | undefined {
  if (parameters.size === 0) return undefined
  const credential = [...parameters.keys()].find(name =>
    CREDENTIAL_PARAMETERS.includes(name.toLowerCase().replaceAll(/[-_]/g, '').replace(/^x/, ''))
  )
  if (credential === undefined) return undefined
  return {
    status: 400,
    message: `Credentials in a URL end up in logs. Send ${credential} in the Authorization header.`
  }
}

/**
 * Authenticates a request by its headers, with no principal if everyone may call. Unknown callers and expired
 * credentials are refused.
 */
export async function authenticateRequest(
  headers: () => Credentials['headers'],
  { authenticate, challenge, clock, limits, logger }: Settings
): Promise<Authentication> {
  if (!authenticate) return {}
  try {
    const principal = await identify({ authenticate, logger, limits, clock }, { headers: headers() })
    return principal && clock.now() < (principal.expiresAtMs ?? Infinity)
      ? { principal }
      : { refusal: unauthenticated(challenge) }
  } catch (error) {
    return { refusal: unavailable(error as A2AError) }
  }
}

function unauthenticated(challenge = DEFAULT_CHALLENGE): RefusedRequest {
  const error = new A2AError('Unauthenticated', `Connect with credentials that this agent knows: ${challenge}.`)
  return { status: 401, message: error.message, headers: { 'WWW-Authenticate': challenge }, error }
}

/** The error that ends a stream when the credentials of its request expire. */
export function credentialsExpiredError(): A2AError {
  return new A2AError(
    'Unauthenticated',
    'The credentials of this request have expired. Send the request again with fresh ones.'
  )
}

/** The refusal while authentication is unavailable. */
function unavailable(error: A2AError): RefusedRequest {
  const { message, retryAfterMs = 1000 } = error
  return { status: 503, message, headers: { 'Retry-After': String(Math.ceil(retryAfterMs / 1000)) }, error }
}

/** A refusal in the form of an older version that has one of its own, if the request asks for that or for none. */
export function refusalForVersion(refusal: RefusedRequest, version: string, versions: Versions): RefusedRequest {
  const asked = versions.read(version)
  const dialect = asked === 'unstated' ? versions.dialects.find(each => each.refusal) : asked
  if (!refusal.error || typeof dialect !== 'object' || !dialect.refusal) return refusal
  return { ...refusal, error: dialect.refusal(refusal.error) }
}

/** The name in `NAME[:PORT]`; `undefined` if it is malformed. */
const nameOf = memoizeLast(host => authorityOf(host)?.name)

/** The target of a request to a Node server (RFC 9112 §3.2). */
export interface RequestTarget {
  /** The host that the Host rule accepted, `NAME[:PORT]`: from an absolute target, else from the Host header. */
  readonly host: string
  /** Path and query. */
  readonly path: string
}

/** A target in absolute form: scheme, host, and path with query. */
const ABSOLUTE = /^(?<scheme>[a-z][a-z\d+.-]*):\/\/(?<host>[^/?#]*)(?<rest>.*)$/is

/**
 * A path that URL parsing would change: with a backslash, or a segment `.` or `..`, encoded or not. A `%2f` does not
 * end a segment.
 */
const CHANGED_BY_PARSING = /^[^?#]*?(?:\\|\/(?:\.|%2e){1,2}(?:[/\\?#]|$))/i

/** The supported values of Transfer-Encoding. */
const CODINGS: readonly string[] = ['', 'chunked']

/** The target of a request, or a refusal: the target is malformed, or the Host rule does not accept its host. */
export function targetOf(request: IncomingMessage, allowed: AllowList): RequestTarget | RefusedRequest {
  const { rawHeaders, headers, socket } = request
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]?.length === 4 && rawHeaders[i]?.toLowerCase() === 'host') hosts += 1
  if (hosts > 1) return { status: 400, message: 'Send one Host header.' }
  if (!CODINGS.includes((headers['transfer-encoding'] ?? '').toLowerCase()))
    return { status: 501, message: 'The only supported transfer coding is chunked. Send the body without others.' }
  const { scheme, host = headers.host ?? '', path } = partsOf(request)
  return (
    formRefusal(scheme, path, 'encrypted' in socket) ??
    hostRefusal(host, socket.localAddress ?? '127.0.0.1', allowed) ?? { host, path }
  )
}

/** The path of a request, without its query. */
export function requestPathOf(request: IncomingMessage): string {
  return partsOf(request).path.replace(/\?.*$/s, '')
}

/** The headers of a request; duplicates are joined by commas. */
export function requestHeadersOf({ headers }: IncomingMessage): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value])
  )
}

/** The parts of a target. `OPTIONS *` concerns the server, and is answered like its root. */
function partsOf({ url = '', method }: IncomingMessage): {
  readonly scheme?: string
  readonly host?: string
  readonly path: string
} {
  if (url.startsWith('/')) return { path: url }
  const { scheme, host = '', rest = '' } = ABSOLUTE.exec(url)?.groups ?? {}
  if (scheme !== undefined)
    return { scheme: scheme.toLowerCase(), host, path: rest.startsWith('/') ? rest : `/${rest}` }
  return { path: url === '*' && method === 'OPTIONS' ? '/' : url }
}

function formRefusal(scheme: string | undefined, path: string, isSecure: boolean): RefusedRequest | undefined {
  if (!path.startsWith('/'))
    return { status: 400, message: 'The target of a request is a path, or an address that begins with http://.' }
  if (CHANGED_BY_PARSING.test(path))
    return { status: 400, message: 'The path has a segment . or .., or a backslash. Send a normalised path.' }
  if (scheme === undefined || scheme === 'http') return undefined
  if (scheme !== 'https')
    return { status: 400, message: `This server has no ${scheme.slice(0, 64)}: URLs. Send a path.` }
  return isSecure
    ? undefined
    : { status: 421, message: 'This connection has no TLS, so it does not serve https: URLs. Send a path.' }
}
