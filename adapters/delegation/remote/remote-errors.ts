import { A2AError, isA2AError, type ErrorCode } from '../../../machines/protocol/errors.ts'
import type { Task } from '../../../machines/protocol/objects.ts'
import type { TaskState } from '../../../machines/protocol/states.ts'
import { textOf } from '../../../runtime/authoring/words.ts'

/** How a task ended that was not completed, in words. */
const ENDS: Partial<Record<TaskState, string>> = {
  TASK_STATE_FAILED: 'failed',
  TASK_STATE_REJECTED: 'rejected the task',
  TASK_STATE_CANCELED: 'canceled the task'
}

/** What it means that an agent could not be asked, by the error; else it refused. */
const TROUBLES: Partial<Record<ErrorCode, string>> = {
  Overloaded: 'could not be reached',
  RateLimited: 'has no time',
  InvalidAgentResponse: 'answered what cannot be read'
}

/** Errors of an agent that cannot, or will not, do a thing at all. */
const NOT_DONE_THERE: readonly ErrorCode[] = ['UnsupportedOperation', 'MethodNotFound', 'InvalidRequest']

/** A task that the other agent ended before it was completed; `metadata.state` says how. */
export function notCompleted(title: string, { id, status: { state, message } }: Task): A2AError {
  const reason = message && textOf(message)
  return new A2AError('InternalError', `${title} ${ENDS[state] ?? 'did not complete the task'}${reason ? `: ${reason}` : '.'}`, { metadata: { state, taskId: id } })
}

/** An error on the way to another agent, or of its own, as the work gets it. */
export function troubleWith(title: string, error: unknown): unknown {
  if (!isA2AError(error)) return error
  const { code, message, metadata, violations } = error
  return new A2AError(code, `${title} ${TROUBLES[code] ?? 'refused'}: ${message}`, { metadata, violations, cause: error })
}

/** The task was not done in time. */
export function tooLate(title: string, deadlineMs: number): A2AError {
  return new A2AError('DeadlineExceeded', `${title} was not done within ${deadlineMs} ms.`)
}

/** Whether an agent says that it does not do such a thing. */
export function isNotDoneThere(error: unknown): boolean {
  return isA2AError(error) && NOT_DONE_THERE.includes(error.code)
}

/** Whether an error leaves open if the agent has taken what was sent. */
export function isLost(error: unknown): boolean {
  return isA2AError(error) && error.code === 'Overloaded'
}
