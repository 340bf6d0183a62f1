import t from 'tap'
import { defaultLimits, type Quota } from '../../runtime/access/limits.ts'
import type { Runtime } from '../../runtime/index.ts'
import { AGENT_MODULE, openGuide } from '../fixtures/guides/compiled-guide.ts'
import { open, rejection } from '../fixtures/runtime/runtime-helpers.ts'
import { servedRuntime } from '../../runtime/runtime-options.ts'

const guide = await openGuide(t, 'tenants', { files: { 'agent.ts': AGENT_MODULE } })

const runtimeOf = async (i: number) => (await guide.load<{ runtime: Runtime }>(`block-${i}.ts`)).runtime

await t.test("the guide's tenants accept only their members, and its quotas match the code", async t => {
  const runtime = await runtimeOf(0)
  t.ok(await open(runtime, 'x', {}, { principal: 'anna', tenant: 'blue' }))
  t.ok(await open(runtime, 'x', {}, { principal: 'cleo', claims: { org: 'green' }, tenant: 'green' }))
  t.match(await rejection(open(runtime, 'x', {}, { principal: 'bob', tenant: 'blue' })), { code: 'InvalidParams' })
  await runtime.close()
  const limited = await runtimeOf(1)
  t.match(servedRuntime(limited, 'a test').settings.limits.perPrincipal, { openTasks: 1000, requestsPerMinute: 600 })
  await limited.close()
  const { liveContexts, principalShare, tenantShare } = defaultLimits
  const figures = [liveContexts, liveContexts * principalShare, liveContexts * tenantShare].map(count =>
    count.toLocaleString('en')
  )
  t.ok(
    guide.text.includes(`| \`liveContexts\`: contexts in memory | ${figures.join(' | ')} | ${figures[1]} |`),
    'the shares'
  )
  t.equal(guide.text.split(`${figures.join(' | ')} | |`).length, 3, 'the limits of connections too')
  t.ok(
    guide.text.includes(`\`principalShare\` (${principalShare}) and \`tenantShare\` (${tenantShare})`),
    'the options of the shares'
  )
  const shown = (name: string, value: number) =>
    name === 'bytesPerMinute' ? `${value / 2 ** 30} GiB` : value.toLocaleString('en')
  for (const name of Object.keys(defaultLimits.perPrincipal) as (keyof Quota)[]) {
    t.match(
      guide.text,
      `| \`${name}\` | ${shown(name, defaultLimits.perPrincipal[name])} | ${shown(name, defaultLimits.perTenant[name])} |`
    )
  }
})
