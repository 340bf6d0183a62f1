import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { tsImport } from 'tsx/esm/api'
import { defaultLimits, type Quota } from '../runtime/access/limits.ts'
import type { Runtime } from '../runtime/index.ts'
import { compilerOutput, guideConfig } from './fixtures/compiled-guide.ts'
import { open, rejection } from './fixtures/runtime-helpers.ts'

const guide = readFileSync('docs/tenants.md', 'utf8')
const blocks = Array.from(guide.matchAll(/^```ts\n([\s\S]*?)^```$/gm), ([, text = '']) => text)
const agent = "import { defineAgent } from 'taskchart'\n\nexport default defineAgent({ card: { name: 'Agent' }, work: async () => ({ artifact: 'done' }) })\n"

const folder = t.testdir({
  ...Object.fromEntries(blocks.map((text, i) => [`block-${i}.ts`, text])),
  'agent.ts': agent,
  'tsconfig.json': guideConfig(t.testdirName)
})

const runtimeOf = async (i: number) => ((await tsImport(pathToFileURL(join(folder, `block-${i}.ts`)).href, import.meta.url)) as { runtime: Runtime }).runtime

await t.test('every block of the guide compiles under the strictest settings', async t => {
  t.equal(blocks.length, 2)
  t.equal(await compilerOutput(folder), '')
})

await t.test('its tenants are for their members, and its quotas are those of the code', async t => {
  const runtime = await runtimeOf(0)
  t.ok(await open(runtime, 'x', {}, { principal: 'anna', tenant: 'blue' }))
  t.ok(await open(runtime, 'x', {}, { principal: 'cleo', claims: { org: 'green' }, tenant: 'green' }))
  t.match(await rejection(open(runtime, 'x', {}, { principal: 'bob', tenant: 'blue' })), { code: 'InvalidParams' })
  await runtime.close()
  const limited = await runtimeOf(1)
  t.match(limited.settings.limits.perPrincipal, { openTasks: 1000, requestsPerMinute: 600 })
  await limited.close()
  const { liveContexts, principalShare, tenantShare } = defaultLimits
  const figures = [liveContexts, liveContexts * principalShare, liveContexts * tenantShare].map(count => count.toLocaleString('en'))
  t.ok(guide.includes(`| \`liveContexts\`: contexts in memory | ${figures.join(' | ')} | ${figures[1]} |`), 'the shares')
  t.equal(guide.split(`${figures.join(' | ')} | |`).length, 3, 'and those of connections')
  t.ok(guide.includes(`\`principalShare\` (${principalShare}) and \`tenantShare\` (${tenantShare})`), 'the options of the shares')
  const shown = (name: string, value: number) => (name === 'bytesPerMinute' ? `${value / 2 ** 30} GiB` : value.toLocaleString('en'))
  for (const name of Object.keys(defaultLimits.perPrincipal) as (keyof Quota)[]) {
    t.match(guide, `| \`${name}\` | ${shown(name, defaultLimits.perPrincipal[name])} | ${shown(name, defaultLimits.perTenant[name])} |`)
  }
})
