import {
  initialTransition,
  StateMachine,
  transition,
  type AnyActor,
  type AnyActorLogic,
  type AnyActorRef,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type EventObject
} from 'xstate'
import type { FullSystem } from './actor-system.ts'
import { isMachine } from './persisted-snapshot.ts'
import { noteWrittenConfig, writtenConfig } from './written-chart.ts'

type Step = ReturnType<typeof transition<AnyStateMachine>>

/** XState's `initialTransition`, in which `self` has no snapshot yet, as in an actor. */
export function pureStart(machine: AnyStateMachine, input: unknown): Step {
  let isBegun = false
  const logic: Pick<AnyStateMachine, 'getInitialSnapshot'> = {
    getInitialSnapshot: (scope, given) => {
      if (isBegun) return machine.getInitialSnapshot(scope, given)
      // XState makes an actor for `self` first.
      isBegun = true
      return undefined as never
    }
  }
  return initialTransition(logic as AnyStateMachine, input as never)
}

/**
 * XState's `transition`, with two things that an actor has and `transition` has not. `self` has the snapshot before the event, and
 * `system` knows the actors of that snapshot by their `systemId`, without those that have ended and those that the step stops.
 */
export function pureStep(
  machine: AnyStateMachine,
  before: AnyMachineSnapshot,
  event: EventObject,
  hasEnded: (actor: AnyActorRef) => boolean
): Step {
  const logic: Pick<AnyStateMachine, 'transition' | 'getInitialSnapshot'> = {
    getInitialSnapshot: () => before,
    transition: (snapshot, given, scope) => {
      const system = scope.system as unknown as FullSystem
      for (const actor of Object.values(before.children as Readonly<Record<string, AnyActor>>)) {
        if (actor.systemId !== undefined && !hasEnded(actor)) system._set(actor.systemId, actor)
      }
      const collect = scope.actionExecutor
      scope.actionExecutor = action => {
        if (action.type === 'xstate.stopChild' && action.params)
          system._unregister(action.params as unknown as AnyActorRef)
        collect(action)
      }
      return machine.transition(snapshot, given, scope)
    }
  }
  return transition(logic as AnyStateMachine, before, event as never)
}

/** The limit of microsteps in one macrostep of a chart that sets none, so that an endless cycle is an error. */
export const MOST_MICROSTEPS = 10_000

/** Whether this is the error of a chart, uncompiled, that goes round until the limit. */
export function isEndless(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('Infinite loop detected')
}

/** The chart, and the charts among its actors, with that limit. Unlike `options` of a machine, its configuration stays with `provide`. */
export function withStepLimit({ config, implementations }: AnyStateMachine): AnyStateMachine {
  const actors = Object.entries(implementations.actors as Readonly<Record<string, AnyActorLogic>>)
  const limited = actors.map(([name, logic]) => [name, isMachine(logic) ? withStepLimit(logic) : logic] as const)
  const options = { maxIterations: MOST_MICROSTEPS, ...config.options }
  const machine = new StateMachine({ ...config, options }, { ...implementations, actors: Object.fromEntries(limited) })
  noteWrittenConfig(machine.config, { ...writtenConfig(config), options })
  return machine
}
