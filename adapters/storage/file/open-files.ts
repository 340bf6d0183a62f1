import { closeSync, openSync, readSync, statSync, writeSync } from 'node:fs'
import { StorageError } from '../../rows/storage-error.ts'
import { APPLICATION_ID_OFFSET, idWithLog, logOf } from './file-header.ts'

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

  /** Marks the file as incomplete without its log. The newest frame of the log must be page 1, so that a checkpoint removes the mark. */
  markWithLog(): void {
    const id = Buffer.alloc(4)
    id.writeUInt32BE(idWithLog(this.#readLogHeader().readUInt32BE(SALTS_OFFSET)))
    writeSync(this.#main, id, 0, id.length, APPLICATION_ID_OFFSET)
  }

  /** Whether the log has this many frames. The size of its file does not tell, since a restarted log overwrites it. */
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
