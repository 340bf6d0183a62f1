import { closeSync, existsSync, openSync, readSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { driverOf, sqliteCode, type Database, type DriverName } from './driver.ts'
import { hold, holdingHere, thisHolder, type Holder } from './holder-lock.ts'
import { APPLICATION_ID, migrate, readAsNewest } from './schema.ts'
import { reasonOf, StorageError } from './storage-error.ts'

/** Up to which size a file is looked through when it is opened; that takes 2 ms for each MiB. */
const CHECKED_BYTES = 128 * 1024 * 1024

const MAGIC = Buffer.from('SQLite format 3\u0000', 'latin1')
const HEADER_BYTES = 100
const APPLICATION_ID_OFFSET = 68

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

/** Opens a file that is ready: every commit is synced, what is deleted is overwritten, and the log is written back on demand. */
export function openForWriting(file: string, driver: DriverName | undefined): Database {
  const database = driverOf(driver)(file, false)
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = ON; PRAGMA cache_size = -32768')
  return database
}

/** Opens a file for reading beside whoever holds it, and gives what `prepare` makes of it; whatever is wrong with the file throws StorageError. */
export function openForReading<T>(file: string, prepare: (database: Database) => T): T {
  const here = holdingHere(file)
  if (!existsSync(file)) throw new StorageError(`${file} is not there.`)
  if (!here) checkHeader(file)
  const database = opened(file, () => driverOf(here?.driver)(file, true))
  try {
    readAsNewest(database, file)
    return prepare(database)
  } catch (error) {
    database.close()
    throw unusable(file, error)
  }
}

function usingFile(file: string, open: () => Database, use: (database: Database) => void): void {
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

/** Looks, without SQLite, whether a file is one of ours: SQLite would leave traces beside somebody else's. An empty file is as good as none. */
function checkHeader(file: string): void {
  if (!existsSync(file)) return
  const found = statSync(file)
  if (!found.isFile()) throw new StorageError(`${file} is no file. Choose another name.`)
  if (found.size === 0) return
  const header = Buffer.alloc(HEADER_BYTES)
  const descriptor = openSync(file, 'r')
  readSync(descriptor, header, 0, HEADER_BYTES, 0)
  closeSync(descriptor)
  if (header.compare(MAGIC, 0, MAGIC.length, 0, MAGIC.length) !== 0) throw new StorageError(`${file} is no SQLite file. Choose another name.`)
  if (header.readUInt32BE(APPLICATION_ID_OFFSET) !== APPLICATION_ID) throw new StorageError(`${file} is a SQLite file of another program. Choose another name.`)
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
