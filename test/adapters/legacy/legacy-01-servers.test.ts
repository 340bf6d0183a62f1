import t, { type Test } from 'tap'
import { type Dialect, methodsOf, Versions } from '../../../adapters/json-rpc/dispatch.ts'
import { dialect01, dialect03 } from '../../../adapters/legacy/index.ts'
import { TASK_OF_01 } from '../../../adapters/legacy/v01-answers.ts'
import { serve, type ServeOptions } from '../../../adapters/serve/serve.ts'
import { AGENT_CARD_PATH, WEBSOCKET_BINDING } from '../../../machines/protocol/uris.ts'
import type { RuntimeOptions } from '../../../runtime/runtime-options.ts'
import { ask, OpenStream, sentEvents } from '../../fixtures/servers/http-agent.ts'
import { collect, start } from '../../fixtures/runtime/runtime-helpers.ts'
import { JsonSocket, obedient, type Reply } from '../../fixtures/servers/served-agent.ts'

/** Serves obedient work in 1.0 and the given versions: 0.3 and 0.1. */
async function serveOld(t: Test, options: Partial<RuntimeOptions> = {}, where: Partial<ServeOptions> = {}) {
  const started = start(t, { work: obedient }, options)
  const { runtime } = started
  const served = await serve(runtime, { port: 0, dialects: [dialect03(runtime), dialect01(runtime)], ...where })
  t.teardown(() => served.close())
  return { ...started, url: served.url }
}

const OLD = { 'a2a-version': '' }

/** A call without a version, as all clients of old make it. */
async function rpc(
  url: string,
  method: string,
  params: unknown,
  headers: Record<string, string> = OLD
): Promise<Reply> {
  return (await ask(url, { body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }), headers })).json
}

const sending = (id: string, text: string, more: object = {}) => ({
  id,
  message: { role: 'user', parts: [{ type: 'text', text }] },
  ...more
})
const said03 = (text: string) => ({
  message: { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text }] }
})

await t.test('one address speaks 1.0, 0.3 and 0.1, selected by version, method and task', async t => {
  const { url } = await serveOld(t)
  const mine = (await rpc(url, 'tasks/send', sending('mine', 'ask'))).result as {
    metadata: Record<string, { taskId: string }>
  }
  t.match(mine, {
    id: 'mine',
    status: { state: 'input-required', message: { parts: [{ type: 'text', text: 'And then?' }] } },
    kind: undefined
  })
  const taskId = mine.metadata[TASK_OF_01]?.taskId ?? ''
  const { result } = await rpc(url, 'message/send', said03('ask'))
  const { id } = result as { id: string }

  t.match((await rpc(url, 'tasks/get', { id: 'mine' })).result, { id: 'mine', kind: undefined }, 'a name of 0.1')
  t.match((await rpc(url, 'tasks/get', { id })).result, { id, kind: 'task' }, 'an id of the runtime')
  t.match(
    (await rpc(url, 'tasks/get', { id: 'mine' }, { 'a2a-version': '0.3' })).error,
    { code: -32001 },
    'a named version decides'
  )
  t.match((await rpc(url, 'tasks/get', { id }, { 'a2a-version': '0.1' })).result, {
    id,
    kind: undefined,
    status: { message: { parts: [{ type: 'text' }] } }
  })
  t.match(
    (await ask(`${url}tasks/${taskId}`)).json,
    { id: taskId, status: { state: 'TASK_STATE_INPUT_REQUIRED' } },
    'the task is visible in 1.0'
  )
  t.match(
    (await rpc(url, 'tasks/get', { id: taskId }, { 'a2a-version': '0.3' })).result,
    { kind: 'task', id: taskId },
    'and in 0.3'
  )
  t.match((await rpc(url, 'tasks/cancel', { id })).result, { kind: 'task', status: { state: 'canceled' } })
  t.match((await rpc(url, 'tasks/cancel', { id: 'mine' })).result, {
    id: 'mine',
    status: { state: 'canceled' },
    kind: undefined
  })

  t.match((await rpc(url, 'tasks/send', sending('x', 'x'), { 'a2a-version': '1.0' })).error, { code: -32601 })
  t.match((await rpc(url, 'tasks/send', sending('x', 'x'), { 'a2a-version': '0.3' })).error, { code: -32601 })
  t.match((await rpc(url, 'message/send', said03('x'), { 'a2a-version': '0.1' })).error, { code: -32601 })
  t.match((await rpc(url, 'tasks/nothing', {})).error, { code: -32601 })
  t.match((await rpc(url, 'tasks/get', { id: 'nobody' })).error, { code: -32001 })
  for (const [params, code] of [
    [{ id: 'nobody' }, -32001],
    [{}, -32602]
  ] as const) {
    t.match((await rpc(url, 'tasks/get', params, { 'a2a-version': '0.1' })).error, {
      code,
      data: { details: [{ domain: 'a2a-protocol.org' }] }
    })
  }
  t.match((await rpc(url, 'tasks/pushNotification/get', { id: 'mine' })).error, { code: -32003 })
})

await t.test('streams of 0.1 are server-sent events or WebSocket frames', async t => {
  const { url } = await serveOld(t)
  const { text } = await ask(url, {
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tasks/sendSubscribe', params: sending('mine', 'count 2') }),
    headers: OLD
  })
  const events = sentEvents(text)
  t.strictSame(
    events.map(({ id }) => id),
    ['2', '3', '4', '5', '6', '7']
  )
  t.match(
    events.map(({ data }) => (data as Reply).result),
    [
      { id: 'mine', status: { state: 'submitted' }, final: false },
      { status: { state: 'working' } },
      { artifact: { index: 0 } },
      { artifact: { index: 1 } },
      { artifact: { index: 2 } },
      { id: 'mine', status: { state: 'completed' }, final: true }
    ]
  )
  const socket = await JsonSocket.open(t, url.replace('http', 'ws'), { headers: {} })
  const send = (id: string, method: string, params: object) =>
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
  send('s', 'tasks/sendSubscribe', sending('q', 'ask'))
  t.match(await socket.stream('s'), [
    { result: { id: 'q', status: { state: 'submitted' } } },
    { result: { final: false } },
    { result: { status: { state: 'input-required' }, final: true } },
    { streamEnd: true }
  ])
  send('t', 'tasks/resubscribe', { id: 'q' })
  t.match(await socket.next('t'), { result: { id: 'q', status: { state: 'input-required' }, final: false } })
  send('a', 'tasks/send', sending('q', 'blue'))
  t.match(await socket.next('a'), {
    result: { id: 'q', status: { state: 'completed' }, artifacts: [{ parts: [{ text: 'blue' }] }] }
  })
  t.match((await socket.stream('t')).slice(-2), [
    { result: { id: 'q', status: { state: 'completed' }, final: true } },
    { streamEnd: true }
  ])
  send('u', 'tasks/resubscribe', { id: 'nobody' })
  t.match(await socket.next('u'), { error: { code: -32001 } })
  const named = await JsonSocket.open(t, url.replace('http', 'ws'), { headers: { 'a2a-version': '0.1' } })
  named.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { id: 'q' } }))
  t.match(
    await named.next(1),
    { result: { id: 'q', status: { state: 'completed' } } },
    'a handshake may name the version'
  )
})

await t.test('a stream whose client disconnects ends, and its task continues', async t => {
  const { url, runtime } = await serveOld(t)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tasks/sendSubscribe', params: sending('w', 'wait') })
  const stream = await OpenStream.open(t, url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body
  })
  t.ok(await stream.next())
  stream.cut()
  t.equal((await runtime.listTasks({})).tasks[0]?.status.state, 'TASK_STATE_WORKING')
  t.match((await rpc(url, 'tasks/cancel', { id: 'w' })).result, { status: { state: 'canceled' } })
})

await t.test('0.1 can be served without 0.3, whose methods are then refused as unsupported', async t => {
  const { runtime } = start(t, { work: obedient })
  const served = await serve(runtime, { port: 0, dialects: [dialect01(runtime)] })
  t.teardown(() => served.close())
  const { url } = served
  t.match((await rpc(url, 'tasks/send', sending('mine', 'x'))).result, { id: 'mine', status: { state: 'completed' } })
  t.match((await rpc(url, 'tasks/get', { id: 'mine' })).result, { id: 'mine' })
  t.match((await rpc(url, 'message/send', said03('x'))).error, { code: -32009 })
  t.match(
    await ask(`${url}v1/message:send`, { body: '{}', headers: { 'a2a-version': '0.1' } }),
    { status: 400, json: { error: { message: /A2A-Version/ } } },
    '0.1 has no REST'
  )
  t.match((await ask(new URL('/.well-known/agent.json', url))).json, {
    url,
    capabilities: { stateTransitionHistory: false },
    protocolVersion: undefined
  })
  const sockets = await serve(runtime, { port: 0, dialects: [dialect01(runtime)], http: false })
  t.teardown(() => sockets.close())
  const card = (await ask(new URL(AGENT_CARD_PATH, sockets.url.replace('ws', 'http')))).json
  t.match(card, {
    supportedInterfaces: [{ protocolVersion: '1.0' }, { protocolVersion: '0.1', protocolBinding: WEBSOCKET_BINDING }]
  })
})

await t.test('the card lists 0.1 last without REST, and the old card serves both versions', async t => {
  const authenticate = Object.assign(() => undefined, {
    securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: 'Bearer' } } }
  })
  const { url } = await serveOld(t, { authenticate })
  const { supportedInterfaces } = (await ask(new URL(AGENT_CARD_PATH, url))).json as {
    supportedInterfaces: { protocolVersion: string; protocolBinding: string }[]
  }
  t.strictSame(
    supportedInterfaces.map(({ protocolVersion }) => protocolVersion),
    ['1.0', '1.0', '1.0', '0.3', '0.3', '0.3', '0.1', '0.1']
  )
  t.strictSame(
    supportedInterfaces.slice(-2).map(({ protocolBinding }) => protocolBinding),
    [WEBSOCKET_BINDING, 'JSONRPC']
  )
  const old = async (headers: Record<string, string>, path = '/.well-known/agent.json') =>
    (await ask(new URL(path, url), { headers })).json
  t.match(await old(OLD), {
    url,
    protocolVersion: '0.3.0',
    preferredTransport: 'JSONRPC',
    supportedInterfaces: undefined
  })
  t.match(await old({ 'a2a-version': '0.1' }), { url, protocolVersion: undefined })
  t.match(await old({ 'a2a-version': '0.1' }, AGENT_CARD_PATH), { url, protocolVersion: undefined })
  t.match(await old({ 'a2a-version': '0.3' }), { protocolVersion: '0.3.0', authentication: undefined })
  t.match(await old({}, AGENT_CARD_PATH), { supportedInterfaces: Array })
})

await t.test('authentication applies to 0.1 as to 1.0', async t => {
  const authenticate = ({ headers }: { headers: Record<string, string | undefined> }) =>
    headers['authorization'] ? { id: headers['authorization'] } : undefined
  const { url } = await serveOld(t, { authenticate })
  t.match((await ask(url, { body: '{}', headers: OLD })).status, 401)
  const [ada, bob] = [
    { ...OLD, authorization: 'Ada' },
    { ...OLD, authorization: 'Bob' }
  ]
  await rpc(url, 'tasks/send', sending('mine', 'ask'), ada)
  const [foreign, absent] = [
    await rpc(url, 'tasks/get', { id: 'mine' }, bob),
    await rpc(url, 'tasks/get', { id: 'mine' }, { ...OLD, authorization: 'Cyd' })
  ]
  t.strictSame(foreign, absent)
  t.match(foreign.error, { code: -32001, message: 'Task mine was not found.' })
  t.match((await rpc(url, 'tasks/get', { id: 'mine' }, { ...bob, 'a2a-version': '0.1' })).error, {
    code: -32001,
    message: 'Task mine was not found.'
  })
  t.match((await rpc(url, 'tasks/send', sending('mine', 'his'), bob)).result, { status: { state: 'completed' } })
  t.match((await rpc(url, 'tasks/get', { id: 'mine' }, ada)).result, { status: { state: 'input-required' } })
})

await t.test('an invalid request has no effect', async t => {
  const { url, runtime } = await serveOld(t)
  const post = (body: string) => ask(url, { body, headers: OLD })
  const params = sending('x', 'x')
  t.equal((await post(JSON.stringify({ jsonrpc: '2.0', method: 'tasks/send', params }))).status, 204)
  for (const [body, code] of [
    ['{bad', -32700],
    ['', -32700],
    ['[]', -32600],
    [JSON.stringify([{ jsonrpc: '2.0', id: 1, method: 'tasks/send', params }]), -32600],
    [JSON.stringify({ id: 1, method: 'tasks/send', params }), -32600],
    [JSON.stringify({ jsonrpc: '2.0', id: {}, method: 'tasks/send', params }), -32600],
    [JSON.stringify({ jsonrpc: '2.0', id: 1, method: 5, params }), -32600],
    [JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/send', params: [params] }), -32602],
    [JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/send' }), -32602],
    [JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/sendSubscribe', params: { id: 'x' } }), -32602],
    [JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { id: 'x'.repeat(500) } }), -32602],
    [JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/resubscribe', params: {} }), -32602]
  ] as const)
    t.match((await post(body)).json, { error: { code } }, body)
  t.equal((await runtime.listTasks({})).totalSize, 0)
})

/** A dialect that has one method, which gives its version. */
function speaks(version: string, streaming: boolean, claims?: boolean): Dialect {
  const method = streaming
    ? {
        streaming,
        events: async function* () {
          yield { version }
        }
      }
    : { streaming, answer: async () => version }
  return {
    version,
    method: name => (name === 'both' ? method : undefined),
    card: () => ({}),
    ...(claims !== undefined && { claims: async () => claims })
  }
}

await t.test('a method of two versions is handled by the version that claims the call', async t => {
  const { runtime } = start(t, { work: obedient })
  const called = async (...dialects: Dialect[]) => {
    const method = methodsOf(runtime, new Versions(dialects))('both', '')
    return method?.streaming ? collect(method.events({}, {})) : method?.answer({}, {})
  }
  for (const [claims, version] of [
    [true, '0.1'],
    [false, '0.3']
  ] as const) {
    t.equal(await called(speaks('0.3', false), speaks('0.1', false, claims)), version)
    t.equal(await called(speaks('0.1', false, claims), speaks('0.3', false)), version)
    t.strictSame(await called(speaks('0.3', true), speaks('0.1', true, claims)), [{ version }])
  }
  t.equal(await called(speaks('0.1', false, false)), '0.1', 'a single dialect need not claim')
  t.equal(await called(speaks('0.3', false), speaks('0.2', false)), '0.3', 'the first handles it if none claims')
  t.equal(
    await called(speaks('0.3', false), speaks('0.1', true, true)),
    '0.3',
    'a stream and a call are different methods'
  )
})
