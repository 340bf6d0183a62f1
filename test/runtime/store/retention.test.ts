import t, { type Test } from 'tap'
import { createRuntime, defineAgent, reply } from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { retentionWith, RetentionSweeper } from '../../../runtime/store/retention.ts'
import type { Store, SweepBounds } from '../../../runtime/store/store.ts'
import { painter } from '../../fixtures/runtime/agents.ts'
import {
  collect,
  deferred,
  messageIn,
  recordingLogger,
  refusal,
  rest,
  say,
  start,
  stateName,
  taskIn,
  textOf,
  withGenerations
} from '../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE

/** Upkeep of a store that answers as the test says. */
function upkeep(t: Test, sweep: Store['sweep'], changes: Parameters<typeof retentionWith>[0] = {}) {
  const { logger, log } = recordingLogger()
  const clock = new TestClock('1970-01-01T00:00:00.000Z')
  const calls: { due: SweepBounds; limit: number; atMs: number }[] = []
  const store = {
    ...memoryStore(),
    sweep: (due: SweepBounds, limit: number) => (calls.push({ due, limit, atMs: clock.now() }), sweep(due, limit))
  }
  const upkeep = new RetentionSweeper({ store, clock, logger }, retentionWith(changes))
  t.teardown(() => upkeep.close())
  const pass = async (ms: number) => {
    clock.increment(ms)
    await rest()
  }
  return { upkeep, clock, calls, log, pass }
}

await t.test('upkeep deletes expired data every minute, without keeping the process alive', async t => {
  const { calls, pass, clock } = upkeep(t, async () => 0, { endedTasksMs: 1000, idleContextsMs: 2000 })
  t.strictSame([clock.size, clock.pending], [1, 0])
  await pass(MINUTE - 1)
  t.equal(calls.length, 0)
  await pass(1)
  t.strictSame(calls, [
    {
      due: { endedBeforeMs: MINUTE - 1000, idleBeforeMs: MINUTE - 2000, sendsBeforeMs: MINUTE },
      limit: 256,
      atMs: MINUTE
    }
  ])
  await pass(MINUTE)
  t.strictSame(
    calls.map(({ atMs }) => atMs),
    [MINUTE, 2 * MINUTE]
  )
  t.equal(clock.pending, 0)
})

await t.test('upkeep deletes in batches until nothing is left, and yields between them', async t => {
  const order: string[] = []
  let left = 3
  const { calls, pass } = upkeep(
    t,
    async () => {
      order.push('portion')
      setImmediate(() => order.push('others'))
      return left === 0 ? 0 : left--
    },
    { sweepEveryMs: 10 }
  )
  await pass(10)
  t.strictSame(order, ['portion', 'others', 'portion', 'others', 'portion', 'others', 'portion', 'others'])
  t.ok(
    calls.every(({ due }) => due.sendsBeforeMs === 10),
    'all batches of one run'
  )
})

await t.test('upkeep that fails is logged, and retried the next time', async t => {
  let fails = true
  const { calls, log, pass } = upkeep(t, async () => {
    if (fails) throw new Error('disk')
    return 0
  })
  await pass(MINUTE)
  t.match(log, [{ level: 'error', message: 'old data could not be deleted', details: { error: { message: 'disk' } } }])
  fails = false
  await pass(MINUTE)
  t.strictSame([calls.length, log.length], [2, 1])
})

await t.test('upkeep that is closed leaves no timer, and starts no other batch', async t => {
  const gate = deferred<number>()
  const { upkeep: closing, calls, pass, clock } = upkeep(t, () => gate.promise)
  await pass(MINUTE)
  t.equal(clock.size, 0, 'no other sweep is due during a sweep')
  let closed = false
  void closing.close().then(() => (closed = true))
  await rest()
  t.equal(closed, false, 'it waits for the current batch')
  gate.resolve(256)
  await rest()
  t.equal(closed, true)
  await closing.close()
  await pass(MINUTE)
  t.strictSame([calls.length, clock.size], [1, 0])
})

await t.test('upkeep works with a clock whose timers are no objects', async t => {
  const clock = new TestClock()
  const timers: unknown[] = []
  const numbered = {
    now: () => clock.now(),
    setTimeout: (callback: () => void, ms: number) => timers.push(clock.setTimeout(callback, ms)) - 1,
    clearTimeout: (id: unknown) => clock.clearTimeout(timers[id as number])
  }
  let sweeps = 0
  const upkeep = new RetentionSweeper(
    {
      store: { ...memoryStore(), sweep: async () => ((sweeps += 1), 0) },
      clock: numbered,
      logger: recordingLogger().logger
    },
    retentionWith()
  )
  clock.increment(MINUTE)
  await rest()
  await upkeep.close()
  t.strictSame([sweeps, clock.size], [1, 0])
})

await t.test('a retention', async t => {
  await t.test('is 30 days by default, for each time separately', async t => {
    t.strictSame(retentionWith(), { endedTasksMs: 30 * DAY, idleContextsMs: 30 * DAY, sweepEveryMs: MINUTE })
    t.strictSame(retentionWith({ endedTasksMs: 5 }), {
      endedTasksMs: 5,
      idleContextsMs: 30 * DAY,
      sweepEveryMs: MINUTE
    })
  })

  await t.test('with an invalid time is refused at once, with what to write', async t => {
    const agent = defineAgent({ card: { name: 'Test' }, work: () => ({}) })
    for (const name of ['endedTasksMs', 'idleContextsMs', 'sweepEveryMs']) {
      for (const wrong of [0, -1, NaN, '5', null, 10n, {}]) {
        t.throws(() => createRuntime({ agent, retention: { [name]: wrong } }), {
          name: 'RangeError',
          message: new RegExp(
            `^retention\\.${name} has to be a number of milliseconds above 0, or Infinity, not .*\\. Leave it out`
          )
        })
      }
    }
    for (const long of [Infinity, 2 ** 31])
      t.throws(() => createRuntime({ agent, retention: { sweepEveryMs: long } }), {
        name: 'RangeError',
        message: /at most 2147483647/
      })
  })
})

await t.test('a runtime', async t => {
  await t.test('deletes an ended task after its time, and its context later', async t => {
    const { runtime, clock, store } = start(t, {
      work: painter(),
      negotiate: ({ message }) => (textOf(message) === 'hi' ? reply('hello') : { type: 'accepted' })
    })
    const ended = taskIn(await runtime.sendMessage(say('a boat', { contextId: 'c' })))
    await runtime.sendMessage(say('red', { taskId: ended.id }))
    const waits = taskIn(await runtime.sendMessage(say('a boat', { contextId: 'd' })))
    clock.increment(30 * DAY)
    await rest()
    t.equal((await runtime.getTask({ id: ended.id })).status.state, 'TASK_STATE_COMPLETED')
    clock.increment(MINUTE)
    await rest()
    t.equal((await refusal(runtime.getTask({ id: ended.id }))).code, 'TaskNotFound')
    t.strictSame(
      (await runtime.listTasks({})).tasks.map(({ id }) => id),
      [waits.id]
    )
    t.strictSame(await collect(runtime.subscribeToTask({ id: ended.id })).catch(({ code }) => code), 'TaskNotFound')
    t.equal(await store.loadContext({ tenant: '', principal: 'anonymous', contextId: 'c' }), undefined)
    t.equal(stateName((await runtime.getTask({ id: waits.id })).status.state), 'input-required', 'a waiting one stays')
  })

  await t.test('keeps data with an infinite time, except sends', async t => {
    const { runtime, clock, store } = start(
      t,
      { work: () => ({}) },
      { retention: { endedTasksMs: Infinity, idleContextsMs: Infinity } }
    )
    const { id } = taskIn(await runtime.sendMessage(say('go', { messageId: 'm' }), withGenerations))
    t.ok(await store.readSend({ tenant: '', principal: 'anonymous' }, '["m","none"]'))
    for (const ms of [10_000 * DAY, MINUTE]) {
      clock.increment(ms)
      await rest()
    }
    t.equal((await runtime.getTask({ id })).status.state, 'TASK_STATE_COMPLETED')
    t.equal(await store.readSend({ tenant: '', principal: 'anonymous' }, '["m","none"]'), undefined)
  })

  await t.test('answers a resent message of a deleted task with TaskNotFound, without processing it', async t => {
    let runs = 0
    const { runtime, clock } = start(t, { work: () => void (runs += 1) }, { retention: { endedTasksMs: 1 } })
    const message = say('go', { messageId: 'm' })
    await runtime.sendMessage(message, withGenerations)
    clock.increment(MINUTE)
    await rest()
    t.equal((await refusal(runtime.sendMessage(message, withGenerations))).code, 'TaskNotFound')
    t.equal(runs, 1)
  })

  for (const kind of ['a task', 'an answer']) {
    await t.test(`restarts a deleted context that was in memory: the next message gets ${kind}`, async t => {
      const loads: string[] = []
      const inner = memoryStore()
      const store: Store = { ...inner, loadContext: key => (loads.push(key.contextId), inner.loadContext(key)) }
      const negotiate = kind === 'an answer' ? { negotiate: () => reply('hello') } : { work: () => ({ artifact: 'x' }) }
      const { runtime, clock } = start(t, negotiate, { store })
      await runtime.sendMessage(say('one', { contextId: 'c' }))
      clock.increment(31 * DAY)
      await rest()
      clock.increment(MINUTE)
      await rest()
      t.equal(await inner.loadContext({ tenant: '', principal: 'anonymous', contextId: 'c' }), undefined)
      t.strictSame(loads, ['c'])
      const answer = await runtime.sendMessage(say('two', { contextId: 'c' }))
      if (kind === 'a task') t.equal(taskIn(answer).status.state, 'TASK_STATE_COMPLETED')
      else t.equal(textOf(messageIn(answer)), 'hello')
      t.strictSame(loads, ['c', 'c'], 'it lost its race and was loaded again')
      const told = await collect(runtime.sendStreamingMessage(say('three', { contextId: 'c' })))
      t.ok(told.length > 0)
      t.equal(
        (await inner.readMessages({ tenant: '', principal: 'anonymous', contextId: 'c' }, 100)).length,
        kind === 'a task' ? 2 : 4,
        'nothing earlier is there'
      )
    })
  }
})
