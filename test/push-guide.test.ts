import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { tsImport } from 'tsx/esm/api'
import { defaultLimits } from '../runtime/access/limits.ts'
import type { Runtime } from '../runtime/runtime.ts'

const root = process.cwd()
const guide = readFileSync('docs/push.md', 'utf8')
const [, block = ''] = /^```ts\n([\s\S]*?)^```$/m.exec(guide) ?? []

const folder = t.testdir({
  'block.ts': block.replace('port: 4242', 'port: 0'),
  'tsconfig.json': JSON.stringify({ extends: relative(t.testdirName, resolve('tsconfig.json')), compilerOptions: { rootDir: root, outDir: 'out', noEmit: true }, include: ['*.ts'] })
})

await t.test('the block of the guide compiles under the strictest settings, and serves an agent that pushes', async t => {
  const compiled = promisify(execFile)(process.execPath, [resolve('node_modules/typescript/bin/tsc'), '-p', folder], { env: { PATH: process.env.PATH } })
  t.equal((await compiled.catch(error => error)).stdout, '')
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
