import { LOCK_CLASS } from '../../postgres/schema/migrate.ts'
import type { PostgresPool } from '../../postgres/session/pool.ts'
import { Session } from '../../postgres/session/session.ts'

/** The class of the advisory locks by which nodes are present: each has one with its process id on the server. */
export const NODE_CLASS = `hashtext('taskchart node ' || current_schema())`

/** A class as pg_locks shows it. */
const oid = (lockClass: string) => `(${lockClass}::bigint & 4294967295)`

const NOW_MS = 'extract(epoch FROM clock_timestamp()) * 1000'

/** The time of the database. */
export const NOW = { name: 'taskchart_now', text: `SELECT ${NOW_MS}` }

/** Gives a sign of life, and returns the time of the database; no row if another process has the address. */
export const BEAT = {
  name: 'taskchart_beat',
  text: `UPDATE nodes SET beats = beats + 1 WHERE address = $1 AND pid = $2 RETURNING ${NOW_MS}`
}

/** The format of the node that a holder is, with what else its version has. */
const versionOf = (holder: string) => `${holder}::jsonb ->> 'version'`

/**
 * The locks of nodes and shards, with the nodes that have them: is a node, object, pid, address, takes shards, signs of
 * life, format of a node.
 */
export const LOOK = {
  name: 'taskchart_look',
  text: `
    SELECT l.classid::bigint = ${oid(NODE_CLASS)}, l.objid::bigint, l.pid, nodes.address, nodes.takes, nodes.beats,
      CASE WHEN l.classid::bigint = ${oid(NODE_CLASS)} THEN ${versionOf('nodes.holder')} END
    FROM pg_locks AS l LEFT JOIN nodes ON nodes.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid::bigint IN (${oid(NODE_CLASS)}, ${oid(LOCK_CLASS)})
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`
}

/** Ends sessions. */
export const END = {
  name: 'taskchart_end_nodes',
  text: 'SELECT pg_terminate_backend(p.pid) FROM unnest($1::int[]) AS p (pid)'
}

/** The format of the last owner of each shard. */
export const FORMATS = { name: 'taskchart_formats', text: `SELECT ${versionOf('holder')} FROM shards ORDER BY shard` }

/** How many former owners of a shard are remembered. */
const FORMER_OWNERS = 32

/** The former owners of a shard, oldest first, when it gets another one. */
const BEFORE = `
  (CASE WHEN jsonb_array_length(holder::jsonb -> 'before') >= ${FORMER_OWNERS} THEN (holder::jsonb -> 'before') - 0 ELSE coalesce(holder::jsonb -> 'before', '[]') END)
  || CASE WHEN holder IS NULL THEN '[]' ELSE jsonb_build_array((holder::jsonb - 'before'::text) || jsonb_build_object('epoch', epoch)) END`

/**
 * Takes free shards for a node of this format: each with its new epoch, which is null if the last owner knows a newer
 * format after all.
 */
export const TAKE = {
  name: 'taskchart_take',
  text: `
    WITH locked AS MATERIALIZED (SELECT f.shard, pg_try_advisory_lock(${LOCK_CLASS}, f.shard) AS ok FROM unnest($1::int[]) AS f (shard)),
    claimed AS (
      UPDATE shards SET epoch = epoch + 1, holder = ($3::jsonb || jsonb_build_object('before', ${BEFORE}))::text
      FROM locked WHERE shards.shard = locked.shard AND locked.ok AND coalesce(((${versionOf('holder')})::bigint[])[1], 0) <= $2::int
      RETURNING shards.shard, shards.epoch
    )
    SELECT shard, epoch, CASE WHEN epoch IS NULL THEN pg_advisory_unlock(${LOCK_CLASS}, shard) END FROM locked LEFT JOIN claimed USING (shard) WHERE ok`
}

/** Gives shards up. */
export const GIVE = {
  name: 'taskchart_give',
  text: `SELECT pg_advisory_unlock(${LOCK_CLASS}, g.shard) FROM unnest($1::int[]) AS g (shard)`
}

/** The locks of the sessions of nodes. */
const PRESENT = `
  l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid::bigint = ${oid(NODE_CLASS)}
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND l.pid <> pg_backend_pid()`

/** Another session of a node with the address: its process, and its signs of life. */
export const SESSION_AT_ADDRESS = {
  name: 'taskchart_other',
  text: `SELECT nodes.pid, nodes.beats FROM nodes JOIN pg_locks AS l ON l.pid = nodes.pid WHERE nodes.address = $1 AND ${PRESENT}`
}

/** Whether the cluster has other nodes, and the digest of its secret. */
export const CLUSTER = {
  name: 'taskchart_cluster',
  text: `SELECT EXISTS (SELECT FROM pg_locks AS l WHERE ${PRESENT}), (SELECT value FROM meta WHERE name = 'secret digest')`
}

/** Joins with a session. The process id of a node that has left may be this session's now. */
export const FORGET = {
  name: 'taskchart_forget',
  text: 'DELETE FROM nodes WHERE pid = pg_backend_pid() AND address <> $1'
}
export const ENTER = {
  name: 'taskchart_enter',
  text: `
    INSERT INTO nodes (address, pid, beats, takes, holder) VALUES ($1, pg_backend_pid(), 0, $2, $3)
    ON CONFLICT (address) DO UPDATE SET pid = excluded.pid, beats = nodes.beats + 1, takes = excluded.takes, holder = excluded.holder RETURNING pid`
}

/** A lock of a node or of a shard, and the node that has it. */
interface Lock {
  readonly isNode: boolean
  /** The shard; for a node, the process of its session. */
  readonly object: number
  readonly pid: number
  /** `undefined` for a session that is no node, or whose node has joined again with another. */
  readonly address: string | undefined
  readonly takes: boolean
  readonly beats: string
  /** 0 for a shard. */
  readonly format: number
}

export async function readLocks(session: Session): Promise<Lock[]> {
  return (await session.rows(LOOK)).map(([isNode, object, pid, address, takes, beats, version]) => ({
    isNode: isNode === 't',
    object: Number(object),
    pid: Number(pid),
    address: address ?? undefined,
    takes: takes === 't',
    beats: String(beats),
    format: parseFormat(version)
  }))
}

/** Whether two reads gave the same owners. */
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

/** The format of stored actors that a holder knows, as it is stored: `{1}`. Others may have more numbers after it. */
export function formatText(format: number): string {
  return `{${format}}`
}

/** The format in a stored text; 0 without one. */
export function parseFormat(text: string | null | undefined): number {
  return Number(/\d+/.exec(text ?? '')?.[0] ?? 0)
}
