import type { AgentCard } from './card.ts'
import type { Schema } from './codec/decode.ts'
import type { ListTasksResponse, SendMessageResponse, StreamResponse, Task } from './objects.ts'
import * as requests from './objects.ts'
import * as push from './push.ts'

/** The parameters of each operation, by its name in the runtime. */
export interface OperationRequests {
  sendMessage: requests.SendMessageRequest
  sendStreamingMessage: requests.SendMessageRequest
  getTask: requests.GetTaskRequest
  listTasks: requests.ListTasksRequest
  cancelTask: requests.CancelTaskRequest
  subscribeToTask: requests.SubscribeToTaskRequest
  createTaskPushNotificationConfig: push.CreateTaskPushNotificationConfigRequest
  getTaskPushNotificationConfig: push.GetTaskPushNotificationConfigRequest
  listTaskPushNotificationConfigs: push.ListTaskPushNotificationConfigsRequest
  deleteTaskPushNotificationConfig: push.DeleteTaskPushNotificationConfigRequest
  getExtendedAgentCard: requests.GetExtendedAgentCardRequest
}

/** The result of each operation, by its name in the runtime; of a stream, each event. */
export interface OperationResults {
  sendMessage: SendMessageResponse
  sendStreamingMessage: StreamResponse
  getTask: Task
  listTasks: ListTasksResponse
  cancelTask: Task
  subscribeToTask: StreamResponse
  createTaskPushNotificationConfig: push.TaskPushNotificationConfig
  getTaskPushNotificationConfig: push.TaskPushNotificationConfig
  listTaskPushNotificationConfigs: push.ListTaskPushNotificationConfigsResponse
  deleteTaskPushNotificationConfig: Record<string, never>
  getExtendedAgentCard: AgentCard
}

/** The name of an operation in the runtime: the method's in camelCase. */
export type OperationName = (typeof OPERATIONS)[OperationMethod]['name']

/** The name of an operation that answers with a stream. */
export type StreamingName = Extract<(typeof OPERATIONS)[OperationMethod], { readonly streaming: true }>['name']

/** A capability of the Agent Card that an operation requires (§4.4.3). */
export type Capability = 'streaming' | 'pushNotifications' | 'extendedAgentCard'

/**
 * One operation of A2A: its name in the runtime, whether it answers with a stream, its parameters and the capability
 * that it requires.
 */
export interface Operation<Name extends keyof OperationRequests = keyof OperationRequests> {
  readonly name: Name
  readonly streaming: boolean
  readonly requests: requests.RequestSchemas<OperationRequests[Name]>
  readonly capability?: Capability
}

/** The eleven operations (§3.1) by their JSON-RPC method, which is also their gRPC method (§5.3). */
export const OPERATIONS = {
  SendMessage: unary('sendMessage', requests.SEND_MESSAGE_REQUESTS),
  SendStreamingMessage: streamed('sendStreamingMessage', requests.SEND_MESSAGE_REQUESTS),
  GetTask: unary('getTask', requests.GET_TASK_REQUESTS),
  ListTasks: unary('listTasks', requests.LIST_TASKS_REQUESTS),
  CancelTask: unary('cancelTask', requests.CancelTaskRequestSchema),
  SubscribeToTask: streamed('subscribeToTask', requests.SubscribeToTaskRequestSchema),
  CreateTaskPushNotificationConfig: pushing(
    'createTaskPushNotificationConfig',
    push.CreateTaskPushNotificationConfigRequestSchema
  ),
  GetTaskPushNotificationConfig: pushing(
    'getTaskPushNotificationConfig',
    push.GetTaskPushNotificationConfigRequestSchema
  ),
  ListTaskPushNotificationConfigs: pushing(
    'listTaskPushNotificationConfigs',
    push.ListTaskPushNotificationConfigsRequestSchema
  ),
  DeleteTaskPushNotificationConfig: pushing(
    'deleteTaskPushNotificationConfig',
    push.DeleteTaskPushNotificationConfigRequestSchema
  ),
  GetExtendedAgentCard: {
    ...unary('getExtendedAgentCard', requests.GetExtendedAgentCardRequestSchema),
    capability: 'extendedAgentCard'
  }
} as const satisfies Readonly<Record<string, Operation>>

/** The JSON-RPC method of an operation, in PascalCase. */
export type OperationMethod = keyof typeof OPERATIONS

/** Gives the operation of a JSON-RPC method; `undefined` for any other text, including names such as `constructor`. */
export function operationOf(method: string): Operation | undefined {
  return isMethod(method) ? OPERATIONS[method] : undefined
}

function isMethod(method: string): method is OperationMethod {
  return Object.hasOwn(OPERATIONS, method)
}

function unary<Name extends keyof OperationRequests>(
  name: Name,
  request: Schema<OperationRequests[Name]> | requests.RequestSchemas<OperationRequests[Name]>
) {
  return { name, streaming: false, requests: formsOf(request) } as const
}

function streamed<Name extends keyof OperationRequests>(
  name: Name,
  request: Schema<OperationRequests[Name]> | requests.RequestSchemas<OperationRequests[Name]>
) {
  return { name, streaming: true, requests: formsOf(request), capability: 'streaming' } as const
}

function pushing<Name extends keyof OperationRequests>(name: Name, request: Schema<OperationRequests[Name]>) {
  return { ...unary(name, request), capability: 'pushNotifications' } as const
}

function formsOf<T>(request: Schema<T> | requests.RequestSchemas<T>): requests.RequestSchemas<T> {
  return 'conditional' in request ? request : { '1.0': request, conditional: request, '1.1': request }
}
