import { randomInt } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { afterRounds } from '../../../runtime/primitives/event-loop.ts'
import { killPoint } from '../../../runtime/primitives/kill-points.ts'
import type { Erasure, SweepBounds } from '../../../runtime/store/store.ts'
import type { StoreChange, Changed, CommitRows, WebhookChange } from '../../rows/commit-rows.ts'
import { storedText } from '../../rows/damage.ts'
import { type QueuedCall, type WriteBatch, WriteQueue } from '../../rows/write-queue.ts'
import type { ReadQueue } from '../read/read-queue.ts'
import { SLOTS } from '../schema/migrate.ts'
import type { Ownership, ShardOwner } from '../session/owner.ts'
import { isLost, toStoreError, classifyPostgresError } from '../session/session.ts'
import { PostgresBatch } from './batch.ts'
import { KnownRows, Numbers, type Removed, tasksIn } from './known-rows.ts'
import { countTransitions } from './transition-rows.ts'
import { changeWebhooks, KnownWebhooks } from './webhook-rows.ts'
import { WRITE_ROWS, type WriteGroups } from './write-groups.ts'

const ERASE = { name: 'taskchart_erase', text: 'SELECT erase_rows($1, $2, $3, $4, $5, $6)' }

/**
 * The rounds of the event loop between two batches. Commits that follow from the answers to the first batch go into the
 * second. With three nodes and 64 tasks in flight, 2 rounds save a third of the statements, and 4 rounds complete 4 %
 * more tasks than 2.
 */
const ROUNDS_BETWEEN = 4

/** A change that is written in order with the commits: all but sweeps, which `Sweeper` runs. */
export type OrderedChange = Exclude<StoreChange, { readonly sweep: unknown }>

/** The result of a commit: whether it won its race, or its error. */
type Outcome = boolean | Error

/**
 * Writes commits and changes on the owner's session: one batch at a time, each one statement and one transaction.
 * Writes that arrive meanwhile form the next batch. If the session is lost, every waiting write is refused. The effect
 * of the last batch is then unknown to its callers, who read it again once the database is back.
 */
export class Writer {
  readonly #owner: ShardOwner
  readonly #place: string
  readonly #queue = new WriteQueue()
  readonly #rows = new KnownRows()
  readonly #numbers = new Numbers()
  readonly #slot: number
  #waiting = 0
  #running: Promise<void> | undefined
  #isScheduled = false
  /** The ownership to which the known rows belong. */
  #known: Ownership | undefined

  constructor(owner: ShardOwner, place: string) {
    this.#owner = owner
    this.#place = place
    // Not the process id: every container may have the same.
    this.#slot = randomInt(SLOTS)
  }

  /** Writes that have not been answered. */
  get waiting(): number {
    return this.#waiting
  }

  commit(rows: CommitRows): Promise<boolean> {
    return this.#enqueue(waiting => this.#queue.addCommit(rows, waiting))
  }

  change(what: OrderedChange): Promise<Changed> {
    return this.#enqueue(waiting => this.#queue.addChange(what, waiting))
  }

  /** Forgets the rows that a sweep has removed. */
  swept(removed: readonly Removed[]): void {
    this.#rows.remove(removed)
  }

  /** Resolves when all writes so far are done or refused. */
  async idle(): Promise<void> {
    while (this.#isScheduled || this.#running) await (this.#running ?? new Promise(resolve => setImmediate(resolve)))
  }

  #enqueue<T>(add: (waiting: QueuedCall<T>) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      void this.#owner.owned
      this.#waiting += 1
      add({
        resolve: value => this.#settled(() => resolve(value)),
        reject: error => this.#settled(() => reject(toStoreError(error, this.#place)))
      })
      this.#schedule()
    })
  }

  #settled(settle: () => void): void {
    this.#waiting -= 1
    settle()
  }

  /** Writes a batch after so many rounds of the event loop. Calls of these rounds go together. */
  #schedule(rounds = 1): void {
    if (this.#isScheduled || this.#running) return
    this.#isScheduled = true
    afterRounds(rounds, () => {
      this.#isScheduled = false
      this.#running = this.#write(this.#queue.take() as WriteBatch).finally(() => {
        this.#running = undefined
        if (this.#waiting > 0) this.#schedule(ROUNDS_BETWEEN)
      })
    })
  }

  async #write({ commits, waiting, change }: WriteBatch): Promise<void> {
    const outcomes =
      commits.length === 0
        ? []
        : await this.#guarded(
            owned => this.#commitAll(owned, commits, false),
            error => commits.map(() => error)
          )
    for (const [i, outcome] of outcomes.entries()) {
      const { resolve, reject } = waiting[i] as QueuedCall<boolean>
      if (typeof outcome === 'boolean') resolve(outcome)
      else reject(outcome)
    }
    if (!change) return
    const changed = await this.#guarded<Changed | { error: Error }>(
      owned => this.#change(owned, change.what as OrderedChange),
      error => ({ error })
    )
    if (typeof changed === 'object' && 'error' in changed) change.waiting.reject(changed.error)
    else change.waiting.resolve(changed)
  }

  /** Runs a write under the present ownership, and gives that up if the session is lost. */
  async #guarded<T>(write: (owned: Ownership) => Promise<T>, failed: (error: Error) => T): Promise<T> {
    let owned: Ownership | undefined
    try {
      owned = this.#owner.owned
      if (this.#known !== owned) this.#forget(owned)
      await this.#numbers.refill(owned.session)
      return await write(owned)
    } catch (error) {
      this.#rows.forget()
      if (owned && isLost(error)) this.#owner.lost(owned.session, error)
      return failed(error as Error)
    }
  }

  #forget(owned: Ownership): void {
    this.#rows.forget()
    this.#numbers.forget()
    this.#known = owned
  }

  /** Writes commits in order. If a row is not as it was known, or one commit is refused, each is tried alone. */
  async #commitAll(owned: Ownership, commits: readonly CommitRows[], careful: boolean): Promise<Outcome[]> {
    try {
      return await this.#commitTogether(owned, commits, careful)
    } catch (error) {
      if (isLost(error)) throw error
      this.#rows.forget()
      if (classifyPostgresError(error) === 'busy' || (careful && commits.length === 1))
        return commits.map(() => error as Error)
      const outcomes: Outcome[] = []
      for (const commit of commits) outcomes.push(...(await this.#commitAll(owned, [commit], true)))
      return outcomes
    }
  }

  async #commitTogether(owned: Ownership, commits: readonly CommitRows[], careful: boolean): Promise<Outcome[]> {
    const rows = await this.#rows.read(owned.session, commits, careful)
    const webhooks = new KnownWebhooks()
    const withWebhooks = commits.filter(commit => commit.webhooks.length > 0)
    await webhooks.read(
      owned.session,
      withWebhooks.flatMap(commit => [...tasksIn(commit)].flatMap(id => rows.tasks.get(id)?.task ?? []))
    )
    const batch = new PostgresBatch(rows, { numbers: this.#numbers, webhooks, shards: owned.count, slot: this.#slot })
    const outcomes = commits.map(commit => {
      try {
        return batch.add(commit)
      } catch (error) {
        return error as Error
      }
    })
    await this.#send(owned, batch.groups(), batch.shards)
    // A context may have been erased by another node: it is read again when the caller tries again.
    if (outcomes.includes(false)) this.#rows.forget()
    const { contexts, tasks } = batch.written
    this.#rows.keep(contexts, tasks)
    return outcomes
  }

  async #send(owned: Ownership, groups: WriteGroups, shards: ReadonlySet<number>): Promise<void> {
    if (groups.isEmpty) return
    killPoint('before sync')
    await owned.session.rows(WRITE_ROWS, groups.parameters(owned, shards))
    killPoint('synced')
  }

  async #change(owned: Ownership, change: OrderedChange): Promise<Changed> {
    if ('counts' in change) return countTransitions(owned, change)
    if ('webhooks' in change) {
      try {
        return await this.#changeWebhooks(owned, change.webhooks)
      } catch (error) {
        if (classifyPostgresError(error) !== 'conflict') throw error
        // A sweep has removed a task meanwhile.
        return this.#changeWebhooks(owned, change.webhooks)
      }
    }
    const removed = await this.#erase(owned, change.erase)
    if (removed > 0) this.#rows.forget()
    return removed > 0
  }

  async #changeWebhooks(owned: Ownership, change: WebhookChange): Promise<Changed> {
    const { groups, changed } = await changeWebhooks(owned.session, change)
    await this.#send(owned, groups, new Set(owned.shards))
    return changed
  }

  async #erase({ session, shards, epochs }: Ownership, { tenant, principal, contextId }: Erasure): Promise<number> {
    const [[removed] = []] = await session.rows(ERASE, [
      [...shards],
      [...epochs],
      this.#slot,
      storedText(tenant),
      storedText(principal),
      contextId === undefined ? null : storedText(contextId)
    ])
    return Number(removed)
  }
}

/** The most rows, and bytes of text, that one piece removes. Commits to its contexts wait for it. */
const PIECE_ROWS = 256
const PIECE_BYTES = 1024 * 1024

/**
 * The rows that a sweep removes in a second at most, while commits wait, so that it takes a small part of the server
 * only.
 */
const ROWS_A_SECOND = 2000

const SWEEP = { name: 'taskchart_sweep', text: 'SELECT * FROM sweep_rows($1, $2, $3, $4, $5, $6, $7, $8)' }

/**
 * Removes old rows in small pieces, beside the commits: on a session for reads, each piece in a transaction of its own.
 * A piece checks the epochs of the shards, and no other process gets them before it has ended. So a process that lost
 * its shards removes nothing.
 */
export class Sweeper {
  readonly #owner: ShardOwner
  readonly #queue: Pick<ReadQueue, 'read'>
  readonly #writer: Pick<Writer, 'waiting' | 'swept'>
  readonly #wait: (delayMs: number) => Promise<unknown>
  #restsUntilMs = 0

  constructor(
    owner: ShardOwner,
    queue: Pick<ReadQueue, 'read'>,
    writer: Pick<Writer, 'waiting' | 'swept'>,
    wait: (delayMs: number) => Promise<unknown> = setTimeout
  ) {
    this.#owner = owner
    this.#queue = queue
    this.#writer = writer
    this.#wait = wait
  }

  /** Removes a piece, and gives the number of its tasks, contexts and sends. Rejects with A2AError or StorageError. */
  async sweep({ endedBeforeMs, idleBeforeMs, sendsBeforeMs }: SweepBounds, limit: number): Promise<number> {
    const restMs = this.#restsUntilMs - performance.now()
    if (restMs > 0 && this.#writer.waiting > 0) await this.#wait(restMs)
    const beganMs = performance.now()
    const rows = await this.#queue.read('', session => {
      const { shards, epochs } = this.#owner.owned
      killPoint('before sweep')
      return session.rows(SWEEP, [
        [...shards],
        [...epochs],
        SLOTS,
        endedBeforeMs,
        idleBeforeMs,
        sendsBeforeMs,
        Math.min(limit, PIECE_ROWS),
        PIECE_BYTES
      ])
    })
    this.#writer.swept(
      rows.map(([tenant, principal, contextId, taskId]) => ({
        tenant: String(tenant),
        principal: String(principal),
        contextId: String(contextId),
        taskId: taskId ?? undefined
      }))
    )
    this.#restsUntilMs = beganMs + (rows.length / ROWS_A_SECOND) * 1000
    return rows.length
  }
}
