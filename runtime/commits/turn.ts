import type { WorkInput } from '../authoring/work-arguments.ts'
import type { SendRow } from '../store/rows.ts'
import type { Commit, JournalRow, MessageRow, TaskEvent, TaskRow } from '../store/store.ts'

/** Something that waits for the commit, on behalf of a task or a negotiation. */
export interface Effect {
  readonly taskId: string
  run(): void
}

/** Someone who waits for the end of a turn: exactly one of the two is called, once, in the order of the turns. */
export interface Waiting {
  told(turn: Turn): void
  failed(error: unknown): void
}

/**
 * What one turn of a context has decided: filled while its actors run, committed as a whole, then told.
 *
 * A turn opens with the first event that reaches an actor of the context and closes when the actors have come to
 * rest: it holds all that one macrostep causes, and what the same run of the event loop adds to it.
 */
export class Turn {
  /** Events and messages in order. */
  readonly log: (TaskEvent | MessageRow)[] = []
  /** Ids of the tasks whose actors, or whose work's actors, moved. */
  readonly moved = new Set<string>()
  /** The tasks that moved as the turn left them: filled when it closes. */
  readonly rows: TaskRow[] = []
  /** What works keep. */
  readonly journal: JournalRow[] = []
  /** Messages that are not to be taken twice, and what became of them. */
  readonly sends: SendRow[] = []
  /** Webhooks that came with messages. */
  readonly webhooks: Commit['webhooks'][number][] = []
  /** Who hears of the commit, in order. */
  readonly waiting: Waiting[] = []
  /** What those works are given that begin when the turn closes, their tasks being opened in it. */
  readonly starts: WorkInput[] = []
  /** What starts after the commit, in order. */
  readonly effects: Effect[] = []
  /** What is written of it; none if there is nothing to write. */
  commit: Commit | undefined
  /** Whether the store has written it, once that is known. */
  isWritten: boolean | undefined

  /** A task that moved in the turn, as the turn left it. */
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
