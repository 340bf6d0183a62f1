import { once } from 'node:events'
import { createServer, IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { targetOf } from '../../../adapters/entry/admission.ts'
import { connectionOrigin } from '../../../adapters/entry/interfaces.ts'
import { httpHandler } from '../../../adapters/http/handler.ts'
import { dialect01, dialect03 } from '../../../adapters/legacy/index.ts'
import { serve as serveRuntime } from '../../../adapters/serve/serve.ts'
import type { AgentCard } from '../../../machines/protocol/card.ts'
import { AGENT_CARD_PATH } from '../../../machines/protocol/uris.ts'
import type { RuntimeOptions } from '../../../runtime/runtime-options.ts'
import { echo } from '../../fixtures/runtime/agents.ts'
import { handshake, RawSocket, type HttpAnswer } from '../../fixtures/servers/raw-socket.ts'
import { start } from '../../fixtures/runtime/runtime-helpers.ts'
import { JsonSocket, serve } from '../../fixtures/servers/served-agent.ts'

const anybody: RuntimeOptions['authenticate'] = () => ({ id: 'anybody' })
const extendedCard = { description: 'More of it.' }

/** Serves an agent over everything; it is closed when the test ends. */
async function served(t: Test, options: Partial<RuntimeOptions> = {}) {
  const { runtime } = start(t, { work: echo, extendedCard }, options)
  const { url, close } = await serveRuntime(runtime, { port: 0, dialects: [dialect03(runtime), dialect01(runtime)] })
  t.teardown(close)
  return { url, port: new URL(url).port }
}

/** Sends a request whose target and headers are the test's own. */
async function asked(
  t: Test,
  url: string,
  target: string,
  lines: readonly string[],
  { method = 'GET', httpVersion = '1.1' } = {}
): Promise<HttpAnswer> {
  const raw = await RawSocket.to(t, url)
  raw.write(
    `${[`${method} ${target} HTTP/${httpVersion}`, ...lines, 'Connection: close'].join('\r\n')}\r\n\r\n`.replaceAll(
      '$PORT',
      new URL(url).port
    )
  )
  return raw.answer()
}

const addressesIn = (text: string) => (JSON.parse(text) as AgentCard).supportedInterfaces.map(({ url }) => url)

await t.test('a target in absolute form is checked by its own host, not by Host', async t => {
  const { url } = await served(t)
  const { url: sockets } = await serve(t, { work: echo })
  for (const at of [url, sockets]) {
    for (const target of [
      'http://evil.example/',
      `http://evil.example${AGENT_CARD_PATH}`,
      `http://evil.example:$PORT${AGENT_CARD_PATH}`,
      'http://evil.example?x',
      'http://evil.example/tasks'
    ]) {
      for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS'])
        t.equal((await asked(t, at, target, ['Host: localhost'], { method })).status, 421, `${method} ${target}`)
    }
    const { status, body } = await asked(t, at, `HTTP://localhost:$PORT${AGENT_CARD_PATH}?x=1`, ['Host: evil.example'])
    t.equal(status, 200, 'the Host header beside it is ignored')
    for (const address of addressesIn(body)) t.equal(new URL(address).host, `localhost:${new URL(at).port}`)
  }
  for (const version of ['0.3', '0.1'])
    t.equal(
      (
        await asked(t, url, 'http://evil.example/.well-known/agent.json', [
          'Host: localhost',
          `A2A-Version: ${version}`
        ])
      ).status,
      421
    )
})

await t.test('targets in other forms are refused, except OPTIONS for the server itself', async t => {
  const { url } = await served(t)
  for (const [method, target, status] of [
    ['OPTIONS', '*', 204],
    ['GET', '*', 400],
    ['GET', 'ftp://localhost/', 400],
    ['GET', 'http://user@localhost/', 400],
    ['GET', 'http:///', 421],
    ['GET', 'https://localhost/', 421],
    ['GET', 'http://localhost:99999/', 400],
    ['GET', 'http://[localhost]/', 400],
    ['GET', 'http://127.1/', 400]
  ] as const) {
    const answer = await asked(t, url, target, ['Host: localhost'], { method })
    t.equal(answer.status, status, target)
    if (status !== 204) t.match(JSON.parse(answer.body), { error: String }, 'the response gives the reason')
  }
  t.match(await asked(t, url, '/', [], { httpVersion: '1.0' }), { status: 421, body: /names no host/ })
  for (const host of ['localhost:99999', '[localhost]', 'localhost:'])
    t.match(await asked(t, url, '/', [`Host: ${host}`]), { status: 400, body: /is not a valid host/ }, host)
  const raw = await RawSocket.to(t, url)
  raw.write('CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n')
  t.equal(await raw.frame(), undefined, 'CONNECT is closed without an answer')
  t.equal((await asked(t, url, '/', ['Host: localhost'])).status, 200, 'the server continues')
})

await t.test('a target may be an https: address with TLS', async t => {
  const { runtime } = start(t, { work: echo })
  const request = Object.assign(new IncomingMessage(Object.assign(new Socket(), { encrypted: true })), {
    url: 'https://localhost/x?y'
  })
  t.strictSame(targetOf(request, runtime.settings), { host: 'localhost', path: '/x?y' })
  t.match(targetOf(Object.assign(new IncomingMessage(new Socket()), { url: undefined }), runtime.settings), {
    status: 400
  })
})

await t.test('a card gives the requested loopback name and the listening port by default', async t => {
  const { url, port } = await served(t)
  for (const [host, name] of [
    ['localhost', 'localhost'],
    ['LOCALHOST:1', 'localhost'],
    ['127.0.0.1:80', '127.0.0.1'],
    ['[::1]:8080', '[::1]']
  ] as const) {
    const { body } = await asked(t, url, AGENT_CARD_PATH, [
      `Host: ${host}`,
      'X-Forwarded-Host: evil.example',
      'Forwarded: host=evil.example',
      'X-Forwarded-Proto: https',
      'X-Forwarded-Port: 1'
    ])
    t.strictSame(
      addressesIn(body).slice(0, 3),
      [`ws://${name}:${port}/`, `http://${name}:${port}/`, `http://${name}:${port}`],
      host
    )
    t.match((await asked(t, url, '/', [`Host: ${host}`])).body, `ws://${name}:${port}/`, 'the page too')
    for (const [version, path] of [
      ['0.3', AGENT_CARD_PATH],
      ['0.1', '/.well-known/agent.json'],
      ['', '/.well-known/agent.json']
    ] as const) {
      t.match(
        JSON.parse((await asked(t, url, path, [`Host: ${host}`, `A2A-Version: ${version}`])).body),
        { url: `http://${name}:${port}/` },
        `and the card of ${version}`
      )
    }
  }
})

await t.test('a card gives the listening address if the Host header is not verified', async t => {
  const given = (
    name: string,
    localAddress: string | undefined,
    localPort: number | undefined = 4242,
    hosts?: ReadonlyMap<string, number | undefined>
  ) => connectionOrigin(name, { localAddress, localPort }, hosts)
  t.equal(given('evil.example', '192.0.2.1'), 'http://192.0.2.1:4242')
  t.equal(given('localhost', '192.0.2.1'), 'http://192.0.2.1:4242', 'a loopback name means another machine there')
  t.equal(given('evil.example', '2001:db8::1', 80), 'http://[2001:db8::1]')
  t.equal(given('localhost', '::ffff:127.0.0.1'), 'http://localhost:4242')
  t.equal(given('localhost', undefined, 0), 'http://localhost', 'on a pipe there is no port')
  t.equal(
    given('agent.example', '192.0.2.1', 4242, new Map([['agent.example', undefined]])),
    'http://agent.example:4242'
  )
})

await t.test('with hosts a card gives the requested entry over every binding', async t => {
  const { url, port } = await served(t, {
    hosts: ['Agent.example:8080', 'other.example', 'web.example:80'],
    authenticate: anybody
  })
  for (const [host, given] of [
    ['agent.example', 'agent.example:8080'],
    ['AGENT.example:1', 'agent.example:8080'],
    ['other.example', `other.example:${port}`],
    ['other.example:1', `other.example:${port}`],
    ['web.example:1', 'web.example']
  ] as const) {
    const listed = [`ws://${given}/`, `http://${given}/`, `http://${given}`]
    t.strictSame(addressesIn((await asked(t, url, AGENT_CARD_PATH, [`Host: ${host}`])).body).slice(0, 3), listed, host)
    t.strictSame(
      addressesIn((await asked(t, url, `http://${host}${AGENT_CARD_PATH}`, ['Host: evil.example'])).body).slice(0, 3),
      listed,
      `http://${host}`
    )
    t.strictSame(
      addressesIn((await asked(t, url, '/extendedAgentCard', [`Host: ${host}`, 'A2A-Version: 1.0'])).body).slice(0, 3),
      listed,
      'the extended card by REST'
    )
    const raw = await RawSocket.to(t, url)
    raw.write(handshake(url, { host, more: ['A2A-Version: 1.0'] }))
    t.equal((await raw.answer()).status, 101)
    raw.send('{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard","params":{}}')
    t.strictSame(addressesIn(JSON.stringify((await raw.json())['result'])).slice(0, 3), listed, 'and over WebSocket')
  }
  for (const host of ['localhost', '127.0.0.1', 'evil.example', 'x.agent.example'])
    t.equal((await asked(t, url, AGENT_CARD_PATH, [`Host: ${host}`])).status, 421, host)
})

await t.test('publicUrl takes precedence over hosts', async t => {
  const { url } = await served(t, { hosts: ['agent.example'], publicUrl: 'https://public.example/a2a/' })
  t.strictSame(addressesIn((await asked(t, url, AGENT_CARD_PATH, ['Host: agent.example'])).body).slice(0, 2), [
    'wss://public.example/a2a/',
    'https://public.example/a2a/'
  ])
})

await t.test('hosts accepts names with or without a port, each once', async t => {
  for (const hosts of [
    [''],
    ['agent.example:0'],
    ['agent.example:99999'],
    ['agent.example/'],
    ['https://agent.example'],
    ['*.example:x'],
    ['::1'],
    ['user@agent.example'],
    ['agent.example', 'AGENT.example:1']
  ]) {
    t.throws(() => start(t, { work: echo }, { hosts }), TypeError, JSON.stringify(hosts))
  }
})

const ask = (
  handler: ReturnType<typeof httpHandler>,
  url: string,
  headers: Record<string, string> = {},
  init: RequestInit = {}
) => handler(new Request(url, { ...init, headers: { 'a2a-version': '1.0', ...headers } }))

await t.test("a mounted handler gives the request's loopback address, and refuses others by default", async t => {
  const { runtime } = start(t, { work: echo, extendedCard }, { authenticate: anybody })
  const handler = httpHandler(runtime, { dialects: [dialect03(runtime), dialect01(runtime)] })
  for (const origin of ['http://localhost:3000', 'https://127.0.0.1', 'http://[::1]:1']) {
    t.equal(addressesIn(await (await ask(handler, `${origin}${AGENT_CARD_PATH}`)).text())[0], `${origin}/`)
  }
  for (const path of ['/', AGENT_CARD_PATH, '/.well-known/agent.json']) {
    for (const method of ['GET', 'HEAD']) {
      const answer = await ask(handler, `https://agent.example${path}`, {}, { method })
      t.equal(answer.status, 421, path)
      t.match(await answer.json(), { error: /publicUrl or hosts of createRuntime, or url of httpHandler/ })
    }
  }
  const refused = { error: { details: [{ reason: 'EXTENDED_AGENT_CARD_NOT_CONFIGURED' }], message: /publicUrl/ } }
  t.match(await (await ask(handler, 'https://agent.example/extendedAgentCard')).json(), refused)
  t.match(await (await ask(handler, 'https://agent.example/v1/card', { 'a2a-version': '0.3' })).json(), {
    error: { message: /publicUrl/ }
  })
  t.equal((await ask(handler, 'https://agent.example/tasks')).status, 200, 'everything else is answered')
})

await t.test('a mounted handler checks both the URL of a request and its Host header', async t => {
  const { runtime } = start(t, { work: echo })
  const handler = httpHandler(runtime)
  t.equal((await ask(handler, `http://evil.example${AGENT_CARD_PATH}`, { host: 'localhost' })).status, 421)
  t.equal((await ask(handler, `http://localhost${AGENT_CARD_PATH}`, { host: 'evil.example' })).status, 421)
  t.equal((await ask(handler, `http://localhost${AGENT_CARD_PATH}`, { host: 'localhost:99999' })).status, 400)
  t.equal(
    (
      await ask(handler, `http://localhost${AGENT_CARD_PATH}`, {
        host: 'localhost:1',
        'x-forwarded-host': 'evil.example'
      })
    ).status,
    200
  )
  const named = httpHandler(start(t, { work: echo }, { hosts: ['agent.example', 'other.example:8443'] }).runtime, {
    path: '/inside'
  })
  t.equal(
    addressesIn(await (await ask(named, `https://agent.example:1/inside${AGENT_CARD_PATH}`)).text())[0],
    'https://agent.example/inside'
  )
  t.equal(
    addressesIn(await (await ask(named, `https://other.example/inside${AGENT_CARD_PATH}`)).text())[0],
    'https://other.example:8443/inside'
  )
  t.equal((await ask(named, `http://localhost/inside${AGENT_CARD_PATH}`)).status, 421)
  const placed = httpHandler(runtime, { url: 'https://public.example/a2a' })
  t.equal(
    addressesIn(await (await ask(placed, `http://localhost${AGENT_CARD_PATH}`)).text())[0],
    'https://public.example/a2a'
  )
})

await t.test('a server on all addresses needs publicUrl or hosts', async t => {
  const { runtime } = start(t, { work: echo }, { authenticate: anybody })
  const refusal = { name: 'TypeError', message: /every address of this machine.*publicUrl.*hosts/ }
  for (const host of ['0.0.0.0', '::', '', '0', '0:0::0']) {
    await t.rejects(serveRuntime(runtime, { port: 0, host }), refusal, host)
    await t.rejects(serveRuntime(runtime, { port: 0, host, http: false }), refusal, host)
  }
  const server = createServer().listen(0, '0.0.0.0')
  t.teardown(() => server.close())
  await once(server, 'listening')
  await t.rejects(serveRuntime(runtime, { server }), refusal, 'on the server of an app')
  for (const options of [{ publicUrl: 'https://agent.example/' }, { hosts: ['localhost'] }]) {
    const { url } = await serve(t, { work: echo }, { authenticate: anybody, ...options }, { port: 0, host: '0.0.0.0' })
    await t.resolves(JsonSocket.open(t, url.replace('0.0.0.0', 'localhost')))
  }
})
