import { register } from 'node:module'
import t from 'tap'
import { connect } from '../../../adapters/client/connect.ts'
import { httpAgent, result } from '../../fixtures/peers/scripted-http.ts'
import { refusal } from '../../fixtures/runtime/runtime-helpers.ts'

// From here on nothing finds the official client, or OpenTelemetry's API.
register('../../fixtures/processes/without-peers.js', import.meta.url)

await t.test('connecting without the official client gives the line that installs it', async t => {
  const { url } = await httpAgent(t, { binding: 'GRPC' })
  t.match(await refusal(connect(url)), {
    code: 'UnsupportedOperation',
    message: `The agent at ${url} speaks GRPC, for which a package is missing. Install it: npm install @a2a-js/sdk @grpc/grpc-js @bufbuild/protobuf`
  })
})

await t.test('bindings of the official client are skipped without it, if there is another', async t => {
  const agent = await httpAgent(t, { others: ['GRPC'] })
  agent.script(result({ id: 't', status: { state: 'TASK_STATE_WORKING' } }))
  const client = await connect(agent.url)
  t.teardown(() => client.close())
  t.equal(client.binding, 'JSONRPC')
  t.match(await client.getTask({ id: 't' }), { id: 't' })
  t.match(
    await refusal(connect(agent.url, { bindings: ['GRPC'] })),
    { message: /GRPC, for which/ },
    'unless no other may be used'
  )
})

await t.test("openTelemetry without OpenTelemetry's API gives the line that installs it", async t => {
  const { openTelemetry } = await import('../../../adapters/opentelemetry/open-telemetry.ts')
  t.throws(
    () => openTelemetry(),
    new TypeError('openTelemetry needs the OpenTelemetry API. Install it: npm install @opentelemetry/api')
  )
})
