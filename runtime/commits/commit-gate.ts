import type { AnyActorLogic, AnyActorRef, AnyActorScope, AnyMachineSnapshot, AnyStateMachine } from 'xstate'
import { checkContext } from '../authoring/checked-words.ts'
import { PrivateProperty } from '../primitives/private-property.ts'
import { atomicStep } from '../xstate/atomic-step.ts'
import { compiled } from '../xstate/compiled-machine.ts'
import { isMachine } from '../xstate/persisted-snapshot.ts'
import { familyOf, hostOf } from './actor-host.ts'

/** The name under which XState keeps an actor that `spawnChild` made without an id. */
const UNNAMED = 'undefined'

/** The newest actor of that name, with its parent. */
const newest = new PrivateProperty<AnyActorRef, AnyActorRef>()

/**
 * Logic of which no two actors without an id live below one parent: `spawnChild` gives all of them one name, and XState
 * forgets all but the last, which run on unseen and would be lost with the process. The second breaks its work.
 */
export function refuseSecondUnnamed(logic: AnyActorLogic): AnyActorLogic {
  return {
    ...logic,
    start: (snapshot, scope) => {
      const { self, system } = scope
      if (!takesPlace(self)) return logic.start?.(snapshot, scope)
      hostOf(system).crash(familyOf(self), new TypeError("Two actors without an id take each other's place. Give each one: spawnChild('paint', { id: 'painting' })."))
    }
  }
}

function takesPlace(actor: AnyActorRef): boolean {
  const parent = actor._parent
  const children: Record<string, AnyActorRef> | undefined = parent?.getSnapshot().children
  if (!parent || !children || (actor.id !== UNNAMED && children[actor.id] === actor)) return false
  const before = newest.get(parent)
  newest.set(parent, actor)
  return before?.getSnapshot().status === 'active'
}

/** How many steps a chart may take by itself at once, without an event, where it does not say: an endless cycle is an error. */
const MAX_ITERATIONS = 10_000

const START_FAILED = 'taskchart.start.failed'

/**
 * An author's logic, made to keep the rule that effects wait for the commit. Promises, callbacks, observables and all
 * other leaf logic starts, hears events and is aborted only when what led to that is durable. Of a machine the custom
 * actions wait, while XState's own (raise, sendTo, spawn, emit, …) go through, so that one commit covers the whole
 * cascade; the actors that it names are gated in turn.
 */
export function gated(logic: AnyActorLogic): AnyActorLogic {
  return refuseSecondUnnamed(isMachine(logic) ? stopChildrenOnError(withScope(gatedMachine(logic), holdActions)) : gatedLeaf(logic))
}

/** The machine with its actors gated, compiled if it is flat; its own actions are not held yet. */
export function gatedMachine(machine: AnyStateMachine): AnyStateMachine {
  const actors = Object.entries(machine.implementations.actors) as [string, AnyActorLogic][]
  const provided = machine.provide({ actors: Object.fromEntries(actors.map(([name, logic]) => [name, gated(logic)])) })
  if (provided.options.maxIterations === Infinity) provided.options = { ...provided.options, maxIterations: MAX_ITERATIONS }
  return compiled(provided)
}

/** The logic, run in a scope of our making. Every actor of it notes when it moves. */
export function withScope(logic: AnyActorLogic, scopeOf: (scope: AnyActorScope) => AnyActorScope): AnyActorLogic {
  return {
    ...logic,
    getInitialSnapshot: (scope, input) => logic.getInitialSnapshot(scopeOf(scope), input),
    transition: (snapshot, event, scope) => {
      noteMove(scope)
      return logic.transition(snapshot, event, scopeOf(scope))
    }
  }
}

/** A scope in which custom actions wait for the commit. */
export function holdActions(scope: AnyActorScope): AnyActorScope {
  return {
    ...scope,
    actionExecutor: action => {
      const { exec, info, params, type } = action
      if (!exec || type.startsWith('xstate.')) return scope.actionExecutor(action)
      scope.actionExecutor({ ...action, exec: () => afterCommit(scope, () => exec(info, params)) })
    }
  }
}

function gatedLeaf(logic: AnyActorLogic): AnyActorLogic {
  const started = new WeakSet<object>()
  return {
    ...logic,
    start: (snapshot, scope) => afterCommit(scope, () => {
      if (scope.self.getSnapshot().status !== 'active') return
      started.add(scope.self)
      try {
        logic.start?.(snapshot, scope)
      } catch (error) {
        scope.self.send({ type: START_FAILED, error })
      }
    }),
    transition: (snapshot, event, scope) => {
      noteMove(scope)
      if (event.type === START_FAILED) return { ...snapshot, status: 'error', error: event.error }
      if (event.type === 'xstate.stop') {
        afterCommit(scope, () => started.has(scope.self) && logic.transition(snapshot, event, scope))
        return { ...snapshot, status: 'stopped', input: undefined }
      }
      if (started.has(scope.self) || !logic.start) return logic.transition(snapshot, event, scope)
      // It has not started yet, so it cannot hear: it hears this as soon as it has.
      afterCommit(scope, () => scope.self.send(event))
      return snapshot
    }
  }
}

function noteMove({ self, system }: AnyActorScope): void {
  hostOf(system).noteMove(familyOf(self))
}

function afterCommit({ self, system }: AnyActorScope, run: () => void): void {
  hostOf(system).afterCommit({ taskId: familyOf(self), run })
}

/** A machine below the work's that, when it ends by an error, stops its actors with it: XState leaves them running. */
export function stopChildrenOnError(logic: AnyActorLogic): AnyActorLogic {
  return {
    ...logic,
    getInitialSnapshot: (scope, input) => checkContext(logic.getInitialSnapshot(scope, input)),
    transition: (before, event, scope) => {
      const after = stepOrError(before, () => atomicStep(scope, kept => checkContext(logic.transition(before, event, kept), before)))
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
