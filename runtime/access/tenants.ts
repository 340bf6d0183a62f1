import { invalidParams } from '../../machines/protocol/errors.ts'
import type { OperationName } from '../../machines/protocol/operations.ts'
import type { Logger } from '../ports/logger.ts'
import { rejectUnknown } from '../primitives/options.ts'
import type { Scope } from '../store/store.ts'
import type { Caller, Principal } from './authentication.ts'
import { quotasWith, type QuotaChanges, type Quotas } from './limits.ts'
import type { Sharer } from './shares.ts'

/** One tenant of an agent. */
export interface Tenant {
  /**
   * Who may use it: the ids of principals, or a function of the caller, which answers at once. Default everybody. For all
   * others it is as if there were no such tenant.
   */
  readonly members?: readonly string[] | ((caller: Caller) => boolean)
  /** Whether the public card lists its interfaces. Default true; else only its members' extended card does. */
  readonly listed?: boolean
  /** Changes quotas for this tenant; what is left out is as in the `limits` of the runtime. */
  readonly limits?: QuotaChanges
}

/** Tenants by their names. The one with the empty name is for requests that name none. */
export type TenantOptions = Readonly<Record<string, Tenant>>

/** Operations that look for what is there, and find nothing in a tenant that is not there. */
const LOOKING: readonly OperationName[] = [
  'getTask', 'listTasks', 'cancelTask', 'subscribeToTask',
  'createTaskPushNotificationConfig', 'getTaskPushNotificationConfig', 'listTaskPushNotificationConfigs', 'deleteTaskPushNotificationConfig'
]

/** A scope in which there never is anything. */
const NOWHERE: Scope = { tenant: '\u0000', principal: '' }

/**
 * Where a caller looks that names a tenant which it may not use: where nothing is, so that it is answered as if that were all.
 * Throws InvalidParams for operations that look for nothing. Neither tells whether there is such a tenant.
 */
export function nowhereFor(operation: OperationName): Scope {
  if (LOOKING.includes(operation)) return NOWHERE
  throw invalidParams({ field: 'tenant', description: 'must be one that you may use here' })
}

/**
 * The tenants of a runtime, and who may use which. Where none are configured every name is a tenant, and everybody may use it.
 * Throws TypeError or RangeError for options that are none.
 */
export class Tenants {
  /** The names that the public card lists; `undefined` where no tenants are configured. */
  readonly listed: readonly string[] | undefined
  /** The quotas of each tenant that is configured. */
  readonly quotas: ReadonlyMap<string, Quotas>
  readonly #tenants: ReadonlyMap<string, Tenant> | undefined
  readonly #logger: Logger

  constructor(tenants: TenantOptions | undefined, limits: Quotas, logger: Logger) {
    this.#logger = logger
    this.#tenants = tenants && new Map(Object.entries(tenants))
    if (this.#tenants?.size === 0) throw new TypeError('tenants names none, so that nobody could use the agent. Leave it out to take every name.')
    const configured = [...(this.#tenants ?? [])]
    for (const [name, tenant] of configured) checkTenant(name, tenant)
    this.quotas = new Map(configured.map(([name, tenant]) => [name, quotasWith(tenant.limits, limits, `tenants.${name}.limits`)]))
    this.listed = this.#tenants && configured.filter(([, { listed = true }]) => listed).map(([name]) => name)
  }

  /** The names that a caller may use; `undefined` where no tenants are configured. */
  namesFor(caller: Omit<Caller, 'tenant'>): readonly string[] | undefined {
    return this.#tenants && [...this.#tenants.keys()].filter(tenant => this.has({ ...caller, tenant }, caller.claims))
  }

  /** Whether there is the tenant that a caller names, and the caller may use it. */
  has({ tenant, principal }: Scope, claims: Caller['claims'] = {}): boolean {
    if (!this.#tenants) return true
    const found = this.#tenants.get(tenant)
    return found !== undefined && this.#isMember(found.members, { principal, claims, tenant })
  }

  /** Whether there is more than one, so that each has a share of what all use. */
  get areSeveral(): boolean {
    return this.quotas.size > 1
  }

  /** Whose shares a caller uses: those of its principal and, where there are several tenants, of the one that it names and may use. A caller that is not known uses none. */
  sharerOf(principal: Principal | undefined, tenant = ''): Sharer {
    if (!principal) return {}
    const { id, claims } = principal
    const isServed = this.areSeveral && this.has({ tenant, principal: id }, claims)
    return { user: id, tenant: isServed ? tenant : undefined }
  }

  #isMember(members: Tenant['members'], caller: Caller): boolean {
    if (members === undefined) return true
    if (typeof members !== 'function') return members.includes(caller.principal)
    const { tenant } = caller
    try {
      const answer: unknown = members(caller)
      if (typeof answer === 'boolean') return answer
      throw new TypeError(`members has to answer true or false at once, not ${typeof answer}`)
    } catch (error) {
      this.#logger.error('members of a tenant failed', { tenant, error })
      return false
    }
  }
}

function checkTenant(name: string, tenant: Tenant): void {
  const what = `tenants.${name}`
  if (typeof tenant !== 'object' || tenant === null) throw new TypeError(`${what} has to be an object, such as {}.`)
  rejectUnknown(tenant, ['members', 'listed', 'limits'], what)
  const { members, listed } = tenant
  if (members !== undefined && typeof members !== 'function' && !(Array.isArray(members) && members.every(id => typeof id === 'string'))) {
    throw new TypeError(`${what}.members has to be a list of principals' ids, or a function of the caller.`)
  }
  if (listed !== undefined && typeof listed !== 'boolean') throw new TypeError(`${what}.listed has to be true or false.`)
}
