import type { AgentInterface } from '../../machines/protocol/card.ts'
import type { Message } from '../../machines/protocol/objects.ts'
import type { OperationName, StreamingName } from '../../machines/protocol/operations.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import type { Scope } from '../store/rows.ts'
import type { TraceCarrier } from '../telemetry/telemetry.ts'
import type { Caller } from './authentication.ts'

/** The target of a client's key: the task of its newest message, or the answer without a task. */
export type KeyTarget =
  | { readonly taskId: string; readonly contextId: string; readonly state: TaskState }
  | { readonly reply: Message; readonly contextId: string }

/**
 * A client's own key for a task. Each caller has keys of its own. A key is stored in the commit of each message with
 * it, and refers to what the newest of them reached. It stays until it expires, or its context is erased. The id of a
 * task is the key of that task, and is not stored. Messages with one key are processed one at a time.
 */
export interface ClientKey {
  readonly name: string
  /** How long the key is stored after its last message, in milliseconds. */
  readonly storedMs: number
  /**
   * Gives the address of the message. Called again if the message is refused: it is sent again if its address is
   * another one then.
   */
  readonly address: (
    target: KeyTarget | undefined
  ) => Partial<Pick<Message, 'taskId' | 'contextId' | 'referenceTaskIds'>>
}

/**
 * A client's key whose target is to be canceled. If that is an answer without a task, `message` opens a task that is
 * canceled at once, and that ends the negotiation.
 */
export interface KeyToCancel extends Pick<ClientKey, 'name' | 'storedMs'> {
  readonly message: Message
}

/** The principal of all unauthenticated callers. */
export const ANONYMOUS = 'anonymous'

/** Caller and parameters of a call. Adapters fill it in after authentication. */
export interface CallContext {
  /** Id of the caller's principal. Default `anonymous`. */
  readonly principal?: string | undefined
  /** Claims of the caller's credentials. Default none. */
  readonly claims?: Readonly<Record<string, unknown>> | undefined
  /**
   * Identifies the call's connection: the same object for all of its calls. Live contexts of anonymous callers are
   * counted by it. Default none, for calls in process, which have only the total limit.
   */
  readonly connection?: object | undefined
  /** The agent's interfaces on the caller's server, for GetExtendedAgentCard. Default none, for calls in process. */
  readonly interfaces?: readonly AgentInterface[] | undefined
  /** Bytes of the request on the wire, for the quotas. Default 0, for calls in process. */
  readonly bytes?: number
  /** The tenant of the URL's path, if the binding has one. It must equal the tenant of the request. */
  readonly tenant?: string | undefined
  /**
   * `A2A-Version` as the client sent it; empty or missing means 0.3 on the wire (§3.6.2). Default 1.0, for calls in
   * process. 1.1 if the runtime speaks it.
   */
  readonly version?: string
  /**
   * The client's older version of A2A, if its request was translated; its webhooks get that version. Default `version`.
   */
  readonly dialect?: string | undefined
  /** URIs of the extensions that the client requested (`A2A-Extensions`); unsupported ones are ignored (§4.6.3). */
  readonly extensions?: readonly string[]
  /** Conditions of the reliability extension. Ignored unless that extension is in `extensions`. */
  readonly conditions?: Conditions
  /** SendMessage: the client's own key for the task, for adapters whose clients give ids to tasks. */
  readonly key?: ClientKey | undefined
  /** CancelTask: cancels the target of this key, if it has one, once messages with the key have their outcome. */
  readonly keyToCancel?: KeyToCancel | undefined
  /** Called with the generation of each event of a stream, just before the stream gives it. */
  readonly onGeneration?: ((generation: number) => void) | undefined
  /** Called before a large answer, or a large first item of a stream, is read. Default: no wait. */
  readonly budget?: Budget | undefined
  /** Ends the wait and the stream; never the task (§3.5.2). */
  readonly signal?: AbortSignal | undefined
  /** Trace context of the call. Default: the active one. Ignored if the runtime does not trace. */
  readonly trace?: TraceCarrier | undefined
  /** The call's binding, such as `WEBSOCKET`; only for the trace. */
  readonly binding?: string | undefined
}

/** A generation that a client names: a number, or decimal text, which above 2^53 - 1 it has to be. */
export type NamedGeneration = number | string

/** Conditions of the reliability extension. Each is a generation: a whole number from 0, or its decimal text. */
export interface Conditions {
  /** SubscribeToTask: stream the events after this generation, without the task first. The task may have ended. */
  readonly afterGeneration?: NamedGeneration
  /** SendMessage to a task and CancelTask: only if the task has this generation. */
  readonly ifGenerationMatch?: NamedGeneration
  /** GetTask: wait until the task has passed this generation, for `limits.longPollMs` at most. */
  readonly currentGeneration?: NamedGeneration
}

/** The caller, for the author's functions. */
export function callerOf({ principal, tenant }: Scope, { claims = {} }: CallContext): Caller {
  return { principal, claims, tenant }
}

/** Resolves when there is memory for a large answer of about this many bytes; `undefined` if there is now. */
export type Budget = (bytes: number) => Promise<void> | undefined

/** Why there is no card: the request's Host header cannot be trusted, and nothing else says where the agent is. */
export const NO_ADDRESS =
  'The agent does not know its own URL, which its card needs. Its operator has to set publicUrl or hosts of createRuntime, or url of httpHandler.'

/** The parts of a call that say against which quotas it counts. */
export type RejectedCall = Pick<CallContext, 'principal' | 'tenant' | 'claims' | 'bytes'>

/**
 * The operations of a runtime as bindings call them: with JSON that no schema has seen, because each operation checks
 * its own.
 */
export type UncheckedOperations = { readonly [Name in Exclude<OperationName, StreamingName>]: UncheckedCall } & {
  readonly [Name in StreamingName]: UncheckedStream
}

/** Declared as a method, so that an operation with its own type of parameters is one. */
export type UncheckedCall = { call(params: unknown, call?: CallContext): Promise<unknown> }['call']

export type UncheckedStream = {
  call(params: unknown, call?: CallContext): AsyncGenerator<object, void, undefined>
}['call']
