import type { AgentCard } from '../../machines/protocol/card.ts'
import type { Schema } from '../../machines/protocol/codec/decode.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import {
  ListTasksResponseSchema,
  SendMessageResponseSchema,
  TaskSchema,
  type ListTasksResponse,
  type SendMessageResponse,
  type StreamResponse,
  type Task
} from '../../machines/protocol/objects.ts'
import {
  ListTaskPushNotificationConfigsResponseSchema,
  TaskPushNotificationConfigSchema,
  type ListTaskPushNotificationConfigsResponse,
  type TaskPushNotificationConfig
} from '../../machines/protocol/push.ts'
import type { CallOptions, AgentClient } from './agent-client.ts'
import { cardLimitsWith } from './card/card-limits.ts'
import { explainRefusal } from './credentials.ts'
import { openAgentConnection, withTenant } from './open-agent.ts'
import { checkConnect, type ConnectOptions } from './options.ts'
import { knownFrom, serviceParametersOf, validAnswer } from './requests.ts'
import type { LinkState } from './retries/transport-state.ts'

/**
 * Connects to an agent. A `ws:` URL connects over WebSocket. An `http:` URL is that of the agent or of its card: the
 * client fetches the card, and uses its first supported interface of A2A 1.0. Without one it uses the first of 0.3, and
 * converts the answers to 1.0. The REST binding of 1.0 and gRPC need the official client, an optional peer. An
 * interface whose peer is not installed is skipped if there is another, and so are both of these in browsers.
 *
 * Rejects with Overloaded or RateLimited if the agent is unreachable or not ready. Rejects with UnsupportedOperation,
 * which says what is missing, if no interface fits. Rejects with Forbidden if the card would send headers or
 * credentials to another origin or leads from TLS to plain text. Rejects with Unauthenticated or Forbidden if the agent
 * refuses its card, or over WebSocket the handshake; over HTTP and gRPC the first call does. For a `ws:` URL the card
 * is read if there are `credentials`, which it places.
 */
export async function connect(url: string, options: ConnectOptions = {}): Promise<AgentClient> {
  checkConnect(url, options)
  const limits = cardLimitsWith(options.cardLimits)
  const { calls, binding, tenant, options: placedOptions } = await openAgentConnection(url, options)
  const refuse = (error: unknown): never => {
    throw explainRefusal(error, placedOptions)
  }
  const frameOf = (method: string, params: object, own: Omit<CallOptions, 'signal'>) => ({
    method,
    params: withTenant(params, tenant),
    parameters: serviceParametersOf(own)
  })
  const unary =
    <Result>(method: string, schema: Schema<Result>) =>
    async (params: object, { signal, ...own }: CallOptions = {}) =>
      validAnswer(
        schema,
        await calls.call(frameOf(method, params, own), signal).catch(refuse),
        calls.url,
        knownFrom(params)
      )
  const streaming = (method: string) =>
    async function* (params: object, { signal, ...own }: CallOptions = {}) {
      try {
        yield* calls.stream(frameOf(method, params, own), signal)
      } catch (error) {
        refuse(error)
      }
    }
  return {
    sendMessage: unary('SendMessage', SendMessageResponseSchema),
    sendStreamingMessage: streaming('SendStreamingMessage'),
    getTask: unary('GetTask', TaskSchema),
    listTasks: unary('ListTasks', ListTasksResponseSchema),
    cancelTask: unary('CancelTask', TaskSchema),
    subscribeToTask: streaming('SubscribeToTask'),
    createTaskPushNotificationConfig: unary('CreateTaskPushNotificationConfig', TaskPushNotificationConfigSchema),
    getTaskPushNotificationConfig: unary('GetTaskPushNotificationConfig', TaskPushNotificationConfigSchema),
    listTaskPushNotificationConfigs: unary(
      'ListTaskPushNotificationConfigs',
      ListTaskPushNotificationConfigsResponseSchema
    ),
    deleteTaskPushNotificationConfig: async (params, { signal, ...own } = {}) =>
      void (await calls.call(frameOf('DeleteTaskPushNotificationConfig', params, own), signal).catch(refuse)),
    getExtendedAgentCard: async (params = {}, { signal, ...own } = {}) => {
      const card = await calls.call(frameOf('GetExtendedAgentCard', params, own), signal).catch(refuse)
      const { extendedCard } = await import('./card/discovery.ts')
      return extendedCard(card, calls.url, limits)
    },
    url: calls.url,
    binding,
    get state() {
      return calls.link.state
    },
    on: (state, listener) => calls.link.on(state, listener),
    close: () => calls.link.close()
  }
}

export { offerIn } from '../../machines/protocol/negotiation.ts'
export { negotiate, textOf } from './messages.ts'
export { conversation } from './state/conversation.ts'
export { foldTask } from './state/fold-task.ts'
export { questionOf } from './state/questions.ts'
export { watchTask } from './state/followed-task.ts'
export { A2AError }
export { artifactVersions } from './artifact-versions.ts'
export type { AgentClient, CallOptions } from './agent-client.ts'
export type { ArtifactVersion, ArtifactVersions } from './artifact-versions.ts'
export type { AgentInterface, AgentSkill } from '../../machines/protocol/card.ts'
export type { ErrorCode } from '../../machines/protocol/errors.ts'
export type { JsonValue } from '../../machines/protocol/codec/json.ts'
export type { Offer } from '../../machines/protocol/negotiation.ts'
export type {
  Artifact,
  TaskArtifactUpdateEvent,
  TaskStatus,
  TaskStatusUpdateEvent
} from '../../machines/protocol/objects.ts'
export type { Message, Part } from '../../machines/protocol/objects.ts'
export type { SendMessageRequest } from '../../machines/protocol/objects.ts'
export type { TaskState } from '../../machines/protocol/states.ts'
export type { Conversation, ConversationView } from './state/conversation.ts'
export type { Content, OpenQuestion, Watched } from './state/questions.ts'
export type { TaskView, WatchedTask } from './state/followed-task.ts'
export type {
  AgentCard,
  ConnectOptions,
  LinkState,
  ListTaskPushNotificationConfigsResponse,
  ListTasksResponse,
  SendMessageResponse,
  StreamResponse,
  Task,
  TaskPushNotificationConfig
}
