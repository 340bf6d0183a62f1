import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import type { Clock } from '../ports/clock.ts'
import { TwoGenerationCache } from '../primitives/collections.ts'
import { SerialQueue } from '../primitives/event-loop.ts'
import type { Scope } from '../store/rows.ts'
import { isOpeningMessage, type Commit, type Erasure, type Store, type TaskRow } from '../store/store.ts'
import type { Counters } from '../telemetry/counters.ts'
import type { RejectedCall } from './call-context.ts'
import type { Quota, Quotas } from './limits.ts'
import { REFILL_MS, TokenBucket } from './shares.ts'
import { scopeOf, type Tenants } from './tenants.ts'

/** `retryAfterMs` of a refusal until some task ends, whose time is unknown. */
const TASK_ENDS_MS = 1000

/** In a cluster, with so many free places for each, tasks are opened without counting those of other nodes again. */
const UNCOUNTED_MARGIN = 1024

/**
 * In a cluster, with fewer free places for each, tasks are opened one after the other, so that every node opens at most
 * one too many.
 */
const CONCURRENT_MARGIN = 16

/** Usage of a quota by a tenant, or by a principal in it. The `check` methods throw RateLimited and count nothing. */
class QuotaUsage {
  readonly quota: Quota
  /** Tasks that have not ended; `undefined` until it is read from the store. */
  open: number | undefined
  /** Tasks that are being opened. */
  opening = 0
  /** Tasks that were opened here. */
  #opened = 0
  /** Tasks that may be opened before the count is read again, in a cluster. */
  #left = 0
  /** Opens tasks one at a time, near the quota. */
  readonly openings = new SerialQueue()
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
    if (requestsMs > 0)
      throw this.#usedUp('requestsPerMinute', 'requests per minute', 'Send it again later.', requestsMs)
    const bytesMs = this.#bytes.waitMs(0, nowMs)
    if (bytesMs > 0)
      throw this.#usedUp(
        'bytesPerMinute',
        'request bytes per minute',
        'Send it again later, and large files by url.',
        bytesMs
      )
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

  /** Reads the count of open tasks, unless the last one permits more. */
  async recount(read: () => Promise<number>): Promise<void> {
    this.#left -= 1
    if (this.#left >= 0) return
    const before = this.#opened
    const count = await read()
    this.open = count + this.#opened - before
    this.#left = Math.floor((this.quota.openTasks - this.tasks) / UNCOUNTED_MARGIN)
  }

  /** Whether the quota is so nearly used up that the tasks which other nodes are opening count. */
  get isTight(): boolean {
    return this.quota.openTasks - this.tasks < CONCURRENT_MARGIN * (this.opening + 1)
  }

  committed(events: number, opened: number, ended: number, nowMs: number): void {
    this.#events.use(events, nowMs)
    this.#opened += opened
    if (this.open !== undefined) this.open += opened - ended
  }

  #usedUp(name: keyof Quota, what: string, advice: string, retryAfterMs: number): A2AError {
    const limit = String(this.quota[name])
    const who = this.#of === 'perTenant' ? 'This tenant has' : 'You have'
    return new A2AError('RateLimited', `${who} reached the limit of ${limit} ${what}. ${advice}`, {
      retryAfterMs: Math.ceil(retryAfterMs),
      metadata: { quota: `${this.#of}.${name}`, limit }
    })
  }
}

/** Usage of a tenant, and of its principals that have called recently. */
interface Tenancy {
  /** Its name in the store; `undefined` for the shared tenancy. */
  readonly tenant?: string
  readonly usage: QuotaUsage
  readonly principals: TwoGenerationCache<QuotaUsage>
}

/** The usage that a call adds to: of its principal, and of its tenant. */
interface CallerUsage {
  readonly tenancy: Tenancy
  readonly usage: QuotaUsage
}

interface MeteringServices {
  readonly store: Pick<Store, 'countOpen'>
  readonly clock: Clock
  readonly limits: Quotas
  readonly tenants: Tenants
  /**
   * In a cluster, other nodes open tasks too. `inTurn`: near the quota, tasks open one at a time. Only if opening one
   * waits for nothing but a commit, since a negotiation may take minutes.
   */
  readonly shared?: { readonly inTurn: boolean } | undefined
}

/**
 * Counts the usage of quotas by tenants and principals. Requests count on arrival, events and ends of tasks after their
 * commit. Principals that have not called recently are evicted: their buckets are full again, and the store knows the
 * number of their open tasks.
 */
export class Metering {
  readonly #services: MeteringServices
  readonly #tenancies = new Map<string, Tenancy>()
  /**
   * The usage of callers without a tenant of their own. If no tenants are configured: of all callers. Else: of callers
   * that name a tenant which they may not use.
   */
  readonly #shared: Tenancy
  /** Tasks that are being opened. */
  readonly #opening = new Map<string, CallerUsage>()

  constructor(services: MeteringServices) {
    const { tenants, limits } = services
    this.#services = services
    this.#shared = tenancyOf(limits)
    for (const [tenant, quotas] of tenants.quotas) this.#tenancies.set(tenant, tenancyOf(quotas, tenant))
  }

  /**
   * Counts a request and its bytes, and gives whether its caller may use the tenant. If not, it does not count against
   * the tenant's quota. Throws RateLimited if the quota is used up.
   */
  request(scope: Scope, { claims, bytes = 0 }: RejectedCall): boolean {
    const { tenant, principal } = scope
    const mayUseTenant = this.#services.tenants.has(scope, claims)
    const nowMs = this.#services.clock.now()
    const tenancy = mayUseTenant ? this.#tenancyOf(tenant) : this.#shared
    const usage = tenancy.principals.get(principal, nowMs)
    usage.checkRequest(nowMs)
    tenancy.usage.checkRequest(nowMs)
    usage.countRequest(bytes, nowMs)
    tenancy.usage.countRequest(bytes, nowMs)
    return mayUseTenant
  }

  /**
   * Counts a request that reaches no operation, for the tenant of its parameters, else of its URL. Gives RateLimited if
   * its caller's quota is used up.
   */
  rejected(call: RejectedCall, params: unknown): A2AError | undefined {
    const named = isObject(params) && typeof params.tenant === 'string' ? params : {}
    try {
      this.request(scopeOf(named, call), call)
      return undefined
    } catch (error) {
      if (!isA2AError(error)) throw error
      return error
    }
  }

  /** Throws RateLimited while the quota of events is used up. */
  message(scope: Scope): void {
    const nowMs = this.#services.clock.now()
    const { tenancy, usage } = this.#usageOf(scope, nowMs)
    usage.checkEvents(nowMs)
    tenancy.usage.checkEvents(nowMs)
  }

  /**
   * Runs `open`, which may open a task and does not throw, and counts it meanwhile. Throws RateLimited, or rejects with
   * it, if the quota of open tasks is used up.
   */
  opening<T>(scope: Scope, taskId: string, open: () => Promise<T>): Promise<T> {
    const { clock, shared } = this.#services
    const caller = this.#usageOf(scope, clock.now())
    if (shared) return this.#openShared(caller, scope, taskId, open, shared.inTurn)
    return isKnown(caller)
      ? this.#open(caller, taskId, open)
      : this.#readOpen(caller, scope).then(() => this.#open(caller, taskId, open))
  }

  /** Opens a task in a cluster. */
  async #openShared<T>(
    caller: CallerUsage,
    scope: Scope,
    taskId: string,
    open: () => Promise<T>,
    inTurn: boolean
  ): Promise<T> {
    await this.#readOften(caller, scope)
    const tight = inTurn && [caller.tenancy.usage, caller.usage].find(each => each.isTight)
    if (!tight) return this.#open(caller, taskId, open)
    return tight.openings.run(async () => {
      await this.#readOften(caller, scope)
      return this.#open(caller, taskId, open)
    })
  }

  #open<T>(caller: CallerUsage, taskId: string, open: () => Promise<T>): Promise<T> {
    const { tenancy, usage } = caller
    usage.checkOpening()
    tenancy.usage.checkOpening()
    usage.opening += 1
    tenancy.usage.opening += 1
    this.#opening.set(taskId, caller)
    const opened = open()
    const end = () => this.#opened(taskId)
    opened.then(end, end)
    return opened
  }

  /** Counts the events and tasks of a committed turn. */
  committed(
    scope: Scope,
    { log, rows }: Pick<Commit, 'log'> & { readonly rows: readonly Pick<TaskRow, 'state'>[] }
  ): void {
    let events = 0
    let opened = 0
    let ended = 0
    for (const entry of log) {
      if (!('message' in entry)) events += 1
      else if (isOpeningMessage(entry)) {
        opened += 1
        this.#opened(entry.taskId)
      }
    }
    for (const { state } of rows) if (isTerminal(state)) ended += 1
    if (events === 0) return
    const nowMs = this.#services.clock.now()
    const { tenancy, usage } = this.#usageOf(scope, nowMs)
    // In a cluster, the count of open tasks is read from the store, which may already have these ends.
    if (this.#services.shared) ended = 0
    usage.committed(events, opened, ended, nowMs)
    tenancy.usage.committed(events, opened, ended, nowMs)
  }

  /**
   * Drops the counts of open tasks of a scope, after an erasure for example. They are read from the store when needed.
   */
  forget({ tenant, principal }: Erasure): void {
    const tenancy = this.#tenancyOf(tenant)
    tenancy.usage.open = undefined
    const usage = tenancy.principals.find(principal)
    if (usage) usage.open = undefined
  }

  #tenancyOf(tenant: string): Tenancy {
    return this.#tenancies.get(tenant) ?? this.#shared
  }

  #usageOf({ tenant, principal }: Scope, nowMs: number): CallerUsage {
    const tenancy = this.#tenancyOf(tenant)
    return { tenancy, usage: tenancy.principals.get(principal, nowMs) }
  }

  #opened(taskId: string): void {
    const caller = this.#opening.get(taskId)
    if (!caller) return
    this.#opening.delete(taskId)
    caller.usage.opening -= 1
    caller.tenancy.usage.opening -= 1
  }

  /**
   * Reads counts of open tasks. A count is exact when it arrives: it includes earlier commits, and later ones are
   * added.
   */
  async #readOpen(caller: CallerUsage, { principal }: Scope): Promise<void> {
    const { store } = this.#services
    const { tenancy, usage } = caller
    const { tenant } = tenancy
    if (tenancy.usage.open === undefined) await store.countOpen({ tenant }).then(count => (tenancy.usage.open = count))
    if (!isKnown(caller)) await store.countOpen({ tenant, principal }).then(count => (usage.open = count))
  }

  /** Reads counts of open tasks that other nodes change: whenever the last count does not permit more. */
  async #readOften({ tenancy, usage }: CallerUsage, { principal }: Scope): Promise<void> {
    const { store } = this.#services
    const { tenant } = tenancy
    await Promise.all([
      tenancy.usage.recount(() => store.countOpen({ tenant })),
      usage.recount(() => store.countOpen({ tenant, principal }))
    ])
  }
}

function tenancyOf({ perTenant, perPrincipal }: Quotas, tenant?: string): Tenancy {
  const principals = new TwoGenerationCache(() => new QuotaUsage('perPrincipal', perPrincipal), REFILL_MS)
  return { usage: new QuotaUsage('perTenant', perTenant), principals, ...(tenant !== undefined && { tenant }) }
}

/**
 * Whether the counts suffice to decide. A principal has at most as many tasks as its tenant, so the tenant's count may
 * be enough.
 */
function isKnown({ tenancy, usage }: CallerUsage): boolean {
  return tenancy.usage.open !== undefined && (usage.open !== undefined || tenancy.usage.tasks < usage.quota.openTasks)
}

/**
 * Requests that reach no operation, because a server refuses or ignores them. Every binding answers them by this, so
 * that each counts once, against the quotas of its caller and in the metrics.
 */
export class RejectedRequests {
  readonly #metering: Metering
  readonly #counters: Pick<Counters, 'failed'>

  constructor(metering: Metering, counters: Pick<Counters, 'failed'>) {
    this.#metering = metering
    this.#counters = counters
  }

  /** Counts a request that gets no error of its own. Gives RateLimited if its caller's quota is used up. */
  count(call: RejectedCall, params?: unknown): A2AError | undefined {
    const error = this.#metering.rejected(call, params)
    if (error) this.#counters.failed(error.code)
    return error
  }

  /** Counts a request, and gives the error to answer it with: `error`, or RateLimited in its place. */
  answerTo(error: A2AError, call: RejectedCall, params?: unknown): A2AError {
    const over = this.count(call, params)
    if (!over) this.#counters.failed(error.code)
    return over ?? error
  }

  /** Reads a request. If that throws an A2AError, counts the request and throws the error to answer it with. */
  read<T>(call: RejectedCall, params: unknown, read: () => T): T {
    try {
      return read()
    } catch (error) {
      throw isA2AError(error) ? this.answerTo(error, call, params) : error
    }
  }
}
