import { resolve } from 'node:path'
import type { Logger } from '../../../runtime/ports/logger.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { postgresStore, readPostgres } from '../../postgres/postgres.ts'
import { isPostgresUrl } from '../../postgres/session/pool.ts'
import type { StoreReader } from '../../rows/store-reader.ts'
import { readSqlite, sqliteStore } from '../../storage/sqlite.ts'

/**
 * Opens the store of `--db`: a SQLite file or a `postgres:` URL; without it, a store in memory. `broken` aborts with the reason if the store fails
 * for good.
 */
export async function openStore(
  db: string | undefined,
  cwd: string,
  logger: Logger
): Promise<{ store: Store; broken: AbortSignal }> {
  const broken = new AbortController()
  return { store: await storeOf(db, cwd, logger, error => broken.abort(error)), broken: broken.signal }
}

async function storeOf(
  db: string | undefined,
  cwd: string,
  logger: Logger,
  stopped: (error: Error) => void
): Promise<Store> {
  if (db === undefined) return memoryStore()
  return isPostgresUrl(db) ? postgresStore(db, { logger }) : sqliteStore(resolve(cwd, db), { logger, stopped })
}

/** Opens the file or database of `--db` for reading, even while a server uses it. */
export async function openReader(db: string, cwd: string, logger: Logger): Promise<StoreReader> {
  return isPostgresUrl(db) ? readPostgres(db, { logger }) : readSqlite(resolve(cwd, db), { logger })
}
