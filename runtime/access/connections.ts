import { randomIds } from '../ports/ids.ts'

/** Connections of clients by name, so that the shares of anonymous callers are the same on other nodes. */
export class Connections {
  readonly #names = new WeakMap<object, string>()
  readonly #named = new Map<string, WeakRef<object>>()
  readonly #gone = new FinalizationRegistry<string>(this.#named.delete.bind(this.#named))

  /** The name of a connection of this node. */
  nameOf(connection: object): string {
    const name = this.#names.get(connection) ?? randomIds()
    this.#names.set(connection, name)
    return name
  }

  /** The same object for each call over a connection of another node, as long as somebody uses it. */
  named(name: string): object {
    const known = this.#named.get(name)?.deref()
    if (known) return known
    const connection = { name }
    this.#named.set(name, new WeakRef(connection))
    this.#gone.register(connection, name)
    return connection
  }
}
