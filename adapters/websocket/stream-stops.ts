import { setMaxListeners } from 'node:events'
import { onAbort } from '../../runtime/primitives/promises.ts'

/** The abort controllers of one connection's streams, in a pool: creating one takes as long as sending an event. */
export class StreamStops {
  readonly #spare: AbortController[] = []

  take(): AbortController {
    return this.#spare.pop() ?? newStop()
  }

  /** Returns the controller of an ended stream to the pool. */
  giveBack(stop: AbortController): void {
    if (!stop.signal.aborted) this.#spare.push(stop)
  }
}

function newStop(): AbortController {
  const stop = new AbortController()
  setMaxListeners(0, stop.signal)
  // A permanent listener keeps the shared listener registered from stream to stream.
  onAbort(stop.signal, () => {})
  return stop
}
