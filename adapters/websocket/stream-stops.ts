import { setMaxListeners } from 'node:events'
import { onAbort } from '../../runtime/primitives/promises.ts'

/** What stops the streams of one connection. Those of streams that have ended are used again: to make one takes as long as to tell an event. */
export class StreamStops {
  readonly #spare: AbortController[] = []

  take(): AbortController {
    return this.#spare.pop() ?? newStop()
  }

  /** Gives back one whose stream has ended. */
  giveBack(stop: AbortController): void {
    if (!stop.signal.aborted) this.#spare.push(stop)
  }
}

function newStop(): AbortController {
  const stop = new AbortController()
  setMaxListeners(0, stop.signal)
  // With one who waits always, the listener that all share stays from stream to stream.
  onAbort(stop.signal, () => {})
  return stop
}
