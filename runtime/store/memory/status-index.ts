import { isTerminal, type TaskState } from '../../../machines/protocol/states.ts'
import { fitting } from '../rows.ts'
import type { TaskCursor, TaskQuery } from '../store.ts'
import type { TaskRecord } from '../task-record.ts'

/**
 * Index of tasks by state, sorted by status time within each, so that a page of ListTasks is a slice. It costs one list element per
 * task.
 */
export class StatusOrder<Record extends TaskRecord> {
  /** Oldest first, because most changes are at the newest end. */
  readonly #lists = new Map<TaskState, Record[]>()

  /** Adds a task at the position of its status. */
  add(task: Record): void {
    const { state } = task.status
    const list = this.#lists.get(state)
    if (!list) return void this.#lists.set(state, [task])
    const index = countOlder(list, timeOf(task), task.taskId)
    if (index === list.length) list.push(task)
    else list.splice(index, 0, task)
  }

  /** Removes a task, which must still have the status with which it was added. */
  remove(task: Record): void {
    const list = this.#lists.get(task.status.state) ?? []
    const index = countOlder(list, timeOf(task), task.taskId)
    if (list[index] === task) list.splice(index, 1)
  }

  /** Number of tasks that have not ended. */
  get open(): number {
    let open = 0
    for (const [state, list] of this.#lists) if (!isTerminal(state)) open += list.length
    return open
  }

  /** Adds the numbers of tasks that have not ended. */
  countOpen(counts: { [State in TaskState]?: number }): void {
    for (const [state, list] of this.#lists) if (!isTerminal(state)) counts[state] = (counts[state] ?? 0) + list.length
  }

  /** One page of tasks, the total number of matches, and the position of the next page. Ignores `contextId`. */
  page(
    { state, since = '', after, limit, bytes }: TaskQuery,
    bytesOf: (task: Record) => number
  ): { tasks: Record[]; total: number; next?: TaskCursor } {
    let total = 0
    const newest: Record[] = []
    for (const [ofState, list] of this.#lists) {
      if (state !== undefined && state !== ofState) continue
      const first = countOlder(list, since, '')
      const end = after ? countOlder(list, after.timestamp, after.taskId) : list.length
      total += list.length - first
      for (const task of list.slice(Math.max(first, end - limit - 1), end)) newest.push(task)
    }
    const tasks = fitting(newest.toSorted(latestFirst).slice(0, limit), bytes, bytesOf)
    const last = tasks.at(-1)
    return {
      tasks,
      total,
      ...(last && newest.length > tasks.length && { next: { timestamp: timeOf(last), taskId: last.taskId } })
    }
  }
}

/** Comparator: the task with the latest status comes first. */
export function latestFirst(one: TaskRecord, other: TaskRecord): number {
  return compare(other, timeOf(one), one.taskId)
}

function timeOf({ status }: TaskRecord): string {
  return status.timestamp ?? ''
}

/** Number of tasks older than a position, which is the position's index. Galloping search from the newest end, then binary search. */
function countOlder(list: readonly TaskRecord[], timestamp: string, taskId: string): number {
  const isOlder = (index: number) => {
    const task = list[index]
    return task !== undefined && compare(task, timestamp, taskId) < 0
  }
  let high = list.length
  let low = high
  for (let step = 1; low > 0; step *= 2) {
    low = Math.max(0, high - step)
    if (isOlder(low)) break
    high = low
  }
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isOlder(middle)) low = middle + 1
    else high = middle
  }
  return high
}

function compare(task: TaskRecord, timestamp: string, taskId: string): number {
  const time = timeOf(task)
  if (time !== timestamp) return time < timestamp ? -1 : 1
  return task.taskId < taskId ? -1 : 1
}
