import type { StreamResponse, Task } from '../../machines/protocol/objects.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import type { NewWebhook, SendRow, StoredWebhook, WebhookNote } from './rows.ts'

/** Whose data it is. Nothing crosses scopes: what another scope holds does not exist for this one. */
export interface Scope {
  readonly tenant: string
  readonly principal: string
}

/** Names one context of one scope. All three are opaque strings and may hold any character. */
export interface ContextKey extends Scope {
  readonly contextId: string
}

/** Whether two scopes are the same one. */
export function isSameScope(one: Scope, other: Scope): boolean {
  return one.tenant === other.tenant && one.principal === other.principal
}

/** A context's key as one text, for maps: different keys have different texts, whatever characters they hold. */
export function contextName({ tenant, principal, contextId }: ContextKey): string {
  return `${tenant.length}.${principal.length}.${tenant}${principal}${contextId}`
}

/** One event of a task: a status or artifact update as it goes out on the wire, with the task's next generation (1, 2, 3, …). */
export interface TaskEvent {
  readonly taskId: string
  readonly generation: number
  readonly update: Extract<StreamResponse, { statusUpdate: unknown } | { artifactUpdate: unknown }>
  /** Where the word that made it stands among all words of the task's work, from 1; none for events that the work did not say. */
  readonly ordinal?: number
}

/** What the work of a task has found out and keeps until the task ends, for when it runs again: a JSON value by key. */
export interface JournalRow {
  readonly taskId: string
  readonly key: string
  readonly value: unknown
}

/** A message of a context: from the client or, in reply without a task, from the agent. With the task and generation that it met, if any. */
export interface MessageRow {
  readonly message: Message
  readonly taskId?: string
  readonly generation?: number
}

/** One task in a commit: made by its first, changed by the others. */
export interface TaskRow {
  readonly taskId: string
  /** The actor's persisted snapshot as JSON text; none when the task has ended. */
  readonly snapshot?: string
  readonly state: TaskState
  /** Generation of its newest event. */
  readonly generation: number
  /**
   * The earliest moment at which the task has to be in memory, in milliseconds since 1970: 0 while it is at work. None if
   * only a message brings it there, and when it has ended.
   */
  readonly wakeAtMs?: number
  /** How many bytes its events and messages have as JSON text, about. An engine that gives a row back may have counted them itself. */
  readonly bytes?: number
}

/** Where a wake stands in the order of all wakes: by its time, those of one moment by task. */
export interface WakeCursor {
  readonly atMs: number
  readonly taskId: string
}

/** A task that has to be in memory from some time on, with its context. */
export interface Wake extends WakeCursor {
  readonly key: ContextKey
}

/** All that one turn of a context changed. */
export interface Commit {
  readonly key: ContextKey
  /** The context's commit number that this was decided upon: 0 before its first commit. The commit makes it one more. */
  readonly expected: number
  /** When it was decided, in milliseconds since 1970 by the runtime's clock, which may be set back between two commits. */
  readonly atMs: number
  /** The context actor's persisted snapshot as JSON text, without its tasks. */
  readonly snapshot: string
  readonly tasks: readonly TaskRow[]
  /** Events and messages in the order in which they happened; a task's generations follow on without a gap. */
  readonly log: readonly (TaskEvent | MessageRow)[]
  /**
   * What works keep. A row takes the place of one with the same task and key; a task's rows go when it ends. A row for a
   * task that is not live in this context after the commit is not written.
   */
  readonly journal: readonly JournalRow[]
  /** Messages that are not to be taken twice. They belong to this context: they go when it is erased, else once they have expired. */
  readonly sends: readonly SendRow[]
  /**
   * Webhooks that came with messages, each with the generation that their task had then. One takes the place of that with
   * the same task and id, and goes on where that one is. They go with their tasks; for a task that is not in this context
   * none is written.
   */
  readonly webhooks: readonly (NewWebhook & { readonly told: number })[]
}

/** A context as a restart needs it: its own snapshot and those of its tasks that have not ended. */
export interface StoredContext {
  readonly commit: number
  readonly snapshot: string
  readonly tasks: readonly RestorableRow[]
}

/** A task that has not ended: without its snapshot if that has not been read, with the bytes that it has instead, about. */
export type RestorableRow = TaskRow & ({ readonly snapshot: string } | { readonly snapshot?: undefined; readonly snapshotBytes: number })

/** A task as GetTask shows it, and the generation that it has. The task is the caller's own copy. */
export interface StoredTask {
  readonly task: Task & { contextId: string }
  readonly generation: number
  /** Only of a task with more bytes than `within`, which has neither artifacts nor history: how many messages and bytes it has. */
  readonly large?: { readonly messages: number; readonly bytes: number }
}

/** What of a task to read: by default all of its history and artifacts. `historyLength` 0 leaves the history out. */
export interface ReadOptions {
  readonly historyLength?: number | undefined
  readonly artifacts?: boolean
  /** A task with more bytes than that comes without artifacts and history: they are read in pieces. Default: every task comes whole. */
  readonly within?: number | undefined
}

/** How much is stored of a task. */
export interface TaskSize {
  readonly taskId: string
  /** Bytes of its events and messages, about. */
  readonly bytes: number
  /** Bytes of its journal, about. */
  readonly journalBytes: number
}

/** Some tasks: those of these ids that the scope has, or the newest of a context by creation. */
export type TaskChoice = (Scope & { readonly taskIds: readonly string[] }) | (ContextKey & { readonly newest: number })

/** Which messages of a context to read: by default all. */
export interface MessageChoice {
  /** Only those before the one that opened this task; none if no message here did. */
  readonly before?: string
  /** Default: no bound. */
  readonly bytes?: number
}

/** Where a task stands in a list: the time of its status, as its newest status update has it, and its id. */
export interface TaskCursor {
  readonly timestamp: string
  readonly taskId: string
}

/** Which tasks of a scope to list, from where on, and what of each to read. Filters combine; without any all tasks match. */
export interface TaskQuery extends ReadOptions {
  readonly contextId?: string | undefined
  readonly state?: TaskState | undefined
  /** Only tasks whose status has this time or a later one. Like those of statuses it is `YYYY-MM-DDTHH:mm:ss.sssZ`, so that text order is time order. */
  readonly since?: string | undefined
  /** Only tasks that come after this place in the list. No task need stand there any more. */
  readonly after?: TaskCursor | undefined
  /** How many tasks at the most, from 1. */
  readonly limit: number
  /** How many bytes their artifacts and histories may have together; the first task comes in any case. Default: no bound. */
  readonly bytes?: number | undefined
}

/** One page of a list. */
export interface TaskPage {
  readonly tasks: StoredTask[]
  /** How many tasks match the filters, whatever `after` and `limit` are. */
  readonly total: number
  /** Where the last of these tasks stands, if more come after it. */
  readonly next?: TaskCursor
}

/** What is old enough to be removed. All three are in milliseconds since 1970; -Infinity keeps everything of its kind. */
export interface SweepBounds {
  /** Tasks that ended before this time: `atMs` of the commit with their newest row, which has no snapshot. */
  readonly endedBeforeMs: number
  /** Contexts without any task whose newest commit was before this time. */
  readonly idleBeforeMs: number
  /** Sends whose `expiresAtMs` is before this time. */
  readonly sendsBeforeMs: number
}

/** Whose open tasks to count: a scope's, a tenant's, a principal's in all of its tenants, or without either all. */
export type OpenTasksFilter = { readonly [Name in keyof Scope]?: Scope[Name] | undefined }

/** Everything of one context, or without `contextId` everything of a scope. */
export interface Erasure extends Scope {
  readonly contextId?: string | undefined
}

/** Whether a context is one of those that an erasure removes. */
export function isErased(erasure: Erasure, key: ContextKey): boolean {
  return isSameScope(erasure, key) && (erasure.contextId ?? key.contextId) === key.contextId
}

/**
 * Where tasks live. An engine keeps this contract, which `storeSuite` of the tests checks:
 *
 * - `commit` is atomic and durable when it resolves. Commits of one context are applied in the order of the calls,
 *   also when the next call comes before the last one resolved. It resolves to `false`, and has written nothing, when
 *   the race is lost: `expected` is not the context's commit number. It rejects when the engine is in trouble.
 * - Reads see every commit that resolved before the call, whole commits only. What is missing, or belongs to another
 *   scope, reads as `undefined` or as an empty list, never as an error.
 * - An engine keeps what it is given: objects in a commit do not change after the call, and what it returns is the
 *   caller's. Keys are compared whole: `a` is not `ab`.
 */
export interface Store {
  commit(commit: Commit): Promise<boolean>
  /** The tasks come in the order of their creation. Snapshots for which `bytes` have no room, beside those before them, are not read. Default: all are. */
  loadContext(key: ContextKey, bytes?: number): Promise<StoredContext | undefined>
  /** The snapshot of a task; `undefined` once that has ended. */
  readSnapshot(scope: Scope, taskId: string): Promise<string | undefined>
  /**
   * The wakes of all scopes after a cursor, the earliest first, at most `limit`: one for each task whose newest row has
   * `wakeAtMs`. Those of one moment come in any order of their tasks' ids, as long as it is always the same and the empty
   * id comes first. Quick, however many tasks wait: an index by (wakeAtMs, taskId).
   */
  readWakes(limit: number, after: WakeCursor): Promise<Wake[]>
  readTask(scope: Scope, taskId: string, options?: ReadOptions): Promise<StoredTask | undefined>
  /** A task's events after a generation, oldest first, at most `limit`, and the fewest that have `bytes` or more together. Default: no bound in bytes. */
  readEvents(scope: Scope, taskId: string, after: number, limit: number, bytes?: number): Promise<TaskEvent[]>
  /** The messages of a task but for the first `after`, oldest first: the fewest that have `bytes` or more together. */
  readTaskMessages(scope: Scope, taskId: string, after: number, bytes: number): Promise<MessageRow[]>
  /** What the work of a task keeps, in the order of first writing. Nothing once the task has ended. */
  readJournal(scope: Scope, taskId: string): Promise<JournalRow[]>
  /** A context's newest messages, oldest first, at most `limit`, and the fewest of these that have `bytes` or more together. */
  readMessages(key: ContextKey, limit: number, choice?: MessageChoice): Promise<MessageRow[]>
  /**
   * How much is stored of some tasks, each of which is listed once. Tasks of `taskIds` come in the order of `listTasks`, the newest
   * tasks of a context the newest first. One query, however many ids there are, that reads no event and no message.
   */
  measureTasks(choice: TaskChoice): Promise<TaskSize[]>
  /**
   * The scope's tasks that match, as they are now: those with the latest status first, of equal times by taskId, in one
   * order of the engine's that never changes. A status without a time counts as older than all others. Only `after` says
   * where a page begins, so that a task whose status changes, and which then stands in front, moves no other from one
   * page to another. An index over scope, state, time and id answers it without looking at the tasks of other pages.
   */
  listTasks(scope: Scope, query: TaskQuery): Promise<TaskPage>
  /**
   * How many tasks have not ended. It is right when it resolves: commits that resolved before are in it, and none that resolves
   * later. No task is read for it.
   */
  countOpen(whose: OpenTasksFilter): Promise<number>
  /** What became of a message that is not to be taken twice, by its key. It may have expired. */
  readSend(scope: Scope, key: string): Promise<SendRow | undefined>
  /**
   * Registers a webhook for a task of the scope, which may have ended: from the task's next event on. One with the same id
   * takes the place of that before, and goes on where that one is, also if it was given up. `absent`: there is no such task;
   * `full`: the task has `limit` others. Then nothing is written.
   */
  writeWebhook(scope: Scope, webhook: NewWebhook, limit: number): Promise<'written' | 'absent' | 'full'>
  /** A task's webhooks, in the order of first writing. */
  readWebhooks(scope: Scope, taskId: string): Promise<StoredWebhook[]>
  /** Webhooks of all scopes whose progress has no `end`, in the order of first writing, after a place, at most `limit`. Quick: an index. */
  readOpenWebhooks(limit: number, after: number): Promise<StoredWebhook[]>
  /** Notes how far webhooks have come, and answers for each whether it is there; one that is not stays away. Atomic and durable when it resolves. */
  noteWebhooks(notes: readonly WebhookNote[]): Promise<boolean[]>
  /** Removes a webhook for good; resolves to `false` if there was none. Durable when it resolves. */
  deleteWebhook(scope: Scope, taskId: string, id: string): Promise<boolean>
  /**
   * Removes what is old, at most `limit` tasks, contexts and sends in all, and resolves to how many went: 0 once nothing of
   * it is left, so that one calls again until then. With a task go its events, messages and webhooks; with a context those of its
   * messages that belong to no task. A task that has not ended never goes, nor does a context that has a task, though one
   * whose last task went in this call may go in it too. What is swept reads as if it had never been: a commit that was
   * decided upon a swept context loses its race, and one that expects 0 begins it anew. A context that stays keeps its
   * commit number. Atomic and durable when it resolves, and quick, whatever the store holds: indexes by the three times.
   */
  sweep(due: SweepBounds, limit: number): Promise<number>
  /**
   * Removes everything of a context or of a scope for good, at once, what is live and its wakes, journals, sends and webhooks too;
   * resolves to `false` if there was nothing. Afterwards it is as if it had never been, as after `sweep`. Commits called
   * before it are applied before it, those called after it come after it. Atomic and durable when it resolves.
   */
  erase(whose: Erasure): Promise<boolean>
  /** Releases what the engine holds. Called once by `runtime.close()`; may be called again. Calls after it reject. */
  close(): Promise<void>
}
