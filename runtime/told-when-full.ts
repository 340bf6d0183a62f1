import { isTerminal } from '../machines/protocol/states.ts'
import type { TaskFact } from '../machines/task-events.ts'
import { tooManyEvents } from './context-errors.ts'

type Told = Exclude<TaskFact, { type: 'restart.requested' }>

/**
 * What is told of a fact of a task that has as many events as it may: nothing but its end. That is a failure where it was
 * to be a completion, for a result tells all of its artifacts and the completion in one go.
 */
export function toldWhenFull(fact: Told, limit: number): Told | undefined {
  if (fact.type !== 'status.changed' || !isTerminal(fact.state)) return undefined
  if (fact.state !== 'TASK_STATE_COMPLETED') return fact
  return { type: 'status.changed', state: 'TASK_STATE_FAILED', message: { parts: [{ text: tooManyEvents(limit).message }] } }
}
