import { A2AError } from '../../machines/protocol/errors.ts'
import type { Limits } from './limits.ts'

/** A user of a shared resource: its principal, or the connection of an anonymous caller; and its tenant, if there are several. */
export interface Sharer {
  readonly user?: string | object | undefined
  readonly tenant?: string | undefined
}

/** Key of a caller for fair scheduling: its tenant if there are several, else its principal, else `connection`. */
export function userOf({ user, tenant }: Sharer, connection: object): object | string {
  return tenant !== undefined ? `tenant ${tenant}` : typeof user === 'string' ? `principal ${user}` : connection
}

/** The limit that is reached: a share, or the whole. */
export type Lacking = keyof Sharer | 'whole'

/** Counts the use of one resource: in total, per user and per tenant. */
export class Shares {
  /** Maximum use, by limit. */
  readonly most: Readonly<Record<Lacking, number>>
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

  /** The limit that `amount` more would exceed, the sharer's own first; `undefined` if it fits. Any amount fits while nothing else is in use. */
  lacking({ user, tenant }: Sharer, amount = 1): Lacking | undefined {
    const { most } = this
    if (user !== undefined && isOver(this.#byUser.get(user) ?? 0, amount, most.user)) return 'user'
    if (tenant !== undefined && isOver(this.#byTenant.get(tenant) ?? 0, amount, most.tenant)) return 'tenant'
    return isOver(this.#used, amount, most.whole) ? 'whole' : undefined
  }

  /** Adds an amount, which may be negative, even if it does not fit. */
  add({ user, tenant }: Sharer, amount = 1): void {
    this.#used += amount
    if (user !== undefined) count(this.#byUser, user, amount)
    if (tenant !== undefined) count(this.#byTenant, tenant, amount)
  }
}

/** Use of one resource by one holder. */
export class Share {
  readonly #shares: Shares
  readonly #sharer: Sharer
  #amount = 0
  #isOver = false

  constructor(shares: Shares, sharer: Sharer) {
    this.#shares = shares
    this.#sharer = sharer
  }

  set(amount: number): void {
    if (this.#isOver || amount === this.#amount) return
    this.#shares.add(this.#sharer, amount - this.#amount)
    this.#amount = amount
  }

  /** Releases everything; later calls of `set` are ignored. */
  end(): void {
    this.set(0)
    this.#isOver = true
  }
}

/** A shared limit, with its words for error texts. */
export interface Use {
  readonly limit: 'liveContexts' | 'liveBytes' | 'connections' | 'unfinishedBytes'
  readonly what: string
  readonly advice: string
}

/** The error for a caller over its share. */
export function overShare(
  { limit, what, advice }: Use,
  lacking: Lacking,
  { user }: Sharer,
  { most }: Shares
): A2AError {
  const by = lacking === 'tenant' ? 'perTenant' : typeof user === 'object' ? 'perConnection' : 'perPrincipal'
  const who = { perTenant: 'This tenant has', perPrincipal: 'You have', perConnection: 'This connection has' }[by]
  return new A2AError('RateLimited', `${who} reached the limit of ${most[lacking]} ${what}. ${advice}`, {
    retryAfterMs: 1000,
    metadata: { share: `${by}.${limit}`, limit: String(most[lacking]) }
  })
}

function isOver(used: number, amount: number, most: number): boolean {
  return used > 0 && used + amount > most
}

function count<Key>(counts: Map<Key, number>, key: Key, amount: number): void {
  const now = (counts.get(key) ?? 0) + amount
  if (now === 0) counts.delete(key)
  else counts.set(key, now)
}
