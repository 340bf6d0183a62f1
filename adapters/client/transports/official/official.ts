import type * as sdk from '@a2a-js/sdk'
import type { SendMessageRequest, StreamResponse } from '@a2a-js/sdk'
import type { RequestOptions, Transport } from '@a2a-js/sdk/client'
import type * as grpcClient from '@a2a-js/sdk/client/grpc'
import type * as legacyGrpc from '@a2a-js/sdk/compat/v0_3/client/grpc'
import type * as wire from '@bufbuild/protobuf/wire'
import type * as grpc from '@grpc/grpc-js'
import type { SendMessageRequest as WireRequest } from '../../../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../../../machines/protocol/operations.ts'
import { checkPackages } from '../../../peers/installed-packages.ts'
import type { PackageName } from '../../../peers/tested-packages.ts'
import type { RequestFrame } from '../../requests.ts'
import { notIn03 } from '../http-03.ts'
import type { ResponseReceiver } from '../http.ts'

type Unary = (sdk: Sdk, transport: Transport, params: unknown, options: RequestOptions) => Promise<unknown>

const given = new WeakMap<object, object>()

/** The params of a request of the official client, with members that its codec does not know. */
export function paramsOf(request: object): object {
  return given.get(request) as object
}

function requestOf<Request extends object>(type: { fromJSON(params: unknown): Request }, params: unknown): Request {
  const request = type.fromJSON(params)
  given.set(request, params as object)
  return request
}

/** A request of SendMessage for the official client. Its codec drops data that is null, which is put back. */
function sendRequest(sdk: Sdk, params: WireRequest): SendMessageRequest {
  const request = requestOf(sdk.SendMessageRequest, params)
  request.message?.parts.forEach((part, index) => {
    const given = params.message.parts[index]
    if (given && 'data' in given && given.data === null) part.content ??= { $case: 'data', value: null }
  })
  return request
}

/** The methods with a single answer. */
const UNARY: Readonly<Record<Exclude<OperationMethod, 'SendStreamingMessage' | 'SubscribeToTask'>, Unary>> = {
  SendMessage: async (sdk, transport, params, options) => {
    const answer = await transport.sendMessage(sendRequest(sdk, params as WireRequest), options)
    return 'status' in answer ? { task: sdk.Task.toJSON(answer) } : { message: sdk.Message.toJSON(answer) }
  },
  GetTask: async (sdk, transport, params, options) =>
    sdk.Task.toJSON(await transport.getTask(requestOf(sdk.GetTaskRequest, params), options)),
  ListTasks: async (sdk, transport, params, options) =>
    sdk.ListTasksResponse.toJSON(await transport.listTasks(requestOf(sdk.ListTasksRequest, params), options)),
  CancelTask: async (sdk, transport, params, options) =>
    sdk.Task.toJSON(await transport.cancelTask(sdk.CancelTaskRequest.fromJSON(params), options)),
  CreateTaskPushNotificationConfig: async (sdk, transport, params, options) =>
    sdk.TaskPushNotificationConfig.toJSON(
      await transport.createTaskPushNotificationConfig(sdk.TaskPushNotificationConfig.fromJSON(params), options)
    ),
  GetTaskPushNotificationConfig: async (sdk, transport, params, options) =>
    sdk.TaskPushNotificationConfig.toJSON(
      await transport.getTaskPushNotificationConfig(sdk.GetTaskPushNotificationConfigRequest.fromJSON(params), options)
    ),
  ListTaskPushNotificationConfigs: async (sdk, transport, params, options) =>
    sdk.ListTaskPushNotificationConfigsResponse.toJSON(
      await transport.listTaskPushNotificationConfig(
        sdk.ListTaskPushNotificationConfigsRequest.fromJSON(params),
        options
      )
    ),
  DeleteTaskPushNotificationConfig: async (sdk, transport, params, options) => {
    await transport.deleteTaskPushNotificationConfig(
      sdk.DeleteTaskPushNotificationConfigRequest.fromJSON(params),
      options
    )
    return {}
  },
  GetExtendedAgentCard: async (sdk, transport, params, options) =>
    sdk.AgentCard.toJSON(
      await transport.getExtendedAgentCard(sdk.GetExtendedAgentCardRequest.fromJSON(params), options)
    )
}

/** Performs a request with the official client, and passes results to `receiver` as wire JSON. */
export async function performRequest(
  sdk: Sdk,
  transport: Transport,
  { method, params }: RequestFrame,
  receiver: Pick<ResponseReceiver, 'result'>,
  options: RequestOptions
): Promise<void> {
  const passEvents = async (events: AsyncIterable<StreamResponse>) => {
    for await (const event of events) receiver.result(sdk.StreamResponse.toJSON(event))
  }
  if (method === 'SendStreamingMessage')
    return passEvents(transport.sendMessageStream(sendRequest(sdk, params as WireRequest), options))
  if (method === 'SubscribeToTask')
    return passEvents(transport.resubscribeTask(sdk.SubscribeToTaskRequest.fromJSON(params), options))
  if (method === 'ListTasks' && transport.protocolVersion === '0.3') throw notIn03(method)
  receiver.result(await UNARY[method](sdk, transport, params, options))
}

export type Sdk = typeof sdk
export type SdkGrpcClient = typeof grpcClient
export type SdkLegacyGrpc = typeof legacyGrpc
export type Wire = typeof wire
export type Grpc = typeof grpc

/**
 * Imports a module of an optional peer. A bundler does not look for it: the name is no literal, and the comments are
 * for webpack and vite.
 */
export async function importPeer<Peer>(name: PackageName | `${PackageName}/${string}`): Promise<Peer> {
  checkPackages([name.split('/', 2).join('/') as PackageName])
  return (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as Peer
}
