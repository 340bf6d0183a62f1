import { LruCache } from '../../../runtime/primitives/collections.ts'
import { fitsInto, type Scope } from '../../../runtime/store/rows.ts'
import type {
  ContextKey,
  MessageRow,
  ReadOptions,
  StoredTask,
  TaskChoice,
  TaskEvent,
  TaskSize
} from '../../../runtime/store/store.ts'
import { applyEvent, newTaskRecord, projectTask, type TaskRecord } from '../../../runtime/store/task-record.ts'
import { applyRows, checkCount, checkEntries, countBefore, lackingIn } from '../../rows/commit-rows.ts'
import { DamagedRow, originalText, storedText } from '../../rows/damage.ts'
import type { Database, Statement } from '../driver.ts'
import type { EventRow, StoredTaskRow, Tables } from '../tables.ts'

/** The size of the cache, and the number of events from which a task is cached. */
const KEPT = 32
const KEPT_FROM = 64

/** A cached task, with the number of its messages. */
interface KeptTask {
  readonly record: TaskRecord
  readonly messages: number
}

/**
 * The bytes above which a task that is not cached is sent as its rows. Below it, a task is less to parse than they are.
 */
const ROWS_FROM_BYTES = 16 * 1024

/** The maximum number of rows in a page of a task. */
const PAGE_ROWS = 1000

/** Reads tasks: builds them from their events and messages, and detects missing rows. */
export class TaskReader {
  readonly sizes: TaskSizes
  readonly #page
  readonly #terms
  readonly #status
  readonly #snapshot
  readonly #snapshotBytes: Statement

  readonly #messagePage
  readonly #eventsBefore: Statement
  readonly #messagesBefore: Statement
  readonly #numbered: Statement
  /** LRU cache of tasks with many events, by id: a later read adds their new rows. */
  readonly #kept = new LruCache<KeptTask>(KEPT)

  constructor(database: Database, { events, messages, snapshots }: Tables) {
    this.#page = events.reading(['task'], 'AND generation > ? ORDER BY generation LIMIT ?')
    this.#terms = events.reading(['task'], 'AND isTerm = 1 ORDER BY generation')
    this.#status = events.reading(['task', 'generation'])
    this.#snapshot = snapshots.reading(['task'])
    this.#snapshotBytes = database.prepare('SELECT octet_length(snapshot) AS bytes FROM snapshots WHERE task = ?')
    this.#messagePage = messages.reading(['task'], 'ORDER BY number LIMIT ? OFFSET ?')
    this.#eventsBefore = database.prepare(
      countBefore(
        'SELECT generation, octet_length(body) AS bytes FROM events WHERE task = ? AND generation > ? ORDER BY generation LIMIT ?',
        'generation',
        '?'
      )
    )
    this.#messagesBefore = database.prepare(
      countBefore(
        'SELECT number, octet_length(body) AS bytes FROM messages WHERE task = ? ORDER BY number LIMIT ? OFFSET ?',
        'number',
        '?'
      )
    )
    this.#numbered = database.prepare(
      'SELECT count(*) AS count FROM messages WHERE task = ? AND generation > ? AND generation <= ?'
    )
    this.sizes = new TaskSizes(database)
  }

  /**
   * Reads the task of a row; `fits` is that of all tasks of a list. Throws DamagedRow if any of its rows is damaged.
   */
  read(scope: Scope, row: StoredTaskRow, options: ReadOptions = {}, fits = fitsInto(options.within)): StoredTask {
    const { historyLength, artifacts, within } = options
    // A live task without an intact snapshot cannot be restored, so it counts as damaged.
    if (row.endedAtMs === null) this.snapshotOf(row)
    const key = keyOf(scope, row)
    if (historyLength === 0 && artifacts === false) return projectTask(this.#statusOf(key, row), options)
    const bytes = within === undefined ? 0 : this.sizes.bytesOf(row)
    if (fits(bytes)) return projectTask(this.#wholeOf(key, row), options)
    return {
      ...projectTask(this.#statusOf(key, row), { historyLength: 0, artifacts: false }),
      large: { messages: row.messages, bytes }
    }
  }

  /**
   * Reads the task of a row as JSON, of a StoredTask or of TaskRows. To parse a long task here, and once more where it
   * is used, would keep others waiting.
   */
  readText(scope: Scope, row: StoredTaskRow, options: ReadOptions = {}, fits = fitsInto(options.within)): string {
    const { historyLength, artifacts, within } = options
    const mayBeRows =
      within !== undefined &&
      Math.max(row.generation, row.messages) < KEPT_FROM &&
      (historyLength !== 0 || artifacts !== false)
    const bytes = mayBeRows ? this.sizes.bytesOf(row) : 0
    if (bytes <= ROWS_FROM_BYTES || !fits(bytes)) return JSON.stringify(this.read(scope, row, options, fits))
    if (row.endedAtMs === null) this.snapshotOf(row)
    const [events, messages] = [this.readEvents(row, 0, row.generation), this.readMessages(row, 0, bytes)]
    return `{"key":${JSON.stringify(keyOf(scope, row))},"taskId":${JSON.stringify(originalText(row.taskId))},"events":${events},"messages":${messages}}`
  }

  /** Clears the cache after tasks were removed. */
  forget(): void {
    this.#kept.clear()
    this.sizes.forget()
  }

  /** The snapshot of a live task. */
  snapshotOf({ task }: StoredTaskRow): string {
    const row = this.#snapshot.one(task)
    if (!row) throw new DamagedRow('snapshots')
    return row.snapshot
  }

  /** The size of a task's snapshot in bytes, without reading it; 0 without one. */
  snapshotBytesOf(task: number): number {
    return Number(this.#snapshotBytes.get(task)?.bytes ?? 0)
  }

  /** A task's events after a generation, as JSON. */
  readEvents({ task, generation }: StoredTaskRow, after: number, limit: number, bytes?: number): string {
    const most =
      bytes === undefined
        ? limit
        : Math.min(limit, Number(this.#eventsBefore.get(task, after, limit, bytes)?.count) + 1)
    const rows = this.#page.all(task, after, most)
    const { until, count } = lackingIn(rows, { after, most, generation })
    if (count > 0) checkCount(Number(this.#numbered.get(task, after, until)?.count), count)
    return listOf(rows)
  }

  /** A task's messages after the first `after`, as JSON. */
  readMessages({ task, messages }: StoredTaskRow, after: number, bytes: number): string {
    const most = Math.min(PAGE_ROWS, Number(this.#messagesBefore.get(task, PAGE_ROWS, after, bytes)?.count) + 1)
    const rows = this.#messagePage.all(task, most, after)
    checkCount(rows.length, Math.min(most, messages - after))
    return listOf(rows)
  }

  /** A task without history and artifacts, from the few rows that this needs. */
  #statusOf(key: ContextKey, row: StoredTaskRow): TaskRecord {
    const record = newTaskRecord(key, originalText(row.taskId))
    const newest = row.statusAt === 0 ? [] : this.#status.all(row.task, row.statusAt)
    checkCount(newest.length, Math.min(1, row.statusAt))
    for (const each of [...this.#terms.all(row.task), ...newest]) applyEvent(record, eventOf(each))
    record.generation = row.generation
    return record
  }

  /**
   * A task from all of its rows: each message is applied at its generation. For a cached task only new rows are read.
   */
  #wholeOf(key: ContextKey, row: StoredTaskRow): TaskRecord {
    const { record, messages: known } = this.#kept.get(row.taskId, () => ({
      record: newTaskRecord(key, originalText(row.taskId)),
      messages: 0
    }))
    // Cached again after all rows are applied, since a damaged one throws.
    this.#kept.delete(row.taskId)
    const events = this.#page.all(row.task, record.generation, row.generation)
    const messages = this.#messagePage
      .all(row.task, row.messages, known)
      .map(({ body }) => JSON.parse(body) as MessageRow)
    checkEntries(events, messages, row.generation - record.generation)
    checkCount(messages.length, row.messages - known)
    applyRows(record, events.map(eventOf), messages)
    if (row.generation >= KEPT_FROM) this.#kept.set(row.taskId, { record, messages: row.messages })
    return record
  }
}

function keyOf({ tenant, principal }: Scope, { contextId }: StoredTaskRow): ContextKey {
  return { tenant, principal, contextId: originalText(contextId) }
}

/** The bodies of rows as a JSON array. */
function listOf(rows: readonly { readonly body: string }[]): string {
  return `[${rows.map(({ body }) => body).join()}]`
}

function eventOf({ body }: EventRow): TaskEvent {
  return JSON.parse(body) as TaskEvent
}

/** The size of the cache. */
const REMEMBERED = 1000

/** A task's number and its id as the column holds it. */
interface TaskName {
  readonly task: number
  readonly taskId: string
}

/** The bytes of the rows of one table up to the last one. */
interface Counted {
  readonly bytes: number
  readonly last: number
}

const NOTHING: Counted = { bytes: 0, last: -1 }

/**
 * Sizes of stored tasks, in bytes of JSON. Rows of events and messages never change, so a later call adds the new ones
 * alone.
 */
class TaskSizes {
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

  /**
   * The sizes of the tasks that are chosen; `of` is the number of their scope, or of their context if its newest are
   * chosen.
   */
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
