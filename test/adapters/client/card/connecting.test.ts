import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocketTransportFactory } from '../../../../adapters/a2a-sdk/index.ts'
import { fetchCard } from '../../../../adapters/client/card/discovery.ts'
import { connect, type ConnectOptions } from '../../../../adapters/client/connect.ts'
import { cardUrlRefusal } from '../../../../adapters/client/hosts.ts'
import { remoteAgent } from '../../../../adapters/delegation/index.ts'
import { AGENT_CARD_PATH, WEBSOCKET_BINDING } from '../../../../machines/protocol/uris.ts'
import { unusedPort } from '../../../fixtures/network/unused-port.ts'
import { refusal, rejection } from '../../../fixtures/runtime/runtime-helpers.ts'
import { body, httpAgent, result } from '../../../fixtures/peers/scripted-http.ts'
import { obedient, serve } from '../../../fixtures/servers/served-agent.ts'

await t.test('a signal aborts connecting at every step', async t => {
  const { url } = await serve(t, { work: obedient })
  const reason = new TypeError('changed my mind')
  for (let step = 0; step < 40; step += 1) {
    const stop = new AbortController()
    const outcome = connect(url, { signal: stop.signal }).then(
      client => client.close(),
      (error: unknown) => error
    )
    for (let turn = 0; turn < step; turn += 1) await Promise.resolve()
    stop.abort(reason)
    t.equal(await outcome, reason, `after ${step} turns`)
  }
})

await t.test('a signal aborts reading a card that does not end', async t => {
  const server = createServer((_, response) => response.writeHead(200, { 'content-length': 1000 }).write('{'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const stop = new AbortController()
  const connecting = rejection(
    connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { signal: stop.signal })
  )
  await once(server, 'request')
  const reason = new TypeError('enough')
  setImmediate(() => setImmediate(() => stop.abort(reason)))
  t.equal(await connecting, reason)
})

await t.test('credentials go only to the given host, whatever its card says', async t => {
  const card = {
    name: 'A',
    description: '',
    version: '1',
    capabilities: {},
    defaultInputModes: [],
    defaultOutputModes: [],
    skills: [],
    supportedInterfaces: [{ url: 'ws://localhost:1/', protocolBinding: WEBSOCKET_BINDING, protocolVersion: '1.0' }]
  }
  const server = createServer((_, response) => response.end(JSON.stringify(card)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const error = await rejection(connect(url, { headers: { authorization: 'Bearer secret' } }))
  t.match(error, { code: 'Forbidden', message: /another origin, ws:\/\/localhost:1\// })
  t.match(await rejection(connect(url)), { code: 'Overloaded' }, 'without credentials it is used')
  for (const [binding, address] of [
    ['JSONRPC', 'http://localhost:1/'],
    ['HTTP+JSON', 'https://evil.example'],
    ['GRPC', 'evil.example:1'],
    ['GRPC', 'grpc://localhost:1']
  ] as const) {
    const { url } = await httpAgent(t, { binding, address })
    t.match(await rejection(connect(url, { headers: () => ({ authorization: 'Bearer secret' }) })), {
      code: 'Forbidden',
      message: `The card at ${url} names an agent of another origin, ${address}. To send it your headers, give that address itself, or name `
    })
  }
  const { url: strange } = await httpAgent(t, { address: 'not an address' })
  t.match(await rejection(connect(strange, { headers: {} })), {
    code: 'InvalidAgentResponse',
    message: /"not an address", which is not a URL/
  })
  for (const [binding, address] of [
    ['JSONRPC', 'ftp://a.example'],
    ['HTTP+JSON', '/agent']
  ] as const) {
    const { url } = await httpAgent(t, { binding, address })
    t.match(await rejection(connect(url)), {
      code: 'InvalidAgentResponse',
      message: `The card names ${JSON.stringify(address)}, which is not an http: URL.`
    })
  }
})

await t.test('credentials go to no other port of the host, unless credentialOrigins names it', async t => {
  const headers = { authorization: 'Bearer secret' }
  const target = await httpAgent(t)
  target.script(result({ id: 't', status: { state: 'TASK_STATE_WORKING' } }))
  const address = `${target.url}/agent`
  const { url } = await httpAgent(t, { address })
  t.match(await refusal(connect(url, { headers })), {
    code: 'Forbidden',
    message: `name ${target.url} in credentialOrigins`
  })
  t.match(
    await refusal(
      connect(url, { headers, credentialOrigins: ['https://a.example', target.url.replace('http', 'https')] })
    ),
    { code: 'Forbidden' }
  )
  t.equal(target.asked.length, 0)
  for (const credentialOrigins of [[target.url], [`${target.url.replace('http', 'ws')}/`]]) {
    const client = await connect(url, { headers, credentialOrigins })
    t.match(await client.getTask({ id: 't' }), { id: 't' })
    t.equal(target.asked.at(-1)?.headers.authorization, 'Bearer secret')
  }
  const plain = await connect(url)
  t.match(await plain.getTask({ id: 't' }), { id: 't' }, 'without credentials any origin may be named')
})

/** An agent whose card has these interfaces of 1.0, then one over JSON-RPC. */
async function agentBehind(t: Test, ...interfaces: readonly (readonly [protocolBinding: string, url: string])[]) {
  const agent = await httpAgent(t)
  agent.script(result({ id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } }))
  const own = (await (await fetch(`${agent.url}${AGENT_CARD_PATH}`)).json()) as { supportedInterfaces: object[] }
  const supportedInterfaces = [
    ...interfaces.map(([protocolBinding, url]) => ({ url, protocolBinding, protocolVersion: '1.0' })),
    ...own.supportedInterfaces
  ]
  const host = await httpAgent(t, { cardPath: '/none' })
  host.script(body(JSON.stringify({ ...own, supportedInterfaces })))
  return { agent, url: host.url }
}

await t.test('an interface of another origin is skipped if there is another', async t => {
  const other = await httpAgent(t)
  const { agent, url } = await agentBehind(t, ['GRPC', new URL(other.url).host])
  t.equal((await connect(url, { headers: {}, credentialOrigins: [agent.url] })).binding, 'JSONRPC')
  t.equal((await connect(url)).binding, 'GRPC')
})

await t.test('the first interface that can be reached is taken, and what was skipped is a warning', async t => {
  const { emitWarning } = process
  t.teardown(() => (process.emitWarning = emitWarning))
  const [plain, dead] = [await httpAgent(t), `127.0.0.1:${await unusedPort()}`]
  const { host } = new URL(plain.url)
  for (const [skipped, warning] of [
    [['GRPC', `localhost.invalid:${new URL(`http://${dead}`).port}`], /Nobody answers at localhost\.invalid:\d+\. /],
    [['GRPC', dead], /Nobody answers at 127\.0\.0\.1:\d+\. .*The interface was skipped\.$/],
    [['HTTP+JSON', `http://${dead}/`], /Nobody answers at http:/],
    [['HTTP+JSON', `ws://${host}/`], /which is not an http: URL/],
    [['GRPC', 'http://[::1'], /which is not a URL/],
    [[WEBSOCKET_BINDING, `ws://${dead}/`], /Nobody answers at ws:/],
    [[WEBSOCKET_BINDING, `ws://${host}/`], /refused the WebSocket handshake/]
  ] as const) {
    const { agent, url } = await agentBehind(t, skipped)
    plain.script(body('', {}, 404))
    const warnings: string[] = []
    process.emitWarning = (text: unknown) => void warnings.push(String(text))
    const client = await connect(url)
    t.teardown(() => client.close())
    t.equal(client.binding, 'JSONRPC', String(skipped))
    t.match(warnings, [warning], String(skipped))
    t.match(await client.getTask({ id: 't' }), { id: 't' })
    t.strictSame(
      agent.asked.map(({ method }) => method),
      ['GetTask'],
      'nothing was sent before'
    )
  }
})

await t.test('an error of an interface that was tried is told before one that this client may not use', async t => {
  const dead = `127.0.0.1:${await unusedPort()}`
  const { agent, url } = await agentBehind(t, ['GRPC', 'other.example:443'], [WEBSOCKET_BINDING, `ws://${dead}/`])
  t.match(
    await refusal(
      connect(url, {
        headers: {},
        bindings: ['GRPC', 'WEBSOCKET'],
        credentialOrigins: [`ws://${dead}`, agent.url],
        giveUpAfterMs: 0
      })
    ),
    { code: 'Overloaded', message: /Nobody answers at/ }
  )
})

await t.test('an interface that refuses the credentials is not skipped', async t => {
  const other = await httpAgent(t)
  const { url } = await agentBehind(t, [WEBSOCKET_BINDING, other.url.replace('http', 'ws')])
  other.script(body('', {}, 401))
  t.match(await refusal(connect(url)), { code: 'Unauthenticated' })
})

await t.test('after an address with TLS that cannot be reached none without TLS is taken', async t => {
  const port = await unusedPort()
  const { url } = await agentBehind(t, ['HTTP+JSON', `https://127.0.0.1:${port}/`])
  t.match(await refusal(connect(url)), { code: 'Overloaded', message: /Nobody answers at https:/ })
  const refused = await agentBehind(t, [WEBSOCKET_BINDING, `ws://127.0.0.1:${port}/`])
  t.match(
    await refusal(connect(refused.url, { giveUpAfterMs: 0, bindings: ['WEBSOCKET'] })),
    { code: 'Overloaded' },
    'the last one is not skipped'
  )
})

await t.test('origins are compared by scheme, host and port, and TLS is never downgraded', t => {
  const headers = { authorization: 'x' }
  const card = 'https://a.example/agent'
  const leads = (asked: string, named: string, credentialOrigins: string[] = []) =>
    cardUrlRefusal(asked, named, { headers, credentialOrigins })?.code ?? 'yes'
  for (const named of [
    'https://a.example',
    'https://A.example:443/x',
    'wss://a.example/',
    'grpcs://a.example',
    'a.example:443',
    'a.example'
  ])
    t.equal(leads(card, named), 'yes', named)
  for (const named of ['https://a.example:444', 'wss://b.example', 'a.example:8443', 'https://a.example@b.example/']) {
    t.equal(leads(card, named), 'Forbidden', named)
    t.equal(leads(card, named, ['https://a.example:444', 'wss://b.example', 'grpcs://a.example:8443']), 'yes', named)
  }
  for (const asked of [card, 'wss://a.example/']) {
    for (const named of [
      'http://a.example:443',
      'ws://a.example',
      'http://a.example',
      'grpc://a.example:443',
      'localhost:443'
    ]) {
      t.equal(
        leads(asked, named, ['http://a.example', 'http://a.example:443', 'http://localhost:443']),
        'Forbidden',
        named
      )
      t.match(cardUrlRefusal(asked, named, {}), { message: /was read over TLS/ }, 'also without headers')
    }
  }
  for (const named of ['https://a.example', 'http://a.example:8080'])
    t.equal(leads('http://a.example', named), 'Forbidden', named)
  for (const [asked, named] of [
    ['http://127.0.0.1:50', '127.0.0.1:50'],
    ['ws://[::1]:50', '[::1]:50'],
    ['http://localhost', 'localhost']
  ] as const)
    t.equal(leads(asked, named), 'yes', named)
  t.throws(() => leads(card, 'not an address'), { code: 'InvalidAgentResponse' })
  t.end()
})

await t.test('an invalid origin in credentialOrigins throws a TypeError at once', async t => {
  for (const origin of [
    'a.example',
    'https://a.example/path',
    'https://a.example?x',
    'https://anna@a.example',
    'ftp://a.example',
    'https://a.example:x',
    '',
    'https://'
  ]) {
    const credentialOrigins = [origin]
    const wanted = {
      name: 'TypeError',
      message: `credentialOrigins has ${JSON.stringify(origin)}, which is not an origin. Write scheme, host and port: 'https://agent.example:8443'.`
    }
    t.match(await rejection(connect('http://127.0.0.1:1', { credentialOrigins })), wanted)
    t.throws(() => remoteAgent('http://127.0.0.1:1', { credentialOrigins }), wanted)
    t.throws(() => new WebSocketTransportFactory({ credentialOrigins }), wanted)
  }
})

await t.test("the official client's transport sends headers only to credentialOrigins", async t => {
  const { url } = await serve(t, { work: obedient })
  const headers = { authorization: 'Bearer secret' }
  t.throws(() => new WebSocketTransportFactory({ headers }), {
    name: 'TypeError',
    message: /headers need credentialOrigins/
  })
  const transport = await new WebSocketTransportFactory({ headers, credentialOrigins: [url] }).create(url)
  t.teardown(() => transport.close())
  t.match(
    await rejection(new WebSocketTransportFactory({ headers, credentialOrigins: ['ws://127.0.0.1:1'] }).create(url)),
    { code: 'Forbidden', message: /may not receive your headers/ }
  )
})

await t.test("the official client's transport also finds a WebSocket in the card", async t => {
  const { url } = await serve(t, { work: obedient })
  const transport = await new WebSocketTransportFactory({ bindings: ['JSONRPC'] }).create(url.replace('ws', 'http'))
  t.teardown(() => transport.close())
  t.match(await transport.getTask({ id: 'none', tenant: '' }).catch((error: unknown) => error), { message: /none/ })
  const { url: other } = await httpAgent(t, { binding: 'WEBSOCKET', address: 'ws://localhost:1/' })
  t.match(
    await rejection(
      new WebSocketTransportFactory({ headers: { authorization: 'Bearer secret' }, credentialOrigins: [other] }).create(
        other
      )
    ),
    { code: 'Forbidden' }
  )
})

/** The binding that is chosen with these options. */
async function chosen(t: Test, url: string, options: ConnectOptions = {}): Promise<string> {
  const client = await connect(url, options)
  t.teardown(() => client.close())
  return client.binding
}

await t.test('the first interface of a card with A2A 1.0 and a supported binding is used', async t => {
  const { url } = await serve(t, { work: obedient })
  t.equal(await chosen(t, url), 'WEBSOCKET', 'a ws: address is used as given')
  t.equal(await chosen(t, url.replace('ws', 'http'), { bindings: ['WebSocket'] }), 'WEBSOCKET')
  const several = await httpAgent(t, { binding: 'JSONRPC', others: ['urn:other', 'http+json', 'GRPC'] })
  t.equal(await chosen(t, several.url), 'HTTP+JSON')
  t.equal(
    await chosen(t, several.url, { bindings: ['JSONRPC', 'HTTP+JSON'] }),
    'JSONRPC',
    'bindings selects the preferred one'
  )
  t.equal(await chosen(t, several.url, { bindings: [WEBSOCKET_BINDING, 'jsonrpc'] }), 'JSONRPC')
  t.equal(
    await chosen(t, several.url.replace('http', 'ws'), { bindings: ['JSONRPC'] }),
    'JSONRPC',
    "a binding other than the address's is found by the card"
  )
  t.equal(await chosen(t, (await httpAgent(t, { version: '1.0.1' })).url), 'JSONRPC', 'patch numbers are ignored')
  t.match(await refusal(connect(several.url, { bindings: ['WEBSOCKET'] })), {
    code: 'UnsupportedOperation',
    message:
      /offers no WEBSOCKET that this client speaks \(A2A 1\.1 and 1\.0; 0\.3, but not over WebSocket\), only urn:other 1\.0, http\+json 1\.0, GRPC 1\.0, JSONRPC 1\.0\.$/
  })
})

await t.test('an unsupported binding throws a TypeError', async t => {
  t.match(await rejection(connect('http://127.0.0.1:1', { bindings: ['SOAP'] })), {
    name: 'TypeError',
    message: '"SOAP" is not a binding of this client. Use WEBSOCKET, JSONRPC, HTTP+JSON, GRPC.'
  })
  t.match(await rejection(connect('http://127.0.0.1:1', { bindings: [] })), {
    name: 'TypeError',
    message: /at least one/
  })
})

await t.test('versions names those to use, also for a ws: address', async t => {
  const old = await httpAgent(t, { version: '0.3.0' })
  const client = await connect(old.url, { versions: ['1.0', '0.3'] })
  t.equal(client.binding, 'JSONRPC')
  await client.close()
  t.match(await refusal(connect(old.url, { versions: ['1.0'] })), {
    code: 'VersionNotSupported',
    message: `The agent at ${old.url} does not offer A2A 1.0, only 0.3.0.`
  })
  const { url } = await serve(t, { work: obedient })
  t.match(await refusal(connect(url, { versions: ['0.3'] })), { code: 'VersionNotSupported' })
  const current = await connect(url, { versions: ['1.0'] })
  t.equal(current.binding, 'WEBSOCKET')
  await current.close()
  t.match(await rejection(connect(url, { versions: ['2.0'] })), {
    name: 'TypeError',
    message: '"2.0" is not a version of A2A that this client speaks. Use 1.1 or 1.0 or 0.3.'
  })
})

await t.test('a card that is given is not fetched, and is verified as one that is', async t => {
  const { url } = await serve(t, { work: obedient })
  const host = `http://127.0.0.1:${new URL(url).port}/nothing/`
  const card = {
    name: 'Given',
    version: '1',
    supportedInterfaces: [{ url, protocolBinding: 'WEBSOCKET', protocolVersion: '1.0' }]
  }
  const client = await connect(host, { card })
  t.equal(client.url, url)
  await client.close()
  const verified: unknown[] = []
  const verifyCard = async (...given: readonly unknown[]) => {
    verified.push(...given)
    throw new TypeError('not trusted')
  }
  t.match(await rejection(connect(url, { card, verifyCard })), { message: 'not trusted' })
  t.strictSame(verified, [card, url])
  t.match(await refusal(connect(host, { card: { name: 'Empty' } })), { code: 'InvalidAgentResponse' })
})

await t.test('an agent of a version before 0.3 is refused', async t => {
  const older = await httpAgent(t, { version: '0.2', others: ['GRPC'] })
  t.match(await refusal(connect(older.url)), {
    code: 'UnsupportedOperation',
    message: `The agent at ${older.url} speaks only A2A 0.2; this client speaks 1.1, 1.0 and 0.3.`
  })
  const oldest = await httpAgent(t, { cardPath: '/none' })
  oldest.script(
    body(
      JSON.stringify({
        protocolVersion: '0.2.5',
        name: 'Old',
        version: '1',
        url: 'http://127.0.0.1:1',
        preferredTransport: 'JSONRPC',
        capabilities: {},
        skills: []
      })
    )
  )
  t.match(await refusal(connect(oldest.url)), {
    code: 'UnsupportedOperation',
    message: /speaks only A2A 0\.2; this client speaks 1\.1, 1\.0 and 0\.3/
  })
  t.equal(older.asked.length, 0)
})

await t.test('an agent may be mounted below a path', async t => {
  const below = `/agents/one${AGENT_CARD_PATH}`
  const agent = await httpAgent(t, { cardPath: below })
  agent.script(body('nothing', {}, 404))
  for (const path of ['/agents/one', '/agents/one/', '/agents/one?x=1#y', below])
    t.equal((await fetchCard(`${agent.url}${path}`)).name, 'Scripted', path)
  t.match(await refusal(fetchCard(`${agent.url}/agents/two`)), {
    code: 'UnsupportedOperation',
    message: `There is no agent card at ${agent.url}/agents/two${AGENT_CARD_PATH}: HTTP 404. There is no agent card at ${agent.url}${AGENT_CARD_PATH}: HTTP 404.`
  })
  t.strictSame(
    agent.asked.map(({ path }) => path),
    [`/agents/two${AGENT_CARD_PATH}`, AGENT_CARD_PATH, '/agents/two']
  )
  const root = await httpAgent(t)
  root.script(body('<html>', { 'content-type': 'text/html' }))
  t.equal((await fetchCard(`${root.url}//evil.example/page`)).name, 'Scripted', 'a page is no card, and a path no host')
})

await t.test('a card may be at the given address, which is asked last, and never for a bare origin', async t => {
  const agent = await httpAgent(t, { cardPath: '/cards/mine' })
  agent.script(body('nothing', {}, 404))
  t.equal((await fetchCard(`${agent.url}/cards/mine?key=a#b`)).name, 'Scripted')
  t.strictSame(
    agent.asked.map(({ path }) => path),
    [`/cards/mine${AGENT_CARD_PATH}?key=a`, `${AGENT_CARD_PATH}?key=a`]
  )
  t.match(await refusal(fetchCard(`${agent.url}/?key=a`)), { code: 'UnsupportedOperation' })
  t.equal(agent.asked.length, 3)
  const old = await httpAgent(t, { cardPath: '/none' })
  const card = JSON.stringify({
    protocolVersion: '0.3.0',
    name: 'Old',
    version: '1',
    url: 'http://127.0.0.1:1',
    preferredTransport: 'JSONRPC',
    capabilities: {},
    skills: []
  })
  old.script(body('', {}, 404), body('', {}, 404), body(card))
  t.equal((await fetchCard(`${old.url}/old`)).name, 'Old')
})

await t.test('an agent that answers at its own address with anything but a card has none', async t => {
  const none = body('nothing', {}, 404)
  for (const answer of [body('<html>'), body('[]'), body('{"status":"ok"}'), body('', {}, 401), body('', {}, 503)]) {
    const agent = await httpAgent(t, { cardPath: '/none' })
    agent.script(none, none, answer)
    t.match(await refusal(fetchCard(`${agent.url}/agent`)), {
      code: 'UnsupportedOperation',
      message: `There is no agent card at ${agent.url}${AGENT_CARD_PATH}: HTTP 404.`
    })
    t.equal(agent.asked.length, 3)
  }
  const silent = await httpAgent(t, { cardPath: '/none' })
  silent.script(none, none, () => {})
  const stop = new AbortController()
  const reading = rejection(fetchCard(`${silent.url}/agent`, { signal: stop.signal }))
  await silent.request(2)
  const reason = new TypeError('enough')
  stop.abort(reason)
  t.equal(await reading, reason)
})

await t.test('a truncated card is refused', async t => {
  const agent = await httpAgent(t, { cardPath: '/none' })
  agent.script((_, response) => {
    response.writeHead(200, { 'content-length': 1000 }).write('{', () => setImmediate(() => response.destroy()))
  })
  t.match(await refusal(fetchCard(agent.url)), { code: 'InvalidAgentResponse', message: /was interrupted/ })
})

await t.test('a fetch error without a reason may follow a sent request', async t => {
  const agent = await httpAgent(t)
  const client = await connect(agent.url, { giveUpAfterMs: 0 })
  t.intercept(globalThis, 'fetch', { value: () => Promise.reject(new TypeError('Failed to fetch')) })
  t.match(await refusal(client.getTask({ id: 't' })), { code: 'Overloaded', message: /was lost \(no answer\)/ })
})
