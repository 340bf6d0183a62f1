import type { ContextKey, MessageRow, ReadOptions, StoredTask, TaskEvent } from '../../runtime/store/store.ts'
import { applyEvents, applyMessage, newTaskRecord, projectTask, type TaskRecord } from '../../runtime/store/task-record.ts'
import { type Cell, DamagedRow } from './damage.ts'

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

/** The smallest number of rows whose sizes add up to `bytes`, at least one. */
export function fewest(rows: readonly Readonly<Record<string, Cell>>[], bytes: number): number {
  let left = bytes
  const end = rows.findIndex(row => (left -= Number(row['bytes'])) <= 0)
  return end < 0 ? Math.max(1, rows.length) : end + 1
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
