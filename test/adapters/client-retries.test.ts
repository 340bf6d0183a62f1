import t, { type Test } from 'tap'
import { connect, type AgentClient, type ConnectOptions } from '../../adapters/client/connect.ts'
import { BackOff } from '../../adapters/client/back-off.ts'
import { fetchCard } from '../../adapters/client/discovery.ts'
import { nobodyAnswers } from '../../adapters/client/lost-errors.ts'
import { SharedAgent } from '../../adapters/delegation/shared-agent.ts'
import { AGENT_CARD_PATH } from '../../machines/protocol/uris.ts'
import { gateway, type Fate, type Gateway } from '../fixtures/gateway.ts'
import { open, refusal, rejection, until } from '../fixtures/runtime-helpers.ts'
import { httpAgent } from '../fixtures/scripted-http.ts'
import { obedient, serve, type ServedAgent } from '../fixtures/served-agent.ts'
import { TestClock } from '../fixtures/test-clock.ts'

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

await t.test('a WebSocket client that connects again goes on after every answer that may pass', async t => {
  const passing: readonly Fate[] = [
    { status: 502 }, { status: 503 }, { status: 504 }, { status: 500 }, { status: 520 }, { status: 408 }, { status: 429, headers: { 'retry-after': '0' } },
    { status: 503, headers: { 'retry-after': '0', 'content-type': 'application/json' }, body: '{"error":"The server restarts. Try again later."}' },
    'reset', 'pass'
  ]
  const { agent, way, client } = await behind(t)
  const task = await open(agent.runtime, 'ask')
  way.script(...passing as [Fate, ...Fate[]])
  const opened = new Promise<void>(resolve => client.on('open', resolve))
  way.cutAll()
  await opened
  t.equal(way.asked.length, 1 + passing.length)
  t.equal((await client.getTask({ id: task.id })).id, task.id)
})

await t.test('a WebSocket client that connects again ends at once at an answer that cannot pass, and says what it was', async t => {
  const version = JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32009, message: 'This agent speaks A2A 2.0.' } })
  const cases = [
    [{ status: 401 }, { code: 'Unauthenticated', message: /wants credentials/ }],
    [{ status: 403 }, { code: 'Forbidden', message: /does not let this client in/ }],
    [{ status: 404, body: '{"error":"The agent is at /."}' }, { code: 'UnsupportedOperation', message: /refused the WebSocket handshake with HTTP 404/ }],
    [{ status: 501 }, { code: 'UnsupportedOperation', message: /HTTP 501/ }],
    [{ status: 400, body: version }, { code: 'VersionNotSupported', message: 'This agent speaks A2A 2.0.' }],
    [{ status: 400, body: '[1]' }, { code: 'UnsupportedOperation', message: /HTTP 400/ }],
    [{ status: 400, body: 'x'.repeat(100_000) }, { code: 'UnsupportedOperation', message: /HTTP 400/ }],
    [{ status: 421, headers: { 'content-length': '100' }, body: 'cut off' }, { code: 'UnsupportedOperation', message: /HTTP 421/ }]
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

await t.test('a WebSocket client tries for the whole time that is promised, and then says what the last answer was', async t => {
  const clock = new TestClock()
  let waits = 0
  const { way, client } = await behind(t, { clock, giveUpAfterMs: 60_000, random: () => (waits += 1, 0.5) })
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
  t.match(await refusal(client.getTask({ id: 'x' })), { code: 'Overloaded', message: `The agent at ws://${way.host}/ cannot be reached (HTTP 502).` })
})

await t.test('a WebSocket client waits as long as Retry-After says, and a random while more', async t => {
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

await t.test('the wait that an agent asks for ends when time is up, and one more try is the last', t => {
  const clock = new TestClock()
  const waits = new BackOff({ clock, random: () => 0, giveUpAfterMs: 1000 })
  t.equal(waits.next(3_600_000), 1000)
  clock.increment(1000)
  t.equal(waits.next(), undefined)
  t.end()
})

await t.test('the first connection is tried once, and fails as not ready at what may pass', async t => {
  const agent = await serve(t, { work: obedient })
  const way = await gateway(t, agent.url)
  const date = 'Tue, 03 Feb 2026 10:00:00 GMT'
  way.script({ status: 503, headers: { date, 'retry-after': 'Tue, 03 Feb 2026 10:00:07 GMT' } })
  for (const url of [`ws://${way.host}/`, `http://${way.host}/`]) {
    t.match(await rejection(connect(url)), { code: 'Overloaded', message: /is not available at present \(HTTP 503\)/, retryAfterMs: 7000 })
  }
  way.script({ status: 429 })
  for (const url of [`ws://${way.host}/`, `http://${way.host}/`]) t.match(await rejection(connect(url)), { code: 'RateLimited', retryAfterMs: undefined })
  way.script({ status: 500 })
  t.match(await refusal(connect(`http://${way.host}/`)), { code: 'Overloaded', message: /is in trouble \(HTTP 500\)/ })
  t.strictSame(way.asked, ['UPGRADE /', `GET ${AGENT_CARD_PATH}`, 'UPGRADE /', `GET ${AGENT_CARD_PATH}`, `GET ${AGENT_CARD_PATH}`])
})

await t.test('a card that may be there later is asked for again by a delegation that goes on, and one that cannot be is not', async t => {
  const agent = await serve(t, { work: obedient })
  const way = await gateway(t, agent.url)
  const shared = new SharedAgent(`http://${way.host}/`, { random: () => 0, bindings: ['JSONRPC', 'WEBSOCKET'] })
  const how = { isPatient: true, signal: new AbortController().signal }
  way.script({ status: 502 }, { status: 503 }, { status: 504 }, { status: 429, headers: { 'retry-after': '0' } }, 'reset', 'pass')
  t.equal(await shared.use(async client => client.binding, how), 'WEBSOCKET')
  const tries = way.asked.length
  for (const status of [401, 403, 404]) {
    way.script({ status })
    t.match(await refusal(shared.use(async () => {}, how)), { code: 'UnsupportedOperation', message: new RegExp(`There is no agent card at .*: HTTP ${status}`) })
  }
  t.equal(way.asked.length, tries + 3)
  const older = await httpAgent(t, { version: '0.3' })
  t.match(await refusal(new SharedAgent(older.url, {}).use(async () => {}, how)), { code: 'UnsupportedOperation', message: /speaks only A2A 0\.3/ })
})

await t.test('a certificate that is not trusted is named, wherever Node hides it', async t => {
  const fault = Object.assign(new Error('self-signed certificate'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  for (const cause of [fault, new TypeError('fetch failed', { cause: fault })]) {
    t.match(nobodyAnswers('https://a.example/', cause), { code: 'Overloaded', message: 'The TLS certificate at https://a.example/ is not trusted: self-signed certificate.' })
  }
  for (const cause of [undefined, 'x', new Error('no'), Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })]) {
    t.match(nobodyAnswers('https://a.example/', cause), { message: 'Nobody answers at https://a.example/. Is the agent running?' })
  }
  t.match(await rejection(fetchCard('http://127.0.0.1:1/')), { message: /Nobody answers/ })
})
