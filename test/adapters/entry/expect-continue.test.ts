import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import t, { type Test } from 'tap'
import { webSockets } from '../../../adapters/cluster/link/network.ts'
import { inspect } from '../../../adapters/inspector/index.ts'
import { unusedPort } from '../../fixtures/network/unused-port.ts'
import { httpHandler } from '../../../adapters/http/handler.ts'
import { dialect03 } from '../../../adapters/legacy/index.ts'
import { serveMetrics } from '../../../adapters/serve/serve-metrics.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import { echo } from '../../fixtures/runtime/agents.ts'
import { start } from '../../fixtures/runtime/runtime-helpers.ts'
import { RawSocket } from '../../fixtures/servers/raw-socket.ts'

/** A request without its body, whose client waits to be invited. */
function head(target: string, length: number | 'chunked', more: readonly string[] = [], host = 'localhost'): string {
  const size = length === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`
  const headers = [
    `Host: ${host}`,
    'Expect: 100-continue',
    size,
    ...(more.some(line => line.startsWith('Content-Type')) ? [] : ['Content-Type: application/json']),
    'A2A-Version: 1.0',
    ...more
  ]
  return `${target} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`
}

const params = (text: string) => ({ message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text }] } })
const call = (text: string, method = 'SendMessage') =>
  JSON.stringify({ jsonrpc: '2.0', id: 7, method, params: params(text) })

/** What the port answers first, and whether it then closes the connection. */
async function firstAnswer(
  t: Test,
  url: string,
  request: string
): Promise<{ readonly status: number; readonly isClosed: boolean }> {
  const raw = await RawSocket.to(t, url)
  raw.write(request)
  const { status } = await raw.answer()
  const isClosed =
    status !== 100 &&
    (await raw.answer().then(
      () => false,
      () => true
    ))
  raw.socket.destroy()
  return { status, isClosed }
}

const REFUSED = (status: number) => ({ status, isClosed: true })

await t.test(
  'a client that waits with its body is invited once the body is wanted, and its connection goes on',
  async t => {
    const { runtime } = start(t, { work: echo })
    const { url, close } = await serve(runtime, { port: 0 })
    t.teardown(close)
    const raw = await RawSocket.to(t, url)
    for (const text of ['small', 'l'.repeat(100_000)]) {
      const body = call(text)
      raw.write(head('POST /', body.length))
      t.equal((await raw.answer()).status, 100)
      raw.write(body)
      t.match(await raw.answer(), { status: 200, body: new RegExp(`"text":"${text}"`) })
      const rest = JSON.stringify(params(text))
      raw.write(head('POST /message:send', 'chunked'))
      t.equal((await raw.answer()).status, 100)
      raw.write(`${rest.length.toString(16)}\r\n${rest}\r\n0\r\n\r\n`)
      t.match(await raw.answer(), { status: 200 }, 'in chunks')
    }
    const body = call('at once')
    raw.write(head('POST /', body.length) + body)
    t.equal((await raw.answer()).status, 100, 'also if it does not wait')
    t.match(await raw.answer(), { status: 200, body: /at once/ })
    raw.write(`GET /tasks HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\n\r\n${head('POST /', body.length)}`)
    t.match(
      [(await raw.answer()).status, (await raw.answer()).status],
      [200, 100],
      'after the answer to the request before'
    )
    raw.write(body)
    t.match(await raw.answer(), { status: 200 })
    const stream = call('streamed', 'SendStreamingMessage')
    raw.write(head('POST /', stream.length))
    t.equal((await raw.answer()).status, 100)
    raw.write(stream)
    t.match(await raw.answer(), { status: 200, headers: { 'content-type': 'text/event-stream' } })
  }
)

await t.test('a client whose request is refused by its head is not invited, and the connection is closed', async t => {
  const authenticate = ({ headers }: { headers: Record<string, string | undefined> }) =>
    headers['authorization'] === 'Ada' ? { id: 'Ada' } : undefined
  const { runtime } = start(t, { work: echo }, { authenticate, limits: { messageBytes: 100_000 } })
  const { url, close, drain } = await serve(runtime, { port: 0, dialects: [dialect03(runtime)], inspector: inspect() })
  t.teardown(close)
  const ada = 'Authorization: Ada'
  const rows: [string, number][] = [
    [head('POST /', 10), 401],
    [head('POST /message:send', 10), 401],
    [head('POST /v1/message:send', 10, ['A2A-Version: 0.3']), 401],
    [head('POST /', 200_000, [ada]), 413],
    [head('POST /message:send', 200_000, [ada]), 413],
    [head('POST /message:send', 200_000), 401],
    [head('POST /', 10, [ada, 'Origin: https://evil.example']), 403],
    [head('POST /', 10, [ada], 'evil.example'), 421],
    [head('POST /?token=x', 10, [ada]), 400],
    [head('POST /', 10, [ada, 'Content-Encoding: gzip']), 415],
    [head('POST /', 10, [ada, 'Content-Type: text/plain']), 415],
    [head('POST /nothing', 10, [ada]), 404],
    [head('PUT /', 10, [ada]), 405],
    [head('GET /tasks/x', 10, [ada]), 404],
    [head('GET /', 10), 200],
    [head('POST /stately', 10), 401],
    [head('GET /stately', 10), 401],
    [head('POST /healthz', 10), 405]
  ]
  for (const [request, status] of rows) t.strictSame(await firstAnswer(t, url, request), REFUSED(status), request)
  t.equal((await firstAnswer(t, url, head('POST /', 10, [ada]))).status, 100)
  const old = await RawSocket.to(t, url)
  old.write(head('POST /', 2, [ada]).replace('HTTP/1.1', 'HTTP/1.0') + '{}')
  t.equal((await old.answer()).status, 200, 'HTTP 1.0 has no 100')
  drain()
  t.strictSame(await firstAnswer(t, url, head('POST /', 10, [ada])), REFUSED(503))
})

await t.test('ports that take no body invite nobody: metrics, WebSocket alone, and the link between nodes', async t => {
  const { runtime } = start(t, { work: echo })
  const metrics = await serveMetrics(runtime, { port: 0 })
  t.teardown(() => metrics.close())
  for (const [request, status] of [
    [head('GET /metrics', 10), 200],
    [head('POST /metrics', 10), 405],
    [head('GET /metrics', 10, [], 'evil.example'), 421]
  ] as const) {
    t.strictSame(await firstAnswer(t, metrics.url, request), REFUSED(status))
  }
  const sockets = await serve(runtime, { port: 0, http: false })
  t.teardown(() => sockets.close())
  t.strictSame(await firstAnswer(t, sockets.url, head('POST /', 10)), REFUSED(405))
  const port = await unusedPort()
  const close = await webSockets.listen({ host: '127.0.0.1', port }, () => {})
  t.teardown(close)
  t.strictSame(await firstAnswer(t, `http://127.0.0.1:${port}`, head('POST /', 10)), REFUSED(426))
  t.match(await fetch(`http://127.0.0.1:${port}`).then(({ status }) => status), 426)
  await t.rejects(
    webSockets.listen({ host: '127.0.0.1', port }, () => {}),
    { code: 'EADDRINUSE' }
  )
})

await t.test('a mounted handler is reached after Node has invited, unless the app decides that itself', async t => {
  const { runtime } = start(t, { work: echo }, { limits: { messageBytes: 100_000 } })
  const listener = getRequestListener(httpHandler(runtime, { path: '/agent' }), { overrideGlobalObjects: false })
  const app = express().all(/^\/agent(\/|$)/, (request, response) => void listener(request, response))
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const answered = async (length: number) => (await firstAnswer(t, url, head('POST /agent', length))).status
  t.equal(await answered(200_000), 100)
  server.on('checkContinue', (request, response) => {
    if (Number(request.headers['content-length'] ?? 0) <= 100_000) response.writeContinue()
    server.emit('request', request, response)
  })
  t.strictSame([await answered(200_000), await answered(10)], [413, 100])
})
