import { killPoint } from '../../../runtime/primitives/kill-points.ts'
import { StorageError, tooNew } from '../../rows/damage.ts'
import type { PostgresPool } from '../session/pool.ts'
import { quoteIdentifier, Session } from '../session/session.ts'
import { FUNCTIONS, WRITE_GENERATIONS } from './functions.ts'

/**
 * Version 1: the tables. Names of tenants, principals, contexts and tasks are texts of `storedText`, sorted by their
 * bytes. Contexts, tasks, sends and webhooks have the shard of their context, so that processes can share a database
 * shard by shard. Counts of transitions have the first shard of the process that counted as their writer. `sum` is a
 * checksum over the cells that the writer sets. Updated rows have space in their page.
 *
 * Each condition fits one index only, so that the planner has no choice that is right for a small table alone: to read
 * a whole index by a condition on a later column is wrong once the table grows, and the plan stays until the next
 * ANALYZE. So no two indexes of a table have the same column; where two have to, one of them has it in an expression:
 * `+ 0`, `|| ''`.
 */
const TABLES = `
  CREATE TABLE meta (name text PRIMARY KEY, value text NOT NULL);

  CREATE TABLE shards (shard int PRIMARY KEY, epoch bigint NOT NULL, holder text) WITH (fillfactor = 50);

  CREATE TABLE nodes (address text PRIMARY KEY, pid int NOT NULL, beats bigint NOT NULL, takes boolean NOT NULL, holder text NOT NULL) WITH (fillfactor = 50);

  CREATE SEQUENCE numbers INCREMENT 1048576;
  CREATE SEQUENCE places;
  CREATE SEQUENCE entries CACHE 64;

  CREATE TABLE contexts (
    context bigint PRIMARY KEY, shard int NOT NULL, tenant text COLLATE "C" NOT NULL, principal text COLLATE "C" NOT NULL,
    context_id text COLLATE "C" NOT NULL, commits bigint NOT NULL, at_ms float8 NOT NULL, tasks int NOT NULL, messages int NOT NULL,
    snapshot text NOT NULL, sum bigint NOT NULL
  ) WITH (fillfactor = 80);
  CREATE UNIQUE INDEX contexts_by_name ON contexts (tenant, principal, context_id);
  CREATE INDEX contexts_without_tasks ON contexts (at_ms) WHERE tasks = 0;

  CREATE TABLE tasks (
    context bigint NOT NULL, task bigint PRIMARY KEY, shard int NOT NULL, tenant text COLLATE "C" NOT NULL, principal text COLLATE "C" NOT NULL,
    context_id text COLLATE "C" NOT NULL, task_id text COLLATE "C" NOT NULL, state text COLLATE "C" NOT NULL, time text COLLATE "C" NOT NULL,
    status_at int NOT NULL, generation int NOT NULL, messages int NOT NULL, bytes bigint NOT NULL, wake_at_ms float8, ended_at_ms float8,
    sum bigint NOT NULL
  ) WITH (fillfactor = 80);
  CREATE UNIQUE INDEX tasks_by_id ON tasks (task_id);
  CREATE INDEX tasks_of_scope ON tasks (tenant, principal, state, time, (task_id || ''));
  CREATE INDEX tasks_of_context ON tasks (context, (state || ''), (time || ''), (task_id || ''));
  CREATE INDEX tasks_by_creation ON tasks ((context + 0), (task + 0));
  CREATE INDEX tasks_ended ON tasks (ended_at_ms, task) WHERE ended_at_ms IS NOT NULL;
  CREATE INDEX tasks_waking ON tasks (wake_at_ms, task_id) WHERE wake_at_ms IS NOT NULL;

  CREATE TABLE snapshots (task bigint PRIMARY KEY, context bigint NOT NULL, snapshot text NOT NULL, sum bigint NOT NULL) WITH (fillfactor = 50);
  CREATE INDEX snapshots_of_context ON snapshots (context);

  CREATE TABLE events (
    task bigint NOT NULL, generation int NOT NULL, is_term boolean NOT NULL, body text NOT NULL, sum bigint NOT NULL, PRIMARY KEY (task, generation)
  );
  CREATE INDEX events_with_terms ON events ((task + 0), generation) WHERE is_term;

  CREATE TABLE messages (
    context bigint NOT NULL, number int NOT NULL, task bigint, body text NOT NULL, sum bigint NOT NULL, PRIMARY KEY (context, number)
  );
  CREATE INDEX messages_of_task ON messages (task, number) WHERE task IS NOT NULL;

  CREATE TABLE journal (
    task bigint NOT NULL, key text COLLATE "C" NOT NULL, entry bigint NOT NULL, name text NOT NULL, body text NOT NULL, sum bigint NOT NULL,
    PRIMARY KEY (task, key)
  );

  CREATE TABLE sends (
    tenant text COLLATE "C" NOT NULL, principal text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, context_id text COLLATE "C" NOT NULL,
    shard int NOT NULL, expires_at_ms float8 NOT NULL, body text NOT NULL, sum bigint NOT NULL, PRIMARY KEY (tenant, principal, key)
  );
  CREATE INDEX sends_of_context ON sends ((tenant || ''), (principal || ''), (context_id || ''));
  CREATE INDEX sends_by_end ON sends (expires_at_ms);

  CREATE TABLE webhooks (
    place bigint PRIMARY KEY, shard int NOT NULL, context bigint NOT NULL, task bigint NOT NULL, key text COLLATE "C" NOT NULL, is_open boolean NOT NULL,
    body text NOT NULL, sum bigint NOT NULL
  );
  CREATE UNIQUE INDEX webhooks_by_id ON webhooks (task, key);
  CREATE INDEX webhooks_open ON webhooks (place) WHERE is_open;

  CREATE TABLE counters (
    tenant text COLLATE "C" NOT NULL, principal text COLLATE "C" NOT NULL, state text COLLATE "C" NOT NULL, slot int NOT NULL, count bigint NOT NULL,
    PRIMARY KEY (tenant, principal, state, slot)
  ) WITH (fillfactor = 50);
  CREATE INDEX counters_of_principal ON counters ((principal || ''));

  CREATE TABLE transitions (
    chart text COLLATE "C" NOT NULL, previous text COLLATE "C" NOT NULL, taken text COLLATE "C" NOT NULL, writer int NOT NULL, count bigint NOT NULL,
    timed bigint NOT NULL, ms bigint NOT NULL, at_ms float8 NOT NULL, sum bigint NOT NULL, PRIMARY KEY (chart, previous, taken, writer)
  ) WITH (fillfactor = 50);
`

const GROWING = [
  'contexts',
  'tasks',
  'snapshots',
  'events',
  'messages',
  'journal',
  'sends',
  'webhooks',
  'counters',
  'transitions'
] as const

/**
 * Autovacuum after few changed rows, and five times as fast as by default: dead rows should stay below 2 % of a table,
 * 2,000, and those of one `autovacuum_naptime` of the server and one run. The default waits for a fifth of a table.
 */
const VACUUM = GROWING.map(
  table =>
    `ALTER TABLE ${table} SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_limit = 1000);`
).join('\n')

/**
 * The number of slots in which the tasks of a scope and state are counted: so many processes count without waiting for
 * each other. Sweeps have one more.
 */
export const SLOTS = 16

/**
 * Version 2: messages have generations. Those of before have none, and count for nothing; the next entry of their task
 * has its next generation.
 */
const GENERATIONS = `
  ALTER TABLE messages ADD COLUMN generation int;
  CREATE INDEX messages_by_generation ON messages (task, generation) WHERE generation IS NOT NULL;
`

/** The SQL of each version of the schema, based on the one before. Entries are appended, never changed. */
export const POSTGRES_MIGRATIONS: readonly string[] = [
  `${TABLES}${VACUUM}${FUNCTIONS}`,
  `${GENERATIONS}${WRITE_GENERATIONS}`
]

/** The number of shards of a new database. */
export const SHARDS = 48

/** The class of the advisory locks of a schema: a lock of a session, by class and shard. */
export const LOCK_CLASS = `hashtext('taskchart ' || current_schema())`

/** A database whose tables are those of a version. */
export interface OpenedDatabase {
  readonly version: number
  readonly shards: number
  /** The origin of a copy that is not finished. */
  readonly copyOf: string | undefined
}

/**
 * The version of the schema, and its number of shards; `undefined` if there are no tables yet. Rejects with
 * StorageError for a newer version, and for a schema with tables of another program.
 */
export async function readVersion(
  session: Session,
  place: string,
  known = POSTGRES_MIGRATIONS.length
): Promise<OpenedDatabase | undefined> {
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
export function checkFinished(place: string, { copyOf }: OpenedDatabase): void {
  if (copyOf !== undefined)
    throw new StorageError(`${place} has an unfinished copy of ${copyOf}. Run taskchart db copy again.`)
}

/** Refuses a database without tables, and one whose tables have to be migrated first. */
export async function checkMigrated(pool: PostgresPool, schema: string, name: string): Promise<void> {
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
  if (found.version < POSTGRES_MIGRATIONS.length)
    throw new StorageError(
      `${name} has the older schema version ${found.version}. Migrate it first: taskchart db migrate URL`
    )
}

/** Creates the schema with the newest version, if it is not there. Two processes may do it at the same time. */
export async function createSchema(session: Session, schema: string, shards: number): Promise<void> {
  // The lock comes before the transaction: one that waits for it inside does not see the schema that another process
  // has made.
  await session.once(`SELECT pg_advisory_lock(hashtext('taskchart'), -1)`)
  await inTransaction(session, async () => {
    const [[isThere] = []] = await session.once('SELECT to_regnamespace($1) IS NOT NULL', [quoteIdentifier(schema)])
    if (isThere !== 't') await session.run(`CREATE SCHEMA ${quoteIdentifier(schema)}`)
    const [[isMade] = []] = await session.once(`SELECT to_regclass('meta') IS NOT NULL`)
    if (isMade === 't') return
    for (const sql of POSTGRES_MIGRATIONS) await session.run(sql)
    await session.once(`INSERT INTO meta VALUES ('version', $1), ('shards', $2)`, [
      String(POSTGRES_MIGRATIONS.length),
      String(shards)
    ])
    await session.once('INSERT INTO shards SELECT shard, 0 FROM generate_series(0, $1::int - 1) AS s (shard)', [shards])
    killPoint('before migration')
  })
  await session.once(`SELECT pg_advisory_unlock(hashtext('taskchart'), -1)`)
}

/** Migrates the tables to the newest version, each step in a transaction. The caller owns all shards. */
export async function migratePostgres(
  session: Session,
  from: number,
  migrations: readonly string[] = POSTGRES_MIGRATIONS
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
