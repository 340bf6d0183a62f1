import type { AnyActorRef } from 'xstate'
import type { ContextFact, ContextMachineEvent } from '../../machines/context.machine.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import type { TaskFact } from '../../machines/task-events.ts'
import type { Limits } from '../access/limits.ts'
import type { ReadOpeningDetails, WorkInput } from '../authoring/work-arguments.ts'
import type { Clock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import { PrivateProperty } from '../primitives/collections.ts'
import type { ContextKey, JournalRow, TaskEvent } from '../store/store.ts'
import type { TraceCarrier } from '../telemetry/telemetry.ts'
import type { Effect } from './turn.ts'

/** Traces negotiations. */
export interface NegotiationTraces {
  /** Runs the negotiation of a message within its own span. */
  negotiated<T>(parent: TraceCarrier | undefined, negotiate: () => T | Promise<T>): Promise<T>
}

/** A delay or the life of an actor that is shorter counts as hasty, in milliseconds: see `limits.hastyTurns`. */
export const HASTY_MS = 10

/**
 * The live context, as its actors use it. Actor logic is shared by all contexts, so it gets the host of its actor
 * system from {@link hostOf}.
 */
export interface ActorHost {
  readonly key: ContextKey
  readonly logger: Logger
  readonly clock: Clock
  readonly limits: Pick<Limits, 'negotiationMs'>
  /** Spans of work; `undefined` without tracing. */
  readonly traces?: NegotiationTraces | undefined
  /** Number of the context's commits; constant within a turn. */
  readonly turnNumber: number
  /** Tells observers that the author's code of a task runs next. */
  noteRun(taskId: string): void
  /** Sends an event to the context's actor. */
  send(event: ContextMachineEvent): void
  /** Whether a task's newest state is an interrupted one. */
  isInterrupted(taskId: string): boolean
  /** Whether a call waits for the outcome of a request. None does after the context has been restored. */
  isAwaited(callId: string): boolean
  /** Handles an event that the context's actor emits. */
  noteContextFact(fact: ContextFact): void
  /** Adds an event that a task emits to the turn. */
  noteTaskFact(taskId: string, fact: TaskFact): void
  /** The bytes of a task so far: its events and messages. */
  bytesOf(taskId: string): number
  /** Marks a task as changed, so that the turn saves it. */
  markChanged(taskId: string): void
  /**
   * Notes that something in a chart ended at once, or that an event of its own came at once: see `limits.hastyTurns`.
   */
  noteHaste(taskId: string): void
  /** Runs an effect when everything decided so far is committed; at once if the context has stopped. */
  afterCommit(effect: Effect): void
  /**
   * If the store refused the newest commit, resolves when it accepts commits again; else `undefined`. Never rejects.
   */
  writable(taskId: string): Promise<void> | undefined
  /**
   * Loads the input of a task's work. `open` reads extensions and request details, after the size of the journal is
   * checked.
   */
  workInput(taskId: string, open?: ReadOpeningDetails): Promise<WorkInput>
  /** A task as it is committed. Rejects with TaskNotFound if it has been erased. */
  readTask(taskId: string): Promise<Task>
  /**
   * Waits until another task of the same caller, in any context, has completed. Rejects with the reason if it cannot
   * complete; throws TypeError for the task itself.
   */
  completedTask(taskId: string, neededBy: string, signal: AbortSignal): Promise<Task>
  /** A task's journal so far. */
  readJournal(taskId: string): Promise<JournalRow[]>
  /** A task's events so far, oldest first. */
  readEvents(taskId: string): Promise<TaskEvent[]>
  /** Adds a row to the journal of a task, in the turn. */
  keep(row: JournalRow): void
  /** The context's newest messages, oldest first; by default 50. */
  readMessages(limit?: number): Promise<Message[]>
  /** The context's newest messages before the one that opened a task, oldest first; by default 50. */
  readHistory(taskId: string, limit?: number): Promise<Message[]>
  /**
   * Calls `ring` once when the clock reaches `dueMs` (milliseconds since 1970). If that is past, calls it as soon as
   * possible, but not within this call. Replaces the task's alarm of the same name. The context is in memory by then;
   * after a restore the caller has to set the alarm again. Alarms are dropped when their task ends or the context
   * leaves memory.
   */
  setAlarm(taskId: string, name: string, dueMs: number, ring: () => void): void
  /** Removes an alarm, if there is one. */
  clearAlarm(taskId: string, name: string): void
  /** True as soon as the context leaves memory: its actors stop, and its tasks resume when it is restored. */
  readonly isLeaving: boolean
  /** Reports an error of the author's code. The restart policy decides whether the work restarts or the task fails. */
  crash(taskId: string, error: unknown): void
  /** Fails a task that cannot continue. */
  failTask(taskId: string, error: unknown): void
  /** Waits for the cleanup of an ended task's work, for its grace period at most. */
  awaitCleanup(taskId: string, settled: Promise<unknown>): void
}

type AnyActorSystem = AnyActorRef['system']

/**
 * Shared by all copies of this package in the process, by its global symbol: an agent that is loaded as TypeScript has
 * its own copy.
 */
const hosts = new PrivateProperty<AnyActorSystem, ActorHost>(Symbol.for('taskchart.host.1'))

/** Sets the host of an actor system. */
export function hostActors(system: AnyActorSystem, host: ActorHost): void {
  hosts.set(system, host)
}

/** The host of an actor system. Throws TypeError outside a context. */
export function hostOf(system: AnyActorSystem): ActorHost {
  const host = hosts.get(system)
  if (!host) throw new TypeError('This logic runs only in a context of a taskchart runtime.')
  return host
}

/** Ids on the path to an actor, from the context's child to the actor itself; empty for the context. */
export function actorPathOf(actor: AnyActorRef): string[] {
  const path: string[] = []
  for (let member = actor; member._parent; member = member._parent) path.unshift(member.id)
  return path
}

/** Id of the task or negotiation that an actor belongs to: the context's child above it. */
export function taskIdOf(actor: AnyActorRef): string {
  let member = actor
  while (member._parent?._parent) member = member._parent
  return member.id
}

/**
 * Whether logic runs in an actor or below it that would be lost if it left memory. That is active logic which is no
 * machine, unless its snapshot has `isWaiting: true`: then it only waits for a message or an alarm.
 */
export function hasRunningLogic(actor: AnyActorRef): boolean {
  const { status, children, isWaiting } = actor.getSnapshot() as {
    status: string
    children?: Record<string, AnyActorRef>
    isWaiting?: boolean
  }
  if (status !== 'active') return false
  return children ? Object.values(children).some(hasRunningLogic) : isWaiting !== true
}
