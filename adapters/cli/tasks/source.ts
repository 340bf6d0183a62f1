import type { Task } from '../../../machines/protocol/objects.ts'
import type { Scope, TaskEvent, TaskQuery } from '../../../runtime/store/store.ts'
import type { ShownWebhook } from './webhook-lines.ts'

/** Filters of a list. They combine. */
export type Filters = Pick<TaskQuery, 'contextId' | 'state' | 'since'>

/** A task, with the scope and generation that its source reports. */
export interface FoundTask {
  readonly task: Task
  /** Its owner, if known. */
  readonly scope?: Scope
  readonly generation?: number | undefined
}

/** A complete task, with what a store knows about it. */
export interface TaskRecord extends FoundTask {
  /** Oldest first, up to the task's generation. */
  readonly events?: readonly TaskEvent[]
  /** The keys of its journal, in the order of first writing. Values may contain secrets, so they are never read. */
  readonly journal?: readonly string[]
  /** In the order of first registration. */
  readonly webhooks?: readonly ShownWebhook[]
  /** When its context wakes, in milliseconds since 1970: 0 while its work runs. */
  readonly wakeAtMs?: number | undefined
  /** When it fails unless it has ended, in milliseconds since 1970. */
  readonly deadlineAtMs?: number | undefined
}

/** The newest tasks of a source. */
export interface Listing {
  readonly tasks: readonly FoundTask[]
  /** How many match, if there are more than these. */
  readonly total?: number
  /** Whether the source has tasks of more than one tenant or principal. */
  readonly isMixed: boolean
}

/** A place from which tasks are read. Lists contain tasks without history and artifacts. */
export interface TaskSource {
  /** Matching tasks, latest status first, at most `limit`. */
  newest(filters: Filters, limit: number): Promise<Listing>
  /** Every task that exists at the beginning, page by page. */
  all(): AsyncIterable<FoundTask>
  /** A complete task, from its scope if given. Rejects with A2AError: TaskNotFound, or InternalError for damaged data. */
  read(taskId: string, scope?: Scope): Promise<TaskRecord>
  /** The events of a task up to a generation, oldest first; absent if `read` gives them. */
  events?(taskId: string, generation: number): Promise<readonly TaskEvent[]>
  close(): Promise<void>
}

/** Receives a message about data that is left out because it is damaged. */
export type Report = (message: string) => void
