import t from 'tap'
import type { AgentClient } from '../../adapters/client/agent-client.ts'
import { serve } from '../../adapters/serve/serve.ts'
import { defaultLimits } from '../../runtime/access/limits.ts'
import { createRuntime, type Agent, type Authorize, type Runtime } from '../../runtime/index.ts'
import { openGuide } from '../fixtures/guides/compiled-guide.ts'
import { rejection, say } from '../fixtures/runtime/runtime-helpers.ts'
import { servedRuntime } from '../../runtime/runtime-options.ts'

const guide = await openGuide(t, 'security')
const { block0, block1, block2, block3 } = await guide.load<{
  readonly block0: {
    readonly authenticate: (credentials: { headers: Record<string, string> }) => Promise<unknown>
    readonly runtime: Runtime
  }
  readonly block1: { readonly authorize: Authorize }
  readonly block2: { readonly default: Agent }
  readonly block3: { readonly runtime: Runtime; readonly connectToOurs: (url: string) => Promise<AgentClient> }
}>('all.ts')
t.teardown(() => Promise.all([block0.runtime.close(), block3.runtime.close()]))

await t.test('the provided authenticators accept a key and refuse invalid tokens, and the card lists both', async t => {
  t.strictSame(await block0.authenticate({ headers: { 'x-api-key': 'only-for-this-page' } }), { id: 'nightly' })
  t.equal(await block0.authenticate({ headers: { 'x-api-key': 'x' } }), undefined)
  const { securitySchemes, securityRequirements } = servedRuntime(block0.runtime, 'a test').agentCard([])
  t.strictSame(Object.keys(securitySchemes ?? {}), ['bearer', 'apiKey'])
  t.strictSame(securityRequirements, [
    { schemes: { bearer: { list: ['tasks:read', 'tasks:write'] } } },
    { schemes: { apiKey: {} } }
  ])
})

await t.test('reading and writing need different scopes', async t => {
  const runtime = createRuntime({ agent: block2.default, authorize: block1.authorize })
  t.teardown(() => runtime.close())
  const reader = { principal: 'anna', claims: { scope: 'email tasks:read' } }
  t.match(await runtime.listTasks({}, reader), { totalSize: 0 })
  t.match(await rejection(runtime.sendMessage(say('x'), reader)), {
    code: 'Forbidden',
    message: 'This needs the scope tasks:write.'
  })
  t.match(await rejection(runtime.listTasks({})), { code: 'Forbidden', message: 'This needs the scope tasks:read.' })
  t.match(await runtime.sendMessage(say('x'), { ...reader, claims: { scope: 'tasks:write' } }), {
    task: { artifacts: [{ parts: [{ text: 'x' }] }] }
  })
})

await t.test('a verifying client connects only to an agent whose key it trusts', async t => {
  const [ours, other] = [block3.runtime, block0.runtime]
  for (const [runtime, isOurs] of [
    [ours, true],
    [other, false]
  ] as const) {
    const served = await serve(runtime, { port: 0 })
    t.teardown(() => served.close())
    const connected = await block3.connectToOurs(served.url).then(
      client => client.close().then(() => true),
      () => false
    )
    t.equal(connected, isOurs)
  }
})

await t.test('the crew has its own extended card', async t => {
  const runtime = createRuntime({ agent: block2.default })
  t.teardown(() => runtime.close())
  t.match(await runtime.getExtendedAgentCard({}, { principal: 'anna', claims: { role: 'crew' } }), {
    name: 'Harbour',
    skills: [{ id: 'sail' }, { id: 'dive' }]
  })
  t.match(await rejection(runtime.getExtendedAgentCard({}, { principal: 'bob' })), {
    code: 'ExtendedAgentCardNotConfigured'
  })
  t.match(await rejection(runtime.getExtendedAgentCard({})), { code: 'Unauthenticated' })
})

await t.test('the numbers of the guide match the code', async t => {
  t.match(
    guide.text,
    `the size of a message (${defaultLimits.messageBytes / 2 ** 20} MiB), the depth of JSON (${defaultLimits.jsonDepth})`
  )
})
