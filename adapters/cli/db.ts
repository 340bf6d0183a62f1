import { resolve } from 'node:path'
import { backupFile, vacuumFile } from '../storage/file/maintenance.ts'
import { readArguments } from './arguments.ts'
import { type Command, EXIT, type Io, usageError } from './command.ts'

const ACTIONS: ReadonlyMap<string, (args: readonly string[], io: Io) => Promise<number>> = new Map([
  ['backup', backup],
  ['vacuum', vacuum]
])

/** `taskchart db`: backs up and shrinks the file of a store. */
export const dbCommand: Command = {
  name: 'db',
  summary: 'back up or shrink the file that serve --db keeps tasks in',
  usage: 'taskchart db backup FILE TO|vacuum FILE',
  details: `
  backup FILE TO  copy FILE to the new file TO, even while a server uses FILE. TO is complete by itself. To restore it,
                  stop the server, move FILE, FILE-wal and FILE-shm away, and copy TO to FILE.
  vacuum FILE     rewrite FILE without its free pages. No server may use it meanwhile. Files from an older taskchart then
                  release free pages automatically, as new files do. It needs free space of the size of FILE beside it,
                  and the same in the folder for temporary files (SQLITE_TMPDIR).

Exit codes: 0 done, 1 an error, 2 wrong usage.
`,
  run: async ([name, ...args], io) => {
    const action = name === undefined ? undefined : ACTIONS.get(name)
    if (action) return action(args, io)
    throw usageError(`${name === undefined ? 'Say what to do with the file' : `A file has no ${JSON.stringify(name)}`}: backup or vacuum.`)
  }
}

/** A number of bytes in MiB: `12.3 MiB`. */
function sizeText(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`
}

async function backup(args: readonly string[], { cwd, stderr }: Io): Promise<number> {
  const { positionals: [file, to] } = readArguments(args, {}, ['FILE', 'TO'])
  const bytes = backupFile(resolve(cwd, file), resolve(cwd, to))
  stderr.write(`${to} has ${sizeText(bytes)}.\n`)
  return EXIT.ok
}

async function vacuum(args: readonly string[], { cwd, stderr }: Io): Promise<number> {
  const { positionals: [file] } = readArguments(args, {}, ['FILE'])
  const { before, after } = vacuumFile(resolve(cwd, file))
  stderr.write(`${file} had ${sizeText(before)}, and has ${sizeText(after)}.\n`)
  return EXIT.ok
}
