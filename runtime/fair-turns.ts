/** Calls that begin in one turn of the event loop. */
const CALLS_A_TURN = 16

/**
 * Has calls begin so that nobody's wait for all of another's: at most 16 in one turn of the event loop. The others wait for
 * the next ones, in which each user with calls that wait has one after the other begin, those of one user in their order.
 */
export class FairTurns {
  readonly #waiting = new Map<object, (() => void)[]>()
  #begun = 0
  #isScheduled = false

  /** Resolves when a call of this user may begin; there is nothing to wait for if it may now. */
  next(user: object): Promise<void> | undefined {
    this.#schedule()
    if (this.#waiting.size > 0 || this.#begun >= CALLS_A_TURN) return new Promise(resolve => this.#wait(user, resolve))
    this.#begun += 1
    return undefined
  }

  #wait(user: object, begin: () => void): void {
    const before = this.#waiting.get(user)
    if (before) before.push(begin)
    else this.#waiting.set(user, [begin])
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#turn())
  }

  #turn(): void {
    this.#isScheduled = false
    this.#begun = 0
    if (this.#waiting.size > 0) this.#schedule()
    // One whose calls go on waiting stands behind the others, and is met again.
    for (const [user, calls] of this.#waiting) {
      if (this.#begun >= CALLS_A_TURN) return
      this.#begun += 1
      calls.shift()?.()
      this.#waiting.delete(user)
      if (calls.length > 0) this.#waiting.set(user, calls)
    }
  }
}
