import { getEventListeners, once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocketServer, type WebSocket, type VerifyClientCallbackAsync } from 'ws'
import type { AgentClient } from '../../../../adapters/client/agent-client.ts'
import { fetchCard } from '../../../../adapters/client/card/discovery.ts'
import { connect, type ConnectOptions } from '../../../../adapters/client/connect.ts'
import { ReconnectingLink } from '../../../../adapters/client/transports/websocket/link.ts'
import { openSocket } from '../../../../adapters/client/transports/websocket/socket.ts'
import { A2AError, type ErrorCode } from '../../../../machines/protocol/errors.ts'
import type { StreamResponse } from '../../../../machines/protocol/objects.ts'
import { AGENT_CARD_PATH, RELIABILITY_EXTENSION, WEBSOCKET_BINDING } from '../../../../machines/protocol/uris.ts'
import { painter, steeredWork } from '../../../fixtures/runtime/agents.ts'
import {
  brief,
  collect,
  deferred,
  generationOf,
  next,
  open,
  reaches,
  readUntil,
  refusal,
  rejection,
  say,
  taskIn,
  until
} from '../../../fixtures/runtime/runtime-helpers.ts'
import { obedient, serve } from '../../../fixtures/servers/served-agent.ts'
import { TestClock } from '../../../fixtures/runtime/test-clock.ts'

/** A task as short as it may be. */
const taskAnswer = (id: string) => ({ id, status: { state: 'TASK_STATE_WORKING' } })

/** A client that is closed when the test ends. */
async function connected(t: Test, url: string, options: ConnectOptions = {}): Promise<AgentClient> {
  const client = await connect(url, options)
  t.teardown(() => client.close())
  return client
}

/** Serves one document, or a status, at every path of a free port. */
async function serveDocument(
  t: Test,
  answer: { status?: number; body?: string }
): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = []
  const server = createServer(({ url = '' }, response) => {
    asked.push(url)
    response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' }).end(answer.body)
  })
  server.listen(0, '127.0.0.1')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

function cardWith(
  ...interfaces: readonly { url: string; protocolBinding: string; protocolVersion?: string }[]
): string {
  return JSON.stringify({
    name: 'A',
    version: '1',
    capabilities: {},
    supportedInterfaces: interfaces.map(offered => ({ protocolVersion: '1.0', ...offered }))
  })
}

/** What a client sent. */
interface Sent {
  readonly id: number
  readonly method: string
  readonly params: Record<string, unknown>
  readonly 'a2a-service-parameters': Record<string, string>
}

/**
 * A server that says what the test wants. Pings of clients are answered by the way, and are not among what was sent.
 */
async function scripted(t: Test, { greets = true, isReliable = true } = {}) {
  const handshakes: IncomingMessage[] = []
  const behaviour = { greets, answersHandshakes: true }
  const verifyClient: VerifyClientCallbackAsync = ({ req }, answer) => {
    handshakes.push(req)
    if (behaviour.answersHandshakes) answer(true)
    // Who does not read does not see that the other side goes.
    else req.socket.resume()
  }
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => 'a2a.v1', verifyClient })
  t.teardown(() => {
    for (const { socket } of handshakes) socket.destroy()
    server.close()
  })
  await once(server, 'listening')
  const sent: Sent[] = []
  const sockets: WebSocket[] = []
  const parameters = isReliable ? { 'a2a-service-parameters': { 'a2a-extensions': RELIABILITY_EXTENSION } } : {}
  server.on('connection', socket => {
    sockets.push(socket)
    socket.on('message', (data: Buffer) => {
      const frame: Sent = JSON.parse(data.toString('utf8'))
      if (frame.method !== 'ping') sent.push(frame)
      else if (behaviour.greets)
        socket.send(JSON.stringify({ jsonrpc: '2.0', id: frame.id, result: {}, ...parameters }))
    })
  })
  const socket = (index: number) => until(() => sockets[index], `connection ${index}`)
  const request = (index: number) => until(() => sent[index], `request ${index}`)
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    server,
    sent,
    sockets,
    handshakes,
    behaviour,
    socket,
    request
  }
}

const event = (text: string, generation: number): StreamResponse => ({
  artifactUpdate: {
    taskId: 't',
    contextId: 'c',
    artifact: { artifactId: 'a', parts: [{ text }] },
    metadata: { [RELIABILITY_EXTENSION]: { generation } }
  }
})

await t.test('connect accepts the address of the WebSocket, of the host, or of the card', async t => {
  const { url } = await serve(t, { work: obedient })
  const http = url.replace('ws:', 'http:')
  for (const address of [url, http, http.slice(0, -1), new URL(AGENT_CARD_PATH, http).href, `${http}some/page?x=1`]) {
    const client = await connected(t, address, { signal: new AbortController().signal })
    t.equal(client.url, url)
    t.equal(client.state, 'open')
    t.equal((await refusal(client.getTask({ id: 'nobody' }))).code, 'TaskNotFound')
  }
})

await t.test('the first WebSocket of a card with A2A 1.0 is used, also under older names', async t => {
  const { url } = await serve(t, { work: obedient })
  for (const protocolBinding of [WEBSOCKET_BINDING, 'WEBSOCKET', 'WebSocket']) {
    const body = cardWith(
      { url: 'http://127.0.0.1:1/', protocolBinding: 'JSONRPC' },
      { url: 'ws://127.0.0.1:1/', protocolBinding, protocolVersion: '0.3' },
      { url, protocolBinding },
      { url: 'ws://127.0.0.1:2/', protocolBinding }
    )
    const { url: address } = await serveDocument(t, { body })
    const client = await connected(t, address, { bindings: ['WEBSOCKET'] })
    t.match(client, { url, binding: 'WEBSOCKET' })
  }
})

await t.test('connecting fails without a suitable interface, and lists what is offered', async t => {
  const { url } = await serveDocument(t, {
    body: cardWith(
      { url: 'https://a.example', protocolBinding: 'JSONRPC' },
      { url: 'ws://a.example', protocolBinding: 'WEBSOCKET', protocolVersion: '0.3' }
    )
  })
  t.match(await refusal(connect(url, { bindings: ['WEBSOCKET', 'GRPC'] })), {
    code: 'UnsupportedOperation',
    message: `The agent at ${url} offers no WEBSOCKET or GRPC that this client speaks (A2A 1.1 and 1.0; 0.3, but not over WebSocket), only JSONRPC 1.0, WEBSOCKET 0.3.`
  })
})

await t.test('an invalid card fails with a description of it', async t => {
  for (const [answer, code, message] of [
    [{ body: '<html>' }, 'InvalidAgentResponse', /is not JSON/],
    [
      { body: '{"name":"left-pad","version":"1.0.0"}' },
      'InvalidAgentResponse',
      /^The JSON at http:\S+ is not an agent card: card\.supportedInterfaces is required and must be a list of at least one\.$/
    ],
    [{ body: '{}' }, 'InvalidAgentResponse', /is not an agent card: card\.supportedInterfaces is required/],
    [{ body: '[]' }, 'InvalidAgentResponse', /card/],
    [{ body: cardWith() }, 'InvalidAgentResponse', /supportedInterfaces/],
    [{ status: 404 }, 'UnsupportedOperation', /There is no agent card at .*: HTTP 404\.$/],
    [
      { status: 400 },
      'UnsupportedOperation',
      /^There is no agent card at http:.*: HTTP 400\. If the port speaks TLS, write https:\/\/127\.0\.0\.1:\d+\/ instead\.$/
    ],
    [{ status: 500 }, 'Overloaded', /HTTP 500/]
  ] as const) {
    const { url, asked } = await serveDocument(t, answer)
    const error = await refusal(connect(url))
    t.equal(error.code, code)
    t.match(error.message, message)
    t.strictSame(asked, [AGENT_CARD_PATH])
  }
})

await t.test('the card of an agent is also found from its WebSocket address', async t => {
  const { url } = await serve(t, { card: { name: 'Painter' }, work: obedient })
  t.equal((await fetchCard(url)).name, 'Painter')
  const { url: address, asked } = await serveDocument(t, { body: cardWith({ url, protocolBinding: 'WEBSOCKET' }) })
  t.equal((await fetchCard(`${address}/cards/mine.json`)).name, 'A')
  t.strictSame(asked, ['/cards/mine.json'], 'an address of a document is left as it is')
})

await t.test('an invalid agent address throws a TypeError', async t => {
  for (const url of [
    '',
    'agent',
    'agent.example',
    'ftp://agent.example',
    'file:///etc/passwd',
    'mailto:a@b',
    'ws//x'
  ]) {
    t.match(await rejection(connect(url)), {
      name: 'TypeError',
      message: `${JSON.stringify(url)} is not the address of an agent. Give a ws: address, or the http: address of its card.`
    })
  }
})

await t.test('connecting to an unreachable address fails with Overloaded', async t => {
  const { url, close } = await serve(t, { work: obedient })
  await close()
  t.match(await refusal(connect(url)), {
    code: 'Overloaded',
    message: `Nobody answers at ${url}. Is the agent running?`
  })
  t.match(await refusal(connect(url.replace('ws', 'http'))), {
    code: 'Overloaded',
    message: /^Nobody answers at http:/
  })
})

await t.test("a refused handshake fails with the server's error", async t => {
  const { url } = await serve(
    t,
    { work: obedient },
    { authenticate: ({ headers }) => (headers['authorization'] === 'Bearer anna' ? { id: 'anna' } : undefined) }
  )
  t.match(await refusal(connect(url)), { code: 'Unauthenticated', message: /requires credentials/ })
  t.match(await refusal(connect(url, { headers: { authorization: 'Bearer anna', origin: 'https://evil.example' } })), {
    code: 'Forbidden'
  })
  t.match(await refusal(connect(`${url}other`)), { code: 'UnsupportedOperation', message: /HTTP 404/ })
  const client = await connected(t, url, { headers: () => ({ authorization: 'Bearer anna' }) })
  t.equal((await refusal(client.getTask({ id: 'nobody' }))).code, 'TaskNotFound')
})

await t.test('a signal aborts connecting at every step', async t => {
  const gone = new Error('changed my mind')
  const { url } = await serve(t, { work: obedient })
  for (const address of [url, url.replace('ws', 'http')])
    t.equal(await rejection(connect(address, { signal: AbortSignal.abort(gone) })), gone)
  const silent = createServer(() => {}).on('upgrade', () => {})
  silent.listen(0, '127.0.0.1')
  t.teardown(() => {
    silent.closeAllConnections()
    silent.close()
  })
  await once(silent, 'listening')
  const address = `127.0.0.1:${(silent.address() as AddressInfo).port}`
  for (const [scheme, heard] of [
    ['ws', 'upgrade'],
    ['http', 'request']
  ] as const) {
    const stop = new AbortController()
    const connecting = rejection(connect(`${scheme}://${address}`, { signal: stop.signal }))
    await once(silent, heard)
    stop.abort(gone)
    t.equal(await connecting, gone)
  }
})

await t.test('a client has the methods of a runtime, with the same results', async t => {
  const paint = deferred<string>()
  const { url, runtime } = await serve(t, { work: painter(() => paint.promise) })
  const client = await connected(t, url, { extensions: ['urn:other'] })
  const task = taskIn(await client.sendMessage(say('a boat')))
  const generation = generationOf({ task }) as number
  t.strictSame(
    await client.getTask({ id: task.id }),
    await runtime.getTask({ id: task.id }, { extensions: [RELIABILITY_EXTENSION] })
  )
  const subscription = client.subscribeToTask({ id: task.id })
  t.match(await next(subscription), { task: { id: task.id } })
  const stream = client.sendStreamingMessage(say('red', { taskId: task.id }))
  t.equal(brief(await next(stream)), 'task:working')
  paint.resolve('a red boat')
  t.strictSame((await collect(stream)).map(brief), ['artifact: a red boat', 'completed: Here you are'])
  t.strictSame((await collect(subscription)).map(brief), [
    'working',
    'working: thank you',
    'artifact: a sketch',
    'artifact: a red boat',
    'completed: Here you are'
  ])
  t.match(await client.getTask({ id: task.id }, { currentGeneration: 1 }), { id: task.id })
  const rest = await collect(client.subscribeToTask({ id: task.id }, { afterGeneration: generation }))
  t.strictSame(
    rest.map(generationOf),
    rest.map((_, index) => generation + 2 + index),
    'the message comes first, which is no event'
  )
  t.equal(brief(rest.at(-1) as StreamResponse), 'completed: Here you are')
  const other = taskIn(await client.sendMessage(say('a boat')))
  t.equal((await refusal(client.cancelTask({ id: other.id }, { ifGenerationMatch: 1 }))).code, 'TaskGenerationMismatch')
  t.match(await client.cancelTask({ id: other.id }), { status: { state: 'TASK_STATE_CANCELED' } })
})

await t.test('a client lists its tasks page by page, as the runtime does', async t => {
  const { url, runtime, clock } = await serve(t, { work: obedient })
  const client = await connected(t, url)
  for (const text of ['ask', 'one', 'ask', 'two']) {
    await client.sendMessage(say(text, { contextId: 'c' }))
    clock.increment(1)
  }
  const filters = { contextId: 'c', status: 'TASK_STATE_COMPLETED' } as const
  const first = await client.listTasks({ ...filters, pageSize: 1, includeArtifacts: true })
  t.match(first, { tasks: [{ artifacts: [{ parts: [{ text: 'two' }] }] }], pageSize: 1, totalSize: 2 })
  const second = await client.listTasks({ ...filters, pageSize: 1, pageToken: first.nextPageToken })
  t.match(second.tasks, [{ history: [{ parts: [{ text: 'one' }] }], artifacts: undefined }])
  t.equal(second.nextPageToken, '')
  t.strictSame(await client.listTasks({}), await runtime.listTasks({}, { extensions: [RELIABILITY_EXTENSION] }))
  const error = await rejection(client.listTasks({ pageToken: first.nextPageToken }))
  t.match(error, { code: 'InvalidParams', violations: [{ field: 'pageToken' }] }, 'a token of another list')
})

await t.test('an invalid page of tasks is refused with InvalidAgentResponse', async t => {
  const { url, sent, socket } = await scripted(t)
  const client = await connected(t, url)
  for (const [index, result] of ['5', '[]', '{"tasks":{}}', '{"totalSize":-1}'].entries()) {
    const listed = refusal(client.listTasks({}))
    const { id } = await until(() => sent[index])
    ;(await socket(0)).send(`{"jsonrpc":"2.0","id":${id},"result":${result}}`)
    t.equal((await listed).code, 'InvalidAgentResponse', result)
  }
})

await t.test('errors are A2AErrors, as the agent sent them', async t => {
  const { url } = await serve(t, { work: obedient })
  const client = await connected(t, url)
  const error = await rejection(client.sendMessage({ message: { messageId: '', role: 'ROLE_USER', parts: [] } }))
  t.type(error, A2AError)
  t.match(error, { code: 'InvalidParams', violations: [{ field: 'message.messageId' }, { field: 'message.parts' }] })
  t.match(await rejection(client.getTask({ id: 'nobody' })), {
    code: 'TaskNotFound',
    message: 'Task nobody was not found.',
    metadata: { taskId: 'nobody' }
  })
  t.match(await refusal(collect(client.subscribeToTask({ id: 'nobody' }))), { code: 'TaskNotFound' })
  t.match(await refusal(collect(client.sendStreamingMessage(say('x', { taskId: 'nobody' })))), { code: 'TaskNotFound' })
})

await t.test('leaving the loop of a stream ends it at the server, and not the task', async t => {
  const { url, runtime } = await serve(t, { work: painter() }, { limits: { advanced: { streamsPerConnection: 1 } } })
  const client = await connected(t, url)
  const { id } = taskIn(await client.sendMessage(say('a boat')))
  for (let round = 0; round < 3; round += 1) {
    for await (const told of client.subscribeToTask({ id })) {
      t.match(told, { task: { id } })
      break
    }
    await until(
      async () =>
        (await collect(client.subscribeToTask({ id: 'nobody' })).catch(({ code }: A2AError) => code)) ===
        'TaskNotFound',
      'room for a stream'
    )
  }
  t.equal((await runtime.getTask({ id })).status.state, 'TASK_STATE_INPUT_REQUIRED')
})

await t.test('leaving a stream sends one cancelStream, and only if the stream is open there', async t => {
  const { url, sent, socket, request } = await scripted(t)
  const client = await connected(t, url)
  const stream = client.subscribeToTask({ id: 't' })
  const first = next(stream)
  const { id } = await request(0)
  const server = await socket(0)
  server.send(JSON.stringify({ jsonrpc: '2.0', id, result: event('one', 1) }))
  t.equal(brief(await first), 'artifact: one')
  await stream.return()
  await stream.return()
  t.match(await request(1), { method: 'cancelStream', params: { id } })
  server.send(JSON.stringify({ jsonrpc: '2.0', id, result: event('late', 2) }))
  server.send(JSON.stringify({ jsonrpc: '2.0', id, streamEnd: true }))

  const ended = client.subscribeToTask({ id: 't' })
  const read = collect(ended)
  const again = await request(2)
  server.send(JSON.stringify({ jsonrpc: '2.0', id: again.id, result: event('two', 1) }))
  server.send(JSON.stringify({ jsonrpc: '2.0', id: again.id, streamEnd: true }))
  server.send(JSON.stringify({ jsonrpc: '2.0', id: again.id, result: event('late', 2) }))
  server.send(JSON.stringify({ jsonrpc: '2.0', id: again.id, error: { code: -32603 } }))
  t.strictSame((await read).map(brief), ['artifact: two'])

  const unread = client.subscribeToTask({ id: 'never' })
  await unread.return()
  const call = client.getTask({ id: 'last' })
  const last = await request(3)
  t.match(last, { method: 'GetTask', params: { id: 'last' } })
  server.send(JSON.stringify({ jsonrpc: '2.0', id: last.id, result: taskAnswer('last') }))
  t.match(await call, { id: 'last' })
  t.equal(sent.length, 4, 'an unread stream was never requested')
})

await t.test('a signal ends the wait of a call, and a later answer is ignored', async t => {
  const { work, run } = steeredWork()
  const { url, runtime } = await serve(t, { work })
  const client = await connected(t, url)
  const gone = new Error('enough')
  const stop = new AbortController()
  const call = rejection(client.sendMessage(say('x'), { signal: stop.signal }))
  const running = await run()
  const { taskId } = running.given
  stop.abort(gone)
  t.equal(await call, gone)
  t.equal((await runtime.getTask({ id: taskId })).status.state, 'TASK_STATE_WORKING')
  running.resolve({ artifact: 'x' })
  t.match(await client.getTask({ id: taskId }, { signal: new AbortController().signal }), { id: taskId })
  t.equal(
    await rejection(client.getTask({ id: taskId }, { signal: stop.signal })),
    gone,
    'an aborted signal sends nothing'
  )
  await reaches(runtime, taskId, 'completed')
})

await t.test('a signal ends a stream with its reason, on both sides', async t => {
  const { url, sent, socket, request } = await scripted(t)
  const client = await connected(t, url)
  const gone = new Error('enough')
  const stop = new AbortController()
  const stream = client.subscribeToTask({ id: 't' }, { signal: stop.signal })
  const first = next(stream)
  const { id } = await request(0)
  ;(await socket(0)).send(JSON.stringify({ jsonrpc: '2.0', id, result: event('one', 1) }))
  await first
  const second = rejection(next(stream))
  stop.abort(gone)
  t.equal(await second, gone)
  t.match(await request(1), { method: 'cancelStream', params: { id } })
  t.equal(await rejection(next(client.subscribeToTask({ id: 't' }, { signal: stop.signal }))), gone)
  t.equal(sent.length, 2)
})

await t.test('invalid frames and frames with unknown ids change nothing', async t => {
  const { url, socket, request } = await scripted(t)
  const client = await connected(t, url)
  const call = client.getTask({ id: 't' })
  const { id } = await request(0)
  const server = await socket(0)
  for (const text of [
    '',
    '{bad',
    'null',
    '7',
    '"x"',
    '[]',
    '[{"id":1,"result":{}}]',
    '{}',
    `{"id":"${id}","result":1}`,
    '{"id":999,"result":1}',
    '{"id":null,"error":{"code":-32700}}',
    '{"id":{},"streamEnd":true}',
    '{"a2a-service-parameters":{"a2a-extensions":7}}',
    '{"a2a-service-parameters":[]}'
  ]) {
    server.send(text)
  }
  server.send(Buffer.from([0xff, 0x00]))
  server.send(JSON.stringify({ jsonrpc: '2.0', id, result: taskAnswer('t') }))
  t.match(await call, { id: 't' })
})

await t.test('unknown errors of a server are still A2AErrors', async t => {
  const { url, sent, socket } = await scripted(t)
  const client = await connected(t, url)
  for (const [error, code] of [
    ['null', 'InternalError'],
    ['7', 'InternalError'],
    ['{"code":-32001}', 'TaskNotFound'],
    ['{"code":1,"message":7,"data":{}}', 'InternalError']
  ] as [string, ErrorCode][]) {
    const before = sent.length
    const call = refusal(client.getTask({ id: 't' }))
    const { id } = await until(() => sent[before])
    ;(await socket(0)).send(`{"jsonrpc":"2.0","id":${id},"error":${error}}`)
    t.equal((await call).code, code)
  }
  const call = rejection(client.getTask({ id: 't' }))
  const { id } = await until(() => sent[4])
  ;(await socket(0)).send(`{"jsonrpc":"2.0","id":${id},"streamEnd":true}`)
  t.match(await call, { name: 'TypeError', message: 'GetTask was answered with a stream.' })
})

await t.test('close ends calls and streams, may be called twice, and fails later calls', async t => {
  const { work, run } = steeredWork()
  const { url, runtime } = await serve(t, { work })
  const client = await connect(url)
  const states: string[] = []
  client.on('closed', () => states.push('closed'))
  client.on('open', () => states.push('open'))()
  const call = refusal(client.sendMessage(say('one')))
  const stream = client.sendStreamingMessage(say('two'))
  await next(stream)
  const rest = refusal(collect(stream))
  const runs = [await run(0), await run(1)]
  await Promise.all([client.close(), client.close()])
  await client.close()
  t.match(await call, { code: 'Overloaded', message: `The connection to ${url} was closed by this client.` })
  t.match(await rest, { code: 'Overloaded' })
  t.match(await refusal(client.getTask({ id: 'x' })), { code: 'Overloaded' })
  t.match(await refusal(collect(client.subscribeToTask({ id: 'x' }))), { code: 'Overloaded' })
  t.strictSame(states, ['closed'])
  t.equal(client.state, 'closed')
  for (const run of runs) {
    run.resolve({ artifact: 'x' })
    await reaches(runtime, run.given.taskId, 'completed')
  }
})

await t.test('a lost connection without reconnecting fails calls and streams', async t => {
  const { url, socket, request } = await scripted(t)
  const client = await connected(t, url, { giveUpAfterMs: 0 })
  const call = refusal(client.getTask({ id: 't' }))
  const stream = refusal(collect(client.subscribeToTask({ id: 't' })))
  await request(1)
  ;(await socket(0)).close(1012, 'restart')
  const lost = {
    code: 'Overloaded',
    message: `The connection to ${url} was lost (1012, restart). Tasks continue; connect again to see them.`
  }
  t.match(await call, lost)
  t.match(await stream, lost)
  t.equal(client.state, 'closed')
  t.match(await refusal(client.getTask({ id: 't' })), lost)
})

await t.test('a client that broke a rule or is refused does not reconnect', async t => {
  for (const code of [1008, 4401]) {
    const { url, socket, sockets, request } = await scripted(t)
    const client = await connected(t, url)
    const call = refusal(client.getTask({ id: 't' }))
    await request(0)
    ;(await socket(0)).close(code)
    t.match(await call, { code: 'Overloaded', message: new RegExp(`\\(${code}\\)`) })
    t.equal(client.state, 'closed')
    t.equal(sockets.length, 1)
  }
})

await t.test('a client reconnects: streams resume after their last event, and calls are resent', async t => {
  const clock = new TestClock()
  const { url, sent, socket, request, handshakes } = await scripted(t)
  let connections = 0
  const client = await connected(t, url, {
    clock,
    random: () => 0.5,
    headers: () => ({ 'x-connection': String((connections += 1)) })
  })
  const states: string[] = []
  for (const state of ['connecting', 'open', 'lost'] as const) client.on(state, () => states.push(state))
  const stream = client.subscribeToTask({ id: 't' })
  const first = next(stream)
  const subscribed = await request(0)
  const server = await socket(0)
  server.send(JSON.stringify({ jsonrpc: '2.0', id: subscribed.id, result: event('one', 1) }))
  await first
  const call = client.sendMessage(say('hello'))
  const message = await request(1)
  server.terminate()
  await until(() => states.includes('lost'))
  const waiting = client.getTask({ id: 'x' })
  clock.increment(124)
  t.strictSame(states, ['lost'])
  clock.increment(1)
  const second = await socket(1)
  const frames = [await request(2), await request(3), await request(4)]
  const frame = (method: string) => frames.find(frame => frame.method === method) ?? (t.fail(method) as never)
  t.strictSame(frame('SubscribeToTask').params, { id: 't' })
  t.equal(frame('SubscribeToTask')['a2a-service-parameters']['taskchart-after-generation'], '1')
  t.strictSame(frame('SendMessage').params, message.params, 'the very same message')
  second.send(JSON.stringify({ jsonrpc: '2.0', id: frame('SubscribeToTask').id, result: event('one', 1) }))
  second.send(JSON.stringify({ jsonrpc: '2.0', id: frame('SubscribeToTask').id, result: event('two', 2) }))
  second.send(JSON.stringify({ jsonrpc: '2.0', id: frame('SubscribeToTask').id, streamEnd: true }))
  second.send(JSON.stringify({ jsonrpc: '2.0', id: frame('GetTask').id, result: taskAnswer('x') }))
  second.send(
    JSON.stringify({
      jsonrpc: '2.0',
      id: frame('SendMessage').id,
      result: { message: { messageId: 'r', role: 'ROLE_AGENT', parts: [{ text: 'r' }] } }
    })
  )
  t.strictSame((await collect(stream)).map(brief), ['artifact: two'], 'a known event is not repeated')
  t.match(await waiting, { id: 'x' })
  t.match(await call, { message: { messageId: 'r' } })
  t.strictSame(states, ['lost', 'connecting', 'open'])
  t.strictSame(
    handshakes.map(({ headers }) => headers['x-connection']),
    ['1', '2']
  )
  t.equal(sent.length, 5)
})

await t.test('a message is not resent to an agent without the extension: its outcome is unknown', async t => {
  const clock = new TestClock()
  const { url, sent, socket, request } = await scripted(t, { isReliable: false })
  const client = await connected(t, url, { clock, random: () => 0 })
  const message = refusal(client.sendMessage(say('hello')))
  const stream = refusal(collect(client.sendStreamingMessage(say('hello'))))
  const read = client.getTask({ id: 't' })
  await request(2)
  ;(await socket(0)).terminate()
  await until(() => client.state === 'lost')
  clock.increment(0)
  const again = await request(3)
  t.match(again, { method: 'GetTask' })
  ;(await socket(1)).send(JSON.stringify({ jsonrpc: '2.0', id: again.id, result: taskAnswer('t') }))
  t.match(await read, { id: 't' })
  t.equal((await message).code, 'Overloaded')
  t.equal((await stream).code, 'Overloaded')
  t.equal(sent.length, 4)
})

await t.test('a stream of an agent without the extension resumes as a subscription from the start', async t => {
  const clock = new TestClock()
  const { url, socket, request } = await scripted(t, { isReliable: false })
  const client = await connected(t, url, { clock, random: () => 0 })
  const task = {
    id: 't',
    contextId: 'c',
    status: { state: 'TASK_STATE_WORKING' },
    metadata: { [RELIABILITY_EXTENSION]: 'odd' }
  }
  const stream = client.sendStreamingMessage(say('hello'))
  const first = next(stream)
  const { id } = await request(0)
  ;(await socket(0)).send(JSON.stringify({ jsonrpc: '2.0', id, result: { task } }))
  t.equal(brief(await first), 'task:working')
  ;(await socket(0)).terminate()
  await until(() => client.state === 'lost')
  clock.increment(0)
  const again = await request(1)
  t.match(again, { method: 'SubscribeToTask', params: { id: 't' } })
  t.notOk('taskchart-after-generation' in again['a2a-service-parameters'])
  const asking = { ...task, status: { state: 'TASK_STATE_INPUT_REQUIRED' } }
  ;(await socket(1)).send(JSON.stringify({ jsonrpc: '2.0', id: again.id, result: { task: asking } }))
  t.strictSame((await collect(stream)).map(brief), ['task:input-required'], 'and ends where a reply ends')
})

/**
 * Options for a client that waits as long as it may before each try, and what looks whether it tries after these waits,
 * each time in vain.
 */
function unhurried() {
  const clock = new TestClock()
  let waits = 0
  const random = () => {
    waits += 1
    return 1
  }
  const expectTries = async (t: Test, client: AgentClient, waitsMs: readonly number[]) => {
    let tries = 0
    client.on('connecting', () => (tries += 1))
    for (const [tried, waitMs] of waitsMs.entries()) {
      await until(() => waits === tried + 1, `the wait of ${waitMs}`)
      clock.increment(waitMs - 1)
      t.equal(tries, tried, `no try after ${waitMs - 1}`)
      clock.increment(1)
      t.equal(tries, tried + 1, `a try after ${waitMs}`)
    }
    await until(() => client.state === 'closed')
  }
  return { options: { clock, random, giveUpAfterMs: 2000 }, expectTries }
}

await t.test('reconnecting uses growing waits up to its time limit', async t => {
  const { options, expectTries } = unhurried()
  const { url, server, socket, request } = await scripted(t)
  const client = await connected(t, url, options)
  const call = refusal(client.getTask({ id: 't' }))
  await request(0)
  const first = await socket(0)
  server.close()
  first.terminate()
  await expectTries(t, client, [250, 500, 1000, 2000])
  t.match(await call, { code: 'Overloaded', message: /Nobody answers/ })
})

await t.test('a client stops reconnecting to a server that drops each connection', async t => {
  const { options, expectTries } = unhurried()
  const { url, server, sockets, socket } = await scripted(t, { greets: false })
  const client = await connected(t, url, options)
  const first = await socket(0)
  server.on('connection', dropped => dropped.terminate())
  first.terminate()
  await expectTries(t, client, [250, 500, 1000, 2000])
  t.equal(sockets.length, 5)
})

await t.test('a refusal while reconnecting ends the attempts', async t => {
  const clock = new TestClock()
  let isKnown = true
  const { url, close } = await serve(
    t,
    { work: obedient },
    { authenticate: () => (isKnown ? { id: 'anna' } : undefined) }
  )
  const client = await connected(t, url, { clock, random: () => 0 })
  const again = await close().then(() =>
    serve(t, { work: obedient }, { authenticate: () => undefined }, { port: Number(new URL(url).port) })
  )
  isKnown = false
  await until(() => client.state === 'lost')
  clock.increment(0)
  await until(() => client.state === 'closed')
  t.equal((await refusal(client.getTask({ id: 'x' }))).code, 'Unauthenticated')
  t.equal(again.url, url)
})

await t.test('a silent server is pinged, and its connection is lost without an answer', async t => {
  const clock = new TestClock()
  const { url, socket, sockets, behaviour, request } = await scripted(t)
  const client = await connected(t, url, { clock, random: () => 0 })
  const roundTrip = async (index: number, connection: number) => {
    const call = client.getTask({ id: 't' })
    const { id } = await request(index)
    ;(await socket(connection)).send(JSON.stringify({ jsonrpc: '2.0', id, result: taskAnswer('t') }))
    await call
  }
  await roundTrip(0, 0)
  const asked = once(await socket(0), 'message')
  clock.increment(25_000)
  t.match(String((await asked)[0]), '"method":"ping"')
  await roundTrip(1, 0)
  clock.increment(24_999)
  t.equal(client.state, 'open')
  behaviour.greets = false
  clock.increment(1)
  clock.increment(9999)
  t.equal(client.state, 'open')
  clock.increment(1)
  await until(() => client.state === 'lost' || client.state === 'connecting')
  behaviour.greets = true
  clock.increment(0)
  await until(() => client.state === 'open' && sockets.length === 2)
  await roundTrip(2, 1)
})

await t.test('reconnecting is retried after missing headers or an unanswered handshake', async t => {
  const clock = new TestClock()
  const { url, sockets, handshakes, behaviour, socket } = await scripted(t)
  let isLoggedIn = true
  const headers = () => {
    if (isLoggedIn) return {}
    throw new Error('not logged in')
  }
  const client = await connected(t, url, { clock, headers, random: () => 0 })
  isLoggedIn = false
  ;(await socket(0)).terminate()
  await until(() => client.state === 'lost')
  let tries = 0
  client.on('connecting', () => (tries += 1))
  const triedAgain = () => {
    clock.increment(0)
    return tries
  }
  await until(() => triedAgain() === 3)
  behaviour.answersHandshakes = false
  isLoggedIn = true
  const { socket: unanswered } = await until(() => triedAgain() > 3 && handshakes[1])
  const tried = tries
  clock.increment(9_999)
  t.equal(triedAgain(), tried)
  t.notOk(unanswered.destroyed)
  clock.increment(1)
  await once(unanswered, 'end')
  behaviour.answersHandshakes = true
  await until(() => triedAgain() > tried && client.state === 'open')
  t.equal(sockets.length, 2)
})

await t.test('connecting fails when the handshake is not answered in 10 seconds', async t => {
  const clock = new TestClock()
  const { url, handshakes, behaviour } = await scripted(t)
  behaviour.answersHandshakes = false
  const failed = refusal(connect(url, { clock }))
  await until(() => handshakes.length === 1)
  clock.increment(10_000)
  t.match(await failed, { code: 'Overloaded', message: /Nobody answers/ })
  t.equal(clock.pending, 0)
})

await t.test('closing a client during a handshake aborts it', async t => {
  const clock = new TestClock()
  const { url, handshakes, behaviour, socket } = await scripted(t)
  const client = await connected(t, url, { clock, random: () => 0 })
  behaviour.answersHandshakes = false
  ;(await socket(0)).terminate()
  await until(() => client.state === 'lost')
  clock.increment(0)
  const { socket: unanswered } = await until(() => handshakes[1])
  const left = once(unanswered, 'end')
  await client.close()
  await left
  t.equal(clock.pending, 0)
})

await t.test('a listener may be added again while it is called', async t => {
  const { url } = await scripted(t)
  const client = await connected(t, url)
  let heard = 0
  let stop = () => {}
  const listen = () => {
    stop = client.on('closed', () => {
      heard += 1
      stop()
      if (heard < 10) listen()
    })
  }
  listen()
  await client.close()
  t.equal(heard, 1)
})

await t.test('a call of a closed client leaves no listener on its signal', async t => {
  const { url } = await scripted(t)
  const client = await connected(t, url)
  await client.close()
  const { signal } = new AbortController()
  await t.rejects(client.getTask({ id: 't' }, { signal }), { code: 'Overloaded' })
  t.equal(getEventListeners(signal, 'abort').length, 0)
})

await t.test('a client that is closed while its connection is lost stays closed', async t => {
  const clock = new TestClock()
  const { url, socket, sockets } = await scripted(t)
  const client = await connect(url, { clock, random: () => 0 })
  ;(await socket(0)).terminate()
  await until(() => client.state === 'lost')
  const call = refusal(client.getTask({ id: 'x' }))
  await client.close()
  t.equal((await call).code, 'Overloaded')
  t.equal(clock.pending, 0)
  t.equal(sockets.length, 1)
})

await t.test('a socket that opens while its link closes is closed too', async t => {
  const { url, socket } = await scripted(t)
  const user = { opened: () => t.fail('the link is closed'), received: () => {}, silent: () => {}, closed: () => {} }
  const opened = await openSocket(url, {}, new AbortController().signal)
  const link = new ReconnectingLink(
    { url, open: async () => opened, clock: new TestClock(), random: () => 0, giveUpAfterMs: 0 },
    user
  )
  const started = link.start()
  await link.close()
  await started
  const there = await socket(0)
  if (there.readyState !== there.CLOSED) await once(there, 'close')
  t.equal(link.state, 'closed')
})

await t.test('a link whose user cannot read a frame is closed for good, and says so', async t => {
  const { url, socket } = await scripted(t)
  const ended: unknown[] = []
  const received = () => {
    throw new TypeError('no such member')
  }
  const user = { opened: () => {}, received, silent: () => {}, closed: (error: unknown) => ended.push(error) }
  const opened = await openSocket(url, {}, new AbortController().signal)
  const link = new ReconnectingLink(
    { url, open: async () => opened, clock: new TestClock(), random: () => 0, giveUpAfterMs: 0 },
    user
  )
  await link.start()
  const there = await socket(0)
  there.send('{}')
  t.match(await once(there, 'close'), [1007])
  t.match(ended, [
    { code: 'InvalidAgentResponse', message: `${url} sent a frame that is not valid A2A: no such member.` }
  ])
  t.equal(link.state, 'closed')
})

await t.test('a client that is closed during a failing attempt stays closed', async t => {
  const clock = new TestClock()
  const { url, server, socket } = await scripted(t)
  const client = await connect(url, { clock, random: () => 0 })
  const first = await socket(0)
  server.close()
  first.terminate()
  await until(() => client.state === 'lost')
  clock.increment(0)
  t.equal(client.state, 'connecting')
  await client.close()
  await t.rejects(connect(url), { code: 'Overloaded' }, 'a later attempt has failed as well')
  t.equal(client.state, 'closed')
  t.equal(clock.pending, 0)
})

await t.test('a stream that had its last event before the connection was lost has ended', async t => {
  const clock = new TestClock()
  const { url, sent, socket, request } = await scripted(t)
  const client = await connected(t, url, { clock, random: () => 0 })
  const over = {
    taskId: 't',
    contextId: 'c',
    status: { state: 'TASK_STATE_COMPLETED' },
    metadata: { [RELIABILITY_EXTENSION]: { generation: 2 } }
  }
  const stream = collect(client.subscribeToTask({ id: 't' }))
  const { id } = await request(0)
  ;(await socket(0)).send(JSON.stringify({ jsonrpc: '2.0', id, result: event('one', 1) }))
  ;(await socket(0)).send(JSON.stringify({ jsonrpc: '2.0', id, result: { statusUpdate: over } }))
  const call = client.getTask({ id: 'x' })
  const asked = await request(1)
  ;(await socket(0)).send(JSON.stringify({ jsonrpc: '2.0', id: asked.id, result: taskAnswer('x') }))
  await call
  ;(await socket(0)).terminate()
  await until(() => client.state === 'lost')
  clock.increment(0)
  t.strictSame((await stream).map(brief), ['artifact: one', 'completed'])
  t.equal(sent.length, 2, 'nothing was requested again')
})

await t.test('a stream that was answered with a message before the connection was lost has ended', async t => {
  const clock = new TestClock()
  const { url, sent, socket, request } = await scripted(t)
  const client = await connected(t, url, { clock, random: () => 0 })
  const stream = client.sendStreamingMessage({
    message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hello' }] }
  })
  const events = stream[Symbol.asyncIterator]()
  const first = events.next()
  const { id } = await request(0)
  ;(await socket(0)).send(
    JSON.stringify({
      jsonrpc: '2.0',
      id,
      result: { message: { messageId: 'r', role: 'ROLE_AGENT', parts: [{ text: 'r' }] } }
    })
  )
  t.match(await first, { value: { message: { messageId: 'r' } } })
  ;(await socket(0)).terminate()
  await until(() => client.state === 'lost')
  clock.increment(0)
  await socket(1)
  t.strictSame(await events.next(), { done: true, value: undefined })
  t.equal(sent.length, 1, 'the message was not sent again')
})

await t.test('a client reconnects to a restarted server, and a stream misses nothing', async t => {
  const clock = new TestClock()
  const go = deferred<string>()
  const first = await serve(t, { work: painter(() => go.promise) })
  const { runtime, url } = first
  const client = await connected(t, url, { clock, random: () => 0 })
  const task = await open(runtime, 'a boat')
  await reaches(runtime, task.id, 'input-required')
  const stream = client.subscribeToTask({ id: task.id })
  await next(stream)
  await first.close()
  await until(() => client.state === 'lost')
  await runtime.sendMessage(say('red', { taskId: task.id }, { returnImmediately: true }))
  const { serve: serveRuntime } = await import('../../../../adapters/serve/serve.ts')
  const again = await serveRuntime(runtime, { port: Number(new URL(url).port), http: false })
  t.teardown(() => again.close())
  clock.increment(0)
  const missed = await readUntil(stream, event => brief(event) === 'artifact: a sketch')
  t.strictSame(missed.map(brief), ['working', 'working: thank you', 'artifact: a sketch'])
  go.resolve('a red boat')
  t.strictSame((await collect(stream)).map(brief), ['artifact: a red boat', 'completed: Here you are'])
})

await t.test(
  'a subscription without one readable event ends with InvalidAgentResponse if the task cannot be read either',
  async t => {
    const { url, sent, socket } = await scripted(t)
    const client = await connected(t, url)
    for (const result of [
      '5',
      'null',
      '"x"',
      '[]',
      '{}',
      '{"task":5}',
      '{"task":{}}',
      '{"statusUpdate":{}}',
      '{"artifactUpdate":null}',
      undefined
    ]) {
      await t.test(String(result), async t => {
        const before = sent.length
        const stream = refusal(collect(client.subscribeToTask({ id: 't' })))
        const { id } = await until(() => sent.slice(before).find(({ method }) => method === 'SubscribeToTask'))
        ;(await socket(0)).send(`{"jsonrpc":"2.0","id":${id}${result === undefined ? '' : `,"result":${result}`}}`)
        ;(await socket(0)).send(`{"jsonrpc":"2.0","id":${id},"streamEnd":true}`)
        const reading = await until(() => sent.slice(before).find(({ method }) => method === 'GetTask'))
        ;(await socket(0)).send(`{"jsonrpc":"2.0","id":${reading.id},"error":{"code":-32001,"message":"Gone."}}`)
        t.equal((await stream).code, 'InvalidAgentResponse')
      })
    }
  }
)
