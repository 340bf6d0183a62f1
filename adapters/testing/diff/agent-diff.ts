import type { AnyStateMachine } from 'xstate'
import { type Agent } from '../../../runtime/index.ts'
import {
  type AgentOutline,
  CODE_OPTIONS,
  type ChartParts,
  type LocalModules,
  type ModuleDigests,
  type ModuleReads,
  agentOutline,
  type Names,
  namesSince,
  outlineForVersion,
  partsOf,
  PLAIN_OPTIONS,
  type WorkOutline
} from '../../../runtime/work-port.ts'
import type { WrittenChart } from '../../../runtime/xstate/written-chart.ts'
import type { DifferenceMarks } from '../../drawing/merged-chart.ts'
import { type Change, chartChanges } from './chart-changes.ts'
import {
  type ChangedCode,
  type ConfigurationVerdict,
  type Surroundings,
  type ChangeVerdict,
  ChartVerdicts
} from './verdicts.ts'

/** One side of a comparison: an agent, and its local modules, which are not seen without `localModules`. */
export interface AgentSide {
  readonly agent: Agent
  /** Gives the local modules of the agent. */
  readonly localModules?: (() => LocalModules) | undefined
}

/** Two charts of agents, compared. */
export interface ChartDiff {
  /** `work`, or `child:` and the name of an actor of the work. */
  readonly chart: string
  readonly before: WrittenChart
  readonly after: WrittenChart
  readonly changes: readonly Change[]
  readonly marks: DifferenceMarks
  /** The verdicts of all configurations, or of one. */
  readonly verdicts: ChartVerdicts
  readonly configurations: readonly ConfigurationVerdict[]
}

/** Two agents, compared. */
export interface AgentDiff {
  readonly versions: { readonly before: string; readonly after: string }
  /** The compared parts, and those that were not seen, as clauses. */
  readonly compared: readonly string[]
  readonly notSeen: readonly string[]
  /** Changes outside the charts: of the agent's options, and of local modules. */
  readonly changes: readonly Change[]
  readonly charts: readonly ChartDiff[]
  /** The verdict on work that is no chart; of a chart, the configurations have theirs. */
  readonly work?: { readonly verdict: ChangeVerdict; readonly reasons: readonly string[] }
}

/** Compares two agents. */
export function diffAgents(before: AgentSide, after: AgentSide): AgentDiff {
  return diffOutlines(agentOutline(before.agent, before.localModules?.()), after)
}

/**
 * Compares an agent as it was with one now. `most`: the maximum number of configurations of a chart that are followed.
 */
export function diffOutlines(before: AgentOutline, { agent, ...side }: AgentSide, most?: number): AgentDiff {
  const modules = side.localModules?.()
  const now = agentOutline(agent, modules)
  const kept = before.version === agent.version ? undefined : agent.earlier?.[before.version]
  // Tasks of a version that `earlier` names go on with its work, and as that version.
  const after = kept ? outlineForVersion(agent, before.version, modules) : now
  const changedModules = before.modules && now.modules ? moduleChanges(before.modules, now.modules) : []
  const around = surroundingsOf(before, after, changedModules)
  const changes = [...optionChanges(before, now), ...changedModules]
  const shared = {
    versions: { before: before.version, after: agent.version },
    compared: [
      'the charts, and the text of their code without types and layout',
      ...(before.modules && modules
        ? [
            `what that code reads at the top of ${modules.charts.join(', ')}`,
            modules.others.size === 0
              ? 'no other local modules'
              : `the local modules ${[...modules.others.keys()].join(', ')}`
          ]
        : []),
      ...(kept ? [`the work that earlier keeps for version ${before.version}, whose tasks go on with it`] : [])
    ],
    notSeen: [
      ...(before.modules ? [] : ['local modules, since the process that stored the definition did not know them']),
      ...(modules ? [] : ['local modules, since this process does not know the file of the agent']),
      packagesText([...(before.modules?.packages ?? []), ...(modules?.packages ?? [])]),
      'values that functions close over',
      'the environment'
    ],
    changes
  }
  if (before.work.kind === 'chart' && after.work.kind === 'chart') {
    const names = kept || around.isSameVersion ? undefined : namesSince(before.version, agent)
    const others = after.work.children
    const follow = { around, most }
    const renaming = names && { names, reads: modules?.readsOf }
    const work = chartDiff('work', before.work.chart, after.work.chart, follow, renaming)
    const children = Array.from(before.work.children).flatMap(([name, parts]) => {
      const other = others.get(names?.sourceOf(name) ?? name)
      return other ? [chartDiff(`child:${name}`, parts, other, follow)] : []
    })
    return { ...shared, charts: [work, ...children] }
  }
  return { ...shared, charts: [], work: workVerdict([before, after], changes) }
}

function packagesText(names: readonly string[]): string {
  return names.length === 0 ? 'packages' : `packages (${[...new Set(names)].toSorted().join(', ')})`
}

/** The new names of a chart, and how its modules are read. */
interface Renaming {
  readonly names: Names
  readonly reads: ModuleReads | undefined
}

/** Compares two charts. With new names it is compared part by part as the old one named them. */
function chartDiff(
  chart: string,
  before: ChartParts,
  after: ChartParts,
  { around, most }: { readonly around: Surroundings; readonly most: number | undefined },
  renaming?: Renaming
): ChartDiff {
  const machine = after.machine as AnyStateMachine
  const named = renaming ? partsOf(machine, renaming.reads, renaming.names) : after
  const verdicts = new ChartVerdicts(before, named, { ...around, names: renaming?.names }, most)
  return {
    chart,
    before: before.chart,
    after: after.chart,
    ...chartChanges(before, after, renaming?.names),
    verdicts,
    get configurations() {
      return verdicts.all
    }
  }
}

function surroundingsOf(before: AgentOutline, after: AgentOutline, changedModules: readonly Change[]): Surroundings {
  const isSameVersion = before.version === after.version
  const mayRestart = before.mayRestart || after.mayRestart
  return {
    isSameVersion,
    isMigrated: !isSameVersion && after.isMigrating,
    mayRestart,
    options: [...PLAIN_OPTIONS, ...(mayRestart ? ['input' as const] : [])]
      .filter(name => before.options[name].text !== after.options[name].text)
      .map(name => `the agent's ${name} has changed`),
    modules: changedModules.map(({ name, says }): ChangedCode => ({ kind: 'module', name, says }))
  }
}

function optionChanges(before: AgentOutline, after: AgentOutline): Change[] {
  return [...PLAIN_OPTIONS, ...CODE_OPTIONS, 'version' as const].flatMap((name): Change[] => {
    const [old, next] = [before.options[name], after.options[name]]
    if (old.text === next.text) return []
    const change = old.isGiven ? (next.isGiven ? 'changed' : 'removed') : 'added'
    const isCode = old.isCode || next.isCode
    const says = isCode ? `the agent's ${name} has changed` : `the agent's ${name} is ${next.text}, and was ${old.text}`
    return [{ part: 'option', change, name, says, ...(!isCode && { before: old.text, after: next.text }) }]
  })
}

function moduleChanges(before: ModuleDigests, after: ModuleDigests): Change[] {
  const names = [...new Set([...Object.keys(before.others), ...Object.keys(after.others)])].toSorted()
  return names.flatMap((name): Change[] => {
    const [old, next] = [before.others[name], after.others[name]]
    if (old === next) return []
    const change = old === undefined ? 'added' : next === undefined ? 'removed' : 'changed'
    return [{ part: 'module', change, name, says: `the local module ${name} ${WORDS[change]}` }]
  })
}

const WORDS = { added: 'is new', removed: 'is gone', changed: 'has changed' } as const

/** The verdict on work without a chart on one side, or on both. */
function workVerdict(
  [before, after]: readonly [AgentOutline, AgentOutline],
  changes: readonly Change[]
): NonNullable<AgentDiff['work']> {
  const [old, next]: readonly WorkOutline[] = [before.work, after.work]
  if (old?.kind === 'none') return { verdict: 'same', reasons: ['the agent had no work, so there are no tasks'] }
  if (next?.kind === 'none') return { verdict: 'not restored', reasons: ['the agent has no work'] }
  if (old?.kind !== 'function')
    return { verdict: 'not restored', reasons: ['the work was a statechart, and is none now'] }
  if (next?.kind !== 'function')
    return { verdict: 'not restored', reasons: ['the work was no statechart, and is one now'] }
  const isEqual =
    old.digest === next.digest && (!before.modules || before.modules.chartText === after.modules?.chartText)
  if (isEqual && changes.length === 0) return { verdict: 'same', reasons: [] }
  const what = isEqual ? changes.map(({ says }) => says) : ['the source of the work, or of its module, has changed']
  return {
    verdict: 'depends',
    reasons: [...what, 'a function runs again from its start: it depends on what the journal of each task has']
  }
}
