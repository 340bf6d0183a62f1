/**
 * What is kept with objects of one kind, as a property of each that nobody else sees. A WeakMap would keep its values, and
 * all that they lead to, alive through every collection but a full one.
 */
export class PrivateProperty<Key extends object, Value> {
  readonly #name: symbol

  /** Given the symbol of a name, all copies of this package in the process share what is kept. */
  constructor(name = Symbol('kept')) {
    this.#name = name
  }

  get(key: Key): Value | undefined {
    return (key as Record<symbol, Value | undefined>)[this.#name]
  }

  set(key: Key, value: Value): void {
    Object.defineProperty(key, this.#name, { value, writable: true, configurable: true })
  }
}
