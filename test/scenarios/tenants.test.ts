import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { connect } from '../../adapters/client/connect.ts'
import { tenantIn } from '../../adapters/entry/interfaces.ts'
import { dialect03 } from '../../adapters/legacy/index.ts'
import { serve } from '../../adapters/serve/serve.ts'
import type { Authenticate } from '../../runtime/access/authentication.ts'
import type { TenantOptions } from '../../runtime/access/tenants.ts'
import type { RuntimeOptions } from '../../runtime/runtime-options.ts'
import { ask, rpc, serveAll, type Answer } from '../fixtures/servers/http-agent.ts'
import { open, rejection, say, start, taskIn, until } from '../fixtures/runtime/runtime-helpers.ts'
import { JsonSocket, obedient, type Reply } from '../fixtures/servers/served-agent.ts'
import type { TestClock } from '../fixtures/runtime/test-clock.ts'

const byName: Authenticate = ({ headers }) => (headers['x-name'] ? { id: headers['x-name'] } : undefined)
const anna = { 'x-name': 'anna' }
const bob = { 'x-name': 'bob' }
const tenants: TenantOptions = { blue: { members: ['anna'] }, 'team/two': {}, tasks: {}, red: {} }

function served(t: Test, options: Partial<RuntimeOptions> = {}) {
  return serveAll(t, { work: obedient }, { authenticate: byName, tenants, ...options })
}

const message = () => say('ask', {}, { returnImmediately: true })

/** An answer that a quota holds back. */
async function heldBack(clock: TestClock, asked: Promise<Answer>): Promise<Answer> {
  let answer: Answer | undefined
  void asked.then(got => (answer = got))
  return until(() => {
    clock.increment(50)
    return answer
  }, 'an answer that was held back')
}

await t.test('REST has a tenant in the path, JSON-RPC and WebSocket in parameters or path', async t => {
  const { url, runtime } = await served(t)
  const { id } = await open(runtime, 'ask', {}, { principal: 'anna', tenant: 'blue' })
  const ways: [string, (tenant: string, headers: Record<string, string>) => Promise<unknown>][] = [
    [
      'REST, path',
      async (tenant, headers) => (await ask(`${url}${encodeURIComponent(tenant)}/tasks/${id}`, { headers })).json
    ],
    [
      'REST, query',
      async (tenant, headers) => (await ask(`${url}tasks/${id}?tenant=${encodeURIComponent(tenant)}`, { headers })).json
    ],
    ['JSON-RPC, params', async (tenant, headers) => (await rpc(url, 'GetTask', { id, tenant }, headers)).json],
    [
      'JSON-RPC, path',
      async (tenant, headers) => (await rpc(`${url}${encodeURIComponent(tenant)}`, 'GetTask', { id }, headers)).json
    ],
    [
      'JSON-RPC, path with a slash, and params',
      async (tenant, headers) =>
        (await rpc(`${url}${encodeURIComponent(tenant)}/`, 'GetTask', { id, tenant }, headers)).json
    ],
    [
      'WebSocket, params',
      async (tenant, headers) =>
        (await JsonSocket.open(t, url, { headers: { ...headers, 'a2a-version': '1.0' } })).call('GetTask', {
          id,
          tenant
        })
    ],
    [
      'WebSocket, path',
      async (tenant, headers) =>
        (
          await JsonSocket.open(t, `${url}${encodeURIComponent(tenant)}?x=1`, {
            headers: { ...headers, 'a2a-version': '1.0' }
          })
        ).call('GetTask', { id })
    ]
  ]
  for (const [way, get] of ways) {
    t.match(JSON.stringify(await get('blue', anna)), `"id":"${id}"`, way)
    const foreign = JSON.stringify(await get('blue', bob))
    t.match(foreign, /TASK_NOT_FOUND/)
    for (const [tenant, who] of [
      ['pink', anna],
      ['pink', bob],
      ['team/two', anna]
    ] as const)
      t.equal(JSON.stringify(await get(tenant, who)), foreign, `${way}: ${tenant}`)
  }
})

await t.test('path and parameters have to agree, and the caller has to be allowed the tenant', async t => {
  const { url, commits } = await served(t)
  const socket = await JsonSocket.open(t, `${url}blue`, { headers: { ...anna, 'a2a-version': '1.0' } })
  const wrong = { error: { code: -32602, message: 'Invalid parameters: tenant must be the tenant of the URL' } }
  t.match(await socket.call('SendMessage', { ...message(), tenant: 'team/two' }), wrong)
  t.match((await rpc(`${url}blue`, 'SendMessage', { ...message(), tenant: 'team/two' }, anna)).json, wrong)
  const refused = 'Invalid parameters: tenant must be one that you may use here'
  for (const address of ['', 'blue', 'pink']) {
    t.match((await rpc(`${url}${address}`, 'SendMessage', message(), bob)).json, {
      error: { code: -32602, message: refused }
    })
    t.match(
      await JsonSocket.open(t, `${url}${address}`, { headers: { ...bob, 'a2a-version': '1.0' } }).then(socket =>
        socket.call('SendMessage', message())
      ),
      { error: { code: -32602, message: refused } }
    )
    t.match(
      await ask(`${url}${address && `${address}/`}message:send`, { body: JSON.stringify(message()), headers: bob }),
      { status: 400, json: { error: { message: refused } } }
    )
  }
  t.equal(commits(), 0)
})

await t.test('a path is a tenant only if tenants are configured and it is otherwise unused', async t => {
  const { url } = await served(t)
  t.match(await ask(`${url}tasks`, { headers: anna }), { status: 200, json: { totalSize: 0 } })
  t.equal((await ask(`${url}tasks`, { body: '{}', headers: anna })).status, 405, 'a route of REST takes precedence')
  t.equal((await ask(`${url}blue`, { headers: anna })).status, 404, 'there is no page of a tenant')
  t.equal((await rpc(`${url}%ff`, 'ListTasks', {}, anna)).status, 404)
  t.equal((await rpc(`${url}a/b`, 'ListTasks', {}, anna)).status, 404)
  t.equal((await rpc(`${url}blue`, 'ListTasks', {})).status, 401, 'the caller is authenticated before')
  const refusedAt = async (address: string) =>
    (await rejection(JsonSocket.open(t, address, { headers: { ...anna, 'a2a-version': '1.0' } }))).message
  t.match(await refusedAt(`${url}a/b`), /404/)
  t.match(await rejection(JsonSocket.open(t, `${url}blue`)), { message: /401/ })
  const plain = await serveAll(t, { work: obedient })
  t.match(await refusedAt(`${plain.url}blue`), /404/)
  t.equal((await rpc(`${plain.url}blue`, 'ListTasks', {})).status, 404)
  t.equal((await ask(`${plain.url}blue/.well-known/agent-card.json`)).status, 404)
  t.strictSame(['/blue', '/blue/', '/a%2Fb', '/', '', '/a/b', '/%'].map(tenantIn), [
    'blue',
    'blue',
    'a/b',
    undefined,
    undefined,
    undefined,
    undefined
  ])
})

await t.test('tenant paths leave the paths of other agents and the app on the server alone', async t => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const agents = await Promise.all(
    (
      [
        ['/', { tenants }],
        ['/green', { tenants }],
        ['/plain', {}]
      ] as const
    ).map(async ([path, options]) => {
      const { runtime } = start(t, { card: { name: path }, work: obedient }, { authenticate: byName, ...options })
      await open(runtime, 'ask', {}, { principal: 'anna', tenant: 'blue' })
      const served = await serve(runtime, { server, path })
      t.teardown(() => served.close())
      return { runtime, served }
    })
  )
  const base = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
  const list = async (path: string, params = {}) =>
    (await JsonSocket.open(t, `${base}${path}`, { headers: { ...anna, 'a2a-version': '1.0' } })).call(
      'ListTasks',
      params
    )
  for (const [path, params] of [
    ['/blue', {}],
    ['/green/blue', {}],
    ['/green', { tenant: 'blue' }],
    ['/plain', { tenant: 'blue' }]
  ] as const)
    t.match(await list(path, params), { result: { totalSize: 1 } }, path)
  t.match(await list('/green'), { result: { totalSize: 0 } }, 'the other agent, without a tenant')
  t.match(await rejection(list('/plain/blue')), { message: /404/ })
  await agents[1]?.served.close()
  t.match(await list('/green'), { result: { totalSize: 0 } }, "now it is a tenant's name")

  server.on('upgrade', (request, socket) => {
    if (request.url === '/blue') socket.end('HTTP/1.1 418 I am a teapot\r\n\r\n')
  })
  t.match(await rejection(list('/blue')), { message: /418/ }, 'an app that handles upgrades has all other paths')
  t.match(await list('/', { tenant: 'blue' }), { result: { totalSize: 1 } })
})

await t.test("the card lists every tenant, and below a tenant's path only that one", async t => {
  const { url } = await served(t, { tenants: { ...tenants, blue: { members: ['anna'], listed: false } } })
  const listedAt = async (path: string) =>
    ((await ask(`${url}${path}.well-known/agent-card.json`)).json['supportedInterfaces'] as { tenant?: string }[]).map(
      ({ tenant }) => tenant
    )
  t.strictSame(await listedAt(''), ['team/two', 'team/two', 'team/two', 'tasks', 'tasks', 'tasks', 'red', 'red', 'red'])
  for (const tenant of ['blue', 'pink']) t.strictSame(await listedAt(`${tenant}/`), [tenant, tenant, tenant])
  t.equal((await ask(`${url}blue/.well-known/agent-card.json`, { method: 'DELETE' })).status, 405)
  const { text } = await ask(url)
  t.match(text, 'A2A 1.0, tenant team/two\n')
  t.match(text, `npx taskchart send ${url.replace('http', 'ws')}team%2Ftwo `, 'the page says what to paste')
})

await t.test('the client sends the tenant of the card or of its address, over every binding', async t => {
  const { url, runtime } = await served(t)
  const { id } = await open(runtime, 'ask', {}, { principal: 'anna', tenant: 'blue' })
  for (const [address, bindings] of [
    [`${url}blue`, ['WEBSOCKET']],
    [`${url}blue`, ['JSONRPC']],
    [`${url}blue`, ['HTTP+JSON']],
    [`${url.replace('http', 'ws')}blue`, undefined]
  ] as const) {
    const client = await connect(address, { headers: anna, ...(bindings && { bindings }) })
    t.equal((await client.getTask({ id })).id, id, `${address} ${String(bindings)}`)
    await client.close()
    const stranger = await connect(address, { headers: bob, ...(bindings && { bindings }) })
    t.match(await rejection(stranger.getTask({ id })), { code: 'TaskNotFound' })
    t.match(await rejection(stranger.sendMessage(say('x'))), { code: 'InvalidParams' })
    await stranger.close()
  }
})

await t.test('requests of 0.3, which name no tenant, have it in their path', async t => {
  const started = start(t, { work: obedient }, { tenants: { blue: {}, green: {} } })
  const { serve } = await import('../../adapters/serve/serve.ts')
  const dialects = [dialect03(started.runtime)]
  const { url, close } = await serve(started.runtime, { port: 0, dialects })
  t.teardown(close)
  const params = {
    message: { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'ask' }] },
    configuration: { blocking: false }
  }
  const sent = await rpc(`${url}blue`, 'message/send', params, { 'a2a-version': '0.3' })
  const { id } = sent.json['result'] as { id: string }
  t.match(await started.runtime.getTask({ id, tenant: 'blue' }), { id })
  t.match(await rejection(started.runtime.getTask({ id, tenant: 'green' })), { code: 'TaskNotFound' })
  t.match((await rpc(url, 'message/send', params, { 'a2a-version': '0.3' })).json, { error: { code: -32602 } })
  const card = await ask(`${url}.well-known/agent-card.json`, { headers: { 'a2a-version': '0.3' } })
  t.match(card.json, {
    url: `${url}blue`,
    additionalInterfaces: [
      { url: `${url}blue`, transport: 'JSONRPC' },
      { url: `${url}green`, transport: 'JSONRPC' }
    ]
  })
})

await t.test('a quota', async t => {
  const quota = { perPrincipal: { requestsPerMinute: 2 } }

  await t.test('gives a delayed 429 with Retry-After over HTTP, and RetryInfo in JSON', async t => {
    const { url, clock, commits } = await served(t, { limits: quota })
    for (let count = 0; count < 2; count += 1) t.equal((await ask(`${url}blue/tasks`, { headers: anna })).status, 200)
    const details = [
      { reason: 'RATE_LIMITED', metadata: { quota: 'perPrincipal.requestsPerMinute', limit: '2' } },
      { '@type': /RetryInfo$/, retryDelay: /^(30|29\.\d+)s$/ }
    ]
    const message = 'You have reached the limit of 2 requests per minute. Send it again later.'
    const byRest = await heldBack(
      clock,
      ask(`${url}blue/message:send`, { body: JSON.stringify(say('x')), headers: anna })
    )
    t.match(byRest, { status: 429, json: { error: { code: 429, status: 'RESOURCE_EXHAUSTED', message, details } } })
    t.equal(byRest.headers.get('retry-after'), '30')
    const byRpc = await heldBack(clock, rpc(`${url}blue`, 'SendMessage', say('x'), anna))
    t.match(byRpc, {
      status: 429,
      json: { error: { code: -31429, message, data: [details[0], { '@type': /RetryInfo$/ }] } }
    })
    t.match(Number(byRpc.headers.get('retry-after')), 30)
    t.equal(commits(), 0)
    t.equal((await ask(`${url}tasks`, { headers: bob })).status, 200, 'others are not affected')
    clock.increment(60_000)
    t.equal((await ask(`${url}blue/tasks`, { headers: anna })).status, 200)
  })

  await t.test('is reported over WebSocket at once, on a connection that stays open', async t => {
    const { url, clock } = await served(t, { limits: quota })
    const socket = await JsonSocket.open(t, url, { headers: { ...anna, 'a2a-version': '1.0' } })
    for (let count = 0; count < 2; count += 1)
      t.match(await socket.call('ListTasks', { tenant: 'blue' }), { result: {} })
    t.match(await socket.call('ListTasks', { tenant: 'blue' }), {
      error: { code: -31429, data: [{ metadata: { quota: 'perPrincipal.requestsPerMinute' } }, { retryDelay: '30s' }] }
    })
    t.match(await socket.stream(socket.request('SendStreamingMessage', { ...say('x'), tenant: 'blue' })), [
      { error: { code: -31429 } }
    ])
    clock.increment(30_000)
    t.match(await socket.call('ListTasks', { tenant: 'blue' }), { result: {} })
  })

  await t.test('pauses a WebSocket client that continues, for about a second', async t => {
    const { url, clock } = await served(t, { limits: quota })
    const socket = await JsonSocket.open(t, url, { headers: { ...anna, 'a2a-version': '1.0' } })
    for (let count = 0; count < 2; count += 1) await socket.call('ListTasks', { tenant: 'blue' })
    for (let count = 0; count < 16; count += 1)
      t.match(await socket.call('ListTasks', { tenant: 'blue' }), { error: { code: -31429 } })
    const late = socket.call('ListTasks', { tenant: 'blue' })
    let answered: Reply | undefined
    void late.then(reply => (answered = reply))
    for (const _ of [1, 2, 3]) t.equal((await ask(`${url}tasks`, { headers: { 'x-name': `other ${_}` } })).status, 200)
    t.equal(answered, undefined)
    clock.increment(499)
    t.equal((await ask(`${url}tasks`, { headers: { 'x-name': 'other' } })).status, 200)
    t.equal(answered, undefined)
    clock.increment(1001)
    t.match(await late, { error: { code: -31429 } })
    const leaving = await JsonSocket.open(t, url, { headers: { ...anna, 'a2a-version': '1.0' } })
    for (let count = 0; count < 17; count += 1) leaving.request('ListTasks', { tenant: 'blue' })
    leaving.socket.terminate()
    await leaving.closed()
  })

  await t.test('of bytes counts the bytes on the wire, over every binding', async t => {
    const { url, clock } = await served(t, { limits: { perPrincipal: { bytesPerMinute: 1000 } } })
    const body = JSON.stringify({ ...say('x'.repeat(1100)), configuration: { returnImmediately: true } })
    const socket = await JsonSocket.open(t, url, { headers: { 'x-name': 'cleo', 'a2a-version': '1.0' } })
    t.match(await socket.call('SendMessage', { ...JSON.parse(body), tenant: 'red' }), { result: {} })
    t.match(await socket.call('ListTasks', { tenant: 'red' }), {
      error: { code: -31429, data: [{ metadata: { quota: 'perPrincipal.bytesPerMinute' } }, {}] }
    })
    t.equal((await rpc(`${url}blue`, 'SendMessage', JSON.parse(body), anna)).status, 200)
    t.equal((await heldBack(clock, ask(`${url}blue/tasks`, { headers: anna }))).status, 429)
    t.equal((await ask(`${url}red/message:send`, { body, headers: bob })).status, 200)
    t.equal((await heldBack(clock, ask(`${url}red/tasks`, { headers: bob }))).status, 429)
  })

  await t.test('of open tasks gives RateLimited, which clients do not retry by themselves', async t => {
    const { url, clock } = await served(t, { limits: { perPrincipal: { openTasks: 1 } } })
    const client = await connect(`${url.replace('http', 'ws')}blue`, { headers: anna })
    const { id } = taskIn(await client.sendMessage(message()))
    t.match(await rejection(client.sendMessage(message())), {
      code: 'RateLimited',
      retryAfterMs: 1000,
      metadata: { quota: 'perPrincipal.openTasks', limit: '1' }
    })
    await client.cancelTask({ id })
    t.ok(await client.sendMessage(message()))
    await client.close()
    clock.increment(1)
  })
})
