import {
  createActor,
  type Actor,
  type AnyActor,
  type AnyActorLogic,
  type AnyActorRef,
  type AnyStateMachine,
  type EventObject,
  type InspectionEvent
} from 'xstate'
import type { FullSystem } from './actor-system.ts'

type Schedule = AnyActorRef['system']['scheduler']

/** Directs an actor of XState and those below it. */
export interface Director {
  /** The logic that an actor gets in place of its own, before it has a snapshot. */
  cast(actor: AnyActorRef, logic: AnyActorLogic): AnyActorLogic
  /** Whether an action of a chart is executed. */
  acts(actor: AnyActorRef, type: string, params: unknown): boolean
  /** Whether an event arrives. */
  delivers(source: AnyActorRef | undefined, target: AnyActorRef, event: EventObject): boolean
  /** Whenever an actor has taken an event, and done all that follows from it at once. */
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

/** XState tells its inspectors of an actor before it makes the actor's first snapshot. */
function direct(actor: AnyActor, director: Director): void {
  actor.logic = director.cast(actor, actor.logic as AnyActorLogic)
  const scope = (
    actor as unknown as {
      readonly _actorScope: { actionExecutor: (action: { readonly type: string; readonly params: unknown }) => void }
    }
  )._actorScope
  const execute = scope.actionExecutor
  scope.actionExecutor = action => {
    if (director.acts(actor, action.type, action.params)) execute(action)
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
