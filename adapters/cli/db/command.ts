import { usageError, type Command, type Io } from '../command.ts'
import { backup } from './backup.ts'
import { vacuum } from './vacuum.ts'

const ACTIONS: ReadonlyMap<string, (args: readonly string[], io: Io) => Promise<number>> = new Map([
  ['backup', backup],
  ['vacuum', vacuum]
])

/** `taskchart db`: looks after the file of a store. */
export const dbCommand: Command = {
  name: 'db',
  summary: 'back up or shrink the file of serve --db',
  usage: 'taskchart db backup FILE TO|vacuum FILE',
  details: `
  backup FILE TO  copy FILE, also while a server uses it, to the new file TO, which is complete by itself. To restore it,
                  stop the server, move FILE, FILE-wal and FILE-shm away, and copy TO to FILE.
  vacuum FILE     rewrite FILE without its free pages, while no server uses it. Files made by an older taskchart then return
                  free pages automatically, as new files do. It needs room for FILE once more, and as
                  much again in the folder for temporary files (SQLITE_TMPDIR).

Exit codes: 0 done, 1 an error, 2 wrong usage.
`,
  run: async ([name, ...args], io) => {
    const action = name === undefined ? undefined : ACTIONS.get(name)
    if (action) return action(args, io)
    throw usageError(`${name === undefined ? 'Say what to do with the file' : `A file has no ${JSON.stringify(name)}`}: backup or vacuum.`)
  }
}
