import { A2AError } from '../../../machines/protocol/errors.ts'
import { StorageError } from '../../rows/damage.ts'
import type { PostgresClient, PostgresPool, PostgresQuery } from './pool.ts'

/** A cell as PostgreSQL sends it: text, or null. */
export type PostgresCell = string | null

/** A prepared statement: its name is unique in the package. */
export interface Prepared {
  readonly name: string
  readonly text: string
}

const AS_TEXT = { getTypeParser: () => (text: string) => text }

/**
 * Settings of every session. Statements look rows up by index, one nested loop for each list of keys: the plan is made
 * once, and stays right while a table grows from nothing. A dead host's session ends after about 30 seconds, and with
 * it its locks.
 */
const SETTINGS = `
  SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off;
  SET statement_timeout = 30000; SET lock_timeout = 10000; SET idle_in_transaction_session_timeout = 60000; SET client_min_messages = error;
  SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 4; SET tcp_user_timeout = 30000;
`

/** One connection to the database, with the settings of the store. Statements are sent one after the other. */
export class Session {
  readonly #client: PostgresClient
  #isOpen = true
  /** Called once when the connection ends by itself. */
  ended: (error: Error) => void = () => {}

  private constructor(client: PostgresClient) {
    this.#client = client
    const end = (error = new Error('the connection was closed')) => {
      if (!this.#isOpen) return
      this.close()
      this.ended(error)
    }
    client.on('error', end)
    client.on('end', end)
  }

  /** Opens a session. Rejects with the error of `pg`. */
  static async open(pool: PostgresPool, schema: string): Promise<Session> {
    const session = new Session(await connected(pool))
    try {
      await session.run(`${SETTINGS} SET search_path = ${quoteIdentifier(schema)}`)
      return session
    } catch (error) {
      session.close()
      throw error
    }
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Runs a prepared statement, and returns its rows. */
  async rows({ name, text }: Prepared, values: readonly unknown[] = []): Promise<PostgresCell[][]> {
    return this.#query({ name, text, values: [...values], rowMode: 'array', types: AS_TEXT })
  }

  /** Runs a statement once, and returns its rows. */
  async once(text: string, values: readonly unknown[] = []): Promise<PostgresCell[][]> {
    return this.#query({ text, values: [...values], rowMode: 'array', types: AS_TEXT })
  }

  /** Runs any number of statements without results. */
  async run(text: string): Promise<void> {
    await this.#query({ text, rowMode: 'array' })
  }

  async #query(query: PostgresQuery): Promise<PostgresCell[][]> {
    try {
      return (await this.#client.query(query)).rows as PostgresCell[][]
    } catch (error) {
      throw sqlState(error) === undefined ? new ConnectionLost(error) : error
    }
  }

  /** Closes the connection: a session with these settings is not given back to a pool. May be called twice. */
  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#client.release(true)
  }
}

async function connected(pool: PostgresPool): Promise<PostgresClient> {
  try {
    return await pool.connect()
  } catch (error) {
    throw sqlState(error) === undefined ? new ConnectionLost(error) : error
  }
}

/** A name as a quoted identifier. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** The effect of an error on the session and the call. */
type Trouble =
  /** The session is gone, or cannot write any more. It is unknown whether its last statement took effect. */
  | 'away'
  /** Another process owns the shard now. */
  | 'fenced'
  /** A row is not as the writer knew it. Nothing was written. */
  | 'conflict'
  /** PostgreSQL had no space or time for the statement. Nothing was written. */
  | 'busy'
  | 'other'

/** The codes with which the functions of the schema refuse a write. */
const NOT_OWNER = 'TC001'
const CONFLICT = 'TC002'

/** The connection failed. It is unknown whether its last statement took effect. */
class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost'

  constructor(cause: unknown) {
    super(postgresReasonOf(cause), { cause })
  }
}

/** Classifies an error by its SQLSTATE. */
export function classifyPostgresError(error: unknown): Trouble {
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
  const trouble = classifyPostgresError(error)
  return trouble === 'away' || trouble === 'fenced'
}

/** The SQLSTATE of an error of the server: five digits and capital letters. Errors of the connection have none. */
function sqlState(error: unknown): string | undefined {
  const { code } = Object(error) as { readonly code?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !/^E[A-Z]{4}$/.test(code) ? code : undefined
}

/** An error's message, with its code. It has no credentials: `pg` puts none into its errors. */
export function postgresReasonOf(error: unknown): string {
  const {
    message = '',
    code,
    errors
  } = Object(error) as { readonly message?: string; readonly code?: unknown; readonly errors?: readonly Error[] }
  // Connecting to a name with several addresses gives an AggregateError without a message.
  const text = message === '' ? (errors?.map(({ message }) => message).join(', ') ?? 'no reason is known') : message
  return typeof code === 'string' && !text.includes(code) ? `${text} (${code})` : text
}

/** The error for calls while the database cannot be reached or has no space. */
export function overloadedError(cause?: unknown): A2AError {
  return new A2AError('Overloaded', 'The database of the agent is not available now. Send the request again later.', {
    retryAfterMs: 1000,
    cause
  })
}

/** The error of a failed call for its caller. */
export function toStoreError(error: unknown, place: string): unknown {
  if (error instanceof A2AError || error instanceof StorageError || error instanceof TypeError) return error
  return classifyPostgresError(error) === 'other'
    ? new StorageError(`${place} refused a statement: ${postgresReasonOf(error)}.`, { cause: error })
    : overloadedError(error)
}
