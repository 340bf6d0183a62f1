import type { ContextFact } from '../../machines/context.machine.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { notThisMessage } from '../authoring/input-schema.ts'

/** The error for calls that wait for a context that stops. */
export const CONTEXT_STOPPED = new A2AError(
  'Overloaded',
  'The context is not available now. Send the request again later.'
)

/** The error for calls and streams of a runtime that closes. */
export function runtimeClosing(): A2AError {
  return new A2AError('Overloaded', 'The agent is shutting down. Send the request again later.', { retryAfterMs: 1000 })
}

/** The error for requests for a new context of a principal whose data is being erased. */
export function beingErased(): A2AError {
  return new A2AError('Overloaded', 'Your data is being erased. Send the request again later.', { retryAfterMs: 1000 })
}

/** The error for calls that wait for a context that is erased. */
export const ERASED = new A2AError('TaskNotFound', 'The context was erased, with all of its tasks.')

/** The error for a request that was refused. */
export function requestRefused({ reason, violations }: Extract<ContextFact, { type: 'request.refused' }>): A2AError {
  if (violations) return notThisMessage(violations)
  return reason === 'full' ? full() : reason === 'crowded' ? crowded() : reason === 'late' ? lateAnswer() : noAnswer()
}

function full(): A2AError {
  return new A2AError(
    'RateLimited',
    'Too many tasks of this context have not ended. Wait for one to end, or start another context.'
  )
}

function crowded(): A2AError {
  return new A2AError(
    'RateLimited',
    'Too many messages of this context wait for an answer. Send the next one after an answer has arrived.'
  )
}

/** The error for a request whose negotiation failed. */
export function noAnswer(): A2AError {
  return new A2AError('InternalError', 'The agent could not answer this message.')
}

function lateAnswer(): A2AError {
  return new A2AError('DeadlineExceeded', 'The agent gave no answer to this message in time.')
}

/** Reason of a failed task with `recovery: 'fail'`. */
export const NOT_RESTARTED = 'The process ended while this task was working, and this agent does not restart such work.'

/** Reason of a task that exceeds `limits.eventsPerTask`: the events and messages of its log. */
export function tooManyEvents(limit: number): A2AError {
  return new A2AError(
    'RateLimited',
    `The task was ended: its log had ${limit} events and messages, the limit of this agent for one task.`
  )
}

/** Reason of a task that exceeds `limits.taskBytes`. */
export function tooManyBytes(limit: number, bytes: number): A2AError {
  return new A2AError(
    'RateLimited',
    `The task was ended: with its artifacts, statuses, messages, context and journal it would have ${bytes} bytes, and ${limit} are the limit of this agent for one task.`
  )
}
