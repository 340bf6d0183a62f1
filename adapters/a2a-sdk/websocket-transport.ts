import * as sdk from '@a2a-js/sdk'
import type { RequestOptions, Transport, TransportFactory } from '@a2a-js/sdk/client'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import type { OperationMethod } from '../../machines/protocol/operations.ts'
import { WEBSOCKET_BINDING } from '../../machines/protocol/uris.ts'
import { PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import { checkOptions } from '../../runtime/primitives/options.ts'
import type { Calls } from '../client/calls.ts'
import { checkAccess } from '../client/credentials.ts'
import { isAmong } from '../client/hosts.ts'
import { openAgentConnection } from '../client/open-agent.ts'
import { CONNECT_OPTIONS, type ConnectOptions } from '../client/options.ts'
import { type Codec, sdkAnswer, sdkEvent, sdkTask, sdkTasks, toSdkError } from './sdk-objects.ts'

/**
 * Adds the WebSocket binding to the official client, for cards that list it: `new ClientFactory({ transports: [new
 * WebSocketTransportFactory()] })`. Each client has its own connection, which is restored when it is lost; streams and
 * calls are resumed as by `connect`.
 */
export class WebSocketTransportFactory implements TransportFactory {
  readonly #options: ConnectOptions

  /**
   * `options` are those of `connect`. Cards choose the URL, and the factory does not know their origin: `headers` and
   * `credentials` are sent only to origins in `credentialOrigins`. Throws TypeError for either without it.
   */
  constructor(options: ConnectOptions = {}) {
    checkOptions(
      options,
      CONNECT_OPTIONS,
      'WebSocketTransportFactory',
      'new WebSocketTransportFactory({ headers: { … }, credentialOrigins: […] })'
    )
    const { headers, credentials, credentialOrigins } = options
    const what = headers ? 'headers' : 'credentials'
    if ((headers ?? credentials) && !credentialOrigins)
      throw new TypeError(
        `${what} need credentialOrigins, the origins that may receive them: { ${what}, credentialOrigins: ['https://agent.example'] }.`
      )
    checkAccess(options)
    this.#options = options
  }

  get protocolName(): string {
    return WEBSOCKET_BINDING
  }

  /** Connects to an agent. Rejects if it is unreachable, and with Forbidden if it may not receive the headers. */
  async create(url: string): Promise<WebSocketTransport> {
    const { headers, credentials, credentialOrigins = [] } = this.#options
    if ((headers ?? credentials) && !isAmong(credentialOrigins, url))
      throw new A2AError(
        'Forbidden',
        `The card names ${url}, which may not receive your ${headers ? 'headers' : 'credentials'}. Name its origin in credentialOrigins.`
      )
    const { calls } = await openAgentConnection(url, { ...this.#options, bindings: ['WEBSOCKET'] })
    return new WebSocketTransport(calls)
  }
}

/** One agent for the official client, over one WebSocket. Call `close` when the client is no longer needed. */
export class WebSocketTransport implements Transport {
  readonly #calls: Calls

  constructor(calls: Calls) {
    this.#calls = calls
  }

  get protocolName(): string {
    return WEBSOCKET_BINDING
  }

  get protocolVersion(): string {
    return PROTOCOL_VERSION
  }

  async sendMessage(params: sdk.SendMessageRequest, options?: RequestOptions): Promise<sdk.Message | sdk.Task> {
    return this.#call('SendMessage', sdk.SendMessageRequest, params, ANSWER, options)
  }

  sendMessageStream(
    params: sdk.SendMessageRequest,
    options?: RequestOptions
  ): AsyncGenerator<sdk.StreamResponse, void, undefined> {
    return this.#stream('SendStreamingMessage', sdk.SendMessageRequest, params, options)
  }

  getTask(params: sdk.GetTaskRequest, options?: RequestOptions): Promise<sdk.Task> {
    return this.#call('GetTask', sdk.GetTaskRequest, params, { fromJSON: sdkTask }, options)
  }

  cancelTask(params: sdk.CancelTaskRequest, options?: RequestOptions): Promise<sdk.Task> {
    return this.#call('CancelTask', sdk.CancelTaskRequest, params, { fromJSON: sdkTask }, options)
  }

  listTasks(params: sdk.ListTasksRequest, options?: RequestOptions): Promise<sdk.ListTasksResponse> {
    return this.#call('ListTasks', sdk.ListTasksRequest, params, { fromJSON: sdkTasks }, options)
  }

  resubscribeTask(
    params: sdk.SubscribeToTaskRequest,
    options?: RequestOptions
  ): AsyncGenerator<sdk.StreamResponse, void, undefined> {
    return this.#stream('SubscribeToTask', sdk.SubscribeToTaskRequest, params, options)
  }

  createTaskPushNotificationConfig(
    params: sdk.TaskPushNotificationConfig,
    options?: RequestOptions
  ): Promise<sdk.TaskPushNotificationConfig> {
    return this.#call(
      'CreateTaskPushNotificationConfig',
      sdk.TaskPushNotificationConfig,
      params,
      sdk.TaskPushNotificationConfig,
      options
    )
  }

  getTaskPushNotificationConfig(
    params: sdk.GetTaskPushNotificationConfigRequest,
    options?: RequestOptions
  ): Promise<sdk.TaskPushNotificationConfig> {
    return this.#call(
      'GetTaskPushNotificationConfig',
      sdk.GetTaskPushNotificationConfigRequest,
      params,
      sdk.TaskPushNotificationConfig,
      options
    )
  }

  listTaskPushNotificationConfig(
    params: sdk.ListTaskPushNotificationConfigsRequest,
    options?: RequestOptions
  ): Promise<sdk.ListTaskPushNotificationConfigsResponse> {
    const { ListTaskPushNotificationConfigsRequest: request, ListTaskPushNotificationConfigsResponse: response } = sdk
    return this.#call('ListTaskPushNotificationConfigs', request, params, response, options)
  }

  async deleteTaskPushNotificationConfig(
    params: sdk.DeleteTaskPushNotificationConfigRequest,
    options?: RequestOptions
  ): Promise<void> {
    await this.#perform(
      'DeleteTaskPushNotificationConfig',
      sdk.DeleteTaskPushNotificationConfigRequest.toJSON(params),
      options
    )
  }

  getExtendedAgentCard(params: sdk.GetExtendedAgentCardRequest, options?: RequestOptions): Promise<sdk.AgentCard> {
    return this.#call('GetExtendedAgentCard', sdk.GetExtendedAgentCardRequest, params, sdk.AgentCard, options)
  }

  /** Closes the connection. May be called twice. */
  async close(): Promise<void> {
    await this.#calls.link.close()
  }

  async #call<Params, Result>(
    method: OperationMethod,
    request: Codec<Params>,
    params: Params,
    response: Pick<Codec<Result>, 'fromJSON'>,
    options?: RequestOptions
  ): Promise<Result> {
    return response.fromJSON(await this.#perform(method, request.toJSON(params), options))
  }

  async #perform(
    method: OperationMethod,
    params: unknown,
    { signal, serviceParameters }: RequestOptions = {}
  ): Promise<unknown> {
    try {
      return await this.#calls.call({ method, params, parameters: lowered(serviceParameters) }, signal)
    } catch (error) {
      throw toSdkError(error)
    }
  }

  async *#stream<Params>(
    method: OperationMethod,
    request: Codec<Params>,
    params: Params,
    { signal, serviceParameters }: RequestOptions = {}
  ): AsyncGenerator<sdk.StreamResponse, void, undefined> {
    const frame = { method, params: request.toJSON(params), parameters: lowered(serviceParameters) }
    try {
      for await (const event of this.#calls.stream(frame, signal)) yield sdkEvent(event)
    } catch (error) {
      throw toSdkError(error)
    }
  }
}

const ANSWER: Pick<Codec<sdk.Task | sdk.Message>, 'fromJSON'> = {
  fromJSON: json => {
    if (isObject(json) && (isObject(json.task) || isObject(json.message))) return sdkAnswer(json)
    throw new TypeError('The agent answered with neither a task nor a message.')
  }
}

/** Names of service parameters are case-insensitive; here they are lower-case. */
function lowered(parameters: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name.toLowerCase(), value]))
}
