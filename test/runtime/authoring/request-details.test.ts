import t, { type Test } from 'tap'
import { assign, fromPromise } from 'xstate'
import { z } from 'zod'
import { sqliteStore } from '../../../adapters/storage/sqlite.ts'
import type { SendMessageRequest } from '../../../machines/protocol/objects.ts'
import {
  accepted,
  authRequired,
  inputRequired,
  negotiation,
  progress,
  reply,
  setupWork,
  type AgentDefinition,
  type Runtime,
  type WorkFunction
} from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import {
  closed,
  deferred,
  messageIn,
  open,
  reaches,
  rejection,
  say,
  start,
  taskIn,
  textOf,
  userMessage
} from '../../fixtures/runtime/runtime-helpers.ts'
import { NO_SQLITE } from '../../fixtures/stores/sqlite.ts'

const metadata = { 'https://example.com/ext/locale': 'fi', nested: { price: 1, list: [null] } }
const details = { metadata, acceptedOutputModes: ['image/png', 'text/plain'], historyLength: 2 }

/** A request with text, metadata and configuration. */
function saying(
  text: string,
  more: Parameters<typeof say>[1] = {},
  beside: typeof details | { metadata: object } = details
): SendMessageRequest {
  const { metadata, ...configuration } = beside
  return { ...say(text, more, configuration), metadata: metadata as Record<string, unknown> }
}

/** The same request, which does not wait. */
function atOnce({ configuration, ...request }: SendMessageRequest): SendMessageRequest {
  return { ...request, configuration: { ...configuration, returnImmediately: true } }
}

/** Sends a request and parses the text of the artifact that its task has. */
async function got(runtime: Runtime, request: SendMessageRequest): Promise<unknown> {
  return JSON.parse(textOf(taskIn(await runtime.sendMessage(request)).artifacts?.[0]) ?? '')
}

const shown = (value: unknown) => ({ artifact: JSON.stringify(value) })

/** Work that tells what the request said that opened its task. */
const telling: WorkFunction = ({ request }) => shown(request)

/** The same in all forms. */
const WORKS: Record<string, NonNullable<AgentDefinition['work']>> = {
  function: telling,
  generator: async function* ({ request }) {
    yield progress('soon')
    return shown(request)
  },
  chart: setupWork({ types: { context: {} as { request: object } } }).createMachine({
    context: ({ input }) => ({ request: input.request }),
    initial: 'done',
    states: { done: { type: 'final' } },
    output: ({ context }) => shown(context.request)
  })
}

for (const [form, work] of Object.entries(WORKS)) {
  await t.test(`a ${form} receives the request's details, and none if there were none`, async t => {
    const { runtime } = start(t, { work })
    t.strictSame(await got(runtime, saying('first', { contextId: 'c' })), details)
    t.strictSame(
      await got(runtime, saying('second', { contextId: 'c' })),
      details,
      'also the work of a later task of the context'
    )
    t.strictSame(await got(runtime, say('third', { contextId: 'c' })), {})
    t.strictSame(await got(runtime, say('none', {}, {})), {})
    t.strictSame(await got(runtime, say('none', {}, { returnImmediately: false, acceptedOutputModes: [] })), {})
    t.strictSame(await got(runtime, { message: userMessage('x'), metadata: {} }), { metadata: {} })
    t.strictSame(await got(runtime, say('x', {}, { historyLength: 0 })), { historyLength: 0 })
    const { id } = await open(runtime)
    t.strictSame(JSON.parse(textOf((await reaches(runtime, id, 'completed')).artifacts?.[0]) ?? ''), {
      returnImmediately: true
    })
  })
}

await t.test('a negotiation function and respond receive them too', async t => {
  const asked = start(t, {
    work: telling,
    negotiate: ({ request, message }) => (textOf(message) === 'work' ? accepted() : reply(JSON.stringify(request)))
  })
  t.strictSame(JSON.parse(textOf(messageIn(await asked.runtime.sendMessage(saying('hello')))) ?? ''), details)
  t.strictSame(JSON.parse(textOf(messageIn(await asked.runtime.sendMessage(say('hello')))) ?? ''), {})
  t.strictSame(await got(asked.runtime, saying('work')), details)
  const terms = z.object({ euros: z.number() })
  const bargained = start(t, {
    work: telling,
    negotiate: negotiation({
      terms,
      respond: ({ request, message }) =>
        textOf(message) === 'work' ? accepted({ euros: 1 }) : reply(JSON.stringify(request))
    })
  })
  t.strictSame(JSON.parse(textOf(messageIn(await bargained.runtime.sendMessage(saying('hello')))) ?? ''), details)
  t.strictSame(await got(bargained.runtime, saying('work')), details)
})

const answer = { metadata: { answer: true }, historyLength: 1 }

/** Work that asks three times, in three ways, and tells what it got. */
const asking: WorkFunction = async ({ ask, lastAnswer, request }) => {
  const answers: unknown[] = [lastAnswer() ?? null]
  const note = () => answers.push([textOf(lastAnswer()?.message), lastAnswer()?.request])
  await ask(inputRequired('Words?'))
  note()
  await ask(inputRequired('Number?', { schema: z.string().transform(Number) }))
  note()
  await ask(authRequired('Who?'))
  note()
  return shown([request, ...answers])
}

const EXPECTED = [{ metadata }, null, ['one', answer], ['2', {}], ['three', { metadata: { third: 3 } }]]

await t.test("work receives the details of an answer's request", async t => {
  const { runtime } = start(t, { work: asking })
  const { id: taskId } = taskIn(await runtime.sendMessage(saying('go', {}, { metadata })))
  await runtime.sendMessage(saying('one', { taskId }, answer))
  await runtime.sendMessage(say('2', { taskId }))
  t.strictSame(await got(runtime, saying('three', { taskId }, { metadata: { third: 3 } })), EXPECTED)
  const other = taskIn(await runtime.sendMessage(say('go')))
  await runtime.sendMessage(say('one', { taskId: other.id }))
  await runtime.sendMessage(saying('2', { taskId: other.id }, answer))
  await runtime.authorized(other.id, { token: 'x' })
  const done = await reaches(runtime, other.id, 'completed')
  t.strictSame(
    JSON.parse(textOf(done.artifacts?.[0]) ?? ''),
    [{}, null, ['one', {}], ['2', answer], ['2', answer]],
    'an authorization is no message'
  )
})

const STORES: Record<string, (t: Test) => Store> = {
  memory: () => memoryStore(),
  SQLite: t => sqliteStore(`${t.testdir()}/tasks.db`)
}

for (const [engine, make] of Object.entries(STORES)) {
  await t.test(
    `work that runs again after a restart receives the same details from ${engine}`,
    { skip: engine === 'SQLite' && NO_SQLITE },
    async t => {
      const kept = make(t)
      t.teardown(() => kept.close())
      const store: Store = { ...kept, close: async () => {} }
      const life = () => start(t, { work: asking }, { store })
      let { runtime, clock } = life()
      const restart = async () => {
        await closed(runtime, clock)
        const next = life()
        runtime = next.runtime
        clock = next.clock
      }
      const { id: taskId } = taskIn(await runtime.sendMessage(saying('go', {}, { metadata })))
      await restart()
      await runtime.sendMessage(saying('one', { taskId }, answer))
      await restart()
      await runtime.sendMessage(say('2', { taskId }))
      await restart()
      t.strictSame(await got(runtime, saying('three', { taskId }, { metadata: { third: 3 } })), EXPECTED)
    }
  )
}

await t.test('the journal of restarted work is read once, and not if over the limit', async t => {
  const kept = memoryStore()
  let reads = 0
  const readJournal: Store['readJournal'] = (...given) => {
    reads += 1
    return kept.readJournal(...given)
  }
  const life = (restoredBytes: number) =>
    start(
      t,
      { work: asking },
      { store: { ...kept, readJournal, close: async () => {} }, limits: { advanced: { restoredBytes } } }
    )
  const first = life(100_000)
  const { id: taskId } = taskIn(await first.runtime.sendMessage(saying('go', { contextId: 'c' })))
  t.match(taskIn(await first.runtime.sendMessage(say('go', { contextId: 'c' }))).status, {
    state: 'TASK_STATE_INPUT_REQUIRED'
  })
  t.equal(reads, 0, 'the work of a new task needs no journal')
  await closed(first.runtime, first.clock)
  const second = life(100_000)
  await second.runtime.sendMessage(say('one', { taskId }))
  t.equal(reads, 2, 'one for each task of the context')
  await closed(second.runtime, second.clock)
  const narrow = life(100)
  t.match(await reaches(narrow.runtime, taskId, 'input-required'), { id: taskId })
  t.match(await rejection(narrow.runtime.sendMessage(say('2', { taskId }))), { code: 'UnsupportedOperation' })
  t.equal(reads, 2)
})

await t.test('work that restarts after a crash receives them again', async t => {
  let tries = 0
  const { runtime } = start(t, {
    restart: 'transient',
    work: ({ request }) => {
      tries += 1
      if (tries === 1) throw new Error('once')
      return shown(request)
    }
  })
  t.strictSame(await got(runtime, saying('go')), details)
  t.equal(tries, 2)
})

/** A chart that works until the gate opens, asks, and tells what the requests of the messages that it took said. */
function chart(gate: Promise<void>) {
  return setupWork({
    types: { context: {} as { requests: unknown[] } },
    actors: { gate: fromPromise(() => gate) }
  }).createMachine({
    context: { requests: [] },
    initial: 'working',
    on: {
      'message.received': {
        actions: assign(({ context, event }) => ({ requests: [...context.requests, event.request ?? null] }))
      }
    },
    states: {
      working: { invoke: { src: 'gate', onDone: 'asking' } },
      asking: {
        tags: 'input-required',
        on: {
          'message.received': {
            target: 'done',
            actions: assign(({ context, event }) => ({ requests: [...context.requests, event.request ?? null] }))
          }
        }
      },
      done: { type: 'final' }
    },
    output: ({ context }) => shown(context.requests)
  })
}

await t.test("a chart's events have the details of answers and steered messages", async t => {
  const gate = deferred()
  const { runtime } = start(t, { work: chart(gate.promise), messages: 'deliver' })
  const { id: taskId } = await open(runtime)
  await reaches(runtime, taskId, 'working')
  for (const request of [saying('a', { taskId }), say('b', { taskId })]) await runtime.sendMessage(atOnce(request))
  gate.resolve()
  await reaches(runtime, taskId, 'input-required')
  t.strictSame(await got(runtime, saying('c', { taskId }, answer)), [
    { ...details, returnImmediately: true },
    { returnImmediately: true },
    answer
  ])
})

await t.test('messages that wait for a question keep it', async t => {
  const gate = deferred()
  const work: WorkFunction = async ({ ask, lastAnswer }) => {
    await gate.promise
    const requests: unknown[] = []
    for (const question of ['One?', 'Two?']) {
      await ask(inputRequired(question))
      requests.push(lastAnswer()?.request)
    }
    return shown(requests)
  }
  const { runtime } = start(t, { work, messages: 'queue' })
  const { id: taskId } = await open(runtime)
  await reaches(runtime, taskId, 'working')
  for (const request of [saying('1', { taskId }), say('2', { taskId })]) await runtime.sendMessage(atOnce(request))
  gate.resolve()
  const done = await reaches(runtime, taskId, 'completed')
  t.strictSame(JSON.parse(textOf(done.artifacts?.[0]) ?? ''), [
    { ...details, returnImmediately: true },
    { returnImmediately: true }
  ])
})

await t.test('it counts towards the bytes of a task', async t => {
  const { runtime } = start(t, { work: asking }, { limits: { taskBytes: 2000 } })
  const { id: taskId } = taskIn(await runtime.sendMessage(say('go')))
  const large = saying('one', { taskId }, { metadata: { text: 'x'.repeat(2000) } })
  t.match(await rejection(runtime.sendMessage(large)), {
    code: 'RateLimited',
    message: /has no room for a message of this size/
  })
  t.match(await reaches(runtime, taskId, 'input-required'), { id: taskId })
  const { status } = taskIn(await runtime.sendMessage(saying('go', {}, { metadata: { text: 'x'.repeat(2000) } })))
  t.equal(status.state, 'TASK_STATE_FAILED', 'as with a message of that size')
})

await t.test('metadata of progress and results is in their status events, and in the task', async t => {
  const { runtime } = start(t, {
    work: async function* () {
      yield progress('half', { metadata: { percent: 50, begun: true } })
      return { message: 'done', metadata: { percent: 100 } }
    }
  })
  const statuses: unknown[] = []
  for await (const event of runtime.sendStreamingMessage(say('go')))
    if ('statusUpdate' in event) statuses.push(event.statusUpdate.metadata)
  t.strictSame(statuses, [undefined, { percent: 50, begun: true }, { percent: 100 }])
  t.strictSame(taskIn(await runtime.sendMessage(say('go'))).metadata, { percent: 100, begun: true })
})
