import t, { type Test } from 'tap'
import { agUiHandler, type AgUiOptions } from '../../../adapters/ag-ui/index.ts'
import type { Task } from '../../../machines/protocol/objects.ts'
import { NEGOTIATION_EXTENSION } from '../../../machines/protocol/uris.ts'
import { z } from 'zod'
import haggle from '../../../examples/haggle.ts'
import {
  artifact,
  authRequired,
  createRuntime,
  data,
  failed,
  inputRequired,
  progress,
  rejected,
  reply,
  text,
  type AgentDefinition,
  type RuntimeOptions
} from '../../../runtime/index.ts'
import {
  AG_UI_CLIENTS,
  openThread,
  textsOf,
  typesOf,
  type AgUiClient,
  type Thread,
  type ThreadOptions
} from '../../fixtures/peers/ag-ui-clients.ts'
import { recordingLogger, start, until, type Started } from '../../fixtures/runtime/runtime-helpers.ts'

type Definition = Omit<AgentDefinition, 'card'> & Partial<AgentDefinition>

/** An agent over AG-UI, and its pages. */
interface Front extends Started {
  readonly page: (options?: ThreadOptions) => Thread
}

/** A row of the table: what happens between a page and an agent. */
type Scenario = (t: Test, serve: (definition: Definition, settings?: Served) => Front, client: AgUiClient) => unknown

interface Served extends AgUiOptions {
  readonly runtime?: Partial<RuntimeOptions>
}

const sizes = z.object({ size: z.enum(['small', 'large']) })
const sized: Definition['work'] = async ({ ask }) => {
  const { size } = await ask(inputRequired('Which size?', { schema: sizes }))
  return { artifact: `One ${size} coffee.` }
}

/** The task as a client of A2A reads it. */
async function read({ runtime }: Started, { state }: Thread): Promise<Task> {
  return runtime.getTask({ id: String(state.task?.['id']), historyLength: 0 })
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'an answer of a task is a text message, and its state is that of GetTask': async (t, serve) => {
    const front = serve({ work: () => ({ artifact: 'One coffee.' }) })
    const page = front.page({ state: { theme: 'dark' } })
    const run = await page.say('a coffee')
    t.strictSame(typesOf(run), [
      'RUN_STARTED',
      'TEXT_MESSAGE_START',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'RUN_FINISHED'
    ])
    t.strictSame(textsOf(page), ['One coffee.'])
    t.strictSame(page.state, { theme: 'dark', task: await read(front, page) }, "the page's own state stays")
    t.match(run.events.at(-1), {
      outcome: { type: 'success' },
      result: { artifacts: [{ parts: [{ text: 'One coffee.' }] }] }
    })
  },
  'a message of the end takes the place of the texts of artifacts': async (t, serve) => {
    const { page: open } = serve({ work: () => ({ message: 'Here you are.', artifact: 'One coffee.' }) })
    const page = open()
    await page.say('a coffee')
    t.strictSame(textsOf(page), ['Here you are.'])
  },
  'an end without words is only in the state': async (t, serve) => {
    const front = serve({ work: () => ({ artifact: { name: 'x', parts: [data({ a: 1 })] } }) })
    const page = front.page()
    t.strictSame(typesOf(await page.say('x')), ['RUN_STARTED', 'RUN_FINISHED'])
    t.strictSame(page.state.task, await read(front, page))
  },
  'progress is an activity that is replaced': async (t, serve) => {
    const front = serve({
      async *work() {
        yield progress('Grinding.')
        yield progress('Brewing.', { metadata: { percent: 50 } })
        return { artifact: 'One coffee.' }
      }
    })
    const page = front.page()
    await page.say('a coffee')
    t.match(
      page.messages.filter(({ role }) => role === 'activity'),
      [{ activityType: 'task-progress', content: { text: 'Brewing.' } }]
    )
    t.strictSame(page.state.task, await read(front, page))
  },
  'an artifact in chunks of text is a text message, token by token, and not repeated': async (t, serve) => {
    const front = serve({
      async *work() {
        const name = { artifactId: 'poem', name: 'poem' }
        yield artifact({ ...name, parts: [text('Ro')] })
        yield artifact({ ...name, parts: [text('ses are ')] }, { append: true })
        yield artifact({ ...name, parts: [text('red.')] }, { append: true, lastChunk: true })
        yield artifact({ artifactId: 'file', parts: [{ raw: 'aGk=', mediaType: 'image/png' }] })
        yield artifact({ artifactId: 'whole', parts: [text('Violets.')] }, { lastChunk: true })
      }
    })
    const page = front.page()
    const { events } = await page.say('a poem')
    t.strictSame(
      events.flatMap(event => (event.type === 'TEXT_MESSAGE_CONTENT' ? [event.delta] : [])),
      ['Ro', 'ses are ', 'red.']
    )
    t.strictSame(textsOf(page), ['Roses are red.'])
    t.strictSame(page.state.task, await read(front, page))
    t.match(events.at(-1), { result: { artifacts: [{ artifactId: 'file' }, { artifactId: 'whole' }] } })
  },
  'an artifact that is begun again with other text is another message': async (t, serve) => {
    const front = serve({
      async *work() {
        yield artifact({ artifactId: 'poem', parts: [text('Roses')] })
        yield artifact({ artifactId: 'poem', parts: [text('Violets')] })
        yield artifact({ artifactId: 'poem', parts: [text(' are blue.'), data({ lines: 1 })] }, { append: true })
      }
    })
    const page = front.page()
    await page.say('a poem')
    t.strictSame(textsOf(page), ['Roses', 'Violets are blue.'])
    t.strictSame(page.state.task, await read(front, page))
  },
  'a question with a schema is an interrupt, and the next run its answer': async (t, serve) => {
    const front = serve({ work: sized })
    const page = front.page()
    t.strictSame(typesOf(await page.say('a coffee')), ['RUN_STARTED', 'RUN_FINISHED'])
    t.match(page.interrupts, [
      {
        reason: 'input-required',
        message: 'Which size?',
        responseSchema: { properties: { size: { enum: ['small', 'large'] } } },
        metadata: { taskId: page.state.task?.['id'] }
      }
    ])
    t.match(await page.say('hello?'), { error: { message: /pending interrupt/ } }, 'the client locks the thread')
    await page.answer({ size: 'large' })
    t.strictSame(page.interrupts, [])
    t.strictSame(textsOf(page), ['One large coffee.'])
    t.strictSame(page.state.task, await read(front, page))
  },
  'an answer that breaks the schema is asked for again, with the reason': async (t, serve) => {
    const { page: open, runtime } = serve({ work: sized })
    const page = open()
    await page.say('a coffee')
    const [asked] = page.interrupts
    await page.answer({ size: 'huge' })
    t.match(page.interrupts, [{ id: asked?.id, message: /^Not accepted: .*size.*\n\nWhich size\?$/ }])
    await page.answer(undefined)
    t.match(page.interrupts, [{ id: asked?.id, message: 'An answer is needed.\n\nWhich size?' }])
    const { history } = await runtime.getTask({ id: String(page.state.task?.['id']) })
    t.equal(history?.length, 1, 'the task has seen no answer')
    await page.answer({ size: 'small' })
    t.strictSame(textsOf(page), ['One small coffee.'])
  },
  'a question without a schema takes words': async (t, serve) => {
    const { page: open } = serve({
      async *work() {
        const answer = yield* inputRequired('Your name?')
        return { artifact: `Hello ${answer.parts.map(part => ('text' in part ? part.text : '')).join('')}.` }
      }
    })
    const page = open()
    await page.say('hi')
    await page.answer('Ada')
    t.strictSame(textsOf(page), ['Hello Ada.'])
  },
  'with messages as questions, a chat needs no form': async (t, serve) => {
    const { page: open } = serve(
      {
        work: async ({ ask }) => ({
          message: `One ${await ask(inputRequired('Which size?', { schema: z.enum(['small', 'large']) }))} coffee.`
        })
      },
      { questions: 'message' }
    )
    const page = open()
    t.match((await page.say('a coffee')).events.at(-1), { outcome: { type: 'success' } })
    await page.say('tiny')
    await page.say([{ type: 'text', text: 'large' }])
    t.match(textsOf(page), ['Which size?', /^Not accepted: [^]*Which size\?$/, 'One large coffee.'])
  },
  'the words of a page that has lost its interrupt go to the task that asks': async (t, serve) => {
    const { page: open, runtime } = serve({
      async *work() {
        yield* inputRequired('Your name?')
        return { message: 'Thanks.' }
      }
    })
    await open({ threadId: 'lost' }).say('hi')
    const page = open({ threadId: 'lost' })
    await page.say('Ada')
    t.strictSame(textsOf(page), ['Thanks.'])
    t.equal((await runtime.listTasks({ contextId: 'lost' })).totalSize, 1)
  },
  'a repeated resume follows the task, and answers nothing again': async (t, serve) => {
    const { page: open } = serve({
      async *work() {
        const [first, second] = [yield* inputRequired('First?'), yield* inputRequired('Second?')]
        return { message: JSON.stringify([first.parts, second.parts]) }
      }
    })
    const page = open()
    await page.say('go')
    const interruptId = page.interrupts[0]?.id ?? ''
    await page.answer('one')
    t.match(page.interrupts, [{ message: 'Second?' }])
    for (const payload of ['one', 'other']) {
      const again = open({ threadId: String(page.state.task?.['contextId']) })
      await again.run({ resume: [{ interruptId, status: 'resolved', payload }] })
      t.match(again.interrupts, [{ message: 'Second?' }], `${payload}: the task goes on where it is`)
    }
    await page.answer('two')
    t.match(textsOf(page), [/one.*two/])
  },
  'two tabs answer one question: one counts, and both see the end': async (t, serve) => {
    const { page: open } = serve({ work: sized })
    const [one, other] = [open({ threadId: 'tabs' }), open({ threadId: 'tabs' })]
    await one.say('a coffee')
    await other.run()
    t.match(other.interrupts, one.interrupts)
    await Promise.all([one.answer({ size: 'large' }), other.answer({ size: 'small' })])
    t.match(textsOf(one), [/^One (?:large|small) coffee\.$/])
    t.strictSame(textsOf(one).at(-1), textsOf(other).at(-1))
    t.strictSame(one.state.task, other.state.task)
  },
  'a cancelled question cancels the task': async (t, serve, client) => {
    const front = serve({ work: sized })
    const page = front.page()
    await page.say('a coffee')
    const { events } = await page.cancel()
    t.strictSame(events.at(-1), {
      type: 'RUN_FINISHED',
      threadId: (events[0] as { threadId: string }).threadId,
      runId: (events[0] as { runId: string }).runId,
      ...(client === 'AG-UI 1.0' && { outcome: { type: 'cancelled' } })
    })
    t.strictSame(page.interrupts, [], 'the thread is free')
    t.match(await read(front, page), { status: { state: 'TASK_STATE_CANCELED' } })
    t.strictSame(page.state.task, await read(front, page))
    await page.say('another one')
    t.equal(page.interrupts.length, 1)
  },
  'a failure and a rejection are errors of the run': async (t, serve) => {
    for (const [words, message, code] of [
      [failed('No beans.'), 'No beans.', 'TASK_STATE_FAILED'],
      [rejected('Closed.'), 'Closed.', 'TASK_STATE_REJECTED']
    ] as const) {
      const front = serve({ work: () => words })
      const page = front.page()
      const run = await page.say('a coffee')
      t.strictSame(run.events.at(-1), { type: 'RUN_ERROR', message, code })
      t.strictSame(page.state.task, await read(front, page))
    }
  },
  'a task that fails after an answer leaves the thread free': async (t, serve) => {
    const { page: open } = serve({
      async *work() {
        yield* inputRequired('Sure?')
        return failed({ parts: [{ raw: 'aGk=' }] })
      }
    })
    const page = open()
    await page.say('go')
    const run = await page.answer('yes')
    t.strictSame(typesOf(run).slice(-3), ['RUN_FINISHED', 'RUN_STARTED', 'RUN_ERROR'])
    t.match(run.events.at(-1), { message: 'The task was failed.' })
    t.strictSame(page.interrupts, [])
    t.equal((await page.say('again')).error, undefined)
  },
  'an answer without a task is a text message': async (t, serve) => {
    const { page: open } = serve({ negotiate: () => reply('What shall I draw?') })
    const page = open()
    const run = await page.say('hello')
    t.strictSame(textsOf(page), ['What shall I draw?'])
    t.match(run.events.at(-1), { outcome: { type: 'success' } })
    t.strictSame(page.state, {})
    await page.run()
    t.strictSame(textsOf(page), ['What shall I draw?'], 'there is nothing to go on with')
  },
  'an authorization is an interrupt, and the user says when it was given': async (t, serve) => {
    const front = serve({
      async *work() {
        yield* authRequired({ parts: [text('Log in:'), { url: 'https://login.example/' }] })
        return { message: 'Done.' }
      }
    })
    const page = front.page()
    await page.say('go')
    const id = String(page.state.task?.['id'])
    t.match(page.interrupts, [
      { reason: 'auth-required', message: /Log in:/, metadata: { taskId: id, url: 'https://login.example/' } }
    ])
    const early = page.answer(undefined)
    await until(() => page.current.length > 1)
    front.clock.increment(30_000)
    await early
    t.match(page.interrupts, [{ reason: 'auth-required' }], 'it was not given yet')
    const waiting = page.answer('')
    await until(() => page.current.length > 1)
    await front.runtime.authorized(id, {})
    await waiting
    t.strictSame(textsOf(page), ['Done.'])
  },
  'a closed page cancels nothing, and the next one goes on': async (t, serve) => {
    let go = () => {}
    const gate = new Promise<void>(resolve => (go = resolve))
    const front = serve({
      async *work() {
        yield artifact({ artifactId: 'poem', parts: [text('Roses')] })
        yield artifact({ artifactId: 'poem', parts: [text(' are')] }, { append: true })
        await gate
        yield artifact({ artifactId: 'poem', parts: [text(' red.')] }, { append: true, lastChunk: true })
      }
    })
    const page = front.page({ threadId: 'closed' })
    const left = page.say('a poem')
    await until(() => textsOf(page)[0] === 'Roses are')
    page.abort()
    await left
    t.match(await read(front, page), { status: { state: 'TASK_STATE_WORKING' } })
    const reloaded = front.page({ threadId: 'closed' })
    const joined = reloaded.run()
    const same = page.run()
    await until(() => textsOf(reloaded)[0] === 'Roses are')
    go()
    await Promise.all([joined, same])
    t.match(reloaded.messages, [
      { role: 'user', content: 'a poem' },
      { role: 'assistant', content: 'Roses are red.' }
    ])
    t.strictSame(textsOf(page), ['Roses are red.'], 'a page that kept its messages gets the rest')
    t.strictSame(reloaded.state.task, await read(front, page))
  },
  'a reloaded page gets the messages of its thread': async (t, serve) => {
    const { page: open } = serve({
      async *work() {
        yield progress('Grinding.')
        yield* inputRequired('Which size?')
        yield progress('Brewing.')
        yield progress('Pouring.')
        return { message: 'Here you are.', artifact: 'One coffee.' }
      }
    })
    const page = open({ threadId: 'reloaded' })
    await page.say('a coffee')
    await page.answer('small')
    await page.say('another one')
    const reloaded = open({ threadId: 'reloaded' })
    await reloaded.run()
    t.match(
      reloaded.messages.map(({ content }) => content),
      ['a coffee', 'Which size?', 'small', 'Here you are.', 'another one']
    )
    t.match(reloaded.interrupts, [{ message: 'Which size?' }])
    await reloaded.answer('large')
    t.strictSame(textsOf(reloaded).at(-1), 'Here you are.')
    const once = open({ threadId: 'reloaded' })
    const { events } = await once.run()
    t.equal(events.filter(({ type }) => type === 'TEXT_MESSAGE_START').length, 0, 'nothing is said twice')
  },
  'a repeated message is not a second one, and never an answer': async (t, serve) => {
    const { page: open, runtime } = serve({
      async *work() {
        yield* inputRequired('Your name?')
        return { message: 'Thanks.' }
      }
    })
    const messages = [{ id: 'first', role: 'user', content: 'hi' }]
    await open({ threadId: 'again', messages }).run()
    const again = open({ threadId: 'again', messages })
    await again.run()
    t.match(again.interrupts, [{ message: 'Your name?' }])
    const answered = [...messages, { id: 'second', role: 'user', content: 'Ada' }]
    for (let i = 0; i < 2; i += 1) {
      const page = open({ threadId: 'again', messages: answered })
      await page.run()
      t.strictSame(textsOf(page), ['Thanks.'])
    }
    t.equal((await runtime.listTasks({ contextId: 'again' })).totalSize, 1)
  },
  'a thread with any id has one context': async (t, serve) => {
    const { page: open } = serve({ work: () => ({ message: 'Yes.' }) })
    const names = ['a thread', 'x'.repeat(500), '\u0000']
    for (const threadId of names) {
      const [one, other] = [open({ threadId }), open({ threadId })]
      await one.say('a')
      await other.say('b')
      t.equal(one.state.task?.['contextId'], other.state.task?.['contextId'])
    }
  },
  'an agent gets the files of a message, and what the front end offers': async (t, serve) => {
    const seen: unknown[] = []
    const { page: open } = serve({
      card: { name: 'Painter', defaultInputModes: ['*/*'] },
      work: ({ message, request }) => {
        seen.push(message.parts, request.metadata)
        return { message: 'Thanks.' }
      }
    })
    const source = { type: 'data', value: 'aGk=', mimeType: 'image/png' }
    const url = { type: 'url', value: 'https://a.example/a.mp3', mimeType: 'audio/mpeg' }
    const { error } = await open().say(
      [
        { type: 'text', text: 'Look.' },
        { type: 'image', source },
        { type: 'audio', source: url }
      ],
      { context: [{ description: 'place', value: 'bar' }], forwardedProps: { theme: 'dark' } }
    )
    t.equal(error, undefined)
    t.strictSame(seen, [
      [
        { text: 'Look.' },
        { raw: 'aGk=', mediaType: 'image/png' },
        { url: 'https://a.example/a.mp3', mediaType: 'audio/mpeg' }
      ],
      {
        'urn:taskchart:ag-ui:1': {
          context: [{ description: 'place', value: 'bar' }],
          forwardedProps: { theme: 'dark' }
        }
      }
    ])
  },
  'the tokens of a model are the usage of the run': async (t, serve) => {
    const usage = { inputTokens: 5, outputTokens: 7, totalTokens: 12 }
    const { page: open } = serve({
      async *work() {
        yield progress('x', { metadata: { 'urn:taskchart:model:1': { usage: { ...usage, other: -1 } } } })
        return { message: 'Done.' }
      }
    })
    t.match((await open().say('x')).events.at(-1), { usage: [usage] })
  },
  'a task at work can be cancelled': async (t, serve) => {
    const front = serve({
      work: ({ signal }) => new Promise(resolve => signal.addEventListener('abort', () => resolve({})))
    })
    const page = front.page({ threadId: 'working' })
    const working = page.say('go')
    await until(() => page.state.task !== undefined)
    const taskId = String(page.state.task?.['id'])
    const cancel = { forwardedProps: { 'urn:taskchart:ag-ui:1': { cancel: taskId } } }
    t.match(await front.page({ threadId: 'other' }).run(cancel), { error: { message: /^HTTP 404/ } })
    const second = front.page({ threadId: 'working' })
    await second.run(cancel)
    await working
    t.match(page.state.task, { status: { state: 'TASK_STATE_CANCELED' } })
    t.strictSame(second.state.task, page.state.task)
    t.match((await second.run(cancel)).events.at(-1), { type: 'RUN_FINISHED' }, 'twice is once')
  }
}

for (const client of AG_UI_CLIENTS)
  for (const [statement, scenario] of Object.entries(SCENARIOS))
    await t.test(`${client}: ${statement}`, async t => {
      const serve = (definition: Definition, { runtime, ...settings }: Served = {}): Front => {
        const started = start(t, { card: { name: 'Agent' }, ...definition }, runtime)
        const handler = agUiHandler(started.runtime, settings)
        return { ...started, page: options => openThread(client, handler, options) }
      }
      await scenario(t, serve, client)
    })

for (const client of AG_UI_CLIENTS)
  await t.test(`${client}: an offer is a message and an activity, which the user counters and accepts`, async t => {
    const runtime = createRuntime({ agent: haggle, logger: recordingLogger().logger })
    t.teardown(() => runtime.close())
    const handler = agUiHandler(runtime)
    const page = openThread(client, handler, { threadId: 'haggling' })
    const move = (value: object) => ({ forwardedProps: { [NEGOTIATION_EXTENSION]: value } })
    const offers = () =>
      page.messages.flatMap(({ role, content }) =>
        role === 'activity' ? [content as { offerId: string; terms: { euros: number } }] : []
      )
    t.match((await page.say('Move my piano.')).events.at(-1), { outcome: { type: 'success' } })
    t.strictSame(textsOf(page), ['With a van and two people.'])
    t.match(offers(), [{ terms: { euros: 100 } }])
    t.match(page.interrupts, [], 'an offer does not lock the thread')
    t.match(await page.run(move({ accept: {} })), { error: { message: /^HTTP 400.*forwardedProps/ } })
    t.match(await page.run(move({ decline: { offerId: 'x' }, accept: { offerId: 'x' } })), {
      error: { message: /400/ }
    })
    await page.say('Fifty?', move({ propose: { terms: { ...offers()[0]?.terms, euros: 50 } } }))
    const { offerId } = offers().at(-1) ?? { offerId: '' }
    const other = openThread(client, handler, { threadId: 'haggling', messages: page.messages })
    await Promise.all([page.run(move({ accept: { offerId } })), other.run(move({ accept: { offerId } }))])
    t.match(page.state.task, { status: { state: 'TASK_STATE_COMPLETED' } })
    t.equal(other.state.task?.['id'], page.state.task?.['id'], 'two tabs that accept one offer have one task')
  })
