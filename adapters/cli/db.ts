import { resolve } from 'node:path'
import { backupFile, vacuumFile } from '../storage/file/maintenance.ts'
import { readArguments } from './arguments.ts'
import { type Command, EXIT, type Io, usageError } from './command.ts'
import { check, copy, migrate, stats } from './db-contents.ts'
import { didYouMean } from './text/did-you-mean.ts'

const ACTIONS: ReadonlyMap<string, (args: readonly string[], io: Io) => Promise<number>> = new Map([
  ['backup', backup],
  ['copy', copy],
  ['vacuum', vacuum],
  ['migrate', migrate],
  ['check', check],
  ['stats', stats]
])

/** `taskchart db`: backs up, copies, shrinks, migrates, checks and counts what a store has. */
export const dbCommand: Command = {
  words: ['backup', 'copy', 'vacuum', 'migrate', 'check', 'stats'],
  usage: 'taskchart db backup FILE TO|copy FROM TO|vacuum FILE|migrate FILE|URL|check FILE|URL|stats FILE|URL',
  details: `
  backup FILE TO  copy FILE to the new file TO, even while a server uses FILE. TO is complete by itself. To restore it,
                  stop the server, move FILE, FILE-wal and FILE-shm away, and copy TO to FILE.
  copy FROM TO    copy everything from the file or URL FROM into the new file or empty PostgreSQL database TO. No server
                  may use FROM meanwhile. Tasks, streams and webhooks go on where they were. If it is interrupted, servers
                  refuse TO: run it again.
  vacuum FILE     rewrite FILE without its free pages. No server may use it meanwhile. Files from an older taskchart then
                  release free pages automatically, as new files do. It needs free space of the size of FILE beside it,
                  and the same in the folder for temporary files (SQLITE_TMPDIR).
  migrate FILE|URL  create or migrate the tables of the file, or of the PostgreSQL database of a postgres: URL. No
                  server may use it meanwhile.
  check FILE|URL  read everything once, and write a line for each damage
  stats FILE|URL  count tasks by state

Exit codes: 0 done, 1 an error or damage, 2 wrong usage, 130 stopped with Ctrl-C before it began.
`,
  run: async ([name, ...args], io) => {
    const action = name === undefined ? undefined : ACTIONS.get(name)
    io.signal.throwIfAborted()
    if (action) return action(args, io)
    throw usageError(
      name === undefined
        ? 'Say what to do with the file: backup, copy, vacuum, migrate, check or stats.'
        : `A file has no ${JSON.stringify(name)}. ${didYouMean(name, [...ACTIONS.keys()])}`
    )
  }
}

/** A number of bytes in MiB: `12.3 MiB`. */
function sizeText(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`
}

async function backup(args: readonly string[], { cwd, stderr }: Io): Promise<number> {
  const {
    positionals: [file, to]
  } = readArguments(args, {}, ['FILE', 'TO'])
  const bytes = backupFile(resolve(cwd, file), resolve(cwd, to))
  stderr.write(`${to} has ${sizeText(bytes)}.\n`)
  return EXIT.ok
}

async function vacuum(args: readonly string[], { cwd, stderr }: Io): Promise<number> {
  const {
    positionals: [file]
  } = readArguments(args, {}, ['FILE'])
  const { before, after } = vacuumFile(resolve(cwd, file))
  stderr.write(`${file} had ${sizeText(before)}, and has ${sizeText(after)}.\n`)
  return EXIT.ok
}
