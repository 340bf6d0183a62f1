import t from 'tap'
import { A2AError } from '../../../machines/protocol/errors.ts'
import { WakeScheduler } from '../../../runtime/contexts/wake-scheduler.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { withLongTimers } from '../../../runtime/ports/clock.ts'
import type { ContextKey, Store, Wake } from '../../../runtime/store/store.ts'
import { deferred, recordingLogger, rest, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

const keyOf = (contextId: string): ContextKey => ({ tenant: '', principal: 'anna', contextId })

/** Wakes over a list of tasks, each in the context of its name; what is woken is in memory from then on. */
function waking(inMs: Record<string, number>, wake: (name: string) => Promise<void> = async () => {}) {
  const clock = new TestClock()
  const start = clock.now()
  const { logger, log } = recordingLogger()
  const awake = new Set<string>()
  const woken: string[] = []
  const reads: number[] = []
  const all: Wake[] = []
  const add = (name: string, ms: number) =>
    void all.push({ key: keyOf(name), taskId: name, atMs: ms === 0 ? 0 : start + ms })
  for (const [name, ms] of Object.entries(inMs)) add(name, ms)
  const readWakes: Store['readWakes'] = async (limit, after) => {
    reads.push(clock.now() - start)
    return all
      .filter(({ atMs, taskId }) => atMs > after.atMs || (atMs === after.atMs && taskId > after.taskId))
      .toSorted((a, b) => a.atMs - b.atMs || (a.taskId < b.taskId ? -1 : 1))
      .slice(0, limit)
  }
  const store: Store = { ...memoryStore(), readWakes: (limit, after) => readWakes(limit, after) }
  const wakes = new WakeScheduler(
    { store, clock: withLongTimers(clock), logger },
    {
      has: ({ contextId }) => awake.has(contextId),
      wake: async ({ contextId }) => {
        woken.push(`${contextId}@${clock.now() - start}`)
        await wake(contextId)
        awake.add(contextId)
      }
    }
  )
  const pass = async (ms: number) => {
    clock.increment(ms)
    await rest()
  }
  return { clock, wakes, woken, reads, awake, log, add, pass, start, store }
}

await t.test('due contexts are woken at the start, and the rest in time, with one timer', async t => {
  const { wakes, woken, clock, pass } = waking({ works: 0, overdue: -500, soon: 100, later: 200, far: 30 * 86_400_000 })
  wakes.start()
  await rest()
  t.strictSame(woken, ['works@0', 'overdue@0'])
  t.equal(clock.pending, 1)
  await pass(99)
  t.equal(woken.length, 2)
  await pass(1)
  t.strictSame(woken.slice(2), ['soon@100'])
  t.equal(clock.pending, 1)
  await pass(100)
  t.strictSame(woken.slice(3), ['later@200'])
  await pass(30 * 86_400_000)
  t.equal(woken.length, 5)
  t.equal(clock.pending, 0)
})

await t.test('no timer is set and nothing is read without wakes', async t => {
  const { wakes, clock, reads, pass } = waking({})
  wakes.start()
  await rest()
  t.equal(clock.pending, 0)
  await pass(1_000_000)
  t.equal(reads.length, 1)
})

await t.test('a passivated context moves the timer only if its time is earlier', async t => {
  const { wakes, woken, add, clock, pass, start } = waking({ b: 200 })
  wakes.start()
  await rest()
  wakes.expect(Infinity)
  wakes.expect(start + 300)
  add('a', 100)
  wakes.expect(start + 100)
  t.equal(clock.pending, 1)
  await pass(100)
  await pass(100)
  t.strictSame(woken, ['a@100', 'b@200'])
})

await t.test('a context that leaves memory while others are woken is not forgotten', async t => {
  const gate = deferred()
  const { wakes, woken, add, pass, start } = waking({ slow: -1 }, name =>
    name === 'slow' ? gate.promise : Promise.resolve()
  )
  wakes.start()
  await rest()
  add('a', 100)
  add('b', -10)
  wakes.expect(start + 100)
  wakes.expect(start - 10)
  gate.resolve()
  await rest()
  t.strictSame(woken, ['slow@0', 'b@0'])
  await pass(100)
  t.strictSame(woken.slice(2), ['a@100'])
})

await t.test('contexts in memory are skipped', async t => {
  const { wakes, woken, awake, clock, reads, pass } = waking({ works: 0, soon: 100, later: 200 })
  awake.add('works').add('soon')
  wakes.start()
  await rest()
  t.strictSame(woken, [])
  await pass(150)
  t.equal(reads.length, 1, 'no timer is set for them')
  await pass(50)
  t.strictSame(woken, ['later@200'])
  t.equal(clock.pending, 0)
})

await t.test('with many contexts in memory it reads on after the last one', async t => {
  const { wakes, woken, awake, pass } = waking({
    ...Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`t${i}`, 100 + i])),
    last: 500
  })
  for (let i = 0; i < 40; i += 1) awake.add(`t${i}`)
  wakes.start()
  await rest()
  for (let ms = 0; ms < 500; ms += 10) await pass(10)
  t.strictSame(woken, ['last@500'])
})

await t.test('many contexts are woken page by page, a few at once, each once', async t => {
  let atOnce = 0
  let most = 0
  const names = Array.from({ length: 500 }, (_, i) => `t${i}`)
  const { wakes, woken } = waking(Object.fromEntries(names.map(name => [name, -5])), async () => {
    atOnce += 1
    most = Math.max(most, atOnce)
    await rest()
    atOnce -= 1
  })
  wakes.start()
  await until(() => woken.length === 500)
  await rest()
  t.equal(new Set(woken).size, 500)
  t.ok(most <= 32, `${most} at once`)
})

await t.test('a context that cannot be loaded is retried at growing intervals, and blocks no other', async t => {
  let broken = true
  const { wakes, woken, log, pass, clock } = waking({ bad: -10, good: -5, later: 10_000_000 }, name =>
    name === 'bad' && broken ? Promise.reject(new Error('bad row')) : Promise.resolve()
  )
  wakes.start()
  await rest()
  t.strictSame(woken, ['bad@0', 'good@0'])
  t.match(log, [{ level: 'error', message: 'a context could not be loaded', details: { contextId: 'bad' } }])
  for (let s = 0; s < 600; s += 1) await pass(1000)
  const tries = woken.filter(each => each.startsWith('bad')).map(each => Number(each.split('@')[1]) / 1000)
  t.strictSame(tries.slice(0, 9), [0, 1, 3, 7, 15, 31, 63, 123, 183])
  broken = false
  await pass(60_000)
  const before = woken.length
  await pass(3_600_000)
  t.equal(woken.length, before)
  await pass(10_000_000)
  t.equal(woken.filter(each => each.startsWith('later')).length, 1)
  t.equal(clock.pending, 0)
})

await t.test('contexts without room wait for it, without an error in the log', async t => {
  let room = 2
  const names = Array.from({ length: 100 }, (_, i) => `t${String(i).padStart(3, '0')}`)
  const { wakes, awake, log, pass, reads } = waking(Object.fromEntries(names.map(name => [name, -5])), async () => {
    room -= 1
    if (room < 0) throw new A2AError('Overloaded', 'full')
  })
  wakes.start()
  await rest()
  t.equal(awake.size, 2)
  t.equal(reads.length, 1, 'it does not read further')
  room = 1000
  await pass(1000)
  await until(() => awake.size === 100)
  t.strictSame(log, [])
})

await t.test('a store that does not answer is read again later', async t => {
  const { wakes, woken, log, pass, store } = waking({ a: -5, b: 50 })
  const read = store.readWakes
  store.readWakes = () => Promise.reject(new Error('disk'))
  wakes.start()
  await rest()
  t.match(log, [{ level: 'error', message: 'the wakes that are due could not be read' }])
  store.readWakes = read
  await pass(999)
  t.strictSame(woken, [])
  await pass(1)
  t.strictSame(woken, ['a@1000', 'b@1000'])
})

await t.test('a context that is missing from memory is looked up again later', async t => {
  const { wakes, woken, awake, pass } = waking({ works: 0 })
  wakes.start()
  await rest()
  awake.clear()
  wakes.retry()
  await pass(999)
  t.equal(woken.length, 1)
  await pass(1)
  t.strictSame(woken, ['works@0', 'works@1000'])
})

await t.test('closing leaves no timer, wakes nothing and logs nothing, also during a read', async t => {
  for (const fails of [false, true]) {
    const gate = deferred()
    const { wakes, woken, clock, log, pass } = waking(
      { ...Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`t${i}`, -5])), later: 100 },
      () => gate.promise
    )
    wakes.start()
    await rest()
    t.equal(woken.length, 32)
    wakes.close()
    wakes.close()
    wakes.expect(0)
    if (fails) gate.reject(new Error('closed'))
    else gate.resolve()
    await pass(100_000)
    t.equal(woken.length, 32)
    t.equal(clock.pending, 0)
    t.strictSame(log, [])
  }
  const { wakes, clock, log, store } = waking({ a: 100 })
  const gate = deferred()
  store.readWakes = async () => (await gate.promise, [])
  wakes.start()
  wakes.close()
  gate.reject(new Error('closed'))
  await rest()
  t.strictSame([clock.pending, log.length], [0, 0])
})

await t.test('closing cancels a timer that is set', async t => {
  const { wakes, clock } = waking({ a: 100 })
  wakes.start()
  await rest()
  t.equal(clock.pending, 1)
  wakes.close()
  t.equal(clock.pending, 0)
})
