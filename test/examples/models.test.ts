import t, { type Test } from 'tap'
import atOnce from '../../examples/at-once.ts'
import model from '../../examples/model.ts'
import schedule from '../../examples/schedule.ts'
import { scriptedModel } from '../../examples/scripted-model.ts'
import { createRuntime, type Agent, type Message, type Runtime, type Task } from '../../runtime/index.ts'
import { open, reaches, rest, say, stateName, taskIn, textOf } from '../fixtures/runtime-helpers.ts'
import { TestClock } from '../fixtures/test-clock.ts'

function live(t: Test, agent: Agent, clock = new TestClock()): Runtime {
  const runtime = createRuntime({ agent, clock })
  t.teardown(() => runtime.close())
  return runtime
}

/** How a task stands: its state, its text, and that of its artifacts. */
function outcome({ status, artifacts = [] }: Task): (string | undefined)[] {
  return [stateName(status.state), textOf(status.message), ...artifacts.map(({ parts }) => parts.map(part => ('text' in part ? part.text : '')).join(''))]
}

const sent = async (runtime: Runtime, words: string, more: Partial<Message> = {}) => taskIn(await runtime.sendMessage(say(words, more)))

await t.test('units are converted in the answer to the message, and what is no amount is rejected', async t => {
  const runtime = live(t, atOnce)
  t.strictSame(outcome(await sent(runtime, '5 km')), ['completed', undefined, '5 km are 3.11 miles.'])
  t.strictSame(outcome(await sent(runtime, '2.5 pounds')), ['completed', undefined, '2.5 pounds are 1.13 kg.'])
  for (const nonsense of ['', 'km', '5 parsecs', '5 constructor']) {
    t.strictSame(outcome(await sent(runtime, nonsense)), ['rejected', 'Say an amount in km, miles, kg, pounds.'])
  }
})

await t.test('a reminder comes when it is to come', async t => {
  const clock = new TestClock()
  const runtime = live(t, schedule, clock)
  const { id } = await open(runtime, 'Remind me in 10 minutes to call Ann')
  await rest()
  t.equal(textOf((await runtime.getTask({ id })).status.message), 'I will remind you in 10 minutes.')
  clock.increment(599_999)
  await rest()
  t.equal(stateName((await runtime.getTask({ id })).status.state), 'working')
  clock.increment(1)
  t.strictSame(outcome(await reaches(runtime, id, 'completed')), ['completed', undefined, 'Remember: call Ann'])
  t.match(outcome(await sent(runtime, 'remind me')), ['rejected', /^Say when/])
})

await t.test('a model buys a ticket if the client says yes', async t => {
  const runtime = live(t, model)
  for (const [words, last] of [['yes', 'It is yours: a ticket to Rome, paid 29 euros.'], ['no', 'Then I leave it at that.']]) {
    const { id, status } = await sent(runtime, 'a ticket to Rome')
    t.match(textOf(status.message), /May I call buy/)
    t.strictSame(outcome(await sent(runtime, String(words), { taskId: id })), ['completed', undefined, `I have found a ticket for 29 euros.\n\n${last}`])
  }
})

await t.test('a scripted model goes by the newest message, whatever it holds', async t => {
  const heard: unknown[] = []
  const model = scriptedModel(given => {
    heard.push(given)
    return ''
  })
  const file = { type: 'file' as const, data: 'aGk=', mediaType: 'image/png' }
  const result = { type: 'tool-result' as const, toolCallId: 'c', toolName: 't', output: { type: 'json' as const, value: 1 } }
  await model.doStream({ prompt: [] })
  await model.doStream({ prompt: [{ role: 'system', content: 'Be kind.' }] })
  await model.doStream({ prompt: [{ role: 'user', content: [file] }] })
  await model.doStream({ prompt: [{ role: 'tool', content: [result] }] })
  t.strictSame(heard, [{ from: undefined, words: '' }, { from: 'system', words: '' }, { from: 'user', words: '' }, { from: 'tool', words: 'json' }])
})
