import type { Commit, ContextKey, MessageRow, TaskEvent, TaskRow } from '../../runtime/store.ts'
import { storedText } from './stored-text.ts'

/** One entry of a commit's log: its JSON, made once, and what its row is found by. */
export interface LogRow {
  readonly body: string
  /** The task that it is about, as a key column holds it. */
  readonly taskId?: string | undefined
  /** Of an event, and none of a message. */
  readonly generation?: number
  /** Of a status: its state and time. */
  readonly state?: string
  readonly time?: string
  /** Whether it is a status with metadata. */
  readonly isTerm?: boolean
}

/** A commit as it goes to the engine: flat, with the JSON of each row and keys as columns hold them. */
export interface CommitRows extends Pick<Commit, 'expected' | 'atMs' | 'snapshot'> {
  readonly tenant: string
  readonly principal: string
  readonly contextId: string
  readonly tasks: readonly TaskRow[]
  readonly log: readonly LogRow[]
  readonly journal: readonly { readonly taskId: string; readonly key: string; readonly body: string }[]
  readonly sends: readonly { readonly key: string; readonly expiresAtMs: number; readonly body: string }[]
}

/** Makes the rows of a commit. */
export function rowsOf({ key, expected, atMs, snapshot, tasks, log, journal, sends }: Commit): CommitRows {
  return {
    ...storedKey(key), expected, atMs, snapshot,
    tasks: tasks.map(task => ({ ...task, taskId: storedText(task.taskId) })),
    log: log.map(entry => ('message' in entry ? messageRow(entry) : eventRow(entry))),
    journal: journal.map(({ taskId, key, value }) => ({ taskId: storedText(taskId), key: storedText(key), body: JSON.stringify(value) })),
    sends: sends.map(send => ({ key: storedText(send.key), expiresAtMs: send.expiresAtMs, body: JSON.stringify(send) }))
  }
}

/** A context's key as columns hold it. */
export function storedKey({ tenant, principal, contextId }: ContextKey): Pick<CommitRows, 'tenant' | 'principal' | 'contextId'> {
  return { tenant: storedText(tenant), principal: storedText(principal), contextId: storedText(contextId) }
}

function messageRow(entry: MessageRow): LogRow {
  return { body: JSON.stringify(entry), taskId: entry.taskId === undefined ? undefined : storedText(entry.taskId) }
}

function eventRow(event: TaskEvent): LogRow {
  const { taskId, generation, update } = event
  const row = { body: JSON.stringify(event), taskId: storedText(taskId), generation }
  if ('artifactUpdate' in update) return row
  const { status, metadata } = update.statusUpdate
  return { ...row, state: status.state, time: status.timestamp ?? '', isTerm: metadata !== undefined }
}
