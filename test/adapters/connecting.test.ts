import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { connect } from '../../adapters/client/connect.ts'
import { WEBSOCKET_BINDING } from '../../machines/protocol/uris.ts'
import { rejection } from '../fixtures/runtime-helpers.ts'
import { obedient, serve } from '../fixtures/served-agent.ts'

await t.test('a signal gives up connecting at whatever step it comes', async t => {
  const { url } = await serve(t, { work: obedient })
  const reason = new TypeError('changed my mind')
  for (let step = 0; step < 40; step += 1) {
    const stop = new AbortController()
    const outcome = connect(url, { signal: stop.signal }).then(client => client.close(), (error: unknown) => error)
    for (let turn = 0; turn < step; turn += 1) await Promise.resolve()
    stop.abort(reason)
    t.equal(await outcome, reason, `after ${step} turns`)
  }
})

await t.test('a signal gives up reading a card that does not end', async t => {
  const server = createServer((_, response) => response.writeHead(200, { 'content-length': 1000 }).write('{'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const stop = new AbortController()
  const connecting = rejection(connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { signal: stop.signal }))
  await once(server, 'request')
  const reason = new TypeError('enough')
  setImmediate(() => setImmediate(() => stop.abort(reason)))
  t.equal(await connecting, reason)
})

await t.test('credentials go to no other host than the one that was asked, whatever its card says', async t => {
  const card = {
    name: 'A', description: '', version: '1', capabilities: {}, defaultInputModes: [], defaultOutputModes: [], skills: [],
    supportedInterfaces: [{ url: 'ws://localhost:1/', protocolBinding: WEBSOCKET_BINDING, protocolVersion: '1.0' }]
  }
  const server = createServer((_, response) => response.end(JSON.stringify(card)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const error = await rejection(connect(url, { headers: { authorization: 'Bearer secret' } }))
  t.match(error, { code: 'Forbidden', message: /another host, ws:\/\/localhost:1\// })
  t.match(await rejection(connect(url)), { code: 'Overloaded' }, 'without credentials it is tried')
})
