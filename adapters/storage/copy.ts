import { existsSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import {
  PAGE_CHARACTERS,
  PAGE_ROWS,
  type CopiedRow,
  type CopiedTable,
  type CopySource,
  type CopyTarget
} from '../rows/copied-rows.ts'
import { type Cell, StorageError } from '../rows/damage.ts'
import { driverOf, type Database, type Value } from './driver.ts'
import { createPrivately, logOf } from './file/file-header.ts'
import { syncPath } from './file/maintenance.ts'
import { migrateSqlite, prepareFile, realFile } from './file/open-file.ts'
import { tablesOf, type Tables } from './tables.ts'

const WITH_SCOPE = 'scopes.tenant, scopes.principal, scopes.sum AS scopeSum'

const bytesIn = (table: string) => `(SELECT total(octet_length(body)) FROM ${table} WHERE ${table}.task = tasks.task)`

/** The columns and tables that a table's rows are read from. */
const ROWS: Readonly<Record<CopiedTable, string>> = {
  contexts: `contexts.*, ${WITH_SCOPE} FROM contexts LEFT JOIN scopes USING (scope)`,
  tasks: `tasks.*, ${WITH_SCOPE}, ${bytesIn('events')} + ${bytesIn('messages')} AS bytes FROM tasks LEFT JOIN scopes USING (scope)`,
  snapshots: '* FROM snapshots',
  events: '* FROM events',
  messages: '* FROM messages',
  journal: '*, key AS name FROM journal',
  sends: `sends.*, key AS name, ${WITH_SCOPE} FROM sends LEFT JOIN scopes USING (scope)`,
  webhooks: '*, id AS name FROM webhooks',
  transitions: '* FROM transitions'
}

/**
 * Opens a file of `sqliteStore` to be copied. No server may use it meanwhile. Throws StorageError for an unusable file.
 */
export function sqliteCopySource(file: string): CopySource {
  const path = realFile(file)
  if (!existsSync(path)) throw new StorageError(`${path} does not exist.`)
  const release = prepareFile(path, undefined)
  const database = driverOf(undefined)(path, true)
  const tables = tablesOf(database)
  return {
    pages: table => pagesOf(database, tables, table),
    close: async () => {
      database.close()
      release()
    }
  }
}

function* pagesOf(database: Database, tables: Tables, table: CopiedTable): Generator<CopiedRow[], void, undefined> {
  let page: CopiedRow[] = []
  let characters = 0
  for (const cells of database.prepare(`SELECT ${ROWS[table]}`).iterate()) {
    const { scope = null, tenant = null, principal = null, scopeSum: sum = null } = cells
    const hasScope = !('scopeSum' in cells) || tables.scopes.isIntact({ scope, tenant, principal, sum })
    page.push({ cells, isDamaged: !hasScope || !tables[table].isIntact(cells) })
    characters += String(cells.body ?? cells.snapshot ?? '').length
    if (page.length < PAGE_ROWS && characters < PAGE_CHARACTERS) continue
    yield page
    page = []
    characters = 0
  }
  yield page
}

/**
 * Creates a file that takes a copy. The copy is complete when the file has its name: an interrupted one leaves
 * `FILE.PID.partial`. Throws StorageError if the file exists or cannot be created.
 */
export function sqliteCopyTarget(file: string): CopyTarget {
  const path = realFile(file)
  for (const name of [path, logOf(path)]) {
    if (existsSync(name))
      throw new StorageError(`${name} exists, and a copy overwrites nothing. Give another name, or remove it.`)
  }
  const partial = `${path}.${process.pid}.partial`
  createPrivately(partial)
  const database = driverOf(undefined)(partial, false)
  // The file is of no use until it is synced as a whole.
  database.exec('PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536')
  migrateSqlite(database, partial)
  const tables = tablesOf(database)
  const scopeOf = scopesIn(tables)
  let isOpen = true
  const close = async () => {
    if (!isOpen) return
    isOpen = false
    database.close()
  }
  return {
    add: async (table, rows) => {
      database.exec('BEGIN')
      for (const { cells, isDamaged } of rows) tables[table].insertCells(cellsFor(cells, scopeOf), isDamaged)
      database.exec('COMMIT')
    },
    finish: async () => {
      await close()
      syncPath(partial)
      renameSync(partial, path)
      syncPath(dirname(path))
    },
    close: async () => {
      await close()
      rmSync(partial, { force: true })
    }
  }
}

/** The cells of a row of the file: with the number of its scope, and its name as the key or id. */
function cellsFor(
  { tenant, principal, name, ...cells }: Readonly<Record<string, Cell>>,
  scopeOf: (tenant: string, principal: string) => number
): Record<string, Value> {
  const own: Record<string, Value> = {}
  for (const [column, cell] of Object.entries(cells)) own[column] = typeof cell === 'boolean' ? Number(cell) : cell
  if (name !== undefined) Object.assign(own, { key: name, id: name })
  if (tenant !== undefined) own.scope = scopeOf(String(tenant), String(principal))
  return own
}

/** Numbers scopes, and adds new ones. */
function scopesIn({ scopes }: Tables): (tenant: string, principal: string) => number {
  const known = scopes.reading(['tenant', 'principal'])
  let last = 0
  return (tenant, principal) => {
    const found = known.one(tenant, principal)
    if (found) return found.scope
    last += 1
    scopes.insert({ scope: last, tenant, principal })
    return last
  }
}
