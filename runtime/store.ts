import type { StreamResponse, Task } from '../machines/protocol/objects.ts'
import type { Message } from '../machines/protocol/parts.ts'
import type { TaskState } from '../machines/protocol/states.ts'
import type { SendRow } from './sends.ts'

/** Whose data it is. Nothing crosses scopes: what another scope holds does not exist for this one. */
export interface Scope {
  readonly tenant: string
  readonly principal: string
}

/** Names one context of one scope. All three are opaque strings and may hold any character. */
export interface ContextKey extends Scope {
  readonly contextId: string
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
}

/** All that one turn of a context changed. */
export interface Commit {
  readonly key: ContextKey
  /** The context's commit number that this was decided upon: 0 before its first commit. The commit makes it one more. */
  readonly expected: number
  /** The context actor's persisted snapshot as JSON text, without its tasks. */
  readonly snapshot: string
  readonly tasks: readonly TaskRow[]
  /** Events and messages in the order in which they happened; a task's generations follow on without a gap. */
  readonly log: readonly (TaskEvent | MessageRow)[]
  /** Messages that are not to be taken twice. Rows that were expired when these came may be dropped. */
  readonly sends: readonly SendRow[]
}

/** A context as a restart needs it: its own snapshot and those of its tasks that have not ended. */
export interface StoredContext {
  readonly commit: number
  readonly snapshot: string
  readonly tasks: readonly (TaskRow & { readonly snapshot: string })[]
}

/** A task as GetTask shows it, and the generation that it has. The task is the caller's own copy. */
export interface StoredTask {
  readonly task: Task & { contextId: string }
  readonly generation: number
}

/** What of a task to read: by default all of its history and artifacts. `historyLength` 0 leaves the history out. */
export interface ReadOptions {
  readonly historyLength?: number | undefined
  readonly artifacts?: boolean
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
  loadContext(key: ContextKey): Promise<StoredContext | undefined>
  /** Keys of the contexts that have tasks which have not ended: those with work to go on with after a start. */
  unfinishedContexts(): Promise<ContextKey[]>
  readTask(scope: Scope, taskId: string, options?: ReadOptions): Promise<StoredTask | undefined>
  /** A task's events after a generation, oldest first, at most `limit`. */
  readEvents(scope: Scope, taskId: string, after: number, limit: number): Promise<TaskEvent[]>
  /** A context's newest messages, oldest first, at most `limit`. */
  readMessages(key: ContextKey, limit: number): Promise<MessageRow[]>
  /** A context's newest tasks by creation, newest first, at most `limit`, without history. */
  readTasks(key: ContextKey, limit: number): Promise<StoredTask[]>
  /** What became of a message that is not to be taken twice, by its key. It may have expired. */
  readSend(scope: Scope, key: string): Promise<SendRow | undefined>
  /** Releases what the engine holds. Called once by `runtime.close()`; may be called again. Calls after it reject. */
  close(): Promise<void>
}
