import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocketServer } from 'ws'
import type { AgentClient } from '../../../../adapters/client/agent-client.ts'
import { fetchCard } from '../../../../adapters/client/card/discovery.ts'
import { connect, type ConnectOptions } from '../../../../adapters/client/connect.ts'
import { BackOff } from '../../../../adapters/client/retries/transport-state.ts'
import { nobodyAnswers } from '../../../../adapters/client/retries/lost-errors.ts'
import { PooledClient } from '../../../../adapters/delegation/pooled-client.ts'
import { AGENT_CARD_PATH, RELIABILITY_EXTENSION } from '../../../../machines/protocol/uris.ts'
import { gateway, type Fate, type Gateway } from '../../../fixtures/peers/gateway.ts'
import { keepResult } from '../../../fixtures/kills/guarantee-results.ts'
import {
  collect,
  deferred,
  open,
  refusal,
  rejection,
  say,
  taskIn,
  until
} from '../../../fixtures/runtime/runtime-helpers.ts'
import { body, cut, failure, httpAgent, result, stream, type Answer } from '../../../fixtures/peers/scripted-http.ts'
import { obedient, serve, type ServedAgent } from '../../../fixtures/servers/served-agent.ts'
import { TestClock } from '../../../fixtures/runtime/test-clock.ts'

interface Behind {
  readonly agent: ServedAgent
  readonly way: Gateway
  readonly client: AgentClient
}

/** A client that reaches its agent over WebSocket through a gateway, and waits for nothing before it tries again. */
async function behind(t: Test, options: ConnectOptions = {}): Promise<Behind> {
  const agent = await serve(t, { work: obedient })
  const way = await gateway(t, agent.url)
  const client = await connect(`ws://${way.host}/`, { random: () => 0, ...options })
  t.teardown(() => client.close())
  return { agent, way, client }
}

await t.test('a WebSocket client retries after every temporary response', async t => {
  const passing: readonly Fate[] = [
    { status: 502 },
    { status: 503 },
    { status: 504 },
    { status: 500 },
    { status: 520 },
    { status: 408 },
    { status: 429, headers: { 'retry-after': '0' } },
    {
      status: 503,
      headers: { 'retry-after': '0', 'content-type': 'application/json' },
      body: '{"error":"The server restarts. Retry later."}'
    },
    'reset',
    'pass'
  ]
  const { agent, way, client } = await behind(t)
  const task = await open(agent.runtime, 'ask')
  way.script(...(passing as [Fate, ...Fate[]]))
  const opened = new Promise<void>(resolve => client.on('open', resolve))
  way.cutAll()
  await opened
  t.equal(way.asked.length, 1 + passing.length)
  t.equal((await client.getTask({ id: task.id })).id, task.id)
  await keepResult({ trouble: 'gateway', times: passing.length - 1 })
})

await t.test('a WebSocket client stops at a permanent refusal, and reports it', async t => {
  const version = JSON.stringify({
    jsonrpc: '2.0',
    id: null,
    error: { code: -32009, message: 'This agent speaks A2A 2.0.' }
  })
  const cases = [
    [{ status: 401 }, { code: 'Unauthenticated', message: /requires credentials/ }],
    [{ status: 403 }, { code: 'Forbidden', message: /refuses access/ }],
    [
      { status: 404, body: '{"error":"The agent is at /."}' },
      { code: 'UnsupportedOperation', message: /refused the WebSocket handshake with HTTP 404/ }
    ],
    [{ status: 501 }, { code: 'UnsupportedOperation', message: /HTTP 501/ }],
    [
      { status: 400, body: version },
      { code: 'VersionNotSupported', message: 'This agent speaks A2A 2.0.' }
    ],
    [
      { status: 400, body: '[1]' },
      { code: 'UnsupportedOperation', message: /HTTP 400/ }
    ],
    [
      { status: 400, body: 'x'.repeat(100_000) },
      { code: 'UnsupportedOperation', message: /HTTP 400/ }
    ],
    [
      { status: 421, headers: { 'content-length': '100' }, body: 'cut off' },
      { code: 'UnsupportedOperation', message: /HTTP 421/ }
    ]
  ] as const
  for (const [fate, wanted] of cases) {
    const { way, client } = await behind(t)
    const closed = new Promise<void>(resolve => client.on('closed', resolve))
    way.script(fate)
    way.cutAll()
    await closed
    t.match(await refusal(client.getTask({ id: 'x' })), wanted)
    t.equal(way.asked.length, 2, `${fate.status} is asked once`)
  }
})

await t.test('a WebSocket client retries until its time limit, and then reports the last response', async t => {
  const clock = new TestClock()
  let waits = 0
  const { way, client } = await behind(t, { clock, giveUpAfterMs: 60_000, random: () => ((waits += 1), 0.5) })
  const began = clock.now()
  way.script({ status: 502 })
  way.cutAll()
  let waited = 0
  await until(() => {
    if (waits > waited) clock.increment(5000 * (waits - waited))
    waited = waits
    return client.state === 'closed'
  })
  t.ok(clock.now() - began >= 60_000, `after ${clock.now() - began} ms`)
  t.match(await refusal(client.getTask({ id: 'x' })), {
    code: 'Overloaded',
    message: `The agent at ws://${way.host}/ cannot be reached (HTTP 502).`
  })
})

await t.test('a WebSocket client waits as long as Retry-After says, plus a random time', async t => {
  const clock = new TestClock()
  let waits = 0
  const { way, client } = await behind(t, { clock, random: () => (waits += 1) / waits })
  way.script({ status: 429, headers: { 'retry-after': '30' } }, 'pass')
  way.cutAll()
  await until(() => waits === 1)
  clock.increment(250)
  await until(() => waits === 2)
  const opened = new Promise<void>(resolve => client.on('open', resolve))
  let tries = 0
  client.on('connecting', () => (tries += 1))
  clock.increment(30_499)
  t.equal(tries, 0)
  clock.increment(1)
  t.equal(tries, 1)
  await opened
})

await t.test('a requested wait ends at the time limit, with one last attempt', t => {
  const clock = new TestClock()
  const waits = new BackOff({ clock, random: () => 0, giveUpAfterMs: 1000 })
  t.equal(waits.next(3_600_000), 1000)
  clock.increment(1000)
  t.equal(waits.next(), undefined)
  t.end()
})

await t.test('the first connection is tried once, and fails as not ready at a temporary response', async t => {
  const agent = await serve(t, { work: obedient })
  const way = await gateway(t, agent.url)
  const date = 'Tue, 03 Feb 2026 10:00:00 GMT'
  way.script({ status: 503, headers: { date, 'retry-after': 'Tue, 03 Feb 2026 10:00:07 GMT' } })
  for (const url of [`ws://${way.host}/`, `http://${way.host}/`]) {
    t.match(await rejection(connect(url)), {
      code: 'Overloaded',
      message: /is not available at present \(HTTP 503\)/,
      retryAfterMs: 7000
    })
  }
  way.script({ status: 429 })
  for (const url of [`ws://${way.host}/`, `http://${way.host}/`])
    t.match(await rejection(connect(url)), { code: 'RateLimited', retryAfterMs: undefined })
  way.script({ status: 500 })
  t.match(await refusal(connect(`http://${way.host}/`)), { code: 'Overloaded', message: /is in trouble \(HTTP 500\)/ })
  t.strictSame(way.asked, [
    'UPGRADE /',
    `GET ${AGENT_CARD_PATH}`,
    'UPGRADE /',
    `GET ${AGENT_CARD_PATH}`,
    `GET ${AGENT_CARD_PATH}`
  ])
})

await t.test('a delegation that resumes retries a card after a temporary error only', async t => {
  const agent = await serve(t, { work: obedient })
  const way = await gateway(t, agent.url)
  const shared = new PooledClient(`http://${way.host}/`, { random: () => 0, bindings: ['JSONRPC', 'WEBSOCKET'] })
  const how = { isPatient: true, signal: new AbortController().signal }
  way.script(
    { status: 502 },
    { status: 503 },
    { status: 504 },
    { status: 429, headers: { 'retry-after': '0' } },
    'reset',
    'pass'
  )
  t.equal(await shared.use(async client => client.binding, how), 'WEBSOCKET')
  const tries = way.asked.length
  for (const [status, code] of [
    [401, 'Unauthenticated'],
    [403, 'Forbidden'],
    [404, 'UnsupportedOperation']
  ] as const) {
    way.script({ status })
    t.match(await refusal(shared.use(async () => {}, how)), {
      code,
      message: new RegExp(`agent card at .*HTTP ${status}`)
    })
  }
  t.equal(way.asked.length, tries + 3)
  const older = await httpAgent(t, { version: '0.2' })
  t.match(await refusal(new PooledClient(older.url, {}).use(async () => {}, how)), {
    code: 'UnsupportedOperation',
    message: /speaks only A2A 0\.2/
  })
})

await t.test('an untrusted certificate is named, wherever Node reports it', async t => {
  const fault = Object.assign(new Error('self-signed certificate'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  for (const cause of [fault, new TypeError('fetch failed', { cause: fault })]) {
    t.match(nobodyAnswers('https://a.example/', cause), {
      code: 'Overloaded',
      message: 'The TLS certificate at https://a.example/ is not trusted: self-signed certificate.'
    })
  }
  for (const cause of [
    undefined,
    'x',
    new Error('no'),
    Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
  ]) {
    t.match(nobodyAnswers('https://a.example/', cause), {
      message: 'Nobody answers at https://a.example/. Is the agent running?'
    })
  }
  t.match(await rejection(fetchCard('http://127.0.0.1:1/')), { message: /Nobody answers/ })
})

await t.test(
  'an address with the wrong scheme is answered with the right one, for cards and for WebSocket, with and without TLS',
  async t => {
    const listening = async (server: Server) => {
      t.teardown(() => void server.close())
      await once(server.listen(0, '127.0.0.1'), 'listening')
      return `127.0.0.1:${(server.address() as AddressInfo).port}`
    }
    // Without a certificate, a server closes a connection with plain text as one with a certificate does.
    const [plain, secure] = [await listening(createHttpServer()), await listening(createHttpsServer())]
    for (const scheme of ['http', 'ws']) {
      const tls = await refusal(reach(`${scheme}s://${plain}/`, t))
      t.match(tls, {
        code: 'Overloaded',
        message: new RegExp(
          `^The port of ${scheme}s://${plain}/\\S* speaks no TLS\\. Write ${scheme}://${plain}/ instead\\.$`
        )
      })
      const text = await refusal(reach(`${scheme}://${secure}/`, t))
      t.match(text, {
        code: 'Overloaded',
        message: new RegExp(
          `^Nobody answers at ${scheme}://${secure}/\\S*\\. Is the agent running\\? If the port speaks TLS, write ${scheme}s://${secure}/ instead\\.$`
        )
      })
    }
    t.match(nobodyAnswers('https://a.example/', Object.assign(new Error('closed'), { code: 'ECONNRESET' })), {
      message: 'Nobody answers at https://a.example/. Is the agent running?'
    })
  }
)

/** Reads the card at an address, or opens a WebSocket. */
async function reach(url: string, t: Test): Promise<void> {
  if (url.startsWith('http')) return void (await fetchCard(url))
  const client = await connect(url, { giveUpAfterMs: 0 })
  t.teardown(() => client.close())
}

const JSON_TYPE = { 'content-type': 'application/json' }
const NOW = { 'retry-after': '0' }
const drained = body('{"error":"The server restarts. Retry later."}', { ...JSON_TYPE, ...NOW }, 503)
const working = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } }
const unknown = /was interrupted before its answer\. It is unknown whether the agent received it/

/** Answers over REST in place of JSON-RPC. */
const restResult = (value: unknown): Answer => body(JSON.stringify(value), JSON_TYPE)

await t.test('a body that is not a JSON-RPC error is classified by its status', async t => {
  const agent = await httpAgent(t)
  const client = await connect(agent.url, { giveUpAfterMs: 0 })
  for (const text of [
    '{"error":"The server restarts. Retry later."}',
    '{"error":{"code":503,"message":"no","status":"UNAVAILABLE"}}',
    '{"jsonrpc":"2.0","id":null,"error":"later"}',
    '{"jsonrpc":"2.0","error":{"code":"-32603"}}',
    '{"error":null}',
    'null',
    '"error"',
    '{'
  ]) {
    agent.script(body(text, { ...JSON_TYPE, ...NOW }, 503))
    t.match(
      await rejection(client.getTask({ id: 't' })),
      { code: 'Overloaded', message: /is not available at present \(HTTP 503\)/, retryAfterMs: 0 },
      text
    )
    agent.script(body(text, JSON_TYPE, 401))
    t.match(await rejection(client.getTask({ id: 't' })), { code: 'Unauthenticated' }, text)
  }
  agent.script(failure({ code: -32603, message: 'Broken.' }, 503))
  t.match(await rejection(client.getTask({ id: 't' })), { code: 'InternalError', message: 'Broken.' })
})

for (const [binding, answer, refused] of [
  ['JSONRPC', result, (code: number, status: number) => failure({ code, message: 'Told.' }, status)],
  [
    'HTTP+JSON',
    restResult,
    (_: number, status: number) =>
      body(
        JSON.stringify({
          error: { code: status, status: status === 429 ? 'RESOURCE_EXHAUSTED' : 'UNAVAILABLE', message: 'Told.' }
        }),
        JSON_TYPE,
        status
      )
  ]
] as const) {
  await t.test(`over ${binding}`, async t => {
    const start = async (isReliable: boolean, options: ConnectOptions = {}) => {
      const agent = await httpAgent(t, { binding, isReliable })
      const client = await connect(agent.url, { random: () => 0, ...options })
      t.teardown(() => client.close())
      return { agent, client }
    }
    const gone = body('', {}, 502)

    await t.test('a call is retried over a stopping server and gateways, including the first call', async t => {
      const { agent, client } = await start(false)
      agent.script(
        drained,
        body('<html>', { 'content-type': 'text/html' }, 502),
        gone,
        body('', {}, 504),
        body('', NOW, 429),
        body('{"error":{"message":"no"}}', JSON_TYPE, 502),
        refused(-31503, 503),
        answer(working)
      )
      t.match(await client.getTask({ id: 't' }), { id: 't' })
      t.equal(agent.asked.length, 8)
      agent.script(refused(-31429, 429))
      t.match(
        await refusal(client.getTask({ id: 't' })),
        { code: 'RateLimited', message: 'Told.' },
        'a refusal by the agent is not retried'
      )
      agent.script(body('', {}, 429))
      t.match(await refusal(client.getTask({ id: 't' })), { code: 'RateLimited' })
    })

    await t.test('a message that was not processed is resent; otherwise only if the agent deduplicates', async t => {
      const { agent, client } = await start(false)
      const message = say('x')
      agent.script(drained, body('', NOW, 429), answer({ task: working }))
      t.match(await client.sendMessage(message), { task: { id: 't' } })
      t.equal(agent.asked.length, 3)
      for (const lost of [gone, cut, body('', {}, 503)]) {
        agent.script(lost)
        t.match(await refusal(client.sendMessage(say('x'))), {
          code: 'Overloaded',
          message: /It is unknown whether the agent received it/
        })
      }
      t.equal(agent.asked.length, 6)
      const sure = await start(true)
      sure.agent.script(cut, drained, gone, answer({ task: working }))
      t.match(await sure.client.sendMessage(message), { task: { id: 't' } })
      t.strictSame(
        sure.agent.asked.map(asked => JSON.stringify(asked).includes(message.message.messageId)),
        Array.from({ length: 4 }, () => true)
      )
    })

    await t.test('a message that may have been processed is never reported as failed', async t => {
      const { agent, client } = await start(true)
      for (const [status, code] of [
        [401, 'Unauthenticated'],
        [403, 'Forbidden'],
        [500, 'InvalidAgentResponse']
      ] as const) {
        agent.script(cut, body('', {}, status))
        const error = await rejection(client.sendMessage(say('x')))
        t.match(error, { code, message: unknown, cause: { code } })
        t.match(error, { message: new RegExp(`HTTP ${status}`) })
      }
      agent.script(cut, body('', {}, 401))
      t.match(await refusal(collect(client.sendStreamingMessage(say('x')))), {
        code: 'Unauthenticated',
        message: unknown
      })
      agent.script(cut, body('', {}, 401))
      t.notMatch((await refusal(client.getTask({ id: 't' }))).message, unknown, 'a read changes nothing')
      agent.script(drained, body('', {}, 401))
      t.notMatch(
        (await refusal(client.sendMessage(say('x')))).message,
        unknown,
        'a stopping server has not processed it'
      )
      for (const [giveUpAfterMs, last, waitsMs, retryAfterMs] of [
        [1, cut, [125], undefined],
        [5000, body('', { 'retry-after': '7' }, 503), [125, 6000], 7000]
      ] as const) {
        const clock = new TestClock()
        const late = await start(true, { clock, giveUpAfterMs, random: () => 0.5 })
        late.agent.script(cut, last)
        const outcome = rejection(late.client.sendMessage(say('x')))
        for (const [tries, waitMs] of waitsMs.entries()) {
          await until(() => late.agent.asked.length === tries + 1 && clock.pending === 1)
          clock.increment(waitMs)
        }
        t.match(await outcome, { code: 'Overloaded', message: unknown, retryAfterMs })
      }
    })

    await t.test("the agent's own answer to a message is final", async t => {
      const { agent, client } = await start(true)
      agent.script(
        cut,
        binding === 'JSONRPC'
          ? failure({ code: -32001, message: 'Gone.' })
          : body(JSON.stringify({ error: { status: 'NOT_FOUND', message: 'Gone.' } }), JSON_TYPE, 404)
      )
      t.match(await rejection(client.sendMessage(say('x'))), { code: 'TaskNotFound', message: 'Gone.' })
    })
  })
}

await t.test('a stream resumes over a stopping server', async t => {
  const agent = await httpAgent(t, { isReliable: true })
  const client = await connect(agent.url, { random: () => 0 })
  t.teardown(() => client.close())
  agent.script(cut, drained, stream([{ task: { ...working, status: { state: 'TASK_STATE_COMPLETED' } } }]))
  t.equal((await collect(client.sendStreamingMessage(say('x')))).length, 1)
})

/** An agent over WebSocket that does with one message after the other what the test says. The last fate stays. */
async function scriptedSocket(t: Test, ...fates: ('cut' | 'busy' | 'gone' | 'answer' | 'hold')[]) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => 'a2a.v1' })
  await once(server, 'listening')
  const sent: string[] = []
  const parameters = { 'a2a-service-parameters': { 'a2a-extensions': RELIABILITY_EXTENSION } }
  const answers = {
    busy: { error: { code: -31503, message: 'Starting.' } },
    gone: { error: { code: -32001, message: 'Gone.' } },
    answer: { result: { task: working } }
  }
  server.on('connection', socket => {
    socket.on('message', (data: Buffer) => {
      const { id, method, params } = JSON.parse(data.toString())
      const tell = (what: object) => socket.send(JSON.stringify({ jsonrpc: '2.0', id, ...what }))
      if (method === 'ping') return tell({ result: {}, ...parameters })
      sent.push(String(params.message.messageId))
      const fate = fates.length > 1 ? fates.shift() : fates[0]
      if (fate === 'cut') return socket.terminate()
      return fate === undefined || fate === 'hold' ? undefined : tell(answers[fate])
    })
  })
  const cutAll = () => {
    for (const socket of server.clients) socket.terminate()
  }
  t.teardown(() => {
    cutAll()
    server.close()
  })
  return { url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`, sent, cutAll }
}

await t.test('a message whose WebSocket is lost', async t => {
  await t.test('is processed once, and receives its answer over lost connections and gateway errors', async t => {
    const gate = deferred()
    let runs = 0
    const agent = await serve(t, { work: async () => ((runs += 1), await gate.promise, {}) })
    const way = await gateway(t, agent.url)
    const client = await connect(`ws://${way.host}/`, { random: () => 0 })
    t.teardown(() => client.close())
    const answer = client.sendMessage(say('x'))
    await until(() => runs === 1)
    way.script({ status: 503, headers: NOW }, { status: 502 }, 'pass')
    const opened = new Promise<void>(resolve => client.on('open', resolve))
    way.cutAll()
    await opened
    gate.resolve()
    t.equal(taskIn(await answer).status.state, 'TASK_STATE_COMPLETED')
    t.equal(runs, 1)
  })

  await t.test('is never reported as failed if the client is refused afterwards', async t => {
    const agent = await serve(t, { work: () => new Promise(() => {}) })
    const way = await gateway(t, agent.url)
    const client = await connect(`ws://${way.host}/`, { random: () => 0 })
    const sent = refusal(client.sendMessage(say('x')))
    const read = refusal(client.getTask({ id: 'x' }, { currentGeneration: 1 }))
    t.equal((await read).code, 'TaskNotFound')
    way.script({ status: 401 })
    way.cutAll()
    t.match(await sent, { code: 'Unauthenticated', message: unknown })
  })

  await t.test('is resent while the agent is not ready', async t => {
    const agent = await scriptedSocket(t, 'cut', 'busy', 'busy', 'answer')
    const client = await connect(agent.url, { random: () => 0 })
    t.teardown(() => client.close())
    t.match(await client.sendMessage(say('x')), { task: { id: 't' } })
    t.equal(agent.sent.length, 4)
    t.equal(new Set(agent.sent).size, 1)
  })

  await t.test("fails at once with a final error, or with the agent's on a live connection", async t => {
    const agent = await scriptedSocket(t, 'busy', 'cut', 'gone')
    const client = await connect(agent.url, { random: () => 0 })
    t.teardown(() => client.close())
    t.match(await refusal(client.sendMessage(say('x'))), { code: 'Overloaded', message: /^Starting\.$/ })
    t.match(await refusal(client.sendMessage(say('x'))), { code: 'TaskNotFound', message: /^Gone\.$/ })
  })

  await t.test('fails at the time limit, without a claim that it was not processed', async t => {
    const clock = new TestClock()
    const agent = await scriptedSocket(t, 'cut', 'busy')
    const client = await connect(agent.url, { clock, random: () => 1, giveUpAfterMs: 1000 })
    t.teardown(() => client.close())
    const outcome = refusal(client.sendMessage(say('x')))
    await until(() => client.state === 'lost')
    clock.increment(250)
    await until(() => agent.sent.length === 2 && clock.pending === 2)
    clock.increment(1000)
    t.match(await outcome, { code: 'Overloaded', message: unknown })
    t.equal(agent.sent.length, 3)
  })

  await t.test('waits for the next connection if that is lost too, and stops at its signal', async t => {
    const clock = new TestClock()
    const agent = await scriptedSocket(t, 'cut', 'busy', 'answer')
    const client = await connect(agent.url, { clock, random: () => 1 })
    t.teardown(() => client.close())
    const answer = client.sendMessage(say('x'))
    await until(() => client.state === 'lost')
    clock.increment(250)
    await until(() => agent.sent.length === 2 && clock.pending === 2)
    agent.cutAll()
    await until(() => client.state === 'lost')
    clock.increment(250)
    t.match(await answer, { task: { id: 't' } })
    t.equal(agent.sent.length, 3)
    t.equal(clock.pending, 1)
    const other = await scriptedSocket(t, 'cut', 'busy')
    const leaving = await connect(other.url, { clock, random: () => 1 })
    const stop = new AbortController()
    const left = rejection(leaving.sendMessage(say('x'), { signal: stop.signal }))
    await until(() => leaving.state === 'lost')
    clock.increment(250)
    await until(() => other.sent.length === 2 && clock.pending === 3)
    const enough = new Error('enough')
    stop.abort(enough)
    t.equal(await left, enough)
    t.equal(clock.pending, 2)
    await leaving.close()
  })
})
