/** Least-recently-used cache of values by name. */
export class LruCache<Value> {
  readonly #values = new Map<string, Value>()
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  /** The value of this name; created if there is none. `undefined` is not cached. */
  get<Made extends Value | undefined>(name: string, make: () => Made): Value | Made {
    const value = this.#values.get(name) ?? make()
    if (value !== undefined) this.set(name, value)
    return value
  }

  set(name: string, value: Value): void {
    this.#values.delete(name)
    this.#values.set(name, value)
    for (const oldest of this.#values.keys()) {
      if (this.#values.size <= this.#limit) break
      this.#values.delete(oldest)
    }
  }

  delete(name: string): void {
    this.#values.delete(name)
  }

  clear(): void {
    this.#values.clear()
  }
}
