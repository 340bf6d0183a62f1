import type { AnyStateMachine } from 'xstate'
import { A2AError } from '../../machines/protocol/errors.ts'
import type { Agent } from '../agent/define-agent.ts'
import { isMachine } from '../xstate/persisted-snapshot.ts'
import { type ChartParts, type ModuleReads, partsOf } from './chart-parts.ts'
import { codeText, textDigest } from './code-text.ts'
import { type PartsText, partsFromText, partsToText } from './parts-text.ts'

/** The local modules of an agent, as far as a comparison reads them. */
export interface LocalModules {
  /** The texts of the files without charts, without layout, by their paths from the module's folder. */
  readonly others: ReadonlyMap<string, string>
  /** The paths of the files with charts, from the module's folder: the module itself, and others. */
  readonly charts: readonly string[]
  /** The text of all files with charts. */
  readonly chartText: string
  /** Imports that are read from elsewhere: packages, and names that a configuration leads to files. */
  readonly packages: readonly string[]
  readonly readsOf: ModuleReads
}

/** The local modules of an agent, by digests. */
export interface ModuleDigests {
  /** The digests of the files without charts, by their paths from the module's folder. */
  readonly others: Readonly<Record<string, string>>
  readonly charts: readonly string[]
  readonly chartText: string
  readonly packages: readonly string[]
}

/** An option of an agent, as it is compared. */
export interface OptionText {
  /** Its text; a digest of it if it is code. */
  readonly text: string
  readonly isCode: boolean
  readonly isGiven: boolean
}

/** The members of an agent that decide how its running tasks go on. */
export const PLAIN_OPTIONS = ['messages', 'restart', 'recovery', 'deadlineMs', 'cancelGraceMs'] as const
/** The options of an agent that are compared by their text. */
export const CODE_OPTIONS = ['input', 'migrate', 'negotiate', 'properties'] as const

/** The name of an option that a comparison reads. */
export type OutlinedOption = (typeof PLAIN_OPTIONS)[number] | (typeof CODE_OPTIONS)[number] | 'version'

/** The work of an agent, as it is compared. */
export type WorkOutline =
  | { readonly kind: 'none' }
  | { readonly kind: 'function'; readonly digest: string }
  | {
      readonly kind: 'chart'
      readonly chart: ChartParts
      /** The charts among its actors, by their names. */
      readonly children: ReadonlyMap<string, ChartParts>
    }

/**
 * What a comparison knows of an agent: its chart or its function, the text of its code, its questions, timers and
 * options.
 */
export interface AgentOutline {
  readonly version: string
  readonly options: Readonly<Record<OutlinedOption, OptionText>>
  readonly mayRestart: boolean
  readonly isMigrating: boolean
  readonly work: WorkOutline
  /** Missing if the modules of the agent were not read. */
  readonly modules?: ModuleDigests
}

/** The outline of an agent. `modules`: those of its file; by default they are not seen. */
export function agentOutline(agent: Agent, modules?: LocalModules): AgentOutline {
  const names = [...PLAIN_OPTIONS, ...CODE_OPTIONS, 'version' as const]
  return {
    version: agent.version,
    options: Object.fromEntries(names.map(name => [name, optionOf(agent[name])])) as AgentOutline['options'],
    mayRestart: agent.restart.type !== 'temporary',
    isMigrating: agent.migrate !== undefined,
    work: workOf(agent.work, modules?.readsOf),
    ...(modules && { modules: digestsOf(modules) })
  }
}

/** The outline of an agent for tasks of a version: with the work that `earlier` keeps for them, if any. */
export function outlineForVersion(agent: Agent, version: string, modules?: LocalModules): AgentOutline {
  const earlier = agent.earlier?.[version]
  return agentOutline(earlier ? ({ ...agent, ...earlier, version } as Agent) : agent, modules)
}

function optionOf(value: unknown): OptionText {
  const { text, sources } = codeText(value)
  const isCode = sources.length > 0
  return { text: isCode ? textDigest(text) : text, isCode, isGiven: value !== undefined }
}

function workOf(work: Agent['work'], reads: ModuleReads | undefined): WorkOutline {
  if (!work) return { kind: 'none' }
  if (!isChart(work)) return { kind: 'function', digest: textDigest(codeText(work).text) }
  const actors = Object.entries(work.implementations.actors as Readonly<Record<string, unknown>>)
  return {
    kind: 'chart',
    chart: partsOf(work, reads),
    children: new Map(actors.flatMap(([name, logic]) => (isChart(logic) ? [[name, partsOf(logic, reads)]] : [])))
  }
}

function isChart(work: unknown): work is AnyStateMachine {
  return typeof work === 'object' && work !== null && isMachine(work as never)
}

function digestsOf({ others, charts, chartText, packages }: LocalModules): ModuleDigests {
  return {
    others: Object.fromEntries(Array.from(others, ([path, text]) => [path, textDigest(text)])),
    charts,
    chartText: textDigest(chartText),
    packages
  }
}

/** The number of the form of stored outlines. Another one is for texts that cannot be compared with those before. */
const FORMAT = 1

/** A chart that an outline has, as text. */
type WorkText =
  | Exclude<WorkOutline, { kind: 'chart' }>
  | { readonly kind: 'chart'; readonly chart: PartsText; readonly children: Readonly<Record<string, PartsText>> }

/** An outline as JSON text. Equal outlines have equal texts. */
export function outlineText({ work, ...outline }: AgentOutline): string {
  return JSON.stringify({ format: FORMAT, ...outline, work: workText(work) })
}

function workText(work: WorkOutline): WorkText {
  if (work.kind !== 'chart') return work
  const children = Array.from(work.children, ([name, parts]) => [name, partsToText(parts)])
  return { kind: 'chart', chart: partsToText(work.chart), children: Object.fromEntries(children) }
}

/** An outline of its text. Throws InternalError for one that another taskchart has stored in another form. */
export function parseOutline(text: string): AgentOutline {
  const { format, work, ...outline } = JSON.parse(text) as Omit<AgentOutline, 'work'> & {
    readonly format: number
    readonly work: WorkText
  }
  if (format !== FORMAT)
    throw new A2AError(
      'InternalError',
      `A definition was stored by another taskchart, in form ${format}, and this one reads form ${FORMAT}. Use the taskchart that stored it.`
    )
  if (work.kind !== 'chart') return { ...outline, work }
  const children = new Map(Object.entries(work.children).map(([name, parts]) => [name, partsFromText(parts)]))
  return { ...outline, work: { kind: 'chart', chart: partsFromText(work.chart), children } }
}
