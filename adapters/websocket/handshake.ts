import { STATUS_CODES, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { A2AError } from '../../machines/protocol/errors.ts'
import { WEBSOCKET_SUBPROTOCOL } from '../../machines/protocol/uris.ts'
import type { Principal } from '../../runtime/access/authentication.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import {
  refusalForVersion,
  requestHeadersOf,
  authenticateRequest,
  originRefusal,
  queryRefusal,
  targetOf,
  type RefusedRequest
} from '../entry/admission.ts'
import { refusalBody } from '../entry/answers.ts'
import type { Versions } from '../json-rpc/dispatch.ts'

type Settings = ServedRuntime['settings']

/** The result of a connection's handshake. */
export interface ConnectionOptions {
  readonly principal: Principal | undefined
  /** The tenant in its path. */
  readonly tenant?: string
  /** `A2A-Version` and `A2A-Extensions` of the handshake: the defaults for its requests. */
  readonly version: string
  readonly extensions: string
}

/** An accepted handshake. */
export interface Handshake extends ConnectionOptions {
  /** The requested host, `NAME[:PORT]`. */
  readonly host: string
}

/** Validates a handshake, in the order of its text. */
export async function readHandshake(
  request: IncomingMessage,
  settings: Settings,
  versions: Versions
): Promise<Handshake | RefusedRequest> {
  const target = targetOf(request, settings)
  if ('status' in target) return target
  const url = new URL(`ws://localhost${target.path}`)
  const version = headerOr(request, 'a2a-version', url)
  const refusal =
    originRefusal(request.headers.origin, target.host, settings) ??
    protocolRefusal(request) ??
    queryRefusal(url.searchParams) ??
    versionRefusal(version, versions)
  if (refusal) return refusal
  const extensions = headerOr(request, 'a2a-extensions', url)
  const { principal, refusal: stranger } = await authenticateRequest(() => requestHeadersOf(request), settings)
  return (
    (stranger && refusalForVersion(stranger, version, versions)) ?? {
      principal,
      version,
      extensions,
      host: target.host
    }
  )
}

/** Answers a refused handshake and closes the connection. */
export function refuse(socket: Socket, refusal: RefusedRequest): void {
  const { status, headers = {} } = refusal
  const body = refusalBody(refusal)
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  ]
  socket.once('finish', () => socket.destroy())
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`)
}

function protocolRefusal({ headers }: IncomingMessage): RefusedRequest | undefined {
  if (headers['sec-websocket-version'] !== '13') {
    return {
      status: 426,
      message: 'The only supported WebSocket version is 13.',
      headers: { 'Sec-WebSocket-Version': '13' }
    }
  }
  const offered = headers['sec-websocket-protocol']?.split(',').map(name => name.trim())
  if (!offered || offered.includes(WEBSOCKET_SUBPROTOCOL)) return undefined
  return {
    status: 400,
    message: `None of the offered subprotocols is supported. Offer ${WEBSOCKET_SUBPROTOCOL}, or none.`
  }
}

function versionRefusal(version: string, versions: Versions): RefusedRequest | undefined {
  if (versions.read(version) !== 'unsupported') return undefined
  const { served } = versions
  const message = `This agent speaks A2A ${served.join(' and ')}.`
  return {
    status: 400,
    message,
    error: new A2AError('VersionNotSupported', message, { metadata: { supportedVersions: served.join(', ') } })
  }
}

function headerOr(request: IncomingMessage, name: string, url: URL): string {
  const header = request.headers[name]
  if (header !== undefined) return String(header)
  for (const [key, value] of url.searchParams) if (key.toLowerCase() === name) return value
  return ''
}
