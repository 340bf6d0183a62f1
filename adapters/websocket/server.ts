import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { WebSocketServer, type WebSocket } from 'ws'
import { WEBSOCKET_SUBPROTOCOL } from '../../machines/protocol/uris.ts'
import { PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { Refusal } from '../http/entry.ts'
import { cardHandler } from '../http/handler.ts'
import { interfacesAt, withScheme, type Offer } from '../http/interfaces.ts'
import { addressOf, checkHost, FULL, GOING, listen, type Address, type Listening } from '../http/listen.ts'
import { methodsOf } from '../json-rpc/dispatch.ts'
import type { Dialect } from '../legacy/dialect.ts'
import { CLOSE_CODES } from './close-codes.ts'
import { Connection } from './connection.ts'
import { readHandshake, refuse } from './handshake.ts'
import { startHeartbeat } from './heartbeat.ts'

/** Where to serve: a port of our own, or an HTTP server that the app listens with. */
export type ServeOptions = (Address | { readonly server: Server }) & {
  /** Path of the WebSocket. Default `/`. */
  readonly path?: string
  /** Older versions of A2A to speak beside 1.0. Default none. */
  readonly dialects?: readonly Dialect[]
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
  const { path = '/', dialects = [] } = options
  const offer = { webSocket: true, http: false, dialects }
  if ('server' in options) return attach(runtime, listening(options.server, runtime), path, offer)
  const own = await listen(options, runtime, cardHandler(runtime, { path, ...offer }))
  return together(attach(runtime, own.server, path, offer), own)
}

/** Takes WebSockets on a server that listens, until it is closed; the server itself goes on. */
export function attach(runtime: Runtime, server: Server, path: string, offer: Offer): Served {
  const { settings } = runtime
  const { limits, clock } = settings
  const bounds = { maxPayload: limits.messageBytes, maxFragments: MOST_FRAGMENTS, closeTimeout: CLOSE_TIMEOUT_MS }
  const handleProtocols = (offered: Set<string>) => offered.has(WEBSOCKET_SUBPROTOCOL) && WEBSOCKET_SUBPROTOCOL
  const sockets = new WebSocketServer({ noServer: true, handleProtocols, ...bounds })
  const versions = [PROTOCOL_VERSION, ...offer.dialects.map(({ version }) => version)]
  const address = addressOf(server, path)
  const serving = { runtime, methods: methodsOf(runtime, offer.dialects), interfaces: interfacesAt(settings.publicUrl ?? address, offer) }
  let isDraining = false
  let closing: Promise<void> | undefined

  const upgrade = async (request: IncomingMessage, socket: Socket, head: Buffer) => {
    if (isDraining) return refuse(socket, GOING)
    if (sockets.clients.size >= limits.connections) return refuse(socket, FULL)
    const terms = await readHandshake(request, settings, versions)
    if ('status' in terms) return refuse(socket, terms)
    if (isDraining) return refuse(socket, GOING)
    sockets.handleUpgrade(request, socket, head, (client: WebSocket) => new Connection(serving, client, socket, terms))
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
  }
  return { url: withScheme(address, 'ws'), drain, close: () => (closing ??= close()) }
}

/** The WebSockets of a port of our own, and the port. */
export function together(sockets: Served, own: Listening): Served {
  let closing: Promise<void> | undefined
  return {
    url: sockets.url,
    drain: () => {
      sockets.drain()
      own.drain()
    },
    close: () => (closing ??= sockets.close().then(() => own.close()))
  }
}

/** An app's server, which has to listen already: its address is ours. */
function listening(server: Server, runtime: Runtime): Server {
  const address = server.address()
  if (address === null) throw new TypeError('The server does not listen yet. Call serveWebSocket when it does.')
  if (typeof address === 'object') checkHost(address.address, runtime)
  return server
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
