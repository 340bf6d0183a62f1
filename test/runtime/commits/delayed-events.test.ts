import t from 'tap'
import { assign, cancel, emit, fromCallback, raise, sendParent, sendTo, spawnChild, type EventObject } from 'xstate'
import { hostOf } from '../../../runtime/commits/actor-host.ts'
import { artifact, setupWork } from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { anyone, lives, type Lives } from '../../fixtures/runtime/lives.ts'
import { rest, say, start, stateName, taskIn, textOf, until } from '../../fixtures/runtime/runtime-helpers.ts'

const DAY = 24 * 60 * 60 * 1000
/** Opens a task in the context `c`, which comes to ask or to an end. */
async function openTask({ runtime }: Lives, text = 'go'): Promise<string> {
  return taskIn(await runtime.sendMessage(say(text, { contextId: 'c' }))).id
}

async function stateOf({ runtime }: Lives, id: string): Promise<string> {
  return stateName((await runtime.getTask({ id })).status.state)
}

/** What a task's work told, in order. */
async function toldBy({ store }: Lives, id: string): Promise<(string | undefined)[]> {
  const events = await store.readEvents(anyone, id, 0, 1000)
  return events.flatMap(({ update }) => ('artifactUpdate' in update ? textOf(update.artifactUpdate.artifact) : []))
}

async function rowOf({ store }: Lives): Promise<{ wakeAtMs: number | undefined; delayed: unknown[] } | undefined> {
  const row = (await store.loadContext({ ...anyone, contextId: 'c' }))?.tasks[0]
  return row && { wakeAtMs: row.wakeAtMs, delayed: JSON.parse(String(row.snapshot)).delayed ?? [] }
}

/** Asks, and gives up when nobody answers in time. */
const asking = (delay: number) =>
  setupWork({}).createMachine({
    initial: 'asking',
    states: {
      asking: { tags: 'input-required', after: { [delay]: 'late' }, on: { 'message.received': 'done' } },
      late: { type: 'final', tags: 'failed', meta: { reason: 'nobody answered' } },
      done: { type: 'final' }
    }
  })

await t.test('a state’s `after`', async t => {
  await t.test('is stored with the task and its due time', async t => {
    const agent = lives(t, { work: asking(1000) })
    await openTask(agent)
    const dueMs = agent.clock.now() + 1000
    t.strictSame(await rowOf(agent), {
      wakeAtMs: dueMs,
      delayed: [
        {
          source: ['work'],
          event: { type: 'xstate.after.1000.(machine).asking' },
          id: 'xstate.after.1000.(machine).asking',
          dueMs
        }
      ]
    })
  })

  await t.test('continues after a restart with the remaining time, and not before', async t => {
    const agent = lives(t, { work: asking(1000) })
    const id = await openTask(agent)
    await agent.pass(400)
    await agent.restart()
    await agent.pass(599)
    t.equal(await stateOf(agent, id), 'input-required')
    await agent.pass(1)
    t.equal(await stateOf(agent, id), 'failed')
    t.equal(textOf((await agent.runtime.getTask({ id })).status.message), 'nobody answered')
    t.equal(agent.clock.pending, 0)
  })

  await t.test('keeps its time through any number of restarts', async t => {
    const agent = lives(t, { work: asking(1000) })
    const id = await openTask(agent)
    for (let i = 0; i < 9; i += 1) {
      await agent.pass(100)
      await agent.restart()
    }
    await agent.pass(99)
    t.equal(await stateOf(agent, id), 'input-required')
    await agent.pass(1)
    t.equal(await stateOf(agent, id), 'failed')
  })

  await t.test('of 30 days keeps its time, in memory and through a restart', async t => {
    for (const restarts of [false, true]) {
      const agent = lives(t, { work: asking(30 * DAY) })
      const id = await openTask(agent)
      await agent.pass(DAY)
      if (restarts) await agent.restart()
      await agent.pass(29 * DAY - 1)
      t.equal(await stateOf(agent, id), 'input-required')
      await agent.pass(1)
      t.equal(await stateOf(agent, id), 'failed')
    }
  })

  await t.test('that passed while nothing ran fires at once after the start', async t => {
    const agent = lives(t, { work: asking(1000) })
    const id = await openTask(agent)
    await agent.runtime.close()
    agent.clock.increment(30 * DAY)
    await agent.restart()
    await rest()
    t.equal(await stateOf(agent, id), 'failed')
  })

  await t.test('does not fire when its state is left, before or after a restart', async t => {
    for (const restarts of [false, true]) {
      const agent = lives(t, { work: asking(1000) })
      const id = await openTask(agent)
      if (restarts) await agent.restart()
      await agent.runtime.sendMessage(say('here', { taskId: id }))
      await agent.pass(2000)
      t.equal(await stateOf(agent, id), 'completed')
      t.equal(agent.clock.pending, 0)
    }
  })

  await t.test('starts again when its state is entered again', async t => {
    const work = setupWork({}).createMachine({
      initial: 'asking',
      states: {
        asking: { tags: 'input-required', after: { 1000: 'done' }, on: { 'message.received': 'thinking' } },
        thinking: { after: { 100: 'asking' } },
        done: { type: 'final' }
      }
    })
    const agent = lives(t, { work })
    const id = await openTask(agent)
    await agent.pass(900)
    await agent.restart()
    await agent.runtime.sendMessage(say('x', { taskId: id }, { returnImmediately: true }))
    await agent.restart()
    await agent.pass(100)
    t.equal(await stateOf(agent, id), 'input-required')
    await agent.restart()
    await agent.pass(999)
    t.equal(await stateOf(agent, id), 'input-required')
    await agent.pass(1)
    t.equal(await stateOf(agent, id), 'completed')
  })
})

/** Says when each of its timers fires. */
const regions = (...delays: number[]) =>
  setupWork({}).createMachine({
    tags: 'input-required',
    type: 'parallel',
    states: Object.fromEntries(
      delays.map((delay, i) => [
        `r${i}`,
        {
          initial: 'waiting',
          states: {
            waiting: { after: { [delay]: 'over' } },
            over: { type: 'final' as const, entry: emit(artifact(`after ${delay}`)) }
          }
        }
      ])
    )
  })

await t.test('several timers at once', async t => {
  await t.test('keep their own times through restarts, and the earliest is the task’s wake', async t => {
    const agent = lives(t, { work: regions(300, 100, 200) })
    const id = await openTask(agent)
    const begin = agent.clock.now()
    t.equal((await rowOf(agent))?.wakeAtMs, begin + 100)
    await agent.restart()
    await agent.pass(100)
    t.strictSame(await toldBy(agent, id), ['after 100'])
    t.equal((await rowOf(agent))?.wakeAtMs, begin + 200)
    await agent.restart()
    await agent.pass(100)
    t.strictSame(await toldBy(agent, id), ['after 100', 'after 200'])
    await agent.pass(100)
    t.strictSame(await toldBy(agent, id), ['after 100', 'after 200', 'after 300'])
  })

  await t.test('that passed while nothing ran fire in the order of their times', async t => {
    const agent = lives(t, { work: regions(500, 100, 30 * DAY, 300) })
    const id = await openTask(agent)
    await agent.runtime.close()
    agent.clock.increment(31 * DAY)
    await agent.restart()
    await rest()
    t.strictSame(await toldBy(agent, id), ['after 100', 'after 300', 'after 500', `after ${30 * DAY}`])
    t.equal(await stateOf(agent, id), 'completed')
  })
})

await t.test('each fires once', async t => {
  await t.test('a fired one is no longer stored, and does not fire again after a restart', async t => {
    const agent = lives(t, { work: regions(100, 200) })
    const id = await openTask(agent)
    await agent.pass(100)
    t.equal((await rowOf(agent))?.delayed.length, 1)
    await agent.restart()
    await agent.pass(100)
    t.strictSame(await toldBy(agent, id), ['after 100', 'after 200'])
  })

  await t.test('one whose commit fails fires again when the context is loaded again', async t => {
    const inner = memoryStore()
    let failures = 0
    const store: Store = {
      ...inner,
      commit: commit => (failures > 0 ? ((failures -= 1), Promise.reject(new Error('disk'))) : inner.commit(commit))
    }
    const agent = lives(t, { work: regions(100, 200) }, { store })
    const id = await openTask(agent)
    failures = 1
    await agent.pass(100)
    await rest()
    t.match(agent.log, [{ message: 'a commit failed' }])
    await agent.pass(1000)
    await agent.pass(0)
    t.strictSame(await toldBy(agent, id), ['after 100', 'after 200'])
  })
})

await t.test('delayed events', async t => {
  const ring = (name: unknown, delay: number, id?: string) =>
    raise({ type: 'rung', name } as EventObject, { delay, ...(id !== undefined && { id }) })
  /** A chart that schedules what the test says, and tells what arrives. */
  const scheduling = (...actions: ReturnType<typeof ring>[]) =>
    setupWork({ types: { events: {} as { type: 'rung'; name: string } } }).createMachine({
      tags: 'input-required',
      entry: actions as never[],
      on: {
        rung: { actions: emit(({ event }) => artifact(event.name)) },
        'message.received': { actions: cancel('first') }
      },
      initial: 'a',
      states: { a: {} }
    })

  await t.test('raised by a chart arrive after a restart with their data, also without an id', async t => {
    const agent = lives(t, { work: scheduling(ring('first', 100, 'first'), ring('second', 50)) })
    const id = await openTask(agent)
    await agent.restart()
    await agent.pass(99)
    t.strictSame(await toldBy(agent, id), ['second'])
    await agent.restart()
    await agent.pass(1)
    t.strictSame(await toldBy(agent, id), ['second', 'first'])
    t.equal((await rowOf(agent))?.wakeAtMs, undefined)
  })

  await t.test('are canceled by their id, before and after a restart', async t => {
    for (const restarts of [false, true]) {
      const agent = lives(t, { work: scheduling(ring('first', 100, 'first'), ring('second', 200, 'second')) })
      const id = await openTask(agent)
      if (restarts) await agent.restart()
      await agent.runtime.sendMessage(say('x', { taskId: id }, { returnImmediately: true }))
      await rest()
      t.equal((await rowOf(agent))?.delayed.length, 1)
      await agent.restart()
      await agent.pass(1000)
      t.strictSame(await toldBy(agent, id), ['second'])
    }
  })

  await t.test('never arrive if infinite; negative or NaN ones arrive as soon as possible', async t => {
    const agent = lives(t, { work: scheduling(ring('never', Infinity), ring('below', -1000), ring('none', NaN)) })
    const id = await openTask(agent)
    t.equal((await rowOf(agent))?.delayed.length, 2)
    await agent.restart()
    await rest()
    t.strictSame(await toldBy(agent, id), ['below', 'none'])
    await agent.pass(1000 * DAY)
    t.equal((await toldBy(agent, id)).length, 2)
  })

  await t.test('two with one id both arrive, as in XState, also after a restart', async t => {
    const agent = lives(t, { work: scheduling(ring('one', 100, 'same'), ring('two', 200, 'same')) })
    const id = await openTask(agent)
    await agent.restart()
    await agent.pass(200)
    t.strictSame(await toldBy(agent, id), ['one', 'two'])
  })

  await t.test('that JSON cannot represent fail their task', async t => {
    const agent = lives(t, { work: scheduling(ring(1n, 100)) })
    t.equal(await stateOf(agent, await openTask(agent)), 'failed')
    t.equal(agent.clock.pending, 0)
  })
})

await t.test('actors below the work', async t => {
  /** A machine that tells its parent when its time is over. */
  const timer = setupWork({}).createMachine({
    initial: 'running',
    states: { running: { after: { 1000: 'over' } }, over: { type: 'final' } }
  })
  const middle = setupWork({ actors: { timer } }).createMachine({
    initial: 'a',
    states: {
      a: { invoke: { src: 'timer', id: 'inner', input: () => ({}) as never, onDone: 'over' } },
      over: { type: 'final' }
    }
  })

  await t.test('an invoked machine’s timers continue after a restart, at any depth', async t => {
    const work = setupWork({ actors: { middle } }).createMachine({
      initial: 'a',
      states: {
        a: {
          tags: 'input-required',
          invoke: { src: 'middle', id: 'outer', input: () => ({}) as never, onDone: 'done' }
        },
        done: { type: 'final' }
      }
    })
    const agent = lives(t, { work })
    const id = await openTask(agent)
    t.match((await rowOf(agent))?.delayed, [{ source: ['work', 'outer', 'inner'] }])
    await agent.pass(500)
    await agent.restart()
    await agent.pass(499)
    t.equal(await stateOf(agent, id), 'input-required')
    await agent.pass(1)
    t.equal(await stateOf(agent, id), 'completed')
  })

  await t.test('a spawned machine’s timers continue after a restart, and end when it is stopped', async t => {
    const work = setupWork({
      actors: { timer },
      types: { events: {} as { type: 'xstate.done.actor.spawned' } }
    }).createMachine({
      entry: spawnChild('timer', { id: 'spawned', input: {} as never }),
      tags: 'input-required',
      initial: 'a',
      states: { a: { on: { 'xstate.done.actor.spawned': 'done' } }, done: { type: 'final' } }
    })
    const agent = lives(t, { work })
    const id = await openTask(agent)
    await agent.restart()
    await agent.pass(999)
    t.match((await rowOf(agent))?.delayed, [{ source: ['work', 'spawned'] }])
    await agent.pass(1)
    t.equal(await stateOf(agent, id), 'completed')
    const canceled = await openTask(agent)
    await agent.restart()
    await agent.runtime.cancelTask({ id: canceled })
    await agent.pass(1000)
    t.equal(agent.clock.pending, 0)
  })

  await t.test('a pending event for a child or the parent arrives after a restart', async t => {
    const heard: string[] = []
    const child = setupWork({ types: { events: {} as { type: 'ping' } } }).createMachine({
      on: { ping: { actions: [() => void heard.push('ping'), sendParent({ type: 'pong' }, { delay: 100 })] } },
      initial: 'a',
      states: { a: {} }
    })
    const work = setupWork({ actors: { child }, types: { events: {} as { type: 'pong' } } }).createMachine({
      tags: 'input-required',
      invoke: { src: 'child', id: 'child', input: () => ({}) as never },
      entry: sendTo('child', { type: 'ping' }, { delay: 100 }),
      initial: 'a',
      states: { a: { on: { pong: 'b' } }, b: { type: 'final' } }
    })
    const agent = lives(t, { work })
    const id = await openTask(agent)
    t.match((await rowOf(agent))?.delayed, [{ source: ['work'], target: [id, 'work', 'child'] }])
    await agent.restart()
    await agent.pass(100)
    t.strictSame(heard, ['ping'])
    t.match((await rowOf(agent))?.delayed, [{ source: ['work', 'child'], target: [id, 'work'] }])
    await agent.restart()
    await agent.pass(100)
    t.equal(await stateOf(agent, id), 'completed')
  })

  await t.test('a pending event for a stopped actor is not stored, nor delivered to its successor', async t => {
    const heard: string[] = []
    const child = fromCallback(({ receive }) => receive(({ type }) => void heard.push(type)))
    const work = setupWork({ actors: { child }, types: { events: {} as { type: 'ping' } } }).createMachine({
      initial: 'a',
      states: {
        a: {
          tags: 'input-required',
          entry: sendTo('child', { type: 'ping' }, { delay: 100 }),
          invoke: { src: 'child', id: 'child' },
          on: { 'message.received': 'b' }
        },
        b: { tags: 'input-required', invoke: { src: 'child', id: 'child' } }
      }
    })
    const agent = lives(t, { work })
    const id = await openTask(agent)
    t.equal((await rowOf(agent))?.delayed.length, 1)
    await agent.runtime.sendMessage(say('x', { taskId: id }))
    t.strictSame((await rowOf(agent))?.delayed, [])
    await agent.restart()
    await agent.pass(100)
    t.strictSame(heard, [])
  })

  await t.test('an event for an actor that its chart lost is dropped after a restart', async t => {
    const agent = lives(t, { work: asking(1000) })
    const id = await openTask(agent)
    const spoil = (text: string) =>
      JSON.stringify({
        ...JSON.parse(text),
        delayed: [
          { source: ['gone'], event: { type: 'x' }, dueMs: 0 },
          { source: ['work'], target: [id, 'gone', 'x'], event: { type: 'x' }, dueMs: 0 }
        ]
      })
    const store: Store = {
      ...agent.store,
      loadContext: async key => {
        const stored = await agent.store.loadContext(key)
        return (
          stored && {
            ...stored,
            tasks: stored.tasks.map(task => ({ ...task, snapshot: spoil(String(task.snapshot)) }))
          }
        )
      }
    }
    await agent.runtime.close()
    const after = start(t, { work: asking(1000) }, { store, clock: agent.clock })
    await rest()
    await agent.pass(1000)
    t.equal(stateName((await after.runtime.getTask({ id })).status.state), 'input-required')
  })
})

await t.test('each task of a context has its own timers', async t => {
  const agent = lives(t, { work: asking(1000) })
  const one = await openTask(agent)
  await agent.pass(500)
  const two = await openTask(agent)
  await agent.restart()
  await agent.runtime.cancelTask({ id: one })
  await agent.pass(999)
  t.equal(await stateOf(agent, two), 'input-required')
  await agent.pass(1)
  t.equal(await stateOf(agent, two), 'failed')
  t.equal(await stateOf(agent, one), 'canceled')
})

await t.test("an author’s own timers on an actor's clock are not stored, and still fire", async t => {
  const fired: string[] = []
  const own = fromCallback(({ system }) => {
    const { _clock: clock } = system as typeof system & {
      _clock: { setTimeout(run: () => void, ms: number): unknown; clearTimeout(timer: unknown): void }
    }
    const taken = clock.setTimeout(() => void fired.push('taken back'), 10)
    clock.setTimeout(() => void fired.push('own'), 10)
    clock.clearTimeout(taken)
    t.ok(hostOf(system))
  })
  const work = setupWork({ actors: { own } }).createMachine({
    tags: 'input-required',
    invoke: { src: 'own' },
    initial: 'a',
    states: { a: {} }
  })
  const agent = lives(t, { work })
  await openTask(agent)
  t.strictSame((await rowOf(agent))?.delayed, [])
  await agent.pass(10)
  t.strictSame(fired, ['own'])
})

await t.test('a restored context without requests commits nothing', async t => {
  const inner = memoryStore()
  let commits = 0
  const agent = lives(
    t,
    { work: asking(30 * DAY) },
    { store: { ...inner, commit: commit => ((commits += 1), inner.commit(commit)) } }
  )
  await openTask(agent)
  const before = commits
  await agent.restart()
  t.equal(commits, before)
  await until(() => agent.clock.pending >= 1)
})

await t.test('a restored chart has its own context, history and timers', async t => {
  const work = setupWork({ types: { context: {} as { rounds: number } } }).createMachine({
    context: { rounds: 0 },
    tags: 'input-required',
    initial: 'a',
    states: {
      a: { after: { 100: { target: 'b', actions: assign({ rounds: ({ context }) => context.rounds + 1 }) } } },
      b: { after: { 100: [{ guard: ({ context }) => context.rounds === 3, target: 'c' }, { target: 'a' }] } },
      c: { type: 'final' }
    }
  })
  const agent = lives(t, { work })
  const id = await openTask(agent)
  for (let i = 0; i < 5; i += 1) {
    await agent.pass(100)
    await agent.restart()
  }
  t.equal(await stateOf(agent, id), 'input-required')
  await agent.pass(100)
  t.equal(await stateOf(agent, id), 'completed')
})

await t.test('a scheduled event is stored without another change, and removed when it is canceled', async t => {
  const work = setupWork({ types: { events: {} as { type: 'late' } } }).createMachine({
    initial: 'asking',
    states: {
      asking: {
        tags: 'input-required',
        on: {
          'message.received': [
            {
              guard: ({ event }) => textOf(event.message) === 'later',
              actions: raise({ type: 'late' }, { id: 'late', delay: 10 * DAY })
            },
            { actions: cancel('late') }
          ],
          late: 'done'
        }
      },
      done: { type: 'final' }
    }
  })
  const life = lives(t, { work })
  const id = await openTask(life)
  const answer = async (text: string) => {
    await life.runtime.sendMessage(say(text, { taskId: id }, { returnImmediately: true }))
    await rest()
    return (await rowOf(life))?.delayed.length
  }
  t.equal(await answer('later'), 1)
  t.equal(await answer('never mind'), 0)
  t.equal(await answer('later'), 1)
  await life.restart()
  await life.pass(10 * DAY)
  t.equal(await stateOf(life, id), 'completed')
})
