import { decode } from 'fast-png'
import t, { type Test } from 'tap'
import { connect, type AgentClient } from '../../adapters/client/connect.ts'
import { serveWebSocket } from '../../adapters/serve/serve-websocket.ts'
import countdown from '../../examples/countdown.ts'
import echo from '../../examples/echo.ts'
import sailboat from '../../examples/sailboat.ts'
import trip from '../../examples/trip.ts'
import { createRuntime, type Agent, type Artifact, type Runtime, type SendMessageResponse, type StreamResponse, type Task } from '../../runtime/index.ts'
import { brief, collect, withGenerations } from '../fixtures/runtime-helpers.ts'
import { TestClock } from '../fixtures/test-clock.ts'

/** Serves an agent on a port of its own, and gives a client that is connected to it. */
function talkTo(t: Test, agent: Agent, clock = new TestClock()): Promise<AgentClient> {
  return talkWith(t, createRuntime({ agent, clock }))
}

/** Serves a runtime on a port of its own, and gives a client that is connected to it. */
async function talkWith(t: Test, runtime: Runtime): Promise<AgentClient> {
  t.teardown(() => runtime.close())
  const served = await serveWebSocket(runtime, { port: 0 })
  t.teardown(() => served.close())
  const client = await connect(served.url)
  t.teardown(() => client.close())
  return client
}

let messages = 0

function saying(words: string, more: Record<string, unknown> = {}) {
  return { message: { messageId: `m-${(messages += 1)}`, role: 'ROLE_USER' as const, parts: [{ text: words }], ...more } }
}

function taskOf(answer: SendMessageResponse): Task {
  if (!('task' in answer)) throw new TypeError('The agent answered with a message.')
  return answer.task
}

function pictureOf({ artifacts: [artifact] = [] }: Task): Artifact {
  if (!artifact) throw new TypeError('The task has no artifact.')
  return artifact
}

function statesOf(events: StreamResponse[]): string[] {
  return events.flatMap(event => ('task' in event ? [event.task.status.state] : 'statusUpdate' in event ? [event.statusUpdate.status.state] : []))
}

await t.test('echo answers every message with its own parts, and opens no task', async t => {
  const client = await talkTo(t, echo)
  t.match(await client.sendMessage(saying('hello')), { message: { role: 'ROLE_AGENT', parts: [{ text: 'hello' }], contextId: /.+/ } })
})

await t.test('countdown', async t => {
  await t.test('it tells one number a second and hands over a text', async t => {
    const clock = new TestClock()
    const client = await talkTo(t, countdown, clock)
    const events: StreamResponse[] = []
    for await (const event of client.sendStreamingMessage(saying('Count from 3, please.'))) {
      events.push(event)
      if ('statusUpdate' in event && event.statusUpdate.status.message) clock.increment(1000)
    }
    const words = events.flatMap(event => ('statusUpdate' in event ? (event.statusUpdate.status.message?.parts ?? []) : []))
    t.same(words, [{ text: '3 …' }, { text: '2 …' }, { text: '1 …' }])
    t.match(events.at(-2), { artifactUpdate: { artifact: { name: 'countdown.txt', parts: [{ text: 'Counted down from 3. Lift-off!' }] } } })
    t.equal(statesOf(events).at(-1), 'TASK_STATE_COMPLETED')
  })

  await t.test('it is canceled on the way and counts no further', async t => {
    const clock = new TestClock()
    const client = await talkTo(t, countdown, clock)
    const { id } = taskOf(await client.sendMessage({ ...saying('10'), configuration: { returnImmediately: true } }))
    t.equal((await client.cancelTask({ id })).status.state, 'TASK_STATE_CANCELED')
    t.equal(clock.pending, 1, 'only the heartbeat of the server waits')
  })

  await t.test('it rejects a message without a number that it can count from', async t => {
    const client = await talkTo(t, countdown)
    for (const words of ['zero', '0', '3601']) {
      const { status } = taskOf(await client.sendMessage(saying(words)))
      t.match(status, { state: 'TASK_STATE_REJECTED', message: { parts: [{ text: /from 1 to 3600/ }] } }, words)
    }
  })
})

await t.test('sailboat', async t => {
  await t.test('it asks what to draw, draws, and makes the picture red as a new task with the same name', async t => {
    const client = await talkTo(t, sailboat)
    const hello = await client.sendMessage(saying('hello'))
    t.match(hello, { message: { parts: [{ text: /What shall I draw/ }] } })
    const contextId = 'message' in hello ? hello.message.contextId : undefined

    const first = taskOf(await client.sendMessage(saying('Generate an image of a sailboat on the ocean.', { contextId })))
    const second = taskOf(await client.sendMessage(saying("That's great! Can you make the sailboat red?", { contextId, referenceTaskIds: [first.id] })))
    t.same([first, second].map(({ status }) => status.state), ['TASK_STATE_COMPLETED', 'TASK_STATE_COMPLETED'])
    t.same([first.contextId, second.contextId], [contextId, contextId])
    t.not(second.id, first.id)

    const [boat, redBoat] = [pictureOf(first), pictureOf(second)]
    t.same([boat.name, redBoat.name], ['sailboat_image.png', 'sailboat_image.png'])
    t.not(redBoat.artifactId, boat.artifactId)
    t.equal(boat.description, 'A generated image of a sailboat on the ocean.', 'without a colour that nobody asked for')
    t.match(redBoat.description, 'a red sailboat')
    for (const { parts: [part] } of [boat, redBoat]) {
      const bytes = part && 'raw' in part ? Buffer.from(part.raw, 'base64') : new Uint8Array()
      t.equal(decode(bytes, { checkCrc: true }).width, 480, 'a PNG that a decoder reads')
    }
  })

  await t.test('a message to the finished task is refused, saying what to do instead', async t => {
    const client = await talkTo(t, sailboat)
    const { id, contextId } = taskOf(await client.sendMessage(saying('a sailboat')))
    await t.rejects(client.sendMessage(saying('make it red', { taskId: id })), {
      code: 'UnsupportedOperation',
      message: new RegExp(`Start a new task: .*contextId ${contextId}.*referenceTaskIds \\["${id}"\\]`)
    })
  })

  await t.test('it asks which of two pictures is meant, by name or by reference, and changes that one', async t => {
    const client = await talkTo(t, sailboat)
    const first = taskOf(await client.sendMessage(saying('a sailboat')))
    const { contextId } = first
    const second = taskOf(await client.sendMessage(saying('a green sailboat', { contextId })))
    t.equal(pictureOf(second).name, 'sailboat_image_2.png')

    const asked = taskOf(await client.sendMessage(saying('make it blue', { contextId })))
    t.equal(asked.status.state, 'TASK_STATE_INPUT_REQUIRED')
    t.match(asked.status.message?.parts, [{ text: /sailboat_image_2\.png or sailboat_image\.png/ }])
    const again = taskOf(await client.sendMessage(saying('the third', { taskId: asked.id })))
    t.match(again.status, { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text: /no picture of that name/ }] } })
    const named = taskOf(await client.sendMessage(saying('sailboat_image_2.png', { taskId: asked.id })))
    t.match(pictureOf(named), { name: 'sailboat_image_2.png', description: /blue/ })

    const other = taskOf(await client.sendMessage(saying('make it red', { contextId })))
    const metadata = { artifactId: pictureOf(first).artifactId, taskId: first.id }
    const answer = { message: { ...saying('').message, taskId: other.id, parts: [{ text: 'this one', metadata }] } }
    t.match(pictureOf(taskOf(await client.sendMessage(answer))), { name: 'sailboat_image.png', description: /red/ })
  })

  await t.test('a wish to change a picture where there is none draws one', async t => {
    const client = await talkTo(t, sailboat)
    t.match(pictureOf(taskOf(await client.sendMessage(saying('make it red')))), { name: 'sailboat_image.png', description: /red/ })
  })

  await t.test('a picture that the message refers to leaves nothing to ask', async t => {
    const client = await talkTo(t, sailboat)
    const first = taskOf(await client.sendMessage(saying('a sailboat')))
    const { contextId } = first
    await client.sendMessage(saying('another sailboat', { contextId }))
    const changed = taskOf(await client.sendMessage(saying('make it black', { contextId, referenceTaskIds: [first.id] })))
    t.match(pictureOf(changed), { name: 'sailboat_image.png', description: /black/ })
  })
})

await t.test('trip', async t => {
  await t.test('it asks for a day and a budget, hands over the itinerary in chunks, and books when the payment is authorized', async t => {
    const runtime = createRuntime({ agent: trip, clock: new TestClock() })
    const client = await talkWith(t, runtime)
    const { id: taskId, status } = taskOf(await client.sendMessage(saying('a trip to Rome')))
    t.match(status, { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text: 'Which day do you want to see Rome?' }] } })
    const second = taskOf(await client.sendMessage(saying('Monday', { taskId })))
    t.match(second.status.message?.parts, [{ text: /How many euros/ }])
    for (const [words, why] of [['cheap', /in numbers/], ['20', /50 at least/]] as const) {
      await t.rejects(client.sendMessage(saying(words, { taskId })), { code: 'InvalidParams', message: why })
    }

    for await (const event of client.sendStreamingMessage(saying('about 400 euros', { taskId }))) {
      if (statesOf([event])[0] === 'TASK_STATE_AUTH_REQUIRED') await runtime.authorized(taskId, { payment: 'card 7' })
    }
    const events = await collect(runtime.subscribeToTask({ id: taskId }, { ...withGenerations, conditions: { afterGeneration: 0 } }))
    t.strictSame(events.map(brief).slice(5), [
      'working', 'working: Looking at what there is in Rome on Monday.', 'artifact: Monday, 9:00: the market of Rome\n', 'artifact: 12:30: lunch in the old town\n',
      'artifact: 15:00: the museum, with a guide\n', 'auth-required: Please authorize a payment of 400 euros.', 'working',
      `artifact: One day in Rome, paid by card 7, request ${taskId}/step/book/1`, 'completed: Have a nice day in Rome!'
    ])
    const { artifacts } = await client.getTask({ id: taskId })
    t.strictSame(artifacts?.map(({ name, parts }) => [name, parts.length]), [['itinerary.txt', 3], ['ticket.txt', 1]])
  })

  await t.test('it keeps its itinerary and books nothing if the traveller says something instead', async t => {
    const client = await talkTo(t, trip)
    const { id: taskId } = taskOf(await client.sendMessage(saying('a day off')))
    await client.sendMessage(saying('Monday', { taskId }))
    await client.sendMessage({ message: { ...saying('').message, taskId, parts: [{ data: 80 }] } })
    const { status, artifacts } = taskOf(await client.sendMessage(saying('too dear', { taskId })))
    t.match(status, { state: 'TASK_STATE_FAILED', message: { parts: [{ text: 'Not booked: "too dear". Your itinerary is above.' }] } })
    t.strictSame(artifacts?.map(({ name }) => name), ['itinerary.txt'])
  })
})
