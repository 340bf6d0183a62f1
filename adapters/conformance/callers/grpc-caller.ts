import * as sdk from '@a2a-js/sdk'
import { GRPC_STATUS_DETAILS_BIN } from '@a2a-js/sdk/errors/grpc'
import { A2AService } from '@a2a-js/sdk/server/grpc'
import * as wire from '@bufbuild/protobuf/wire'
import * as grpc from '@grpc/grpc-js'
import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import { OPERATIONS, type OperationMethod, type OperationName } from '../../../machines/protocol/operations.ts'
import { grpcTargetOf, statusDetailsOf } from '../../client/transports/official/grpc.ts'
import { checkPackages } from '../../peers/installed-packages.ts'
import { type WireCaller, parameterHeaders, WireRefusal, type WireParameters } from './caller.ts'

checkPackages(['@a2a-js/sdk', '@bufbuild/protobuf', '@grpc/grpc-js'])

/** Decodes a proto message from JSON. */
interface Reader {
  fromJSON(json: unknown): unknown
}

/** Encodes a proto message as JSON. */
interface Writer {
  toJSON(message: never): unknown
}

/** protobuf omits empty texts, lists and zeros: they are added. */
const PAGE: Writer = {
  toJSON: page => ({
    tasks: [],
    nextPageToken: '',
    pageSize: 0,
    totalSize: 0,
    ...(sdk.ListTasksResponse.toJSON(page) as object)
  })
}
const CONFIGS: Writer = {
  toJSON: page => ({ configs: [], ...(sdk.ListTaskPushNotificationConfigsResponse.toJSON(page) as object) })
}
const NOTHING: Writer = { toJSON: () => ({}) }

const CODECS: Readonly<Record<OperationMethod, readonly [request: Reader, response: Writer]>> = {
  SendMessage: [sdk.SendMessageRequest, sdk.SendMessageResponse],
  SendStreamingMessage: [sdk.SendMessageRequest, sdk.StreamResponse],
  GetTask: [sdk.GetTaskRequest, sdk.Task],
  ListTasks: [sdk.ListTasksRequest, PAGE],
  CancelTask: [sdk.CancelTaskRequest, sdk.Task],
  SubscribeToTask: [sdk.SubscribeToTaskRequest, sdk.StreamResponse],
  CreateTaskPushNotificationConfig: [sdk.TaskPushNotificationConfig, sdk.TaskPushNotificationConfig],
  GetTaskPushNotificationConfig: [sdk.GetTaskPushNotificationConfigRequest, sdk.TaskPushNotificationConfig],
  ListTaskPushNotificationConfigs: [sdk.ListTaskPushNotificationConfigsRequest, CONFIGS],
  DeleteTaskPushNotificationConfig: [sdk.DeleteTaskPushNotificationConfigRequest, NOTHING],
  GetExtendedAgentCard: [sdk.GetExtendedAgentCardRequest, sdk.AgentCard]
}

type Method = (
  request: unknown,
  metadata: grpc.Metadata,
  answer?: (error: grpc.ServiceError | null, response: never) => void
) => grpc.ClientUnaryCall & grpc.ClientReadableStream<never>

/**
 * A gRPC client (§10) with the messages of the official SDK. `url` is `host:port`; without TLS if the host is this
 * machine.
 */
export function grpcCaller(url: string, usual: WireParameters): WireCaller {
  const Client = grpc.makeGenericClientConstructor(A2AService, 'A2AService')
  const { target, isPlain } = grpcTargetOf(url)
  const client = new Client(target, isPlain ? grpc.credentials.createInsecure() : grpc.credentials.createSsl())
  const methods = client as unknown as Readonly<Record<OperationName, Method>>
  const metadataOf = (parameters: WireParameters) => {
    const metadata = new grpc.Metadata()
    for (const [name, value] of Object.entries(parameterHeaders({ ...usual, ...parameters }))) metadata.set(name, value)
    return metadata
  }
  return {
    call: (operation, params, parameters = {}) =>
      new Promise((resolve, reject) => {
        const [request, response] = CODECS[operation]
        let extensions = ''
        let result: unknown
        const call = methods[OPERATIONS[operation].name](
          request.fromJSON(params),
          metadataOf(parameters),
          (error, answer) => {
            if (error) reject(refusalIn(error))
            else result = response.toJSON(answer)
          }
        )
        parameters.cut?.addEventListener('abort', () => call.cancel(), { once: true })
        call.on('metadata', (metadata: grpc.Metadata) => (extensions = String(metadata.get('a2a-extensions')[0] ?? '')))
        call.on(
          'status',
          ({ code }: grpc.StatusObject) =>
            code === grpc.status.OK && setImmediate(() => resolve({ result, extensions }))
        )
      }),
    stream: (operation, params, parameters = {}) => {
      const [request, response] = CODECS[operation]
      const call = methods[OPERATIONS[operation].name](request.fromJSON(params), metadataOf(parameters))
      call.on('error', () => {})
      const events = call[Symbol.asyncIterator]() as AsyncIterator<never>
      const next = async () => {
        const step = await events.next().catch((error: grpc.ServiceError) => Promise.reject(refusalIn(error)))
        return step.done ? undefined : (response.toJSON(step.value) as StreamResponse)
      }
      return { next, leave: () => call.cancel() }
    },
    close: () => client.close()
  }
}

/** The status of a call, with the ErrorInfo in its trailing metadata. */
function refusalIn({ code, details, metadata }: grpc.ServiceError): WireRefusal {
  const found = metadata.get(GRPC_STATUS_DETAILS_BIN) as Buffer[]
  return new WireRefusal(
    grpc.status[code] ?? String(code),
    details,
    found.flatMap(status => statusDetailsOf(wire, status))
  )
}
