import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import type { Database } from '../driver.ts'
import { StorageError } from '../storage-error.ts'

/** Marks a SQLite file as one of taskchart: "A2AT". SQLite stores it in page 1. */
export const APPLICATION_ID = 0x41_32_41_54

/** Where SQLite stores the application id in the file. */
export const APPLICATION_ID_OFFSET = 68

const MAGIC = Buffer.from('SQLite format 3\u0000', 'latin1')
const HEADER_BYTES = 100
/** 1 for a file that has no log, 2 for one that is written through a log (WAL). */
const FORMAT_OFFSET = 18

const LOG_HEADER_BYTES = 32
/** A log's number: SQLite adds 1 whenever it begins the log anew. */
const SALT_OFFSET = 16

/**
 * The application id in the file while a log with this number has commits that the file has not: "A2" and the last 16 bits of
 * the number. It is written around SQLite, into the file alone. SQLite reads page 1 from the log, where the id is
 * {@link APPLICATION_ID}, and writes that one back with the log.
 */
export function idWithLog(salt: number): number {
  return ((APPLICATION_ID & 0xff_ff_00_00) | (salt & 0xff_ff)) >>> 0
}

/** The name of a file's log. */
export function logOf(file: string): string {
  return `${file}-wal`
}

/** The number of a file's log, or `undefined` if the log is not there or is empty. */
export function logSalt(file: string): number | undefined {
  return existsSync(logOf(file)) ? startOf(logOf(file), LOG_HEADER_BYTES)?.readUInt32BE(SALT_OFFSET) : undefined
}

/**
 * Makes an empty file that only its owner can read and write, if there is none of that name. SQLite gives the file's log,
 * index and journal the same rights.
 */
export function createPrivately(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600))
  } catch {
    // It is there, or SQLite says why it cannot be.
  }
}

/**
 * Looks, without SQLite, whether a file is one of taskchart: SQLite would leave traces beside another program's. Throws
 * StorageError if it is not, or if the file and its log are parted. An empty file is as good as none.
 */
export function checkHeader(file: string): void {
  throwTwice(() => headerProblem(file))
}

/** Looks, with SQLite, whether a log has page 1, as the log of a marked file always has. Throws StorageError if not. */
export function checkPage1(database: Database, file: string): void {
  throwTwice(() => {
    if (database.prepare('PRAGMA application_id').get()?.application_id === APPLICATION_ID) return undefined
    return `${file} is not whole: the beginning of its log ${logOf(file)} is damaged or cut off. Restore a backup.`
  })
}

/** Throws a problem that is found twice: another process that opens or closes the file changes it and its log one after the other. */
function throwTwice(find: () => string | undefined): void {
  const problem = find() && find()
  if (problem !== undefined) throw new StorageError(problem)
}

function headerProblem(file: string): string | undefined {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found && !found.isFile()) return `${file} is no file. Choose another name.`
  if (!found || found.size === 0) return withoutFile(file)
  if (found.nlink > 1) return `${file} has ${found.nlink} names (hard links), and a file is safe under one name only, since its log and its lock are found by name. Remove the other names, or use a copy: taskchart db backup FILE TO.`
  const header = startOf(file, HEADER_BYTES)
  if (header?.compare(MAGIC, 0, MAGIC.length, 0, MAGIC.length) !== 0) return `${file} is no SQLite file. Choose another name.`
  const id = header.readUInt32BE(APPLICATION_ID_OFFSET)
  if (id === APPLICATION_ID) return header[FORMAT_OFFSET] === 1 ? withForeignLog(file) : undefined
  if (id !== idWithLog(id)) return `${file} is a SQLite file of another program. Choose another name.`
  return withLogNumber(file, id)
}

/** A file exists before its log, and is never removed here. */
function withoutFile(file: string): string | undefined {
  const log = logOf(file)
  if (!existsSync(log)) return undefined
  return `${file} is not there or is empty, but its log ${log} is there, with tasks that only both together hold. Put the file back beside its log. If the file is lost, move the log away, and restore a backup or begin with an empty file.`
}

/** A file gets a log only after its format says so. */
function withForeignLog(file: string): string | undefined {
  if (logSalt(file) === undefined) return undefined
  return `${file} has no log yet, so ${logOf(file)} is the log of another file, which was here before this one was restored. Move ${logOf(file)} and ${file}-shm away.`
}

function withLogNumber(file: string, id: number): string | undefined {
  const salt = logSalt(file)
  if (salt !== undefined && idWithLog(salt) === id) return undefined
  const what = salt === undefined ? `its log ${logOf(file)}, which is not there or is empty` : `its own log, and ${logOf(file)} is another one`
  return `${file} is not whole without ${what}. Copy the file and its log together while no server uses them, or make a copy with: taskchart db backup FILE TO.`
}

/** The first bytes of a file, or `undefined` if it has fewer. */
function startOf(file: string, length: number): Buffer | undefined {
  const bytes = Buffer.alloc(length)
  const descriptor = openSync(file, 'r')
  try {
    return readSync(descriptor, bytes, 0, length, 0) < length ? undefined : bytes
  } finally {
    closeSync(descriptor)
  }
}
