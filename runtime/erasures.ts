import type { ContextKey, Erasure } from './store.ts'

/** Whether a context is among those that are to be erased. */
export function isOf({ tenant, principal, contextId }: Erasure, key: ContextKey): boolean {
  return key.tenant === tenant && key.principal === principal && (contextId ?? key.contextId) === key.contextId
}

/** What is being erased now: nobody gets at it until that is over. */
export class Erasures {
  readonly #underWay = new Map<Erasure, Promise<void>>()

  /** Begins one. The answer ends it. */
  begin(whose: Erasure): () => void {
    let end = () => {}
    this.#underWay.set(whose, new Promise(resolve => (end = resolve)))
    return () => {
      this.#underWay.delete(whose)
      end()
    }
  }

  /** Resolves when one ends that a context is part of; `undefined` if it is part of none. */
  of(key: ContextKey): Promise<void> | undefined {
    for (const [whose, end] of this.#underWay) if (isOf(whose, key)) return end
    return undefined
  }

  /** Resolves when none is under way. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay.values())
  }
}
