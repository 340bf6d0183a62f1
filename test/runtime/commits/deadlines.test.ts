import t from 'tap'
import { defineAgent, setupWork } from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { notInTime } from '../../../runtime/commits/task-timers.ts'
import { echo, painter, steeredWork } from '../../fixtures/runtime/agents.ts'
import { lives } from '../../fixtures/runtime/lives.ts'
import {
  deferred,
  open,
  reaches,
  rest,
  say,
  start,
  stateName,
  taskIn,
  textOf
} from '../../fixtures/runtime/runtime-helpers.ts'

const MINUTE = 60_000

/** Has the work of a task begin only when the store was read. */
const refersToOthers = { referenceTaskIds: ['another'] }

await t.test('a task with a deadline', async t => {
  await t.test('that has not ended by then fails with the reason, and its work stops', async t => {
    const { work, run } = steeredWork()
    const { runtime, clock } = start(t, { work, deadlineMs: 2 * MINUTE })
    const { id } = await open(runtime)
    const { given, resolve } = await run()
    clock.increment(2 * MINUTE - 1)
    await rest()
    t.notOk(given.signal.aborted)
    clock.increment(1)
    const task = await reaches(runtime, id, 'failed')
    t.equal(textOf(task.status.message), 'The task was not finished within 2 minutes.')
    t.ok(given.signal.aborted)
    resolve({ artifact: 'too late' })
    await rest()
    t.strictSame(await runtime.getTask({ id }), task)
    t.equal(clock.pending, 0)
  })

  await t.test('that ends in time leaves no timer', async t => {
    const { runtime, clock } = start(t, { work: echo, deadlineMs: MINUTE })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    t.equal(clock.pending, 0)
    clock.increment(MINUTE)
    await reaches(runtime, id, 'completed')
  })

  await t.test('counts the time that it waits for an answer', async t => {
    const agent = lives(t, { work: painter(), deadlineMs: MINUTE })
    const { id } = taskIn(await agent.runtime.sendMessage(say('a boat')))
    await agent.pass(MINUTE)
    await reaches(agent.runtime, id, 'failed')
  })

  await t.test('keeps it through restarts, and fails at once after one if it has passed', async t => {
    for (const overdue of [false, true]) {
      const { work } = steeredWork()
      const agent = lives(t, { work, deadlineMs: 60 * 24 * 60 * MINUTE })
      const { id } = await open(agent.runtime)
      await agent.pass(30 * 24 * 60 * MINUTE)
      if (overdue) {
        await agent.runtime.close()
        agent.clock.increment(31 * 24 * 60 * MINUTE)
      }
      await agent.restart()
      if (!overdue) await agent.pass(30 * 24 * 60 * MINUTE - 1)
      if (!overdue) {
        t.equal(stateName((await agent.runtime.getTask({ id })).status.state), 'working')
        await agent.pass(1)
      }
      const task = await reaches(agent.runtime, id, 'failed')
      t.equal(textOf(task.status.message), 'The task was not finished within 60 days.')
    }
  })

  await t.test('fails by it though its agent no longer has one', async t => {
    const { work } = steeredWork()
    const agent = lives(t, { work, deadlineMs: MINUTE })
    const { id } = await open(agent.runtime)
    await agent.restart({ work })
    await agent.pass(MINUTE)
    t.equal(textOf((await reaches(agent.runtime, id, 'failed')).status.message), 'The task was not finished in time.')
  })

  await t.test('ends by the earlier one of two timers that passed while nothing ran', async t => {
    for (const [delay, state] of [
      [MINUTE - 1, 'completed'],
      [MINUTE + 1, 'failed']
    ] as const) {
      const work = setupWork({}).createMachine({
        initial: 'a',
        states: { a: { tags: 'input-required', after: { [delay]: 'b' } }, b: { type: 'final' } }
      })
      const agent = lives(t, { work, deadlineMs: MINUTE })
      const { id } = taskIn(await agent.runtime.sendMessage(say('x')))
      await agent.runtime.close()
      agent.clock.increment(2 * MINUTE)
      await agent.restart()
      await reaches(agent.runtime, id, state)
    }
  })

  await t.test('that ends as it starts sets no alarm', async t => {
    const work = setupWork({}).createMachine({ initial: 'a', states: { a: { always: 'b' }, b: { type: 'final' } } })
    const { runtime, clock } = start(t, { work, deadlineMs: MINUTE })
    t.equal(stateName(taskIn(await runtime.sendMessage(say('x'))).status.state), 'completed')
    t.equal(clock.pending, 0)
  })
})

await t.test('a task that is canceled or closed before its work starts sets no alarm', async t => {
  for (const closes of [false, true]) {
    const inner = memoryStore()
    const gate = deferred()
    const slow: Store = {
      ...inner,
      close: async () => {},
      readTaskMessages: async (...args) => (await gate.promise, inner.readTaskMessages(...args))
    }
    const { runtime, clock } = start(t, { work: echo, deadlineMs: MINUTE }, { store: slow })
    const opened = await open(runtime, 'x', refersToOthers)
    if (closes) await runtime.close()
    else void runtime.cancelTask({ id: opened.id })
    await rest()
    gate.resolve()
    await rest()
    t.equal(clock.pending, 0)
  }
})

await t.test('a deadline is printed in the largest unit that divides it', t => {
  const inWords: [number, string][] = [
    [1, '1 millisecond'],
    [1.5, '1.5 milliseconds'],
    [1500, '1500 milliseconds'],
    [90_000, '90 seconds'],
    [60_000, '1 minute'],
    [7_200_000, '2 hours'],
    [86_400_000, '1 day']
  ]
  for (const [ms, words] of inWords)
    t.strictSame(notInTime(ms), { parts: [{ text: `The task was not finished within ${words}.` }] })
  t.end()
})

await t.test('a deadline that is not a number of milliseconds above 0 is refused at once', t => {
  for (const deadlineMs of [0, -1, NaN, Infinity, '5' as never]) {
    t.throws(() => defineAgent({ card: { name: 'A' }, work: echo, deadlineMs }), {
      name: 'RangeError',
      message: /deadlineMs has to be milliseconds above 0/
    })
  }
  t.equal(defineAgent({ card: { name: 'A' }, work: echo, deadlineMs: 5 }).deadlineMs, 5)
  t.end()
})
