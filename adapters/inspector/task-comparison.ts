import type { Agent } from '../../runtime/index.ts'
import type { Logger } from '../../runtime/ports/logger.ts'
import { definitionOfSnapshot, versionOfSnapshot } from '../../runtime/store/rows.ts'
import type { ContextKey } from '../../runtime/store/store.ts'
import type { Observation } from '../../runtime/telemetry-port.ts'
import {
  type LocalModules,
  outlineForVersion,
  outlineText,
  readOpenRow,
  textDigest,
  tryRestore
} from '../../runtime/work-port.ts'
import type { PersistedSnapshot } from '../../runtime/xstate/persisted-snapshot.ts'
import { drawPair, type PairDrawings } from '../drawing/chart-drawing.ts'
import type { AgentDiff, ChartDiff } from '../testing/diff/agent-diff.ts'
import { type JudgedTask, StoredComparison } from '../testing/diff/stored-diff.ts'
import { activeStateIds, VERDICT_SENTENCES } from '../testing/diff/verdict-words.ts'
import type { ChartId, ComparedChart, ShownComparison } from './feed.ts'
import type { Redact } from './recorder/seen-step.ts'

/** The parts of the runtime that a comparison reads. */
interface ComparisonParts {
  readonly agent: Agent
  readonly store: Observation['store']
  /** Gives the local modules of the agent; without it they are not seen. */
  readonly localModules: (() => LocalModules) | undefined
  /** Whether functions and generators run with the journals of tasks. */
  readonly replays: boolean
  readonly redact: Redact
  readonly logger: Logger
}

/** The maximum number of configurations that are followed, so that a large chart does not hold up the agent. */
const MOST_CONFIGURATIONS = 200

/** The maximum number of changes and of clauses, and the longest of these in characters. */
const MOST_LINES = 200
const LONGEST_LINE = 600

/** Sentences for tasks to which no verdict applies. */
const GONE_ON = 'It has gone on with the agent of now.'
const ENDED = 'It has ended, so it does not go on.'

/** A definition before, and how its tasks go on. */
type Outcome = Pick<ShownComparison, 'verdict' | 'says' | 'details' | 'word'> & {
  readonly diff: AgentDiff | undefined
  /** The version that stored it. */
  readonly version: string
  /** The work as it is stored, and as it would go on. */
  readonly before?: PersistedSnapshot | undefined
  readonly now?: PersistedSnapshot | undefined
}

/** Compares tasks with an agent whose definition has changed since they were opened. */
export class TaskComparisons {
  readonly #parts: ComparisonParts
  readonly #comparison: StoredComparison
  /** The digests of what the agent is now for tasks of a version. */
  readonly #digests = new Map<string, string>()
  readonly #drawings = new Map<ChartDiff, Promise<PairDrawings>>()

  readonly #drawPair: typeof drawPair

  constructor(parts: ComparisonParts, draw = drawPair) {
    this.#parts = parts
    this.#drawPair = draw
    const { agent, store, replays, localModules } = parts
    this.#comparison = new StoredComparison(store, { agent, localModules }, { most: MOST_CONFIGURATIONS, replays })
  }

  /**
   * The comparison of a task; `undefined` if its agent has not changed since. `openedWith`: the digest of the definition
   * with which it was first seen, if known.
   */
  async of(key: ContextKey, taskId: string, openedWith: string | undefined): Promise<ShownComparison | undefined> {
    const outcome = await this.#outcomeOf(key, taskId, openedWith)
    return outcome && this.#shown(outcome)
  }

  async #outcomeOf(key: ContextKey, taskId: string, openedWith: string | undefined): Promise<Outcome | undefined> {
    const { agent, store } = this.#parts
    const row = await readOpenRow(store, key, taskId)
    if (!row) return this.#pastOf(openedWith, { verdict: 'ended', says: ENDED })
    const [digest, version] = [definitionOfSnapshot(row.snapshot), versionOfSnapshot(row.snapshot)]
    const isOld = digest === undefined ? version !== agent.version : digest !== this.#digestFor(version)
    if (!isOld) return this.#pastOf(openedWith, { verdict: 'gone on', says: GONE_ON })
    const judged = await this.#comparison.judge({ ...key, ...row })
    const { verdict, details, diff } = judged
    return {
      diff,
      version,
      verdict,
      says: VERDICT_SENTENCES[verdict],
      details,
      ...wordOf(judged),
      ...worksOf(agent, row)
    }
  }

  /** The outcome of a task that does not go on from another definition; `undefined` if it has seen none. */
  async #pastOf(openedWith: string | undefined, says: Pick<Outcome, 'verdict' | 'says'>): Promise<Outcome | undefined> {
    if (openedWith === undefined) return undefined
    const text = await this.#parts.store.readDefinition?.(openedWith)
    const version = text === undefined ? undefined : (JSON.parse(text) as { readonly version: string }).version
    if (version === undefined || openedWith === this.#digestFor(version)) return undefined
    const { diff, problem } = await this.#comparison.definition(openedWith, version)
    return { diff, version, ...says, details: problem === undefined ? [] : [problem] }
  }

  #digestFor(version: string): string {
    const known = this.#digests.get(version)
    if (known !== undefined) return known
    const { agent, localModules } = this.#parts
    const digest = textDigest(outlineText(outlineForVersion(agent, version, localModules?.())))
    this.#digests.set(version, digest)
    return digest
  }

  async #shown({ diff, version, verdict, says, details, word, before, now }: Outcome): Promise<ShownComparison> {
    const changes = [...(diff?.changes ?? []), ...(diff?.charts ?? []).flatMap(chart => chart.changes)]
    const charts = (diff?.charts ?? []).map(async (chart): Promise<ComparedChart> => ({
      id: chart.chart as ChartId,
      ...(await this.#drawn(chart)),
      stands: {
        before: activeStateIds(chart.before.root, snapshotIn(chart.chart, before)),
        now: activeStateIds(chart.after.root, snapshotIn(chart.chart, now))
      }
    }))
    return {
      versions: { before: version, now: this.#parts.agent.version },
      isKept: version !== this.#parts.agent.version && this.#parts.agent.earlier?.[version] !== undefined,
      verdict,
      says,
      details: this.#lines(details),
      ...(word && { word: { ...word, before: this.#line(word.before), now: this.#line(word.now) } }),
      changes: changes.slice(0, MOST_LINES).map(({ change, says }) => ({ change, says: this.#line(says) })),
      moreChanges: Math.max(0, changes.length - MOST_LINES),
      charts: await Promise.all(charts)
    }
  }

  #lines(lines: readonly string[]): string[] {
    return lines.slice(0, MOST_LINES).map(line => this.#line(line))
  }

  #line(text: string): string {
    return String(this.#parts.redact(text)).slice(0, LONGEST_LINE)
  }

  #drawn(chart: ChartDiff): Promise<PairDrawings> {
    const known =
      this.#drawings.get(chart) ??
      this.#drawPair(chart).catch((error: unknown) => {
        this.#parts.logger.error('a compared chart could not be drawn', { error })
        return { before: '', now: '' }
      })
    this.#drawings.set(chart, known)
    return known
  }
}

/** The work as it is stored, and as it would go on; none for a task that a newer taskchart has stored. */
function worksOf(agent: Agent, row: Parameters<typeof tryRestore>[1]): Pick<Outcome, 'before' | 'now'> {
  try {
    const { before, after: now } = tryRestore(agent, row)
    return { before, now }
  } catch {
    return {}
  }
}

/** The word at which a function differs, with both sides. */
function wordOf({ word, before, after }: JudgedTask): Pick<Outcome, 'word'> {
  if (before === undefined) return {}
  return { word: { ...(word !== undefined && { number: word }), before, now: String(after) } }
}

/** The stored state of a chart: of the work, or of an active actor of it by the name of its logic. */
function snapshotIn(chart: string, work: PersistedSnapshot | undefined): unknown {
  if (chart === 'work') return work?.value
  const children = Object.values(work?.children ?? {})
  return children.find(({ src, snapshot }) => chart === `child:${String(src)}` && snapshot.status === 'active')
    ?.snapshot.value
}
