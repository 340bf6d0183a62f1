import t from 'tap'
import { contextLogic } from '../../runtime/context-logic.ts'
import { Contexts } from '../../runtime/contexts.ts'
import { Feeds } from '../../runtime/feeds.ts'
import { defineAgent, memoryStore } from '../../runtime/index.ts'
import { defaultLimits } from '../../runtime/limits.ts'
import { cleanUps, countingIds, recordingLogger, userMessage } from '../fixtures/runtime-helpers.ts'
import { TestClock } from '../fixtures/test-clock.ts'

await t.test('a context that has come to its end takes nothing more, and says so to whoever waits', async t => {
  const agent = defineAgent({ card: { name: 'A' }, work: () => ({}) })
  const contexts = new Contexts({
    store: memoryStore(), clock: new TestClock(), ids: countingIds(), logger: recordingLogger().logger, limits: defaultLimits,
    feeds: new Feeds(), logic: contextLogic(agent), agent, cleanUps: cleanUps()
  })
  t.teardown(() => contexts.close())
  const live = await contexts.get({ tenant: '', principal: 'ann', contextId: 'c' })
  live.stop()
  const heard: unknown[] = []
  const failed = (error: unknown) => void heard.push(error)
  const message = userMessage('x')
  live.receive({ callId: 'c1', taskId: 't1', message }, { answered() {}, opened() {}, failed })
  t.equal(live.send({ type: 'message.received', taskId: 't1', message }, {}, { told() {}, failed }), 'refused')
  t.match(heard, [{ code: 'Overloaded' }, { code: 'Overloaded' }])
  contexts.close()
  await t.rejects(contexts.get({ tenant: '', principal: 'ann', contextId: 'c' }), { code: 'Overloaded' })
})
