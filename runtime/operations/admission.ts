import type { AgentInterface } from '../../machines/protocol/card.ts'
import { decode } from '../../machines/protocol/codec/decode.ts'
import type { Schema } from '../../machines/protocol/codec/values.ts'
import { A2AError, invalidParams } from '../../machines/protocol/errors.ts'
import { OPERATIONS, type OperationName, type OperationRequests } from '../../machines/protocol/operations.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import { normaliseVersion, PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import type { Caller } from '../access/authentication.ts'
import { activatedOf, OUR_EXTENSIONS, type Extensions } from '../authoring/extensions.ts'
import type { Scope } from '../store/store.ts'
import type { Room } from '../streams/whole-task.ts'
import type { TraceCarrier } from '../telemetry/telemetry.ts'
import type { TaskName } from './task-names.ts'

/** The principal of all callers that are not known. */
export const ANONYMOUS = 'anonymous'

/** Under whose name and on what terms an operation is called. Adapters fill it in from what they authenticated. */
export interface CallContext {
  /** Who calls. Default `anonymous`. */
  readonly principal?: string
  /** What the credentials say of who calls. Default nothing. */
  readonly claims?: Readonly<Record<string, unknown>> | undefined
  /**
   * Stands for the connection over which the call came: the same object for all of its calls. The live contexts of callers
   * without a principal are counted by it. Default none, for calls in process: they may use the whole.
   */
  readonly connection?: object | undefined
  /** Where the caller's server offers the agent: what GetExtendedAgentCard lists. Default nowhere, for calls in process. */
  readonly interfaces?: readonly AgentInterface[] | undefined
  /** How many bytes the request had on the wire, for the quotas. Default none, for calls in process. */
  readonly bytes?: number
  /** The tenant of the path, if the binding has one there; it has to agree with that of the request. */
  readonly tenant?: string
  /** `A2A-Version` as the client gave it; empty or missing means 0.3 on the wire (§3.6.2). Default 1.0, for calls in process. */
  readonly version?: string
  /** The older version that the client speaks, if what it sends was translated: in that its webhooks are told. Default 1.0. */
  readonly dialect?: string | undefined
  /** URIs of the extensions that the client asked for (`A2A-Extensions`); those not supported are ignored (§4.6.3). */
  readonly extensions?: readonly string[]
  /** What the reliability extension adds to a call. Counts only if that extension is among `extensions`. */
  readonly conditions?: Conditions
  /** SendMessage: the client's own name for the task, of which the message then says no taskId. For versions of A2A whose clients name tasks. */
  readonly taskName?: TaskName | undefined
  /** Hears the generation of each event of a stream, just before the stream gives that. */
  readonly numbered?: ((generation: number) => void) | undefined
  /** Called when the answer, or what a stream begins with, is large, before it is read. Default: there is room at once. */
  readonly room?: Room | undefined
  /** Ends the waiting and the stream; never the task (§3.5.2). */
  readonly signal?: AbortSignal | undefined
  /** The trace that the call belongs to. Default: that within which it is called. Counts only where the runtime traces. */
  readonly trace?: TraceCarrier | undefined
  /** The binding over which the call came, such as `WEBSOCKET`: for the trace alone. */
  readonly binding?: string | undefined
}

/** Terms of the reliability extension. Each is a generation: a whole number from 0. */
export interface Conditions {
  /** SubscribeToTask: no task first, only what came after this generation; the task may have ended. */
  readonly afterGeneration?: number
  /** SendMessage to a task and CancelTask: only while the task has this generation. */
  readonly ifGenerationMatch?: number
  /** GetTask: answer when the task has passed this generation, or after a while as it is. */
  readonly currentGeneration?: number
}

/** A call that passed the checks common to all operations. */
export interface Admitted<Params> {
  readonly params: Params
  readonly scope: Scope
  readonly connection: CallContext['connection']
  /** The author's extensions that the client activated, by their URIs. */
  readonly extensions: readonly string[]
  /** The reliability extension is active: generations are shown, and a message is not taken twice. */
  readonly reliable: boolean
  /** None unless the extension is active. */
  readonly conditions: Conditions
  readonly taskName: CallContext['taskName']
  /** The version in which its webhooks are told. */
  readonly dialect: string
  readonly numbered: CallContext['numbered']
  readonly room: Room | undefined
  readonly signal: AbortSignal | undefined
  readonly trace: TraceCarrier | undefined
}

/** The checks that every operation begins with, in their order: version, extensions, tenant, parameters. */
export function admit<Name extends OperationName>(
  name: Name,
  request: unknown,
  call: CallContext,
  supported: Extensions = OUR_EXTENSIONS
): Admitted<OperationRequests[Name]> {
  checkVersion(call.version ?? PROTOCOL_VERSION)
  const extensions = activatedOf(supported, call.extensions)
  const reliable = supported.reliability && (call.extensions?.includes(RELIABILITY_EXTENSION) ?? false)
  const conditions = reliable ? checked(call.conditions ?? {}) : {}
  const params = decode(schemaOf(name), request)
  const scope = scopeOf(params, call)
  if (call.tenant !== undefined && call.tenant !== scope.tenant) throw invalidParams({ field: 'tenant', description: 'must be the tenant of the address' })
  return { params, scope, connection: call.connection, extensions, reliable, conditions, taskName: call.taskName, dialect: call.dialect ?? PROTOCOL_VERSION, numbered: call.numbered, room: call.room, signal: call.signal, trace: call.trace }
}

/** Whose data a call is about: what its parameters say, else its address. */
export function scopeOf({ tenant }: { readonly tenant?: string | undefined }, call: CallContext): Scope {
  return { tenant: tenant ?? call.tenant ?? '', principal: call.principal ?? ANONYMOUS }
}

/** Who calls, for functions of the author's. */
export function callerOf({ principal, tenant }: Scope, { claims = {} }: CallContext): Caller {
  return { principal, claims, tenant }
}

/** Throws VersionNotSupported unless a request's `A2A-Version` is 1.0 (§3.6.2). */
export function checkVersion(given: string): void {
  if (normaliseVersion(given) === PROTOCOL_VERSION) return
  const asked = given.trim() === '' ? 'The request names no A2A-Version, which means 0.3' : `A2A-Version ${JSON.stringify(given.slice(0, 32))} was asked for`
  throw new A2AError('VersionNotSupported', `${asked}; this agent speaks ${PROTOCOL_VERSION}. Send A2A-Version: ${PROTOCOL_VERSION}.`, {
    metadata: { supportedVersions: PROTOCOL_VERSION }
  })
}

function checked(conditions: Conditions): Conditions {
  for (const [name, generation] of Object.entries(conditions)) {
    if (!Number.isSafeInteger(generation) || generation < 0) throw invalidParams({ field: name, description: 'must be a generation: a whole number from 0' })
  }
  return conditions
}

const SCHEMAS: ReadonlyMap<OperationName, unknown> = new Map(Object.values(OPERATIONS).map(({ name, request }) => [name, request]))

function schemaOf<Name extends OperationName>(name: Name): Schema<OperationRequests[Name]> {
  return SCHEMAS.get(name) as Schema<OperationRequests[Name]>
}
