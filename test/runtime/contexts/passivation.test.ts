import t from 'tap'
import { fromCallback, fromObservable, fromPromise, fromTransition, type AnyActorLogic } from 'xstate'
import { defaultLimits } from '../../../runtime/access/limits.ts'
import { CommitPipeline } from '../../../runtime/commits/commit-pipeline.ts'
import { TaskLedger } from '../../../runtime/commits/task-ledger.ts'
import { WorkHost } from '../../../runtime/contexts/work-host.ts'
import { contextLogic, type LiveContext } from '../../../runtime/contexts/context.ts'
import { RuntimeState } from '../../../runtime/contexts/dependencies.ts'
import { ContextRegistry } from '../../../runtime/contexts/context-registry.ts'
import { Facts, PendingCalls } from '../../../runtime/contexts/facts.ts'
import { Observers } from '../../../runtime/contexts/observers.ts'
import { RecoveryQueue } from '../../../runtime/contexts/recovery-queue.ts'
import { accepted, inputRequired, reply, setupWork, defineAgent } from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { withLostRaceRetry } from '../../../runtime/operations/deliver.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { TaskSubscriptions } from '../../../runtime/streams/task-tail.ts'
import { Counters } from '../../../runtime/telemetry/counters.ts'
import { TaskLoads } from '../../../runtime/work/task-loads.ts'
import { painter, steeredWork } from '../../fixtures/runtime/agents.ts'
import { openRuntime } from '../../fixtures/runtime/open-runtime.ts'
import {
  brief,
  collect,
  deferred,
  messageIn,
  next,
  open,
  reaches,
  refusal,
  rest,
  say,
  start,
  stateName,
  taskIn,
  textOf,
  until,
  cleanUps,
  plainStamps,
  countingIds,
  metering,
  recordingLogger,
  userMessage
} from '../../fixtures/runtime/runtime-helpers.ts'
import { generationsIn } from '../../fixtures/runtime/lives.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

const DAY = 24 * 60 * 60 * 1000
const anyone = { tenant: '', principal: 'anonymous' }

/** Asks, takes an answer, and gives up after a time. */
const asker = (delay = 1000) =>
  setupWork({}).createMachine({
    initial: 'asking',
    states: {
      asking: { tags: 'input-required', on: { 'message.received': 'done' }, after: { [delay]: 'late' } },
      late: { type: 'final', tags: 'failed' },
      done: { type: 'final' }
    }
  })

/** A store that counts its loads. */
function countingStore(inner: Store = memoryStore()): { store: Store; loads: string[] } {
  const loads: string[] = []
  return { loads, store: { ...inner, loadContext: key => (loads.push(key.contextId), inner.loadContext(key)) } }
}

const within = (taskId: string) => ({ taskId })

await t.test('a context without running work', async t => {
  await t.test('leaves memory when more than idleContexts are idle, least recently used first', async t => {
    const agent = openRuntime(t, { work: painter() }, { idleContexts: 2 })
    for (const contextId of ['a', 'b', 'a', 'c', 'a', 'b', 'b']) await agent.send(contextId)
    t.strictSame(agent.loads, ['a', 'b', 'c', 'b'])
    t.equal(agent.contexts.size, 2)
  })

  await t.test('is restored unchanged by the next message', async t => {
    const { store, loads } = countingStore()
    const { runtime } = start(t, { work: painter() }, { store, limits: { advanced: { idleContexts: 1 } } })
    const ids: string[] = []
    for (const contextId of ['a', 'b', 'c'])
      ids.push(taskIn(await runtime.sendMessage(say(`a boat for ${contextId}`, { contextId }))).id)
    for (const id of ids) {
      const task = taskIn(await runtime.sendMessage(say('blue', { taskId: id })))
      t.strictSame(
        [stateName(task.status.state), task.artifacts?.map(textOf)],
        ['completed', ['a sketch', 'a blue boat']]
      )
    }
    t.strictSame(loads, ['a', 'b', 'c', 'a', 'b', 'c'])
  })

  await t.test('is restored to be canceled', async t => {
    const { store, loads } = countingStore()
    const { runtime } = start(t, { work: painter() }, { store, limits: { advanced: { idleContexts: 1 } } })
    const [a] = [
      taskIn(await runtime.sendMessage(say('x', { contextId: 'a' }))),
      await runtime.sendMessage(say('x', { contextId: 'b' }))
    ]
    t.equal((await runtime.cancelTask({ id: a.id })).status.state, 'TASK_STATE_CANCELED')
    t.strictSame(loads, ['a', 'b', 'a'])
  })

  await t.test('leaves while a canceled work still stops, whose signal aborts anyway', async t => {
    const { promise: slow, resolve: goOn } = deferred()
    let isCleanedUp = false
    const { runtime } = start(
      t,
      {
        work: async ({ message, ask }) => {
          try {
            if (textOf(message) === 'slow') await slow
            await ask(inputRequired('?'))
          } finally {
            isCleanedUp ||= textOf(message) === 'slow'
          }
        }
      },
      { limits: { advanced: { idleContexts: 1 } } }
    )
    const { id } = await open(runtime, 'slow', { contextId: 'a' })
    await runtime.cancelTask({ id })
    await runtime.sendMessage(say('quick', { contextId: 'b' }))
    goOn()
    await until(async () => isCleanedUp)
    t.ok(isCleanedUp)
  })

  await t.test('is restored at its wake, also after 30 days', async t => {
    for (const delay of [1000, 30 * DAY]) {
      const agent = openRuntime(t, { work: asker(delay) }, { idleContexts: 1 })
      const a = await agent.send('a')
      agent.clock.increment(delay / 2)
      const b = await agent.send('b')
      t.equal(agent.contexts.size, 1)
      const stateOf = async (id: string) => stateName((await agent.store.readTask(anyone, id))?.task.status.state ?? '')
      agent.clock.increment(delay / 2 - 1)
      await rest()
      t.strictSame([await stateOf(a), agent.loads], ['input-required', ['a', 'b']])
      agent.clock.increment(1)
      await rest()
      t.strictSame([await stateOf(a), await stateOf(b), agent.loads], ['failed', 'input-required', ['a', 'b', 'a']])
      agent.clock.increment(delay)
      await rest()
      t.equal(await stateOf(b), 'failed')
      t.equal(agent.clock.pending, 0)
    }
  })

  await t.test('leaves memory without effect on subscriptions to its tasks', async t => {
    const { runtime } = start(t, { work: painter() }, { limits: { advanced: { idleContexts: 1 } } })
    const { id } = taskIn(await runtime.sendMessage(say('x', { contextId: 'a' })))
    const stream = runtime.subscribeToTask({ id })
    t.equal(brief(await next(stream)), 'task:input-required')
    const told = collect(stream)
    await runtime.sendMessage(say('x', { contextId: 'b' }))
    await runtime.sendMessage(say('red', { taskId: id }))
    t.equal((await told).map(brief).at(-1), 'completed: Here you are')
  })

  await t.test('leaves at once with a limit below 1', async t => {
    const agent = openRuntime(t, { work: painter() }, { idleContexts: 0.5 })
    const ids = await Promise.all(['a', 'b', 'c'].map(contextId => agent.send(contextId)))
    t.equal(agent.contexts.size, 0)
    await Promise.all(ids.map((taskId, i) => agent.send(['a', 'b', 'c'][i] ?? '', taskId).catch(() => {})))
    t.equal(agent.contexts.size, 0)
  })

  await t.test('makes room for another if the live contexts are at their limit', async t => {
    const agent = openRuntime(t, { work: painter() }, { liveContexts: 2 })
    for (const contextId of ['a', 'b', 'c', 'a']) await agent.send(contextId)
    t.equal(agent.contexts.size, 2)
    t.strictSame(agent.loads, ['a', 'b', 'c', 'a'])
  })
})

await t.test('a context stays in memory', async t => {
  const endless = { subscribe: () => ({ unsubscribe() {} }) }
  const leaves: Record<string, AnyActorLogic> = {
    promise: fromPromise(() => new Promise(() => {})),
    callback: fromCallback(() => {}),
    observable: fromObservable(() => endless),
    transition: fromTransition(state => state, 0)
  }
  const running = (leaf: AnyActorLogic) => {
    const inner = setupWork({ actors: { leaf } }).createMachine({
      invoke: { src: 'leaf', id: 'leaf' } as never,
      initial: 'a',
      states: { a: {} }
    })
    return setupWork({ actors: { inner } }).createMachine({
      tags: 'input-required',
      invoke: { src: 'inner', input: () => ({}) as never },
      initial: 'a',
      states: { a: {} }
    })
  }

  for (const [name, leaf] of Object.entries(leaves)) {
    await t.test(`while logic of the kind ${name} runs in an interrupted task, with an immediate wake`, async t => {
      const agent = openRuntime(t, { work: running(leaf) }, { idleContexts: 1 })
      for (const contextId of ['a', 'b', 'c']) await agent.send(contextId)
      t.equal(agent.contexts.size, 3)
      t.strictSame(
        (await agent.store.readWakes(10, { atMs: 0, taskId: '' })).map(({ atMs }) => atMs),
        [0, 0, 0]
      )
    })
  }

  await t.test('except for logic that waits, has ended, or is a machine', async t => {
    const waiting = fromTransition(state => state, 0)
    const says: AnyActorLogic = {
      ...waiting,
      getInitialSnapshot: (scope, input) => ({ ...waiting.getInitialSnapshot(scope, input as never), isWaiting: true })
    }
    for (const leaf of [says, fromPromise(async () => {}), setupWork({}).createMachine({})]) {
      const agent = openRuntime(t, { work: running(leaf) }, { idleContexts: 1 })
      for (const contextId of ['a', 'b', 'c']) await agent.send(contextId)
      await rest()
      t.equal(agent.contexts.size, 1)
    }
  })

  await t.test('while one of its tasks works or has not started yet', async t => {
    const { work } = steeredWork()
    const { store, loads } = countingStore()
    const { runtime } = start(t, { work }, { store, limits: { advanced: { idleContexts: 1 } } })
    for (const contextId of ['a', 'b', 'a', 'b']) await open(runtime, 'x', { contextId })
    t.strictSame(loads, ['a', 'b'])
  })

  await t.test('while one of its tasks works and another waits', async t => {
    const { store, loads } = countingStore()
    const { runtime } = start(
      t,
      { work: painter(() => new Promise(() => {})) },
      { store, limits: { advanced: { idleContexts: 1 } } }
    )
    const { id } = taskIn(await runtime.sendMessage(say('x', { contextId: 'a' })))
    await runtime.sendMessage(say('red', within(id), { returnImmediately: true }))
    for (const contextId of ['a', 'b', 'c', 'a']) await runtime.sendMessage(say('x', { contextId }))
    t.strictSame(loads, ['a', 'b', 'c'])
  })

  await t.test('while one of its messages is negotiated', async t => {
    const answer = deferred()
    const { store, loads } = countingStore()
    const { runtime } = start(
      t,
      { negotiate: async ({ message }) => (textOf(message) === 'slow' && (await answer.promise), reply('ok')) },
      { store, limits: { advanced: { idleContexts: 1 } } }
    )
    const slow = runtime.sendMessage(say('slow', { contextId: 'a' }))
    for (const contextId of ['b', 'c', 'b']) await runtime.sendMessage(say('x', { contextId }))
    answer.resolve()
    t.equal(textOf(messageIn(await slow)), 'ok')
    await runtime.sendMessage(say('x', { contextId: 'a' }))
    t.strictSame(loads, ['a', 'b', 'c', 'b'])
  })
})

await t.test('nothing is lost or duplicated', async t => {
  await t.test('when many callers use more contexts than may be idle in memory', async t => {
    const { store } = countingStore()
    const { runtime } = start(t, { work: painter() }, { store, limits: { advanced: { idleContexts: 1 } } })
    const names = Array.from({ length: 30 }, (_, i) => `c${i}`)
    const ids = await Promise.all(
      names.map(async contextId => taskIn(await runtime.sendMessage(say('x', { contextId }))).id)
    )
    const answers = await Promise.all(ids.map(id => runtime.sendMessage(say('red', within(id)))))
    for (const answer of answers) {
      const task = taskIn(answer)
      t.equal(stateName(task.status.state), 'completed')
      const generations = await generationsIn(store, anyone, task.id)
      t.ok(generations.every((generation, i) => generation === i + 1))
      t.equal((await runtime.getTask({ id: task.id })).history?.filter(({ role }) => role === 'ROLE_USER').length, 2)
    }
  })

  await t.test('when two simultaneous messages load a context: one load, and one message is accepted', async t => {
    const { store, loads } = countingStore()
    const { runtime } = start(t, { work: painter() }, { store, limits: { advanced: { idleContexts: 1 } } })
    const { id } = taskIn(await runtime.sendMessage(say('x', { contextId: 'a' })))
    await runtime.sendMessage(say('x', { contextId: 'b' }))
    const both = await Promise.allSettled([
      runtime.sendMessage(say('red', within(id))),
      runtime.sendMessage(say('blue', within(id)))
    ])
    t.strictSame(both.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
    t.strictSame(loads, ['a', 'b', 'a'])
  })

  await t.test('when a message and a timer need it at once', async t => {
    const inner = memoryStore()
    const gate = deferred()
    let slow = false
    const store: Store = { ...inner, loadContext: async key => (slow && (await gate.promise), inner.loadContext(key)) }
    const agent = openRuntime(t, { work: asker() }, { idleContexts: 1 }, store)
    const a = await agent.send('a')
    await agent.send('b')
    slow = true
    const answering = agent.send('a', a)
    agent.clock.increment(1000)
    await rest()
    gate.resolve()
    await answering
    await rest()
    t.equal(agent.loads.filter(name => name === 'a').length, 2)
    t.equal(
      (await agent.store.readTask(anyone, a))?.task.status.state,
      'TASK_STATE_COMPLETED',
      'the message came first'
    )
  })

  await t.test('when a context leaves memory between lookup and use', async t => {
    const [left, back] = [{ isOver: true }, { isOver: false }] as LiveContext[]
    const found = [left, left, back]
    const contexts = { get: async () => found.shift() } as unknown as ContextRegistry
    t.equal(await withLostRaceRetry(contexts, { ...anyone, contextId: 'c' }, async live => live), back)
  })

  await t.test('when a commit fails while others leave: the context is restored from the store', async t => {
    const inner = memoryStore()
    let failures = 0
    const store: Store = {
      ...inner,
      commit: commit => (failures > 0 ? ((failures -= 1), Promise.reject(new Error('disk'))) : inner.commit(commit))
    }
    const { runtime } = start(t, { work: painter() }, { store, limits: { advanced: { idleContexts: 1 } } })
    const ids: string[] = []
    for (const contextId of ['a', 'b']) ids.push(taskIn(await runtime.sendMessage(say('x', { contextId }))).id)
    failures = 1
    const outcomes = await Promise.allSettled(ids.map(id => runtime.sendMessage(say('red', within(id)))))
    t.strictSame(outcomes.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
    for (const id of ids) await runtime.sendMessage(say('red', within(id))).catch(() => {})
    for (const id of ids) t.equal((await runtime.getTask({ id })).status.state, 'TASK_STATE_COMPLETED')
  })

  await t.test('when a context is lost while the store fails: its wake still comes', async t => {
    const inner = memoryStore()
    let broken = false
    const store: Store = {
      ...inner,
      commit: commit => (broken ? Promise.reject(new Error('down')) : inner.commit(commit)),
      loadContext: key => (broken ? Promise.reject(new Error('down')) : inner.loadContext(key))
    }
    const { runtime, clock, log } = start(t, { work: asker(60_000) }, { store })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    broken = true
    await refusal(runtime.sendMessage(say('y', within(id))))
    clock.increment(1000)
    await until(() => log.some(({ message }) => message === 'a context could not be loaded again'))
    broken = false
    clock.increment(60_000)
    await reaches(runtime, id, 'failed')
  })

  await t.test('when the runtime closes while a context is being woken', async t => {
    const inner = memoryStore()
    const gate = deferred()
    let slow = false
    const store: Store = {
      ...inner,
      loadContext: async key => (slow && (await gate.promise), inner.loadContext(key)),
      close: async () => {}
    }
    const { runtime, clock, log } = start(t, { work: asker() }, { store, limits: { advanced: { idleContexts: 1 } } })
    const { id } = taskIn(await runtime.sendMessage(say('x', { contextId: 'a' })))
    await runtime.sendMessage(say('x', { contextId: 'b' }))
    slow = true
    clock.increment(1000)
    await rest()
    await runtime.close()
    gate.resolve()
    await rest()
    t.equal((await inner.readTask(anyone, id))?.task.status.state, 'TASK_STATE_INPUT_REQUIRED')
    t.strictSame([clock.pending, log], [0, []])
  })

  await t.test('when the contexts close during a wake', async t => {
    const inner = memoryStore()
    let close = () => {}
    const loadContext: Store['loadContext'] = async key => {
      const stored = await inner.loadContext(key)
      queueMicrotask(() => queueMicrotask(close))
      return stored
    }
    const agent = openRuntime(t, { work: asker() }, { idleContexts: 1 }, { ...inner, loadContext })
    const id = await agent.send('a')
    await agent.send('b')
    close = () => void agent.contexts.close()
    agent.clock.increment(1000)
    await rest()
    t.strictSame([agent.loads, agent.contexts.size, agent.clock.pending], [['a', 'b', 'a'], 0, 0])
    t.equal((await inner.readTask(anyone, id))?.task.status.state, 'TASK_STATE_INPUT_REQUIRED')
    t.strictSame(agent.log, [])
  })
})

await t.test('a restart', async t => {
  const kept = (inner: Store): Store => ({ ...inner, close: async () => {} })

  await t.test('loads only the contexts with unfinished work', async t => {
    const inner = memoryStore()
    const { work, runs } = steeredWork()
    const before = start(t, { work, negotiate: () => accepted() }, { store: kept(inner) })
    await open(before.runtime, 'x', { contextId: 'works' })
    await until(() => runs.length === 1)
    await before.runtime.close()
    const asked = start(t, { work: painter() }, { store: kept({ ...inner, readWakes: async () => [] }) })
    for (const contextId of ['a', 'b']) await asked.runtime.sendMessage(say('x', { contextId }))
    await asked.runtime.close()
    const { store, loads } = countingStore(kept(inner))
    start(t, { work }, { store })
    await rest()
    t.strictSame(loads, ['works'])
    t.equal(runs.length, 2)
  })

  await t.test('continues more work than fits, as room becomes free', async t => {
    const inner = memoryStore()
    const first = steeredWork()
    const before = start(t, { work: first.work }, { store: kept(inner) })
    for (let i = 0; i < 50; i += 1) await open(before.runtime, 'x', { contextId: `c${i}` })
    await until(() => first.runs.length === 50)
    await before.runtime.close()
    const second = steeredWork()
    const after = start(t, { work: second.work }, { store: kept(inner), limits: { liveContexts: 10 } })
    await until(() => second.runs.length === 10)
    await rest()
    t.equal(second.runs.length, 10)
    for (let done = 0; done < 50; done += 1) {
      const run = await until(() => {
        after.clock.increment(1000)
        return second.runs[done]
      })
      run.resolve({})
    }
    const states = async () =>
      Promise.all(second.runs.map(async ({ given }) => (await inner.readTask(anyone, given.taskId))?.task.status.state))
    await until(async () => (await states()).every(state => state === 'TASK_STATE_COMPLETED'))
    t.equal(new Set(second.runs.map(({ given }) => given.taskId)).size, 50)
    t.strictSame(after.log, [])
  })
})

await t.test('five hundred finished tasks leave no context, actor, timer or listener behind', async t => {
  let running = 0
  const paint = fromCallback(({ sendBack }) => {
    running += 1
    sendBack({ type: 'painted' })
    return () => void (running -= 1)
  })
  const work = setupWork({ actors: { paint }, types: { events: {} as { type: 'painted' } } }).createMachine({
    initial: 'asking',
    states: {
      asking: { tags: 'input-required', on: { 'message.received': 'painting' }, after: { 1000: 'painting' } },
      painting: { invoke: { src: 'paint' }, on: { painted: 'done' } },
      done: { type: 'final' }
    }
  })
  const agent = openRuntime(t, { work, deadlineMs: DAY }, { idleContexts: 10 })
  const ids: string[] = []
  for (let i = 0; i < 500; i += 1) ids.push(await agent.send(`c${i}`))
  t.equal(agent.contexts.size, 10)
  t.ok(agent.clock.pending <= 2 * 10 + 1, `${agent.clock.pending} timers`)
  for (let i = 0; i < 250; i += 1) await agent.send(`c${i}`, ids[i])
  agent.clock.increment(1000)
  await until(async () => (await agent.store.readWakes(1, { atMs: 0, taskId: '' })).length === 0)
  await rest()
  t.equal(agent.contexts.size, 10)
  t.strictSame([running, agent.clock.pending, agent.subscriptions.size, agent.log.length], [0, 0, 0, 0])
  for (const id of ids)
    if ((await agent.store.readTask(anyone, id))?.task.status.state !== 'TASK_STATE_COMPLETED') t.fail(id)
})

await t.test('a closed context accepts nothing more, and informs waiting calls', async t => {
  const agent = defineAgent({ card: { name: 'A' }, work: () => ({}) })
  const contexts = new ContextRegistry({
    state: new RuntimeState(),
    store: memoryStore(),
    reads: memoryStore(),
    clock: new TestClock(),
    ids: countingIds(),
    logger: recordingLogger().logger,
    limits: defaultLimits,
    metering: metering(memoryStore()),
    subscriptions: new TaskSubscriptions(),
    loads: new TaskLoads({ store: memoryStore(), logger: recordingLogger().logger, limits: defaultLimits }),
    logic: contextLogic(agent),
    agent,
    cleanUps: cleanUps(),
    stamps: plainStamps,
    recoveryQueue: new RecoveryQueue(new TestClock()),
    observers: new Observers(recordingLogger().logger),
    counters: new Counters()
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

await t.test('entries that work journals after its context has closed are dropped', async t => {
  const agent = defineAgent({ card: { name: 'A' }, work: () => ({}) })
  const key = { tenant: '', principal: 'ann', contextId: 'c' }
  const clock = new TestClock()
  const ids = countingIds()
  const store = memoryStore()
  const services = {
    state: new RuntimeState(),
    store,
    reads: store,
    clock,
    ids,
    logger: recordingLogger().logger,
    limits: defaultLimits,
    metering: metering(store),
    subscriptions: new TaskSubscriptions(),
    loads: new TaskLoads({ store, logger: recordingLogger().logger, limits: defaultLimits }),
    logic: contextLogic(agent),
    agent,
    cleanUps: cleanUps(),
    stamps: plainStamps,
    recoveryQueue: new RecoveryQueue(clock),
    observers: new Observers(recordingLogger().logger),
    counters: new Counters()
  }
  const pipeline = new CommitPipeline(0, () => {})
  const tasks = new TaskLedger('c', { clock, ids })
  const calls = new PendingCalls()
  const facts = new Facts(key, services, pipeline, tasks, calls)
  const host = new WorkHost(key, services, { pipeline, tasks, facts, calls })
  const { turn } = pipeline
  host.keep({ taskId: 't', key: 'k', value: 1 })
  pipeline.end(new Error('over'))
  host.keep({ taskId: 't', key: 'k', value: 2 })
  t.strictSame(turn.journal, [{ taskId: 't', key: 'k', value: 1 }])
})
