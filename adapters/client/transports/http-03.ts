import { isObject } from '../../../machines/protocol/codec/json.ts'
import { A2AError } from '../../../machines/protocol/errors.ts'
import type { OperationMethod } from '../../../machines/protocol/operations.ts'
import { fromWireError } from '../../../machines/protocol/wire-errors.ts'
import { type Call03, fromResult03, toCall03 } from '../../v03/client.ts'
import { fromProtoEvent, fromProtoTask, toProtoSend } from '../../v03/proto.ts'
import { type Calls, parameters03 } from '../calls.ts'
import type { PlacedOptions } from '../options.ts'
import type { RequestFrame } from '../requests.ts'
import { fromRpcStatus } from './http.ts'
import { openJsonRpc } from './json-rpc.ts'
import { openRest, type RestOperation } from './rest.ts'

/** Connects to an agent over the JSON-RPC of 0.3. Calls and answers are in wire JSON of 1.0. */
export async function openJsonRpc03(url: string, options: PlacedOptions, isReliable: boolean): Promise<Calls> {
  return openJsonRpc(url, options, isReliable, { request, headers: parameters03, result: fromResult03 })
}

function request({ method, params }: RequestFrame): Call03 {
  const call = toCall03(method, params)
  if (call) return call
  throw notIn03(method)
}

/** The error of a method that 0.3 does not have. */
export function notIn03(method: string): A2AError {
  return new A2AError('UnsupportedOperation', `There is no ${method} in A2A 0.3, and the agent speaks nothing newer.`)
}

/**
 * Connects to an agent over the REST of 0.3: paths below `/v1`, and the JSON of its proto. Calls and answers are in
 * wire JSON of 1.0.
 */
export async function openRest03(url: string, options: PlacedOptions, isReliable: boolean): Promise<Calls> {
  return openRest(url, options, isReliable, {
    request: requestOf,
    headers: parameters03,
    error: errorIn,
    result: resultIn
  })
}

/** The REST request for a method of 1.0. Throws UnsupportedOperation if 0.3 has none. */
function requestOf({ method, params }: RequestFrame): RestOperation {
  const call = toCall03(method, params)
  if (!call) throw notIn03(method)
  const {
    id = '',
    historyLength,
    taskId = id,
    pushNotificationConfigId = '',
    pushNotificationConfig,
    ...others
  } = call.params ?? {}
  const task = `tasks/${encodeURIComponent(String(taskId))}`
  const webhooks = `/v1/${task}/pushNotificationConfigs`
  const webhook = `${webhooks}/${encodeURIComponent(String(pushNotificationConfigId))}`
  switch (call.method) {
    case 'message/send':
      return { verb: 'POST', path: '/v1/message:send', body: toProtoSend(others) }
    case 'message/stream':
      return { verb: 'POST', path: '/v1/message:stream', body: toProtoSend(others) }
    case 'tasks/get':
      return {
        verb: 'GET',
        path: `/v1/${task}${historyLength === undefined ? '' : `?historyLength=${Number(historyLength)}`}`
      }
    case 'tasks/cancel':
      return { verb: 'POST', path: `/v1/${task}:cancel`, body: {} }
    case 'tasks/resubscribe':
      return { verb: 'GET', path: `/v1/${task}:subscribe` }
    case 'tasks/pushNotificationConfig/set':
      return {
        verb: 'POST',
        path: webhooks,
        body: { parent: task, configId: Object(pushNotificationConfig).id, config: { pushNotificationConfig } }
      }
    case 'tasks/pushNotificationConfig/get':
      return { verb: 'GET', path: webhook }
    case 'tasks/pushNotificationConfig/list':
      return { verb: 'GET', path: webhooks }
    case 'tasks/pushNotificationConfig/delete':
      return { verb: 'DELETE', path: webhook }
    default:
      return { verb: 'GET', path: '/v1/card' }
  }
}

/** The results that have the JSON of the proto, in the form that they have over JSON-RPC of 0.3. */
const FROM_PROTO: Partial<Record<OperationMethod, (result: Record<string, unknown>) => unknown>> = {
  SendMessage: fromProtoEvent,
  SendStreamingMessage: fromProtoEvent,
  SubscribeToTask: fromProtoEvent,
  GetTask: fromProtoTask,
  CancelTask: fromProtoTask
}

function resultIn(method: OperationMethod, answer: unknown): unknown {
  return fromResult03(method, isObject(answer) ? (FROM_PROTO[method]?.(answer) ?? answer) : answer)
}

/**
 * The agent's error in JSON. 0.3 does not define its form: it may look like JSON-RPC's, be a `google.rpc.Status` in
 * `error`, or be a bare message. No task and no event has such members.
 */
function errorIn(answer: unknown): A2AError | undefined {
  if (!isObject(answer)) return undefined
  const { error, message } = answer
  if (isObject(error)) return fromRpcStatus(error)
  return typeof message === 'string' ? fromWireError(answer) : undefined
}
