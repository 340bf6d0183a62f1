import type { TaskState } from '../../../../machines/protocol/states.ts'

/** A task's state as people read it: `input-required`. */
export function stateText(state: TaskState): string {
  return state.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-')
}

/** The beginning of an id, enough to tell it from others. */
export function shortId(id: string): string {
  return id.length > 12 ? `${id.slice(0, 10)}…` : id
}

/** A size that people can read: `12.3 kB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}

/** A value as JSON on several lines; what is no JSON as it is. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, undefined, 2) ?? String(value)
}

/** What went wrong, for people. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** A number with its noun, as in `1 task` and `2 tasks`. */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}
