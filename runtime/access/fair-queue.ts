/** How much begins in one turn of the event loop: while one user alone calls, and while several do. */
export interface TurnBounds {
  readonly alone: number
  readonly amongOthers: number
}

/**
 * Calls that begin in one turn of the event loop. The answers to one user alone leave together. Among others the turns are so short
 * that no call waits long for those of others.
 */
export const BEGINNING: TurnBounds = { alone: 16, amongOthers: 8 }

/** The same for parsing, by {@link readingCost}: 64 KiB of calls are parsed in about 5 ms, so a turn parses at most one large message. */
export const READING: TurnBounds = { alone: 256 * 1024, amongOthers: 64 * 1024 }

/** The cost to parse and check a message of so many bytes. */
export function readingCost(bytes: number): number {
  return bytes + 1024
}

/** For how many turns it counts that several have called: half a second of a server that is never idle. */
const REMEMBERED_TURNS = 1024

/** A call that waits for its turn. */
interface Waiting {
  readonly begin: () => void
  readonly cost: number
}

/**
 * Has calls begin so that nobody's wait for all of another's: a few in one turn of the event loop. The others wait for
 * the next ones, in which each user with calls that wait has one after the other begin, those of one user in their order.
 * Among others, a user whose call costs as much as several turns waits for as many turns before its next call.
 */
export class FairQueue {
  readonly #bounds: TurnBounds
  readonly #isHeld: (user: object | string) => boolean
  readonly #waiting = new Map<object | string, Waiting[]>()
  /** The cost of what has begun in this turn. */
  #begun = 0
  /** By user, the cost of its last call beyond one turn. */
  readonly #debts = new Map<object | string, number>()
  #isScheduled = false
  /** Who called last. */
  #latest: object | string | undefined
  /** For how many turns more several users are taken to call. */
  #sharedTurns = 0

  /** The calls of a user for whom `isHeld` answers `true` wait, whatever turn it is. */
  constructor(bounds: TurnBounds, isHeld: (user: object | string) => boolean = () => false) {
    this.#bounds = bounds
    this.#isHeld = isHeld
  }

  /** Resolves when a call of this user may begin; there is nothing to wait for if it may now. A call may cost more than the rest of its turn. */
  next(user: object | string, cost = 1): Promise<void> | undefined {
    this.#schedule()
    if (user !== (this.#latest ?? user)) this.#sharedTurns = REMEMBERED_TURNS
    this.#latest = user
    if (this.#waiting.has(user) || this.#debts.has(user) || this.#begun >= this.#most || this.#isHeld(user)) return new Promise(begin => this.#wait(user, { begin, cost }))
    this.#charge(user, cost)
    return undefined
  }

  /** How many calls of a user wait. */
  waiting(user: object | string): number {
    return this.#waiting.get(user)?.length ?? 0
  }

  /** Looks again who is held. Call it when a user is held no more. */
  resume(): void {
    if (this.#waiting.size > 0) this.#schedule()
  }

  get #most(): number {
    return this.#sharedTurns > 0 ? this.#bounds.amongOthers : this.#bounds.alone
  }

  #wait(user: object | string, call: Waiting): void {
    const before = this.#waiting.get(user)
    if (before) before.push(call)
    else this.#waiting.set(user, [call])
  }

  #charge(user: object | string, cost: number): void {
    const debt = cost - this.#most
    this.#begun += cost
    if (debt > 0) this.#debts.set(user, debt)
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
    this.#payDebts()
    if (this.#debts.size > 0 || this.#isAnyoneFree()) this.#schedule()
    // One whose calls go on waiting stands behind the others, and is met again.
    for (const [user, calls] of this.#waiting) {
      if (this.#begun >= this.#most) return
      if (this.#debts.has(user) || this.#isHeld(user)) continue
      const { begin, cost } = calls.shift() as Waiting
      this.#charge(user, cost)
      begin()
      this.#waiting.delete(user)
      if (calls.length > 0) this.#waiting.set(user, calls)
    }
  }

  /** Whether somebody waits who is not held. */
  #isAnyoneFree(): boolean {
    for (const user of this.#waiting.keys()) if (!this.#isHeld(user)) return true
    return false
  }

  #payDebts(): void {
    for (const [user, debt] of this.#debts) {
      if (debt > this.#most && this.#sharedTurns > 0) this.#debts.set(user, debt - this.#most)
      else this.#debts.delete(user)
    }
  }
}
