/** An entry of a table; empty once it has gone. */
class Entry<Value> {
  value: Value | undefined

  constructor(value: Value) {
    this.value = value
  }
}

/**
 * Values by name, for tables whose entries come and go all the time. A Map makes a new list of its entries whenever they
 * have changed often enough. The old one stays as it was, and leads to the new: once it has grown old, V8's quick collections
 * keep all that they held. So here the lists hold entries, which are emptied when they go.
 */
export class ReleasingMap<Value extends object, Name = string> {
  readonly #entries = new Map<Name, Entry<Value>>()

  get size(): number {
    return this.#entries.size
  }

  get(name: Name): Value | undefined {
    return this.#entries.get(name)?.value
  }

  has(name: Name): boolean {
    return this.#entries.has(name)
  }

  set(name: Name, value: Value): void {
    const entry = this.#entries.get(name)
    if (entry) entry.value = value
    else this.#entries.set(name, new Entry(value))
  }

  delete(name: Name): void {
    const entry = this.#entries.get(name)
    if (!entry) return
    entry.value = undefined
    this.#entries.delete(name)
  }

  values(): Value[] {
    return Array.from(this.#entries.values(), ({ value }) => value as Value)
  }

  entries(): [name: Name, value: Value][] {
    return Array.from(this.#entries, ([name, { value }]) => [name, value as Value])
  }

  clear(): void {
    for (const [name] of this.entries()) this.delete(name)
  }
}
