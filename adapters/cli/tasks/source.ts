import type { Task } from '../../../machines/protocol/objects.ts'
import type { Scope, TaskEvent, TaskQuery } from '../../../runtime/store/store.ts'
import type { ShownWebhook } from './webhook-lines.ts'

/** Which tasks of a list are meant. Filters combine. */
export type Filters = Pick<TaskQuery, 'contextId' | 'state' | 'since'>

/** A task, and what its source tells of it. */
export interface FoundTask {
  readonly task: Task
  /** Whose it is, where that is known. */
  readonly scope?: Scope
  readonly generation?: number | undefined
}

/** A whole task, and what else a store knows of it. */
export interface TaskRecord extends FoundTask {
  /** Oldest first, up to the task's generation. */
  readonly events?: readonly TaskEvent[]
  /** The keys of its journal, in the order of first writing. Values may hold secrets, so they are never read out. */
  readonly journal?: readonly string[]
  /** In the order of first registration. */
  readonly webhooks?: readonly ShownWebhook[]
  /** When it next does something by itself, in milliseconds since 1970: 0 while it is at work. */
  readonly wakeAtMs?: number | undefined
  /** When it fails if it has not ended, in milliseconds since 1970. */
  readonly deadlineAtMs?: number | undefined
}

/** The newest tasks of a source. */
export interface Listing {
  readonly tasks: readonly FoundTask[]
  /** How many match, if more do than these. */
  readonly total?: number
  /** Whether the source has tasks of more than one tenant or principal. */
  readonly isMixed: boolean
}

/** Where tasks are read from. Lists have tasks without their history and artifacts. */
export interface TaskSource {
  /** The tasks that match, latest status first, at most `limit`. */
  newest(filters: Filters, limit: number): Promise<Listing>
  /** Every task that is there at the beginning, page by page. */
  all(): AsyncIterable<FoundTask>
  /** A whole task, from its scope if that is known. Rejects with A2AError: TaskNotFound, or InternalError for one that is damaged. */
  read(taskId: string, scope?: Scope): Promise<TaskRecord>
  close(): Promise<void>
}

/** Hears of what is left out because it is damaged. */
export type Report = (message: string) => void
