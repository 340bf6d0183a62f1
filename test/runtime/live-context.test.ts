import t from 'tap'
import { defaultLimits } from '../../runtime/access/limits.ts'
import { CommitPipeline } from '../../runtime/commits/commit-pipeline.ts'
import { TaskLedger } from '../../runtime/commits/task-ledger.ts'
import { ContextHost } from '../../runtime/contexts/context-host.ts'
import { contextLogic } from '../../runtime/contexts/context-logic.ts'
import { ContextRegistry } from '../../runtime/contexts/context-registry.ts'
import { Observers } from '../../runtime/contexts/observers.ts'
import { RecoveryQueue } from '../../runtime/contexts/recovery.ts'
import { defineAgent, memoryStore } from '../../runtime/index.ts'
import { TaskSubscriptions } from '../../runtime/streams/subscriptions.ts'
import { TaskLoads } from '../../runtime/work/task-loads.ts'
import { cleanUps, countingIds, metering, recordingLogger, userMessage } from '../fixtures/runtime-helpers.ts'
import { TestClock } from '../fixtures/test-clock.ts'

await t.test('a context that has come to its end takes nothing more, and says so to whoever waits', async t => {
  const agent = defineAgent({ card: { name: 'A' }, work: () => ({}) })
  const contexts = new ContextRegistry({
    store: memoryStore(), clock: new TestClock(), ids: countingIds(), logger: recordingLogger().logger, limits: defaultLimits, metering: metering(memoryStore()),
    feeds: new TaskSubscriptions(), loads: new TaskLoads({ store: memoryStore(), logger: recordingLogger().logger, limits: defaultLimits }), logic: contextLogic(agent), agent, cleanUps: cleanUps(), recoveryQueue: new RecoveryQueue(new TestClock()), observers: new Observers(recordingLogger().logger)
  })
  t.teardown(() => contexts.close())
  const live = await contexts.get({ tenant: '', principal: 'ann', contextId: 'c' })
  live.stop()
  const message = userMessage('x')
  await t.rejects(live.receive({ callId: 'c1', taskId: 't1', message }, {}), { code: 'Overloaded' })
  await t.rejects(live.send({ type: 'message.received', taskId: 't1', message }, {}), { code: 'Overloaded' })
  await contexts.close()
  await t.rejects(contexts.get({ tenant: '', principal: 'ann', contextId: 'c' }), { code: 'Overloaded' })
  t.throws(() => contexts.create({ tenant: '', principal: 'ann', contextId: 'd' }), { code: 'Overloaded' })
})

await t.test('what a work wants to keep when its context has come to its end is not kept', async t => {
  const agent = defineAgent({ card: { name: 'A' }, work: () => ({}) })
  const key = { tenant: '', principal: 'ann', contextId: 'c' }
  const clock = new TestClock()
  const ids = countingIds()
  const store = memoryStore()
  const pipeline = new CommitPipeline(store, { commitOf: () => undefined, tell() {}, run() {}, settled() {}, broke() {} })
  const host = new ContextHost(
    key,
    { store, clock, ids, logger: recordingLogger().logger, limits: defaultLimits, metering: metering(store), feeds: new TaskSubscriptions(), loads: new TaskLoads({ store, logger: recordingLogger().logger, limits: defaultLimits }), logic: contextLogic(agent), agent, cleanUps: cleanUps(), recoveryQueue: new RecoveryQueue(clock), observers: new Observers(recordingLogger().logger) },
    { pipeline, tasks: new TaskLedger('c', { clock, ids }), isRefused: () => false, turnNumber: () => 0, isAwaited: () => false, send() {}, timers: () => t.fail('no timer is asked for') as never }
  )
  const { turn } = pipeline
  host.keep({ taskId: 't', key: 'k', value: 1 })
  pipeline.end(new Error('over'))
  host.keep({ taskId: 't', key: 'k', value: 2 })
  t.strictSame(turn.journal, [{ taskId: 't', key: 'k', value: 1 }])
})
