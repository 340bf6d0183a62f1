import { sqliteCode } from './driver.ts'

/** A file that cannot be used, or no longer. The message contains its path and the reason. */
export class StorageError extends Error {
  override readonly name = 'StorageError'
}

/** The severity of a SQLite error. */
export type Trouble = 'full' | 'broken' | 'other'

/**
 * Classifies an error: the disk is full, which is temporary; the file or disk is broken, after which the engine's memory cannot be trusted
 * and no write is retried; or a single call failed.
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
