import { SendMessageRequest } from '@a2a-js/sdk'
import { ServerCallContext } from '@a2a-js/sdk/server'
import t, { type Test } from 'tap'
import { toRequestHandler } from '../../../adapters/a2a-sdk/index.ts'
import { dialect01, dialect03 } from '../../../adapters/legacy/index.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import type { RuntimeOptions } from '../../../runtime/runtime-options.ts'
import { echo } from '../../fixtures/runtime/agents.ts'
import { ask, type Answer } from '../../fixtures/servers/http-agent.ts'
import { rejection, say, start, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { JsonSocket } from '../../fixtures/servers/served-agent.ts'
import type { TestClock } from '../../fixtures/runtime/test-clock.ts'

/** Serves an agent in every version that takes two requests a minute. */
async function serveTwo(t: Test, options: Partial<RuntimeOptions> = {}) {
  const started = start(
    t,
    { work: echo },
    { limits: { perPrincipal: { requestsPerMinute: 2 }, advanced: { framesPerSecond: 100 } }, ...options }
  )
  const { runtime } = started
  const served = await serve(runtime, { port: 0, dialects: [dialect03(runtime), dialect01(runtime)] })
  t.teardown(() => served.close())
  return { ...started, url: served.url }
}

const bad = (method: string, params: unknown) => ({ jsonrpc: '2.0', id: 1, method, params })
const DEEP = JSON.parse(`${'{"a":'.repeat(80)}1${'}'.repeat(80)}`)

/** Requests and frames that reach no operation, and what they hear; nothing if they are not answered. */
const FRAMES: Record<string, { readonly text: string; readonly code?: number; readonly version?: string }> = {
  'what is no JSON': { text: '{', code: -32700 },
  'a batch': { text: '[]', code: -32600 },
  'a request whose id is an object': { text: '{"jsonrpc":"2.0","id":{},"method":"GetTask"}', code: -32600 },
  'an unknown method': { text: JSON.stringify(bad('Nothing', {})), code: -32601 },
  'a method whose name is of a prototype': { text: JSON.stringify(bad('__proto__', {})), code: -32601 },
  'parameters that nest too deep': { text: JSON.stringify(bad('GetTask', DEEP)), code: -32602 },
  'parameters with __proto__': {
    text: '{"jsonrpc":"2.0","id":"__proto__","method":"GetTask","params":{"id":"x","metadata":{"__proto__":1}}}',
    code: -32602
  },
  'parameters that are none': { text: JSON.stringify(bad('GetTask', { id: 7 })), code: -32602 },
  'a version that is not served': { text: JSON.stringify(bad('GetTask', { id: 'x' })), code: -32009, version: '0.7' },
  'a method of a version that is not served': {
    text: JSON.stringify(bad('tasks/nothing', { id: 'x' })),
    code: -32009,
    version: '0.7'
  },
  'bad parameters of 0.3': { text: JSON.stringify(bad('tasks/get', { id: 7 })), code: -32602, version: '0.3' },
  'bad parameters of 0.3 to a stream': {
    text: JSON.stringify(bad('message/stream', { message: 7 })),
    code: -32602,
    version: '0.3'
  },
  'bad parameters of 0.1': { text: JSON.stringify(bad('tasks/send', { id: 7 })), code: -32602, version: '0.1' },
  'bad parameters of 0.1 to a stream': {
    text: JSON.stringify(bad('tasks/sendSubscribe', { id: 7 })),
    code: -32602,
    version: '0.1'
  }
}

/** What is answered differently, or not at all. */
const UNANSWERED: Record<string, string> = {
  'a notification': '{"jsonrpc":"2.0","method":"GetTask","params":{"id":"x"}}',
  'a cancelStream': '{"jsonrpc":"2.0","method":"cancelStream","params":{"id":"__proto__"}}',
  'an answer': '{"jsonrpc":"2.0","id":1,"result":{}}',
  'the end of a stream': '{"jsonrpc":"2.0","id":1,"streamEnd":true}'
}

const VERSION = { 'a2a-service-parameters': { 'a2a-version': '1.0' } }

const OVER = { code: -31429, data: [{ metadata: { quota: 'perPrincipal.requestsPerMinute' } }] }

/** An answer that a quota holds back. */
async function heldBack(clock: TestClock, asked: Promise<Answer>): Promise<Answer> {
  let answer: Answer | undefined
  void asked.then(got => (answer = got))
  return until(() => (clock.increment(50), answer))
}

for (const [name, { text, code, version = '1.0' }] of Object.entries(FRAMES)) {
  await t.test(`${name} counts as a request over WebSocket and over HTTP`, async t => {
    const overSocket = await serveTwo(t)
    const socket = await JsonSocket.open(t, overSocket.url)
    const frame = text.startsWith('{"')
      ? text.replace('{"', `{"a2a-service-parameters":{"a2a-version":"${version}"},"`)
      : text
    // The data of an error of 0.1 has another form.
    const over = version === '0.1' ? { code: OVER.code } : OVER
    for (const expected of [{ code }, { code }, over]) {
      socket.send(frame)
      t.match((await socket.next()).error, expected)
    }
    t.match((await socket.call('ListTasks', {}, VERSION)).error, OVER)

    const overHttp = await serveTwo(t)
    const sent = () => ask(overHttp.url, { body: text, headers: { 'a2a-version': version } })
    for (const _ of [1, 2]) t.match((await sent()).json, { error: { code } })
    const refused = await heldBack(overHttp.clock, sent())
    t.match(refused, { status: 429, json: { error: over } })
    t.ok(refused.headers.get('retry-after'))
  })
}

for (const [name, frame] of Object.entries(UNANSWERED)) {
  await t.test(`${name} from a client counts as a request over WebSocket and over HTTP`, async t => {
    const { url } = await serveTwo(t)
    const socket = await JsonSocket.open(t, url)
    for (const _ of [1, 2]) socket.send(frame)
    t.match((await socket.call('ListTasks', {})).error, OVER)

    const { url: other, clock } = await serveTwo(t)
    for (const _ of [1, 2]) t.ok((await ask(other, { body: frame })).status < 300)
    t.equal((await heldBack(clock, ask(other, { body: frame }))).status, 429)
  })
}

/** Requests by REST that reach no operation, and their status. */
const REQUESTS: Record<
  string,
  {
    readonly path: string
    readonly status: number
    readonly body?: string
    readonly method?: string
    readonly headers?: Record<string, string>
  }
> = {
  'a path where nothing is': { path: 'nothing', status: 404 },
  'a verb that a path does not have': { path: 'tasks', status: 405, method: 'DELETE' },
  'a body that is no JSON': { path: 'message:send', status: 400, body: '{' },
  'a body of another type': {
    path: 'message:send',
    status: 415,
    body: '{}',
    headers: { 'content-type': 'text/plain' }
  },
  'a body of JSON-RPC of another type': {
    path: '',
    status: 415,
    body: '{}',
    headers: { 'content-type': 'text/plain' }
  },
  'an encoded body': {
    path: 'message:send',
    status: 415,
    body: '{}',
    headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' }
  },
  'a body with __proto__': { path: 'message:send', status: 400, body: '{"__proto__":{}}' },
  'a parameter that is none': { path: 'tasks?pageSize=x', status: 400 },
  'a tenant that is not percent-encoded': { path: '%ff/tasks', status: 400 },
  'a path of 0.3 where nothing is': { path: 'v1/nothing', status: 404, headers: { 'a2a-version': '0.3' } },
  'a body of 0.3 that is no JSON': {
    path: 'v1/message:send',
    status: 400,
    body: '{',
    headers: { 'a2a-version': '0.3' }
  },
  'a body of 0.3 with bad parameters': {
    path: 'v1/message:send',
    status: 400,
    body: '{"message":7}',
    headers: { 'a2a-version': '0.3' }
  }
}

for (const [name, { path, status, ...request }] of Object.entries(REQUESTS)) {
  await t.test(`${name} counts as a request by REST`, async t => {
    const { url, clock } = await serveTwo(t)
    for (const _ of [1, 2]) t.equal((await ask(`${url}${path}`, request)).status, status)
    const refused = await heldBack(clock, ask(`${url}${path}`, request))
    t.equal(refused.status, 429)
    t.equal((await heldBack(clock, ask(`${url}tasks`))).status, 429)
  })
}

await t.test('an interrupted upload counts with the bytes that arrived', async t => {
  const { url, clock } = await serveTwo(t, { limits: { messageBytes: 1000, perPrincipal: { bytesPerMinute: 900 } } })
  const upload = () => new ReadableStream({ start: to => (to.enqueue(new Uint8Array(1001)), to.close()) })
  const sent = () =>
    ask(`${url}message:send`, {
      body: upload(),
      duplex: 'half',
      headers: { 'content-type': 'application/json' }
    } as object)
  t.equal((await sent()).status, 413)
  t.match(await heldBack(clock, ask(`${url}tasks`)), {
    status: 429,
    json: { error: { details: [{ metadata: { quota: 'perPrincipal.bytesPerMinute' } }] } }
  })
})

await t.test('a ping counts, and is still answered', async t => {
  const { url } = await serveTwo(t)
  const socket = await JsonSocket.open(t, url)
  for (let id = 1; id <= 3; id += 1) {
    socket.send(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`)
    t.strictSame(await socket.next(), { jsonrpc: '2.0', id, result: {} })
  }
  t.match((await socket.call('ListTasks', {})).error, OVER)
})

await t.test('a frame over the rate of its connection counts', async t => {
  const { url } = await serveTwo(t, {
    limits: { perPrincipal: { requestsPerMinute: 2 }, advanced: { framesPerSecond: 1 } }
  })
  const socket = await JsonSocket.open(t, url)
  const heard: unknown[] = []
  for (let count = 0; count < 3; count += 1)
    heard.push((await socket.call('ListTasks', {})).error?.data[0]?.['metadata'])
  t.match(heard, [undefined, undefined, { quota: 'perPrincipal.requestsPerMinute' }])
})

await t.test('a client over its quota that sends invalid requests is not read for a while', async t => {
  const { url, clock } = await serveTwo(t)
  const socket = await JsonSocket.open(t, url)
  for (let count = 0; count < 18; count += 1) socket.send('{')
  for (let count = 0; count < 18; count += 1) await socket.next()
  const later = socket.call('ListTasks', {})
  let isAnswered = false
  void later.then(() => (isAnswered = true))
  for (let turn = 0; turn < 50; turn += 1) await new Promise(resolve => setImmediate(resolve))
  t.notOk(isAnswered)
  await until(() => (clock.increment(100), isAnswered))
})

await t.test('an invalid request counts for the named tenant if its caller may use it', async t => {
  const tenants = { blue: { members: ['anna'], limits: { perPrincipal: { requestsPerMinute: 1 } } } }
  const byName = ({ headers }: { headers: Readonly<Record<string, string | undefined>> }) => ({
    id: headers['x-name'] ?? ''
  })
  const { url, clock } = await serveTwo(t, { tenants, authenticate: byName, limits: {} })
  const bad = (name: string) =>
    ask(url, {
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'Nothing', params: { tenant: 'blue' } }),
      headers: { 'x-name': name }
    })
  for (const _ of [1, 2]) t.equal((await bad('bob')).status, 200)
  t.equal((await bad('anna')).status, 200)
  t.equal((await heldBack(clock, bad('anna'))).status, 429)
})

await t.test('a request to the official servers over the JSON limits counts too', async t => {
  const { runtime } = start(
    t,
    { work: echo },
    { limits: { perPrincipal: { requestsPerMinute: 2 }, advanced: { jsonDepth: 4 } } }
  )
  const handler = toRequestHandler(runtime)
  const context = () => new ServerCallContext({ requestedVersion: '1.0' })
  const params = () => SendMessageRequest.fromJSON(say('x', { metadata: { a: { b: { c: 1 } } } }))
  t.match(await rejection(handler.sendMessage(params(), context())), { message: /Invalid parameters/ })
  t.match(await rejection(handler.sendMessageStream(params(), context()).next()), { message: /Invalid parameters/ })
  t.match(await rejection(handler.sendMessage(params(), context())), { message: /limit of 2 requests/ })
  t.match(await rejection(handler.sendMessageStream(params(), context()).next()), { message: /limit of 2 requests/ })
})

await t.test('a request for an extended card without credentials is counted', async t => {
  const { runtime } = start(
    t,
    { work: echo, extendedCard: { description: 'More.' } },
    { limits: { perPrincipal: { requestsPerMinute: 1 } } }
  )
  t.match(await rejection(runtime.getExtendedAgentCard({})), { code: 'Unauthenticated' })
  t.match(await rejection(runtime.getExtendedAgentCard({})), { code: 'RateLimited' })
})
