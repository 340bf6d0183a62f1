import { definitionOfSnapshot, versionOfSnapshot } from '../../../runtime/store/rows.ts'
import type { ContextKey, Store } from '../../../runtime/store/store.ts'
import {
  dryRunRestore,
  parseOutline,
  readRecord,
  replayTask,
  type RestoreOutlook,
  type SavedTask,
  type TaskReplay,
  type WorkStore
} from '../../../runtime/work-port.ts'
import type { PersistedSnapshot } from '../../../runtime/xstate/persisted-snapshot.ts'
import type { OpenTask, StoreReader } from '../../rows/store-reader.ts'
import { differenceText } from '../histories/replay-histories.ts'
import { type AgentDiff, type AgentSide, diffOutlines } from './agent-diff.ts'
import { detailsOf } from './verdict-words.ts'
import { type ChartVerdicts, type ConfigurationVerdict, placeKey, type StoredVerdict } from './verdicts.ts'

/** The verdict on one stored task. */
export interface TaskVerdict extends ContextKey {
  readonly taskId: string
  readonly state: OpenTask['state']
  readonly verdict: StoredVerdict
  /** Clauses, the most important first; empty for `same`. */
  readonly reasons: readonly string[]
  /** Whether the agent's `migrate` has converted it. */
  readonly isMigrated?: true
  /** The version and the digest of the definition that stored it, if it has them. */
  readonly version?: string
  readonly definition?: string
  /** Where it is: XState's state value, or the word of a function. */
  readonly configuration?: unknown
  /** For a function whose words differ: the number of the word, and both sides. */
  readonly word?: number
  readonly before?: string
  readonly after?: string
}

/** The verdict on one stored task, with the comparison behind it. */
export interface JudgedTask extends TaskVerdict {
  /** All that is said of it, as clauses: reasons, endings, and both ways of guards. */
  readonly details: readonly string[]
  /** Missing if its definition is not known. */
  readonly diff?: AgentDiff
}

/** Stored tasks that are in one configuration, or at one word, and have one verdict. */
export interface StoredGroup extends Omit<ConfigurationVerdict, 'verdict'> {
  readonly verdict: StoredVerdict
  readonly tasks: number
  /** The first of them, at most 100. */
  readonly ids: readonly string[]
}

/** A stored definition with open tasks, compared. */
export interface DefinitionDiff {
  readonly digest?: string
  readonly version?: string
  /** Why it is not compared; a sentence. */
  readonly problem?: string
  /** The comparison; its charts have their changes, and their configurations are in `groups`. */
  readonly diff?: AgentDiff
  readonly groups: readonly StoredGroup[]
  readonly tasks: number
}

/** The open tasks of a store, compared with new code. */
export interface StoredDiff {
  readonly version: string
  readonly tasks: number
  /** The definitions, those with most tasks first. */
  readonly definitions: readonly DefinitionDiff[]
}

/** The options of a comparison. */
export interface StoredDiffOptions {
  readonly signal: AbortSignal
  /** Gets the verdict of each task. */
  readonly onTask: (verdict: TaskVerdict) => void
}

/** How many tasks are in memory at once. */
const PORTION = 200
/** The maximum number of ids of a group. */
const MOST_IDS = 100
/** The maximum number of groups of a definition. Others are counted by their verdict. */
const MOST_GROUPS = 1000
/** How long the code of a task may stand still: a store may have many tasks. */
const PATIENCE = { stuckMs: 25, outsideMs: 1000 }
/** The maximum number of configurations whose restore is remembered. */
const MOST_RESTORES = 10_000

/** The worst first. */
const ORDER: readonly StoredVerdict[] = [
  'not restored',
  'never ends',
  'unknown',
  'not compared',
  'depends',
  'other answer',
  'otherwise',
  'same'
]

/**
 * Compares every open task of a store with the agent of a module: the definition with which it was stored, and where it
 * is. A function or generator runs with its journal. Writes nothing.
 */
export async function diffStored(
  reader: StoreReader,
  after: AgentSide,
  { signal, onTask }: StoredDiffOptions
): Promise<StoredDiff> {
  const comparison = new StoredComparison(reader, after)
  let next: string | undefined = ''
  while (next !== undefined) {
    const page = await reader.openTasks(PORTION, next)
    for (const task of page.tasks) {
      signal.throwIfAborted()
      onTask(await comparison.add(task))
    }
    next = page.next
  }
  return comparison.result()
}

/** A definition, and its tasks so far. */
interface Found {
  readonly digest: string | undefined
  readonly version: string
  readonly problem?: string
  readonly diff?: AgentDiff
  readonly verdicts: ReadonlyMap<string, ChartVerdicts>
  readonly groups: Map<string, { -readonly [Member in keyof StoredGroup]: StoredGroup[Member] }>
  tasks: number
}

/** The verdict on a task, and the group that counts it. */
type Judged = Omit<StoredGroup, 'tasks' | 'ids'> & {
  readonly isMigrated?: boolean
  readonly word?: number
  readonly before?: string
  readonly after?: string
}

const NO_ENDINGS = { added: [], removed: [] } as const

/** The reads of a comparison. */
type ComparedStore = WorkStore & Pick<Store, 'loadContext' | 'readSnapshot' | 'readDefinition'>

/** How a comparison follows code. */
interface ComparisonLimits {
  /** The maximum number of configurations of a chart that are followed. */
  readonly most?: number
  /** Whether functions and generators run with the journals of tasks. Default true. */
  readonly replays?: boolean
}

/** Compares stored tasks, and the definitions that stored them, with an agent. Each definition is compared once. */
export class StoredComparison {
  readonly #reader: ComparedStore
  readonly #after: AgentSide
  readonly #limits: ComparisonLimits
  readonly #found = new Map<string, Found>()
  readonly #restores = new Map<string, RestoreOutlook>()

  constructor(reader: ComparedStore, after: AgentSide, limits: ComparisonLimits = {}) {
    this.#reader = reader
    this.#after = after
    this.#limits = limits
  }

  /** The verdict on a task, which is counted. */
  async add(task: OpenTask): Promise<TaskVerdict> {
    const found = await this.#definitionOf(task.snapshot ?? '')
    const judged = await this.#judge(task, found)
    count(found, judged, task.taskId)
    return this.#verdictOf(task, found, judged)
  }

  /** The verdict on a task with all that is said of it, and the comparison of the definition that stored it. */
  async judge(task: OpenTask & { readonly snapshot: string }): Promise<JudgedTask> {
    const found = await this.#definitionOf(task.snapshot)
    const judged = await this.#judge(task, found)
    const details = detailsOf(judged)
    if (judged.verdict === 'not compared' && found.problem !== undefined) details.push(found.problem)
    return { ...this.#verdictOf(task, found, judged), details, ...(found.diff && { diff: found.diff }) }
  }

  /** The comparison of a definition, or why it is not compared; a sentence. */
  async definition(digest: string, version: string): Promise<Pick<DefinitionDiff, 'diff' | 'problem'>> {
    const { diff, problem } = await this.#definition(digest, version)
    return { ...(diff && { diff }), ...(problem !== undefined && { problem }) }
  }

  #verdictOf(task: OpenTask, found: Found, judged: Judged): TaskVerdict {
    const { taskId, state, tenant, principal, contextId } = task
    const { verdict, depends, isMigrated, state: configuration, word, before, after } = judged
    const reasons = [...judged.reasons, ...depends.map(({ says }) => `depends on ${says}`)]
    return {
      tenant,
      principal,
      contextId,
      taskId,
      state,
      verdict,
      reasons,
      ...(isMigrated && { isMigrated }),
      ...(found.version !== '' && { version: found.version }),
      ...(found.digest !== undefined && { definition: found.digest }),
      configuration,
      ...(word !== undefined && { word }),
      ...(before !== undefined && { before, after: String(after) })
    }
  }

  result(): StoredDiff {
    const definitions = [...this.#found.values()]
      .toSorted((one, other) => other.tasks - one.tasks)
      .map(({ digest, version, problem, diff, groups, tasks }): DefinitionDiff => ({
        ...(digest !== undefined && { digest }),
        ...(version !== '' && { version }),
        ...(problem !== undefined && { problem }),
        ...(diff && { diff }),
        groups: [...groups.values()].toSorted(
          (one, other) => ORDER.indexOf(one.verdict) - ORDER.indexOf(other.verdict)
        ),
        tasks
      }))
    const tasks = definitions.reduce((sum, one) => sum + one.tasks, 0)
    return { version: this.#after.agent.version, tasks, definitions }
  }

  #definitionOf(snapshot: string): Promise<Found> {
    return this.#definition(definitionOfSnapshot(snapshot), versionOfSnapshot(snapshot))
  }

  async #definition(digest: string | undefined, version: string): Promise<Found> {
    const name = JSON.stringify([digest ?? '', version])
    const known = this.#found.get(name)
    if (known) return known
    const found = { digest, version, groups: new Map(), tasks: 0, ...(await this.#compared(digest)) }
    this.#found.set(name, found)
    return found
  }

  async #compared(digest: string | undefined): Promise<Pick<Found, 'diff' | 'problem' | 'verdicts'>> {
    const verdicts = new Map<string, ChartVerdicts>()
    if (digest === undefined) return { verdicts, problem: 'No definition was stored: older tasks have none.' }
    const text = await this.#reader.readDefinition?.(digest)
    if (text === undefined) return { verdicts, problem: `The definition ${digest} is not in the store.` }
    try {
      const diff = diffOutlines(parseOutline(text), this.#after, this.#limits.most)
      return { verdicts: new Map(diff.charts.map(({ chart, verdicts }) => [chart, verdicts])), diff }
    } catch (error) {
      return { verdicts, problem: (error as Error).message }
    }
  }

  async #judge(task: OpenTask, found: Found): Promise<Judged> {
    const { snapshot } = task
    if (snapshot === undefined) return judged('unknown state', 'not restored', ['its stored data is damaged'])
    const saved = JSON.parse(snapshot) as SavedTask
    const work = saved.children?.['work']?.snapshot
    const state = work === undefined ? 'not begun' : 'value' in work ? work.value : 'a function'
    const { outlook, reason = '' } = this.#restoreOf({ ...task, snapshot }, saved, work)
    if (outlook === 'fails') return judged(state, 'not restored', [reason])
    const isMigrated = outlook === 'migrates'
    if (work === undefined) return { ...this.#notBegun(found), isMigrated }
    if (!('value' in work)) return this.#judgeFunction(task, found)
    return { ...judgeChart(work, found), isMigrated }
  }

  #restoreOf(
    task: OpenTask & { readonly snapshot: string },
    { version }: SavedTask,
    work: PersistedSnapshot | undefined
  ): RestoreOutlook {
    const { agent } = this.#after
    const restore = () => dryRunRestore(agent, { ...task, generation: 0 })
    const converts = agent.migrate !== undefined || agent.renamed !== undefined
    const isConverted = converts && version !== agent.version && agent.earlier?.[version ?? ''] === undefined
    if (isConverted && work !== undefined) return restore()
    const signature = JSON.stringify([version, task.wakeAtMs === 0, work && restoredParts(work)])
    const known = this.#restores.get(signature)
    if (known) return known
    const made = restore()
    if (this.#restores.size < MOST_RESTORES) this.#restores.set(signature, made)
    return made
  }

  #notBegun({ diff }: Found): Judged {
    if (!diff) return judged('not begun', 'not compared', ['it has not begun, and begins with the new code'])
    if (isUnchanged(diff)) return judged('not begun', 'same', [])
    return judged('not begun', 'otherwise', ['it has not begun, and begins with the new code'])
  }

  async #judgeFunction(task: OpenTask, { diff }: Found): Promise<Judged> {
    if (diff?.work?.verdict === 'same') return judged('a function', 'same', [])
    if (this.#limits.replays === false)
      return judged('a function', diff ? 'depends' : 'not compared', [
        'a function runs again from its start with its journal',
        'taskchart diff --db says whether it comes to where it is'
      ])
    const replay = await this.#replay(task)
    if (!replay) return judged('a function', 'same', ['it has ended meanwhile'])
    const { outcome, difference, consequence } = replay
    if (outcome === 'same')
      return judged('a function', diff ? 'otherwise' : 'not compared', [
        'it comes to where it is',
        'then it goes on with the new code'
      ])
    const word = /^word (\d+)$/.exec(String(difference?.at))?.[1]
    return {
      ...judged(word ? `word ${word}` : 'a function', REPLAYED[consequence ?? outcome], [differenceText(replay)]),
      ...(word && { word: Number(word) }),
      ...(difference && { before: difference.was, after: difference.is })
    }
  }

  /** Runs a stored function or generator up to where it is; `undefined` if it has ended meanwhile. */
  async #replay(task: OpenTask): Promise<TaskReplay | undefined> {
    try {
      const record = await readRecord(this.#reader, keyOf(task), task.taskId)
      return record && (await replayTask(this.#after.agent, { ...record, store: this.#reader }, PATIENCE))
    } catch (error) {
      return { outcome: 'cannot say', reason: (error as Error).message }
    }
  }
}

/** The verdict of an outcome, and of what a task does that diverges. If it waits, what comes after that decides. */
const REPLAYED = {
  otherwise: 'otherwise',
  'other answer': 'other answer',
  'cannot say': 'depends',
  'not restored': 'not restored',
  diverges: 'not restored',
  fails: 'not restored',
  ends: 'otherwise',
  waits: 'depends'
} as const satisfies Record<
  Exclude<TaskReplay['outcome'], 'same'> | NonNullable<TaskReplay['consequence']>,
  StoredVerdict
>

function keyOf({ tenant, principal, contextId }: OpenTask): ContextKey {
  return { tenant, principal, contextId }
}

function judged(state: unknown, verdict: StoredVerdict, reasons: readonly string[]): Judged {
  return { state, verdict, reasons, endings: NO_ENDINGS, depends: [] }
}

/** Whether two agents are equal in all that is compared. */
function isUnchanged({ changes, charts, work }: AgentDiff): boolean {
  const isSame = charts.every(
    chart => chart.changes.length === 0 && chart.configurations.every(({ verdict }) => verdict === 'same')
  )
  return changes.length === 0 && isSame && (work === undefined || work.verdict === 'same')
}

/** The verdict on a stored chart, and on the charts among its actors: the worst. */
function judgeChart(work: PersistedSnapshot, { diff, verdicts }: Found): Judged {
  const history = historyOf(work)
  if (!diff) return { ...judged(work.value, 'not compared', ['it is restored']), ...(history && { history }) }
  const { value: state, children = {} } = work
  const own = verdictAt('work', work, verdicts)
  const below = Object.entries(children).flatMap(([id, { src, snapshot }]) =>
    verdicts.has(`child:${String(src)}`) && snapshot.status === 'active' && 'value' in snapshot
      ? [{ id, ...verdictAt(`child:${String(src)}`, snapshot, verdicts) }]
      : []
  )
  const [{ verdict } = own] = [own, ...below].toSorted(
    (one, other) => ORDER.indexOf(one.verdict) - ORDER.indexOf(other.verdict)
  )
  const more = below.filter(({ verdict }) => verdict !== 'same')
  return {
    ...own,
    state,
    ...(history && { history }),
    verdict,
    reasons: [
      ...own.reasons,
      ...more.flatMap(({ id, verdict, reasons, state }) => [
        `the actor ${id} in ${placeText(state)}: ${[verdict, ...reasons].join('; ')}`
      ])
    ],
    depends: [...own.depends, ...more.flatMap(({ depends }) => depends)]
  }
}

function verdictAt(
  chart: string,
  snapshot: PersistedSnapshot,
  verdicts: Found['verdicts']
): Omit<Judged, 'isMigrated'> {
  const found = (verdicts.get(chart) as ChartVerdicts).at(snapshot.value, historyOf(snapshot))
  // The task itself is restored, as a try has shown.
  if (found.verdict === 'not restored')
    return { ...found, verdict: 'unknown', reasons: ['it is restored', ...found.reasons] }
  return found
}

/** The states to which the history of a stored chart leads, as a comparison has them. */
function historyOf({ historyValue = {} }: PersistedSnapshot): Record<string, string[]> | undefined {
  const entries = Object.entries(historyValue).map(([id, states]) => [id, states.map(({ id }) => id).toSorted()])
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as Record<string, string[]>)
}

function placeText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** The parts of a stored chart that a restore compares with the chart. */
function restoredParts({ status, value, historyValue, children = {}, stopped }: PersistedSnapshot): unknown {
  return [
    status,
    value,
    historyValue,
    stopped,
    Object.entries(children).map(([id, { src, snapshot }]) => [id, src, restoredParts(snapshot)])
  ]
}

function count(found: Found, judged: Judged, taskId: string): void {
  const { state, history, verdict, reasons, endings, depends } = judged
  const name = JSON.stringify([placeKey(state, history), verdict, reasons])
  const isMore = found.groups.size >= MOST_GROUPS && !found.groups.has(name)
  const key = isMore ? verdict : name
  const group = found.groups.get(key) ?? {
    state: isMore ? 'other places' : state,
    ...(history && !isMore && { history }),
    verdict,
    reasons: isMore ? [] : reasons,
    endings,
    depends,
    tasks: 0,
    ids: []
  }
  found.groups.set(key, group)
  found.tasks += 1
  group.tasks += 1
  if (group.ids.length < MOST_IDS) group.ids = [...group.ids, taskId]
}
