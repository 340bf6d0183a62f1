import { resolve } from 'node:path'
import { stateText, TASK_STATES, type TaskState } from '../../machines/protocol/states.ts'
import type { Scope, StoredTask, TaskCursor } from '../../runtime/store/store.ts'
import { postgresCopySource, postgresCopyTarget } from '../postgres/copy.ts'
import { checkPg, isPostgresUrl, placeName } from '../postgres/session/pool.ts'
import { copyRows } from '../rows/copied-rows.ts'
import type { StoreReader } from '../rows/store-reader.ts'
import { sqliteCopySource, sqliteCopyTarget } from '../storage/copy.ts'
import { readArguments } from './arguments.ts'
import { EXIT, type Io, type Output } from './command.ts'
import { openReader, openStore } from './serve/open-store.ts'
import { oneLine } from './text/terminal-text.ts'

/** The number of tasks that are read at once. */
const PAGE = 100

/** `taskchart db migrate`: creates or migrates the tables of a file or database. */
export async function migrate(args: readonly string[], { cwd, stderr }: Io): Promise<number> {
  const {
    positionals: [db]
  } = readArguments(args, {}, ['FILE|URL'])
  const tell = tellOn(stderr)
  const { store } = await openStore(db, cwd, { warn: tell, error: tell })
  await store.close()
  stderr.write(`${nameOf(db)} has the newest schema.\n`)
  return EXIT.ok
}

/** `taskchart db check`: reads everything once, and reports what is damaged. */
export async function check(args: readonly string[], io: Io): Promise<number> {
  const {
    positionals: [db]
  } = readArguments(args, {}, ['FILE|URL'])
  const damaged = new Set<string>()
  const tell = (message: string) => void damaged.add(message)
  const reader = await openReader(db, io.cwd, { warn: tell, error: tell })
  let tasks = 0
  try {
    for (const scope of await reader.scopes()) {
      for await (const stored of tasksOf(reader, scope, io.signal)) {
        tasks += 1
        await readRest(reader, scope, stored).catch((error: Error) => tell(error.message))
      }
    }
  } finally {
    await reader.close()
  }
  for (const message of damaged) io.stderr.write(`${oneLine(message)}\n`)
  io.stderr.write(`${nameOf(db)}: ${tasks} tasks are intact, ${damaged.size} damages were found.\n`)
  return damaged.size > 0 ? EXIT.error : EXIT.ok
}

/** `taskchart db copy`: copies everything from a file or database into another. */
export async function copy(args: readonly string[], { cwd, stderr, signal }: Io): Promise<number> {
  const {
    positionals: [from, to]
  } = readArguments(args, {}, ['FROM', 'TO'])
  const tell = tellOn(stderr)
  const logger = { warn: tell, error: tell }
  if ([from, to].some(isPostgresUrl)) checkPg()
  const source = isPostgresUrl(from) ? await postgresCopySource(from, logger) : sqliteCopySource(resolve(cwd, from))
  try {
    const target = isPostgresUrl(to)
      ? await postgresCopyTarget(to, nameOf(from), logger)
      : sqliteCopyTarget(resolve(cwd, to))
    try {
      const { tasks, damaged } = await copyRows(
        source,
        target,
        (table, rows) => stderr.write(`${table}: ${rows} rows\n`),
        signal
      )
      stderr.write(`${nameOf(to)} has ${tasks} tasks of ${nameOf(from)}.\n`)
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
  const tell = tellOn(stderr)
  const reader = await openReader(db, cwd, { warn: tell, error: tell })
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
export function tellOn(output: Output): (message: string) => void {
  return message => output.write(`taskchart: ${oneLine(message)}\n`)
}

/** A file's path, or a database's name without credentials. */
/** The name of a `--db` for messages, without a password. */
export function nameOf(db: string): string {
  return isPostgresUrl(db) ? placeName(db, 'db') : db
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
