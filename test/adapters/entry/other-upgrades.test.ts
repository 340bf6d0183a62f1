import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, IncomingMessage, type Server } from 'node:http'
import { Socket, type AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { isWebSocket, replay } from '../../../adapters/entry/upgrade-paths.ts'
import { serve as serveRuntime } from '../../../adapters/serve/serve.ts'
import { AGENT_CARD_PATH } from '../../../machines/protocol/uris.ts'
import { progress } from '../../../runtime/authoring/words.ts'
import { echo } from '../../fixtures/runtime/agents.ts'
import { NO_CURL_HTTP2 } from '../../fixtures/guides/curl.ts'
import { serveAll } from '../../fixtures/servers/http-agent.ts'
import { handshake, RawSocket } from '../../fixtures/servers/raw-socket.ts'
import { deferred, say, start, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { serve } from '../../fixtures/servers/served-agent.ts'

/** What curl --http2 sends with each request, and Java's HttpClient by default. */
const H2C = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA']

const asking = (method: string, path: string, ...lines: readonly string[]) =>
  `${[`${method} ${path} HTTP/1.1`, 'Host: localhost', ...H2C, ...lines].join('\r\n')}\r\n\r\n`

/** An app with a server of its own, whose answers give back what they were sent. */
async function app(
  t: Test
): Promise<{ server: Server & { shouldUpgradeCallback?: (request: object) => boolean }; url: string }> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = JSON.stringify([request.method, request.url, Buffer.concat(chunks).toString()])
      response.writeHead(200, { 'Content-Length': body.length }).end(body)
    })
  })
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { runtime } = start(t, { work: echo })
  for (const path of ['/agent', '/another']) t.teardown((await serveRuntime(runtime, { server, path })).close)
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

await t.test('a request for an upgrade other than websocket is answered without one', async t => {
  const everything = await serveAll(t, { work: echo })
  const card = await serve(t, { work: echo })
  for (const url of [everything.url, card.url]) {
    const raw = await RawSocket.to(t, url)
    for (let n = 0; n < 20; n += 1) {
      raw.write(asking('GET', AGENT_CARD_PATH))
      t.match(await raw.answer(), { status: 200, body: /supportedInterfaces/ }, 'repeatedly on one connection')
    }
    raw.write(`GET ${AGENT_CARD_PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(2) + asking('GET', '/'))
    const answers = [await raw.answer(), await raw.answer(), await raw.answer()]
    t.match(
      answers,
      [
        { status: 200, body: /supportedInterfaces/ },
        { status: 200, body: /supportedInterfaces/ },
        { status: 200, headers: { 'content-type': /html/ } }
      ],
      'after others in the same write'
    )
    raw.write(handshake(url, { upgrade: 'websocket, h2c' }))
    t.equal((await raw.answer()).status, 200, 'as is one for websocket among others')
  }
  t.strictSame(everything.log, [])
})

await t.test('its body is read with any framing and at any speed', async t => {
  const { url } = await serveAll(t, { work: () => ({ artifact: 'ok' }) })
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 7,
    method: 'SendMessage',
    params: say('x'.repeat(300_000), {}, { historyLength: 0 })
  })
  const lines = ['A2A-Version: 1.0', 'Content-Type: application/json']
  const half = body.length / 2
  const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
  const sends: readonly (readonly string[])[] = [
    [asking('POST', '/', ...lines, `Content-Length: ${body.length}`) + body],
    [asking('POST', '/', ...lines, `Content-Length: ${body.length}`), body.slice(0, half), body.slice(half)],
    [
      asking('POST', '/', ...lines, 'Transfer-Encoding: chunked'),
      chunk(body.slice(0, half)),
      chunk(body.slice(half)),
      '0\r\n\r\n'
    ]
  ]
  for (const parts of sends) {
    const raw = await RawSocket.to(t, url)
    for (const part of parts) await new Promise(resolve => raw.socket.write(part, resolve))
    const { status, body } = await raw.answer()
    t.equal(status, 200)
    t.match(JSON.parse(body), { id: 7, result: { task: { status: { state: 'TASK_STATE_COMPLETED' } } } })
    raw.write(asking('GET', '/tasks', 'A2A-Version: 1.0'))
    t.equal((await raw.answer()).status, 200, 'the connection continues')
  }
})

await t.test('a client that resets its connection during an earlier response crashes nothing', async t => {
  const gates = [deferred<true>(), deferred<true>()]
  const { url, log, runtime } = await serveAll(t, {
    work: async function* () {
      await gates[0]?.promise
      yield progress('x'.repeat(100_000))
      await gates[1]?.promise
    }
  })
  const raw = await RawSocket.to(t, url)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'SendStreamingMessage', params: say('x') })
  raw.write(
    `POST / HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}${asking('GET', '/')}`
  )
  await until(async () => (await runtime.listTasks({ status: 'TASK_STATE_WORKING' })).totalSize === 1)
  raw.socket.resetAndDestroy()
  gates[0]?.resolve(true)
  await until(async () => (await runtime.listTasks({ status: 'TASK_STATE_WORKING' })).tasks[0]?.status.message)
  gates[1]?.resolve(true)
  await until(async () => (await runtime.listTasks({ status: 'TASK_STATE_COMPLETED' })).totalSize === 1)
  t.strictSame(log, [])
})

await t.test('curl --http2 gets the card, and sends a message', { skip: NO_CURL_HTTP2 }, async t => {
  const { url } = await serveAll(t, { work: echo })
  const curl = async (...args: readonly string[]) =>
    (await promisify(execFile)('curl', ['--http2', '--silent', '--show-error', '--fail', '--max-time', '20', ...args]))
      .stdout
  t.match(JSON.parse(await curl(`${url.replace(/\/$/, '')}${AGENT_CARD_PATH}`)), {
    supportedInterfaces: [{ protocolVersion: '1.0' }, {}, {}]
  })
  const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'SendMessage', params: say('hello') })
  t.match(JSON.parse(await curl('--header', 'A2A-Version: 1.0', '--json', body, url)), {
    id: 7,
    result: { task: { status: { state: 'TASK_STATE_COMPLETED' } } }
  })
})

await t.test("an app's routes on the shared server also get such requests", async t => {
  const { server, url } = await app(t)
  // A Node that asks, and is told to hand over each connection all the same.
  for (const told of [server.shouldUpgradeCallback, () => true]) {
    if (told) server.shouldUpgradeCallback = told
    const raw = await RawSocket.to(t, url)
    raw.write(asking('GET', '/mine'))
    t.equal((await raw.answer()).body, '["GET","/mine",""]')
  }
})

await t.test('an app that listens for upgrades gets those other than websocket', async t => {
  const { server, url } = await app(t)
  server.on('upgrade', (request: IncomingMessage, socket: Socket) => {
    if (!isWebSocket(request))
      socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: mine\r\n\r\n')
  })
  const raw = await RawSocket.to(t, url)
  raw.write(asking('GET', '/agent'))
  t.match(await raw.answer(), { status: 101, headers: { upgrade: 'mine' } })
})

await t.test('shouldUpgradeCallback accepts WebSockets, as the app says, and upgrades for the app', async t => {
  const server = createServer() as Server & { shouldUpgradeCallback: (request: object) => boolean }
  const asked: object[] = []
  server.shouldUpgradeCallback = request => asked.push(request) > 1
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const { runtime } = start(t, { work: echo })
  for (const path of ['/a', '/b']) t.teardown((await serveRuntime(runtime, { server, path })).close)
  const [socket, other] = [{ headers: { upgrade: 'WebSocket' } }, { headers: { upgrade: 'h2c' } }]
  const answers = () => [socket, other, { headers: {} }].map(request => server.shouldUpgradeCallback(request))
  t.strictSame(answers(), [false, false, false])
  t.strictSame(answers(), [true, false, false])
  t.strictSame(asked, [socket, socket], 'the app is asked once for each WebSocket')
  server.on('upgrade', () => {})
  t.strictSame(answers(), [true, true, true])
})

await t.test('a request is replayed byte for byte, without its upgrade', async t => {
  const socket = new Socket()
  const request = Object.assign(new IncomingMessage(socket), { method: 'POST', url: '/é', httpVersion: '1.1' })
  request.rawHeaders = [
    'Host',
    'localhost',
    'UPGRADE',
    'h2c',
    'connection',
    'close, UPGRADE,x-upgrade',
    'X-Twice',
    'a',
    'X-Twice',
    '\xe9'
  ]
  const server = createServer()
  server.removeAllListeners('connection')
  const given = once(server, 'connection')
  replay(server, request, socket, Buffer.from('{}'))
  t.strictSame(await given, [socket])
  t.equal(
    (socket.read() as Buffer).toString('latin1'),
    'POST /é HTTP/1.1\r\nHost: localhost\r\nconnection: close,x-upgrade\r\nX-Twice: a\r\nX-Twice: \xe9\r\n\r\n{}'
  )
})
