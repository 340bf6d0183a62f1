import { A2AError } from '../../machines/protocol/errors.ts'
import { ListTasksResponseSchema, SendMessageResponseSchema, TaskSchema, type ListTasksResponse, type SendMessageResponse, type StreamResponse, type Task } from '../../machines/protocol/objects.ts'
import type { OperationRequests } from '../../machines/protocol/operations.ts'
import type { Schema } from '../../machines/protocol/values.ts'
import type { Conditions } from '../../runtime/call.ts'
import type { LinkState } from './client-link.ts'
import { parametersOf, validAnswer } from './client-requests.ts'
import { openCalls, type ConnectOptions } from './open-calls.ts'

/** How to make one call. */
export interface CallOptions extends Conditions {
  /** Stops waiting, or ends the stream; the task goes on (§3.5.2). */
  readonly signal?: AbortSignal
}

type Unary<Name extends keyof OperationRequests, Result> = (params: OperationRequests[Name], options?: CallOptions) => Promise<Result>
type Streaming<Name extends keyof OperationRequests> = (
  params: OperationRequests[Name],
  options?: CallOptions
) => AsyncGenerator<StreamResponse, void, undefined>

/**
 * An agent far away: the same methods as a runtime. Errors are `A2AError`s, as the agent gave them. A lost connection
 * is made again by itself: open streams go on exactly where they were, and calls are sent again where that is safe, which
 * it always is with an agent that has the reliability extension. Other calls fail, saying so.
 */
export interface AgentClient {
  sendMessage: Unary<'sendMessage', SendMessageResponse>
  sendStreamingMessage: Streaming<'sendStreamingMessage'>
  getTask: Unary<'getTask', Task>
  listTasks: Unary<'listTasks', ListTasksResponse>
  cancelTask: Unary<'cancelTask', Task>
  subscribeToTask: Streaming<'subscribeToTask'>
  /** Where the agent is. */
  readonly url: string
  /** How the connection stands. */
  readonly state: LinkState
  /** Hears when the connection comes into a state: `connecting`, `open`, `lost` or, for good, `closed`. The answer stops that. */
  on(state: LinkState, listener: () => void): () => void
  /** Closes the connection. Calls and streams under way end with an error; tasks go on. May be called twice. */
  close(): Promise<void>
}

/**
 * Connects to an agent over WebSocket. `url` is its `ws:` address, or the `http:` address of its card. Rejects with
 * Overloaded when nobody answers there, Unauthenticated or Forbidden when the agent refuses the handshake.
 */
export async function connect(url: string, options: ConnectOptions = {}): Promise<AgentClient> {
  const calls = await openCalls(url, options)
  const unary = <Result>(method: string, schema: Schema<Result>) => async (params: unknown, { signal, ...conditions }: CallOptions = {}) =>
    validAnswer(schema, await calls.call({ method, params, parameters: parametersOf(conditions) }, signal))
  const streaming = (method: string) => (params: unknown, { signal, ...conditions }: CallOptions = {}) =>
    calls.stream({ method, params, parameters: parametersOf(conditions) }, signal)
  return {
    sendMessage: unary('SendMessage', SendMessageResponseSchema),
    sendStreamingMessage: streaming('SendStreamingMessage'),
    getTask: unary('GetTask', TaskSchema),
    listTasks: unary('ListTasks', ListTasksResponseSchema),
    cancelTask: unary('CancelTask', TaskSchema),
    subscribeToTask: streaming('SubscribeToTask'),
    url: calls.url,
    get state() {
      return calls.link.state
    },
    on: (state, listener) => calls.link.on(state, listener),
    close: () => calls.link.close()
  }
}

export { A2AError }
export type { ConnectOptions, LinkState }
