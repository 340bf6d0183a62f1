import type { Room } from './call-context.ts'
import type { Sharer, Shares } from './shares.ts'

/** An answer that waits for room. */
interface Waiting {
  readonly sharer: Sharer
  readonly bytes: number
  readonly enter: () => void
}

/** Semaphore for the memory of large answers while they are read and sent. An answer that does not fit waits; answers of one user keep their order. */
export class AnswerRoom {
  readonly #shares: Shares
  #waiting: Waiting[] = []

  constructor(shares: Shares) {
    this.#shares = shares
  }

  /** Resolves when the answer fits. Call the result to release its memory. */
  enter(sharer: Sharer, bytes: number): Promise<() => void> {
    const leave = () => {
      this.#shares.add(sharer, -bytes)
      this.#letIn()
    }
    return new Promise(resolve => {
      this.#waiting.push({ sharer, bytes, enter: () => resolve(leave) })
      this.#letIn()
    })
  }

  #letIn(): void {
    const held = new Set<Sharer['user']>()
    this.#waiting = this.#waiting.filter(({ sharer, bytes, enter }) => {
      if (held.has(sharer.user) || this.#shares.lacking(sharer, bytes)) return held.add(sharer.user)
      this.#shares.add(sharer, bytes)
      enter()
      return false
    })
  }
}

/** Memory of one answer. Nothing is acquired until the answer is known to be large. */
export class AnswerSpace {
  readonly #enter: readonly ((bytes: number) => Promise<() => void>)[]
  #leaving: (() => void)[] = []
  #isLarge = false

  /** Acquires these in order. */
  constructor(...enter: readonly ((bytes: number) => Promise<() => void>)[]) {
    this.#enter = enter
  }

  /** Whether the answer is large. */
  get isLarge(): boolean {
    return this.#isLarge
  }

  /** Resolves when the answer fits. Further calls for the same answer resolve at once. */
  readonly take: Room = async bytes => {
    if (this.#isLarge) return
    this.#isLarge = true
    for (const enter of this.#enter) this.#leaving.push(await enter(bytes))
  };

  /** Gives the pieces of the answer, and releases the memory after the last. */
  *sent(pieces: Iterable<string>): Generator<string, void> {
    try {
      yield* pieces
    } finally {
      this.end()
    }
  }

  /** Releases the memory, because the answer is sent or given up. May be called twice. */
  end(): void {
    for (const leave of this.#leaving.splice(0)) leave()
  }
}
