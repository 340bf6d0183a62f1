import type { CommitRows } from './commit-rows.ts'
import { valueOf, type Change, type Changed, type Outcome } from './thread-messages.ts'

/** Above this no more commits share a batch, so that what comes behind it need not wait long. */
const COMMITS_A_BATCH = 512

/** Who waits for an outcome. */
export interface Waiting<T> {
  readonly resolve: (value: T) => void
  readonly reject: (error: unknown) => void
}

/** Commits that go to the thread together, what is changed after them, and who waits. */
export interface WriteBatch {
  readonly commits: CommitRows[]
  readonly waiting: Waiting<boolean>[]
  change: { readonly what: Change; readonly waiting: Waiting<Changed> } | undefined
}

/** The writes that have not gone to the thread, in the order of the calls, as the batches in which they will go. */
export class WriteQueue {
  readonly #batches: WriteBatch[] = []

  addCommit(rows: CommitRows, waiting: Waiting<boolean>): void {
    const last = this.#batches.at(-1)
    const batch = last && !last.change && last.commits.length < COMMITS_A_BATCH ? last : this.#addBatch()
    batch.commits.push(rows)
    batch.waiting.push(waiting)
  }

  /** Adds what is to be changed after all commits that are here, and before those that come. */
  addChange(what: Change, waiting: Waiting<Changed>): void {
    const last = this.#batches.at(-1)
    const batch = last && !last.change ? last : this.#addBatch()
    batch.change = { what, waiting }
  }

  /** The next batch, if there is one. */
  take(): WriteBatch | undefined {
    return this.#batches.shift()
  }

  /** Every batch that is left. */
  takeAll(): WriteBatch[] {
    return this.#batches.splice(0)
  }

  #addBatch(): WriteBatch {
    const batch: WriteBatch = { commits: [], waiting: [], change: undefined }
    this.#batches.push(batch)
    return batch
  }
}

/** Lets whoever waits know. */
export function settle<T>({ resolve, reject }: Waiting<T>, outcome: Outcome<T>): void {
  try {
    resolve(valueOf(outcome))
  } catch (error) {
    reject(error)
  }
}

/** Lets everybody who waits for a batch know why it has come to nothing. */
export function rejectBatch({ waiting, change }: WriteBatch, error: unknown): void {
  for (const { reject } of waiting) reject(error)
  change?.waiting.reject(error)
}
