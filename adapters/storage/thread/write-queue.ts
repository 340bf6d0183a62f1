import type { CommitRows } from '../rows/commit-rows.ts'
import { LeastCostQueue } from './least-cost-queue.ts'
import { valueOf, type Change, type Changed, type Outcome } from './thread-messages.ts'

/** Above this no more commits share a batch, so that what comes behind it need not wait long. */
const COMMITS_A_BATCH = 256

/** The same for their texts, in characters: so much is written and synced in some 5 ms. */
export const CHARACTERS_A_BATCH = 256 * 1024

/** Who waits for an outcome. */
export interface Waiting<T> {
  readonly resolve: (value: T) => void
  readonly reject: (error: unknown) => void
}

/** Commits that go to the thread together, what is changed after them, and who waits. */
export interface WriteBatch {
  /** Characters of the commits; a change counts like a whole batch. */
  characters: number
  readonly commits: CommitRows[]
  readonly waiting: Waiting<boolean>[]
  change: { readonly what: Change; readonly waiting: Waiting<Changed> } | undefined
}

/** A commit that waits, or a change. Its cost is in characters. */
type Write = { readonly cost: number } & ({ readonly rows: CommitRows; readonly waiting: Waiting<boolean> } | { readonly what: Change; readonly waiting: Waiting<Changed> })

/**
 * The writes that have not gone to the thread. Principals take turns, by the size of their commits. A change is synced by itself, so it
 * counts like a whole batch. The writes of one principal keep their order. Sweeps and notes of webhooks belong to the runtime itself.
 */
export class WriteQueue {
  readonly #writes = new LeastCostQueue<Write>()

  addCommit(rows: CommitRows, waiting: Waiting<boolean>): void {
    this.#writes.add(userName(rows), { cost: charactersIn(rows), rows, waiting })
  }

  addChange(what: Change, waiting: Waiting<Changed>): void {
    this.#writes.add(changerOf(what), { cost: CHARACTERS_A_BATCH, what, waiting })
  }

  /** The next batch, if there is one: commits, and at the most one change after them. */
  take(): WriteBatch | undefined {
    const batch: WriteBatch = { characters: 0, commits: [], waiting: [], change: undefined }
    // A large one has a batch of its own: nobody else waits for it.
    const fits = ({ cost }: Write) => batch.characters === 0 || batch.characters + cost <= CHARACTERS_A_BATCH
    while (batch.commits.length < COMMITS_A_BATCH && !batch.change) {
      const write = this.#writes.take(fits)
      if (!write) break
      this.#writes.charge(write.cost)
      batch.characters += write.cost
      if ('rows' in write) {
        batch.commits.push(write.rows)
        batch.waiting.push(write.waiting)
      } else batch.change = write
    }
    return batch.commits.length > 0 || batch.change ? batch : undefined
  }

  /** Every batch that is left. */
  takeAll(): WriteBatch[] {
    const batches: WriteBatch[] = []
    for (let batch = this.take(); batch; batch = this.take()) batches.push(batch)
    return batches
  }
}

/** What stands for a principal of a tenant. */
export function userName({ tenant, principal }: { readonly tenant: string; readonly principal: string }): string {
  return `${tenant}\n${principal}`
}

/** The principal for whom something is changed; empty for what the runtime does by itself. */
function changerOf(change: Change): string {
  if ('erase' in change) return userName(change.erase)
  return 'webhooks' in change && 'scope' in change.webhooks ? userName(change.webhooks.scope) : ''
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
