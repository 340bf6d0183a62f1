/**
 * What is kept with objects of one kind, as a property of each that nobody else sees. In a WeakMap (of ephemerons)
 * values, and all that they lead to, live until a full collection: a task leaves 13.8 kB behind instead of 1.0 (Node 24;
 * `test/runtime/left-behind.test.ts` measures it).
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
