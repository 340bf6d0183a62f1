import { A2AError } from '../../../machines/protocol/errors.ts'

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
