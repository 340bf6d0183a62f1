import type { AgentCard } from '../../machines/protocol/card.ts'
import { checkJson, checkJsonText, isObject, type JsonLimits } from '../../machines/protocol/codec/json.ts'
import { A2AError, invalidParams, isA2AError } from '../../machines/protocol/errors.ts'
import {
  type OperationMethod,
  type OperationName,
  OPERATIONS,
  type StreamingName
} from '../../machines/protocol/operations.ts'
import { SERVICE_PARAMETERS } from '../../machines/protocol/uris.ts'
import {
  type NativeVersion,
  nativeVersionIn,
  NEXT_VERSION,
  normaliseVersion,
  PROTOCOL_VERSION,
  versionNotSupported
} from '../../machines/protocol/versions.ts'
import { toWireError } from '../../machines/protocol/wire-errors.ts'
import type { CallContext, UncheckedOperations } from '../../runtime/access/call-context.ts'
import { memoizePerRound } from '../../runtime/primitives/event-loop.ts'
import type { Kind } from '../../runtime/primitives/options.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { jsonPieces } from './json-pieces.ts'

/** The id of a request: text of at most 128 bytes, or a safe integer. */
export type RequestId = string | number

/** A JSON-RPC message from a client, with its envelope decoded. */
export type Envelope =
  | {
      readonly kind: 'request'
      readonly id: RequestId
      readonly method: string
      readonly params: Record<string, unknown>
      readonly serviceParameters: ServiceParameters
    }
  /** A request without an id: it is neither executed nor answered (JSON-RPC §4.1). */
  | { readonly kind: 'notification'; readonly method: string; readonly params: unknown }
  /** A response, which a server ignores. */
  | { readonly kind: 'response' }
  | { readonly kind: 'invalid'; readonly id: RequestId | null; readonly error: A2AError }

/** The service parameters of one request (§3.2.6), names in lower case. */
export type ServiceParameters = ReadonlyMap<string, string>

const LONGEST_ID_BYTES = 128
/** Members that occur only in frames of a server. */
const SERVER_MEMBERS = ['result', 'error', 'streamEnd']
/** The id of a request, if it is the first member, or follows only strings without escapes. */
const EARLY_ID = /^\s*\{(?:\s*"[^"\\]*"\s*:\s*"[^"\\]*"\s*,)*?\s*"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)\s*,/
/** The length of the text that is searched for an early id. */
const EARLY_LENGTH = 1024
const NO_PARAMETERS: ServiceParameters = new Map()

/**
 * Decodes one JSON-RPC 2.0 message. It does not throw or recurse, for any text. The JSON is checked twice: a long text
 * before it is parsed, since parsing may block, and the parsed `params` for every limit.
 */
export function readEnvelope(text: string, limits: JsonLimits): Envelope {
  const excess = checkJsonText(text, { ...limits, root: 'request' }, 'params')
  if (excess) return { kind: 'invalid', id: earlyId(text), error: invalidParams(excess) }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return invalid(null, 'ParseError', 'The message is not JSON.')
  }
  if (Array.isArray(value))
    return invalid(null, 'InvalidRequest', 'Batches are not supported. Send each request as a message of its own.')
  if (!isObject(value)) return invalid(null, 'InvalidRequest', 'A request is a JSON object.')
  const hasId = Object.hasOwn(value, 'id')
  const id = hasId ? idOf(value.id) : undefined
  if (value.jsonrpc !== '2.0') return invalid(id ?? null, 'InvalidRequest', 'jsonrpc has to be "2.0".')
  if (!Object.hasOwn(value, 'method') && SERVER_MEMBERS.some(name => Object.hasOwn(value, name)))
    return { kind: 'response' }
  if (hasId && id === undefined) {
    return invalid(
      null,
      'InvalidRequest',
      `id has to be a string of at most ${LONGEST_ID_BYTES} bytes or a whole number.`
    )
  }
  const { method, params } = value
  if (typeof method !== 'string') return invalid(id ?? null, 'InvalidRequest', 'method has to be a string.')
  if (id === undefined) return { kind: 'notification', method, params }
  return requestOf(id, method, params, value[SERVICE_PARAMETERS], limits)
}

function requestOf(id: RequestId, method: string, params: unknown, given: unknown, limits: JsonLimits): Envelope {
  const serviceParameters = parametersOf(given)
  if (!serviceParameters)
    return invalid(id, 'InvalidRequest', `${SERVICE_PARAMETERS} has to be an object whose members are strings.`)
  if (params !== undefined && !isObject(params))
    return invalid(id, 'InvalidParams', 'Invalid parameters: params must be an object.')
  const violation = checkJson(params, limits)
  if (violation) return { kind: 'invalid', id, error: invalidParams(violation) }
  return { kind: 'request', id, method, params: params ?? {}, serviceParameters }
}

/** The id of an unparsed request; null if it is not near the start. */
function earlyId(text: string): RequestId | null {
  const id = EARLY_ID.exec(text.slice(0, EARLY_LENGTH))?.[1]
  try {
    return idOf(JSON.parse(id ?? 'null')) ?? null
  } catch {
    return null
  }
}

function idOf(id: unknown): RequestId | undefined {
  if (typeof id === 'number') return Number.isSafeInteger(id) ? id : undefined
  return typeof id === 'string' && Buffer.byteLength(id) <= LONGEST_ID_BYTES ? id : undefined
}

function parametersOf(given: unknown): ServiceParameters | undefined {
  if (given === undefined || given === null) return NO_PARAMETERS
  if (!isObject(given)) return undefined
  const parameters = new Map<string, string>()
  for (const [name, value] of Object.entries(given)) {
    if (typeof value !== 'string') return undefined
    parameters.set(name.toLowerCase(), value)
  }
  return parameters
}

function invalid(
  id: RequestId | null,
  code: 'ParseError' | 'InvalidRequest' | 'InvalidParams',
  message: string
): Envelope {
  return { kind: 'invalid', id, error: new A2AError(code, message) }
}

/** Serialises an event once for all its subscribers. */
export const encodeOnce = memoizePerRound((event: object) => JSON.stringify(event))

/** The frame with the result of a request. `extensions`: those that the request activated. */
export function resultFrame(id: RequestId, result: string, extensions: readonly string[] = []): string {
  const { head, end } = resultTexts(id, extensions)
  return head + result + end
}

/** The texts before and after the JSON text of a result. */
export interface ResultTexts {
  readonly head: string
  readonly end: string
}

/** The texts around each result of a request. */
export function resultTexts(id: RequestId, extensions: readonly string[] = []): ResultTexts {
  const activated =
    extensions.length > 0
      ? `,"${SERVICE_PARAMETERS}":${JSON.stringify({ 'a2a-extensions': extensions.join(',') })}`
      : ''
  return {
    head: `{"jsonrpc":"2.0","id":${typeof id === 'number' ? id : JSON.stringify(id)},"result":`,
    end: `${activated}}`
  }
}

/** The frame of a result in pieces, for a large one. */
export function* resultPieces(
  id: RequestId,
  result: unknown,
  extensions: readonly string[] = []
): Generator<string, void, undefined> {
  const { head, end } = resultTexts(id, extensions)
  yield head
  yield* jsonPieces(result)
  yield end
}

/** The frame of an error, which ends a request or its stream. Anything but an A2AError becomes InternalError. */
export function errorFrame(id: RequestId | null, error: unknown): string {
  const shown = isA2AError(error) ? error : new A2AError('InternalError')
  return JSON.stringify({ jsonrpc: '2.0', id, error: toWireError(shown) })
}

/** The frame that ends a stream without an error. */
export function streamEndFrame(id: RequestId): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"streamEnd":true}`
}

/** An older version of A2A that a server supports beside 1.0. */
export interface Dialect {
  /** Major.Minor, as in `A2A-Version` and in the card. */
  readonly version: string
  /**
   * The JSON-RPC method of a name; `undefined` if there is none. It returns the value for `result`. Errors are
   * A2AErrors.
   */
  method(name: string): Method | undefined
  /**
   * Whether a call without a version belongs to this dialect, if another dialect has a method of the same name. A
   * dialect without this function gets the calls that no other claims.
   */
  readonly claims?: (params: unknown, call: CallContext) => Promise<boolean>
  /** The call for a REST request; `undefined` if there is no such route. Absent in versions without REST. */
  readonly rest?: (request: RestRequest) => RestCall | undefined
  /**
   * The error of a request that is refused before its method is read, such as one without credentials. Absent in
   * dialects that have the form of 1.0.
   */
  readonly refusal?: (error: A2AError) => A2AError
  /** A card in this dialect's form. */
  card(card: AgentCard): unknown
  /**
   * A card of 1.0 with this dialect's members added, for clients that request the card without a version. Absent in
   * dialects whose clients request the card at another URL.
   */
  readonly withCard?: (card: AgentCard) => AgentCard
}

/** The kind of the option `dialects`. */
export const DIALECTS: Kind = [
  value =>
    Array.isArray(value) &&
    value.every(each => isObject(each) && typeof each['version'] === 'string' && typeof each['method'] === 'function'),
  'a list such as [dialect03(runtime)], of taskchart/http'
]

/** A REST request for a dialect. */
export interface RestRequest {
  readonly verb: string
  /** Without the base and with the dialect's version prefix: `/v1/message:send`. */
  readonly path: string
  readonly query: URLSearchParams
  /** Parsed JSON; `undefined` if the request has none. */
  readonly body: unknown
}

/** A REST call with its parameters. It returns JSON, or the events of a stream. Errors are A2AErrors. */
export type RestCall =
  | { readonly streaming: false; readonly answer: (call: CallContext) => Promise<unknown> }
  | { readonly streaming: true; readonly events: (call: CallContext) => AsyncGenerator<object, void, undefined> }

/** A method that clients call. It answers once, or with a stream. */
export type Method = AnsweringMethod | StreamingMethod

export interface AnsweringMethod {
  readonly streaming: false
  readonly answer: (params: unknown, call: CallContext) => Promise<unknown>
}

export interface StreamingMethod {
  readonly streaming: true
  readonly events: (params: unknown, call: CallContext) => AsyncGenerator<object, void, undefined>
}

/** The version that a request asks for: a native one, an older one, none, or one that is not served. */
type AskedVersion = Dialect | NativeVersion | 'unstated' | 'unsupported'

/**
 * The versions of A2A that a server speaks: 1.0, 1.1 if its runtime does, and its dialects. Every binding reads the
 * version of a request here, whether it stands in a header, in the query of a URL or in a handshake (§3.6).
 */
export class Versions {
  readonly dialects: readonly Dialect[]
  /** Their names, the newest first. */
  readonly served: readonly string[]

  /** The versions that the runtime itself speaks, the newest first. */
  readonly native: readonly NativeVersion[]

  constructor(dialects: readonly Dialect[] = [], native: readonly NativeVersion[] = [PROTOCOL_VERSION]) {
    this.dialects = dialects
    this.native = native
    this.served = [...native, ...dialects.map(({ version }) => version)]
  }

  /** Reads an `A2A-Version`; blank if the request has none. */
  read(text: string): AskedVersion {
    if (text === PROTOCOL_VERSION) return PROTOCOL_VERSION
    if (text.trim() === '') return 'unstated'
    return nativeVersionIn(text, this.native) ?? this.#named(normaliseVersion(text)) ?? 'unsupported'
  }

  /** The dialect that a request asks for, if it asks for one. A request without a version asks for 0.3 (§3.6.2). */
  dialectOf(text: string): Dialect | undefined {
    const asked = this.read(text)
    if (asked === 'unstated') return this.#named(normaliseVersion(''))
    return typeof asked === 'object' ? asked : undefined
  }

  #named(version: string | undefined): Dialect | undefined {
    return this.dialects.find(dialect => dialect.version === version)
  }
}

/**
 * The method for a request without a version, from the dialects. If two dialects have the name, such as `tasks/get`,
 * the call goes to the one that claims it.
 */
function unstatedMethod(dialects: readonly Dialect[], name: string): Method | undefined {
  const withMethod = dialects.filter(dialect => dialect.method(name))
  const claimant = withMethod.find(({ claims }) => claims)
  const others = withMethod.filter(dialect => dialect !== claimant)
  const [method, other] = [claimant?.method(name), others[0]?.method(name)]
  return method && other && claimant?.claims ? combineMethods(method, other, claimant.claims) : (method ?? other)
}

/** Combines two methods of the same name by their claims. */
function combineMethods(first: Method, second: Method, isFirst: Required<Dialect>['claims']): Method {
  if (!first.streaming && !second.streaming)
    return {
      streaming: false,
      answer: async (params, call) => ((await isFirst(params, call)) ? first : second).answer(params, call)
    }
  if (!first.streaming || !second.streaming) return second
  return {
    streaming: true,
    async *events(params, call) {
      yield* ((await isFirst(params, call)) ? first : second).events(params, call)
    }
  }
}

/** The operations of A2A by their JSON-RPC methods (§5.3). */
export type Operations = {
  readonly [Name in OperationMethod]: (typeof OPERATIONS)[Name]['streaming'] extends true
    ? StreamingMethod
    : AnsweringMethod
}

/** Returns the method of a name for a value of `A2A-Version`; `undefined` if there is none. */
export type Methods = (name: string, version: string) => Method | undefined

/** The operations of a runtime as methods. */
export function operationsOf(runtime: UncheckedOperations): Operations {
  const answering = ({ name }: { readonly name: Exclude<OperationName, StreamingName> }): AnsweringMethod => ({
    streaming: false,
    answer: (params, call) => runtime[name](params, call)
  })
  const streaming = ({ name }: { readonly name: StreamingName }): StreamingMethod => ({
    streaming: true,
    events: (params, call) => runtime[name](params, call)
  })
  return {
    SendMessage: answering(OPERATIONS.SendMessage),
    SendStreamingMessage: streaming(OPERATIONS.SendStreamingMessage),
    GetTask: answering(OPERATIONS.GetTask),
    ListTasks: answering(OPERATIONS.ListTasks),
    CancelTask: answering(OPERATIONS.CancelTask),
    SubscribeToTask: streaming(OPERATIONS.SubscribeToTask),
    CreateTaskPushNotificationConfig: answering(OPERATIONS.CreateTaskPushNotificationConfig),
    GetTaskPushNotificationConfig: answering(OPERATIONS.GetTaskPushNotificationConfig),
    ListTaskPushNotificationConfigs: answering(OPERATIONS.ListTaskPushNotificationConfigs),
    DeleteTaskPushNotificationConfig: answering(OPERATIONS.DeleteTaskPushNotificationConfig),
    GetExtendedAgentCard: answering(OPERATIONS.GetExtendedAgentCard)
  }
}

/**
 * The methods for clients: the operations of A2A, and those of older dialects. A request without a version that names a
 * method of a dialect belongs to that dialect. A request with the version of a dialect has only the methods of that.
 */
export function methodsOf(runtime: ServedRuntime, versions = new Versions()): Methods {
  const operations = new Map<string, Method>(Object.entries(operationsOf(runtime)))
  return (name, version) => {
    const operation = operations.get(name)
    const asked = versions.read(version)
    if (typeof asked === 'object') return asked.method(name)
    if (operation) return operation
    if (asked === NEXT_VERSION && name === LIVE_METHOD) return refusingMethod(runtime, () => liveNotSupported())
    if (asked === PROTOCOL_VERSION || asked === NEXT_VERSION) return undefined
    const unstated = asked === 'unstated' ? unstatedMethod(versions.dialects, name) : undefined
    if (unstated) return unstated
    if (versions.dialectOf(version)) return undefined
    return refusingMethod(runtime, () => versionNotSupported(version, versions.native))
  }
}

/** A method that answers with an error, and counts the call. */
function refusingMethod({ settings: { rejected } }: ServedRuntime, makeError: () => A2AError): Method {
  return {
    streaming: false,
    answer: async (params, call) => {
      throw rejected.answerTo(makeError(), call, params)
    }
  }
}

/** A method that is only proposed for 1.1. Its name is reserved. */
export const LIVE_METHOD = 'SendLiveMessage'

/** The error for {@link LIVE_METHOD}, and for its REST path. */
export function liveNotSupported(): A2AError {
  return new A2AError(
    'UnsupportedOperation',
    'This agent takes no live input. Send further messages with SendMessage, and subscribe to the task.'
  )
}

/** The error for an unknown method. `version`: an `A2A-Version` that `methodsOf` has accepted. */
export function noSuchMethod(name: string, version: string): A2AError {
  return new A2AError(
    'MethodNotFound',
    `There is no method ${JSON.stringify(name.slice(0, 64))} in A2A ${normaliseVersion(version) ?? PROTOCOL_VERSION}.`
  )
}
