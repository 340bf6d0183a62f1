/** How many entries may go before a new Map is made, where no more than these are left. */
const OFTEN = 64

/**
 * Values by name, for tables whose entries come and go all the time. A Map makes a new list of its entries whenever they
 * have changed often enough, and the old one leads to the new: once one of them has grown old, V8's quick collections keep
 * all that follow, with everything that they held. So here the Map itself is made anew from time to time, to which no old
 * list leads.
 */
export class Table<Value extends object, Name = string> {
  #values = new Map<Name, Value>()
  #gone = 0

  get size(): number {
    return this.#values.size
  }

  get(name: Name): Value | undefined {
    return this.#values.get(name)
  }

  has(name: Name): boolean {
    return this.#values.has(name)
  }

  set(name: Name, value: Value): void {
    this.#values.set(name, value)
  }

  delete(name: Name): void {
    if (!this.#values.delete(name)) return
    this.#gone += 1
    if (this.#gone < Math.max(OFTEN, this.#values.size)) return
    this.#values = new Map(this.#values)
    this.#gone = 0
  }

  values(): Value[] {
    return [...this.#values.values()]
  }

  entries(): [name: Name, value: Value][] {
    return [...this.#values]
  }

  clear(): void {
    this.#values = new Map()
    this.#gone = 0
  }
}
