import { createRequire } from 'node:module'
import { kindOf } from '../../../runtime/primitives/options.ts'
import { checkPackages } from '../../peers/installed-packages.ts'

/** A statement for {@link PostgresClient.query}. */
export interface PostgresQuery {
  readonly text: string
  readonly values?: unknown[]
  /** The name of a prepared statement. */
  readonly name?: string
  readonly rowMode: 'array'
  readonly types?: { getTypeParser(): (text: string) => string }
}

/** A connection of `pg`: the part that the store uses. */
export interface PostgresClient {
  query(query: PostgresQuery): Promise<{ readonly rows: readonly unknown[] }>
  /** `true` closes the connection. */
  release(destroy?: boolean): void
  on(event: 'error' | 'end', listener: (error?: Error) => void): unknown
}

/** A pool of `pg`: the part that the store uses. Every `Pool` of `pg` 8 fits. */
export interface PostgresPool {
  connect(): Promise<PostgresClient>
  readonly options?: { readonly max?: number | undefined } | undefined
}

/** A pool that the store has made, and ends. */
export interface OwnPool extends PostgresPool {
  on(event: 'error', listener: (error: Error) => void): unknown
  end(): Promise<void>
}

interface Peer {
  readonly Pool: new (options: Readonly<Record<string, unknown>>) => OwnPool
}

/** The command that installs the client library. */
export const INSTALL_PG = 'npm install pg@8'

/** How long a connection attempt may take, in milliseconds. */
const CONNECT_MS = 5000

/**
 * How long the client waits for the answer to a statement. The server gives up after 30 s, so then the connection is
 * dead.
 */
const ANSWER_MS = 40_000

/**
 * A pool for a URL, with at most `max` connections. Throws TypeError if the package `pg`, an optional peer, is missing.
 */
export function poolOf(
  url: string,
  max: number,
  load: (name: string) => unknown = createRequire(import.meta.url)
): OwnPool {
  const { Pool } = loaded(load)
  checkPackages(['pg'])
  const pool = new Pool({
    connectionString: url,
    max,
    application_name: 'taskchart',
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    idleTimeoutMillis: 0,
    query_timeout: ANSWER_MS
  })
  // Sessions handle their own errors; a pool without this listener would end the process.
  pool.on('error', () => {})
  return pool
}

/** Throws TypeError if the package `pg` is missing. */
export function checkPg(): void {
  loaded(createRequire(import.meta.url))
}

function loaded(load: (name: string) => unknown): Peer {
  try {
    return load('pg') as Peer
  } catch (cause) {
    throw new TypeError(`A PostgreSQL store needs the package pg. Run: ${INSTALL_PG}`, { cause })
  }
}

/** Whether a text is the URL of a PostgreSQL database. */
export function isPostgresUrl(text: string): boolean {
  return /^postgres(?:ql)?:\/\//i.test(text)
}

/**
 * A URL for libpq, which tries one host after the other: `//a,b/` or `?host=a,b`. `pg` takes such a list for one name.
 */
const SEVERAL_HOSTS = /^[^/]*\/\/(?:[^/?#]*@)?[^/?#@]*,[^/?#@]*(?:[/?#]|$)|[?&]host=[^&#]*(?:,|%2c)/i

/**
 * A database's name for messages: host, port and database of the URL, without user, password and parameters. Throws
 * TypeError for anything that is neither a URL of PostgreSQL nor a pool; the message never contains the URL.
 */
export function placeName(place: unknown, taker: string): string {
  if (isPool(place)) return 'the database of the pool'
  if (typeof place !== 'string')
    throw new TypeError(
      `${taker} takes a URL or a pool of pg, not ${kindOf(place)}: ${taker}('postgres://localhost/agent').`
    )
  if (!isPostgresUrl(place))
    throw new TypeError(
      `${taker} takes a URL such as postgres://localhost/agent. This one does not begin with postgres://.`
    )
  if (SEVERAL_HOSTS.test(place))
    throw new TypeError(
      `${taker} connects to one host, and this URL has several. Give the address of the primary server, or a proxy or DNS name that follows it.`
    )
  if (!URL.canParse(place))
    throw new TypeError(
      `${taker} takes a URL such as postgres://localhost/agent. This one cannot be read: is a password in it without %-escapes?`
    )
  const { host, pathname } = new URL(place)
  return `postgres://${host}${pathname}`
}

/** Whether a value is a pool of `pg`. */
export function isPool(place: unknown): place is PostgresPool {
  return typeof place === 'object' && place !== null && typeof (place as Partial<PostgresPool>).connect === 'function'
}
