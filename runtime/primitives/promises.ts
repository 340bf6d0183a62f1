import { PrivateProperty } from './private-property.ts'
import { ReleasingMap } from './collections.ts'

/** Who waits for one signal to abort, each under a number of its own. */
class Waiters {
  readonly #signal: AbortSignal
  readonly #callbacks = new ReleasingMap<() => void, number>()
  #count = 0

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  add(callback: () => void): () => void {
    if (this.#callbacks.size === 0) this.#signal.addEventListener('abort', this.#call)
    const name = (this.#count += 1)
    this.#callbacks.set(name, callback)
    return () => {
      this.#callbacks.delete(name)
      if (this.#callbacks.size === 0) this.#signal.removeEventListener('abort', this.#call)
    }
  }

  readonly #call = (): void => {
    for (const callback of this.#callbacks.values()) callback()
  }
}

const waiting = new PrivateProperty<AbortSignal, Waiters>()

/**
 * Calls back when a signal aborts, unless the answer was called before; it may be called twice. All who wait for one signal
 * share one listener: of a connection's thousands come and go in a second, for which an EventTarget is slow.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let waiters = waiting.get(signal)
  if (!waiters) waiting.set(signal, (waiters = new Waiters(signal)))
  return waiters.add(callback)
}

/** The promise, which may be left alone: if nobody waits for it, its error is nobody's. */
export function ignoreRejection<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}
