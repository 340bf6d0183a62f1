import { invalidParams } from '../../machines/protocol/errors.ts'
import type { OperationName } from '../../machines/protocol/operations.ts'
import type { Logger } from '../ports/logger.ts'
import { rejectUnknown } from '../primitives/options.ts'
import type { Scope } from '../store/rows.ts'
import type { Caller, Principal } from './authentication.ts'
import { ANONYMOUS, type CallContext } from './call-context.ts'
import { quotasWith, type QuotaChanges, type Quotas } from './limits.ts'
import type { Owner } from './shares.ts'

/** One tenant of an agent. */
export interface Tenant {
  /**
   * The callers that may use it: ids of principals, or a synchronous function of the caller. Default all callers. To
   * others the tenant seems not to exist.
   */
  readonly members?: readonly string[] | ((caller: Caller) => boolean)
  /**
   * Whether the public card lists its interfaces. Default true. If false, only the extended card for its members does.
   */
  readonly listed?: boolean
  /** Changes of this tenant's quotas. Default: those of the runtime's `limits`. */
  readonly limits?: QuotaChanges
}

/** Tenants by name. Requests without a tenant use the one with the empty name. */
export type TenantOptions = Readonly<Record<string, Tenant>>

/** Paths of a server, which are no names of tenants. */
const RESERVED = ['healthz', 'readyz', 'mcp', 'ag-ui']

/** The scope that a call names: the tenant is that of its parameters, else that of its URL. */
export function scopeOf(
  { tenant }: { readonly tenant?: string | undefined },
  call: Pick<CallContext, 'tenant' | 'principal'>
): Scope {
  return { tenant: tenant ?? call.tenant ?? '', principal: call.principal ?? ANONYMOUS }
}

/**
 * Throws InvalidParams if a call names another tenant than its URL, or one with a reserved name: the same whether
 * tenants are configured or not.
 */
export function checkNamedTenant({ tenant }: Scope, call: Pick<CallContext, 'tenant'>): void {
  if (tenant !== '' && RESERVED.includes(tenant))
    throw invalidParams({ field: 'tenant', description: `must not be ${tenant}, which is a path of the server` })
  if (call.tenant !== undefined && call.tenant !== tenant)
    throw invalidParams({ field: 'tenant', description: 'must be the tenant of the URL' })
}

/** Whether an operation finds nothing in a tenant without data. Others need a tenant that the caller may use. */
const FINDS_NOTHING: Readonly<Record<OperationName, boolean>> = {
  sendMessage: false,
  sendStreamingMessage: false,
  getTask: true,
  listTasks: true,
  cancelTask: true,
  subscribeToTask: true,
  createTaskPushNotificationConfig: true,
  getTaskPushNotificationConfig: true,
  listTaskPushNotificationConfigs: true,
  deleteTaskPushNotificationConfig: true,
  getExtendedAgentCard: false
}

/** A scope that is always empty. */
const NOWHERE: Scope = { tenant: '\u0000', principal: '' }

/**
 * The scope for a caller that names a tenant which it may not use: an empty one, so that read operations find nothing.
 * Throws InvalidParams for other operations. Neither reveals whether the tenant exists.
 */
export function emptyScopeOrThrow(operation: OperationName): Scope {
  if (FINDS_NOTHING[operation]) return NOWHERE
  throw invalidParams({ field: 'tenant', description: 'must be one that you may use here' })
}

/**
 * The tenants of a runtime and their members. If none are configured, every name is a tenant that all callers may use.
 * Throws TypeError or RangeError for invalid options.
 */
export class Tenants {
  /** Names that the public card lists; `undefined` if no tenants are configured. */
  readonly listed: readonly string[] | undefined
  /** Quotas of each configured tenant. */
  readonly quotas: ReadonlyMap<string, Quotas>
  readonly #tenants: ReadonlyMap<string, Tenant> | undefined
  readonly #logger: Logger

  constructor(tenants: TenantOptions | undefined, limits: Quotas, logger: Logger) {
    this.#logger = logger
    this.#tenants = tenants && new Map(Object.entries(tenants))
    if (this.#tenants?.size === 0)
      throw new TypeError('tenants is empty, so nobody could use the agent. Leave it out to allow every name.')
    const configured = [...(this.#tenants ?? [])]
    for (const [name, tenant] of configured) checkTenant(name, tenant)
    this.quotas = new Map(
      configured.map(([name, tenant]) => [name, quotasWith(tenant.limits, limits, `tenants.${name}.limits`)])
    )
    this.listed = this.#tenants && configured.filter(([, { listed = true }]) => listed).map(([name]) => name)
  }

  /** Names that a caller may use; `undefined` if no tenants are configured. */
  namesFor(caller: Omit<Caller, 'tenant'>): readonly string[] | undefined {
    return this.#tenants && [...this.#tenants.keys()].filter(tenant => this.has({ ...caller, tenant }, caller.claims))
  }

  /** Whether the tenant exists and the caller may use it. */
  has({ tenant, principal }: Scope, claims: Caller['claims'] = {}): boolean {
    if (!this.#tenants) return true
    const found = this.#tenants.get(tenant)
    return found !== undefined && this.#isMember(found.members, { principal, claims, tenant })
  }

  /** Whether there are several tenants, so that each has a share of common resources. */
  get areSeveral(): boolean {
    return this.quotas.size > 1
  }

  /**
   * The owner of what a caller uses: its principal, and its tenant if there are several and it may use the one that it
   * names. Empty for an anonymous caller.
   */
  ownerOf(principal: Principal | undefined, tenant = ''): Owner {
    if (!principal) return {}
    const { id, claims } = principal
    const mayUseTenant = this.areSeveral && this.has({ tenant, principal: id }, claims)
    return { user: id, tenant: mayUseTenant ? tenant : undefined }
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
  if (RESERVED.includes(name)) {
    const protocol = { mcp: 'MCP', 'ag-ui': 'AG-UI' }[name]
    const use = protocol === undefined ? 'reports the health of a server' : `is where a server speaks ${protocol}`
    throw new TypeError(`${what} is reserved: /${name} ${use}. Choose another name.`)
  }
  if (typeof tenant !== 'object' || tenant === null) throw new TypeError(`${what} has to be an object, such as {}.`)
  rejectUnknown(tenant, ['members', 'listed', 'limits'], what)
  const { members, listed } = tenant
  if (
    members !== undefined &&
    typeof members !== 'function' &&
    !(Array.isArray(members) && members.every(id => typeof id === 'string'))
  ) {
    throw new TypeError(`${what}.members has to be a list of principals' ids, or a function of the caller.`)
  }
  if (listed !== undefined && typeof listed !== 'boolean')
    throw new TypeError(`${what}.listed has to be true or false.`)
}
