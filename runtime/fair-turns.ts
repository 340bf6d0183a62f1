/** Calls that begin in one turn of the event loop while one user alone calls: what they send leaves together. */
const ALONE = 16

/** The same while several do: so short are the turns that nobody's call waits long for what others have begun. */
const AMONG_OTHERS = 2

/** For how many turns it counts that several have called: half a second of a server that is never idle. */
const REMEMBERED_TURNS = 1024

/**
 * Has calls begin so that nobody's wait for all of another's: a few in one turn of the event loop. The others wait for
 * the next ones, in which each user with calls that wait has one after the other begin, those of one user in their order.
 */
export class FairTurns {
  readonly #waiting = new Map<object, (() => void)[]>()
  #begun = 0
  #isScheduled = false
  /** Who called last. */
  #latest: object | undefined
  /** For how many turns more several users are taken to call. */
  #sharedTurns = 0

  /** Resolves when a call of this user may begin; there is nothing to wait for if it may now. */
  next(user: object): Promise<void> | undefined {
    this.#schedule()
    if (user !== (this.#latest ?? user)) this.#sharedTurns = REMEMBERED_TURNS
    this.#latest = user
    if (this.#waiting.size > 0 || this.#begun >= this.#most) return new Promise(resolve => this.#wait(user, resolve))
    this.#begun += 1
    return undefined
  }

  get #most(): number {
    return this.#sharedTurns > 0 ? AMONG_OTHERS : ALONE
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
    this.#sharedTurns = Math.max(0, this.#sharedTurns - 1)
    if (this.#waiting.size > 0) this.#schedule()
    // One whose calls go on waiting stands behind the others, and is met again.
    for (const [user, calls] of this.#waiting) {
      if (this.#begun >= this.#most) return
      this.#begun += 1
      calls.shift()?.()
      this.#waiting.delete(user)
      if (calls.length > 0) this.#waiting.set(user, calls)
    }
  }
}
