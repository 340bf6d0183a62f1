import type { Logger } from '../../../runtime/ports/logger.ts'
import { StorageError } from '../../rows/storage-error.ts'
import { createSchema, readVersion, type Opened } from '../schema/migrate.ts'
import { placeName, poolOf, type PostgresPool } from './pool.ts'
import { checkRights } from './rights.ts'
import { Session } from './session.ts'
import { reasonOf } from './trouble.ts'

/** The oldest version with all that the schema needs. */
const OLDEST = 140_000

/** Checks the server, and creates the tables of a new database. Rejects with StorageError for one that cannot be used. A logger hears warnings. */
export async function checkedDatabase(
  session: Session,
  {
    pool,
    place,
    schema,
    shards
  }: { readonly pool: PostgresPool; readonly place: string; readonly schema: string; readonly shards: number },
  logger: Logger | undefined
): Promise<Opened> {
  await refusePooler(session, pool, place, schema)
  await checkServer(session, place, schema, logger)
  if (!(await readVersion(session, place))) await createSchema(session, schema, shards)
  return (await readVersion(session, place)) as Opened
}

/** Checks that a server of taskchart could use a database, whose tables may be missing. Changes nothing. Rejects as {@link checkServer}, and if there is no connection. */
export async function checkUse(url: string, taker: string, schema: string): Promise<void> {
  const place = placeName(url, taker)
  const pool = poolOf(url, 1)
  try {
    const session = await Session.open(pool, schema)
    await checkServer(session, place, schema, undefined).finally(() => session.close())
  } catch (error) {
    throw error instanceof StorageError
      ? error
      : new StorageError(`${place} cannot be used: ${reasonOf(error)}.`, { cause: error })
  } finally {
    await pool.end()
  }
}

/**
 * Refuses a pooler that gives the server's sessions to its clients for one transaction each, such as PgBouncer's transaction mode. There
 * the locks and settings of a session are those of any client. Two connections at the same time have the same process of the server.
 */
async function refusePooler(session: Session, pool: PostgresPool, place: string, schema: string): Promise<void> {
  const pidOf = async (of: Session) =>
    (
      await of.once('SELECT pg_backend_pid(), current_setting($1), current_setting($2)', [
        'search_path',
        'plan_cache_mode'
      ])
    ).join()
  const before = await pidOf(session)
  const other = await Session.open(pool, schema)
  try {
    const theirs = await pidOf(other)
    const after = await pidOf(session)
    if (theirs.split(',')[0] !== before.split(',')[0] && after === before) return
    throw new StorageError(
      `${place} is behind a pooler that shares sessions between transactions, which loses the lock of the owner. Connect to PostgreSQL itself, or use the pooler's session mode.`
    )
  } finally {
    other.close()
  }
}

/** Refuses a server that cannot be written or is too old, and a role that lacks rights. With a logger, warns of settings with which acknowledged commits can be lost. */
export async function checkServer(
  session: Session,
  place: string,
  schema: string,
  logger: Logger | undefined
): Promise<void> {
  const [[isStandby, version, fsync, synchronous, standbys, encoding] = []] = await session.once(`
    SELECT pg_is_in_recovery(), current_setting('server_version_num'), current_setting('fsync'), current_setting('synchronous_commit'),
      (SELECT count(*) FROM pg_stat_replication WHERE application_name <> 'pg_basebackup') > 0 AND current_setting('synchronous_standby_names') = '', current_setting('server_encoding')`)
  if (isStandby === 't')
    throw new StorageError(`${place} is a standby, which is read-only. Give the address of the primary server.`)
  if (Number(version) < OLDEST) throw new StorageError(`${place} is a PostgreSQL older than 14. Use 14 or newer.`)
  if (encoding !== 'UTF8')
    throw new StorageError(`${place} has the encoding ${encoding}. Create the database with ENCODING 'UTF8'.`)
  await checkRights(session, place, schema)
  if (synchronous === 'off' || synchronous === 'local') await session.run('SET synchronous_commit = on')
  if (fsync === 'off')
    logger?.warn('the server runs with fsync off: a crash of its machine can lose or damage data', { database: place })
  if (standbys === 't')
    logger?.warn(
      'the standbys of the server are asynchronous: if one is promoted, the newest acknowledged data can be lost',
      { database: place }
    )
}
