import { A2AError, isA2AError, type ErrorCode } from '../../../machines/protocol/errors.ts'
import type { Task } from '../../../machines/protocol/objects.ts'
import type { TaskState } from '../../../machines/protocol/states.ts'
import { textOf } from '../../../runtime/authoring/words.ts'

/** The end of an incomplete task, in words. */
const ENDS: Partial<Record<TaskState, string>> = {
  TASK_STATE_FAILED: 'failed',
  TASK_STATE_REJECTED: 'rejected the task',
  TASK_STATE_CANCELED: 'canceled the task'
}

/** The meaning of an error; any other error is a refusal. */
const TROUBLES: Partial<Record<ErrorCode, string>> = {
  Overloaded: 'could not be reached',
  RateLimited: 'is over its limits',
  InvalidAgentResponse: 'sent an invalid answer'
}

/** Errors for unsupported operations. */
const NOT_DONE_THERE: readonly ErrorCode[] = ['UnsupportedOperation', 'MethodNotFound', 'InvalidRequest']

/** The error for a task that the agent did not complete; `metadata.state` is its state. */
export function notCompleted(title: string, { id, status: { state, message } }: Task): A2AError {
  const reason = message && textOf(message)
  return new A2AError(
    'InternalError',
    `${title} ${ENDS[state] ?? 'did not complete the task'}${reason ? `: ${reason}` : '.'}`,
    { metadata: { state, taskId: id } }
  )
}

/** An error of a connection to another agent, or of the agent, for the work. */
export function troubleWith(title: string, error: unknown): unknown {
  if (!isA2AError(error)) return error
  const { code, message, metadata, violations } = error
  return new A2AError(code, `${title} ${TROUBLES[code] ?? 'refused'}: ${message}`, {
    metadata,
    violations,
    cause: error
  })
}

/** The error after the deadline. */
export function tooLate(title: string, deadlineMs: number): A2AError {
  return new A2AError('DeadlineExceeded', `${title} was not done within ${deadlineMs} ms.`)
}

/** Whether an agent does not support an operation. */
export function isNotDoneThere(error: unknown): boolean {
  return isA2AError(error) && NOT_DONE_THERE.includes(error.code)
}

/** Whether an error leaves open if the agent received the request. */
export function isLost(error: unknown): boolean {
  return isA2AError(error) && error.code === 'Overloaded'
}
