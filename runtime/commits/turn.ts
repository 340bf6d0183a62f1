import { appendItem, NONE } from '../primitives/collections.ts'
import type { SendRow } from '../store/rows.ts'
import type { Commit, JournalRow, MessageRow, TaskEvent, TaskRow } from '../store/store.ts'

/** A side effect of a task or a negotiation that runs after the commit. */
export interface Effect {
  readonly taskId: string
  run(): void
}

/** Callbacks at the end of a turn: exactly one is called, once, in the order of the turns. */
export interface TurnCallbacks {
  onPublished(turn: Turn): void
  onFailed(error: unknown): void
}

/**
 * The decisions of one turn of a context: collected while its actors run, committed as a whole, then published.
 *
 * A turn opens with the first event for an actor of the context, and closes in the next microtask. So it has all
 * effects of one macrostep, and those of further events in the same synchronous code. Its lists grow by `appendItem`,
 * since most stay empty.
 */
export class Turn {
  /** Events and messages in order. */
  log: readonly (TaskEvent | MessageRow)[] = NONE
  /** Ids of the tasks whose actors changed. */
  changedTasks: readonly string[] = NONE
  /** Rows of the changed tasks; filled when the turn closes. */
  rows: readonly TaskRow[] = NONE
  /** Journal rows of work. */
  journal: readonly JournalRow[] = NONE
  /** Deduplicated messages, with their outcomes. */
  deduplicationRows: readonly SendRow[] = NONE
  /** Webhooks of messages. */
  webhooks: readonly Commit['webhooks'][number][] = NONE
  /** Called after the commit, in order. */
  waiting: readonly TurnCallbacks[] = NONE
  /** Run after the commit, in order. */
  effects: readonly Effect[] = NONE
  /** Bytes in memory of tasks that it ends. */
  freedBytes = 0
  /** The commit; `undefined` if there is nothing to write. */
  commit: Commit | undefined
  /** Whether the store has written it; `undefined` until that is known. */
  isWritten: boolean | undefined

  /** Adds an event or a message. */
  addEvent(entry: TaskEvent | MessageRow): void {
    this.log = appendItem(this.log, entry)
  }

  /** Marks a task as changed. */
  markChanged(taskId: string): void {
    if (!this.changedTasks.includes(taskId)) this.changedTasks = appendItem(this.changedTasks, taskId)
  }

  addJournal(row: JournalRow): void {
    this.journal = appendItem(this.journal, row)
  }

  /** Adds an effect for after the commit. */
  afterCommit(effect: Effect): void {
    this.effects = appendItem(this.effects, effect)
  }

  /** Calls back after the commit, before the effects. */
  onCommit(waiting: TurnCallbacks): void {
    this.waiting = appendItem(this.waiting, waiting)
  }

  /** The row of a task that changed in the turn. */
  rowOf(taskId: string): TaskRow {
    return this.rows.find(row => row.taskId === taskId) as TaskRow
  }

  /** Whether a client's message reached a task that was open before. */
  hasMessageTo(taskId: string): boolean {
    for (const entry of this.log)
      if ('message' in entry && entry.taskId === taskId && entry.generation !== 0) return true
    return false
  }

  /** This turn's events of one task, oldest first. */
  eventsOf(taskId: string): readonly TaskEvent[] {
    let events: readonly TaskEvent[] = NONE
    for (const entry of this.log)
      if (!('message' in entry) && entry.taskId === taskId) events = appendItem(events, entry)
    return events
  }
}
