import { A2AError } from '../../../machines/protocol/errors.ts'

/** A row that is not as it was written. */
export class DamagedRow extends Error {
  override readonly name = 'DamagedRow'

  constructor(table: string, options?: ErrorOptions) {
    super(`A row of ${table} is not as it was written.`, options)
  }
}

/** Reads for something that is named to the client, who hears that its data is damaged if a row is; `what` is as in `Task t1`. */
export function reading<T>(what: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof DamagedRow) throw damaged(what, error)
    throw error
  }
}

/** Reads what may be missing: nothing, after a word to `report`, if a row is damaged. */
export function unlessDamaged<T>(read: () => T, report: (error: DamagedRow) => void = () => {}): T | undefined {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof DamagedRow)) throw error
    report(error)
    return undefined
  }
}

/** What a client gets that asks for what is damaged. */
export function damaged(what: string, cause: unknown): A2AError {
  return new A2AError('InternalError', `${what} cannot be read: its stored data is damaged.`, { cause })
}
