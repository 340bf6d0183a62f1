import { access, constants, realpath } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { isPostgresUrl } from '../../postgres/session/pool.ts'
import { checkUse } from '../../postgres/session/server-checks.ts'
import type { Io } from '../command.ts'
import { nameOf } from '../db-contents.ts'
import { openReader } from '../serve/open-store.ts'
import { installIn, type Finding } from './packages.ts'

/** How many of each caller's newest tasks are read. */
const SOME_TASKS = 100

/** The lines that mend a store: if it is damaged, and if it cannot be used. */
const MENDS = {
  file: [
    'Restore a backup: stop the server, move FILE, FILE-wal and FILE-shm away, and copy the backup to FILE',
    'Give the file of taskchart serve --db, or a new file in a folder that you can write to'
  ],
  database: [
    'Restore a backup of the database. taskchart db check names each damage',
    'Start the database, or correct its URL. taskchart serve --db creates its tables'
  ]
} as const

/** Whether this user may write a file, or create files in a folder. */
export async function mayWrite(path: string): Promise<boolean> {
  return access(path, constants.W_OK).then(
    () => true,
    () => false
  )
}

/** Whether a server could use the file or database of a store, or create the file. `isWritable` says what this user may write. */
export async function databaseFinding(db: string, { cwd }: Pick<Io, 'cwd'>, isWritable = mayWrite): Promise<Finding> {
  const isFile = !isPostgresUrl(db)
  const [restore, correct] = MENDS[isFile ? 'file' : 'database']
  try {
    if (isFile) {
      const path = resolve(cwd, db)
      const file = await realpath(path).catch(() => undefined)
      // SQLite creates files beside it.
      for (const needed of file === undefined ? [dirname(path)] : [file, dirname(file)]) {
        if (!(await isWritable(needed)))
          return {
            status: 'wrong',
            what: `${db} cannot be used: this user cannot write ${needed}`,
            mend: `Run taskchart serve --db as a user who may write ${needed}, or give another file`
          }
      }
      if (file === undefined) return { status: 'ok', what: `${db} does not exist: taskchart serve --db creates it` }
    } else await checkUse(db, 'doctor', 'taskchart')
    const damaged: string[] = []
    const note = (message: string) => void damaged.push(message)
    const store = await openReader(db, cwd, { warn: note, error: note })
    let total = 0
    try {
      for (const scope of await store.scopes())
        total += (await store.listTasks(scope, { limit: SOME_TASKS, historyLength: 0, artifacts: false })).total
    } finally {
      await store.close()
    }
    if (damaged[0] !== undefined)
      return { status: 'wrong', what: `${nameOf(db)} is damaged: ${damaged[0]}`, mend: restore }
    return { status: 'ok', what: `${nameOf(db)} can be read: ${total === 1 ? '1 task' : `${total} tasks`}` }
  } catch (error) {
    // The lines for a role that lacks rights are those for its administrator.
    const [message = '', statements] = (error as Error).message.split(/ (?=As an administrator, run )/)
    return {
      status: 'wrong',
      what: `${isFile ? db : 'The database'} cannot be used: ${message}`,
      mend: statements ?? installIn(message) ?? correct
    }
  }
}
