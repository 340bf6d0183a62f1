import t, { type Test } from 'tap'
import { agUiHandler, type AgUiOptions } from '../../../adapters/ag-ui/index.ts'
import { apiKey } from '../../../adapters/auth/index.ts'
import type { Handler } from '../../../adapters/entry/connection.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import { NEGOTIATION_EXTENSION } from '../../../machines/protocol/uris.ts'
import {
  artifact,
  createRuntime,
  defineAgent,
  inputRequired,
  type Authenticate,
  type RuntimeOptions
} from '../../../runtime/index.ts'
import { openThread, readEvents, textsOf } from '../../fixtures/peers/ag-ui-clients.ts'
import { httpAgent } from '../../fixtures/peers/scripted-http.ts'
import { rejection, start, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { sized } from '../../fixtures/servers/mcp-agent.ts'

const ADDRESS = 'http://127.0.0.1:4242/ag-ui'

type Init = Omit<RequestInit, 'headers'> & { readonly headers?: Readonly<Record<string, string>> }

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

type Ask = (init?: Init, url?: string) => Promise<Answer>

const INPUT = { threadId: 't', runId: 'r', messages: [{ id: 'm', role: 'user', content: 'a coffee' }] }

function askOf(handler: Handler): Ask {
  return async (init, url = ADDRESS) => {
    const headers = { 'Content-Type': 'application/json', ...init?.headers }
    const response = await handler(new Request(url, { method: 'POST', ...init, headers }))
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
}

function asked(t: Test, options: Partial<RuntimeOptions> = {}, settings: AgUiOptions = {}) {
  const started = start(t, { card: { name: 'Barista' }, work: sized }, options)
  return { ...started, ask: askOf(agUiHandler(started.runtime, settings)) }
}

const body = (more: object = {}) => JSON.stringify({ ...INPUT, ...more })

await t.test('a run is one answer of server-sent events, without ids', async t => {
  const { ask } = asked(t)
  const { status, headers, text } = await ask({ body: body() })
  t.equal(status, 200)
  t.equal(headers.get('content-type'), 'text/event-stream')
  t.match(text, /^data: \{"type":"RUN_STARTED","threadId":"t","runId":"r"\}\n\ndata: /)
  t.notMatch(text, /^(?:id|event):/m)
  t.match(text, /"type":"RUN_FINISHED"[^\n]*"type":"interrupt"[^\n]*\}\n\n$/)
})

await t.test('a request from another host, another page or with a token in its URL is refused', async t => {
  const { ask } = asked(t)
  t.match(await ask({ body: body() }, 'http://evil.example/ag-ui'), { status: 421 })
  t.match(await ask({ body: body(), headers: { Origin: 'https://evil.example' } }), { status: 403 })
  t.match(await ask({ body: body() }, `${ADDRESS}?access_token=x`), { status: 400 })
  t.match(await ask({ body: body() }, 'http://127.0.0.1:4242/other'), { status: 404, text: /AG-UI is at \/ag-ui\./ })
  const own = await ask({ body: body(), headers: { Origin: 'http://127.0.0.1:4242' } })
  t.equal(own.headers.get('access-control-allow-origin'), 'http://127.0.0.1:4242')
  t.match(await askOf(agUiHandler(asked(t).runtime))({ method: 'GET' }), { status: 405 })
  const preflight = await agUiHandler(asked(t).runtime)(
    new Request(ADDRESS, { method: 'OPTIONS', headers: { Origin: 'http://127.0.0.1:4242' } })
  )
  t.equal(preflight.status, 204)
  for (const method of ['GET', 'DELETE']) {
    const refused = await ask({ method })
    t.equal(refused.status, 405)
    t.equal(refused.headers.get('allow'), 'POST, OPTIONS')
  }
})

await t.test('bad input is answered with what is wrong and where, and changes nothing', async t => {
  const { ask, runtime } = asked(t, { limits: { messageBytes: 200_000 } })
  const user = (content: unknown, more: object = {}) => ({ messages: [{ id: 'm', role: 'user', content, ...more }] })
  const resume = (entry: unknown) => ({ resume: [entry] })
  const props = (forwardedProps: unknown) => ({ forwardedProps })
  const image = (source: unknown) => user([{ type: 'image', source }])
  const bad: [what: string, init: Init | object, status: number, reason: RegExp][] = [
    ['nothing', { body: '' }, 400, /threadId must be a string/],
    ['no JSON', { body: '{bad' }, 400, /not JSON/],
    ['a list', { body: '[]' }, 400, /must be an object/],
    ['bad UTF-8', { body: new Uint8Array([0x22, 0xff, 0x22]) }, 400, /UTF-8/],
    ['too deep', { body: `{"a":${'{"a":'.repeat(80)}1${'}'.repeat(80)}}` }, 400, /body/],
    ['a forbidden name', { body: '{"__proto__":{}}' }, 400, /__proto__/],
    ['too large', { body: JSON.stringify('x'.repeat(300_000)) }, 413, /200000 bytes/],
    ['another type', { body: '{}', headers: { 'Content-Type': 'text/plain' } }, 415, /application\/json/],
    ['a coding', { body: '{}', headers: { 'Content-Encoding': 'gzip' } }, 415, /Content-Encoding/],
    ['no thread', { threadId: 5 }, 400, /threadId must be a string that is not empty/],
    ['no run', { runId: '' }, 400, /runId must be/],
    ['no messages', { messages: null }, 400, /messages must be a list/],
    ['a message that is none', { messages: ['x'] }, 400, /messages\[0\] must be an object/],
    ['a version that is none', { protocolVersion: 1 }, 400, /protocolVersion must be/],
    ['a message without id', user('x', { id: '' }), 400, /messages\[0\]\.id/],
    ['content that is none', user(5), 400, /messages\[0\]\.content must be a string, or a list/],
    ['no content', user([]), 400, /messages\[0\]\.content/],
    ['text that is none', user([{ type: 'text', text: 5 }]), 400, /content\[0\]\.text must be a string/],
    ['an unknown part', user([{ type: 'smell' }]), 400, /content\[0\]\.type must be .*not .*smell/],
    ['no source', user([{ type: 'image' }]), 400, /content\[0\]\.source must be an object/],
    ['an unknown source', image({ type: 'x', value: 'x' }), 400, /source\.type must be data or url/],
    ['an empty source', image({ type: 'data' }), 400, /source must have its bytes/],
    ['bytes that are none', image({ type: 'data', value: '!' }), 400, /message\.parts\[0\]\.raw/],
    ['two answers', { resume: [{}, {}] }, 400, /resume must have one entry/],
    ['an answer that is none', resume('x'), 400, /resume\[0\] must be an object/],
    ['an answer to nothing', resume({ status: 'resolved' }), 400, /resume\[0\]\.interruptId/],
    ['an unknown status', resume({ interruptId: 'x', status: 'maybe' }), 400, /resume\[0\]\.status/],
    ['properties that are none', props('x'), 400, /forwardedProps must be an object/],
    ['a move that is none', props({ [NEGOTIATION_EXTENSION]: 5 }), 400, /forwardedProps/],
    ['a cancel that is none', props({ 'urn:taskchart:ag-ui:1': { cancel: 5 } }), 400, /"cancel\\": taskId/],
    ['tools that are none', { tools: 'x' }, 400, /tools must be a list/],
    ['too much context', { context: ['x'.repeat(70_000)] }, 413, /65536 bytes/]
  ]
  for (const [what, given, status, reason] of bad) {
    const answer = await ask('body' in given ? given : { body: body(given) })
    t.match(answer, { status, text: reason }, what)
    t.notMatch(answer.text, /node_modules|\.ts:\d/)
  }
  t.equal((await runtime.listTasks({})).totalSize, 0)
})

await t.test('unknown members and members that are null are ignored', async t => {
  const { ask } = asked(t)
  const nothing = { tools: null, context: null, forwardedProps: null, resume: null, state: null, parentRunId: null }
  t.match(await ask({ body: body({ ...nothing, protocolVersion: null, unknown: 5 }) }), { status: 200 })
  const other = { state: [1], messages: [{ id: 'm', role: 'user', content: [{ type: 'text', text: 'a' }] }] }
  t.match(await ask({ body: body(other) }), { status: 200, text: /"snapshot":\{"task":/ })
})

await t.test('files of clients before 1.0 are files', async t => {
  const parts: unknown[] = []
  const { runtime } = start(t, {
    card: { name: 'Painter', defaultInputModes: ['*/*'] },
    work: ({ message }) => void parts.push(...message.parts)
  })
  const content = [
    { type: 'binary', mimeType: 'image/png', data: 'aGk=', filename: 'a.png' },
    { type: 'binary', mimeType: 'image/png', url: 'https://a.example/b.png' },
    { type: 'document', source: { type: 'url', value: 'https://a.example/c' } }
  ]
  await askOf(agUiHandler(runtime))({ body: body({ messages: [{ id: 'm', role: 'user', content }] }) })
  t.strictSame(parts, [
    { raw: 'aGk=', mediaType: 'image/png', filename: 'a.png' },
    { url: 'https://a.example/b.png', mediaType: 'image/png' },
    { url: 'https://a.example/c' }
  ])
})

const bearer: Authenticate = apiKey({ keys: { anna: 'a'.repeat(16), ben: 'b'.repeat(16) }, header: 'authorization' })
const tokenOf = (letter: string) => ({ Authorization: `Bearer ${letter.repeat(16)}` })

await t.test("a caller needs credentials, and another caller's question was never asked", async t => {
  const { runtime, ask } = asked(t, { authenticate: bearer })
  const refused = await ask({ body: body() })
  t.match(refused, { status: 401 })
  t.match(refused.headers.get('www-authenticate'), /Bearer/)
  const handler = agUiHandler(runtime)
  const anna = openThread('AG-UI 1.0', handler, { threadId: 'same', headers: tokenOf('a') })
  const ben = openThread('AG-UI 1.0', handler, { threadId: 'same', headers: tokenOf('b') })
  await anna.say('a coffee')
  const interruptId = anna.interrupts[0]?.id ?? ''
  const answer = { resume: [{ interruptId, status: 'resolved' as const, payload: { size: 'small' } }] }
  const { events } = await ben.run(answer)
  t.match(events.at(-1), { type: 'RUN_ERROR', code: 'UnknownInterrupt' })
  const { events: unknown } = await ben.run({ resume: [{ interruptId: 'x/y', status: 'resolved' }] })
  t.strictSame({ ...unknown.at(-1) }, { ...events.at(-1) }, 'a foreign task looks like none')
  t.match((await ben.run()).events.at(-1), { type: 'RUN_FINISHED' })
  t.strictSame(ben.state, {})
  await anna.answer({ size: 'small' })
  t.strictSame(textsOf(anna), ['One small coffee.'])
})

await t.test('a stream ends when the credentials of its request expire', async t => {
  const { runtime, clock } = start(
    t,
    { work: () => new Promise(() => {}) },
    { authenticate: () => ({ id: 'anna', expiresAtMs: clock.now() + 1000 }) }
  )
  const page = openThread('AG-UI 1.0', agUiHandler(runtime))
  const run = page.say('go')
  await until(() => page.state.task !== undefined)
  clock.increment(1000)
  const { events } = await run
  t.strictSame(
    events.filter(({ type }) => type.startsWith('RUN_')).map(({ type }) => type),
    ['RUN_STARTED', 'RUN_ERROR']
  )
  t.match(events.at(-1), { code: 'Unauthenticated' })
})

await t.test('who may not list tasks has runs, and who may not send has none', async t => {
  const { ask } = asked(t, { authorize: ({ operation }) => operation !== 'listTasks' })
  t.match(await ask({ body: body() }), { status: 200, text: /"type":"interrupt"/ })
  const { ask: refused } = asked(t, { authorize: ({ operation }) => operation !== 'sendStreamingMessage' })
  t.match(await refused({ body: body() }), { status: 403 })
  const { ask: blind } = asked(t, { authorize: ({ operation }) => operation !== 'getTask' })
  t.match(
    await blind({ body: body({ resume: [{ interruptId: 'x/y', status: 'resolved' }] }) }),
    { status: 403 },
    'an error of another kind is not an unknown interrupt'
  )
})

await t.test('requests count for the quotas of their caller, whatever they ask', async t => {
  const limits = { perPrincipal: { requestsPerMinute: 4 } }
  for (const init of [
    { body: body() },
    { body: '{bad' },
    { body: body({ resume: [{ interruptId: 'x/y', status: 'resolved' }] }) },
    { body: '{}', headers: { 'Content-Type': 'text/plain' } }
  ] satisfies Init[]) {
    const { ask, clock } = asked(t, { authenticate: bearer, limits })
    let last: Answer | undefined
    const ticking = setInterval(() => clock.increment(50), 1)
    for (let i = 0; i < 12 && last?.status !== 429; i += 1)
      last = await ask({ ...init, headers: { ...('headers' in init ? init.headers : {}), ...tokenOf('a') } })
    clearInterval(ticking)
    t.match(last, { status: 429 }, init.body)
    t.ok(Number(last?.headers.get('retry-after')) > 0)
  }
})

await t.test('a tenant has a path of its own, and its tasks', async t => {
  const { ask, runtime } = asked(t, { tenants: { blue: {}, red: {} } })
  const at = (path: string) => ask({ body: body() }, `http://127.0.0.1:4242${path}`)
  t.match(await at('/blue/ag-ui'), { status: 200, text: /"type":"interrupt"/ })
  t.equal((await runtime.listTasks({ tenant: 'blue' })).totalSize, 1)
  t.equal((await runtime.listTasks({ tenant: 'red' })).totalSize, 0)
  t.match(await at('/blue/red/ag-ui'), { status: 404 })
  t.match(await at('/ag-ui'), { status: 400, text: /tenant/ }, 'there is no tenant without a name')
})

await t.test('serve has AG-UI beside MCP and the bindings, below the path of the agent', async t => {
  const agent = defineAgent({ card: { name: 'Barista' }, work: sized })
  const runtime = createRuntime({ agent, tenants: { '': {}, blue: {} } })
  const served = await serve(runtime, { port: 0, path: '/agent', mcp: true, agui: { questions: 'message' } })
  t.teardown(async () => {
    await served.close()
    await runtime.close()
  })
  t.equal(served.agUiUrl, `${served.url}/ag-ui`)
  for (const url of [served.agUiUrl ?? '', `${served.url}/blue/ag-ui`]) {
    const page = openThread('AG-UI 1.0', undefined, { url })
    await page.say('a coffee')
    t.strictSame(textsOf(page), ['Which size?'])
  }
  t.match(await (await fetch(`${served.url}/.well-known/agent-card.json`)).json(), { name: 'Barista' })
  t.equal((await fetch(`${served.url}/mcp`, { method: 'GET' })).status, 405)
  const plain = await serve(runtime, { port: 0, agui: true })
  t.teardown(() => plain.close())
  t.equal(plain.agUiUrl, `${plain.url}ag-ui`)
  t.match(await rejection(serve(runtime, { agui: 5 as never })), { message: /agui/ })
  t.match(await rejection(serve(runtime, { agui: { question: 'x' } as never, port: 0 })), { message: /questions/ })
})

await t.test('a run belongs to the trace of its request', async t => {
  const seen: unknown[] = []
  const span = {
    carrier: {},
    set: () => {},
    fail: () => {},
    event: () => {},
    end: () => {},
    run: <T>(run: () => T) => run()
  }
  const begin = ({ name, parent, attributes }: { name: string; parent?: unknown; attributes?: unknown }) => {
    seen.push([name, parent, JSON.stringify(attributes)])
    return span
  }
  const { ask } = asked(t, { telemetry: { fields: ['traceparent'], begin } as never })
  const traceparent = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`
  await ask({ body: body(), headers: { traceparent } })
  t.match(seen, [
    ['ListTasks', { traceparent }, /AG-UI/],
    ['SendStreamingMessage', { traceparent }, /AG-UI/]
  ])
})

await t.test('an agent at a URL gets the authorization of the request, and only its origin does', async t => {
  const runtime = createRuntime({
    agent: defineAgent({ card: { name: 'Barista' }, work: sized }),
    authenticate: bearer
  })
  const served = await serve(runtime, { port: 0 })
  t.teardown(async () => {
    await served.close()
    await runtime.close()
  })
  const handler = agUiHandler(served.url)
  const page = openThread('AG-UI 1.0', handler, { headers: tokenOf('a') })
  await page.say('a coffee')
  t.match(page.interrupts, [{ message: 'Which size?' }])
  await page.answer({ size: 'huge' })
  t.match(page.interrupts, [{ message: /^Not accepted: size/ }])
  await page.answer({ size: 'large' })
  t.strictSame(textsOf(page), ['One large coffee.'])
  await page.say('another one')
  await page.cancel()
  t.match(page.state.task, { status: { state: 'TASK_STATE_CANCELED' } })
  const again = openThread('AG-UI 1.0', handler, {
    threadId: String(page.state.task?.['contextId']),
    headers: tokenOf('a')
  })
  await again.run()
  t.strictSame(textsOf(again), ['Which size?', 'One large coffee.'])
  t.match(await openThread('AG-UI 1.0', handler).say('x'), { error: { message: /^HTTP 401/ } })

  const elsewhere = await httpAgent(t)
  const lure = await httpAgent(t, { address: elsewhere.url })
  const refused = await askOf(agUiHandler(lure.url))({ body: body(), headers: tokenOf('a') })
  t.match(refused, { status: 403 })
  t.equal(elsewhere.asked.length, 0)
})

await t.test('an agent at a URL that does not stream is read', async t => {
  const agent = defineAgent({ card: { name: 'Barista' }, work: sized, capabilities: { streaming: false } })
  const runtime = createRuntime({ agent })
  const served = await serve(runtime, { port: 0 })
  t.teardown(async () => {
    await served.close()
    await runtime.close()
  })
  const page = openThread('AG-UI 1.0', agUiHandler(served.url))
  await page.say('a coffee')
  t.match(page.interrupts, [{ message: 'Which size?' }])
})

await t.test('an agent at a URL that refuses to stream is asked once more, without', async t => {
  const agent = await httpAgent(t)
  const message = { messageId: 'a', role: 'ROLE_AGENT', contextId: 't', parts: [{ text: 'Hello.' }] }
  agent.script(({ id, method }, response) => {
    const answer = method === 'SendMessage' ? { result: { message } } : { error: { code: -32004, message: 'No.' } }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
  })
  const page = openThread('AG-UI 1.0', agUiHandler(agent.url))
  await page.say('hi')
  t.strictSame(textsOf(page), ['Hello.'])
})

await t.test('a large task is sent in pieces, and its memory is free after a refusal', async t => {
  const agent = defineAgent({
    card: { name: 'Poet' },
    async *work() {
      yield artifact({ artifactId: 'poem', parts: [{ raw: 'AAAA'.repeat(500_000) }] }, { lastChunk: true })
      yield* inputRequired('Another one?')
    }
  })
  let mayAnswer = true
  const authorize = ({ operation }: { readonly operation: string }) => mayAnswer || operation !== 'sendStreamingMessage'
  const runtime = createRuntime({ agent, authenticate: bearer, authorize })
  const served = await serve(runtime, { port: 0, agui: true })
  t.teardown(async () => {
    await served.close()
    await runtime.close()
  })
  const page = openThread('AG-UI 1.0', undefined, { url: served.agUiUrl ?? '', headers: tokenOf('a') })
  await page.say('a poem')
  mayAnswer = false
  for (let i = 0; i < 3; i += 1) t.match(await page.answer('yes'), { error: { message: /^HTTP 403/ } })
  const other = openThread('AG-UI 1.0', undefined, {
    url: served.agUiUrl ?? '',
    headers: tokenOf('a'),
    threadId: String(page.state.task?.['contextId'])
  })
  await other.run()
  t.strictSame(other.state.task, page.state.task)
  t.match(other.interrupts, [{ message: 'Another one?' }])
})

await t.test('a handler before an agent at a URL has hosts and origins of its own', async t => {
  const { runtime } = start(t, { work: sized })
  const served = await serve(runtime, { port: 0 })
  t.teardown(() => served.close())
  const handler = agUiHandler(served.url, { hosts: ['app.example'], origins: ['https://other.example'] })
  const post = (url: string, origin?: string) =>
    askOf(handler)({ body: body(), headers: origin === undefined ? {} : { Origin: origin } }, url)
  t.match(await post('https://app.example/ag-ui', 'https://app.example'), { status: 200 })
  t.match(await post('https://app.example/ag-ui', 'https://other.example'), { status: 200 })
  t.match(await post('https://app.example/ag-ui', 'https://evil.example'), { status: 403 })
  t.match(await post(ADDRESS), { status: 421 })
  t.match(await askOf(agUiHandler('http://127.0.0.1:9/'))({ body: body() }), { status: 503 }, 'no agent is there')
})

await t.test('options are checked at once', async t => {
  const { runtime } = start(t, { work: sized })
  for (const [agent, options, message] of [
    [runtime, { question: 'message' }, /agUiHandler has no question\. Is questions meant\?/],
    [runtime, { questions: 'form' }, /questions/],
    [runtime, { path: 'x' }, /path/],
    [runtime, 5, /agUiHandler takes options such as/],
    [runtime, { hosts: ['a.example'] }, /A runtime has hosts of its own: createRuntime\(\{ agent, hosts \}\)/],
    [runtime, { origins: ['https://a.example'] }, /A runtime has origins of its own/],
    ['agent.example', {}, /agUiHandler takes a runtime, or a URL such as/],
    ['ftp://agent.example', {}, /a URL such as/],
    [5, {}, /agUiHandler takes a runtime/]
  ] as const)
    t.throws(() => agUiHandler(agent as never, options as never), { name: 'TypeError', message })
})

await t.test('a client that leaves ends its stream, and the task goes on', async t => {
  const { runtime } = start(t, {
    async work({ ask }) {
      await ask(inputRequired('Which size?'))
      return { message: 'Done.' }
    }
  })
  const handler = agUiHandler(runtime)
  const gone = new AbortController()
  const request = new Request(ADDRESS, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: body(),
    signal: gone.signal
  })
  const { body: stream } = await handler(request)
  const events: unknown[] = []
  gone.abort()
  if (stream) await readEvents(stream, event => void events.push(event)).catch(() => undefined)
  await until(async () => (await runtime.listTasks({})).tasks[0]?.status.state === 'TASK_STATE_INPUT_REQUIRED')
  t.equal((await runtime.listTasks({})).totalSize, 1)
})
