import type { AnyStateMachine } from 'xstate'
import type { Agent } from '../../../runtime/index.ts'
import { isMachine } from '../../../runtime/xstate/persisted-snapshot.ts'
import type { WrittenChart } from '../../../runtime/xstate/written-chart.ts'
import type { DifferenceMarks } from '../../drawing/merged-chart.ts'
import { type Change, chartChanges } from './chart-changes.ts'
import { type CodePart, partsOf } from './chart-parts.ts'
import { codeText } from './code-text.ts'
import { type LocalModules, readLocalModules, readStatements } from './local-modules.ts'
import {
  type ChangedCode,
  type ConfigurationVerdict,
  type Surroundings,
  type ChangeVerdict,
  verdictsOn
} from './verdicts.ts'

/** One side of a comparison: an agent, and the path of its module. */
export interface AgentSide {
  readonly agent: Agent
  /** Absolute. */
  readonly path: string
}

/** Two charts of agents, compared. */
export interface ChartDiff {
  /** `work`, or `child:` and the name of an actor of the work. */
  readonly chart: string
  readonly before: WrittenChart
  readonly after: WrittenChart
  readonly changes: readonly Change[]
  readonly marks: DifferenceMarks
  readonly configurations: readonly ConfigurationVerdict[]
}

/** Two agents, compared. */
export interface AgentDiff {
  readonly versions: { readonly before: string; readonly after: string }
  /** What was compared, and what was not seen; as clauses. */
  readonly compared: readonly string[]
  readonly notSeen: readonly string[]
  /** Changes outside the charts: of the agent's options, and of local modules. */
  readonly changes: readonly Change[]
  readonly charts: readonly ChartDiff[]
  /** The verdict on work that is no chart; of a chart, the configurations have theirs. */
  readonly work?: { readonly verdict: ChangeVerdict; readonly reasons: readonly string[] }
}

/** The members of an agent that decide how its running tasks go on. */
const OPTIONS = ['messages', 'restart', 'recovery', 'deadlineMs', 'cancelGraceMs'] as const
/** Those that are compared by their text. */
const CODE_OPTIONS = ['input', 'migrate', 'negotiate', 'properties'] as const

/** Compares two agents. Reads the source files of their modules. */
export function diffAgents(before: AgentSide, after: AgentSide): AgentDiff {
  const modules = { before: readLocalModules(before.path), after: readLocalModules(after.path) }
  const changedModules = moduleChanges(modules.before.others, modules.after.others)
  const options = optionChanges(before.agent, after.agent)
  const kept = before.agent.version === after.agent.version ? undefined : after.agent.earlier?.[before.agent.version]
  // Tasks of a version that `earlier` names go on with its work, and as that version.
  const agent = kept ? ({ ...after.agent, ...kept, version: before.agent.version } as Agent) : after.agent
  const around = surroundingsOf(before.agent, agent, modules, changedModules)
  const works = [before.agent.work, agent.work] as const
  const [old, next] = works
  const changes = [...options, ...changedModules]
  const shared = {
    versions: { before: before.agent.version, after: after.agent.version },
    compared: [
      'the charts, and the text of their code without types and layout',
      `what that code reads at the top of ${modules.after.charts.join(', ')}`,
      modules.after.others.size === 0
        ? 'no other local modules'
        : `the local modules ${[...modules.after.others.keys()].join(', ')}`,
      ...(kept ? [`the work that earlier keeps for version ${before.agent.version}, whose tasks go on with it`] : [])
    ],
    notSeen: [
      packagesText([...modules.before.packages, ...modules.after.packages]),
      'values that functions close over',
      'the environment'
    ],
    changes
  }
  if (isChart(old) && isChart(next)) {
    const charts = [chartDiff('work', old, next, around), ...childDiffs(old, next, around)]
    return { ...shared, charts }
  }
  return { ...shared, charts: [], work: workVerdict(works, modules, changes) }
}

function packagesText(names: readonly string[]): string {
  return names.length === 0 ? 'packages' : `packages (${[...new Set(names)].toSorted().join(', ')})`
}

function chartDiff(chart: string, before: AnyStateMachine, after: AnyStateMachine, around: Surroundings): ChartDiff {
  const [old, next] = [partsOf(before), partsOf(after)]
  return {
    chart,
    before: old.chart,
    after: next.chart,
    ...chartChanges(old, next),
    configurations: verdictsOn(old, next, around)
  }
}

/** The charts among the actors that both have by name. */
function childDiffs(before: AnyStateMachine, after: AnyStateMachine, around: Surroundings): ChartDiff[] {
  const actorsOf = ({ implementations }: AnyStateMachine) => implementations.actors as Readonly<Record<string, unknown>>
  const others = actorsOf(after)
  return Object.entries(actorsOf(before)).flatMap(([name, logic]) => {
    const other = others[name]
    return isChart(logic) && isChart(other) ? [chartDiff(`child:${name}`, logic, other, around)] : []
  })
}

function isChart(work: unknown): work is AnyStateMachine {
  return typeof work === 'object' && work !== null && isMachine(work as never)
}

function surroundingsOf(
  before: Agent,
  after: Agent,
  modules: { readonly before: LocalModules; readonly after: LocalModules },
  changedModules: readonly Change[]
): Surroundings {
  const isSameVersion = before.version === after.version
  const mayRestart = before.restart.type !== 'temporary' || after.restart.type !== 'temporary'
  const reads = (part: CodePart, from: LocalModules) => readStatements(from, part.code.sources)
  return {
    isSameVersion,
    isMigrated: !isSameVersion && after.migrate !== undefined,
    mayRestart,
    options: [...OPTIONS, ...(mayRestart ? ['input' as const] : [])]
      .filter(name => codeText(before[name]).text !== codeText(after[name]).text)
      .map(name => `the agent's ${name} has changed`),
    modules: changedModules.map(({ name, says }): ChangedCode => ({ kind: 'module', name, says })),
    readsOtherwise: (one, other) => {
      const [had, has] = [reads(one, modules.before), reads(other, modules.after)]
      const names = [...new Set([...had.keys(), ...has.keys()])].filter(name => had.get(name) !== has.get(name))
      return names.length === 0 ? undefined : `${names.join(' and ')}, which changed`
    }
  }
}

function optionChanges(before: Agent, after: Agent): Change[] {
  return [...OPTIONS, ...CODE_OPTIONS, 'version' as const].flatMap((name): Change[] => {
    const [old, next] = [codeText(before[name]), codeText(after[name])]
    if (old.text === next.text) return []
    const change = before[name] === undefined ? 'added' : after[name] === undefined ? 'removed' : 'changed'
    const isCode = old.sources.length + next.sources.length > 0
    const says = isCode ? `the agent's ${name} has changed` : `the agent's ${name} is ${next.text}, and was ${old.text}`
    return [{ part: 'option', change, name, says, ...(!isCode && { before: old.text, after: next.text }) }]
  })
}

function moduleChanges(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): Change[] {
  const names = [...new Set([...before.keys(), ...after.keys()])].toSorted()
  return names.flatMap((name): Change[] => {
    const [old, next] = [before.get(name), after.get(name)]
    if (old === next) return []
    const change = old === undefined ? 'added' : next === undefined ? 'removed' : 'changed'
    return [{ part: 'module', change, name, says: `the local module ${name} ${WORDS[change]}` }]
  })
}

const WORDS = { added: 'is new', removed: 'is gone', changed: 'has changed' } as const

/** The verdict on work without a chart on one side, or on both. */
function workVerdict(
  [before, after]: readonly [Agent['work'], Agent['work']],
  modules: { readonly before: LocalModules; readonly after: LocalModules },
  changes: readonly Change[]
): NonNullable<AgentDiff['work']> {
  if (!before) return { verdict: 'same', reasons: ['the agent had no work, so there are no tasks'] }
  if (!after) return { verdict: 'not restored', reasons: ['the agent has no work'] }
  if (isChart(before)) return { verdict: 'not restored', reasons: ['the work was a statechart, and is none now'] }
  if (isChart(after)) return { verdict: 'not restored', reasons: ['the work was no statechart, and is one now'] }
  const isEqual = codeText(before).text === codeText(after).text && modules.before.chartText === modules.after.chartText
  if (isEqual && changes.length === 0) return { verdict: 'same', reasons: [] }
  const what = isEqual ? changes.map(({ says }) => says) : ['the source of the work, or of its module, has changed']
  return {
    verdict: 'depends',
    reasons: [...what, 'a function runs again from its start: it depends on what the journal of each task has']
  }
}
