import { A2AError } from '../../machines/protocol/errors.ts'
import {
  OPERATIONS,
  type OperationMethod,
  type OperationName,
  type StreamingName
} from '../../machines/protocol/operations.ts'
import { normaliseVersion, PROTOCOL_VERSION, checkVersion } from '../../machines/protocol/versions.ts'
import type { UncheckedOperations } from '../../runtime/access/call-context.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { type AnsweringMethod, type Dialect, type Method, type StreamingMethod, Versions } from './dialect.ts'

/**
 * The method for a request without a version, from the dialects. If two dialects have the name, such as `tasks/get`,
 * the call goes to the one that claims it.
 */
export function unstatedMethod(dialects: readonly Dialect[], name: string): Method | undefined {
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
