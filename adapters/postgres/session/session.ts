import type { PostgresClient, PostgresPool, PostgresQuery } from './pool.ts'
import { ConnectionLost, sqlState } from './trouble.ts'

/** A cell as PostgreSQL sends it: text, or null. */
export type Field = string | null

/** A prepared statement: its name is unique in the package. */
export interface Prepared {
  readonly name: string
  readonly text: string
}

const AS_TEXT = { getTypeParser: () => (text: string) => text }

/**
 * Settings of every session. Statements look rows up by index, one nested loop for each list of keys: the plan is made once, and stays
 * right while a table grows from nothing. A dead host's session ends after about 30 seconds, and with it its locks.
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
      await session.run(`${SETTINGS} SET search_path = ${quoted(schema)}`)
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
  async rows({ name, text }: Prepared, values: readonly unknown[] = []): Promise<Field[][]> {
    return this.#query({ name, text, values: [...values], rowMode: 'array', types: AS_TEXT })
  }

  /** Runs a statement once, and returns its rows. */
  async once(text: string, values: readonly unknown[] = []): Promise<Field[][]> {
    return this.#query({ text, values: [...values], rowMode: 'array', types: AS_TEXT })
  }

  /** Runs any number of statements without results. */
  async run(text: string): Promise<void> {
    await this.#query({ text, rowMode: 'array' })
  }

  async #query(query: PostgresQuery): Promise<Field[][]> {
    try {
      return (await this.#client.query(query)).rows as Field[][]
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
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
