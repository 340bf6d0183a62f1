import { setup, type ActionFunction, type DelayConfig, type EventObject, type MachineContext, type ParameterizedObject, type SetupReturn, type UnknownActorLogic } from 'xstate'
import type { GuardPredicate } from 'xstate/guards'
import type { Message } from '../../machines/protocol/parts.ts'
import type { RequestDetails } from '../../machines/protocol/requests.ts'
import type { StandardSchema } from '../ports/standard-schema.ts'
import type { Failed, Rejected, Words, WorkResult, WorkWords } from './words.ts'
import type { WorkInput } from './work-arguments.ts'

/** The tags of a work chart's states that drive the task's life cycle. */
export type WorkTag = 'input-required' | 'auth-required' | 'failed' | 'rejected'

/** Words in a state's `meta`: themselves, or a function of the chart's context. */
export type WordsOf<Context> = Words | ((args: { context: Context }) => Words)

/** What a state says: `prompt` while it is tagged input-required or auth-required, `reason` at an end tagged failed or rejected. */
export interface WorkMeta<Context = MachineContext> {
  readonly prompt?: WordsOf<Context>
  /**
   * What an answer to the prompt has to be: the client's message while the state is tagged input-required, what comes out of
   * band while it is tagged auth-required. What the schema does not take is refused before the chart hears of it; what it
   * takes comes with `answer`, and `answerOf(event, schema)` reads it with its type.
   */
  readonly schema?: StandardSchema<unknown>
  /** What the client is shown of the schema, as JSON Schema of 16 KiB at the most. Default: what the schema's library gives. */
  readonly jsonSchema?: Record<string, unknown>
  readonly reason?: WordsOf<Context>
}

/** What every work chart may hear: a client's message, while the task is interrupted, or while it works if the agent's messages are steered. */
export interface MessageReceived {
  readonly type: 'message.received'
  readonly message: Message
  /** The metadata and configuration of the message's request. Left out if the request has neither. */
  readonly request?: RequestDetails
  /** What the schema of the state's question makes of the message, if it has one. */
  readonly answer?: unknown
}

/** What a work chart hears while it is tagged auth-required, when the authorization has arrived out of band (`runtime.authorized`): name it among the chart's `events`. */
export interface AuthorizationReceived {
  readonly type: 'authorization.received'
  readonly data: unknown
  /** What the schema of the state's question makes of the data, if it has one. */
  readonly answer?: unknown
}

// What `setup` takes for no actors, actions or guards.
// oxlint-disable-next-line typescript/no-generated-empty-object-type
type None = Record<never, never>
type Params = Record<string, ParameterizedObject['params'] | undefined>
type Parameterized<T extends Params> = { [K in keyof T & string]: { type: K; params: T[K] } }[keyof T & string]
type Provided<T extends Record<string, UnknownActorLogic>> = { [K in keyof T & string]: { src: K; logic: T[K]; id: string | undefined } }[keyof T & string]

/**
 * A type where XState wants a value: `types: { context: typed<Order>() }`, or, of what a schema gives, `typed(schema)`. It is
 * never looked at.
 */
export function typed<T>(_schema?: StandardSchema<T>): T {
  return undefined as T
}

/** XState's `setup` for work: its input, answers, words, tags, `meta` and output are typed already. */
export function setupWork<
  Context extends MachineContext = None,
  Actors extends Record<string, UnknownActorLogic> = None,
  Actions extends Params = None,
  Guards extends Params = None,
  Delay extends string = never,
  Event extends EventObject = never,
  Input = unknown
>(options: {
  /**
   * Types only: the chart's `context`, `events` that its own actors send to it, or AuthorizationReceived, and the `input` that
   * its agent's schema gives: `{ context: typed<Order>(), input: typed(order) }`.
   */
  types?: { context?: Context; events?: Event; input?: Input }
  actors?: { [K in keyof Actors]: Actors[K] }
  actions?: {
    [K in keyof Actions]: ActionFunction<
      Context, MessageReceived | Event, MessageReceived | Event, Actions[K],
      Provided<Actors>, Parameterized<Actions>, Parameterized<Guards>, Delay, WorkWords
    >
  }
  guards?: { [K in keyof Guards]: GuardPredicate<Context, MessageReceived | Event, Guards[K], Parameterized<Guards>> }
  delays?: { [K in Delay]: DelayConfig<Context, MessageReceived | Event, Parameterized<Actions>['params'], MessageReceived | Event> }
}): SetupReturn<
  Context, MessageReceived | Event, Actors, None, Actions, Guards, Delay,
  WorkTag, WorkInput<Input>, WorkResult | Rejected | Failed | undefined, WorkWords, WorkMeta<Context>
> {
  return setup(options as never) as never
}
