import { getEventListeners } from 'node:events'
import t, { type Test } from 'tap'
import { apiKey } from '../../../adapters/auth/index.ts'
import { mcpHandler, type McpOptions } from '../../../adapters/mcp/index.ts'
import { inspect } from '../../../adapters/inspector/index.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import { createRuntime, defineAgent, type Authenticate, type RuntimeOptions } from '../../../runtime/index.ts'
import { answerOf, mcpPeer, openedTask, questionIn, type McpAnswer } from '../../fixtures/peers/mcp-peer.ts'
import { rejection, start, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { servedMcp, sized } from '../../fixtures/servers/mcp-agent.ts'

const ADDRESS = 'http://127.0.0.1:4242/mcp'

type Init = Omit<RequestInit, 'headers'> & { readonly headers?: Readonly<Record<string, string>> }

/** Answers any request of a handler. */
type Ask = (init?: Init, url?: string) => Promise<McpAnswer>

const HEADERS = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }

function asked(t: Test, options: Partial<RuntimeOptions> = {}, settings: McpOptions = {}): Ask {
  const card = { name: 'Barista', documentationUrl: 'https://docs.example/' }
  const { runtime } = start(t, { card, work: sized }, options)
  const handler = mcpHandler(runtime, settings)
  return async (init, url = ADDRESS) =>
    answerOf(await handler(new Request(url, { method: 'POST', ...init, headers: { ...HEADERS, ...init?.headers } })))
}

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'old', version: '1' } }
}

const CALL = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'Barista', arguments: { message: 'x' } } }

await t.test('older clients begin with initialize on the same path, and get no tasks', async t => {
  const ask = asked(t)
  for (const protocolVersion of ['2025-11-25', '2025-06-18']) {
    const params = { ...INITIALIZE.params, protocolVersion }
    const begun = await ask({ body: JSON.stringify({ ...INITIALIZE, params }) })
    t.match(begun, { status: 200, messages: [{ result: { protocolVersion, serverInfo: { name: 'Barista' } } }] })
    t.notOk('extensions' in (begun.result['capabilities'] as object))
  }
  t.equal((await ask({ body: '{"jsonrpc":"2.0","method":"notifications/initialized"}' })).status, 202)
  t.match(await ask({ body: JSON.stringify(CALL) }), {
    messages: [{ result: { content: [{ text: 'Which size?' }, { text: /Call task_followup/ }] } }]
  })
  t.match(
    await ask({ body: JSON.stringify({ jsonrpc: '2.0', id: 3, method: 'tasks/get', params: { taskId: 'x' } }) }),
    {
      messages: [{ error: { code: -32601 } }]
    }
  )
  t.equal((await ask({ body: '{"jsonrpc":"2.0","id":4,"result":{}}' })).status, 202, 'a response is ignored')
})

await t.test('a request from another host, another page or with a token in its URL is refused', async t => {
  const ask = asked(t)
  const body = JSON.stringify(INITIALIZE)
  t.match(await ask({ body }, 'http://evil.example/mcp'), { status: 421 })
  t.match(await ask({ body, headers: { Origin: 'https://evil.example' } }), { status: 403 })
  t.match(await ask({ body }, `${ADDRESS}?access_token=x`), { status: 400 })
  t.match(await ask({ body }, 'http://127.0.0.1:4242/other'), { status: 404, text: /MCP is at \/mcp/ })
  const own = await ask({ body, headers: { Origin: 'http://127.0.0.1:4242' } })
  t.equal(own.headers.get('access-control-allow-origin'), 'http://127.0.0.1:4242')
  t.match(await ask({ method: 'OPTIONS', headers: { Origin: 'http://127.0.0.1:4242' } }), { status: 204 })
  for (const method of ['GET', 'DELETE']) {
    const refused = await ask({ method })
    t.equal(refused.status, 405)
    t.equal(refused.headers.get('allow'), 'POST, OPTIONS')
  }
})

await t.test('an answer leaves no listener on the connection, however it ends', async t => {
  const { runtime } = start(t, { card: { name: 'Barista' }, work: sized })
  const handler = mcpHandler(runtime)
  const post = (body: object) => new Request(ADDRESS, { method: 'POST', headers: HEADERS, body: JSON.stringify(body) })
  const listenersOf = ({ signal }: Request) => getEventListeners(signal, 'abort').length
  const none = listenersOf(post({}))
  const read = post(INITIALIZE)
  const answer = await handler(read)
  t.equal(answer.headers.get('content-type'), 'text/event-stream')
  await answer.text()
  await until(() => listenersOf(read) === none)
  const left = post(INITIALIZE)
  await (await handler(left)).body?.cancel()
  await until(() => listenersOf(left) === none)
  const ping = post({ jsonrpc: '2.0', method: 'notifications/initialized' })
  await handler(ping)
  t.equal(listenersOf(ping), none, 'no stream')
  const broken = post(INITIALIZE)
  const { headers } = broken
  const lines = () => {
    throw new Error('broken')
  }
  Object.defineProperty(broken, 'headers', {
    value: { get: headers.get.bind(headers), has: headers.has.bind(headers), [Symbol.iterator]: lines }
  })
  t.match(await rejection(handler(broken)), { message: 'broken' })
  t.equal(listenersOf(broken), none, 'a failure')
})

await t.test(
  'a request whose client has disconnected before its turn does nothing, and counts for its quota',
  async t => {
    const limits = { perPrincipal: { requestsPerMinute: 3 } }
    const { runtime, clock, log } = start(t, { card: { name: 'Barista' }, work: sized }, { limits })
    const handler = mcpHandler(runtime)
    const params = { name: 'Barista', arguments: { message: 'x' } }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
    const statuses: number[] = []
    const ticking = setInterval(() => clock.increment(50), 1)
    while (statuses.length < 12 && statuses.at(-1) !== 429) {
      const gone = new AbortController()
      const request = new Request(ADDRESS, { method: 'POST', headers: HEADERS, body, signal: gone.signal })
      const answer = handler(request)
      gone.abort()
      statuses.push((await answer).status)
    }
    clearInterval(ticking)
    t.strictSame([...new Set(statuses)], [202, 429])
    clock.increment(60_000)
    t.strictSame((await runtime.listTasks({})).tasks, [])
    t.strictSame(log, [])
  }
)

await t.test('a malformed request is answered with what is wrong, and nothing happens', async t => {
  const ask = asked(t, { limits: { messageBytes: 10_000 } })
  const deep = `{"jsonrpc":"2.0","id":1,"method":"x","params":${'{"a":'.repeat(80)}1${'}'.repeat(80)}}`
  const bad: [what: string, init: Init, status: number, code: number | undefined][] = [
    ['no JSON', { body: '{bad' }, 400, -32700],
    ['nothing', { body: '' }, 400, -32700],
    ['bad UTF-8', { body: new Uint8Array([0x22, 0xff, 0x22]) }, 400, -32700],
    ['a batch', { body: '[]' }, 400, -32600],
    ['no object', { body: '5' }, 400, -32600],
    ['another version', { body: '{"jsonrpc":"1.0","id":1,"method":"x"}' }, 400, -32600],
    ['no method', { body: '{"jsonrpc":"2.0","id":1}' }, 400, -32600],
    ['an id that is null', { body: '{"jsonrpc":"2.0","id":null,"method":"x"}' }, 400, -32600],
    ['parameters as a list', { body: '{"jsonrpc":"2.0","id":1,"method":"x","params":[]}' }, 400, -32602],
    ['too deep', { body: deep }, 400, -32602],
    ['a forbidden name', { body: '{"jsonrpc":"2.0","id":1,"method":"x","params":{"__proto__":{}}}' }, 400, -32602],
    ['too large', { body: JSON.stringify('x'.repeat(20_000)) }, 413, -31413],
    ['another type', { body: '{}', headers: { 'Content-Type': 'text/plain' } }, 415, undefined],
    ['a coding', { body: '{}', headers: { 'Content-Encoding': 'gzip' } }, 415, undefined]
  ]
  for (const [what, init, status, code] of bad) {
    const answer = await ask(init)
    t.match(answer, { status, ...(code !== undefined && { error: { code } }) }, what)
    t.notMatch(answer.text, /node_modules|\.ts:\d|-32005/)
  }
})

await t.test('envelope, headers and version of 2026-07-28 are checked', async t => {
  const { as } = servedMcp(t, { work: sized })
  t.match(await as({ headers: { 'Mcp-Method': 'tools/list' } }).rpc('tools/call', { name: 'coffee' }), {
    status: 400,
    error: { code: -32020 }
  })
  t.match(await as({ headers: { 'MCP-Protocol-Version': '2027-01-01' } }).rpc('tools/list'), { status: 400 })
  t.match(await as({ meta: { 'io.modelcontextprotocol/clientCapabilities': undefined } }).rpc('tools/list'), {
    status: 400,
    error: { code: -32602 }
  })
  const listed = (await as({}).rpc('tools/list')).result
  t.match(listed, { ttlMs: 60_000, cacheScope: 'private' })
})

const bearer: Authenticate = apiKey({ keys: { anna: 'a'.repeat(16), ben: 'b'.repeat(16) }, header: 'authorization' })
const tokenOf = (letter: string) => ({ Authorization: `Bearer ${letter.repeat(16)}` })

await t.test('a caller without credentials hears where to get a token', async t => {
  const ask = asked(t, { authenticate: bearer }, { scopes: ['tasks'], authorizationServers: ['https://login.example'] })
  const refused = await ask({ body: JSON.stringify(INITIALIZE) })
  t.match(refused, { status: 401, error: { code: -31401 } })
  const place = 'http://127.0.0.1:4242/.well-known/oauth-protected-resource/mcp'
  t.equal(refused.headers.get('www-authenticate'), `Bearer resource_metadata="${place}", scope="tasks"`)
  const described = await ask({ method: 'GET' }, place)
  t.equal(described.status, 200)
  t.strictSame(JSON.parse(described.text), {
    resource: ADDRESS,
    authorization_servers: ['https://login.example'],
    scopes_supported: ['tasks'],
    bearer_methods_supported: ['header'],
    resource_name: 'Barista'
  })
  t.match(await ask({ body: '{}' }, place), { status: 405 })
  t.match(await ask({ body: JSON.stringify(INITIALIZE), headers: tokenOf('a') }), { status: 200 })
})

await t.test('the metadata comes from the schemes of the card, and from the URL that clients use', async t => {
  const flows = { clientCredentials: { tokenUrl: 'https://a.example/token', scopes: { read: '', write: '' } } }
  const authenticate: Authenticate = Object.assign(() => undefined, {
    challenge: 'ApiKey, Bearer realm="x"',
    securitySchemes: {
      openId: {
        openIdConnectSecurityScheme: { openIdConnectUrl: 'https://b.example/.well-known/openid-configuration' }
      },
      oauth: {
        oauth2SecurityScheme: { flows, oauth2MetadataUrl: 'https://a.example/.well-known/oauth-authorization-server' }
      },
      bare: { oauth2SecurityScheme: { flows: { password: { tokenUrl: 'https://c.example/token', scopes: {} } } } },
      key: { apiKeySecurityScheme: { location: 'header', name: 'x-key' } }
    }
  })
  const ask = asked(t, {
    authenticate,
    publicUrl: 'https://agent.example/',
    tenants: { blue: {} },
    hosts: ['127.0.0.1']
  })
  const refused = await ask({ body: '{}' })
  t.equal(
    refused.headers.get('www-authenticate'),
    'ApiKey, Bearer resource_metadata="https://agent.example/.well-known/oauth-protected-resource/mcp", realm="x"'
  )
  t.match(
    JSON.parse((await ask({ method: 'GET' }, 'http://127.0.0.1:4242/.well-known/oauth-protected-resource/mcp')).text),
    {
      resource: 'https://agent.example/mcp',
      authorization_servers: ['https://b.example', 'https://a.example'],
      scopes_supported: ['read', 'write']
    }
  )
  const blue = await ask({ method: 'GET' }, 'http://127.0.0.1:4242/.well-known/oauth-protected-resource/blue/mcp')
  t.match(JSON.parse(blue.text), { resource: 'https://agent.example/blue/mcp' })
})

await t.test('the metadata is for the URL that clients use, wherever a proxy puts the endpoint', async t => {
  const wellKnown = '/.well-known/oauth-protected-resource'
  for (const [publicUrl, settings, resource, path = '/mcp'] of [
    ['https://a.example/', { path: '/tools/mcp' }, 'https://a.example/tools/mcp', '/tools/mcp'],
    ['https://a.example', { path: '/tools/mcp/' }, 'https://a.example/tools/mcp/', '/tools/mcp'],
    ['https://a.example/agent/', { path: '/agent/mcp' }, 'https://a.example/agent/mcp', '/agent/mcp'],
    ['https://a.example/agent', {}, 'https://a.example/agent/mcp'],
    ['https://a.example/mcp', {}, 'https://a.example/mcp/mcp'],
    ['wss://a.example/', {}, 'https://a.example/mcp'],
    [undefined, { url: 'https://a.example/x/y' }, 'https://a.example/x/y'],
    ['https://b.example/', { url: 'https://a.example' }, 'https://a.example/']
  ] as const) {
    const options = { authenticate: bearer, hosts: ['127.0.0.1'], ...(publicUrl !== undefined && { publicUrl }) }
    const ask = asked(t, options, settings)
    const { origin, pathname } = new URL(resource)
    const place = `${wellKnown}${pathname}`
    for (const at of [path, `${path}/`]) {
      const refused = await ask({ body: '{}' }, `http://127.0.0.1:4242${at}`)
      t.equal(refused.headers.get('www-authenticate'), `Bearer resource_metadata="${origin}${place}"`)
    }
    for (const at of [place, `${wellKnown}${path}`])
      t.match(JSON.parse((await ask({ method: 'GET' }, `http://127.0.0.1:4242${at}`)).text), { resource })
    t.match(await ask({ method: 'GET' }, `http://127.0.0.1:4242${wellKnown}/elsewhere/mcp`), { status: 404 })
  }
})

await t.test('each tenant has metadata of its own, at the URL that its clients use', async t => {
  const options = { authenticate: bearer, hosts: ['127.0.0.1'], tenants: { '': {}, blue: {} } }
  const urlOf = async (publicUrl: string, settings: McpOptions, place: string) => {
    const ask = asked(t, { ...options, publicUrl }, settings)
    const url = `http://127.0.0.1:4242/.well-known/oauth-protected-resource${place}`
    return (JSON.parse((await ask({ method: 'GET' }, url)).text) as { resource: string }).resource
  }
  const path = '/tools/mcp'
  t.equal(await urlOf('https://a.example/', { path }, '/tools/blue/mcp'), 'https://a.example/tools/blue/mcp')
  t.equal(await urlOf('https://a.example/agent', {}, '/agent/blue/mcp'), 'https://a.example/agent/blue/mcp')
  t.equal(await urlOf('https://a.example/agent', {}, '/blue/mcp'), 'https://a.example/agent/blue/mcp')
  const url = 'https://a.example/x/y'
  t.equal(await urlOf('https://b.example/', { url }, '/x/blue/mcp'), 'https://a.example/x/blue/mcp')
  t.equal(await urlOf('https://b.example/', { url: 'https://a.example' }, '/blue/mcp'), 'https://a.example/blue/mcp')
})

await t.test('an agent that takes no bearer tokens, or does not know its URL, has no metadata', async t => {
  const place = 'http://127.0.0.1:4242/.well-known/oauth-protected-resource/mcp'
  t.match(await asked(t)({ method: 'GET' }, place), { status: 404 })
  const keys = asked(t, { authenticate: apiKey({ keys: { anna: 'a'.repeat(16) } }) })
  t.match(await keys({ method: 'GET' }, place), { status: 404 })
  t.equal((await keys({ body: '{}' })).headers.get('www-authenticate'), 'ApiKey header="x-api-key"')
  const lost = asked(t, { authenticate: bearer })
  const elsewhere = 'http://agent.example/.well-known/oauth-protected-resource/mcp'
  t.match(await lost({ method: 'GET' }, elsewhere), { status: 421 })
  t.equal((await lost({ body: '{}' }, 'http://agent.example/mcp')).headers.get('www-authenticate'), 'Bearer')
})

await t.test("another principal's task is byte for byte an unknown one", async t => {
  const { as } = servedMcp(t, { work: sized }, { authenticate: bearer })
  const anna = as({ tasks: true, form: true, headers: tokenOf('a') })
  const ben = as({ tasks: true, form: true, headers: tokenOf('b') })
  const taskId = openedTask(await anna.call('coffee'))
  const bare = (text: string, id: string) => text.replace(/"id":\d+/, '"id":0').replaceAll(id, 'ID')
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    const more = { inputResponses: {} }
    const foreign = await ben.rpc(method, { taskId, ...more })
    const unknown = await ben.rpc(method, { taskId: 'nothing', ...more })
    t.equal(bare(foreign.text, taskId), bare(unknown.text, 'nothing'))
  }
  const uri = (id: string) => `taskchart://tasks/${id}/artifacts/x`
  t.equal(
    bare((await ben.rpc('resources/read', { uri: uri(taskId) })).text, taskId),
    bare((await ben.rpc('resources/read', { uri: uri('nothing') })).text, 'nothing')
  )
  const [foreign, unknown] = [
    await ben.call('task_followup', { taskId }),
    await ben.call('task_followup', { taskId: 'nothing' })
  ]
  t.strictSame(foreign.result, unknown.result)
  t.match((await anna.rpc('tasks/get', { taskId })).result, { taskId })
})

await t.test('requests count for the quotas of their caller, whatever they ask', async t => {
  const limits = { perPrincipal: { requestsPerMinute: 3 } }
  const ways: ((ask: Ask, peer: ReturnType<typeof mcpPeer>) => Promise<McpAnswer>)[] = [
    (_, peer) => peer.rpc('tools/list'),
    (_, peer) => peer.rpc('tasks/get', { taskId: 'x' }),
    (_, peer) => peer.call('nothing'),
    (_, peer) => peer.rpc('tasks/update', { taskId: 'x' }),
    (_, peer) => peer.rpc('tasks/cancel'),
    (_, peer) => peer.rpc('tools/call', { name: 5 }),
    (_, peer) => peer.rpc('resources/read', { uri: 'x' }),
    ask =>
      ask({
        body: JSON.stringify({ ...INITIALIZE, method: 'tasks/get', params: { taskId: 'x' } }),
        headers: tokenOf('a')
      }),
    ask => ask({ body: JSON.stringify(CALL), headers: { ...tokenOf('a'), 'MCP-Protocol-Version': '2026-07-28' } }),
    ask => ask({ body: JSON.stringify(CALL), headers: { ...tokenOf('a'), Accept: 'text/html' } }),
    ask => ask({ body: JSON.stringify(CALL), headers: { ...tokenOf('a'), 'Content-Type': 'application/a2a+json' } }),
    ask => ask({ body: '{bad', headers: tokenOf('a') }),
    ask => ask({ body: '{}', headers: { ...tokenOf('a'), 'Content-Type': 'text/plain' } }),
    ask => ask({ body: '{"jsonrpc":"2.0","method":"notifications/initialized"}', headers: tokenOf('a') })
  ]
  for (const way of ways) {
    const { runtime, clock } = start(t, { card: { name: 'Barista' }, work: sized }, { authenticate: bearer, limits })
    const handler = mcpHandler(runtime)
    const peer = mcpPeer(handler, { tasks: true, headers: tokenOf('a') })
    const ask: Ask = async init =>
      answerOf(
        await handler(new Request(ADDRESS, { method: 'POST', ...init, headers: { ...HEADERS, ...init?.headers } }))
      )
    let last: McpAnswer | undefined
    const ticking = setInterval(() => clock.increment(50), 1)
    for (let i = 0; i < 12 && last?.status !== 429; i += 1) last = await way(ask, peer)
    clearInterval(ticking)
    t.match(last, { status: 429, error: { code: -31429 } }, String(way))
    t.ok(Number(last?.headers.get('retry-after')) > 0)
  }
})

await t.test('a tenant has a path of its own, and its tasks', async t => {
  const { runtime } = start(t, { card: { name: 'Barista' }, work: sized }, { tenants: { blue: {}, red: {} } })
  const handler = mcpHandler(runtime)
  const at = (path: string) => mcpPeer(handler, { tasks: true, form: true, address: `http://127.0.0.1:4242${path}` })
  const taskId = openedTask(await at('/blue/mcp').call('Barista'))
  t.match((await at('/blue/mcp').rpc('tasks/get', { taskId })).result, { taskId })
  t.match((await at('/red/mcp').rpc('tasks/get', { taskId })).error, { code: -32602 })
  t.match(await at('/blue/red/mcp').rpc('tools/list'), { status: 404 })
  t.match((await at('/mcp').call('Barista')).result, { isError: true }, 'there is no tenant without a name')
})

await t.test('serve has MCP beside the other bindings, below the path of the agent', async t => {
  const runtime = createRuntime({
    agent: defineAgent({ card: { name: 'Barista' }, work: sized }),
    tenants: { '': {}, blue: {} }
  })
  const inspector = inspect()
  const served = await serve(runtime, { port: 0, path: '/agent', mcp: { waitMs: 1000 }, inspector })
  t.teardown(async () => {
    await served.close()
    await runtime.close()
  })
  t.equal(served.mcpUrl, `${served.url}/mcp`)
  for (const url of [served.mcpUrl ?? '', `${served.url}/blue/mcp`]) {
    const peer = mcpPeer(request => fetch(request as Request), { address: url, form: true })
    const asked = await peer.call('Barista')
    const { key } = questionIn(asked)
    const done = await peer.call('Barista', undefined, {
      requestState: asked.result['requestState'],
      inputResponses: { [key]: { action: 'accept', content: { size: 'small' } } }
    })
    t.match(done.result, { content: [{ text: 'One small coffee.' }, {}] })
  }
  t.match(await (await fetch(`${served.url}/.well-known/agent-card.json`)).json(), { name: 'Barista' })
})

await t.test('the extended card is for callers that have authenticated', async t => {
  const skill = (id: string) => ({ id, name: id, description: '', tags: [] })
  const { as } = servedMcp(
    t,
    {
      work: sized,
      extendedCard: ({ principal }) => (principal === 'anna' ? { skills: [skill('coffee'), skill('tea')] } : undefined)
    },
    { authenticate: bearer }
  )
  const toolsOf = async (letter: string) =>
    ((await as({ headers: tokenOf(letter) }).rpc('tools/list')).result['tools'] as { name: string }[]).map(
      ({ name }) => name
    )
  t.strictSame(await toolsOf('a'), ['coffee', 'tea', 'task_followup'])
  t.strictSame(await toolsOf('b'), ['coffee', 'task_followup'])
})

await t.test('options are checked at once', async t => {
  const { runtime } = start(t, { work: sized })
  for (const [options, message] of [
    [{ waitMS: 5 }, /mcpHandler has no waitMS\. Is waitMs meant\?/],
    [{ waitMs: -1 }, /waitMs/],
    [{ closed: 'maybe' }, /closed/],
    [{ declined: 'no' }, /declined/],
    [{ url: 5 }, /url/],
    [{ url: 'agent.example' }, /url/],
    [{ url: 'https://' }, /a URL such as 'https:\/\/agent\.example\/mcp'/],
    [5, /mcpHandler takes options such as/]
  ] as const)
    t.throws(() => mcpHandler(runtime, options as never), { name: 'TypeError', message })
  const { runtime: nowhere } = start(t, { work: sized }, { publicUrl: 'agent.example' })
  t.throws(() => mcpHandler(nowhere), {
    name: 'TypeError',
    message: 'mcpHandler needs a publicUrl such as \'https://agent.example/\', not "agent.example".'
  })
  t.match(await rejection(serve(runtime, { mcp: 5 as never })), { message: /mcp/ })
  t.match(await rejection(serve(runtime, { mcp: { waitMs: 'x' } as never, port: 0 })), { message: /waitMs/ })
})
