import t from 'tap'
import { serve } from '../../adapters/serve/serve.ts'
import hotel from '../../examples/hotel.ts'
import { createRuntime } from '../../runtime/index.ts'
import { brief, collect, say, taskIn, withGenerations } from '../fixtures/runtime-helpers.ts'
import { TestClock } from '../fixtures/test-clock.ts'

await t.test('the travel desk has the hotel book a room, and passes on what that says and asks', async t => {
  const books = createRuntime({ agent: hotel, clock: new TestClock() })
  t.teardown(() => books.close())
  const served = await serve(books, { port: 0 })
  t.teardown(() => served.close())
  process.env.HOTEL_URL = served.url
  const { default: desk } = await import('../../examples/delegate.ts')
  const runtime = createRuntime({ agent: desk, clock: new TestClock() })
  t.teardown(() => runtime.close())
  const { id: taskId, status } = taskIn(await runtime.sendMessage(say('a room in Helsinki')))
  t.match(status, { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text: 'For which night?' }] } })
  await runtime.sendMessage(say('Friday', { taskId }))
  const events = await collect(runtime.subscribeToTask({ id: taskId }, { ...withGenerations, conditions: { afterGeneration: 0 } }))
  t.strictSame(events.map(brief), [
    'submitted', 'working', 'working: Looking for a room in Helsinki.', 'input-required: For which night?', 'working',
    'artifact: Room 7, on Friday.', 'artifact: Take the night train. Room 7, on Friday.', 'completed: Sleep well!'
  ])
})
