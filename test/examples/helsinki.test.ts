import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import type { AgentClient } from '../../adapters/client/agent-client.ts'
import { connect } from '../../adapters/client/connect.ts'
import { serve } from '../../adapters/serve/serve.ts'
import { sqliteStore } from '../../adapters/storage/sqlite.ts'
import echo from '../../examples/echo.ts'
import helsinki from '../../examples/helsinki.ts'
import { createRuntime, textOf, type Agent, type Runtime, type StreamResponse, type Task } from '../../runtime/index.ts'
import type { Store } from '../../runtime/store/store.ts'
import { failOnLooseErrors } from '../fixtures/runtime/lives.ts'
import {
  brief,
  collect,
  open,
  reaches,
  rest,
  say,
  stateName,
  taskIn,
  until,
  withGenerations
} from '../fixtures/runtime/runtime-helpers.ts'
import { NO_SQLITE } from '../fixtures/stores/sqlite.ts'
import { TestClock } from '../fixtures/runtime/test-clock.ts'

failOnLooseErrors(t)

const contextId = 'trip'

const SECOND = 1000

/**
 * Serves a runtime of the agent over WebSocket and HTTP; each call of `client` gives one that is connected by one of
 * them.
 */
async function served(t: Test, agent: Agent = helsinki) {
  const clock = new TestClock()
  const runtime = createRuntime({ agent, clock })
  t.teardown(() => runtime.close())
  const { url, close } = await serve(runtime, { port: 0 })
  t.teardown(close)
  const client = async (binding: 'WEBSOCKET' | 'JSONRPC' | 'HTTP+JSON'): Promise<AgentClient> => {
    const connected = await connect(url, { bindings: [binding] })
    t.teardown(() => connected.close())
    return connected
  }
  return { clock, runtime, client, url }
}

/** Sends a message and follows its stream; `task` is there when the task is. */
async function follow(client: AgentClient, words: string, ...basis: Task[]) {
  const events: StreamResponse[] = []
  const stream = client.sendStreamingMessage(say(words, { contextId, referenceTaskIds: basis.map(({ id }) => id) }))
  const first = await stream.next()
  const task = taskIn(first.value ?? undefined)
  const ended = (async () => {
    for await (const event of stream) events.push(event)
  })()
  return { task, events, ended }
}

const idOf = (event: StreamResponse) =>
  'statusUpdate' in event
    ? event.statusUpdate.taskId
    : 'artifactUpdate' in event
      ? event.artifactUpdate.taskId
      : undefined

const isBooking = (runtime: Runtime, { id }: Task) =>
  until(async () => (await runtime.getTask({ id })).status.message !== undefined, `task ${id} books`)

for (const [main, other] of [
  ['WEBSOCKET', 'HTTP+JSON'],
  ['JSONRPC', 'WEBSOCKET']
] as const) {
  await t.test(`over ${main} the spa, based on the hotel, is booked before the snowmobile`, async t => {
    const { clock, runtime, client: connectBy } = await served(t)
    const [client, second] = [await connectBy(main), await connectBy(other)]
    const flight = await follow(client, 'Book a flight to Helsinki.')
    await isBooking(runtime, flight.task)
    clock.increment(SECOND)
    await flight.ended

    const snowmobile = await follow(client, 'Based on the flight, book a snowmobile activity.', flight.task)
    const hotel = await follow(second, 'Based on the flight, book a hotel.', flight.task)
    for (const { task } of [snowmobile, hotel]) await isBooking(runtime, task)
    // The spa is asked for before there is a hotel.
    const spa = await follow(client, 'Add a spa reservation to the hotel booking.', hotel.task)
    await rest()
    t.equal((await runtime.getTask({ id: spa.task.id })).status.message, undefined)
    clock.increment(SECOND)
    await hotel.ended
    await isBooking(runtime, spa.task)
    clock.increment(SECOND)
    await spa.ended
    t.equal((await client.getTask({ id: snowmobile.task.id })).status.state, 'TASK_STATE_WORKING')
    clock.increment(3 * SECOND)
    await snowmobile.ended

    const all = [flight, hotel, spa, snowmobile]
    for (const { task, events } of all)
      t.strictSame([...new Set(events.map(idOf))], [task.id], 'a stream has the events of its own task')
    t.strictSame(spa.events.map(brief), [
      'working',
      'working: Booking: spa.',
      'artifact: A flight to Helsinki.\nThree nights in a hotel.\nAn hour in the spa.',
      'completed'
    ])
    const { tasks } = await client.listTasks({ contextId, includeArtifacts: true })
    t.strictSame(
      tasks.map(({ id }) => id),
      all.map(({ task }) => task.id).toReversed(),
      'four tasks of one context'
    )
    t.strictSame(
      tasks.flatMap(({ artifacts = [] }) => artifacts.map(({ name }) => name)),
      ['snowmobile.txt', 'spa.txt', 'hotel.txt', 'flight.txt']
    )
  })
}

await t.test('the spa fails with the reason if the hotel fails, and the snowmobile continues', async t => {
  const { clock, runtime } = await served(t)
  const flight = await open(runtime, 'Book a flight.', { contextId })
  await rest()
  clock.increment(SECOND)
  const based = async (words: string, { id }: Task) => open(runtime, words, { contextId, referenceTaskIds: [id] })
  const hotel = await based('Book an igloo hotel.', flight)
  const [snowmobile, spa] = [await based('Book a snowmobile.', flight), await based('Add a spa.', hotel)]
  await isBooking(runtime, snowmobile)
  clock.increment(SECOND)
  const { status } = await reaches(runtime, spa.id, 'failed')
  t.equal(
    status.message && textOf(status.message),
    `Task ${hotel.id}, which this one needs, has failed: All igloos are taken.`
  )
  clock.increment(4 * SECOND)
  await reaches(runtime, snowmobile.id, 'completed')
  t.match((await reaches(runtime, (await open(runtime, 'Book a whale.')).id, 'rejected')).status.message, {
    parts: [{ text: /flights, hotels/ }]
  })
})

await t.test('a request based on a booking finds it in its context, or asks which one', async t => {
  const { clock, runtime } = await served(t)
  const booked = async (task: Task) => {
    await until(
      async () => JSON.stringify((await runtime.getTask({ id: task.id })).status).includes('Booking: '),
      `task ${task.id} books`
    )
    clock.increment(5 * SECOND)
    return ((await reaches(runtime, task.id, 'completed')).artifacts ?? []).map(textOf).join()
  }
  await booked(await open(runtime, 'Book a flight to Helsinki.', { contextId }))
  t.equal(
    await booked(await open(runtime, 'Based on Task 1, book a hotel.', { contextId })),
    'A flight to Helsinki.\nThree nights in a hotel.',
    'the only one'
  )
  t.match(
    await booked(await open(runtime, 'Based on Task 2, add a spa reservation to the hotel booking.', { contextId })),
    /hotel\.\nAn hour in the spa/,
    'the one that it names'
  )
  t.equal(
    await booked(await open(runtime, 'Based on Task 1, book a snowmobile activity.', { contextId })),
    'A flight to Helsinki.\nA day with a snowmobile.',
    'the first that was opened'
  )
  t.match(
    await booked(await open(runtime, 'Add a spa reservation to the hotel booking.', { contextId })),
    /hotel\.\nAn hour in the spa/
  )
  await reaches(runtime, (await open(runtime, 'Book a whale.', { contextId })).id, 'rejected')
  t.match(
    await booked(await open(runtime, 'Based on the snowmobile, book a hotel.', { contextId, referenceTaskIds: [] })),
    /snowmobile\.\nThree nights/,
    'what it is based on is not what it asks for'
  )
  const asked = await open(runtime, 'Based on all that, book a snowmobile activity.', { contextId })
  t.match((await reaches(runtime, asked.id, 'input-required')).status.message?.parts[0], {
    text: 'Which booking do you mean: hotel.txt, spa.txt, snowmobile.txt, or flight.txt?'
  })
  await runtime.sendMessage({ ...say('the flight', { taskId: asked.id }), configuration: { returnImmediately: true } })
  t.equal(await booked(asked), 'A flight to Helsinki.\nA day with a snowmobile.')
})

await t.test('a task keeps its place when its client answers it later', async t => {
  const { clock, runtime } = await served(t)
  const asked = await open(runtime, 'Based on all that, book a flight.', { contextId })
  await reaches(runtime, asked.id, 'input-required')
  const hotel = await open(runtime, 'Book a hotel.', { contextId })
  await isBooking(runtime, hotel)
  clock.increment(SECOND)
  await reaches(runtime, hotel.id, 'completed')
  await runtime.sendMessage({ ...say('which one?', { taskId: asked.id }), configuration: { returnImmediately: true } })
  const spa = await open(runtime, 'Based on Task 2, book a spa.', { contextId })
  await isBooking(runtime, spa)
  clock.increment(SECOND)
  t.equal(
    ((await reaches(runtime, spa.id, 'completed')).artifacts ?? []).map(textOf).join(),
    'Three nights in a hotel.\nAn hour in the spa.'
  )
})

await t.test('bookings that are asked for at once wait for what they name', async t => {
  const { clock, runtime } = await served(t)
  const wishes = [
    'Book a flight to Helsinki.',
    'Based on Task 1, book a hotel.',
    'Based on the flight, book a snowmobile activity.',
    'Based on Task 2, add a spa reservation to the hotel booking.'
  ]
  const tasks: Task[] = []
  for (const wish of wishes) tasks.push(await open(runtime, wish, { contextId }))
  for (const seconds of [1, 1, 5]) {
    await until(
      async () =>
        (await runtime.listTasks({ status: 'TASK_STATE_WORKING' })).tasks.some(
          ({ status }) => status.message !== undefined
        ),
      'one books'
    )
    await rest()
    clock.increment(seconds * SECOND)
    await rest()
  }
  const booked = await Promise.all(
    tasks.map(async ({ id }) => ((await reaches(runtime, id, 'completed')).artifacts ?? []).map(textOf).join())
  )
  t.strictSame(booked, [
    'A flight to Helsinki.',
    'A flight to Helsinki.\nThree nights in a hotel.',
    'A flight to Helsinki.\nA day with a snowmobile.',
    'A flight to Helsinki.\nThree nights in a hotel.\nAn hour in the spa.'
  ])
})

await t.test('all tasks resume from the file after a kill while the spa waits', { skip: NO_SQLITE }, async t => {
  const file = join(t.testdir(), 'trip.db')
  const clock = new TestClock()
  let isDead = false
  /** What is written by a process that is dead reaches no file. */
  const mortal = (store: Store): Store => ({
    ...store,
    commit: commit => (isDead ? new Promise(() => {}) : store.commit(commit))
  })
  const first = createRuntime({ agent: helsinki, clock, store: mortal(sqliteStore(file)) })
  const flight = await open(first, 'Book a flight.', { contextId })
  await isBooking(first, flight)
  clock.increment(SECOND)
  await reaches(first, flight.id, 'completed')
  const hotel = await open(first, 'Book a hotel.', { contextId, referenceTaskIds: [flight.id] })
  const spa = await open(first, 'Add a spa.', { contextId, referenceTaskIds: [hotel.id] })
  await isBooking(first, hotel)
  isDead = true
  await first.close()

  isDead = false
  const second = createRuntime({ agent: helsinki, clock, store: sqliteStore(file) })
  t.teardown(() => second.close())
  for (const { id } of [hotel, spa]) t.equal(stateName((await second.getTask({ id })).status.state), 'working')
  clock.increment(SECOND)
  await reaches(second, hotel.id, 'completed')
  await isBooking(second, spa)
  clock.increment(SECOND)
  t.match(await reaches(second, spa.id, 'completed'), {
    artifacts: [{ parts: [{ text: 'A flight to Helsinki.\nThree nights in a hotel.\nAn hour in the spa.' }] }]
  })
  const events = await collect(
    second.subscribeToTask({ id: spa.id }, { ...withGenerations, conditions: { afterGeneration: 0 } })
  )
  t.strictSame(
    events.map(event => brief(event).replace(/^artifact.*/s, 'artifact')),
    ['submitted', 'working', 'working: Booking: spa.', 'artifact', 'completed']
  )
})

/** Runs the client of the example. */
function runClient(url: string): Promise<{ stdout: string }> {
  return promisify(execFile)(process.execPath, [
    fileURLToPath(new URL('../../examples/helsinki-client.js', import.meta.url)),
    url
  ])
}

await t.test("the example's client books four parts of a trip, the fourth before the third", async t => {
  const { clock, runtime, url } = await served(t)
  const client = runClient(url)
  const booking = (...kinds: string[]) =>
    until(async () => {
      const { tasks } = await runtime.listTasks({ status: 'TASK_STATE_WORKING' })
      const words = tasks.map(({ status }) => status.message && textOf(status.message))
      return kinds.every(kind => words.includes(`Booking: ${kind}.`))
    }, `${kinds.join()} are booked`)
  for (const kinds of [['flight'], ['hotel', 'snowmobile'], ['spa']]) {
    await booking(...kinds)
    clock.increment(SECOND)
  }
  await until(async () => (await runtime.listTasks({ status: 'TASK_STATE_WORKING' })).totalSize === 1)
  clock.increment(3 * SECOND)
  const lines = (await client).stdout.trim().split('\n')
  t.strictSame(lines.slice(-3), [
    'booked: spa.txt, based on hotel.txt',
    'booked: snowmobile.txt, based on flight.txt',
    '4 tasks, in the order in which they ended: flight.txt, hotel.txt, spa.txt, snowmobile.txt'
  ])
})

await t.test('the client reports an agent of another kind', async t => {
  const { url } = await served(t, echo)
  await t.rejects(runClient(url), { message: /This is not the agent of helsinki\.ts/ })
})
