import type { NodeStatus, ShardStatus, ObservedCluster } from '../../runtime/ports/cluster-status.ts'
import type { ContextKey } from '../../runtime/store/store.ts'
import { newestMoves, wayOf, type OwnerChange, type OwnershipPeriod } from '../cluster/status.ts'

/** The number of moves that a page shows. */
const MOVES = 20

/** The nodes of the cluster, their shards, and a task's way over them. Times in milliseconds since 1970. */
export interface SeenNodes {
  /** The address of the node that shows them. */
  readonly self: string
  readonly nodes: readonly (Omit<NodeStatus, 'process'> & {
    readonly process: string
    readonly sinceMs: number
    readonly shards: readonly SeenShard[]
  })[]
  /** The shards without an owner. */
  readonly free: readonly SeenShard[]
  /** The newest moves, newest first. */
  readonly moves: readonly OwnerChange[]
  readonly way?: { readonly taskId: string; readonly shard: number; readonly stays: readonly OwnershipPeriod[] }
}

export interface SeenShard {
  readonly shard: number
  readonly epoch: number
}

/** A task, whose way is shown. */
export interface SeenTask {
  readonly taskId: string
  readonly key: ContextKey
  readonly openedMs: number
  /** `undefined` for a live task. */
  readonly endedMs: number | undefined
}

/** Reads what a page shows of a cluster. */
export async function seenNodes(cluster: ObservedCluster, task: SeenTask | undefined): Promise<SeenNodes> {
  const { nodes, shards } = await cluster.status()
  const of = (address: string | undefined): SeenShard[] =>
    shards.flatMap(({ shard, epoch, owner }) => (owner === address ? [{ shard, epoch }] : []))
  return {
    self: cluster.address,
    nodes: nodes.map(({ process: { pid, host, since }, ...node }) => ({
      ...node,
      process: `${pid} on ${host}`,
      sinceMs: Date.parse(since),
      shards: of(node.address)
    })),
    free: of(undefined),
    moves: newestMoves(shards, MOVES),
    ...(task && { way: wayIn(shards, cluster.shardOf(task.key), task) })
  }
}

function wayIn(
  shards: readonly ShardStatus[],
  shard: number,
  { taskId, openedMs, endedMs }: SeenTask
): NonNullable<SeenNodes['way']> {
  return {
    taskId,
    shard,
    stays: wayOf(
      shards.flatMap(one => (one.shard === shard ? one.tenures : [])),
      openedMs,
      endedMs
    )
  }
}
