import type { AnyActorLogic, AnyActorRef, AnyActorScope, AnyMachineSnapshot } from 'xstate'
import { checkContext } from '../authoring/checked-words.ts'

/**
 * Takes a step of a machine as a whole: the author's actions run, and what XState keeps back until the step is done
 * (actors to start, events to send, words to emit) is done, only if the step comes to its end. Nothing stays of one that
 * throws.
 */
export function wholeStep(scope: AnyActorScope, step: (scope: AnyActorScope) => AnyMachineSnapshot): AnyMachineSnapshot {
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

/** A machine below the work's that, when it ends by an error, stops its actors with it: XState leaves them running. */
export function endingWhole(logic: AnyActorLogic): AnyActorLogic {
  return {
    ...logic,
    getInitialSnapshot: (scope, input) => checkContext(logic.getInitialSnapshot(scope, input)),
    transition: (before, event, scope) => {
      const after = stepOrError(before, () => wholeStep(scope, kept => checkContext(logic.transition(before, event, kept), before)))
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
