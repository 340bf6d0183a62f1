import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import type { Socket } from 'node:net'
import { A2AError } from '../../machines/protocol/errors.ts'
import { WEBSOCKET_SUBPROTOCOL } from '../../machines/protocol/uris.ts'
import { normaliseVersion, PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import { toWireError } from '../../machines/protocol/wire-errors.ts'
import { DEFAULT_CHALLENGE } from '../../runtime/authentication.ts'
import { identify } from '../../runtime/identify.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { ConnectionTerms } from './connection.ts'

/** A handshake that is refused before the upgrade, with an HTTP status. */
export interface Refusal {
  readonly status: keyof typeof REASONS
  readonly message: string
  readonly headers?: Readonly<Record<string, string>>
  /** What the body says in place of the message. */
  readonly error?: A2AError
}

type Settings = Runtime['settings']

const CREDENTIAL_PARAMETERS = ['token', 'access_token', 'api_key', 'apikey', 'key', 'authorization']

/** Reads a handshake: the terms of the connection, or why there will be none. The checks are in the order of the text. */
export async function readHandshake(request: IncomingMessage, settings: Settings): Promise<ConnectionTerms | Refusal> {
  const url = new URL(String(request.url), 'ws://localhost')
  const version = headerOr(request, 'a2a-version', url)
  const refusal = hostRefusal(request, settings) ?? originRefusal(request, settings) ?? protocolRefusal(request) ?? queryRefusal(url) ?? versionRefusal(version)
  if (refusal) return refusal
  const extensions = headerOr(request, 'a2a-extensions', url)
  if (!settings.authenticate) return { principal: undefined, version, extensions }
  const { authenticate, logger } = settings
  try {
    const principal = await identify({ authenticate, logger }, { headers: headersOf(request) })
    return principal ? { principal, version, extensions } : unauthenticated(authenticate.challenge)
  } catch (error) {
    return undecided(error as A2AError)
  }
}

/** Answers a refused handshake and closes the connection. */
export function refuse(socket: Socket, { status, message, headers = {}, error }: Refusal): void {
  const body = JSON.stringify(error ? { jsonrpc: '2.0', id: null, error: toWireError(error) } : { error: message })
  const lines = [
    `HTTP/1.1 ${status} ${REASONS[status]}`,
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  ]
  socket.once('finish', () => socket.destroy())
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`)
}

/** The Host rule: on a loopback address only loopback names, else only the names that are allowed, if any are given. */
export function hostRefusal(request: IncomingMessage, { hosts }: Settings): Refusal | undefined {
  const given = request.rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'host').length
  if (given > 1) return { status: 400, message: 'Send one Host header.' }
  const host = hostnameOf(request.headers.host)
  if (hosts ? hosts.includes(host) : isLoopback(host) || !isLoopback(request.socket.localAddress ?? '127.0.0.1')) return undefined
  return { status: 421, message: `This server is not ${host.slice(0, 255)}. Allow the name with the option hosts.` }
}

/** True for the names and addresses of this machine alone. */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '').replace(/^::ffff:/i, '')
  return name === 'localhost' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'))
}

const REASONS = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  421: 'Misdirected Request',
  426: 'Upgrade Required',
  503: 'Service Unavailable'
} as const

/** A page may connect if its origin is allowed, or is this very server under a name that the Host rule vouches for. */
function originRefusal(request: IncomingMessage, settings: Settings): Refusal | undefined {
  const { origin } = request.headers
  if (origin === undefined || settings.origins?.includes(origin)) return undefined
  const host = request.headers.host ?? ''
  const isVouchedFor = settings.hosts !== undefined || isLoopback(hostnameOf(host))
  if (isVouchedFor && (origin === `http://${host}` || origin === `https://${host}`)) return undefined
  return { status: 403, message: `Pages of ${origin.slice(0, 255)} may not connect. Allow the origin with the option origins.` }
}

function protocolRefusal({ headers }: IncomingMessage): Refusal | undefined {
  if (headers['sec-websocket-version'] !== '13') {
    return { status: 426, message: 'Only version 13 of WebSocket is spoken here.', headers: { 'Sec-WebSocket-Version': '13' } }
  }
  const offered = headers['sec-websocket-protocol']?.split(',').map(name => name.trim())
  if (!offered || offered.includes(WEBSOCKET_SUBPROTOCOL)) return undefined
  return { status: 400, message: `None of the subprotocols offered is known here. Offer ${WEBSOCKET_SUBPROTOCOL}, or none.` }
}

function queryRefusal(url: URL): Refusal | undefined {
  const credential = [...url.searchParams.keys()].find(name => CREDENTIAL_PARAMETERS.includes(name.toLowerCase()))
  if (credential === undefined) return undefined
  return { status: 400, message: `Credentials in an address end up in logs. Send ${credential} in the Authorization header.` }
}

function versionRefusal(version: string): Refusal | undefined {
  if (version.trim() === '' || normaliseVersion(version) === PROTOCOL_VERSION) return undefined
  const message = `This agent speaks A2A ${PROTOCOL_VERSION}.`
  const metadata = { supportedVersions: PROTOCOL_VERSION }
  return { status: 400, message, error: new A2AError('VersionNotSupported', message, { metadata }) }
}

function headersOf(request: IncomingMessage): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]))
}

function unauthenticated(challenge = DEFAULT_CHALLENGE): Refusal {
  const error = new A2AError('Unauthenticated', 'Connect with credentials that this agent knows, in the Authorization header.')
  return { status: 401, message: error.message, headers: { 'WWW-Authenticate': challenge }, error }
}

/** Nobody can tell who calls just now. */
function undecided(error: A2AError): Refusal {
  const { message, retryAfterMs = 1000 } = error
  return { status: 503, message, headers: { 'Retry-After': String(Math.ceil(retryAfterMs / 1000)) }, error }
}

function headerOr(request: IncomingMessage, name: string, url: URL): string {
  const header = request.headers[name]
  if (header !== undefined) return String(header)
  for (const [key, value] of url.searchParams) if (key.toLowerCase() === name) return value
  return ''
}

function hostnameOf(host = ''): string {
  return host.replace(/:\d+$/, '').toLowerCase()
}
