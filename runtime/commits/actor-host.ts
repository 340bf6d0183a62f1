import type { AnyActorRef } from 'xstate'
import type { ContextMachineEvent } from '../../machines/context.machine.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import type { TaskFact } from '../../machines/task-events.ts'
import type { Limits } from '../access/limits.ts'
import type { ReadOpened, WorkInput } from '../authoring/work-arguments.ts'
import type { Clock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import { PrivateProperty } from '../primitives/private-property.ts'
import type { ContextKey, JournalRow, TaskEvent } from '../store/store.ts'
import type { TraceCarrier } from '../telemetry/telemetry.ts'
import type { Effect } from './turn.ts'

/** Traces what an agent does to answer a message. */
export interface NegotiationTraces {
  /** Runs the negotiation of a message within a span of its own. */
  negotiated<T>(parent: TraceCarrier | undefined, negotiate: () => T | Promise<T>): Promise<T>
}

/**
 * What the actors of a context find behind their chart: the live context that they belong to. Logic is made once for
 * all contexts, so it asks {@link hostOf} for the host of the system in which it runs.
 */
export interface ActorHost {
  readonly key: ContextKey
  readonly logger: Logger
  readonly clock: Clock
  readonly limits: Pick<Limits, 'negotiationMs'>
  /** The spans of works; none where nothing is traced. */
  readonly traces?: NegotiationTraces | undefined
  /** Counts the turns that changed something; the same for all that happens in one turn. */
  readonly turnNumber: number
  /** Tells observers that the code of a task gets control. */
  runs(taskId: string): void
  /** Sends an event to the context's actor. */
  send(event: ContextMachineEvent): void
  /** Whether a task waits for its client, as it has told last. */
  isInterrupted(taskId: string): boolean
  /** Whether somebody waits for what becomes of a request. Nobody does once the context has been in the store meanwhile. */
  isAwaited(callId: string): boolean
  /** Takes a fact that a task tells into the turn. */
  noteTaskFact(taskId: string, fact: TaskFact): void
  /** Notes that an actor of a task moved, so that the task is saved with the turn. */
  noteMove(taskId: string): void
  /** Starts an effect when everything decided until now is committed; at once when the context is over. */
  afterCommit(effect: Effect): void
  /** Resolves when the store takes commits again, if it has refused the newest; nothing to wait for otherwise. Never rejects. */
  writable(taskId: string): Promise<void> | undefined
  /** Reads the input of a task's work from the store: with `open` the rest of the opening call, once the size of its journal is checked. */
  workInput(taskId: string, open?: ReadOpened): Promise<WorkInput>
  /** A task as it is committed. Rejects with TaskNotFound if it has been erased. */
  readTask(taskId: string): Promise<Task>
  /**
   * Waits until a task of the caller's has completed that another one needs, in whatever context it is. Rejects if it never
   * will, with the reason for the client; throws TypeError if it is the same task.
   */
  completedTask(taskId: string, neededBy: string, signal: AbortSignal): Promise<Task>
  /** What a task's work has kept so far. */
  readJournal(taskId: string): Promise<JournalRow[]>
  /** A task's events so far, oldest first. */
  readEvents(taskId: string): Promise<TaskEvent[]>
  /** Puts a row into the journal of a task, with the turn. */
  keep(row: JournalRow): void
  /** The context's newest messages, oldest first; 50 unless told. */
  readMessages(limit?: number): Promise<Message[]>
  /** The context's newest messages before the one that opened a task, oldest first; 50 unless told. */
  readHistory(taskId: string, limit?: number): Promise<Message[]>
  /**
   * Has `ring` called once when the clock reaches `dueMs` (milliseconds since 1970): as soon as possible if that is over,
   * but never within this call. Takes the place of the task's alarm of the same name. The time is saved with the task,
   * which is in memory by then; after a restore whoever set the alarm sets it again. A task that has ended, and a context
   * that leaves memory, have no alarms.
   */
  setAlarm(taskId: string, name: string, dueMs: number, ring: () => void): void
  /** Takes an alarm back; one that has rung, or never was, is none. */
  clearAlarm(taskId: string, name: string): void
  /** True from the moment the context leaves memory: its actors stop, and their tasks go on when it is back. */
  readonly isLeaving: boolean
  /** Has the work of a task started again because of an error in the author's code, or the task fail, as its restart policy says. */
  crash(taskId: string, error: unknown): void
  /** Ends a task as failed, because it cannot go on. */
  failTask(taskId: string, error: unknown): void
  /** Waits until the work of a task that has ended has cleaned up, for its grace period at the most. */
  cleansUp(taskId: string, settled: Promise<unknown>): void
}

type AnyActorSystem = AnyActorRef['system']

/** The same for all copies of this package in the process, since an agent that is loaded as TypeScript has one of its own. */
const hosts = new PrivateProperty<AnyActorSystem, ActorHost>(Symbol.for('taskchart.host.1'))

/** Makes `host` the host of a context's actors. */
export function hostActors(system: AnyActorSystem, host: ActorHost): void {
  hosts.set(system, host)
}

/** The host of the system in which an actor runs. */
export function hostOf(system: AnyActorSystem): ActorHost {
  const host = hosts.get(system)
  if (!host) throw new TypeError('This logic runs only in a context of a taskchart runtime.')
  return host
}

/** The ids that lead to an actor, from the context's child to itself; none for the context. */
export function pathOf(actor: AnyActorRef): string[] {
  const path: string[] = []
  for (let member = actor; member._parent; member = member._parent) path.unshift(member.id)
  return path
}

/** The id of the context's child, a task or a negotiation, that an actor belongs to. */
export function familyOf(actor: AnyActorRef): string {
  let member = actor
  while (member._parent?._parent) member = member._parent
  return member.id
}

/**
 * Whether something runs in an actor or below it, which would be lost if it left memory: logic that is no machine, has not
 * ended, and does not say by `isWaiting: true` in its snapshot that it only waits for a message or an alarm.
 */
export function hasRunningLogic(actor: AnyActorRef): boolean {
  const { status, children, isWaiting } = actor.getSnapshot() as { status: string; children?: Record<string, AnyActorRef>; isWaiting?: boolean }
  if (status !== 'active') return false
  return children ? Object.values(children).some(hasRunningLogic) : isWaiting !== true
}
