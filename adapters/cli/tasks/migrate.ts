import { isDeepStrictEqual } from 'node:util'
import type { AnyMachineSnapshot } from 'xstate'
import { Monitor } from '../../../machines/properties/monitor.ts'
import { modeAfter, type Property } from '../../../machines/properties/properties.ts'
import { isTerminal, TASK_STATES, type TaskState } from '../../../machines/protocol/states.ts'
import type { Agent } from '../../../runtime/index.ts'
import type { Scope } from '../../../runtime/store/rows.ts'
import type { ContextKey, StoredTask, TaskCursor, TaskEvent } from '../../../runtime/store/store.ts'
import { agentOfVersion, readOpenRow, tryRestore } from '../../../runtime/work-port.ts'
import type { PersistedSnapshot } from '../../../runtime/xstate/persisted-snapshot.ts'
import { scopesOf, type StoreReader } from '../../rows/store-reader.ts'
import type { AgentSide } from '../../testing/diff/agent-diff.ts'
import { StoredComparison } from '../../testing/diff/stored-diff.ts'
import { statePaths } from '../../testing/diff/verdict-words.ts'
import type { StoredVerdict } from '../../testing/diff/verdicts.ts'
import { OUTPUT_OPTIONS, type OutputForm, readArguments, readOutput } from '../arguments.ts'
import { EXIT, type Io, usageError } from '../command.ts'
import { VERDICT_COLOURS } from '../diff/diff-text.ts'
import { loadUnlessStopped } from '../load-agent.ts'
import { openReader } from '../stores.ts'
import { jsonLine, oneLine, styleText } from '../text/terminal.ts'

const OPTIONS = {
  'dry-run': { type: 'boolean' },
  db: { type: 'string' },
  sample: { type: 'string' },
  tenant: { type: 'string' },
  principal: { type: 'string' },
  ...OUTPUT_OPTIONS
} as const

/** The work of a task, as far as it is shown. */
interface ShownWork {
  /** XState's state value; `undefined` for work that is no chart. */
  readonly state: unknown
  readonly context: unknown
  /** The logic of its actors, by their ids. */
  readonly actors: Readonly<Record<string, unknown>>
}

/** An open task before and after a migration that was tried. */
interface TriedTask extends ContextKey {
  readonly taskId: string
  readonly state: TaskState
  /** The version that stored it, and the one with whose work it goes on. */
  readonly from?: string
  readonly to: string
  readonly before?: ShownWork
  readonly after?: ShownWork
  readonly verdict: StoredVerdict
  /** Clauses. */
  readonly reasons: readonly string[]
  /** The properties of the agent that the result violates, or the task before it; each as it is named. */
  readonly violated: readonly string[]
}

const CANNOT: readonly StoredVerdict[] = ['never ends', 'not restored']

/** `taskchart tasks migrate --dry-run`: what an agent would make of every open task, or of a sample. */
export async function tryMigrations(args: readonly string[], io: Io): Promise<number> {
  const { values, positionals } = readArguments(args, OPTIONS, ['AGENT.ts|js'])
  const form = readOutput(values)
  if (!values['dry-run'])
    throw usageError('Servers migrate tasks when they load them. This command only tries that: add --dry-run.')
  if (values.db === undefined) throw usageError('--db FILE is missing: only a file or database has stored tasks.')
  const sample = readSample(values.sample)
  const module = await loadUnlessStopped(positionals[0], io)
  let isBroken = false
  const report = (message: string) => io.stderr.write(`taskchart: ${oneLine(message)}\n`)
  const reportDamage = (message: string) => {
    // A damaged task is left out.
    isBroken = true
    report(message)
  }
  const store = await openReader(values.db, io.cwd, { warn: report, error: reportDamage })
  const counts = new Map<StoredVerdict, number>()
  let open = 0
  try {
    const scopes = await scopesOf(store, values)
    for (const scope of scopes)
      for (const state of OPEN_STATES) open += (await store.listTasks(scope, { state, limit: 1 })).total
    const printer = new Printer(io, form)
    const trial = new Trial(store, module)
    const stride = strideOf(open, sample)
    let n = 0
    for (const scope of scopes)
      for await (const stored of openTasks(store, scope)) {
        io.signal.throwIfAborted()
        n += 1
        const tried = (n - 1) % stride === 0 && (await trial.of(scope, stored))
        if (!tried) continue
        counts.set(tried.verdict, (counts.get(tried.verdict) ?? 0) + 1)
        isBroken ||= CANNOT.includes(tried.verdict) || tried.violated.length > 0
        printer.add(tried)
      }
    printer.end()
  } finally {
    await store.close()
  }
  io.stderr.write(`${summaryOf(counts)}${sample === undefined ? '' : `, a sample of ${open} open tasks`}\n`)
  if (isBroken) return EXIT.unsuccessful
  return [...counts.keys()].every(verdict => verdict === 'same') ? EXIT.ok : EXIT.waiting
}

function readSample(given: string | undefined): number | undefined {
  if (given === undefined) return undefined
  if (!/^[1-9]\d{0,8}$/.test(given))
    throw usageError(`--sample takes a number from 1 on, not ${JSON.stringify(given)}.`)
  return Number(given)
}

/** Of how many tasks one is taken, so that a sample is spread evenly over all. */
function strideOf(open: number, sample = open): number {
  return Math.max(1, Math.ceil(open / Math.max(1, sample)))
}

const OPEN_STATES = (Object.keys(TASK_STATES) as TaskState[]).filter(state => !isTerminal(state))

/** How many tasks are read at once. */
const PAGE = 100

/** The open tasks of a scope. One that changes its state meanwhile may come twice, or not at all. */
async function* openTasks(store: StoreReader, scope: Scope): AsyncGenerator<StoredTask, void, undefined> {
  for (const state of OPEN_STATES) {
    let after: TaskCursor | undefined
    do {
      const page = await store.listTasks(scope, { state, after, limit: PAGE, historyLength: 0, artifacts: false })
      yield* page.tasks
      after = page.next
    } while (after)
  }
}

/** Tries tasks with an agent, and compares them as `taskchart diff --db` does. */
class Trial {
  readonly #store: StoreReader
  readonly #agent: Agent
  readonly #comparison: StoredComparison

  constructor(store: StoreReader, side: AgentSide) {
    this.#store = store
    this.#agent = side.agent
    this.#comparison = new StoredComparison(store, side)
  }

  /** Tries one task; `undefined` if it has ended meanwhile. */
  async of(scope: Scope, { task: { id, contextId, status }, generation }: StoredTask): Promise<TriedTask | undefined> {
    const agent = this.#agent
    const key = { ...scope, contextId }
    const given = { ...key, taskId: id, state: status.state }
    try {
      const row = await readOpenRow(this.#store, key, id)
      if (!row) return undefined
      const { from, to, before, after, chart } = tryRestore(agent, row)
      const { properties } = agentOfVersion(agent, to)
      const { verdict, details } = await this.#comparison.judge({ ...key, ...row })
      const events = properties && chart ? await this.#store.readEvents(scope, id, 0, generation) : []
      return {
        ...given,
        ...(from !== undefined && { from }),
        to,
        ...(before && { before: shownWork(before) }),
        ...(after && { after: shownWork(after) }),
        verdict,
        reasons: details,
        violated: properties && chart ? violatedIn(properties, chart, events) : []
      }
    } catch (error) {
      return { ...given, to: agent.version, verdict: 'not restored', reasons: [(error as Error).message], violated: [] }
    }
  }
}

/** The work of a stored snapshot, as it is shown. */
function shownWork({ value, children = {}, ...snapshot }: PersistedSnapshot): ShownWork {
  const actors = Object.entries(children).map(([id, { src }]) => [id, src])
  const { context } = snapshot as { readonly context?: unknown }
  return { state: value, context, actors: Object.fromEntries(actors) }
}

/**
 * The properties that a restored chart violates by its state, or the events of its task so far by their order. Others
 * are about what follows.
 */
function violatedIn(
  properties: Readonly<Record<string, Property>>,
  chart: AnyMachineSnapshot,
  events: readonly TaskEvent[]
): string[] {
  const now = { kind: 'state', chart, name: '' } as const
  const byState = Object.entries(properties)
    .filter(([, { claim, start }]) => start === 'watches' && (claim.word === 'always' || claim.word === 'never'))
    .filter(([, property]) => modeAfter(property, property.start, [now]) === 'violated')
  const monitor = new Monitor(properties)
  const after = events.reduce((state, { update }) => monitor.after(state, update), monitor.start)
  return [...byState.map(([name]) => name), ...monitor.violatedBetween(monitor.start, after)]
}

/** Prints tasks as they come. */
class Printer {
  readonly #io: Io
  readonly #form: OutputForm
  #count = 0

  constructor(io: Io, form: OutputForm) {
    this.#io = io
    this.#form = form
  }

  add(tried: TriedTask): void {
    const { stdout, colours } = this.#io
    if (this.#form === 'text') for (const line of linesOf(tried, colours.stdout)) stdout.write(`${line}\n`)
    else if (this.#form === 'lines') stdout.write(jsonLine(tried))
    else stdout.write(`${this.#count === 0 ? '[' : ','}\n${jsonLine(tried).trimEnd()}`)
    this.#count += 1
  }

  end(): void {
    if (this.#form === 'json') this.#io.stdout.write(this.#count === 0 ? '[]\n' : '\n]\n')
  }
}

const WIDTH = 'not restored'.length + 2

/** A task in lines: `same  4f1c  version 1 → 2  choosing → asking`, and below it what else there is to say. */
function linesOf(
  { taskId, from, to, before, after, verdict, reasons, violated }: TriedTask,
  hasColours: boolean
): string[] {
  const versions = from === to ? `version ${to}` : `version ${from ?? 'none'} → ${to}`
  const places = [before, after].flatMap(work => (work?.state === undefined ? [] : [statePaths(work.state)]))
  const way = [...new Set(places)].join(' → ')
  const mark = styleText(hasColours, VERDICT_COLOURS[verdict], verdict.padEnd(WIDTH - 2))
  const details = [
    ...reasons,
    ...(before && after
      ? [
          ...differences('context', before.context, after.context),
          ...differences('actors', before.actors, after.actors)
        ]
      : []),
    ...violated.map(name => `violates ${JSON.stringify(name)}`)
  ]
  return [
    `${mark}  ${[taskId, versions, way]
      .filter(part => part !== '')
      .map(oneLine)
      .join('  ')}`,
    ...details.map(line => `${' '.repeat(WIDTH)}${oneLine(line)}`)
  ]
}

/** The members of an object that differ, by their names: `context: colour is gone, colours is new`. */
function differences(what: string, before: unknown, after: unknown): string[] {
  const had: Readonly<Record<string, unknown>> = Object(before)
  const has: Readonly<Record<string, unknown>> = Object(after)
  const names = [...new Set([...Object.keys(had), ...Object.keys(has)])]
  const says = names.flatMap(name => {
    if (!Object.hasOwn(had, name)) return [`${name} is new`]
    if (!Object.hasOwn(has, name)) return [`${name} is gone`]
    return isDeepStrictEqual(had[name], has[name]) ? [] : [`${name} has changed`]
  })
  return says.length === 0 ? [] : [`${what}: ${says.join(', ')}`]
}

/** `3 tasks: 2 same, 1 depends`. */
function summaryOf(counts: ReadonlyMap<StoredVerdict, number>): string {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const each = Array.from(counts, ([verdict, count]) => `${count} ${verdict}`)
  return [`${total} ${total === 1 ? 'task' : 'tasks'}`, ...(each.length > 0 ? [each.join(', ')] : [])].join(': ')
}
