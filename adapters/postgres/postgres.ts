import { consoleLogger, type Logger } from '../../runtime/ports/logger.ts'
import { A_LOGGER, checkOptions, type Kind, type OptionKinds } from '../../runtime/primitives/options.ts'
import type { Store } from '../../runtime/store/store.ts'
import { StorageError, thisHolder } from '../rows/damage.ts'
import { readDefinitionIn } from '../rows/definition-rows.ts'
import type { StoreReader } from '../rows/store-reader.ts'
import { ReadQueue } from './read/read-queue.ts'
import { PostgresReads } from './read/reads.ts'
import { checkMigrated, SHARDS } from './schema/migrate.ts'
import { DatabaseOwner } from './session/owner.ts'
import type { PostgresPool } from './session/pool.ts'
import { postgresReasonOf } from './session/session.ts'
import { connectionsOf, readsOf, storeOf } from './store.ts'

/** The options of a PostgreSQL store. All are optional. */
export interface PostgresOptions {
  /** The schema of the tables, created if needed. Each agent needs its own. Default `taskchart`. */
  readonly schema?: string
  /** Connections for reads, opened as they are needed. Writes have one more. Default 4. */
  readonly readers?: number
  /** The number of shards of a new database, from 1 to 4096. It cannot be changed later. Default 48. */
  readonly shards?: number
  /**
   * Receives a warning when the database goes away and when it is back, warnings about the server's settings, and
   * errors about damaged data. Default the console.
   */
  readonly logger?: Logger
}

const countUpTo = (most: number): Kind => [
  value => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= most,
  `a whole number from 1 to ${most}`
]

const A_SCHEMA: Kind = [
  value => typeof value === 'string' && value !== '' && Buffer.byteLength(value) <= 63 && !value.includes('\0'),
  'a name of 1 to 63 bytes'
]

const OPTIONS: OptionKinds<PostgresOptions> = {
  schema: A_SCHEMA,
  readers: countUpTo(1000),
  shards: countUpTo(4096),
  logger: A_LOGGER
}

/**
 * A store in a PostgreSQL database, 14 or newer; its tables are created or migrated. Takes a `postgres:` URL, or a
 * `Pool` of the package `pg`, of which it keeps some connections. A commit is durable when it resolves; concurrent
 * commits share a transaction.
 *
 * Only one process can use a schema: its session has advisory locks, which end with it. Rejects with StorageError for a
 * database that cannot be reached, is in use, is a standby, or is newer than this package. A pooler in transaction mode
 * is refused too. Throws TypeError for wrong arguments and without the package `pg`. No message and no log has the
 * URL's password.
 *
 * While the database is away, every call rejects with Overloaded, and the store connects again by itself. Every row has
 * a checksum. A damaged task cannot be read (InternalError), is left out of lists and is not restored. All other tasks
 * are served.
 */
export async function postgresStore(place: string | PostgresPool, options: PostgresOptions = {}): Promise<Store> {
  checkOptions(options, OPTIONS, 'postgresStore', `postgresStore('postgres://localhost/agent', { logger })`)
  const { schema = 'taskchart', readers = 4, shards = SHARDS, logger = consoleLogger } = options
  const connections = connectionsOf(place, readers, 'postgresStore')
  const { pool, name, end } = connections
  const owner = new DatabaseOwner({ pool, place: name, schema, shards, holder: thisHolder(), logger })
  try {
    await owner.open()
  } catch (error) {
    await owner.close()
    await end()
    throw error
  }
  return storeOf(owner, connections, schema, logger)
}

/**
 * Opens a database of {@link postgresStore} for reading, even while a server uses it. Rejects with StorageError for one
 * that cannot be reached, has no tables, or is newer than this package. Damaged data is left out, or throws if it was
 * requested by id.
 */
export async function readPostgres(
  place: string | PostgresPool,
  options: Pick<PostgresOptions, 'schema' | 'logger'> = {}
): Promise<StoreReader> {
  checkOptions(
    options,
    { schema: A_SCHEMA, logger: A_LOGGER },
    'readPostgres',
    `readPostgres('postgres://localhost/agent', { logger })`
  )
  const { schema = 'taskchart', logger = consoleLogger } = options
  const { pool, name, end } = connectionsOf(place, 1, 'readPostgres')
  try {
    await checkMigrated(pool, schema, name)
  } catch (error) {
    await end()
    throw error instanceof StorageError
      ? error
      : new StorageError(`${name} cannot be used: ${postgresReasonOf(error)}.`, { cause: error })
  }
  const queue = new ReadQueue({ pool, schema, place: name, sessions: 1 })
  let closed: Promise<void> | undefined
  const reads = readsOf(queue, message => logger.error(message, { database: name }))
  return {
    ...reads,
    readDefinition: readDefinitionIn(reads),
    openTasks: (limit, after) =>
      queue.read('', session =>
        new PostgresReads(session, ({ message }) => logger.error(message, { database: name })).openTasks(limit, after)
      ),
    scopes: () => queue.read('', session => new PostgresReads(session, () => {}).scopes()),
    close: () => (closed ??= queue.close().then(end))
  }
}
