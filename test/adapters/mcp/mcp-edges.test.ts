import { Socket } from 'node:net'
import t from 'tap'
import { z } from 'zod'
import { agUiHandler } from '../../../adapters/ag-ui/index.ts'
import { READER_STALL_MS, type NodeResponse, type Tap } from '../../../adapters/entry/connection.ts'
import { mcpHandler } from '../../../adapters/mcp/index.ts'
import { withMcp } from '../../../adapters/mcp/mcp-handler.ts'
import { serveHost } from '../../../adapters/mcp/stdio.ts'
import { wordsIn } from '../../../adapters/mcp/content.ts'
import { elicitedForm } from '../../../adapters/mcp/form.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import {
  A2AError,
  authRequired,
  data,
  inputRequired,
  progress,
  reply,
  text,
  textOf,
  type WorkFunction
} from '../../../runtime/index.ts'
import { answerOf, mcpPeer, openedTask, questionIn, textsIn, type McpAnswer } from '../../fixtures/peers/mcp-peer.ts'
import { deferred, rejection, rest, start, taskIn, say, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { servedMcp, sized } from '../../fixtures/servers/mcp-agent.ts'

const round = ({ result }: McpAnswer, key: string, response: unknown) => ({
  requestState: result['requestState'],
  inputResponses: { [key]: response }
})

await t.test('a call whose answers are refused five times ends with the reason', async t => {
  const { as } = servedMcp(t, { work: sized })
  const peer = as({ form: true })
  let asked = await peer.call('coffee')
  for (let i = 0; i < 5; i += 1)
    asked = await peer.call('coffee', undefined, round(asked, questionIn(asked).key, { action: 'accept' }))
  t.match(asked.result, {
    isError: true,
    content: [{ text: /^The task was canceled: 5 answers were refused, the last one because: size / }]
  })
})

await t.test('after an authorization the next question is asked, and a form stands in for a URL', async t => {
  const work: WorkFunction = async ({ ask }) => {
    await ask(authRequired({ parts: [text('Log in.'), { url: 'https://login.example/' }] }))
    return { artifact: textOf(await ask(inputRequired('And now?'))) }
  }
  const { as, runtime } = servedMcp(t, { work })
  const peer = as({ url: true, form: true })
  const first = await peer.call('coffee')
  const followed = deferred()
  const { subscribeToTask } = runtime
  Object.assign(runtime, {
    subscribeToTask: (...given: Parameters<typeof subscribeToTask>) => {
      followed.resolve()
      return subscribeToTask(...given)
    }
  })
  const waiting = peer.call('coffee', undefined, round(first, questionIn(first).key, { action: 'accept' }))
  await followed.promise
  const [task] = (await runtime.listTasks({})).tasks
  await runtime.authorized(task?.id ?? '', 'token')
  const second = await waiting
  t.equal(questionIn(second).params['message'], 'And now?')
  t.match(
    textsIn(
      await peer.call(
        'coffee',
        undefined,
        round(second, questionIn(second).key, { action: 'accept', content: { answer: 'go' } })
      )
    ),
    ['go', /completed/]
  )
  const forms = as({ form: true })
  const asked = await forms.call('coffee')
  const { key } = questionIn(asked)
  const again = await forms.call('coffee', undefined, round(asked, key, { action: 'accept', content: { answer: '' } }))
  t.equal(questionIn(again).key, key, 'no words are no answer')
  const urls = as({ url: true })
  const other = await urls.call('coffee')
  t.match((await urls.call('coffee', undefined, round(other, questionIn(other).key, { action: 'decline' }))).result, {
    isError: true,
    content: [{ text: /^The task was canceled\./ }]
  })
})

await t.test('a response that is none is ignored, and what the runtime says of an answer is passed on', async t => {
  const { peer, runtime } = servedMcp(t, { work: sized })
  const taskId = openedTask(await peer.call('coffee'))
  await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'input_required')
  const { key } = questionIn(await peer.rpc('tasks/get', { taskId }))
  const update = (response: unknown) => peer.rpc('tasks/update', { taskId, inputResponses: { [key]: response } })
  for (const response of [5, null, { action: 'maybe' }, { method: 'x', result: {} }])
    t.match((await update(response)).result, { resultType: 'complete' })
  const { sendMessage, cancelTask } = runtime
  const failing = (reason: Error) => Object.assign(runtime, { sendMessage: () => Promise.reject(reason) })
  failing(new A2AError('Overloaded', 'Later.'))
  t.match(await update({ action: 'accept', content: {} }), { status: 503, error: { message: 'Later.' } })
  failing(new Error('broken'))
  t.match((await update({ action: 'accept', content: {} })).error, { code: -32603 })
  Object.assign(runtime, { sendMessage, cancelTask: () => Promise.reject(new A2AError('Overloaded', 'Later.')) })
  t.match(await peer.rpc('tasks/cancel', { taskId }), { status: 503 })
  Object.assign(runtime, { cancelTask })
  t.equal(questionIn(await peer.rpc('tasks/get', { taskId })).key, key, 'the question is as it was')
  const late = async () => {
    await runtime.cancelTask({ id: taskId })
    throw new A2AError('UnsupportedOperation')
  }
  Object.assign(runtime, { sendMessage: late })
  t.match((await update({ action: 'accept', content: {} })).result, { resultType: 'complete' }, 'the task has moved on')
  t.match((await peer.rpc('tasks/get', { taskId })).result, { status: 'cancelled' })
})

await t.test('arguments may be missing, refer to other tasks, and carry data', async t => {
  const seen: unknown[] = []
  const work: WorkFunction = ({ message }) => {
    seen.push([message.parts, message.referenceTaskIds])
  }
  const { as } = servedMcp(t, { work })
  const peer = as({})
  const first = openedTask(await peer.call('coffee'))
  t.match((await peer.rpc('tools/call', { name: 'coffee' })).result, { isError: true })
  await peer.call('coffee', { message: 'more', data: { x: 1 }, referenceTaskIds: [first] })
  t.strictSame(seen, [
    [[{ text: 'go' }], undefined],
    [[{ text: 'more' }, { data: { x: 1 } }], [first]]
  ])
  const { as: valued } = servedMcp(t, { input: z.string(), work: ({ input }) => ({ artifact: String(input) }) })
  t.match(textsIn(await valued({}).call('coffee', { input: 'tea' })), ['tea', /completed/])
  t.match((await valued({}).call('coffee', {})).result, { isError: true })
})

await t.test('a long status is cut, a file of a message is a resource, a typed link keeps its type', async t => {
  const long = servedMcp(t, {
    work: async ({ emit }) => {
      emit(progress('x'.repeat(2000)))
      await new Promise(() => {})
    }
  })
  const taskId = openedTask(await long.peer.call('coffee'))
  await until(
    async () => (await long.peer.rpc('tasks/get', { taskId })).result['statusMessage'] === `${'x'.repeat(1000)}…`
  )
  t.equal(wordsIn([{ raw: 'AQI=' }]), '')
  const parts = [
    { raw: 'AQI=', mediaType: 'application/zip' },
    { url: 'https://files.example/a.pdf', mediaType: 'application/pdf', filename: 'a.pdf' }
  ]
  const { peer } = servedMcp(t, { negotiate: () => reply({ parts }) })
  t.match((await peer.call('coffee')).result['content'], [
    { type: 'resource', resource: { uri: 'taskchart://message', blob: 'AQI=', mimeType: 'application/zip' } },
    { type: 'resource_link', uri: 'https://files.example/a.pdf', name: 'a.pdf', mimeType: 'application/pdf' },
    { text: /^contextId: / }
  ])
})

await t.test('a question of data alone is its JSON, and small metadata of a task goes along', async t => {
  const { peer, as } = servedMcp(t, {
    work: async ({ ask }) => ({
      message: textOf(await ask(inputRequired({ parts: [data({ seats: [1, 2] })] }))),
      metadata: {}
    })
  })
  const taskId = openedTask(await peer.call('coffee'))
  await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'input_required')
  t.equal(questionIn(await peer.rpc('tasks/get', { taskId })).params['message'], '{"seats":[1,2]}')
  t.match(textsIn(await as({}).call('task_followup', { taskId })), [
    '{"seats":[1,2]}',
    /Call task_followup with taskId and message\./
  ])
})

await t.test('a refusal of a read is no unknown resource', async t => {
  const { peer } = servedMcp(t, { work: sized }, { authorize: ({ operation }) => operation !== 'getTask' })
  const read = await peer.rpc('resources/read', { uri: 'taskchart://tasks/x/artifacts/y' })
  t.match(read.error, { code: -31403 })
})

await t.test('a form takes alternatives of constants, and no others', t => {
  const fields = {
    a: { oneOf: [{ const: 'x' }, { const: 'y' }] },
    b: { anyOf: [true] },
    c: { anyOf: [true, { const: 1 }] }
  }
  t.match(elicitedForm({ type: 'object', properties: fields }).schema.properties, {
    a: { enum: ['x', 'y'] },
    b: { description: /As JSON/ },
    c: { description: /As JSON/ }
  })
  t.end()
})

await t.test('a served agent says where its metadata is, and refuses a caller over its share', async t => {
  const authenticate = () => undefined
  const { runtime } = start(
    t,
    { card: { name: 'Barista', documentationUrl: 'https://docs.example/' }, work: sized },
    { authenticate }
  )
  const served = await serve(runtime, { port: 0, mcp: true })
  t.teardown(() => served.close())
  const refused = await fetch(served.mcpUrl ?? '', { method: 'POST', body: '{}' })
  const place = `${new URL(served.url).origin}/.well-known/oauth-protected-resource/mcp`
  t.equal(refused.headers.get('www-authenticate'), `Bearer resource_metadata="${place}"`)
  t.match(await (await fetch(place)).json(), { resource: served.mcpUrl })
  const below = start(t, { work: sized }, { authenticate, publicUrl: 'wss://agent.example/a/', hosts: ['127.0.0.1'] })
  const other = await serve(below.runtime, { port: 0, path: '/a', mcp: { path: '/tools/mcp' } })
  t.teardown(() => other.close())
  t.equal(new URL(other.mcpUrl ?? '').pathname, '/a/tools/mcp')
  const { headers } = await fetch(other.mcpUrl ?? '', { method: 'POST', body: '{}' })
  const shown = '/.well-known/oauth-protected-resource/a/tools/mcp'
  t.equal(headers.get('www-authenticate'), `Bearer resource_metadata="https://agent.example${shown}"`)
  t.match(await (await fetch(new URL(shown, other.mcpUrl))).json(), { resource: 'https://agent.example/a/tools/mcp' })
  const open = start(t, { work: sized }, { authenticate: () => ({ id: 'anna' }) })
  const direct = {
    socket: new Socket(),
    response: undefined as never,
    claim: () => ({ status: 503, message: 'You have too many pending requests.' })
  }
  const request = new Request('http://127.0.0.1:4242/mcp', { method: 'POST', body: '{}' })
  const full = await answerOf(await mcpHandler(open.runtime)(request, { direct }))
  t.match(full, { status: 503, text: /too many pending requests/ })
})

await t.test('the messages of a host count for its quota too', async t => {
  const { runtime } = start(t, { work: sized }, { limits: { perPrincipal: { requestsPerMinute: 1 } } })
  const written: string[] = []
  async function* lines() {
    for (let id = 1; id <= 12; id += 1) yield JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' })
  }
  await serveHost(runtime, { lines: lines(), write: line => void written.push(line) }, { principal: 'anna' })
  t.match(written.join('\n'), /"code":-31429/)
})

await t.test('the messages over MCP are recorded while somebody listens, by connection', async t => {
  const { runtime } = start(t, { card: { name: 'Barista' }, work: sized })
  const tap: Tap = { onFrame: undefined }
  const handler = withMcp(runtime, '/', {}, async () => new Response('other'), tap)
  const seen: [connection: string, direction: string, text: string][] = []
  const socket = new Socket()
  const post = async (body: string, served: NodeResponse = {}) =>
    (
      await handler(
        new Request('http://127.0.0.1:4242/mcp', {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' },
          body
        }),
        served
      )
    ).text()
  await post('{"jsonrpc":"2.0","id":1,"method":"ping"}')
  t.strictSame(seen, [])
  tap.onFrame = (...frame) => void seen.push(frame)
  const served = { incoming: { socket } }
  const answers = [await post('{bad', served), await post('{"jsonrpc":"2.0","id":2,"method":"ping"}', served)]
  await post('{"jsonrpc":"2.0","method":"notifications/initialized"}')
  t.match(answers, [/-32700/, /^event: message\ndata: /])
  t.match(seen, [
    [/^mcp \d+$/, 'in', '{bad'],
    [seen[0]?.[0], 'out', answers[0]],
    [seen[0]?.[0], 'in', '{"jsonrpc":"2.0","id":2,"method":"ping"}'],
    [seen[0]?.[0], 'out', /^\{.*"id":2.*\}$/],
    [/^mcp \d+$/, 'in', /initialized/]
  ])
  t.equal(seen.length, 5, 'nothing answers a notification')
  t.not(seen[4]?.[0], seen[0]?.[0])
})

const METHODS: Readonly<Record<string, object>> = {
  initialize: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'old', version: '1' } },
  'tools/list': { cursor: 'x' },
  'tools/call': { name: 'coffee', arguments: { message: 'x' }, requestState: 'x', inputResponses: {} },
  'resources/list': { cursor: 'x' },
  'resources/templates/list': { cursor: 'x' },
  'resources/read': { uri: 'x' },
  'tasks/get': { taskId: 'x' },
  'tasks/update': { taskId: 'x', inputResponses: {} },
  'tasks/cancel': { taskId: 'x' },
  'server/discover': {},
  'subscriptions/listen': { notifications: {} },
  ping: {},
  constructor: {}
}
const WRONG = [null, true, 5, '', [], ['x'], {}, { name: 5 }]

/** Objects with one member, at any depth, that is wrong or left out. */
function* spoiled(whole: object): Generator<object> {
  for (const [name, value] of Object.entries(whole) as [string, unknown][]) {
    for (const wrong of [undefined, ...WRONG]) yield { ...whole, [name]: wrong }
    if (typeof value === 'object' && value !== null)
      for (const inner of spoiled(value)) yield { ...whole, [name]: inner }
  }
}

await t.test('a wrong member of a request is an error of its client, over every transport and version', async t => {
  const { runtime, as, log } = servedMcp(t, { work: sized })
  const modern = as({ tasks: true, form: true })
  const handler = mcpHandler(runtime)
  const older = async (method: string, params: object) => {
    const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    return answerOf(await handler(new Request('http://127.0.0.1:4242/mcp', { method: 'POST', headers, body })))
  }
  const lines: string[] = []
  for (const [method, whole] of Object.entries(METHODS))
    for (const params of spoiled(whole)) {
      lines.push(JSON.stringify({ jsonrpc: '2.0', id: lines.length, method, params }))
      for (const answer of [await modern.rpc(method, { ...params }), await older(method, params)]) {
        t.ok(answer.status < 500, `${method} ${JSON.stringify(params)}`)
        t.notMatch(answer.error, { code: -32603 }, `${method} ${JSON.stringify(params)}`)
      }
    }
  t.match(await modern.rpc('initialize', {}), { status: 404, error: { code: -32601 } }, 'it has gone')
  const written: string[] = []
  const pipe = {
    lines: (async function* () {
      yield* lines
    })(),
    write: (line: string) => void written.push(line)
  }
  await serveHost(runtime, pipe, {})
  t.ok(written.length > 100)
  t.notMatch(written.join('\n'), /"code":-32603/)
  for (const { error } of [await modern.rpc('tools/list', { cursor: 5 }), await older('tools/list', { cursor: 5 })])
    t.match(error, { code: -32602, message: /^Invalid parameters: params\.cursor Invalid input: expected string/ })
  t.match(written.join('\n'), /params\.taskId Invalid input: expected string, received number/)
  t.strictSame(log, [])
})

await t.test('a client that reads nothing gets no more progress, and is disconnected after a while', async t => {
  for (const isLate of [true, false]) {
    const go = deferred()
    const work: WorkFunction = async ({ emit }) => {
      emit(progress('Grinding.'))
      await go.promise
      for (let i = 0; i < 1000; i += 1) emit(progress(`${i} ${'x'.repeat(10_000)}`))
      return { artifact: 'A coffee.' }
    }
    const { runtime, clock } = start(t, { card: { name: 'Barista' }, work })
    const followed = deferred()
    const { getTask } = runtime
    Object.assign(runtime, {
      getTask: (...given: Parameters<typeof getTask>) => (followed.resolve(), getTask(...given))
    })
    const handler = mcpHandler(runtime)
    let unread: Response | undefined
    const peer = mcpPeer(
      async request => {
        unread = await handler(request)
        return new Response()
      },
      { meta: { progressToken: 1 } }
    )
    await peer.call('Barista')
    go.resolve()
    await followed.promise
    await rest()
    clock.increment(isLate ? READER_STALL_MS - 1 : READER_STALL_MS)
    if (!isLate) {
      t.match(await rejection((unread as Response).text()), { message: 'The client read nothing for 30 seconds.' })
      continue
    }
    const { messages, text } = await answerOf(unread as Response)
    t.match(messages.at(-1), { result: { content: [{ text: 'A coffee.' }, {}] } })
    t.ok(text.length < 1024 * 1024, `${text.length} of 10,000,000 characters are kept for it`)
  }
})

await t.test('a large answer takes its share of memory until its client has read it', async t => {
  const parts = Array.from({ length: 4 }, () => data('x'.repeat(400_000)))
  const work: WorkFunction = () => ({ artifact: { parts } })
  const { runtime } = start(t, { card: { name: 'Barista' }, work }, { limits: { advanced: { answerBytes: 1 } } })
  const { id } = taskIn(await runtime.sendMessage(say('go', { contextId: 'c' })))
  const byMcp = async (): Promise<Response> => {
    let unread: Response | undefined
    const peer = mcpPeer(
      async request => {
        unread = await mcpHandler(runtime)(request)
        return new Response()
      },
      { tasks: true }
    )
    await peer.rpc('tasks/get', { taskId: id })
    return unread as Response
  }
  const byAgUi = () =>
    agUiHandler(runtime)(
      new Request('http://127.0.0.1:4242/ag-ui', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ threadId: 'c', runId: 'r', messages: [{ id: 'm', role: 'assistant', content: 'x' }] })
      })
    )
  for (const [first, second] of [
    [byMcp, byMcp],
    [byMcp, byAgUi],
    [byAgUi, byMcp]
  ] as const) {
    const read = await first()
    let isAnswered = false
    const waiting = second().then(answer => ((isAnswered = true), answer))
    await rest()
    t.notOk(isAnswered, 'the second waits')
    t.match(await read.text(), /x{1000}/)
    t.match(await (await waiting).text(), /x{1000}/)
  }
})
