import { createHash } from 'node:crypto'

/** The node of a placement. Its methods never throw. */
export interface Seat {
  /** The address of its link, which is unique and never changes: `ws://10.0.0.7:4243`. */
  readonly address: string
  /** The node owns these shards from now on, each in this epoch: its former owner writes nothing to it any more. */
  gained(epochs: ReadonlyMap<number, number>): void
  /** Asks for these shards. Resolves when the node writes nothing more to them; until then it owns them. */
  giving(shards: readonly number[]): Promise<void>
  /** The node has lost these shards. Its writes to them fail. */
  lost(shards: readonly number[]): void
  /** Another node has got or lost a shard, or has come or gone. */
  changed(): void
}

/**
 * Decides which node owns a shard. A shard has one owner at a time, and each new owner a higher epoch: the storage engine refuses writes
 * under an older one. Every live node wants its part of the shards. It takes a shard when the former owner has given it, is dead, or
 * is hung. A node that cannot reach the placement has nothing, and joins again by itself.
 */
export interface Placement {
  /** The number of shards, which never changes. */
  readonly shards: number
  /** The addresses of all nodes that take part. */
  readonly nodes: readonly string[]
  /** Takes part from now on. Called once. */
  join(seat: Seat): void
  /** The address of a shard's owner, as far as this node knows; `undefined` while it has none. */
  ownerOf(shard: number): string | undefined
  /** Gives all shards to the other nodes, and takes no more part. May be called twice. */
  leave(): Promise<void>
}

/**
 * The node that should own each shard, by rendezvous hashing in which the best pairs choose first and no node gets more than its part: when
 * a node comes or goes, few shards of the others move. Empty without nodes.
 */
export function wantedOwners(shards: number, nodes: readonly string[]): string[] {
  const owners: string[] = []
  const takers = nodes.map(node => ({ node, count: 0 }))
  const pairs = takers.flatMap(taker => Array.from({ length: shards }, (_, shard) => ({ taker, shard, weight: createHash('sha256').update(`${shard} ${taker.node}`).digest('hex') })))
  const part = Math.floor(shards / nodes.length)
  let larger = shards % nodes.length
  for (const { taker, shard } of pairs.toSorted((a, b) => (a.weight < b.weight ? 1 : -1))) {
    if (owners[shard] !== undefined || taker.count > part || (taker.count === part && larger === 0)) continue
    if (taker.count === part) larger -= 1
    taker.count += 1
    owners[shard] = taker.node
  }
  return owners
}
