import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { A2AError } from '../../machines/protocol/errors.ts'
import { normaliseVersion } from '../../machines/protocol/versions.ts'
import { DEFAULT_CHALLENGE, identify, type Credentials, type Principal } from '../../runtime/access/authentication.ts'
import { authorityOf } from '../../runtime/primitives/authority.ts'
import { memoizeLast } from '../../runtime/primitives/collections.ts'
import type { Runtime } from '../../runtime/runtime.ts'

/** A request that does not get in, with an HTTP status. */
export interface Refusal {
  readonly status: number
  readonly message: string
  readonly headers?: Readonly<Record<string, string>>
  /** What the body says in place of the message. */
  readonly error?: A2AError
}

/** What came of asking who calls. */
export interface Identified {
  readonly principal?: Principal
  readonly refusal?: Refusal
}

type Settings = Runtime['settings']

const CREDENTIAL_PARAMETERS = ['token', 'access_token', 'api_key', 'apikey', 'key', 'authorization']

/** True for the names and addresses of this machine alone. */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '').replace(/^::ffff:/i, '')
  return name === 'localhost' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'))
}

/**
 * The Host rule, against names that an attacker has pointed here: only the names that are allowed, if any are given, else
 * on a loopback address only loopback names. Where the address is not known, it is taken for loopback if everyone may call.
 */
export function hostRefusal(host: string, localAddress: string | undefined, { hosts, authenticate }: Settings): Refusal | undefined {
  if (host === '') return { status: 421, message: 'The request names no host. Send a Host header.' }
  const name = nameOf(host)
  if (name === undefined) return { status: 400, message: `${JSON.stringify(host.slice(0, 255))} is not a host as addresses have it. Send NAME or NAME:PORT.` }
  const isLocal = localAddress === undefined ? !authenticate : isLoopback(localAddress)
  if (hosts ? hosts.has(name) : isLoopback(name) || !isLocal) return undefined
  return { status: 421, message: `This server is not ${name.slice(0, 255)}. Allow the name with the option hosts.` }
}

/** A page may call if its origin is allowed, or is this very server under a name that the Host rule vouches for. */
export function originRefusal(origin: string | undefined, host: string, settings: Settings): Refusal | undefined {
  if (origin === undefined || settings.origins?.includes(origin)) return undefined
  const isVouchedFor = settings.hosts !== undefined || isLoopback(nameOf(host) ?? '')
  if (isVouchedFor && (origin === `http://${host}` || origin === `https://${host}`)) return undefined
  return { status: 403, message: `Pages of ${origin.slice(0, 255)} may not connect. Allow the origin with the option origins.` }
}

/** Credentials in an address are refused: they end up in logs. */
export function queryRefusal(parameters: URLSearchParams): Refusal | undefined {
  if (parameters.size === 0) return undefined
  const credential = [...parameters.keys()].find(name => CREDENTIAL_PARAMETERS.includes(name.toLowerCase()))
  if (credential === undefined) return undefined
  return { status: 400, message: `Credentials in an address end up in logs. Send ${credential} in the Authorization header.` }
}

/** Who calls by these headers; nobody if everyone may call. Refused is who is not known, and whose credentials have run out. */
export async function identified(headers: () => Credentials['headers'], { authenticate, challenge, clock, limits, logger }: Settings): Promise<Identified> {
  if (!authenticate) return {}
  try {
    const principal = await identify({ authenticate, logger, limits, clock }, { headers: headers() })
    return principal && clock.now() < (principal.expiresAtMs ?? Infinity) ? { principal } : { refusal: unauthenticated(challenge) }
  } catch (error) {
    return { refusal: undecided(error as A2AError) }
  }
}

function unauthenticated(challenge = DEFAULT_CHALLENGE): Refusal {
  const error = new A2AError('Unauthenticated', `Connect with credentials that this agent knows: ${challenge}.`)
  return { status: 401, message: error.message, headers: { 'WWW-Authenticate': challenge }, error }
}

/** The error with which a stream ends when the credentials of its request run out. */
export function expired(): A2AError {
  return new A2AError('Unauthenticated', 'The credentials of this request have run out. Ask again with fresh ones.')
}

/** Nobody can tell who calls just now. */
function undecided(error: A2AError): Refusal {
  const { message, retryAfterMs = 1000 } = error
  return { status: 503, message, headers: { 'Retry-After': String(Math.ceil(retryAfterMs / 1000)) }, error }
}

/** A refusal as clients of 0.1 read it, if it may be one of theirs that is refused: the data of an error is an object there. `served` are the versions that are served. */
export function forVersion(refusal: Refusal, version: string, served: readonly string[]): Refusal {
  const isOlder = served.includes('0.1') && (version.trim() === '' || normaliseVersion(version) === '0.1')
  if (!refusal.error || !isOlder) return refusal
  const { code, message, metadata, retryAfterMs } = refusal.error
  return { ...refusal, error: new A2AError(code, message, { metadata, ...(retryAfterMs !== undefined && { retryAfterMs }), dataIsObject: true }) }
}

/** The name in a `NAME[:PORT]` without its port; `undefined` if it is none. */
const nameOf = memoizeLast(host => authorityOf(host)?.name)

/** The target of a request to a server of Node's (RFC 9112 §3.2). */
export interface Target {
  /** The host that the Host rule has allowed, `NAME[:PORT]`: that of an absolute target, else that of the Host header. */
  readonly host: string
  /** Path and query. */
  readonly path: string
}

/** A target in absolute form: its scheme, its host, and its path and query. */
const ABSOLUTE = /^(?<scheme>[a-z][a-z\d+.-]*):\/\/(?<host>[^/?#]*)(?<rest>.*)$/is

/** A path that URL parsing would change: with a backslash, or with `.` or `..` as a segment, percent-encoded or not. A `%2f` is data: it ends no segment. */
const CHANGED_BY_PARSING = /^[^?#]*?(?:\\|\/(?:\.|%2e){1,2}(?:[/\\?#]|$))/i

/** Gives the target of a request, or its refusal: the target is malformed, or the Host rule does not allow its host. */
export function targetOf(request: IncomingMessage, settings: Runtime['settings']): Target | Refusal {
  const { rawHeaders, headers, socket } = request
  const given = rawHeaders.filter((name, i) => i % 2 === 0 && name.length === 4 && name.toLowerCase() === 'host').length
  if (given > 1) return { status: 400, message: 'Send one Host header.' }
  if (!['', 'chunked'].includes((headers['transfer-encoding'] ?? '').toLowerCase())) return { status: 501, message: 'Of transfer codings only chunked is decoded here. Send the body without others.' }
  const { scheme, host = headers.host ?? '', path } = partsOf(request)
  return formRefusal(scheme, path, 'encrypted' in socket) ?? hostRefusal(host, socket.localAddress ?? '127.0.0.1', settings) ?? { host, path }
}

/** The path that a request addresses, without its query. */
export function pathOf(request: IncomingMessage): string {
  return partsOf(request).path.replace(/\?.*$/s, '')
}

/** The headers of a request, those that were given twice as a list with commas. */
export function headersOf({ headers }: IncomingMessage): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]))
}

/** The parts of a target. `OPTIONS *` is about the server, and is answered as its root is. */
function partsOf({ url = '', method }: IncomingMessage): { readonly scheme?: string; readonly host?: string; readonly path: string } {
  if (url.startsWith('/')) return { path: url }
  const { scheme, host = '', rest = '' } = ABSOLUTE.exec(url)?.groups ?? {}
  if (scheme !== undefined) return { scheme: scheme.toLowerCase(), host, path: rest.startsWith('/') ? rest : `/${rest}` }
  return { path: url === '*' && method === 'OPTIONS' ? '/' : url }
}

function formRefusal(scheme: string | undefined, path: string, isSecure: boolean): Refusal | undefined {
  if (!path.startsWith('/')) return { status: 400, message: 'The target of a request is a path, or an address that begins with http://.' }
  if (CHANGED_BY_PARSING.test(path)) return { status: 400, message: 'The path has a segment . or .., or a backslash. Send the path that is meant.' }
  if (scheme === undefined || scheme === 'http') return undefined
  if (scheme !== 'https') return { status: 400, message: `There is nothing at ${scheme.slice(0, 64)}: addresses here. Send a path.` }
  return isSecure ? undefined : { status: 421, message: 'This connection has no TLS, so nothing at an https: address is answered on it. Send a path.' }
}
