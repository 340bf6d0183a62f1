import { fromPromise, type AnyActorLogic } from 'xstate'
import type { WorkOutcome } from '../machines/task.machine.ts'
import { familyOf, hostOf } from './actor-host.ts'
import { gated } from './gated-logic.ts'
import { outcomeOf } from './outcomes.ts'
import type { WorkInput } from './work-input.ts'
import type { Failed, Rejected, WorkResult } from './words.ts'

/** What a work function is called with. `signal` aborts when the task is canceled, or ends in another way. */
export type WorkArguments = WorkInput & { readonly signal: AbortSignal }

/** Work as a function: what it returns completes the task, what it throws fails it. After a restart it runs again from its start. */
export type WorkFunction = (work: WorkArguments) => WorkResult | Rejected | Failed | void | Promise<WorkResult | Rejected | Failed | void>

/** A work function as the actor `work` of a task. */
export function workFunction(work: WorkFunction): AnyActorLogic {
  const logic = gated(
    fromPromise<WorkOutcome, WorkInput | undefined>(async ({ input, signal, system, self }) => {
      const host = hostOf(system)
      const taskId = familyOf(self)
      try {
        const given = input ?? (await host.workInput(taskId))
        return outcomeOf(await work({ ...given, signal }))
      } catch (error) {
        if (!signal.aborted) host.logger.error('the work of a task failed', { taskId, error })
        throw error
      }
    })
  )
  // The input is in the store already: it is read again after a restart.
  return { ...logic, getPersistedSnapshot: snapshot => ({ ...snapshot, input: undefined }) }
}
