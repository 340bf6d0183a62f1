import type { PostgresPool } from '../../postgres/session/pool.ts'
import { Session } from '../../postgres/session/session.ts'
import { versionIn, type NodeVersion } from './node-version.ts'
import { LOOK } from './statements.ts'

/** A lock of a node or of a shard, and the node that has it. */
export interface Lock {
  readonly isNode: boolean
  /** The shard; for a node, the process of its session. */
  readonly object: number
  readonly pid: number
  /** `undefined` for a session that is no node, or whose node has joined again with another. */
  readonly address: string | undefined
  readonly takes: boolean
  readonly beats: string
  /** Empty for a shard. */
  readonly version: NodeVersion
}

export async function readLocks(session: Session): Promise<Lock[]> {
  return (await session.rows(LOOK)).map(([isNode, object, pid, address, takes, beats, version]) => ({
    isNode: isNode === 't',
    object: Number(object),
    pid: Number(pid),
    address: address ?? undefined,
    takes: takes === 't',
    beats: String(beats),
    version: versionIn(version)
  }))
}

/** Whether two looks saw the same owners. */
export function isSame(
  one: ReadonlyMap<number, string | undefined>,
  other: ReadonlyMap<number, string | undefined>
): boolean {
  return (
    one.size === other.size && [...one].every(([shard, address]) => other.has(shard) && other.get(shard) === address)
  )
}

/** Opens the session for signs of life, which need not survive a crash of the server. */
export async function openWatch(pool: PostgresPool, schema: string, leaseMs: number): Promise<Session> {
  const session = await Session.open(pool, schema)
  await session.run(`SET synchronous_commit = off; SET statement_timeout = ${leaseMs}`)
  return session
}
