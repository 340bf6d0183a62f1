import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { A2AError } from '../../machines/protocol/errors.ts'
import { SharedLimit } from '../../runtime/access/shares.ts'
import { textSuchAs, type Kind, type OptionKinds } from '../../runtime/primitives/options.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import type { Health } from '../../runtime/telemetry-port.ts'
import { isLoopback, requestPathOf, targetOf, type RefusedRequest } from './admission.ts'
import { formOf, refusalOf, refusalBody } from './answers.ts'
import { bind } from './bind.ts'
import type { Handler } from './connection.ts'
import { Answering, InTurn, ReceivedRequest } from './received-requests.ts'
import { listenerOf } from './small-request.ts'

/** The port and host to listen on. */
export interface Address {
  /** 0 takes any free port. Default 4242 or, if it is in use, the next free one of the 19 after it. */
  readonly port?: number | undefined
  /**
   * The address to bind. Default `127.0.0.1`. Others need `authenticate`; `0.0.0.0` and `::` also need `publicUrl` or
   * `hosts`.
   */
  readonly host?: string
}

/** The kinds of an address's options, for functions that accept them. */
export const ADDRESS: OptionKinds<Address> = {
  port: [
    value => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 65_535,
    'a number such as 4242, or 0 for a free port'
  ],
  host: textSuchAs("'127.0.0.1'")
}

/** Throws TypeError without a port, where none is the default. */
export function checkPort({ port }: Address, taker: string, example: string): void {
  if (port === undefined) throw new TypeError(`${taker} needs a port: ${example}.`)
}

/** The kind of the option `path`. */
export const A_PATH: Kind = [
  value => typeof value === 'string' && value.startsWith('/'),
  "a path that begins with a slash, such as '/agent'"
]

/** The path of an agent without its trailing slashes; empty for the root. */
export function basePath(path: string): string {
  return path.replace(/\/+$/, '')
}

/**
 * The URL of an agent, `http://127.0.0.1:4242/agent`, or `http://127.0.0.1:4242/` for the root. A path ends without a
 * slash, because frameworks such as Next.js redirect the other form, and clients follow no redirects.
 */
export function joinAgentUrl(origin: string, base: string): string {
  return `${origin}${base === '' ? '/' : base}`
}

/** A listening server that taskchart opened. */
export interface ListeningServer {
  readonly server: Server
  /** Answers every request with 503 from now on, `/healthz` apart. */
  drain(): void
  close(): Promise<void>
}

const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 30_000

/** The refusal while the server is closing. */
export const GOING: RefusedRequest = refusalOf(
  new A2AError('Overloaded', 'The server restarts. Retry later.', { retryAfterMs: 1000 })
)

/** The refusal at the limit of connections or pending requests. */
export const FULL: RefusedRequest = refusalOf(
  new A2AError('Overloaded', 'The server has reached its connection limit. Retry later.', { retryAfterMs: 1000 })
)

/** The first and the last port that are tried when none is given. */
export const PORTS = [4242, 4261] as const

/**
 * Listens on a port, and answers with a handler; health checks with the runtime's `health`, or another. Resolves when
 * it accepts connections; throws TypeError as `checkHost` does.
 */
export async function listen(
  { port, host = '127.0.0.1' }: Address,
  runtime: ServedRuntime,
  handler: Handler,
  health: () => Health = () => runtime.health()
): Promise<ListeningServer> {
  checkHost(host, runtime)
  const { settings } = runtime
  const server = createServer({
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: 1000
  })
  const inTurn = new InTurn(settings.limits.callsPerConnection)
  let isDraining = false
  const answering = new Answering(new SharedLimit(settings.limits.connections, settings.limits), listenerOf(handler))
  // Node removes its own error listener from a socket that requests an upgrade: an error would then end the process.
  const ignore = () => {}
  server.on('connection', socket => socket.off('error', ignore).on('error', ignore))
  const receive = (request: IncomingMessage, response: ServerResponse, waits: boolean) => {
    if (answeredHealth(request, response, isDraining, health)) return
    const target = isDraining
      ? GOING
      : answering.underWay >= settings.limits.connections
        ? FULL
        : targetOf(request, settings)
    if ('status' in target) {
      settings.counters.refused(target.status)
      const body = refusalBody(target, formOf(request.method, requestPathOf(request)))
      response
        .writeHead(target.status, {
          'Content-Type': 'application/json',
          'Content-Length': Buffer.byteLength(body),
          ...target.headers
        })
        .end(body)
      return
    }
    // An absolute target becomes a path and a Host header (RFC 9112 §3.2.2).
    request.url = target.path
    request.headers.host = target.host
    inTurn.add(new ReceivedRequest(request, response, answering, waits))
  }
  server.on('request', (request: IncomingMessage, response: ServerResponse) => receive(request, response, false))
  // The client waits for an invitation to send the body. Without this listener Node sends it before anything is
  // decided.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => receive(request, response, true))
  const [first, last] = port === undefined ? PORTS : [port, port]
  const close = await bind(server, host, first, last)
  try {
    // A host name may resolve to any address.
    checkHost((server.address() as AddressInfo).address, runtime)
  } catch (error) {
    await close()
    throw error
  }
  const uncount = settings.counters.serves('http', () => answering.underWay)
  const drain = () => {
    isDraining = true
  }
  return { server, drain, close: () => (drain(), uncount(), close()) }
}

/**
 * Throws TypeError for a public address without `authenticate`, and for all addresses at once without a URL for the
 * card.
 */
export function checkHost(host: string, { settings: { authenticate, publicUrl, hosts } }: ServedRuntime): void {
  if (!isLoopback(host) && !authenticate)
    throw new TypeError(
      `Without authenticate anyone could use the agent on ${host}. Give createRuntime({ authenticate }), or bind 127.0.0.1.`
    )
  if (!isEveryAddress(host) || hosts || publicUrl !== undefined) return
  throw new TypeError(
    `On ${host} the agent listens on every address of this machine, so its card cannot say where it is. Give createRuntime({ publicUrl }) or createRuntime({ hosts }), or bind one address.`
  )
}

/** Whether a host means all addresses of a machine. */
export function isEveryAddress(host: string): boolean {
  return ['', '0.0.0.0', '::', '::ffff:0.0.0.0'].includes(host)
}

/** The URL of a listening server: `http://127.0.0.1:4242` and a path. */
export function serverUrlOf(server: Server, path: string): string {
  const { address, port, family } = server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}${path}`
}

/** The paths of the health checks. */
const HEALTH = '/healthz'
const READY = '/readyz'

/**
 * Answers a health check, by its status alone; `false` for any other request. `/healthz` is 200 while the process
 * answers. `/readyz` is 200 if the server accepts requests and its runtime is ready, else 503.
 */
function answeredHealth(
  request: IncomingMessage,
  response: ServerResponse,
  isDraining: boolean,
  health: () => Health
): boolean {
  const path = requestPathOf(request)
  if (path !== HEALTH && path !== READY) return false
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  const isServing = path === HEALTH || (!isDraining && health().isReady)
  const status = isRead ? (isServing ? 200 : 503) : 405
  response
    .writeHead(status, { 'Cache-Control': 'no-store', 'Content-Length': 0, ...(!isRead && { Allow: 'GET, HEAD' }) })
    .end()
  return true
}

/** Throws TypeError for a path of an agent that is one of a health check. */
export function checkPath(path: string): void {
  const healthPath = [HEALTH, READY].find(health => basePath(path) === health)
  if (healthPath !== undefined)
    throw new TypeError(
      `The path ${healthPath} reports the health of the server. Choose another for the agent, such as '/agent'.`
    )
}
