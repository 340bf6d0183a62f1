import { setTimeout } from 'node:timers/promises'
import { killPoint } from '../../../runtime/primitives/kill-points.ts'
import type { SweepBounds } from '../../../runtime/store/store.ts'
import type { ReadQueue } from '../read/read-queue.ts'
import { SLOTS } from '../schema/version-1.ts'
import type { ShardOwner } from '../session/owner.ts'
import type { Writer } from './writer.ts'

/** The most rows, and bytes of text, that one piece removes. Commits to its contexts wait for it. */
const PIECE_ROWS = 256
const PIECE_BYTES = 1024 * 1024

/** The rows that a sweep removes in a second at most, while commits wait, so that it takes a small part of the server only. */
const ROWS_A_SECOND = 2000

const SWEEP = { name: 'taskchart_sweep', text: 'SELECT * FROM sweep_rows($1, $2, $3, $4, $5, $6, $7, $8)' }

/**
 * Removes old rows in small pieces, beside the commits: on a session for reads, each piece in a transaction of its own. A piece checks the
 * epochs of the shards, and no other process gets them before it has ended. So a process that lost its shards removes nothing.
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
