import { existsSync, statSync } from 'node:fs'
import { driverOf } from '../driver.ts'
import { StorageError } from '../storage-error.ts'
import { prepareFile, realFile, usingFile } from './open-file.ts'

/**
 * Writes a file anew without its free pages, so that it gives them back to the file system by itself from then on. Nobody
 * else may have the file. Gives its bytes before and after.
 */
export function vacuumFile(file: string): { before: number; after: number } {
  const path = realFile(file)
  if (!existsSync(path)) throw new StorageError(`${path} is not there.`)
  const release = prepareFile(path, undefined)
  try {
    const before = statSync(path).size
    usingFile(path, () => driverOf(undefined)(path, false), database => {
      database.exec('PRAGMA synchronous = FULL; PRAGMA auto_vacuum = INCREMENTAL; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)')
    })
    return { before, after: statSync(path).size }
  } finally {
    release()
  }
}
