import { isObject } from '../../machines/protocol/codec/json.ts'
import type { A2AError } from '../../machines/protocol/errors.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import type { Clock } from '../ports/clock.ts'
import { TwoGenerationCache } from '../primitives/two-generation-cache.ts'
import type { Commit, Erasure, Scope, Store, TaskRow } from '../store/store.ts'
import { scopeOf, type CallContext } from './call-context.ts'
import type { Quotas } from './limits.ts'
import type { Tenants } from './tenants.ts'
import { REFILL_MS, Usage } from './usage.ts'

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
   * one too many. Gives what stands for who uses it: a tenant that is configured, else a principal.
   */
  request({ tenant, principal }: Scope, isServed: boolean, bytes = 0): object {
    const nowMs = this.#services.clock.now()
    const tenancy = isServed ? this.#tenancyOf(tenant) : this.#everybody
    const usage = tenancy.principals.get(principal, nowMs)
    usage.checkRequest(nowMs)
    tenancy.usage.checkRequest(nowMs)
    usage.countRequest(bytes, nowMs)
    tenancy.usage.countRequest(bytes, nowMs)
    return tenancy.tenant === undefined ? usage : tenancy
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
