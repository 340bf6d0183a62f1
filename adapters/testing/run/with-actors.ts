import { fromPromise, type AnyActorLogic, type AnyStateMachine } from 'xstate'

/** An actor that does nothing, and never ends. */
export const endless = fromPromise(() => new Promise(() => {}))

/** A chart in which every actor that it has a name for is of this logic. */
export function withActors(machine: AnyStateMachine, logic: AnyActorLogic): AnyStateMachine {
  return machine.provide({ actors: Object.fromEntries(Object.keys(machine.implementations.actors).map(src => [src, logic])) })
}
