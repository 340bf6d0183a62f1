import t from 'tap'
import { testAgent, type AgentTestOptions } from '../../adapters/testing/index.ts'
import barista from '../../examples/barista.ts'
import countdown from '../../examples/countdown.ts'
import gardener from '../../examples/negotiate.ts'
import sailboat, { cases } from '../../examples/sailboat.ts'
import schedule from '../../examples/schedule.ts'
import type { Agent } from '../../runtime/index.ts'

const charts: [name: string, agent: Agent, options: AgentTestOptions][] = [
  ['countdown', countdown, { cases: { opening: { two: '2', 'no number': 'zero' } } }],
  ['barista', barista, { cases: { messages: { large: 'large', 'another size': 'huge' }, results: { brew: { 'a coffee': 'a large coffee', 'an error': new Error('The cup fell over.') } } } }],
  ['sailboat', sailboat, { cases }]
]

for (const [name, agent, options] of charts) {
  await t.test(`every path of ${name} is walked, and all of its states and transitions are reached`, async t => {
    const { states, transitions } = await testAgent(t, agent, options)
    t.strictSame([states.missing, transitions.missing], [[], []])
  })
}

await t.test('the life of a task whose work is a function is walked, too', async t => {
  await testAgent(t, schedule, { ways: ['in process', 'in process, killed before every step', 'over JSON-RPC'] })
})

await t.test('a negotiation is walked before its deal', async t => {
  await testAgent(t, gardener, { only: 'negotiating', ways: ['in process', 'in process, killed before every step'] })
})
