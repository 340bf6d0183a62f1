import t from 'tap'
import { z } from 'zod'
import type { AgentTestOptions } from '../../../adapters/testing/index.ts'
import schedule from '../../../examples/schedule.ts'
import { defineAgent, negotiation, reply, setupWork, text, typed, type Agent } from '../../../runtime/index.ts'
import { cases, everything } from '../../fixtures/charts/chart-with-everything.ts'
import { exampleCharts, walked, walkedWhole } from '../../fixtures/charts/example-charts.ts'

const card = { name: 'Tested' }
const price = z.object({ euros: z.number().positive() })

/**
 * Charts, a function and a negotiation, each walked in the ways that differ: many paths where that is quick, a few
 * elsewhere.
 */
const chart = defineAgent({ card, work: everything })
const bargainer = defineAgent({
  card,
  negotiate: negotiation({
    terms: price,
    rounds: 7,
    offerMs: 3600_000,
    respond: () => reply('It is never asked here.')
  }),
  work: setupWork({ types: { context: typed<{ euros: number }>() } }).createMachine({
    context: ({ input }) => price.parse(input.terms),
    initial: 'done',
    states: { done: { type: 'final' } },
    output: ({ context }) => ({ artifact: { name: 'receipt', parts: [text(`${context.euros}`)] } })
  })
})

const inProcess = ['in process', 'in process, killed before every step'] as const
const end = 'the event "a cry" comes'

const some: [name: string, agent: Agent, options: AgentTestOptions][] = [
  [
    'a chart, alone and in process',
    chart,
    { cases, drivers: ['the chart', 'the chart, restored from JSON before every step', ...inProcess] }
  ],
  ['a chart, restarted', chart, { cases, only: end, drivers: ['in process, restarted before every step'] }],
  ['a function', schedule, { drivers: inProcess }],
  [
    'a negotiation',
    bargainer,
    { cases: { terms: { some: { euros: 10 } } }, only: 'an offer"', drivers: ['in process'] }
  ],
  [
    'a negotiation, killed',
    bargainer,
    {
      cases: { terms: { some: { euros: 10 } } },
      only: 'accepts the offer',
      drivers: ['in process, killed before every step']
    }
  ],
  ['a deal', bargainer, { cases: { terms: { some: { euros: 10 } } }, only: 'a deal on', drivers: inProcess }],
  [
    'a chart over WebSocket, killed',
    chart,
    { cases, only: end, drivers: ['over WebSocket, killed before every step'] }
  ],
  [
    'a chart on SQLite, killed',
    chart,
    { cases, only: end, drivers: ['in process on SQLite, killed before every step'] }
  ],
  [
    'a chart over MCP',
    chart,
    { cases, only: 'then the client says "yes", then the client cancels', drivers: ['over MCP'] }
  ],
  [
    'a negotiation over MCP',
    bargainer,
    {
      cases: { terms: { some: { euros: 10 } } },
      only: 'client says "words", then respond answers "an offer", then the client declines the offer',
      drivers: ['over MCP']
    }
  ],
  ['a chart over JSON-RPC', chart, { cases, only: end, drivers: ['over JSON-RPC'] }],
  [
    'a chart with the official client',
    chart,
    { cases, only: end, drivers: ['over JSON-RPC, with the official client', 'over REST, with the official client'] }
  ]
]

for (const [name, agent, options] of some) {
  await t.test(name, async t => {
    await walked(t, agent, options)
  })
}

for (const [name, agent, options] of exampleCharts) {
  await t.test(`the example ${name}`, t =>
    walkedWhole(t, agent, {
      ...options,
      drivers: ['the chart', 'the chart, restored from JSON before every step', ...inProcess]
    })
  )
}
