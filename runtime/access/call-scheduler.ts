/**
 * Maximum concurrent calls that read from the store. Several users have equal parts of it, each of at least
 * `LEAST_READING`.
 */
const MOST_READING = 256
const LEAST_READING = 32

/** Maximum parsed calls of one user that wait to begin. Over it, no more of its calls are parsed. */
const MOST_WAITING = 16

type User = object | string

/**
 * Fair scheduling of calls: of their parsing, and of their start. To bound memory, a user with too many calls that read
 * from the store has to wait until some are done. Its connections are not read meanwhile.
 */
export class CallScheduler {
  /** Schedules the parsing of messages and bodies, by {@link readingCost}. */
  readonly reading = new FairQueue(READING, user => this.#beginning.waiting(user) >= MOST_WAITING)
  readonly #beginning = new FairQueue(BEGINNING, user => this.#active(user) >= this.#most)
  readonly #counts = new Map<User, number>()

  /** Number of calls that wait to be parsed or to start. */
  get waiting(): number {
    return this.reading.size + this.#beginning.size
  }

  /**
   * Runs a call when its user is scheduled. The call may call `releaseRead` when it no longer reads from the store, but
   * waits for something else.
   */
  take<T>(user: User, run: (releaseRead: () => void) => Promise<T>): Promise<T> {
    const wait = this.#beginning.next(user)
    if (!wait) return this.#run(user, run)
    return wait.then(() => {
      this.reading.resume()
      return this.#run(user, run)
    })
  }

  #run<T>(user: User, run: (releaseRead: () => void) => Promise<T>): Promise<T> {
    this.#counts.set(user, this.#active(user) + 1)
    let isOver = false
    const end = () => {
      if (!isOver) this.#end(user)
      isOver = true
    }
    return run(end).finally(end)
  }

  #end(user: User): void {
    const left = this.#active(user) - 1
    if (left === 0) this.#counts.delete(user)
    else this.#counts.set(user, left)
    this.#beginning.resume()
  }

  /** Maximum concurrent reads of one user. */
  get #most(): number {
    return Math.max(LEAST_READING, MOST_READING / this.#counts.size)
  }

  #active(user: User): number {
    return this.#counts.get(user) ?? 0
  }
}

/** Maximum cost of one round of the event loop: of all users, and of each user while several call. */
interface RoundBounds {
  readonly all: number
  readonly each: number
}

/**
 * Calls that begin in one round of the event loop. For a single user a large batch lets answers leave together. Among
 * several users each has a small batch of its own, so that no call waits for those of others.
 */
export const BEGINNING: RoundBounds = { all: 16, each: 8 }

/**
 * Bytes parsed in one round, by {@link readingCost}. A round parses at most one large message; after 4 MiB the caller's
 * next one waits 256 rounds.
 */
export const READING: RoundBounds = { all: 256 * 1024, each: 16 * 1024 }

/** The cost to parse and check a message of this many bytes. */
export function readingCost(bytes: number): number {
  return bytes + 1024
}

/** For how many rounds several users count as calling after a change of user: half a second of a busy server. */
const REMEMBERED_ROUNDS = 1024

interface Waiting {
  readonly begin: () => void
  readonly cost: number
}

/**
 * Round-robin scheduler of calls, by user. A limited cost begins in each round of the event loop, among several users a
 * part of it for each. In later rounds each user with waiting calls has one begin after the other; calls of one user
 * keep their order. A call that costs more than its user's part is large: one begins in a round, and among several
 * users its user waits for as many rounds as it costs.
 */
export class FairQueue {
  readonly #bounds: RoundBounds
  readonly #isHeld: (user: object | string) => boolean
  readonly #waiting = new Map<object | string, Waiting[]>()
  /** Cost of this round, in which a large call counts as its user's part. */
  #begun = 0
  /** The cost of this round by user, while several call. */
  readonly #begunOf = new Map<object | string, number>()
  /** Whether a large call has begun in this round. */
  #isLargeBegun = false
  /** By user, the cost of its last call beyond one round. */
  readonly #debts = new Map<object | string, number>()
  #isScheduled = false
  #latestUser: object | string | undefined
  /** Rounds left in which several users count as calling. */
  #sharedRounds = 0

  /** Calls of a user wait while `isHeld` is true for it. */
  constructor(bounds: RoundBounds, isHeld: (user: object | string) => boolean = () => false) {
    this.#bounds = bounds
    this.#isHeld = isHeld
  }

  /**
   * Resolves when a call of this user may begin; `undefined` if it may now. A call may cost more than the rest of its
   * round.
   */
  next(user: object | string, cost = 1): Promise<void> | undefined {
    this.#schedule()
    if (user !== (this.#latestUser ?? user)) this.#sharedRounds = REMEMBERED_ROUNDS
    this.#latestUser = user
    if (this.#waiting.has(user) || !this.#mayBegin(user, cost))
      return new Promise(begin => this.#wait(user, { begin, cost }))
    this.#charge(user, cost)
    return undefined
  }

  /** Number of waiting calls. */
  get size(): number {
    let size = 0
    for (const calls of this.#waiting.values()) size += calls.length
    return size
  }

  /** Number of waiting calls of a user. */
  waiting(user: object | string): number {
    return this.#waiting.get(user)?.length ?? 0
  }

  /** Schedules waiting users again. Call it when `isHeld` turns false for a user. */
  resume(): void {
    if (this.#waiting.size > 0) this.#schedule()
  }

  #mayBegin(user: object | string, cost: number): boolean {
    if (this.#begun >= this.#bounds.all || this.#debts.has(user) || this.#isHeld(user)) return false
    const isFull = this.#sharedRounds > 0 && (this.#begunOf.get(user) ?? 0) >= this.#bounds.each
    return !isFull && !(this.#isLargeBegun && cost > this.#part)
  }

  /** Maximum cost of one user in a round. */
  get #part(): number {
    return this.#sharedRounds > 0 ? this.#bounds.each : this.#bounds.all
  }

  #wait(user: object | string, call: Waiting): void {
    const before = this.#waiting.get(user)
    if (before) before.push(call)
    else this.#waiting.set(user, [call])
  }

  #charge(user: object | string, cost: number): void {
    const part = this.#part
    if (this.#sharedRounds > 0) this.#begunOf.set(user, (this.#begunOf.get(user) ?? 0) + cost)
    this.#begun += Math.min(cost, part)
    if (cost <= part) return
    this.#isLargeBegun = true
    this.#debts.set(user, cost - part)
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#runRound())
  }

  #runRound(): void {
    this.#isScheduled = false
    this.#begun = 0
    if (this.#begunOf.size > 0) this.#begunOf.clear()
    this.#isLargeBegun = false
    this.#sharedRounds = Math.max(0, this.#sharedRounds - 1)
    this.#payDebts()
    if (this.#debts.size > 0 || this.#isAnyoneFree()) this.#schedule()
    // A user with more waiting calls is put last, so this loop reaches it again.
    for (const [user, calls] of this.#waiting) {
      const [{ begin, cost }] = calls as [Waiting, ...Waiting[]]
      if (!this.#mayBegin(user, cost)) continue
      calls.shift()
      this.#charge(user, cost)
      begin()
      this.#waiting.delete(user)
      if (calls.length > 0) this.#waiting.set(user, calls)
    }
  }

  #isAnyoneFree(): boolean {
    for (const user of this.#waiting.keys()) if (!this.#isHeld(user)) return true
    return false
  }

  #payDebts(): void {
    for (const [user, debt] of this.#debts) {
      if (debt > this.#bounds.each && this.#sharedRounds > 0) this.#debts.set(user, debt - this.#bounds.each)
      else this.#debts.delete(user)
    }
  }
}
