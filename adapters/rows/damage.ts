import { hostname } from 'node:os'
import { crc32 } from 'node:zlib'
import { A2AError } from '../../machines/protocol/errors.ts'
import type { Logger } from '../../runtime/ports/logger.ts'

/** A cell of a row. */
export type Cell = string | number | boolean | null

/** A checksum over cells, their types and their lengths. */
export function checksumOf(cells: readonly Cell[]): number {
  return crc32(cells.map(cell => (typeof cell === 'string' ? `${cell.length}:${cell}` : String(cell))).join())
}

/** A row that differs from what was written. */
export class DamagedRow extends Error {
  override readonly name = 'DamagedRow'

  constructor(table: string, options?: ErrorOptions) {
    super(`A row of ${table} is not as it was written.`, options)
  }
}

/** Reads data that a client requested by id. A damaged row throws A2AError; `what` names the data, as in `Task t1`. */
export function reading<T>(what: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof DamagedRow) throw damageError(what, error)
    throw error
  }
}

/** Reads data that may be missing. A damaged row is reported, and gives `undefined`. */
export function unlessDamaged<T>(read: () => T, report: (error: DamagedRow) => void = () => {}): T | undefined {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof DamagedRow)) throw error
    report(error)
    return undefined
  }
}

/** The error for a client that requests damaged data. */
export function damageError(what: string, cause: unknown): A2AError {
  return new A2AError('InternalError', `${what} cannot be read: its stored data is damaged.`, { cause })
}

/** The maximum number of reports about damaged data. */
const REPORTED = 1000

/** Logs each message once, since clients may request damaged data repeatedly. `place`: where the data is. */
export function reportOnce(logger: Logger, place: Readonly<Record<string, string>>): (message: string) => void {
  const reported = new Set<string>()
  return message => {
    if (reported.has(message) || reported.size === REPORTED) return
    reported.add(message)
    logger.error(message, place)
  }
}

/** Characters to escape: all but printable ASCII, and the two characters of the escapes. */
const UNSAFE = /[^ !#-[\]-~]/

/**
 * A text for a key column: printable ASCII is unchanged, everything else is escaped as in JSON. So NUL and lone
 * surrogates survive, different texts stay different, the empty text sorts first, and SQLite sorts like JavaScript.
 */
export function storedText(text: string): string {
  if (!UNSAFE.test(text)) return text
  return JSON.stringify(text)
    .slice(1, -1)
    .replaceAll(/[^ -~]/g, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The inverse of {@link storedText}. */
export function originalText(stored: string): string {
  return stored.includes('\\') ? (JSON.parse(`"${stored}"`) as string) : stored
}

/** A file or database that cannot be used, or no longer. The message names it, without credentials, and the reason. */
export class StorageError extends Error {
  override readonly name = 'StorageError'
}

/** A file or database that another process has. */
export class InUseError extends StorageError {
  /** Who has it, as a sentence: the message without the advice. */
  readonly refusal: string

  constructor(refusal: string, advice: string) {
    super(`${refusal} ${advice}`)
    this.refusal = refusal
  }
}

/** The process that has a file or database, for the error of another. */
export interface Holder {
  readonly pid: number
  readonly host: string
  /** An ISO time. */
  readonly since: string
}

/** This process as the holder, from now on. */
export function thisHolder(): Holder {
  return { pid: process.pid, host: hostname(), since: new Date().toISOString() }
}

/** The refusal of a file or database that another process has. */
export function inUse(name: string, holder: Holder | undefined, advice: string): InUseError {
  const who = holder ? `process ${holder.pid} on ${holder.host} since ${holder.since}` : 'another process'
  return new InUseError(`${name} is in use by ${who}.`, advice)
}

/** The refusal of a file or database of a newer package. */
export function tooNew(name: string, version: number, known: number): StorageError {
  return new StorageError(
    `${name} has the schema version ${version}, and this taskchart knows versions up to ${known}. Use the newer taskchart that wrote it.`
  )
}
