import { A2AError } from '../../machines/protocol/errors.ts'
import { killPoint } from '../primitives/kill-points.ts'
import type { Commit, Store } from '../store/store.ts'
import { Turn, type Effect } from './turn.ts'

/** Why a pipeline ends whose context was changed by another writer: what was to be decided can be decided again. */
export const LOST_RACE = new A2AError('Overloaded', 'The context was changed by another process at the same time. Send the request again.')

/** What waits for it runs when the running code has come to rest; Node's `queueMicrotask` costs several times as much. */
const REST = Promise.resolve()

/** What a pipeline asks of its context. None of these throws. */
export interface Committer {
  /** Puts a turn that has come to rest into a commit; nothing if there is nothing to write. */
  commitOf(turn: Turn): Commit | undefined
  /** Tells the world what a committed turn holds. */
  tell(turn: Turn): void
  /** Starts what waited for a commit. */
  run(effect: Effect): void
  /** Hears when everything decided is committed and told. */
  settled(): void
  /**
   * Hears that a commit failed, after which the pipeline is at its end; `answer` is what whoever waits gets. Nobody knows
   * whether the engine wrote what had been decided of the tasks with these ids.
   */
  broke(error: unknown, answer: A2AError, taskIds: ReadonlySet<string>): void
}

/**
 * The one rule of a context: decide, commit, tell. Turns are decided one after the other without waiting for their
 * commits, which go to the store in the order of the turns; streams are told, callers answered and effects started
 * in that order too, each only when its own turn and all before it are durable.
 */
export class CommitPipeline {
  readonly #store: Store
  readonly #committer: Committer
  #turn: Turn | undefined
  /** The turns that are not told yet, in their order. */
  #untold: Turn[] = []
  #end: { error: unknown } | undefined

  constructor(store: Store, committer: Committer) {
    this.#store = store
    this.#committer = committer
  }

  /** The turn that is open; if none is, one opens now and closes when the running code has come to rest. */
  get turn(): Turn {
    if (this.#end) throw this.#end.error
    if (this.#turn) return this.#turn
    const turn = new Turn()
    this.#turn = turn
    this.#untold.push(turn)
    void REST.then(() => this.#close(turn))
    return turn
  }

  /** True when everything decided is committed and told. */
  get isSettled(): boolean {
    return this.#untold.length === 0
  }

  get isOver(): boolean {
    return this.#end !== undefined
  }

  /** What whoever comes too late gets, once the pipeline is over. */
  get error(): unknown {
    return this.#end?.error
  }

  /** Ends the pipeline: what is not committed yet never will be told, and whoever waits for it gets `error`. */
  end(error: unknown): void {
    if (this.#end) return
    this.#end = { error }
    const untold = this.#untold
    this.#untold = []
    for (const { waiting } of untold) {
      for (const one of waiting) one.failed(error)
    }
  }

  #close(turn: Turn): void {
    if (this.#end) return
    const commit = this.#committer.commitOf(turn)
    this.#turn = undefined
    if (!commit) return this.#settle(turn, true)
    this.#store.commit(commit).then(
      written => this.#settle(turn, written),
      error => this.#break(error)
    )
  }

  /** Tells what is durable now, in the order of the turns. */
  #settle(settled: Turn, isWritten: boolean): void {
    if (this.#end) return
    settled.isWritten = isWritten
    for (let turn = this.#untold[0]; turn?.isWritten !== undefined; turn = this.#untold[0]) {
      if (!turn.isWritten) return this.#break(LOST_RACE)
      this.#tell(turn)
    }
  }

  #tell(turn: Turn): void {
    this.#untold.shift()
    this.#committer.tell(turn)
    killPoint('streams told')
    for (const waiting of turn.waiting) waiting.told(turn)
    for (const effect of turn.effects) this.#committer.run(effect)
    if (this.isSettled) this.#committer.settled()
  }

  #break(error: unknown): void {
    if (this.#end) return
    const taskIds = new Set(this.#untold.flatMap(({ moved }) => [...moved]))
    const answer = error === LOST_RACE ? LOST_RACE : notStored(error)
    this.end(answer)
    this.#committer.broke(error, answer, taskIds)
  }
}

function notStored(cause: unknown): A2AError {
  return new A2AError('Overloaded', 'The agent could not store what this request leads to. Send it again later.', { retryAfterMs: 1000, cause })
}
