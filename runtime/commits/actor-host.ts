import type {
  AnyActorLogic,
  AnyActorRef,
  AnyActorScope,
  AnyMachineSnapshot,
  AnyStateMachine,
  EventObject,
  Snapshot
} from 'xstate'
import type { ContextFact, ContextMachineEvent } from '../../machines/context.machine.ts'
import type { Message, Task } from '../../machines/protocol/objects.ts'
import type { TaskFact } from '../../machines/task-events.ts'
import { isOwnName, OWN_ACTION, OWN_EVENT } from '../../machines/xstate-names.ts'
import type { Limits } from '../access/limits.ts'
import { checkContext, checkDelayed, checkState } from '../authoring/checked-words.ts'
import type { ReadOpeningDetails, WorkInput } from '../authoring/work-arguments.ts'
import type { Clock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import { PrivateProperty } from '../primitives/collections.ts'
import type { ContextKey, JournalRow, TaskEvent } from '../store/store.ts'
import type { TraceCarrier } from '../telemetry/telemetry.ts'
import { atomicStep, ChangedScope, type ScopeChanges } from '../xstate/actor-system.ts'
import { compileMachine } from '../xstate/compiled-machine.ts'
import { isMachine, keepDetails, withOwnContext } from '../xstate/persisted-snapshot.ts'
import { MOST_MICROSTEPS } from '../xstate/pure-step.ts'
import { countMicrosteps, type TransitionCounter } from '../xstate/transition-counter.ts'
import type { Effect } from './commit-pipeline.ts'

/** Traces negotiations. */
interface NegotiationTraces {
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
  /** Whether the task was loaded from the store, so that other code may have run in it. */
  wasRestored(taskId: string): boolean
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

const START_FAILED = 'taskchart.start.failed'

/**
 * Wraps an author's logic so that its effects wait for the commit. Promises, callbacks, observables and other leaf
 * logic start, receive events and are aborted only after the causing turn is committed. Of a machine, custom actions
 * wait; XState's own (raise, sendTo, spawn, emit, …) run at once, so that one commit covers the whole cascade. The
 * machine's actors are wrapped too.
 */
export function deferEffects(logic: AnyActorLogic, counter?: TransitionCounter): AnyActorLogic {
  return refuseSecondUnnamed(
    isMachine(logic)
      ? stopChildrenOnError(withScope(deferMachineEffects(logic, counter), deferredActions, counter))
      : deferLeafEffects(logic)
  )
}

/**
 * The machine, compiled if possible, with deferred effects of its actors and counted transitions. Its own actions are
 * not deferred yet.
 */
export function deferMachineEffects(machine: AnyStateMachine, counter?: TransitionCounter): AnyStateMachine {
  const actors = Object.entries(machine.implementations.actors) as [string, AnyActorLogic][]
  const provided = keepDetails(
    withOwnContext(
      machine.provide({
        actors: Object.fromEntries(actors.map(([name, logic]) => [name, deferEffects(logic, counter)]))
      })
    )
  )
  if (provided.options.maxIterations === Infinity)
    provided.options = { ...provided.options, maxIterations: MOST_MICROSTEPS }
  counter?.watch(provided)
  const compiled = compileMachine(provided)
  return counter && compiled === provided ? countMicrosteps(provided) : compiled
}

/**
 * The logic with changed actor scopes. Each transition marks its task as changed. `counter` is that of a chart whose
 * transitions are counted.
 */
export function withScope(logic: AnyActorLogic, changes: ScopeChanges, counter?: TransitionCounter): AnyActorLogic {
  return {
    ...logic,
    getInitialSnapshot: (scope, input) => {
      counter?.started(scope.self)
      return logic.getInitialSnapshot(new ChangedScope(scope, changes), input)
    },
    transition: (snapshot, event, scope) => {
      markChanged(scope)
      return logic.transition(snapshot, event, new ChangedScope(scope, changes))
    }
  }
}

/** The id that XState gives to an actor of `spawnChild` without an id. */
const UNNAMED = 'undefined'

/** The newest actor without an id, by parent. */
const newest = new PrivateProperty<AnyActorRef, AnyActorRef>()

/**
 * Refuses a second live actor without an id below one parent, by crashing its work. `spawnChild` gives all of them one
 * name, and XState keeps only the last; the others would run unseen and be lost with the process.
 */
function refuseSecondUnnamed(logic: AnyActorLogic): AnyActorLogic {
  return {
    ...logic,
    start: (snapshot, scope) => {
      const { self, system } = scope
      if (!isSecondUnnamed(self)) return logic.start?.(snapshot, scope)
      hostOf(system).crash(
        taskIdOf(self),
        new TypeError(
          "Two spawned actors have no id, so one replaces the other. Give each an id: spawnChild('paint', { id: 'painting' })."
        )
      )
    }
  }
}

function isSecondUnnamed(actor: AnyActorRef): boolean {
  const parent = actor._parent
  const children: Record<string, AnyActorRef> | undefined = parent?.getSnapshot().children
  if (!parent || !children || (actor.id !== UNNAMED && (actor.id !== actor.sessionId || children[actor.id] === actor)))
    return false
  const before = newest.get(parent)
  newest.set(parent, actor)
  return before?.getSnapshot().status === 'active'
}

/** Actions that may send an event later. */
const DELAYABLE: readonly string[] = [OWN_ACTION.raise, OWN_ACTION.sendTo]

/** Defers custom actions until the commit, and refuses delayed events that cannot be stored. */
export const deferredActions = {
  actionExecutor: (scope, action) => {
    const { exec, info, params, type } = action
    if (DELAYABLE.includes(type) && (params as { delay?: number }).delay !== undefined)
      checkDelayed(params as { event: EventObject })
    if (!exec || isOwnName(type)) return scope.actionExecutor(action)
    scope.actionExecutor({ ...action, exec: () => afterCommit(scope, () => exec(info, params)) })
  }
} satisfies ScopeChanges

/** A snapshot of logic that is no machine; that of `fromTransition` has the state as its context. */
type Leaf = Snapshot<unknown> & { readonly context?: unknown }

function deferLeafEffects(logic: AnyActorLogic): AnyActorLogic {
  /** Start times, in milliseconds since 1970. */
  const started = new WeakMap<object, number>()
  const noteEnd = ({ self, system }: AnyActorScope): void => {
    const host = hostOf(system)
    if (host.clock.now() - (started.get(self) ?? -Infinity) < HASTY_MS) host.noteHaste(taskIdOf(self))
  }
  return {
    ...logic,
    getInitialSnapshot: (scope, input) => {
      const snapshot: Leaf = logic.getInitialSnapshot(scope, input)
      return logic.start ? snapshot : checkState(scope.id, snapshot)
    },
    start: (snapshot, scope) =>
      afterCommit(scope, () => {
        if (scope.self.getSnapshot().status !== 'active') return
        started.set(scope.self, hostOf(scope.system).clock.now())
        try {
          logic.start?.(snapshot, scope)
        } catch (error) {
          scope.self.send({ type: START_FAILED, error })
        }
      }),
    transition: (snapshot, event, scope) => {
      markChanged(scope)
      if (event.type === START_FAILED) return { ...snapshot, status: 'error', error: event.error }
      if (event.type === OWN_EVENT.stop) {
        noteEnd(scope)
        afterCommit(scope, () => started.has(scope.self) && logic.transition(snapshot, event, scope))
        return { ...snapshot, status: 'stopped', input: undefined }
      }
      if (!logic.start) return checkState(scope.id, logic.transition(snapshot, event, scope) as Leaf)
      if (started.has(scope.self)) {
        const after: Leaf = logic.transition(snapshot, event, scope)
        if (after.status !== 'active') noteEnd(scope)
        return after
      }
      // Not started yet, so the event is sent again after the start.
      afterCommit(scope, () => scope.self.send(event))
      return snapshot
    }
  }
}

function markChanged({ self, system }: AnyActorScope): void {
  hostOf(system).markChanged(taskIdOf(self))
}

function afterCommit({ self, system }: AnyActorScope, run: () => void): void {
  hostOf(system).afterCommit({ taskId: taskIdOf(self), run })
}

/** For a machine below the work: stops its actors when it ends by an error, since XState leaves them running. */
function stopChildrenOnError(logic: AnyActorLogic): AnyActorLogic {
  return {
    ...logic,
    getInitialSnapshot: (scope, input) => checkContext(logic.getInitialSnapshot(scope, input)),
    transition: (before, event, scope) => {
      const after = stepOrError(before, () =>
        atomicStep(scope, kept => checkContext(logic.transition(before, event, kept), before))
      )
      if (after.status === 'error') {
        for (const child of Object.values<AnyActorRef>(before.children)) scope.stopChild(child)
      }
      return after
    }
  }
}

function stepOrError(before: AnyMachineSnapshot, step: () => AnyMachineSnapshot): AnyMachineSnapshot {
  try {
    return step()
  } catch (error) {
    return { ...before, status: 'error', error } as AnyMachineSnapshot
  }
}
