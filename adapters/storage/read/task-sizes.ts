import { LruCache } from '../../../runtime/primitives/lru-cache.ts'
import type { TaskChoice, TaskSize } from '../../../runtime/store/store.ts'
import type { Database, Statement } from '../driver.ts'
import { originalText, storedText } from '../../rows/stored-text.ts'

/** The size of the cache. */
const REMEMBERED = 1000

/** A task's number and its id as the column holds it. */
export interface TaskName {
  readonly task: number
  readonly taskId: string
}

/** The bytes of the rows of one table up to the last one. */
interface Counted {
  readonly bytes: number
  readonly last: number
}

const NOTHING: Counted = { bytes: 0, last: -1 }

/** Sizes of stored tasks, in bytes of JSON. Rows of events and messages never change, so a later look adds the new ones alone. */
export class TaskSizes {
  readonly #events: Statement
  readonly #messages: Statement
  readonly #journal: Statement
  readonly #ofIds: Statement
  readonly #newest: Statement
  readonly #counted = new LruCache<{ readonly events: Counted; readonly messages: Counted }>(REMEMBERED)

  constructor(database: Database) {
    // `octet_length` reads a row's header alone, so the pages of long texts are not read.
    const after = (table: string, number: string) =>
      database.prepare(
        `SELECT total(octet_length(body)) AS bytes, max(${number}) AS last FROM ${table} WHERE task = ? AND ${number} > ?`
      )
    this.#events = after('events', 'generation')
    this.#messages = after('messages', 'number')
    this.#journal = database.prepare('SELECT total(octet_length(body)) AS bytes FROM journal WHERE task = ?')
    // The `+` has SQLite look up the ids, rather than go through all tasks of the scope.
    this.#ofIds = database.prepare(
      'SELECT task, taskId FROM tasks WHERE +scope = ? AND taskId IN (SELECT value FROM json_each(?)) ORDER BY time DESC, taskId DESC'
    )
    this.#newest = database.prepare('SELECT task, taskId FROM tasks WHERE context = ? ORDER BY task DESC LIMIT ?')
  }

  /** The bytes of a task's events and messages. */
  bytesOf({ task, taskId }: TaskName): number {
    const known = this.#counted.get(taskId, () => ({ events: NOTHING, messages: NOTHING }))
    const events = added(known.events, this.#events, task)
    const messages = added(known.messages, this.#messages, task)
    this.#counted.set(taskId, { events, messages })
    return events.bytes + messages.bytes
  }

  /** The sizes of the tasks that are chosen; `of` is the number of their scope, or of their context if its newest are chosen. */
  measure(of: number, choice: TaskChoice): TaskSize[] {
    const rows =
      'newest' in choice
        ? this.#newest.all(of, choice.newest)
        : this.#ofIds.all(of, JSON.stringify(choice.taskIds.map(storedText)))
    return (rows as unknown as TaskName[]).map(row => ({
      taskId: originalText(row.taskId),
      bytes: this.bytesOf(row),
      journalBytes: Number(this.#journal.get(row.task)?.bytes)
    }))
  }

  /** Clears the cache after tasks were removed. */
  forget(): void {
    this.#counted.clear()
  }
}

/** Adds the rows after the last one that was counted. */
function added({ bytes, last }: Counted, newer: Statement, task: number): Counted {
  const found = newer.get(task, last)
  return { bytes: bytes + Number(found?.bytes), last: Number(found?.last ?? last) }
}
