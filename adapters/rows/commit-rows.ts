import { A2AError, type ErrorCode, isA2AError } from '../../machines/protocol/errors.ts'
import type { TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from '../../machines/protocol/objects.ts'
import type { NewWebhook, WebhookNote, Scope } from '../../runtime/store/rows.ts'
import {
  type Commit,
  type ContextKey,
  type Erasure,
  generationOf,
  type MessageRow,
  type ReadOptions,
  type StoredTask,
  type SweepBounds,
  type TaskEvent,
  type TaskRow
} from '../../runtime/store/store.ts'
import {
  applyEvents,
  applyMessage,
  newTaskRecord,
  projectTask,
  type TaskRecord
} from '../../runtime/store/task-record.ts'
import type { TransitionCount } from '../../runtime/work-port.ts'
import { DamagedRow, StorageError, storedText } from './damage.ts'

/** A task's row in a commit; null for absent members. */
export interface TaskColumns {
  readonly taskId: string
  readonly state: string
  readonly generation: number
  readonly snapshot: string | null
  readonly wakeAtMs: number | null
}

/** The length of text from which an event is large. */
const LARGE_CHARACTERS = 1024 * 1024

/** One entry of a commit's log: its JSON, and the columns of its row. */
export interface LogRow {
  /** Empty for a large event, which is sent to the thread as an object: that takes less time here than its JSON. */
  readonly body: string
  readonly large: TaskEvent | undefined
  /** The approximate length of its JSON. */
  readonly characters: number
  /** The task of the entry, if any. */
  readonly taskId: string | undefined
  readonly isMessage: boolean
  /** Its own generation; 0 for a message without one. */
  readonly generation: number
  /** The state and the time of a status. */
  readonly state: string | undefined
  readonly time: string
  /** Whether it is a status with metadata, which an index finds. */
  readonly isTerm: boolean
}

/** A commit in the form for the engine: flat, with the JSON of each row, and keys and ids in their stored form. */
export interface CommitRows {
  readonly tenant: string
  readonly principal: string
  readonly contextId: string
  readonly expected: number
  readonly atMs: number
  readonly snapshot: string
  readonly tasks: readonly TaskColumns[]
  readonly log: readonly LogRow[]
  readonly journal: readonly { readonly taskId: string; readonly key: string; readonly body: string }[]
  readonly sends: readonly { readonly key: string; readonly expiresAtMs: number; readonly body: string }[]
  readonly webhooks: readonly (NewWebhook & { readonly told: number })[]
}

/**
 * Makes the rows of a commit. Written as literals: this runs for every commit, and spreading objects costs several
 * times as much.
 */
export function rowsOf({ key, expected, atMs, snapshot, tasks, log, journal, sends, webhooks }: Commit): CommitRows {
  return {
    tenant: storedText(key.tenant),
    principal: storedText(key.principal),
    contextId: storedText(key.contextId),
    expected,
    atMs,
    snapshot,
    tasks: tasks.map(taskRow),
    log: log.map(entry => ('message' in entry ? messageRow(entry) : eventRow(entry))),
    journal: journal.map(({ taskId, key, value }) => ({
      taskId: storedText(taskId),
      key: storedText(key),
      body: JSON.stringify(value)
    })),
    sends: sends.map(send => ({
      key: storedText(send.key),
      expiresAtMs: send.expiresAtMs,
      body: JSON.stringify(send)
    })),
    webhooks
  }
}

function taskRow({ taskId, state, generation, snapshot, wakeAtMs }: TaskRow): TaskColumns {
  return { taskId: storedText(taskId), state, generation, snapshot: snapshot ?? null, wakeAtMs: wakeAtMs ?? null }
}

function messageRow(entry: MessageRow): LogRow {
  const taskId = entry.taskId === undefined ? undefined : storedText(entry.taskId)
  const body = JSON.stringify(entry)
  return {
    body,
    large: undefined,
    characters: body.length,
    taskId,
    isMessage: true,
    generation: generationOf(entry) ?? 0,
    state: undefined,
    time: '',
    isTerm: false
  }
}

function eventRow(event: TaskEvent): LogRow {
  const { taskId, generation, update } = event
  const { state, time, isTerm } = 'artifactUpdate' in update ? NO_STATUS : statusIn(update.statusUpdate)
  const largest = 'artifactUpdate' in update ? longestIn(update.artifactUpdate) : 0
  const large = largest > LARGE_CHARACTERS ? event : undefined
  const body = large ? '' : JSON.stringify(event)
  return {
    body,
    large,
    characters: large ? largest : body.length,
    taskId: storedText(taskId),
    isMessage: false,
    generation,
    state,
    time,
    isTerm
  }
}

/** The length of the longest text or file of an artifact. */
function longestIn({ artifact: { parts } }: TaskArtifactUpdateEvent): number {
  let longest = 0
  for (const { text, raw } of parts as readonly { readonly text?: string; readonly raw?: string }[])
    longest = Math.max(longest, (text ?? raw ?? '').length)
  return longest
}

const NO_STATUS = { state: undefined, time: '', isTerm: false } as const

function statusIn({ status, metadata }: TaskStatusUpdateEvent) {
  return { state: status.state, time: status.timestamp ?? '', isTerm: metadata !== undefined }
}

/** A change of webhooks outside of a commit. */
export type WebhookChange =
  | { readonly write: NewWebhook; readonly scope: Scope; readonly limit: number }
  | { readonly notes: readonly WebhookNote[] }
  | { readonly delete: string; readonly scope: Scope; readonly taskId: string }

/** The store port's result of a change of webhooks. */
export type WebhookChanged = 'written' | 'absent' | 'full' | boolean | boolean[]

/** Counts of transitions to add. */
export interface CountChange {
  readonly counts: readonly TransitionCount[]
  readonly atMs: number
}

/** A removal, or a change of webhooks or of counts. */
export type StoreChange =
  | { readonly sweep: SweepBounds; readonly limit: number }
  | { readonly erase: Erasure }
  | { readonly webhooks: WebhookChange }
  | CountChange

/** The result of a change; true for counts. */
export type Changed = number | WebhookChanged

/** A result. An error is sent between threads as its message, and its code if it is an A2AError. */
export type StoreOutcome<T> = { readonly value: T } | { readonly failure: string; readonly code: ErrorCode | undefined }

/** Runs a function, and returns its outcome. */
export function outcomeOf<T>(run: () => T): StoreOutcome<T> {
  try {
    return { value: run() }
  } catch (error) {
    return failedOutcome(error)
  }
}

/** An error as an outcome. */
export function failedOutcome(error: unknown): StoreOutcome<never> {
  return { failure: (error as Error).message, code: isA2AError(error) ? error.code : undefined }
}

/** The value of an outcome. Throws its error. */
export function valueOf<T>(outcome: StoreOutcome<T>): T {
  if ('value' in outcome) return outcome.value
  throw outcome.code === undefined ? new StorageError(outcome.failure) : new A2AError(outcome.code, outcome.failure)
}

/** All rows of a task, which a thread sends without parsing them. */
interface TaskRows {
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
 * SQL that counts the rows before the one with which their sizes reach `most`: a read that stops there has one more.
 * `sizes` is SQL for a page of rows, each with its `bytes` and with the column of `order`. The database adds up, so
 * that no row of sizes has to be made.
 */
export function countBefore(sizes: string, order: string, most: string): string {
  return `SELECT count(*) AS count FROM (SELECT sum(bytes) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) AS total FROM (${sizes}) AS page) AS sums WHERE total < ${most}`
}

/** A read of at most `most` events of a task, whose generation is `generation`, after one. */
interface EventsRead {
  readonly after: number
  readonly most: number
  readonly generation: number
}

/**
 * How many generations a read of events lacks after its start, up to `until`: its last event or, if it reaches the end,
 * the task's generation. As many messages have to be there, or an event is missing.
 */
export function lackingIn(
  events: readonly { readonly generation: number }[],
  { after, most, generation }: EventsRead
): { readonly until: number; readonly count: number } {
  const newest = events.at(-1)?.generation ?? after
  const until = events.length < most ? Math.max(newest, generation) : newest
  return { until, count: until - after - events.length }
}

/** Missing entries of a task count as damage: events and numbered messages have `count` generations together. */
export function checkEntries(events: readonly unknown[], messages: readonly MessageRow[], count: number): void {
  checkCount(events.length + messages.filter(({ isNumbered }) => isNumbered).length, count)
}

/** Missing rows count as damage. */
export function checkCount(found: number, count: number): void {
  if (found < count) throw new DamagedRow('events and messages')
}
