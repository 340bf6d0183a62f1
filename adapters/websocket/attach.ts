import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { WebSocketServer } from 'ws'
import type { AgentInterface } from '../../machines/protocol/card.ts'
import { A2AError, ERRORS } from '../../machines/protocol/errors.ts'
import { WEBSOCKET_SUBPROTOCOL } from '../../machines/protocol/uris.ts'
import { SharedLimit } from '../../runtime/access/shares.ts'
import { memoizeLast } from '../../runtime/primitives/collections.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { requestPathOf, type RefusedRequest } from '../entry/admission.ts'
import type { Tap } from '../entry/connection.ts'
import {
  acceptedUrl,
  interfacesAt,
  connectionOrigin,
  tenantIn,
  withScheme,
  type OfferedBindings
} from '../entry/interfaces.ts'
import { serverUrlOf, joinAgentUrl, basePath, FULL, GOING, type ListeningServer } from '../entry/listen.ts'
import { shareRefusal } from '../entry/received-requests.ts'
import { acceptUpgrades } from '../entry/upgrade-paths.ts'
import { methodsOf, Versions } from '../json-rpc/dispatch.ts'
import { CLOSE_CODES } from './close-codes.ts'
import { Connection } from './connection.ts'
import { readHandshake, refuse } from './handshake.ts'
import { startHeartbeat } from './heartbeat.ts'
import { ServedSocket } from './outbox.ts'

/** A served runtime. */
export interface Served {
  /** The URL of the agent: `http://127.0.0.1:4242/`, or `ws://127.0.0.1:4242/` if it speaks WebSocket alone. */
  readonly url: string
  /** The URL of the metrics, if they are served: `http://127.0.0.1:9464/metrics`. */
  readonly metricsUrl?: string
  /** The URL for hosts of the Model Context Protocol, if they are served: `http://127.0.0.1:4242/mcp`. */
  readonly mcpUrl?: string
  /** The URL for front ends that speak AG-UI, if they are served: `http://127.0.0.1:4242/ag-ui`. */
  readonly agUiUrl?: string
  /** The interfaces in the card at this URL, for other servers of the same agent. */
  readonly interfaces: readonly AgentInterface[]
  /**
   * Refuses new connections from now on: handshakes get 503, and on a port that `serve` opened also HTTP requests. Open
   * connections remain until `close`. May be called twice.
   */
  drain(): void
  /**
   * Notifies the clients and closes their connections, and the port if `serve` opened it. Runtime and tasks go on. May
   * be called twice.
   */
  close(): Promise<void>
}

/** The maximum number of fragments of a message. */
const MOST_FRAGMENTS = 1024

/** The time that clients have to answer a close frame before they are disconnected. */
const CLOSE_TIMEOUT_MS = 5_000

/**
 * Accepts WebSockets on a listening server until it is closed; the server remains open. `tap` receives their frames.
 */
export function attach(
  runtime: ServedRuntime,
  server: Server,
  path: string,
  offer: OfferedBindings,
  tap?: Tap
): Served {
  const { settings } = runtime
  const { limits, clock, logger } = settings
  const bounds = { maxPayload: limits.messageBytes, maxFragments: MOST_FRAGMENTS, closeTimeout: CLOSE_TIMEOUT_MS }
  const handleProtocols = (offered: Set<string>) => offered.has(WEBSOCKET_SUBPROTOCOL) && WEBSOCKET_SUBPROTOCOL
  const sockets = new WebSocketServer({ noServer: true, WebSocket: ServedSocket, handleProtocols, ...bounds })
  const versions = new Versions(offer.dialects, runtime.settings.versions)
  const base = basePath(path)
  const address = joinAgentUrl(serverUrlOf(server, ''), base)
  const serving = { runtime, methods: methodsOf(runtime, versions), tap }
  /** The interfaces to show to a connection to this host. */
  const interfacesFor = memoizeLast(origin =>
    interfacesAt(settings.publicUrl ?? joinAgentUrl(origin, base), offer, settings.versions)
  )
  const shares = new SharedLimit(limits.connections, limits)
  let isDraining = false
  let handshakes = 0
  let closing: Promise<void> | undefined

  const refused = (socket: Socket, refusal: RefusedRequest) => {
    settings.counters.refused(refusal.status)
    refuse(socket, refusal)
  }
  const upgrade = async (request: IncomingMessage, socket: Socket, head: Buffer, tenant?: string) => {
    if (isDraining) return refused(socket, GOING)
    if (sockets.clients.size + handshakes >= limits.connections) return refused(socket, FULL)
    handshakes += 1
    const shaken = await readHandshake(request, settings, versions).finally(() => (handshakes -= 1))
    if ('status' in shaken) return refused(socket, shaken)
    if (isDraining) return refused(socket, GOING)
    const { host, ...options } = shaken
    const owner = settings.ownerOf(options.principal, tenant)
    const refusal = shareRefusal(shares, owner)
    if (refusal) return refused(socket, refusal)
    const interfaces = interfacesFor(connectionOrigin(new URL(`http://${host}`).hostname, socket, settings.hosts))
    sockets.handleUpgrade(request, socket, head, (client: ServedSocket) => {
      shares.add(owner)
      client.once('close', () => shares.add(owner, -1))
      return new Connection({ ...serving, interfaces }, client, socket, {
        ...options,
        ...(tenant !== undefined && { tenant })
      })
    })
  }
  const acceptsBelow = settings.hasTenants
    ? (requestPath: string) => tenantBelow(base, requestPath) !== undefined
    : undefined
  const accept = (request: IncomingMessage, socket: Socket, head: Buffer) => {
    upgrade(request, socket, head, tenantBelow(base, requestPathOf(request))).catch((error: unknown) => {
      logger.error('a handshake failed', { error })
      refused(socket, broken())
    })
  }
  const release = acceptUpgrades(server, { path, acceptsBelow }, accept, (_, socket) =>
    refused(socket, elsewhere(path))
  )
  const uncount = settings.counters.serves('websocket', () => sockets.clients.size)
  const stopHeartbeat = startHeartbeat(sockets.clients, clock)

  const drain = () => {
    isDraining = true
  }
  const close = async () => {
    drain()
    stopHeartbeat()
    uncount()
    release()
    for (const client of sockets.clients)
      client.close(CLOSE_CODES.restart, 'The server restarts. Your tasks go on: connect again.')
  }
  return {
    url: withScheme(address, 'ws'),
    interfaces: interfacesAt(settings.publicUrl ?? acceptedUrl(address, settings.hosts), offer, settings.versions),
    drain,
    close: () => (closing ??= close())
  }
}

/** Combines the WebSockets of a port with the port itself. */
export function together(sockets: Served, own: ListeningServer): Served {
  let closing: Promise<void> | undefined
  return {
    url: sockets.url,
    interfaces: sockets.interfaces,
    drain: () => {
      sockets.drain()
      own.drain()
    },
    close: () => (closing ??= sockets.close().then(() => own.close()))
  }
}

/** The tenant in a request's path below that of its agent; `undefined` for none. */
function tenantBelow(base: string, requestPath: string): string | undefined {
  return requestPath.startsWith(`${base}/`) ? tenantIn(requestPath.slice(base.length)) : undefined
}

/** An internal error, whose details the client does not see. */
function broken(): RefusedRequest {
  const error = new A2AError('InternalError')
  return { status: ERRORS.InternalError.http, message: error.message, error }
}

function elsewhere(path: string): RefusedRequest {
  return { status: 404, message: `The agent is at ${path}.` }
}
