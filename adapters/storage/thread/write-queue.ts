import type { CommitRows } from '../rows/commit-rows.ts'
import { LeastCostQueue } from './least-cost-queue.ts'
import { valueOf, type Change, type Changed, type Outcome } from './thread-messages.ts'

/** Above this no more commits share a batch, so that what comes behind it need not wait long. */
const COMMITS_A_BATCH = 256

/** The same for their texts, in characters: so much is written and synced in some 5 ms. */
const CHARACTERS_A_BATCH = 256 * 1024

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

/** Commits that wait, and the change that follows them. */
interface Section {
  readonly commits: LeastCostQueue<{ readonly rows: CommitRows; readonly waiting: Waiting<boolean> }>
  change: WriteBatch['change']
}

/**
 * The writes that have not gone to the thread. Principals take turns, by the size of their commits. The commits of one principal keep
 * their order, and a change comes after all commits that were there before it.
 */
export class WriteQueue {
  readonly #sections: Section[] = []

  addCommit(rows: CommitRows, waiting: Waiting<boolean>): void {
    const last = this.#sections.at(-1)
    const { commits } = last && !last.change ? last : this.#addSection()
    commits.add(userName(rows), { rows, waiting })
  }

  /** Adds what is to be changed after all commits that are here, and before those that come. */
  addChange(what: Change, waiting: Waiting<Changed>): void {
    const last = this.#sections.at(-1)
    const section = last && !last.change ? last : this.#addSection()
    section.change = { what, waiting }
  }

  /** The next batch, if there is one. */
  take(): WriteBatch | undefined {
    const [section] = this.#sections
    if (!section) return undefined
    const batch: WriteBatch = { commits: [], waiting: [], change: undefined }
    for (let characters = 0; characters < CHARACTERS_A_BATCH && batch.commits.length < COMMITS_A_BATCH;) {
      const commit = section.commits.take()
      if (!commit) break
      const cost = charactersIn(commit.rows)
      section.commits.charge(cost)
      characters += cost
      batch.commits.push(commit.rows)
      batch.waiting.push(commit.waiting)
    }
    if (section.commits.size > 0) return batch
    this.#sections.shift()
    batch.change = section.change
    return batch
  }

  /** Every batch that is left. */
  takeAll(): WriteBatch[] {
    const batches: WriteBatch[] = []
    for (let batch = this.take(); batch; batch = this.take()) batches.push(batch)
    return batches
  }

  #addSection(): Section {
    const section: Section = { commits: new LeastCostQueue(), change: undefined }
    this.#sections.push(section)
    return section
  }
}

/** What stands for a principal of a tenant. */
export function userName({ tenant, principal }: { readonly tenant: string; readonly principal: string }): string {
  return `${tenant}\n${principal}`
}

function charactersIn({ snapshot, log, tasks, journal, sends }: CommitRows): number {
  let characters = snapshot.length
  for (const row of log) characters += row.characters
  for (const { snapshot } of tasks) characters += snapshot?.length ?? 0
  for (const { body } of journal) characters += body.length
  for (const { body } of sends) characters += body.length
  return characters
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
