import { TASK_STATES } from '../../../machines/protocol/states.ts'
import { fitting } from '../../../runtime/store/rows.ts'
import type { TaskCursor, TaskQuery } from '../../../runtime/store/store.ts'
import { originalText, storedText } from '../../rows/damage.ts'
import type { Database } from '../driver.ts'

const STATES = Object.keys(TASK_STATES)

/** Sorts after the time of every status. */
const NO_END = '~'

/** A task's position in a list, and its row. */
export interface ListedTask {
  readonly task: number
  readonly time: string
  /** In its stored form. */
  readonly taskId: string
}

/** Finds the pages of lists. One index has the tasks of a scope or context by state, status time and id. */
export class TaskLister {
  readonly #of

  constructor(database: Database) {
    const by = (column: 'scope' | 'context') => ({
      count: database.prepare(`SELECT count(*) AS count FROM tasks WHERE ${column} = ? AND state = ? AND time >= ?`),
      page: database.prepare(`
        SELECT task, time, taskId FROM tasks WHERE ${column} = ? AND state = ? AND time >= ? AND (time, taskId) < (?, ?)
        ORDER BY time DESC, taskId DESC LIMIT ?`)
    })
    this.#of = { scope: by('scope'), context: by('context') }
  }

  /**
   * The tasks on a page, the number of all matches, and the cursor of the next page. `number` is that of the scope or
   * context.
   */
  page(
    of: 'scope' | 'context',
    number: number,
    { state, since = '', after, limit, bytes }: TaskQuery,
    bytesOf: (task: ListedTask) => number
  ): { tasks: ListedTask[]; total: number; next?: TaskCursor } {
    const { count, page } = this.#of[of]
    const [time, taskId] = after ? [after.timestamp, storedText(after.taskId)] : [NO_END, '']
    let total = 0
    const found: ListedTask[] = []
    for (const each of state === undefined ? STATES : [state]) {
      total += Number(count.get(number, each, since)?.count)
      found.push(...(page.all(number, each, since, time, taskId, limit + 1) as unknown as ListedTask[]))
    }
    const tasks = fitting(found.toSorted(newestFirst).slice(0, limit), bytes, bytesOf)
    const last = tasks.at(-1)
    return {
      tasks,
      total,
      ...(last && found.length > tasks.length && { next: { timestamp: last.time, taskId: originalText(last.taskId) } })
    }
  }
}

function newestFirst(a: ListedTask, b: ListedTask): number {
  if (a.time !== b.time) return a.time < b.time ? 1 : -1
  return a.taskId < b.taskId ? 1 : -1
}
