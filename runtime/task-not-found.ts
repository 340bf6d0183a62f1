import { A2AError } from '../machines/protocol/errors.ts'

/** The error for a task that is not there, or not the caller's: both look the same (§3.3.2). */
export function taskNotFound(taskId: string): A2AError {
  return new A2AError('TaskNotFound', `Task ${taskId} was not found.`, { metadata: { taskId } })
}
