import { resolve } from 'node:path'
import type { Logger } from '../../runtime/ports/logger.ts'
import type { Store } from '../../runtime/store/store.ts'
import { memoryStore } from '../../runtime/work-port.ts'
import { postgresCopySource, postgresCopyTarget } from '../postgres/copy.ts'
import { postgresStore, readPostgres } from '../postgres/postgres.ts'
import { isPostgresUrl, placeName } from '../postgres/session/pool.ts'
import type { CopySource, CopyTarget } from '../rows/copied-rows.ts'
import type { StoreReader } from '../rows/store-reader.ts'
import { sqliteCopySource, sqliteCopyTarget } from '../storage/copy.ts'
import { readSqlite, sqliteStore } from '../storage/sqlite.ts'

/** What `--db` names: a SQLite file, or a PostgreSQL database by its URL. */
export type StoreKind = 'file' | 'database'

/** The functions that open a store of one kind. `place` is an absolute path, or a URL. */
interface StoreEngine {
  open(place: string, logger: Logger, stopped: (error: Error) => void): Promise<Store>
  read(place: string, logger: Logger): Promise<StoreReader>
  copyFrom(place: string, logger: Logger): Promise<CopySource>
  /** `from` is the name of what is copied. */
  copyTo(place: string, from: string, logger: Logger): Promise<CopyTarget>
}

const ENGINES: Readonly<Record<StoreKind, StoreEngine>> = {
  file: {
    open: async (path, logger, stopped) => sqliteStore(path, { logger, stopped }),
    read: async (path, logger) => readSqlite(path, { logger }),
    copyFrom: async path => sqliteCopySource(path),
    copyTo: async path => sqliteCopyTarget(path)
  },
  database: {
    open: async (url, logger) => postgresStore(url, { logger }),
    read: async (url, logger) => readPostgres(url, { logger }),
    copyFrom: postgresCopySource,
    copyTo: postgresCopyTarget
  }
}

/** The kind of store that `--db` names. */
export function storeKindOf(db: string): StoreKind {
  return isPostgresUrl(db) ? 'database' : 'file'
}

function engineOf(db: string, cwd: string): { readonly engine: StoreEngine; readonly place: string } {
  const kind = storeKindOf(db)
  return { engine: ENGINES[kind], place: kind === 'file' ? resolve(cwd, db) : db }
}

/** The name of a `--db` for messages, without a password. */
export function databaseNameOf(db: string): string {
  return storeKindOf(db) === 'file' ? db : placeName(db, 'db')
}

/** Opens the store of `--db`, or one in memory. `broken` aborts with the reason if the store fails for good. */
export async function openStore(
  db: string | undefined,
  cwd: string,
  logger: Logger
): Promise<{ store: Store; broken: AbortSignal }> {
  const broken = new AbortController()
  if (db === undefined) return { store: memoryStore(), broken: broken.signal }
  const { engine, place } = engineOf(db, cwd)
  return { store: await engine.open(place, logger, error => broken.abort(error)), broken: broken.signal }
}

/** Opens the file or database of `--db` for reading, even while a server uses it. */
export async function openReader(db: string, cwd: string, logger: Logger): Promise<StoreReader> {
  const { engine, place } = engineOf(db, cwd)
  return engine.read(place, logger)
}

/** Opens a file or database to copy everything from it. */
export async function openCopySource(db: string, cwd: string, logger: Logger): Promise<CopySource> {
  const { engine, place } = engineOf(db, cwd)
  return engine.copyFrom(place, logger)
}

/** Opens a new file, or an empty database, to copy everything of `from` into it. */
export async function openCopyTarget(db: string, from: string, cwd: string, logger: Logger): Promise<CopyTarget> {
  const { engine, place } = engineOf(db, cwd)
  return engine.copyTo(place, databaseNameOf(from), logger)
}
