import { isObject } from '../../../machines/protocol/codec/json.ts'
import { A2AError, isA2AError } from '../../../machines/protocol/errors.ts'
import { fromWireError } from '../../../machines/protocol/wire-errors.ts'
import { trimmedEnd } from '../../../runtime/primitives/text.ts'
import { fromResult03, toCall03 } from '../../v03/client.ts'
import { fromProtoEvent, fromProtoTask, toProtoSend } from '../../v03/proto.ts'
import { activatedBy, parameters03, type Calls } from '../calls.ts'
import { httpAddress } from '../hosts.ts'
import { backOffOptions, type PlacedOptions } from '../options.ts'
import { hasStream, type RequestFrame } from '../requests.ts'
import type { ConnectionLost } from '../retries/lost-errors.ts'
import { CarriedCalls } from '../retries/retried-calls.ts'
import { TransportState } from '../retries/transport-state.ts'
import { mediaType } from './body.ts'
import { failureOf } from './http-errors.ts'
import { sendRequest } from './http-request.ts'
import { notIn03 } from './json-rpc-03.ts'
import { headersFor, jsonText, parsed, tryParse } from './json-rpc.ts'
import { fromRpcStatus } from './official/errors.ts'
import { eventsOf } from './server-sent-events.ts'
import type { AgentTransport } from './transport.ts'

/**
 * Connects to an agent over the REST of 0.3: paths below `/v1`, and the JSON of its proto. Calls and answers are in wire JSON of 1.0.
 * Does not use the official client, which drops `append` of artifacts there. Nothing is sent before the first call.
 */
export async function openRest03(url: string, options: PlacedOptions, isReliable: boolean): Promise<Calls> {
  const address = trimmedEnd(httpAddress(url), '/')
  return new CarriedCalls({ carrier: restCarrier(address, options), way: new TransportState(url, isReliable), backOff: backOffOptions(options) })
}

function restCarrier(address: string, options: PlacedOptions): AgentTransport {
  return {
    carry: async (frame, hearer, signal) => {
      const { verb, path, body } = routeOf(frame)
      const isStreaming = hasStream(frame.method)
      const url = `${address}/v1/${path}`
      const headers = headersFor(frame, isStreaming, options, { headers: parameters03 })
      const response = await sendRequest(url, { method: verb, headers, signal, ...(body && { body: JSON.stringify(body) }) }, options, frame.method)
      const tell = (text: string) => hearer.result(resultIn(frame.method, parsed(text, url)))
      if (response.ok) hearer.answered(activatedBy(response))
      if (response.ok && isStreaming && mediaType(response) === 'text/event-stream') {
        for await (const data of eventsOf(response)) tell(data)
        return
      }
      const text = await jsonText(response, url)
      if (!response.ok) throw errorIn(response, tryParse(text))
      tell(text === '' && verb === 'DELETE' ? '{}' : text)
      hearer.ended()
    },
    close: () => {}
  }
}

/** The REST request for a method of 1.0. Throws UnsupportedOperation if 0.3 has none. */
function routeOf({ method, params }: RequestFrame): { readonly verb: string; readonly path: string; readonly body?: object } {
  const call = toCall03(method, params)
  if (!call) throw notIn03(method)
  const { id = '', historyLength, taskId = id, pushNotificationConfigId = '', pushNotificationConfig, ...others } = call.params ?? {}
  const task = `tasks/${encodeURIComponent(String(taskId))}`
  const webhooks = `${task}/pushNotificationConfigs`
  const webhook = `${webhooks}/${encodeURIComponent(String(pushNotificationConfigId))}`
  switch (call.method) {
    case 'message/send':
      return { verb: 'POST', path: 'message:send', body: toProtoSend(others) }
    case 'message/stream':
      return { verb: 'POST', path: 'message:stream', body: toProtoSend(others) }
    case 'tasks/get':
      return { verb: 'GET', path: historyLength === undefined ? task : `${task}?historyLength=${Number(historyLength)}` }
    case 'tasks/cancel':
      return { verb: 'POST', path: `${task}:cancel`, body: {} }
    case 'tasks/resubscribe':
      return { verb: 'GET', path: `${task}:subscribe` }
    case 'tasks/pushNotificationConfig/set':
      return { verb: 'POST', path: webhooks, body: { parent: task, configId: Object(pushNotificationConfig).id, config: { pushNotificationConfig } } }
    case 'tasks/pushNotificationConfig/get':
      return { verb: 'GET', path: webhook }
    case 'tasks/pushNotificationConfig/list':
      return { verb: 'GET', path: webhooks }
    case 'tasks/pushNotificationConfig/delete':
      return { verb: 'DELETE', path: webhook }
    default:
      return { verb: 'GET', path: 'card' }
  }
}

/** The result in an answer or an event. Throws the error in it, which an event may contain too. */
function resultIn(method: string, answer: unknown): unknown {
  const error = told(answer)
  if (error) throw error
  if (method.includes('PushNotification')) return fromResult03(method, answer)
  const isTask = method === 'GetTask' || method === 'CancelTask'
  const result = isTask && isObject(answer) ? fromProtoTask(answer) : fromProtoEvent(answer)
  return fromResult03(method, result)
}

/**
 * The agent's error in JSON. 0.3 does not define its form: it may look like JSON-RPC's, be a `google.rpc.Status` in `error`, or
 * be a bare message. No task and no event has such members.
 */
function told(answer: unknown): A2AError | undefined {
  if (!isObject(answer)) return undefined
  const { error, message } = answer
  if (isObject(error)) return fromRpcStatus({ status: error.status, message: error.message, details: error.details })
  return typeof message === 'string' ? fromWireError(answer) : undefined
}

/** The error of a response that is not OK: the agent's own error, else by the status with the agent's message. */
function errorIn(response: Response, answer: unknown): A2AError | ConnectionLost {
  const [bare, error] = [failureOf(response), told(answer)]
  if (!error) return bare
  if (error.code !== 'InternalError' || response.status === 500) return failureOf(response, error)
  return isA2AError(bare) ? new A2AError(bare.code, error.message, { cause: error }) : bare
}
