import t, { type Test } from 'tap'
import { assign, emit, fromPromise } from 'xstate'
import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import type { CallContext } from '../../../runtime/access/call-context.ts'
import { defaultLimits } from '../../../runtime/access/limits.ts'
import { contextLogic } from '../../../runtime/contexts/context.ts'
import { RuntimeState } from '../../../runtime/contexts/dependencies.ts'
import { ContextRegistry } from '../../../runtime/contexts/context-registry.ts'
import { Observers } from '../../../runtime/contexts/observers.ts'
import { RecoveryQueue } from '../../../runtime/contexts/recovery-queue.ts'
import { artifact, defineAgent, progress, setupWork } from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { admit } from '../../../runtime/operations/admission.ts'
import { ConnectionNames } from '../../../runtime/operations/cluster.ts'
import { inputModesOf, sendMessage, sendStreamingMessage } from '../../../runtime/operations/send-message.ts'
import { subscribeToTask } from '../../../runtime/operations/tasks.ts'
import { ReleasingMap } from '../../../runtime/primitives/collections.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { TaskSubscriptions } from '../../../runtime/streams/task-tail.ts'
import { TaskStream, type OpenedStream } from '../../../runtime/streams/task-stream.ts'
import { Counters } from '../../../runtime/telemetry/counters.ts'
import { TaskLoads } from '../../../runtime/work/task-loads.ts'
import { echo, painter, steeredWork } from '../../fixtures/runtime/agents.ts'
import {
  brief,
  cleanUps,
  plainStamps,
  collect,
  countingIds,
  deferred,
  generationOf,
  metering,
  next,
  open,
  reaches,
  recordingLogger,
  refusal,
  rejection,
  say,
  start,
  taskIn,
  until,
  withGenerations,
  type Deferred
} from '../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

const generationsIn = (responses: StreamResponse[]) => responses.map(generationOf)
const upTo = (n: number, from = 1) => Array.from({ length: n - from + 1 }, (_, i) => from + i)

await t.test("a stream that an answer opens ends with the store's error if reading fails", async t => {
  const store = memoryStore()
  let isBroken = false
  const readTask: Store['readTask'] = async (...args) => {
    if (isBroken && args[2]?.within !== undefined) throw new TypeError('The disk is gone.')
    return store.readTask(...args)
  }
  const { runtime } = start(t, { work: painter() }, { store: { ...store, readTask } })
  const { id: taskId } = taskIn(await runtime.sendMessage(say('a boat')))
  isBroken = true
  t.match(await refusal(collect(runtime.sendStreamingMessage(say('red', { taskId })))), { code: 'InternalError' })
})

await t.test('every event has the next generation, shown only to clients with the extension', async t => {
  const { runtime } = start(t, { work: echo })
  const told = await collect(runtime.sendStreamingMessage(say('hello'), withGenerations))
  t.strictSame(generationsIn(told), [2, 3, 4, 5])
  const plain = await collect(runtime.sendStreamingMessage(say('hello')))
  t.notMatch(JSON.stringify(plain), 'urn:taskchart')
  t.notMatch(JSON.stringify(plain), 'generation')
})

await t.test('a slow reader continues from the log, with each event once and in order', async t => {
  const ready = deferred()
  const { runtime, store } = start(
    t,
    { work: painterOf(500, ready.promise) },
    { limits: { advanced: { bufferedEvents: 4 } } }
  )
  const { id } = taskIn(await runtime.sendMessage(say('x')))
  const slow = runtime.subscribeToTask({ id }, withGenerations)
  const first = await next(slow)
  const quick = collect(runtime.subscribeToTask({ id }, withGenerations))
  await runtime.sendMessage(say('go on', { taskId: id }, { returnImmediately: true }))
  ready.resolve()
  const all = await quick
  const told: StreamResponse[] = [first]
  for await (const response of slow) told.push(response)
  t.strictSame(generationsIn(told), [4, ...upTo(507, 6)])
  t.strictSame(told, all)
  t.equal((await store.readEvents({ tenant: '', principal: 'anonymous' }, id, 0, 1000)).length, 505)
})

await t.test('a slow stream reads no more events at a time than it may buffer', async t => {
  const inner = memoryStore()
  const reads: number[] = []
  const store: Store = {
    ...inner,
    readEvents: (scope, taskId, after, limit) => (reads.push(limit), inner.readEvents(scope, taskId, after, limit))
  }
  const ready = deferred()
  const { runtime } = start(
    t,
    { work: painterOf(20, ready.promise) },
    { store, limits: { advanced: { bufferedEvents: 4 } } }
  )
  const { id } = taskIn(await runtime.sendMessage(say('x')))
  const stream = runtime.sendStreamingMessage(say('yes', { taskId: id }))
  t.equal(brief(await next(stream)), 'task:working')
  ready.resolve()
  t.equal((await collect(stream)).length, 21)
  t.ok(reads.length >= 4)
  t.ok(reads.every(limit => limit === 4))
})

await t.test('a task with 10,000 artifacts sends each of them once and in order', async t => {
  const ready = deferred()
  const { runtime } = start(t, { work: painterOf(10_000, ready.promise) }, { limits: { eventsPerTask: 20_000 } })
  const { id } = taskIn(await runtime.sendMessage(say('x')))
  const stream = runtime.sendStreamingMessage(say('yes', { taskId: id }), withGenerations)
  await next(stream)
  ready.resolve()
  const told = await collect(stream)
  t.strictSame(generationsIn(told), upTo(10_007, 7))
  t.equal((await runtime.getTask({ id })).artifacts?.length, 10_000)
})

await t.test('200 simultaneous tasks each stream only their own events', async t => {
  const paints = new Map<string, Deferred<string>>()
  const paint = (wish: string) => {
    const painting = deferred<string>()
    paints.set(wish, painting)
    return painting.promise
  }
  const { runtime } = start(t, { work: painter(paint) })
  const streams = await Promise.all(
    Array.from({ length: 200 }, async (_, i) => {
      const more = i % 2 === 0 ? { contextId: 'shared' } : {}
      const asked = await collect(runtime.sendStreamingMessage(say(`boat ${i}`, more), withGenerations))
      const { id: taskId } = taskIn(asked[0])
      t.equal(brief(asked.at(-1) as StreamResponse), `input-required: Which colour for boat ${i}?`)
      const stream = runtime.sendStreamingMessage(say(`red ${i}`, { taskId }), withGenerations)
      const answered = [await next(stream)]
      const painting = await until(() => paints.get(`red ${i}`))
      painting.resolve(`a red ${i} boat`)
      answered.push(...(await collect(stream)))
      const own = [...asked, ...answered].every(response => JSON.stringify(response).includes(taskId))
      return {
        taskId,
        own,
        picture: answered.map(brief).includes(`artifact: a red ${i} boat`),
        generations: generationsIn([...asked, ...answered.slice(1)])
      }
    })
  )
  t.equal(new Set(streams.map(({ taskId }) => taskId)).size, 200)
  t.ok(streams.every(({ own, picture }) => own && picture))
})

await t.test('an unread stream does not block its task', async t => {
  const { runtime } = start(t, { work: echo })
  const stream = runtime.sendStreamingMessage(say('hello'))
  const { id } = taskIn(await next(stream))
  await reaches(runtime, id, 'completed')
  t.strictSame((await collect(stream)).map(brief), ['working', 'artifact: hello', 'completed'])
})

await t.test('a stream sends nothing until it is read', async t => {
  const { work, runs } = steeredWork()
  const { runtime } = start(t, { work })
  const stream = runtime.sendStreamingMessage(say('hello'))
  await stream.return()
  await open(runtime)
  await until(() => runs.length > 0)
  t.equal(runs.length, 1)
})

await t.test('open streams and waiting calls end with Overloaded when the runtime closes', async t => {
  const { work, run } = steeredWork()
  const { runtime } = start(t, { work })
  const waiting = refusal(runtime.sendMessage(say('x')))
  const stream = runtime.sendStreamingMessage(say('y'))
  const { id } = taskIn(await next(stream))
  const subscription = runtime.subscribeToTask({ id })
  await next(subscription)
  const streamed = refusal(collect(stream))
  const subscribed = refusal(collect(subscription))
  const { given } = await run(1)
  await Promise.all([runtime.close(), runtime.close()])
  for (const end of [waiting, streamed, subscribed]) t.match(await end, { code: 'Overloaded' })
  t.ok(given.signal.aborted, "the work's signal aborts")
})

await t.test('a call after closing is refused with Overloaded', async t => {
  const { runtime } = start(t, { work: echo })
  const { id } = taskIn(await runtime.sendMessage(say('x')))
  await runtime.close()
  t.match(await refusal(runtime.sendMessage(say('x'))), { code: 'Overloaded' })
  t.match(await refusal(collect(runtime.sendStreamingMessage(say('x')))), { code: 'Overloaded' })
  t.match(await refusal(runtime.getTask({ id })), { code: 'Overloaded' })
  t.match(await refusal(collect(runtime.subscribeToTask({ id }))), { code: 'Overloaded' })
  t.match(await refusal(runtime.cancelTask({ id })), { code: 'Overloaded' })
})

await t.test('ended streams and calls leave no listener, however they ended', async t => {
  const { subscriptions, services } = assembled(t)
  const call = (more: CallContext = {}) => admit('sendMessage', say('a boat'), more)
  const stream = (open: () => Promise<OpenedStream>) => new TaskStream(open, error => error)
  const subscribed = (request: unknown, more: CallContext = {}) =>
    stream(() => subscribeToTask(services, admit('subscribeToTask', request, more)))
  t.equal(subscriptions.size, 0)

  const ended = await collect(stream(() => sendStreamingMessage(services, call())))
  t.equal(subscriptions.size, 0, 'an ended stream')
  const { id } = taskIn(ended[0])

  const leaving = new AbortController()
  const aborted = subscribed({ id }, { signal: leaving.signal })
  await next(aborted)
  const left = subscribed({ id })
  await next(left)
  t.equal(subscriptions.size, 1, 'one task has a listener')
  const reading = aborted.next()
  leaving.abort()
  t.strictSame(await reading, { done: true, value: undefined }, 'a stream that is aborted just ends')
  t.equal(subscriptions.size, 1)
  await left.return()
  t.equal(subscriptions.size, 0, 'after the abort of one and the return of the other')
  const disposed = subscribed({ id })
  await next(disposed)
  await disposed[Symbol.asyncDispose]()
  t.equal(subscriptions.size, 0, 'a disposed stream')

  const gone = new AbortController()
  const unread = subscribed({ id }, { signal: gone.signal })
  await next(unread)
  gone.abort()
  t.equal(subscriptions.size, 0, 'a stream that is aborted while nobody reads')
  t.ok((await unread.next()).done)

  const before = subscribed({ id }, { signal: AbortSignal.abort() })
  t.equal((await collect(before)).length, 1, 'one that was aborted before tells the task at most')
  for (const missing of ['unknown', id]) {
    const stream = subscribed({ id: missing }, missing === id ? { principal: 'bob' } : {})
    t.equal((await refusal(collect(stream))).code, 'TaskNotFound')
  }
  t.equal(subscriptions.size, 0, 'a refused subscription')

  const waiter = new AbortController()
  const waiting = rejection(
    sendMessage(services, admit('sendMessage', say('red', { taskId: id }), { signal: waiter.signal }))
  )
  await until(() => subscriptions.size === 1)
  waiter.abort(new Error('gone'))
  t.equal((await waiting).message, 'gone')
  t.equal(subscriptions.size, 0, 'an aborted waiting call')
})

await t.test('simultaneous reads of a stream are answered in order, and later ones end', async t => {
  const { runtime } = start(t, { work: echo })
  const stream = runtime.sendStreamingMessage(say('x'))
  const steps = await Promise.all(Array.from({ length: 6 }, () => stream.next()))
  t.strictSame(
    steps.map(step => (step.done ? 'over' : brief(step.value))),
    ['task:submitted', 'working', 'artifact: x', 'completed', 'over', 'over']
  )
  t.ok((await stream.next()).done)
})

await t.test('a stream whose reader leaves before or during its opening ends', async t => {
  const { subscriptions, services } = assembled(t)
  let opened = 0
  const stream = () =>
    new TaskStream(
      () => {
        opened += 1
        return sendStreamingMessage(services, admit('sendMessage', say('a boat'), {}))
      },
      error => error
    )
  const unread = stream()
  t.ok((await unread.return()).done)
  t.ok((await unread.next()).done)
  t.equal(opened, 0)
  const opening = stream()
  const first = opening.next()
  t.equal((await rejection(opening.throw(new Error('no more')))).message, 'no more')
  t.ok((await first).done)
  t.equal(opened, 1)
  t.equal(subscriptions.size, 0)
})

await t.test('a progress with metadata and no words is sent unchanged', async t => {
  const work = setupWork({}).createMachine({
    initial: 'a',
    states: {
      a: { entry: [emit(progress()), emit({ type: 'progress', metadata: { percent: 50 } } as const)], always: 'b' },
      b: { type: 'final' }
    }
  })
  const { runtime } = start(t, { work })
  const told = await collect(runtime.sendStreamingMessage(say('x')))
  t.strictSame(told.map(brief), ['task:submitted', 'working', 'working', 'working', 'completed'])
  t.match(told[3], { statusUpdate: { metadata: { percent: 50 } } })
  t.strictSame((await runtime.getTask({ id: taskIn(told[0]).id })).metadata, { percent: 50 })
})

/** Work that asks, waits, and then tells so many artifacts in one step. */
function painterOf(pictures: number, ready: Promise<void>) {
  return setupWork({
    types: { context: {} as { left: number } },
    actors: { ready: fromPromise(() => ready) }
  }).createMachine({
    context: { left: pictures },
    options: { maxIterations: 2 * pictures + 10 },
    initial: 'asking',
    states: {
      asking: { tags: 'input-required', meta: { prompt: 'Go on?' }, on: { 'message.received': 'waiting' } },
      waiting: { invoke: { src: 'ready', onDone: 'telling' } },
      telling: {
        always: [
          { guard: ({ context }) => context.left === 0, target: 'done' },
          {
            target: 'telling',
            reenter: true,
            actions: [
              assign({ left: ({ context }) => context.left - 1 }),
              emit(({ context }) => artifact(`${context.left}`))
            ]
          }
        ]
      },
      done: { type: 'final' }
    }
  })
}

/** The operations over parts that the test can look into. */
function assembled(t: Test) {
  const agent = defineAgent({ card: { name: 'A' }, work: painter(() => new Promise(() => {})) })
  const subscriptions = new TaskSubscriptions()
  const store = memoryStore()
  const { logger } = recordingLogger()
  const shared = {
    state: new RuntimeState(),
    store,
    reads: store,
    clock: new TestClock(),
    ids: countingIds(),
    limits: defaultLimits,
    metering: metering(store),
    subscriptions,
    logger
  }
  const contexts = new ContextRegistry({
    ...shared,
    loads: new TaskLoads(shared),
    logic: contextLogic(agent),
    agent,
    cleanUps: cleanUps(),
    stamps: plainStamps,
    recoveryQueue: new RecoveryQueue(shared.clock),
    observers: new Observers(logger),
    counters: new Counters()
  })
  t.teardown(() => contexts.close())
  return {
    subscriptions,
    contexts,
    services: {
      ...shared,
      contexts,
      newIds: { contextId: shared.ids, taskId: shared.ids },
      pendingSends: new ReleasingMap<never>(),
      connections: new ConnectionNames(),
      takesMessages: false,
      deduplicate: false,
      inputModes: inputModesOf(agent.card)
    }
  }
}
