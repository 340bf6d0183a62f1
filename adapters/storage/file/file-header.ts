import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { StorageError } from '../../rows/damage.ts'
import type { Database } from '../driver.ts'

/** The application id of taskchart's files: "A2AT". SQLite stores it in page 1. */
export const APPLICATION_ID = 0x41_32_41_54

/** The offset of the application id in the file. */
export const APPLICATION_ID_OFFSET = 68

const MAGIC = Buffer.from('SQLite format 3\u0000', 'latin1')
const HEADER_BYTES = 100
/** 1 for a file without a log, 2 for one with a write-ahead log (WAL). */
const FORMAT_OFFSET = 18

const LOG_HEADER_BYTES = 32
/** The number of a log: SQLite increments it whenever the log restarts. */
const SALT_OFFSET = 16

/**
 * The application id in the file while the log with this number has commits that the file lacks: "A2" and the last 16
 * bits of the number. It is written without SQLite, only into the file. SQLite reads page 1 from the log, where the id
 * is {@link APPLICATION_ID}, and restores that id at the checkpoint.
 */
export function idWithLog(salt: number): number {
  return ((APPLICATION_ID & 0xff_ff_00_00) | (salt & 0xff_ff)) >>> 0
}

/** The name of a file's log. */
export function logOf(file: string): string {
  return `${file}-wal`
}

/** The number of a file's log; `undefined` if the log is missing or empty. */
export function logSalt(file: string): number | undefined {
  return existsSync(logOf(file)) ? startOf(logOf(file), LOG_HEADER_BYTES)?.readUInt32BE(SALT_OFFSET) : undefined
}

/**
 * Creates an empty file that only its owner can read and write, unless it exists. SQLite gives the same mode to log,
 * index and journal.
 */
export function createPrivately(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch {
    // It exists, or SQLite will report why it cannot be created.
  }
}

/**
 * Checks, without SQLite, that a file belongs to taskchart: SQLite would create files beside another program's. Throws
 * StorageError if it does not, or if the file and its log do not match. An empty file counts as missing.
 */
export function checkHeader(file: string): void {
  throwTwice(() => headerProblem(file))
}

/** Checks, with SQLite, that the log of a marked file contains page 1. Throws StorageError if not. */
export function checkPage1(database: Database, file: string): void {
  throwTwice(() => {
    if (database.prepare('PRAGMA application_id').get()?.application_id === APPLICATION_ID) return undefined
    return `${file} is incomplete: the beginning of its log ${logOf(file)} is damaged or missing. Restore a backup.`
  })
}

/** Throws a problem that is found twice in a row: another process changes the file and its log one after the other. */
function throwTwice(find: () => string | undefined): void {
  const problem = find() && find()
  if (problem !== undefined) throw new StorageError(problem)
}

function headerProblem(file: string): string | undefined {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found && !found.isFile()) return `${file} is not a file. Choose another name.`
  if (!found || found.size === 0) return withoutFile(file)
  if (found.nlink > 1)
    return `${file} has ${found.nlink} names (hard links). Only one name is safe, since the log and the lock are found by name. Remove the other names, or use a copy: taskchart db backup FILE TO.`
  const header = startOf(file, HEADER_BYTES)
  if (header?.compare(MAGIC, 0, MAGIC.length, 0, MAGIC.length) !== 0)
    return `${file} is not a SQLite file. Choose another name.`
  const id = header.readUInt32BE(APPLICATION_ID_OFFSET)
  if (id === APPLICATION_ID) return header[FORMAT_OFFSET] === 1 ? withForeignLog(file) : undefined
  if (id !== idWithLog(id)) return `${file} is a SQLite file of another program. Choose another name.`
  return withLogNumber(file, id)
}

/** A file is created before its log, and taskchart never deletes it. */
function withoutFile(file: string): string | undefined {
  const log = logOf(file)
  if (!existsSync(log)) return undefined
  return `${file} is missing or empty, but its log ${log} is there, and the tasks are in both. Put the file back beside its log. If the file is lost, move the log away, and restore a backup or begin with an empty file.`
}

/** A log is created only after the file's format says so. */
function withForeignLog(file: string): string | undefined {
  if (logSalt(file) === undefined) return undefined
  return `${file} has no log yet, so ${logOf(file)} is the log of another file, which was here before this one was restored. Move ${logOf(file)} and ${file}-shm away.`
}

function withLogNumber(file: string, id: number): string | undefined {
  const salt = logSalt(file)
  if (salt !== undefined && idWithLog(salt) === id) return undefined
  const what =
    salt === undefined
      ? `its log ${logOf(file)}, which is missing or empty`
      : `its own log, and ${logOf(file)} is another one`
  return `${file} is incomplete without ${what}. Copy the file and its log together while no server uses them, or make a copy with: taskchart db backup FILE TO.`
}

/** The first bytes of a file; `undefined` if it is shorter. */
function startOf(file: string, length: number): Buffer | undefined {
  const bytes = Buffer.alloc(length)
  const descriptor = openSync(file, 'r')
  try {
    return readSync(descriptor, bytes, 0, length, 0) < length ? undefined : bytes
  } finally {
    closeSync(descriptor)
  }
}
