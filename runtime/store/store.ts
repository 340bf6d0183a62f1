import { A2AError } from '../../machines/protocol/errors.ts'
import type { Message, StreamResponse, Task } from '../../machines/protocol/objects.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import type {
  NewWebhook,
  SendRow,
  StateCounts,
  VersionCounts,
  StoredWebhook,
  StoreStatus,
  TransitionStore,
  WebhookNote,
  Scope
} from './rows.ts'

// The two errors of contexts that move between the nodes of a cluster. They are compared with `===`, so throw these
// objects, and no copies.

/**
 * The error of a commit for a context that belongs to another node of a cluster: nothing was written. Calls that wait
 * for the context get it too, and run again on that node.
 */
export const NOT_OWNER = new A2AError('Overloaded', 'The context is moving to another node. Send the request again.', {
  retryAfterMs: 1000
})

/**
 * The error for calls whose context moved to another node while their commit was under way: it may have been written. A
 * call that may be repeated runs again on that node. Streams get it if the store cannot tell the state of their task.
 */
export const OUTCOME_UNKNOWN = new A2AError(
  'Overloaded',
  'The state of the task is not known now. Read it again later.',
  { retryAfterMs: 1000 }
)

/** Identifies one context of one scope. All three are opaque strings with any characters. */
export interface ContextKey extends Scope {
  readonly contextId: string
}

/** Whether two scopes are equal. */
export function isSameScope(one: Scope, other: Scope): boolean {
  return one.tenant === other.tenant && one.principal === other.principal
}

/** A context's key as one string, unique for any characters. */
export function contextName({ tenant, principal, contextId }: ContextKey): string {
  return `${tenant.length}.${principal.length}.${tenant}${principal}${contextId}`
}

/**
 * One event of a task: a status or artifact update in wire form. Every entry of a task's log has the task's next
 * generation (1, 2, 3, …), and messages are entries too: the generations of events alone rise, and skip those of
 * messages.
 */
export interface TaskEvent {
  readonly taskId: string
  readonly generation: number
  readonly update: Extract<StreamResponse, { statusUpdate: unknown } | { artifactUpdate: unknown }>
  /** Number of its word among all words of the task's work, from 1; missing if the event is no word of the work. */
  readonly ordinal?: number
}

/** One entry of the journal of a task's work, which is stored until the task ends: a JSON value by key. */
export interface JournalRow {
  readonly taskId: string
  readonly key: string
  readonly value: unknown
}

/** A message of a context: from the client, or an agent's reply without a task. */
export interface MessageRow {
  readonly message: Message
  /** The task that received it, if any. */
  readonly taskId?: string
  /**
   * Its generation in the log of its task. Without `isNumbered` the message has none of its own: it was stored when only
   * events had one, and this is that of the event before it, or 0.
   */
  readonly generation?: number
  readonly isNumbered?: true
}

/** The generation that the first entry of a task has: the message that opens it. Its first event has the next one. */
export const OPENING_GENERATION = 1

/** An entry of a task as its followers get it: an event, or the generation of a message. */
export type TaskEntry =
  | TaskEvent
  | { readonly taskId: string; readonly generation: number; readonly update?: undefined }

/** Whether an entry is the message that opens its task. */
export function isOpeningMessage(entry: TaskEvent | MessageRow): entry is MessageRow & { readonly taskId: string } {
  if (!('message' in entry) || entry.taskId === undefined) return false
  return entry.generation === (entry.isNumbered ? OPENING_GENERATION : 0)
}

/** The entry's own generation: none for a message without a task, or of before messages were numbered. */
export function generationOf(entry: TaskEvent | MessageRow): number | undefined {
  return 'message' in entry && !entry.isNumbered ? undefined : entry.generation
}

/** One task in a commit. Its first row creates it, later ones replace it. */
export interface TaskRow {
  readonly taskId: string
  /** The actor's persisted snapshot as JSON text; missing when the task has ended. */
  readonly snapshot?: string
  readonly state: TaskState
  /** Generation of its newest entry: an event, or a message. */
  readonly generation: number
  /**
   * The earliest time at which the task must be in memory, in milliseconds since 1970: 0 while it works. Missing if
   * only a message restores it, and when it has ended.
   */
  readonly wakeAtMs?: number
  /** Approximate bytes of its events and messages as JSON text. An engine may return its own count. */
  readonly bytes?: number
}

/** Position in the order of all wakes: by time, then by task. */
export interface WakeCursor {
  readonly atMs: number
  readonly taskId: string
}

/** A task that must be in memory from a time on, with its context. */
export interface Wake extends WakeCursor {
  readonly key: ContextKey
}

/** All changes of one turn of a context. */
export interface Commit {
  readonly key: ContextKey
  /** The context's commit number on which this commit is based: 0 before its first. The commit increments it. */
  readonly expected: number
  /**
   * Time of the decision, in milliseconds since 1970 by the runtime's clock, which may be set back between two commits.
   */
  readonly atMs: number
  /** The context actor's persisted snapshot as JSON text, without its tasks. */
  readonly snapshot: string
  readonly tasks: readonly TaskRow[]
  /**
   * Events and messages in the order in which they happened; the generations of a task's entries follow on without a
   * gap.
   */
  readonly log: readonly (TaskEvent | MessageRow)[]
  /**
   * Journal of work. A row replaces one with the same task and key; a task's rows are deleted when it ends. A row for a
   * task that is not live in this context after the commit is not written.
   */
  readonly journal: readonly JournalRow[]
  /**
   * The index of messages by key: of deduplicated ones, and of those with a key of the client. A row replaces one with
   * the same key. Rows belong to this context: they are erased with it, and deleted once they have expired.
   */
  readonly sends: readonly SendRow[]
  /**
   * Webhooks of messages, each with the generation of its task at that time. A webhook replaces one with the same task
   * and id, and continues at its position. Webhooks are deleted with their tasks; for a task that is not in this
   * context none is written.
   */
  readonly webhooks: readonly (NewWebhook & { readonly told: number })[]
}

/** A context for a restore: its own snapshot and those of its live tasks. */
export interface StoredContext {
  readonly commit: number
  readonly snapshot: string
  readonly tasks: readonly RestorableRow[]
}

/**
 * A live task. If its snapshot has not been read, `snapshotBytes` is its approximate size. `statusTime` is the time of
 * its newest status, empty if that has none. An engine of an older version leaves it out.
 */
export type RestorableRow = TaskRow & { readonly statusTime?: string } & (
    | { readonly snapshot: string }
    | { readonly snapshot?: undefined; readonly snapshotBytes: number }
  )

/**
 * A task in the form of GetTask, and the generation of its newest entry. The task is a copy that the caller may change.
 */
export interface StoredTask {
  readonly task: Task & { contextId: string }
  readonly generation: number
  /**
   * Only if the task does not fit into `within`; then artifacts and history are missing, and this is its number of
   * messages and bytes.
   */
  readonly large?: { readonly messages: number; readonly bytes: number }
}

/** The parts of a task to read. Default: the whole history and all artifacts. `historyLength` 0 omits the history. */
export interface ReadOptions {
  readonly historyLength?: number | undefined
  readonly artifacts?: boolean
  /**
   * Adds the timeline, with at most this many entries, the latest, and the generations of artifacts. It is for
   * `readWhole` alone: engines ignore it. Default: neither.
   */
  readonly timelineLength?: number | undefined
  /**
   * Omits artifacts and history of a task with more bytes than this, to be read in pieces. In a list, of those that do
   * not fit together with earlier ones. Default: no limit.
   */
  readonly within?: number | undefined
}

/** Stored size of a task. */
export interface TaskSize {
  readonly taskId: string
  /** Approximate bytes of its events and messages. */
  readonly bytes: number
  /** Approximate bytes of its journal. */
  readonly journalBytes: number
}

/** A selection of tasks: those of a scope by id, or the newest of a context by creation. */
export type TaskChoice = (Scope & { readonly taskIds: readonly string[] }) | (ContextKey & { readonly newest: number })

/** A selection of a context's messages. Default: all. */
export interface MessageChoice {
  /** Only messages before the one that opened this task; none if no message of the context did. */
  readonly before?: string
  /** Default: no limit. */
  readonly bytes?: number
}

/** Position in a list of tasks: the time of the newest status, and the id. */
export interface TaskCursor {
  readonly timestamp: string
  readonly taskId: string
}

/** Query of a scope's tasks: filters, position, and parts to read. Filters combine; without any, all tasks match. */
export interface TaskQuery extends ReadOptions {
  readonly contextId?: string | undefined
  readonly state?: TaskState | undefined
  /**
   * Only tasks with a status of this time or later, as `YYYY-MM-DDTHH:mm:ss.sssZ`, so that text order is time order.
   */
  readonly since?: string | undefined
  /** Only tasks after this position in the list, which need not exist any more. */
  readonly after?: TaskCursor | undefined
  /** Maximum number of tasks, at least 1. */
  readonly limit: number
  /** Maximum total bytes of artifacts and histories; the first task is always included. Default: no limit. */
  readonly bytes?: number | undefined
}

/** One page of a list. */
export interface TaskPage {
  readonly tasks: StoredTask[]
  /** Number of tasks that match the filters, regardless of `after` and `limit`. */
  readonly total: number
  /** Position of the last of these tasks, if more follow. */
  readonly next?: TaskCursor
}

/** Age limits of a sweep, in milliseconds since 1970; -Infinity keeps everything of its kind. */
export interface SweepBounds {
  /** Tasks that ended before this time, which is `atMs` of the commit with their newest row, which has no snapshot. */
  readonly endedBeforeMs: number
  /** Contexts without any task whose newest commit was before this time. */
  readonly idleBeforeMs: number
  /** Deduplication rows whose `expiresAtMs` is before this time. */
  readonly sendsBeforeMs: number
}

/** Filter of open tasks: a scope, a tenant, or a principal in all tenants; empty for all. */
export type OpenTasksFilter = { readonly [Name in keyof Scope]?: Scope[Name] | undefined }

/** The data of one context, or of a whole scope without `contextId`. */
export interface Erasure extends Scope {
  readonly contextId?: string | undefined
}

/** Whether an erasure includes a context. */
export function isErased(erasure: Erasure, key: ContextKey): boolean {
  return isSameScope(erasure, key) && (erasure.contextId ?? key.contextId) === key.contextId
}

/**
 * The storage port. Every engine has to keep this contract, which `storeSuite` of the tests checks:
 *
 * - `commit` is atomic and durable when it resolves. Commits of one context are applied in the order of the calls, even
 *   if a call comes before the last one resolved. It resolves to `false`, and writes nothing, if `expected` is not the
 *   context's commit number: the race is lost. It rejects with `NOT_OWNER` if the context belongs to another node, and
 *   with any other error if the engine fails.
 * - Reads see every commit that resolved before the call, and no partial commit. Missing data, and data of another
 *   scope, read as `undefined` or as an empty list, never as an error.
 * - Objects in a commit do not change after the call, so an engine may keep them. Returned objects belong to the
 *   caller. Keys are compared whole: `a` is not `ab`.
 */
export interface Store extends TransitionStore {
  commit(commit: Commit): Promise<boolean>
  /**
   * The live tasks are in the order of their creation. Snapshots that do not fit into `bytes`, together with earlier
   * ones, are not read. Default: no limit.
   */
  loadContext(key: ContextKey, bytes?: number): Promise<StoredContext | undefined>
  /** The snapshot of a task; `undefined` once the task has ended. */
  readSnapshot(scope: Scope, taskId: string): Promise<string | undefined>
  /**
   * The wakes of all scopes after a cursor, earliest first, at most `limit`: one for each task whose newest row has
   * `wakeAtMs`. Wakes of the same time are in any fixed order of task ids in which the empty id is first. Needs an
   * index by (wakeAtMs, taskId).
   */
  readWakes(limit: number, after: WakeCursor): Promise<Wake[]>
  readTask(scope: Scope, taskId: string, options?: ReadOptions): Promise<StoredTask | undefined>
  /**
   * A task's events after a generation, which may be that of a message, oldest first, at most `limit`. Stops after the
   * event that reaches `bytes`. Default: no limit of bytes. Rejects if one is missing: each generation that no event has
   * is that of a message.
   */
  readEvents(scope: Scope, taskId: string, after: number, limit: number, bytes?: number): Promise<TaskEvent[]>
  /** The messages of a task without the first `after`, oldest first. Stops after the message that reaches `bytes`. */
  readTaskMessages(scope: Scope, taskId: string, after: number, bytes: number): Promise<MessageRow[]>
  /** The journal of a task's work, in the order of first writing; empty once the task has ended. */
  readJournal(scope: Scope, taskId: string): Promise<JournalRow[]>
  /**
   * A context's newest messages, oldest first, at most `limit`. Counted from the newest, stops after the message that
   * reaches `bytes`.
   */
  readMessages(key: ContextKey, limit: number, choice?: MessageChoice): Promise<MessageRow[]>
  /**
   * Sizes of tasks, each once. Tasks of `taskIds` are in the order of `listTasks`, those of a context newest first. It
   * is one query for any number of ids, and reads no event and no message.
   */
  measureTasks(choice: TaskChoice): Promise<TaskSize[]>
  /**
   * The scope's matching tasks, latest status first, then in a fixed order of task ids. A status without a time is the
   * oldest. Only `after` decides where a page begins, so a task that moves to the front shifts no other between pages.
   * Needs an index by scope, state, time and id, so that tasks of other pages are not read.
   */
  listTasks(scope: Scope, query: TaskQuery): Promise<TaskPage>
  /**
   * Number of tasks that have not ended. It includes exactly the commits that resolved before it resolves. It reads no
   * task.
   */
  countOpen(whose: OpenTasksFilter): Promise<number>
  /**
   * Counts the open tasks of all scopes by state, in portions of about `limit` tasks; `after` is '' or the `next` of
   * the last portion.
   */
  countStates(limit: number, after: string): Promise<StateCounts>
  /**
   * The same by the version of the agent that stored them, which is at the start of their snapshots. Without this
   * method, nothing says when the last task of an earlier version has ended.
   */
  countVersions?(limit: number, after: string): Promise<VersionCounts>
  /**
   * Stores the definition of an agent by its digest, once: tasks have the digest in their snapshots. It belongs to no
   * caller, is stored for at least a year after `atMs`, and may be written again. An engine has both methods or neither:
   * then nobody can tell later with which code a task was stored.
   */
  writeDefinition?(digest: string, text: string, atMs: number): Promise<void>
  /** The definition with a digest. */
  readDefinition?(digest: string): Promise<string | undefined>
  /** The outcome of the newest message with a key. It may have expired. */
  readSend(scope: Scope, key: string): Promise<SendRow | undefined>
  /**
   * Registers a webhook for a task of the scope, even an ended one, from the task's next event on. It replaces a
   * webhook with the same id, and continues at its position, even if that was given up. Writes nothing if the task does
   * not exist (`absent`) or has `limit` others (`full`).
   */
  writeWebhook(scope: Scope, webhook: NewWebhook, limit: number): Promise<'written' | 'absent' | 'full'>
  /** A task's webhooks, in the order of first writing. */
  readWebhooks(scope: Scope, taskId: string): Promise<StoredWebhook[]>
  /**
   * Webhooks of all scopes whose progress has no `end`, in the order of first writing, after a place, at most `limit`.
   * Needs an index.
   */
  readOpenWebhooks(limit: number, after: number): Promise<StoredWebhook[]>
  /**
   * Stores progress of webhooks, and gives for each whether it exists; a deleted one is not written again. Atomic and
   * durable when it resolves.
   */
  noteWebhooks(notes: readonly WebhookNote[]): Promise<boolean[]>
  /** Deletes a webhook; resolves to `false` if there was none. Durable when it resolves. */
  deleteWebhook(scope: Scope, taskId: string, id: string): Promise<boolean>
  /**
   * Deletes old data: at most `limit` tasks, contexts and deduplication rows in total. Resolves to their number, so
   * call it again until that is 0. A task is deleted with its events, messages and webhooks, a context with its
   * messages that belong to no task.
   *
   * A live task is never deleted, nor is a context that has a task. A context whose last task is deleted in this call
   * may be deleted in it too. Deleted data reads as if it had never existed: a commit based on a deleted context loses
   * its race, and one that expects 0 creates the context again. A remaining context keeps its commit number. Atomic and
   * durable when it resolves. Needs indexes by the three times.
   */
  sweep(due: SweepBounds, limit: number): Promise<number>
  /**
   * Deletes everything of a context or a scope, including live tasks, wakes, journals, deduplication rows and webhooks;
   * resolves to `false` if there was nothing. Deleted data reads as if it had never existed, as after `sweep`. Commits
   * are applied before or after it, in the order of the calls. Atomic and durable when it resolves.
   */
  erase(whose: Erasure): Promise<boolean>
  /**
   * The state of the engine, for health checks and metrics. Reads memory only. Default: it has not stopped, and nothing
   * waits.
   */
  status?(): StoreStatus
  /** Releases the engine's resources. `runtime.close()` calls it once; it may be called again. Later calls reject. */
  close(): Promise<void>
}
