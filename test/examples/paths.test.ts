import t from 'tap'
import { negotiate } from '../../adapters/client/messages.ts'
import { proveAgent, testAgent } from '../../adapters/testing/index.ts'
import gardener from '../../examples/negotiate.ts'
import schedule from '../../examples/schedule.ts'
import { createRuntime, textOf } from '../../runtime/index.ts'
import { say } from '../fixtures/runtime/runtime-helpers.ts'
import { exampleCharts, walkedWhole } from '../fixtures/charts/example-charts.ts'
import { someWalks } from '../fixtures/charts/some-walks.ts'

for (const [name, agent, options] of exampleCharts) {
  await t.test(`every path of ${name} is walked, with all states and transitions reached`, t =>
    walkedWhole(t, agent, options)
  )

  if (agent.properties) {
    await t.test(`the properties of ${name} are proved`, async t => {
      const { verdicts } = await proveAgent(agent, options)
      t.strictSame(
        verdicts.filter(({ outcome }) => outcome !== 'proved'),
        []
      )
    })
  }
}

await t.test('the task of a function is walked too', async t => {
  await testAgent(someWalks(t), schedule, {
    drivers: ['in process', 'in process, killed before every step', 'over JSON-RPC']
  })
})

await t.test('the gardener lowers his price, and mows for the agreed one', async t => {
  const runtime = createRuntime({ agent: gardener })
  t.teardown(() => runtime.close())
  const said = async (text: string) => {
    const answer = await runtime.sendMessage(say(text, { contextId: 'lawn' }))
    return 'task' in answer ? answer.task.artifacts?.map(textOf).join() : textOf(answer.message)
  }
  t.equal(await said('Mow my lawn'), 'I would do it tomorrow.')
  t.equal(await said('Hm.'), 'It is 60 euros. Deal?')
  t.match(await said('40 euros?'), /^Not for 40 euros/)
  t.equal(await said('50 euros?'), 'One lawn, mown for 50 euros.')
  t.equal(await said('bye'), 'A pity. Come again when the grass is higher.')
  t.equal(await said('Mow my lawn'), 'I would do it tomorrow.')
  t.equal(await said('deal'), 'One lawn, mown for 60 euros.')
  const proposed = await runtime.sendMessage(
    say('', { contextId: 'another', parts: [negotiate({ propose: { euros: 40 } })] })
  )
  t.match('message' in proposed && textOf(proposed.message), /^Not for 40 euros/)
})

await t.test('a negotiation is walked up to its deal', async t => {
  await testAgent(someWalks(t), gardener, {
    only: 'negotiating',
    drivers: ['in process', 'in process, killed before every step']
  })
})
