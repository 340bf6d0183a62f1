import { A2AError, violationsText, type FieldViolation } from '../../machines/protocol/errors.ts'
import type { CallContext } from '../access/call-context.ts'
import { LOST_RACE } from '../commits/commit-pipeline.ts'
import { Turn } from '../commits/turn.ts'
import type { ContextRegistry } from '../contexts/context-registry.ts'
import type { OutsideEvent, OutsideTerms } from '../contexts/external-events.ts'
import type { LiveContext } from '../contexts/live-context.ts'
import type { ContextKey, TaskRow } from '../store/store.ts'

const ATTEMPTS = 5

/** Has a live context decide; when another writer was faster, the context as it is now decides again. */
export async function withLostRaceRetry<T>(
  contexts: ContextRegistry,
  key: ContextKey,
  decide: (live: LiveContext) => Promise<T>,
  connection?: CallContext['connection'],
  attempts = ATTEMPTS
): Promise<T> {
  let live = await contexts.get(key, connection)
  // It may have left memory again before it was our turn.
  while (live.isLeaving) live = await contexts.get(key, connection)
  try {
    return await decide(live)
  } catch (error) {
    if (error !== LOST_RACE || attempts === 1) throw error
    return withLostRaceRetry(contexts, key, decide, connection, attempts - 1)
  }
}

/**
 * Has a task decide upon an event. Gives the task as the turn left it, once that is committed; `undefined` if the task does
 * not take the event. Throws TaskGenerationMismatch if it has moved on.
 */
export async function deliver(live: LiveContext, event: OutsideEvent, terms: OutsideTerms): Promise<TaskRow | undefined> {
  const { taskId } = event
  const decided = await live.send(event, terms)
  if (decided instanceof Turn) return decided.rowOf(taskId)
  if (decided === 'refused') return undefined
  if (decided === 'stale') throw movedOn(taskId)
  if (decided === 'full') throw queueFull(taskId)
  throw decided === 'large' ? noRoom(taskId) : notThisAnswer(decided)
}

function queueFull(taskId: string): A2AError {
  return new A2AError('RateLimited', `Task ${taskId} has as many messages waiting as it takes. Send the next when it has asked.`, { metadata: { taskId } })
}

function noRoom(taskId: string): A2AError {
  return new A2AError('RateLimited', `Task ${taskId} has no room for a message of this size: it nearly has as many bytes as this agent stores of one task. Send a smaller one, or start another task.`, {
    metadata: { taskId }
  })
}

function notThisAnswer(violations: readonly FieldViolation[]): A2AError {
  return new A2AError('InvalidParams', `The task does not take this answer: ${violationsText(violations)}. Answer what it asks; it still waits.`, { violations })
}

/** The error for a task that has another generation than the client asked for. */
export function movedOn(taskId: string): A2AError {
  return new A2AError('TaskGenerationMismatch', `Task ${taskId} has moved on from the generation that was asked for. Read it again and decide anew.`, {
    metadata: { taskId }
  })
}
