import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import type { Clock } from '../ports/clock.ts'
import { TwoGenerationCache } from '../primitives/collections.ts'
import type { Commit, Erasure, Scope, Store, TaskRow } from '../store/store.ts'
import { scopeOf, type CallContext } from './call-context.ts'
import type { Quota, Quotas } from './limits.ts'
import type { Tenants } from './tenants.ts'

/** Usage of a tenant, and of its principals that have called recently. */
interface Tenancy {
  /** Its name in the store; `undefined` for the shared tenancy. */
  readonly tenant?: string
  readonly usage: Usage
  readonly principals: TwoGenerationCache<Usage>
}

/** The quotas that a call counts against. */
interface Users {
  readonly tenancy: Tenancy
  readonly usage: Usage
}

export interface MeteringServices {
  readonly store: Pick<Store, 'countOpen'>
  readonly clock: Clock
  readonly limits: Quotas
  readonly tenants: Tenants
}

/**
 * Counts the usage of quotas by tenants and principals. Requests count on arrival, events and ends of tasks after their commit.
 * Principals that have not called recently are evicted: their buckets are full again, and the store knows the number of their
 * open tasks.
 */
export class Metering {
  readonly #services: MeteringServices
  readonly #tenancies = new Map<string, Tenancy>()
  /** Without configured tenants that of all callers, else that of callers which ask for a tenant that they may not use. */
  readonly #shared: Tenancy
  /** Tasks that are being opened. */
  readonly #opening = new Map<string, Users>()

  constructor(services: MeteringServices) {
    const { tenants, limits } = services
    this.#services = services
    this.#shared = tenancyOf(limits)
    for (const [tenant, quotas] of tenants.quotas) this.#tenancies.set(tenant, tenancyOf(quotas, tenant))
  }

  /**
   * Counts a request and its bytes. Unauthorised requests do not count against the tenant's quota. Throws RateLimited if the quota
   * is used up.
   */
  request({ tenant, principal }: Scope, isServed: boolean, bytes = 0): void {
    const nowMs = this.#services.clock.now()
    const tenancy = isServed ? this.#tenancyOf(tenant) : this.#shared
    const usage = tenancy.principals.get(principal, nowMs)
    usage.checkRequest(nowMs)
    tenancy.usage.checkRequest(nowMs)
    usage.countRequest(bytes, nowMs)
    tenancy.usage.countRequest(bytes, nowMs)
  }

  /** Counts a request that reaches no operation, for the tenant of its parameters, else of its URL. */
  readonly stray: CountStray = (call, params) => {
    const named = isObject(params) && typeof params.tenant === 'string' ? params : {}
    const scope = scopeOf(named, call)
    try {
      this.request(scope, this.#services.tenants.has(scope, call.claims), call.bytes)
      return undefined
    } catch (error) {
      return error as A2AError
    }
  }

  /** Throws RateLimited while the quota of events is used up. */
  message(scope: Scope): void {
    const nowMs = this.#services.clock.now()
    const { tenancy, usage } = this.#usersOf(scope, nowMs)
    usage.checkEvents(nowMs)
    tenancy.usage.checkEvents(nowMs)
  }

  /** Runs `open`, which may open a task, and counts it meanwhile. Rejects with RateLimited if the quota of open tasks is used up. */
  async opening<T>(scope: Scope, taskId: string, open: () => Promise<T>): Promise<T> {
    const users = this.#usersOf(scope, this.#services.clock.now())
    if (!isKnown(users)) await this.#readOpen(users, scope)
    const { tenancy, usage } = users
    usage.checkOpening()
    tenancy.usage.checkOpening()
    usage.opening += 1
    tenancy.usage.opening += 1
    this.#opening.set(taskId, users)
    return open().finally(() => this.#opened(taskId))
  }

  /** Counts the events and tasks of a committed turn. */
  committed(scope: Scope, { log, rows }: Pick<Commit, 'log'> & { readonly rows: readonly Pick<TaskRow, 'state'>[] }): void {
    let events = 0
    let open = 0
    for (const entry of log) {
      if ('message' in entry) continue
      events += 1
      if (entry.generation > 1) continue
      open += 1
      this.#opened(entry.taskId)
    }
    for (const { state } of rows) if (isTerminal(state)) open -= 1
    if (events === 0) return
    const nowMs = this.#services.clock.now()
    const { tenancy, usage } = this.#usersOf(scope, nowMs)
    usage.committed(events, open, nowMs)
    tenancy.usage.committed(events, open, nowMs)
  }

  /** Drops the counts of open tasks of a scope, after an erasure for example. They are read from the store when needed. */
  forget({ tenant, principal }: Erasure): void {
    const tenancy = this.#tenancyOf(tenant)
    tenancy.usage.open = undefined
    const usage = tenancy.principals.find(principal)
    if (usage) usage.open = undefined
  }

  #tenancyOf(tenant: string): Tenancy {
    return this.#tenancies.get(tenant) ?? this.#shared
  }

  #usersOf({ tenant, principal }: Scope, nowMs: number): Users {
    const tenancy = this.#tenancyOf(tenant)
    return { tenancy, usage: tenancy.principals.get(principal, nowMs) }
  }

  #opened(taskId: string): void {
    const users = this.#opening.get(taskId)
    if (!users) return
    this.#opening.delete(taskId)
    users.usage.opening -= 1
    users.tenancy.usage.opening -= 1
  }

  /** Reads counts of open tasks. A count is exact when it arrives: it includes earlier commits, and later ones are added. */
  async #readOpen(users: Users, { principal }: Scope): Promise<void> {
    const { store } = this.#services
    const { tenancy, usage } = users
    const { tenant } = tenancy
    if (tenancy.usage.open === undefined) await store.countOpen({ tenant }).then(count => (tenancy.usage.open = count))
    if (!isKnown(users)) await store.countOpen({ tenant, principal }).then(count => (usage.open = count))
  }
}

function tenancyOf({ perTenant, perPrincipal }: Quotas, tenant?: string): Tenancy {
  const principals = new TwoGenerationCache(() => new Usage('perPrincipal', perPrincipal), REFILL_MS)
  return { usage: new Usage('perTenant', perTenant), principals, ...(tenant !== undefined && { tenant }) }
}

/** Whether the counts suffice to decide. A principal has at most as many tasks as its tenant, so the tenant's count may be enough. */
function isKnown({ tenancy, usage }: Users): boolean {
  return tenancy.usage.open !== undefined && (usage.open !== undefined || tenancy.usage.tasks < usage.quota.openTasks)
}

/** Counts a request that reaches no operation. Gives RateLimited if its caller's quota is used up. */
export type CountStray = (call: Pick<CallContext, 'principal' | 'tenant' | 'claims' | 'bytes'>, params?: unknown) => A2AError | undefined

/** Reads a request. If that throws, counts the request, and throws RateLimited instead if the caller's quota is used up. */
export function counted<T>(countStray: CountStray, call: CallContext, params: unknown, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw countStray(call, params) ?? error
  }
}

const MINUTE_MS = 60_000

/** Time after which any bucket is full again. */
export const REFILL_MS = 2 * MINUTE_MS

/** Token bucket with the capacity of one minute, of at least 1 token. It fills evenly, and may be overdrawn by one more capacity. */
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

/** `retryAfterMs` of a refusal until some task ends, whose time is unknown. */
const TASK_ENDS_MS = 1000

/** Usage of a quota by a tenant, or by a principal in it. The `check` methods throw RateLimited and count nothing. */
export class Usage {
  readonly quota: Quota
  /** Tasks that have not ended; `undefined` until it is read from the store. */
  open: number | undefined
  /** Tasks that are being opened. */
  opening = 0
  readonly #of: keyof Quotas
  readonly #requests: TokenBucket
  readonly #events: TokenBucket
  readonly #bytes: TokenBucket

  constructor(of: keyof Quotas, quota: Quota) {
    this.#of = of
    this.quota = quota
    this.#requests = new TokenBucket(quota.requestsPerMinute)
    this.#events = new TokenBucket(quota.eventsPerMinute)
    this.#bytes = new TokenBucket(quota.bytesPerMinute)
  }

  /** Known number of tasks that are open or being opened. */
  get tasks(): number {
    return (this.open ?? 0) + this.opening
  }

  checkRequest(nowMs: number): void {
    const requestsMs = this.#requests.waitMs(1, nowMs)
    if (requestsMs > 0) throw this.#usedUp('requestsPerMinute', 'requests per minute', 'Send it again later.', requestsMs)
    const bytesMs = this.#bytes.waitMs(0, nowMs)
    if (bytesMs > 0) throw this.#usedUp('bytesPerMinute', 'request bytes per minute', 'Send it again later, and large files by url.', bytesMs)
  }

  countRequest(bytes: number, nowMs: number): void {
    this.#requests.use(1, nowMs)
    if (bytes > 0) this.#bytes.use(bytes, nowMs)
  }

  checkEvents(nowMs: number): void {
    const eventsMs = this.#events.waitMs(0, nowMs)
    if (eventsMs > 0) throw this.#usedUp('eventsPerMinute', 'task events per minute', 'Send it again later.', eventsMs)
  }

  checkOpening(): void {
    if (this.tasks < this.quota.openTasks) return
    throw this.#usedUp('openTasks', 'open tasks', 'Wait for one to end, or cancel one.', TASK_ENDS_MS)
  }

  committed(events: number, open: number, nowMs: number): void {
    this.#events.use(events, nowMs)
    if (this.open !== undefined) this.open += open
  }

  #usedUp(name: keyof Quota, what: string, advice: string, retryAfterMs: number): A2AError {
    const limit = String(this.quota[name])
    const who = this.#of === 'perTenant' ? 'This tenant has' : 'You have'
    return new A2AError('RateLimited', `${who} reached the limit of ${limit} ${what}. ${advice}`, { retryAfterMs: Math.ceil(retryAfterMs), metadata: { quota: `${this.#of}.${name}`, limit } })
  }
}
