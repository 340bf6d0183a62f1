import type { SendRow } from '../rows.ts'
import { contextName, isErased, type ContextKey, type Erasure, type Scope } from '../store.ts'
import { TimeIndex } from './time-index.ts'

interface Kept {
  readonly name: string
  readonly key: ContextKey
  readonly row: SendRow
}

/** The deduplication rows of the memory store, by scope and key, with an index by expiry. */
export class MemorySends {
  readonly #rows = new Map<string, Kept>()
  readonly #expiries = new TimeIndex<Kept>(
    ({ row }) => row.expiresAtMs,
    ({ name }) => name
  )

  /** Adds a row of a context. It replaces one with the same key. */
  add(key: ContextKey, row: SendRow): void {
    const name = nameOf(key, row.key)
    const before = this.#rows.get(name)
    if (before) this.#drop(before)
    const kept = { name, key, row }
    this.#rows.set(name, kept)
    this.#expiries.add(kept)
  }

  get(scope: Scope, key: string): SendRow | undefined {
    return this.#rows.get(nameOf(scope, key))?.row
  }

  /** Deletes rows that expired before a time, at most `limit`. Gives their number. */
  sweep(beforeMs: number, limit: number): number {
    const expired = this.#expiries.readBefore(limit, beforeMs)
    for (const kept of expired) this.#drop(kept)
    return expired.length
  }

  /** Deletes the rows of a context or scope. Gives whether there were any. */
  erase(whose: Erasure): boolean {
    const before = this.#rows.size
    for (const kept of this.#rows.values()) {
      if (isErased(whose, kept.key)) this.#drop(kept)
    }
    return this.#rows.size < before
  }

  #drop({ name, row }: Kept): void {
    this.#rows.delete(name)
    this.#expiries.delete({ atMs: row.expiresAtMs, id: name })
  }
}

/** Uses `contextName`, although the key is no context id, because it only has to be unique within its scope. */
function nameOf({ tenant, principal }: Scope, key: string): string {
  return contextName({ tenant, principal, contextId: key })
}
