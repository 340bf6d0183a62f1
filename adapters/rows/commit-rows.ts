import type { TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from '../../machines/protocol/objects.ts'
import type { NewWebhook } from '../../runtime/store/rows.ts'
import type { Commit, MessageRow, TaskEvent, TaskRow } from '../../runtime/store/store.ts'
import { storedText } from './stored-text.ts'

/** A task's row in a commit; null for absent members. */
export interface TaskRows {
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
  /** The generation of an event; 0 for a message. */
  readonly generation: number
  /** The state and the time of a status. */
  readonly state: string | undefined
  readonly time: string
  /** Whether it is a status with metadata. */
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
  readonly tasks: readonly TaskRows[]
  readonly log: readonly LogRow[]
  readonly journal: readonly { readonly taskId: string; readonly key: string; readonly body: string }[]
  readonly sends: readonly { readonly key: string; readonly expiresAtMs: number; readonly body: string }[]
  readonly webhooks: readonly (NewWebhook & { readonly told: number })[]
}

/** Makes the rows of a commit. Written as literals: this runs for every commit, and spreading objects costs several times as much. */
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

function taskRow({ taskId, state, generation, snapshot, wakeAtMs }: TaskRow): TaskRows {
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
    generation: 0,
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
