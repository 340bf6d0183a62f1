import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { tsImport } from 'tsx/esm/api'
import { defaultLimits } from '../runtime/access/limits.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { compilerOutput, guideConfig } from './fixtures/compiled-guide.ts'

const guide = readFileSync('docs/push.md', 'utf8')
const [, block = ''] = /^```ts\n([\s\S]*?)^```$/m.exec(guide) ?? []

const folder = t.testdir({
  'block.ts': block.replace('port: 4242', 'port: 0'),
  'tsconfig.json': guideConfig(t.testdirName)
})

await t.test('the block of the guide compiles under the strictest settings, and serves an agent that pushes', async t => {
  t.equal(await compilerOutput(folder), '')
  const { runtime, served } = (await tsImport(pathToFileURL(join(folder, 'block.ts')).href, import.meta.url)) as { runtime: Runtime; served: { close: () => Promise<void> } }
  t.teardown(async () => {
    await served.close()
    await runtime.close()
  })
  t.equal(runtime.agentCard([]).capabilities.pushNotifications, true)
})

await t.test('the numbers of the guide are those of the code', t => {
  const { webhooksPerTask, webhooksPerPrincipal, webhooksAtOnce, webhooksAtOncePerHost, webhookTimeoutMs, webhookTriesMs } = defaultLimits
  const words = guide.replaceAll(/\s+/g, ' ')
  for (const text of [
    `\`webhooksPerTask\` | ${webhooksPerTask} |`, `| ${webhooksPerPrincipal.toLocaleString('en')} |`, `\`webhooksAtOnce\` | ${webhooksAtOnce} posts`, `\`webhooksAtOncePerHost\` | ${webhooksAtOncePerHost} |`,
    `\`webhookTimeoutMs\` | ${webhookTimeoutMs / 1000} seconds |`, `\`webhookTriesMs\` | ${webhookTriesMs / 86_400_000} days |`
  ]) t.match(words, text)
  t.end()
})
