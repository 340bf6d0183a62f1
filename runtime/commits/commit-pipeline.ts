import { A2AError } from '../../machines/protocol/errors.ts'
import { appendItem, NONE } from '../primitives/collections.ts'
import { killPoint } from '../primitives/kill-points.ts'
import { NOT_OWNER, type Commit, type Store } from '../store/store.ts'
import { Turn, type Effect } from './turn.ts'

/** The error of a pipeline whose context was written by another process. The decision can be retried. */
export const LOST_RACE = new A2AError(
  'Overloaded',
  'The context was changed by another process at the same time. Send the request again.'
)

/** `RESOLVED.then(f)` schedules a microtask at a fraction of the cost of `queueMicrotask`. */
const RESOLVED = Promise.resolve()

/** Callbacks of a pipeline. None may throw. */
export interface Committer {
  /** Makes the commit of a closed turn; `undefined` if there is nothing to write. */
  commitOf(turn: Turn): Commit | undefined
  /** Publishes a committed turn. */
  publish(turn: Turn): void
  /** Runs an effect after its commit. */
  run(effect: Effect): void
  /** Called when everything decided is committed and published. */
  onIdle(): void
  /**
   * Called when a commit failed and the pipeline has ended; waiting calls got `answer`. It is unknown whether the
   * engine wrote the changes of the tasks with these ids.
   */
  onCommitFailed(error: unknown, answer: A2AError, taskIds: ReadonlySet<string>): void
}

/**
 * Write-ahead pipeline of a context: decide, commit, tell. Turns are decided without waiting for the commits of earlier
 * ones. Commits go to the store in the order of the turns. Streams, answers and effects follow in that order too, each
 * after its own turn and all earlier ones are stored.
 */
export class CommitPipeline {
  readonly #store: Store
  readonly #committer: Committer
  #turn: Turn | undefined
  /** Turns that are not published yet, in order. */
  #unpublished: readonly Turn[] = NONE
  #end: { error: unknown } | undefined
  // Made once, and not for each turn.
  readonly #close = () => this.#closeTurn()
  readonly #failed = (error: unknown) => this.#break(error)

  constructor(store: Store, committer: Committer) {
    this.#store = store
    this.#committer = committer
  }

  /** The open turn. If there is none, opens one, which closes in the next microtask. */
  get turn(): Turn {
    if (this.#end) throw this.#end.error
    if (this.#turn) return this.#turn
    const turn = new Turn()
    this.#turn = turn
    this.#unpublished = appendItem(this.#unpublished, turn)
    void RESOLVED.then(this.#close)
    return turn
  }

  /** Whether everything decided is committed and published. */
  get isSettled(): boolean {
    return this.#unpublished.length === 0
  }

  get isOver(): boolean {
    return this.#end !== undefined
  }

  /** The error for late calls, once the pipeline has ended. */
  get error(): unknown {
    return this.#end?.error
  }

  /** Ends the pipeline. Turns that are not committed are never published, and calls that wait for them get `error`. */
  end(error: unknown): void {
    if (this.#end) return
    this.#end = { error }
    const unpublishedTurns = this.#unpublished
    this.#unpublished = NONE
    for (const { waiting } of unpublishedTurns) {
      for (const one of waiting) one.onFailed(error)
    }
  }

  #closeTurn(): void {
    const turn = this.#turn
    if (!turn || this.#end) return
    const commit = this.#committer.commitOf(turn)
    this.#turn = undefined
    if (!commit) return this.#settle(turn, true)
    this.#store.commit(commit).then(written => this.#settle(turn, written), this.#failed)
  }

  /** Tells committed turns, in order. */
  #settle(settled: Turn, isWritten: boolean): void {
    if (this.#end) return
    settled.isWritten = isWritten
    for (let turn = this.#unpublished[0]; turn?.isWritten !== undefined; turn = this.#unpublished[0]) {
      if (!turn.isWritten) return this.#break(LOST_RACE)
      this.#publish(turn)
    }
  }

  #publish(turn: Turn): void {
    if (this.#unpublished.length === 1) this.#unpublished = NONE
    else (this.#unpublished as Turn[]).shift()
    this.#committer.publish(turn)
    killPoint('streams told')
    for (const waiting of turn.waiting) waiting.onPublished(turn)
    for (const effect of turn.effects) this.#committer.run(effect)
    if (this.isSettled) this.#committer.onIdle()
  }

  #break(error: unknown): void {
    if (this.#end) return
    const taskIds = new Set(this.#unpublished.flatMap(({ changedTasks }) => changedTasks))
    const answer = error === LOST_RACE ? LOST_RACE : error === NOT_OWNER ? NOT_OWNER : notStored(error)
    this.end(answer)
    this.#committer.onCommitFailed(error, answer, taskIds)
  }
}

function notStored(cause: unknown): A2AError {
  return new A2AError('Overloaded', 'The agent could not store the result of this request. Send it again later.', {
    retryAfterMs: 1000,
    cause
  })
}
