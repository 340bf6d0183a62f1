import { stateText, TASK_STATES, type TaskState } from '../../../machines/protocol/states.ts'
import { usageError } from '../command.ts'
import { styled, type Style } from './colour.ts'

const STYLES: Readonly<Record<string, Style>> = {
  completed: 'green',
  failed: 'red',
  rejected: 'red',
  canceled: 'red',
  'input-required': 'yellow',
  'auth-required': 'yellow',
  working: 'cyan',
  submitted: 'cyan'
}

/** Colours the state with which a text begins. */
export function paintState(hasColours: boolean, text: string): string {
  return text.replace(/^[a-z]+(?:-required)?(?=$|[ :])/, word =>
    Object.hasOwn(STYLES, word) ? styled(hasColours, STYLES[word] as Style, word) : word
  )
}

/** Parses the state in an option. Throws a usage error for an unknown one. */
export function readState(option: string, text: string): TaskState {
  const states = Object.keys(TASK_STATES) as TaskState[]
  const state = states.find(state => stateText(state) === text)
  if (state) return state
  throw usageError(`${option} takes ${states.map(stateText).join(', ')}, not ${JSON.stringify(text)}.`)
}
