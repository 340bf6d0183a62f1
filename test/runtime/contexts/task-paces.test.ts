import t from 'tap'
import { fromCallback, fromPromise, spawnChild } from 'xstate'
import { setupWork } from '../../../runtime/index.ts'
import { open, reaches, rest, say, start, stateName, taskIn, until } from '../../fixtures/runtime/runtime-helpers.ts'

const SLOWED = 'a chart goes round at once, again and again, so its turns wait. Add a delay to its retries'

/** A chart that asks, and meanwhile tries the same again and again. */
function retrying(tried: () => void, kind: 'promise' | 'callback') {
  const attempt =
    kind === 'promise'
      ? fromPromise(async () => {
          tried()
          throw new Error('busy')
        })
      : fromCallback<{ type: 'x' }>(({ sendBack }) => {
          tried()
          void Promise.resolve().then(() => sendBack({ type: 'failed' }))
        })
  return setupWork({ types: { events: {} as { type: 'failed' } }, actors: { attempt } }).createMachine({
    initial: 'trying',
    tags: 'input-required',
    meta: { prompt: 'Stop?' },
    on: { 'message.received': '.done' },
    states: {
      trying: { invoke: { src: 'attempt', id: 'attempt', onError: 'again' }, on: { failed: 'again' } },
      again: { always: 'trying' },
      done: { type: 'final' }
    }
  })
}

for (const kind of ['promise', 'callback'] as const) {
  await t.test(
    `a chart whose ${kind} is tried again at once for ever waits after 100 turns, twice as long each time, up to a second`,
    async t => {
      let count = 0
      const { runtime, clock, log } = start(t, { work: retrying(() => void (count += 1), kind) })
      const { id } = await open(runtime)
      await until(() => log.some(({ message }) => message === SLOWED))
      await rest()
      t.equal(count, 101)
      for (const waitMs of [10, 20, 40, 80, 160, 320, 640, 1000, 1000]) {
        const before = count
        clock.increment(waitMs - 1)
        await rest()
        t.equal(count, before, `not within ${waitMs - 1} ms`)
        clock.increment(1)
        await until(() => count === before + 1)
        await rest()
      }
      t.strictSame(
        log.map(({ message, details }) => [message, details]),
        [[SLOWED, { taskId: id, turns: 101 }]],
        'it is logged once'
      )
      t.equal(
        stateName(taskIn(await runtime.sendMessage(say('yes', { taskId: id }))).status.state),
        'completed',
        'a message is answered at once'
      )
      const last = count
      clock.increment(10_000)
      await rest()
      t.equal(count, last)
    }
  )
}

await t.test('a slowed task is canceled at once, and a limit of the agent replaces the default', async t => {
  let count = 0
  const { runtime, clock, log } = start(
    t,
    { work: retrying(() => void (count += 1), 'promise') },
    { limits: { advanced: { hastyTurns: 5 } } }
  )
  const { id } = await open(runtime)
  await until(() => log.some(({ message }) => message === SLOWED))
  await rest()
  t.equal(count, 6)
  t.equal(stateName((await runtime.cancelTask({ id })).status.state), 'canceled')
  clock.increment(10_000)
  await rest()
  t.equal(count, 6)
})

await t.test(
  'a chart that goes round by timers of a few milliseconds is slowed too, and one whose timers or actors take longer is not',
  async t => {
    for (const [delayMs, isSlowed] of [
      [1, true],
      [10, false]
    ] as const) {
      let count = 0
      const work = setupWork({}).createMachine({
        initial: 'a',
        states: {
          a: {
            entry: () => {
              count += 1
            },
            after: { [delayMs]: 'b' }
          },
          b: { after: { [delayMs]: 'a' } }
        }
      })
      const { runtime, clock, log } = start(t, { work }, { limits: { advanced: { hastyTurns: 20 } } })
      await runtime.sendMessage(say('go', {}, { returnImmediately: true }))
      await until(() => count === 1)
      for (let passedMs = 0; passedMs < 50 * delayMs; passedMs += delayMs) {
        clock.increment(delayMs)
        await rest()
      }
      t.equal(
        log.some(({ message }) => message === SLOWED),
        isSlowed
      )
      t.ok(isSlowed ? count < 14 : count > 20, `${count} rounds`)
      await runtime.close()
    }
  }
)

await t.test(
  'turns are counted for a second: a task that is hasty now and then is not slowed, nor are many actors that end at once',
  async t => {
    let count = 0
    const { runtime, clock, log } = start(
      t,
      {
        work: setupWork({
          actors: {
            quick: fromPromise(async () => {
              count += 1
            })
          }
        }).createMachine({
          initial: 'a',
          states: { a: { invoke: { src: 'quick', onDone: 'b' } }, b: { after: { 1000: 'a' } } }
        })
      },
      { limits: { advanced: { hastyTurns: 3 } } }
    )
    await runtime.sendMessage(say('go', {}, { returnImmediately: true }))
    for (let round = 1; round < 10; round += 1) {
      await until(() => count === round && clock.pending > 0)
      clock.increment(1000)
    }
    t.strictSame(log, [])
    let ended = 0
    const many = setupWork({
      types: { context: {} as { ended: number } },
      actors: { quick: fromPromise(async () => {}) }
    }).createMachine({
      context: { ended: 0 },
      initial: 'a',
      entry: Array.from({ length: 150 }, (_, i) => spawnChild('quick', { id: `quick ${i}` })),
      states: { a: { on: { '*': [{ guard: () => (ended += 1) === 150, target: 'b' }] } }, b: { type: 'final' } }
    })
    const other = start(t, { work: many })
    const { id } = await open(other.runtime)
    t.equal(stateName((await reaches(other.runtime, id, 'completed')).status.state), 'completed')
  }
)

await t.test('a slowed task fails at its deadline', async t => {
  const { runtime, clock, log } = start(
    t,
    { work: retrying(() => {}, 'promise'), deadlineMs: 5 },
    { limits: { advanced: { hastyTurns: 5 } } }
  )
  const { id } = await open(runtime)
  await until(() => log.some(({ message }) => message === SLOWED))
  await rest()
  clock.increment(5)
  t.equal(stateName((await reaches(runtime, id, 'failed')).status.state), 'failed')
})

await t.test('what waits is dropped when its context leaves memory', async t => {
  let count = 0
  const { runtime, clock, log } = start(t, { work: retrying(() => void (count += 1), 'promise') })
  await open(runtime)
  await until(() => log.some(({ message }) => message === SLOWED))
  await rest()
  await runtime.close()
  const last = count
  clock.increment(10_000)
  await rest()
  t.equal(count, last)
})
