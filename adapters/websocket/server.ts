import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { WebSocketServer, type WebSocket } from 'ws'
import type { AgentInterface } from '../../machines/protocol/card.ts'
import { WEBSOCKET_BINDING, WEBSOCKET_SUBPROTOCOL } from '../../machines/protocol/uris.ts'
import { PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { answerCard } from '../http/agent-card.ts'
import { CLOSE_CODES } from './close-codes.ts'
import { Connection } from './connection.ts'
import { hostRefusal, isLoopback, readHandshake, refuse, type Refusal } from './handshake.ts'
import { startHeartbeat } from './heartbeat.ts'

/** Where to serve: a port of our own, or an HTTP server that the app listens with. */
export type ServeOptions = ListenOptions | { readonly server: Server; readonly path?: string }

interface ListenOptions {
  /** 0 takes a free one. */
  readonly port: number
  /** Address to bind. Default `127.0.0.1`; others need a runtime with `authenticate`. */
  readonly host?: string
  /** Path of the WebSocket. Default `/`. */
  readonly path?: string
}

/** A server of a runtime. */
export interface Served {
  /** Where the agent is reached: `ws://127.0.0.1:4242/`. */
  readonly url: string
  /**
   * Takes no new connections from now on: handshakes, and on a port of our own all of HTTP, get 503. Connections that are
   * open go on until `close`. May be called twice.
   */
  drain(): void
  /** Tells the clients and closes their connections, and the port if it is ours; the runtime and its tasks go on. May be called twice. */
  close(): Promise<void>
}

const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 30_000

/** What a client hears that comes when the server is about to close. */
const GOING: Refusal = { status: 503, message: 'The server restarts. Try again later.', headers: { 'Retry-After': '1' } }

/** What a client hears when there are as many connections as the server takes. */
const FULL: Refusal = { status: 503, message: 'The server has as many connections as it takes. Try again later.', headers: { 'Retry-After': '1' } }

/** Fragments that one message may come in. */
const MOST_FRAGMENTS = 1024

/** How long clients may take to answer our close before they are cut off. */
const CLOSE_TIMEOUT_MS = 5_000

/**
 * Serves a runtime over WebSocket: JSON-RPC 2.0, one object in each text frame, many calls and streams on one
 * connection. On a port of our own the agent's card is served too. Resolves when connections are taken; throws TypeError
 * when the options contradict each other or would open an agent without `authenticate` to others.
 */
export async function serveWebSocket(runtime: Runtime, options: ServeOptions): Promise<Served> {
  if ('server' in options === 'port' in options) throw new TypeError('Give serveWebSocket either a port, or the server of your app.')
  const { path = '/' } = options
  const { settings } = runtime
  let isDraining = false
  const server = 'server' in options ? listening(options.server, runtime) : await listen(options, runtime, () => isDraining)
  const { limits, clock } = settings
  const bounds = { maxPayload: limits.messageBytes, maxFragments: MOST_FRAGMENTS, closeTimeout: CLOSE_TIMEOUT_MS }
  const handleProtocols = (offered: Set<string>) => offered.has(WEBSOCKET_SUBPROTOCOL) && WEBSOCKET_SUBPROTOCOL
  const sockets = new WebSocketServer({ noServer: true, handleProtocols, ...bounds })

  let closing: Promise<void> | undefined

  const upgrade = async (request: IncomingMessage, socket: Socket, head: Buffer) => {
    if (isDraining) return refuse(socket, GOING)
    if (sockets.clients.size >= limits.connections) return refuse(socket, FULL)
    const terms = await readHandshake(request, settings)
    if ('status' in terms) return refuse(socket, terms)
    if (isDraining) return refuse(socket, GOING)
    sockets.handleUpgrade(request, socket, head, (client: WebSocket) => new Connection(runtime, client, socket, { ...terms, interfaces: interfacesOf(runtime, server, path) }))
  }
  const onUpgrade = (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    const [asked] = String(request.url).split('?')
    if (asked !== path) return isNobodys(server, String(asked)) && !socket.writableEnded ? refuse(socket, elsewhere(path)) : undefined
    upgrade(request, socket, head).catch(() => refuse(socket, { status: 400, message: 'The handshake could not be read.' }))
  }
  server.on('upgrade', onUpgrade)
  PATHS.set(server, [...pathsOn(server), path])
  const stopHeartbeat = startHeartbeat(sockets.clients, clock)

  const drain = () => {
    isDraining = true
  }
  const close = async () => {
    drain()
    stopHeartbeat()
    server.off('upgrade', onUpgrade)
    PATHS.set(server, pathsOn(server).filter(other => other !== path))
    for (const client of sockets.clients) client.close(CLOSE_CODES.restart, 'The server restarts. Your tasks go on: connect again.')
    if (!('server' in options)) await closeServer(server)
  }
  return { url: addressOf(server, path), drain, close: () => (closing ??= close()) }
}

/** An app's server, which has to listen already: its address is ours. */
function listening(server: Server, runtime: Runtime): Server {
  const address = server.address()
  if (address === null) throw new TypeError('The server does not listen yet. Call serveWebSocket when it does.')
  if (typeof address === 'object') checkHost(address.address, runtime)
  return server
}

function checkHost(host: string, { settings }: Runtime): void {
  if (isLoopback(host) || settings.authenticate) return
  throw new TypeError(`Without authenticate anyone could use the agent on ${host}. Give createRuntime({ authenticate }), or bind 127.0.0.1.`)
}

/** The paths of our agents on each server. */
const PATHS = new WeakMap<Server, readonly string[]>()

function pathsOn(server: Server): readonly string[] {
  return PATHS.get(server) ?? []
}

/** True when neither one of our agents on this server nor the app itself may want an upgrade of this path. */
function isNobodys(server: Server, path: string): boolean {
  const ours = pathsOn(server)
  return server.listenerCount('upgrade') <= ours.length && !ours.includes(path)
}

function elsewhere(path: string): Refusal {
  return { status: 404, message: `The agent is at ${path}.` }
}

/** Listens on a port of our own, which answers with the card too. */
async function listen({ port, host = '127.0.0.1', path = '/' }: ListenOptions, runtime: Runtime, isDraining: () => boolean): Promise<Server> {
  checkHost(host, runtime)
  const server = createServer({ headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS, connectionsCheckingInterval: 1000 })
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const refusal = isDraining() ? GOING : hostRefusal(request, runtime.settings)
    if (refusal) {
      response.writeHead(refusal.status, { 'Content-Type': 'application/json', ...refusal.headers }).end(JSON.stringify({ error: refusal.message }))
      return
    }
    answerCard(runtime.agentCard(interfacesOf(runtime, server, path)), request, response)
  })
  server.listen(port, host)
  await once(server, 'listening')
  return server
}

function interfacesOf({ settings }: Runtime, server: Server, path: string): AgentInterface[] {
  return [{ url: settings.publicUrl ?? addressOf(server, path), protocolBinding: WEBSOCKET_BINDING, protocolVersion: PROTOCOL_VERSION }]
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}

function addressOf(server: Server, path: string): string {
  const { address, port, family } = server.address() as AddressInfo
  return `ws://${family === 'IPv6' ? `[${address}]` : address}:${port}${path}`
}
