import { A2AError } from '../../machines/protocol/errors.ts'
import { appendItem, NONE } from '../primitives/collections.ts'
import type { SendRow } from '../store/rows.ts'
import {
  type Commit,
  type JournalRow,
  type MessageRow,
  NOT_OWNER,
  type TaskEntry,
  type TaskEvent,
  type TaskRow
} from '../store/store.ts'

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
  sends: readonly SendRow[] = NONE
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

  /** This turn's entries of one task, oldest first: its events, and of its messages the generations. */
  entriesOf(taskId: string): readonly TaskEntry[] {
    let entries: readonly TaskEntry[] = NONE
    for (const entry of this.log) {
      if (entry.taskId !== taskId) continue
      entries = appendItem(entries, 'message' in entry ? { taskId, generation: entry.generation as number } : entry)
    }
    return entries
  }
}

/** The error of a pipeline whose context was written by another process. The decision can be retried. */
export const LOST_RACE = new A2AError(
  'Overloaded',
  'The context was changed by another process at the same time. Send the request again.'
)

/** `RESOLVED.then(f)` schedules a microtask at a fraction of the cost of `queueMicrotask`. */
const RESOLVED = Promise.resolve()

/**
 * Write-ahead queue of a context's turns: decide, commit, tell. Turns are decided without waiting for the commits of
 * earlier ones. Commits go to the store in the order of the turns, and turns are published in that order too, each
 * after it and all earlier ones are stored. The queue calls nothing but `close`; its methods return what happened.
 */
export class CommitPipeline {
  /** The number of commits of the context. */
  commits: number
  readonly #close: () => void
  #open: Turn | undefined
  /** Turns that are not published yet, in order. */
  #unpublished: readonly Turn[] = NONE
  #end: { readonly error: unknown; readonly isFinal: boolean } | undefined

  /** `close` runs in the microtask after a turn opens, unless the pipeline has ended. */
  constructor(commits: number, close: (turn: Turn) => void) {
    this.commits = commits
    // Declared before the assignment: see replaceSchedule in xstate/actor-system.ts.
    const closeOpen = () => this.#open && close(this.#open)
    this.#close = closeOpen
  }

  /** The open turn. If there is none, opens one. Throws the error of a pipeline that has ended. */
  get turn(): Turn {
    if (this.#end) throw this.#end.error
    if (this.#open) return this.#open
    const turn = new Turn()
    this.#open = turn
    this.#unpublished = appendItem(this.#unpublished, turn)
    void RESOLVED.then(this.#close)
    return turn
  }

  /** Closes the open turn: what is decided next belongs to another one. */
  closeTurn(): void {
    this.#open = undefined
  }

  /** Takes the next turn that can be published; `undefined` while it is not stored. */
  takeWritten(): Turn | undefined {
    const [turn] = this.#unpublished
    if (!turn?.isWritten) return undefined
    if (this.#unpublished.length === 1) this.#unpublished = NONE
    else (this.#unpublished as Turn[]).shift()
    return turn
  }

  /** Whether another process has written the context before the next turn. */
  get hasLostRace(): boolean {
    return this.#unpublished[0]?.isWritten === false
  }

  /** Whether everything decided is committed and published. */
  get isSettled(): boolean {
    return this.#unpublished.length === 0
  }

  get isOver(): boolean {
    return this.#end !== undefined
  }

  /** Whether the context has left memory, and its tasks resume when it is restored. */
  get isLeaving(): boolean {
    return this.#end?.isFinal === false
  }

  /** The error for late calls, once the pipeline has ended. */
  get error(): unknown {
    return this.#end?.error
  }

  /**
   * Ends the pipeline; `isFinal` if its tasks never resume. Turns that are not published never are, and calls that wait
   * for them get `error`. Gives the ids of the tasks in these turns, whose changes the store may have or not.
   */
  end(error: unknown, isFinal = false): ReadonlySet<string> {
    const turns = this.#unpublished
    this.#end ??= { error, isFinal }
    this.#open = undefined
    this.#unpublished = NONE
    for (const { waiting } of turns) for (const one of waiting) one.onFailed(error)
    return new Set(turns.flatMap(({ changedTasks }) => changedTasks))
  }
}

/** The error for calls whose turn was not stored because of `error`. */
export function answerToFailed(error: unknown): A2AError {
  if (error === LOST_RACE) return LOST_RACE
  return error === NOT_OWNER ? NOT_OWNER : notStored(error)
}

function notStored(cause: unknown): A2AError {
  return new A2AError('Overloaded', 'The agent could not store the result of this request. Send it again later.', {
    retryAfterMs: 1000,
    cause
  })
}
