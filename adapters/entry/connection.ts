import type { Socket } from 'node:net'
import { setMaxListeners } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Sharer } from '../../runtime/access/shares.ts'
import { PrivateProperty } from '../../runtime/primitives/private-property.ts'
import { onAbort } from '../../runtime/primitives/promises.ts'
import type { Refusal } from './admission.ts'

const signals = new PrivateProperty<Socket, AbortSignal>()

/** Aborts when a connection is gone. The requests that come over it, one after the other, share it: making one takes as long as reading a request. */
export function disconnectSignal(socket: Socket): AbortSignal {
  if (socket.destroyed) return AbortSignal.abort()
  const known = signals.get(socket)
  if (known) return known
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  socket.once('close', () => controller.abort())
  signals.set(socket, controller.signal)
  // With one who waits always, the listener that all share stays from request to request.
  onAbort(controller.signal, () => {})
  return controller.signal
}

/** Node's response to a request, as it comes with it. */
export interface NodeResponse {
  /** What hono's node server hands over: by it a client is cut off that reads nothing. */
  readonly outgoing?: { destroy(): unknown } | undefined
  /** Node's request, from the same: calls are counted by its connection where callers are not known. */
  readonly incoming?: { readonly socket?: object | undefined } | undefined
  /** The same, and its connection, where nobody stands between it and the handler, so that streams may be written to it at once. */
  readonly direct?: DirectResponse | undefined
}

/** A response, which has no socket while another one before it on the connection is not at its end, and the connection. */
export interface DirectResponse {
  readonly response: ServerResponse
  readonly socket: Socket
  /** Counts the request for its caller until the response is over. Refuses one that is over its share. */
  readonly claim?: (sharer: Sharer) => Refusal | undefined
}

const connections = new PrivateProperty<object, object>()

/** Gives the object that stands for the connection of a request, if the server has told the connection. The socket itself would stay in memory with the contexts. */
export function connectionOf({ direct, incoming }: NodeResponse): object | undefined {
  const socket = direct?.socket ?? incoming?.socket
  if (!socket) return undefined
  const known = connections.get(socket)
  if (known) return known
  const connection = {}
  connections.set(socket, connection)
  return connection
}

/** Answers requests, as `fetch` asks them. */
export type Handler = (request: Request, served?: NodeResponse) => Promise<Response>
