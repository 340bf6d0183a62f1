import { once } from 'node:events'
import { createServer, request as nodeRequest, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import type { Handler, HttpRequest } from '../../../adapters/entry/connection.ts'
import { listenerOf, RESPONSE_ALREADY_SENT, sendJson } from '../../../adapters/entry/small-request.ts'
import { deferred, until } from '../../fixtures/runtime/runtime-helpers.ts'

const UTF8 = new TextDecoder()

/** The port of a server with a handler, and the requests that it has begun. */
async function served(t: Test, handler: Handler): Promise<{ port: number; begun: IncomingMessage[] }> {
  const begun: IncomingMessage[] = []
  const listener = listenerOf(handler)
  const server = createServer((incoming, response) => {
    begun.push(incoming)
    listener(incoming, response, { response, socket: incoming.socket })
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  t.teardown(() => server.closeAllConnections())
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, begun }
}

/** The status, type and text of the answer to a request. */
async function asked(
  port: number,
  headers: OutgoingHttpHeaders,
  body: string,
  path = '/',
  method = 'POST'
): Promise<readonly [status: number | undefined, type: string | undefined, text: string]> {
  const request = nodeRequest({ port, host: '127.0.0.1', path, method, headers }).end(body)
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return [
    response.statusCode,
    response.headers['content-type'],
    (await response.setEncoding('utf8').toArray()).join('')
  ]
}

/** What a request tells. */
async function partsOf({ method, url, headers, arrayBuffer }: HttpRequest, request: HttpRequest): Promise<string> {
  const body = UTF8.decode(await arrayBuffer.call(request))
  return JSON.stringify([
    method,
    new URL(url).pathname,
    headers.get('X-One'),
    headers.has('x-one'),
    headers.has('set-cookie'),
    headers.get('constructor'),
    Object.fromEntries(headers)['x-one'],
    body
  ])
}

await t.test('a small request has the same parts as one that Hono reads', async t => {
  let isSmall = false
  const { port } = await served(t, async (request, { direct } = {}) => {
    isSmall = !(request instanceof Request)
    if (!direct) throw new TypeError('There is no response.')
    return sendJson(direct, await partsOf(request, request), { 'X-Two': 'b' })
  })
  const told = (one: string | null, body: string, { method = 'POST', path = '/', hasCookie = false } = {}) => [
    200,
    'application/json',
    JSON.stringify([method, path, one, one !== null, hasCookie, null, one ?? undefined, body])
  ]
  const length = { 'content-length': 2 }
  t.strictSame(await asked(port, { ...length, 'x-one': 'a' }, 'é'), told('a', 'é'))
  t.ok(isSmall)
  t.strictSame(await asked(port, { ...length }, 'ab', '/agent?b=c'), told(null, 'ab', { path: '/agent' }))
  t.ok(isSmall)
  t.strictSame(await asked(port, { 'content-length': 0, 'x-one': '' }, ''), told('', ''))
  t.ok(isSmall)
  const large = 'x'.repeat(16 * 1024)
  t.strictSame(await asked(port, { 'content-length': large.length, 'x-one': 'a' }, large), told('a', large))
  t.ok(isSmall)
  const others: readonly [name: string, asked: Parameters<typeof asked>, told: unknown][] = [
    ['a header twice', [port, { ...length, 'x-one': ['a', 'b'] }, 'ab'], told('a, b', 'ab')],
    ['cookies to set', [port, { ...length, 'set-cookie': ['a'] }, 'ab'], told(null, 'ab', { hasCookie: true })],
    ['a path that is not normalised', [port, length, 'ab', '/"'], told(null, 'ab', { path: '/%22' })],
    ['another host that is not', [port, { ...length, host: 'LOCALHOST' }, 'ab'], told(null, 'ab')],
    ['no length', [port, { 'transfer-encoding': 'chunked' }, 'ab'], told(null, 'ab')],
    ['a larger body', [port, { 'content-length': large.length + 1 }, `${large}x`], told(null, `${large}x`)],
    ['another method', [port, length, 'ab', '/', 'PUT'], told(null, 'ab', { method: 'PUT' })]
  ]
  for (const [name, request, wanted] of others) {
    t.strictSame(await asked(...request), wanted, name)
    t.notOk(isSmall, name)
  }
})

await t.test('a small body may arrive in parts, and be read late', async t => {
  const [reads, late] = [deferred(), deferred()]
  const { port, begun } = await served(t, async (request, { direct } = {}) => {
    if (request.headers.has('x-late')) await late.promise
    const body = request.arrayBuffer()
    reads.resolve()
    if (!direct) throw new TypeError('There is no response.')
    return sendJson(direct, UTF8.decode(await body), {})
  })
  const request = nodeRequest({ port, host: '127.0.0.1', method: 'POST', headers: { 'content-length': 4 } })
  request.write('ab')
  await reads.promise
  const { socket } = begun[0] as IncomingMessage
  const { bytesRead } = socket
  request.write('c')
  await until(() => socket.bytesRead > bytesRead, 'the second part has arrived')
  request.end('d')
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  t.strictSame(await response.setEncoding('utf8').toArray(), ['abcd'])
  const answer = asked(port, { 'content-length': 2, 'x-late': '1' }, 'ef')
  await until(() => begun[1]?.complete === true, 'the body is complete')
  late.resolve()
  t.equal((await answer)[2], 'ef')
})

await t.test('an incomplete small body rejects, whether it is read before or after its client disconnects', async t => {
  for (const isLate of [false, true]) {
    const [started, late, failed] = [deferred(), deferred(), deferred()]
    const { port, begun } = await served(t, async request => {
      started.resolve()
      if (isLate) await late.promise
      await t.rejects(request.arrayBuffer(), { message: 'The client has disconnected.' })
      failed.resolve()
      return RESPONSE_ALREADY_SENT
    })
    const socket = connect(port, '127.0.0.1')
    socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nab')
    await started.promise
    // Not `once`, which listens to errors too: Node reports one only to listeners.
    const closed = new Promise<void>(resolve => begun[0]?.on('close', resolve))
    socket.destroy()
    await closed
    late.resolve()
    await failed.promise
  }
})

await t.test('what a handler answers by a Response, or throws, passes through Hono', async t => {
  const { port } = await served(t, async request => {
    if (request.headers.has('x-bad')) throw new TypeError('The handler is wrong.')
    return new Response('no', { status: 415, headers: { 'content-type': 'text/plain' } })
  })
  t.strictSame(await asked(port, { 'content-length': 2 }, 'ab'), [415, 'text/plain', 'no'])
  t.strictSame(await asked(port, { 'content-length': 2, 'x-bad': '1' }, 'ab'), [500, undefined, ''])
})
