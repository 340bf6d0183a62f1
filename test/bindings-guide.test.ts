import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runBare } from './fixtures/bare-process.ts'
import { compilerOutput, guideConfig } from './fixtures/compiled-guide.ts'

const guide = readFileSync('docs/bindings.md', 'utf8')
const [, text = ''] = /^```ts\n([\s\S]*?)^```$/m.exec(guide) ?? []
const [, printed = ''] = /^It prints:\n\n```\n([\s\S]*?)^```$/m.exec(guide) ?? []

const folder = t.testdir({
  'bindings.ts': text.replace('4242', '0').replace('50051', '0'),
  'tsconfig.json': guideConfig(t.testdirName)
})

await t.test('the file has at most 40 lines, and compiles under the strictest settings', async t => {
  t.ok(text.split('\n').length <= 40)
  t.equal(await compilerOutput(folder), '')
})

await t.test('it prints what the guide says, but for the ports', async t => {
  const withoutPorts = (lines: string) => lines.replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1')
  const { stdout } = await runBare('--import', 'tsx', join(folder, 'bindings.ts'))
  t.equal(withoutPorts(stdout), withoutPorts(printed))
})
