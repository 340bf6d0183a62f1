import * as sdk from '@a2a-js/sdk'
import { LegacyRestTransport } from '@a2a-js/sdk/compat/v0_3/client'
import t, { type Test } from 'tap'
import { dialect03 } from '../../../adapters/legacy/index.ts'
import { BARE } from '../../../adapters/legacy/v03-requests.ts'
import { writeWebhook03 } from '../../../adapters/legacy/v03.ts'
import type { Dialect, RestCall } from '../../../adapters/json-rpc/dispatch.ts'
import { toError03 } from '../../../adapters/legacy/errors.ts'
import { A2AError, ERRORS, isA2AError } from '../../../machines/protocol/errors.ts'
import type { AgentCard } from '../../../machines/protocol/card.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import {
  accepted,
  artifact,
  authRequired,
  data,
  inputRequired,
  progress,
  reply,
  text,
  type CallContext,
  type Runtime,
  type WorkFunction,
  type WorkGenerator
} from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { WebhookPost } from '../../../runtime/ports/webhook-sender.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { largeGenerations } from '../../fixtures/protocol/bad-input.ts'
import { callDialect, streamDialect } from '../../fixtures/servers/dialect-calls.ts'
import {
  collect,
  next,
  reaches,
  refusal,
  rejection,
  rest,
  start,
  stateName,
  taskIn,
  textOf,
  until
} from '../../fixtures/runtime/runtime-helpers.ts'
import { type ServedRuntime } from '../../../runtime/runtime-options.ts'

/** Hands over one of each part; asks for input or an authorization when it is told to. */
const work: WorkFunction = async ({ message, emit, ask }) => {
  const [first] = message.parts
  const text = first && 'text' in first ? first.text : ''
  if (text === 'ask') return { message: `You said ${textOf(await ask(inputRequired('Well?')))}.` }
  if (text === 'login') await ask(authRequired('Who are you?'))
  emit(progress('working on it'))
  emit(
    artifact(
      {
        artifactId: 'a',
        name: 'all.txt',
        parts: [
          { text },
          ...message.parts.slice(1),
          { url: 'https://example.com/x', filename: 'x', mediaType: 'text/html' },
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

function startDialect(
  t: Test,
  options: Parameters<typeof start>[2] = {},
  works: WorkFunction | WorkGenerator = work
): { runtime: ServedRuntime; dialect: Dialect } {
  const negotiate = ({ message }: { message: Parameters<typeof textOf>[0] }) =>
    textOf(message) === 'hello' ? reply('hi') : accepted()
  const { runtime } = start(
    t,
    {
      card: { name: 'Legacy', defaultInputModes: ['text/plain', 'application/octet-stream', 'application/json'] },
      work: works,
      negotiate
    },
    options
  )
  return { runtime, dialect: dialect03(runtime) }
}

let messages = 0

function message(text: string, more: object = {}) {
  return { kind: 'message', messageId: `l-${(messages += 1)}`, role: 'user', parts: [{ kind: 'text', text }], ...more }
}

/** What is read of the objects of 0.3. */
interface Json {
  readonly kind?: string
  readonly id: string
  readonly contextId: string
  readonly final?: boolean
  readonly status?: { readonly state: string }
  readonly history?: unknown[]
  readonly artifacts?: { readonly parts: { readonly file?: { readonly bytes?: string } }[] }[]
  readonly metadata?: object
  readonly task?: Json
}

const call = callDialect<Json>
const stream = streamDialect<Json>

const briefly = ({ kind, status, final }: Json) =>
  [kind, ...(status ? [status.state] : []), ...(final === undefined ? [] : [final])].join(' ')

await t.test('a message opens a task, which has the form of 0.3', async t => {
  const { dialect } = startDialect(t)
  const parts = [
    { kind: 'text', text: '' },
    { kind: 'file', file: { bytes: 'aGk=', name: 'hi', mimeType: 'application/octet-stream' } },
    { kind: 'data', data: { b: 2 }, metadata: { c: 3 } }
  ]
  const task = await call(dialect, 'message/send', { message: message('', { parts }) })
  t.match(task, {
    kind: 'task',
    status: {
      state: 'completed',
      message: { kind: 'message', role: 'agent', parts: [{ kind: 'text', text: 'done' }] }
    },
    history: [{ kind: 'message', role: 'user', parts }, {}],
    metadata: { took: 1 }
  })
  t.same(task.artifacts, [
    {
      artifactId: 'a',
      name: 'all.txt',
      parts: [
        ...parts,
        { kind: 'file', file: { uri: 'https://example.com/x', mimeType: 'text/html', name: 'x' } },
        { kind: 'data', data: { value: null }, metadata: { data_part_compat: true } },
        { kind: 'data', data: { value: [1] }, metadata: { data_part_compat: true } },
        { kind: 'data', data: { a: 1 } }
      ]
    }
  ])
})

await t.test('wrapped data is unwrapped', async t => {
  const { dialect, runtime } = startDialect(t)
  const parts = [
    { kind: 'text', text: 'x' },
    { kind: 'data', data: { value: [1] }, metadata: { data_part_compat: true } }
  ]
  const { id } = await call(dialect, 'message/send', { message: message('', { parts }) })
  t.strictSame((await runtime.getTask({ id: id })).history?.[0]?.parts, [{ text: 'x' }, { data: [1] }])
})

await t.test('a part without a kind is recognized by its content', async t => {
  const { dialect, runtime } = startDialect(t)
  const parts = [{ text: 'x' }, { file: { bytes: 'aGk=', mimeType: 'text/plain' } }, { data: { a: 1 } }]
  const { id, history } = await call(dialect, 'message.send', { message: message('', { parts }) })
  t.match(history?.[0], {
    parts: [
      { kind: 'text', text: 'x' },
      { kind: 'file', file: { bytes: 'aGk=' } },
      { kind: 'data', data: { a: 1 } }
    ]
  })
  t.strictSame((await runtime.getTask({ id })).history?.[0]?.parts, [
    { text: 'x' },
    { raw: 'aGk=', mediaType: 'text/plain' },
    { data: { a: 1 } }
  ])
})

/** A message in the form of the drafts after 0.3. */
const bareMessage = (...parts: object[]) => ({ messageId: `l-${(messages += 1)}`, role: 'user', parts })

await t.test('a message without kinds is answered without kinds, and with files in that form', async t => {
  const { dialect, runtime } = startDialect(t)
  const files = [
    { name: 'a', mediaType: 'text/plain', fileWithBytes: 'aGk=' },
    { mediaType: 'text/plain', fileWithUri: 'https://example.com/a' },
    { bytes: 'aGk=', mimeType: 'text/plain' }
  ]
  const parts = [
    { text: 'x' },
    ...files.map(file => ({ file })),
    { data: { kind: 'mine', status: { kind: 'his' } }, metadata: { kind: 'theirs' } }
  ]
  const answer = await call(dialect, 'message.send', { message: bareMessage(...parts) })
  const given = [...parts.slice(0, 3), { file: { mediaType: 'text/plain', fileWithBytes: 'aGk=' } }, ...parts.slice(4)]
  t.match(answer, {
    status: { state: 'completed', message: { role: 'agent', parts: [{ text: 'done' }] } },
    history: [{ role: 'user', parts: given }, {}]
  })
  t.strictSame(answer.artifacts?.[0]?.parts, [
    ...given,
    { file: { name: 'x', mediaType: 'text/html', fileWithUri: 'https://example.com/x' } },
    { data: { value: null }, metadata: { data_part_compat: true } },
    { data: { value: [1] }, metadata: { data_part_compat: true } },
    { data: { a: 1 } }
  ])
  t.notMatch(JSON.stringify(answer).replaceAll(/"kind":"(?:mine|his|theirs)"/g, ''), '"kind"')
  t.match((await runtime.getTask({ id: answer.id })).history?.[0]?.parts, [
    { text: 'x' },
    { raw: 'aGk=', filename: 'a', mediaType: 'text/plain' },
    { url: 'https://example.com/a' },
    { raw: 'aGk=' },
    {}
  ])
  t.match(await call(dialect, 'message/send', { message: bareMessage({ text: 'hello' }) }), {
    role: 'agent',
    parts: [{ text: 'hi' }],
    kind: undefined
  })
  t.match(
    await dataOf(dialect, 'POST', '/v1/message:send', { message: bareMessage({ text: 'x' }) }),
    { kind: undefined, status: { state: 'completed' } },
    'also by REST'
  )
  for (const [kind, message] of [
    ['message', { ...bareMessage({ text: 'x' }), kind: 'message' }],
    ['part', bareMessage({ kind: 'text', text: 'x' }, { data: {} })]
  ] as const) {
    t.match(
      await call(dialect, 'message.send', { message }),
      { kind: 'task', artifacts: [{ parts: [{ kind: 'text' }] }] },
      `with the kind of a ${kind} it is 0.3`
    )
  }
})

await t.test('a stream without kinds follows its message; other requests follow their spelling', async t => {
  const { dialect } = startDialect(t)
  const events = await collect(stream(dialect, 'message/stream', { message: bareMessage({ text: 'x' }) }))
  const [opened] = events
  t.match(events, [
    { status: { state: 'submitted' } },
    { status: { state: 'working' }, final: false },
    {},
    { artifact: { artifactId: 'a' } },
    { status: { state: 'completed' }, final: true }
  ])
  t.notMatch(JSON.stringify(events), '"kind"')
  const id = opened?.id
  t.match(await call(dialect, 'tasks.get', { id }), {
    id,
    kind: undefined,
    history: [{ kind: undefined, parts: [{ kind: undefined, text: 'x' }] }]
  })
  t.match(await call(dialect, 'tasks/get', { id }), {
    id,
    kind: 'task',
    history: [{ kind: 'message', parts: [{ kind: 'text' }] }]
  })
  t.match(await collect(stream(dialect, 'tasks.resubscribe', { id })), [{ id, kind: undefined }])
  t.match(await refusal(call(dialect, 'tasks.cancel', { id })), { code: 'TaskNotCancelable' })
  t.match(await refusal(call(dialect, 'message.send', {})), { code: 'InvalidParams' })
  t.match(
    await rejection(
      call(dialect, 'message.send', {
        message: bareMessage({ file: { fileWithBytes: 'aGk=', mimeType: 'a/b', mediaType: 'a/b' } })
      })
    ),
    { violations: [{ field: 'message.parts[0].file.mediaType', description: 'must not also be given as mimeType' }] }
  )
})

await t.test('a webhook receives the task in the form of the request that registered it', async t => {
  const posts: WebhookPost[] = []
  const push = {
    faultOf: async () => undefined,
    post: async (post: WebhookPost) => (posts.push(post), { status: 200 })
  }
  const { dialect } = startDialect(t, { push })
  const told = async (message: object) => {
    const { id } = await call(dialect, 'message/send', {
      message,
      configuration: { pushNotificationConfig: { url: 'https://example.com/' } }
    })
    return until(
      async () =>
        posts
          .map(({ body }) => JSON.parse(body) as Json)
          .find(task => task.id === id && task.status?.state === 'completed'),
      'the end of the task is posted'
    )
  }
  t.match(await told(message('x')), { kind: 'task', history: [{ kind: 'message' }] })
  const bare = await told(bareMessage({ text: 'x' }))
  t.match(bare, {
    artifacts: [
      { parts: [{ text: 'x' }, { file: { name: 'x', mediaType: 'text/html', fileWithUri: 'https://example.com/x' } }] }
    ]
  })
  t.notMatch(JSON.stringify(bare), '"kind"')
})

await t.test('a stored webhook has the form of its request before the first call of 0.3', t => {
  const status = { state: 'TASK_STATE_COMPLETED' } as const
  const update = { statusUpdate: { taskId: 't', contextId: 'c', status } }
  const task = { id: 't', contextId: 'c', status }
  t.match(JSON.parse(writeWebhook03('0.3', update, task).text), { kind: 'task', id: 't' })
  t.notMatch(writeWebhook03(BARE, update, task).text, '"kind"')
  t.end()
})

await t.test('a webhook of a large task receives it as it was, read in pieces', async t => {
  const posts: string[] = []
  const push = {
    faultOf: async () => undefined,
    post: async ({ body }: WebhookPost) => (posts.push(body), { status: 200 })
  }
  const inner = memoryStore()
  let longest = 0
  const store: Store = {
    ...inner,
    readEvents: async (...args) => {
      const events = await inner.readEvents(...args)
      longest = Math.max(longest, JSON.stringify(events).length)
      return events
    }
  }
  const { dialect } = startDialect(t, { push, store }, async function* () {
    for (let i = 0; i < 150; i += 1)
      yield artifact({ artifactId: 'a', parts: [text('x'.repeat(10_000))] }, { append: i > 0 })
    yield progress('nearly')
  })
  await call(dialect, 'message/send', {
    message: message('x'),
    configuration: { pushNotificationConfig: { url: 'https://example.com/' } }
  })
  await until(async () => posts.some(body => body.includes('"completed"')), 'the end of the task is posted')
  const nearly = posts.find(body => body.includes('nearly') && !body.includes('"completed"')) ?? ''
  t.equal((JSON.parse(nearly) as Json).artifacts?.[0]?.parts.length, 150)
  // A stream that is behind reads 1 MiB at once.
  t.ok(longest < 1_200_000, `${longest} characters`)
})

await t.test('a message waits for its task by default', async t => {
  const { dialect } = startDialect(t)
  for (const configuration of [
    undefined,
    {},
    { acceptedOutputModes: ['text/plain'] },
    { historyLength: 1 },
    { blocking: true }
  ]) {
    t.equal(
      (await call(dialect, 'message/send', { message: message('x'), configuration })).status?.state,
      'completed',
      JSON.stringify(configuration)
    )
  }
  t.equal(
    (await call(dialect, 'message/send', { message: message('x'), configuration: { blocking: false } })).status?.state,
    'submitted'
  )
  const short = await call(dialect, 'message/send', { message: message('x'), configuration: { historyLength: 1 } })
  t.equal(short.history?.length, 1)
})

await t.test('principal, tenant, extensions, conditions and signal reach the runtime', async t => {
  const { dialect, runtime } = startDialect(t)
  const ann: CallContext = { principal: 'ann', tenant: 'acme', version: '0.3' }
  const { id } = await call(dialect, 'message/send', { message: message('ask') }, ann)
  t.equal(taskIn({ task: await runtime.getTask({ id: id, tenant: 'acme' }, { principal: 'ann' }) }).id, id)
  for (const other of [{}, { ...ann, principal: 'bob' }, { ...ann, tenant: 'other' }])
    t.match(await refusal(call(dialect, 'tasks/get', { id }, other)), { code: 'TaskNotFound' })

  const extended = { ...ann, extensions: [RELIABILITY_EXTENSION] }
  t.strictSame((await call(dialect, 'tasks/get', { id }, extended)).metadata, {
    [RELIABILITY_EXTENSION]: { generation: 4 }
  })
  const resumed = stream(dialect, 'tasks/resubscribe', { id }, { ...extended, conditions: { afterGeneration: 2 } })
  t.match(await next(resumed), { kind: 'status-update', metadata: { [RELIABILITY_EXTENSION]: { generation: 3 } } })
  t.match(await refusal(call(dialect, 'tasks/cancel', { id }, { ...extended, conditions: { ifGenerationMatch: 1 } })), {
    code: 'TaskGenerationMismatch',
    metadata: { taskId: id, expectedGeneration: '1', currentGeneration: '4' }
  })
  for (const { text: ifGenerationMatch, isGeneration } of largeGenerations)
    t.match(
      await refusal(call(dialect, 'tasks/cancel', { id }, { ...extended, conditions: { ifGenerationMatch } })),
      isGeneration
        ? { code: 'TaskGenerationMismatch', metadata: { expectedGeneration: ifGenerationMatch } }
        : { code: 'InvalidParams', message: /ifGenerationMatch must be a whole number from 0/ },
      ifGenerationMatch
    )

  const given = new AbortController()
  const watched = stream(dialect, 'tasks/resubscribe', { id }, { ...ann, signal: given.signal })
  await next(watched)
  const last = watched.next()
  const waiting = call(dialect, 'message/send', { message: message('login') }, { ...ann, signal: given.signal })
  await rest()
  given.abort(new Error('gone'))
  t.strictSame(await last, { done: true, value: undefined })
  await rejection(call(dialect, 'tasks/get', { id }, { ...ann, signal: given.signal })).catch(() => {})
  await waiting
  await call(dialect, 'tasks/cancel', { id }, ann)
  await collect(resumed)
})

await t.test('an aborted call rejects with the reason of its signal', async t => {
  const { runtime } = start(t, { work: () => new Promise(() => {}) })
  const given = new AbortController()
  const waiting = call(dialect03(runtime), 'message/send', { message: message('x') }, { signal: given.signal })
  await until(async () => (await runtime.listTasks({ status: 'TASK_STATE_WORKING' })).totalSize === 1)
  const reason = new Error('gone')
  given.abort(reason)
  t.equal(await rejection(waiting), reason)
})

const deep = (levels: number): object => JSON.parse(`${'{"a":'.repeat(levels)}{}${'}'.repeat(levels)}`)

await t.test('invalid input is refused by field, and opens no task', async t => {
  const { dialect, runtime } = startDialect(t)
  const part = (value: unknown) => ({ message: message('', { parts: [value] }) })
  const rows: [unknown, string][] = [
    [undefined, 'params'],
    [null, 'params'],
    ['x', 'params'],
    [[], 'params'],
    [{}, 'message'],
    [{ message: 'x' }, 'message'],
    [{ message: message('x', { parts: undefined }) }, 'message.parts'],
    [{ message: message('x', { parts: 'x' }) }, 'message.parts'],
    [{ message: message('x', { parts: [] }) }, 'message.parts'],
    [part(5), 'message.parts[0]'],
    [part(null), 'message.parts[0]'],
    [part({}), 'message.parts[0]'],
    [part({ kind: 5, text: 'x' }), 'message.parts[0].kind'],
    [part({ kind: 'other', text: 'x' }), 'message.parts[0].kind'],
    [part({ kind: 'text', text: 5 }), 'message.parts[0].text'],
    [part({ kind: 'text', data: {} }), 'message.parts[0].text'],
    [part({ kind: 'file' }), 'message.parts[0]'],
    [part({ kind: 'file', file: {} }), 'message.parts[0].file'],
    [part({ kind: 'file', file: { bytes: 5 } }), 'message.parts[0].file.bytes'],
    [part({ kind: 'file', file: { bytes: '!' } }), 'message.parts[0].file.bytes'],
    [part({ kind: 'file', file: { bytes: 'aGk=', uri: 'x:y' } }), 'message.parts[0].file'],
    [part({ kind: 'data', data: 5 }), 'message.parts[0].data'],
    [part({ kind: 'text', text: 'x', metadata: 'x' }), 'message.parts[0].metadata'],
    [{ message: message('x', { role: undefined }) }, 'message.role'],
    [{ message: message('x', { role: 'BOGUS' }) }, 'message.role'],
    [{ message: message('x', { role: 'agent' }) }, 'message.role'],
    [{ message: message('x', { kind: 'task' }) }, 'message.kind'],
    [{ message: message('x', { messageId: undefined }) }, 'message.messageId'],
    [{ message: message('x', { messageId: 5 }) }, 'message.messageId'],
    [{ message: message('x', { contextId: {} }) }, 'message.contextId'],
    [{ message: message('x', { extensions: 5 }) }, 'message.extensions'],
    [{ message: message('x', { referenceTaskIds: 'x' }) }, 'message.referenceTaskIds'],
    [{ message: message('x', { metadata: [] }) }, 'message.metadata'],
    [{ message: message('x'), metadata: 5 }, 'metadata'],
    [{ message: message('x'), metadata: deep(100) }, 'params.metadata'],
    [{ message: message('x'), metadata: deep(50_000) }, 'params.metadata'],
    [JSON.parse('{"message":{"metadata":{"__proto__":1}}}'), 'params.message.metadata'],
    [{ message: message('\ud83d') }, 'params.message.parts[0].text'],
    [part({ kind: 'data', data: { x: Infinity } }), 'params.message.parts[0].data.x'],
    [{ message: message('x'), metadata: { x: Array.from({ length: 200_001 }, () => 0) } }, 'params.metadata.x'],
    [{ message: message('x'), configuration: 5 }, 'configuration'],
    [{ message: message('x'), configuration: { blocking: 'no' } }, 'configuration.blocking'],
    [{ message: message('x'), configuration: { historyLength: -1 } }, 'configuration.historyLength'],
    [
      { message: message('x'), configuration: { pushNotificationConfig: {} } },
      'configuration.pushNotificationConfig.url'
    ]
  ]
  for (const [params, field] of rows) {
    for (const answer of [call(dialect, 'message/send', params), stream(dialect, 'message/stream', params).next()]) {
      const error = await rejection(answer)
      if (!isA2AError(error)) throw error
      t.equal(error.code, 'InvalidParams', field)
      t.ok(
        error.violations.some(violation => violation.field.startsWith(field)),
        `${field} is named in ${JSON.stringify(error.violations)}`
      )
    }
  }
  for (const name of ['tasks/get', 'tasks/cancel', 'tasks/pushNotificationConfig/list']) {
    t.match(await rejection(call(dialect, name, {})), { code: 'InvalidParams', violations: [{ field: 'id' }] }, name)
  }
  t.match(await rejection(call(dialect, 'tasks/get', { id: 'x', historyLength: 1.5 })), {
    violations: [{ field: 'historyLength' }]
  })
  t.match(await rejection(call(dialect, 'tasks/pushNotificationConfig/set', { taskId: 'x' })), {
    violations: [{ field: 'pushNotificationConfig' }]
  })
  t.equal((await runtime.listTasks({})).totalSize, 0)
})

await t.test('bytes may be long', async t => {
  const { dialect } = startDialect(t)
  const bytes = Buffer.alloc(600_000).toString('base64')
  const parts = [
    { kind: 'text', text: 'x' },
    { kind: 'file', file: { bytes, mimeType: 'application/octet-stream' } }
  ]
  const { artifacts } = await call(dialect, 'message/send', { message: message('', { parts }) })
  t.equal(artifacts?.[0]?.parts?.[1]?.file?.bytes, bytes)
  t.match(await refusal(call(dialect, 'message/send', { message: message('x'.repeat(600_000)) })), {
    code: 'InvalidParams'
  })
})

await t.test('errors keep their code, message and details', async t => {
  const { dialect } = startDialect(t)
  t.match(await rejection(call(dialect, 'tasks/get', { id: 'nobody' })), {
    code: 'TaskNotFound',
    message: 'Task nobody was not found.',
    metadata: { taskId: 'nobody' }
  })
  const { id } = await call(dialect, 'message/send', { message: message('x') })
  const ended = await rejection(call(dialect, 'message/send', { message: message('more', { taskId: id }) }))
  t.match(ended, { code: 'UnsupportedOperation', metadata: { taskId: id } })
  t.match(await rejection(stream(dialect, 'message/stream', { message: message('more', { taskId: id }) }).next()), {
    code: 'UnsupportedOperation'
  })
  t.equal(ERRORS.UnsupportedOperation.code, -32004)
})

await t.test('the methods are those of 0.3', t => {
  const { method, version } = startDialect(t).dialect
  t.equal(version, '0.3')
  for (const name of [
    'message/send',
    'message.send',
    'tasks/get',
    'tasks.get',
    'tasks/cancel',
    'tasks/pushNotificationConfig/set',
    'tasks.pushNotificationConfig.set',
    'agent/getAuthenticatedExtendedCard'
  ])
    t.match(method(name), { streaming: false })
  for (const name of ['message/stream', 'message.stream', 'tasks/resubscribe', 'tasks.resubscribe'])
    t.match(method(name), { streaming: true })
  for (const name of ['SendMessage', 'tasks/send', 'tasks/list', 'constructor', '']) t.equal(method(name), undefined)
  t.end()
})

const config = {
  taskId: 't',
  id: 'p',
  url: 'https://example.com/',
  token: 's',
  authentication: { scheme: 'Bearer', credentials: 'c' }
}
const config03 = {
  taskId: 't',
  pushNotificationConfig: {
    id: 'p',
    url: 'https://example.com/',
    token: 's',
    authentication: { schemes: ['Bearer'], credentials: 'c' }
  }
}
const proto03 = { name: 'tasks/t/pushNotificationConfigs/p', pushNotificationConfig: config03.pushNotificationConfig }

/** A runtime with webhooks, and what it was asked for. */
function pushing(runtime: ServedRuntime, configs: object[] = [config]) {
  const asked: unknown[] = []
  const answering = (answer: object) => async (params: unknown) => (asked.push(params), answer)
  const operations = {
    createTaskPushNotificationConfig: answering(config),
    getTaskPushNotificationConfig: answering(config),
    listTaskPushNotificationConfigs: answering({ configs }),
    deleteTaskPushNotificationConfig: answering({})
  }
  return { asked, runtime: { ...runtime, ...operations } as unknown as Runtime }
}

await t.test('webhooks have the form of 0.3, and a request without an id selects the first', async t => {
  const { runtime } = startDialect(t)
  const { asked, runtime: served } = pushing(runtime)
  const dialect = dialect03(served)
  t.strictSame(await call(dialect, 'tasks/pushNotificationConfig/set', config03), config03)
  t.strictSame(
    await call(dialect, 'tasks/pushNotificationConfig/get', { id: 't', pushNotificationConfigId: 'p' }),
    config03
  )
  t.strictSame(await call(dialect, 'tasks/pushNotificationConfig/get', { id: 't' }), config03)
  t.strictSame(await call(dialect, 'tasks/pushNotificationConfig/list', { id: 't' }), [config03])
  t.equal(await call(dialect, 'tasks/pushNotificationConfig/delete', { id: 't', pushNotificationConfigId: 'p' }), null)
  t.strictSame(
    await call(dialect, 'tasks.pushNotificationConfig.list', { id: 't' }),
    [config03],
    'also where methods have dots'
  )
  t.equal(await call(dialect, 'tasks.pushNotificationConfig.delete', { id: 't', pushNotificationConfigId: 'p' }), null)
  t.strictSame(asked, [
    config,
    { taskId: 't', id: 'p' },
    { taskId: 't' },
    { taskId: 't' },
    { taskId: 't', id: 'p' },
    { taskId: 't' },
    { taskId: 't', id: 'p' }
  ])
  t.match(
    await refusal(call(dialect03(pushing(runtime, []).runtime), 'tasks/pushNotificationConfig/get', { id: 't' })),
    { code: 'TaskNotFound' }
  )
})

await t.test("unsupported operations give the specification's error", async t => {
  const { dialect } = startDialect(t)
  for (const [name, params] of [
    ['set', config03],
    ['get', { id: 't' }],
    ['list', { id: 't' }],
    ['delete', { id: 't', pushNotificationConfigId: 'p' }]
  ] as const) {
    t.match(
      await refusal(call(dialect, `tasks/pushNotificationConfig/${name}`, params)),
      { code: 'PushNotificationNotSupported' },
      name
    )
  }
  const configuration = { pushNotificationConfig: config03.pushNotificationConfig }
  t.match(await refusal(call(dialect, 'message/send', { message: message('x'), configuration })), {
    code: 'PushNotificationNotSupported'
  })
  t.match(await refusal(call(dialect, 'agent/getAuthenticatedExtendedCard')), { code: 'UnsupportedOperation' })
})

function rested(dialect: Dialect, verb: string, path: string, body?: unknown, query = ''): RestCall | undefined {
  return dialect.rest?.({ verb, path, query: new URLSearchParams(query), body })
}

async function dataOf(dialect: Dialect, verb: string, path: string, body?: unknown, query?: string): Promise<Json> {
  const answer = rested(dialect, verb, path, body, query)
  if (!answer || answer.streaming) throw new TypeError(`${verb} ${path} has no answer.`)
  return answer.answer({}) as Promise<Json>
}

function eventsOf(dialect: Dialect, verb: string, path: string, body?: unknown): AsyncGenerator<Json, void, undefined> {
  const answer = rested(dialect, verb, path, body)
  if (!answer?.streaming) throw new TypeError(`${verb} ${path} is no stream.`)
  return answer.events({}) as AsyncGenerator<Json, void, undefined>
}

/** The official client of 0.3 over REST, whose requests a dialect answers without a network. */
function restClient(dialect: Dialect): LegacyRestTransport {
  const fetchImpl = async (input: unknown, init: RequestInit = {}): Promise<Response> => {
    const { pathname, searchParams } = new URL(String(input))
    const body: unknown = typeof init.body === 'string' ? JSON.parse(init.body) : undefined
    const answer = dialect.rest?.({ verb: init.method ?? 'GET', path: pathname, query: searchParams, body })
    if (!answer) return new Response('', { status: 404 })
    try {
      if (!answer.streaming) return Response.json((await answer.answer({})) ?? null)
      const events = await collect(answer.events({}))
      return new Response(events.map(event => `data: ${JSON.stringify(event)}\n\n`).join(''), {
        headers: { 'Content-Type': 'text/event-stream' }
      })
    } catch (error) {
      if (!isA2AError(error)) throw error
      return Response.json(
        { code: ERRORS[error.code].code, message: error.message },
        { status: ERRORS[error.code].http }
      )
    }
  }
  return new LegacyRestTransport({ endpoint: 'http://agent', fetchImpl })
}

function sdkRequest(text: string, more: object = {}, configuration?: object): sdk.SendMessageRequest {
  messages += 1
  return sdk.SendMessageRequest.fromJSON({
    message: { messageId: `r-${messages}`, role: 'ROLE_USER', parts: [{ text }], ...more },
    configuration
  })
}

await t.test('the official client of 0.3 is served over REST', async t => {
  const { dialect, runtime } = startDialect(t)
  const client = restClient(dialect)
  const parts = [{ text: 'one' }, { raw: 'aGk=', mediaType: 'application/octet-stream' }, { data: { b: 2 } }]
  const done = (await client.sendMessage(sdkRequest('', { parts }))) as sdk.Task
  t.equal(done.status?.state, sdk.TaskState.TASK_STATE_COMPLETED)
  t.strictSame((await runtime.getTask({ id: done.id })).history?.[0]?.parts, parts)
  t.strictSame(
    done.artifacts[0]?.parts.map(({ content }) => content?.$case),
    ['text', 'raw', 'data', 'url', 'data', 'data', 'data']
  )
  t.match(await client.sendMessage(sdkRequest('hello')), {
    role: sdk.Role.ROLE_AGENT,
    parts: [{ content: { value: 'hi' } }]
  })

  const events = await collect(client.sendMessageStream(sdkRequest('ask', {}, { historyLength: 5 })))
  t.strictSame(
    events.map(({ payload }) => payload?.$case),
    ['task', 'statusUpdate', 'statusUpdate']
  )
  t.match(events[2]?.payload, {
    value: {
      status: { state: sdk.TaskState.TASK_STATE_INPUT_REQUIRED, message: { parts: [{ content: { value: 'Well?' } }] } }
    }
  })
  const [first] = events
  const id = first?.payload?.$case === 'task' ? first.payload.value.id : ''
  t.equal((await client.getTask({ id, tenant: '', historyLength: 0 })).history.length, 0)
  const canceled = await client.cancelTask({ id, tenant: '', metadata: undefined })
  t.equal(canceled.status?.state, sdk.TaskState.TASK_STATE_CANCELED)
  t.match(await collect(client.resubscribeTask({ id, tenant: '' })), [{ payload: { $case: 'task', value: { id } } }])
  t.match(await collect(client.sendMessageStream(sdkRequest('x'))), [
    {},
    {},
    {},
    { payload: { $case: 'artifactUpdate', value: { artifact: { artifactId: 'a' } } } },
    {}
  ])
  t.match(await collect(client.sendMessageStream(sdkRequest('hello'))), [{ payload: { $case: 'message' } }])
  await t.rejects(client.getTask({ id: 'nobody', tenant: '', historyLength: undefined }), { name: 'TaskNotFoundError' })
})

await t.test('REST also accepts messages in the form of JSON-RPC, and answers in that form', async t => {
  const { dialect } = startDialect(t)
  const task = await dataOf(dialect, 'POST', '/v1/message:send', { message: message('ask') })
  t.match(task, { kind: 'task', status: { state: 'input-required' } })
  t.strictSame(
    (await collect(eventsOf(dialect, 'POST', '/v1/message:stream', { message: message('hello') }))).map(briefly),
    ['message']
  )
  const proto = await dataOf(dialect, 'GET', `/v1/tasks/${task.id}`)
  t.match(proto, {
    id: task.id,
    status: { state: 'TASK_STATE_INPUT_REQUIRED', message: { role: 'ROLE_AGENT', content: [{ text: 'Well?' }] } },
    kind: undefined
  })
  t.equal((await dataOf(dialect, 'GET', `/v1/tasks/${task.id}`, undefined, 'historyLength=0&x=y')).history, undefined)
  t.match(await dataOf(dialect, 'POST', `/v1/tasks/${task.id}:cancel`), { status: { state: 'TASK_STATE_CANCELLED' } })
  for (const verb of ['GET', 'POST'])
    t.match(await collect(eventsOf(dialect, verb, `/v1/tasks/${task.id}:subscribe`)), [{ task: { id: task.id } }])
})

await t.test('invalid input over REST is refused by field', async t => {
  const { dialect, runtime } = startDialect(t)
  const proto = (more: object) => ({
    message: { messageId: 'p', role: 'ROLE_USER', content: [{ text: 'x' }], ...more }
  })
  const rows: [unknown, string][] = [
    [undefined, 'message'],
    ['x', 'params'],
    [{}, 'message'],
    [{ message: 'x' }, 'message'],
    [{ request: 5 }, 'message'],
    [proto({ content: undefined }), 'message.parts'],
    [proto({ content: 'x' }), 'message.parts'],
    [proto({ content: [5] }), 'message.parts[0]'],
    [proto({ content: [{}] }), 'message.parts[0]'],
    [proto({ content: [{ file: 5 }] }), 'message.parts[0].file'],
    [proto({ content: [{ file: {} }] }), 'message.parts[0].file'],
    [proto({ content: [{ data: 5 }] }), 'message.parts[0].data'],
    [proto({ role: 'ROLE_UNSPECIFIED' }), 'message.role'],
    [{ ...proto({}), configuration: 5 }, 'configuration'],
    [{ ...proto({}), configuration: { pushNotification: 5 } }, 'configuration.pushNotificationConfig']
  ]
  for (const [body, field] of rows) {
    const error = await rejection(dataOf(dialect, 'POST', '/v1/message:send', body))
    t.match(error, { code: 'InvalidParams' }, JSON.stringify(body))
    t.ok(
      isA2AError(error) && error.violations.some(violation => violation.field.startsWith(field)),
      `${field} is named in ${error.message}`
    )
  }
  t.match(await rejection(dataOf(dialect, 'GET', '/v1/tasks/x', undefined, 'historyLength=many')), {
    violations: [{ field: 'historyLength' }]
  })
  t.match(await rejection(dataOf(dialect, 'GET', '/v1/tasks/%zz')), { code: 'TaskNotFound' })
  t.equal((await runtime.listTasks({})).totalSize, 0)
})

await t.test('zero values of the proto count as absent', async t => {
  const { dialect } = startDialect(t)
  const content = [
    { text: 'x' },
    { file: { fileWithUri: 'https://example.com/', mimeType: 'application/octet-stream' } },
    { data: {} }
  ]
  const body = {
    request: { messageId: 'p', role: 'ROLE_USER', content },
    configuration: { historyLength: 0, blocking: true }
  }
  const { task } = await dataOf(dialect, 'POST', '/v1/message:send', body)
  t.match(task?.history, [{ content: [{ text: 'x' }, content[1], { data: { data: {} } }] }, {}])
})

await t.test('webhooks over REST have the form of the proto', async t => {
  const dialect = dialect03(pushing(startDialect(t).runtime).runtime)
  const path = '/v1/tasks/t/pushNotificationConfigs'
  t.strictSame(await dataOf(dialect, 'POST', path, proto03), proto03)
  t.strictSame(
    await dataOf(dialect, 'POST', path, { parent: 'tasks/t', configId: 'p', config: proto03 }),
    proto03,
    'as the proto asks for it'
  )
  t.match(await rejection(dataOf(dialect, 'POST', path, { config: 1 })), {
    violations: [{ field: 'pushNotificationConfig' }]
  })
  t.match(await rejection(dataOf(dialect, 'POST', path)), { violations: [{ field: 'pushNotificationConfig' }] })
  t.strictSame(await dataOf(dialect, 'GET', `${path}/p`), proto03)
  t.strictSame(await dataOf(dialect, 'GET', path), { configs: [proto03] })
  t.equal(await dataOf(dialect, 'DELETE', `${path}/p`), null)
  const nameless = dialect03({
    ...startDialect(t).runtime,
    getTaskPushNotificationConfig: async () => ({ ...config, id: undefined })
  } as unknown as Runtime)
  t.match(await dataOf(nameless, 'GET', `${path}/p`), { name: `tasks/t/pushNotificationConfigs/` })
})

/** Words of 1.0 that a client of 0.3 does not know. */
const WORDS_OF_10 =
  /TASK_STATE_|ROLE_|taskPushNotificationConfig|returnImmediately|\b(?:Send|Get|Cancel|Subscribe|List|Create)[A-Z]/

await t.test('errors are in the words of 0.3: its states, methods and members', async t => {
  const push = { faultOf: async () => 'must not be that one', post: async () => ({ status: 200 }) }
  const { dialect } = startDialect(t, { push })
  const { dialect: pushless } = startDialect(t)
  const { id } = await call(dialect, 'message/send', { message: message('x') })
  const pushNotificationConfig = { url: 'https://example.com/' }
  const rows: [() => Promise<unknown>, object][] = [
    [
      () => call(dialect, 'tasks/cancel', { id }),
      {
        code: 'TaskNotCancelable',
        message: `Task ${id} has ended (completed) and cannot be canceled.`,
        metadata: { state: 'completed' }
      }
    ],
    [
      () => call(dialect, 'message/send', { message: message('more', { taskId: id }) }),
      { code: 'UnsupportedOperation', metadata: { state: 'completed' } }
    ],
    [
      () => call(dialect, 'message/send', { message: message('x'), configuration: { pushNotificationConfig } }),
      {
        message: 'Invalid parameters: configuration.pushNotificationConfig.url must not be that one',
        violations: [{ field: 'configuration.pushNotificationConfig.url' }]
      }
    ],
    [
      () => call(dialect, 'tasks/pushNotificationConfig/set', { taskId: id, pushNotificationConfig }),
      {
        message: 'Invalid parameters: pushNotificationConfig.url must not be that one',
        violations: [{ field: 'pushNotificationConfig.url' }]
      }
    ],
    [
      () =>
        call(dialect, 'tasks/pushNotificationConfig/set', {
          taskId: id,
          pushNotificationConfig: { ...pushNotificationConfig, authentication: { schemes: ['B C'] } }
        }),
      { violations: [{ field: 'pushNotificationConfig.authentication.schemes' }] }
    ],
    [
      () => call(pushless, 'message/send', { message: message('x'), configuration: { pushNotificationConfig } }),
      { code: 'PushNotificationNotSupported', message: /Leave pushNotificationConfig out/ }
    ],
    [
      () => stream(dialect, 'message/stream', { message: message('more', { taskId: id }) }).next(),
      { code: 'UnsupportedOperation' }
    ]
  ]
  for (const [ask, expected] of rows) {
    const error = await rejection(ask())
    t.match(error, expected)
    t.notMatch(`${String(error)} ${JSON.stringify(error)}`, WORDS_OF_10)
  }
  const told = toError03(new A2AError('PushNotificationNotSupported', 'Poll the task with GetTask, or ListTasks.'))
  t.match(told, { message: 'Poll the task with tasks/get, or ListTasks.' }, '0.3 has no ListTasks')
})

await t.test('there are no other routes', async t => {
  const { dialect } = startDialect(t)
  const rows: [string, string][] = [
    ['GET', '/v1/message:send'],
    ['POST', '/message:send'],
    ['GET', '/v1/tasks'],
    ['PUT', '/v1/tasks/x'],
    ['GET', '/v1/tasks/x/y'],
    ['POST', '/v1/tasks/x:other'],
    ['GET', '/v1/tasks/x:cancel'],
    ['GET', '/v2/card'],
    ['GET', '/acme/v1/tasks/x']
  ]
  for (const [verb, path] of rows) t.equal(rested(dialect, verb, path), undefined, `${verb} ${path}`)
  t.match(await rejection(dataOf(dialect, 'GET', '/v1/card')), { code: 'UnsupportedOperation' })
})

await t.test('a card has the form of 0.3', t => {
  const { dialect, runtime } = startDialect(t)
  const interfaces = [
    { url: 'ws://agent/', protocolBinding: 'urn:x', protocolVersion: '1.0' },
    { url: 'http://agent/', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    { url: 'http://agent/', protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
    { url: 'http://agent/rest', protocolBinding: 'HTTP+JSON', protocolVersion: '0.3' }
  ]
  t.match(dialect.card(runtime.agentCard(interfaces)), {
    name: 'Legacy',
    protocolVersion: '0.3.0',
    url: 'http://agent/',
    preferredTransport: 'JSONRPC',
    supportedInterfaces: undefined,
    additionalInterfaces: [
      { url: 'http://agent/', transport: 'JSONRPC' },
      { url: 'http://agent/rest', transport: 'HTTP+JSON' }
    ],
    capabilities: { streaming: true, extendedAgentCard: undefined },
    supportsAuthenticatedExtendedCard: false,
    skills: []
  })
  t.match(dialect.card(runtime.agentCard(interfaces.slice(0, 2))), {
    url: 'http://agent/',
    preferredTransport: 'JSONRPC',
    additionalInterfaces: [{ transport: 'urn:x' }, {}]
  })
  t.match(dialect.card(runtime.agentCard(interfaces.slice(0, 1))), { url: 'ws://agent/', preferredTransport: 'urn:x' })
  t.match(dialect.card(runtime.agentCard([])), { url: undefined, additionalInterfaces: [] })
  t.end()
})

await t.test('security has the form of 0.3', t => {
  const { dialect, runtime } = startDialect(t)
  const token = { tokenUrl: 'https://id/token', scopes: { read: 'Reads.' } }
  const code = { ...token, authorizationUrl: 'https://id/' }
  const scopes = { schemes: { key: {}, oauth: { list: ['read'] } } }
  const card: AgentCard = {
    ...runtime.agentCard([]),
    capabilities: { extendedAgentCard: true },
    signatures: [{ protected: 'p', signature: 's' }],
    securitySchemes: {
      key: { apiKeySecurityScheme: { location: 'header', name: 'X-Key', description: 'A key.' } },
      http: { httpAuthSecurityScheme: { scheme: 'Bearer', bearerFormat: 'JWT' } },
      oidc: { openIdConnectSecurityScheme: { openIdConnectUrl: 'https://id/' } },
      mtls: { mtlsSecurityScheme: {} },
      oauth: {
        oauth2SecurityScheme: {
          flows: { authorizationCode: { ...code, pkceRequired: true } },
          oauth2MetadataUrl: 'https://id/meta'
        }
      },
      machine: { oauth2SecurityScheme: { flows: { clientCredentials: token } } },
      device: {
        oauth2SecurityScheme: { flows: { deviceCode: { ...token, deviceAuthorizationUrl: 'https://id/device' } } }
      }
    },
    securityRequirements: [scopes, {}],
    skills: [{ id: 's', name: 'S', description: '', tags: [], securityRequirements: [scopes] }]
  }
  const security = { key: [], oauth: ['read'] }
  t.match(dialect.card(card), {
    supportsAuthenticatedExtendedCard: true,
    signatures: undefined,
    securityRequirements: undefined,
    security: [security, {}],
    skills: [{ id: 's', security: [security], securityRequirements: undefined }]
  })
  t.strictSame((dialect.card(card) as { securitySchemes: object }).securitySchemes, {
    key: { type: 'apiKey', in: 'header', name: 'X-Key', description: 'A key.' },
    http: { type: 'http', scheme: 'Bearer', bearerFormat: 'JWT' },
    oidc: { type: 'openIdConnect', openIdConnectUrl: 'https://id/' },
    mtls: { type: 'mutualTLS' },
    oauth: { type: 'oauth2', flows: { authorizationCode: code }, oauth2MetadataUrl: 'https://id/meta' },
    machine: { type: 'oauth2', flows: { clientCredentials: token } },
    device: { type: 'oauth2', flows: {} }
  })
  t.end()
})

await t.test('a task that is canceled meanwhile ends the stream of 0.3', async t => {
  const { dialect, runtime } = startDialect(t)
  const { id } = await call(dialect, 'message/send', { message: message('ask') })
  const events = eventsOf(dialect, 'POST', `/v1/tasks/${id}:subscribe`)
  await next(events)
  await runtime.cancelTask({ id: id })
  t.match(await collect(events), [{ statusUpdate: { final: true, status: { state: 'TASK_STATE_CANCELLED' } } }])
  t.equal(stateName((await reaches(runtime, id, 'canceled')).status.state), 'canceled')
})
