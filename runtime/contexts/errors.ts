import type { ContextFact } from '../../machines/context.machine.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { notThisMessage } from '../authoring/input-schema.ts'
import type { ReadOptions, Scope, Store, StoredTask } from '../store/store.ts'

/** Why whoever waits for a context that stops gets no answer. */
export const SHUT_DOWN = new A2AError('Overloaded', 'The conversation is not available now. Send the request again later.')

/** Why nothing is begun any more, and streams end: the runtime closes. */
export function shutDown(): A2AError {
  return new A2AError('Overloaded', 'The agent is shutting down. Send the request again later.', { retryAfterMs: 1000 })
}

/** Why whoever waits for a context that is erased gets no answer. */
export const ERASED = new A2AError('TaskNotFound', 'The conversation was erased, with all of its tasks.')

/** The error for a request that got no answer and no task. */
export function requestRefused({ reason, violations }: Extract<ContextFact, { type: 'request.refused' }>): A2AError {
  if (violations) return notThisMessage(violations)
  return reason === 'full' ? full() : reason === 'crowded' ? crowded() : reason === 'late' ? lateAnswer() : noAnswer()
}

/** The error for a request in a context that has as many live tasks as it may. */
function full(): A2AError {
  return new A2AError('RateLimited', 'Too many tasks of this context have not ended. Wait for one to end, or start another context.')
}

/** The error for a request that comes while as many as may wait for answers of their negotiation. */
function crowded(): A2AError {
  return new A2AError('RateLimited', 'Too many messages of this context wait for an answer. Send the next when one has come.')
}

/** The error for a request whose negotiation broke. */
export function noAnswer(): A2AError {
  return new A2AError('InternalError', 'The agent could not answer this message.')
}

/** The error for a request whose negotiation took too long. */
function lateAnswer(): A2AError {
  return new A2AError('DeadlineExceeded', 'The agent gave no answer to this message in time.')
}

/** Why a task fails that was at work when its process ended, if its agent wants that. */
export const NOT_BEGUN_AGAIN = 'The process ended while this task was at work, and such work is not begun again.'

/** Why a task fails that says more and more. */
export function tooManyEvents(limit: number): A2AError {
  return new A2AError('RateLimited', `The task was ended: it had ${limit} events, more than this agent keeps of one task.`)
}

/** Why a task fails whose artifacts, statuses and messages grow and grow. */
export function tooManyBytes(limit: number): A2AError {
  return new A2AError('RateLimited', `The task was ended: its artifacts, statuses and messages would have more than ${limit} bytes, the most that this agent stores of one task.`)
}

/** The error for a task that is not there, or not the caller's: both look the same (§3.3.2). */
export function taskNotFound(taskId: string): A2AError {
  return new A2AError('TaskNotFound', `Task ${taskId} was not found.`, { metadata: { taskId } })
}

/** A task of a scope; without `options` only its status and what else is small. Throws TaskNotFound. */
export async function readTaskOrThrow(store: Store, scope: Scope, taskId: string, options: ReadOptions = { historyLength: 0, artifacts: false }): Promise<StoredTask> {
  const stored = await store.readTask(scope, taskId, options)
  if (!stored) throw taskNotFound(taskId)
  return stored
}
