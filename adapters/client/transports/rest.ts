import { isObject } from '../../../machines/protocol/codec/json.ts'
import { A2AError, isA2AError } from '../../../machines/protocol/errors.ts'
import type { OperationMethod } from '../../../machines/protocol/operations.ts'
import { trimmedEnd } from '../../../runtime/primitives/authority.ts'
import { activatedBy, type Calls } from '../calls.ts'
import { httpAddress } from '../hosts.ts'
import { backOffOptions, type PlacedOptions } from '../options.ts'
import { METHODS, type RequestFrame } from '../requests.ts'
import type { ConnectionLost } from '../retries/lost-errors.ts'
import { HttpCalls } from '../retries/retried-calls.ts'
import { TransportState } from '../retries/transport-state.ts'
import { callErrorOf, mediaType } from './body.ts'
import { type AgentTransport, readServerSentEvents, fromRpcStatus, sendRequest } from './http.ts'
import { jsonRpcHeaders, readJsonText, parseResponse, tryParse } from './json-rpc.ts'

/** A request of REST: `path` begins with a slash, and has the query. */
export interface RestOperation {
  readonly verb: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly body?: object | undefined
}

/** The REST of a version of A2A. */
export interface RestDialect {
  /** The request for a method. Throws UnsupportedOperation if the version has none. */
  request(frame: RequestFrame): RestOperation
  /** The service parameters of a request, as headers. */
  headers(parameters: Record<string, string>): Record<string, string>
  /** The agent's error in an answer or an event; `undefined` if it has none. */
  error(answer: unknown): A2AError | undefined
  /** Converts an answer or an event to wire JSON of 1.0. */
  result(method: OperationMethod, answer: unknown): unknown
}

/** The media types of answers. */
const ACCEPTED = 'application/a2a+json, application/json'

const CURRENT: RestDialect = {
  request: requestOf,
  headers: parameters => parameters,
  error: answer => (isObject(answer) && isObject(answer.error) ? fromRpcStatus(answer.error) : undefined),
  result: (_, answer) => answer
}

/**
 * Connects to an agent over REST (§11). Nothing is sent before the first call. The official client is not used: its
 * codec drops data that is null, and parts that it does not know.
 */
export async function openRest(
  url: string,
  options: PlacedOptions,
  isReliable: boolean,
  dialect = CURRENT
): Promise<Calls> {
  const transport = restTransport(trimmedEnd(httpAddress(url), '/'), options, dialect)
  return new HttpCalls({
    transport,
    state: new TransportState(url, isReliable, options.version),
    backOff: backOffOptions(options)
  })
}

/** A streaming call that is answered with JSON has one event. Answers have the limits of JSON-RPC. */
function restTransport(address: string, options: PlacedOptions, dialect: RestDialect): AgentTransport {
  return {
    send: async (frame, receiver, signal) => {
      const { verb, path, body } = dialect.request(frame)
      const isStreaming = METHODS[frame.method].streams
      const url = `${address}${path}`
      const headers = jsonRpcHeaders(frame, isStreaming, options, dialect)
      headers.set('accept', isStreaming ? `text/event-stream, ${ACCEPTED}` : ACCEPTED)
      const response = await sendRequest(
        url,
        { method: verb, headers, signal, ...(body && { body: JSON.stringify(body) }) },
        options,
        frame.method
      )
      const passResult = (text: string) => {
        const answer = parseResponse(text, url)
        const error = dialect.error(answer)
        if (error) throw error
        receiver.result(dialect.result(frame.method, answer))
      }
      if (response.ok) receiver.answered(activatedBy(response))
      if (response.ok && isStreaming && mediaType(response) === 'text/event-stream') {
        for await (const data of readServerSentEvents(response)) passResult(data)
        return
      }
      const text = await readJsonText(response, url)
      if (!response.ok) throw failureIn(response, dialect.error(tryParse(text)))
      passResult(text === '' && verb === 'DELETE' ? '{}' : text)
      receiver.ended()
    },
    close: () => {}
  }
}

/** The error of a response that is not OK: the agent's own error, else by the status with the agent's message. */
function failureIn(response: Response, error: A2AError | undefined): A2AError | ConnectionLost {
  const bare = callErrorOf(response)
  if (!error) return bare
  if (error.code !== 'InternalError' || response.status === 500) return callErrorOf(response, error)
  return isA2AError(bare) ? new A2AError(bare.code, error.message, { cause: error }) : bare
}

const CONFIGS = '/tasks/{taskId}/pushNotificationConfigs'

type Route = readonly [verb: RestOperation['verb'], path: string]

/** The route of each method (§11.3), whose parameters are in braces. */
const ROUTES: Readonly<Record<OperationMethod, Route>> = {
  SendMessage: ['POST', '/message:send'],
  SendStreamingMessage: ['POST', '/message:stream'],
  GetTask: ['GET', '/tasks/{id}'],
  ListTasks: ['GET', '/tasks'],
  CancelTask: ['POST', '/tasks/{id}:cancel'],
  SubscribeToTask: ['POST', '/tasks/{id}:subscribe'],
  CreateTaskPushNotificationConfig: ['POST', CONFIGS],
  GetTaskPushNotificationConfig: ['GET', `${CONFIGS}/{id}`],
  ListTaskPushNotificationConfigs: ['GET', CONFIGS],
  DeleteTaskPushNotificationConfig: ['DELETE', `${CONFIGS}/{id}`],
  GetExtendedAgentCard: ['GET', '/extendedAgentCard']
}

/** The request for a method of 1.0: the tenant and ids are in the path, all else in the query or the body. */
function requestOf({ method, params }: RequestFrame): RestOperation {
  const [verb, template] = ROUTES[method]
  const { tenant = '', ...given } = params as { readonly tenant?: string; readonly [name: string]: unknown }
  const others = new Map(Object.entries(given).filter(([, value]) => value !== undefined && value !== null))
  const route = template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(others.get(name))
    others.delete(name)
    return encodeURIComponent(value)
  })
  const path = tenant === '' ? route : `/${encodeURIComponent(tenant)}${route}`
  if (others.size === 0) return { verb, path }
  if (verb === 'POST') return { verb, path, body: Object.fromEntries(others) }
  return {
    verb,
    path: `${path}?${new URLSearchParams([...others].map(([name, value]): [string, string] => [name, String(value)])).toString()}`
  }
}
