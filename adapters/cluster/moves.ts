import type { ShardStatus, Tenure } from '../../runtime/ports/cluster-status.ts'

/** A part of a task's life on one node. */
export interface Stay {
  readonly owner: string | undefined
  readonly epoch: number
  readonly fromMs: number
  /** `undefined` while it lasts. */
  readonly untilMs: number | undefined
}

/** The owners of a shard during the life of a task, oldest first. `untilMs`: its end, `undefined` for a live task. Times in milliseconds since 1970. */
export function wayOf(tenures: readonly Tenure[], fromMs: number, untilMs?: number): Stay[] {
  // A task that ends in the millisecond in which it began was on a node too.
  const lastMs = Math.max(untilMs ?? Infinity, fromMs + 1)
  return tenures.flatMap(({ owner, epoch, sinceMs }, i) => {
    const next = tenures[i + 1]?.sinceMs ?? Infinity
    const [begin, end] = [Math.max(sinceMs, fromMs), Math.min(next, lastMs)]
    return begin < end ? [{ owner, epoch, fromMs: begin, untilMs: end === Infinity ? undefined : end }] : []
  })
}

/** A shard that got another owner. */
export interface Move {
  readonly shard: number
  readonly epoch: number
  readonly from: string | undefined
  readonly to: string | undefined
  readonly atMs: number
}

/** The newest moves of all shards, newest first. A shard's first owner is no move. */
export function newestMoves(shards: readonly ShardStatus[], count: number): Move[] {
  const moves = shards.flatMap(({ shard, tenures }) =>
    tenures.slice(1).map(({ owner, epoch, sinceMs }, i): Move => ({
      shard,
      epoch,
      from: tenures[i]?.owner,
      to: owner,
      atMs: sinceMs
    }))
  )
  return moves.toSorted((a, b) => b.atMs - a.atMs || a.shard - b.shard).slice(0, count)
}
