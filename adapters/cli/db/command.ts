import { usageError, type Command, type Io } from '../command.ts'
import { backup } from './backup.ts'

const ACTIONS: ReadonlyMap<string, (args: readonly string[], io: Io) => Promise<number>> = new Map([
  ['backup', backup]
])

/** `taskchart db`: looks after the file of a store. */
export const dbCommand: Command = {
  name: 'db',
  summary: 'back up the file that serve --db keeps tasks in',
  usage: 'taskchart db backup FILE TO',
  details: `
  backup FILE TO  copy FILE, also while a server uses it, to the new file TO, which is whole by itself. To restore it,
                  stop the server, move FILE, FILE-wal and FILE-shm away, and copy TO to FILE.

Exit codes: 0 done, 1 an error, 2 wrong usage.
`,
  run: async ([name, ...args], io) => {
    const action = name === undefined ? undefined : ACTIONS.get(name)
    if (action) return action(args, io)
    throw usageError(`${name === undefined ? 'Say what to do with the file' : `A file has no ${JSON.stringify(name)}`}: backup.`)
  }
}
