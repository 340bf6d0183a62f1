import { killPoint } from '../../../runtime/primitives/kill-points.ts'
import { rollBack, type Database } from '../driver.ts'
import { AS_VERSION_2, VERSION_1, VERSION_2 } from '../rows/tables.ts'
import { StorageError } from '../storage-error.ts'
import { APPLICATION_ID } from './file-header.ts'

/** What makes each version of the schema of the one before, the first of an empty file. Never changed, only added to. */
export const MIGRATIONS: readonly string[] = [VERSION_1, VERSION_2]

/** Begins an empty file, which can give free pages back. This has to be said before the first page is written, and writes it. */
const BEGIN_FILE = 'BEGIN; PRAGMA auto_vacuum = INCREMENTAL'

/**
 * Brings a file's schema up to the newest version, each step in a transaction of its own, or leaves it as it is. Throws
 * StorageError for a version that is newer still.
 */
export function migrate(database: Database, file: string, migrations: readonly string[] = MIGRATIONS): void {
  const version = checkVersion(database, file, migrations.length)
  for (const [index, sql] of migrations.entries()) {
    if (index < version) continue
    database.exec(index === 0 ? BEGIN_FILE : 'BEGIN IMMEDIATE')
    try {
      database.exec(`${sql}; PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${index + 1}`)
      killPoint('before migration')
      database.exec('COMMIT')
    } catch (error) {
      rollBack(database)
      throw error
    }
  }
}

/** Gives the version of a file's schema. Throws StorageError if it is newer than what is known here. */
export function checkVersion(database: Database, file: string, known = MIGRATIONS.length): number {
  const version = Number(database.prepare('PRAGMA user_version').get()?.user_version)
  if (version <= known) return version
  throw new StorageError(`${file} has the schema version ${version}, and this taskchart knows versions up to ${known}. Use the newer taskchart that wrote it.`)
}

/** Has a reader see a file of an older version, which stays as it is, as if it were of the newest. Throws StorageError if it is newer than what is known here. */
export function readAsNewest(database: Database, file: string): void {
  if (checkVersion(database, file) < 2) database.exec(AS_VERSION_2)
}
