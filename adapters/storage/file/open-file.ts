import { existsSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { driverOf, sqliteCode, type Database, type DriverName } from '../driver.ts'
import { reasonOf, StorageError } from '../storage-error.ts'
import { checkHeader, checkPage1, createPrivately, logSalt } from './file-header.ts'
import { hold, holdingHere, thisHolder, type Holder } from './holder-lock.ts'
import { migrate, readAsNewest } from './schema.ts'

/** Up to which size a file is looked through when it is opened; that takes 2 ms for each MiB. */
const CHECKED_BYTES = 128 * 1024 * 1024

/** The one name of a file, whatever links lead to it. Throws StorageError if its folder is not there. */
export function realFile(file: string): string {
  const path = resolve(file)
  try {
    return existsSync(path) ? realpathSync(path) : join(realpathSync(dirname(path)), basename(path))
  } catch (cause) {
    throw new StorageError(`${path} cannot be used: its folder cannot be found.`, { cause })
  }
}

/**
 * Makes a file ready for this process alone: makes it if it is not there, brings it up to date, and looks whether it is
 * whole if it is no larger than `checkedBytes`. Gives what lets go of it. Throws StorageError for a file that is not ours, held by another, damaged or too new;
 * that file is left as it is.
 */
export function prepareFile(file: string, driver: DriverName | undefined, checkedBytes = CHECKED_BYTES): () => void {
  const holder = thisHolder()
  if (!holdingHere(file)) checkHeader(file)
  const release = hold(file, holder, driver, () => holderOf(file, driver))
  try {
    createPrivately(file)
    // Read only: the last connection that closes the file removes its log if it may write.
    if (logSalt(file) !== undefined) usingFile(file, () => driverOf(driver)(file, true), database => checkPage1(database, file))
    usingFile(file, () => driverOf(driver)(file, false), database => {
      // Not yet with a log: the file is marked as ours by one write of its first page, or not at all.
      database.exec('PRAGMA synchronous = FULL')
      migrate(database, file)
      if (statSync(file).size <= checkedBytes) checkWhole(database, file)
      database.prepare("INSERT INTO meta VALUES ('holder', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value").run(JSON.stringify(holder))
    })
    return release
  } catch (error) {
    release()
    throw error
  }
}

/** The size to which SQLite cuts the file of a log when the log begins anew. */
const LOG_BYTES = 16 * 1024 * 1024

/** Opens a file that is ready: every commit is synced, what is deleted is overwritten, and the log is written back on demand. */
export function openForWriting(file: string, driver: DriverName | undefined): Database {
  const database = driverOf(driver)(file, false)
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = ON; PRAGMA cache_size = -32768')
  database.exec(`PRAGMA journal_size_limit = ${LOG_BYTES}`)
  return database
}

/** Opens a file for reading beside whoever holds it, and gives what `prepare` makes of it; whatever is wrong with the file throws StorageError. */
export function openForReading<T>(file: string, prepare: (database: Database) => T): T {
  const here = holdingHere(file)
  if (!here) checkHeader(file)
  if (!existsSync(file)) throw new StorageError(`${file} is not there.`)
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

/** Uses a connection and closes it; whatever is wrong with the file throws StorageError. */
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
  if (found !== 'ok') throw new StorageError(`${file} is damaged: ${String(found).trim()}. Use a copy of it from before.`)
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
    // The other has just begun, or the file is not ours: it is in use all the same.
    return undefined
  }
}
