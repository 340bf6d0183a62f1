import t, { type Test } from 'tap'
import { dialect01, type Dialect01Options } from '../../../adapters/legacy/index.ts'
import { TASK_OF_01 } from '../../../adapters/legacy/v01-answers.ts'
import { sqliteStore } from '../../../adapters/storage/sqlite.ts'
import type { AgentCard } from '../../../machines/protocol/card.ts'
import { A2AError, isA2AError, type ErrorCode } from '../../../machines/protocol/errors.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import { z } from 'zod'
import {
  accepted,
  artifact,
  authRequired,
  data,
  inputRequired,
  negotiation,
  offer,
  progress,
  rejected,
  reply,
  type CallContext,
  type Runtime,
  type WorkFunction
} from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { WebhookPost } from '../../../runtime/ports/webhook-sender.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { callDialect, streamDialect } from '../../fixtures/servers/dialect-calls.ts'
import {
  collect,
  deferred,
  next,
  reaches,
  readUntil,
  refusal,
  rejection,
  rest,
  say,
  start,
  taskIn,
  textOf,
  until
} from '../../fixtures/runtime/runtime-helpers.ts'
import { NO_SQLITE } from '../../fixtures/stores/sqlite.ts'
import { isBehindNode } from '../../fixtures/cluster/behind-node.ts'

/** Does what the first word of its message says, and hands over one of each part. */
const work: WorkFunction = async ({ message, emit, ask, signal }) => {
  const [first] = message.parts
  const text = first && 'text' in first ? first.text : ''
  if (text === 'ask') return { artifact: `You said ${textOf(await ask(inputRequired('Well?')))}.` }
  if (text === 'login') await ask(authRequired('Who are you?'))
  if (text === 'wait')
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
  if (text === 'twice') {
    emit(artifact({ artifactId: 'one', parts: [{ text: '1' }] }))
    await ask(inputRequired('More?'))
    emit(artifact({ artifactId: 'two', parts: [{ text: '2' }] }))
    emit(artifact({ artifactId: 'one', parts: [{ text: '!' }] }, { append: true, lastChunk: true }))
    return {}
  }
  emit(progress('working on it'))
  emit(
    artifact(
      {
        artifactId: 'a',
        name: 'all.txt',
        description: 'All.',
        metadata: { size: 1 },
        parts: [
          ...message.parts,
          { url: 'https://example.com/x', filename: 'x', mediaType: 'text/html', metadata: { far: true } },
          data(null),
          data([1]),
          data({ a: 1 })
        ]
      },
      { lastChunk: true }
    )
  )
  return { message: 'done', metadata: { took: 1 } }
}

const negotiate = ({ message }: { message: Parameters<typeof textOf>[0] }) =>
  textOf(message) === 'hello' ? reply('hi') : textOf(message) === 'never' ? rejected('Not that.') : accepted()

function startDialect(t: Test, options: Parameters<typeof start>[2] = {}, ids: Dialect01Options = {}) {
  const started = start(
    t,
    {
      card: { name: 'Legacy', defaultInputModes: ['text/plain', 'application/octet-stream', 'application/json'] },
      work,
      negotiate
    },
    options
  )
  return { ...started, dialect: dialect01(started.runtime, ids) }
}

/** What is read of the objects of 0.1. */
interface Json {
  readonly id: string
  readonly sessionId: string
  readonly status: {
    readonly state: string
    readonly message?: { readonly parts: readonly { readonly text?: string }[] }
  }
  readonly final?: boolean
  readonly artifact?: {
    readonly index: number
    readonly parts: readonly { readonly text?: string }[]
    readonly append?: boolean
    readonly lastChunk?: boolean
  }
  readonly artifacts?: readonly {
    readonly index: number
    readonly parts: readonly object[]
    readonly metadata: object
  }[]
  readonly history?: readonly object[]
  readonly metadata?: {
    readonly [TASK_OF_01]?: { readonly taskId?: string; readonly follows?: string; readonly state?: string }
  }
}

const call = callDialect<Json>
const stream = streamDialect<Json>

/** What `tasks/send` takes. */
function sending(id: string, text: string, more: object = {}) {
  return { id, message: { role: 'user', parts: [{ type: 'text', text }] }, ...more }
}

/** An event, shortly. */
function briefly({ status, final, artifact }: Json): string {
  return artifact
    ? `artifact ${artifact.index}${artifact.append ? '+' : ''} ${artifact.parts[0]?.text}`
    : `${status.state}${final ? ' final' : ''}`
}

/** What 0.1 has no member for. */
const beside = ({ metadata }: Json) => metadata?.[TASK_OF_01] ?? {}

await t.test("a message opens a task with its client's id, in the form of 0.1", async t => {
  const { dialect, runtime } = startDialect(t)
  const parts = [
    { type: 'text', text: '', metadata: { a: 1 } },
    { type: 'file', file: { bytes: 'aGk=', name: 'hi', mimeType: 'application/octet-stream' } },
    { type: 'file', file: { uri: 'https://example.com/y' } },
    { type: 'data', data: { b: 2 }, metadata: { c: 3 } }
  ]
  const task = await call(dialect, 'tasks/send', {
    id: 'mine',
    sessionId: 's',
    message: { role: 'user', parts, metadata: { from: 'me' } },
    metadata: { why: 'so' }
  })
  t.match(task, {
    id: 'mine',
    sessionId: 's',
    status: {
      state: 'completed',
      timestamp: String,
      message: { role: 'agent', parts: [{ type: 'text', text: 'done' }] }
    }
  })
  t.strictSame(task.artifacts, [
    {
      name: 'all.txt',
      description: 'All.',
      index: 0,
      metadata: { size: 1, [TASK_OF_01]: { artifactId: 'a' } },
      parts: [
        ...parts,
        {
          type: 'file',
          file: { uri: 'https://example.com/x', name: 'x', mimeType: 'text/html' },
          metadata: { far: true }
        },
        { type: 'data', data: { value: null }, metadata: { data_part_compat: true } },
        { type: 'data', data: { value: [1] }, metadata: { data_part_compat: true } },
        { type: 'data', data: { a: 1 } }
      ]
    }
  ])
  t.strictSame(task.history, [
    { role: 'user', parts, metadata: { from: 'me' } },
    { role: 'agent', parts: [{ type: 'text', text: 'working on it' }] }
  ])
  const { taskId = '' } = beside(task)
  t.strictSame(task.metadata, { took: 1, 'urn:taskchart:task-of-0.1': { taskId } })
  const { id, contextId, history } = await runtime.getTask({ id: taskId })
  t.strictSame([id, contextId], [taskId, 's'], "1.0 shows it under the runtime's id")
  t.strictSame(history?.[0]?.parts, [
    { text: '', metadata: { a: 1 } },
    { raw: 'aGk=', filename: 'hi', mediaType: 'application/octet-stream' },
    { url: 'https://example.com/y' },
    { data: { b: 2 }, metadata: { c: 3 } }
  ])
})

await t.test('parts may omit their type, and wrapped data is unwrapped', async t => {
  const { dialect, runtime } = startDialect(t)
  const parts = [{ text: 'x' }, { data: { value: [1] }, metadata: { data_part_compat: true, more: 1 } }, { data: {} }]
  const task = await call(dialect, 'tasks/send', { id: 'mine', message: { role: 'user', parts } })
  t.match(task.history?.[0], { parts: [{ type: 'text' }, { type: 'data', data: { value: [1] } }, { type: 'data' }] })
  t.strictSame((await runtime.getTask({ id: beside(task).taskId ?? '' })).history?.[0]?.parts, [
    { text: 'x' },
    { data: [1], metadata: { more: 1 } },
    { data: {} }
  ])
})

await t.test('a session is a context: it is created without an id, and holds many tasks', async t => {
  const { dialect, runtime } = startDialect(t)
  const { sessionId } = await call(dialect, 'tasks/send', sending('a', 'x'))
  t.equal((await call(dialect, 'tasks/send', sending('b', 'x', { sessionId }))).sessionId, sessionId)
  t.equal((await runtime.listTasks({ contextId: sessionId })).totalSize, 2)
  t.equal((await call(dialect, 'tasks/get', { id: 'a' })).sessionId, sessionId)
})

await t.test('an answer without a task asks for the next message in its session', async t => {
  const { dialect, runtime } = startDialect(t)
  const answered = await call(dialect, 'tasks/send', sending('talk', 'hello'))
  t.strictSame(answered, {
    id: 'talk',
    sessionId: answered.sessionId,
    status: { state: 'input-required', message: { role: 'agent', parts: [{ type: 'text', text: 'hi' }] } },
    history: [{ role: 'user', parts: [{ type: 'text', text: 'hello' }] }]
  })
  t.ok(answered.sessionId)
  t.strictSame(await call(dialect, 'tasks/get', { id: 'talk' }), answered)
  t.strictSame(await collect(stream(dialect, 'tasks/resubscribe', { id: 'talk' })), [
    { id: 'talk', status: answered.status, final: true }
  ])
  t.strictSame(await collect(stream(dialect, 'tasks/sendSubscribe', sending('other', 'hello'))), [
    { id: 'other', status: answered.status, final: true }
  ])
  t.equal((await runtime.listTasks({})).totalSize, 0, 'there is no task')
  t.match(await refusal(call(dialect, 'tasks/send', sending('talk', 'x', { sessionId: 'elsewhere' }))), {
    code: 'InvalidParams',
    message: /sessionId/
  })
  const drawn = await call(dialect, 'tasks/send', sending('talk', 'x'))
  t.equal(drawn.sessionId, answered.sessionId)
  t.notOk('follows' in beside(drawn), 'no task has ended')
  t.equal((await call(dialect, 'tasks/get', { id: 'talk' })).artifacts?.length, 1)
  t.equal((await runtime.listTasks({})).totalSize, 1)
})

/** The texts of a history. */
const words = ({ history = [] }: Json) =>
  (history as { role: string; parts: { text?: string }[] }[]).map(({ role, parts }) => `${role} ${parts[0]?.text}`)

await t.test('the history of a negotiation has its rounds, of user and agent, also in front of its task', async t => {
  const posts: WebhookPost[] = []
  const push = {
    faultOf: async () => undefined,
    post: async (post: WebhookPost) => (posts.push(post), { status: 200 })
  }
  const negotiate = ({ message }: { message: Parameters<typeof textOf>[0] }) =>
    textOf(message) === 'go' ? accepted() : reply(`${textOf(message)}?`)
  const { runtime } = start(t, { card: { name: 'Haggler' }, work: () => ({ message: 'done' }), negotiate }, { push })
  const dialect = dialect01(runtime)
  const first = await call(dialect, 'tasks/send', sending('n', 'one'))
  t.strictSame([words(first), first.status.message?.parts[0]?.text], [['user one'], 'one?'])
  const { sessionId } = first
  await call(dialect, 'tasks/send', sending('other', 'beside', { sessionId }))
  const second = await call(dialect, 'tasks/send', sending('n', 'two'))
  t.strictSame(words(second), ['user one', 'agent one?', 'user two'])
  t.strictSame(await call(dialect, 'tasks/get', { id: 'n' }), second)
  t.strictSame(words(await call(dialect, 'tasks/get', { id: 'n', historyLength: 2 })), ['agent one?', 'user two'])
  t.strictSame(words(await call(dialect, 'tasks/get', { id: 'n', historyLength: 0 })), [])
  t.strictSame(words(await call(dialect, 'tasks/send', sending('n', 'three', { historyLength: 1 }))), ['user three'])
  const done = await call(
    dialect,
    'tasks/send',
    sending('n', 'go', { pushNotification: { url: 'https://example.com/' } })
  )
  const negotiated = ['user one', 'agent one?', 'user two', 'agent two?', 'user three', 'agent three?']
  t.strictSame(
    [words(done), done.status],
    [
      [...negotiated, 'user go'],
      { ...done.status, state: 'completed', message: { role: 'agent', parts: [{ type: 'text', text: 'done' }] } }
    ]
  )
  t.strictSame(words(await call(dialect, 'tasks/get', { id: 'n' })), words(done))
  t.strictSame(words(await call(dialect, 'tasks/get', { id: 'n', historyLength: 2 })), ['agent three?', 'user go'])
  const posted = await until(
    async () => posts.map(({ body }) => JSON.parse(body) as Json).find(({ status }) => status.state === 'completed'),
    'the webhook'
  )
  t.strictSame(words(posted), words(done))
  t.strictSame(
    words(await call(dialect, 'tasks/send', sending('n', 'go'))),
    [...words(done), 'agent done', 'user go'],
    'and in front of later rounds'
  )
  t.strictSame(
    words(await call(dialect, 'tasks/send', sending('n', 'more'))),
    ['user more'],
    'an answer without a task begins anew'
  )
  t.strictSame(words(await call(dialect, 'tasks/send', sending('n', 'go'))), ['user more', 'agent more?', 'user go'])
  t.strictSame(words(await call(dialect, 'tasks/get', { id: 'other' })), ['user beside'], 'each id has its own')
  const { taskId = '' } = beside(done)
  t.strictSame(
    words(await call(dialect, 'tasks/get', { id: taskId })),
    ['user go'],
    "a task by the runtime's id has none"
  )
})

await t.test(
  'a negotiation can be canceled: its id has a canceled task from then on, and the next message negotiates anew',
  async t => {
    const seen: unknown[] = []
    const negotiate = negotiation({
      terms: z.object({ euros: z.number() }),
      respond: ({ message, standing, round }) => {
        seen.push([standing?.terms, round])
        return textOf(message) === 'deal' ? accepted() : offer({ euros: 50 })
      }
    })
    const { runtime } = start(t, { card: { name: 'Haggler' }, work: () => ({ message: 'done' }), negotiate })
    const dialect = dialect01(runtime)
    const offered = await call(dialect, 'tasks/send', sending('n', 'mow'))
    const canceled = await call(dialect, 'tasks/cancel', { id: 'n', metadata: { why: 'dear' } })
    t.match(canceled, { id: 'n', sessionId: offered.sessionId, status: { state: 'canceled' } })
    t.strictSame(words(canceled), ['user mow', `agent ${offered.status.message?.parts[0]?.text}`])
    t.strictSame(await call(dialect, 'tasks/get', { id: 'n' }), canceled)
    t.strictSame(await call(dialect, 'tasks/cancel', { id: 'n' }), canceled, 'twice')
    t.match(await collect(stream(dialect, 'tasks/resubscribe', { id: 'n' })), [
      { id: 'n', status: { state: 'canceled' }, final: true }
    ])
    t.match(await runtime.listTasks({}), {
      tasks: [{ id: beside(canceled).taskId, status: { state: 'TASK_STATE_CANCELED' } }],
      totalSize: 1
    })
    t.match((await runtime.getTask({ id: beside(canceled).taskId ?? '' })).history, [
      { parts: [{ text: 'The client has canceled the negotiation.' }], metadata: { why: 'dear' } }
    ])
    const deal = await call(dialect, 'tasks/send', sending('n', 'deal'))
    t.match(
      deal,
      {
        sessionId: offered.sessionId,
        status: { state: 'input-required', message: { parts: [{ text: /not open any more/ }] } }
      },
      'the offer is withdrawn'
    )
    await call(dialect, 'tasks/send', sending('n', 'mow'))
    t.strictSame(seen, [
      [undefined, 0],
      [undefined, 0],
      [undefined, 0]
    ])
    t.match(await call(dialect, 'tasks/send', sending('n', 'deal')), { status: { state: 'completed' } })
    for (const id of ['nobody', 'n'])
      t.match(await refusal(call(dialect, 'tasks/cancel', { id }, { principal: 'bob' })), { code: 'TaskNotFound' })
    t.match(await refusal(call(dialect, 'tasks/cancel', { id: 'n' })), { code: 'TaskNotCancelable' })
  }
)

await t.test(
  'a cancellation waits for the answer to the message that is being negotiated, and cancels what that was',
  { skip: isBehindNode() && 'another node negotiates' },
  async t => {
    for (const [decision, state] of [
      [reply('hi'), 'input-required'],
      [accepted(), 'working']
    ] as const) {
      const answer = deferred<typeof decision>()
      const asked = deferred()
      const negotiate = () => (asked.resolve(), answer.promise)
      const { runtime } = start(t, { card: { name: 'Slow' }, work, negotiate })
      const dialect = dialect01(runtime)
      const sent = call(dialect, 'tasks/send', sending('n', 'wait'))
      await asked.promise
      t.strictSame(
        await call(dialect, 'tasks/get', { id: 'n' }),
        { id: 'n', status: { state: 'submitted' } },
        'which has no answer yet'
      )
      t.strictSame(await collect(stream(dialect, 'tasks/resubscribe', { id: 'n' })), [
        { id: 'n', status: { state: 'submitted' }, final: true }
      ])
      t.equal(await dialect.claims?.({ id: 'n' }, { version: '' }), true)
      t.match(await refusal(call(dialect, 'tasks/get', { id: 'n' }, { principal: 'bob' })), { code: 'TaskNotFound' })
      const canceled = call(dialect, 'tasks/cancel', { id: 'n' })
      await rest()
      answer.resolve(decision)
      t.match(await canceled, { id: 'n', status: { state: 'canceled' } })
      t.match((await sent).status.state, state === 'working' ? 'canceled' : state)
      t.match(await call(dialect, 'tasks/get', { id: 'n' }), { id: 'n', status: { state: 'canceled' } })
    }
  }
)

await t.test('a canceled negotiation survives a restart', { skip: NO_SQLITE }, async t => {
  const file = `${t.testdir()}/tasks.db`
  const before = startDialect(t, { store: sqliteStore(file) })
  await call(before.dialect, 'tasks/send', sending('talk', 'hello'))
  const canceled = await call(before.dialect, 'tasks/cancel', { id: 'talk' })
  await before.runtime.close()
  const { dialect } = startDialect(t, { store: sqliteStore(file) })
  t.strictSame(await call(dialect, 'tasks/get', { id: 'talk' }), canceled)
  t.strictSame(words(canceled), ['user hello', 'agent hi'])
})

await t.test('an answer of an agent without work is a completed task', async t => {
  const { runtime } = start(t, { card: { name: 'Talker' }, negotiate: () => reply('hi') })
  const dialect = dialect01(runtime)
  const status = { state: 'completed', message: { role: 'agent', parts: [{ type: 'text', text: 'hi' }] } }
  t.match(await call(dialect, 'tasks/send', sending('talk', 'hello')), { id: 'talk', status })
  t.match(await call(dialect, 'tasks/get', { id: 'talk' }), { id: 'talk', status })
  t.match(await collect(stream(dialect, 'tasks/sendSubscribe', sending('talk', 'hello'))), [
    { id: 'talk', status, final: true }
  ])
  t.match(await refusal(call(dialect, 'tasks/cancel', { id: 'talk' })), {
    code: 'TaskNotCancelable',
    message: /talk is completed/
  })
})

await t.test('the history and the artifacts of an id continue over its rounds', async t => {
  const { dialect, runtime } = startDialect(t)
  const words = (task: Json) =>
    (task.history as { parts: { text?: string }[] }[] | undefined)?.map(({ parts }) => parts[0]?.text)
  const drawn = await call(dialect, 'tasks/send', sending('rabbit', 'draw a rabbit'))
  const red = await call(dialect, 'tasks/send', sending('rabbit', 'make it red', { sessionId: drawn.sessionId }))
  const before = ['draw a rabbit', 'working on it', 'done']
  t.strictSame(words(red), [...before, 'make it red', 'working on it'])
  t.strictSame(
    red.artifacts?.map(({ index, parts }) => [index, (parts[0] as { text?: string }).text]),
    [
      [0, 'draw a rabbit'],
      [1, 'make it red']
    ]
  )
  t.strictSame(drawn.artifacts?.[0], red.artifacts?.[0], 'earlier artifacts are unchanged')
  const now = await call(dialect, 'tasks/get', { id: 'rabbit' })
  t.strictSame([now.history, now.artifacts], [red.history, red.artifacts])
  t.strictSame(words(await call(dialect, 'tasks/get', { id: 'rabbit', historyLength: 3 })), [
    'done',
    'make it red',
    'working on it'
  ])
  t.equal((await call(dialect, 'tasks/get', { id: 'rabbit', historyLength: 0 })).history, undefined)
  const streamed = await collect(stream(dialect, 'tasks/sendSubscribe', sending('rabbit', 'twice')))
  t.strictSame(
    streamed.flatMap(({ artifact }) => artifact?.index ?? []),
    [2],
    'numbers continue in streams'
  )
  const more = await collect(stream(dialect, 'tasks/sendSubscribe', sending('rabbit', 'yes')))
  t.strictSame([...new Set(more.flatMap(({ artifact }) => artifact?.index ?? []))], [2, 3])
  t.strictSame((await collect(stream(dialect, 'tasks/resubscribe', { id: 'rabbit' }))).map(briefly), [
    'artifact 2 1',
    'artifact 3 2',
    'completed final'
  ])
  const wait = call(dialect, 'tasks/send', sending('rabbit', 'wait'))
  await until(async () => (await runtime.listTasks({ status: 'TASK_STATE_WORKING' })).totalSize === 1)
  t.match(await call(dialect, 'tasks/cancel', { id: 'rabbit' }), {
    status: { state: 'canceled' },
    artifacts: { length: 4 }
  })
  await wait
})

await t.test('the rounds of an id are limited by the number and bytes of references', async t => {
  const { dialect } = startDialect(t, { limits: { referencedBytes: 700_000, advanced: { referencedTasks: 2 } } })
  const artifacts = async (text: string) =>
    (await call(dialect, 'tasks/send', sending('r', text))).artifacts?.map(
      ({ parts }) => (parts[0] as { text: string }).text[0]
    )
  t.strictSame(
    [await artifacts('a'), await artifacts('b'), await artifacts('c'), await artifacts('d')],
    [['a'], ['a', 'b'], ['a', 'b', 'c'], ['b', 'c', 'd']]
  )
  const long = 'x'.repeat(200_000)
  t.strictSame(
    [await artifacts(`e${long}`), await artifacts(`f${long}`)],
    [
      ['c', 'd', 'e'],
      ['d', 'e', 'f']
    ]
  )
  t.strictSame(await artifacts('g'), ['f', 'g'], 'e does not fit')
  let rooms = 0
  const { dialect: large } = startDialect(t, { limits: { advanced: { referencedTasks: 2 } } })
  for (const text of ['a', 'b', 'c']) await call(large, 'tasks/send', sending('r', text + 'x'.repeat(500_000)))
  await call(large, 'tasks/get', { id: 'r' }, { budget: () => void (rooms += 1) })
  t.equal(rooms, 1, 'a large answer waits for its turn')

  const store = memoryStore()
  let removed: string | undefined
  const readTask: Store['readTask'] = async (scope, taskId, options) =>
    taskId === removed ? undefined : store.readTask(scope, taskId, options)
  const { dialect: forgetful } = startDialect(t, { store: { ...store, readTask } })
  for (const text of ['a', 'b', 'c']) removed = beside(await call(forgetful, 'tasks/send', sending('r', text))).follows
  t.equal((await call(forgetful, 'tasks/get', { id: 'r' })).artifacts?.length, 1, 'removed rounds are omitted')
})

await t.test('a message for an ended task opens a new one in its session', async t => {
  const { dialect, runtime } = startDialect(t)
  const first = await call(dialect, 'tasks/send', sending('rabbit', 'draw a rabbit'))
  const second = await call(dialect, 'tasks/send', sending('rabbit', 'make it red'))
  t.strictSame([second.id, second.sessionId], ['rabbit', first.sessionId])
  const [before, after] = [beside(first).taskId, beside(second).taskId]
  t.not(after, before)
  t.equal(beside(second).follows, before)
  const { tasks } = await runtime.listTasks({ contextId: first.sessionId })
  t.strictSame(new Set(tasks.map(({ id }) => id)), new Set([before, after]), 'the first is unchanged')
  t.strictSame(
    (await runtime.getTask({ id: String(after) })).history?.[0]?.referenceTaskIds,
    [before],
    'the new one refers to it'
  )
  const [opening] = await collect(stream(dialect, 'tasks/sendSubscribe', sending('rabbit', 'and blue')))
  t.match(opening, {
    id: 'rabbit',
    status: { state: 'submitted' },
    final: false,
    metadata: { [TASK_OF_01]: { follows: after } }
  })
  t.equal(
    (await call(dialect, 'tasks/send', sending('rabbit', 'hello'))).status.message?.parts[0]?.text,
    'hi',
    'or an answer'
  )
  t.match(await refusal(call(dialect, 'tasks/send', sending('rabbit', 'x', { sessionId: 'elsewhere' }))), {
    code: 'InvalidParams'
  })
})

await t.test('a message for a task that asks is its answer', async t => {
  const { dialect } = startDialect(t)
  const asked = await call(dialect, 'tasks/send', sending('q', 'ask'))
  t.match(asked.status, { state: 'input-required', message: { parts: [{ text: 'Well?' }] } })
  const elsewhere = await rejection(call(dialect, 'tasks/send', sending('q', '42', { sessionId: 'elsewhere' })))
  t.match(elsewhere, {
    code: 'InvalidParams',
    message: 'Invalid parameters: sessionId must be the session of task q, or be left out',
    violations: [{ field: 'sessionId', description: 'must be the session of task q, or be left out' }]
  })
  const { sessionId } = asked
  const done = await call(dialect, 'tasks/send', sending('q', '42', { sessionId }))
  t.match(done, { status: { state: 'completed' }, artifacts: [{ parts: [{ text: 'You said 42.' }] }] })
  t.equal(beside(done).taskId, beside(asked).taskId)
  t.equal((await call(dialect, 'tasks/get', { id: 'q', historyLength: 1 })).history?.length, 1)
  t.equal((await call(dialect, 'tasks/get', { id: 'q', historyLength: 0 })).history, undefined)
  t.equal((await call(dialect, 'tasks/send', sending('r', 'x', { historyLength: 1 }))).history?.length, 1)
})

await t.test('a working task refuses messages, and can be canceled', async t => {
  const { dialect, runtime } = startDialect(t)
  const waiting = call(dialect, 'tasks/send', sending('w', 'wait'))
  await until(async () => (await runtime.listTasks({ status: 'TASK_STATE_WORKING' })).totalSize === 1)
  const taskId = (await runtime.listTasks({})).tasks[0]?.id ?? ''
  const error = await rejection(call(dialect, 'tasks/send', sending('w', 'more')))
  t.match(error, {
    code: 'UnsupportedOperation',
    message: /^Task w is working and does not accept this message/,
    metadata: { taskId: 'w', state: 'working' }
  })
  t.notMatch(JSON.stringify(error), taskId)
  t.match(await call(dialect, 'tasks/cancel', { id: 'w', metadata: { why: 'so' } }), {
    id: 'w',
    status: { state: 'canceled' }
  })
  t.equal((await waiting).status.state, 'canceled')
  t.match(
    await refusal(call(dialect, 'tasks/cancel', { id: (await call(dialect, 'tasks/send', sending('d', 'x'))).id })),
    { code: 'TaskNotCancelable', message: /^Task d has ended \(completed\)/ }
  )
})

await t.test('a stream marks its last event with final: an end or a question', async t => {
  const { dialect, runtime } = startDialect(t)
  const done = await collect(stream(dialect, 'tasks/sendSubscribe', sending('s', 'x')))
  t.strictSame(done.map(briefly), ['submitted', 'working', 'working', 'artifact 0 x', 'completed final'])
  t.ok(done.every(({ id }) => id === 's'))
  t.strictSame([done[3]?.artifact?.lastChunk, done[3]?.artifact?.append], [true, undefined])
  t.strictSame(done[4]?.metadata, { took: 1 })

  t.strictSame((await collect(stream(dialect, 'tasks/sendSubscribe', sending('q', 'twice')))).map(briefly), [
    'submitted',
    'working',
    'artifact 0 1',
    'input-required final'
  ])
  const more = await collect(stream(dialect, 'tasks/sendSubscribe', sending('q', 'yes')))
  t.strictSame([...new Set(more.flatMap(({ artifact }) => artifact?.index ?? []))], [0, 1], 'numbers go on')
  t.strictSame(
    more
      .map(({ final }) => final)
      .filter(final => final !== undefined)
      .at(-1),
    true
  )
  t.match((await call(dialect, 'tasks/get', { id: 'q' })).artifacts, [
    { index: 0, parts: [{ text: '1' }, { text: '!' }] },
    { index: 1 }
  ])

  t.strictSame(
    (await collect(stream(dialect, 'tasks/sendSubscribe', sending('n', 'never')))).map(briefly).at(-1),
    'failed final'
  )
  const login = stream(dialect, 'tasks/sendSubscribe', sending('l', 'login'))
  const opened = await next(login)
  const asked = (await readUntil(login, ({ status }) => status.state === 'input-required')).at(-1)
  t.match(asked, { final: false, metadata: { [TASK_OF_01]: { state: 'auth-required' } } }, 'which is no end')
  await runtime.authorized(beside(opened).taskId ?? '', {})
  t.equal(briefly((await collect(login)).at(-1) as Json), 'completed final')
})

await t.test('a resubscription sends the current task, continues over questions, and ends with the task', async t => {
  const { dialect } = startDialect(t)
  await call(dialect, 'tasks/send', sending('q', 'twice'))
  const events = stream(dialect, 'tasks/resubscribe', { id: 'q', historyLength: 1 })
  t.strictSame([briefly(await next(events)), briefly(await next(events))], ['artifact 0 1', 'input-required'])
  const rest = collect(events)
  await call(dialect, 'tasks/send', sending('q', 'yes'))
  t.strictSame((await rest).map(briefly), ['working', 'artifact 1 2', 'artifact 0+ !', 'completed final'])
  t.strictSame((await collect(stream(dialect, 'tasks/resubscribe', { id: 'q' }))).map(briefly), [
    'artifact 0 1',
    'artifact 1 2',
    'completed final'
  ])
  t.match(await refusal(next(stream(dialect, 'tasks/resubscribe', { id: 'nobody' }))), { code: 'TaskNotFound' })
  const extended: CallContext = { extensions: [RELIABILITY_EXTENSION], conditions: { afterGeneration: 5 } }
  t.strictSame(
    (await collect(stream(dialect, 'tasks/resubscribe', { id: 'q' }, extended))).map(briefly),
    ['working', 'artifact 1 2', 'artifact 0+ !', 'completed final'],
    'from a generation on'
  )
  t.match(
    await refusal(
      next(stream(dialect, 'tasks/resubscribe', { id: 'q' }, { ...extended, conditions: { afterGeneration: 99 } }))
    ),
    { code: 'InvalidParams' }
  )
})

await t.test('an agent without streaming refuses both streams, also for an ended task', async t => {
  const { runtime } = start(t, { work, capabilities: { streaming: false } })
  const dialect = dialect01(runtime)
  t.match(await call(dialect, 'tasks/send', sending('q', 'hi')), { status: { state: 'completed' } })
  t.match(await refusal(next(stream(dialect, 'tasks/sendSubscribe', sending('r', 'hi')))), {
    code: 'UnsupportedOperation'
  })
  t.match(await refusal(next(stream(dialect, 'tasks/resubscribe', { id: 'q' }))), { code: 'UnsupportedOperation' })
})

await t.test('states unknown to 0.1 are mapped to those that require the same of a client', async t => {
  const { dialect } = startDialect(t)
  const refused = await call(dialect, 'tasks/send', sending('n', 'never'))
  t.match(refused, {
    status: { state: 'failed', message: { parts: [{ text: 'Not that.' }] } },
    metadata: { [TASK_OF_01]: { state: 'rejected' } }
  })
  const login = await call(dialect, 'tasks/send', sending('l', 'login'))
  t.match(login, { status: { state: 'input-required' }, metadata: { [TASK_OF_01]: { state: 'auth-required' } } })
  await call(dialect, 'tasks/cancel', { id: 'l' })
})

await t.test('an id belongs to its client: another client has another task by it, or none', async t => {
  const { dialect, runtime } = startDialect(t)
  const [ann, bob, ann2]: CallContext[] = [
    { principal: 'ann' },
    { principal: 'bob' },
    { principal: 'ann', tenant: 'acme' }
  ]
  const hers = await call(dialect, 'tasks/send', sending('t', 'ask'), ann)
  const absent = await refusal(call(dialect, 'tasks/get', { id: 't' }, { principal: 'cyd' }))
  const foreigners = [bob, ann2, {}] as CallContext[]
  for (const foreign of foreigners) {
    for (const name of ['tasks/get', 'tasks/cancel'])
      t.strictSame(await refusal(call(dialect, name, { id: 't' }, foreign)), absent, 'as if there were none')
    t.strictSame(await refusal(next(stream(dialect, 'tasks/resubscribe', { id: 't' }, foreign))), absent)
    t.strictSame(
      await refusal(call(dialect, 'tasks/get', { id: beside(hers).taskId }, foreign)),
      await refusal(runtime.getTask({ id: beside(hers).taskId ?? '' }, foreign))
    )
  }
  t.equal((await call(dialect, 'tasks/send', sending('t', 'his'), bob)).status.state, 'completed')
  t.equal((await call(dialect, 'tasks/send', sending('t', 'hers'), ann2)).status.state, 'completed')
  t.equal(
    (await call(dialect, 'tasks/send', sending(beside(hers).taskId ?? '', 'his'), bob)).status.state,
    'completed',
    "even if it is the runtime's id of another client's task"
  )
  t.equal((await call(dialect, 'tasks/send', sending('t', '42'), ann)).artifacts?.length, 1)
  t.match(await call(dialect, 'tasks/get', { id: 't' }, bob), { history: [{ parts: [{ text: 'his' }] }, {}] })
})

await t.test('a task of another version is addressed by its runtime id permanently', async t => {
  const { dialect, runtime } = startDialect(t)
  const { id } = taskIn(await runtime.sendMessage(say('ask')))
  t.match(await call(dialect, 'tasks/get', { id }), { id, status: { state: 'input-required' }, metadata: undefined })
  const done = await call(dialect, 'tasks/send', sending(id, '42'))
  t.match(done, { id, status: { state: 'completed' } })
  const refused = await rejection(call(dialect, 'tasks/send', sending(id, 'more')))
  t.match(refused, {
    code: 'UnsupportedOperation',
    message: `Task ${id} is completed and takes no more messages. Send the message under an id of your own, with the sessionId of the task.`,
    metadata: { taskId: id, state: 'completed' }
  })
  t.equal(
    (await call(dialect, 'tasks/send', sending('own', 'more', { sessionId: done.sessionId }))).sessionId,
    done.sessionId
  )
  const own = await call(dialect, 'tasks/send', sending('q', 'ask'))
  t.equal(
    textOf(taskIn(await runtime.sendMessage(say('42', { taskId: beside(own).taskId ?? '' }))).artifacts?.[0]),
    'You said 42.',
    'and the other way round'
  )
})

await t.test('ids survive a restart', { skip: NO_SQLITE }, async t => {
  const file = `${t.testdir()}/tasks.db`
  const ann: CallContext = { principal: 'ann' }
  const before = startDialect(t, { store: sqliteStore(file) })
  const asked = await call(before.dialect, 'tasks/send', sending('q', 'ask'), ann)
  const answered = await call(before.dialect, 'tasks/send', sending('talk', 'hello'), ann)
  await call(before.dialect, 'tasks/send', sending('rabbit', 'draw'), ann)
  const red = await call(before.dialect, 'tasks/send', sending('rabbit', 'make it red'), ann)
  await before.runtime.close()

  const { dialect } = startDialect(t, { store: sqliteStore(file) })
  t.strictSame(await call(dialect, 'tasks/get', { id: 'rabbit' }, ann), {
    ...red,
    metadata: { took: 1, [TASK_OF_01]: { taskId: beside(red).taskId } }
  })
  t.strictSame(await call(dialect, 'tasks/get', { id: 'talk' }, ann), answered)
  t.strictSame(await call(dialect, 'tasks/get', { id: 'q' }, ann), asked)
  t.match(await refusal(call(dialect, 'tasks/get', { id: 'q' })), { code: 'TaskNotFound' })
  t.match(await call(dialect, 'tasks/send', sending('q', '42'), ann), {
    id: 'q',
    sessionId: asked.sessionId,
    artifacts: [{ parts: [{ text: 'You said 42.' }] }]
  })
  t.equal(beside(await call(dialect, 'tasks/send', sending('rabbit', 'and blue'), ann)).follows, beside(red).taskId)
})

await t.test('the first of two messages with one new id opens the task for both', async t => {
  const { dialect, runtime } = startDialect(t)
  const [first, second] = [
    call(dialect, 'tasks/send', sending('w', 'wait')),
    refusal(call(dialect, 'tasks/send', sending('w', 'wait')))
  ]
  t.match(await second, { code: 'UnsupportedOperation' })
  t.equal((await runtime.listTasks({})).totalSize, 1)
  await call(dialect, 'tasks/cancel', { id: 'w' })
  t.equal((await first).status.state, 'canceled')
})

await t.test('a message for a task that ends meanwhile opens another one', async t => {
  const store = memoryStore()
  const reads: (() => Promise<void>)[] = []
  const readTask: Store['readTask'] = async (...asked) => {
    const found = await store.readTask(...asked)
    await reads.shift()?.()
    return found
  }
  const { dialect, runtime } = startDialect(t, { store: { ...store, readTask } })
  const asked = await call(dialect, 'tasks/send', sending('q', 'ask'))
  const { taskId = '' } = beside(asked)
  reads.push(async () => void (await runtime.cancelTask({ id: taskId })))
  const done = await call(dialect, 'tasks/send', sending('q', 'draw'))
  t.match(done, { id: 'q', sessionId: asked.sessionId, status: { state: 'completed' } })
  t.equal(beside(done).follows, taskId)

  const held = deferred()
  held.promise.catch(() => {})
  await call(dialect, 'tasks/send', sending('r', 'ask'))
  reads.push(
    async () => held.reject(new A2AError('Overloaded')),
    () => held.promise
  )
  t.match(
    await refusal(call(dialect, 'tasks/send', sending('r', 'draw'))),
    { code: 'Overloaded' },
    'other errors are reported'
  )
})

await t.test('an id expires after its limit, or with its task', async t => {
  const { dialect, clock, runtime } = startDialect(
    t,
    { retention: { endedTasksMs: 500, sweepEveryMs: 100 } },
    { idsRememberedMs: 1000 }
  )
  await call(dialect, 'tasks/send', sending('q', 'ask'))
  clock.increment(600)
  t.equal((await call(dialect, 'tasks/send', sending('q', '42'))).status.state, 'completed')
  clock.increment(550)
  await rest()
  clock.increment(100)
  await until(async () => (await runtime.listTasks({})).totalSize === 0)
  t.match(
    await refusal(call(dialect, 'tasks/get', { id: 'q' })),
    { code: 'TaskNotFound', message: 'Task q was not found.', metadata: { taskId: 'q' } },
    'remembered again from its last message'
  )
  const anew = await call(dialect, 'tasks/send', sending('q', 'ask'))
  t.notOk('follows' in beside(anew), 'a removed task has no successor')
  clock.increment(1001)
  t.match(await refusal(call(dialect, 'tasks/get', { id: 'q' })), { code: 'TaskNotFound' })
  t.equal(
    (await runtime.getTask({ id: beside(anew).taskId ?? '' })).status.state,
    'TASK_STATE_INPUT_REQUIRED',
    "it is found by the runtime's id"
  )
})

await t.test('how long ids are remembered is a number of milliseconds above 0', t => {
  const { runtime } = start(t, { work })
  for (const idsRememberedMs of [0, -1, NaN, Infinity])
    t.throws(() => dialect01(runtime, { idsRememberedMs }), {
      name: 'RangeError',
      message: /^idsRememberedMs has to be/
    })
  t.end()
})

await t.test('an erased task has no id any more', async t => {
  const { dialect, runtime } = startDialect(t)
  await call(dialect, 'tasks/send', sending('q', 'ask'))
  await call(dialect, 'tasks/send', sending('talk', 'hello'))
  await runtime.erase({ principal: 'anonymous' })
  for (const id of ['q', 'talk']) t.match(await refusal(call(dialect, 'tasks/get', { id })), { code: 'TaskNotFound' })
})

await t.test('an aborted call rejects with the reason of its signal', async t => {
  const { dialect, runtime } = startDialect(t)
  const given = new AbortController()
  const waiting = call(dialect, 'tasks/send', sending('w', 'wait'), { signal: given.signal })
  await until(async () => (await runtime.listTasks({ status: 'TASK_STATE_WORKING' })).totalSize === 1)
  const reason = new Error('gone')
  given.abort(reason)
  t.equal(await rejection(waiting), reason)
  await call(dialect, 'tasks/cancel', { id: 'w' })
  await rest()
})

/** `levels` objects inside each other. */
const deep = (levels: number): object => JSON.parse(`${'{"a":'.repeat(levels)}{}${'}'.repeat(levels)}`)

await t.test('invalid input is refused by field, and opens no task', async t => {
  const { dialect, runtime } = startDialect(t)
  const part = (value: unknown) => ({ id: 'x', message: { role: 'user', parts: [value] } })
  const said = (more: object) => ({ id: 'x', message: { role: 'user', parts: [{ type: 'text', text: 'x' }], ...more } })
  const { message } = said({})
  const rows: [unknown, string][] = [
    [undefined, 'params'],
    [null, 'params'],
    ['x', 'params'],
    [[], 'params'],
    [{}, 'id'],
    [{ id: 'x' }, 'message'],
    [{ message }, 'id'],
    [{ id: '', message }, 'id'],
    [{ id: 5, message }, 'id'],
    [{ id: 'a\0b', message }, 'id'],
    [{ id: 'x'.repeat(129), message }, 'id'],
    [{ id: 'x', sessionId: {}, message }, 'sessionId'],
    [{ id: 'x', sessionId: 'a\nb', message }, 'sessionId'],
    [{ id: 'x', message: 'x' }, 'message'],
    [said({ role: undefined }), 'message.role'],
    [said({ role: 'agent' }), 'message.role'],
    [said({ role: 'ROLE_USER' }), 'message.role'],
    [said({ parts: undefined }), 'message.parts'],
    [said({ parts: 'x' }), 'message.parts'],
    [said({ parts: [] }), 'message.parts'],
    [said({ metadata: [] }), 'message.metadata'],
    [part(5), 'message.parts[0]'],
    [part(null), 'message.parts[0]'],
    [part({}), 'message.parts[0]'],
    [part({ type: 'text' }), 'message.parts[0]'],
    [part({ type: 5, text: 'x' }), 'message.parts[0].type'],
    [part({ type: 'other', text: 'x' }), 'message.parts[0].type'],
    [part({ type: 'text', text: 5 }), 'message.parts[0].text'],
    [part({ type: 'text', data: {} }), 'message.parts[0].text'],
    [part({ type: 'file', file: {} }), 'message.parts[0].file'],
    [part({ type: 'file', file: { bytes: '!' } }), 'message.parts[0].file.bytes'],
    [part({ type: 'file', file: { bytes: 'aGk=', uri: 'x:y' } }), 'message.parts[0].file'],
    [part({ type: 'data', data: 5 }), 'message.parts[0].data'],
    [part({ type: 'text', text: 'x', metadata: 'x' }), 'message.parts[0].metadata'],
    [part({ type: 'text', text: 'x'.repeat(600_000) }), 'params.message'],
    [part({ type: 'text', text: '\ud83d' }), 'params.message.parts[0].text'],
    [part({ type: 'data', data: { x: Infinity } }), 'params.message.parts[0].data.x'],
    [{ ...said({}), metadata: { x: Array.from({ length: 200_001 }, () => 0) } }, 'params.metadata.x'],
    [{ ...said({}), historyLength: -1 }, 'historyLength'],
    [{ ...said({}), historyLength: 1.5 }, 'historyLength'],
    [{ ...said({}), metadata: 5 }, 'metadata'],
    [{ ...said({}), metadata: deep(100) }, 'params.metadata'],
    [{ ...said({}), metadata: deep(50_000) }, 'params.metadata'],
    [JSON.parse('{"id":"x","message":{"metadata":{"__proto__":1}}}'), 'params.message.metadata'],
    [{ ...said({}), pushNotification: {} }, 'pushNotification.url'],
    [
      { ...said({}), pushNotification: { url: 'https://x', authentication: {} } },
      'pushNotification.authentication.schemes'
    ],
    [
      { ...said({}), pushNotification: { url: 'https://x', authentication: { schemes: [] } } },
      'pushNotification.authentication.schemes'
    ]
  ]
  for (const [params, field] of rows) {
    for (const answer of [call(dialect, 'tasks/send', params), stream(dialect, 'tasks/sendSubscribe', params).next()]) {
      const error = await rejection(answer)
      if (!isA2AError(error)) throw error
      t.equal(error.code, 'InvalidParams', field)
      t.ok(
        error.violations.some(violation => violation.field.startsWith(field)),
        `${field} is named in ${JSON.stringify(error.violations)}`
      )
    }
  }
  for (const name of ['tasks/get', 'tasks/cancel', 'tasks/pushNotification/get', 'tasks/pushNotification/set']) {
    for (const params of [undefined, {}, { id: 5 }, { id: '' }])
      t.match(await rejection(call(dialect, name, params)), { code: 'InvalidParams' }, name)
  }
  t.match(await rejection(call(dialect, 'tasks/get', { id: 'x', historyLength: 'many' })), {
    violations: [{ field: 'historyLength' }]
  })
  t.match(await rejection(stream(dialect, 'tasks/resubscribe', {}).next()), { violations: [{ field: 'id' }] })
  t.match(
    await rejection(
      call(dialect, 'tasks/send', part({ type: 'file', file: { bytes: 'aGk=', mimeType: 'image/tiff' } }))
    ),
    { code: 'ContentTypeNotSupported' }
  )
  t.equal((await runtime.listTasks({})).totalSize, 0)
  t.equal(({} as { polluted?: unknown }).polluted, undefined)
})

await t.test('bytes may be long', async t => {
  const { dialect } = startDialect(t)
  const bytes = Buffer.alloc(600_000).toString('base64')
  const parts = [
    { type: 'text', text: 'x' },
    { type: 'file', file: { bytes, mimeType: 'application/octet-stream' } }
  ]
  t.match((await call(dialect, 'tasks/send', { id: 'x', message: { role: 'user', parts } })).artifacts?.[0]?.parts[1], {
    file: { bytes }
  })
})

await t.test('the methods are those of 0.1', t => {
  const { method, version, rest } = startDialect(t).dialect
  t.strictSame([version, rest], ['0.1', undefined])
  for (const name of [
    'tasks/send',
    'tasks/get',
    'tasks/cancel',
    'tasks/pushNotification/set',
    'tasks/pushNotification/get'
  ])
    t.match(method(name), { streaming: false })
  for (const name of ['tasks/sendSubscribe', 'tasks/resubscribe']) t.match(method(name), { streaming: true })
  for (const name of ['SendMessage', 'message/send', 'tasks/pushNotificationConfig/set', 'constructor', ''])
    t.equal(method(name), undefined)
  t.end()
})

await t.test('webhooks are refused with the error of 0.1 if the agent has none', async t => {
  const { dialect, runtime } = startDialect(t)
  const pushNotificationConfig = { url: 'https://example.com/' }
  t.match(await refusal(call(dialect, 'tasks/pushNotification/set', { id: 't', pushNotificationConfig })), {
    code: 'PushNotificationNotSupported'
  })
  t.match(await refusal(call(dialect, 'tasks/pushNotification/get', { id: 't' })), {
    code: 'PushNotificationNotSupported'
  })
  t.match(await refusal(call(dialect, 'tasks/send', sending('t', 'x', { pushNotification: pushNotificationConfig }))), {
    code: 'PushNotificationNotSupported'
  })
  t.equal((await runtime.listTasks({})).totalSize, 0)
})

await t.test('a task has one webhook in the form of 0.1 if the agent supports webhooks', async t => {
  const { runtime } = startDialect(t)
  const { taskId = '' } = beside(await call(dialect01(runtime), 'tasks/send', sending('t', 'ask')))
  const asked: unknown[] = []
  const answering = (answer: unknown) => async (params: unknown) => (asked.push(params), answer)
  const config = {
    taskId,
    id: '0.1/t',
    url: 'https://example.com/',
    token: 's',
    authentication: { scheme: 'Bearer', credentials: 'c' }
  }
  const pushing = (stored: object) =>
    dialect01({
      ...runtime,
      createTaskPushNotificationConfig: answering(stored),
      getTaskPushNotificationConfig: answering(stored),
      sendMessage: answering({ message: { parts: [] } })
    } as unknown as Runtime)
  const config01 = {
    id: 't',
    pushNotificationConfig: {
      url: 'https://example.com/',
      token: 's',
      authentication: { schemes: ['Bearer'], credentials: 'c' }
    }
  }
  const plain01 = { id: 't', pushNotificationConfig: { url: 'https://example.com/' } }

  t.strictSame(await call(pushing(config), 'tasks/pushNotification/set', config01), config01)
  t.strictSame(await call(pushing(config), 'tasks/pushNotification/get', { id: 't' }), config01)
  const plain = { taskId, id: '0.1/t', url: 'https://example.com/' }
  t.strictSame(
    await call(pushing(plain), 'tasks/pushNotification/set', {
      ...plain01,
      pushNotificationConfig: { ...plain01.pushNotificationConfig, authentication: { schemes: ['Basic', 'Bearer'] } }
    }),
    plain01
  )
  t.strictSame(await call(pushing(plain), 'tasks/pushNotification/set', plain01), plain01)
  await call(pushing(plain), 'tasks/send', sending('t', 'x', { pushNotification: plain01.pushNotificationConfig }))
  t.strictSame(asked.slice(0, -1), [
    config,
    { taskId, id: '0.1/t' },
    { ...plain, authentication: { scheme: 'Basic' } },
    plain
  ])
  t.match(asked.at(-1), { configuration: { taskPushNotificationConfig: { url: 'https://example.com/' } } })
  await call(dialect01(runtime), 'tasks/send', sending('talk', 'hello'))
  await call(pushing(plain), 'tasks/pushNotification/get', { id: 'talk' })
  t.match(asked.at(-1), { taskId: 'talk' }, 'an answer is no task of the runtime')
})

await t.test("a webhook receives the task in the form of 0.1, with the client's id", async t => {
  const posts: WebhookPost[] = []
  const push = {
    faultOf: async () => undefined,
    post: async (post: WebhookPost) => (posts.push(post), { status: 200 })
  }
  const { dialect, runtime } = startDialect(t, { push })
  await call(
    dialect,
    'tasks/send',
    sending('t', 'ask', { pushNotification: { url: 'https://example.com/', token: 's' } })
  )
  const bodies = await until(async () => posts.length >= 3 && posts.map(({ body }) => JSON.parse(body)), 'three posts')
  t.match(bodies, [
    { id: 't', status: { state: 'submitted' } },
    { id: 't', status: { state: 'working' } },
    { id: 't', status: { state: 'input-required', message: { role: 'agent', parts: [{ type: 'text' }] } } }
  ])
  t.match(posts[0]?.headers, { 'Content-Type': 'application/json', 'X-A2A-Notification-Token': 's' })
  t.match(await call(dialect, 'tasks/pushNotification/get', { id: 't' }), {
    id: 't',
    pushNotificationConfig: { url: 'https://example.com/' }
  })
  t.equal((await runtime.listTasks({})).totalSize, 1)

  await call(dialect, 'tasks/send', sending('t', '42'))
  await call(dialect, 'tasks/send', sending('t', 'x', { pushNotification: { url: 'https://example.com/' } }))
  const last = await until(
    async () =>
      posts
        .map(({ body }) => JSON.parse(body) as Json)
        .find(({ metadata, status }) => metadata && 'took' in metadata && status.state === 'completed'),
    'the end of the second round'
  )
  t.match(last, await call(dialect, 'tasks/get', { id: 't' }), 'with its earlier rounds')
  t.equal(last.artifacts?.length, 2)

  const { id } = taskIn(await runtime.sendMessage(say('ask', { referenceTaskIds: [beside(last).taskId ?? ''] })))
  await call(dialect, 'tasks/pushNotification/set', { id, pushNotificationConfig: { url: 'https://example.com/' } })
  await call(dialect, 'tasks/send', sending(id, '42'))
  const unnamed = await until(
    async () =>
      posts
        .map(({ body }) => JSON.parse(body) as Json)
        .find(task => task.id === id && task.status.state === 'completed'),
    'its end'
  )
  t.equal(unnamed.artifacts?.length, 1, "one addressed by the runtime's id has no earlier rounds")
})

await t.test('errors unknown to 0.1 are mapped to its own', async t => {
  const { runtime } = startDialect(t)
  const rows: [ErrorCode, ErrorCode][] = [
    ['InvalidAgentResponse', 'InternalError'],
    ['ExtensionSupportRequired', 'InvalidRequest'],
    ['TaskGenerationMismatch', 'UnsupportedOperation'],
    ['TaskNotFound', 'TaskNotFound'],
    ['ContentTypeNotSupported', 'ContentTypeNotSupported'],
    ['RateLimited', 'RateLimited']
  ]
  for (const [thrown, told] of rows) {
    const getTask = () => Promise.reject(new A2AError(thrown, 'Words.', { retryAfterMs: 5 }))
    t.match(
      await rejection(call(dialect01({ ...runtime, getTask }), 'tasks/get', { id: 'x' })),
      { code: told, message: 'Words.', retryAfterMs: 5 },
      thrown
    )
  }
})

/** Words of 1.0 that a client of 0.1 does not know. */
const WORDS_OF_10 =
  /TASK_STATE_|ROLE_|taskPushNotificationConfig|contextId|returnImmediately|\b(?:Send|Get|Cancel|Subscribe|List|Create)[A-Z]/

await t.test('errors are in the words of 0.1: its states, methods and members', async t => {
  const push = { faultOf: async () => 'must not be that one', post: async () => ({ status: 200 }) }
  const { dialect } = startDialect(t, { push })
  const mute = dialect01(start(t, { work, capabilities: { streaming: false } }).runtime)
  await call(dialect, 'tasks/send', sending('d', 'x'))
  const pushNotificationConfig = { url: 'https://example.com/' }
  const rows: [() => Promise<unknown>, object][] = [
    [
      () => call(dialect, 'tasks/cancel', { id: 'd' }),
      { message: 'Task d has ended (completed) and cannot be canceled.', metadata: { state: 'completed' } }
    ],
    [
      () => call(dialect, 'tasks/send', sending('e', 'x', { pushNotification: pushNotificationConfig })),
      {
        message: 'Invalid parameters: pushNotification.url must not be that one',
        violations: [{ field: 'pushNotification.url' }]
      }
    ],
    [
      () =>
        call(
          dialect,
          'tasks/send',
          sending('e', 'x', { pushNotification: { ...pushNotificationConfig, authentication: { schemes: ['B C'] } } })
        ),
      { violations: [{ field: 'pushNotification.authentication.schemes' }] }
    ],
    [
      () => call(dialect, 'tasks/pushNotification/set', { id: 'd', pushNotificationConfig }),
      {
        message: 'Invalid parameters: pushNotificationConfig.url must not be that one',
        violations: [{ field: 'pushNotificationConfig.url' }]
      }
    ],
    [
      () => call(mute, 'tasks/send', sending('e', 'x', { pushNotification: pushNotificationConfig })),
      { code: 'PushNotificationNotSupported', message: /Leave pushNotification out/ }
    ],
    [
      () => stream(mute, 'tasks/sendSubscribe', sending('e', 'x')).next(),
      {
        code: 'UnsupportedOperation',
        message: 'This agent does not stream. Send the message with tasks/send, and read the task with tasks/get.'
      }
    ],
    [
      () => call(mute, 'tasks/pushNotification/get', { id: 'd' }),
      { code: 'PushNotificationNotSupported', message: /tasks\/get\.$/ }
    ]
  ]
  for (const [ask, expected] of rows) {
    const error = await rejection(ask())
    t.match(error, expected)
    t.notMatch(`${String(error)} ${JSON.stringify(error)}`, WORDS_OF_10)
  }
})

await t.test('a card has the form of 0.1', t => {
  const { dialect, runtime } = startDialect(t)
  const interfaces = ['1.0', '0.1'].flatMap(protocolVersion => [
    { url: `ws://agent/${protocolVersion}`, protocolBinding: 'urn:x', protocolVersion },
    { url: `http://agent/${protocolVersion}`, protocolBinding: 'JSONRPC', protocolVersion }
  ])
  const card: AgentCard = {
    ...runtime.agentCard(interfaces),
    documentationUrl: 'https://docs',
    provider: { organization: 'O', url: 'https://o' },
    skills: [
      {
        id: 's',
        name: 'S',
        description: 'D',
        tags: ['t'],
        examples: ['e'],
        inputModes: ['text/plain'],
        outputModes: ['image/png'],
        securityRequirements: [{}]
      },
      { id: 'p', name: 'P', description: '', tags: [] }
    ],
    securitySchemes: {
      key: { apiKeySecurityScheme: { location: 'header', name: 'X-Key' } },
      http: { httpAuthSecurityScheme: { scheme: 'Bearer' } },
      again: { httpAuthSecurityScheme: { scheme: 'Bearer' } },
      oidc: { openIdConnectSecurityScheme: { openIdConnectUrl: 'https://id/' } },
      mtls: { mtlsSecurityScheme: {} },
      oauth: { oauth2SecurityScheme: { flows: { clientCredentials: { tokenUrl: 'https://id/', scopes: {} } } } }
    },
    signatures: [{ protected: 'p', signature: 's' }]
  }
  t.strictSame(dialect.card(card), {
    name: 'Legacy',
    description: card.description,
    url: 'http://agent/0.1',
    provider: { organization: 'O', url: 'https://o' },
    version: card.version,
    documentationUrl: 'https://docs',
    capabilities: { streaming: true, pushNotifications: false, stateTransitionHistory: false },
    authentication: { schemes: ['apiKey', 'Bearer', 'openIdConnect', 'mutualTLS', 'oauth2'] },
    defaultInputModes: card.defaultInputModes,
    defaultOutputModes: card.defaultOutputModes,
    skills: [
      {
        id: 's',
        name: 'S',
        description: 'D',
        tags: ['t'],
        examples: ['e'],
        inputModes: ['text/plain'],
        outputModes: ['image/png']
      },
      { id: 'p', name: 'P', description: '', tags: [] }
    ]
  })
  t.match(dialect.card({ ...card, supportedInterfaces: interfaces.slice(0, 2) }), { url: 'http://agent/1.0' })
  t.match(dialect.card({ ...card, supportedInterfaces: interfaces.slice(0, 1) }), { url: 'ws://agent/1.0' })
  const bare = dialect.card({ ...runtime.agentCard([]), capabilities: {} }) as object
  t.match(bare, { capabilities: { streaming: false } })
  for (const member of ['url', 'authentication', 'provider', 'documentationUrl']) t.notOk(member in bare, member)
  t.end()
})

await t.test("an id of another dialect's task, or an invalid id, is not claimed", async t => {
  const { dialect } = startDialect(t)
  await call(dialect, 'tasks/send', sending('t', 'x'))
  await call(dialect, 'tasks/send', sending('talk', 'hello'))
  for (const [params, isOurs] of [
    [{ id: 't' }, true],
    [{ id: 'talk' }, true],
    [{ id: 'nobody' }, false],
    [{ id: 5 }, false],
    [undefined, false]
  ] as const) {
    t.equal(await dialect.claims?.(params, { version: '' }), isOurs)
  }
  t.equal(await dialect.claims?.({ id: 't' }, { principal: 'bob' }), false)
})

await t.test('a repeated message is processed again, since messages of 0.1 have no ids', async t => {
  const { dialect, runtime } = startDialect(t, { deduplicate: true })
  for (const _ of [1, 2]) await call(dialect, 'tasks/send', sending('t', 'x'))
  t.equal((await runtime.listTasks({})).totalSize, 2)
  await reaches(runtime, beside(await call(dialect, 'tasks/get', { id: 't' })).taskId ?? '', 'completed')
})
