import { PrivateProperty } from './private-property.ts'
import { ReleasingMap } from './collections.ts'

/** The callbacks for one signal. */
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
 * Calls back when a signal aborts. Call the result to remove the callback; it may be called twice. All callbacks of a signal share one
 * listener, because thousands come and go per second on a connection, for which EventTarget is slow.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  let waiters = waiting.get(signal)
  if (!waiters) waiting.set(signal, (waiters = new Waiters(signal)))
  return waiters.add(callback)
}

/** Marks a promise's rejection as handled, so that it need not be awaited. Gives the promise. */
export function ignoreRejection<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}
