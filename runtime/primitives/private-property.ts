/**
 * A WeakMap replacement that stores the value in a symbol property of the key. A WeakMap (of ephemerons) keeps values, and everything
 * reachable from them, until a full collection. With it a task leaves 13.8 kB behind instead of 1.0 (Node 24;
 * `test/runtime/work/left-behind.test.ts` measures it).
 */
export class PrivateProperty<Key extends object, Value> {
  readonly #name: symbol

  /** With a symbol of `Symbol.for`, all copies of this package in the process share the values. */
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
