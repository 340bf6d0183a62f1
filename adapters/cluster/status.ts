import { setTimeout as pause } from 'node:timers/promises'
import { StorageError, type Holder } from '../rows/storage-error.ts'
import { checkTables } from '../postgres/schema/migrate.ts'
import { placeName, poolOf, type OwnPool } from '../postgres/session/pool.ts'
import { Session } from '../postgres/session/session.ts'
import { reasonOf } from '../postgres/session/trouble.ts'
import { wantedOwners } from './placement/placement.ts'
import { LOOK } from './placement/statements.ts'

/** A node gives a sign of life every 100 ms. This is the time in which one is expected, in milliseconds. */
const SIGN_MS = 500

/** A node, as the database shows it. */
export interface NodeStatus {
  /** Where the other nodes reach it. */
  readonly address: string
  /** `silent`: its session is there, but it gave no sign of life while the database was read. `gone`: its session has ended. */
  readonly state: 'alive' | 'silent' | 'gone'
  /** Whether it takes shards: not while it stops. */
  readonly takesShards: boolean
  /** Its process, and when it joined. */
  readonly process: Holder
}

/** A shard, as the database shows it. */
export interface ShardStatus {
  readonly shard: number
  /** How often it got a new owner. */
  readonly epoch: number
  /** The address of its node; `undefined` while it has none. */
  readonly owner: string | undefined
}

/** The nodes and shards of a database, sorted. */
export interface ClusterStatus {
  readonly nodes: readonly NodeStatus[]
  readonly shards: readonly ShardStatus[]
}

/** The owner of shards in the status: a server without `--node` has them all. */
export const SINGLE_SERVER = 'a server without --node'

/** Reads the nodes of a database and the owners of its shards, in about half a second. Rejects with StorageError for a database without tables of taskchart. */
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
    throw error instanceof StorageError ? error : new StorageError(`${placeName(url, 'clusterStatus')} cannot be used: ${reasonOf(error)}.`, { cause: error })
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

async function readStatus(session: Session): Promise<ClusterStatus> {
  const beatsOf = async () => new Map((await session.once('SELECT address, beats FROM nodes')).map(([address, beats]) => [address, beats] as const))
  const before = await beatsOf()
  await pause(SIGN_MS)
  const after = await beatsOf()
  const locks = await session.rows(LOOK)
  const present = new Set(locks.flatMap(([isNode, , pid]) => (isNode === 't' ? [pid] : [])))
  const owners = new Map(locks.flatMap(([isNode, shard, , address]) => (isNode === 't' ? [] : [[shard, address ?? SINGLE_SERVER] as const])))
  const nodes = (await session.once('SELECT address, pid, takes, holder FROM nodes ORDER BY address')).map(([address, pid, takes, holder]): NodeStatus => ({
    address: String(address), state: present.has(pid as string) ? (before.get(address as string) === after.get(address as string) ? 'silent' : 'alive') : 'gone', takesShards: takes === 't', process: JSON.parse(String(holder)) as Holder
  }))
  const shards = (await session.once('SELECT shard, epoch FROM shards ORDER BY shard')).map(([shard, epoch]): ShardStatus => ({ shard: Number(shard), epoch: Number(epoch), owner: owners.get(shard as string) }))
  return { nodes, shards }
}
