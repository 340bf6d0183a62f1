import { crc32 } from 'node:zlib'
import { A2AError } from '../../machines/protocol/errors.ts'
import type { Logger } from '../../runtime/ports/logger.ts'

/** A cell of a row. */
export type Cell = string | number | boolean | null

/** A checksum over cells, their types and their lengths. */
export function sumOf(cells: readonly Cell[]): number {
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
    if (error instanceof DamagedRow) throw damaged(what, error)
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
export function damaged(what: string, cause: unknown): A2AError {
  return new A2AError('InternalError', `${what} cannot be read: its stored data is damaged.`, { cause })
}

/** The maximum number of reports about damaged data. */
const REPORTED = 1000

/** Logs each message once, since clients may request damaged data repeatedly. `place` says where the data is. */
export function reportOnce(logger: Logger, place: Readonly<Record<string, string>>): (message: string) => void {
  const reported = new Set<string>()
  return message => {
    if (reported.has(message) || reported.size === REPORTED) return
    reported.add(message)
    logger.error(message, place)
  }
}
