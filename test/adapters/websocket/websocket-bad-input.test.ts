import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { ERRORS } from '../../../machines/protocol/errors.ts'
import type { Task } from '../../../machines/protocol/objects.ts'
import type { LimitChanges } from '../../../runtime/access/limits.ts'
import { errorReply, threeTasks, type ThreeTasks } from '../../fixtures/protocol/bad-input-agent.ts'
import {
  badFrames,
  badHandshakes,
  badParams,
  badTexts,
  goodHandshakes,
  goodMessages,
  nested,
  type BadHandshake
} from '../../fixtures/protocol/bad-input.ts'
import { cpuMs } from '../../fixtures/processes/cpu-time.ts'
import {
  closeFrame,
  frameOf,
  handshake,
  OPCODES,
  RawSocket,
  type HttpAnswer
} from '../../fixtures/servers/raw-socket.ts'
import { say, tasksIn, until, userMessage, open, reaches, taskIn } from '../../fixtures/runtime/runtime-helpers.ts'
import { eventIn, JsonSocket, obedient, serve, type ServedAgent } from '../../fixtures/servers/served-agent.ts'

type Prepared = ServedAgent & ThreeTasks

/** An agent with three tasks: one that works, one that has ended and one that asks. */
async function prepared(t: Test, limits: LimitChanges = {}): Promise<Prepared> {
  const agent = await serve(t, { work: obedient }, { limits })
  return { ...agent, ...(await threeTasks(agent.runtime)) }
}

/** Shows that nothing was written, that nothing more was sent, and that the connection goes on. */
async function unimpressed(t: Test, client: JsonSocket, { commits, done }: Prepared, before: number): Promise<void> {
  client.send(`{"jsonrpc":"2.0","id":"good","method":"GetTask","params":{"id":"${done.id}"}}`)
  t.match(await client.next(), { id: 'good', result: { id: done.id } }, 'the next frame answers the next request')
  t.equal(commits(), before, 'nothing was written')
  t.equal(({} as Record<string, unknown>)['polluted'], undefined)
}

await t.test('a malformed frame is answered with an error, and nothing happens', async t => {
  const agent = await prepared(t)
  const client = await JsonSocket.open(t, agent.url)
  const before = agent.commits()
  for (const { what, text, id, code, message = '', fields } of badTexts) {
    client.send(text)
    const reply = await client.next()
    const said = reply.error?.message ?? ''
    t.strictSame(
      [reply, said.startsWith(message), said.length < 300, agent.commits()],
      [errorReply(id, code, said, fields, fields && reply), true, true, before],
      `${what}: ${ERRORS[code].code}, "${message}", short, and nothing else`
    )
  }
  await unimpressed(t, client, agent, before)
})

await t.test('invalid parameters are answered with an error, and nothing happens', async t => {
  const agent = await prepared(t)
  const client = await JsonSocket.open(t, agent.url)
  const before = agent.commits()
  for (const { what, methods, params, code, fields } of badParams) {
    for (const method of methods) {
      client.send(`{"jsonrpc":"2.0","id":7,"method":"${method}","params":${agent.filled(params)}}`)
      const reply = await client.next()
      const said = reply.error?.message ?? ''
      const found = [reply, said.length < 400, /node_modules|\.[jt]s:\d/.test(JSON.stringify(reply)), agent.commits()]
      t.strictSame(
        found,
        [errorReply(7, code, said, fields, reply), true, false, before],
        `${method}, ${what}: ${ERRORS[code].code}, short, without a stack, and nothing else`
      )
    }
  }
  await unimpressed(t, client, agent, before)
  t.equal((await agent.runtime.getTask({ id: agent.working.id })).status.state, 'TASK_STATE_WORKING')
})

await t.test('a message that is valid but unusual is processed', async t => {
  const { url } = await serve(t, { card: { name: 'T', defaultInputModes: ['*/*'] }, work: obedient })
  const client = await JsonSocket.open(t, url)
  for (const { what, message, sees } of goodMessages) {
    client.send(`{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":${message}}}`)
    t.match(
      await client.next(),
      { id: 7, result: { task: { history: [sees], status: { state: 'TASK_STATE_COMPLETED' } } } },
      what
    )
  }
  for (const value of ['"1"', '1', '1.0', '10e-1']) {
    client.send(
      `{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":{"messageId":"m","role":1,"parts":[{"text":"a"}]},"configuration":{"history_length":${value}}}}`
    )
    const { result } = (await client.next()) as { result: { task: Task } }
    t.equal(result.task.history?.length, 1, `a historyLength of ${value}`)
  }
})

await t.test('null counts as an omitted member, and unknown members are ignored', async t => {
  const { url } = await serve(t, { work: obedient })
  const client = await JsonSocket.open(t, url)
  client.send(
    '{"trace":[{}],"a2a-service-parameters":null,"params":{"id":"x"},"method":"GetTask","id":-0,"jsonrpc":"2.0"}'
  )
  t.match(await client.next(), { id: 0, error: { code: -32001 } })
})

await t.test('frames that violate the WebSocket protocol close the connection, and nothing happens', async t => {
  const agent = await prepared(t)
  const before = agent.commits()
  for (const { what, bytes, close } of badFrames) {
    const raw = await RawSocket.open(t, agent.url)
    for (const chunk of [...bytes, closeFrame(1000)]) raw.write(chunk)
    t.strictSame([await raw.closeCode(), agent.commits()], [close, before], what)
  }
  await unimpressed(t, await JsonSocket.open(t, agent.url), agent, before)
})

await t.test('the close code of a malformed frame also arrives behind a response', async t => {
  const { url } = await serve(t, { work: obedient })
  const raw = await RawSocket.open(t, url)
  raw.write(Buffer.concat([frameOf({ payload: '{bad' }), frameOf({ payload: 'x', isMasked: false })]))
  t.match(await raw.json(), { id: null, error: { code: -32700 } })
  t.equal(await raw.closeCode(), 1002)
})

await t.test("frames after the server's close are not executed", async t => {
  const { url, commits } = await serve(t, { work: obedient })
  const raw = await RawSocket.open(t, url)
  raw.write(frameOf({ opcode: OPCODES.binary }))
  t.equal((await raw.frame())?.opcode, OPCODES.close)
  raw.send(JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'SendMessage', params: say('hello') }))
  raw.write(closeFrame(1003))
  t.equal(await raw.closeCode(), 1006, 'no second close frame, and no answer')
  t.equal(commits(), 0)
})

await t.test('text in fragments, with a ping between them, is one request', async t => {
  const { url } = await serve(t, { work: obedient })
  const raw = await RawSocket.open(t, url)
  raw.write(frameOf({ payload: '{"jsonrpc":"2.0","id":"⛵', isLast: false }))
  raw.write(frameOf({ opcode: OPCODES.ping, payload: 'a'.repeat(125) }))
  raw.write(frameOf({ opcode: OPCODES.continuation, isLast: false }))
  raw.write(frameOf({ opcode: OPCODES.continuation, payload: '","method":"GetTask","params":{"id":"x"}}' }))
  t.match(await raw.frame(), { opcode: OPCODES.pong, payload: Buffer.from('a'.repeat(125)) })
  t.match(await raw.json(), { id: '⛵', error: { code: -32001 } })
})

await t.test('a message of exactly 4 MiB is accepted', async t => {
  const { url } = await serve(t, { work: obedient })
  const client = await JsonSocket.open(t, url)
  const [head, tail] = ['{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"x"},"x":"', '"}']
  client.send(head + 'a'.repeat(4 * 1024 * 1024 - head.length - tail.length) + tail)
  t.match(await client.next(), { id: 7, error: { code: -32001 } })
})

await t.test('deep JSON is answered about as fast as other JSON of its size', async t => {
  const { url } = await serve(t, { work: obedient })
  const client = await JsonSocket.open(t, url)
  for (const [text, code] of [
    ['['.repeat(500_000), -32602],
    [nested(500_000), -32602],
    [`{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":${nested(500_000)}}}`, -32602]
  ] as const) {
    const tookMs = await cpuMs(async () => {
      client.send(text)
      t.match(await client.next(), { error: { code } })
    })
    t.ok(tookMs < 2000, `${text.slice(0, 60)} takes ${tookMs} ms of at most 2000`)
  }
})

await t.test('a client that floods with pings and reads nothing is closed, while others are served', async t => {
  const agent = await prepared(t)
  const { runtime } = agent
  const raw = await RawSocket.open(t, agent.url)
  const other = await JsonSocket.open(t, agent.url)
  const pings = Buffer.concat(
    Array.from({ length: 1000 }, () => frameOf({ opcode: OPCODES.ping, payload: 'a'.repeat(125) }))
  )
  for (let sent = 0; sent < 500 && !raw.socket.destroyed; sent += 1) {
    raw.write(pings)
    if (sent % 100 === 0) t.match(await other.call('GetTask', { id: agent.done.id }), { result: { id: agent.done.id } })
  }
  t.equal(await raw.closeCode(), 1006)
  t.match(await other.call('GetTask', { id: agent.done.id }), { result: { id: agent.done.id } })
  t.equal((await runtime.getTask({ id: agent.working.id })).status.state, 'TASK_STATE_WORKING')
})

await t.test('responses from a client are ignored until the tenth', async t => {
  const { url } = await serve(t, { work: obedient })
  const client = await JsonSocket.open(t, url)
  for (let count = 1; count < 10; count += 1) {
    client.send(
      count % 2 === 0 ? '{"jsonrpc":"2.0","id":7,"result":{}}' : '{"jsonrpc":"2.0","id":null,"error":{"code":1}}'
    )
    t.match(await client.call('GetTask', { id: 'x' }), { error: { code: -32001 } })
  }
  client.send('{"jsonrpc":"2.0","result":{}}')
  await t.rejects(client.call('GetTask', { id: 'x' }), /was closed: 1008 A client sends requests, not responses/)
})

await t.test('a request without id is neither executed nor answered', async t => {
  const agent = await prepared(t)
  const client = await JsonSocket.open(t, agent.url)
  const before = agent.commits()
  client.send(JSON.stringify({ jsonrpc: '2.0', method: 'SendMessage', params: say('hello') }))
  client.send(JSON.stringify({ jsonrpc: '2.0', method: 'SendStreamingMessage', params: say('hello') }))
  client.send(JSON.stringify({ jsonrpc: '2.0', method: 'CancelTask', params: { id: agent.working.id } }))
  client.send('{"jsonrpc":"2.0","method":"NoSuchMethod"}')
  client.send('{"jsonrpc":"2.0","method":"SendMessage","params":"bad"}')
  await unimpressed(t, client, agent, before)
  t.equal((await agent.runtime.getTask({ id: agent.working.id })).status.state, 'TASK_STATE_WORKING')
})

await t.test('a cancelStream that names no stream is ignored', async t => {
  const agent = await prepared(t)
  const client = await JsonSocket.open(t, agent.url)
  const before = agent.commits()
  const call = client.request('SendMessage', say('x', { taskId: agent.working.id }))
  t.match(await client.next(call), { error: { code: -32004 } })
  for (const params of [
    '{"id":99}',
    '{"id":"99"}',
    '{"id":null}',
    '{"id":{}}',
    '{}',
    '[7]',
    'null',
    '"7"',
    `{"id":${call}}`
  ]) {
    client.send(`{"jsonrpc":"2.0","method":"cancelStream","params":${params}}`)
  }
  client.send('{"jsonrpc":"2.0","method":"cancelStream"}')
  await unimpressed(t, client, agent, before)
})

await t.test('a cancelStream that names a call does not end it', async t => {
  const agent = await prepared(t)
  const client = await JsonSocket.open(t, agent.url)
  const call = client.request('SendMessage', say('wait'))
  client.cancelStream(call)
  const subscribed = client.request('SubscribeToTask', { id: agent.working.id })
  t.match(await client.next(), { id: subscribed, result: { task: { id: agent.working.id } } })
  const [mine] = await tasksIn(agent.store, { tenant: '', principal: 'anonymous', contextId: '' })
  t.equal(mine, undefined)
  t.strictSame(client.unread, [], 'the call still waits')
})

await t.test('an id in use is refused, and its request continues', async t => {
  const agent = await prepared(t)
  const client = await JsonSocket.open(t, agent.url)
  const params = JSON.stringify({ id: agent.working.id })
  client.send(`{"jsonrpc":"2.0","id":"7","method":"SubscribeToTask","params":${params}}`)
  t.match(await client.next(), { id: '7', result: { task: { id: agent.working.id } } })
  for (const method of ['SubscribeToTask', 'GetTask', 'NoSuchMethod']) {
    client.send(`{"jsonrpc":"2.0","id":"7","method":"${method}","params":${params}}`)
    t.match(await client.next(), {
      id: '7',
      error: { code: -32600, message: 'A request with the id "7" is in progress on this connection.' }
    })
  }
  client.send(`{"jsonrpc":"2.0","id":7,"method":"GetTask","params":${params}}`)
  t.match(await client.next(), { id: 7, result: { id: agent.working.id } }, 'a number is not its text')
  await agent.runtime.cancelTask({ id: agent.working.id })
  t.match(await client.next(), { id: '7', result: { statusUpdate: { status: { state: 'TASK_STATE_CANCELED' } } } })
  t.strictSame(await client.next(), { jsonrpc: '2.0', id: '7', streamEnd: true })
  client.send(`{"jsonrpc":"2.0","id":"7","method":"GetTask","params":${params}}`)
  t.match(await client.next(), { id: '7', result: { id: agent.working.id } }, 'it is free again at its end')
})

function tooManyCalls(id: number): unknown {
  const data = [
    { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'RATE_LIMITED', domain: 'taskchart' },
    { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '1s' }
  ]
  return {
    jsonrpc: '2.0',
    id,
    error: {
      code: -31429,
      message: 'This connection has 2 calls in progress, which is its limit. Wait for one to end.',
      data
    }
  }
}

await t.test('calls over the limit are refused one by one, and accepted after others end', async t => {
  const agent = await prepared(t, { advanced: { callsPerConnection: 2 } })
  const client = await JsonSocket.open(t, agent.url)
  for (let round = 0; round < 3; round += 1) {
    const contextId = `round-${round}`
    const calls = [
      client.request('SendMessage', say('wait', { contextId })),
      client.request('SendMessage', say('wait', { contextId }))
    ]
    const tasks = await until(async () => {
      const tasks = await tasksIn(agent.store, { tenant: '', principal: 'anonymous', contextId })
      return tasks.length === 2 && tasks
    })
    const before = agent.commits()
    const third = client.request('SendMessage', say('hello'))
    t.strictSame(await client.next(), tooManyCalls(third))
    t.equal(agent.commits(), before)
    const stream = client.request('SubscribeToTask', { id: agent.working.id })
    t.match(await client.next(), { id: stream, result: {} }, 'streams have their own limit')
    client.cancelStream(stream)
    t.strictSame(await client.next(), { jsonrpc: '2.0', id: stream, streamEnd: true })
    for (const { task } of tasks) await agent.runtime.cancelTask({ id: task.id })
    for (const id of calls)
      t.match(await client.next(id), { result: { task: { status: { state: 'TASK_STATE_CANCELED' } } } })
  }
})

await t.test('streams over the limit are refused one by one, and accepted after others end', async t => {
  const agent = await prepared(t, { advanced: { streamsPerConnection: 2 } })
  const client = await JsonSocket.open(t, agent.url)
  for (let round = 0; round < 3; round += 1) {
    const streams = [1, 2].map(() => client.request('SubscribeToTask', { id: agent.working.id }))
    for (const id of streams) t.match(eventIn(await client.next(id)), { task: { id: agent.working.id } })
    const before = agent.commits()
    const third = client.request('SendStreamingMessage', say('hello'))
    t.match(await client.next(), {
      id: third,
      error: { code: -31429, message: /^This connection has 2 streams in progress/ }
    })
    await unimpressed(t, client, agent, before)
    for (const id of streams) client.cancelStream(id)
    for (const id of streams) t.strictSame(await client.next(id), { jsonrpc: '2.0', id, streamEnd: true })
  }
})

await t.test("a message over the runtime's limit closes with 1009, and deeper JSON is refused", async t => {
  const { url } = await serve(t, { work: obedient }, { limits: { messageBytes: 1000, advanced: { jsonDepth: 3 } } })
  const client = await JsonSocket.open(t, url)
  t.match(await client.call('GetTask', { id: 'x', a: [[]] }), { error: { code: -32001 } })
  t.match(await client.call('GetTask', { id: 'x', a: [[[]]] }), {
    error: { code: -32602, data: [{}, { fieldViolations: [{ field: 'params.a[0][0]' }] }] }
  })
  client.send('"'.padEnd(1001, '"'))
  await t.rejects(client.call('GetTask', { id: 'x' }), /was closed: 1009/)
})

/** Answers a handshake and ends the connection. */
async function shaken(
  t: Test,
  url: string,
  given: BadHandshake['given']
): Promise<{ answer: HttpAnswer; raw: RawSocket }> {
  const raw = await RawSocket.to(t, url)
  raw.write(handshake(url, given))
  return { answer: await raw.answer(), raw }
}

await t.test('an invalid handshake is answered with a status, without a connection', async t => {
  const agent = await prepared(t)
  const client = await JsonSocket.open(t, agent.url)
  for (const { what, given, status, headers = {}, says } of badHandshakes) {
    await t.test(`${what}: ${status}`, async t => {
      const before = agent.commits()
      const { answer, raw } = await shaken(t, agent.url, given)
      t.equal(answer.status, status)
      t.match(answer.headers, headers)
      if (says) t.match(answer.body, says)
      t.notMatch(answer.body, /s3cret|node_modules|\.[jt]s:\d/)
      t.equal(await raw.frame(), undefined, 'the connection is closed')
      await unimpressed(t, client, agent, before)
    })
  }
})

await t.test('an unusual but valid handshake is accepted, and the connection works', async t => {
  const agent = await prepared(t)
  for (const { what, given, headers = {} } of goodHandshakes) {
    await t.test(what, async t => {
      const { answer, raw } = await shaken(t, agent.url, given)
      t.equal(answer.status, 101, answer.body)
      t.match(answer.headers, headers)
      t.notOk('sec-websocket-extensions' in answer.headers)
      if (!('sec-websocket-protocol' in headers)) t.notOk('sec-websocket-protocol' in answer.headers)
      raw.send(
        `{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"${agent.done.id}"},"a2a-service-parameters":{"a2a-version":"1.0"}}`
      )
      t.match(await raw.json(), { id: 7, result: { id: agent.done.id } })
    })
  }
})

await t.test('invalid HTTP and a handshake without a host get 400', async t => {
  const { url } = await serve(t, { work: obedient })
  for (const bytes of [
    Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]),
    Buffer.from('hello\r\n\r\n'),
    Buffer.from(handshake(url, { host: null })),
    Buffer.from(handshake(url, { more: ['Transfer-Encoding: chunked', 'Content-Length: 5'] })),
    Buffer.from(handshake(url, { more: ['(Bad): x'] }))
  ]) {
    const raw = await RawSocket.to(t, url)
    raw.write(bytes)
    t.ok([400, 421].includes((await raw.answer()).status), bytes.toString('latin1').slice(0, 20))
    t.equal(await raw.frame(), undefined)
  }
})

await t.test('only allowed origins and hosts may connect', async t => {
  const { url } = await serve(t, { work: obedient }, { origins: ['https://app.example'], hosts: ['agent.example'] })
  const status = async (host: string, origin?: string) => {
    const { answer } = await shaken(t, url, { host, more: origin === undefined ? [] : [`Origin: ${origin}`] })
    return answer.status
  }
  t.equal(await status('agent.example'), 101)
  t.equal(await status('AGENT.example:443'), 101)
  t.equal(await status('localhost'), 421)
  t.equal(await status('other.agent.example'), 421)
  t.equal(await status('agent.example', 'https://app.example'), 101)
  t.equal(await status('agent.example', 'https://agent.example'), 101)
  t.equal(await status('agent.example', 'https://other.example'), 403)
  t.equal(await status('agent.example', 'https://app.example.evil.example'), 403)
  t.equal(await status('agent.example', 'http://app.example'), 403)
  t.equal(await status('agent.example', 'null'), 403)
})

await t.test('connections that end at any point do no harm', async t => {
  const agent = await prepared(t)
  const { hostname, port } = new URL(agent.url)
  const [head = ''] = handshake(agent.url).split('Sec-WebSocket-Version')
  const good = handshake(agent.url, { more: ['A2A-Version: 1.0'] })
  const request = frameOf({
    payload: `{"jsonrpc":"2.0","id":7,"method":"SubscribeToTask","params":{"id":"${agent.working.id}"}}`
  })
  for (const bytes of [
    '',
    'G',
    head,
    good,
    Buffer.concat([Buffer.from(good), request.subarray(0, 1)]),
    Buffer.concat([Buffer.from(good), request.subarray(0, 9)]),
    Buffer.concat([Buffer.from(good), request])
  ]) {
    for (const end of ['end', 'reset'] as const) {
      const socket = connect(Number(port), hostname)
      await new Promise<void>(resolve => {
        socket
          .on('error', () => {})
          .on('close', () => resolve())
          .resume()
        socket.write(bytes, () => (end === 'end' ? socket.end() : socket.resetAndDestroy()))
      })
    }
  }
  const client = await JsonSocket.open(t, agent.url)
  await unimpressed(t, client, agent, agent.commits())
})

/** How many sockets and timers this process holds. */
function left(): number {
  return process.getActiveResourcesInfo().filter(name => /TCP|Timeout|Immediate/.test(name)).length
}

await t.test('nothing is left after a thousand bad frames, streams and broken connections', async t => {
  const before = left()
  await t.test('a server starts and stops', async t => {
    const agent = await prepared(t)
    for (let round = 0; round < 20; round += 1) {
      const client = await JsonSocket.open(t, agent.url)
      const streams = [1, 2, 3].map(() => client.request('SubscribeToTask', { id: agent.working.id }))
      for (const id of streams) await client.next(id)
      for (let i = 0; i < 50; i += 1) client.send(i % 2 === 0 ? '{bad' : '{"jsonrpc":"2.0","id":1e400}')
      for (let i = 0; i < 50; i += 1) await client.next(null)
      if (round % 2 === 0) client.socket.terminate()
      else client.socket.send(Buffer.from('binary'))
      await client.closed()
    }
    t.match(await agent.runtime.sendMessage({ message: userMessage('hello') }), {
      task: { status: { state: 'TASK_STATE_COMPLETED' } }
    })
  })
  await until(() => left() <= before, 'all sockets and timers to be gone')
  t.ok(left() <= before)
})

await t.test('50 clients that vanish leave nothing behind, and their tasks continue', async t => {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { url, runtime, clock } = await serve(t, { work: obedient }, {}, { server })
  const timers = clock.pending
  const listeners = process.getActiveResourcesInfo().length
  const task = await open(runtime, 'ask')
  await reaches(runtime, task.id, 'input-required')

  const sockets = await Promise.all(
    Array.from({ length: 50 }, async () => {
      const socket = new WebSocket(url, { headers: { 'a2a-version': '1.0' } })
      await once(socket, 'open')
      socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id: task.id } }))
      socket.send(
        JSON.stringify({
          jsonrpc: '2.0',
          id: 2,
          method: 'SendMessage',
          params: { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'ask' }] } }
        })
      )
      await once(socket, 'message')
      return socket
    })
  )
  for (const socket of sockets) socket.terminate()
  const connections = () => new Promise<number>(resolve => server.getConnections((_, count) => resolve(count)))
  await until(async () => (await connections()) === 0)
  await until(() => process.getActiveResourcesInfo().length <= listeners)
  t.equal(clock.pending, timers)
  t.match(taskIn(await runtime.sendMessage(say('over', { taskId: task.id }))), {
    status: { state: 'TASK_STATE_COMPLETED' }
  })
})

await t.test('an unfinished frame closes the connection with 4408 after 30 seconds of silence', async t => {
  const { url, clock } = await serve(t, { work: obedient })
  const timers = clock.pending
  const raw = await RawSocket.open(t, url)
  const request = frameOf({
    payload: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { filler: 'x'.repeat(300) } })
  })
  for (const end of [1, 3, 7, 100]) {
    raw.write(request.subarray(0, end))
    await until(() => clock.pending === timers + 1)
    clock.increment(20_000)
    raw.write(request.subarray(end))
    t.match(await raw.json(), { id: 1, result: {} }, `begun with ${end} bytes, and finished in time`)
    t.equal(clock.pending, timers)
  }
  raw.write(
    Buffer.concat([frameOf({ payload: 'x', opcode: OPCODES.pong }), frameOf({ payload: 'x', promised: 70_000 })])
  )
  await until(() => clock.pending === timers + 1)
  clock.increment(30_000)
  let last = await raw.frame()
  while (last && last.opcode !== OPCODES.close) last = await raw.frame()
  t.equal(last?.payload.readUInt16BE(0), 4408)
  raw.socket.destroy()
  await until(() => clock.pending === timers)
})
