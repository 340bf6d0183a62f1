import { A2AError } from '../../machines/protocol/errors.ts'
import type { Budget } from './call-context.ts'
import type { Limits } from './limits.ts'

/**
 * Whom a use of a shared resource counts for. `user`: the principal, or the connection if anonymous. `tenant`: set only
 * if there are several.
 */
export interface Owner {
  readonly user?: string | object | undefined
  readonly tenant?: string | undefined
}

/** Key of an owner for fair scheduling: its tenant if there are several, else its principal, else `connection`. */
export function sharerKeyOf({ user, tenant }: Owner, connection: object): object | string {
  return tenant !== undefined ? `tenant ${tenant}` : typeof user === 'string' ? `principal ${user}` : connection
}

/** The limit that is reached: a share, or the whole. */
export type LimitLevel = keyof Owner | 'whole'

/** Counts the use of one resource: in total, per user and per tenant. */
export class SharedLimit {
  /** Maximum use, by limit. */
  readonly most: Readonly<Record<LimitLevel, number>>
  readonly #byUser = new Map<string | object, number>()
  readonly #byTenant = new Map<string, number>()
  #used = 0

  constructor(whole: number, { principalShare, tenantShare }: Pick<Limits, 'principalShare' | 'tenantShare'>) {
    this.most = { whole, user: Math.ceil(whole * principalShare), tenant: Math.ceil(whole * tenantShare) }
  }

  /** Total use. */
  get used(): number {
    return this.#used
  }

  /**
   * The limit that `amount` more would exceed, the owner's own first; `undefined` if it fits. Any amount fits while
   * nothing else is in use.
   */
  exceeded({ user, tenant }: Owner, amount = 1): LimitLevel | undefined {
    const { most } = this
    if (user !== undefined && exceeds(this.#byUser.get(user) ?? 0, amount, most.user)) return 'user'
    if (tenant !== undefined && exceeds(this.#byTenant.get(tenant) ?? 0, amount, most.tenant)) return 'tenant'
    return exceeds(this.#used, amount, most.whole) ? 'whole' : undefined
  }

  /** Adds an amount, which may be negative, even if it does not fit. */
  add({ user, tenant }: Owner, amount = 1): void {
    this.#used += amount
    if (user !== undefined) count(this.#byUser, user, amount)
    if (tenant !== undefined) count(this.#byTenant, tenant, amount)
  }
}

/** Use of one resource by one holder. */
export class ResourceUsage {
  readonly #limit: SharedLimit
  readonly #owner: Owner
  #amount = 0
  #hasEnded = false

  constructor(limit: SharedLimit, owner: Owner) {
    this.#limit = limit
    this.#owner = owner
  }

  set(amount: number): void {
    if (this.#hasEnded || amount === this.#amount) return
    this.#limit.add(this.#owner, amount - this.#amount)
    this.#amount = amount
  }

  /** Releases everything; later calls of `set` are ignored. */
  end(): void {
    this.set(0)
    this.#hasEnded = true
  }
}

/** The words of a shared limit for the text of its error. */
export interface LimitText {
  readonly limit: 'liveContexts' | 'liveBytes' | 'connections' | 'unfinishedBytes'
  readonly what: string
  readonly advice: string
}

/** The error for a caller over its share. */
export function overShare(
  { limit, what, advice }: LimitText,
  exceeded: LimitLevel,
  { user }: Owner,
  { most }: SharedLimit
): A2AError {
  const by = exceeded === 'tenant' ? 'perTenant' : typeof user === 'object' ? 'perConnection' : 'perPrincipal'
  const who = { perTenant: 'This tenant has', perPrincipal: 'You have', perConnection: 'This connection has' }[by]
  return new A2AError('RateLimited', `${who} reached the limit of ${most[exceeded]} ${what}. ${advice}`, {
    retryAfterMs: 1000,
    metadata: { share: `${by}.${limit}`, limit: String(most[exceeded]) }
  })
}

function exceeds(used: number, amount: number, most: number): boolean {
  return used > 0 && used + amount > most
}

function count<Key>(counts: Map<Key, number>, key: Key, amount: number): void {
  const now = (counts.get(key) ?? 0) + amount
  if (now === 0) counts.delete(key)
  else counts.set(key, now)
}

/** An answer that waits for memory. */
interface Waiting {
  readonly owner: Owner
  readonly bytes: number
  readonly enter: () => void
}

/**
 * Semaphore for the memory of large answers while they are read and sent. An answer that does not fit waits; answers of
 * one user keep their order.
 */
export class AnswerBudget {
  readonly #limit: SharedLimit
  #waiting: Waiting[] = []

  constructor(limit: SharedLimit) {
    this.#limit = limit
  }

  /** Resolves when the answer fits. Call the result to release its memory. */
  enter(owner: Owner, bytes: number): Promise<() => void> {
    const leave = () => {
      this.#limit.add(owner, -bytes)
      this.#letIn()
    }
    return new Promise(resolve => {
      this.#waiting.push({ owner, bytes, enter: () => resolve(leave) })
      this.#letIn()
    })
  }

  #letIn(): void {
    const held = new Set<Owner['user']>()
    this.#waiting = this.#waiting.filter(({ owner, bytes, enter }) => {
      if (held.has(owner.user) || this.#limit.exceeded(owner, bytes)) return held.add(owner.user)
      this.#limit.add(owner, bytes)
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
  #hasEnded = false

  /** Acquires these in order. */
  constructor(...enter: readonly ((bytes: number) => Promise<() => void>)[]) {
    this.#enter = enter
  }

  /** Whether the answer is large. */
  get isLarge(): boolean {
    return this.#isLarge
  }

  /** Resolves when the answer fits. Further calls for the same answer resolve at once. */
  readonly take: Budget = async bytes => {
    if (this.#isLarge) return
    this.#isLarge = true
    for (const enter of this.#enter) {
      this.#leaving.push(await enter(bytes))
      // The answer was given up while it waited.
      if (this.#hasEnded) return this.end()
    }
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
    this.#hasEnded = true
    for (const leave of this.#leaving.splice(0)) leave()
  }
}

/** Messages up to this size are not counted, because their number is limited elsewhere. */
export const UNCOUNTED_BYTES = 16 * 1024

const UNFINISHED = {
  limit: 'unfinishedBytes',
  what: 'bytes of unfinished messages',
  advice: 'Send one message after the other.'
} as const

/** Counter of the bytes of contexts in memory. */
export function liveBytes(limits: Limits): SharedLimit {
  return new SharedLimit(wholeFor(limits.liveBytes, limits), limits)
}

/** Counter of the bytes of incomplete messages. */
export function unfinishedBytes(limits: Limits): SharedLimit {
  return new SharedLimit(wholeFor(limits.unfinishedBytes, limits), limits)
}

/** This limit, raised if needed so that one message fits in each share. */
function wholeFor(bytes: number, { messageBytes, principalShare, tenantShare }: Limits): number {
  return Math.max(bytes, messageBytes / Math.min(principalShare, tenantShare))
}

/** Counter of the bytes of one incomplete message. */
export class IncompleteBytes {
  readonly #limit: SharedLimit
  readonly #owner: Owner
  #counted = 0

  constructor(limit: SharedLimit, owner: Owner) {
    this.#limit = limit
    this.#owner = owner
  }

  /**
   * Sets the number of received bytes; 0 once the message is complete or given up. Gives an error if they do not fit.
   */
  count(bytes: number): A2AError | undefined {
    const counted = bytes > UNCOUNTED_BYTES ? bytes : 0
    const more = counted - this.#counted
    if (more === 0) return undefined
    const exceeded = more > 0 ? this.#limit.exceeded(this.#owner, more) : undefined
    if (exceeded === 'whole')
      return new A2AError('Overloaded', 'The agent has too many unfinished messages. Send it again later.', {
        retryAfterMs: 1000
      })
    if (exceeded) return overShare(UNFINISHED, exceeded, this.#owner, this.#limit)
    this.#counted = counted
    this.#limit.add(this.#owner, more)
    return undefined
  }
}

const ADVICE = 'Wait for a task to end, or cancel one.'

const CONTEXTS: LimitText = { limit: 'liveContexts', what: 'active contexts', advice: ADVICE }

const BYTES: LimitText = { limit: 'liveBytes', what: 'bytes of contexts in memory', advice: ADVICE }

/**
 * Removes an idle context from memory: one of the owner's, or any if the whole limit is reached. Gives whether there
 * was one.
 */
export type Dismiss = (exceeded: LimitLevel, owner: Owner) => boolean

/** Limit of one resource of contexts in memory, with shares. */
export class ContextBudget {
  readonly limit: SharedLimit
  readonly #use: LimitText
  readonly #full: string
  readonly #dismiss: Dismiss

  private constructor(shares: SharedLimit, use: LimitText, full: string, dismiss: Dismiss) {
    this.limit = shares
    this.#use = use
    this.#full = full
    this.#dismiss = dismiss
  }

  /** Limits contexts by `limits.liveContexts`. */
  static forContexts(limits: Limits, dismiss: Dismiss): ContextBudget {
    return new ContextBudget(
      new SharedLimit(limits.liveContexts, limits),
      CONTEXTS,
      'The agent has too many active contexts. Send the request again later.',
      dismiss
    )
  }

  /** Limits bytes by `limits.liveBytes`. */
  static forBytes(limits: Limits, dismiss: Dismiss): ContextBudget {
    return new ContextBudget(
      liveBytes(limits),
      BYTES,
      'The agent has too many bytes of contexts in memory. Send the request again later.',
      dismiss
    )
  }

  /**
   * Removes idle contexts until `amount` more fits. If that is not enough, throws RateLimited for a share, Overloaded
   * for the whole limit.
   */
  freeFor(owner: Owner, amount = 1): void {
    const { limit: shares } = this
    for (let exceeded = shares.exceeded(owner, amount); exceeded; exceeded = shares.exceeded(owner, amount)) {
      if (this.#dismiss(exceeded, owner)) continue
      throw exceeded === 'whole'
        ? new A2AError('Overloaded', this.#full, { retryAfterMs: 1000 })
        : overShare(this.#use, exceeded, owner, shares)
    }
  }
}

const MINUTE_MS = 60_000

/** Time after which any bucket is full again. */
export const REFILL_MS = 2 * MINUTE_MS

/**
 * Token bucket with the capacity of one minute, of at least 1 token. It fills evenly, and may be overdrawn by one more
 * capacity.
 */
export class TokenBucket {
  readonly #perMinute: number
  #used = 0
  #atMs = 0

  constructor(perMinute: number) {
    this.#perMinute = Math.min(perMinute, Number.MAX_SAFE_INTEGER)
  }

  /** Milliseconds until `more` tokens are available; 0 if they are now. */
  waitMs(more: number, nowMs: number): number {
    const over = this.#usedBy(nowMs) + more - Math.max(1, this.#perMinute)
    return over > 0 ? (over * MINUTE_MS) / this.#perMinute : 0
  }

  /** Takes tokens, even if they are not available. */
  use(count: number, nowMs: number): void {
    this.#used = Math.min(this.#usedBy(nowMs) + count, 2 * Math.max(1, this.#perMinute))
  }

  /** Refills by the time since the last call; not at all if the clock was set back. */
  #usedBy(nowMs: number): number {
    if (nowMs === this.#atMs) return this.#used
    const filled = (Math.max(0, nowMs - this.#atMs) * this.#perMinute) / MINUTE_MS
    this.#atMs = nowMs
    return (this.#used = Math.max(0, this.#used - filled))
  }
}
