import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { z } from 'zod'
import { assign } from 'xstate'
import { testAgent } from '../../../adapters/testing/index.ts'
import { callDifference, TaskAnswers, type WireTaskAnswer } from '../../../adapters/testing/run/mcp-answers.ts'
import { mcpCaller } from '../../../adapters/testing/run/mcp-caller.ts'
import { walk } from '../../../adapters/testing/run/path-run.ts'
import { StubActors } from '../../../adapters/testing/run/stub-actors.ts'
import { planFor, type Path } from '../../../adapters/testing/plan/plan.ts'
import type { TestClient } from '../../../adapters/testing/run/official-caller.ts'
import { A2AError } from '../../../machines/protocol/errors.ts'
import { offerPart } from '../../../machines/protocol/negotiation.ts'
import type { Part, SendMessageResponse, Task } from '../../../machines/protocol/objects.ts'
import { NEGOTIATION_EXTENSION } from '../../../machines/protocol/uris.ts'
import {
  dataOf,
  defineAgent,
  file,
  negotiation,
  reply,
  setupWork,
  text,
  textOf,
  typed,
  type AuthorizationReceived
} from '../../../runtime/index.ts'
import { cases, everything } from '../../fixtures/charts/chart-with-everything.ts'
import { someWalks } from '../../fixtures/charts/some-walks.ts'
import { servedRuntime, type ServedRuntime } from '../../../runtime/runtime-options.ts'
import { start } from '../../fixtures/runtime/runtime-helpers.ts'

const drivers = ['over MCP'] as const
const card = { name: 'Tested' }
const skill = (id: string) => ({ id, name: id, description: '', tags: [] })

await t.test('paths of a complete chart are walked over MCP, also killed before every step', async t => {
  await testAgent(someWalks(t), defineAgent({ card, work: everything }), {
    cases,
    drivers: [...drivers, 'over MCP, killed before every step']
  })
})

const wish = z.object({
  size: z.enum(['small', 'large']),
  count: z.int().min(1),
  note: z.string().nullable(),
  tags: z.array(z.enum(['hot', 'black'])),
  to: z.object({ street: z.string() })
})

/** Asks for a wish, for a permission at a URL, and gives contents of every kind. */
const asking = setupWork({
  types: { context: typed<{ words: string }>(), events: typed<AuthorizationReceived>() }
}).createMachine({
  id: 'asking',
  initial: 'wishing',
  context: ({ input }) => ({ words: textOf(input.message) }),
  states: {
    wishing: {
      tags: 'input-required',
      meta: { prompt: 'What do you wish?', schema: wish },
      on: {
        'message.received': {
          guard: ({ event }) => dataOf(event, wish).count < 9,
          target: 'paying',
          actions: assign({ words: ({ context, event }) => `${context.words} ${JSON.stringify(dataOf(event, wish))}` })
        }
      }
    },
    paying: {
      tags: 'auth-required',
      meta: {
        prompt: { parts: [text('Pay here.'), { url: 'https://pay.example/1' }] }
      },
      on: { 'message.received': 'done', 'authorization.received': 'done' }
    },
    done: { type: 'final' }
  },
  output: ({ context }) => ({
    message: { parts: [{ data: { words: context.words } }] },
    artifacts: [
      { parts: [text('one '), text('two'), { data: { three: 3 } }] },
      { parts: [file(Buffer.from('png'), { mediaType: 'image/png' }), { url: 'https://agent.example/a' }] },
      { parts: [file(Buffer.from('a,b'), { mediaType: 'text/csv' }), file(Buffer.alloc(900_000))] }
    ]
  })
})

const modes = ['text/plain', 'application/json', 'image/png']
const asks = defineAgent({ card: { ...card, defaultInputModes: modes }, work: asking })
const good = { size: 'small', count: 2, note: 'hot', tags: ['hot'], to: { street: 'Elm' } }
const picture = file(Buffer.from('png'), { mediaType: 'image/png' })

await t.test('forms, URLs and contents of every kind are walked over MCP', async t => {
  await testAgent(t, asks, {
    drivers,
    cases: {
      opening: { words: 'hello' },
      messages: {
        good: { parts: [{ data: good }] },
        'no note': { parts: [{ data: { ...good, note: null } }] },
        'too many': { parts: [{ data: { ...good, count: 9 } }] },
        'wrong size': { parts: [{ data: { ...good, size: 'huge' } }] },
        words: 'something large',
        'words and data': { parts: [text('this'), { data: good }] },
        'data, then words': { parts: [{ data: good }, text('this')] },
        'two answers': { parts: [{ data: good }, { data: good }] },
        'a picture': { parts: [picture] },
        'with metadata': { parts: [{ data: good }], metadata: { 'urn:example:1': 1 } },
        nothing: ''
      }
    }
  })
})

await t.test('a message that no tool takes opens its task over A2A', async t => {
  await testAgent(t, asks, {
    drivers,
    kind: 'shortest',
    cases: {
      opening: {
        'words and data': { parts: [text('hello'), { data: { a: 1 } }] },
        'a picture': { parts: [text('hello'), picture] },
        'metadata of its own': { parts: [text('hello')], metadata: { 'urn:example:1': 1 } }
      },
      messages: { good: { parts: [{ data: good }] } }
    }
  })
})

const size = setupWork({ types: { events: typed<AuthorizationReceived>() } }).createMachine({
  id: 'size',
  initial: 'asking',
  states: {
    asking: {
      tags: 'input-required',
      meta: { prompt: 'Large?', schema: z.union([z.string(), z.number()]) },
      on: { 'message.received': 'allowing' }
    },
    allowing: { tags: 'auth-required', on: { 'message.received': 'done', 'authorization.received': 'done' } },
    done: { type: 'final' }
  },
  output: {}
})

await t.test('the arguments of a tool are those that the agent takes', async t => {
  const messages = { text: '5', number: { parts: [{ data: 5 }] }, 'a list': { parts: [{ data: [5] }] }, nothing: '' }
  const properties = defineAgent({ card, input: z.object({ n: z.number() }), work: size })
  await testAgent(t, properties, { drivers, cases: { messages, opening: { n: { parts: [{ data: { n: 1 } }] } } } })
  const value = defineAgent({ card, input: z.number(), work: size })
  await testAgent(t, value, { drivers, cases: { messages, opening: { n: { parts: [{ data: 1 }] } } } })
  const negotiate = negotiation({ terms: z.object({ euros: z.number() }), respond: () => reply('No.') })
  await testAgent(t, defineAgent({ card, negotiate, work: size }), {
    drivers,
    cases: { messages, terms: { ten: { euros: 10 } } }
  })
})

await t.test('a question that many cases answer wrongly stays open', async t => {
  const work = setupWork({}).createMachine({
    initial: 'asking',
    states: {
      asking: {
        tags: 'input-required',
        meta: { prompt: 'Which size?', schema: z.enum(['small', 'large']) },
        on: { 'message.received': 'done' }
      },
      done: { type: 'final' }
    }
  })
  const wrong = ['huge', 'tiny', 'wide', 'long', 'none', 'both'].map(words => [words, words])
  const messages = { ...Object.fromEntries(wrong), large: 'large' }
  await testAgent(t, defineAgent({ card, work }), { drivers, cases: { messages } })
})

const tool = (name: unknown) => ({ parts: [text('go')], metadata: { 'urn:taskchart:mcp:1': name as never } })

await t.test('a case names the tool that opens its task', async t => {
  const tools: unknown[] = []
  const work = setupWork({}).createMachine({
    initial: 'done',
    context: ({ input }) => void tools.push(input.message.metadata?.['urn:taskchart:mcp:1']) as never,
    states: { done: { type: 'final' } }
  })
  const agent = defineAgent({ card: { ...card, skills: [skill('one'), skill('two')] }, work })
  const opening = { first: 'go', second: tool({ tool: 'two' }), unknown: tool({ tool: 'three' }) }
  await testAgent(t, agent, { drivers, cases: { opening } })
  // The plan, which sends nothing over MCP, has none for the first.
  t.same(
    new Set(tools.map(named => JSON.stringify(named))),
    new Set([undefined, ...['one', 'two', 'three'].map(tool => JSON.stringify({ tool }))])
  )
})

await t.test('a path fails where an answer over MCP is not the task', async t => {
  const agent = defineAgent({ card, work: size })
  const { paths } = await planFor(agent, { cases: { messages: { words: 'large' } } })
  const [path] = paths
  let question: string | undefined
  let reads = 0
  const watch = (runtime: ServedRuntime): ServedRuntime => ({
    ...runtime,
    getTask: async (params, call) => {
      const task = await runtime.getTask(params, call)
      question = task.status.message?.messageId
      return task
    },
    readNote: async (name, call) => {
      reads += 1
      return reads === 1
        ? runtime.readNote(name, call)
        : { question: String(question), attempt: reads, refused: 0, isDismissed: false, reason: '' }
    }
  })
  const walking = walk(agent, new StubActors(size), path as Path, { reach: 'MCP', interlude: 'none' }, undefined, {
    watch
  })
  await t.rejects(walking, { name: 'PathError', message: /an open question has to keep its key$/ })
})

const task = (state: Task['status']['state'], words = 'Which size?'): Task => ({
  id: 'task',
  contextId: 'context',
  status: {
    state,
    timestamp: '2026-01-01T00:00:01.000Z',
    message: { messageId: 'question', role: 'ROLE_AGENT', parts: [{ text: words }] }
  },
  artifacts: [{ artifactId: 'a', parts: [{ text: 'a coffee' }] }]
})

const fields = {
  resultType: 'complete',
  taskId: 'task',
  createdAt: '2026-01-01T00:00:00.000Z',
  lastUpdatedAt: '2026-01-01T00:00:01.000Z',
  ttlMs: null
}
const asked = (key: string, message = 'Which size?'): WireTaskAnswer => ({
  ...fields,
  status: 'input_required',
  statusMessage: message,
  inputRequests: { [key]: { method: 'elicitation/create', params: { mode: 'form', message } } }
})
const ended: WireTaskAnswer = {
  ...fields,
  status: 'completed',
  ttlMs: 5,
  result: {
    resultType: 'complete',
    content: ['Which size?', 'a coffee', 'taskId: task'].map(words => ({ type: 'text', text: words }))
  }
}

await t.test('an answer to tasks/get has to be the task of A2A', async t => {
  const wrong: readonly (readonly [string, WireTaskAnswer, Task])[] = [
    ['another status', { ...asked('question'), status: 'working' }, task('TASK_STATE_INPUT_REQUIRED')],
    ['no question', { ...fields, status: 'input_required' }, task('TASK_STATE_INPUT_REQUIRED')],
    ['the question of another message', asked('other'), task('TASK_STATE_INPUT_REQUIRED')],
    ['other words', asked('question', 'How many?'), task('TASK_STATE_INPUT_REQUIRED')],
    ['an end of its time', { ...asked('question'), ttlMs: 5 }, task('TASK_STATE_INPUT_REQUIRED')],
    ['another time', { ...asked('question'), lastUpdatedAt: fields.createdAt }, task('TASK_STATE_INPUT_REQUIRED')],
    ['another task', { ...ended, taskId: 'other' }, task('TASK_STATE_COMPLETED')],
    ['no result', { ...ended, result: undefined } as never, task('TASK_STATE_COMPLETED')],
    ['a result without an error', ended, task('TASK_STATE_FAILED')],
    ['an error', { ...ended, error: {} }, task('TASK_STATE_COMPLETED')],
    ['a handle', { ...ended, resultType: 'task' }, task('TASK_STATE_COMPLETED')],
    ['a word too much', { ...fields, status: 'working', statusMessage: 'so' }, task('TASK_STATE_WORKING', '')],
    ['contents that are lost', { ...ended, result: { content: [] } }, task('TASK_STATE_COMPLETED')]
  ]
  for (const [name, answer, is] of wrong)
    t.match(new TaskAnswers().add(answer, is), { what: 'tasks/get has to be the task of A2A' }, name)
  t.equal(new TaskAnswers().add(asked('question'), task('TASK_STATE_INPUT_REQUIRED')), undefined)
  t.equal(new TaskAnswers().add(ended, task('TASK_STATE_COMPLETED')), undefined)
  t.match(
    new TaskAnswers().add(
      { ...ended, result: { resultType: 'complete', content: [{ type: 'new' }, { type: 'text', text: 'taskId' }] } },
      { ...task('TASK_STATE_COMPLETED', ''), artifacts: [] }
    ),
    undefined,
    'a block of a type that is not known has no content'
  )
})

await t.test('the result of a tool has to be the answer of A2A', async t => {
  const said = (parts: Part[]): SendMessageResponse => ({ message: { messageId: 'm', role: 'ROLE_AGENT', parts } })
  const picture = { raw: 'cG5n', mediaType: 'image/png' }
  const hello = said([{ text: 'Hel' }, { text: 'lo!' }, picture])
  const ids = { type: 'text', text: 'contextId: c' }
  const content = [{ type: 'text', text: 'Hello!' }, { type: 'image', data: 'cG5n' }, ids]
  t.equal(callDifference({ content }, hello), undefined)
  t.match(callDifference({ content: [content[0], ids] as never }, hello), { found: { contents: ['Hello!'] } })
  t.match(callDifference({ taskId: 'task' }, hello), { wanted: { contents: ['Hello!', 'cG5n'] } })
  const part = offerPart({ offerId: 'o', round: 1, terms: { euros: 5 }, expiresAt: '2026-01-01T00:00:00.000Z' })
  const form = (message: string) => ({
    inputRequests: { o: { method: 'elicitation/create', params: { mode: 'form', message } } }
  })
  t.equal(callDifference(form('Terms: {"euros":5}'), said([part])), undefined)
  t.equal(callDifference(form('Deal?\nTerms: {"euros":5}'), said([{ text: 'Deal?' }, part])), undefined)
  t.match(callDifference(form('Terms: {"euros":6}'), said([part])), { found: { words: 'Terms: {"euros":6}' } })
  t.match(callDifference({}, said([part])), { found: { contents: [] } }, 'an offer has to be a form')
})

await t.test('the answers to tasks/get go on from each other', async t => {
  const question = task('TASK_STATE_INPUT_REQUIRED')
  const answers = new TaskAnswers()
  t.equal(answers.add(asked('question'), question), undefined)
  t.equal(answers.add(asked('question'), question), undefined, 'an open question is repeated')
  t.match(answers.add(asked('question.2'), question), { what: 'an open question has to keep its key' })
  answers.responded('question.2')
  t.equal(answers.staleKey, 'question.2')
  t.match(answers.add(asked('question.2'), question), { what: 'a question has to have a new key' })
  t.equal(answers.add(asked('question.3', 'Not accepted: no\n\nWhich size?'), question), undefined)
  const done = task('TASK_STATE_COMPLETED')
  t.match(answers.add({ ...ended, createdAt: 'now' }, done), { what: 'tasks/get has to be the task of A2A' })
  t.equal(answers.add({ ...ended, createdAt: 'now' }, done)?.what, undefined, 'the time stays')
  t.match(answers.add({ ...ended, createdAt: 'now', ttlMs: 6 }, done), {
    what: 'the answer of an ended task has to stay'
  })
})

/**
 * A server whose answers a test gives, in their order, and a client of it whose agent over A2A is another one.
 * `answers`: those of the agent to the messages of the first calls.
 */
async function scripted(
  t: Test,
  results: readonly unknown[],
  overA2A: Partial<TestClient>,
  answers: readonly (SendMessageResponse | A2AError)[] = []
) {
  const left = [...results]
  const sent: Promise<SendMessageResponse>[] = []
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      const answer = answers[sent.length]
      if (answer) {
        const arrived = answer instanceof A2AError ? Promise.reject(answer) : Promise.resolve(answer)
        arrived.catch(() => {})
        sent.push(arrived)
      }
      response.end(JSON.stringify(left.shift()))
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { runtime } = start(t, { work: () => {} })
  const { port } = server.address() as AddressInfo
  const client = { task: async () => task('TASK_STATE_INPUT_REQUIRED'), ...overA2A } as TestClient
  return mcpCaller(
    { runtime: servedRuntime(runtime, 'test'), sent },
    client,
    `http://127.0.0.1:${port}/mcp`,
    new TaskAnswers()
  )
}

const complete = { result: { resultType: 'complete' } }
const says = (words: string, isError = false) => ({ result: { isError, content: [{ type: 'text', text: words }] } })
const message = (taskId?: string) => ({
  messageId: 'm',
  role: 'ROLE_USER' as const,
  parts: [{ text: 'hello' }],
  ...(taskId !== undefined && { taskId })
})

await t.test('what a server does beside the extension is an error of the step', async t => {
  const broken = { error: { code: -32603, message: 'broken' } }
  const silent = await scripted(t, [broken], {})
  await t.rejects(silent.send(message()), { message: 'The call of a tool sends no message: broken' })
  const refusing = await scripted(t, [broken], {}, [new A2AError('Overloaded', 'broken')])
  await t.rejects(refusing.send(message()), { code: 'Overloaded' })
  const careless = await scripted(t, [says('Done.')], {}, [new A2AError('InvalidParams', 'No.')])
  await t.rejects(careless.send(message()), { message: 'A message that A2A refuses has to be refused: Done.' })
  const failing = await scripted(t, [broken], {})
  await t.rejects(failing.cancel('task'), { message: 'tasks/cancel fails: broken' })
  const talking = await scripted(t, [{ result: { resultType: 'complete', status: 'cancelled' } }], {})
  await t.rejects(talking.cancel('task'), {
    message: /^tasks\/cancel has to acknowledge, not to answer \{"resultType"/
  })
  const moved = [task('TASK_STATE_INPUT_REQUIRED'), task('TASK_STATE_WORKING')]
  const wrong = await scripted(t, [{ result: asked('question') }, complete], {
    task: async () => moved.shift() ?? task('TASK_STATE_WORKING')
  })
  await t.rejects(wrong.send(message('task')), { message: 'a response under a key that is not open has to do nothing' })
  const accepting = { send: async () => ({ task: task('TASK_STATE_WORKING') }) }
  const strict = await scripted(t, [{ result: { ...fields, status: 'working' } }, says('No.', true)], accepting)
  await t.rejects(strict.send(message('task')), { message: 'Over MCP it is refused: No.' })
  const overA2A = await scripted(t, [], accepting)
  const noMove = { data: { [NEGOTIATION_EXTENSION]: { accept: {} } } }
  t.match(
    await overA2A.send({ messageId: 'm', role: 'ROLE_USER', parts: [noMove] }),
    { task: { status: { state: 'TASK_STATE_WORKING' } } },
    'what is no move goes over A2A'
  )
  const ended = { task: task('TASK_STATE_COMPLETED') }
  const quick = await scripted(t, [says('A coffee.\ntaskId: task\nstate: completed')], {}, [ended])
  t.match(await quick.send(message()), { task: { id: 'task' } }, 'the task may have ended by then')
  const other = await scripted(t, [says('A coffee.\ntaskId: other')], {}, [ended])
  await t.rejects(other.send(message()), { message: /^the result of a tool has to be the answer of A2A: .*"other"/ })
})
