import { A2AError } from '../../machines/protocol/errors.ts'
import type { Limits } from './limits.ts'

/** A caller of something that all share: its principal, or the connection of a caller that is not known; and its tenant, where there are several. */
export interface Sharer {
  readonly user?: string | object | undefined
  readonly tenant?: string | undefined
}

/** The user of {@link FairTurns} that a caller is: its tenant where there are several, else its principal, else `connection`. */
export function userOf({ user, tenant }: Sharer, connection: object): object | string {
  return tenant !== undefined ? `tenant ${tenant}` : typeof user === 'string' ? `principal ${user}` : connection
}

/** The bound that leaves no room: a share, or the whole. */
export type Lacking = keyof Sharer | 'whole'

/** Counts how much of one resource is in use: in all, by each user and by each tenant. */
export class Shares {
  /** The most that may be in use, by bound. */
  readonly most: Readonly<Record<Lacking, number>>
  readonly #byUser = new Map<string | object, number>()
  readonly #byTenant = new Map<string, number>()
  #used = 0

  constructor(whole: number, { principalShare, tenantShare }: Pick<Limits, 'principalShare' | 'tenantShare'>) {
    this.most = { whole, user: Math.ceil(whole * principalShare), tenant: Math.ceil(whole * tenantShare) }
  }

  /** How much is in use. */
  get used(): number {
    return this.#used
  }

  /** The bound that would be exceeded by this much more, the sharer's own first; `undefined` if there is room. Nothing is too large while nothing else is in use. */
  lacking({ user, tenant }: Sharer, amount = 1): Lacking | undefined {
    const { most } = this
    if (user !== undefined && isOver(this.#byUser.get(user) ?? 0, amount, most.user)) return 'user'
    if (tenant !== undefined && isOver(this.#byTenant.get(tenant) ?? 0, amount, most.tenant)) return 'tenant'
    return isOver(this.#used, amount, most.whole) ? 'whole' : undefined
  }

  /** Counts this much more, or less, whether there is room or not. */
  add({ user, tenant }: Sharer, amount = 1): void {
    this.#used += amount
    if (user !== undefined) count(this.#byUser, user, amount)
    if (tenant !== undefined) count(this.#byTenant, tenant, amount)
  }
}

/** How much of one resource one holder uses. */
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

  /** Uses nothing from now on. */
  end(): void {
    this.set(0)
    this.#isOver = true
  }
}

/** One of the `limits` that callers share, as error texts name it. */
export interface Use {
  readonly limit: 'liveContexts' | 'liveBytes' | 'connections' | 'unfinishedBytes'
  readonly what: string
  readonly advice: string
}

/** The error for a caller over its share. */
export function overShare({ limit, what, advice }: Use, lacking: Lacking, { user }: Sharer, { most }: Shares): A2AError {
  const by = lacking === 'tenant' ? 'perTenant' : typeof user === 'object' ? 'perConnection' : 'perPrincipal'
  const whose = { perTenant: 'This tenant has', perPrincipal: 'You have', perConnection: 'This connection has opened' }[by]
  return new A2AError('RateLimited', `${whose} as many ${what} as one may: ${most[lacking]}. ${advice}`, {
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
