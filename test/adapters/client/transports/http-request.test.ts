import t, { type Test } from 'tap'
import type { AgentClient } from '../../../../adapters/client/agent-client.ts'
import { connect, type ConnectOptions } from '../../../../adapters/client/connect.ts'
import {
  body,
  httpAgent,
  type Answer,
  type HttpAgent,
  type ScriptedCard
} from '../../../fixtures/peers/scripted-http.ts'
import { collect, refusal, say } from '../../../fixtures/runtime/runtime-helpers.ts'

const BINDINGS = [
  ['JSONRPC', '1.0'],
  ['HTTP+JSON', '1.0'],
  ['JSONRPC', '0.3'],
  ['HTTP+JSON', '0.3']
] as const

interface Scripted {
  readonly agent: HttpAgent
  readonly client: AgentClient
}

async function scripted(t: Test, card: ScriptedCard, options: ConnectOptions = {}): Promise<Scripted> {
  const agent = await httpAgent(t, card)
  const client = await connect(agent.url, { giveUpAfterMs: 0, ...options })
  t.teardown(() => client.close())
  return { agent, client }
}

/** The answer of each binding to GetTask, or to a message. */
function answer(binding: string, version: string, value: object): Answer {
  return ({ id }, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(
        JSON.stringify(
          binding === 'JSONRPC'
            ? { jsonrpc: '2.0', id, result: version === '0.3' ? { kind: 'task', ...value } : value }
            : value
        )
      )
  }
}

const task = (version: string) => ({
  id: 't',
  contextId: 'c',
  status: { state: version === '0.3' ? 'working' : 'TASK_STATE_WORKING' }
})
const task03Rest = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } }
const taskOf = (binding: string, version: string) => (binding === 'HTTP+JSON' ? task03Rest : task(version))

/** The dispatcher of `fetch`, by the name that this version of Node has for it. */
const DISPATCHER = Symbol.for(
  `undici.globalDispatcher.${Number.parseInt(String(process.versions.undici), 10) >= 8 ? 2 : 1}`
)

/** Lets every `fetch` give up after 500 ms without a byte, until the test ends. */
async function impatient(t: Test): Promise<void> {
  // The first request loads what `fetch` is made of.
  await fetch('data:,')
  const patient: unknown = Reflect.get(globalThis, DISPATCHER)
  const { constructor } = patient as { constructor: new (options: object) => { close(): Promise<void> } }
  const other = new constructor({ headersTimeout: 500, bodyTimeout: 500 })
  Reflect.set(globalThis, DISPATCHER, other)
  t.teardown(() => Reflect.set(globalThis, DISPATCHER, patient))
}

await t.test('an answer may take longer than fetch waits, over every binding', async t => {
  await impatient(t)
  for (const [binding, version] of BINDINGS) {
    const { agent, client } = await scripted(t, { binding, version })
    let answerCall = () => {}
    agent.script(
      (asked, response) =>
        void (answerCall = () => answer(binding, version, taskOf(binding, version))(asked, response)),
      () => {}
    )
    const calling = client.getTask({ id: 't' })
    await agent.request(0)
    const given = await fetch(agent.url).catch((error: Error) => error.cause)
    t.match(given, { code: 'UND_ERR_HEADERS_TIMEOUT' }, `${binding} ${version}: fetch has given up`)
    answerCall()
    t.match(await calling, { id: 't' }, `${binding} ${version}`)
  }
})

await t.test('a stream may be silent for longer than fetch waits', async t => {
  await impatient(t)
  const { agent, client } = await scripted(t, {})
  let end = () => {}
  agent.script(
    ({ id }, response) => {
      const event = (result: object) => `data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(event({ task: task('1.0') }))
      end = () =>
        response.end(
          event({ statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } } })
        )
    },
    (_, response) => void response.writeHead(200).write('begun')
  )
  const events = collect(client.sendStreamingMessage(say('hello')))
  await agent.request(0)
  const given = await fetch(agent.url)
    .then(response => response.text())
    .catch((error: Error) => error.cause)
  t.match(given, { code: 'UND_ERR_BODY_TIMEOUT' }, 'fetch has given up')
  end()
  t.match(await events, [{ task: {} }, { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } }])
  t.equal(agent.asked.length, 2, 'the stream, and what fetch asked')
})

await t.test('without a dispatcher of fetch, as in browsers, a request has no further options', async t => {
  const { agent, client } = await scripted(t, {})
  agent.script(answer('JSONRPC', '1.0', task('1.0')))
  const { fetch } = globalThis
  const dispatcher: unknown = Reflect.get(globalThis, DISPATCHER)
  const versions = process.versions
  t.teardown(() => {
    Reflect.set(globalThis, DISPATCHER, dispatcher)
    Object.defineProperty(process, 'versions', { value: versions })
  })
  const options: unknown[] = []
  t.intercept(globalThis, 'fetch', {
    value: (request: Request, init: unknown) => {
      options.push(init)
      Reflect.set(globalThis, DISPATCHER, dispatcher)
      return fetch(request)
    }
  })
  Object.defineProperty(process, 'versions', { value: {} })
  Reflect.set(globalThis, DISPATCHER, undefined)
  Reflect.set(globalThis, Symbol.for('undici.globalDispatcher.1'), undefined)
  t.match(await client.getTask({ id: 't' }), { id: 't' })
  t.strictSame(options, [{}])
})

await t.test('a call that changes nothing follows 307 and 308 within the origin, over every binding', async t => {
  for (const [binding, version] of BINDINGS) {
    for (const status of [307, 308]) {
      const { agent, client } = await scripted(t, { binding, version }, { headers: { 'x-mine': 'a' } })
      agent.script(
        body('', { location: '/moved?to=there' }, status),
        answer(binding, version, taskOf(binding, version))
      )
      t.match(await client.getTask({ id: 't' }), { id: 't' }, `${binding} ${version} ${status}`)
      t.match(agent.asked, [{ headers: { 'x-mine': 'a' } }, { path: '/moved?to=there', headers: { 'x-mine': 'a' } }])
      t.strictSame(agent.asked[1]?.params, agent.asked[0]?.params)
    }
  }
})

await t.test(
  'a call that may change something follows no redirect, and the error names the address to use',
  async t => {
    for (const [binding, version] of BINDINGS) {
      const { agent, client } = await scripted(t, { binding, version })
      agent.script(body('', { location: '/moved' }, 307))
      const text = `redirects to "${agent.url}/moved", which is not followed. The agent's card has to name "${agent.url}/moved"`
      t.match(
        await refusal(client.sendMessage(say('hello'))),
        { code: 'InvalidAgentResponse', message: text },
        `${binding} ${version}`
      )
      t.match(await refusal(client.cancelTask({ id: 't' })), { code: 'InvalidAgentResponse', message: text })
      t.equal(agent.asked.length, 2)
    }
  }
)

await t.test('other redirects are not followed, and not more than five', async t => {
  const { agent, client } = await scripted(t, {})
  for (const [status, location] of [
    [301, '/moved'],
    [302, '/moved'],
    [303, '/moved'],
    [307, 'http://evil.example/'],
    [308, 'https://127.0.0.1/'],
    [307, 'http://']
  ] as const) {
    agent.script(body('', { location }, status))
    t.match(
      await refusal(client.getTask({ id: 't' })),
      { code: 'InvalidAgentResponse', message: /is not followed. Connect to the address that it moved to/ },
      `${status} ${location}`
    )
  }
  t.equal(agent.asked.length, 6)
  agent.script(body('', { location: '/moved' }, 307))
  t.match(await refusal(client.getTask({ id: 't' })), { message: /only calls that change nothing follow, 5 times/ })
  t.equal(agent.asked.length, 12)
})

await t.test('a redirect that repeats a key of the query shows it in no error, and sends it once', async t => {
  const card = {
    securitySchemes: { key: { apiKeySecurityScheme: { location: 'query', name: 'k' } } },
    securityRequirements: [{ schemes: { key: {} } }]
  }
  const { agent, client } = await scripted(t, { card }, { credentials: { apiKey: 'secret' } })
  agent.script(body('', { location: '/moved?k=secret' }, 307), answer('JSONRPC', '1.0', task('1.0')))
  t.match(await client.getTask({ id: 't' }), { id: 't' })
  t.match(agent.asked, [{}, { path: '/moved?k=secret' }])
  agent.script(body('', { location: '/moved?k=secret' }, 307))
  t.match(await refusal(client.sendMessage(say('hello'))), { message: /^((?!secret).)*$/ })
})
