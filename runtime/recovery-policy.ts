/**
 * What becomes of work that was at work, not waiting, when its process ended: `resume` has a statechart go on in its
 * state, its promises, callbacks and other actors started again; `rerun` has a function or generator run again from its
 * start, against its journal; `fail` ends its task as failed.
 */
export type RecoveryType = 'resume' | 'rerun' | 'fail'

/** The policy that an author means: `resume` for a statechart, `rerun` for all else. Throws TypeError that says what to write instead. */
export function recoveryPolicy(option: RecoveryType | undefined, isChart: boolean): RecoveryType {
  if (option === undefined) return isChart ? 'resume' : 'rerun'
  if (!['resume', 'rerun', 'fail'].includes(option)) throw new TypeError(`recovery has to be 'resume', 'rerun' or 'fail', not ${option}.`)
  if (option === 'resume' && !isChart) {
    throw new TypeError("recovery: 'resume' needs work as a statechart. A function runs again from its start: write recovery: 'rerun', and put what is not to be done twice into step('name', …).")
  }
  if (option === 'rerun' && isChart) {
    throw new TypeError("recovery: 'rerun' is for functions. A statechart goes on in its state: write recovery: 'resume', or 'fail'; to have it begin anew write a transition to its first state.")
  }
  return option
}
