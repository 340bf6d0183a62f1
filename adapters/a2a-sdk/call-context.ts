import { ServerCallContext, STATE_HEADERS_KEY, type User } from '@a2a-js/sdk/server'
import { normaliseVersion, PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import type { CallContext } from '../../runtime/access/call-context.ts'
import type { Telemetry } from '../../runtime/telemetry-port.ts'
import { callParameters, traceParameters } from '../json-rpc/service-parameters.ts'
import { noteFailure, toSdkError, type Transport } from './sdk-objects.ts'

/** The members of a call that the SDK's context lacks. They are stored in its state. */
type OtherMembers = Omit<CallContext, 'principal' | 'tenant' | 'version' | 'extensions'>

const OTHERS = 'taskchart.call'

/** The older version of A2A that the SDK supports. */
export const LEGACY_VERSION = '0.3'

/** The call of an official server for the runtime, with its trace. An unauthenticated user is `anonymous`. */
export function callOf(
  { user, tenant, requestedVersion, requestedExtensions = [], state }: ServerCallContext,
  telemetry: Telemetry | undefined
): CallContext {
  const given = (state.get(OTHERS) ?? membersIn(headersIn(state), telemetry)) as OtherMembers
  const signal = given.signal ?? signalOf(user)
  const connection = given.connection ?? (user as { readonly connection?: object } | undefined)?.connection
  const isLegacy = normaliseVersion(requestedVersion) === LEGACY_VERSION
  return {
    ...given,
    ...(user?.isAuthenticated && {
      principal: user.userName,
      ...('claims' in user && { claims: user.claims as CallContext['claims'] })
    }),
    ...(tenant && { tenant }),
    // The SDK has already converted older requests to 1.0.
    version: isLegacy ? PROTOCOL_VERSION : requestedVersion,
    ...(isLegacy && { dialect: given.dialect ?? LEGACY_VERSION }),
    extensions: [...requestedExtensions],
    ...(signal && { signal }),
    ...(connection && { connection })
  }
}

/**
 * Records why a call failed, and returns the error to throw: an A2AError in the form of its server, which is known from
 * a user of `whileConnected`. `params` is the server's own object. The SDK's 0.3 layer uses JSON-RPC errors on all
 * bindings.
 */
export function sdkFailure(
  error: unknown,
  params: unknown,
  { user, requestedVersion, state }: ServerCallContext
): unknown {
  noteFailure(error, params, state.get(STATE_HEADERS_KEY))
  const { transport } = (user ?? {}) as { readonly transport?: Transport }
  return toSdkError(error, normaliseVersion(requestedVersion) === LEGACY_VERSION ? 'jsonrpc' : transport)
}

/** A call as the context of the SDK's handlers. */
export function sdkContext(
  { principal, tenant, extensions, ...others }: CallContext,
  requestedVersion: string
): ServerCallContext {
  return new ServerCallContext({
    user: userNamed(principal),
    requestedVersion,
    ...(tenant !== undefined && { tenant }),
    ...(extensions && { requestedExtensions: [...extensions] }),
    state: new Map([[OTHERS, others]])
  })
}

/** A principal as the SDK's user; unauthenticated without one. */
export function userNamed(principal: string | undefined): User {
  return { isAuthenticated: principal !== undefined, userName: principal ?? '' }
}

/** Activates the requested extensions that the runtime supports: before the answer, whose headers list them. */
export function activateExtensions(context: ServerCallContext, supported: readonly string[]): void {
  for (const uri of supported) if (context.requestedExtensions?.includes(uri)) context.addActivatedExtension(uri)
}

function membersIn(headers: ReadonlyMap<string, string>, telemetry: Telemetry | undefined): OtherMembers {
  const { conditions } = callParameters(headers, { version: '', extensions: '' }, [])
  return telemetry ? { conditions, ...traceParameters(telemetry, headers) } : { conditions }
}

function signalOf(user: User | undefined): AbortSignal | undefined {
  return user && 'signal' in user && user.signal instanceof AbortSignal ? user.signal : undefined
}

/** The headers of HTTP, or the metadata of gRPC, which the SDK's servers store in the state. */
function headersIn(state: ReadonlyMap<string, unknown>): ReadonlyMap<string, string> {
  const headers = Object.entries(state.get(STATE_HEADERS_KEY) ?? {})
  return new Map(
    headers.flatMap(([name, value]) => (typeof value === 'string' ? [[name.toLowerCase(), value] as const] : []))
  )
}
