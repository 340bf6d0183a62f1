import { setMaxListeners } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Owner } from '../../runtime/access/shares.ts'
import type { Clock } from '../../runtime/ports/clock.ts'
import { PrivateProperty } from '../../runtime/primitives/collections.ts'
import { onAbort } from '../../runtime/primitives/event-loop.ts'
import type { RefusedRequest } from './admission.ts'

/** An AbortController whose signal may have any number of listeners. */
export function sharedAbort(): AbortController {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  return controller
}

const signals = new PrivateProperty<Socket, AbortSignal>()

/**
 * Aborts when a connection is closed. All requests of a connection share the signal: creating one takes as long as
 * reading a request.
 */
export function disconnectSignal(socket: Socket): AbortSignal {
  if (socket.destroyed) return AbortSignal.abort()
  const known = signals.get(socket)
  if (known) return known
  const controller = sharedAbort()
  socket.once('close', () => controller.abort())
  signals.set(socket, controller.signal)
  // A permanent listener keeps the shared listener registered from request to request.
  onAbort(controller.signal, () => {})
  return controller.signal
}

/** The time that a client may read nothing while data waits for it. */
export const READER_STALL_MS = 30_000

/**
 * Watches a client for which data waits: calls `onStalled` once it has read nothing for {@link READER_STALL_MS}. Gives
 * the function that ends the watch.
 */
export function watchReader(clock: Clock, unreadBytes: () => number, onStalled: () => void): () => void {
  let timer: unknown
  const look = (before: number) => {
    timer = clock.setTimeout(() => {
      const unread = unreadBytes()
      if (unread < before) look(unread)
      else onStalled()
    }, READER_STALL_MS)
  }
  look(unreadBytes())
  return () => clock.clearTimeout(timer)
}

/** The values that a server or framework passes on beside a request, such as Node's response. */
export interface NodeResponse {
  /** From Next.js: the segments of the route. They are in the URL too. */
  readonly params?: unknown
  /** From Hono's Node server: closes the connection of a client that does not read. */
  readonly outgoing?: { destroy(): unknown } | undefined
  /** From the same: anonymous calls are counted by its connection. */
  readonly incoming?: { readonly socket?: object | undefined } | undefined
  /** The response and its connection, if no framework is in between, so that streams are written to it directly. */
  readonly direct?: DirectResponse | undefined
}

/**
 * A Node response and its connection. The response has no socket while an earlier one on the connection is incomplete.
 */
export interface DirectResponse {
  readonly response: ServerResponse
  readonly socket: Socket
  /**
   * Sends 100 to a client that waits for it, once its body is wanted. If another answer comes first, Node closes the
   * connection after that.
   */
  invite?(): void
  /** Counts the request for its caller until the response ends. Returns a refusal if it is over the caller's share. */
  claim?(owner: Owner): RefusedRequest | undefined
}

const connections = new PrivateProperty<object, object>()

/**
 * An object that identifies the connection of a request, if known. A reference to the socket itself would keep it in
 * memory.
 */
export function connectionOf({ direct, incoming }: NodeResponse): object | undefined {
  const socket = direct?.socket ?? incoming?.socket
  if (!socket) return undefined
  const known = connections.get(socket)
  if (known) return known
  const connection = {}
  connections.set(socket, connection)
  return connection
}

/** The parts of a Request that the bindings read. */
export interface HttpRequest extends Pick<Request, 'method' | 'url'> {
  readonly headers: Pick<Request['headers'], 'get' | 'has'> & Iterable<[string, string]>
  /** Undefined for a request whose body is small. */
  readonly body?: Request['body']
  /** Undefined for a request with Node's response. */
  readonly signal?: AbortSignal
  /** The whole body if it has arrived; else `arrayBuffer` reads it. */
  takeArrived?(): Uint8Array | undefined
  arrayBuffer(): Promise<ArrayBuffer | Uint8Array>
}

/** A fetch handler. */
export type Handler = (request: HttpRequest, served?: NodeResponse) => Promise<Response>

/** The direction of a frame, from the view of the agent. */
export type Direction = 'in' | 'out'

/** Observes the frames of a server's connections. Nothing does by default. */
export interface Tap {
  /** Called with each frame and the name of its connection. Must not throw. */
  onFrame: ((connection: string, direction: Direction, text: string) => void) | undefined
}

let lastNumber = 0

const names = new PrivateProperty<object, string>()

/** The name of the connection of a request, which all requests on it share. */
export function requestConnectionName(binding: string, served: NodeResponse): string {
  const connection = connectionOf(served) ?? served
  const known = names.get(connection) ?? connectionName(binding)
  names.set(connection, known)
  return known
}

/** Names a connection, unique in this process. */
export function connectionName(binding: string): string {
  lastNumber += 1
  return `${binding} ${lastNumber}`
}
