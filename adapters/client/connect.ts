import type { AgentCard } from '../../machines/protocol/card.ts'
import type { Schema } from '../../machines/protocol/codec/decode.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import {
  ANSWER_SCHEMAS,
  type ListTasksResponse,
  type SendMessageResponse,
  type StreamResponse,
  type Task
} from '../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../machines/protocol/operations.ts'
import {
  ListTaskPushNotificationConfigsResponseSchema,
  TaskPushNotificationConfigSchema,
  type ListTaskPushNotificationConfigsResponse,
  type TaskPushNotificationConfig
} from '../../machines/protocol/push.ts'
import type { NativeVersion } from '../../machines/protocol/versions.ts'
import type { CallOptions, AgentClient } from './agent-client.ts'
import { cardLimitsWith } from './card/card-limits.ts'
import type { ConditionalParams } from './conditions.ts'
import { explainRefusal } from './credentials.ts'
import { CurrentAgent, type OpenAgent, openAgentConnection, withTenant } from './open-agent.ts'
import { checkConnect, type ConnectOptions } from './options.ts'
import {
  type ParameterOptions,
  knownFrom,
  serviceParametersOf,
  StreamProgress,
  tenantOf,
  validAnswer
} from './requests.ts'
import type { LinkState } from './retries/transport-state.ts'

/**
 * Connects to an agent. A `ws:` URL connects over WebSocket. An `http:` URL is that of the agent or of its card: the
 * client fetches the card, and uses its first supported interface of A2A 1.1, else of 1.0. Without one it uses the
 * first of 0.3, and converts the answers to 1.0. If the agent refuses the version, the next interface is used; if it
 * took that version before, its card is read again. Streams go on there. gRPC needs the official client, an optional
 * peer. An interface whose peer is not installed is skipped if there is another, and so is gRPC in browsers.
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
  const current = new CurrentAgent(await openAgentConnection(url, options))
  const frameOf = (method: OperationMethod, given: object, own: ParameterOptions, { calls, tenant }: OpenAgent) => {
    const params = withTenant(given, tenant)
    return hasConditions(params, own)
      ? import('./conditions.ts').then(({ conditionalFrame }) => conditionalFrame({ method, params }, own, calls))
      : { method, params, parameters: serviceParametersOf(own) }
  }
  const call = (method: OperationMethod, params: object, { signal, ...own }: CallOptions = {}) =>
    current.call(async agent => {
      const { calls } = agent
      const frame = frameOf(method, params, own, agent)
      const answer = await calls.call(frame instanceof Promise ? await frame : frame, signal).catch(error => {
        throw explainRefusal(error, agent.options)
      })
      return { answer, calls }
    })
  const unary =
    <Result extends object>(method: OperationMethod, schemaIn: (version: NativeVersion) => Schema<Result>) =>
    async (params: object, options?: CallOptions) => {
      const { answer, calls } = await call(method, params, options)
      const result = validAnswer(schemaIn(calls.generations.version), answer, calls.url, knownFrom(params))
      calls.generations.note(result)
      return result
    }
  const streaming =
    (method: OperationMethod) =>
    (params: object, { signal, ...own }: CallOptions = {}) =>
      current.stream(new StreamProgress(method === 'SendStreamingMessage'), async function* (agent, progress) {
        try {
          const frame =
            progress.taskId === undefined
              ? frameOf(method, params, own, agent)
              : frameOf(...continuation(params, own, progress), agent)
          yield* agent.calls.stream({ ...(await frame), progress }, signal)
        } catch (error) {
          throw explainRefusal(error, agent.options)
        }
      })
  return {
    sendMessage: unary('SendMessage', version => ANSWER_SCHEMAS[version].sendMessage),
    sendStreamingMessage: streaming('SendStreamingMessage'),
    getTask: unary('GetTask', version => ANSWER_SCHEMAS[version].task),
    listTasks: unary('ListTasks', version => ANSWER_SCHEMAS[version].listTasks),
    cancelTask: unary('CancelTask', version => ANSWER_SCHEMAS[version].task),
    subscribeToTask: streaming('SubscribeToTask'),
    createTaskPushNotificationConfig: unary('CreateTaskPushNotificationConfig', () => TaskPushNotificationConfigSchema),
    getTaskPushNotificationConfig: unary('GetTaskPushNotificationConfig', () => TaskPushNotificationConfigSchema),
    listTaskPushNotificationConfigs: unary(
      'ListTaskPushNotificationConfigs',
      () => ListTaskPushNotificationConfigsResponseSchema
    ),
    deleteTaskPushNotificationConfig: async (params, options) =>
      void (await call('DeleteTaskPushNotificationConfig', params, options)),
    getExtendedAgentCard: async (params = {}, options) => {
      const { answer, calls } = await call('GetExtendedAgentCard', params, options)
      const { extendedCard } = await import('./card/discovery.ts')
      return extendedCard(answer, calls.url, limits)
    },
    get url() {
      return current.agent.calls.url
    },
    get binding() {
      return current.agent.binding
    },
    get version() {
      return current.agent.version
    },
    get state() {
      return current.agent.calls.link.state
    },
    on: (state, listener) => current.on(state, listener),
    close: () => current.close()
  }
}

/** The method, params and options of the request that continues a stream where its reader is. */
function continuation(
  params: object,
  { extensions, serviceParameters }: ParameterOptions,
  { taskId: id, cursor: afterGeneration }: StreamProgress
): [method: OperationMethod, params: object, own: ParameterOptions] {
  const lasting = { ...(extensions && { extensions }), ...(serviceParameters && { serviceParameters }) }
  const own = afterGeneration === undefined ? lasting : { ...lasting, afterGeneration }
  return ['SubscribeToTask', { ...tenantOf(params), id }, own]
}

/** Whether a call has conditions, as options or as members of its request. What places them is loaded then. */
function hasConditions(
  { currentGeneration: awaited, configuration }: ConditionalParams,
  { currentGeneration = awaited, ifGenerationMatch = configuration?.ifGenerationMatch }: ParameterOptions
): boolean {
  return (currentGeneration ?? ifGenerationMatch) !== undefined
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
  Message,
  Part,
  SendMessageRequest,
  TaskArtifactUpdateEvent,
  TaskStatus,
  TaskStatusUpdateEvent
} from '../../machines/protocol/objects.ts'
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
