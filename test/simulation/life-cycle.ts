import { isTerminal, type TaskState } from '../../machines/protocol/states.ts'

const ENDS: readonly TaskState[] = ['TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED']

/** The states that may follow each that is not an end, as A2A and the design have it, written down a second time. */
const FOLLOWING: Readonly<Partial<Record<TaskState, readonly TaskState[]>>> = {
  TASK_STATE_SUBMITTED: ['TASK_STATE_WORKING', ...ENDS],
  TASK_STATE_WORKING: [
    'TASK_STATE_WORKING',
    'TASK_STATE_INPUT_REQUIRED',
    'TASK_STATE_AUTH_REQUIRED',
    'TASK_STATE_COMPLETED',
    ...ENDS
  ],
  TASK_STATE_INPUT_REQUIRED: ['TASK_STATE_WORKING', ...ENDS],
  TASK_STATE_AUTH_REQUIRED: ['TASK_STATE_WORKING', ...ENDS]
}

/**
 * Whether a task in a state (none: it does not exist yet) may come into the next, or without one may tell an artifact.
 */
export function mayFollow(state: TaskState | undefined, next: TaskState | undefined): boolean {
  if (state === undefined) return next === 'TASK_STATE_SUBMITTED'
  if (next === undefined) return !isTerminal(state) && state !== 'TASK_STATE_SUBMITTED'
  return FOLLOWING[state]?.includes(next) ?? false
}
