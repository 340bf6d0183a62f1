import type { ContextKey, MessageRow, ReadOptions, StoredTask, TaskEvent } from '../../runtime/store/store.ts'
import {
  applyEvents,
  applyMessage,
  newTaskRecord,
  projectTask,
  type TaskRecord
} from '../../runtime/store/task-record.ts'
import { DamagedRow } from './damage.ts'

/** All rows of a task, which a thread sends without parsing them. */
export interface TaskRows {
  readonly key: ContextKey
  readonly taskId: string
  readonly events: readonly TaskEvent[]
  readonly messages: readonly MessageRow[]
}

/** A task as a thread has sent it. */
export function receivedTask(sent: StoredTask | TaskRows, options?: ReadOptions): StoredTask {
  if ('task' in sent) return sent
  const record = newTaskRecord(sent.key, sent.taskId)
  applyRows(record, sent.events, sent.messages)
  return projectTask(record, options)
}

/** Applies events and messages in the order in which they happened: each message at its generation. */
export function applyRows(record: TaskRecord, events: readonly TaskEvent[], messages: readonly MessageRow[]): void {
  for (const message of messages.slice(applyEvents(record, events, messages))) applyMessage(record, message)
}

/**
 * SQL that counts the rows before the one with which their sizes reach `most`: a read that stops there has one more. `sizes` is SQL for a
 * page of rows, each with its `bytes` and with the column of `order`. The database adds up, so that no row of sizes has to be made.
 */
export function countBefore(sizes: string, order: string, most: string): string {
  return `SELECT count(*) AS count FROM (SELECT sum(bytes) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) AS total FROM (${sizes}) AS page) AS sums WHERE total < ${most}`
}

/** A read of at most `most` events of a task, whose generation is `generation`, after one; `newest` is the last that was found. */
interface EventsRead {
  readonly after: number
  readonly most: number
  readonly generation: number
  readonly newest: number | undefined
}

/** Missing events count as damage, at the end of what was read and before it. */
export function checkEvents(rows: readonly unknown[], { after, most, generation, newest = after }: EventsRead): void {
  checkCount(rows, Math.max(Math.min(most, generation - after), newest - after))
}

/** Missing rows count as damage. */
export function checkCount(rows: readonly unknown[], count: number): void {
  if (rows.length < count) throw new DamagedRow('events and messages')
}
