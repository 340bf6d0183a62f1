import { isErased, type ContextKey, type Erasure } from '../store/store.ts'

/** What is being erased now: nobody gets at it until that is over. */
export class PendingErasures {
  readonly #underWay = new Map<Erasure, Promise<unknown>>()

  /** Runs one. */
  async run<T>(whose: Erasure, erase: () => Promise<T>): Promise<T> {
    const erased = erase()
    this.#underWay.set(whose, erased)
    try {
      return await erased
    } finally {
      this.#underWay.delete(whose)
    }
  }

  /** Settles when one is over that a context is part of; `undefined` if it is part of none. */
  of(key: ContextKey): Promise<unknown> | undefined {
    for (const [whose, erased] of this.#underWay) if (isErased(whose, key)) return erased
    return undefined
  }

  /** Resolves when all are over. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay.values())
  }
}
