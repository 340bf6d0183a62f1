import { context, propagation, trace, type TextMapPropagator } from '@opentelemetry/api'
import t from 'tap'
import { hasProvider } from '../../../adapters/cli/serve/parts.ts'
import { connect } from '../../../adapters/client/connect.ts'
import { flushTelemetry } from '../../../adapters/opentelemetry/api.ts'
import { openTelemetry } from '../../../adapters/opentelemetry/open-telemetry.ts'
import { inputRequired } from '../../../runtime/index.ts'
import { serveAll } from '../../fixtures/servers/http-agent.ts'
import { anyone } from '../../fixtures/runtime/lives.ts'
import { say, taskIn } from '../../fixtures/runtime/runtime-helpers.ts'
import { httpAgent, result } from '../../fixtures/peers/scripted-http.ts'

await t.test('nothing is traced, sent or stored without a tracer provider', async t => {
  t.equal(hasProvider(), false)
  const telemetry = openTelemetry()
  t.same(telemetry.fields, [])
  const { url, store } = await serveAll(
    t,
    {
      work: async function* () {
        yield* inputRequired('Well?')
      }
    },
    { telemetry }
  )
  const client = await connect(url, { telemetry })
  t.teardown(() => client.close())
  const { id } = taskIn(await client.sendMessage(say('x')))
  t.equal((await client.getTask({ id })).status.state, 'TASK_STATE_INPUT_REQUIRED')
  t.same(await store.readJournal(anyone, id), [])
  t.equal(trace.getSpan(context.active()), undefined)
  await flushTelemetry()

  const agent = await httpAgent(t, {})
  agent.script(result({ id: 't', status: { state: 'TASK_STATE_WORKING' } }))
  const other = await connect(agent.url, { telemetry })
  t.teardown(() => other.close())
  await other.getTask({ id: 't' })
  t.notOk(agent.asked.some(({ headers }) => 'traceparent' in headers))
})

await t.test('a provider is found without loading the API', async t => {
  const place = { [Symbol.for('opentelemetry.js.api.1')]: { version: '1.9.0', trace: {} } }
  t.equal(hasProvider(place), true)
  t.equal(hasProvider({ [Symbol.for('opentelemetry.js.api.1')]: { version: '1.9.0' } }), false)
})

await t.test('a propagator that throws has no effect', async t => {
  const broken = () => {
    throw new Error('no')
  }
  const propagator: TextMapPropagator = { fields: () => ['Traceparent'], inject: broken, extract: broken }
  propagation.setGlobalPropagator(propagator)
  t.teardown(() => propagation.disable())
  const telemetry = openTelemetry()
  t.same(telemetry.fields, ['traceparent'], 'names are in lower case')
  const span = telemetry.begin({ name: 'x', kind: 'internal', attributes: {}, parent: { traceparent: 'x' } })
  t.same(span.carrier, {})
  span.link({ traceparent: 'x' })
  t.equal(
    span.run(() => 1),
    1
  )
  span.end()
})
