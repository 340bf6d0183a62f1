import { createHash } from 'node:crypto'
import type { ClusterStatus } from '../../../runtime/ports/cluster-status.ts'

/** The node of a placement. Its methods never throw. */
export interface Seat {
  /** The address of its link, which is unique and never changes: `ws://10.0.0.7:4243`. */
  readonly address: string
  /** A shard goes only to nodes that know the format of its last owner. The version of the agent is shown to people. */
  readonly version: { readonly format: number; readonly agent: string }
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
 * Decides which node owns a shard. A shard has one owner at a time, and each new owner a higher epoch: the storage
 * engine refuses writes under an older one. Every live node wants its part of the shards. It takes a shard when the
 * former owner has given it, is dead, or is hung. A node that cannot reach the placement has nothing, and joins again
 * by itself.
 */
export interface Placement {
  /** The number of shards, which never changes. */
  readonly shards: number
  /** The addresses of all nodes that take part. */
  readonly nodes: readonly string[]
  /**
   * How often the node was refused, because its address is another's or its secret is not that of the cluster. Default
   * 0.
   */
  readonly refused?: number
  /** Takes part from now on. Called once. */
  join(seat: Seat): void
  /** The address of a shard's owner, as far as this node knows; `undefined` while it has none. */
  ownerOf(shard: number): string | undefined
  /** Reads the nodes and the owners of all shards, for people. Rejects while the placement cannot be reached. */
  status(): Promise<ClusterStatus>
  /** Gives all shards to the other nodes, and takes no more part. May be called twice. */
  leave(): Promise<void>
}

/**
 * The node that should own each shard, by rendezvous hashing in which the best pairs choose first and no node gets more
 * than its part: when a node comes or goes, few shards of the others move. A shard that fewer nodes may take chooses
 * before others, and these nodes get more than their part if they have to. `undefined` for a shard that none may take.
 */
export function wantedOwners(
  shards: number,
  nodes: readonly string[],
  mayTake: (shard: number, node: string) => boolean = () => true
): (string | undefined)[] {
  const takers = nodes.toSorted().map(node => ({ node, count: 0 }))
  const choices = Array.from({ length: shards }, (_, shard) => takers.filter(({ node }) => mayTake(shard, node)))
  const pairs = choices.flatMap((choice, shard) =>
    choice.map(taker => ({
      taker,
      shard,
      freedom: choice.length,
      weight: createHash('sha256').update(`${shard} ${taker.node}`).digest('hex')
    }))
  )
  const owners = choices.map((): string | undefined => undefined)
  const part = Math.floor(shards / nodes.length)
  let larger = shards % nodes.length
  for (const { taker, shard } of pairs.toSorted((a, b) => a.freedom - b.freedom || (a.weight < b.weight ? 1 : -1))) {
    if (owners[shard] !== undefined || taker.count > part || (taker.count === part && larger === 0)) continue
    if (taker.count === part) larger -= 1
    taker.count += 1
    owners[shard] = taker.node
  }
  for (const [shard, [first, ...others]] of choices.entries()) {
    if (owners[shard] !== undefined || !first) continue
    const least = others.reduce((one, other) => (other.count < one.count ? other : one), first)
    least.count += 1
    owners[shard] = least.node
  }
  return owners
}
