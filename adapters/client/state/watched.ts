/**
 * A value that changes, in the form of React's `useSyncExternalStore`. Snapshots are never changed in place. The functions may be passed
 * on without their object.
 */
export interface Watched<T> {
  readonly snapshot: () => T
  /** Calls `listener` after each change. Returns its removal. */
  readonly subscribe: (listener: () => void) => () => void
}

/** The owner's side of a watched value. */
export class Changing<T extends object> implements Watched<T> {
  readonly #listeners = new Set<() => void>()
  #value: T

  constructor(value: T) {
    this.#value = value
  }

  // A property, so that it can be passed on without its object.
  readonly snapshot = (): T => this.#value

  readonly subscribe = (listener: () => void): (() => void) => {
    const own = () => listener()
    this.#listeners.add(own)
    return () => void this.#listeners.delete(own)
  }

  change(changes: Partial<T>): void {
    this.#value = { ...this.#value, ...changes }
    for (const listener of this.#listeners) listener()
  }
}
