import { decode, int64, type Schema } from '../../machines/protocol/codec/decode.ts'
import { A2AError, invalidParams, isA2AError } from '../../machines/protocol/errors.ts'
import type { RequestForm } from '../../machines/protocol/objects.ts'
import { OPERATIONS, type OperationName, type OperationRequests } from '../../machines/protocol/operations.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import { type NativeVersion, PROTOCOL_VERSION, checkVersion } from '../../machines/protocol/versions.ts'
import { checkPermission, type AuthorizationRequest, type Authorize } from '../access/authentication.ts'
import {
  callerOf,
  type CallContext,
  type Conditions,
  type NamedGeneration,
  type Budget
} from '../access/call-context.ts'
import type { CallScheduler } from '../access/call-scheduler.ts'
import type { Metering } from '../access/quotas.ts'
import { sharerKeyOf } from '../access/shares.ts'
import { checkNamedTenant, emptyScopeOrThrow, scopeOf, type Tenants } from '../access/tenants.ts'
import { activatedOf, OWN_EXTENSIONS, type Extensions } from '../authoring/work-arguments.ts'
import type { Logger } from '../ports/logger.ts'
import { killPoint } from '../primitives/kill-points.ts'
import type { Scope } from '../store/rows.ts'
import { TaskStream, type OpenedStream } from '../streams/task-stream.ts'
import type { Counters } from '../telemetry/counters.ts'
import type { TraceCarrier } from '../telemetry/telemetry.ts'
import type { OperationServices } from './dependencies.ts'

/** A call that passed the checks common to all operations. */
export interface Admitted<Params> {
  readonly params: Params
  readonly scope: Scope
  readonly connection: CallContext['connection']
  /** The author's extensions that the client activated, by URI. */
  readonly extensions: readonly string[]
  /** Whether the reliability extension is active: the answer has generations in metadata. */
  readonly reliable: boolean
  /** The version of its answer: in 1.1, tasks and events have their generations as members. */
  readonly version: NativeVersion
  /**
   * Whether a message is deduplicated by its messageId: with the reliability extension, or with `ifGenerationMatch` as
   * a member, since only then a client that lost the answer can tell what its message did.
   */
  readonly isOnce: boolean
  /** From the members of 1.1, and from the service parameters if the reliability extension is active. */
  readonly conditions: Conditions
  readonly key: CallContext['key']
  readonly keyToCancel: CallContext['keyToCancel']
  /** The version of A2A for its webhooks. */
  readonly dialect: string
  readonly onGeneration: CallContext['onGeneration']
  readonly budget: Budget | undefined
  readonly signal: AbortSignal | undefined
  readonly trace: TraceCarrier | undefined
  /**
   * If the call is scheduled: gives up its place among the calls that read from the store. The call waits for something
   * else from then on.
   */
  readonly releaseRead?: () => void
}

const NO_CONDITIONS: Conditions = {}

const ONLY_CURRENT: readonly NativeVersion[] = [PROTOCOL_VERSION]

/** Validates a call: version, extensions, conditions, parameters and tenant. */
export function admit<Name extends OperationName>(
  name: Name,
  request: unknown,
  call: CallContext,
  supported: Extensions = OWN_EXTENSIONS,
  versions: readonly NativeVersion[] = ONLY_CURRENT
): Admitted<OperationRequests[Name]> {
  const version =
    call.version === undefined || call.version === PROTOCOL_VERSION
      ? PROTOCOL_VERSION
      : checkVersion(call.version, versions)
  const extensions = activatedOf(supported, call.extensions)
  const reliable = supported.reliability && (call.extensions?.includes(RELIABILITY_EXTENSION) ?? false)
  const named = reliable && call.conditions ? decodeConditions(call.conditions) : NO_CONDITIONS
  // A server that also speaks 1.1 reads its conditions in requests of 1.0, too.
  const form = version === PROTOCOL_VERSION && versions.length > 1 ? 'conditional' : version
  const params = decode(schemaOf(name, form), request)
  const members = form === PROTOCOL_VERSION ? NO_CONDITIONS : conditionsIn(params)
  const conditions = joinConditions(named, members)
  const scope = scopeOf(params, call)
  checkNamedTenant(scope, call)
  return {
    params,
    scope,
    connection: call.connection,
    extensions,
    reliable,
    version,
    isOnce: reliable || members.ifGenerationMatch !== undefined,
    conditions,
    key: call.key,
    keyToCancel: call.keyToCancel,
    dialect: call.dialect ?? version,
    onGeneration: call.onGeneration,
    budget: call.budget,
    signal: call.signal,
    trace: call.trace
  }
}

/** Validates a call like {@link admit}, and counts it if that throws. A closure for each call would cost memory. */
function admitCounted<Name extends OperationName>(
  metering: Metering,
  name: Name,
  request: unknown,
  call: CallContext,
  { extensions, versions }: Pick<AdmissionRules, 'extensions' | 'versions'>
): Admitted<OperationRequests[Name]> {
  try {
    return admit(name, request, call, extensions, versions)
  } catch (error) {
    throw metering.rejected(call, request) ?? error
  }
}

/** Decodes the conditions of the extension. Throws InvalidParams for one that is no generation. */
function decodeConditions(given: Conditions): Conditions {
  const conditions = Object.entries(given).map(([name, named]) => [name, generationIn(decode(int64, named, name))])
  return Object.fromEntries(conditions)
}

/** The members of requests in 1.1 that are conditions. */
interface ConditionalParams {
  readonly tenant?: string
  readonly currentGeneration?: string
  readonly configuration?: { readonly ifGenerationMatch?: string }
}

/** The conditions that are members of a request. */
function conditionsIn({ currentGeneration, configuration }: ConditionalParams): Conditions {
  const required = configuration?.ifGenerationMatch
  return {
    ...(currentGeneration !== undefined && { currentGeneration: generationIn(currentGeneration) }),
    ...(required !== undefined && { ifGenerationMatch: generationIn(required) })
  }
}

/** The conditions of service parameters and of members. Throws InvalidParams if both have one, with another number. */
function joinConditions(named: Conditions, members: Conditions): Conditions {
  if (members === NO_CONDITIONS) return named
  const differs = (name: keyof Conditions) =>
    members[name] !== undefined && named[name] !== undefined && members[name] !== named[name]
  if (differs('currentGeneration')) throw twoConditions('currentGeneration', 'taskchart-current-generation')
  if (differs('ifGenerationMatch'))
    throw twoConditions('configuration.ifGenerationMatch', 'taskchart-if-generation-match')
  return { ...named, ...members }
}

/** A decoded int64 as a number, or as text above 2^53 - 1, where no task gets: so it is compared exactly. */
function generationIn(text: string): NamedGeneration {
  const generation = Number(text)
  return Number.isSafeInteger(generation) ? generation : text
}

function twoConditions(field: string, parameter: string): A2AError {
  return invalidParams({ field, description: `must equal the service parameter ${parameter}, or be the only one` })
}

const SCHEMAS: ReadonlyMap<OperationName, unknown> = new Map(
  Object.values(OPERATIONS).map(({ name, requests }) => [name, requests])
)

function schemaOf<Name extends OperationName>(name: Name, form: RequestForm): Schema<OperationRequests[Name]> {
  return (SCHEMAS.get(name) as Record<RequestForm, Schema<OperationRequests[Name]>>)[form]
}

/** Settings of {@link Admission}. */
export interface AdmissionRules {
  readonly logger: Logger
  readonly counters: Counters
  readonly tenants: Tenants
  readonly authorize: Authorize | undefined
  /** Fair scheduling by user, or by connection without authentication. */
  readonly scheduler: CallScheduler
  /** Whether calls in process are scheduled too. */
  readonly schedulesAll: boolean
  /** The extensions that clients may activate. */
  readonly extensions: Extensions
  /** The versions that the runtime speaks, the newest first. */
  readonly versions: readonly NativeVersion[]
  /** Operations that are refused, each with a factory of its error. */
  readonly refused: ReadonlyMap<OperationName, () => A2AError>
}

/** Runs an operation for an admitted call. */
type Run<Name extends OperationName, T> = (
  services: OperationServices,
  admitted: Admitted<OperationRequests[Name]>
) => Promise<T>

/** A validated call, and the user that it is scheduled for. */
interface CheckedCall<Name extends OperationName> {
  readonly user: object | string
  readonly admitted: Admitted<OperationRequests[Name]>
}

/** The connection of in-process calls that name none. */
const IN_PROCESS = {}

/**
 * Steps of every call before its operation: validation, fair scheduling, authorization. It also makes the error for the
 * caller.
 */
export class Admission {
  readonly #services: OperationServices
  readonly #rules: AdmissionRules

  constructor(services: OperationServices, rules: AdmissionRules) {
    this.#services = services
    this.#rules = rules
  }

  /** Runs an operation. `operation` is its name for `authorize` and the log. */
  answer<Name extends OperationName, T>(
    name: Name,
    params: unknown,
    call: CallContext,
    run: Run<Name, T>,
    operation: AuthorizationRequest['operation'] = name
  ): Promise<T> {
    this.#rules.counters.called(operation)
    try {
      return this.#permitted(operation, call, this.#checked(name, params, call), run).catch(error =>
        this.#refuse(operation, call, error)
      )
    } catch (error) {
      return Promise.reject(this.#publicError(operation, call, error))
    }
  }

  /** Makes the stream of an operation, which runs when the stream is first read. */
  stream<Name extends OperationName>(
    name: Name,
    params: unknown,
    call: CallContext,
    run: Run<Name, OpenedStream>
  ): TaskStream {
    this.#rules.counters.called(name)
    return new TaskStream(
      () => this.#permitted(name, call, this.#checked(name, params, call), run),
      error => this.#publicError(name, call, error)
    )
  }

  /** Validates and counts a call, without authorization and without running it. */
  check<Name extends OperationName>(name: Name, params: unknown, call: CallContext): Admitted<OperationRequests[Name]> {
    return this.#checked(name, params, call).admitted
  }

  /**
   * Runs something for a call. An A2AError, or the reason of the call's signal, is thrown as it is. Any other error is
   * logged, and thrown as InternalError.
   */
  hideErrors<T>(operation: string, call: CallContext, run: () => Promise<T>): Promise<T> {
    try {
      return run().catch(error => this.#refuse(operation, call, error))
    } catch (error) {
      return Promise.reject(this.#publicError(operation, call, error))
    }
  }

  #refuse(operation: string, call: CallContext, error: unknown): never {
    throw this.#publicError(operation, call, error)
  }

  #publicError(operation: string, { signal }: CallContext, error: unknown): unknown {
    const { counters } = this.#rules
    if (isA2AError(error)) counters.failed(error.code)
    if (isA2AError(error) || signal?.aborted) return error
    counters.failed('InternalError')
    this.#rules.logger.error('an operation failed', { operation, error })
    return new A2AError('InternalError', undefined, { cause: error })
  }

  #checked<Name extends OperationName>(name: Name, params: unknown, call: CallContext): CheckedCall<Name> {
    this.#services.state.checkOpen()
    const { tenants, refused } = this.#rules
    const { metering } = this.#services
    const admitted = admitCounted(metering, name, params, call, this.#rules)
    const mayUseTenant = metering.request(admitted.scope, call)
    const makeRefusal = refused.get(name)
    if (makeRefusal) throw makeRefusal()
    killPoint('request checked')
    const user = sharerKeyOf(
      { user: call.principal, tenant: tenants.areSeveral && mayUseTenant ? admitted.scope.tenant : undefined },
      call.connection ?? IN_PROCESS
    )
    return { user, admitted: mayUseTenant ? admitted : { ...admitted, scope: emptyScopeOrThrow(name) } }
  }

  /**
   * Runs an operation when its user is scheduled and its caller is authorized. Nothing is read from the store before.
   */
  #permitted<Name extends OperationName, T>(
    operation: AuthorizationRequest['operation'],
    call: CallContext,
    { user, admitted }: CheckedCall<Name>,
    run: Run<Name, T>
  ): Promise<T> {
    const { scheduler, schedulesAll } = this.#rules
    if (!schedulesAll && !call.connection) return this.#authorized(operation, call, admitted, run)
    return scheduler.take(user, async releaseRead => {
      this.#checkGoesOn(call)
      return this.#authorized(operation, call, { ...admitted, releaseRead }, run)
    })
  }

  /** Runs an operation after its caller is authorized. */
  #authorized<Name extends OperationName, T>(
    operation: AuthorizationRequest['operation'],
    call: CallContext,
    admitted: Admitted<OperationRequests[Name]>,
    run: Run<Name, T>
  ): Promise<T> {
    const { authorize, logger } = this.#rules
    if (!authorize) return run(this.#services, admitted)
    const { clock, limits } = this.#services
    const { params } = admitted
    return checkPermission(authorize, { logger, clock, limits }, {
      ...callerOf(scopeOf(params, call), call),
      operation,
      params
    } as unknown as AuthorizationRequest).then(() => {
      this.#checkGoesOn(call)
      return run(this.#services, admitted)
    })
  }

  #checkGoesOn({ signal }: CallContext): void {
    this.#services.state.checkOpen()
    signal?.throwIfAborted()
  }
}
