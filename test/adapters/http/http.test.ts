import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { request as nodeRequest, type ServerResponse } from 'node:http'
import { connect, Socket } from 'node:net'
import t from 'tap'
import { statusAnswer } from '../../../adapters/entry/answers.ts'
import { disconnectSignal } from '../../../adapters/entry/connection.ts'
import { bodyOf } from '../../../adapters/http/parameters.ts'
import { HttpCall } from '../../../adapters/http/call.ts'
import { READER_STALL_MS } from '../../../adapters/entry/connection.ts'
import {
  BodySink,
  EventStream,
  KEEP_ALIVE_MS,
  NodeResponseSink,
  sentEvent,
  type StreamSink,
  type SinkEvents
} from '../../../adapters/http/event-stream.ts'
import { callParameters } from '../../../adapters/json-rpc/service-parameters.ts'
import { httpHandler, serve } from '../../../adapters/serve/serve.ts'
import { A2AError } from '../../../machines/protocol/errors.ts'
import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import { AGENT_CARD_PATH, RELIABILITY_EXTENSION, WEBSOCKET_BINDING } from '../../../machines/protocol/uris.ts'
import { artifact } from '../../../runtime/authoring/words.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { echo, steeredWork } from '../../fixtures/runtime/agents.ts'
import { ask, OpenStream, rpc, sentEvents, serveAll, type SentEvent } from '../../fixtures/servers/http-agent.ts'
import {
  brief,
  deferred,
  generationOf,
  open,
  reaches,
  rest,
  say,
  start,
  taskIn,
  until
} from '../../fixtures/runtime/runtime-helpers.ts'
import { JsonSocket, obedient } from '../../fixtures/servers/served-agent.ts'
import { standsStill } from '../../fixtures/runtime/stands-still.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

const JSON_TYPE = { 'content-type': 'application/json', 'a2a-version': '1.0' }

/** What events told, whether they are those of REST or answers of JSON-RPC. */
function told(events: readonly (SentEvent | undefined)[]): string[] {
  return events.map(event => {
    const data = event?.data as (StreamResponse & { result?: StreamResponse }) | undefined
    return data ? brief(data.result ?? data) : String(event && 'comment')
  })
}

const STREAMS: readonly [binding: string, path: string, body: (params: object) => unknown][] = [
  ['JSON-RPC', '', params => ({ jsonrpc: '2.0', id: 'a', method: 'SendStreamingMessage', params })],
  ['REST', 'message:stream', params => params]
]

await t.test('every operation has the same result by REST and by JSON-RPC', async t => {
  const { url } = await serveAll(t, { work: obedient })
  const contextId = 'c'
  const sent = await ask(`${url}message:send`, { body: JSON.stringify(say('hello', { contextId })) })
  t.equal(sent.status, 200)
  const { id } = taskIn(sent.json as never)
  const both = async (path: string, method: string, params: unknown, init = {}) => {
    const [byRest, byRpc] = [await ask(`${url}${path}`, init), await rpc(url, method, params)]
    t.strictSame(byRest.json, (byRpc.json as { result: unknown }).result, path)
    t.equal(byRest.status, 200)
    return byRest.json
  }
  await both(`tasks/${id}`, 'GetTask', { id })
  await both(`tasks/${id}/`, 'GetTask', { id })
  await both(`/tasks/${id}?historyLength=0`, 'GetTask', { id, historyLength: 0 })
  await both('tasks', 'ListTasks', {})
  t.match(
    await both(
      'tasks?contextId=c&pageSize=1&includeArtifacts=true&status=TASK_STATE_COMPLETED&A2A-Version=1.0',
      'ListTasks',
      { contextId, pageSize: 1, includeArtifacts: true, status: 'TASK_STATE_COMPLETED' }
    ),
    { tasks: [{ artifacts: [{}] }], totalSize: 1 }
  )
  t.match(
    await both('tasks?include_artifacts=false&statusTimestampAfter=2027-01-01T00%3A00%3A00Z', 'ListTasks', {
      includeArtifacts: false,
      statusTimestampAfter: '2027-01-01T00:00:00Z'
    }),
    { tasks: [], nextPageToken: '', totalSize: 0 }
  )
  const waiting = taskIn(
    (await rpc(url, 'SendMessage', say('wait', { contextId }, { returnImmediately: true }))).json['result'] as never
  )
  t.match(
    await ask(`${url}tasks/${waiting.id}:cancel`, { method: 'POST' }),
    { status: 200, json: { id: waiting.id, status: { state: 'TASK_STATE_CANCELED' } } },
    'without a body and without a type'
  )
  await both(
    `tasks/${waiting.id}:cancel`,
    'CancelTask',
    { id: waiting.id },
    { body: `{"id":"${waiting.id}","metadata":{"why":"enough"}}` }
  )
})

await t.test("responses have A2A's content type on request, and plain JSON otherwise", async t => {
  const { url } = await serveAll(t, { work: echo })
  const typeOf = async (headers: Record<string, string>, path = 'tasks') =>
    (await ask(`${url}${path}`, { headers })).headers.get('content-type')
  t.equal(await typeOf({}), 'application/json')
  t.equal(await typeOf({ accept: 'application/json' }), 'application/json')
  t.equal(await typeOf({ accept: 'text/html, application/a2a+json;q=0.9' }), 'application/a2a+json')
  t.equal(await typeOf({ accept: 'application/a2a+json' }, 'tasks/nobody'), 'application/a2a+json')
  const sent = await ask(`${url}message:send`, {
    body: JSON.stringify(say('a')),
    headers: { 'content-type': 'application/a2a+json' }
  })
  t.strictSame([sent.status, sent.headers.get('content-type')], [200, 'application/a2a+json'])
})

await t.test('a stream sends server-sent events, one per line, with generations as ids', async t => {
  const { url } = await serveAll(t, { work: obedient })
  for (const [binding, path, body] of STREAMS) {
    const { status, headers, text } = await ask(`${url}${path}`, { body: JSON.stringify(body(say('count 2'))) })
    t.equal(status, 200)
    t.strictSame(
      [headers.get('content-type'), headers.get('cache-control'), headers.get('x-accel-buffering')],
      ['text/event-stream', 'no-cache', 'no']
    )
    const events = sentEvents(text)
    t.strictSame(
      told(events),
      ['task:submitted', 'working', 'artifact: 1', 'artifact: 2', 'artifact: count 2', 'completed'],
      binding
    )
    t.strictSame(
      events.map(({ id }) => id),
      ['2', '3', '4', '5', '6', '7']
    )
    if (path === '') for (const { data } of events) t.match(data, { jsonrpc: '2.0', id: 'a', result: {} })
    t.strictSame(
      events.flatMap(
        ({ data }) => generationOf((data as { result?: StreamResponse }).result ?? (data as StreamResponse)) ?? []
      ),
      [],
      'without the extension there is no other sign of it'
    )
  }
})

await t.test('a subscription works by GET and POST, and resumes after Last-Event-ID', async t => {
  const { url, runtime } = await serveAll(t, { work: obedient })
  const task = await open(runtime, 'ask')
  await reaches(runtime, task.id, 'input-required')
  const reliable = { ...JSON_TYPE, 'a2a-extensions': RELIABILITY_EXTENSION }
  const streams = [
    await OpenStream.open(t, `${url}tasks/${task.id}:subscribe`, { headers: JSON_TYPE }),
    await OpenStream.open(t, `${url}tasks/${task.id}:subscribe`, { method: 'POST', headers: { 'a2a-version': '1.0' } }),
    await OpenStream.open(t, url, {
      method: 'POST',
      headers: JSON_TYPE,
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id: task.id } })
    })
  ]
  for (const stream of streams) t.match(await stream.next(), { id: '4' })
  const resumed = await OpenStream.open(t, `${url}tasks/${task.id}:subscribe`, {
    headers: { ...reliable, 'last-event-id': '2' }
  })
  t.equal(resumed.response.headers.get('a2a-extensions'), RELIABILITY_EXTENSION)
  t.strictSame(told([await resumed.next(), await resumed.next()]), ['working', 'input-required: And then?'])
  const ignored = await OpenStream.open(t, `${url}tasks/${task.id}:subscribe`, {
    headers: { ...JSON_TYPE, 'last-event-id': '1' }
  })
  t.strictSame(told([await ignored.next()]), ['task:input-required'], 'without the extension a cursor is ignored')
  await runtime.sendMessage(say('blue', { taskId: task.id }))
  for (const stream of [...streams, resumed])
    t.strictSame(told([await stream.next(), await stream.next(), await stream.next(), await stream.next()]), [
      'working',
      'artifact: blue',
      'completed',
      'undefined'
    ])
  const missed = await ask(`${url}tasks/${task.id}:subscribe`, {
    headers: { ...reliable, 'taskchart-after-generation': '6' }
  })
  t.strictSame(
    sentEvents(missed.text).map(({ id }) => id),
    ['7', '8'],
    'also of an ended task'
  )
  t.match(
    await ask(`${url}tasks/${task.id}:subscribe`, { headers: { ...reliable, 'taskchart-after-generation': '8' } }),
    { status: 200, text: '' }
  )
  t.match((await ask(`${url}tasks/${task.id}:subscribe`, { headers: { ...reliable, 'last-event-id': '9' } })).json, {
    error: { code: 400 }
  })
  t.match((await ask(`${url}tasks/${task.id}:subscribe`, { headers: { ...reliable, 'last-event-id': 'x' } })).json, {
    error: { code: 400 }
  })
})

await t.test('a stream without events starts after a second, and sends a comment every 15', async t => {
  const { url, runtime, clock } = await serveAll(t, { work: obedient })
  const task = await open(runtime, 'wait')
  await reaches(runtime, task.id, 'working')
  const timers = clock.size
  const opening = OpenStream.open(t, `${url}tasks/${task.id}:subscribe`, {
    headers: { ...JSON_TYPE, 'a2a-extensions': RELIABILITY_EXTENSION, 'last-event-id': '3' }
  })
  await until(() => clock.size > timers)
  await rest()
  clock.increment(1000)
  const stream = await opening
  t.equal(stream.response.status, 200)
  clock.increment(KEEP_ALIVE_MS)
  t.strictSame(await stream.next(), {})
  clock.increment(KEEP_ALIVE_MS)
  t.strictSame(await stream.next(), {})
  await runtime.cancelTask({ id: task.id })
  t.strictSame(told([await stream.next(), await stream.next()]), ['canceled', 'undefined'])
  await until(() => clock.size <= timers, 'no timer is left')
})

await t.test('an error of a started stream is its last event', async t => {
  const { url, runtime } = await serveAll(t, { work: obedient })
  for (const [, path, body] of STREAMS) {
    const stream = await OpenStream.open(t, `${url}${path}`, {
      method: 'POST',
      headers: JSON_TYPE,
      body: JSON.stringify(body(say('wait', { contextId: 'gone' })))
    })
    t.strictSame(told([await stream.next(), await stream.next()]), ['task:submitted', 'working'])
    await runtime.erase({ principal: 'anonymous', contextId: 'gone' })
    t.match(await stream.next(), { data: { error: { code: path === '' ? -32001 : 404 } } })
    t.equal(await stream.next(), undefined)
  }
})

await t.test('a client that disconnects ends its stream or call, and never the task', async t => {
  const { work, run } = steeredWork()
  const { url, runtime, clock } = await serveAll(t, { work })
  const before = clock.size
  const stream = await OpenStream.open(t, `${url}message:stream`, {
    method: 'POST',
    headers: JSON_TYPE,
    body: JSON.stringify(say('a'))
  })
  t.strictSame(told([await stream.next(), await stream.next()]), ['task:submitted', 'working'])
  stream.cut()
  const leaving = new AbortController()
  const waiting = fetch(`${url}message:send`, {
    method: 'POST',
    headers: JSON_TYPE,
    body: JSON.stringify(say('b')),
    signal: leaving.signal
  }).catch(error => error)
  await run(1)
  leaving.abort()
  t.match(await waiting, { name: 'AbortError' })
  await until(() => clock.size === before, 'the keep-alive of the stream is gone')
  for (const which of [0, 1]) (await run(which)).resolve({ artifact: 'done' })
  await until(async () => (await runtime.listTasks({ status: 'TASK_STATE_COMPLETED' })).totalSize === 2)
})

/** Work that tells so many artifacts of 64 KiB, more than fit between two ends of a connection. */
const flood = (chunks: number) =>
  async function* () {
    for (let i = 0; i < chunks; i += 1) yield artifact('x'.repeat(64 * 1024))
  }

/**
 * Waits until a stream waits for its client: beside the timer of its keep-alive that for who reads nothing is set, and
 * stays.
 */
function unread(clock: TestClock, before: number): Promise<void> {
  return standsStill(() => clock.size === before + 2 && clock.size, 'the stream to be full')
}

await t.test('a client that stops reading is closed after a wait, while others are served', async t => {
  const printed = t.capture(console, 'error').args
  const { url, runtime, clock, log } = await serveAll(t, { work: flood(600) }, { limits: { taskBytes: 2 ** 30 } })
  const before = clock.size
  const { port } = new URL(url)
  const socket = connect(Number(port), '127.0.0.1').on('error', () => {})
  t.teardown(() => socket.destroy())
  socket.pause()
  const body = JSON.stringify(say('a', { contextId: 'slow' }))
  socket.write(
    `POST /message:stream HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  )
  await until(async () => (await runtime.listTasks({ status: 'TASK_STATE_COMPLETED' })).totalSize === 1)
  const { json } = await ask(`${url}tasks?contextId=slow`)
  t.match(json, { totalSize: 1 })
  await unread(clock, before)
  clock.increment(READER_STALL_MS - 1)
  t.equal(clock.size, before + 2, 'not yet')
  clock.increment(1)
  t.equal(clock.size, before, 'now')
  const closed = once(socket, 'close')
  socket.resume()
  await closed
  t.ok(socket.bytesRead < 600 * 64 * 1024, 'unread events are not sent')
  t.same(log, [])
  t.same(printed(), [], 'a client cannot have the server print')
})

await t.test('a client that reads late receives every event once', async t => {
  const { url, clock } = await serveAll(t, { work: flood(300) }, { limits: { taskBytes: 2 ** 30 } })
  const before = clock.size
  const stream = await OpenStream.open(t, `${url}message:stream`, {
    method: 'POST',
    headers: JSON_TYPE,
    body: JSON.stringify(say('a'))
  })
  await unread(clock, before)
  const ids = []
  for (let event = await stream.next(); event; event = await stream.next()) ids.push(Number(event.id))
  t.strictSame(
    ids,
    Array.from({ length: 303 }, (_, i) => i + 2)
  )
})

await t.test('an activated extension is echoed, and its conditions apply', async t => {
  const { url, runtime } = await serveAll(t, { work: obedient })
  const reliable = { 'a2a-extensions': `urn:unknown, ${RELIABILITY_EXTENSION}` }
  const message = say('ask')
  const sent = await rpc(url, 'SendMessage', message, reliable)
  t.equal(sent.headers.get('a2a-extensions'), RELIABILITY_EXTENSION)
  const task = taskIn(sent.json['result'] as never)
  t.equal(generationOf({ task }), 4)
  t.strictSame((await rpc(url, 'SendMessage', message, reliable)).json, sent.json, 'a message is processed once')
  const answer = say('x', { taskId: task.id })
  t.match(
    await ask(`${url}message:send`, {
      body: JSON.stringify(answer),
      headers: { ...reliable, 'taskchart-if-generation-match': '2' }
    }),
    {
      status: 409,
      json: {
        error: {
          status: 'ABORTED',
          details: [{ metadata: { taskId: task.id, expectedGeneration: '2', currentGeneration: '4' } }]
        }
      }
    }
  )
  const polled = ask(`${url}tasks/${task.id}`, { headers: { ...reliable, 'taskchart-current-generation': '4' } })
  await rest()
  await runtime.sendMessage(answer)
  t.match((await polled).json, { id: task.id, status: { state: /WORKING|COMPLETED/ } })
  t.equal((await rpc(url, 'GetTask', { id: task.id })).headers.get('a2a-extensions'), null)
})

await t.test("the card lists the interfaces by the request's address or the public one", async t => {
  const { url } = await serveAll(t, { work: echo })
  const interfaces = async (base: string, path = AGENT_CARD_PATH) =>
    (await ask(new URL(path, base))).json['supportedInterfaces']
  const host = new URL(url).host
  t.strictSame(await interfaces(url), [
    { url: `ws://${host}/`, protocolBinding: WEBSOCKET_BINDING, protocolVersion: '1.0' },
    { url: `http://${host}/`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    { url: `http://${host}`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' }
  ])
  const proxied = await serveAll(t, { work: echo }, { publicUrl: 'https://agent.example/a2a/' }, { path: '/inside' })
  const listed = [
    { url: 'wss://agent.example/a2a/', protocolBinding: WEBSOCKET_BINDING, protocolVersion: '1.0' },
    { url: 'https://agent.example/a2a/', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    { url: 'https://agent.example/a2a', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' }
  ]
  t.strictSame(await interfaces(proxied.url), listed)
  t.strictSame(await interfaces(proxied.url, `/inside${AGENT_CARD_PATH}`), listed)
  t.match((await rpc(new URL('/inside', proxied.url).href, 'ListTasks', {})).json, { result: { totalSize: 0 } })
  t.match((await ask(new URL('/inside/tasks', proxied.url))).json, { totalSize: 0 })
  t.equal((await ask(new URL('/tasks', proxied.url))).status, 404)
  t.match((await ask(new URL('/', proxied.url))).text, 'wss://agent.example/a2a/')
})

await t.test('conditional requests for the card get 304, by ETag or date', async t => {
  const { url } = await serveAll(t, { work: echo })
  const card = new URL(AGENT_CARD_PATH, url)
  const { headers } = await ask(card)
  const [etag, date] = [headers.get('etag') ?? '', headers.get('last-modified') ?? '']
  t.equal(date, 'Fri, 02 Jan 2026 03:04:05 GMT')
  const status = async (headers: Record<string, string>) => (await ask(card, { headers })).status
  t.equal(await status({ 'if-none-match': etag }), 304)
  t.equal(await status({ 'if-none-match': '*' }), 304)
  t.equal(await status({ 'if-modified-since': date }), 304)
  t.equal(await status({ 'if-modified-since': 'Fri, 02 Jan 2026 03:04:04 GMT' }), 200)
  t.equal(await status({ 'if-modified-since': 'yesterday' }), 200)
  t.equal(
    await status({ 'if-none-match': '"other"', 'if-modified-since': date }),
    200,
    'a tag takes precedence over a date'
  )
  t.equal((await ask(card, { method: 'POST' })).status, 405)
})

await t.test('pages of allowed origins may call and read, and others may not', async t => {
  const { url } = await serveAll(t, { work: echo }, { origins: ['https://app.example'] })
  const page = { origin: 'https://app.example' }
  const preflight = await ask(`${url}message:send`, {
    method: 'OPTIONS',
    headers: { ...page, 'access-control-request-headers': 'content-type,a2a-version' }
  })
  t.equal(preflight.status, 204)
  t.match(Object.fromEntries(preflight.headers), {
    'access-control-allow-origin': 'https://app.example',
    'access-control-allow-headers': 'content-type,a2a-version',
    'access-control-allow-methods': /POST/
  })
  t.match(Object.fromEntries((await ask(`${url}message:send`, { method: 'OPTIONS', headers: page })).headers), {
    'access-control-allow-headers': 'content-type'
  })
  for (const answer of [
    await rpc(url, 'ListTasks', {}, page),
    await ask(`${url}tasks/nobody`, { headers: page }),
    await ask(`${url}nothing/at/all/here`, { headers: page })
  ]) {
    t.match(Object.fromEntries(answer.headers), {
      'access-control-allow-origin': 'https://app.example',
      'access-control-expose-headers': /A2A-Extensions/,
      vary: /Origin/
    })
  }
  const locked = await serveAll(t, { work: echo }, { origins: ['https://app.example'], authenticate: () => undefined })
  const refused = await rpc(locked.url, 'ListTasks', {}, page)
  t.equal(refused.status, 401)
  const card = await ask(`${url}${AGENT_CARD_PATH.slice(1)}`, { headers: page })
  const known = await ask(`${url}${AGENT_CARD_PATH.slice(1)}`, {
    headers: { ...page, 'if-none-match': card.headers.get('etag') ?? '' }
  })
  t.equal(known.status, 304)
  for (const { headers } of [refused, card, known])
    t.equal(headers.get('access-control-allow-origin'), 'https://app.example')
  t.equal(
    (await ask(`${url}${AGENT_CARD_PATH.slice(1)}`)).headers.get('vary'),
    'A2A-Version, Origin',
    'Vary separates the cached responses of origins'
  )
  for (const origin of ['https://evil.example', 'null', 'http://localhost']) {
    for (const method of ['OPTIONS', 'GET', 'POST'])
      t.equal((await ask(url, { method, headers: { origin } })).status, 403)
  }
  t.equal((await ask(url, { method: 'OPTIONS' })).status, 204)
  t.equal(
    (await rpc(url, 'ListTasks', {}, { origin: url.slice(0, -1) })).status,
    200,
    'the origin of the server itself'
  )
})

await t.test('an authenticate that does not answer in time gives 503', async t => {
  const asked = deferred()
  const authenticate = () => (asked.resolve(), new Promise<undefined>(() => {}))
  const { url, log, clock } = await serveAll(
    t,
    { work: echo },
    { authenticate, limits: { advanced: { accessMs: 20 } } }
  )
  const answer = rpc(url, 'ListTasks', {}, { authorization: 'Ada' })
  await asked.promise
  clock.increment(20)
  t.equal((await answer).status, 503)
  t.match(log, [
    {
      message: 'authenticate failed',
      details: { error: { cause: { message: 'authenticate gave no answer within 20 ms' } } }
    }
  ])
})

await t.test('every request is authenticated except those for the card and the page', async t => {
  const authenticate = ({ headers }: { headers: Record<string, string | undefined> }) => {
    if (headers['authorization'] === 'broken') throw new Error('s3cret')
    return headers['authorization'] === undefined ? undefined : { id: headers['authorization'] }
  }
  const { url, log } = await serveAll(t, { work: echo }, { authenticate })
  for (const path of ['', AGENT_CARD_PATH.slice(1)]) t.equal((await ask(`${url}${path}`)).status, 200)
  for (const answer of [
    await rpc(url, 'ListTasks', {}),
    await ask(`${url}tasks`),
    await ask(`${url}nothing`),
    await rpc(url, 'ListTasks', {}, { authorization: 'broken' })
  ]) {
    t.equal(answer.status, 401)
    t.equal(answer.headers.get('www-authenticate'), 'Bearer')
    t.match(answer.json, { error: { message: /credentials/ } })
    t.notMatch(answer.text, 's3cret')
  }
  t.match(log, [{ message: 'authenticate failed' }])
  const { id } = taskIn(
    (await ask(`${url}message:send`, { body: JSON.stringify(say('a')), headers: { authorization: 'Ada' } }))
      .json as never
  )
  t.match((await rpc(url, 'GetTask', { id }, { authorization: 'Ada' })).json, { result: { id } })
  const [foreign, absent] = [
    await ask(`${url}tasks/${id}`, { headers: { authorization: 'Bob' } }),
    await ask(`${url}tasks/${'x'.repeat(id.length)}`, { headers: { authorization: 'Bob' } })
  ]
  t.equal(foreign.text.replaceAll(id, 'x'.repeat(id.length)), absent.text, "another caller's task is not found")
})

await t.test('expired credentials are refused', async t => {
  const clock = new TestClock()
  const { url } = await serveAll(
    t,
    { work: echo },
    { clock, authenticate: ({ headers }) => ({ id: 'anna', expiresAtMs: Number(headers['x-until']) }) }
  )
  const status = async (untilMs: number) =>
    (await ask(`${url}tasks`, { headers: { 'x-until': String(untilMs) } })).status
  t.equal(await status(clock.now() + 1), 200)
  t.equal(await status(clock.now()), 401)
})

await t.test('a principal may have additional members', async t => {
  const anna = { id: 'anna', status: 'active', message: 'hello', headers: { 'x-internal': 's3cret' } }
  const { url } = await serveAll(t, { work: echo }, { authenticate: () => anna })
  t.match((await ask(`${url}tasks`)).json, { totalSize: 0 })
  t.match(await (await JsonSocket.open(t, url.replace('http', 'ws'))).call('ListTasks', {}), {
    result: { totalSize: 0 }
  })
})

await t.test('a foreign host, too many connections and a closing server refuse requests', async t => {
  const { url, runtime } = await serveAll(t, { work: obedient }, { limits: { connections: 2 } })
  const asked = nodeRequest(url, { headers: { host: 'evil.example' } }).end()
  const [response] = await once(asked, 'response')
  t.equal(response.statusCode, 421)
  response.resume()
  const task = await open(runtime, 'wait')
  const streams = await Promise.all(
    [1, 2].map(() => OpenStream.open(t, `${url}tasks/${task.id}:subscribe`, { headers: JSON_TYPE }))
  )
  const full = await ask(`${url}tasks`)
  t.strictSame([full.status, full.headers.get('retry-after')], [503, '1'])
  streams[0]?.cut()
  await until(async () => (await ask(`${url}tasks`)).status === 200)
})

await t.test('the handler answers Request objects by itself', async t => {
  const { runtime } = start(t, { work: echo })
  const handler = httpHandler(runtime)
  const sent = await handler(
    new Request('http://localhost/', {
      method: 'POST',
      headers: JSON_TYPE,
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: say('a') })
    })
  )
  t.match(await sent.json(), { result: { task: {} } })
  t.equal((await handler(new Request('http://localhost/tasks', { headers: { 'a2a-version': '1.0' } }))).status, 200)
  t.equal(
    (await handler(new Request('http://evil.example/tasks'))).status,
    421,
    'without authenticate only loopback names are served'
  )
  const open = start(t, { work: echo }, { authenticate: () => ({ id: 'a' }) })
  t.equal(
    (await httpHandler(open.runtime)(new Request('http://agent.example/tasks', { headers: { 'a2a-version': '1.0' } })))
      .status,
    200
  )
})

await t.test('an error over HTTP has its status and Retry-After, and reveals no internals', async t => {
  const ours = statusAnswer(new Error('s3cret'))
  t.equal(ours.status, 500)
  t.notMatch(await ours.text(), 's3cret')
  t.equal(
    statusAnswer(new A2AError('RateLimited', 'Too many.', { retryAfterMs: 1500 })).headers.get('retry-after'),
    '2'
  )
  t.equal(statusAnswer(new A2AError('Unauthenticated')).headers.get('www-authenticate'), 'Bearer')
  const { runtime } = start(t, { work: echo })
  const entered = {
    path: '/',
    query: new URLSearchParams(),
    parameters: callParameters(new Map(), { version: '1.0', extensions: '' }, []),
    headers: {},
    interfaces: []
  }
  const callOf = (init: RequestInit) =>
    new HttpCall(
      runtime.settings,
      new Request('http://localhost/', { method: 'POST', ...init }),
      {},
      entered,
      { principal: undefined, pathTenant: undefined, traced: undefined },
      undefined
    )
  const read = async (init: RequestInit) => bodyOf(callOf(init), 10)
  const broken = new ReadableStream<Uint8Array>({ pull: controller => controller.error(new Error('gone')) })
  await t.rejects(read({ body: broken, duplex: 'half' }), { code: 'ParseError', message: 'The body is incomplete.' })
  const short = new ReadableStream<Uint8Array>({ pull: controller => controller.error(new Error('gone')) })
  await t.rejects(read({ body: short, duplex: 'half', headers: { 'content-length': '5' } }), {
    code: 'ParseError',
    message: 'The body is incomplete.'
  })
  const endless = new ReadableStream<Uint8Array>({ pull: controller => controller.enqueue(Buffer.alloc(6)) })
  await t.rejects(read({ body: endless, duplex: 'half' }), { code: 'TooLarge' })
  t.equal(await read({}), '')
  const { url } = await serveAll(t, { work: echo })
  t.equal((await ask(new URL(AGENT_CARD_PATH, url), { headers: { 'a2a-version': 'latest' } })).status, 200)
})

await t.test('events wait for a slow client, and end with its connection', async t => {
  const clock = new TestClock()
  let made = 0
  let stops = 0
  const many = (sink: BodySink) => {
    const stream = new EventStream(sink, clock, () => (stops += 1))
    const tell = async () => {
      for (made = 0; made < 1000 && stream.isOpen; made += 1) {
        stream.send(sentEvent('x'.repeat(1024), made))
        await stream.drained
      }
      stream.end()
    }
    void tell()
    return sink.body
  }
  const reader = many(new BodySink()).getReader()
  await rest()
  t.ok(made < 100, 'no more is produced than fits')
  await reader.read()
  await rest()
  const before = made
  await until(async () => !(await reader.read()).done && made > before)
  await reader.cancel()
  await rest()
  t.equal(stops, 1)
  t.ok(made < 1000)
  t.equal(clock.size, 0, 'no timer is left')
  const stuck = many(new BodySink())
  await rest()
  clock.increment(READER_STALL_MS)
  await rest()
  t.equal(stops, 2)
  t.equal(clock.size, 0)
  await t.rejects(stuck.getReader().read(), { message: /30 seconds/ })
  let cuts = 0
  many(new BodySink(() => (cuts += 1)))
  await rest()
  clock.increment(READER_STALL_MS)
  t.strictSame([cuts, stops], [1, 3], 'a known connection is closed')
})

/** A stream whose client is the test: `read` has it take what it was sent. */
function streamTo(clock: TestClock) {
  const sent: string[] = []
  const seen = { left: 0, cut: 0, ends: 0 }
  let events: SinkEvents | undefined
  let room = 1
  const sink: StreamSink = {
    open: given => void (events = given),
    get freeBytes() {
      return room
    },
    write: text => void (text !== '' && (sent.push(text), (room = 0))),
    end: () => void (seen.ends += 1),
    cutOff: () => void (seen.cut += 1)
  }
  const stream = new EventStream(sink, clock, () => (seen.left += 1))
  return { stream, sent, seen, leave: () => events?.gone(), read: () => ((room = 1), events?.drained()) }
}

await t.test('a slow client receives a long event completely, and is closed when it stops reading', async t => {
  const clock = new TestClock()
  const { stream, sent, seen, read } = streamTo(clock)
  const long = `${'x'.repeat(64 * 1024 - 1)}${'\u{1f600}'.repeat(40_000)}`
  stream.send(long)
  const drained = stream.drained
  t.ok(drained)
  t.equal(sent.length, 1)
  for (const wanted of [2, 3]) {
    clock.increment(READER_STALL_MS - 1)
    read()
    t.equal(sent.length, wanted)
  }
  t.equal(sent.join(''), long)
  t.ok(
    sent.every(text => !/[\ud800-\udbff]$/.test(text)),
    'no character is split'
  )
  read()
  await drained
  t.equal(stream.drained, undefined)
  stream.send(long)
  stream.end()
  t.equal(seen.ends, 0)
  clock.increment(READER_STALL_MS)
  t.strictSame(seen, { left: 0, cut: 1, ends: 0 }, 'also at its end')
  read()
  await rest()
  t.strictSame(seen, { left: 0, cut: 1, ends: 0 })
  t.equal(clock.size, 0)
})

await t.test('an ended stream ends after its client has read all of a long last event', async t => {
  const clock = new TestClock()
  const { stream, sent, seen, read } = streamTo(clock)
  stream.send('x'.repeat(150_000))
  stream.end()
  for (const ends of [0, 0, 1]) {
    await rest()
    t.equal(seen.ends, ends)
    clock.increment(READER_STALL_MS - 1)
    read()
  }
  t.equal(sent.join('').length, 150_000)
  t.strictSame([seen.cut, clock.size], [0, 0])
})

await t.test('a client that disconnects before the end or the start receives nothing more', async t => {
  const clock = new TestClock()
  const { stream, sent, seen, leave } = streamTo(clock)
  stream.send('event')
  stream.end()
  stream.end()
  leave()
  stream.send('late')
  await rest()
  t.strictSame([sent, seen], [[], { left: 0, cut: 0, ends: 0 }])
  const full = streamTo(clock)
  full.stream.send('x'.repeat(100_000))
  const { drained } = full.stream
  full.leave()
  await drained
  t.equal(full.seen.left, 1, 'a waiting sender is informed')
  const stuck = streamTo(clock)
  stuck.stream.send('x'.repeat(100_000))
  const waiting = stuck.stream.drained
  stuck.read()
  t.equal(stuck.sent.length, 2)
  clock.increment(READER_STALL_MS)
  await waiting
  t.equal(stuck.seen.cut, 1, 'also with the last piece')
  const socket = new Socket().destroy()
  let left = 0
  const response = { writeHead: () => t.fail('it is gone') } as unknown as ServerResponse
  const gone = new EventStream(new NodeResponseSink({ response, socket }, {}), clock, () => (left += 1))
  t.notOk(gone.isOpen)
  t.equal(left, 1)
  await rest()
  t.equal(clock.size, 0)
})

await t.test('pipelined requests end with their connection, and free their share', async t => {
  const { work, run, runs } = steeredWork()
  const { url, clock } = await serveAll(t, { work }, { limits: { connections: 3 } })
  const before = clock.size
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  const body = JSON.stringify(say('a'))
  const request = `POST /message:stream HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  socket.write(request.repeat(3))
  await run(0)
  t.equal((await ask(`${url}tasks`)).status, 200, 'waiting requests use no share')
  t.equal(runs.length, 1, 'the next starts after this response')
  socket.destroy()
  await until(() => clock.size === before, 'no stream is left')
  for (const _ of [1, 2, 3]) {
    const { response } = await OpenStream.open(t, `${url}message:stream`, {
      method: 'POST',
      headers: JSON_TYPE,
      body: JSON.stringify(say('b'))
    })
    t.equal(response.status, 200)
  }
})

await t.test('a request behind a health check frees its share when its connection ends', async t => {
  const { work, run } = steeredWork()
  const { url, clock } = await serveAll(t, { work }, { limits: { connections: 1 } })
  const before = clock.size
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  const body = JSON.stringify(say('a'))
  socket.write(
    `GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nPOST /message:stream HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  )
  await run(0)
  socket.destroy()
  await until(() => clock.size === before, 'no stream is left')
  const { response } = await OpenStream.open(t, `${url}message:stream`, {
    method: 'POST',
    headers: JSON_TYPE,
    body: JSON.stringify(say('b'))
  })
  t.equal(response.status, 200)
})

await t.test('pipelined requests are answered in order, as fast as their client reads', async t => {
  let reads = 0
  const kept = memoryStore()
  const store: Store = { ...kept, readTask: (...args) => ((reads += 1), kept.readTask(...args)) }
  const { url, runtime } = await serveAll(
    t,
    { work: () => ({ artifact: 'x'.repeat(4 * 2 ** 20) }) },
    { store, limits: { advanced: { callsPerConnection: 5 } } }
  )
  const { id } = taskIn(await runtime.sendMessage(say('a')))
  const socket = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {})
  t.teardown(() => socket.destroy())
  socket.pause()
  const get = (length: number) =>
    `GET /tasks/${id}?historyLength=${length} HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\n\r\n`
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id } })
  const post = `POST / HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  reads = 0
  socket.write((get(0) + post).repeat(20))
  await standsStill(() => reads > 0 && reads, 'the connection to be full')
  t.ok(reads < 10, `${reads} tasks were read`)
  let answers = 0
  let rest = ''
  socket.on('data', (bytes: Buffer) => {
    const text = rest + bytes.toString('latin1')
    answers += text.split('HTTP/1.1 200').length - 1
    rest = text.slice(1 - 'HTTP/1.1 200'.length)
  })
  socket.resume()
  await until(() => answers === 40)
  t.equal(reads, 40)
})

await t.test('a stream with expiring credentials also ends with its client', async t => {
  const { work, run } = steeredWork()
  const authenticate = async () => ({ id: 'anna', expiresAtMs: Number.MAX_SAFE_INTEGER })
  const { url, clock } = await serveAll(t, { work }, { authenticate })
  const before = clock.size
  const stream = await OpenStream.open(t, `${url}message:stream`, {
    method: 'POST',
    headers: JSON_TYPE,
    body: JSON.stringify(say('a'))
  })
  await run(0)
  stream.cut()
  await until(() => clock.size === before, 'no timer is left')
})

await t.test("streams are complete with hono's Response in place of the global one", async t => {
  const here = (path: string) => JSON.stringify(new URL(path, import.meta.url).href)
  const code = `
    const { getRequestListener } = await import('@hono/node-server')
    getRequestListener(() => {}, { overrideGlobalObjects: true })
    const { serve } = await import(${here('../../../adapters/serve/serve.js')})
    const { createRuntime } = await import(${here('../../../runtime/runtime.js')})
    const { defineAgent } = await import(${here('../../../runtime/agent/define-agent.js')})
    const served = await serve(createRuntime({ agent: defineAgent({ card: { name: 'A' }, work: () => ({ message: 'done' }) }) }), { port: 0 })
    const body = JSON.stringify({ message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] } })
    const answer = await fetch(served.url + 'message:stream', { method: 'POST', body, headers: { 'content-type': 'application/json', 'a2a-version': '1.0' } })
    process.stdout.write(await answer.text())
    await served.close()
    process.exit()`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' })
  t.equal(stderr, '')
  t.match(told(sentEvents(stdout)).at(-1), /completed/)
})

await t.test('the calls of a connection end with it, and later ones at once', async t => {
  const socket = new Socket()
  const signal = disconnectSignal(socket)
  t.equal(disconnectSignal(socket), signal)
  t.notOk(signal.aborted)
  const closed = once(socket.destroy(), 'close')
  t.ok(disconnectSignal(socket).aborted, 'it is about to close')
  await closed
  t.ok(signal.aborted)
})

await t.test('a draining server accepts nothing new, and may close twice', async t => {
  const { runtime } = start(t, { work: echo })
  const served = await serve(runtime, { port: 0 })
  served.drain()
  t.match(await ask(`${served.url}tasks`), { status: 503 })
  await served.close()
  await served.close()
  await t.rejects(ask(`${served.url}tasks`))
  await t.rejects(serve(runtime, { port: 0, host: '0.0.0.0' }), { name: 'TypeError' })
})

await t.test("a stream that misses its client's disconnection ends at its next event", async t => {
  const { runtime } = start(t, { work: obedient })
  const steps = [deferred(), deferred()]
  let isOver = false
  async function* deaf(): AsyncGenerator<StreamResponse, void, undefined> {
    try {
      for (const { promise } of steps) {
        yield { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'more' }] } }
        await promise
      }
      yield { message: { messageId: 'n', role: 'ROLE_AGENT', parts: [{ text: 'for nobody' }] } }
    } finally {
      isOver = true
    }
  }
  const handler = httpHandler({ ...runtime, sendStreamingMessage: deaf })
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: say('hello') })
  const response = await handler(
    new Request('http://127.0.0.1/', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
      body
    })
  )
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  t.match(new TextDecoder().decode((await reader.read()).value), /more/)
  await reader.cancel()
  await rest()
  t.notOk(isOver, 'it was not informed')
  steps[0]?.resolve()
  await until(() => isOver, 'its end')
})
