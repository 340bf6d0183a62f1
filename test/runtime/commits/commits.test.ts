import t, { type Test } from 'tap'
import { fromPromise } from 'xstate'
import { z } from 'zod'
import {
  A2AError,
  accepted,
  inputRequired,
  reply,
  setupWork,
  textOf as wordsOf,
  type WorkFunction
} from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Commit, MessageRow, Store } from '../../../runtime/store/store.ts'
import { keepResult } from '../../fixtures/kills/guarantee-results.ts'
import { echo, painter, steeredWork } from '../../fixtures/runtime/agents.ts'
import {
  brief,
  closed,
  collect,
  deferred,
  heldStore,
  messageIn,
  next,
  open,
  reaches,
  refusal,
  rejection,
  rest,
  say,
  start,
  stateName,
  taskIn,
  tasksIn,
  textOf,
  until,
  withGenerations,
  type Deferred
} from '../../fixtures/runtime/runtime-helpers.ts'
import { generationsIn } from '../../fixtures/runtime/lives.ts'

const anyone = { tenant: '', principal: 'anonymous' }
const inC = { contextId: 'c' }

/** What a commit holds, shortly. */
function briefly({ log }: Commit): string[] {
  return log.map(entry => ('message' in entry ? `said: ${textOf(entry.message)}` : brief(entry.update)))
}

/** A store whose next commits do not succeed, in the way the test says. */
function failingStore(
  inner: Store = memoryStore()
): Store & { failNext(how: (commit: Commit) => Promise<boolean>, times?: number): void } {
  const failures: ((commit: Commit) => Promise<boolean>)[] = []
  return {
    ...inner,
    commit: commit => (failures.shift() ?? inner.commit)(commit),
    failNext: (how, times = 1) => void failures.push(...Array.from({ length: times }, () => how))
  }
}

async function isGapless(store: Store, taskId: string): Promise<boolean> {
  const generations = await generationsIn(store, anyone, taskId)
  return generations.length > 0 && generations.every((generation, i) => generation === i + 1)
}

await t.test('decide, commit, tell', async t => {
  await t.test('a message is answered and its work starts only after its commit', async t => {
    const store = heldStore()
    const { work, runs } = steeredWork()
    const { runtime } = start(t, { work }, { store })
    store.hold()
    const stream = runtime.sendStreamingMessage(say('go'))
    const first = next(stream)
    await until(() => store.held.length === 1)
    await rest()
    t.strictSame(store.held.map(briefly), [['said: go', 'submitted', 'working']])
    t.equal(runs.length, 0)

    await store.release()
    t.strictSame(
      [brief(await first), brief(await next(stream))],
      ['task:submitted', 'working'],
      'a stream sends them in order'
    )
    await until(() => runs.length === 1)
  })

  await t.test("work that needs stored data starts only after the task's commit", async t => {
    const store = heldStore()
    const { work, runs } = steeredWork()
    const { runtime } = start(t, { input: z.string(), work }, { store })
    store.hold()
    let answer: unknown
    const answered = open(runtime).then(task => (answer = task))
    await until(() => store.held.length === 1)
    await rest()
    t.strictSame(store.held.map(briefly), [['said: go', 'submitted']])
    t.equal(answer, undefined)

    await store.release()
    t.equal((await answered).status.state, 'TASK_STATE_SUBMITTED')
    await until(() => store.held.length === 1)
    t.strictSame(store.held.map(briefly), [['working']])
    await rest()
    t.equal(runs.length, 0, 'the work waits until WORKING is committed')

    await store.release()
    await until(() => runs.length === 1)
  })

  await t.test('a stream sends an event only after its commit', async t => {
    const store = heldStore()
    const { work, run } = steeredWork()
    const { runtime } = start(t, { work }, { store })
    const stream = runtime.sendStreamingMessage(say('x'))
    t.strictSame([brief(await next(stream)), brief(await next(stream))], ['task:submitted', 'working'])
    const told: string[] = []
    const reading = (async () => {
      for await (const response of stream) told.push(brief(response))
    })()
    const { resolve, given } = await run()
    store.hold()
    resolve({ artifact: 'done' })
    await until(() => store.held.length === 1)
    await rest()
    t.strictSame(store.held.map(briefly), [['artifact: done', 'completed']])
    t.strictSame(told, [])
    t.equal((await runtime.getTask({ id: given.taskId })).status.state, 'TASK_STATE_WORKING')
    await store.release()
    await reading
    t.strictSame(told, ['artifact: done', 'completed'])
  })

  await t.test('turns run before earlier commits finish, and are told in order', async t => {
    const store = heldStore()
    const { work, run } = steeredWork()
    const { runtime } = start(t, { work }, { store })
    const [one, two] = [await open(runtime, 'one', inC), await open(runtime, 'two', inC)]
    const [first, second] = [await run(0), await run(1)]
    await Promise.all([one, two].map(({ id }) => reaches(runtime, id, 'working')))
    const told: string[] = []
    const watch = async (id: string) => {
      for await (const response of runtime.subscribeToTask({ id }))
        told.push(`${id === one.id ? 'one' : 'two'} ${brief(response)}`)
    }
    const watching = [watch(one.id), watch(two.id)]
    await until(() => told.length === 2)
    store.hold()
    second.resolve({ artifact: 'b' })
    await until(() => store.held.length === 1)
    first.resolve({ artifact: 'a' })
    await until(() => store.held.length === 2)
    t.strictSame(
      store.held.map(({ expected }) => expected),
      [3, 4],
      'both are pending'
    )
    t.equal(told.length, 2)
    await store.release()
    t.strictSame(told.slice(2), ['two artifact: b', 'two completed'])
    await store.release()
    await Promise.all(watching)
    t.strictSame(told.slice(4), ['one artifact: a', 'one completed'])
  })

  await t.test('a commit that finishes before an earlier one waits for that to be told', async t => {
    const inner = memoryStore()
    const slow: Deferred<void>[] = []
    let slowing = false
    const store: Store = {
      ...inner,
      commit: async commit => {
        const written = await inner.commit(commit)
        if (!slowing) return written
        slow.push(deferred())
        await slow.at(-1)?.promise
        return written
      }
    }
    const { runtime } = start(t, { negotiate: ({ message }) => reply(`re ${textOf(message)}`) }, { store })
    await runtime.sendMessage(say('warm', inC))
    const answers: string[] = []
    const ask = (word: string) =>
      runtime.sendMessage(say(word, inC)).then(response => answers.push(textOf(messageIn(response)) ?? ''))
    const asking = [ask('1'), ask('2')]
    slowing = true
    await until(() => slow.length >= 1)
    for (let i = 0; answers.length < 2; i += 1) {
      await rest()
      for (const each of slow.toReversed()) each.resolve()
    }
    await Promise.all(asking)
    t.strictSame(answers, ['re 1', 're 2'])
  })

  await t.test('a cancel aborts the work only after its commit', async t => {
    const store = heldStore()
    const { work, run } = steeredWork()
    const { runtime } = start(t, { work }, { store })
    const { id } = await open(runtime)
    const { given } = await run()
    store.hold()
    const canceling = runtime.cancelTask({ id })
    await until(() => store.held.length === 1)
    await rest()
    t.notOk(given.signal.aborted)
    await store.release()
    t.ok(given.signal.aborted)
    t.equal((await canceling).status.state, 'TASK_STATE_CANCELED')
  })

  await t.test('a chart’s actions and actors wait for the commit of their step', async t => {
    const store = heldStore()
    const seen: string[] = []
    const work = painter(async colour => (seen.push(`paint ${colour}`), 'x'), seen)
    const { runtime } = start(t, { work }, { store })
    const { id } = taskIn(await runtime.sendMessage(say('a boat')))
    store.hold()
    const answering = runtime.sendMessage(say('red', { taskId: id }))
    await until(() => store.held.length === 1)
    await rest()
    t.strictSame(
      store.held.map(briefly),
      [['said: red', 'working', 'working: thank you', 'artifact: a sketch']],
      'one step is one commit'
    )
    t.strictSame(seen, [])
    await store.release()
    t.strictSame(seen, ['colour chosen', 'painting', 'paint red'])
    await store.passAll()
    await answering
  })

  await t.test('a restored chart’s actors wait for the commit of their step', async t => {
    const inner = memoryStore()
    const before = start(t, { work: painter() }, { store: { ...inner, close: async () => {} } })
    const { id } = taskIn(await before.runtime.sendMessage(say('a boat')))
    await before.runtime.close()
    const store = heldStore(inner)
    const seen: string[] = []
    const { runtime } = start(
      t,
      { work: painter(async colour => (seen.push(`paint ${colour}`), 'x'), seen) },
      { store }
    )
    await runtime.getTask({ id })
    store.hold()
    const answering = runtime.sendMessage(say('red', { taskId: id }))
    await until(() => store.held.length === 1)
    await rest()
    t.strictSame(seen, [])
    await store.passAll()
    t.strictSame(seen, ['colour chosen', 'painting', 'paint red'])
    await answering
  })

  await t.test('an actor that is stopped before it could start never starts', async t => {
    const store = heldStore()
    const started: string[] = []
    const work = setupWork({ actors: { paint: fromPromise(async () => void started.push('paint')) } }).createMachine({
      initial: 'asking',
      states: {
        asking: { tags: 'input-required', on: { 'message.received': 'painting' } },
        painting: { invoke: { src: 'paint', onDone: 'done' } },
        done: { type: 'final' }
      }
    })
    const { runtime } = start(t, { work }, { store })
    const { id } = taskIn(await runtime.sendMessage(say('a boat')))
    store.hold()
    const answering = runtime.sendMessage(say('red', { taskId: id }))
    await until(() => store.held.length === 1)
    const canceling = runtime.cancelTask({ id })
    await until(() => store.held.length === 2)
    await store.passAll()
    t.equal((await canceling).status.state, 'TASK_STATE_CANCELED')
    t.equal(taskIn(await answering).status.state, 'TASK_STATE_CANCELED')
    t.strictSame(started, [])
  })

  await t.test('a negotiation starts only after the commit of its message', async t => {
    const store = heldStore()
    let asked = 0
    const { runtime } = start(t, { negotiate: () => ((asked += 1), reply('x')) }, { store })
    store.hold()
    const answering = runtime.sendMessage(say('x'))
    await until(() => store.held.length === 1)
    await rest()
    t.equal(asked, 0)
    await store.passAll()
    t.equal(textOf(messageIn(await answering)), 'x')
  })

  await t.test('a refusal waits for the commits before it', async t => {
    const store = heldStore()
    const { runtime } = start(t, { work: painter() }, { store })
    const { id } = taskIn(await runtime.sendMessage(say('a boat')))
    store.hold()
    const taken = runtime.sendMessage(say('red', { taskId: id }))
    await until(() => store.held.length === 1)
    let refused = false
    const refusing = refusal(runtime.sendMessage(say('blue', { taskId: id }))).then(error => ((refused = true), error))
    await rest()
    t.notOk(refused)
    await store.passAll()
    t.equal((await refusing).code, 'UnsupportedOperation')
    t.equal(taskIn(await taken).status.state, 'TASK_STATE_COMPLETED')
  })
})

await t.test('a commit that fails', async t => {
  const trouble = () => Promise.reject(new Error('disk /dev/sda1 is full'))

  await t.test("gives its caller an A2AError without the engine's text, and leaves nothing behind", async t => {
    const store = failingStore()
    const { runtime, log } = start(t, { work: echo }, { store })
    store.failNext(trouble)
    const error = await refusal(runtime.sendMessage(say('x', inC)))
    t.notMatch(error.message, 'sda1')
    t.strictSame(await tasksIn(store, { ...anyone, ...inC }), [])
    t.match(log[0], { level: 'error', message: 'a commit failed', details: { contextId: 'c' } })
    t.equal(
      taskIn(await runtime.sendMessage(say('x', inC))).status.state,
      'TASK_STATE_COMPLETED',
      'the next one is served'
    )
  })

  await t.test('sends and starts nothing, and the context continues from the last commit', async t => {
    const store = failingStore()
    const { work, run, runs } = steeredWork()
    const { runtime, clock } = start(t, { work }, { store })
    const stream = runtime.sendStreamingMessage(say('x'), withGenerations)
    const told = [await next(stream), await next(stream)]
    const first = await run()
    store.failNext(trouble)
    first.resolve({ artifact: 'lost' })
    await rest()
    t.equal(runs.length, 1, 'not at once')
    clock.increment(1000)
    const again = await run(1)
    t.equal(runs.length, 2)
    t.equal(again.given.taskId, first.given.taskId)
    again.resolve({ artifact: 'done' })
    told.push(...(await collect(stream)))
    t.strictSame(told.map(brief), ['task:submitted', 'working', 'artifact: done', 'completed'])
    t.ok(await isGapless(store, again.given.taskId))
  })

  await t.test('fails all that depends on it, in whichever context, and no other context', async t => {
    const inner = memoryStore()
    const store = heldStore(inner)
    const { runtime } = start(t, { work: painter() }, { store })
    const { id } = taskIn(await runtime.sendMessage(say('a boat', inC)))
    const other = taskIn(await runtime.sendMessage(say('a boat')))
    store.hold()
    const outcomes = [
      runtime.sendMessage(say('red', { taskId: id })),
      runtime.cancelTask({ id }),
      runtime.sendMessage(say('a house', inC))
    ].map(rejection)
    await until(() => store.held.length >= 1)
    await rest()
    await store.release(new Error('disk'))
    await store.passAll()
    t.equal((await Promise.all(outcomes)).length, 3)
    t.equal((await runtime.getTask({ id })).status.state, 'TASK_STATE_INPUT_REQUIRED')
    t.equal(taskIn(await runtime.sendMessage(say('red', { taskId: other.id }))).status.state, 'TASK_STATE_COMPLETED')
    t.equal(taskIn(await runtime.sendMessage(say('red', { taskId: id }))).status.state, 'TASK_STATE_COMPLETED')
    t.ok(await isGapless(inner, id))
  })

  await t.test('that was written anyway ends no stream or call: they receive what is stored', async t => {
    const store = failingStore()
    const { work, run } = steeredWork()
    const { runtime } = start(t, { work }, { store })
    const waiting = runtime.sendMessage(say('x', inC))
    const { given, resolve } = await run()
    const subscription = runtime.subscribeToTask({ id: given.taskId })
    await next(subscription)
    store.failNext(async commit => {
      await store.commit(commit)
      throw new Error('no answer from the engine')
    })
    resolve({ artifact: 'done' })
    await reaches(runtime, given.taskId, 'completed')
    const ends: string[] = []
    void waiting.then(response => ends.push(stateName(taskIn(response).status.state))).catch(() => {})
    void collect(subscription)
      .then(told => ends.push(...told.slice(-1).map(brief)))
      .catch(() => {})
    await rest()
    t.strictSame(ends.toSorted(), ['completed', 'completed'])
  })

  await t.test('with an unknown outcome is reported to streams and calls', async t => {
    const inner = failingStore()
    let isBroken = false
    const store: Store = {
      ...inner,
      readTask: (...given) => (isBroken ? Promise.reject(new Error('no disk')) : inner.readTask(...given))
    }
    const { work, run } = steeredWork()
    const { runtime } = start(t, { work }, { store })
    const { id } = await open(runtime, 'x')
    const stream = runtime.subscribeToTask({ id })
    await stream.next()
    const steered = await run()
    inner.failNext(async commit => {
      await inner.commit(commit)
      isBroken = true
      throw new Error('bad disk')
    })
    steered.resolve({})
    t.equal((await refusal(collect(stream))).code, 'Overloaded')
  })

  await t.test('during a negotiation is reported to the negotiation’s caller', async t => {
    const store = failingStore()
    const answer = deferred()
    const { runtime } = start(t, { negotiate: async () => (await answer.promise, reply('x')) }, { store })
    const [one, two] = [rejection(runtime.sendMessage(say('1', inC))), rejection(runtime.sendMessage(say('2', inC)))]
    await rest()
    store.failNext(trouble)
    answer.resolve()
    t.ok(await one)
    t.ok(await two)
  })

  await t.test('in a context that cannot be loaded is logged, and the next call retries', async t => {
    const inner = memoryStore()
    let broken = false
    const store: Store = {
      ...inner,
      commit: commit => (broken ? Promise.reject(new Error('down')) : inner.commit(commit)),
      loadContext: key => (broken ? Promise.reject(new Error('down')) : inner.loadContext(key))
    }
    const { runtime, clock, log } = start(t, { work: painter() }, { store })
    const { id } = taskIn(await runtime.sendMessage(say('a boat')))
    broken = true
    await rejection(runtime.sendMessage(say('red', { taskId: id })))
    clock.increment(1000)
    await until(() => log.some(({ message }) => message === 'a context could not be loaded again'))
    broken = false
    t.equal(taskIn(await runtime.sendMessage(say('red', { taskId: id }))).status.state, 'TASK_STATE_COMPLETED')
  })
})

await t.test('a chart of an author starts only after its task is stored', async t => {
  let started = 0
  const store = failingStore()
  const work = setupWork({}).createMachine({
    context: () => {
      started += 1
      return {}
    },
    initial: 'done',
    states: { done: { type: 'final' } }
  })
  const { runtime } = start(t, { work }, { store })
  store.failNext(() => Promise.reject(new Error('disk')))
  t.equal((await refusal(runtime.sendMessage(say('x')))).code, 'Overloaded')
  t.equal(started, 0)
  await runtime.sendMessage(say('y'))
  t.equal(started, 1)
})

await t.test('while the store refuses commits', async t => {
  /** Work that charges in a step; a store that refuses what the test says. */
  const charging = (t: Test, refuses: (commit: Commit) => boolean) => {
    const charged: number[] = []
    const gate = deferred()
    const inner = memoryStore()
    const store: Store = {
      ...inner,
      commit: async commit =>
        refuses(commit) ? Promise.reject(new Error('database or disk is full')) : inner.commit(commit)
    }
    const work: WorkFunction = async ({ ask, message, step }) => {
      if (wordsOf(message) === 'ask first') await ask(inputRequired('?'))
      if (wordsOf(message) === 'wait') await gate.promise
      await step('charge', () => void charged.push(Math.round((agent.clock.now() - begun) / 1000)))
    }
    const agent = start(t, { work }, { store })
    const begun = agent.clock.now()
    const pass = async (seconds: number) => {
      await rest()
      for (let second = 0; second < seconds; second += 1) {
        agent.clock.increment(1000)
        await rest()
      }
    }
    return { ...agent, charged, gate, pass }
  }

  const keepsStep = ({ journal }: Commit) => journal.some(({ key }) => key !== 'request')

  await t.test('no step starts again, and its context is reloaded at growing intervals from a second', async t => {
    let isFull = false
    let refused = 0
    const { runtime, charged, pass, log } = charging(t, commit => {
      isFull ||= keepsStep(commit) && refused === 0
      if (isFull) refused += 1
      return isFull
    })
    const { id } = await open(runtime)
    await rest()
    t.strictSame(charged, [0])
    await pass(600)
    t.strictSame(charged, [0])
    // After 0, 1, 3, 7, 15, 31 and 63 seconds, and every minute from then on.
    t.equal(refused, 15)
    t.equal(log.length, 15)
    isFull = false
    await pass(60)
    t.strictSame(charged.length, 2)
    await keepResult({ trouble: 'full in a step', times: refused })
    t.equal((await runtime.getTask({ id })).status.state, 'TASK_STATE_COMPLETED')
  })

  await t.test('of steps only, a step is retried at growing intervals', async t => {
    let isFull = true
    const { runtime, charged, pass } = charging(t, commit => isFull && keepsStep(commit))
    const { id } = await open(runtime)
    await pass(200)
    t.strictSame(charged, [0, 1, 3, 7, 15, 31, 63, 123, 183])
    isFull = false
    await pass(60)
    t.equal((await runtime.getTask({ id })).status.state, 'TASK_STATE_COMPLETED')
    t.equal(charged.length, 10)
  })

  await t.test('of another context no step starts either, until a commit succeeds', async t => {
    let isFull = false
    const { runtime, charged, gate, pass } = charging(t, () => isFull)
    await open(runtime, 'wait', { contextId: 'a' })
    await rest()
    isFull = true
    await rejection(runtime.sendMessage(say('other', { contextId: 'b' })))
    gate.resolve()
    await rest()
    t.strictSame(charged, [])
    isFull = false
    await pass(1)
    t.strictSame(charged, [1])
    isFull = true
    await rejection(runtime.sendMessage(say('other', { contextId: 'b' })))
    isFull = false
    t.equal(taskIn(await runtime.sendMessage(say('wait', { contextId: 'c' }))).status.state, 'TASK_STATE_COMPLETED')
    t.strictSame(charged, [1, 1])
  })

  await t.test('a context that stayed a minute is reloaded after a second again', async t => {
    let isFull = false
    const { runtime, pass, log } = charging(t, () => isFull)
    const { id: taskId } = taskIn(await runtime.sendMessage(say('ask first')))
    const breaks = async () => {
      isFull = true
      await rejection(runtime.sendMessage(say('yes', { taskId })))
      isFull = false
    }
    await breaks()
    await pass(61)
    await breaks()
    await pass(1)
    t.equal(log.length, 2)
    t.equal(taskIn(await runtime.sendMessage(say('yes', { taskId }))).status.state, 'TASK_STATE_COMPLETED')
  })

  await t.test('a message reloads a context early, and closing leaves no timer', async t => {
    let isFull = false
    const { runtime, clock } = charging(t, () => isFull)
    const { id: taskId } = taskIn(await runtime.sendMessage(say('ask first')))
    isFull = true
    await rejection(runtime.sendMessage(say('yes', { taskId })))
    t.equal(clock.pending, 1)
    isFull = false
    t.equal(taskIn(await runtime.sendMessage(say('yes', { taskId }))).status.state, 'TASK_STATE_COMPLETED')
    t.equal(clock.pending, 0)
    isFull = true
    await rejection(runtime.sendMessage(say('x')))
    t.equal(clock.pending, 1)
    await closed(runtime, clock)
    t.equal(clock.pending, 0)
  })
})

await t.test("a store that cannot be read gives an A2AError without the engine's text", async t => {
  const inner = memoryStore()
  let broken = false
  const read: Store['readTask'] = (...args) =>
    broken ? Promise.reject(new Error('disk /dev/sda1')) : inner.readTask(...args)
  const { runtime } = start(t, { work: painter() }, { store: { ...inner, readTask: read } })
  const { id } = taskIn(await runtime.sendMessage(say('x')))
  broken = true
  const calls = [
    runtime.getTask({ id }),
    runtime.cancelTask({ id }),
    runtime.sendMessage(say('red', { taskId: id })),
    collect(runtime.sendStreamingMessage(say('red', { taskId: id }))),
    collect(runtime.subscribeToTask({ id }))
  ]
  for (const { code, message } of await Promise.all(calls.map(refusal))) {
    t.equal(code, 'InternalError')
    t.notMatch(message, 'sda1')
  }
})

await t.test('while the database is away', async t => {
  /** A store whose reads are refused while it is away. */
  const awayStore = (inner: Store) => {
    let isAway = false
    let refusals = 0
    const unlessAway =
      <Args extends readonly unknown[], T>(read: (...args: Args) => Promise<T>) =>
      async (...args: Args): Promise<T> => {
        if (isAway) throw new A2AError('Overloaded', `the database is away: ${(refusals += 1)}`)
        return read(...args)
      }
    const { readTask, readEvents, readJournal, readMessages, readTaskMessages, measureTasks } = inner
    const store: Store = {
      ...inner,
      readTask: unlessAway(readTask),
      readEvents: unlessAway(readEvents),
      readJournal: unlessAway(readJournal),
      readMessages: unlessAway(readMessages),
      readTaskMessages: unlessAway(readTaskMessages),
      measureTasks: unlessAway(measureTasks),
      close: async () => {}
    }
    return { store, away: (is: boolean) => (isAway = is), refusals: () => refusals }
  }

  await t.test('work that reads waits for it, also after a restart, and no task fails', async t => {
    const { store, away, refusals } = awayStore(memoryStore())
    const asking = deferred()
    const work: WorkFunction = async ({ history, step }) => {
      await step('asked', () => asking.promise)
      return { artifact: `${(await history()).length} messages before` }
    }
    const { runtime, clock } = start(t, { work }, { store })
    const task = taskIn(await runtime.sendMessage(say('x', inC, { returnImmediately: true })))
    await rest()
    away(true)
    await closed(runtime, clock)
    const { runtime: next, clock: later } = start(t, { work }, { store })
    await until(() => refusals() > 0, 'the recovery reads')
    for (let before = refusals(); refusals() < before + 5; await rest()) later.increment(2000)
    away(false)
    later.increment(2000)
    asking.resolve()
    t.equal(textOf((await reaches(next, task.id, 'completed')).artifacts?.[0]), '0 messages before')
  })
  await t.test('a read is repeated at growing intervals until the runtime closes', async t => {
    const { store, away, refusals } = awayStore(memoryStore())
    const { runtime, clock, log } = start(
      t,
      { work: async ({ history }) => ({ artifact: String((await history()).length) }) },
      { store }
    )
    away(true)
    const sent = rejection(runtime.sendMessage(say('x', inC)))
    for (const pause of [50, 100, 200, 400, 800, 1600, 2000, 2000]) {
      await until(() => refusals() > 0)
      const before = refusals()
      clock.increment(pause - 1)
      await rest()
      t.equal(refusals(), before)
      clock.increment(1)
      await until(() => refusals() > before)
    }
    await closed(runtime, clock)
    t.match(await sent, { code: 'Overloaded' })
    t.strictSame([clock.pending, log], [0, []])
  })
})

await t.test('a lost race', async t => {
  await t.test('is decided again on the stored state, invisibly to the caller', async t => {
    const store = failingStore()
    const { runtime } = start(t, { work: painter() }, { store })
    store.failNext(async () => false, 4)
    const { id } = taskIn(await runtime.sendMessage(say('a boat', inC)))
    store.failNext(async () => false, 4)
    t.equal(taskIn(await runtime.sendMessage(say('red', { taskId: id }))).status.state, 'TASK_STATE_COMPLETED')
    t.ok(await isGapless(store, id))
    t.equal((await tasksIn(store, { ...anyone, ...inC })).length, 1)
  })

  await t.test('that is lost repeatedly ends with Overloaded', async t => {
    const store = failingStore()
    const { runtime } = start(t, { work: painter() }, { store })
    const { id } = taskIn(await runtime.sendMessage(say('a boat', inC)))
    store.failNext(async () => false, 100)
    t.match(await refusal(runtime.sendMessage(say('red', { taskId: id }))), { code: 'Overloaded' })
    t.equal((await runtime.getTask({ id })).status.state, 'TASK_STATE_INPUT_REQUIRED')
  })

  await t.test('between two runtimes over one store loses no event and leaves no gap', async t => {
    const store = memoryStore()
    const shared: Store = { ...store, close: async () => {} }
    const [a, b] = [start(t, { work: painter() }, { store: shared }), start(t, { work: painter() }, { store: shared })]
    const { id: taskA } = taskIn(await a.runtime.sendMessage(say('a boat', inC)))
    const { id: taskB } = taskIn(await b.runtime.sendMessage(say('a house', inC)))
    const { id: taskC } = taskIn(await a.runtime.sendMessage(say('a tree', inC)))
    t.equal(taskIn(await b.runtime.sendMessage(say('red', { taskId: taskA }))).status.state, 'TASK_STATE_COMPLETED')
    t.equal((await a.runtime.cancelTask({ id: taskB })).status.state, 'TASK_STATE_CANCELED')
    t.match(await refusal(b.runtime.sendMessage(say('red', { taskId: taskB }))), { code: 'UnsupportedOperation' })
    for (const id of [taskA, taskB, taskC]) t.ok(await isGapless(store, id))
    t.equal((await a.runtime.getTask({ id: taskC })).status.state, 'TASK_STATE_INPUT_REQUIRED')
    t.strictSame(
      (await tasksIn(store, { ...anyone, ...inC })).map(({ task }) => task.id).toSorted(),
      [taskA, taskB, taskC].toSorted()
    )
  })

  await t.test('between two simultaneous calls answers both', async t => {
    const store = memoryStore()
    const shared: Store = { ...store, close: async () => {} }
    const both = [
      start(t, { negotiate: ({ message }) => reply(`re ${textOf(message)}`) }, { store: shared }),
      start(t, { negotiate: ({ message }) => reply(`re ${textOf(message)}`) }, { store: shared })
    ]
    for (let round = 0; round < 5; round += 1) {
      const answers = await Promise.all(both.map(({ runtime }, i) => runtime.sendMessage(say(`${round}.${i}`, inC))))
      t.strictSame(
        answers.map(answer => textOf(messageIn(answer))),
        [`re ${round}.0`, `re ${round}.1`]
      )
    }
    // A message that one has begun to answer may be found by the other, and answered by both.
    const said = (await store.readMessages({ ...anyone, ...inC }, 100)).map(({ message }) => textOf(message))
    t.strictSame(
      new Set(said),
      new Set(
        Array.from({ length: 10 }, (_, i) => `${Math.floor(i / 2)}.${i % 2}`).flatMap(text => [text, `re ${text}`])
      )
    )
  })
})

await t.test('a restart', async t => {
  /** A second runtime over what the first left behind; what it reads has gone through JSON text. */
  const throughJson = (inner: Store): Store => ({
    ...inner,
    close: async () => {},
    loadContext: async key => JSON.parse(JSON.stringify((await inner.loadContext(key)) ?? null)) ?? undefined
  })

  await t.test('restores a chart in its state without repeating its effects, and it continues', async t => {
    const store = throughJson(memoryStore())
    const seen: string[] = []
    const before = start(t, { work: painter(async () => 'x', seen) }, { store })
    const asked = taskIn(await before.runtime.sendMessage(say('a boat')))
    await before.runtime.close()
    const after = start(t, { work: painter(undefined, seen) }, { store })
    await rest()
    t.strictSame(await after.runtime.getTask({ id: asked.id }), asked)
    const done = taskIn(await after.runtime.sendMessage(say('blue', { taskId: asked.id })))
    t.strictSame(done.artifacts?.map(textOf), ['a sketch', 'a blue boat'])
    t.strictSame(seen, ['colour chosen', 'painting'])
    t.ok(await isGapless(store, asked.id))
  })

  await t.test('runs a chart’s promises again with the same input, not its actions', async t => {
    const store = throughJson(memoryStore())
    const seen: string[] = []
    const colours: string[] = []
    const paint = (answer: Promise<string>) => (colour: string) => (colours.push(colour), answer)
    const before = start(t, { work: painter(paint(new Promise(() => {})), seen) }, { store })
    const { id } = taskIn(await before.runtime.sendMessage(say('a boat')))
    await before.runtime.sendMessage(say('red', { taskId: id }, { returnImmediately: true }))
    await until(() => colours.length === 1)
    await before.runtime.close()
    const after = start(t, { work: painter(paint(Promise.resolve('a boat at last')), seen) }, { store })
    t.strictSame((await reaches(after.runtime, id, 'completed')).artifacts?.map(textOf), ['a sketch', 'a boat at last'])
    t.strictSame(colours, ['red', 'red'])
    t.strictSame(seen, ['colour chosen', 'painting'])
  })

  await t.test('runs a function again with the same input', async t => {
    const store = throughJson(memoryStore())
    const first = steeredWork()
    const before = start(t, { work: first.work, negotiate: () => accepted({ price: 5 }) }, { store })
    const { id } = await open(before.runtime)
    const { given } = await first.run()
    await before.runtime.close()
    t.ok(given.signal.aborted)
    const second = steeredWork()
    const after = start(t, { work: second.work }, { store })
    const again = await second.run()
    const { signal: _, ...old } = given
    t.match(again.given, old)
    t.notOk(again.given.signal.aborted)
    again.resolve({ artifact: 'done' })
    t.strictSame((await reaches(after.runtime, id, 'completed')).artifacts?.map(textOf), ['done'])
    t.ok(await isGapless(store, id))
  })

  await t.test('starts the work of a task that was only submitted', async t => {
    const inner = throughJson(memoryStore())
    const store = heldStore(inner)
    const before = start(t, { input: z.string(), work: echo }, { store })
    store.hold()
    const opened = open(before.runtime, 'hello')
    await until(() => store.held.length === 1)
    await store.release()
    const { id } = await opened
    await before.runtime.close()
    t.equal((await inner.readTask(anyone, id))?.task.status.state, 'TASK_STATE_SUBMITTED')
    const after = start(t, { work: echo }, { store: inner })
    t.strictSame((await reaches(after.runtime, id, 'completed')).artifacts?.map(textOf), ['hello'])
  })

  await t.test('negotiates unanswered messages again once their context is used', async t => {
    const store = throughJson(memoryStore())
    const before = start(t, { negotiate: () => new Promise(() => {}) }, { store })
    const waiting = refusal(before.runtime.sendMessage(say('one', inC)))
    await until(async () => (await store.loadContext({ ...anyone, ...inC }))?.commit === 1)
    await rest()
    await before.runtime.close()
    t.equal((await waiting).code, 'Overloaded')
    const after = start(t, { negotiate: ({ message }) => reply(`re ${textOf(message)}`) }, { store })
    await after.runtime.sendMessage(say('two', inC))
    const said = async () => (await store.readMessages({ ...anyone, ...inC }, 10)).map(({ message }) => textOf(message))
    t.strictSame(await until(async () => (await said()).length === 4 && said()), ['one', 're one', 'two', 're two'])
  })

  await t.test('leaves a reliable message to its resend, so that it opens one task', async t => {
    const store = throughJson(memoryStore())
    const reliably = { extensions: ['urn:taskchart:extension:reliability:1'] }
    const message = say('one', { ...inC, messageId: 'm' })
    const before = start(t, { work: echo, negotiate: () => new Promise(() => {}) }, { store })
    const waiting = refusal(before.runtime.sendMessage(message, reliably))
    await until(async () => (await store.loadContext({ ...anyone, ...inC }))?.commit === 1)
    await rest()
    await before.runtime.close()
    t.equal((await waiting).code, 'Overloaded')
    const after = start(t, { work: echo, negotiate: () => accepted() }, { store })
    const { id } = taskIn(await after.runtime.sendMessage(message, reliably))
    await rest()
    t.strictSame(
      (await store.listTasks(anyone, { limit: 10 })).tasks.map(({ task }) => task.id),
      [id]
    )
  })

  await t.test('continues every context, also when another cannot be loaded', async t => {
    const inner = throughJson(memoryStore())
    const first = steeredWork()
    const before = start(t, { work: first.work }, { store: inner })
    for (const contextId of ['one', 'bad', 'two']) await open(before.runtime, contextId, { contextId })
    await first.run(2)
    await before.runtime.close()
    const store: Store = {
      ...inner,
      loadContext: key => (key.contextId === 'bad' ? Promise.reject(new Error('bad row')) : inner.loadContext(key))
    }
    const second = steeredWork()
    const { log } = start(t, { work: second.work }, { store })
    await rest()
    t.strictSame(second.runs.map(({ given }) => given.contextId).toSorted(), ['one', 'two'])
    t.match(log[0], { level: 'error' })
  })

  await t.test('succeeds although the store cannot list the unfinished tasks', async t => {
    const store: Store = { ...memoryStore(), readWakes: () => Promise.reject(new Error('slow disk')) }
    const { runtime, log } = start(t, { work: echo }, { store })
    t.equal(taskIn(await runtime.sendMessage(say('x'))).status.state, 'TASK_STATE_COMPLETED')
    t.match(log, [{ level: 'error', message: 'the wakes that are due could not be read' }])
  })

  await t.test('fails tasks whose chart no longer has their state, and continues the others', async t => {
    const store = throughJson(memoryStore())
    const asking = (state: string) =>
      setupWork({}).createMachine({
        initial: state,
        states: { [state]: { tags: 'input-required', on: { 'message.received': {} } } }
      })
    const before = start(t, { work: asking('old') }, { store })
    const { id } = taskIn(await before.runtime.sendMessage(say('x')))
    await before.runtime.close()
    const after = start(t, { work: asking('new') }, { store })
    t.match(await refusal(after.runtime.sendMessage(say('y', { taskId: id }))), {
      metadata: { state: 'TASK_STATE_FAILED' }
    })
    const task = await after.runtime.getTask({ id })
    t.equal(
      textOf(task.status.message),
      'This task cannot be resumed with the present agent: the chart has no state (machine).old. It was stored under the same version, 1.0.0.'
    )
    t.equal(
      taskIn(await after.runtime.sendMessage(say('y', { contextId: task.contextId ?? '' }))).status.state,
      'TASK_STATE_INPUT_REQUIRED'
    )
  })

  await t.test('fails only a task whose own row cannot be restored', async t => {
    const inner = throughJson(memoryStore())
    const before = start(t, { work: painter() }, { store: inner })
    const { id } = taskIn(await before.runtime.sendMessage(say('x', inC)))
    const { id: other } = taskIn(await before.runtime.sendMessage(say('x', inC)))
    await before.runtime.close()
    const spoil = (snapshot: string) => JSON.stringify({ ...JSON.parse(snapshot), value: 'no such state' })
    const store: Store = {
      ...inner,
      loadContext: async key => {
        const stored = await inner.loadContext(key)
        return (
          stored && {
            ...stored,
            tasks: stored.tasks.map(task =>
              task.taskId === id ? { ...task, snapshot: spoil(String(task.snapshot)) } : task
            )
          }
        )
      }
    }
    const after = start(t, { work: painter() }, { store })
    t.match(await refusal(after.runtime.sendMessage(say('red', { taskId: id }))), {
      metadata: { state: 'TASK_STATE_FAILED' }
    })
    t.ok(await isGapless(inner, id))
    t.equal(taskIn(await after.runtime.sendMessage(say('red', { taskId: other }))).status.state, 'TASK_STATE_COMPLETED')
  })

  await t.test('fails the tasks of a chart with an actor that cannot be restored', async t => {
    const inner = (state: string) => setupWork({}).createMachine({ initial: state, states: { [state]: {} } })
    const outer = (name: string, state: string) =>
      setupWork({ actors: { [name]: inner(state) } }).createMachine({
        initial: 'a',
        states: { a: { tags: 'input-required', invoke: { src: name, id: 'inner', input: () => ({}) as never } } }
      })
    for (const now of [outer('inner', 'new'), outer('renamed', 'old')]) {
      const store = throughJson(memoryStore())
      const before = start(t, { work: outer('inner', 'old') }, { store })
      const { id } = taskIn(await before.runtime.sendMessage(say('x')))
      await before.runtime.close()
      const after = start(t, { work: now }, { store })
      t.match(await refusal(after.runtime.sendMessage(say('y', { taskId: id }))), {
        metadata: { state: 'TASK_STATE_FAILED' }
      })
    }
  })

  await t.test('refuses each caller of an unrestorable context once, and serves the others', async t => {
    const inner = memoryStore()
    let loads = 0
    const spoil = (snapshot: string) => JSON.stringify({ ...JSON.parse(snapshot), children: { none: null } })
    const store: Store = {
      ...inner,
      loadContext: async key => {
        const stored = await inner.loadContext(key)
        loads += 1
        return stored && { ...stored, snapshot: spoil(stored.snapshot) }
      }
    }
    const before = start(t, { work: painter() }, { store: { ...inner, close: async () => {} } })
    await before.runtime.sendMessage(say('x', inC))
    await before.runtime.close()
    const after = start(t, { work: painter() }, { store })
    await rest()
    t.ok(await refusal(after.runtime.sendMessage(say('x', inC))))
    await rest()
    t.ok(loads < 5, `${loads} loads`)
    t.equal(
      taskIn(await after.runtime.sendMessage(say('x', { contextId: 'other' }))).status.state,
      'TASK_STATE_INPUT_REQUIRED'
    )
  })

  await t.test('does not start a task whose message the store has lost', async t => {
    const later: MessageRow = {
      taskId: 'x',
      generation: 3,
      message: { messageId: 'later', role: 'ROLE_USER', parts: [{ text: 'an answer' }] }
    }
    for (const left of [[], [later]]) {
      const inner = memoryStore()
      const store: Store = { ...inner, readTaskMessages: async () => left }
      const { runtime, log } = start(t, { work: echo }, { store })
      await runtime.sendMessage(say('first', inC))
      const { id } = await open(runtime, 'second', inC)
      await until(async () => (await inner.readTask(anyone, id))?.task.status.state === 'TASK_STATE_FAILED')
      t.match(log, [
        {
          level: 'error',
          message: 'the work of a task failed',
          details: { taskId: id, error: { message: `The store does not hold the message that opened task ${id}.` } }
        }
      ])
    }
  })
})

await t.test('limits', async t => {
  await t.test('a full context refuses another task with RateLimited, until one ends', async t => {
    const { work, run } = steeredWork()
    const { runtime } = start(t, { work }, { limits: { tasksPerContext: 2 } })
    for (const word of ['a', 'b']) await open(runtime, word, inC)
    t.match(await refusal(open(runtime, 'c', inC)), { code: 'RateLimited' })
    t.match(await refusal(collect(runtime.sendStreamingMessage(say('c', inC)))), { code: 'RateLimited' })
    t.ok(await open(runtime, 'elsewhere'), 'another context has room')
    const { resolve, given } = await run(0)
    resolve({})
    await reaches(runtime, given.taskId, 'completed')
    t.ok(await open(runtime, 'c', inC))
  })

  await t.test('a negotiation that accepts in a full context is refused with RateLimited', async t => {
    const { work } = steeredWork()
    const { runtime } = start(
      t,
      { work, negotiate: ({ message }) => (textOf(message) === 'talk' ? reply('hi') : accepted()) },
      { limits: { tasksPerContext: 1 } }
    )
    await open(runtime, 'a', inC)
    t.match(await refusal(open(runtime, 'b', inC)), { code: 'RateLimited' })
    t.equal(textOf(messageIn(await runtime.sendMessage(say('talk', inC)))), 'hi')
  })

  await t.test('idle contexts leave memory, least recently used first, and are restored on use', async t => {
    const inner = memoryStore()
    const loaded: string[] = []
    const store: Store = { ...inner, loadContext: key => (loaded.push(key.contextId), inner.loadContext(key)) }
    const { runtime } = start(t, { work: echo }, { store, limits: { liveContexts: 2 } })
    const send = async (contextId: string) =>
      stateName(taskIn(await runtime.sendMessage(say('x', { contextId }))).status.state)
    for (const contextId of ['a', 'b', 'a', 'c', 'a', 'b', 'b']) t.equal(await send(contextId), 'completed')
    t.strictSame(loaded, ['a', 'b', 'c', 'b'])
  })

  await t.test('a new context among busy ones is refused with Overloaded and a delay', async t => {
    const { work, run } = steeredWork()
    const { runtime } = start(t, { work }, { limits: { liveContexts: 2 } })
    const [a] = [await open(runtime, 'x', { contextId: 'a' }), await open(runtime, 'x', { contextId: 'b' })]
    const error = await rejection(open(runtime, 'x', inC))
    t.match(error, { code: 'Overloaded', retryAfterMs: 1000 })
    t.ok(await open(runtime, 'y', { contextId: 'a' }))
    await runtime.cancelTask({ id: a.id })
    ;(await run(2)).resolve({})
    await until(() => open(runtime, 'x', inC).catch(() => false as const))
  })

  await t.test('a context is loaded once, however many calls need it', async t => {
    const inner = memoryStore()
    let loads = 0
    const store: Store = { ...inner, loadContext: key => ((loads += 1), inner.loadContext(key)) }
    const { runtime } = start(t, { work: echo }, { store })
    await Promise.all([1, 2, 3].map(() => runtime.sendMessage(say('x', inC))))
    t.equal(loads, 1)
  })

  await t.test('a context that is loading when the runtime closes never starts', async t => {
    const inner = memoryStore()
    const gate = deferred()
    const store: Store = {
      ...inner,
      loadContext: async key => (await gate.promise, inner.loadContext(key)),
      close: async () => {}
    }
    const { runtime } = start(t, { work: echo }, { store })
    const waiting = refusal(runtime.sendMessage(say('x', inC)))
    await rest()
    await runtime.close()
    gate.resolve()
    t.match(await waiting, { code: 'Overloaded' })
  })

  await t.test('a finished task leaves nothing in its context’s stored row', async t => {
    const { runtime, store } = start(t, { work: echo })
    await runtime.sendMessage(say('x', inC))
    const size = (await store.loadContext({ ...anyone, ...inC }))?.snapshot.length
    for (let i = 0; i < 50; i += 1) await runtime.sendMessage(say('x', inC))
    t.equal((await store.loadContext({ ...anyone, ...inC }))?.snapshot.length, size)
  })
})
