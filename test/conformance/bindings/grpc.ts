import * as sdk from '@a2a-js/sdk'
import { decodeErrorInfo, decodeStatus, GRPC_STATUS_DETAILS_BIN } from '@a2a-js/sdk/errors/grpc'
import { UnauthenticatedUser } from '@a2a-js/sdk/server'
import { A2AService, grpcService } from '@a2a-js/sdk/server/grpc'
import * as grpc from '@grpc/grpc-js'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { toRequestHandler, whileConnected } from '../../../adapters/a2a-sdk/index.ts'
import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import { OPERATIONS, type OperationMethod, type OperationName } from '../../../machines/protocol/operations.ts'
import type { Runtime } from '../../../runtime/runtime.ts'
import { Refusal, type Binding, type Caller, type Terms } from '../binding.ts'
import { headersOf } from './headers.ts'

/** The official gRPC server (§10) on our actors, called by @grpc/grpc-js. */
export const grpcBinding: Binding = {
  name: 'gRPC',
  version: '1.0',
  serve,
  open: async (t, address, terms) => grpcCaller(t, address, { version: '1.0', ...terms })
}

async function serve(t: Test, runtime: Runtime): Promise<string> {
  const server = new grpc.Server()
  const port = await promisify(server.bindAsync.bind(server))('127.0.0.1:0', grpc.ServerCredentials.createInsecure())
  t.teardown(() => server.forceShutdown())
  const url = `127.0.0.1:${port}`
  const requestHandler = toRequestHandler(runtime, { interfaces: [{ url, protocolBinding: 'GRPC', protocolVersion: '1.0' }] })
  const userBuilder = whileConnected(async ({ metadata }: { metadata: grpc.Metadata }) => {
    const [, name] = /^Bearer (\w+)$/.exec(String(metadata.get('authorization')[0])) ?? []
    return name === undefined ? new UnauthenticatedUser() : { isAuthenticated: true, userName: name }
  })
  server.addService(A2AService, grpcService({ requestHandler, userBuilder }))
  return url
}

/** What reads and writes a message of the proto as JSON. */
interface Codec {
  fromJSON(json: unknown): unknown
  toJSON(message: never): unknown
}

/** protobuf writes no empty text, list or zero: they are there. */
const PAGE: Codec = { fromJSON: json => json, toJSON: page => ({ tasks: [], nextPageToken: '', pageSize: 0, totalSize: 0, ...(sdk.ListTasksResponse.toJSON(page) as object) }) }
const NOTHING: Codec = { fromJSON: () => ({}), toJSON: () => ({}) }

const CODECS: Readonly<Record<OperationMethod, readonly [request: Codec, response: Codec]>> = {
  SendMessage: [sdk.SendMessageRequest, sdk.SendMessageResponse],
  SendStreamingMessage: [sdk.SendMessageRequest, sdk.StreamResponse],
  GetTask: [sdk.GetTaskRequest, sdk.Task],
  ListTasks: [sdk.ListTasksRequest, PAGE],
  CancelTask: [sdk.CancelTaskRequest, sdk.Task],
  SubscribeToTask: [sdk.SubscribeToTaskRequest, sdk.StreamResponse],
  CreateTaskPushNotificationConfig: [sdk.TaskPushNotificationConfig, sdk.TaskPushNotificationConfig],
  GetTaskPushNotificationConfig: [sdk.GetTaskPushNotificationConfigRequest, sdk.TaskPushNotificationConfig],
  ListTaskPushNotificationConfigs: [sdk.ListTaskPushNotificationConfigsRequest, sdk.ListTaskPushNotificationConfigsResponse],
  DeleteTaskPushNotificationConfig: [sdk.DeleteTaskPushNotificationConfigRequest, NOTHING],
  GetExtendedAgentCard: [sdk.GetExtendedAgentCardRequest, sdk.AgentCard]
}

type Method = (request: unknown, metadata: grpc.Metadata, answer?: (error: grpc.ServiceError | null, response: never) => void) => grpc.ClientUnaryCall & grpc.ClientReadableStream<never>

function grpcCaller(t: Test, address: string, usual: Terms): Caller {
  const Client = grpc.makeGenericClientConstructor(A2AService, 'A2AService')
  const client = new Client(address, grpc.credentials.createInsecure())
  t.teardown(() => client.close())
  const methods = client as unknown as Readonly<Record<OperationName, Method>>
  const metadataOf = (terms: Terms) => {
    const metadata = new grpc.Metadata()
    for (const [name, value] of Object.entries(headersOf({ ...usual, ...terms }))) metadata.set(name, value)
    return metadata
  }
  return {
    call: (operation, params, terms = {}) =>
      new Promise((resolve, reject) => {
        const [request, response] = CODECS[operation]
        let extensions = ''
        let result: unknown
        const call = methods[OPERATIONS[operation].name](request.fromJSON(params), metadataOf(terms), (error, answer) => {
          if (error) reject(refusalIn(error))
          else result = response.toJSON(answer)
        })
        terms.cut?.addEventListener('abort', () => call.cancel(), { once: true })
        call.on('metadata', (metadata: grpc.Metadata) => (extensions = String(metadata.get('a2a-extensions')[0] ?? '')))
        call.on('status', ({ code }: grpc.StatusObject) => code === grpc.status.OK && setImmediate(() => resolve({ result, extensions })))
      }),
    stream: (operation, params, terms = {}) => {
      const [request, response] = CODECS[operation]
      const call = methods[OPERATIONS[operation].name](request.fromJSON(params), metadataOf(terms))
      call.on('error', () => {})
      const events = call[Symbol.asyncIterator]() as AsyncIterator<never>
      const next = async () => {
        const step = await events.next().catch((error: grpc.ServiceError) => Promise.reject(refusalIn(error)))
        return step.done ? undefined : (response.toJSON(step.value) as StreamResponse)
      }
      return { next, leave: () => call.cancel() }
    }
  }
}

/** The status of a call, with the ErrorInfo in its trailing metadata. */
function refusalIn({ code, details, metadata }: grpc.ServiceError): Refusal {
  const found = metadata.get(GRPC_STATUS_DETAILS_BIN).flatMap(bytes => (Buffer.isBuffer(bytes) ? decodeStatus(bytes).details : []))
  return new Refusal(grpc.status[code] ?? String(code), details, found.map(({ typeUrl, value }) => ({ '@type': typeUrl, ...decodeErrorInfo(value) })))
}
