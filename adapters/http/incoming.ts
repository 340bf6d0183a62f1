import type { IncomingMessage } from 'node:http'
import type { Runtime } from '../../runtime/runtime.ts'
import { hostRefusal, type Refusal } from './entry.ts'

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
