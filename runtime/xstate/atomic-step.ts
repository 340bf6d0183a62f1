import type { AnyActorScope, AnyMachineSnapshot } from 'xstate'

/**
 * Takes a step of a machine as a whole: the author's actions run, and what XState keeps back until the step is done
 * (actors to start, events to send, words to emit) is done, only if the step comes to its end. Nothing stays of one that
 * throws.
 */
export function atomicStep(scope: AnyActorScope, step: (scope: AnyActorScope) => AnyMachineSnapshot): AnyMachineSnapshot {
  const held: (() => void)[] = []
  let hold = (run: () => void): void => {
    held.push(run)
  }
  const snapshot = step({
    ...scope,
    defer: run => hold(() => scope.defer(run)),
    actionExecutor: action => (action.type.startsWith('xstate.') ? scope.actionExecutor(action) : hold(() => scope.actionExecutor(action)))
  })
  // XState carries out the actions of a first step later, when the actor starts.
  hold = run => run()
  for (const run of held) run()
  return snapshot
}
