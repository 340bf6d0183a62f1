import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocketServer } from 'ws'
import { callerFor } from '../../adapters/conformance/callers/callers.ts'
import { FrameSocket } from '../../adapters/conformance/callers/frame-socket.ts'
import { grpcCaller } from '../../adapters/conformance/callers/grpc-caller.ts'
import { serve } from '../../adapters/serve/serve.ts'
import { WEBSOCKET_SUBPROTOCOL } from '../../machines/protocol/uris.ts'
import { obedientAgent } from '../conformance/agent.ts'
import { faultyServer } from '../fixtures/faulty-server.ts'
import { start } from '../fixtures/runtime-helpers.ts'
import { grpcAgent } from '../fixtures/scripted-grpc.ts'
import { ids, tested } from '../fixtures/tested-server.ts'

/** Answers every request as a test wants. Gives the server's address. */
async function webServer(t: Test, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

await t.test('the card is looked for below the address and at the root, and no longer than an answer may take', async t => {
  const { runtime } = start(t, { ...obedientAgent().definition })
  const served = await serve(runtime, { port: 0 })
  t.teardown(() => served.close())
  const { origin } = new URL(served.url)
  const { columns } = await tested(`${origin}/some/agent`, { texts: ['x'], bindings: ['JSONRPC'], bounds: { requests: 1 } })
  t.equal(columns[0]?.verdicts.find(({ requirement }) => requirement.id === 117)?.outcome, 'passed')
  await t.rejects(tested(`${origin}/nothing.json`), { code: 'UnsupportedOperation', message: /^There is no agent card at [^ ]*\/nothing\.json: HTTP 404\.$/ })
  const empty = await webServer(t, (_, response) => void response.writeHead(404, { 'content-type': 'application/json' }).end('{}'))
  await t.rejects(tested(`${empty}/agent`), { message: /no agent card at [^ ]*\/agent\/\.well-known\/[^ ]*: HTTP 404\. There is no agent card at / })
  await t.rejects(tested(await webServer(t, () => {})), { code: 'Overloaded', message: /Nobody answers at/ })
})

await t.test('a card that is asked for again by its date alone may be cached, and one at a place of its own is not at the well-known one', async t => {
  const url = await faultyServer(t, {})
  const card = await (await fetch(`${url}/.well-known/agent-card.json`)).text()
  const dated = await webServer(t, ({ headers }, response) => {
    response.writeHead(headers['if-modified-since'] ? 304 : 200, { 'content-type': 'application/json', 'cache-control': 'max-age=60', 'last-modified': new Date(0).toUTCString() })
    response.end(headers['if-modified-since'] ? '' : card)
  })
  const { columns } = await tested(`${dated}/card.json`, { texts: ['x'], bounds: { requests: 1 } })
  t.same([116, 120].map(id => columns[0]?.verdicts[id - 1]?.outcome), ['skipped', 'passed'])
})

await t.test('without the packages of a binding it is skipped, and they are named', async t => {
  const missing = async () => Promise.reject(Object.assign(new Error('none'), { code: 'ERR_MODULE_NOT_FOUND' }))
  const callers = { WEBSOCKET: missing, JSONRPC: missing, 'HTTP+JSON': missing, GRPC: missing }
  const why = await callerFor({ binding: 'GRPC', url: '127.0.0.1:9' }, { asked: 'http://127.0.0.1', apiKey: undefined, extensions: [] }, callers)
  t.match(why, /^a package is missing: npm install .*@grpc\/grpc-js/)
})

await t.test('by gRPC an error counts by its status where nothing says which, and what cannot be read says nothing', async t => {
  const { port, script } = await grpcAgent(t)
  const url = await faultyServer(t, { card: card => ({ ...card, supportedInterfaces: [{ url: `127.0.0.1:${port}`, protocolBinding: 'GRPC', protocolVersion: '1.0' }] }) })
  script(...Array.from({ length: 100 }, () => ({ error: { code: 5, details: 'none', bin: new Uint8Array([255, 255]) } })))
  const failed = ids(await tested(url, { texts: ['x'] }), 'failed')
  t.ok(failed.includes(97) && failed.includes(23), String(failed))
  for (const id of [29, 52, 60, 65, 77]) t.notOk(failed.includes(id), `${id}`)
  const caller = grpcCaller(`127.0.0.1:${port}`, {})
  t.teardown(() => caller.close())
  script({ error: { code: 99, details: 'odd' } }, { task: {} })
  t.match(await caller.call('GetTask', { id: 'a' }).catch((error: unknown) => error), { native: '99', message: 'odd' })
  t.same(await caller.call('DeleteTaskPushNotificationConfig', { taskId: 'a', id: 'b' }), { result: {}, extensions: '' })
  const secure = grpcCaller(`grpcs://127.0.0.1:${port}`, {})
  t.teardown(() => secure.close())
  t.match(await secure.call('GetTask', { id: 'a' }).catch((error: unknown) => error), { native: 'UNAVAILABLE' })
})

await t.test('a WebSocket tells what came under no id of ours, and that it has ended', async t => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => WEBSOCKET_SUBPROTOCOL })
  t.teardown(() => server.close())
  await once(server, 'listening')
  server.on('connection', socket => socket.on('message', (data: Buffer) => socket.send((JSON.parse(data.toString()) as { say: string }).say)))
  const socket = new FrameSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, {})
  const first = socket.ask(1, '{"say":"no JSON"}')
  t.equal(await first.next(), 'no JSON')
  const second = socket.ask(2, JSON.stringify({ say: '{"id":"of nobody"}' }))
  t.same(await second.next(), { id: 'of nobody' })
  second.done()
  const third = socket.ask(3, JSON.stringify({ say: '{"id":1}' }))
  t.same(await first.next(), { id: 1 })
  first.done()
  socket.terminate()
  await t.rejects(third.next(), { code: 'InvalidAgentResponse', message: /ended: cut by this client/ })
})
