import { resolve } from 'node:path'
import type { Logger } from '../../../runtime/ports/logger.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { sqliteStore } from '../../storage/sqlite.ts'

/** Opens the SQLite store of `--db FILE`, or a store in memory. `broken` aborts with the reason if the store fails for good. */
export function openStore(file: string | undefined, cwd: string, logger: Logger): { store: Store; broken: AbortSignal } {
  const broken = new AbortController()
  const store = file === undefined ? memoryStore() : sqliteStore(resolve(cwd, file), { logger, stopped: error => broken.abort(error) })
  return { store, broken: broken.signal }
}
