import type { AnyActorScope, AnyMachineSnapshot } from 'xstate'
import { scopeWith } from './lean-actor.ts'

/**
 * Runs a transition of a machine atomically. Custom actions and deferred effects (actors to start, events to send, words to emit) run
 * only after the transition has completed. A transition that throws has no effects.
 */
export function atomicStep(scope: AnyActorScope, step: (scope: AnyActorScope) => AnyMachineSnapshot): AnyMachineSnapshot {
  const held: (() => void)[] = []
  let hold = (run: () => void): void => {
    held.push(run)
  }
  const snapshot = step(scopeWith(scope, {
    defer: run => hold(() => scope.defer(run)),
    actionExecutor: action => (action.type.startsWith('xstate.') ? scope.actionExecutor(action) : hold(() => scope.actionExecutor(action)))
  }))
  // XState runs the actions of the initial transition later, when the actor starts.
  hold = run => run()
  for (const run of held) run()
  return snapshot
}
