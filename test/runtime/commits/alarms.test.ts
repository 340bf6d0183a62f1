import t from 'tap'
import { fromCallback } from 'xstate'
import { taskIdOf, hostOf, type ActorHost } from '../../../runtime/commits/actor-host.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { setupWork } from '../../../runtime/index.ts'
import { unrefTimer, withLongTimers } from '../../../runtime/ports/clock.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { Alarms } from '../../../runtime/commits/task-timers.ts'
import { open, reaches, rest, start, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

const DAY = 24 * 60 * 60 * 1000

await t.test('timers of any length', async t => {
  const timed = () => {
    const clock = new TestClock()
    const fired: string[] = []
    const long = withLongTimers(clock)
    return {
      clock,
      long,
      fired,
      set: (name: string, delayMs: number) => long.setTimeout(() => void fired.push(name), delayMs)
    }
  }

  await t.test("one longer than Node's maximum fires at its time, and not before", t => {
    const { clock, long, fired, set } = timed()
    set('30 days', 30 * DAY)
    set('100 days', 100 * DAY)
    clock.increment(30 * DAY - 1)
    t.strictSame(fired, [])
    clock.increment(1)
    t.strictSame(fired, ['30 days'])
    clock.increment(70 * DAY)
    t.strictSame(fired, ['30 days', '100 days'])
    t.equal(clock.pending, 0)
    t.equal(long.now(), clock.now())
    t.end()
  })

  await t.test('if the clock is set back, it waits no longer than its delay', t => {
    const { clock, fired, set } = timed()
    set('a day', DAY)
    clock.increment(DAY / 2)
    clock.set(-10 * DAY)
    clock.increment(DAY / 2 - 1)
    t.strictSame(fired, [])
    clock.increment(1)
    t.strictSame(fired, ['a day'])
    t.end()
  })

  await t.test('a canceled one never fires, also after its first part, and may be canceled twice', t => {
    const { clock, long, fired, set } = timed()
    const timers = [set('short', 5), set('long', 30 * DAY), set('fired', 1)]
    clock.increment(2)
    long.clearTimeout(timers[0])
    clock.increment(29 * DAY)
    for (const timer of [...timers, ...timers, undefined]) long.clearTimeout(timer)
    clock.increment(DAY)
    t.strictSame(fired, ['fired'])
    t.equal(clock.pending, 0)
    t.end()
  })

  await t.test('one fires within a minute if the clock is set to its time or beyond', t => {
    const { clock, fired, set } = timed()
    const timers = { soon: 61_000, later: 2 * 60 * 60_000, never: 3 * 60 * 60_000 }
    for (const [name, delayMs] of Object.entries(timers)) set(name, delayMs)
    clock.set(2 * 60 * 60_000)
    clock.increment(59_999)
    t.strictSame(fired, [])
    clock.increment(1)
    t.strictSame(fired, ['soon', 'later'])
    t.end()
  })

  await t.test('one that does not keep the process alive does not after its first minute either', t => {
    const { clock, long } = timed()
    unrefTimer(long.setTimeout(() => t.fail('fired'), DAY))
    t.equal(clock.pending, 0)
    clock.increment(DAY - 1)
    t.equal(clock.pending, 0)
    t.equal(clock.size, 1)
    t.end()
  })

  await t.test('an infinite one never fires; zero, a negative one or NaN fires at once', async t => {
    const { clock, long, fired, set } = timed()
    const never = set('never', Infinity)
    for (const delayMs of [-5, -Infinity, NaN, 0]) set(String(delayMs), delayMs)
    long.clearTimeout(set('taken back', 0))
    t.strictSame(fired, [])
    await rest()
    t.strictSame(fired, ['-5', '-Infinity', 'NaN', '0'])
    clock.increment(1000 * DAY)
    long.clearTimeout(never)
    t.equal(fired.length, 4)
  })
})

await t.test('alarms', async t => {
  const alarmed = () => {
    const clock = new TestClock()
    const rung: string[] = []
    const alarms = new Alarms(withLongTimers(clock))
    const set = (taskId: string, name: string, inMs: number) =>
      alarms.set(taskId, name, clock.now() + inMs, () => void rung.push(`${taskId} ${name}`))
    return { clock, alarms, rung, set }
  }

  await t.test('ring once, at their time', t => {
    const { clock, alarms, rung, set } = alarmed()
    const now = clock.now()
    set('t', 'a', 10)
    set('u', 'a', 20)
    set('t', 'b', 5)
    t.equal(alarms.nextOf('t'), now + 5)
    clock.increment(9)
    t.strictSame(rung, ['t b'])
    t.equal(alarms.nextOf('t'), now + 10)
    clock.increment(100)
    t.strictSame(rung, ['t b', 't a', 'u a'])
    t.equal(alarms.nextOf('t'), Infinity)
    t.equal(alarms.nextOf('nobody'), Infinity)
    t.end()
  })

  await t.test('an overdue one rings as soon as possible, but after the call', async t => {
    const { rung, set } = alarmed()
    set('t', 'a', -1000)
    t.strictSame(rung, [])
    await rest()
    t.strictSame(rung, ['t a'])
  })

  await t.test('one of the same name replaces the first', t => {
    const { clock, alarms, rung, set } = alarmed()
    set('t', 'a', 10)
    set('t', 'a', 30)
    t.equal(alarms.nextOf('t'), clock.now() + 30)
    clock.increment(29)
    t.strictSame(rung, [])
    clock.increment(1)
    t.strictSame(rung, ['t a'])
    t.end()
  })

  await t.test('one may set itself again while it rings', t => {
    const { clock, alarms } = alarmed()
    let rung = 0
    const again = () => {
      rung += 1
      if (rung < 3) alarms.set('t', 'a', clock.now() + 10, again)
    }
    again()
    clock.increment(100)
    t.equal(rung, 3)
    t.equal(clock.pending, 0)
    t.end()
  })

  await t.test('canceled ones never ring: by name, by task, or all', t => {
    const { clock, alarms, rung, set } = alarmed()
    for (const [taskId, name] of [
      ['t', 'a'],
      ['t', 'b'],
      ['u', 'a'],
      ['u', 'b'],
      ['v', 'a']
    ] as const)
      set(taskId, name, 10)
    t.ok(alarms.clear('t', 'a'))
    t.notOk(alarms.clear('t', 'a'))
    t.notOk(alarms.clear('nobody', 'a'))
    alarms.clearTask('u')
    t.equal(clock.pending, 2)
    alarms.clearAll()
    alarms.clearAll()
    clock.increment(10)
    t.strictSame(rung, [])
    t.equal(clock.pending, 0)
    t.end()
  })
})

await t.test('a task’s alarms', async t => {
  /** Work that hands its host to the test, and its id. */
  const hosted = () => {
    const hosts: { host: ActorHost; taskId: string }[] = []
    const hand = fromCallback(({ system, self }) => void hosts.push({ host: hostOf(system), taskId: taskIdOf(self) }))
    const work = setupWork({ actors: { hand } }).createMachine({
      initial: 'handing',
      states: {
        handing: { invoke: { src: 'hand' }, after: { 0: 'asking' } },
        asking: { tags: 'input-required', on: { 'message.received': {} } }
      }
    })
    return { work, host: () => until(() => hosts.at(-1)) }
  }
  const rowOf = async (store: Store, contextId: string) =>
    (await store.loadContext({ tenant: '', principal: 'anonymous', contextId }))?.tasks[0]

  await t.test('are stored with it as its next wake, until they ring or are canceled', async t => {
    const { work, host } = hosted()
    const { runtime, store, clock } = start(t, { work })
    const { id } = await open(runtime, 'x', { contextId: 'c' })
    const now = clock.now()
    const rung: string[] = []
    const { host: live } = await host()
    live.setAlarm(id, 'late', now + 30 * DAY, () => void rung.push('late'))
    live.setAlarm(id, 'soon', now + 1000, () => void rung.push('soon'))
    await rest()
    t.equal((await rowOf(store, 'c'))?.wakeAtMs, now + 1000)
    clock.increment(1000)
    await rest()
    t.equal((await rowOf(store, 'c'))?.wakeAtMs, now + 30 * DAY)
    live.clearAlarm(id, 'late')
    await rest()
    t.equal((await rowOf(store, 'c'))?.wakeAtMs, undefined)
    t.strictSame(rung, ['soon'])
  })

  await t.test('end with it, and an ended task gets none', async t => {
    const { work, host } = hosted()
    const { runtime, clock } = start(t, { work })
    const { id } = await open(runtime)
    const { host: live } = await host()
    live.setAlarm(id, 'late', clock.now() + 1000, () => t.fail('rang'))
    t.equal(clock.pending, 1)
    await runtime.cancelTask({ id })
    t.equal(clock.pending, 0)
    live.setAlarm(id, 'later', clock.now() + 1000, () => t.fail('rang'))
    t.equal(clock.pending, 0)
  })

  await t.test('are removed when its context leaves memory, which actors can distinguish from an end', async t => {
    const { work, host } = hosted()
    const { runtime, clock } = start(t, { work }, { store: { ...memoryStore(), close: async () => {} } })
    const { id } = await open(runtime)
    const { host: live } = await host()
    live.setAlarm(id, 'late', clock.now() + 1000, () => t.fail('rang'))
    t.notOk(live.isLeaving)
    await runtime.close()
    t.ok(live.isLeaving)
    live.setAlarm(id, 'later', clock.now() + 1000, () => t.fail('rang'))
    t.equal(clock.pending, 0)
  })

  await t.test('one that throws fails only its task', async t => {
    const { work, host } = hosted()
    const { runtime, clock, log } = start(t, { work })
    const { id } = await open(runtime)
    const { host: live } = await host()
    live.setAlarm(id, 'bad', clock.now() + 1, () => {
      throw new Error('x')
    })
    clock.increment(1)
    await reaches(runtime, id, 'failed')
    t.match(log, [{ message: 'the work of a task failed' }])
  })
})
