import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import type { Clock } from '../ports/clock.ts'
import { TwoGenerationCache } from '../primitives/collections.ts'
import type { Commit, Erasure, Scope, Store, TaskRow } from '../store/store.ts'
import { scopeOf, type CallContext } from './call-context.ts'
import type { Quota, Quotas } from './limits.ts'
import type { Tenants } from './tenants.ts'

/** A tenant, and those of its principals that have called lately. */
interface Tenancy {
  /** Its name in the store; none for that of everybody. */
  readonly tenant?: string
  readonly usage: Usage
  readonly principals: TwoGenerationCache<Usage>
}

/** Whose quotas something uses. */
interface Users {
  readonly tenancy: Tenancy
  readonly usage: Usage
}

/** What quotas are kept by. */
export interface MeteringServices {
  readonly store: Pick<Store, 'countOpen'>
  readonly clock: Clock
  readonly limits: Quotas
  readonly tenants: Tenants
}

/**
 * What tenants and principals use of their quotas. Requests are counted as they come, events and the ends of tasks once they
 * are committed. Principals that have not called lately are forgotten: their buckets are full again, and how many tasks they
 * have open the store knows.
 */
export class Metering {
  readonly #services: MeteringServices
  readonly #tenancies = new Map<string, Tenancy>()
  /** Where no tenants are configured everybody is here, else who asks for a tenant that it may not use. */
  readonly #everybody: Tenancy
  /** Tasks that are about to be opened. */
  readonly #opening = new Map<string, Users>()

  constructor(services: MeteringServices) {
    const { tenants, limits } = services
    this.#services = services
    this.#everybody = tenancyOf(limits)
    for (const [tenant, quotas] of tenants.quotas) this.#tenancies.set(tenant, tenancyOf(quotas, tenant))
  }

  /**
   * Counts a request, and its bytes, for its tenant if its caller may use that, else for everybody. Throws RateLimited if it is
   * one too many.
   */
  request({ tenant, principal }: Scope, isServed: boolean, bytes = 0): void {
    const nowMs = this.#services.clock.now()
    const tenancy = isServed ? this.#tenancyOf(tenant) : this.#everybody
    const usage = tenancy.principals.get(principal, nowMs)
    usage.checkRequest(nowMs)
    tenancy.usage.checkRequest(nowMs)
    usage.countRequest(bytes, nowMs)
    tenancy.usage.countRequest(bytes, nowMs)
  }

  /** Counts what reaches no operation like a request for the tenant that its parameters name, or else its address. */
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

  /** Throws RateLimited while there are more events than there may be. */
  message(scope: Scope): void {
    const nowMs = this.#services.clock.now()
    const { tenancy, usage } = this.#usersOf(scope, nowMs)
    usage.checkEvents(nowMs)
    tenancy.usage.checkEvents(nowMs)
  }

  /** Does what may open a task, and settles as that does. Rejects with RateLimited if it would be one too many. */
  async opening<T>(scope: Scope, taskId: string, open: () => Promise<T>): Promise<T> {
    const users = this.#usersOf(scope, this.#services.clock.now())
    if (!isKnown(users)) await this.#learn(users, scope)
    const { tenancy, usage } = users
    usage.checkOpening()
    tenancy.usage.checkOpening()
    usage.opening += 1
    tenancy.usage.opening += 1
    this.#opening.set(taskId, users)
    return open().finally(() => this.#opened(taskId))
  }

  /** Hears what a turn of a context of this scope has led to, once it is committed. */
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

  /** Asks the store again when it has to be known how many tasks these have open: what they had may be gone, or unknown. */
  forget({ tenant, principal }: Erasure): void {
    const tenancy = this.#tenancyOf(tenant)
    tenancy.usage.open = undefined
    const usage = tenancy.principals.find(principal)
    if (usage) usage.open = undefined
  }

  #tenancyOf(tenant: string): Tenancy {
    return this.#tenancies.get(tenant) ?? this.#everybody
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

  /** What the store answers is right when it comes: what was committed before it is in it, what comes later is counted. */
  async #learn(users: Users, { principal }: Scope): Promise<void> {
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

/** Whether it is known that there is room for a task, or that there is none. A principal has not more tasks than its tenant. */
function isKnown({ tenancy, usage }: Users): boolean {
  return tenancy.usage.open !== undefined && (usage.open !== undefined || tenancy.usage.tasks < usage.quota.openTasks)
}

/** Counts a request that reaches no operation. Gives RateLimited if it is over the quotas of its caller. */
export type CountStray = (call: Pick<CallContext, 'principal' | 'tenant' | 'claims' | 'bytes'>, params?: unknown) => A2AError | undefined

/** Reads a request. One that cannot be read is counted, and refused with RateLimited if it is over the quotas of its caller. */
export function counted<T>(countStray: CountStray, call: CallContext, params: unknown, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw countStray(call, params) ?? error
  }
}

const MINUTE_MS = 60_000

/** How long after its last use every bucket is full again. */
export const REFILL_MS = 2 * MINUTE_MS

/** What may be used in a minute: a bucket that holds a minute's worth, or one if that is less, and fills evenly. It may go below empty, by as much again. */
export class TokenBucket {
  readonly #perMinute: number
  #used = 0
  #atMs = 0

  constructor(perMinute: number) {
    this.#perMinute = Math.min(perMinute, Number.MAX_SAFE_INTEGER)
  }

  /** How long it is, in milliseconds, until so many more may be used; 0 if they may now. None may be while it is below empty. */
  waitMs(more: number, nowMs: number): number {
    const over = this.#usedBy(nowMs) + more - Math.max(1, this.#perMinute)
    return over > 0 ? (over * MINUTE_MS) / this.#perMinute : 0
  }

  /** Uses so many, whether they may be or not. */
  use(count: number, nowMs: number): void {
    this.#used = Math.min(this.#usedBy(nowMs) + count, 2 * Math.max(1, this.#perMinute))
  }

  /** A clock that was set back has it fill from there on. */
  #usedBy(nowMs: number): number {
    if (nowMs === this.#atMs) return this.#used
    const filled = (Math.max(0, nowMs - this.#atMs) * this.#perMinute) / MINUTE_MS
    this.#atMs = nowMs
    return (this.#used = Math.max(0, this.#used - filled))
  }
}

/** How soon to try again what waits for a task to end, of which nobody knows when. */
const TASK_ENDS_MS = 1000

/** What a tenant, or a principal in it, has used of its quota. What checks throws RateLimited, and counts nothing. */
export class Usage {
  readonly quota: Quota
  /** Tasks that have not ended; `undefined` while only the store knows. */
  open: number | undefined
  /** Tasks that are about to be opened. */
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

  /** Tasks that are open or about to be, as far as that is known. */
  get tasks(): number {
    return (this.open ?? 0) + this.opening
  }

  checkRequest(nowMs: number): void {
    const requestsMs = this.#requests.waitMs(1, nowMs)
    if (requestsMs > 0) throw this.#used('requestsPerMinute', 'sent as many requests as you may in a minute', 'Send it again later.', requestsMs)
    const bytesMs = this.#bytes.waitMs(0, nowMs)
    if (bytesMs > 0) throw this.#used('bytesPerMinute', 'sent as many bytes as you may in a minute', 'Send it again later, and large files by url.', bytesMs)
  }

  countRequest(bytes: number, nowMs: number): void {
    this.#requests.use(1, nowMs)
    if (bytes > 0) this.#bytes.use(bytes, nowMs)
  }

  checkEvents(nowMs: number): void {
    const eventsMs = this.#events.waitMs(0, nowMs)
    if (eventsMs > 0) throw this.#used('eventsPerMinute', 'had more events of tasks than you may in a minute', 'Send it again later.', eventsMs)
  }

  checkOpening(): void {
    if (this.tasks < this.quota.openTasks) return
    throw this.#used('openTasks', 'as many tasks open as you may', 'Wait for one to end, or cancel one.', TASK_ENDS_MS)
  }

  /** Counts what was committed. */
  committed(events: number, open: number, nowMs: number): void {
    this.#events.use(events, nowMs)
    if (this.open !== undefined) this.open += open
  }

  #used(name: keyof Quota, what: string, advice: string, retryAfterMs: number): A2AError {
    const limit = String(this.quota[name])
    const text = this.#of === 'perTenant' ? `This tenant has ${what.replace('you', 'it')}` : `You have ${what}`
    return new A2AError('RateLimited', `${text}: ${limit}. ${advice}`, { retryAfterMs: Math.ceil(retryAfterMs), metadata: { quota: `${this.#of}.${name}`, limit } })
  }
}
