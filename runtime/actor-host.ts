import type { AnyActorRef } from 'xstate'
import type { Message } from '../machines/protocol/parts.ts'
import type { TaskFact } from '../machines/task.machine.ts'
import type { Logger } from './logger.ts'
import type { ContextKey } from './store.ts'
import type { Effect } from './turn.ts'
import type { WorkInput } from './work-input.ts'

/**
 * What the actors of a context find behind their chart: the live context that they belong to. Logic is made once for
 * all contexts, so it asks {@link hostOf} for the host of the system in which it runs.
 */
export interface ActorHost {
  readonly key: ContextKey
  readonly logger: Logger
  /** Takes a fact that a task tells into the turn. */
  noteTaskFact(taskId: string, fact: TaskFact): void
  /** Notes that an actor of a task moved, so that the task is saved with the turn. */
  noteMove(taskId: string): void
  /** Starts an effect when everything decided until now is committed; at once when the context is over. */
  afterCommit(effect: Effect): void
  /** What a task's work is given, read again from the store. */
  workInput(taskId: string): Promise<WorkInput>
  /** The context's newest messages, oldest first; 50 unless told. */
  readMessages(limit?: number): Promise<Message[]>
  /** Ends a task as failed because of an error in the author's code. */
  failTask(taskId: string, error: unknown): void
}

type AnyActorSystem = AnyActorRef['system']

/** Where a system keeps its host: a WeakMap of all systems costs more to collect. */
const HOST = Symbol('The host of the actors of a taskchart context')

/** Makes `host` the host of a context's actors. */
export function hostActors(system: AnyActorSystem, host: ActorHost): void {
  Object.assign(system, { [HOST]: host })
}

/** The host of the system in which an actor runs. */
export function hostOf(system: AnyActorSystem): ActorHost {
  const { [HOST]: host } = system as AnyActorSystem & { [HOST]?: ActorHost }
  if (!host) throw new TypeError('This logic runs only in a context of a taskchart runtime.')
  return host
}

/** The id of the context's child, a task or a negotiation, that an actor belongs to. */
export function familyOf(actor: AnyActorRef): string {
  let member = actor
  while (member._parent?._parent) member = member._parent
  return member.id
}
