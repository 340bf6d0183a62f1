import t from 'tap'
import { z } from 'zod'
import { answerSchemaOf } from '../../adapters/client/messages.ts'
import ask from '../../examples/ask.ts'
import barista from '../../examples/barista.ts'
import { createRuntime } from '../../runtime/index.ts'
import { brief, collect, rejection, say, taskIn, textOf } from '../fixtures/runtime-helpers.ts'

await t.test('the reservations ask for a day and a number, show what they want, and refuse what is none', async t => {
  const runtime = createRuntime({ agent: ask })
  t.teardown(() => runtime.close())
  const first = taskIn(await runtime.sendMessage(say('a table')))
  const taskId = first.id
  t.match(answerSchemaOf(first.status.message), { type: 'string', format: 'date' })
  t.match(await rejection(runtime.sendMessage(say('tomorrow', { taskId }))), { code: 'InvalidParams', message: /message\.parts has to be a day, as in 2027-05-01/ })
  const second = taskIn(await runtime.sendMessage(say('2027-05-01', { taskId })))
  t.match(answerSchemaOf(second.status.message), { type: 'integer', minimum: 1, maximum: 12 })
  for (const [words, why] of [['many', /has to be a number/], ['1.5', /whole number/], ['0', /1 at least/], ['13', /chairs/]] as const) {
    t.match(await rejection(runtime.sendMessage(say(words, { taskId }))), { code: 'InvalidParams', message: why })
  }
  const { status, artifacts } = taskIn(await runtime.sendMessage(say('4', { taskId })))
  t.equal(textOf(status.message), 'A table for 4 on 2027-05-01.')
  t.strictSame(artifacts?.map(({ name, parts }) => [name, parts]), [['reservation.json', [{ data: { day: '2027-05-01', people: 4 } }]]])
})

await t.test('the barista asks for a size that there is, and brews it', async t => {
  const runtime = createRuntime({ agent: barista })
  t.teardown(() => runtime.close())
  const { id: taskId, status } = taskIn(await runtime.sendMessage(say('a coffee')))
  t.equal(z.fromJSONSchema(answerSchemaOf(status.message) ?? {}).safeParse('large').success, true, 'a client can check its answer')
  t.match(await rejection(runtime.sendMessage(say('huge', { taskId }))), { code: 'InvalidParams', message: /has to be small or large/ })
  const told = await collect(runtime.sendStreamingMessage(say('large', { taskId })))
  t.strictSame(told.slice(-3).map(brief), ['task:working', 'artifact: a large coffee', 'completed'])
})
