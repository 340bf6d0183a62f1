import { EventEmitter, once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { assign, emit, fromPromise } from 'xstate'
import { inspect } from '../../../adapters/inspector/index.ts'
import { serve as serveRuntime } from '../../../adapters/serve/serve.ts'
import { attach } from '../../../adapters/websocket/attach.ts'
import { ReadPause } from '../../../adapters/websocket/incoming-frames.ts'
import { READER_STALL_MS } from '../../../adapters/entry/connection.ts'
import { Outbox } from '../../../adapters/websocket/outbox.ts'
import type { StreamResponse, Task } from '../../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import type { Authenticate, Principal } from '../../../runtime/access/authentication.ts'
import { setupWork } from '../../../runtime/authoring/setup-work.ts'
import { artifact, reply } from '../../../runtime/authoring/words.ts'
import { type ServedRuntime } from '../../../runtime/runtime-options.ts'
import { afterRound } from '../../../runtime/primitives/event-loop.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { echo, painter, steeredWork } from '../../fixtures/runtime/agents.ts'
import { closeFrame, frameOf, handshake, OPCODES, RawSocket } from '../../fixtures/servers/raw-socket.ts'
import {
  brief,
  deferred,
  generationOf,
  open,
  reaches,
  say,
  start,
  taskIn,
  until
} from '../../fixtures/runtime/runtime-helpers.ts'
import { eventIn, JsonSocket, obedient, serve, type Reply } from '../../fixtures/servers/served-agent.ts'
import { standsStill } from '../../fixtures/runtime/stands-still.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

const VERSION = { 'a2a-version': '1.0' }
const PING_INTERVAL_MS = 30_000
const GOING_DOWN = { code: 1012, reason: 'The server restarts. Your tasks go on: connect again.' }

/** The task in the answer to a SendMessage. */
function taskOf({ result }: Reply): Task {
  if (result === undefined) throw new Error('A task was expected')
  return taskIn(result as StreamResponse)
}

/** The events of a stream, shortly; the last frame is not one. */
function told(replies: readonly Reply[]): string[] {
  return replies.slice(0, -1).map(reply => brief(eventIn(reply)))
}

/** Clients that take their time, which the last test waits for: what they wait for comes by the real clock. */
const slow = slowClients(t)

await t.test('many calls and streams share one connection, and each frame names its request', async t => {
  const { url } = await serve(t, { work: obedient })
  const client = await JsonSocket.open(t, url)
  const calls = Array.from({ length: 20 }, (_, i) => client.request('SendMessage', say(`call ${i}`)))
  const streams = Array.from({ length: 20 }, (_, i) => client.request('SendStreamingMessage', say(`stream ${i}`)))
  for (const [i, id] of calls.entries())
    t.match(taskOf(await client.next(id)), { artifacts: [{ parts: [{ text: `call ${i}` }] }] })
  for (const [i, id] of streams.entries()) {
    const replies = await client.stream(id)
    t.strictSame(told(replies), ['task:submitted', 'working', `artifact: stream ${i}`, 'completed'])
    t.ok(replies.every(reply => reply.id === id && reply.jsonrpc === '2.0'))
  }
  t.strictSame(client.unread, [])
})

await t.test('a stream ends with a frame that only marks the end', async t => {
  const { url } = await serve(t, { work: obedient })
  const client = await JsonSocket.open(t, url)
  for (const id of ['"a"', '7', '"7"', '"⛵"', '""', '0']) {
    client.send(`{"jsonrpc":"2.0","id":${id},"method":"SendStreamingMessage","params":${JSON.stringify(say('hello'))}}`)
    const texts = []
    do texts.push(await client.text())
    while (!texts.at(-1)?.includes('streamEnd'))
    t.equal(texts.pop(), `{"jsonrpc":"2.0","id":${id},"streamEnd":true}`)
    t.equal(texts.length, 4)
    t.ok(texts.every(text => text.startsWith(`{"jsonrpc":"2.0","id":${id},"result":{"`) && text.endsWith('}}')))
  }
})

await t.test('an error ends a stream, without an end frame after it', async t => {
  const { url, runtime } = await serve(t, { work: obedient })
  const client = await JsonSocket.open(t, url)
  const task = await open(runtime, 'wait')
  const stream = client.request('SubscribeToTask', { id: task.id })
  t.match(await client.next(), { id: stream, result: { task: { id: task.id } } })
  await runtime.close()
  const replies = await client.stream(stream)
  t.match(replies.at(-1), { id: stream, error: { code: -31503, message: 'The agent is shutting down.' } })
  const after = client.request('GetTask', { id: task.id })
  t.match(await client.next(), { id: after, error: {} })
})

await t.test('cancelStream ends the stream and never the task, and frees its id', async t => {
  const { url, runtime } = await serve(t, { work: painter() })
  const client = await JsonSocket.open(t, url)
  const task = taskOf(await client.call('SendMessage', say('a boat')))
  for (const id of ['x', 7]) {
    for (let round = 0; round < 2; round += 1) {
      client.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'SubscribeToTask', params: { id: task.id } }))
      t.match(await client.next(), { id, result: { task: { id: task.id } } })
      client.cancelStream(id)
      t.strictSame(await client.next(), { jsonrpc: '2.0', id, streamEnd: true })
    }
  }
  t.equal((await runtime.getTask({ id: task.id })).status.state, 'TASK_STATE_INPUT_REQUIRED')
  t.match(taskOf(await client.call('SendMessage', say('red', { taskId: task.id }))), {
    status: { state: 'TASK_STATE_COMPLETED' }
  })
  t.strictSame(client.unread, [])
})

await t.test('cancelStream of a numeric id leaves other streams open, also that of the same text', async t => {
  const { url, runtime } = await serve(t, { work: obedient })
  const client = await JsonSocket.open(t, url)
  const task = await open(runtime, 'wait')
  for (const id of [7, '7']) {
    client.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'SubscribeToTask', params: { id: task.id } }))
    t.match(await client.next(id), { result: { task: { id: task.id } } })
  }
  client.cancelStream(7)
  while ((await client.next(7)).streamEnd === undefined);
  await runtime.cancelTask({ id: task.id })
  const replies = await client.stream('7')
  t.strictSame(told(replies).at(-1), 'canceled')
})

await t.test('cancelStream before the first event is answered with the end', async t => {
  const answer = deferred<ReturnType<typeof reply>>()
  const { url } = await serve(t, { negotiate: () => answer.promise })
  const client = await JsonSocket.open(t, url)
  const stream = client.request('SendStreamingMessage', say('hello'))
  client.cancelStream(stream)
  answer.resolve(reply('too late'))
  t.strictSame(await client.next(), { jsonrpc: '2.0', id: stream, streamEnd: true })
})

await t.test('a waiting call blocks nothing', async t => {
  const { work, run } = steeredWork()
  const { url } = await serve(t, { work })
  const client = await JsonSocket.open(t, url)
  const [first, second] = [client.request('SendMessage', say('one')), client.request('SendMessage', say('two'))]
  const second_ = await run(1)
  second_.resolve({ artifact: 'two' })
  t.match(taskOf(await client.next()), { artifacts: [{ parts: [{ text: 'two' }] }] })
  t.strictSame(client.unread, [])
  ;(await run(0)).resolve({ artifact: 'one' })
  t.match(await client.next(), { id: first, result: { task: { artifacts: [{ parts: [{ text: 'one' }] }] } } })
  t.not(first, second)
})

await t.test('messages to one task are processed in the order of their frames', async t => {
  const { url } = await serve(t, { work: obedient })
  const client = await JsonSocket.open(t, url)
  const task = taskOf(await client.call('SendMessage', say('ask')))
  const [first, second] = ['red', 'blue'].map(text => client.request('SendMessage', say(text, { taskId: task.id })))
  t.match(taskOf(await client.next(first)), { artifacts: [{ parts: [{ text: 'red' }] }] })
  t.match(await client.next(second), { error: { code: -32004 } })
})

await t.test("a frame's service parameters override those of the handshake, in any case", async t => {
  const { url } = await serve(t, { work: obedient })
  const versions = async (
    where: { url?: string; headers?: Record<string, string> },
    frame?: Record<string, unknown>
  ) => {
    const client = await JsonSocket.open(t, where.url ?? url, { headers: where.headers ?? {} })
    const { error } = await client.call('GetTask', { id: 'nobody' }, frame && { 'a2a-service-parameters': frame })
    client.socket.terminate()
    return error?.code
  }
  t.equal(await versions({ headers: VERSION }), -32001)
  t.equal(await versions({ headers: { 'A2A-VERSION': '1.0.9' } }), -32001)
  t.equal(await versions({ url: `${url}?A2A-Version=1.0` }), -32001)
  t.equal(await versions({ url: `${url}?room=1&a2a-version=1.0` }), -32001)
  t.equal(await versions({}, VERSION), -32001)
  t.equal(await versions({}, { 'A2A-Version': '1.0', 'X-Other': 'x', 'a2A-eXtensions': '' }), -32001)
  t.equal(await versions({ headers: VERSION }, { 'A2A-VERSION': '9.9' }), -32009)
  t.equal(await versions({ headers: VERSION }, { 'a2a-version': '' }), -32009)
  t.equal(await versions({ headers: VERSION }, { 'a2a-version': 'latest' }), -32009)
  t.equal(await versions({ headers: VERSION }, {}), -32001)
  t.equal(await versions({ headers: { 'a2a-version': '' } }), -32009)
  t.equal(await versions({ url: `${url}?version=1.0` }), -32009)
})

await t.test('a request without a version counts as 0.3, and the error lists supported versions', async t => {
  const { url, commits } = await serve(t, { work: obedient })
  const client = await JsonSocket.open(t, url, { headers: {} })
  for (const method of [
    'SendMessage',
    'SendStreamingMessage',
    'GetTask',
    'ListTasks',
    'GetExtendedAgentCard'
  ] as const) {
    const id = client.request(method, say('hello'))
    t.strictSame(await client.next(), {
      jsonrpc: '2.0',
      id,
      error: {
        code: -32009,
        message: 'The request names no A2A-Version, which means 0.3; this agent speaks 1.0. Send A2A-Version: 1.0.',
        data: [
          {
            '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
            reason: 'VERSION_NOT_SUPPORTED',
            domain: 'a2a-protocol.org',
            metadata: { supportedVersions: '1.0' }
          }
        ]
      }
    })
  }
  t.equal(commits(), 0)
})

await t.test('activated extensions are named beside each result, and generations appear only with theirs', async t => {
  const { url } = await serve(t, { work: obedient })
  const plain = await JsonSocket.open(t, url)
  const extended = await JsonSocket.open(t, url, {
    headers: { ...VERSION, 'a2a-extensions': `urn:unknown, ${RELIABILITY_EXTENSION}` }
  })
  const asked = { 'a2a-service-parameters': { 'A2A-Extensions': RELIABILITY_EXTENSION } }
  const notAsked = { 'a2a-service-parameters': { 'a2a-extensions': '' } }
  const activated = { 'a2a-extensions': RELIABILITY_EXTENSION }

  for (const [client, more, isActive] of [
    [plain, {}, false],
    [plain, asked, true],
    [extended, {}, true],
    [extended, notAsked, false]
  ] as const) {
    const replies = await client.stream(client.request('SendStreamingMessage', say('hello'), more))
    const end = replies.pop()
    t.strictSame(end, { jsonrpc: '2.0', id: end?.id, streamEnd: true })
    t.strictSame(
      replies.map(reply => reply['a2a-service-parameters']),
      replies.map(() => (isActive ? activated : undefined))
    )
    t.strictSame(
      replies.map(reply => generationOf(eventIn(reply))),
      isActive ? [2, 3, 4, 5] : [undefined, undefined, undefined, undefined]
    )
    const answer = await client.call('SendMessage', say('hello'), more)
    t.strictSame(answer['a2a-service-parameters'], isActive ? activated : undefined)
    t.equal(generationOf(answer.result as StreamResponse), isActive ? 5 : undefined)
    const refused = await client.call('GetTask', { id: 'nobody' }, more)
    t.notOk('a2a-service-parameters' in refused, 'an error names none')
  }
  const unknown = await plain.call('SendMessage', say('hello'), {
    'a2a-service-parameters': { 'a2a-extensions': 'urn:unknown,,' }
  })
  t.notOk('a2a-service-parameters' in unknown)
  const query = await JsonSocket.open(t, `${url}?a2a-version=1.0&A2A-Extensions=${RELIABILITY_EXTENSION}`, {
    headers: {}
  })
  t.equal(generationOf((await query.call('SendMessage', say('hello'))).result as StreamResponse), 5)
})

await t.test("a disconnected client's calls and streams are aborted", async t => {
  const { runtime } = start(t, { work: obedient })
  const signals: (AbortSignal | undefined)[] = []
  const watched: ServedRuntime = {
    ...runtime,
    sendMessage: (params, call) => (signals.push(call?.signal), runtime.sendMessage(params, call)),
    subscribeToTask: (params, call) => (signals.push(call?.signal), runtime.subscribeToTask(params, call))
  }
  const served = await serveRuntime(watched, { port: 0, http: false })
  t.teardown(() => served.close())
  const task = await open(runtime, 'wait')
  const client = await JsonSocket.open(t, served.url)
  client.request('SendMessage', say('wait'))
  await client.next(client.request('SubscribeToTask', { id: task.id }))
  t.strictSame(
    signals.map(signal => signal?.aborted),
    [false, false]
  )
  client.socket.terminate()
  await until(() => signals.every(signal => signal?.aborted), 'the signals to abort')
  t.equal((await runtime.getTask({ id: task.id })).status.state, 'TASK_STATE_WORKING')
})

await t.test('a stream that ignores its cancellation ends at its next event', async t => {
  const { runtime } = start(t, { work: obedient })
  const step = deferred()
  let isOver = false
  async function* deaf(): AsyncGenerator<StreamResponse, void, undefined> {
    try {
      yield { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'more' }] } }
      await step.promise
      yield { message: { messageId: 'n', role: 'ROLE_AGENT', parts: [{ text: 'for nobody' }] } }
      await new Promise(() => {})
    } finally {
      isOver = true
    }
  }
  const served = await serveRuntime({ ...runtime, sendStreamingMessage: deaf }, { port: 0, http: false })
  t.teardown(() => served.close())
  const client = await JsonSocket.open(t, served.url)
  const id = client.request('SendStreamingMessage', say('hello'))
  t.match(await client.next(id), { result: { message: { messageId: 'm' } } })
  client.cancelStream(id)
  await client.call('ListTasks', {})
  step.resolve()
  t.strictSame(await client.next(id), { jsonrpc: '2.0', id, streamEnd: true })
  t.ok(isOver)
})

await t.test('an error of the store is -32603 without its text, and is logged', async t => {
  const store = { ...memoryStore(), readTask: async () => Promise.reject(new Error('disk s3cret is full')) }
  const { url, log } = await serve(t, { work: obedient }, { store })
  const client = await JsonSocket.open(t, url)
  const call = client.request('GetTask', { id: 'x' })
  t.strictSame(await client.next(), {
    jsonrpc: '2.0',
    id: call,
    error: {
      code: -32603,
      message: 'Internal error',
      data: [
        { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'INTERNAL_ERROR', domain: 'a2a-protocol.org' }
      ]
    }
  })
  const stream = client.request('SubscribeToTask', { id: 'x' })
  t.match(await client.next(), { id: stream, error: { code: -32603, message: 'Internal error' } })
  t.match(
    log,
    ['getTask', 'subscribeToTask'].map(operation => ({
      level: 'error',
      message: 'an operation failed',
      details: { operation, error: { message: 'disk s3cret is full' } }
    }))
  )
})

/** Knows those who say `Bearer <name>`, other than Bearer mallory. */
const byName: Authenticate = ({ headers }) => {
  const id = /^Bearer (\w+)$/.exec(headers['authorization'] ?? '')?.[1]
  return id === undefined || id === 'mallory' ? undefined : { id }
}

/** How a handshake with these lines is answered. */
async function answered(t: Test, url: string, lines: readonly string[] = []) {
  const raw = await RawSocket.to(t, url)
  raw.write(handshake(url, { more: lines }))
  return raw.answer()
}

await t.test('authenticate receives all headers in lower case, and may be asynchronous', async t => {
  const seen: unknown[] = []
  const answer = deferred<Principal>()
  const authenticate: Authenticate = ({ headers }) => (seen.push(headers), answer.promise)
  const { url } = await serve(t, { work: obedient }, { authenticate })
  const waiting = answered(t, url, ['X-Api-KEY: k', 'X-Twice: 1', 'X-Twice: 2', 'Set-Cookie: a=1', 'Set-Cookie: b=2'])
  await until(() => seen.length > 0)
  answer.resolve({ id: 'anna' })
  t.equal((await waiting).status, 101)
  t.match(seen, [{ 'x-api-key': 'k', 'x-twice': '1, 2', 'set-cookie': 'a=1, b=2', upgrade: 'websocket' }])
})

await t.test('an authenticate that throws or rejects refuses the caller, and is logged', async t => {
  for (const authenticate of [
    () => {
      throw new Error('no directory')
    },
    () => Promise.reject(new Error('no directory'))
  ]) {
    const { url, log } = await serve(t, { work: obedient }, { authenticate })
    t.equal((await answered(t, url, ['Authorization: Bearer anna'])).status, 401)
    t.match(log, [{ level: 'error', message: 'authenticate failed', details: { error: { message: 'no directory' } } }])
  }
})

await t.test('a handshake error is reported before authentication', async t => {
  const { url } = await serve(
    t,
    { work: obedient },
    { authenticate: () => t.fail('nobody was to be authenticated') as never }
  )
  t.equal((await answered(t, url, ['Origin: https://evil.example'])).status, 403)
  t.equal((await answered(t, url, ['A2A-Version: 9.9'])).status, 400)
})

await t.test('an unexpected error in a handshake gives 500 without its text, and is logged', async t => {
  const { runtime, log } = start(t, { work: obedient })
  const settings = {
    ...runtime.settings,
    get origins(): string[] {
      throw new Error('s3cret')
    }
  }
  const broken: ServedRuntime = { ...runtime, settings }
  const served = await serveRuntime(broken, { port: 0, http: false })
  t.teardown(() => served.close())
  const { status, body } = await answered(t, served.url, ['Origin: https://app.example'])
  t.equal(status, 500)
  t.match(JSON.parse(body), { error: { code: -32603, data: [{ reason: 'INTERNAL' }] } })
  t.notMatch(body, 's3cret')
  t.match(log, [{ level: 'error', message: 'a handshake failed', details: { error: { message: 's3cret' } } }])
})

await t.test('expired credentials fail calls and streams, and close the connection', async t => {
  const clock = new TestClock()
  const { work, run } = steeredWork()
  const { url, runtime, commits } = await serve(
    t,
    { work },
    { clock, authenticate: () => ({ id: 'anna', expiresAtMs: clock.now() + 60_000 }) }
  )
  const client = await JsonSocket.open(t, url)
  const call = client.request('SendMessage', say('one'))
  const stream = client.request('SendStreamingMessage', say('two'))
  await client.next(stream)
  const { given, resolve } = await run(1)
  clock.increment(59_999)
  t.match(await client.call('GetTask', { id: given.taskId }), { result: { id: given.taskId } })
  while (client.unread.length > 0) await client.next()
  const before = commits()
  clock.increment(1)
  client.request('SendMessage', say('three'))
  for (const id of [call, stream]) {
    t.match(await client.next(), { jsonrpc: '2.0', id, error: { code: -31401, data: [{ reason: 'UNAUTHENTICATED' }] } })
  }
  t.strictSame(await client.closed(), { code: 4401, reason: 'The credentials have expired.' })
  await runtime.cancelTask({ id: given.taskId }, { principal: 'anna' })
  resolve()
  t.strictSame(client.unread, [])
  t.equal(commits(), before + 1, 'later frames are not processed')
})

await t.test('credentials may last longer than a timer, or expire at the handshake', async t => {
  const clock = new TestClock()
  const until = { long: clock.now() + 2 ** 31 + 5, past: clock.now() }
  const { url } = await serve(
    t,
    { work: obedient },
    { clock, authenticate: ({ headers }) => ({ id: 'anna', expiresAtMs: headers['x-long'] ? until.long : until.past }) }
  )
  t.equal((await answered(t, url)).status, 401)
  const long = await JsonSocket.open(t, url, { headers: { ...VERSION, 'x-long': '1' }, autoPong: true })
  t.match(await long.call('GetTask', { id: 'x' }), { error: { code: -32001 } })
  t.equal(clock.pending, 2, 'one timer of the connection, one of the heartbeat')
  long.socket.close()
  await long.closed()
  t.equal(clock.pending, 1, 'the timer ends with the connection')
})

await t.test('a frame after the expiry of its credentials is refused, also before the timer fires', async t => {
  let nowMs = 0
  const clock = { now: () => nowMs, setTimeout: () => undefined, clearTimeout: () => {} }
  const { url, commits } = await serve(
    t,
    { work: obedient },
    { clock, authenticate: () => ({ id: 'anna', expiresAtMs: 1000 }) }
  )
  const client = await JsonSocket.open(t, url)
  t.match(await client.call('GetTask', { id: 'x' }), { error: { code: -32001 } })
  nowMs = 1000
  client.request('SendMessage', say('hello'))
  t.match(await client.closed(), { code: 4401 })
  t.equal(commits(), 0)
})

/** Waits until the server has read all that a client sent. */
async function roundTrip(client: JsonSocket): Promise<void> {
  await client.call('GetTask', { id: 'nobody' })
}

await t.test('closes a connection after two unanswered pings', async t => {
  const { url, runtime, clock } = await serve(t, { work: obedient })
  const good = await JsonSocket.open(t, url)
  const late = await JsonSocket.open(t, url, { headers: VERSION, autoPong: false })
  const dead = await JsonSocket.open(t, url, { headers: VERSION, autoPong: false })
  const task = await open(runtime, 'wait')
  const stream = dead.request('SubscribeToTask', { id: task.id })
  await dead.next(stream)
  const beat = async (clients: readonly JsonSocket[]) => {
    const pinged = clients.map(({ socket }) => once(socket, 'ping'))
    clock.increment(PING_INTERVAL_MS)
    await Promise.all(pinged)
    await Promise.all(clients.map(roundTrip))
  }
  await beat([good, late, dead])
  late.socket.pong()
  await roundTrip(late)
  await beat([good, late, dead])
  t.match(
    await dead.call('GetTask', { id: task.id }),
    { result: { id: task.id } },
    'two unanswered pings are tolerated'
  )
  const alive = [good, late].map(({ socket }) => once(socket, 'ping'))
  clock.increment(PING_INTERVAL_MS)
  t.strictSame(await dead.closed(), { code: 1006, reason: '' })
  await Promise.all(alive)
  await roundTrip(good)
  await roundTrip(late)
  t.equal((await runtime.getTask({ id: task.id })).status.state, 'TASK_STATE_WORKING')
  for (let count = 0; count < 5; count += 1) await beat([good])
})

await t.test('a closed server sends no ping', async t => {
  const { clock, close } = await serve(t, { work: obedient })
  t.equal(clock.pending, 1)
  await close()
  t.equal(clock.pending, 0)
})

const CHUNK = 'x'.repeat(64 * 1024)
const MEBIBYTE = 1024 * 1024

/** Work that tells so many large artifacts, one commit each, when the test says so. */
function flood(chunks: number, opened: Promise<void>) {
  return setupWork({
    types: { context: {} as { told: number } },
    actors: { opened: fromPromise(() => opened), turn: fromPromise(async () => undefined) }
  }).createMachine({
    context: { told: 0 },
    initial: 'dry',
    states: {
      dry: { invoke: { src: 'opened', onDone: 'pouring' } },
      pouring: {
        entry: [
          assign({ told: ({ context }) => context.told + 1 }),
          emit(({ context }) => artifact(`${context.told}:${CHUNK}`))
        ],
        invoke: {
          src: 'turn',
          onDone: [
            { guard: ({ context }) => context.told < chunks, target: 'pouring', reenter: true },
            { target: 'poured' }
          ]
        }
      },
      poured: { type: 'final' }
    }
  })
}

/** An agent on a server of ours, so that the test sees the server's side of each connection. */
async function observed(t: Test, definition: Parameters<typeof serve>[1]) {
  const server = createServer()
  const sockets: Socket[] = []
  server.on('connection', socket => sockets.push(socket))
  await listening(t, server)
  return {
    ...(await serve(t, definition, { limits: { taskBytes: 2 ** 30, advanced: { hastyTurns: Infinity } } }, { server })),
    sockets
  }
}

await t.test('a frame that cannot be handled ends its connection, and nothing else', async t => {
  const { runtime, log } = start(t, { work: obedient })
  const server = createServer()
  await listening(t, server)
  const heard = (_: string, direction: string, frame: string) => {
    if (direction === 'in' && frame.includes('broken')) throw new Error('an error of the server')
  }
  const { url, close } = attach(
    runtime,
    server,
    '/',
    { webSocket: true, http: false, dialects: [] },
    { onFrame: heard }
  )
  t.teardown(close)
  const [one, other] = [await RawSocket.open(t, url), await JsonSocket.open(t, url)]
  one.send('{"jsonrpc":"2.0","id":"broken","method":"ping"}')
  t.equal(await one.frame(), undefined)
  t.match(log, [{ message: 'a frame could not be handled, so its connection is closed' }])
  t.match(await other.call('GetTask', { id: 'none' }), { error: { code: -32001 } })
})

await t.test('a slow client uses little memory, blocks nothing, and receives every event once in order', async t => {
  const tap = deferred()
  const { url, runtime, sockets } = await observed(t, { work: flood(480, tap.promise) })
  const task = await open(runtime)
  await reaches(runtime, task.id, 'working')
  const raw = await RawSocket.open(t, url)
  const other = await JsonSocket.open(t, url)
  raw.send(JSON.stringify({ jsonrpc: '2.0', id: 'slow', method: 'SubscribeToTask', params: { id: task.id } }))
  raw.send(JSON.stringify({ jsonrpc: '2.0', id: 'too', method: 'SubscribeToTask', params: { id: task.id } }))
  for (let count = 0; count < 2; count += 1) t.match(await raw.json(), { result: { task: { id: task.id } } })
  const fast = other.request('SubscribeToTask', { id: task.id })
  t.match(await other.next(fast), { result: { task: { id: task.id } } })
  tap.resolve()
  let most = 0
  let count = 0
  for (let reply = await other.next(fast); reply.result !== undefined; reply = await other.next(fast)) {
    most = Math.max(most, sockets[0]?.writableLength ?? 0)
    count += 1
  }
  t.equal(count, 481)
  t.ok(most > MEBIBYTE, `the connection was full: ${most}`)
  t.ok(most < 2 * MEBIBYTE, `and held no more than its share: ${most}`)
  raw.send(JSON.stringify({ jsonrpc: '2.0', id: 'late', method: 'GetTask', params: { id: 'nobody' } }))
  await roundTrip(other)
  const replies = new Map<unknown, Reply[]>([
    ['slow', []],
    ['too', []],
    ['late', []]
  ])
  while (
    [...replies.values()].some(
      replies => replies.at(-1)?.streamEnd === undefined && replies.at(-1)?.error === undefined
    )
  ) {
    const reply: Reply = await raw.json()
    replies.get(reply.id)?.push(reply)
  }
  for (const id of ['slow', 'too']) {
    const numbers = told(replies.get(id) ?? []).map(line => line.slice(0, 20).split(':x')[0])
    t.strictSame(numbers, [...Array.from({ length: 480 }, (_, i) => `artifact: ${i + 1}`), 'completed'])
  }
  t.match(replies.get('late'), [{ error: { code: -32001 } }], 'requests sent meanwhile are answered too')
})

await t.test('a stream that waits for its reader ends when the client disconnects', async t => {
  const tap = deferred()
  const { url, runtime, sockets } = await observed(t, { work: flood(240, tap.promise) })
  const task = await open(runtime)
  await reaches(runtime, task.id, 'working')
  const raw = await RawSocket.open(t, url)
  raw.send(JSON.stringify({ jsonrpc: '2.0', id: 'slow', method: 'SubscribeToTask', params: { id: task.id } }))
  t.match(await raw.json(), { result: { task: { id: task.id } } })
  const [server] = sockets
  if (!server) throw new Error('A connection was expected')
  tap.resolve()
  await stuck(server)
  const gone = new Promise(resolve => server.on('close', resolve))
  raw.socket.resetAndDestroy()
  await gone
  await reaches(runtime, task.id, 'completed')
})

/** Listens on a free port until the test ends. */
async function listening(t: Test, server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
}

await t.test('serve takes either a port of its own, with what belongs to it, or the server of an app', async t => {
  const { runtime } = start(t, { work: echo })
  const ofOwnPort = { port: 0, host: '127.0.0.1', http: true, inspector: inspect() }
  for (const [name, value] of Object.entries(ofOwnPort))
    await t.rejects(
      serveRuntime(runtime, { [name]: value, server: createServer() }),
      new TypeError(`Give serve either ${name}, or the server of your app, which has its own.`)
    )
})

await t.test('without a port a server listens on the first free one from 4242 to 4261', async t => {
  const { runtime } = start(t, { work: echo })
  const first = await serveRuntime(runtime, { http: false })
  t.teardown(() => first.close())
  t.ok(Number(new URL(first.url).port) >= 4242)
  // Other tests may use the ports of 127.0.0.1. Only Linux and Windows have the other loopback addresses.
  if (process.platform === 'darwin') return
  const host = '127.0.77.1'
  for (let port = 4242; port <= 4261; port += 1) {
    const served = await serveRuntime(runtime, { host, http: false })
    t.teardown(() => served.close())
    t.equal(served.url, `ws://${host}:${port}/`)
  }
  await t.rejects(serveRuntime(runtime, { host, http: false }), { code: 'EADDRINUSE' })
  await t.rejects(serveRuntime(runtime, { host, port: 4242, http: false }), { code: 'EADDRINUSE' })
})

await t.test('only loopback addresses are bound without authenticate', async t => {
  const { runtime } = start(t, { work: echo })
  for (const host of ['0.0.0.0', '::', 'agent.example', '192.0.2.1', '128.0.0.1', '127.evil.example', '']) {
    await t.rejects(
      serveRuntime(runtime, { port: 0, host, http: false }),
      { name: 'TypeError', message: /Without authenticate anyone could use the agent/ },
      host
    )
  }
  for (const host of ['localhost', '127.0.0.1']) {
    const served = await serveRuntime(runtime, { port: 0, host, http: false })
    t.teardown(() => served.close())
  }
})

await t.test('any address is bound with authenticate, and loopback still requires its names', async t => {
  const { url } = await serve(
    t,
    { work: obedient },
    { authenticate: byName, publicUrl: 'wss://agent.example/' },
    { port: 0, host: '0.0.0.0' }
  )
  t.match(url, /^ws:\/\/0\.0\.0\.0:\d+\/$/)
  const local = url.replace('0.0.0.0', '127.0.0.1')
  t.equal((await answered(t, local, ['Authorization: Bearer anna'])).status, 101)
  const raw = await RawSocket.to(t, local)
  raw.write(handshake(local, { host: 'evil.example', more: ['Authorization: Bearer anna'] }))
  t.equal((await raw.answer()).status, 421)
})

await t.test('the url has the real port and the path, and an IPv6 address in brackets', async t => {
  const { url } = await serve(t, { work: obedient }, {}, { port: 0, path: '/a2a' })
  t.match(url, /^ws:\/\/127\.0\.0\.1:[1-9]\d*\/a2a$/)
  await roundTrip(await JsonSocket.open(t, url))
  const raw = await RawSocket.to(t, url)
  raw.write(handshake(url, { path: '/' }))
  t.equal((await raw.answer()).status, 404)
  const six = await serve(t, { work: obedient }, {}, { port: 0, host: '::1' })
  t.match(six.url, /^ws:\/\/\[::1\]:\d+\/$/)
  await roundTrip(await JsonSocket.open(t, six.url))
})

await t.test('a port in use rejects, and leaves nothing open', async t => {
  const { url, runtime, clock } = await serve(t, { work: obedient })
  await t.rejects(serveRuntime(runtime, { port: Number(new URL(url).port), http: false }), { code: 'EADDRINUSE' })
  t.equal(clock.pending, 1, 'the heartbeat of the first server alone')
})

await t.test('a server that does not listen yet is refused with an explanation', async t => {
  const { runtime, clock } = start(t, { work: echo })
  const server = createServer()
  await t.rejects(serveRuntime(runtime, { server }), { name: 'TypeError', message: /listen/ })
  t.equal(server.listenerCount('upgrade'), 0)
  t.equal(clock.pending, 0)
})

await t.test("other requests on an app's server are left to the app", async t => {
  const server = createServer((_, response) => response.end('the app'))
  const address = await listening(t, server)
  const theirs: string[] = []
  const mine = (request: { url?: string | undefined }, socket: NodeJS.WritableStream) => {
    if (request.url === '/agent') return
    theirs.push(request.url ?? '')
    socket.end('HTTP/1.1 418 Theirs\r\n\r\n')
  }
  server.on('upgrade', mine)
  const { url, close } = await serve(t, { work: obedient }, {}, { server, path: '/agent' })
  t.equal(url, `${address}/agent`)
  const client = await JsonSocket.open(t, url)
  await roundTrip(client)
  const raw = await RawSocket.to(t, url)
  raw.write(handshake(url, { path: '/chat' }))
  t.equal((await raw.answer()).status, 418)
  t.strictSame(theirs, ['/chat'])
  server.off('upgrade', mine)
  t.equal((await answered(t, `${address}/chat`)).status, 404, 'an agent by itself answers other paths')
  t.equal(await (await fetch(address.replace('ws', 'http'))).text(), 'the app')
  const evil = await answered(t, url, ['Origin: https://evil.example'])
  t.equal(evil.status, 403)

  await close()
  t.match(await client.closed(), GOING_DOWN)
  t.equal(server.listenerCount('upgrade'), 0)
  t.ok(server.listening, 'the app continues')
})

await t.test('close informs the clients, frees the port, may be called twice, and leaves the tasks', async t => {
  const { url, close, runtime } = await serve(t, { work: painter() })
  const clients = [await JsonSocket.open(t, url), await JsonSocket.open(t, url)]
  const task = await open(runtime, 'a boat')
  for (const client of clients) await client.next(client.request('SubscribeToTask', { id: task.id }))
  const closed = close()
  t.equal(close(), closed)
  for (const client of clients) t.strictSame(await client.closed(), GOING_DOWN)
  await closed
  await close()
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  t.match(await once(socket, 'error'), [{ code: 'ECONNREFUSED' }])
  await reaches(runtime, task.id, 'input-required')
  t.match(await runtime.sendMessage(say('red', { taskId: task.id })), {
    task: { status: { state: 'TASK_STATE_COMPLETED' } }
  })
  const again = await serveRuntime(runtime, { port: Number(new URL(url).port), http: false })
  t.teardown(() => again.close())
  await roundTrip(await JsonSocket.open(t, again.url))
})

await t.test('a handshake in progress gets no connection when the server closes', async t => {
  const answer = deferred<Principal>()
  const asked = deferred()
  const server = createServer()
  await listening(t, server)
  const { url, close } = await serve(
    t,
    { work: obedient },
    { authenticate: () => (asked.resolve(), answer.promise) },
    { server }
  )
  const waiting = answered(t, url)
  await asked.promise
  await close()
  answer.resolve({ id: 'anna' })
  t.equal((await waiting).status, 503)
})

await t.test('a client that disconnects during its authentication leaves nothing behind', async t => {
  const answer = deferred<Principal>()
  const asked = deferred()
  const { url } = await serve(t, { work: obedient }, { authenticate: () => (asked.resolve(), answer.promise) })
  const raw = await RawSocket.to(t, url)
  raw.write(handshake(url))
  await asked.promise
  raw.socket.resetAndDestroy()
  answer.resolve({ id: 'anna' })
  await roundTrip(await JsonSocket.open(t, url))
})

await t.test('closes a connection that reads nothing for 30 seconds with 4413; its tasks continue', async t => {
  const tap = deferred()
  const { url, runtime, sockets, clock } = await observed(t, { work: flood(800, tap.promise) })
  const task = await open(runtime)
  await reaches(runtime, task.id, 'working')
  const raw = await RawSocket.open(t, url)
  raw.send(JSON.stringify({ jsonrpc: '2.0', id: 'slow', method: 'SubscribeToTask', params: { id: task.id } }))
  t.match(await raw.json(), { result: { task: { id: task.id } } })
  const [server] = sockets
  if (!server) throw new Error('A connection was expected')
  tap.resolve()
  await stuck(server)
  await reaches(runtime, task.id, 'completed')
  clock.increment(29_999)
  t.notOk(server.destroyed)
  for (let round = 0; round < 3; round += 1) {
    for (let count = 0; count < 150; count += 1) await raw.frame()
    await stuck(server)
    clock.increment(29_999)
    t.notOk(server.destroyed, 'a client that reads at times stays connected, though its pongs are delayed')
  }
  const waiting = server.writableLength
  clock.increment(1)
  t.ok(server.writableLength > waiting, 'the close frame waits as well')
  clock.increment(4_999)
  t.notOk(server.destroyed)
  clock.increment(1)
  t.ok(server.destroyed)
  t.match(await runtime.getTask({ id: task.id, historyLength: 0 }), { status: { state: 'TASK_STATE_COMPLETED' } })
})

await t.test('calls and events wait for a client that stops reading, and arrive later', async t => {
  const large = 'x'.repeat(MEBIBYTE)
  const tell = deferred()
  const { url, runtime, sockets } = await observed(t, {
    work: async function* () {
      yield artifact(large)
      await tell.promise
      yield artifact(large)
    }
  })
  const task = await open(runtime)
  await until(async () => (await runtime.getTask({ id: task.id })).artifacts)
  const raw = await RawSocket.open(t, url)
  const requests = Array.from({ length: 50 }, (_, i) => [
    { jsonrpc: '2.0', id: `get ${i}`, method: 'GetTask', params: { id: task.id } },
    { jsonrpc: '2.0', id: `follow ${i}`, method: 'SubscribeToTask', params: { id: task.id } }
  ])
  raw.write(Buffer.concat(requests.flat().map(request => frameOf({ payload: JSON.stringify(request) }))))
  const [server] = sockets
  if (!server) throw new Error('A connection was expected')
  await stuck(server)
  t.ok(server.writableLength < 4 * MEBIBYTE, `${server.writableLength} bytes wait`)
  tell.resolve()
  await reaches(runtime, task.id, 'completed')
  await stuck(server)
  t.ok(server.writableLength < 4 * MEBIBYTE, `${server.writableLength} bytes wait`)
  const heard = new Map<string, number>()
  for (let ends = 0; ends < 50;) {
    const { id, result, streamEnd } = (await raw.json()) as { id: string; result?: object; streamEnd?: boolean }
    if (streamEnd) ends += 1
    else if (result) heard.set(id, (heard.get(id) ?? 0) + 1)
  }
  t.equal(heard.size, 100)
  for (const [id, count] of heard) t.equal(count, id.startsWith('get') ? 1 : 3, id)
})

/** Waits until a connection is full and nothing goes out any more. */
function stuck(server: Socket): Promise<void> {
  return standsStill(
    () => server.writableLength > MEBIBYTE && server.bytesWritten - server.writableLength,
    'the connection to be full'
  )
}

await t.test('a connection stays open if it drains anything in 30 seconds', async t => {
  const clock = new TestClock()
  const closes: unknown[] = []
  const stream = Object.assign(new EventEmitter(), {
    writableLength: 0,
    write: () => (stream.writableLength = 2 * MEBIBYTE)
  })
  const socket = {
    readyState: 1,
    OPEN: 1,
    pause() {},
    resume() {},
    terminate() {},
    close: (code: number) => closes.push(code)
  }
  const outbox = new Outbox(socket as never, stream as never, new ReadPause(socket), clock)
  outbox.send('much')
  await new Promise<void>(afterRound)
  const drained = outbox.drained
  for (let round = 0; round < 3; round += 1) {
    stream.writableLength -= 1
    clock.increment(READER_STALL_MS)
  }
  t.strictSame(closes, [])
  clock.increment(READER_STALL_MS)
  t.strictSame(closes, [4413])
  stream.emit('close')
  await drained
  t.equal(clock.pending, 0)
})

await t.test('frames over the rate are refused, and close with 4429 in the third second running', async t => {
  const { url, clock, commits } = await serve(t, { work: obedient }, { limits: { advanced: { framesPerSecond: 3 } } })
  const client = await JsonSocket.open(t, url)
  const second = async (frames: number) => {
    clock.increment(1000)
    const ids = Array.from({ length: frames }, () => client.request('GetTask', { id: 'nobody' }))
    return Promise.all(ids.map(async id => (await client.next(id)).error?.code))
  }
  t.strictSame(await second(3), [-32001, -32001, -32001])
  t.strictSame(await second(5), [-32001, -32001, -32001, -31429, -31429])
  t.strictSame(await second(4), [-32001, -32001, -32001, -31429])
  t.strictSame(await second(3), [-32001, -32001, -32001], 'one good second')
  t.strictSame(await second(4), [-32001, -32001, -32001, -31429])
  clock.increment(1000)
  t.strictSame(await second(4), [-32001, -32001, -32001, -31429], 'a second without a frame')
  t.strictSame(await second(4), [-32001, -32001, -32001, -31429])
  clock.increment(1000)
  for (let count = 0; count < 4; count += 1) client.send('{"jsonrpc":"2.0","method":"cancelStream","params":{"id":1}}')
  t.match(await client.closed(), { code: 4429 })
  t.equal(commits(), 0)
})

await t.test('one connection over the limit gets 503, and another is accepted after a close', async t => {
  const { url } = await serve(t, { work: obedient }, { limits: { connections: 1 } })
  const client = await JsonSocket.open(t, url)
  const { status, headers } = await answered(t, url)
  t.equal(status, 503)
  t.match(headers, { 'retry-after': '1' })
  await roundTrip(client)
  client.socket.close()
  await client.closed()
  await until(async () => (await answered(t, url)).status === 101, 'room for one')
})

await t.test('a handshake that waits for authentication counts as a connection', async t => {
  const answer = deferred<Principal>()
  const asked = deferred()
  const { url } = await serve(
    t,
    { work: obedient },
    { limits: { connections: 1 }, authenticate: () => (asked.resolve(), answer.promise) }
  )
  const first = answered(t, url)
  await asked.promise
  const second = answered(t, url)
  t.equal((await second).status, 503)
  answer.resolve({ id: 'anna' })
  t.equal((await first).status, 101)
})

await t.test('ping is answered with an empty object at once, whatever its version', async t => {
  const { url } = await serve(t, { work: obedient })
  const client = await JsonSocket.open(t, url, { headers: {} })
  client.send('{"jsonrpc":"2.0","id":7,"method":"ping"}')
  t.strictSame(await client.next(), { jsonrpc: '2.0', id: 7, result: {} })
  client.send(
    `{"jsonrpc":"2.0","id":7,"method":"ping","a2a-service-parameters":{"a2a-extensions":"${RELIABILITY_EXTENSION}"}}`
  )
  t.strictSame(await client.next(), {
    jsonrpc: '2.0',
    id: 7,
    result: {},
    'a2a-service-parameters': { 'a2a-extensions': RELIABILITY_EXTENSION }
  })
})

/** The service parameters of a request with the reliability extension. */
function terms(more: Record<string, string>): Record<string, unknown> {
  return { 'a2a-service-parameters': { 'a2a-extensions': RELIABILITY_EXTENSION, ...more } }
}

await t.test("the reliability extension's conditions are service parameters, and need the extension", async t => {
  const { url } = await serve(t, { work: obedient })
  const client = await JsonSocket.open(t, url)
  const task = taskOf(await client.call('SendMessage', say('ask')))
  const now = generationOf({
    task: (await client.call('GetTask', { id: task.id }, terms({}))).result as Task
  }) as number
  const resumed = client.request('SubscribeToTask', { id: task.id }, terms({ 'Taskchart-After-Generation': '1' }))
  for (let generation = 2; generation <= now; generation += 1)
    t.equal(generationOf(eventIn(await client.next(resumed))), generation)
  for (const bad of ['x', '-1', '1.5', '', '1e3', '9999999999999999']) {
    t.match(
      await client.call('SubscribeToTask', { id: task.id }, terms({ 'taskchart-after-generation': bad })),
      { error: { code: -32602 } },
      bad
    )
  }
  t.match(await client.call('CancelTask', { id: task.id }, terms({ 'taskchart-if-generation-match': '1' })), {
    error: {
      code: -32010,
      data: [{ metadata: { taskId: task.id, expectedGeneration: '1', currentGeneration: String(now) } }]
    }
  })
  t.match(await client.call('GetTask', { id: task.id }, terms({ 'taskchart-current-generation': '1' })), {
    result: { id: task.id }
  })
  const without = { 'a2a-service-parameters': { 'taskchart-if-generation-match': '1' } }
  t.match(await client.call('CancelTask', { id: task.id }, without), {
    result: { status: { state: 'TASK_STATE_CANCELED' } }
  })
})

/**
 * Makes connections that hang in all the ways that only time ends, and gives how each ended, in the order of the ends.
 */
async function slowClients(t: Test): Promise<string[]> {
  const ends: string[] = []
  const { url } = await serve(t, { work: obedient })
  const closing = await serve(t, { work: obedient })

  const dribbling = async () => {
    const raw = await RawSocket.to(t, url)
    raw.write(handshake(url).slice(0, 40))
    ends.push(`a handshake that does not end: ${(await raw.answer()).status}`)
  }
  const deaf = async () => {
    const raw = await RawSocket.open(t, url)
    raw.write(frameOf({ opcode: OPCODES.binary }))
    ends.push(`no answer to the close of a bad frame: ${await raw.closeCode()}`)
  }
  const stubborn = async () => {
    const raw = await RawSocket.open(t, closing.url)
    const closed = closing.close()
    const code = await raw.closeCode()
    await closed
    ends.push(`no answer to the close of the server: ${code}`)
  }
  await Promise.all([dribbling(), deaf(), stubborn()])
  return ends
}

await t.test('closes hanging clients: after 5 seconds in a close, after 10 in a handshake', async t => {
  const ends = await slow
  t.equal(ends.at(-1), 'a handshake that does not end: 408')
  t.strictSame(ends.slice(0, -1).toSorted(), [
    'no answer to the close of a bad frame: 1003',
    'no answer to the close of the server: 1012'
  ])
})

await t.test('a client may close with a code and reason of its own', async t => {
  const { url } = await serve(t, { work: obedient })
  const raw = await RawSocket.open(t, url)
  raw.write(closeFrame(4000, 'enough'))
  t.equal(await raw.closeCode(), 4000)
})
