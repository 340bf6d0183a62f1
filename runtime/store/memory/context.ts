import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { appendItem, appendToKept, NONE } from '../../primitives/collections.ts'
import { jsonBytes } from '../../primitives/json.ts'
import type { Commit, ContextKey, JournalRow, MessageRow, TaskEvent, TaskRow, TaskSize } from '../store.ts'
import { applyEvent, applyMessage, type TaskRecord } from '../task-record.ts'
import { StatusOrder } from './indexes.ts'

const TASK = '"taskId":"","contextId":""'
const CHART = '{"status":"active","value":{"active":{"started":"inputRequired"}},"historyValue":{},"context":{'

/** Deflate dictionary with the typical contents of stored contexts, in the same nesting: snapshots within strings. */
const dictionary = Buffer.from(
  JSON.stringify({
    snapshot: `{"format":1,"status":"active","value":"idle","historyValue":{},"context":{"negotiations":[]},"children":{}}`,
    rows: [
      {
        taskId: '',
        generation: 3,
        state: 'TASK_STATE_INPUT_REQUIRED',
        snapshot: `${CHART}${TASK},"queue":[],"restarts":[]},"children":{"work":{"snapshot":{"status":"active","value":"","historyValue":{},"context":{},"children":{}},"src":"work","syncSnapshot":false}}}`
      }
    ],
    messages: [
      {
        message: { messageId: '', role: 'ROLE_USER', parts: [{ text: '' }], taskId: '', contextId: '' },
        taskId: '',
        generation: 0
      }
    ],
    logs: [
      ['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED'].map(state => ({
        taskId: '',
        generation: 1,
        update: {
          statusUpdate: {
            taskId: '',
            contextId: '',
            status: {
              state,
              message: { messageId: '', contextId: '', taskId: '', role: 'ROLE_AGENT', parts: [{ text: '' }] },
              timestamp: '2026-01-01T00:00:00.000Z'
            }
          }
        }
      }))
    ],
    journal: []
  })
)

/** Compresses a JSON value to a string. */
export function compress(value: unknown): string {
  return deflateRawSync(JSON.stringify(value), { dictionary }).toString('latin1')
}

/** Restores a compressed value. */
export function decompress(text: string): unknown {
  return JSON.parse(inflateRawSync(Buffer.from(text, 'latin1'), { dictionary }).toString())
}

/** Estimated bytes of an event or a message without its parts. */
const FRAME_BYTES = 200

type LiveRow = TaskRow & { readonly snapshot: string }

/** The compressed contents of a context. The logs are in the order of its tasks. */
interface Folded {
  readonly snapshot: string
  readonly rows: LiveRow[]
  readonly messages: MessageRow[]
  readonly logs: TaskEvent[][]
  readonly journal: JournalRow[]
}

/** A task in the memory store. While its context is compressed, its log and everything derived from it are empty. */
export interface LoggedTask extends TaskRecord {
  readonly context: MemoryContext
  log: TaskEvent[]
  /** Time of the commit that ended it; Infinity while it is live. */
  endedAtMs: number
  /** From its newest row. */
  bytes: number
}

/**
 * A context in the memory store. If it waits, it may be compressed (`fold`): its snapshots, messages and logs become
 * one string, from which `unfold` restores them.
 */
export class MemoryContext {
  readonly key: ContextKey
  commit = 0
  /** Time of its newest commit. */
  atMs = 0
  snapshot = ''
  /** Rows of live tasks. */
  live: LiveRow[] = []
  /** Every task, oldest first. */
  tasks: LoggedTask[] = []
  messages: MessageRow[] = []
  /** Journal of live tasks, in the order of first writing. */
  #journal: Map<string, JournalRow> | undefined
  readonly #scopeOrder: StatusOrder<LoggedTask>
  #order: StatusOrder<LoggedTask> | undefined
  #folded: string | undefined

  /** `scopeOrder`: the tasks of the whole scope in the order of their status times. */
  constructor({ tenant, principal, contextId }: ContextKey, scopeOrder: StatusOrder<LoggedTask>) {
    this.key = { tenant, principal, contextId }
    this.#scopeOrder = scopeOrder
  }

  /** Its tasks in the order of their status times; created by the first list. */
  get order(): StatusOrder<LoggedTask> {
    if (this.#order) return this.#order
    this.#order = new StatusOrder()
    for (const task of this.tasks) this.#order.add(task)
    return this.#order
  }

  journalOf(taskId: string): JournalRow[] {
    return [...(this.#journal?.values() ?? [])].filter(row => row.taskId === taskId)
  }

  /** Whether it has live tasks, and all of them wait for a message or a timer. */
  get isWaiting(): boolean {
    return this.live.length > 0 && this.live.every(({ wakeAtMs }) => wakeAtMs !== 0)
  }

  /** Writes a commit's snapshot and rows; `known` has the tasks of all contexts. Gives the new tasks. */
  writeRows({ snapshot, tasks, journal, atMs }: Commit, known: ReadonlyMap<string, LoggedTask>): readonly LoggedTask[] {
    let fresh: readonly LoggedTask[] = NONE
    for (const row of tasks) {
      const place = this.#placeOf(row.taskId)
      if (place < 0 && !known.has(row.taskId)) fresh = appendItem(fresh, this.#newTask(row.taskId))
      this.#writeRow(row, place)
    }
    for (const task of fresh) this.tasks = appendToKept(this.tasks, task)
    this.#keep(journal)
    this.commit += 1
    this.atMs = atMs
    this.snapshot = snapshot
    return fresh
  }

  /** Writes one entry of a commit's log; `task` is its task, if any. */
  writeEntry(entry: TaskEvent | MessageRow, task: LoggedTask | undefined): void {
    if ('message' in entry) {
      this.messages = appendToKept(this.messages, entry)
      if (task) applyMessage(task, entry)
    } else if (task) this.#writeEvent(task, entry)
  }

  /** Removes these tasks, and their messages. */
  remove(gone: ReadonlySet<LoggedTask>): void {
    const ids = new Set<string | undefined>()
    for (const task of this.tasks) {
      if (!gone.has(task)) continue
      ids.add(task.taskId)
      this.#scopeOrder.remove(task)
      this.#order?.remove(task)
    }
    this.tasks = this.tasks.filter(({ taskId }) => !ids.has(taskId))
    this.messages = this.messages.filter(({ taskId }) => !ids.has(taskId))
  }

  /** Compresses its contents. */
  fold(): void {
    const { snapshot, messages, live, tasks } = this
    this.#folded = compress({
      snapshot,
      rows: live,
      messages,
      logs: tasks.map(({ log }) => log),
      journal: [...(this.#journal?.values() ?? [])]
    } satisfies Folded)
    Object.assign(this, { snapshot: '', messages: [], live: [] })
    this.#journal = undefined
    for (const task of tasks) empty(task)
  }

  /** Restores its contents, if they are compressed. */
  unfold(): void {
    if (this.#folded === undefined) return
    const { snapshot, rows, messages, logs, journal } = decompress(this.#folded) as Folded
    this.#folded = undefined
    this.snapshot = snapshot
    this.messages = messages
    this.live = rows
    this.#keep(journal)
    for (const task of this.tasks) this.#replay(task, logs.shift() as TaskEvent[])
  }

  /** Index of a live task's row; -1 if there is none. */
  #placeOf(taskId: string): number {
    return this.live.findIndex(row => row.taskId === taskId)
  }

  #writeRow(row: TaskRow, place: number): void {
    if (!isLive(row)) {
      if (place >= 0) this.live = this.live.toSpliced(place, 1)
      this.#forget(row.taskId)
    } else if (place >= 0) this.live[place] = row
    else this.live = appendToKept(this.live, row)
  }

  /** Adds rows of live tasks to the journal. A row replaces one with the same key. */
  #keep(rows: readonly JournalRow[]): void {
    for (const row of rows) {
      if (this.#placeOf(row.taskId) < 0) continue
      this.#journal ??= new Map<string, JournalRow>()
      this.#journal.set(`${row.taskId.length}:${row.taskId}${row.key}`, row)
    }
  }

  #forget(ended: string): void {
    for (const [name, { taskId }] of this.#journal ?? []) {
      if (taskId === ended) this.#journal?.delete(name)
    }
  }

  /** Adds an event to its task, and moves the task to the position of its new status. */
  #writeEvent(task: LoggedTask, event: TaskEvent): void {
    if ('artifactUpdate' in event.update) return logEvent(task, event)
    this.#scopeOrder.remove(task)
    this.#order?.remove(task)
    logEvent(task, event)
    this.#scopeOrder.add(task)
    this.#order?.add(task)
  }

  #newTask(taskId: string): LoggedTask {
    const status = { state: 'TASK_STATE_SUBMITTED' as const }
    // One literal: members that are added later take extra memory.
    return {
      key: this.key,
      taskId,
      generation: 0,
      status,
      artifacts: undefined,
      said: [],
      metadata: undefined,
      context: this,
      log: [],
      endedAtMs: Infinity,
      bytes: 0
    }
  }

  /** Rebuilds a task from its log, with each message at its generation. */
  #replay(task: LoggedTask, log: readonly TaskEvent[]): void {
    const messages = this.messages.filter(({ taskId }) => taskId === task.taskId)
    for (const event of log) {
      while (messages[0] && (messages[0].generation ?? 0) < event.generation)
        applyMessage(task, messages.shift() as MessageRow)
      logEvent(task, event)
    }
    for (const message of messages) applyMessage(task, message)
  }
}

function isLive(row: TaskRow): row is LiveRow {
  return row.snapshot !== undefined
}

function logEvent(task: LoggedTask, event: TaskEvent): void {
  task.log = appendToKept(task.log, event)
  applyEvent(task, event)
}

/** Estimated size of a task. */
export function taskSizeOf(task: LoggedTask): TaskSize {
  const { taskId, context, log } = task
  let bytes = 0
  for (const { parts } of task.said) bytes += FRAME_BYTES + jsonBytes(parts)
  for (const { update } of log)
    bytes += FRAME_BYTES + ('artifactUpdate' in update ? jsonBytes(update.artifactUpdate.artifact.parts) : 0)
  const journalBytes = context.journalOf(taskId).reduce((sum, { value }) => sum + jsonBytes(value), 0)
  return { taskId, bytes, journalBytes }
}

/** Clears a task, except for ids, state and time, which its position in lists needs. */
function empty(task: LoggedTask): void {
  const { state, timestamp } = task.status
  task.status = { state, ...(timestamp !== undefined && { timestamp }) }
  Object.assign(task, { log: [], said: [], artifacts: undefined, metadata: undefined })
}
