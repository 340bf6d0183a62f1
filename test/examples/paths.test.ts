import t from 'tap'
import { testAgent } from '../../adapters/testing/index.ts'
import gardener from '../../examples/negotiate.ts'
import schedule from '../../examples/schedule.ts'
import { exampleCharts, walkedWhole } from '../fixtures/example-charts.ts'

for (const [name, agent, options] of exampleCharts) {
  await t.test(`every path of ${name} is walked, and all of its states and transitions are reached`, t => walkedWhole(t, agent, options))
}

await t.test('the life of a task whose work is a function is walked, too', async t => {
  await testAgent(t, schedule, { ways: ['in process', 'in process, killed before every step', 'over JSON-RPC'] })
})

await t.test('a negotiation is walked before its deal', async t => {
  await testAgent(t, gardener, { only: 'negotiating', ways: ['in process', 'in process, killed before every step'] })
})
