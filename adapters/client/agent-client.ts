import type { AgentCard } from '../../machines/protocol/card.ts'
import type { ListTasksResponse, SendMessageResponse, StreamResponse, Task } from '../../machines/protocol/objects.ts'
import type { OperationRequests } from '../../machines/protocol/operations.ts'
import type {
  ListTaskPushNotificationConfigsResponse,
  TaskPushNotificationConfig
} from '../../machines/protocol/push.ts'
import type { LinkState } from './retries/transport-state.ts'

/** The options of one call. */
export interface CallOptions {
  /**
   * SubscribeToTask: the events after this generation, without the task first. An agent without the reliability
   * extension may send the task instead.
   */
  readonly afterGeneration?: number | string
  /**
   * SendMessage to a task and CancelTask: only if the task has this generation, else TaskGenerationMismatch. Rejects
   * with UnsupportedOperation, and sends nothing, if the agent would ignore it: it needs A2A 1.1, or the reliability
   * extension. CancelTask needs the extension.
   */
  readonly ifGenerationMatch?: number | string
  /**
   * GetTask: wait until the task has passed this generation. The agent may answer earlier, with the task as it is.
   * Rejects like `ifGenerationMatch` if the agent would ignore it.
   */
  readonly currentGeneration?: number | string
  /** Stops waiting, or ends the stream. The task continues (§3.5.2). */
  readonly signal?: AbortSignal
  /** URIs of extensions to activate for this call, in addition to those of the connection. */
  readonly extensions?: readonly string[]
  /**
   * Service parameters of this call (§3.2.6): headers over HTTP, metadata over gRPC, members of the frame over
   * WebSocket. Names count in any case.
   */
  readonly serviceParameters?: Readonly<Record<string, string>>
}

type Unary<Name extends keyof OperationRequests, Result> = (
  params: OperationRequests[Name],
  options?: CallOptions
) => Promise<Result>

type Streaming<Name extends keyof OperationRequests> = (
  params: OperationRequests[Name],
  options?: CallOptions
) => AsyncGenerator<StreamResponse, void, undefined>

/**
 * A remote agent, with the methods of a runtime. Errors are `A2AError`s, as the agent sent them; Unauthenticated also
 * says where credentials were sent. A lost connection is restored automatically. With the reliability extension,
 * streams resume exactly and every call is retried. Without it, a stream resumes with the task's current state, and
 * only calls that are safe to repeat are retried; others fail.
 */
export interface AgentClient {
  sendMessage: Unary<'sendMessage', SendMessageResponse>
  sendStreamingMessage: Streaming<'sendStreamingMessage'>
  getTask: Unary<'getTask', Task>
  listTasks: Unary<'listTasks', ListTasksResponse>
  cancelTask: Unary<'cancelTask', Task>
  subscribeToTask: Streaming<'subscribeToTask'>
  /**
   * Registers a webhook for a task (§3.1.7), or replaces the one with its `id`. Rejects with
   * PushNotificationNotSupported if the agent has none.
   */
  createTaskPushNotificationConfig: Unary<'createTaskPushNotificationConfig', TaskPushNotificationConfig>
  getTaskPushNotificationConfig: Unary<'getTaskPushNotificationConfig', TaskPushNotificationConfig>
  listTaskPushNotificationConfigs: Unary<'listTaskPushNotificationConfigs', ListTaskPushNotificationConfigsResponse>
  /** Removes a webhook (§3.1.10). Removing it twice succeeds. */
  deleteTaskPushNotificationConfig: Unary<'deleteTaskPushNotificationConfig', void>
  /** The extended card, for authenticated callers (§3.1.11). */
  getExtendedAgentCard: (
    params?: OperationRequests['getExtendedAgentCard'],
    options?: CallOptions
  ) => Promise<AgentCard>
  /** The URL of the agent. */
  readonly url: string
  /** The binding in use: `WEBSOCKET`, `JSONRPC`, `HTTP+JSON` or `GRPC`. */
  readonly binding: string
  /** The version of A2A in use: `1.1`, `1.0` or `0.3`. */
  readonly version: string
  /** The state of the connection. Only a WebSocket lasts; `LinkState` defines the state of other bindings. */
  readonly state: LinkState
  /**
   * Calls `listener` on every change to a state: `connecting`, `open`, `lost`, or `closed`, which is final. Returns its
   * removal.
   */
  on(state: LinkState, listener: () => void): () => void
  /** Closes the connection. Pending calls and streams end with an error; tasks continue. May be called twice. */
  close(): Promise<void>
}
