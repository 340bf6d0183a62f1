import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { StorageError } from '../storage-error.ts'
import { checkHeader, createPrivately, logOf } from './file-header.ts'
import { openForReading, realFile } from './open-file.ts'

/**
 * Copies a store's file to a new file that is whole without a log, also while a server uses the store. Gives the bytes of
 * the copy. The copy has its name only once it is whole and on the disk: a backup that is killed leaves `TO.PID.partial`.
 */
export function backupFile(file: string, to: string): number {
  const source = realFile(file)
  const target = realFile(to)
  for (const path of [target, logOf(target)]) {
    if (existsSync(path)) throw new StorageError(`${path} is there already, and a backup overwrites nothing. Give another name, or remove it.`)
  }
  const partial = `${target}.${process.pid}.partial`
  rmSync(partial, { force: true })
  try {
    createPrivately(partial)
    const database = openForReading(source, database => database)
    try {
      // A file that gives free pages back has it already, and what only reads it may not set it.
      if (database.prepare('PRAGMA auto_vacuum').get()?.auto_vacuum === 0) database.exec('PRAGMA auto_vacuum = INCREMENTAL')
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
    throw cause instanceof StorageError ? cause : new StorageError(`${target} cannot be written: ${(cause as Error).message}.`, { cause })
  }
}

function syncPath(path: string): void {
  const descriptor = openSync(path, 'r')
  fsyncSync(descriptor)
  closeSync(descriptor)
}
