import { createRequire } from 'node:module'
import type { Kind } from '../../runtime/primitives/options.ts'
import { checkPackages, installable } from '../peers/installed-packages.ts'

/** A value in a cell of a table. */
export type Value = string | number | null

/** A prepared statement. Both drivers return rows as objects. */
export interface Statement {
  run(...values: Value[]): unknown
  get(...values: Value[]): Record<string, Value> | undefined
  all(...values: Value[]): Record<string, Value>[]
  iterate(...values: Value[]): Iterable<Record<string, Value>>
}

/** A connection to a SQLite file: the common part of `node:sqlite` and better-sqlite3. */
export interface Database {
  exec(sql: string): unknown
  prepare(sql: string): Statement
  close(): unknown
}

/** Node's built-in SQLite, from 22.13 on, or the package better-sqlite3, an optional peer. */
export type DriverName = 'node:sqlite' | 'better-sqlite3'

/** The kind of the option `driver`. */
export const DRIVER: Kind = [
  value => value === 'node:sqlite' || value === 'better-sqlite3',
  "'node:sqlite' or 'better-sqlite3'"
]

/** The package that has a SQLite for older Nodes, in its newest major for this Node. */
export const SQLITE_PACKAGE = installable('better-sqlite3')
const INSTALL_SQLITE = `npm install ${SQLITE_PACKAGE}`

type Open = (file: string, readOnly: boolean) => Database

/**
 * The driver of this name. Default: `node:sqlite` if this Node has it, else better-sqlite3. Throws TypeError if it is
 * missing.
 */
export function driverOf(name: DriverName | undefined): Open {
  const builtIn = name === 'better-sqlite3' ? undefined : nodeSqlite()
  /* c8 ignore next -- Node 20 has no SQLite of its own */
  if (builtIn) return builtIn
  if (name === 'node:sqlite')
    throw new TypeError(
      `Node ${process.versions.node} has no node:sqlite; Node 22.13 and newer have. Leave out the driver, and run: ${INSTALL_SQLITE}`
    )
  /* c8 ignore next -- one of them on each Node */
  return betterSqlite()
}

/** SQLite's name for an error, without `SQLITE_`; `undefined` for errors of other origin. */
export function sqliteCode(error: unknown): string | undefined {
  const { code, errcode, message } = error as {
    readonly code?: unknown
    readonly errcode?: unknown
    readonly message?: unknown
  }
  /* c8 ignore next -- numbers come from node:sqlite, which Node 20 does not have */
  if (typeof errcode === 'number') return CODES.get(errcode) ?? CODES.get(errcode & 0xff) ?? `${errcode}`
  // The node:sqlite of Deno gives the text alone, which a path may follow.
  if (code === 'ERR_SQLITE_ERROR') return CODES_BY_TEXT.get(String(message).replace(/:.*/s, ''))
  return typeof code === 'string' && code.startsWith('SQLITE_') ? code.slice('SQLITE_'.length) : undefined
}

/** The result codes that this folder distinguishes, by number. */
const CODES: ReadonlyMap<number, string> = new Map([
  [5, 'BUSY'],
  [8, 'READONLY'],
  [10, 'IOERR'],
  [11, 'CORRUPT'],
  [13, 'FULL'],
  [14, 'CANTOPEN'],
  [26, 'NOTADB'],
  [4874, 'IOERR_SHMSIZE']
])

/** The codes of errors by SQLite's text. */
const CODES_BY_TEXT: ReadonlyMap<string, string> = new Map([
  ['database is locked', 'BUSY'],
  ['attempt to write a readonly database', 'READONLY'],
  ['disk I/O error', 'IOERR'],
  ['database disk image is malformed', 'CORRUPT'],
  ['database or disk is full', 'FULL'],
  ['unable to open database file', 'CANTOPEN'],
  ['file is not a database', 'NOTADB']
])

/** How long a statement waits for another process that reads, recovers or closes the file. */
export const BUSY_MS = 5000

interface BuiltIn {
  readonly DatabaseSync: new (file: string, options: { readonly readOnly: boolean }) => Database
}

/* c8 ignore start -- Node 20 has no SQLite of its own */
function nodeSqlite(): Open | undefined {
  const found = withoutItsWarning(() => process.getBuiltinModule('node:sqlite') as BuiltIn | undefined)
  return found && ((file, readOnly) => patient(new found.DatabaseSync(file, { readOnly })))
}
/* c8 ignore stop */

type Package = new (file: string, options: { readonly readonly: boolean }) => Database

/* c8 ignore start -- only used where Node has no SQLite of its own */
function betterSqlite(): Open {
  const Opened = loaded()
  return (file, readOnly) => patient(new Opened(file, { readonly: readOnly }))
}

function loaded(): Package {
  checkPackages(['better-sqlite3'])
  try {
    const found = createRequire(import.meta.url)('better-sqlite3') as Package
    // The compiled part is loaded here, which may be built for another Node.
    new found(':memory:', { readonly: false }).close()
    return found
  } catch (cause) {
    const advice = `Run: ${INSTALL_SQLITE}, or, if it was built for another Node: npm rebuild better-sqlite3`
    throw new TypeError(`A SQLite file needs Node 22.13 or newer, or the package better-sqlite3. ${advice}`, { cause })
  }
}
/* c8 ignore stop */

/** Ends a failed transaction. */
export function rollBack(database: Database): void {
  try {
    database.exec('ROLLBACK')
  } catch {
    // SQLite has already rolled back, as it does after some errors.
  }
}

function patient(database: Database): Database {
  database.exec(`PRAGMA busy_timeout = ${BUSY_MS}`)
  return database
}

/**
 * Suppresses Node 22's warning that its SQLite is experimental. Loading is synchronous, so no other warning is lost.
 */
/* c8 ignore start -- Node 20 has no SQLite of its own */
function withoutItsWarning<T>(load: () => T): T {
  // oxlint-disable-next-line typescript/unbound-method -- it is restored unchanged
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return load()
  } finally {
    process.emitWarning = emitWarning
  }
}
/* c8 ignore stop */

/** The severity of a SQLite error. */
type Trouble = 'full' | 'broken' | 'other'

/**
 * Classifies an error. A full disk is temporary. A broken file or disk is final: the engine's memory cannot be trusted,
 * and no write is retried. Any other error fails a single call.
 */
export function classifySqliteError(error: unknown): Trouble {
  const code = sqliteCode(error) ?? ''
  // The shared-memory index of the log reports a full disk with a code of its own.
  if (code === 'FULL' || code === 'IOERR_SHMSIZE') return 'full'
  return /^(?:IOERR|CORRUPT|NOTADB|CANTOPEN)/.test(code) ? 'broken' : 'other'
}

/** An error's message, with SQLite's name for it. */
export function sqliteReasonOf(error: unknown): string {
  const code = sqliteCode(error)
  const { message } = error as Error
  return code === undefined ? message : `${message} (SQLITE_${code})`
}
