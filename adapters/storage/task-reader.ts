import type { ContextKey, MessageRow, ReadOptions, Scope, StoredTask, TaskEvent } from '../../runtime/store.ts'
import { applyEvent, applyMessage, newTaskRecord, projectTask, type TaskRecord } from '../../runtime/task-projection.ts'
import { DamagedRow } from './damage.ts'
import type { Database, Statement } from './driver.ts'
import { originalText } from './stored-text.ts'
import type { EventRow, StoredTaskRow, Tables } from './tables.ts'

/** Reads tasks: makes them of their events and messages, and finds out if one is missing. */
export class TaskReader {
  readonly #events
  readonly #messages
  readonly #page
  readonly #terms
  readonly #status
  readonly #snapshot

  readonly #bytes: Statement

  constructor(database: Database, { events, messages, snapshots }: Tables) {
    this.#events = events.reading(['task'], 'ORDER BY generation')
    this.#page = events.reading(['task'], 'AND generation > ? ORDER BY generation LIMIT ?')
    this.#terms = events.reading(['task'], 'AND isTerm = 1 ORDER BY generation')
    this.#status = events.reading(['task', 'generation'])
    this.#snapshot = snapshots.reading(['task'])
    this.#messages = messages.reading(['task'], 'ORDER BY number')
    this.#bytes = database.prepare(`
      SELECT (SELECT total(octet_length(body)) FROM events WHERE task = ?) + (SELECT total(octet_length(body)) FROM messages WHERE task = ?) AS bytes`)
  }

  /** The task of a row. Throws DamagedRow if anything that it is made of is damaged. */
  read(scope: Scope, row: StoredTaskRow, options: ReadOptions = {}): StoredTask {
    const { historyLength, artifacts } = options
    // A live task whose actor cannot be restored is damaged, though what it said can be read.
    if (row.endedAtMs === null) this.snapshotOf(row)
    const key = { tenant: scope.tenant, principal: scope.principal, contextId: originalText(row.contextId) }
    const record = historyLength === 0 && artifacts === false ? this.#statusOf(key, row) : this.#wholeOf(key, row)
    return projectTask(record, options)
  }

  /** The snapshot of a task that has not ended. */
  snapshotOf({ task }: StoredTaskRow): string {
    const row = this.#snapshot.one(task)
    if (!row) throw new DamagedRow('snapshots')
    return row.snapshot
  }

  /** How many bytes a task's events and messages have. None of them is read for it. */
  bytesOf(task: number): number {
    return Number(this.#bytes.get(task, task)?.bytes)
  }

  /** A task's events after a generation. */
  readEvents({ task, generation }: StoredTaskRow, after: number, limit: number): TaskEvent[] {
    const rows = this.#page.all(task, after, limit)
    checkCount(rows, Math.min(limit, generation - after))
    return rows.map(eventOf)
  }

  /** What a task is without history and artifacts, of the few rows that say it. */
  #statusOf(key: ContextKey, row: StoredTaskRow): TaskRecord {
    const record = newTaskRecord(key, originalText(row.taskId))
    const newest = row.statusAt === 0 ? [] : this.#status.all(row.task, row.statusAt)
    checkCount(newest, Math.min(1, row.statusAt))
    for (const each of [...this.#terms.all(row.task), ...newest]) applyEvent(record, eventOf(each))
    record.generation = row.generation
    return record
  }

  /** What a task is: each message comes at the generation that it met. */
  #wholeOf(key: ContextKey, row: StoredTaskRow): TaskRecord {
    const record = newTaskRecord(key, originalText(row.taskId))
    const events = this.#events.all(row.task)
    const messages = this.#messages.all(row.task).map(({ body }) => JSON.parse(body) as MessageRow)
    checkCount(events, row.generation)
    checkCount(messages, row.messages)
    let next = 0
    for (const event of events.map(eventOf)) {
      for (let message = messages[next]; message && (message.generation ?? 0) < event.generation; message = messages[next]) {
        applyMessage(record, message)
        next += 1
      }
      applyEvent(record, event)
    }
    for (const message of messages.slice(next)) applyMessage(record, message)
    return record
  }
}

function eventOf({ body }: EventRow): TaskEvent {
  return JSON.parse(body) as TaskEvent
}

/** Rows that are not there are damage too. */
function checkCount(rows: readonly unknown[], count: number): void {
  if (rows.length < count) throw new DamagedRow('events and messages')
}
