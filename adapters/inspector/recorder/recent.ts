/** The values that were set last, at most so many. */
export class Recent<Value> {
  readonly #limit: number
  /** The longest unset first. */
  readonly #values = new Map<string, Value>()
  /** Goes on where it stopped: a new iterator passes the places of all deleted entries, which a Map keeps until it grows. */
  readonly #oldest = this.#values.entries()

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

  /** All values, the longest unset first. */
  values(): Value[] {
    return [...this.#values.values()]
  }

  /** Sets a value, as the last one. Returns the value that it displaces, if there are too many. */
  set(name: string, value: Value): Value | undefined {
    this.#values.delete(name)
    this.#values.set(name, value)
    if (this.#values.size <= this.#limit) return undefined
    const [oldest, displaced] = this.#oldest.next().value as [string, Value]
    this.#values.delete(oldest)
    return displaced
  }

  delete(name: string): void {
    this.#values.delete(name)
  }
}
