/** A kept value. */
export interface Kept {
  /** Set when the value changes: it is then kept as if it were new. */
  isChanged: boolean
}

/** The values that were added or changed last, at most so many. A change costs nothing: the order is known when one has to go. */
export class Recent<Value extends Kept> {
  readonly #limit: number
  /** Those that go next first. */
  readonly #values = new Map<string, Value>()
  /** Goes on where it stopped: a new iterator passes the places of all deleted entries, which a Map keeps until it grows. */
  readonly #next = this.#values.entries()

  constructor(limit: number) {
    this.#limit = limit
  }

  get size(): number {
    return this.#values.size
  }

  get(name: string): Value | undefined {
    return this.#values.get(name)
  }

  has(name: string): boolean {
    return this.#values.has(name)
  }

  /** All values; of those that have not changed, the first added first. */
  values(): Value[] {
    return [...this.#values.values()]
  }

  /** Adds a value. Returns the value that it displaces, if there are too many. */
  add(name: string, value: Value): Value | undefined {
    this.#values.set(name, value)
    while (this.#values.size > this.#limit) {
      const [oldest, displaced] = this.#next.next().value as [string, Value]
      this.#values.delete(oldest)
      if (!displaced.isChanged) return displaced
      displaced.isChanged = false
      this.#values.set(oldest, displaced)
    }
    return undefined
  }

  delete(name: string): void {
    this.#values.delete(name)
  }
}
