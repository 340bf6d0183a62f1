/**
 * Values by name, for tables whose entries come and go all the time. A Map makes a new table whenever its entries have
 * changed often enough, and the old one leads to the new: once one of them has grown old, V8's quick collections keep all
 * that follow, with everything that they held. An object without a prototype has no such chain.
 */
export class Table<Value extends object> {
  #values: Record<string, Value> = Object.create(null)
  #size = 0

  get size(): number {
    return this.#size
  }

  get(name: string): Value | undefined {
    return this.#values[name]
  }

  has(name: string): boolean {
    return this.#values[name] !== undefined
  }

  set(name: string, value: Value): void {
    if (this.#values[name] === undefined) this.#size += 1
    this.#values[name] = value
  }

  delete(name: string): void {
    if (this.#values[name] === undefined) return
    this.#size -= 1
    delete this.#values[name]
  }

  values(): Value[] {
    return Object.values(this.#values)
  }

  entries(): [name: string, value: Value][] {
    return Object.entries(this.#values)
  }

  clear(): void {
    this.#values = Object.create(null)
    this.#size = 0
  }
}
