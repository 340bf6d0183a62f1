import type { AgentCard } from '../../machines/protocol/card.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import {
  type OperationMethod,
  type OperationName,
  OPERATIONS,
  type StreamingName
} from '../../machines/protocol/operations.ts'
import { checkVersion, normaliseVersion, PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import type { CallContext, UncheckedOperations } from '../../runtime/access/call-context.ts'
import type { Kind } from '../../runtime/primitives/options.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'

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

/**
 * What the `A2A-Version` of a request asks for: 1.0, an older version, no version at all, or one that is not served.
 */
type AskedVersion = Dialect | 'current' | 'unstated' | 'unsupported'

/**
 * The versions of A2A that a server speaks: 1.0, and its dialects. Every binding reads the version of a request here,
 * whether it stands in a header, in the query of a URL or in a handshake (§3.6).
 */
export class Versions {
  readonly dialects: readonly Dialect[]
  /** Their names, the newest first. */
  readonly served: readonly string[]

  constructor(dialects: readonly Dialect[] = []) {
    this.dialects = dialects
    this.served = [PROTOCOL_VERSION, ...dialects.map(({ version }) => version)]
  }

  /** Reads an `A2A-Version`; blank if the request has none. */
  read(text: string): AskedVersion {
    if (text === PROTOCOL_VERSION) return 'current'
    if (text.trim() === '') return 'unstated'
    const version = normaliseVersion(text)
    return version === PROTOCOL_VERSION ? 'current' : (this.#named(version) ?? 'unsupported')
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

/** The operations of A2A 1.0 by their JSON-RPC methods (§5.3). */
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
 * The methods for clients: the operations of 1.0, and those of older dialects. A request without a version that names a
 * method of a dialect belongs to that dialect. A request with the version of a dialect has only the methods of that.
 */
export function methodsOf(runtime: ServedRuntime, versions = new Versions()): Methods {
  const operations = new Map<string, Method>(Object.entries(operationsOf(runtime)))
  return (name, version) => {
    const operation = operations.get(name)
    const asked = versions.read(version)
    if (typeof asked === 'object') return asked.method(name)
    if (operation) return operation
    if (asked === 'current') return undefined
    const unstated = asked === 'unstated' ? unstatedMethod(versions.dialects, name) : undefined
    return unstated ?? (versions.dialectOf(version) ? undefined : versionErrorMethod(runtime, version))
  }
}

/** The method for every name in an unsupported version: it answers with the error for the version. */
function versionErrorMethod({ settings: { rejected } }: ServedRuntime, version: string): Method {
  return {
    streaming: false,
    answer: async (params, call) => rejected.read(call, params, () => checkVersion(version))
  }
}

/** The error for an unknown method. `version`: an `A2A-Version` that `methodsOf` has accepted. */
export function noSuchMethod(name: string, version: string): A2AError {
  return new A2AError(
    'MethodNotFound',
    `There is no method ${JSON.stringify(name.slice(0, 64))} in A2A ${normaliseVersion(version) ?? PROTOCOL_VERSION}.`
  )
}
