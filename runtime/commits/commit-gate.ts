import type {
  AnyActorLogic,
  AnyActorRef,
  AnyActorScope,
  AnyMachineSnapshot,
  AnyStateMachine,
  EventObject,
  Snapshot
} from 'xstate'
import { isOwnName, OWN_ACTION, OWN_EVENT } from '../../machines/xstate-names.ts'
import { checkContext, checkDelayed, checkState } from '../authoring/checked-words.ts'
import { PrivateProperty } from '../primitives/collections.ts'
import { atomicStep, ChangedScope, type ScopeChanges } from '../xstate/actor-system.ts'
import { compileMachine } from '../xstate/compiled-machine.ts'
import { isMachine, keepDetails, withOwnContext } from '../xstate/persisted-snapshot.ts'
import { MOST_MICROSTEPS } from '../xstate/pure-step.ts'
import { countMicrosteps, type TransitionCounter } from '../xstate/transition-counter.ts'
import { taskIdOf, HASTY_MS, hostOf } from './actor-host.ts'

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
export function refuseSecondUnnamed(logic: AnyActorLogic): AnyActorLogic {
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
export function stopChildrenOnError(logic: AnyActorLogic): AnyActorLogic {
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
