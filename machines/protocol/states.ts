/**
 * Every state of a task (§4.1.3) by its wire name, with its number in the proto, its state in the task chart, and its
 * class. `TASK_STATE_UNSPECIFIED` is never sent, so it is missing.
 */
export const TASK_STATES = {
  TASK_STATE_SUBMITTED: { number: 1, chart: 'submitted', class: 'active' },
  TASK_STATE_WORKING: { number: 2, chart: 'working', class: 'active' },
  TASK_STATE_COMPLETED: { number: 3, chart: 'completed', class: 'terminal' },
  TASK_STATE_FAILED: { number: 4, chart: 'failed', class: 'terminal' },
  TASK_STATE_CANCELED: { number: 5, chart: 'canceled', class: 'terminal' },
  TASK_STATE_INPUT_REQUIRED: { number: 6, chart: 'inputRequired', class: 'interrupted' },
  TASK_STATE_REJECTED: { number: 7, chart: 'rejected', class: 'terminal' },
  TASK_STATE_AUTH_REQUIRED: { number: 8, chart: 'authRequired', class: 'interrupted' }
} as const

/** A task's state by its wire name (§4.1.3). */
export type TaskState = keyof typeof TASK_STATES

/** A task's state in the chart: the wire name without its prefix, in camelCase. */
export type ChartState = (typeof TASK_STATES)[TaskState]['chart']

/** A task's state for people: `input-required`. */
export function stateText(state: TaskState): string {
  return state.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-')
}

/** Whether a task in this state never changes again (§4.1.3). */
export function isTerminal(state: TaskState): boolean {
  if (!Object.hasOwn(TASK_STATES, state))
    throw new TypeError(
      `isTerminal takes the state of a task, such as 'TASK_STATE_WORKING', not ${JSON.stringify(state)}: isTerminal(task.status.state).`
    )
  return TASK_STATES[state].class === 'terminal'
}

/** Whether a task in this state waits for its client: for input or for an authorization (§4.1.3). */
export function isInterrupted(state: TaskState): boolean {
  return TASK_STATES[state].class === 'interrupted'
}

/** Whether SendMessage answers with a task in this state: it has ended, or waits for its client (§3.1.1, §3.2.2). */
export function isPause(state: TaskState): boolean {
  return isTerminal(state) || isInterrupted(state)
}

/**
 * Whether the stream of SendStreamingMessage ends at this state: the end of the task, or a question. It does not end
 * while an authorization is awaited (§3.1.2, §7.6.1).
 */
export function isReplyEnd(state: TaskState): boolean {
  return isTerminal(state) || state === 'TASK_STATE_INPUT_REQUIRED'
}
