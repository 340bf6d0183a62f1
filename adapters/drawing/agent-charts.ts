import type { AnyStateMachine } from 'xstate'
import { contextMachine } from '../../machines/context.machine.ts'
import { negotiationMachine } from '../../machines/negotiation.machine.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { taskMachine } from '../../machines/task.machine.ts'
import type { Agent } from '../../runtime/index.ts'
import { isNegotiation } from '../../runtime/negotiation/negotiation.ts'
import { FROM_START, type TransitionCount, UNKNOWN } from '../../runtime/work-port.ts'
import { writtenChart } from '../../runtime/xstate/written-chart.ts'

/** The id of one chart of an agent. `child:` and an actor's name are for charts that the work invokes or spawns. */
type ChartId = 'work' | 'respond' | 'negotiation' | 'task' | 'context' | `child:${string}`

/** One of the charts of an agent. */
export interface AgentChart {
  readonly id: ChartId
  /** A short title. */
  readonly title: string
  readonly machine: AnyStateMachine
}

/**
 * The charts of an agent: the author's, then taskchart's own for the negotiation, tasks and contexts. A function has no
 * chart.
 */
export function chartsOf({ work, negotiate }: Agent): AgentChart[] {
  const own = isChart(work) ? [{ id: 'work' as const, title: 'The work', machine: work }, ...childrenOf(work)] : []
  const negotiation = { id: 'negotiation' as const, title: 'The negotiation', machine: negotiationMachine }
  const respond = isNegotiation(negotiate) ? negotiate.respond : undefined
  const task = { id: 'task' as const, title: 'A task', machine: taskMachine }
  return [
    ...own,
    ...(isChart(respond)
      ? [{ id: 'respond' as const, title: 'What the agent answers to offers', machine: respond }]
      : []),
    ...(isNegotiation(negotiate) ? [negotiation] : []),
    ...(work ? [task] : []),
    { id: 'context', title: 'A context', machine: contextMachine }
  ]
}

/** The charts among the named actors of a chart. */
function childrenOf(machine: AnyStateMachine): AgentChart[] {
  const actors = Object.entries(machine.implementations.actors as Readonly<Record<string, unknown>>)
  return actors.flatMap(([src, logic]) =>
    isChart(logic) ? [{ id: `child:${src}` as const, title: `${src}, which the work starts`, machine: logic }] : []
  )
}

/** Whether it is a chart. Checks members, since it may come from another copy of XState. */
function isChart(logic: unknown): logic is AnyStateMachine {
  return isObject(logic) && isObject(logic['root']) && isObject(logic['implementations'])
}

/** The transitions that tasks took in a chart. */
export interface Heat {
  /**
   * Each transition of the chart, in its order; `count` is 0 if no task took it. `tested`: whether a test takes it, if
   * that is known.
   */
  readonly transitions: readonly { readonly name: string; readonly count: number; readonly tested?: boolean }[]
  /**
   * The states that were left, in the order of the chart: how often that was timed, and the mean time in the state
   * before, in milliseconds.
   */
  readonly states: readonly { readonly state: string; readonly waits: number; readonly meanMs: number }[]
  /**
   * Pairs of transitions that followed each other, the most frequent first; `previous` is `the start` before the first.
   * Those after a restart are left out.
   */
  readonly pairs: readonly { readonly previous: string; readonly taken: string; readonly count: number }[]
}

/** The heat of a chart, from the counts of its version. */
export function heatOf(machine: AnyStateMachine, counts: readonly TransitionCount[]): Heat {
  const total = (of: readonly TransitionCount[], member: 'count' | 'timed' | 'ms') =>
    of.reduce((sum, one) => sum + one[member], 0)
  const named = (name: string) => counts.filter(count => count.taken === name)
  const chart = writtenChart(machine)
  const states = chart.states.map(({ id, transitions }) => {
    const left = transitions.flatMap(({ name }) => named(name))
    const waits = total(left, 'timed')
    return { state: id, waits, meanMs: Math.round(total(left, 'ms') / waits) }
  })
  return {
    transitions: chart.transitions.map(({ name }) => ({ name, count: total(named(name), 'count') })),
    states: states.filter(({ waits }) => waits > 0),
    pairs: counts
      .filter(({ previous }) => previous !== UNKNOWN)
      .map(({ previous, taken, count }) => ({
        previous: previous === FROM_START ? 'the start' : previous,
        taken,
        count
      }))
      .toSorted((a, b) => b.count - a.count)
  }
}
