import { type StoreChange, type Changed, type CommitRows, type StoreOutcome, valueOf } from './commit-rows.ts'
import { LeastCostQueue } from './least-cost-queue.ts'

/** The maximum number of commits in a batch, which bounds the wait of later calls. */
const COMMITS_A_BATCH = 256

/** The maximum length of their text, in characters: writing and syncing it takes about 5 ms. */
export const CHARACTERS_A_BATCH = 256 * 1024

/** A pending call. */
export interface QueuedCall<T> {
  readonly resolve: (value: T) => void
  readonly reject: (error: unknown) => void
}

/** Commits that are written in one transaction, a change after them, and the pending calls. */
export interface WriteBatch {
  /** The length of the commits; a change counts as a full batch. */
  characters: number
  readonly commits: CommitRows[]
  readonly waiting: QueuedCall<boolean>[]
  change: { readonly what: StoreChange; readonly waiting: QueuedCall<Changed> } | undefined
}

/** A waiting commit or change. Its cost is in characters. */
type Write = { readonly cost: number } & (
  | { readonly rows: CommitRows; readonly waiting: QueuedCall<boolean> }
  | { readonly what: StoreChange; readonly waiting: QueuedCall<Changed> }
)

/**
 * The writes of a store that wait, scheduled fairly among principals by the size of their commits. A
 * change is synced separately, so it counts as a full batch. Each principal's writes keep their order. Sweeps and
 * webhook notes count for the runtime.
 */
export class WriteQueue {
  readonly #writes = new LeastCostQueue<Write>()

  get size(): number {
    return this.#writes.size
  }

  addCommit(rows: CommitRows, waiting: QueuedCall<boolean>): void {
    this.#writes.add(userName(rows), { cost: charactersIn(rows), rows, waiting })
  }

  addChange(what: StoreChange, waiting: QueuedCall<Changed>): void {
    this.#writes.add(changerOf(what), { cost: CHARACTERS_A_BATCH, what, waiting })
  }

  /** The next batch, if any: commits, and at most one change after them. */
  take(): WriteBatch | undefined {
    const batch: WriteBatch = { characters: 0, commits: [], waiting: [], change: undefined }
    // A large commit gets its own batch, so that others do not wait for it.
    const fits = ({ cost }: Write) => batch.characters === 0 || batch.characters + cost <= CHARACTERS_A_BATCH
    while (batch.commits.length < COMMITS_A_BATCH && !batch.change) {
      const user = this.#writes.next()
      const write = user === undefined ? undefined : this.#writes.take(user, fits)
      if (user === undefined || !write) break
      this.#writes.charge(user, write.cost)
      batch.characters += write.cost
      if ('rows' in write) {
        batch.commits.push(write.rows)
        batch.waiting.push(write.waiting)
      } else batch.change = write
    }
    return batch.commits.length > 0 || batch.change ? batch : undefined
  }

  /** All remaining batches. */
  takeAll(): WriteBatch[] {
    const batches: WriteBatch[] = []
    for (let batch = this.take(); batch; batch = this.take()) batches.push(batch)
    return batches
  }
}

/**
 * Removes the first batches, as many as share a transaction and a sync: within the limits of one batch, and up to a
 * change, which is synced separately. So a small commit that was sent before a large one does not wait for it.
 */
export function takeTogether<
  Batch extends { readonly commits: readonly unknown[]; readonly change: unknown; readonly characters: number }
>(batches: Batch[]): Batch[] {
  let commits = 0
  let characters = 0
  let count = 0
  for (const batch of batches) {
    characters += batch.change ? 0 : batch.characters
    if (count > 0 && characters > CHARACTERS_A_BATCH) break
    commits += batch.commits.length
    count += 1
    if (batch.change || commits >= COMMITS_A_BATCH) break
  }
  return batches.splice(0, count)
}

/** The name of a principal within a tenant. */
export function userName({ tenant, principal }: { readonly tenant: string; readonly principal: string }): string {
  return `${tenant}\n${principal}`
}

/** The principal of a change; empty for the runtime itself. */
function changerOf(change: StoreChange): string {
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

/** Settles a pending call. */
export function settle<T>({ resolve, reject }: QueuedCall<T>, outcome: StoreOutcome<T>): void {
  try {
    resolve(valueOf(outcome))
  } catch (error) {
    reject(error)
  }
}

/** Rejects all calls of a batch. */
export function rejectBatch({ waiting, change }: WriteBatch, error: unknown): void {
  for (const { reject } of waiting) reject(error)
  change?.waiting.reject(error)
}
