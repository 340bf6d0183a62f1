import type { MessageContent } from '../machines/task-events.ts'

/** The name of the alarm that ends a task which was not finished in time. */
export const DEADLINE = 'deadline'

const UNITS = [
  ['day', 24 * 60 * 60 * 1000],
  ['hour', 60 * 60 * 1000],
  ['minute', 60 * 1000],
  ['second', 1000],
  ['millisecond', 1]
] as const

/** Why a task failed that was not finished in time; `deadlineMs` is what its agent allows, if it still has a deadline. */
export function notInTime(deadlineMs: number | undefined): MessageContent {
  return { parts: [{ text: `The task was not finished ${deadlineMs === undefined ? 'in time' : `within ${inWords(deadlineMs)}`}.` }] }
}

/** A length of time in the largest unit of which it is a whole number: `2 minutes`, `90 seconds`. */
function inWords(ms: number): string {
  const [unit, unitMs] = UNITS.find(([, unitMs]) => ms % unitMs === 0) ?? ['millisecond', 1]
  const count = ms / unitMs
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}
