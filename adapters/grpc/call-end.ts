import { A2AService } from '@a2a-js/sdk/server/grpc'
import type { ServerUnaryCall, ServerWritableStream } from '@grpc/grpc-js'
import type { Clock } from '../../runtime/ports/clock.ts'
import { noteFailure } from '../a2a-sdk/sdk-errors.ts'
import { expired } from '../entry/admission.ts'

/** A call as the official service has it, of one answer or of a stream. */
export type GrpcCall = ServerUnaryCall<unknown, unknown> | ServerWritableStream<unknown, unknown>

/** The paths of the operations that answer with a stream. */
const STREAMS: ReadonlySet<string> = new Set(Object.values(A2AService).flatMap(({ path, responseStream }) => (responseStream ? path : [])))

/** Ends the stream of a call with Unauthenticated when the credentials of its caller run out. Other calls are answered. */
export function endAt(expiresAtMs: number, call: GrpcCall, clock: Clock): void {
  if (!STREAMS.has(call.getPath())) return
  const timer = clock.setTimeout(() => {
    const error = expired()
    noteFailure(error, call.request)
    call.emit('error', error)
    // The service hears of it as of a client that leaves.
    call.emit('cancelled', 'expired')
  }, expiresAtMs - clock.now())
  const clear = () => clock.clearTimeout(timer)
  call.once('finish', clear).once('cancelled', clear)
}
