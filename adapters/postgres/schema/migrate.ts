import { killPoint } from '../../../runtime/primitives/kill-points.ts'
import { tooNew, StorageError } from '../../rows/storage-error.ts'
import type { PostgresPool } from '../session/pool.ts'
import { quoted, Session } from '../session/session.ts'
import { FUNCTIONS } from './functions.ts'
import { TABLES, VACUUM } from './version-1.ts'

/** The SQL of each version of the schema, based on the one before. Entries are appended, never changed. */
export const MIGRATIONS: readonly string[] = [`${TABLES}${VACUUM}${FUNCTIONS}`]

/** The number of shards of a new database. */
export const SHARDS = 48

/** The class of the advisory locks of a schema: a lock of a session, by class and shard. */
export const LOCK_CLASS = `hashtext('taskchart ' || current_schema())`

/** A database whose tables are those of a version. */
export interface Opened {
  readonly version: number
  readonly shards: number
  /** The origin of a copy that is not finished. */
  readonly copyOf: string | undefined
}

/**
 * The version of the schema, and its number of shards; `undefined` if there are no tables yet. Rejects with StorageError for a newer
 * version, and for a schema with tables of another program.
 */
export async function readVersion(
  session: Session,
  place: string,
  known = MIGRATIONS.length
): Promise<Opened | undefined> {
  const [[isOurs, others] = []] = await session.once(`
    SELECT to_regclass('meta') IS NOT NULL AND to_regclass('shards') IS NOT NULL, (SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace(current_schema()))`)
  if (isOurs !== 't') {
    if (Number(others) === 0) return undefined
    throw new StorageError(
      `${place} has a schema of this name with tables of another program. Choose another with the option schema.`
    )
  }
  const meta = new Map((await session.once('SELECT name, value FROM meta')) as [string, string][])
  const version = Number(meta.get('version'))
  if (version > known) throw tooNew(place, version, known)
  return { version, shards: Number(meta.get('shards')), copyOf: meta.get('copy') }
}

/** Refuses a database whose copy was interrupted. */
export function checkFinished(place: string, { copyOf }: Opened): void {
  if (copyOf !== undefined)
    throw new StorageError(`${place} has an unfinished copy of ${copyOf}. Run taskchart db copy again.`)
}

/** Refuses a database without tables, and one whose tables have to be migrated first. */
export async function checkReadable(pool: PostgresPool, schema: string, name: string): Promise<void> {
  const session = await Session.open(pool, schema)
  try {
    await checkTables(session, schema, name)
  } finally {
    session.close()
  }
}

/** Does the same in a session. */
export async function checkTables(session: Session, schema: string, name: string): Promise<void> {
  const found = await readVersion(session, name)
  if (!found) throw new StorageError(`${name} has no tables of taskchart in the schema ${schema}.`)
  checkFinished(name, found)
  if (found.version < MIGRATIONS.length)
    throw new StorageError(
      `${name} has the older schema version ${found.version}. Migrate it first: taskchart db migrate URL`
    )
}

/** Creates the schema with version 1, if it is not there. Two processes may do it at the same time. */
export async function createSchema(session: Session, schema: string, shards: number): Promise<void> {
  // The lock comes before the transaction: one that waits for it inside does not see the schema that another process has made.
  await session.once(`SELECT pg_advisory_lock(hashtext('taskchart'), -1)`)
  await inTransaction(session, async () => {
    const [[isThere] = []] = await session.once('SELECT to_regnamespace($1) IS NOT NULL', [quoted(schema)])
    if (isThere !== 't') await session.run(`CREATE SCHEMA ${quoted(schema)}`)
    const [[isMade] = []] = await session.once(`SELECT to_regclass('meta') IS NOT NULL`)
    if (isMade === 't') return
    await session.run(MIGRATIONS[0] as string)
    await session.once(`INSERT INTO meta VALUES ('version', '1'), ('shards', $1)`, [String(shards)])
    await session.once('INSERT INTO shards SELECT shard, 0 FROM generate_series(0, $1::int - 1) AS s (shard)', [shards])
    killPoint('before migration')
  })
  await session.once(`SELECT pg_advisory_unlock(hashtext('taskchart'), -1)`)
}

/** Migrates the tables to the newest version, each step in a transaction. The caller owns all shards. */
export async function migrate(
  session: Session,
  from: number,
  migrations: readonly string[] = MIGRATIONS
): Promise<void> {
  for (const [index, sql] of migrations.entries()) {
    if (index < from) continue
    await inTransaction(session, async () => {
      await session.run(sql)
      await session.once(`UPDATE meta SET value = $1 WHERE name = 'version'`, [String(index + 1)])
      killPoint('before migration')
    })
  }
}

async function inTransaction(session: Session, work: () => Promise<void>): Promise<void> {
  await session.run('BEGIN')
  try {
    await work()
    await session.run('COMMIT')
  } catch (error) {
    await session.run('ROLLBACK').catch(() => {})
    throw error
  }
}
