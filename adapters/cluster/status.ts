import { setTimeout as pause } from 'node:timers/promises'
import type { ClusterStatus, NodeStatus, ShardStatus, Tenure } from '../../runtime/ports/cluster-status.ts'
import { checkTables } from '../postgres/schema/migrate.ts'
import { type OwnPool, placeName, poolOf } from '../postgres/session/pool.ts'
import { postgresReasonOf, Session } from '../postgres/session/session.ts'
import { type Holder, StorageError, storedText } from '../rows/damage.ts'
import { wantedOwners } from './placement/placement.ts'
import { LOOK } from './placement/statements.ts'

/** A node gives a sign of life every 100 ms. This is the time in which one is expected, in milliseconds. */
const SIGN_MS = 500

/** The owner of shards in the status: a server without `--node` has them all. */
export const SINGLE_SERVER = 'a server without --node'

/**
 * Reads the nodes of a database and the owners of its shards, in about half a second. Rejects with StorageError for a
 * database without tables of taskchart.
 */
export async function clusterStatus(url: string, schema = 'taskchart'): Promise<ClusterStatus> {
  return withSession(url, schema, async session => {
    await checkTables(session, schema, placeName(url, 'clusterStatus'))
    return readStatus(session)
  })
}

/** Rejects with StorageError for a database that cannot be reached. */
export async function checkDatabase(url: string): Promise<void> {
  await withSession(url, 'taskchart', async () => {})
}

async function withSession<T>(url: string, schema: string, use: (session: Session) => Promise<T>): Promise<T> {
  const pool = poolOf(url, 1)
  try {
    return await inSession(pool, schema, use)
  } catch (error) {
    throw error instanceof StorageError
      ? error
      : new StorageError(`${placeName(url, 'clusterStatus')} cannot be used: ${postgresReasonOf(error)}.`, {
          cause: error
        })
  }
}

async function inSession<T>(pool: OwnPool, schema: string, use: (session: Session) => Promise<T>): Promise<T> {
  try {
    const session = await Session.open(pool, schema)
    return await use(session).finally(() => session.close())
  } finally {
    await pool.end()
  }
}

/** Whether every shard has the owner that it should have. */
export function isSettled({ nodes, shards }: ClusterStatus): boolean {
  const takers = nodes.flatMap(({ address, state, takesShards }) => (state === 'alive' && takesShards ? [address] : []))
  const wanted = wantedOwners(shards.length, takers)
  return shards.every(({ shard, owner }) => owner !== undefined && owner === wanted[shard])
}

/**
 * A task in a database of a cluster: its shard, and its life in milliseconds since 1970; `untilMs` is `undefined` for a
 * live one.
 */
interface TaskPlace {
  readonly shard: number
  readonly fromMs: number
  readonly untilMs: number | undefined
}

/** Where a task is; `undefined` for an unknown task. Rejects as {@link clusterStatus}. */
export async function taskPlace(url: string, taskId: string, schema = 'taskchart'): Promise<TaskPlace | undefined> {
  return withSession(url, schema, async session => {
    await checkTables(session, schema, placeName(url, 'clusterStatus'))
    const [row] = await session.once(
      'SELECT shard, (SELECT substring(body FROM $2) FROM events WHERE events.task = tasks.task ORDER BY generation LIMIT 1), ended_at_ms FROM tasks WHERE task_id = $1',
      [storedText(taskId), '"timestamp":"([^"]*)"']
    )
    if (!row) return undefined
    const [shard, opened, endedAtMs] = row
    return {
      shard: Number(shard),
      fromMs: Date.parse(String(opened)),
      untilMs: endedAtMs === null ? undefined : Number(endedAtMs)
    }
  })
}

/** The JSON of a holder: that of a node has more members than that of a server. */
interface NodeHolder extends Holder {
  readonly address?: string
  readonly agent?: string
  readonly epoch?: number
  readonly before?: readonly NodeHolder[]
}

function tenuresOf(holder: NodeHolder | undefined, epoch: number): Tenure[] {
  if (!holder) return []
  return [...(holder.before ?? []), { ...holder, epoch }].map(({ address, since, epoch: own }) => ({
    epoch: Number(own),
    owner: address,
    sinceMs: Date.parse(since)
  }))
}

/** Reads the nodes and the owners of all shards, in about half a second. */
export async function readStatus(session: Session): Promise<ClusterStatus> {
  const beatsOf = async () =>
    new Map(
      (await session.once('SELECT address, beats FROM nodes')).map(([address, beats]) => [address, beats] as const)
    )
  const before = await beatsOf()
  await pause(SIGN_MS)
  const after = await beatsOf()
  const locks = await session.rows(LOOK)
  const present = new Set(locks.flatMap(([isNode, , pid]) => (isNode === 't' ? [pid] : [])))
  const owners = new Map(
    locks.flatMap(([isNode, shard, , address]) => (isNode === 't' ? [] : [[shard, address ?? SINGLE_SERVER] as const]))
  )
  const nodes = (await session.once('SELECT address, pid, takes, holder FROM nodes ORDER BY address')).map(
    ([address, pid, takes, holder]): NodeStatus => {
      const { agent, pid: process, host, since } = JSON.parse(String(holder)) as NodeHolder
      const state = present.has(pid) ? (before.get(address) === after.get(address) ? 'silent' : 'alive') : 'gone'
      return {
        address: String(address),
        state,
        takesShards: takes === 't',
        ...(agent !== undefined && { agent }),
        process: { pid: process, host, since }
      }
    }
  )
  const shards = (await session.once('SELECT shard, epoch, holder FROM shards ORDER BY shard')).map(
    ([shard, epoch, holder]): ShardStatus => {
      const last = holder ? (JSON.parse(holder) as NodeHolder) : undefined
      return {
        shard: Number(shard),
        epoch: Number(epoch),
        owner: owners.get(shard),
        tenures: tenuresOf(last, Number(epoch))
      }
    }
  )
  return { nodes, shards }
}

/** A part of a task's life on one node. */
export interface OwnershipPeriod {
  readonly owner: string | undefined
  readonly epoch: number
  readonly fromMs: number
  /** `undefined` while it lasts. */
  readonly untilMs: number | undefined
}

/**
 * The owners of a shard during the life of a task, oldest first. `untilMs`: its end, `undefined` for a live task. Times
 * in milliseconds since 1970.
 */
export function wayOf(tenures: readonly Tenure[], fromMs: number, untilMs?: number): OwnershipPeriod[] {
  // A task that ends in the millisecond in which it began was on a node too.
  const lastMs = Math.max(untilMs ?? Infinity, fromMs + 1)
  return tenures.flatMap(({ owner, epoch, sinceMs }, i) => {
    const next = tenures[i + 1]?.sinceMs ?? Infinity
    const [begin, end] = [Math.max(sinceMs, fromMs), Math.min(next, lastMs)]
    return begin < end ? [{ owner, epoch, fromMs: begin, untilMs: end === Infinity ? undefined : end }] : []
  })
}

/** A shard that got another owner. */
export interface OwnerChange {
  readonly shard: number
  readonly epoch: number
  readonly from: string | undefined
  readonly to: string | undefined
  readonly atMs: number
}

/** The newest moves of all shards, newest first. A shard's first owner is no move. */
export function newestMoves(shards: readonly ShardStatus[], count: number): OwnerChange[] {
  const moves = shards.flatMap(({ shard, tenures }) =>
    tenures.slice(1).map(({ owner, epoch, sinceMs }, i): OwnerChange => ({
      shard,
      epoch,
      from: tenures[i]?.owner,
      to: owner,
      atMs: sinceMs
    }))
  )
  return moves.toSorted((a, b) => b.atMs - a.atMs || a.shard - b.shard).slice(0, count)
}
