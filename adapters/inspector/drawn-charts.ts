import type { AnyStateMachine } from 'xstate'
import type { Agent } from '../../runtime/agent/define-agent.ts'
import type { Logger } from '../../runtime/ports/logger.ts'
import { chartsOf } from '../drawing/agent-charts.ts'
import { chartMermaid } from '../drawing/mermaid.ts'
import type { Chart } from './feed.ts'

/** Draws a chart as an `<svg>` element. */
export type DrawChart = (machine: AnyStateMachine) => Promise<string>

/** The charts of an agent as pages show them. One that cannot be drawn has no picture, and why is logged. */
export async function drawnCharts(agent: Agent, draw: DrawChart, logger: Logger): Promise<Chart[]> {
  return Promise.all(chartsOf(agent).map(async ({ id, title, machine }) => {
    const svg = await draw(machine).catch((error: unknown) => {
      logger.error('a chart could not be drawn', { chart: id, error })
      return ''
    })
    return { id, title, svg, mermaid: chartMermaid(machine) }
  }))
}
