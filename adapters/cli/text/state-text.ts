import { TASK_STATES, type TaskState } from '../../../machines/protocol/states.ts'
import { usageError } from '../command.ts'

/** A task's state for people: `input-required`. */
export function stateText(state: TaskState): string {
  return state.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-')
}

/** Parses the state in an option. Throws a usage error for an unknown one. */
export function readState(option: string, text: string): TaskState {
  const states = Object.keys(TASK_STATES) as TaskState[]
  const state = states.find(state => stateText(state) === text)
  if (state) return state
  throw usageError(`${option} takes ${states.map(stateText).join(', ')}, not ${JSON.stringify(text)}.`)
}
