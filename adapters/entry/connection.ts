import type { Socket } from 'node:net'
import { setMaxListeners } from 'node:events'
import { PrivateProperty } from '../../runtime/primitives/private-property.ts'
import { onAbort } from '../../runtime/primitives/promises.ts'

const signals = new PrivateProperty<Socket, AbortSignal>()

/** Aborts when a connection is gone. The requests that come over it, one after the other, share it: making one takes as long as reading a request. */
export function goneWith(socket: Socket): AbortSignal {
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
