import { isA2AError } from '../../../machines/protocol/errors.ts'
import type { Clock } from '../../../runtime/ports/clock.ts'
import type { ClientRequest } from '../requests.ts'
import type { AgentTransport } from '../transports/transport.ts'
import { Attempt } from './attempt.ts'
import { BackOff, type BackOffOptions } from './back-off.ts'
import { cutOff, inDoubt, nobodyAnswers, wasLost } from './lost-errors.ts'
import type { TransportState } from './transport-state.ts'

export interface Means {
  readonly carrier: AgentTransport
  readonly way: TransportState
  readonly backOff: BackOffOptions
}

/**
 * Sends a request until it completes. After a lost connection it waits, and resumes the request with the frame from `again`. It
 * fails with the last error after the time limit, or if the request cannot be sent again; the error says if the outcome is
 * unknown. It ends silently when `stop` aborts.
 */
export async function carryThrough(
  request: ClientRequest,
  { carrier, way, backOff }: Means,
  stop: AbortSignal
): Promise<void> {
  const waits = new BackOff(backOff)
  let frame = request.frame
  let wasCut = false
  for (let tries = 0; !stop.aborted; tries += 1) {
    if (tries > 0) way.tried()
    const attempt = new Attempt(request, frame, carrier, way)
    const lost = await attempt.make({ isAgain: tries > 0, wasCut }, stop)
    if (!lost || stop.aborted) return
    const answer = isA2AError(lost.cause) ? lost.cause : undefined
    if (lost.isUnsent && !way.hasAnswered && !answer) return request.failed(nobodyAnswers(way.url, lost))
    const again = lost.isUnsent ? frame : request.again(way.isReliable)
    if (!again) return request.failed(cutOff(way.url, frame.method, lost))
    frame = again
    wasCut ||= !lost.isUnsent
    if (attempt.broughtNews) waits.reset()
    way.lost()
    const waitMs = waits.next(answer?.retryAfterMs)
    if (waitMs === undefined) {
      const error = answer ?? wasLost(way.url, lost.message)
      return request.failed(wasCut && request.isOpenQuestion ? inDoubt(error, frame.method) : error)
    }
    await passed(waitMs, backOff.clock, stop)
  }
}

/** Resolves after a time, or at once when the signal aborts. */
export function passed(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const timer = clock.setTimeout(over, ms)
    signal.addEventListener('abort', over)
    function over() {
      clock.clearTimeout(timer)
      signal.removeEventListener('abort', over)
      resolve()
    }
  })
}
