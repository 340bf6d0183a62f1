import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  realpathSync,
  statSync,
  writeSync
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { killPoint } from '../../../runtime/primitives/kill-points.ts'
import { type Holder, inUse, StorageError, thisHolder, tooNew } from '../../rows/damage.ts'
import { type Database, type DriverName, driverOf, sqliteReasonOf, rollBack, sqliteCode } from '../driver.ts'
import { AS_VERSION, VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5 } from '../tables.ts'
import {
  APPLICATION_ID,
  APPLICATION_ID_OFFSET,
  checkHeader,
  checkPage1,
  createPrivately,
  idWithLog,
  logOf,
  logSalt
} from './file-header.ts'

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
 * Prepares a file for exclusive use: creates it if needed, migrates it, and checks a file of up to `checkedBytes` for
 * damage. Returns the function that releases it. Throws StorageError, and changes nothing, for a file of another
 * program, or one that is in use, damaged or too new.
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
        migrateSqlite(database, file)
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

/**
 * The size to which SQLite truncates the log file when the log restarts: twice the log of small commits. If that were
 * truncated and grew each time, they would take 8 % longer.
 */
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

/**
 * Opens a file for reading while others use it, and returns the result of `prepare`. Throws StorageError for an
 * unusable file.
 */
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
  return new StorageError(`${file} cannot be used: ${sqliteReasonOf(error)}.`, { cause: error })
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

/** The suffixes of a file, its log and its lock. */
const ENDS = ['', '-wal', '-lock'] as const

const LOG_HEADER_BYTES = 32
const PAGE_BYTES_OFFSET = 8
const SALTS_OFFSET = 16
const FRAME_HEADER_BYTES = 24
const FRAME_SALTS_OFFSET = 8
const SALTS_BYTES = 8

/** The files of an open store in the file system, accessed without SQLite. */
export class OpenFiles {
  readonly #file: string
  /** Closed after SQLite has closed the file: closing a file releases the process's locks on it. */
  readonly #main: number
  readonly #log: number
  readonly #identities: readonly string[]
  readonly #logHeader = Buffer.alloc(LOG_HEADER_BYTES)
  readonly #frameSalts = Buffer.alloc(SALTS_BYTES)

  /** `file` is open in SQLite, and has been written through its log. */
  constructor(file: string) {
    this.#file = file
    this.#main = openSync(file, 'r+')
    this.#log = openSync(logOf(file), 'r')
    this.#identities = ENDS.map(end => identityOf(file + end))
  }

  /** Throws StorageError if the file, its log or its lock was removed or replaced. */
  check(): void {
    const end = ENDS.find((end, i) => identityOf(this.#file + end) !== this.#identities[i])
    if (end === undefined) return
    const advice = end === '' ? 'Put it back beside its log, or restore a backup, and start again.' : 'Start again.'
    throw new StorageError(
      `${this.#file}${end} was removed or replaced while the store was open, so nothing more is stored. ${advice}`
    )
  }

  /**
   * Marks the file as incomplete without its log. The newest frame of the log must be page 1, so that a checkpoint
   * removes the mark.
   */
  markWithLog(): void {
    const id = Buffer.alloc(4)
    id.writeUInt32BE(idWithLog(this.#readLogHeader().readUInt32BE(SALTS_OFFSET)))
    writeSync(this.#main, id, 0, id.length, APPLICATION_ID_OFFSET)
  }

  /**
   * Whether the log has this many frames. The size of its file does not show it, since a restarted log overwrites it.
   */
  logReaches(frames: number): boolean {
    const header = this.#readLogHeader()
    const frameBytes = FRAME_HEADER_BYTES + header.readUInt32BE(PAGE_BYTES_OFFSET)
    const read = readSync(
      this.#log,
      this.#frameSalts,
      0,
      SALTS_BYTES,
      LOG_HEADER_BYTES + (frames - 1) * frameBytes + FRAME_SALTS_OFFSET
    )
    return (
      read === SALTS_BYTES &&
      header.compare(this.#frameSalts, 0, SALTS_BYTES, SALTS_OFFSET, SALTS_OFFSET + SALTS_BYTES) === 0
    )
  }

  close(): void {
    closeSync(this.#main)
    closeSync(this.#log)
  }

  #readLogHeader(): Buffer {
    readSync(this.#log, this.#logHeader, 0, LOG_HEADER_BYTES, 0)
    return this.#logHeader
  }
}

/** A file's device and inode; '' if it does not exist. */
function identityOf(path: string): string {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false })
  return found ? `${found.dev}.${found.ino}` : ''
}

const ADVICE = 'Stop that one, or use another file.'

interface Held {
  readonly holder: Holder
  readonly driver: DriverName | undefined
}

/**
 * The files that this process holds. File locks belong to a process: the drivers do not see each other's, and opening
 * and closing a file a second time releases them.
 */
const heldHere = new Map<string, Held>()

/** The entry of a file that this process holds, with its driver. */
function holdingHere(file: string): Held | undefined {
  return heldHere.get(file)
}

/**
 * Locks a file for this process by a transaction on the empty database `FILE-lock`. The lock ends with the process, or
 * when the returned function is called, which may be called twice. Throws StorageError if another process holds it;
 * `holderOf` names it.
 */
function hold(
  file: string,
  holder: Holder,
  driver: DriverName | undefined,
  holderOf: () => Holder | undefined
): () => void {
  const here = heldHere.get(file)
  if (here) throw inUse(file, here.holder, ADVICE)
  const lock = lockOf(file, driver)
  try {
    lock.exec('PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    throw sqliteCode(error) === 'BUSY' ? inUse(file, holderOf(), ADVICE) : unusableLock(file, error)
  }
  heldHere.set(file, { holder, driver })
  let isHeld = true
  return () => {
    // A second call would release the lock of another store.
    if (!isHeld) return
    isHeld = false
    heldHere.delete(file)
    lock.close()
  }
}

function lockOf(file: string, driver: DriverName | undefined): Database {
  const open = driverOf(driver)
  createPrivately(`${file}-lock`)
  try {
    return open(`${file}-lock`, false)
  } catch (error) {
    throw unusableLock(file, error)
  }
}

function unusableLock(file: string, cause: unknown): StorageError {
  return new StorageError(
    `${file} cannot be used: its lock ${file}-lock cannot be taken: ${sqliteReasonOf(cause)}. Is the folder there, and may it be written?`,
    { cause }
  )
}

/** The SQL of each version of the schema, based on the one before. Entries are appended, never changed. */
export const SQLITE_MIGRATIONS: readonly string[] = [VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5]

/** Starts an empty file that can release free pages. This setting must precede the first page, which it writes. */
const BEGIN_FILE = 'BEGIN; PRAGMA auto_vacuum = INCREMENTAL'

/**
 * Migrates a file's schema to the newest version, each step in a transaction. Throws StorageError for a newer version.
 */
export function migrateSqlite(
  database: Database,
  file: string,
  migrations: readonly string[] = SQLITE_MIGRATIONS
): void {
  const version = checkVersion(database, file, migrations.length)
  for (const [index, sql] of migrations.entries()) {
    if (index < version) continue
    database.exec(index === 0 ? BEGIN_FILE : 'BEGIN IMMEDIATE')
    try {
      database.exec(`${sql}; PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${index + 1}`)
      killPoint('before migration')
      database.exec('COMMIT')
    } catch (error) {
      rollBack(database)
      throw error
    }
  }
}

/** The version of a file's schema. Throws StorageError if it is newer than `known`. */
function checkVersion(database: Database, file: string, known = SQLITE_MIGRATIONS.length): number {
  const version = Number(database.prepare('PRAGMA user_version').get()?.user_version)
  if (version <= known) return version
  throw tooNew(file, version, known)
}

/**
 * Lets a reader use a file of an older version, which stays unchanged, like the newest. Throws StorageError for a newer
 * version.
 */
function readAsNewest(database: Database, file: string): void {
  const own = checkVersion(database, file)
  for (const [version, sql] of AS_VERSION) if (own < version) database.exec(sql)
}
