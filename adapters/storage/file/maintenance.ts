import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { StorageError } from '../../rows/damage.ts'
import { driverOf } from '../driver.ts'
import { checkHeader, createPrivately, logOf } from './file-header.ts'
import { openForReading, prepareFile, realFile, usingFile } from './open-file.ts'

/**
 * Copies a store's file to a new file that is complete without a log, even while a server uses the store. Returns the
 * size of the copy in bytes. The copy gets its name when it is complete and synced: a killed backup leaves
 * `TO.PID.partial`.
 */
export function backupFile(file: string, to: string): number {
  const source = realFile(file)
  const target = realFile(to)
  for (const path of [target, logOf(target)]) {
    if (existsSync(path))
      throw new StorageError(`${path} exists, and a backup overwrites nothing. Give another name, or remove it.`)
  }
  const partial = `${target}.${process.pid}.partial`
  rmSync(partial, { force: true })
  try {
    createPrivately(partial)
    const database = openForReading(source, database => database)
    try {
      // A file that releases free pages already has this setting, and a reader may not write it.
      if (database.prepare('PRAGMA auto_vacuum').get()?.auto_vacuum === 0)
        database.exec('PRAGMA auto_vacuum = INCREMENTAL')
      database.exec(`VACUUM INTO '${partial.replaceAll("'", "''")}'`)
    } finally {
      database.close()
    }
    checkHeader(partial)
    syncPath(partial)
    renameSync(partial, target)
    syncPath(dirname(target))
    return statSync(target).size
  } catch (cause) {
    rmSync(partial, { force: true })
    throw cause instanceof StorageError
      ? cause
      : new StorageError(`${source} could not be copied to ${target}: ${(cause as Error).message}.`, { cause })
  }
}

/** Waits until a file or folder is on the disk. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r')
  fsyncSync(descriptor)
  closeSync(descriptor)
}

/**
 * Rewrites a file without its free pages, and makes it release free pages automatically from then on. No other process
 * may use the file. Returns its size in bytes before and after.
 */
export function vacuumFile(file: string): { before: number; after: number } {
  const path = realFile(file)
  if (!existsSync(path)) throw new StorageError(`${path} does not exist.`)
  const release = prepareFile(path, undefined)
  try {
    const before = statSync(path).size
    usingFile(
      path,
      () => driverOf(undefined)(path, false),
      database => {
        database.exec(
          'PRAGMA synchronous = FULL; PRAGMA auto_vacuum = INCREMENTAL; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)'
        )
      }
    )
    return { before, after: statSync(path).size }
  } finally {
    release()
  }
}
