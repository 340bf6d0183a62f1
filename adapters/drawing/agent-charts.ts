import type { AnyStateMachine } from 'xstate'
import { contextMachine } from '../../machines/context.machine.ts'
import { negotiationMachine } from '../../machines/negotiation.machine.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { taskMachine } from '../../machines/task.machine.ts'
import type { Agent } from '../../runtime/agent/define-agent.ts'
import { isNegotiation } from '../../runtime/negotiation/negotiation.ts'

/** Which chart of an agent one is; those that its work has for its own actors by the name that it has for them. */
export type ChartId = 'work' | 'negotiation' | 'task' | 'context' | `child:${string}`

/** One of the charts that an agent consists of. */
export interface AgentChart {
  readonly id: ChartId
  /** What it is the chart of, in a few words. */
  readonly title: string
  readonly machine: AnyStateMachine
}

/** The charts of an agent: the author's own first, then those of ours that its actors live by. A function has none. */
export function chartsOf({ work, negotiate }: Agent): AgentChart[] {
  const own = isChart(work) ? [{ id: 'work' as const, title: 'The work', machine: work }, ...childrenOf(work)] : []
  const negotiation = { id: 'negotiation' as const, title: 'The negotiation', machine: negotiationMachine }
  const task = { id: 'task' as const, title: 'A task', machine: taskMachine }
  return [...own, ...(isNegotiation(negotiate) ? [negotiation] : []), ...(work ? [task] : []), { id: 'context', title: 'A conversation', machine: contextMachine }]
}

/** The charts among the actors that a chart has names for. */
function childrenOf(machine: AnyStateMachine): AgentChart[] {
  const actors = Object.entries(machine.implementations.actors as Readonly<Record<string, unknown>>)
  return actors.flatMap(([src, logic]) => (isChart(logic) ? [{ id: `child:${src}` as const, title: `${src}, which the work starts`, machine: logic }] : []))
}

/** Whether it is a chart; it may have been made by another copy of XState. */
function isChart(logic: unknown): logic is AnyStateMachine {
  return isObject(logic) && isObject(logic['root']) && isObject(logic['implementations'])
}
