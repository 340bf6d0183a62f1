import { A2AError } from '../../../machines/protocol/errors.ts'
import { StorageError } from '../../rows/storage-error.ts'

/** The effect of an error on the session and the call. */
export type Trouble =
  /** The session is gone, or cannot write any more. It is unknown whether its last statement took effect. */
  | 'away'
  /** Another process owns the shard now. */
  | 'fenced'
  /** A row is not as the writer knew it. Nothing was written. */
  | 'conflict'
  /** PostgreSQL had no room or time for the statement. Nothing was written. */
  | 'busy'
  | 'other'

/** The codes with which the functions of the schema refuse a write. */
export const NOT_OWNER = 'TC001'
export const CONFLICT = 'TC002'

/** The connection failed. It is unknown whether its last statement took effect. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost'

  constructor(cause: unknown) {
    super(reasonOf(cause), { cause })
  }
}

/** Classifies an error by its SQLSTATE. */
export function troubleOf(error: unknown): Trouble {
  const code = sqlState(error)
  if (error instanceof ConnectionLost) return 'away'
  if (code === undefined) return 'other'
  if (/^(?:08|57P|25006|F0)/.test(code)) return 'away'
  if (code === NOT_OWNER) return 'fenced'
  if (code === CONFLICT || code === '23505' || code === '40001') return 'conflict'
  return /^(?:53|55P03|57014|40)/.test(code) ? 'busy' : 'other'
}

/** Whether an error of a write means that the session is of no use any more. */
export function isLost(error: unknown): boolean {
  const trouble = troubleOf(error)
  return trouble === 'away' || trouble === 'fenced'
}

/** The SQLSTATE of an error of the server: five digits and capital letters. Errors of the connection have none. */
export function sqlState(error: unknown): string | undefined {
  const { code } = Object(error) as { readonly code?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !/^E[A-Z]{4}$/.test(code) ? code : undefined
}

/** An error's message, with its code. It has no credentials: `pg` puts none into its errors. */
export function reasonOf(error: unknown): string {
  const {
    message = '',
    code,
    errors
  } = Object(error) as { readonly message?: string; readonly code?: unknown; readonly errors?: readonly Error[] }
  // Connecting to a name with several addresses gives an AggregateError without a message.
  const text = message === '' ? (errors?.map(({ message }) => message).join(', ') ?? 'no reason is known') : message
  return typeof code === 'string' && !text.includes(code) ? `${text} (${code})` : text
}

/** The error for calls while the database cannot be reached or has no room. */
export function overloaded(cause?: unknown): A2AError {
  return new A2AError('Overloaded', 'The database of the agent is not available now. Send the request again later.', {
    retryAfterMs: 1000,
    cause
  })
}

/** The error of a failed call for its caller. */
export function toStoreError(error: unknown, place: string): unknown {
  if (error instanceof A2AError || error instanceof StorageError || error instanceof TypeError) return error
  return troubleOf(error) === 'other'
    ? new StorageError(`${place} refused a statement: ${reasonOf(error)}.`, { cause: error })
    : overloaded(error)
}
