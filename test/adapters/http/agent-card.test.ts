import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, IncomingMessage, request } from 'node:http'
import { Socket, type AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import express from 'express'
import t from 'tap'
import { connect } from '../../../adapters/client/connect.ts'
import { isLoopback, targetOf } from '../../../adapters/entry/admission.ts'
import { pageOf } from '../../../adapters/http/agent-card.ts'
import { Versions } from '../../../adapters/json-rpc/dispatch.ts'
import { dialect03 } from '../../../adapters/legacy/index.ts'
import { cardHandler, type Handler, httpHandler, serve as serveRuntime } from '../../../adapters/serve/serve.ts'
import { readHandshake } from '../../../adapters/websocket/handshake.ts'
import { AgentCardSchema } from '../../../machines/protocol/card.ts'
import { decode } from '../../../machines/protocol/codec/decode.ts'
import { AGENT_CARD_PATH, RELIABILITY_EXTENSION, WEBSOCKET_BINDING } from '../../../machines/protocol/uris.ts'
import type { Authenticate } from '../../../runtime/access/authentication.ts'
import { namedHosts } from '../../../runtime/primitives/authority.ts'
import { echo } from '../../fixtures/runtime/agents.ts'
import { RawSocket } from '../../fixtures/servers/raw-socket.ts'
import { start } from '../../fixtures/runtime/runtime-helpers.ts'
import { serve } from '../../fixtures/servers/served-agent.ts'

const card = {
  name: 'Painter',
  description: 'Paints boats.',
  version: '2.0.0',
  skills: [{ id: 'paint', name: 'Paint', description: 'Paints a boat.', tags: ['boats'], examples: ['a red boat'] }]
}

/** Asks for a path under a Host of the test's own. */
async function get(
  url: string,
  path: string,
  { method = 'GET', headers = {} }: { method?: string; headers?: Record<string, string> } = {}
) {
  const { hostname, port, host } = new URL(url)
  const asked = request({
    hostname,
    port,
    path,
    method,
    setHost: false,
    agent: false,
    headers: { host, ...headers }
  }).end()
  const [response]: IncomingMessage[] = await once(asked, 'response')
  if (!response) throw new Error('An answer was expected')
  return { status: response.statusCode, headers: response.headers, body: await text(response) }
}

await t.test("the card has the author's fields, its interfaces and its capabilities", async t => {
  const { url } = await serve(t, { card, work: echo })
  const { status, headers, body } = await get(url, AGENT_CARD_PATH)
  t.equal(status, 200)
  t.equal(headers['content-type'], 'application/json')
  t.strictSame(JSON.parse(body), {
    ...card,
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    supportedInterfaces: [{ url, protocolBinding: WEBSOCKET_BINDING, protocolVersion: '1.0' }],
    capabilities: {
      streaming: true,
      pushNotifications: false,
      extendedAgentCard: false,
      extensions: [{ uri: RELIABILITY_EXTENSION, description: JSON.parse(body).capabilities.extensions[0].description }]
    }
  })
  t.strictSame(decode(AgentCardSchema, JSON.parse(body)), JSON.parse(body), 'it is a card of A2A 1.0 in canonical form')
})

await t.test('the card may be cached, and conditional requests for it get 304', async t => {
  const { url } = await serve(t, { card, work: echo })
  const { headers, body } = await get(url, AGENT_CARD_PATH)
  t.equal(headers['cache-control'], 'public, max-age=300')
  t.equal(headers['etag'], `"${createHash('sha256').update(body).digest('base64url')}"`)
  t.equal(headers['x-content-type-options'], 'nosniff')
  for (const known of [headers['etag'] ?? '', `W/${headers['etag']}`, `"other", ${headers['etag']}`]) {
    const again = await get(url, AGENT_CARD_PATH, { headers: { 'if-none-match': known } })
    t.equal(again.status, 304)
    t.equal(again.body, '')
    t.match(again.headers, { etag: headers['etag'], 'cache-control': 'public, max-age=300' })
  }
  for (const known of ['"other"', 'W/"other"', '', headers['etag']?.replaceAll('"', '') ?? 'x']) {
    t.equal((await get(url, AGENT_CARD_PATH, { headers: { 'if-none-match': known } })).status, 200)
  }
  const other = await serve(t, { card: { ...card, version: '2.0.1' }, work: echo }, { publicUrl: url })
  t.not((await get(other.url, AGENT_CARD_PATH)).headers['etag'], headers['etag'], 'another card has another tag')
})

await t.test('HEAD returns the headers of GET without a body', async t => {
  const { url } = await serve(t, { card, work: echo })
  for (const path of ['/', AGENT_CARD_PATH]) {
    const [head, got] = [await get(url, path, { method: 'HEAD' }), await get(url, path)]
    t.equal(head.status, 200)
    t.equal(head.body, '')
    for (const name of ['content-type', 'content-length', 'etag', 'cache-control'])
      t.equal(head.headers[name], got.headers[name])
  }
})

await t.test('other paths get 404, and other methods 405', async t => {
  const { url } = await serve(t, { card, work: echo }, {}, { port: 0, path: '/a2a' })
  for (const path of [
    '/a2a/x',
    '/a2ab',
    '/.well-known/agent.json',
    '/index.html',
    `${AGENT_CARD_PATH}x`,
    '/..%2f',
    '/*'
  ]) {
    const { status, headers, body } = await get(url, path)
    t.equal(status, 404, path)
    t.match(headers, { 'content-type': 'application/json' })
    t.match(JSON.parse(body).error, { code: 404, message: AGENT_CARD_PATH })
  }
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
    for (const path of ['/', '/a2a', '/a2a/', AGENT_CARD_PATH, `/a2a${AGENT_CARD_PATH}`]) {
      const { status, headers } = await get(url, path, { method })
      t.equal(status, 405, method)
      t.equal(headers['allow'], 'GET, HEAD')
    }
  }
  for (const path of ['/', '/a2a', '/a2a/', AGENT_CARD_PATH, `/a2a${AGENT_CARD_PATH}`, `${AGENT_CARD_PATH}?v=1`])
    t.equal((await get(url, path)).status, 200, path)
})

await t.test('a request with a foreign Host gets 421, and one with two gets 400', async t => {
  const { url } = await serve(t, { card, work: echo })
  for (const path of ['/', AGENT_CARD_PATH, '/other']) {
    const { status, headers, body } = await get(url, path, { headers: { host: 'evil.example' } })
    t.equal(status, 421)
    t.equal(headers['content-type'], 'application/json')
    t.notMatch(body, 'Painter')
  }
  t.strictSame(JSON.parse((await get(url, '/', { headers: { host: 'evil.example' } })).body), {
    error: 'This server is not evil.example. Allow the name with the option hosts.'
  })
  const raw = await RawSocket.to(t, url)
  raw.write('GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  t.equal((await raw.answer()).status, 400)
  const named = await serve(t, { card, work: echo }, { hosts: ['agent.example'] })
  t.equal((await get(named.url, AGENT_CARD_PATH, { headers: { host: 'agent.example' } })).status, 200)
  t.equal((await get(named.url, AGENT_CARD_PATH, { headers: { host: 'localhost' } })).status, 421)
})

await t.test('the page says how to call the agent, and escapes every name in it', async t => {
  const evil = '<script>alert("1")</script> & \'co\''
  const escaped = "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; 'co'"
  const { url } = await serve(t, {
    card: {
      ...card,
      name: evil,
      description: evil,
      skills: [{ ...card.skills[0], id: 's', name: evil, description: '', tags: [], examples: [evil] }]
    },
    work: echo
  })
  const { status, headers, body } = await get(url, '/')
  t.equal(status, 200)
  t.match(headers, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': /default-src 'none'/,
    'x-content-type-options': 'nosniff'
  })
  t.notMatch(body, '<script')
  t.ok(body.includes(`<title>${escaped}</title>`))
  t.ok(body.includes(`<p>${escaped}</p>`))
  t.ok(body.includes(`send ${url} "${escaped}"`))
  const plain = await serve(t, { card: { name: 'Plain' }, work: echo })
  t.match(
    (await get(plain.url, '/')).body,
    `npx taskchart send ${plain.url} "hello"`,
    'without an example it says hello'
  )
})

await t.test('the card and the page give the public address behind a proxy', async t => {
  const publicUrl = 'wss://agent.example/a2a'
  const { url } = await serve(t, { card, work: echo }, { publicUrl })
  t.equal(JSON.parse((await get(url, AGENT_CARD_PATH)).body).supportedInterfaces[0].url, publicUrl)
  t.match((await get(url, '/')).body, publicUrl)
})

await t.test('a card without an interface also has a page', async t => {
  const { runtime } = start(t, { card, work: echo })
  const page = pageOf(runtime.agentCard([]), new Request('http://127.0.0.1/'))
  t.equal(page.status, 200)
  t.match(await page.text(), 'npx taskchart send')
})

await t.test('loopback addresses are recognized, and addresses that only look like them are not', async t => {
  for (const host of [
    'localhost',
    '127.0.0.1',
    '127.255.0.9',
    '::1',
    '[::1]',
    '::ffff:127.0.0.1',
    '[::FFFF:127.0.0.1]'
  ])
    t.ok(isLoopback(host), host)
  for (const host of [
    '',
    'localhost.',
    'localhost.example',
    '128.0.0.1',
    '0.0.0.0',
    '::',
    '::2',
    '127.1',
    '127.0.0.1.example',
    '2130706433',
    '10.0.0.1',
    '::ffff:10.0.0.1'
  ])
    t.notOk(isLoopback(host), host)
})

await t.test('a server on a public address accepts any Host, unless hosts is set', async t => {
  const { runtime } = start(t, { card, work: echo })
  const refusal = (host: string, localAddress: string | undefined, hosts?: string[]) => {
    const socket = new Socket()
    Object.defineProperty(socket, 'localAddress', { value: localAddress })
    const asked = new IncomingMessage(socket)
    asked.url = '/'
    asked.headers.host = host
    const target = targetOf(asked, { ...runtime.settings, ...(hosts && { hosts: namedHosts(hosts) }) })
    return 'status' in target ? target.status : undefined
  }
  t.equal(refusal('agent.example', '192.0.2.1'), undefined)
  t.equal(refusal('agent.example', '192.0.2.1', ['other.example']), 421)
  t.equal(refusal('agent.example', '127.0.0.1'), 421)
  t.equal(refusal('agent.example', '::ffff:127.0.0.1'), 421)
  t.equal(refusal('agent.example', undefined), 421, 'a socket that is gone counts as loopback')
})

await t.test('a page is refused if its origin equals a Host that was not verified', async t => {
  const { runtime } = start(t, { card, work: echo })
  for (const host of ['evil.example', 'evil.example:80']) {
    const socket = new Socket()
    Object.defineProperty(socket, 'localAddress', { value: '192.0.2.1' })
    const asked = Object.assign(new IncomingMessage(socket), { url: '/' })
    Object.assign(asked.headers, { origin: `http://${host}`, host })
    t.match(await readHandshake(asked, runtime.settings, new Versions()), { status: 403 })
  }
})

const GRPC = { url: 'agent.example:50051', protocolBinding: 'GRPC', protocolVersion: '1.0' }

await t.test('interfaces of the app are in the public card, the extended card and the page', async t => {
  const authenticate: Authenticate = ({ headers }) =>
    headers.authorization === 'Bearer ann' ? { id: 'ann' } : undefined
  const { runtime } = start(
    t,
    { card, work: echo, extendedCard: { description: 'For those who are known.' } },
    { authenticate }
  )
  const served = await serveRuntime(runtime, { port: 0, interfaces: [GRPC], dialects: [dialect03(runtime)] })
  t.teardown(() => served.close())
  const shown = (body: string) => (JSON.parse(body) as { supportedInterfaces: object[] }).supportedInterfaces
  const listed = shown((await get(served.url, AGENT_CARD_PATH)).body)
  t.same(
    listed.map(each => Object.values(each)[1]),
    [WEBSOCKET_BINDING, 'JSONRPC', 'HTTP+JSON', WEBSOCKET_BINDING, 'JSONRPC', 'HTTP+JSON', 'GRPC']
  )
  t.strictSame(listed.at(-1), GRPC)
  t.strictSame(served.interfaces, listed)
  const headers = { authorization: 'Bearer ann', 'a2a-version': '1.0' }
  t.strictSame(shown((await get(served.url, '/extendedAgentCard', { headers })).body), listed)
  for (const url of [served.url, served.url.replace('http', 'ws')]) {
    const client = await connect(url, { headers: { authorization: 'Bearer ann' } })
    t.strictSame((await client.getExtendedAgentCard({})).supportedInterfaces, listed, url)
    await client.close()
  }
  t.match((await get(served.url, '/')).body, /agent\.example:50051<\/code> GRPC/)

  const sockets = await serveRuntime(start(t, { card, work: echo }).runtime, {
    port: 0,
    interfaces: [GRPC],
    http: false
  })
  t.teardown(() => sockets.close())
  t.strictSame(shown((await get(sockets.url, AGENT_CARD_PATH)).body), [
    { url: sockets.url, protocolBinding: WEBSOCKET_BINDING, protocolVersion: '1.0' },
    GRPC
  ])
  t.strictSame(sockets.interfaces.at(-1), GRPC)
})

await t.test("a server's interfaces have the name of hosts or publicUrl", async t => {
  for (const [options, url] of [
    [{ hosts: ['agent.example:8080'] }, 'http://agent.example:8080/'],
    [{ publicUrl: 'https://agent.example/a' }, 'https://agent.example/a'],
    [{ hosts: ['agent.example'] }, /^http:\/\/agent\.example:\d+\/$/]
  ] as const) {
    const served = await serveRuntime(start(t, { card, work: echo }, options).runtime, { port: 0 })
    t.teardown(() => served.close())
    t.match(served.interfaces[1], { url, protocolBinding: 'JSONRPC' })
  }
})

await t.test('an invalid interface is refused at once, and the error names the member', async t => {
  const { runtime } = start(t, { card, work: echo })
  const wrong = [{ ...GRPC, url: '' }] as const
  await t.rejects(serveRuntime(runtime, { port: 0, interfaces: wrong }), {
    name: 'TypeError',
    message: /^interfaces\[0\]\.url must/
  })
  await t.rejects(serveRuntime(runtime, { port: 0, interfaces: wrong, http: false }), TypeError)
  t.throws(() => httpHandler(runtime, { interfaces: wrong }), TypeError)
  t.throws(() => cardHandler(runtime, { interfaces: [GRPC, {}] as never }), { message: /^interfaces\[1\]\.url/ })
  t.throws(() => cardHandler(runtime, {} as never), {
    name: 'TypeError',
    message: /^cardHandler needs interfaces, a list such as/
  })
  t.throws(() => cardHandler(runtime, { interfaces: GRPC as never }), {
    name: 'TypeError',
    message: /^interfaces has to be a list such as/
  })
})

await t.test('cardHandler serves the card with caching headers to fetch handlers, Express and node:http', async t => {
  const { runtime } = start(t, { card, work: echo })
  const handler = cardHandler(runtime, { interfaces: [GRPC], dialects: [dialect03(runtime)] })
  const app = createServer(express().all(AGENT_CARD_PATH, handler)).listen(0, '127.0.0.1')
  t.teardown(() => void app.close())
  await once(app, 'listening')
  const url = `http://127.0.0.1:${(app.address() as AddressInfo).port}/`
  const { status, headers, body } = await get(url, AGENT_CARD_PATH, { headers: { 'a2a-version': '1.0' } })
  t.match(
    { status, headers },
    {
      status: 200,
      headers: {
        'content-type': 'application/json',
        'cache-control': 'public, max-age=300',
        etag: /^"/,
        'last-modified': /GMT$/
      }
    }
  )
  t.strictSame(JSON.parse(body), { ...runtime.agentCard([GRPC]) })
  const known = { 'a2a-version': '1.0', 'if-none-match': String(headers['etag']) }
  t.match(await get(url, AGENT_CARD_PATH, { headers: known }), { status: 304, body: '' })
  t.match(
    await get(url, AGENT_CARD_PATH, {
      headers: { 'a2a-version': '1.0', 'if-modified-since': String(headers['last-modified']) }
    }),
    { status: 304 }
  )
  t.match(await get(url, AGENT_CARD_PATH, { method: 'HEAD' }), { status: 200, body: '' })
  t.match(await get(url, AGENT_CARD_PATH, { method: 'POST' }), { status: 405, headers: { allow: 'GET, HEAD' } })
  t.match(JSON.parse((await get(url, `${AGENT_CARD_PATH}?A2A-Version=0.3`)).body), {
    protocolVersion: /^0\.3/,
    url: GRPC.url
  })
  const fetched = await handler(new Request('http://anywhere.example/card', { headers: known }))
  t.equal(fetched.status, 304)
  t.equal(
    (await (handler as unknown as Handler)(new Request('http://anywhere.example/card'), { outgoing: undefined }))
      .status,
    200
  )
})
