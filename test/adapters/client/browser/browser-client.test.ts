import t from 'tap'
import { WebSocket } from 'ws'
import { connect, type ConnectOptions } from '../../../../adapters/client/connect.ts'
import { openAgentConnection } from '../../../../adapters/client/open-agent.ts'
import { openByCard } from '../../../../adapters/client/open-by-card.ts'
import { OPENERS as IN_NODE } from '../../../../adapters/client/openers.ts'
import { OPENERS } from '../../../../adapters/client/openers.browser.ts'
import { openSocket } from '../../../../adapters/client/transports/websocket/socket.browser.ts'
import { serve } from '../../../../adapters/serve/serve.ts'
import { createRuntime, defineAgent } from '../../../../runtime/index.ts'
import { refusal } from '../../../fixtures/runtime/runtime-helpers.ts'
import { body, httpAgent } from '../../../fixtures/peers/scripted-http.ts'

t.before(() => Object.assign(globalThis, { WebSocket }))

await t.test('in browsers the client loads each binding that needs no optional peer', async t => {
  const openers = Object.values(OPENERS).flatMap(bindings => Object.values(bindings))
  t.equal(openers.length, 8)
  for (const { load, peers } of openers) {
    t.type(await load(), 'function')
    t.equal(peers, undefined)
  }
  for (const { load } of Object.values(IN_NODE).flatMap(bindings => Object.values(bindings)))
    t.type(await load(), 'function', 'as it does in Node')
})

await t.test(
  'an interface that needs an optional peer is refused in browsers, with the supported bindings',
  async t => {
    for (const [binding, version] of [
      ['GRPC', '1.0'],
      ['GRPC', '0.3']
    ] as const) {
      const { url } = await httpAgent(t, { binding, version })
      t.match(await refusal(openByCard(url, {}, undefined, OPENERS)), {
        code: 'UnsupportedOperation',
        message: `The agent at ${url} speaks ${binding} ${version}, which this client speaks only in Node. In browsers it speaks ${version === '1.0' ? 'WEBSOCKET, JSONRPC, HTTP+JSON' : 'JSONRPC, HTTP+JSON'}.`
      })
    }
    const agent = await httpAgent(t, { others: ['GRPC'] })
    const { calls, binding } = await openByCard(agent.url, {}, undefined, OPENERS)
    t.teardown(() => calls.link.close())
    t.equal(binding, 'JSONRPC', 'such an interface is skipped if there is another')
  }
)

await t.test('in browsers, headers and credentials choose a binding that can send them', async t => {
  const key = (location: string) => ({ securitySchemes: { key: { apiKeySecurityScheme: { location, name: 'k' } } } })
  const binding = async (
    options: ConnectOptions,
    { card = {}, others = ['WEBSOCKET'], ws = false, binding = 'JSONRPC' } = {}
  ) => {
    const { url, script } = await httpAgent(t, { others, binding, card })
    script(body('', {}, 404))
    const opening = openAgentConnection(ws ? url.replace('http', 'ws') : url, options, OPENERS).then(
      ({ calls, binding }) => calls.link.close().then(() => binding),
      ({ code, message }) => ({ code, message })
    )
    return opening
  }
  const headers = { authorization: 'Bearer secret' }
  const refused = /refused the WebSocket handshake/
  const credentials = { apiKey: 'secret' }
  for (const ws of [true, false]) {
    t.equal(await binding({ headers }, { ws }), 'JSONRPC')
    t.equal(await binding({ headers: () => headers }, { ws }), 'JSONRPC')
    t.equal(await binding({ credentials }, { ws, card: key('header') }), 'JSONRPC')
    t.equal(await binding({ credentials }, { ws }), 'JSONRPC')
    t.match(
      await binding({ credentials: { ...credentials, onlyIfAsked: true } }, { ws, binding: 'WEBSOCKET', others: [] }),
      { message: refused },
      'a WebSocket if nothing is sent'
    )
    t.match(
      await binding({ credentials }, { ws, binding: 'WEBSOCKET', others: [], card: key('query') }),
      { message: refused },
      'or in its query'
    )
    t.match(await binding({ headers, bindings: ['WEBSOCKET'] }, { ws }), {
      code: 'UnsupportedOperation',
      message: /speaks WEBSOCKET, over which this client cannot send headers in browsers\./
    })
    t.match(await binding({ headers }, { ws, binding: 'WEBSOCKET' }), {
      code: 'UnsupportedOperation',
      message: /headers in browsers/
    })
  }
  t.match(
    await binding({ headers: {} }, { binding: 'WEBSOCKET', others: [] }),
    { message: refused },
    'headers without any are none'
  )
  t.match(await binding({ credentials }, { card: key('cookie') }), {
    code: 'UnsupportedOperation',
    message: /cookies of your own in browsers/
  })
})

await t.test('in a page of another origin the error of a failed connection mentions the origin', async t => {
  const location = { origin: 'https://app.example' }
  Object.assign(globalThis, { location })
  t.teardown(() => Object.assign(globalThis, { location: undefined }))
  const message = async (url: string) => (await refusal(connect(url))).message
  const hint =
    "Does it allow pages of https://app.example? Start it with --origin https://app.example, or createRuntime({ origins: ['https://app.example'] })."
  t.equal(await message('ws://127.0.0.1:1/'), `Nobody answers at ws://127.0.0.1:1/. Is the agent running? ${hint}`)
  t.match(await message('http://127.0.0.1:1'), hint)
  location.origin = 'http://127.0.0.1:1'
  t.equal(
    await message('ws://127.0.0.1:1/'),
    'Nobody answers at ws://127.0.0.1:1/. Is the agent running?',
    'its own origin is allowed'
  )
  location.origin = 'null'
  t.match(await message('ws://127.0.0.1:1/'), 'A page of a file has no origin')
})

await t.test("the client uses the browser's own WebSocket", async t => {
  const runtime = createRuntime({ agent: defineAgent({ card: { name: 'Empty' }, work: async () => ({}) }) })
  t.teardown(() => runtime.close())
  const served = await serve(runtime, { port: 0, http: false })
  t.teardown(() => served.close())
  const socket = await openSocket(served.url, {}, new AbortController().signal)
  t.type(socket, WebSocket)
  t.match(socket, { readyState: WebSocket.OPEN, protocol: 'a2a.v1' })
  socket.close()
  t.match(await refusal(openSocket('ws://127.0.0.1:1', {}, new AbortController().signal)), { code: 'Overloaded' })
})
