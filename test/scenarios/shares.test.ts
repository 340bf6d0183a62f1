import { once } from 'node:events'
import { Agent, createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { httpHandler } from '../../adapters/http/handler.ts'
import { dialect03 } from '../../adapters/legacy/index.ts'
import { serve } from '../../adapters/serve/serve.ts'
import type { Authenticate, Principal } from '../../runtime/access/authentication.ts'
import { ask, OpenStream, rpc, serveAll } from '../fixtures/servers/http-agent.ts'
import { frameOf, OPCODES, RawSocket, type FrameParts } from '../fixtures/servers/raw-socket.ts'
import { deferred, rejection, say, start, until } from '../fixtures/runtime/runtime-helpers.ts'
import { JsonSocket, obedient } from '../fixtures/servers/served-agent.ts'

const byName: Authenticate = ({ headers }) => (headers['x-name'] ? { id: headers['x-name'] } : undefined)

/** A message that opens a task in a context of its own, which works until it is canceled. */
const slow = () => say('wait', {}, { returnImmediately: true })

const slow03 = () => {
  const { messageId, parts } = slow().message
  return {
    message: { messageId, kind: 'message', role: 'user', parts: parts.map(part => ({ ...part, kind: 'text' })) },
    configuration: { blocking: false }
  }
}

const request = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params })

/** Posts over the one connection of an agent of Node's. */
async function posted(
  url: string,
  agent: Agent,
  body: object,
  version: string
): Promise<{ status: number; code: number | undefined }> {
  const text = JSON.stringify(body)
  const headers = {
    'a2a-version': version,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text)
  }
  const [response] = await once(httpRequest(url, { agent, method: 'POST', headers }).end(text), 'response')
  let answer = ''
  for await (const chunk of response.setEncoding('utf8')) answer += chunk
  return { status: response.statusCode, code: JSON.parse(answer).error?.code }
}

/** One connection of a client. */
interface Connected {
  /** Sends a slow message. Gives the code of the error, if that is the answer. */
  send(): Promise<number | undefined>
  leave(): void
}

const overSocket =
  (method: string, params: () => object, version = '1.0') =>
  async (t: Test, url: string): Promise<Connected> => {
    const socket = await JsonSocket.open(t, url, { headers: { 'a2a-version': version } })
    let id = 0
    const send = async () => {
      socket.send(JSON.stringify({ ...request(method, params()), id: (id += 1) }))
      return (await socket.next()).error?.code
    }
    return { send, leave: () => socket.socket.close() }
  }

const overHttp =
  (path: string, body: () => object, version = '1.0') =>
  async (t: Test, url: string): Promise<Connected> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.teardown(() => agent.destroy())
    return {
      send: async () => (await posted(`${url}${path}`, agent, body(), version)).code,
      leave: () => agent.destroy()
    }
  }

async function serveSpeaking03(t: Test) {
  const started = start(t, { work: obedient }, { limits: { liveContexts: 8 } })
  const served = await serve(started.runtime, { port: 0, dialects: [dialect03(started.runtime)] })
  t.teardown(() => served.close())
  return { ...started, url: served.url }
}

const ways = {
  WebSocket: overSocket('SendMessage', slow),
  'WebSocket, 0.3': overSocket('message/send', slow03, '0.3'),
  'JSON-RPC': overHttp('', () => request('SendMessage', slow())),
  'JSON-RPC, 0.3': overHttp('', () => request('message/send', slow03()), '0.3'),
  REST: overHttp('message:send', slow)
}

for (const [way, connect] of Object.entries(ways)) {
  const [rateLimited, overloaded] = way === 'REST' ? [429, 503] : [-31429, -31503]

  await t.test(`${way}: an anonymous connection has a quarter of the live contexts, even after its end`, async t => {
    const { url, runtime } = await serveSpeaking03(t)
    for (let count = 0; count < 4; count += 1) {
      const connected = await connect(t, url)
      for (const code of count < 3 ? [undefined, undefined, rateLimited] : [undefined, undefined])
        t.equal(await connected.send(), code)
      connected.leave()
    }
    t.equal(await (await connect(t, url)).send(), overloaded)
    t.equal((await runtime.listTasks({})).totalSize, 8)
  })
}

await t.test('a principal has a quarter of the live contexts over all connections and bindings', async t => {
  const { url } = await serveAll(t, { work: obedient }, { authenticate: byName, limits: { liveContexts: 8 } })
  const [anna, bob] = [{ 'x-name': 'anna', 'a2a-version': '1.0' }, { 'x-name': 'bob' }]
  await (await JsonSocket.open(t, url, { headers: anna })).call('SendMessage', slow())
  await rpc(url, 'SendMessage', slow(), anna)
  const refused = [
    await rpc(url, 'SendMessage', slow(), anna),
    await ask(`${url}message:send`, { body: JSON.stringify(slow()), headers: anna })
  ]
  for (const { status, headers } of refused) t.strictSame([status, headers.get('retry-after')], [429, '1'])
  t.match(await (await JsonSocket.open(t, url, { headers: anna })).call('SendMessage', slow()), {
    error: { code: -31429 }
  })
  t.match((await rpc(url, 'SendMessage', slow(), bob)).json, { result: { task: {} } })
})

await t.test('a mounted handler counts by connections if it receives them', async t => {
  const { runtime } = start(t, { work: obedient }, { limits: { liveContexts: 4 } })
  const handler = httpHandler(runtime)
  const listener = getRequestListener(handler, { overrideGlobalObjects: false })
  const server = createServer((request, response) => void listener(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const connected = await overHttp('', () => request('SendMessage', slow()))(
    t,
    `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  )
  t.strictSame([await connected.send(), await connected.send()], [undefined, -31429])
  for (let count = 0; count < 3; count += 1) {
    const sent = new Request('http://localhost/message:send', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
      body: JSON.stringify(slow())
    })
    t.equal((await handler(sent)).status, 200)
  }
})

const AS = { anna: { 'x-name': 'anna' }, bob: { 'x-name': 'bob' }, cleo: { 'x-name': 'cleo' } }

/** What a WebSocket's handshake is answered: 101, or the status and the code of the error. */
async function handshaken(t: Test, url: string, name: keyof typeof AS): Promise<unknown> {
  const socket = new WebSocket(url.replace('http', 'ws'), { headers: { ...AS[name], 'a2a-version': '1.0' } })
  t.teardown(() => socket.terminate())
  const opened = once(socket, 'open').then(() => 101)
  const refused = once(socket, 'unexpected-response').then(async ([, response]) => {
    let answer = ''
    for await (const chunk of response.setEncoding('utf8')) answer += chunk
    return [response.statusCode, response.headers['retry-after'], JSON.parse(answer).error.code]
  })
  socket.on('error', () => {})
  return Promise.race([opened, refused.catch(() => undefined)])
}

const [OVER_SHARE, FULL] = [
  [429, '1', -31429],
  [503, '1', -31503]
]

await t.test("a principal has a quarter of a server's WebSockets, and one of several tenants half", async t => {
  const { url } = await serveAll(
    t,
    { work: obedient },
    {
      authenticate: byName,
      tenants: { '': {}, blue: { members: ['anna', 'bob', 'cleo'] }, green: { members: ['dora'] } },
      limits: { connections: 8 }
    }
  )
  const [first] = [
    await JsonSocket.open(t, `${url}blue`, { headers: AS.anna }),
    await JsonSocket.open(t, url, { headers: AS.anna })
  ]
  t.strictSame(await handshaken(t, url, 'anna'), OVER_SHARE)
  for (const _ of [1, 2]) t.equal(await handshaken(t, `${url}blue`, 'bob'), 101)
  t.equal(await handshaken(t, `${url}blue`, 'cleo'), 101)
  t.strictSame(await handshaken(t, `${url}blue`, 'cleo'), OVER_SHARE, 'the tenant has reached its half')
  t.equal(await handshaken(t, `${url}green`, 'cleo'), 101, "another tenant's share is not used")
  first.socket.close()
  t.equal(await until(async () => (await handshaken(t, url, 'anna')) === 101), true)
})

await t.test('a server with all its WebSockets open refuses everybody with Overloaded', async t => {
  const { url } = await serveAll(t, { work: obedient }, { limits: { connections: 4 } })
  for (let count = 0; count < 4; count += 1) t.equal(await handshaken(t, url, 'anna'), 101)
  t.strictSame(await handshaken(t, url, 'bob'), FULL)
})

await t.test('a principal has a quarter of pending HTTP requests, and one of several tenants half', async t => {
  const tenants = { '': {}, blue: {}, green: { members: ['dora'] } }
  const { url, runtime } = await serveAll(
    t,
    { work: obedient },
    { authenticate: byName, tenants, limits: { connections: 8 } }
  )
  const streaming = (name: keyof typeof AS, tenant: string) => {
    const body = JSON.stringify(say('wait'))
    return OpenStream.open(t, `${url}${tenant}message:stream`, {
      method: 'POST',
      headers: { ...AS[name], 'content-type': 'application/json', 'a2a-version': '1.0' },
      body
    })
  }
  const over = async (name: keyof typeof AS, path: string) => {
    const { status, headers } = await ask(`${url}${path}tasks`, { headers: AS[name] })
    return [status, headers.get('retry-after')]
  }
  const [first] = [await streaming('anna', 'blue/'), await streaming('anna', '')]
  t.strictSame(await over('anna', ''), [429, '1'])
  t.match(await rpc(url, 'ListTasks', {}, AS.anna), {
    status: 429,
    json: { error: { code: -31429, data: [{ metadata: { share: 'perPrincipal.connections', limit: '2' } }] } }
  })
  for (const _ of [1, 2]) await streaming('bob', 'blue/')
  await streaming('cleo', 'blue/')
  t.strictSame(await over('cleo', 'blue/'), [429, '1'])
  t.match(await rpc(`${url}blue`, 'ListTasks', {}, AS.cleo), {
    status: 429,
    json: { error: { message: /^This tenant has reached the limit of 4 connections or pending requests\./ } }
  })
  t.strictSame(await over('cleo', ''), [200, null])
  t.strictSame(await over('cleo', 'green/'), [200, null], 'as in an empty tenant')
  first.cut()
  await until(async () => (await over('anna', ''))[0] === 200)
  t.equal((await runtime.listTasks({ tenant: 'blue' }, { principal: 'bob' })).totalSize, 2)
})

await t.test('a request whose client disconnects before its authentication is not counted', async t => {
  const asked = deferred()
  const known = deferred<Principal>()
  const { url } = await serveAll(
    t,
    { work: obedient },
    { authenticate: () => (asked.resolve(), known.promise), limits: { connections: 4 } }
  )
  const leaving = new AbortController()
  const left = rejection(ask(`${url}tasks`, { signal: leaving.signal }))
  await asked.promise
  leaving.abort()
  await left
  await new Promise(resolve => setImmediate(resolve))
  known.resolve({ id: 'anna' })
  t.equal((await ask(`${url}tasks`)).status, 200)
})

/** Of unfinished messages 200,100 bytes, a principal 50,025. */
const UNFINISHED = { limits: { messageBytes: 50_000, advanced: { unfinishedBytes: 200_100 } } }

/** A frame of which more is to come, or that is not the last of its message. */
const begun = (bytes: number, more: FrameParts = { promised: 49_000 }) =>
  frameOf({ payload: 'x'.repeat(bytes), ...more })

async function closeOf(raw: RawSocket): Promise<unknown> {
  const frame = await raw.frame()
  return frame && [frame.opcode, frame.payload.readUInt16BE(0), frame.payload.subarray(2).toString()]
}

const OVER_BYTES = [
  OPCODES.close,
  1013,
  'You have reached the limit of 50025 bytes of unfinished messages. Send one message after the other.'
]

await t.test("a principal's unfinished messages are limited over its WebSockets, and everybody's in total", async t => {
  const { url, runtime } = await serveAll(t, { work: obedient }, { authenticate: byName, ...UNFINISHED })
  const { unfinished } = runtime.settings
  const connected = (name: string) => RawSocket.open(t, url, [`X-Name: ${name}`])
  const holds = (bytes: number) => until(() => unfinished.used === bytes, `${bytes} bytes`)
  const [first, second, small] = [await connected('anna'), await connected('anna'), await connected('anna')]
  first.write(begun(20_000, { isLast: false }))
  await holds(20_000)
  first.write(frameOf({ opcode: OPCODES.ping }))
  first.write(begun(5000, { opcode: OPCODES.continuation, isLast: false }))
  await holds(25_000)
  second.write(begun(26_000))
  t.strictSame(await closeOf(second), OVER_BYTES)
  small.write(begun(16_000))
  first.write(begun(100, { opcode: OPCODES.continuation }))
  await holds(0)
  const third = await connected('anna')
  third.write(begun(40_000))
  await holds(40_000)
  for (const name of ['bob', 'cleo', 'dora', 'emil']) (await connected(name)).write(begun(40_000))
  await holds(200_000)
  const last = await connected('fred')
  last.write(begun(40_000))
  t.strictSame(await closeOf(last), [
    OPCODES.close,
    1013,
    'The agent has too many unfinished messages. Send it again later.'
  ])
  third.socket.destroy()
  await holds(160_000)
})

await t.test("a principal's unfinished bodies are limited over its requests, and everybody's in total", async t => {
  const { url, runtime } = await serveAll(t, { work: obedient }, { authenticate: byName, ...UNFINISHED })
  const uploading = async (name: string, path: string, length: string) => {
    const raw = await RawSocket.to(t, url)
    const body =
      length === 'chunked'
        ? `Transfer-Encoding: chunked\r\n\r\n9c40\r\n${'x'.repeat(40_000)}\r\n`
        : `Content-Length: ${length}\r\n\r\n${'x'.repeat(40_000)}`
    raw.write(
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nX-Name: ${name}\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n${body}`
    )
    return raw
  }
  const holds = (bytes: number) => until(() => runtime.settings.unfinished.used === bytes, `${bytes} bytes`)
  const first = await uploading('anna', '/', '40001')
  await holds(40_000)
  const refused = [await uploading('anna', '/', 'chunked'), await uploading('anna', '/message:send', '40001')]
  for (const raw of refused)
    t.match(await raw.answer(), {
      status: 429,
      headers: { 'retry-after': '1' },
      body: /limit of \d+ bytes of unfinished messages/
    })
  for (const name of ['bob', 'cleo', 'dora', 'emil']) await uploading(name, '/message:send', 'chunked')
  await holds(200_000)
  t.match(await (await uploading('fred', '/', '40001')).answer(), { status: 503, body: /-31503/ })
  first.write('x')
  t.match(await first.answer(), { status: 200, body: /-32700/ })
  await holds(160_000)
})
