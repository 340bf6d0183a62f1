import { AgentCardSchema, type AgentCard } from '../../machines/protocol/card.ts'
import type { Schema } from '../../machines/protocol/codec/values.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { ListTasksResponseSchema, SendMessageResponseSchema, TaskSchema, type ListTasksResponse, type SendMessageResponse, type StreamResponse, type Task } from '../../machines/protocol/objects.ts'
import type { OperationRequests } from '../../machines/protocol/operations.ts'
import type { Conditions } from '../../runtime/access/call-context.ts'
import { cardLimitsWith, checkCardSize, type CardLimits } from './card/card-limits.ts'
import { openAgent } from './open-agent.ts'
import { checkConnect, type ConnectOptions } from './options.ts'
import { parametersOf, validAnswer } from './requests.ts'
import type { LinkState } from './retries/transport-state.ts'
import { withTenant } from './tenant.ts'

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
 * it always is with an agent that has the reliability extension. Other calls fail, saying so. Streams of agents without
 * the extension go on with the task as it is by then.
 */
export interface AgentClient {
  sendMessage: Unary<'sendMessage', SendMessageResponse>
  sendStreamingMessage: Streaming<'sendStreamingMessage'>
  getTask: Unary<'getTask', Task>
  listTasks: Unary<'listTasks', ListTasksResponse>
  cancelTask: Unary<'cancelTask', Task>
  subscribeToTask: Streaming<'subscribeToTask'>
  /** The card that the agent shows to callers that it knows (§3.1.11). */
  getExtendedAgentCard: (params?: OperationRequests['getExtendedAgentCard'], options?: CallOptions) => Promise<AgentCard>
  /** Where the agent is. */
  readonly url: string
  /** What it is spoken to by: `WEBSOCKET`, `JSONRPC`, `HTTP+JSON` or `GRPC`. */
  readonly binding: string
  /** How the connection stands. Only a WebSocket is one for long; `LinkState` says what stands for it elsewhere. */
  readonly state: LinkState
  /** Hears when the connection comes into a state: `connecting`, `open`, `lost` or, for good, `closed`. The answer stops that. */
  on(state: LinkState, listener: () => void): () => void
  /** Closes the connection. Calls and streams under way end with an error; tasks go on. May be called twice. */
  close(): Promise<void>
}

/**
 * Connects to an agent: over WebSocket if `url` is a `ws:` address, else as its card says, which is asked for at the
 * `http:` address of the agent or of the card itself. Of the interfaces there the first is taken that is of A2A 1.0 and
 * that this client can speak; if there is none, the first of 0.3, whose answers come in the form of 1.0. The REST of 1.0 and gRPC
 * need the official client, an optional peer; an interface whose peer is not installed is passed over if there is another.
 *
 * Rejects with Overloaded or RateLimited when nobody answers there or the agent is not ready, UnsupportedOperation when no interface fits, which says what is
 * missing, Forbidden when the card would send headers to another origin, or leads from TLS to none; over WebSocket with Unauthenticated or Forbidden
 * when the agent refuses the handshake. Over HTTP and gRPC the first call tells that.
 */
export async function connect(url: string, options: ConnectOptions = {}): Promise<AgentClient> {
  checkConnect(url, options)
  const limits = cardLimitsWith(options.cardLimits)
  const { calls, binding, tenant } = await openAgent(url, options)
  const frameOf = (method: string, params: object, conditions: Conditions) => ({ method, params: withTenant(params, tenant), parameters: parametersOf(conditions) })
  const unary = <Result>(method: string, schema: Schema<Result>) => async (params: object, { signal, ...conditions }: CallOptions = {}) =>
    validAnswer(schema, await calls.call(frameOf(method, params, conditions), signal))
  const streaming = (method: string) => async function* (params: object, { signal, ...conditions }: CallOptions = {}) {
    yield* calls.stream(frameOf(method, params, conditions), signal)
  }
  const getExtendedAgentCard = unary('GetExtendedAgentCard', AgentCardSchema)
  return {
    sendMessage: unary('SendMessage', SendMessageResponseSchema),
    sendStreamingMessage: streaming('SendStreamingMessage'),
    getTask: unary('GetTask', TaskSchema),
    listTasks: unary('ListTasks', ListTasksResponseSchema),
    cancelTask: unary('CancelTask', TaskSchema),
    subscribeToTask: streaming('SubscribeToTask'),
    getExtendedAgentCard: async (params = {}, options) => {
      const card = await getExtendedAgentCard(params, options)
      checkCardSize(card, calls.url, limits)
      return card
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
export { acceptOffer, declineOffer, proposeTerms } from './offers.ts'
export { A2AError }
export { artifactVersions } from './artifact-versions.ts'
export type { ArtifactVersion, ArtifactVersions, VersionReference } from './artifact-versions.ts'
export { answerSchemaOf } from './answer-schema.ts'
export type { Offer } from '../../machines/protocol/negotiation.ts'
export type { CardLimits, ConnectOptions, LinkState }
