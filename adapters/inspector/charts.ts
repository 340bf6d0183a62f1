import type { AnyActorLogic, AnyStateMachine } from 'xstate'
import { contextMachine } from '../../machines/context.machine.ts'
import { negotiationMachine } from '../../machines/negotiation.machine.ts'
import { taskMachine } from '../../machines/task.machine.ts'
import type { Agent } from '../../runtime/agent.ts'
import { isMachine } from '../../runtime/gated-logic.ts'
import { isNegotiation } from '../../runtime/negotiation.ts'
import { chartMermaid } from '../testing/mermaid.ts'
import type { Chart, ChartId } from './feed.ts'

/** Draws a chart as an `<svg>` element. */
export type DrawChart = (machine: AnyStateMachine) => Promise<string>

/** The charts that an agent's actors run: that of its work first. */
export async function chartsOf({ work, negotiate, card }: Agent, draw: DrawChart): Promise<Chart[]> {
  const own = typeof work === 'object' ? work : undefined
  const machines: (readonly [ChartId, string, AnyStateMachine])[] = [
    ...(own ? [['work', `The work of ${card.name}`, own] as const] : []),
    ...childrenOf(own, new Set()).map(([src, machine]) => [`child:${src}`, src, machine] as const),
    ['task', 'The life of a task', taskMachine],
    ...(isNegotiation(negotiate) ? [['negotiation', 'The negotiation', negotiationMachine] as const] : []),
    ['context', 'The context', contextMachine]
  ]
  return Promise.all(machines.map(async ([id, title, machine]) => ({ id, title, svg: await draw(machine), mermaid: chartMermaid(machine) })))
}

/** The charts that a chart has a name for, with those in them. Of two with one name the first. */
function childrenOf(machine: AnyStateMachine | undefined, known: Set<string>): [string, AnyStateMachine][] {
  const actors = Object.entries((machine?.implementations.actors ?? {}) as Record<string, AnyActorLogic>)
  return actors.flatMap(([src, logic]) => {
    if (!isMachine(logic) || known.has(src)) return []
    known.add(src)
    return [[src, logic] as [string, AnyStateMachine], ...childrenOf(logic, known)]
  })
}
