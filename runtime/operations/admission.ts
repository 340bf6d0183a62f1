import { decode } from '../../machines/protocol/codec/decode.ts'
import type { Schema } from '../../machines/protocol/codec/values.ts'
import { A2AError, invalidParams } from '../../machines/protocol/errors.ts'
import { OPERATIONS, type OperationName, type OperationRequests } from '../../machines/protocol/operations.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import { normaliseVersion, PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import { scopeOf, type CallContext, type Conditions, type Room } from '../access/call-context.ts'
import { activatedOf, OUR_EXTENSIONS, type Extensions } from '../authoring/extensions.ts'
import type { Scope } from '../store/store.ts'
import type { TraceCarrier } from '../telemetry/telemetry.ts'

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
