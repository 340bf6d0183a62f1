import { resolve } from 'node:path'
import { stateText, TASK_STATES, type TaskState } from '../../machines/protocol/states.ts'
import type { Scope } from '../../runtime/store/rows.ts'
import type { StoredTask, TaskCursor } from '../../runtime/store/store.ts'
import { checkPg } from '../postgres/session/pool.ts'
import { copyRows } from '../rows/copied-rows.ts'
import type { StoreReader } from '../rows/store-reader.ts'
import { backupFile, vacuumFile } from '../storage/file/maintenance.ts'
import { readArguments } from './arguments.ts'
import { type Command, EXIT, type Io, type Output, usageError } from './command.ts'
import { databaseNameOf, openCopySource, openCopyTarget, openReader, openStore, storeKindOf } from './stores.ts'
import { didYouMean } from './text/format.ts'
import { oneLine } from './text/terminal.ts'

const ACTIONS: ReadonlyMap<string, (args: readonly string[], io: Io) => Promise<number>> = new Map([
  ['backup', backup],
  ['copy', copy],
  ['vacuum', vacuum],
  ['migrate', migrateDatabase],
  ['check', check],
  ['stats', stats]
])

/** `taskchart db`: backs up, copies, shrinks, migrates, checks and counts what a store has. */
export const dbCommand: Command = {
  words: [...ACTIONS.keys()],
  usage: [
    'taskchart db backup FILE TO',
    'taskchart db copy FROM TO',
    'taskchart db vacuum FILE',
    'taskchart db migrate|check|stats FILE|URL'
  ],
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

/** The number of tasks that are read at once. */
const PAGE = 100

/** `taskchart db migrate`: creates or migrates the tables of a file or database. */
export async function migrateDatabase(args: readonly string[], { cwd, stderr }: Io): Promise<number> {
  const {
    positionals: [db]
  } = readArguments(args, {}, ['FILE|URL'])
  const report = lineWriter(stderr)
  const { store } = await openStore(db, cwd, { warn: report, error: report })
  await store.close()
  stderr.write(`${databaseNameOf(db)} has the newest schema.\n`)
  return EXIT.ok
}

/** `taskchart db check`: reads everything once, and reports what is damaged. */
export async function check(args: readonly string[], io: Io): Promise<number> {
  const {
    positionals: [db]
  } = readArguments(args, {}, ['FILE|URL'])
  const damaged = new Set<string>()
  const report = (message: string) => void damaged.add(message)
  const reader = await openReader(db, io.cwd, { warn: report, error: report })
  let tasks = 0
  try {
    for (const scope of await reader.scopes()) {
      for await (const stored of tasksOf(reader, scope, io.signal)) {
        tasks += 1
        await readRest(reader, scope, stored).catch((error: Error) => report(error.message))
      }
    }
  } finally {
    await reader.close()
  }
  for (const message of damaged) io.stderr.write(`${oneLine(message)}\n`)
  io.stderr.write(`${databaseNameOf(db)}: ${tasks} tasks are intact, ${damaged.size} damages were found.\n`)
  return damaged.size > 0 ? EXIT.error : EXIT.ok
}

/** `taskchart db copy`: copies everything from a file or database into another. */
export async function copy(args: readonly string[], { cwd, stderr, signal }: Io): Promise<number> {
  const {
    positionals: [from, to]
  } = readArguments(args, {}, ['FROM', 'TO'])
  const report = lineWriter(stderr)
  const logger = { warn: report, error: report }
  if ([from, to].some(db => storeKindOf(db) === 'database')) checkPg()
  const source = await openCopySource(from, cwd, logger)
  try {
    const target = await openCopyTarget(to, from, cwd, logger)
    try {
      const { tasks, damaged } = await copyRows(
        source,
        target,
        (table, rows) => stderr.write(`${table}: ${rows} rows\n`),
        signal
      )
      stderr.write(`${databaseNameOf(to)} has ${tasks} tasks of ${databaseNameOf(from)}.\n`)
      if (damaged > 0) stderr.write(`${damaged} damaged rows were copied as such: taskchart db check names them.\n`)
      return EXIT.ok
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

/** `taskchart db stats`: counts tasks by state. */
export async function stats(args: readonly string[], { cwd, stdout, stderr }: Io): Promise<number> {
  const {
    positionals: [db]
  } = readArguments(args, {}, ['FILE|URL'])
  const report = lineWriter(stderr)
  const reader = await openReader(db, cwd, { warn: report, error: report })
  try {
    const scopes = await reader.scopes()
    for (const state of Object.keys(TASK_STATES) as TaskState[]) {
      let count = 0
      for (const scope of scopes)
        count += (await reader.listTasks(scope, { state, limit: 1, historyLength: 0, artifacts: false })).total
      if (count > 0) stdout.write(`${stateText(state).padEnd(16)}${count}\n`)
    }
    stdout.write(`${'callers'.padEnd(16)}${scopes.length}\n`)
    return EXIT.ok
  } finally {
    await reader.close()
  }
}

/** Writes a message about the data as a line. */
export function lineWriter(output: Output): (message: string) => void {
  return message => output.write(`taskchart: ${oneLine(message)}\n`)
}

async function* tasksOf(
  reader: StoreReader,
  scope: Scope,
  signal: AbortSignal
): AsyncGenerator<StoredTask, void, undefined> {
  let after: TaskCursor | undefined
  do {
    signal.throwIfAborted()
    const { tasks, next } = await reader.listTasks(scope, { limit: PAGE, after })
    yield* tasks
    after = next
  } while (after)
}

/** Reads what a list does not. */
async function readRest(reader: StoreReader, scope: Scope, { task: { id, contextId } }: StoredTask): Promise<void> {
  await reader.readJournal(scope, id)
  await reader.readWebhooks(scope, id)
  await reader.loadContext({ ...scope, contextId })
  await reader.readMessages({ ...scope, contextId }, Number.MAX_SAFE_INTEGER)
}
