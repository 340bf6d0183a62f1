import type { AnyStateMachine } from 'xstate'
import { NEGOTIATION_EXTENSION } from '../../machines/protocol/uris.ts'
import type { Agent } from '../../runtime/agent/define-agent.ts'
import type { Observation } from '../../runtime/contexts/observers.ts'
import type { Logger } from '../../runtime/ports/logger.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { chartVersion } from '../../runtime/xstate/transition-counter.ts'
import { chartsOf } from '../drawing/agent-charts.ts'
import { chartSource } from '../drawing/chart-source.ts'
import { chartMermaid } from '../drawing/mermaid.ts'
import { heatOf } from '../drawing/transition-heat.ts'
import type { Chart, ChartHeat, Hello } from './feed.ts'

/** The number of example messages that pages show. */
const MOST_EXAMPLES = 4

/** The facts of an agent's card that pages show. */
export function shownAgent(runtime: Runtime): Hello['agent'] {
  const { name, description, version, skills, capabilities } = runtime.agentCard([])
  const { params } = capabilities.extensions?.find(({ uri }) => uri === NEGOTIATION_EXTENSION) ?? {}
  return {
    name,
    description,
    version,
    examples: skills.flatMap(({ examples = [] }) => examples).slice(0, MOST_EXAMPLES),
    ...(params?.['terms'] !== undefined && { terms: params['terms'] })
  }
}

/** Draws a chart as an `<svg>` element. */
export type DrawChart = (machine: AnyStateMachine) => Promise<string>

/** The charts of an agent for pages. A chart that cannot be drawn has no picture, and the error is logged. */
export async function drawnCharts(agent: Agent, draw: DrawChart, logger: Logger): Promise<Chart[]> {
  return Promise.all(
    chartsOf(agent).map(async ({ id, title, machine }) => {
      const svg = await draw(machine).catch((error: unknown) => {
        logger.error('a chart could not be drawn', { chart: id, error })
        return ''
      })
      return { id, title, svg, mermaid: chartMermaid(machine), source: chartSource(machine) }
    })
  )
}

/** Reads what tasks took in the author's charts; `undefined` if the store does not count transitions, or there are no such charts. */
export function heatReader({ agent, store }: Observation): (() => Promise<ChartHeat[]>) | undefined {
  const charts = chartsOf(agent).filter(({ id }) => id === 'work' || id.startsWith('child:'))
  const read = store.readTransitions?.bind(store)
  if (!read || charts.length === 0) return undefined
  return async () =>
    Promise.all(
      charts.map(async ({ id, machine }) => ({
        chart: id,
        transitions: heatOf(machine, await read(chartVersion(machine))).transitions
      }))
    )
}
