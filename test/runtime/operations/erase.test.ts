import t, { type Test } from 'tap'
import { accepted, inputRequired, progress, reply } from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { erase, type DataToErase } from '../../../runtime/operations/tasks.ts'
import { steeredWork } from '../../fixtures/runtime/agents.ts'
import { failOnLooseErrors } from '../../fixtures/runtime/lives.ts'
import { openRuntime } from '../../fixtures/runtime/open-runtime.ts'
import {
  brief,
  collect,
  deferred,
  heldStore,
  messageIn,
  next,
  open,
  reaches,
  refusal,
  rest,
  say,
  start,
  taskIn,
  textOf,
  until,
  withGenerations
} from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

const anna = { principal: 'anna' }
const bob = { principal: 'bob' }
const annas = { tenant: '', principal: 'anna' }

/** Asks, then waits for ever in a step. */
const asking = async function* () {
  yield progress('looking')
  yield* inputRequired('Which day?')
  await new Promise(() => {})
}

const wakes = (store: Store) => store.readWakes(100, { atMs: 0, taskId: '' })

/** Checks that a principal has nothing at all. */
async function hasNothing(t: Test, store: Store, taskIds: string[], contextId = 'c') {
  for (const taskId of taskIds) {
    t.equal(await store.readTask(annas, taskId), undefined)
    t.strictSame(await store.readEvents(annas, taskId, 0, 10), [])
    t.strictSame(await store.readJournal(annas, taskId), [])
  }
  t.equal(await store.loadContext({ ...annas, contextId }), undefined)
  t.strictSame(await store.readMessages({ ...annas, contextId }, 10), [])
  t.strictSame(await wakes(store), [])
}

await t.test('erasing a principal', async t => {
  await t.test('stops running work as a cancel does, with its clean-up, and leaves nothing of it', async t => {
    const done: string[] = []
    const cleaned = deferred()
    const { runtime, store, clock, log } = start(t, {
      cancelGraceMs: 100,
      work: async ({ signal, emit, ask, step, sleep }) => {
        await step('first', () => 1)
        await new Promise(resolve => signal.addEventListener('abort', resolve))
        done.push(`aborted: ${signal.reason.message}`)
        emit(progress('too late'))
        for (const late of [() => step('late', () => 2), () => ask(inputRequired('late?')), () => sleep(5)])
          await late().catch(({ name }: Error) => done.push(name))
        await cleaned.promise
        done.push('cleaned up')
      }
    })
    const { id } = await open(runtime, 'go', { contextId: 'c' }, anna)
    await until(async () => (await store.readJournal(annas, id)).length > 0)
    t.equal(await runtime.erase(anna), true)
    await until(() => done.length === 4)
    t.strictSame(done, ['aborted: The task has ended.', 'AbortError', 'AbortError', 'AbortError'])
    await hasNothing(t, store, [id])
    t.equal((await refusal(runtime.getTask({ id }, anna))).code, 'TaskNotFound')
    t.strictSame((await runtime.listTasks({}, anna)).tasks, [])
    let closed = false
    const closing = runtime.close().then(() => (closed = true))
    await rest()
    t.equal(closed, false, 'a closing runtime waits for the clean-up')
    cleaned.resolve()
    await closing
    t.equal(done.at(-1), 'cleaned up')
    t.equal(clock.pending, 0)
    t.strictSame(
      log.map(({ message }) => message),
      ['a word was dropped because its work had ended']
    )
  })

  await t.test('ends only its open streams and waiting calls, with TaskNotFound', async t => {
    const { work, run } = steeredWork()
    const { runtime } = start(t, { work })
    const mine = await open(runtime, 'mine', { contextId: 'c' }, anna)
    const theirs = await open(runtime, 'theirs', { contextId: 'c' }, bob)
    await reaches(runtime, mine.id, 'working', anna)
    await reaches(runtime, theirs.id, 'working', bob)
    const subscribed = runtime.subscribeToTask({ id: mine.id }, anna)
    const other = runtime.subscribeToTask({ id: theirs.id }, bob)
    const streamed = runtime.sendStreamingMessage(say('x', { contextId: 'd' }), anna)
    for (const stream of [subscribed, other, streamed]) await next(stream)
    const waiting = [
      collect(subscribed),
      collect(streamed),
      runtime.sendMessage(say('y', { contextId: 'e' }), anna),
      runtime.getTask({ id: mine.id }, { ...withGenerations, ...anna, conditions: { currentGeneration: 3 } })
    ].map(refusal)
    await run(3)
    await rest()
    t.equal(await runtime.erase(anna), true)
    for (const { code } of await Promise.all(waiting)) t.equal(code, 'TaskNotFound')
    t.equal((await refusal(runtime.subscribeToTask({ id: mine.id }, anna).next())).code, 'TaskNotFound')
    ;(await run(1)).resolve({ artifact: 'still here' })
    t.strictSame((await collect(other)).map(brief), ['artifact: still here', 'completed'])
  })

  await t.test('removes queued messages, sleeping timers, deadlines and sends', async t => {
    let runs = 0
    const { runtime, store, clock } = start(t, {
      messages: 'queue',
      deadlineMs: 100_000,
      work: async ({ sleep }) => {
        runs += 1
        await sleep(50_000)
      }
    })
    const { id } = await open(runtime, 'go', { contextId: 'c', messageId: 'm' }, { ...anna, ...withGenerations })
    await reaches(runtime, id, 'working', anna)
    await runtime.sendMessage(say('more', { taskId: id }, { returnImmediately: true }), anna)
    await until(() => clock.pending === 2)
    t.equal(await runtime.erase(anna), true)
    t.equal(clock.pending, 0)
    await hasNothing(t, store, [id])
    t.equal(await store.readSend(annas, '["m","context","c"]'), undefined)
    clock.increment(200_000)
    await rest()
    await hasNothing(t, store, [id])
    const again = await open(runtime, 'go', { contextId: 'c', messageId: 'm' }, { ...anna, ...withGenerations })
    t.not(again.id, id)
    await until(() => runs === 2)
  })

  await t.test('ends a pending negotiation and drops its answer', async t => {
    const gate = deferred()
    const { runtime, store } = start(t, { negotiate: async () => (await gate.promise, reply('hello')) })
    const asked = refusal(runtime.sendMessage(say('hi', { contextId: 'c' }), anna))
    await until(async () => (await store.loadContext({ ...annas, contextId: 'c' }))?.snapshot.includes('hi'))
    t.equal(await runtime.erase(anna), true)
    t.match(await asked, { code: 'TaskNotFound', message: 'The context was erased, with all of its tasks.' })
    gate.resolve()
    await rest()
    await hasNothing(t, store, [])
    t.equal(textOf(messageIn(await runtime.sendMessage(say('hi', { contextId: 'c' }), anna))), 'hello')
  })

  await t.test('returns false if nothing is there, also a second time', async t => {
    const { runtime } = start(t, { work: () => ({}) })
    t.equal(await runtime.erase(anna), false)
    await runtime.sendMessage(say('x'), anna)
    t.equal(await runtime.erase({ ...anna, tenant: 'other' }), false)
    t.equal(await runtime.erase({}), false, 'the default is the anonymous principal')
    t.equal(await runtime.erase(anna), true)
    t.equal(await runtime.erase(anna), false)
  })
})

await t.test("erasing one context leaves the principal's others unchanged, and frees its name", async t => {
  const { runtime, store } = start(t, { work: asking })
  const [c, d] = [
    taskIn(await runtime.sendMessage(say('c', { contextId: 'c' }), anna)),
    taskIn(await runtime.sendMessage(say('d', { contextId: 'd' }), anna))
  ]
  const followed = runtime.subscribeToTask({ id: d.id }, anna)
  await next(followed)
  const gone = runtime.subscribeToTask({ id: c.id }, anna)
  await next(gone)
  t.equal(await runtime.erase({ ...anna, contextId: 'c' }), true)
  t.equal((await refusal(gone.next())).code, 'TaskNotFound')
  t.strictSame(
    (await runtime.listTasks({}, anna)).tasks.map(({ id }) => id),
    [d.id]
  )
  t.equal((await refusal(runtime.sendMessage(say('Monday', { taskId: c.id }), anna))).code, 'TaskNotFound')
  t.equal((await refusal(runtime.cancelTask({ id: c.id }, anna))).code, 'TaskNotFound')
  t.equal(await store.loadContext({ ...annas, contextId: 'c' }), undefined)
  const fresh = taskIn(await runtime.sendMessage(say('again', { contextId: 'c' }), anna))
  t.strictSame(
    (await store.readMessages({ ...annas, contextId: 'c' }, 10)).map(({ message }) => textOf(message)),
    ['again']
  )
  t.equal((await store.readTask(annas, fresh.id))?.generation, 5)
  await runtime.cancelTask({ id: d.id }, anna)
  t.equal(brief(await next(followed)), 'canceled')
})

await t.test('erasing one context keeps an unanswered message of another', async t => {
  const gate = deferred()
  const { runtime } = start(t, {
    negotiate: async () => (await gate.promise, accepted()),
    work: () => ({ message: 'done' })
  })
  const asked = runtime.sendMessage(say('hi', { contextId: 'd' }), anna)
  await rest()
  t.equal(await runtime.erase({ ...anna, contextId: 'c' }), false)
  gate.resolve()
  t.equal(taskIn(await asked).status.state, 'TASK_STATE_COMPLETED')
})

await t.test('a context that is not in memory is erased with its wake', async t => {
  const agent = openRuntime(
    t,
    { work: async ({ ask }) => void (await ask(inputRequired('?', { deadlineMs: 1000 }))) },
    { idleContexts: 1 }
  )
  const [id] = [await agent.send('c'), await agent.send('d')]
  t.equal((await wakes(agent.store)).length, 2)
  t.equal(await erase(agent, { tenant: '', principal: 'anonymous', contextId: 'c' }), true)
  t.equal(await agent.store.readTask({ tenant: '', principal: 'anonymous' }, id), undefined)
  agent.clock.increment(2000)
  await rest()
  t.strictSame(
    [agent.clock.pending, agent.subscriptions.size, agent.log.length],
    [0, 0, 1],
    'only the remaining one was woken'
  )
})

await t.test("an erase waits for a context's load, and later calls start with a new one", async t => {
  const inner = memoryStore()
  const gate = deferred()
  let slow = false
  const store: Store = {
    ...inner,
    close: async () => {},
    loadContext: async key => {
      const stored = await inner.loadContext(key)
      if (slow) await gate.promise
      return stored
    }
  }
  const first = start(t, { work: asking }, { store })
  const { id } = taskIn(await first.runtime.sendMessage(say('x', { contextId: 'c' }), anna))
  await first.runtime.close()
  slow = true
  const { runtime } = start(t, { work: asking }, { store })
  const answer = refusal(runtime.sendMessage(say('Monday', { taskId: id }), anna))
  const opened = runtime.sendMessage(say('new', { contextId: 'c' }), anna)
  await rest()
  let isOver = false
  const erased = runtime.erase({ ...anna, contextId: 'c' }).then(was => ((isOver = true), was))
  const late = refusal(runtime.sendMessage(say('Tuesday', { taskId: id }), anna))
  await rest()
  t.equal(isOver, false)
  gate.resolve()
  t.equal(await erased, true)
  t.equal((await answer).code, 'TaskNotFound')
  t.equal((await late).code, 'TaskNotFound')
  const fresh = await opened.then(taskIn, (error: { code: string }) => error.code)
  if (typeof fresh !== 'string')
    t.strictSame(
      (await store.readMessages({ ...annas, contextId: 'c' }, 10)).map(({ message }) => textOf(message)),
      ['new']
    )
  else t.equal(fresh, 'TaskNotFound')
  t.equal(await store.readTask(annas, id), undefined)
})

await t.test(
  'requests of a principal wait during its erasure, new contexts are refused, and others continue',
  async t => {
    const gate = deferred()
    const inner = memoryStore()
    const store: Store = { ...inner, erase: async whose => (await gate.promise, inner.erase(whose)) }
    const { runtime } = start(t, { work: () => ({}) }, { store })
    await runtime.sendMessage(say('x', { contextId: 'c' }), anna)
    const erased = runtime.erase(anna)
    const waiting = runtime.sendMessage(say('y', { contextId: 'c' }), anna)
    t.match(await refusal(runtime.sendMessage(say('z'), anna)), { code: 'Overloaded' })
    t.equal(taskIn(await runtime.sendMessage(say('z'), bob)).status.state, 'TASK_STATE_COMPLETED')
    let closed = false
    const closing = runtime.close().then(() => (closed = true))
    await rest()
    t.equal(closed, false, 'a closing runtime waits for it')
    gate.resolve()
    t.equal(await erased, true)
    await closing
    t.equal((await refusal(waiting)).code, 'Overloaded')
    t.equal((await refusal(runtime.erase(anna))).code, 'Overloaded')
  }
)

await t.test('a pending commit of an erased context is erased too', async t => {
  const inner = memoryStore()
  const synced = deferred()
  const store: Store = {
    ...inner,
    commit: async commit => {
      const written = await inner.commit(commit)
      await synced.promise
      return written
    }
  }
  const { runtime } = start(t, { work: () => ({}) }, { store })
  const sent = refusal(runtime.sendMessage(say('x', { contextId: 'c' }), anna))
  await until(async () => (await inner.loadContext({ ...annas, contextId: 'c' })) !== undefined)
  t.equal(await runtime.erase(anna), true)
  t.equal((await sent).code, 'TaskNotFound')
  synced.resolve()
  await rest()
  await hasNothing(t, inner, [])
})

await t.test('a message whose task is erased after its turn gets TaskNotFound', async t => {
  const inner = memoryStore()
  const gates: { read: () => boolean; gate: Promise<void> }[] = []
  const store: Store = {
    ...inner,
    readTask: async (...args) => {
      const held = gates.findIndex(({ read }) => read())
      if (held >= 0) await gates.splice(held, 1)[0]?.gate
      return inner.readTask(...args)
    }
  }
  const { runtime } = start(t, { work: async ({ ask }) => void (await ask(inputRequired('?'))) }, { store })
  for (const during of ['sendMessage', 'authorized'] as const) {
    const { id } = taskIn(await runtime.sendMessage(say('x', { contextId: 'c' }), anna))
    const gate = deferred()
    let reads = 0
    // The first read finds the task; the one after the decision finds nothing.
    gates.push({ read: () => (reads += 1) > 1, gate: gate.promise })
    const call = refusal(
      during === 'sendMessage' ? runtime.sendMessage(say('yes', { taskId: id }), anna) : runtime.authorized(id, 1, anna)
    )
    await until(() => reads > 1)
    t.equal(await runtime.erase(anna), true)
    gate.resolve()
    t.equal((await call).code, 'TaskNotFound')
  }
})

await t.test('an erase that the store refuses rejects, and the tasks continue', async t => {
  const inner = memoryStore()
  const { work, runs, run } = steeredWork()
  let fails = true
  const store: Store = {
    ...inner,
    erase: async whose => {
      if (fails) throw new Error('disk')
      return inner.erase(whose)
    }
  }
  const { runtime, clock } = start(t, { work }, { store })
  const { id } = await open(runtime, 'go', { contextId: 'c' }, anna)
  await run(0)
  await t.rejects(runtime.erase(anna), { message: 'disk' })
  clock.increment(1000)
  ;(await run(1)).resolve({ artifact: 'done' })
  await reaches(runtime, id, 'completed', anna)
  fails = false
  t.equal(await runtime.erase(anna), true)
  t.equal(runs.length, 2)
})

await t.test('an erase during an uncommitted turn leaves nothing of it', async t => {
  const store = heldStore()
  const { runtime } = start(t, { work: () => ({}) }, { store })
  await runtime.sendMessage(say('x', { contextId: 'c' }), anna)
  const sent = refusal(runtime.sendMessage(say('y', { contextId: 'c' }), anna))
  await Promise.resolve()
  t.equal(await runtime.erase(anna), true)
  t.equal((await sent).code, 'TaskNotFound')
  await rest()
  await hasNothing(t, store, [])
})

await t.test('an invalid name is refused, so that nothing else is erased', async t => {
  const { runtime } = start(t, { work: () => ({}) })
  await runtime.sendMessage(say('x'), anna)
  for (const wrong of [
    { ...anna, contextId: undefined },
    { principal: undefined },
    { ...anna, tenant: null },
    { ...anna, contextId: 5 }
  ]) {
    await t.rejects(runtime.erase(wrong as unknown as DataToErase), {
      name: 'TypeError',
      message: /^erase: .* has to be a text/
    })
  }
  t.equal(await runtime.erase(anna), true)
})
