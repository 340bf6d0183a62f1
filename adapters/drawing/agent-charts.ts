import type { AnyStateMachine } from 'xstate'
import { contextMachine } from '../../machines/context.machine.ts'
import { negotiationMachine } from '../../machines/negotiation.machine.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { taskMachine } from '../../machines/task.machine.ts'
import type { Agent } from '../../runtime/agent/define-agent.ts'
import { isNegotiation } from '../../runtime/negotiation/negotiation.ts'

/** The id of one chart of an agent. `child:` and an actor's name are for charts that the work invokes or spawns. */
export type ChartId = 'work' | 'negotiation' | 'task' | 'context' | `child:${string}`

/** One of the charts of an agent. */
export interface AgentChart {
  readonly id: ChartId
  /** A short title. */
  readonly title: string
  readonly machine: AnyStateMachine
}

/** The charts of an agent: the author's, then taskchart's own for the negotiation, tasks and contexts. A function has no chart. */
export function chartsOf({ work, negotiate }: Agent): AgentChart[] {
  const own = isChart(work) ? [{ id: 'work' as const, title: 'The work', machine: work }, ...childrenOf(work)] : []
  const negotiation = { id: 'negotiation' as const, title: 'The negotiation', machine: negotiationMachine }
  const task = { id: 'task' as const, title: 'A task', machine: taskMachine }
  return [
    ...own,
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
