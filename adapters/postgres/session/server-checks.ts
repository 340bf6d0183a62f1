import type { Logger } from '../../../runtime/ports/logger.ts'
import { StorageError } from '../../rows/damage.ts'
import { createSchema, POSTGRES_MIGRATIONS, type OpenedDatabase, readVersion } from '../schema/migrate.ts'
import { placeName, poolOf, type PostgresPool } from './pool.ts'
import { postgresReasonOf, Session } from './session.ts'

/** The oldest version with all that the schema needs. */
const OLDEST = 140_000

/**
 * Checks the server, and creates the tables of a new database. Rejects with StorageError for one that cannot be used. A
 * logger gets warnings.
 */
export async function checkedDatabase(
  session: Session,
  {
    pool,
    place,
    schema,
    shards
  }: { readonly pool: PostgresPool; readonly place: string; readonly schema: string; readonly shards: number },
  logger: Logger | undefined
): Promise<OpenedDatabase> {
  await refusePooler(session, pool, place, schema)
  await checkServer(session, place, schema, logger)
  if (!(await readVersion(session, place))) await createSchema(session, schema, shards)
  return (await readVersion(session, place)) as OpenedDatabase
}

/**
 * Checks that a server of taskchart could use a database, whose tables may be missing. Changes nothing. Rejects as
 * {@link checkServer}, and if there is no connection.
 */
export async function checkUse(url: string, taker: string, schema: string): Promise<void> {
  const place = placeName(url, taker)
  const pool = poolOf(url, 1)
  try {
    const session = await Session.open(pool, schema)
    await checkServer(session, place, schema, undefined).finally(() => session.close())
  } catch (error) {
    throw error instanceof StorageError
      ? error
      : new StorageError(`${place} cannot be used: ${postgresReasonOf(error)}.`, { cause: error })
  } finally {
    await pool.end()
  }
}

/**
 * Refuses a pooler that gives the server's sessions to its clients for one transaction each, such as PgBouncer's
 * transaction mode. There the locks and settings of a session are those of any client. Two connections at the same time
 * have the same process of the server.
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

/**
 * Refuses a server that cannot be written or is too old, and a role that lacks rights. With a logger, warns of settings
 * with which acknowledged commits can be lost.
 */
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

/** The names of our tables, sequences and functions. */
const OURS = [
  ...new Set(
    POSTGRES_MIGRATIONS.flatMap(sql =>
      [...sql.matchAll(/CREATE (?:TABLE|SEQUENCE|FUNCTION) (\w+)/g)].map(([, name]) => name)
    )
  )
]

/** The statements that give the role what it lacks in the schema $1, with objects of the names $2. */
const MISSING_RIGHTS = `
  WITH space AS (SELECT oid AS space, nspname, EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND relname = 'meta') AS is_made FROM pg_namespace n WHERE nspname = $1::name)
  SELECT format('SET default_transaction_read_only = off; ALTER ROLE %I IN DATABASE %I SET default_transaction_read_only = off', current_user, current_database())
    WHERE current_setting('default_transaction_read_only')::bool
  UNION ALL
  SELECT format('CREATE SCHEMA %I AUTHORIZATION %I', $1::name, current_user) WHERE NOT EXISTS (SELECT FROM space) AND NOT has_database_privilege(current_database(), 'CREATE')
  UNION ALL
  SELECT format('GRANT %s ON SCHEMA %I TO %I', string_agg(kind, ', ' ORDER BY kind DESC), nspname, current_user)
    FROM space, unnest(CASE WHEN is_made THEN '{USAGE}' ELSE '{USAGE,CREATE}' END::text[]) kind WHERE NOT has_schema_privilege(space, kind) GROUP BY nspname
  UNION ALL
  SELECT format('GRANT %s ON TABLE %I.%I TO %I', string_agg(kind, ', ' ORDER BY kind), nspname, relname, current_user)
    FROM space JOIN pg_class c ON relnamespace = space AND relkind = 'r' AND relname = ANY ($2), unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) kind
    WHERE is_made AND NOT has_table_privilege(c.oid, kind) GROUP BY nspname, relname
  UNION ALL
  SELECT format('GRANT USAGE ON SEQUENCE %I.%I TO %I', nspname, relname, current_user)
    FROM space JOIN pg_class c ON relnamespace = space AND relname = ANY ($2)
    WHERE is_made AND CASE relkind WHEN 'S' THEN NOT has_sequence_privilege(c.oid, 'USAGE') END
  UNION ALL
  SELECT format('GRANT EXECUTE ON FUNCTION %I.%I(%s) TO %I', nspname, proname, pg_get_function_identity_arguments(f.oid), current_user)
    FROM space JOIN pg_proc f ON pronamespace = space AND proname = ANY ($2) WHERE is_made AND NOT has_function_privilege(f.oid, 'EXECUTE')`

/**
 * Rejects with StorageError if the role lacks a right that taskchart needs. It names the statements that grant the
 * missing rights.
 */
async function checkRights(session: Session, place: string, schema: string): Promise<void> {
  const missing = (await session.once(MISSING_RIGHTS, [schema, OURS])).flat()
  if (missing.length > 0)
    throw new StorageError(
      `${place} gives its role too few rights. As an administrator, run in this database: ${missing.map(statement => `${statement};`).join(' ')}`
    )
}
