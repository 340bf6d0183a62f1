import { sqliteCode } from './driver.ts'

/** A file that cannot be used, or cannot be used any more. The message names it and says why. */
export class StorageError extends Error {
  override readonly name = 'StorageError'
}

/** What an error of SQLite means for the store. */
export type Trouble = 'full' | 'broken' | 'other'

/**
 * Says whether the disk is full, which passes; whether the file or disk is broken, after which nothing that the engine holds
 * in memory can be trusted and no write is tried again; or whether it is an error of one call.
 */
export function troubleOf(error: unknown): Trouble {
  const code = sqliteCode(error) ?? ''
  // The index of the log grows in a file of its own, and says so in its own way when there is no room.
  if (code === 'FULL' || code === 'IOERR_SHMSIZE') return 'full'
  return /^(?:IOERR|CORRUPT|NOTADB|CANTOPEN)/.test(code) ? 'broken' : 'other'
}

/** An error's message with SQLite's name for it. */
export function reasonOf(error: unknown): string {
  const code = sqliteCode(error)
  const { message } = error as Error
  return code === undefined ? message : `${message} (SQLITE_${code})`
}
