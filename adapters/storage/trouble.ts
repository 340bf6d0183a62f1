import { sqliteCode } from './driver.ts'

/** The severity of a SQLite error. */
export type Trouble = 'full' | 'broken' | 'other'

/**
 * Classifies an error. A full disk is temporary. A broken file or disk is final: the engine's memory cannot be trusted, and no write is
 * retried. Any other error fails a single call.
 */
export function troubleOf(error: unknown): Trouble {
  const code = sqliteCode(error) ?? ''
  // The shared-memory index of the log reports a full disk with a code of its own.
  if (code === 'FULL' || code === 'IOERR_SHMSIZE') return 'full'
  return /^(?:IOERR|CORRUPT|NOTADB|CANTOPEN)/.test(code) ? 'broken' : 'other'
}

/** An error's message, with SQLite's name for it. */
export function reasonOf(error: unknown): string {
  const code = sqliteCode(error)
  const { message } = error as Error
  return code === undefined ? message : `${message} (SQLITE_${code})`
}
