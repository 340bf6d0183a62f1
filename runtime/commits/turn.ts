import type { WorkInput } from '../authoring/work-arguments.ts'
import type { SendRow } from '../store/rows.ts'
import type { Commit, JournalRow, MessageRow, TaskEvent, TaskRow } from '../store/store.ts'

/** A side effect of a task or a negotiation that runs after the commit. */
export interface Effect {
  readonly taskId: string
  run(): void
}

/** Callbacks at the end of a turn: exactly one is called, once, in the order of the turns. */
export interface Waiting {
  told(turn: Turn): void
  failed(error: unknown): void
}

/**
 * The decisions of one turn of a context: collected while its actors run, committed as a whole, then told.
 *
 * A turn opens with the first event for an actor of the context, and closes in the next microtask. So it has all effects of one
 * macrostep, and those of further events in the same synchronous code.
 */
export class Turn {
  /** Events and messages in order. */
  readonly log: (TaskEvent | MessageRow)[] = []
  /** Ids of the tasks whose actors changed. */
  readonly moved = new Set<string>()
  /** Rows of the changed tasks; filled when the turn closes. */
  readonly rows: TaskRow[] = []
  /** Journal rows of work. */
  readonly journal: JournalRow[] = []
  /** Deduplicated messages, with their outcomes. */
  readonly sends: SendRow[] = []
  /** Webhooks of messages. */
  readonly webhooks: Commit['webhooks'][number][] = []
  /** Called after the commit, in order. */
  readonly waiting: Waiting[] = []
  /** Inputs of work that starts when the turn closes, for tasks that it opens. */
  readonly starts: WorkInput[] = []
  /** Run after the commit, in order. */
  readonly effects: Effect[] = []
  /** The commit; `undefined` if there is nothing to write. */
  commit: Commit | undefined
  /** Whether the store has written it; `undefined` until that is known. */
  isWritten: boolean | undefined

  /** The row of a task that changed in the turn. */
  rowOf(taskId: string): TaskRow {
    return this.rows.find(row => row.taskId === taskId) as TaskRow
  }

  /** This turn's events of one task, oldest first. */
  eventsOf(taskId: string): TaskEvent[] {
    const events: TaskEvent[] = []
    for (const entry of this.log) {
      if (!('message' in entry) && entry.taskId === taskId) events.push(entry)
    }
    return events
  }
}
