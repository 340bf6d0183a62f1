import t, { type Test } from 'tap'
import { z } from 'zod'
import type { AgentClient } from '../../adapters/client/agent-client.ts'
import { answerSchemaOf } from '../../adapters/client/messages.ts'
import { connect } from '../../adapters/client/connect.ts'
import { serve } from '../../adapters/serve/serve.ts'
import ask from '../../examples/ask.ts'
import atOnce from '../../examples/at-once.ts'
import barista from '../../examples/barista.ts'
import countdown from '../../examples/countdown.ts'
import echo from '../../examples/echo.ts'
import haggle from '../../examples/haggle.ts'
import hotel from '../../examples/hotel.ts'
import model from '../../examples/model.ts'
import sailboat from '../../examples/sailboat.ts'
import schedule from '../../examples/schedule.ts'
import { scriptedModel } from '../../examples/scripted-model.ts'
import trip from '../../examples/trip.ts'
import {
  createRuntime,
  type Agent,
  type Artifact,
  type Runtime,
  type SendMessageResponse,
  type StreamResponse,
  type Task,
  type Message
} from '../../runtime/index.ts'
import {
  brief,
  collect,
  withGenerations,
  rejection,
  say,
  taskIn,
  textOf,
  open,
  reaches,
  rest,
  stateName
} from '../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../fixtures/runtime/test-clock.ts'

/** Serves an agent on a port of its own, and gives a client that is connected to it. */
function talkTo(t: Test, agent: Agent, clock = new TestClock()): Promise<AgentClient> {
  return talkWith(t, createRuntime({ agent, clock }))
}

/** Serves a runtime on a port of its own, and gives a client that is connected to it. */
async function talkWith(t: Test, runtime: Runtime): Promise<AgentClient> {
  t.teardown(() => runtime.close())
  const served = await serve(runtime, { port: 0, http: false })
  t.teardown(() => served.close())
  const client = await connect(served.url)
  t.teardown(() => client.close())
  return client
}

let messages = 0

function saying(words: string, more: Record<string, unknown> = {}) {
  return {
    message: { messageId: `m-${(messages += 1)}`, role: 'ROLE_USER' as const, parts: [{ text: words }], ...more }
  }
}

function taskOf(answer: SendMessageResponse): Task {
  if (!('task' in answer)) throw new TypeError('The agent answered with a message.')
  return answer.task
}

function pictureOf({ artifacts: [artifact] = [] }: Task): Artifact {
  if (!artifact) throw new TypeError('The task has no artifact.')
  return artifact
}

/** Asks until the answer is the wanted one. */
async function reached<Answer>(ask: () => Promise<Answer>, isWanted: (answer: Answer) => boolean): Promise<Answer> {
  const answer = await ask()
  return isWanted(answer) ? answer : reached(ask, isWanted)
}

function statesOf(events: StreamResponse[]): string[] {
  return events.flatMap(event =>
    'task' in event ? [event.task.status.state] : 'statusUpdate' in event ? [event.statusUpdate.status.state] : []
  )
}

await t.test('echo answers every message with its own parts, and opens no task', async t => {
  const client = await talkTo(t, echo)
  t.match(await client.sendMessage(saying('hello')), {
    message: { role: 'ROLE_AGENT', parts: [{ text: 'hello' }], contextId: /.+/ }
  })
})

await t.test('countdown', async t => {
  await t.test('it emits one number a second and returns a text', async t => {
    const clock = new TestClock()
    const client = await talkTo(t, countdown, clock)
    const events: StreamResponse[] = []
    for await (const event of client.sendStreamingMessage(saying('Count from 3, please.'))) {
      events.push(event)
      if ('statusUpdate' in event && event.statusUpdate.status.message) clock.increment(1000)
    }
    const words = events.flatMap(event =>
      'statusUpdate' in event ? (event.statusUpdate.status.message?.parts ?? []) : []
    )
    t.same(words, [{ text: '3 …' }, { text: '2 …' }, { text: '1 …' }])
    t.match(events.at(-2), {
      artifactUpdate: { artifact: { name: 'countdown.txt', parts: [{ text: 'Counted down from 3. Lift-off!' }] } }
    })
    t.equal(statesOf(events).at(-1), 'TASK_STATE_COMPLETED')
  })

  await t.test('it stops counting when it is canceled', async t => {
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
  await t.test('a message to the completed task is refused, with what to do instead', async t => {
    const client = await talkTo(t, sailboat)
    const { id, contextId } = taskOf(await client.sendMessage(saying('a sailboat')))
    await t.rejects(client.sendMessage(saying('make it red', { taskId: id })), {
      code: 'UnsupportedOperation',
      message: new RegExp(`Start a new task: .*contextId ${contextId}.*referenceTaskIds \\["${id}"\\]`)
    })
  })

  await t.test('it asks which of two pictures to change, and accepts a name or a reference', async t => {
    const client = await talkTo(t, sailboat)
    const first = taskOf(await client.sendMessage(saying('a sailboat')))
    const { contextId } = first
    const second = taskOf(await client.sendMessage(saying('a green sailboat', { contextId })))
    t.equal(pictureOf(second).name, 'sailboat_image_2.png')

    const asked = taskOf(await client.sendMessage(saying('make it blue', { contextId })))
    t.equal(asked.status.state, 'TASK_STATE_INPUT_REQUIRED')
    t.match(asked.status.message?.parts, [{ text: /sailboat_image_2\.png or sailboat_image\.png/ }])
    const again = taskOf(await client.sendMessage(saying('the third', { taskId: asked.id })))
    t.match(again.status, {
      state: 'TASK_STATE_INPUT_REQUIRED',
      message: { parts: [{ text: /no picture of that name/ }] }
    })
    const named = taskOf(await client.sendMessage(saying('sailboat_image_2.png', { taskId: asked.id })))
    t.match(pictureOf(named), { name: 'sailboat_image_2.png', description: /blue/ })

    const other = taskOf(await client.sendMessage(saying('make it red', { contextId })))
    const metadata = { artifactId: pictureOf(first).artifactId, taskId: first.id }
    const answer = { message: { ...saying('').message, taskId: other.id, parts: [{ text: 'this one', metadata }] } }
    t.match(pictureOf(taskOf(await client.sendMessage(answer))), { name: 'sailboat_image.png', description: /red/ })
  })

  await t.test('a request to change a picture draws one if there is none', async t => {
    const client = await talkTo(t, sailboat)
    for (const given of [{}, { referenceTaskIds: ['nobody'] }]) {
      const drawn = taskOf(await client.sendMessage(saying('Please modify the sailboat to be red.', given)))
      t.match(pictureOf(drawn), { name: 'sailboat_image.png', description: /red/ })
    }
  })

  await t.test('it understands which picture is meant, and what colour it is to have', async t => {
    const client = await talkTo(t, sailboat)
    const { contextId } = taskOf(await client.sendMessage(saying('a red sailboat')))
    const drawn = async (words: string, more: object = {}) =>
      pictureOf(taskOf(await client.sendMessage(saying(words, { contextId, ...more }))))
    const bigger = await drawn('make it bigger')
    t.match(bigger, { name: 'sailboat_image.png', description: /red/ }, 'a change keeps the colour')
    t.match(await drawn('change it from red to blue'), { name: 'sailboat_image.png', description: /blue/ })
    t.match(await drawn('make the blue boat red'), { name: 'sailboat_image.png', description: /red/ })
    t.match(await drawn('another sailboat, white'), { name: 'sailboat_image_2.png', description: /white/ })
    t.match(await drawn('make the red one green'), { name: 'sailboat_image.png', description: /green/ })
    t.match(await drawn('make the second one red'), { name: 'sailboat_image_2.png', description: /red/ })
    t.match(await drawn('make the newest one blue'), { name: 'sailboat_image_2.png', description: /blue/ })
    t.match(await drawn('make the first boat white'), { name: 'sailboat_image.png', description: /white/ })
    for (const [answer, name] of [
      ['the newest', 'sailboat_image.png'],
      ['the last one', 'sailboat_image_2.png']
    ] as const) {
      const { id, status } = taskOf(await client.sendMessage(saying('make it white', { contextId })))
      t.match(status.message?.parts, [{ text: /sailboat_image\.png or sailboat_image_2\.png/ }], 'the newest first')
      t.equal(pictureOf(taskOf(await client.sendMessage(saying(answer, { taskId: id })))).name, name)
      if (answer === 'the newest') await drawn('make the first boat red')
    }
    const { parts: white } = await drawn('make the first one white')
    const own = { message: { ...saying('', { contextId }).message, parts: [{ text: 'make this blue' }, ...white] } }
    t.match(
      pictureOf(taskOf(await client.sendMessage(own))),
      { name: 'sailboat_image.png', description: /blue/ },
      'a first message with its bytes'
    )
    for (const words of [[], [{ text: 'This one, please.' }]]) {
      const { parts } = await drawn('make the second one gold')
      const { id } = taskOf(await client.sendMessage(saying('make it green', { contextId })))
      const answer = { message: { ...saying('').message, taskId: id, parts: [...words, ...parts] } }
      t.match(
        pictureOf(taskOf(await client.sendMessage(answer))),
        { name: 'sailboat_image_2.png', description: /green/ },
        'its own bytes'
      )
    }
  })

  await t.test('it asks nothing if the message references a picture', async t => {
    const client = await talkTo(t, sailboat)
    const first = taskOf(await client.sendMessage(saying('a sailboat')))
    const { contextId } = first
    await client.sendMessage(saying('another sailboat', { contextId }))
    const changed = taskOf(
      await client.sendMessage(saying('make it black', { contextId, referenceTaskIds: [first.id] }))
    )
    t.match(pictureOf(changed), { name: 'sailboat_image.png', description: /black/ })
  })
})

await t.test('trip', async t => {
  await t.test('it asks for day and budget, streams the itinerary, and books after authorization', async t => {
    const runtime = createRuntime({ agent: trip, clock: new TestClock() })
    const client = await talkWith(t, runtime)
    const { id: taskId, status } = taskOf(await client.sendMessage(saying('a trip to Rome')))
    t.match(status, {
      state: 'TASK_STATE_INPUT_REQUIRED',
      message: { parts: [{ text: 'Which day do you want to see Rome?' }] }
    })
    const second = taskOf(await client.sendMessage(saying('Monday', { taskId })))
    t.match(second.status.message?.parts, [{ text: /How many euros/ }])
    for (const [words, why] of [
      ['cheap', /in numbers/],
      ['20', /50 at least/]
    ] as const) {
      await t.rejects(client.sendMessage(saying(words, { taskId })), { code: 'InvalidParams', message: why })
    }

    for await (const event of client.sendStreamingMessage(saying('about 400 euros', { taskId }))) {
      if (statesOf([event])[0] === 'TASK_STATE_AUTH_REQUIRED') await runtime.authorized(taskId, { payment: 'card 7' })
    }
    const events = await collect(
      runtime.subscribeToTask({ id: taskId }, { ...withGenerations, conditions: { afterGeneration: 0 } })
    )
    t.strictSame(events.map(brief).slice(5), [
      'working',
      'working: Looking at what there is in Rome on Monday.',
      'artifact: Monday, 9:00: the market of Rome\n',
      'artifact: 12:30: lunch in the old town\n',
      'artifact: 15:00: the museum, with a guide\n',
      'auth-required: Please authorize a payment of 400 euros.',
      'working',
      `artifact: One day in Rome, paid by card 7, request ${taskId}/step/book/1`,
      'completed: Have a nice day in Rome!'
    ])
    const { artifacts } = await client.getTask({ id: taskId })
    t.strictSame(
      artifacts?.map(({ name, parts }) => [name, parts.length]),
      [
        ['itinerary.txt', 3],
        ['ticket.txt', 1]
      ]
    )
  })

  await t.test('it returns its itinerary without a booking if the traveller answers otherwise', async t => {
    const client = await talkTo(t, trip)
    const { id: taskId } = taskOf(await client.sendMessage(saying('a day off')))
    await client.sendMessage(saying('Monday', { taskId }))
    await client.sendMessage({ message: { ...saying('').message, taskId, parts: [{ data: 80 }] } })
    const { status, artifacts } = taskOf(await client.sendMessage(saying('too dear', { taskId })))
    t.match(status, {
      state: 'TASK_STATE_FAILED',
      message: { parts: [{ text: 'Not booked: "too dear". Your itinerary is above.' }] }
    })
    t.strictSame(
      artifacts?.map(({ name }) => name),
      ['itinerary.txt']
    )
  })
})

await t.test('the mover haggles, and moves for the terms that were agreed on', async t => {
  const clock = new TestClock()
  const client = await talkTo(t, haggle, clock)
  const wordsOf = (answer: SendMessageResponse) =>
    'message' in answer && answer.message.parts[0] !== undefined && 'text' in answer.message.parts[0]
      ? answer.message.parts[0].text
      : 'a task'
  const first = await client.sendMessage(saying('Move my piano on Saturday'))
  const contextId = 'message' in first ? first.message.contextId : undefined
  const more = async (words: string) => wordsOf(await client.sendMessage(saying(words, { contextId })))
  t.strictSame(
    [wordsOf(first), await more('How much is it?'), await more('40 euros?')],
    ['With a van and two people.', 'It is 100 euros. Deal?', 'My last word.']
  )
  const answered = client.sendMessage(saying('70 then', { contextId }))
  const {
    tasks: [task]
  } = await reached(
    () => client.listTasks({ contextId: contextId ?? '' }),
    ({ tasks }) => tasks.length === 1
  )
  clock.increment(1000)
  t.equal(taskOf(await answered).id, task?.id)
  t.match(taskOf(await answered), {
    status: { state: 'TASK_STATE_COMPLETED' },
    artifacts: [{ parts: [{ text: 'Moved on Saturday, for 70 euros.' }] }]
  })
  t.match(await client.sendMessage(saying('Move my piano')), {
    message: {
      parts: [{}, { data: { 'urn:taskchart:extension:negotiation:1': { offer: { terms: { day: 'Friday' } } } } }]
    }
  })
})

await t.test('the reservations ask for a day and a number by schema, and refuse invalid ones', async t => {
  const runtime = createRuntime({ agent: ask })
  t.teardown(() => runtime.close())
  const first = taskIn(await runtime.sendMessage(say('a table')))
  const taskId = first.id
  t.match(answerSchemaOf(first.status.message), { type: 'string', format: 'date' })
  t.match(await rejection(runtime.sendMessage(say('tomorrow', { taskId }))), {
    code: 'InvalidParams',
    message: /message\.parts has to be a day, as in 2027-05-01/
  })
  const second = taskIn(await runtime.sendMessage(say('2027-05-01', { taskId })))
  t.match(answerSchemaOf(second.status.message), { type: 'integer', minimum: 1, maximum: 12 })
  for (const [words, why] of [
    ['many', /has to be a number/],
    ['1.5', /whole number/],
    ['0', /1 at least/],
    ['13', /chairs/]
  ] as const) {
    t.match(await rejection(runtime.sendMessage(say(words, { taskId }))), { code: 'InvalidParams', message: why })
  }
  const { status, artifacts } = taskIn(await runtime.sendMessage(say('4', { taskId })))
  t.equal(textOf(status.message), 'A table for 4 on 2027-05-01.')
  t.strictSame(
    artifacts?.map(({ name, parts }) => [name, parts]),
    [['reservation.json', [{ data: { day: '2027-05-01', people: 4 } }]]]
  )
})

await t.test('the barista asks for an available size, and brews it', async t => {
  const runtime = createRuntime({ agent: barista })
  t.teardown(() => runtime.close())
  const { id: taskId, status } = taskIn(await runtime.sendMessage(say('a coffee')))
  t.equal(
    z.fromJSONSchema(answerSchemaOf(status.message) ?? {}).safeParse('large').success,
    true,
    'a client can check its answer'
  )
  t.match(await rejection(runtime.sendMessage(say('huge', { taskId }))), {
    code: 'InvalidParams',
    message: /has to be small or large/
  })
  const told = await collect(runtime.sendStreamingMessage(say('large', { taskId })))
  t.strictSame(told.slice(-3).map(brief), ['task:working', 'artifact: a large coffee', 'completed'])
})

function live(t: Test, agent: Agent, clock = new TestClock()): Runtime {
  const runtime = createRuntime({ agent, clock })
  t.teardown(() => runtime.close())
  return runtime
}

/** How a task stands: its state, its text, and that of its artifacts. */
function outcome({ status, artifacts = [] }: Task): (string | undefined)[] {
  return [
    stateName(status.state),
    textOf(status.message),
    ...artifacts.map(({ parts }) => parts.map(part => ('text' in part ? part.text : '')).join(''))
  ]
}

const sent = async (runtime: Runtime, words: string, more: Partial<Message> = {}) =>
  taskIn(await runtime.sendMessage(say(words, more)))

await t.test('units are converted in the answer to the message, and an invalid amount is rejected', async t => {
  const runtime = live(t, atOnce)
  t.strictSame(outcome(await sent(runtime, '5 km')), ['completed', undefined, '5 km are 3.11 miles.'])
  t.strictSame(outcome(await sent(runtime, '2.5 pounds')), ['completed', undefined, '2.5 pounds are 1.13 kg.'])
  for (const nonsense of ['', 'km', '5 parsecs', '5 constructor']) {
    t.strictSame(outcome(await sent(runtime, nonsense)), ['rejected', 'Say an amount in km, miles, kg, pounds.'])
  }
})

await t.test('a reminder arrives at its time', async t => {
  const clock = new TestClock()
  const runtime = live(t, schedule, clock)
  const { id } = await open(runtime, 'Remind me in 10 minutes to call Ann')
  await rest()
  t.equal(textOf((await runtime.getTask({ id })).status.message), 'I will remind you in 10 minutes.')
  clock.increment(599_999)
  await rest()
  t.equal(stateName((await runtime.getTask({ id })).status.state), 'working')
  clock.increment(1)
  t.strictSame(outcome(await reaches(runtime, id, 'completed')), ['completed', undefined, 'Remember: call Ann'])
  t.match(outcome(await sent(runtime, 'remind me')), ['rejected', /^Say when/])
})

await t.test('a model buys a ticket if the client approves', async t => {
  const runtime = live(t, model)
  for (const [words, last] of [
    ['yes', 'It is yours: a ticket to Rome, paid 29 euros.'],
    ['no', 'Then I leave it at that.']
  ]) {
    const { id, status } = await sent(runtime, 'a ticket to Rome')
    t.match(textOf(status.message), /May I call buy/)
    t.strictSame(outcome(await sent(runtime, String(words), { taskId: id })), [
      'completed',
      undefined,
      `I have found a ticket for 29 euros.\n\n${last}`
    ])
  }
})

await t.test('a scripted model follows the newest message, whatever it contains', async t => {
  const heard: unknown[] = []
  const model = scriptedModel(given => {
    heard.push(given)
    return ''
  })
  const file = { type: 'file' as const, data: 'aGk=', mediaType: 'image/png' }
  const result = {
    type: 'tool-result' as const,
    toolCallId: 'c',
    toolName: 't',
    output: { type: 'json' as const, value: 1 }
  }
  await model.doStream({ prompt: [] })
  await model.doStream({ prompt: [{ role: 'system', content: 'Be kind.' }] })
  await model.doStream({ prompt: [{ role: 'user', content: [file] }] })
  await model.doStream({ prompt: [{ role: 'tool', content: [result] }] })
  t.strictSame(heard, [
    { from: undefined, words: '' },
    { from: 'system', words: '' },
    { from: 'user', words: '' },
    { from: 'tool', words: 'json' }
  ])
})

await t.test('the travel desk delegates a room to the hotel, and passes on its questions', async t => {
  const books = createRuntime({ agent: hotel, clock: new TestClock() })
  t.teardown(() => books.close())
  const served = await serve(books, { port: 0 })
  t.teardown(() => served.close())
  process.env.HOTEL_URL = served.url
  const { default: desk } = await import('../../examples/delegate.ts')
  const runtime = createRuntime({ agent: desk, clock: new TestClock() })
  t.teardown(() => runtime.close())
  const { id: taskId, status } = taskIn(await runtime.sendMessage(say('a room in Helsinki')))
  t.match(status, { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text: 'For which night?' }] } })
  await runtime.sendMessage(say('Friday', { taskId }))
  const events = await collect(
    runtime.subscribeToTask({ id: taskId }, { ...withGenerations, conditions: { afterGeneration: 0 } })
  )
  t.strictSame(events.map(brief), [
    'submitted',
    'working',
    'working: Looking for a room in Helsinki.',
    'input-required: For which night?',
    'working',
    'artifact: Room 7, on Friday.',
    'artifact: Take the night train. Room 7, on Friday.',
    'completed: Sleep well!'
  ])
})
