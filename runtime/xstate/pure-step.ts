import type {
  Actor,
  AnyActor,
  AnyActorLogic,
  AnyActorRef,
  AnyMachineSnapshot,
  AnyStateMachine,
  EventObject,
  InspectionEvent
} from 'xstate'
import type { FullSystem } from './actor-system.ts'
import { type ChartEffect, effectOf, type ExecutedAction } from './effects.ts'
import { createActor, initialTransition, StateMachine, transition } from './library.ts'
import { isMachine } from './persisted-snapshot.ts'
import { noteWrittenConfig, writtenConfig } from './state-nodes.ts'

/** A step of a chart: all that taskchart asks of a chart without an actor. */
export interface ChartStep {
  readonly snapshot: AnyMachineSnapshot
  readonly effects: readonly ChartEffect[]
}

function stepOf([snapshot, actions]: ReturnType<typeof transition<AnyStateMachine>>): ChartStep {
  return { snapshot, effects: actions.map(effectOf) }
}

/** XState's `initialTransition`, in which `self` has no snapshot yet, as in an actor. */
export function pureStart(machine: AnyStateMachine, input: unknown): ChartStep {
  let isBegun = false
  const logic: Pick<AnyStateMachine, 'getInitialSnapshot'> = {
    getInitialSnapshot: (scope, given) => {
      if (isBegun) return machine.getInitialSnapshot(scope, given)
      // XState makes an actor for `self` first.
      isBegun = true
      return undefined as never
    }
  }
  return stepOf(initialTransition(logic as AnyStateMachine, input as never))
}

/**
 * XState's `transition`, with two things that an actor has and `transition` has not. `self` has the snapshot before the
 * event, and `system` knows the actors of that snapshot by their `systemId`, without those that have ended and those
 * that the step stops.
 */
export function pureStep(
  machine: AnyStateMachine,
  before: AnyMachineSnapshot,
  event: EventObject,
  hasEnded: (actor: AnyActorRef) => boolean
): ChartStep {
  const logic: Pick<AnyStateMachine, 'transition' | 'getInitialSnapshot'> = {
    getInitialSnapshot: () => before,
    transition: (snapshot, given, scope) => {
      const system = scope.system as unknown as FullSystem
      for (const actor of Object.values(before.children as Readonly<Record<string, AnyActor>>)) {
        if (actor.systemId !== undefined && !hasEnded(actor)) system._set(actor.systemId, actor)
      }
      const collect = scope.actionExecutor
      scope.actionExecutor = action => {
        const effect = effectOf(action)
        if (effect.kind === 'stop' && effect.actor) system._unregister(effect.actor)
        collect(action)
      }
      return machine.transition(snapshot, given, scope)
    }
  }
  return stepOf(transition(logic as AnyStateMachine, before, event as never))
}

/** The limit of microsteps in one macrostep of a chart that sets none, so that an endless cycle is an error. */
export const MOST_MICROSTEPS = 10_000

/** Whether this is the error of a chart, uncompiled, that goes round until the limit. */
export function isEndless(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('Infinite loop detected')
}

/**
 * The chart, and the charts among its actors, with that limit. Unlike `options` of a machine, its configuration stays
 * with `provide`.
 */
export function withStepLimit({ config, implementations }: AnyStateMachine): AnyStateMachine {
  const actors = Object.entries(implementations.actors as Readonly<Record<string, AnyActorLogic>>)
  const limited = actors.map(([name, logic]) => [name, isMachine(logic) ? withStepLimit(logic) : logic] as const)
  const options = { maxIterations: MOST_MICROSTEPS, ...config.options }
  const machine = new StateMachine({ ...config, options }, { ...implementations, actors: Object.fromEntries(limited) })
  noteWrittenConfig(machine.config, { ...writtenConfig(config), options })
  return machine
}

type Schedule = AnyActorRef['system']['scheduler']

/** Directs an actor of XState and those below it. */
export interface Director {
  /** The logic that an actor gets in place of its own, before it has a snapshot. */
  cast(actor: AnyActorRef, logic: AnyActorLogic): AnyActorLogic
  /** Whether an action of a chart is executed. */
  acts(actor: AnyActorRef, effect: ChartEffect): boolean
  /** Whether an event arrives. */
  delivers(source: AnyActorRef | undefined, target: AnyActorRef, event: EventObject): boolean
  /** Whenever an actor has handled an event, and all that follows from it at once. */
  took(actor: AnyActorRef): void
  schedule(...given: Parameters<Schedule['schedule']>): void
  cancel(...given: Parameters<Schedule['cancel']>): void
  cancelAll(source: AnyActorRef): void
}

/** An actor of a chart under a director, who also has its delayed events. It is not started. */
export function directedActor(
  machine: AnyStateMachine,
  options: { readonly input?: unknown; readonly snapshot?: unknown },
  director: Director
): Actor<AnyStateMachine> {
  const inspect = (seen: InspectionEvent) => {
    if (seen.type === '@xstate.actor') direct(seen.actorRef as AnyActor, director)
    if (seen.type === '@xstate.snapshot') director.took(seen.actorRef as AnyActorRef)
  }
  return createActor(machine, { ...options, inspect } as object)
}

/** Whether an actor sends each of its snapshots to its parent, the first one at its start. */
export function sendsSnapshots(actor: AnyActorRef): boolean {
  return (actor as { readonly _syncSnapshot?: boolean })._syncSnapshot === true
}

/** XState notifies its inspectors of an actor before it makes the actor's first snapshot. */
function direct(actor: AnyActor, director: Director): void {
  actor.logic = director.cast(actor, actor.logic as AnyActorLogic)
  const scope = (
    actor as unknown as {
      readonly _actorScope: { actionExecutor: (action: ExecutedAction) => void }
    }
  )._actorScope
  const execute = scope.actionExecutor
  scope.actionExecutor = action => {
    if (director.acts(actor, effectOf(action))) execute(action)
  }
  if (actor._parent) return
  const system = actor.system as unknown as FullSystem
  const relay = system._relay.bind(system)
  system._relay = (source, target, event) => {
    if (director.delivers(source, target, event)) relay(source, target, event)
  }
  const scheduler: Schedule & { readonly cancelAll: (source: AnyActorRef) => void } = {
    schedule: (...given) => director.schedule(...given),
    cancel: (...given) => director.cancel(...given),
    cancelAll: source => director.cancelAll(source)
  }
  Object.assign(system.scheduler, scheduler)
}
