import type { TaskStatusUpdateEvent } from '../../../machines/protocol/objects.ts'
import type { Scope } from '../../../runtime/store/rows.ts'
import { patchIn } from '../../../runtime/work-port.ts'
import { scopesOf, type StoreReader } from '../../rows/store-reader.ts'
import { OUTPUT_OPTIONS, readArguments, readOutput } from '../arguments.ts'
import { EXIT, type Io, usageError } from '../command.ts'
import { openReader } from '../stores.ts'
import { tableLines } from '../text/format.ts'
import { jsonLine, oneLine } from '../text/terminal.ts'
import { openTasksOf } from './source.ts'

const OPTIONS = {
  db: { type: 'string' },
  tenant: { type: 'string' },
  principal: { type: 'string' },
  ...OUTPUT_OPTIONS
} as const

/** The open tasks of one patch, by the answer that `work.patch` gave them. */
interface PatchUse {
  readonly patch: string
  /** The number of tasks that run the code with the patch. */
  readonly with: number
  /** Ids of the tasks that run the code without it. */
  readonly without: readonly string[]
  /** Ids of the tasks that were opened before the patch was first met, and have not been asked. */
  readonly unknown: readonly string[]
  /** False also if a damaged task could not be read: it may need what was before. */
  readonly canBeRetired: boolean
}

/** An open task, and the patches that its journal has. */
interface OpenTask {
  readonly id: string
  /** In milliseconds since 1970. */
  readonly openedMs: number
  readonly patches: ReadonlyMap<string, { readonly isPatched: boolean; readonly atMs: number }>
}

/** `taskchart tasks patches`: says which patches of functions and generators can be retired. */
export async function printPatches(args: readonly string[], io: Io): Promise<number> {
  const { values } = readArguments(args, OPTIONS, [])
  const { db } = values
  const form = readOutput(values)
  if (db === undefined) throw usageError('--db FILE is missing: only a file or database has the journals of tasks.')
  let isWhole = true
  const report = (message: string) => io.stderr.write(`taskchart: ${oneLine(message)}\n`)
  const reportDamage = (message: string) => {
    isWhole = false
    report(message)
  }
  const store = await openReader(db, io.cwd, { warn: report, error: reportDamage })
  try {
    const tasks = await openTasks(store, await scopesOf(store, values), io.signal)
    const uses = usesOf(tasks, isWhole)
    const lines = {
      json: () => [jsonLine(uses)],
      lines: () => uses.map(jsonLine),
      text: () => table(uses, io.screen?.columns)
    }
    for (const line of lines[form]()) io.stdout.write(line)
    if (uses.length === 0) io.stderr.write('No open task has come to a patch.\n')
    return EXIT.ok
  } finally {
    await store.close()
  }
}

async function openTasks(store: StoreReader, scopes: readonly Scope[], signal: AbortSignal): Promise<OpenTask[]> {
  const open = new Map<string, OpenTask>()
  for (const scope of scopes)
    for await (const { task } of openTasksOf(store, scope, {}, signal))
      open.set(task.id, await openTask(store, scope, task.id))
  return [...open.values()].toSorted((one, other) => one.openedMs - other.openedMs || one.id.localeCompare(other.id))
}

async function openTask(store: StoreReader, scope: Scope, id: string): Promise<OpenTask> {
  const journal = await store.readJournal(scope, id)
  const [first] = await store.readEvents(scope, id, 0, 1)
  // A task begins with a status.
  const opened = first?.update as { readonly statusUpdate?: TaskStatusUpdateEvent } | undefined
  return {
    id,
    openedMs: Date.parse(String(opened?.statusUpdate?.status.timestamp)),
    patches: new Map(
      journal.flatMap(row => {
        const found = patchIn(row)
        return found ? [[found.name, found]] : []
      })
    )
  }
}

/**
 * The uses of each patch, by name. A task without an answer that was opened after the first one comes to the point with
 * the patch there. A task that was opened before may have passed
 * the point. `isWhole`: no task was damaged.
 */
function usesOf(tasks: readonly OpenTask[], isWhole: boolean): PatchUse[] {
  const names = new Set(tasks.flatMap(({ patches }) => [...patches.keys()]))
  return [...names].toSorted().map(patch => {
    const decisions = tasks.map(({ id, openedMs, patches }) => ({ id, openedMs, decision: patches.get(patch) }))
    const firstMs = Math.min(...decisions.map(({ decision }) => decision?.atMs ?? Infinity))
    const idsOf = (isMeant: (one: (typeof decisions)[number]) => boolean) =>
      decisions.flatMap(one => (isMeant(one) ? [one.id] : []))
    const without = idsOf(({ decision }) => decision?.isPatched === false)
    const unknown = idsOf(({ decision, openedMs }) => decision === undefined && !(openedMs > firstMs))
    return {
      patch,
      with: idsOf(({ decision }) => decision?.isPatched === true).length,
      without,
      unknown,
      canBeRetired: isWhole && without.length === 0 && unknown.length === 0
    }
  })
}

function table(uses: readonly PatchUse[], columns: number | undefined): string[] {
  if (uses.length === 0) return []
  const rows = uses.map(use =>
    [use.patch, String(use.with), String(use.without.length), String(use.unknown.length), verdictOf(use)].map(oneLine)
  )
  return tableLines([['PATCH', 'WITH', 'WITHOUT', 'UNKNOWN', 'CAN BE RETIRED'], ...rows], columns).map(
    line => `${line}\n`
  )
}

/** The most ids that a verdict names. */
const NAMED_TASKS = 3

function verdictOf({ without, unknown, canBeRetired }: PatchUse): string {
  if (canBeRetired) return 'yes'
  const ids = without.length > 0 ? without : unknown
  if (ids.length === 0) return 'no: a damaged task may need it'
  const more = ids.length > NAMED_TASKS ? `, and ${ids.length - NAMED_TASKS} more` : ''
  return `no: ${without.length > 0 ? 'without it go on' : 'not asked yet'} ${ids.slice(0, NAMED_TASKS).join(', ')}${more}`
}
