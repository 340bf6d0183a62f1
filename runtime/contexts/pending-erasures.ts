import { isErased, type ContextKey, type Erasure } from '../store/store.ts'

/** Pending erasures, which block access to their contexts. */
export class PendingErasures {
  readonly #underWay = new Map<Erasure, Promise<unknown>>()

  async run<T>(whose: Erasure, erase: () => Promise<T>): Promise<T> {
    const erased = erase()
    this.#underWay.set(whose, erased)
    try {
      return await erased
    } finally {
      this.#underWay.delete(whose)
    }
  }

  /** Settles when a pending erasure of this context is done; `undefined` if there is none. */
  of(key: ContextKey): Promise<unknown> | undefined {
    for (const [whose, erased] of this.#underWay) if (isErased(whose, key)) return erased
    return undefined
  }

  /** Resolves when all are done. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay.values())
  }
}
