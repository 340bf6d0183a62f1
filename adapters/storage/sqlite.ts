import { consoleLogger, type Logger } from '../../runtime/ports/logger.ts'
import {
  A_LOGGER,
  checkOptions,
  functionFor,
  kindOf,
  type Kind,
  type OptionKinds
} from '../../runtime/primitives/options.ts'
import type { Scope } from '../../runtime/store/rows.ts'
import type { Store } from '../../runtime/store/store.ts'
import { receivedTask, rowsOf } from '../rows/commit-rows.ts'
import { reportOnce, type StorageError } from '../rows/damage.ts'
import { definitionsIn, readDefinitionIn } from '../rows/definition-rows.ts'
import { readsBy, quotaUserOf, type OpenTasks, type ReadName, type StoreReader } from '../rows/store-reader.ts'
import { DRIVER, type DriverName } from './driver.ts'
import { openForReading, prepareFile, realFile } from './file/open-file.ts'
import { SqliteReads } from './read/reads.ts'
import { TaskReader } from './read/task-reader.ts'
import { tablesOf } from './tables.ts'
import { ThreadLink } from './thread/thread-link.ts'

/** The options of a SQLite store. All are optional. */
export interface SqliteOptions {
  /**
   * Default `node:sqlite` if this Node has it, from 22.13 on, else the package better-sqlite3. Both read each other's
   * files.
   */
  readonly driver?: DriverName
  /** Receives errors about damaged data, and the error that stops the store. Default the console. */
  readonly logger?: Logger
  /**
   * Called once if the disk or the file is broken. The store then rejects every call: a failed sync is not retried,
   * since its effect is unknown. Earlier commits are stored. Restart the process after the disk is repaired.
   */
  readonly stopped?: (error: StorageError) => void
}

const OPTIONS: OptionKinds<SqliteOptions> = {
  driver: DRIVER,
  logger: A_LOGGER,
  stopped: functionFor('a function that hears why the store has stopped')
}

/**
 * A store in a SQLite file, which is created if its folder exists. A commit is synced when it resolves; concurrent
 * commits share a sync. A worker thread writes, so that the event loop does not wait for the disk.
 *
 * Only one process can use a file: a lock in `FILE-lock` ends with the process. Throws StorageError at once for a file
 * that cannot be written, is in use, belongs to another program, is newer than this package or is damaged. Throws
 * TypeError if no driver is installed.
 *
 * Every row has a checksum. A damaged task cannot be read (InternalError). It is left out of lists, though counted in
 * their totals, and not restored. All other tasks are served.
 */
export function sqliteStore(file: string, options: SqliteOptions = {}): Store {
  checkGiven(file, options, OPTIONS, 'sqliteStore')
  const { driver, logger = consoleLogger, stopped } = options
  const path = realFile(file)
  const release = prepareFile(path, driver)
  const link = new ThreadLink(
    { file: path, driver },
    {
      damaged: reportOnce(logger, { file: path }),
      stopped: error => {
        logger.error('the store has stopped', { error })
        stopped?.(error)
      }
    }
  )
  const reads = readsBy(async (name, args) => {
    const json = await link.read({ name, args }, quotaUserOf(args[0]))
    return json === undefined ? undefined : JSON.parse(json)
  })
  const commit: Store['commit'] = async commit => link.commit(rowsOf(commit))
  return {
    commit,
    ...reads,
    ...definitionsIn({ ...reads, commit }),
    readTask: async (scope, taskId, options) => {
      const sent = await reads.readTask(scope, taskId, options)
      return sent && receivedTask(sent, options)
    },
    listTasks: async (scope, query) => {
      const page = await reads.listTasks(scope, query)
      return { ...page, tasks: page.tasks.map(sent => receivedTask(sent, query)) }
    },
    writeWebhook: async (scope, webhook, limit) =>
      (await link.change({ webhooks: { write: webhook, scope, limit } })) as 'written',
    noteWebhooks: async notes => (await link.change({ webhooks: { notes } })) as boolean[],
    deleteWebhook: async (scope, taskId, id) =>
      (await link.change({ webhooks: { delete: id, scope, taskId } })) as boolean,
    sweep: async (due, limit) => (await link.change({ sweep: due, limit })) as number,
    erase: async whose => (await link.change({ erase: whose })) as boolean,
    countTransitions: async (counts, atMs) => void (await link.change({ counts, atMs })),
    status: () => link.status,
    close: () => link.close().finally(release)
  }
}

function checkGiven(
  file: unknown,
  options: unknown,
  kinds: Readonly<Record<string, Kind | true>>,
  taker: string
): void {
  if (typeof file !== 'string' || file === '')
    throw new TypeError(
      `${taker} takes the path of a file, not ${file === '' ? 'an empty text' : kindOf(file)}: ${taker}('agent.db').`
    )
  checkOptions(options, kinds, taker, `${taker}('agent.db', { logger })`)
}

/**
 * Opens a file of {@link sqliteStore} for reading, even while a server uses it. Throws StorageError for a file that
 * does not exist, belongs to another program or is newer than this package. Damaged data is left out, or throws if it
 * was requested by id.
 */
export function readSqlite(file: string, options: Pick<SqliteOptions, 'logger'> = {}): StoreReader {
  checkGiven(file, options, { logger: A_LOGGER }, 'readSqlite')
  const { logger = consoleLogger } = options
  const path = realFile(file)
  const { database, reads } = openForReading(path, database => {
    const tables = tablesOf(database)
    return {
      database,
      reads: new SqliteReads(database, tables, new TaskReader(database, tables), ({ message }) =>
        logger.error(message, { file: path })
      )
    }
  })
  let isOpen = true
  const read = async (name: ReadName | 'scopes' | 'openTasks', args: readonly unknown[]): Promise<unknown> => {
    if (!isOpen) throw new TypeError('The store is closed.')
    return (reads[name] as (...args: readonly unknown[]) => unknown).apply(reads, [...args])
  }
  const all = readsBy(read)
  return {
    ...all,
    readDefinition: readDefinitionIn(all),
    openTasks: async (limit, after) => read('openTasks', [limit, after]) as Promise<OpenTasks>,
    scopes: async () => read('scopes', []) as Promise<Scope[]>,
    close: async () => {
      if (isOpen) database.close()
      isOpen = false
    }
  }
}
