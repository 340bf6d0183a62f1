import { signal } from '@preact/signals'
import type { TaskRow } from '../../feed.ts'

/** How many tasks are kept, as the hub does; the longest ago opened go first. */
const MOST_TASKS = 10_000

/** The tasks by their ids. What reads it watches `taskChanges`. */
export const tasks = new Map<string, TaskRow>()

/** Grows whenever `tasks` changes. */
export const taskChanges = signal(0)

/** Notes how tasks are. `isAll`: there are no others any more. */
export function noteTasks(rows: readonly TaskRow[], removed: readonly string[], isAll: boolean): void {
  if (isAll) tasks.clear()
  for (const row of rows) tasks.set(row.taskId, row)
  for (const taskId of removed) tasks.delete(taskId)
  if (tasks.size > MOST_TASKS) forgetOldest()
  taskChanges.value += 1
}

function forgetOldest(): void {
  const newestFirst = [...tasks.values()].toSorted((one, other) => other.openedMs - one.openedMs)
  for (const { taskId } of newestFirst.slice(MOST_TASKS)) tasks.delete(taskId)
}
