import type { AgentInterface } from '../../machines/protocol/card.ts'
import type { Scope } from '../store/store.ts'
import type { TraceCarrier } from '../telemetry/telemetry.ts'
import type { Caller } from './authentication.ts'

/** A client's own name for a task. It is its own alone: what another client calls so is another task. */
export interface TaskName {
  readonly name: string
  /** Hears which task of this name has ended, where the message begins anew after it. */
  readonly continuesAfter?: (taskId: string) => void
}

/** The principal of all callers that are not known. */
export const ANONYMOUS = 'anonymous'

/** Under whose name and on what terms an operation is called. Adapters fill it in from what they authenticated. */
export interface CallContext {
  /** Who calls. Default `anonymous`. */
  readonly principal?: string
  /** What the credentials say of who calls. Default nothing. */
  readonly claims?: Readonly<Record<string, unknown>> | undefined
  /**
   * Stands for the connection over which the call came: the same object for all of its calls. The live contexts of callers
   * without a principal are counted by it. Default none, for calls in process: they may use the whole.
   */
  readonly connection?: object | undefined
  /** Where the caller's server offers the agent: what GetExtendedAgentCard lists. Default nowhere, for calls in process. */
  readonly interfaces?: readonly AgentInterface[] | undefined
  /** How many bytes the request had on the wire, for the quotas. Default none, for calls in process. */
  readonly bytes?: number
  /** The tenant of the path, if the binding has one there; it has to agree with that of the request. */
  readonly tenant?: string
  /** `A2A-Version` as the client gave it; empty or missing means 0.3 on the wire (§3.6.2). Default 1.0, for calls in process. */
  readonly version?: string
  /** The older version that the client speaks, if what it sends was translated: in that its webhooks are told. Default 1.0. */
  readonly dialect?: string | undefined
  /** URIs of the extensions that the client asked for (`A2A-Extensions`); those not supported are ignored (§4.6.3). */
  readonly extensions?: readonly string[]
  /** What the reliability extension adds to a call. Counts only if that extension is among `extensions`. */
  readonly conditions?: Conditions
  /** SendMessage: the client's own name for the task, of which the message then says no taskId. For versions of A2A whose clients name tasks. */
  readonly taskName?: TaskName | undefined
  /** Hears the generation of each event of a stream, just before the stream gives that. */
  readonly numbered?: ((generation: number) => void) | undefined
  /** Called when the answer, or what a stream begins with, is large, before it is read. Default: there is room at once. */
  readonly room?: Room | undefined
  /** Ends the waiting and the stream; never the task (§3.5.2). */
  readonly signal?: AbortSignal | undefined
  /** The trace that the call belongs to. Default: that within which it is called. Counts only where the runtime traces. */
  readonly trace?: TraceCarrier | undefined
  /** The binding over which the call came, such as `WEBSOCKET`: for the trace alone. */
  readonly binding?: string | undefined
}

/** Terms of the reliability extension. Each is a generation: a whole number from 0. */
export interface Conditions {
  /** SubscribeToTask: no task first, only what came after this generation; the task may have ended. */
  readonly afterGeneration?: number
  /** SendMessage to a task and CancelTask: only while the task has this generation. */
  readonly ifGenerationMatch?: number
  /** GetTask: answer when the task has passed this generation, or after a while as it is. */
  readonly currentGeneration?: number
}

/** Whose data a call is about: what its parameters say, else its address. */
export function scopeOf({ tenant }: { readonly tenant?: string | undefined }, call: CallContext): Scope {
  return { tenant: tenant ?? call.tenant ?? '', principal: call.principal ?? ANONYMOUS }
}

/** Who calls, for functions of the author's. */
export function callerOf({ principal, tenant }: Scope, { claims = {} }: CallContext): Caller {
  return { principal, claims, tenant }
}

/** Resolves when there is room for a large answer of about so many bytes; nothing to wait for if there is now. */
export type Room = (bytes: number) => Promise<void> | undefined
