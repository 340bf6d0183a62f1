import t, { type Test } from 'tap'
import { legacyDialects } from '../../../adapters/cli/serve/parts.ts'
import { connect } from '../../../adapters/client/connect.ts'
import { dialect03 } from '../../../adapters/legacy/index.ts'
import type { Card03Options } from '../../../adapters/v03/card.ts'
import { serve, type ServeOptions } from '../../../adapters/serve/serve.ts'
import { AGENT_CARD_PATH, WEBSOCKET_BINDING } from '../../../machines/protocol/uris.ts'
import type { RuntimeOptions } from '../../../runtime/runtime-options.ts'
import { ask, OpenStream, sentEvents } from '../../fixtures/servers/http-agent.ts'
import { reaches, start, userMessage } from '../../fixtures/runtime/runtime-helpers.ts'
import {
  ClientFactory,
  ClientFactoryOptions,
  RestTransportFactory,
  type Task03
} from '../../fixtures/servers/sdk-03.ts'
import { JsonSocket, obedient, type Reply } from '../../fixtures/servers/served-agent.ts'

/** Serves obedient work in 1.0 and 0.3. */
async function serveBoth(t: Test, options: Partial<RuntimeOptions> = {}, where: Partial<ServeOptions> = {}) {
  const started = start(t, { work: obedient }, options)
  const served = await serve(started.runtime, { port: 0, dialects: [dialect03(started.runtime)], ...where })
  t.teardown(() => served.close())
  return { ...started, url: served.url }
}

/** A message in 0.3. */
function said(text: string, more: object = {}) {
  return { message: { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text }], ...more } }
}

const OLD = { 'a2a-version': '' }

/** A call as clients of 0.3 make it: without a version. */
async function call03(
  url: string,
  method: string,
  params: unknown,
  headers: Record<string, string> = OLD
): Promise<Reply> {
  return (await ask(url, { body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }), headers })).json
}

await t.test('one address speaks 1.0 and 0.3, selected by the requested version', async t => {
  const { url, runtime } = await serveBoth(t)
  const { result } = await call03(url, 'message/send', said('ask'))
  t.match(result, {
    kind: 'task',
    status: {
      state: 'input-required',
      message: { kind: 'message', role: 'agent', parts: [{ kind: 'text', text: 'And then?' }] }
    }
  })
  const { id } = result as { id: string }
  t.match(
    (await ask(`${url}tasks/${id}`)).json,
    { id, status: { state: 'TASK_STATE_INPUT_REQUIRED' } },
    'the task is visible in 1.0'
  )
  t.match((await call03(url, 'tasks/get', { id }, { 'a2a-version': '0.3' })).result, { kind: 'task', id })
  t.match((await call03(url, 'message.send', said('blue', { taskId: id }))).result, {
    id,
    status: { state: 'completed' }
  })
  const opened = await runtime.sendMessage({ message: userMessage('hello') })
  t.match((await call03(url, 'tasks/get', { id: 'task' in opened ? opened.task.id : '' })).result, {
    kind: 'task',
    artifacts: [{ parts: [{ kind: 'text', text: 'hello' }] }]
  })
  t.match(
    (await call03(url, 'message/send', said('x'), { 'a2a-version': '1.0' })).error,
    { code: -32601 },
    'in 1.0 there is no such method'
  )
  t.match(
    (await call03(url, 'SendMessage', { message: userMessage('x') })).error,
    { code: -32009 },
    'a method of 1.0 without a version'
  )
  t.match((await call03(url, 'tasks/get', { id: 'nobody' })).error, { code: -32001 })
  t.match((await call03(url, 'tasks/get', { id }, { 'a2a-version': '0.2' })).error, { code: -32009 })
})

await t.test('REST of 0.3 is below /v1, where 1.0 may address a tenant of that name', async t => {
  const { url } = await serveBoth(t)
  const sent = await ask(`${url}v1/message:send`, { body: JSON.stringify(said('hello')), headers: OLD })
  t.equal(sent.status, 200)
  t.match(sent.json, { kind: 'task', status: { state: 'completed' } })
  const { id } = sent.json as { id: string }
  t.match((await ask(`${url}v1/tasks/${id}`, { headers: OLD })).status, 200)
  t.match((await ask(`${url}v1/tasks`)).json, { totalSize: 0 }, 'in 1.0 it is a tenant')
  const { text } = await ask(`${url}v1/message:stream`, { body: JSON.stringify(said('hello')), headers: OLD })
  t.strictSame(
    sentEvents(text).map(({ id }) => id),
    ['2', '3', '4', '5']
  )
  const stream = await OpenStream.open(t, `${url}v1/message:stream`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(said('wait'))
  })
  t.ok(await stream.next())
  stream.cut()
})

await t.test(
  'a configuration without blocking does not wait over REST, whose JSON leaves false out; without one, and over JSON-RPC, the message waits',
  async t => {
    const { url, runtime } = await serveBoth(t)
    const proto = (text: string) => ({ request: { messageId: 'p', role: 'ROLE_USER', content: [{ text }] } })
    for (const [name, body] of [
      ['proto', proto('ask')],
      ['JSON-RPC', said('ask')]
    ] as const) {
      const sent = async (configuration?: object | null) => {
        const { json } = await ask(`${url}v1/message:send`, {
          body: JSON.stringify({ ...body, configuration }),
          headers: OLD
        })
        const { task = json } = json as { task?: { id: string; status: { state: string } } }
        await reaches(runtime, (task as { id: string }).id, 'input-required')
        return (task as { status: { state: string } }).status.state
          .toLowerCase()
          .replace('task_state_', '')
          .replaceAll('_', '-')
      }
      for (const configuration of [{}, { blocking: false }, { blocking: null }, { historyLength: 1 }])
        t.equal(await sent(configuration), 'submitted', `${JSON.stringify(configuration)} in the form of ${name}`)
      for (const configuration of [undefined, null, { blocking: true }])
        t.equal(await sent(configuration), 'input-required', `${JSON.stringify(configuration)} in the form of ${name}`)
    }
    for (const configuration of [{}, undefined])
      t.match((await call03(url, 'message/send', { ...said('ask'), configuration })).result, {
        status: { state: 'input-required' }
      })
    const { status, json } = await ask(`${url}v1/message:send`, {
      body: JSON.stringify({ ...said('ask'), configuration: 'x' }),
      headers: OLD
    })
    t.match([status, json], [400, { error: { message: /configuration must be an object/ } }])
  }
)

await t.test(
  'errors over REST of 0.3 have the code and the message of JSON-RPC at the top, beside the error of 1.0',
  async t => {
    const authenticate = ({ headers }: { headers: Record<string, string | undefined> }) =>
      headers['authorization'] ? { id: 'Ada' } : undefined
    const { url } = await serveBoth(t, { authenticate, limits: { messageBytes: 65_536 } })
    const ada = { ...OLD, authorization: 'Ada' }
    const rows: [string, Parameters<typeof ask>[1], number, number, RegExp][] = [
      ['tasks/nobody', { headers: ada }, 404, -32001, /^Task nobody was not found/],
      ['nothing', { headers: ada }, 404, -32601, /^There is nothing at \/v1\/nothing in A2A 0\.3\.$/],
      ['message:send', { headers: ada, body: '{bad' }, 400, -32700, /not JSON/],
      ['message:send', { headers: ada, body: '{}' }, 400, -32602, /message/],
      ['message:stream', { headers: ada, body: '{}' }, 400, -32602, /message/],
      ['message:send', { headers: ada, body: `"${'x'.repeat(70_000)}"` }, 413, -31413, /at most/],
      [
        'message:send',
        { headers: { ...ada, 'content-type': 'text/plain' }, body: '{}' },
        415,
        -32005,
        /application\/json/
      ],
      [
        'message:send',
        { headers: { ...ada, 'content-encoding': 'gzip' }, body: '{}' },
        415,
        -32005,
        /Content-Encoding/
      ],
      ['card', { headers: OLD }, 401, -31401, /credentials/]
    ]
    for (const [path, asked, status, code, message] of rows) {
      const answer = await ask(`${url}v1/${path}`, asked)
      t.match(answer, { status, json: { code, message, error: { code: status, message } } }, path)
      t.equal(
        (answer.json as { error: { message: string } }).error.message,
        (answer.json as { message?: string }).message
      )
    }
    t.notOk(
      'code' in (await ask(`${url}tasks/nobody`, { headers: { authorization: 'Ada' } })).json,
      '1.0 has no such members'
    )
    t.notOk('code' in (await ask(`${url}tasks/nobody`)).json, 'also if it refuses a caller')
  }
)

await t.test('an error that ends a stream of REST of 0.3 is an event with the name error', async t => {
  const authenticate = () => ({ id: 'Ada', expiresAtMs: clock.now() + 60_000 })
  const { url, clock } = await serveBoth(t, { authenticate })
  const asked = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(said('wait')) }
  const response = await fetch(`${url}v1/message:stream`, asked)
  clock.increment(60_000)
  t.match(
    await response.text(),
    /\nevent: error\ndata: \{"code":-31401,"message":"The credentials of this request have expired[^\n]*\n\n$/
  )
})

await t.test(
  'the official client of 0.3 throws its typed errors over REST, and gets an answer at once if it asks for that',
  async t => {
    const { url, runtime } = await serveBoth(t)
    const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      transports: [new RestTransportFactory()],
      preferredTransports: ['HTTP+JSON']
    })
    const client = await new ClientFactory(options).createFromUrl(url)
    const message = (text: string, more: object = {}) =>
      ({ kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text }], ...more }) as const
    const waiting = (await client.sendMessage({
      message: message('wait'),
      configuration: { blocking: false }
    })) as Task03
    t.equal(waiting.status.state, 'submitted')
    await runtime.cancelTask({ id: waiting.id })
    const { id } = (await client.sendMessage({ message: message('hello') })) as Task03
    await t.rejects(client.getTask({ id: 'nobody' }), {
      name: 'TaskNotFoundError',
      message: 'Task nobody was not found.'
    })
    await t.rejects(client.cancelTask({ id }), { name: 'TaskNotCancelableError', message: /has ended \(completed\)/ })
    await t.rejects(client.sendMessage({ message: message('more', { taskId: id }) }), {
      name: 'UnsupportedOperationError'
    })
    await t.rejects(client.resubscribeTask({ id: 'nobody' }).next(), { name: 'TaskNotFoundError' })
  }
)

await t.test(
  'an unknown method is answered with the version of its request, and a method of 1.0 is unknown to an older one',
  async t => {
    const { url } = await serveBoth(t)
    const socket = await JsonSocket.open(t, url.replace('http', 'ws'), { headers: {} })
    for (const [name, version, told] of [
      ['tasks/nothing', '0.3', '0.3'],
      ['tasks/nothing', '', '0.3'],
      ['tasks/nothing', '1.0', '1.0'],
      ['SendMessage', '0.3.0', '0.3']
    ] as const) {
      const expected = { code: -32601, message: `There is no method "${name}" in A2A ${told}.` }
      t.match((await call03(url, name, {}, { 'a2a-version': version })).error, expected)
      socket.send(
        JSON.stringify({
          jsonrpc: '2.0',
          id: `${name} ${version}`,
          method: name,
          'a2a-service-parameters': { 'A2A-Version': version }
        })
      )
      t.match((await socket.next(`${name} ${version}`)).error, expected, 'also over WebSocket')
    }
  }
)

await t.test('the card lists both versions, 1.0 first, and has the form of 0.3 on request', async t => {
  const { url } = await serveBoth(t)
  const card = (await ask(new URL(AGENT_CARD_PATH, url), { headers: { 'a2a-version': '1.0' } })).json as {
    supportedInterfaces: { protocolVersion: string; protocolBinding: string }[]
  }
  t.strictSame(
    card.supportedInterfaces.map(({ protocolVersion }) => protocolVersion),
    ['1.0', '1.0', '1.0', '0.3', '0.3', '0.3']
  )
  const without = await fetch(new URL(AGENT_CARD_PATH, url)).then(response => response.json())
  t.match(
    without,
    {
      ...card,
      url,
      protocolVersion: '0.3.0',
      preferredTransport: 'JSONRPC',
      additionalInterfaces: [{ url, transport: 'JSONRPC' }, { transport: 'HTTP+JSON' }]
    },
    'a card without a version is that of both'
  )
  for (const [path, headers] of [
    [AGENT_CARD_PATH, { 'a2a-version': '0.3' }],
    [`${AGENT_CARD_PATH}?A2A-Version=0.3`, OLD],
    ['/.well-known/agent.json', {}]
  ] as const) {
    const asked = path.includes('?')
      ? ((await fetch(new URL(path, url)).then(response => response.json())) as object)
      : (await ask(new URL(path, url), { headers })).json
    t.match(asked, { name: 'Test', url, protocolVersion: /^0\.3/, preferredTransport: 'JSONRPC' }, path)
    t.notOk('supportedInterfaces' in asked)
  }
  t.equal((await ask(new URL('/.well-known/agent.json', url), { method: 'POST' })).status, 404)
})

await t.test(
  'cards of 0.3 list WebSocket only if that is asked for, and our own client finds it by the card of 1.0',
  async t => {
    const listed = async (options?: Card03Options) => {
      const { runtime } = start(t, { work: obedient, extendedCard: {} }, { authenticate: () => ({ id: 'Ada' }) })
      const { url, close } = await serve(runtime, { port: 0, dialects: [dialect03(runtime, options)] })
      t.teardown(close)
      const agent = await connect(url)
      t.teardown(() => agent.close())
      t.equal(agent.binding, 'WEBSOCKET')
      const cards = [
        await ask(new URL(AGENT_CARD_PATH, url), { headers: OLD }),
        await ask(new URL(AGENT_CARD_PATH, url), { headers: { 'a2a-version': '0.3' } }),
        await ask(`${url}v1/card`, { headers: OLD })
      ]
      return cards.map(({ json }) =>
        (json as { additionalInterfaces: { transport: string }[] }).additionalInterfaces.map(
          ({ transport }) => transport
        )
      )
    }
    const defined = ['JSONRPC', 'HTTP+JSON']
    t.strictSame(await listed(), [defined, defined, defined])
    const all = [WEBSOCKET_BINDING, ...defined]
    t.strictSame(await listed({ webSocketInCards: true }), [all, all, all])
    const { runtime } = start(t, { work: obedient })
    const sockets = await serve(runtime, { port: 0, dialects: [dialect03(runtime)], http: false })
    t.teardown(() => sockets.close())
    t.match(
      (await ask(new URL(AGENT_CARD_PATH, sockets.url.replace('ws', 'http')), { headers: { 'a2a-version': '0.3' } }))
        .json,
      { preferredTransport: WEBSOCKET_BINDING },
      'an agent without another binding has to list it'
    )
    t.throws(() => dialect03(runtime, { webSocketInCards: 1 } as never), {
      name: 'TypeError',
      message: /webSocketInCards/
    })
    t.throws(() => dialect03(runtime, { websocket: true } as never), { name: 'TypeError', message: /dialect03/ })
  }
)

await t.test('authentication and expiry apply to 0.3 as to 1.0', async t => {
  const authenticate = ({ headers }: { headers: Record<string, string | undefined> }) =>
    headers['authorization'] ? { id: headers['authorization'], expiresAtMs: clock.now() + 60_000 } : undefined
  const { url, clock, runtime } = await serveBoth(t, { authenticate })
  const ada = { ...OLD, authorization: 'Ada' }
  t.match((await ask(url, { body: '{}', headers: OLD })).status, 401)
  const { result } = await call03(url, 'message/send', { ...said('wait'), configuration: { blocking: false } }, ada)
  const { id } = result as { id: string }
  t.match((await call03(url, 'tasks/get', { id }, { ...OLD, authorization: 'Bob' })).error, { code: -32001 })
  await reaches(runtime, id, 'working', { principal: 'Ada' })
  const streams = [
    await OpenStream.open(t, url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Ada' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/resubscribe', params: { id } })
    }),
    await OpenStream.open(t, `${url}v1/tasks/${id}:subscribe`, { headers: { authorization: 'Ada' } }),
    await OpenStream.open(t, `${url}tasks/${id}:subscribe`, { headers: { authorization: 'Ada', 'a2a-version': '1.0' } })
  ]
  for (const stream of streams) t.ok(await stream.next())
  clock.increment(60_000)
  for (const stream of streams) {
    const last = []
    for (let event = await stream.next(); event; event = await stream.next()) if (event.data) last.push(event)
    t.match(JSON.stringify(last.at(-1)), /have expired/)
  }
})

await t.test('--legacy says what to install if the official SDK is missing', async t => {
  const { runtime } = start(t, { work: obedient })
  t.equal((await legacyDialects(runtime))[0]?.version, '0.3')
  await t.rejects(
    legacyDialects(runtime, {}, () => Promise.reject(new Error('Cannot find package'))),
    { message: /npm install @a2a-js\/sdk/ }
  )
})
