import { isTerminal } from '../machines/protocol/states.ts'
import type { TaskFact } from '../machines/task-events.ts'

type Told = Exclude<TaskFact, { type: 'restart.requested' }>

/**
 * What is told of a fact of a task that has as many events, or bytes, as it may: nothing but its end. That is a failure where
 * it was to be a completion, for a result tells all of its artifacts and the completion in one go. `reason` says why; without
 * room for bytes it takes the place of what the end was to say.
 */
export function toldWhenFull(fact: Told, reason: string, hasRoom: boolean): Told | undefined {
  if (fact.type !== 'status.changed' || !isTerminal(fact.state)) return undefined
  const isCompleted = fact.state === 'TASK_STATE_COMPLETED'
  if (hasRoom && !isCompleted) return fact
  return { type: 'status.changed', state: isCompleted ? 'TASK_STATE_FAILED' : fact.state, message: { parts: [{ text: reason }] } }
}
