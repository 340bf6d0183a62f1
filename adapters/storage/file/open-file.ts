import { existsSync, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { driverOf, sqliteCode, type Database, type DriverName } from '../driver.ts'
import { thisHolder, type Holder, StorageError } from '../../rows/storage-error.ts'
import { reasonOf } from '../trouble.ts'
import { checkHeader, checkPage1, createPrivately, logSalt } from './file-header.ts'
import { hold, holdingHere } from './holder-lock.ts'
import { migrate, readAsNewest } from './schema.ts'

/** Larger files are not checked for damage when opened; the check takes 2 ms per MiB. */
const CHECKED_BYTES = 128 * 1024 * 1024

/** The real path of a file, with links resolved. Throws StorageError if its folder does not exist. */
export function realFile(file: string): string {
  const path = resolve(file)
  const isDangling = !existsSync(path) && lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()
  if (isDangling)
    throw new StorageError(
      `${path} is a link to ${readlinkSync(path)}, which does not exist. Remove the link, or give the name of the file itself.`
    )
  try {
    return existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path))
  } catch (cause) {
    throw new StorageError(`${path} cannot be used: its folder cannot be found.`, { cause })
  }
}

/**
 * Prepares a file for exclusive use: creates it if needed, migrates it, and checks a file of up to `checkedBytes` for damage. Returns the
 * function that releases it. Throws StorageError, and changes nothing, for a file of another program, or one that is in use,
 * damaged or too new.
 */
export function prepareFile(file: string, driver: DriverName | undefined, checkedBytes = CHECKED_BYTES): () => void {
  const holder = thisHolder()
  if (!holdingHere(file)) checkHeader(file)
  const release = hold(file, holder, driver, () => holderOf(file, driver))
  try {
    createPrivately(file)
    // Read-only: the last writer that closes the file would delete its log.
    if (logSalt(file) !== undefined)
      usingFile(
        file,
        () => driverOf(driver)(file, true),
        database => checkPage1(database, file)
      )
    usingFile(
      file,
      () => driverOf(driver)(file, false),
      database => {
        // Still without a log: the id in page 1 is written atomically.
        database.exec('PRAGMA synchronous = FULL')
        migrate(database, file)
        if (statSync(file).size <= checkedBytes) checkWhole(database, file)
        database
          .prepare("INSERT INTO meta VALUES ('holder', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value")
          .run(JSON.stringify(holder))
      }
    )
    return release
  } catch (error) {
    release()
    throw error
  }
}

/** The size to which SQLite truncates the log file when the log restarts: twice the log of small commits. If that were truncated and grew each time, they would take 8 % longer. */
const LOG_BYTES = 8 * 1024 * 1024

/** Opens a prepared file: every commit is synced, deleted data is overwritten, and checkpoints are explicit. */
export function openForWriting(file: string, driver: DriverName | undefined): Database {
  const database = driverOf(driver)(file, false)
  database.exec(
    'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = ON'
  )
  database.exec(`PRAGMA journal_size_limit = ${LOG_BYTES}`)
  return database
}

/** Opens a file for reading while others use it, and returns the result of `prepare`. Throws StorageError for an unusable file. */
export function openForReading<T>(file: string, prepare: (database: Database) => T): T {
  const here = holdingHere(file)
  if (!here) checkHeader(file)
  if (!existsSync(file)) throw new StorageError(`${file} does not exist.`)
  const database = opened(file, () => driverOf(here?.driver)(file, true))
  try {
    checkPage1(database, file)
    readAsNewest(database, file)
    return prepare(database)
  } catch (error) {
    database.close()
    throw unusable(file, error)
  }
}

/** Uses a connection and closes it. Throws StorageError for an unusable file. */
export function usingFile(file: string, open: () => Database, use: (database: Database) => void): void {
  const database = opened(file, open)
  try {
    use(database)
  } catch (error) {
    throw unusable(file, error)
  } finally {
    database.close()
  }
}

function opened(file: string, open: () => Database): Database {
  try {
    return open()
  } catch (error) {
    throw unusable(file, error)
  }
}

function unusable(file: string, error: unknown): unknown {
  if (sqliteCode(error) === undefined) return error
  return new StorageError(`${file} cannot be used: ${reasonOf(error)}.`, { cause: error })
}

function checkWhole(database: Database, file: string): void {
  const found = database.prepare('PRAGMA integrity_check(1)').get()?.integrity_check
  if (found !== 'ok') throw new StorageError(`${file} is damaged: ${String(found).trim()}. Restore a backup.`)
}

function holderOf(file: string, driver: DriverName | undefined): Holder | undefined {
  try {
    const database = driverOf(driver)(file, true)
    try {
      return JSON.parse(String(database.prepare("SELECT value FROM meta WHERE name = 'holder'").get()?.value)) as Holder
    } finally {
      database.close()
    }
  } catch {
    // The holder has only just started, or the file belongs to another program. It is in use anyway.
    return undefined
  }
}
