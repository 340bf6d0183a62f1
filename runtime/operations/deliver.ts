import { A2AError, violationsText, type FieldViolation } from '../../machines/protocol/errors.ts'
import type { CallContext } from '../access/call-context.ts'
import { LOST_RACE } from '../commits/commit-pipeline.ts'
import type { ContextRegistry } from '../contexts/context-registry.ts'
import type { OutsideEvent, OutsideTerms } from '../contexts/external-events.ts'
import type { LiveContext } from '../contexts/live-context.ts'
import type { ContextKey, TaskEvent, TaskRow } from '../store/store.ts'
import type { TaskRecord } from '../store/task-record.ts'

/** A task that a message opened: as it was before its work began, and the events of the turn from then on. */
export interface Opening {
  readonly record: TaskRecord
  readonly later: readonly TaskEvent[]
}

/** Where a message came to a task: the task as the turn left it, which opened it or in which it took the message. */
export interface Routed {
  readonly key: ContextKey
  readonly row: TaskRow
  /** Gives the task, a copy of its own each time, if the message opened it. */
  readonly opened?: () => Opening
  /** The message had been taken before: the task may have moved on since it was read. */
  readonly isRepeated?: boolean
}

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
 * Has a task decide upon an event. Gives what `attach` makes of the task when that is committed, before any later event
 * of it is told; `undefined` if the task does not take the event. Throws TaskGenerationMismatch if it has moved on.
 */
export function deliver<T>(live: LiveContext, event: OutsideEvent, terms: OutsideTerms, attach: (placed: Routed) => T): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const reception = live.send(event, terms, {
      told: turn => {
        const row = turn.rowOf(event.taskId)
        if (reception === 'stale') reject(movedOn(event.taskId))
        else if (reception === 'full') reject(queueFull(event.taskId))
        else if (reception === 'large') reject(noRoom(event.taskId))
        else if (typeof reception !== 'string') reject(notThisAnswer(reception))
        else resolve(reception === 'taken' && row ? attach({ key: live.key, row }) : undefined)
      },
      failed: reject
    })
  })
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
