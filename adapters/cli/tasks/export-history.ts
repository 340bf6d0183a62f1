import { createHash } from 'node:crypto'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { isA2AError } from '../../../machines/protocol/errors.ts'
import { definitionOfSnapshot, type Scope } from '../../../runtime/store/rows.ts'
import { readRecord, type RecordedTask } from '../../../runtime/work-port.ts'
import { scopesOf, type StoreReader } from '../../rows/store-reader.ts'
import { historyText } from '../../testing/histories/history.ts'
import { redactedTask } from '../../testing/histories/redaction.ts'
import { CommandError, type Io, usageError } from '../command.ts'
import { makeFolder } from '../files.ts'
import { openReader } from '../stores.ts'
import {
  type FILTER_OPTIONS,
  type FoundTask,
  newestOf,
  openTasksOf,
  readFilters,
  readLimit,
  tasksOf,
  OPEN_STATES
} from './source.ts'

/** The options of an export of histories. */
type HistoryValues = { readonly [Name in keyof typeof FILTER_OPTIONS]?: string | undefined } & {
  readonly history: string
  readonly tenant?: string | undefined
  readonly principal?: string | undefined
  readonly limit?: string | undefined
  readonly redact?: boolean | undefined
  readonly out?: string | undefined
  readonly html?: boolean | undefined
  readonly svg?: boolean | undefined
}

/** The callbacks of an export. */
interface Progress {
  /** Receives a message about a task that is left out. */
  readonly report: (message: string) => void
  readonly exported: () => void
}

/**
 * Writes the histories of open tasks into a folder, each in a file of its own that is whole at once. One task is in
 * memory at a time. A file of the same task at the same place is written again.
 */
export async function exportHistories(
  values: HistoryValues,
  db: string | undefined,
  ids: readonly string[],
  progress: Progress,
  io: Io
): Promise<void> {
  if (db === undefined) throw usageError('--history needs --db: an agent does not give the journals of its tasks.')
  if (values.out !== undefined || values.html === true || values.svg === true)
    throw usageError('--history writes files into its folder. Leave out --out, --html and --svg.')
  const { report, exported } = progress
  const folder = resolve(io.cwd, values.history)
  const store = await openReader(db, io.cwd, { warn: report, error: report })
  try {
    const tasks = ids.length > 0 ? namedTasks(store, ids, values, report) : chosenTasks(store, values, io)
    await makeFolder(folder).catch(notWritten(folder))
    for await (const { task, scope } of tasks) {
      io.signal.throwIfAborted()
      try {
        const found = await readRecord(store, { ...(scope as Scope), contextId: String(task.contextId) }, task.id)
        if (!found) {
          /* c8 ignore next -- a task that was listed as open has ended meanwhile */
          if (ids.length > 0) report(`Task ${task.id} has ended, so it has no history.`)
          continue
        }
        const name = fileName(found.row)
        const digest = definitionOfSnapshot(found.row.snapshot)
        const definition = digest === undefined ? undefined : await store.readDefinition(digest)
        const shown = values.redact === true ? redactedTask(found) : found
        await writeWhole(join(folder, name), historyText(shown, definition))
        exported()
      } catch (error) {
        if (!isA2AError(error)) throw error
        report(error.message)
      }
    }
  } finally {
    await store.close()
  }
}

async function* namedTasks(
  store: StoreReader,
  ids: readonly string[],
  values: HistoryValues,
  report: (message: string) => void
): AsyncGenerator<FoundTask, void, undefined> {
  const scopes = await scopesOf(store, values)
  for (const id of ids) {
    const found = await taskIn(store, scopes, id)
    if (found) yield found
    else report(`Task ${id} is not there.`)
  }
}

async function taskIn(store: StoreReader, scopes: readonly Scope[], id: string): Promise<FoundTask | undefined> {
  for (const scope of scopes) {
    const stored = await store.readTask(scope, id, { historyLength: 0, artifacts: false })
    if (stored) return { task: stored.task, scope }
  }
  return undefined
}

async function* chosenTasks(
  store: StoreReader,
  values: HistoryValues,
  { clock, signal }: Io
): AsyncGenerator<FoundTask, void, undefined> {
  const { limit } = values
  const filters = readFilters(values, clock.now())
  const scopes = await scopesOf(store, values)
  if (limit === undefined) {
    for (const scope of scopes) yield* openTasksOf(store, scope, filters, signal)
    return
  }
  const states = OPEN_STATES.filter(state => state === (filters.state ?? state))
  const newest: FoundTask[] = []
  for (const state of states)
    newest.push(
      ...(await newestOf(scope => tasksOf(store, scope, { ...filters, state }, signal), scopes, readLimit(limit)))
    )
  yield* newest.toSorted((one, other) => timeOf(other).localeCompare(timeOf(one))).slice(0, readLimit(limit))
}

function timeOf({ task }: FoundTask): string {
  return String(task.status.timestamp)
}

/** The longest id that is the name of a file as it is. */
const LONGEST = 100

/** `TASK-GENERATION.json`, with a digest if the id cannot be the name of a file. */
function fileName({ taskId, generation }: RecordedTask['row']): string {
  if (/^\w[\w.-]*$/.test(taskId) && taskId.length <= LONGEST) return `${taskId}-${generation}.json`
  const digest = createHash('sha256').update(taskId).digest('hex').slice(0, 12)
  return `_${taskId.replaceAll(/[^\w.-]/g, '_').slice(0, LONGEST)}-${digest}-${generation}.json`
}

function notWritten(path: string): (cause: Error) => never {
  return cause => {
    throw new CommandError(`${path} cannot be written: ${cause.message}. Give another folder with --history.`, {
      cause
    })
  }
}

/** Writes a file that gets its name when it is whole. */
async function writeWhole(path: string, text: string): Promise<void> {
  const draft = `${path}.${process.pid}.part`
  try {
    await writeFile(draft, text)
    await rename(draft, path)
  } catch (error) {
    notWritten(path)(error as Error)
  } finally {
    await rm(draft, { force: true })
  }
}
