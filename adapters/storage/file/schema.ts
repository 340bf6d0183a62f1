import { killPoint } from '../../../runtime/primitives/kill-points.ts'
import { rollBack, type Database } from '../driver.ts'
import { AS_VERSION, VERSION_1, VERSION_2, VERSION_3, VERSION_4 } from '../rows/tables.ts'
import { tooNew } from '../../rows/storage-error.ts'
import { APPLICATION_ID } from './file-header.ts'

/** The SQL of each version of the schema, based on the one before. Entries are appended, never changed. */
export const MIGRATIONS: readonly string[] = [VERSION_1, VERSION_2, VERSION_3, VERSION_4]

/** Starts an empty file that can release free pages. This setting must precede the first page, which it writes. */
const BEGIN_FILE = 'BEGIN; PRAGMA auto_vacuum = INCREMENTAL'

/** Migrates a file's schema to the newest version, each step in a transaction. Throws StorageError for a newer version. */
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

/** The version of a file's schema. Throws StorageError if it is newer than `known`. */
export function checkVersion(database: Database, file: string, known = MIGRATIONS.length): number {
  const version = Number(database.prepare('PRAGMA user_version').get()?.user_version)
  if (version <= known) return version
  throw tooNew(file, version, known)
}

/** Lets a reader use a file of an older version, which stays unchanged, like the newest. Throws StorageError for a newer version. */
export function readAsNewest(database: Database, file: string): void {
  const own = checkVersion(database, file)
  for (const [version, sql] of AS_VERSION) if (own < version) database.exec(sql)
}
