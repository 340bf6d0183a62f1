import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'

const guide = readFileSync('docs/bindings.md', 'utf8')
const [, text = ''] = /^```ts\n([\s\S]*?)^```$/m.exec(guide) ?? []
const [, printed = ''] = /^It prints:\n\n```\n([\s\S]*?)^```$/m.exec(guide) ?? []

const folder = t.testdir({
  'bindings.ts': text.replace('4242', '0').replace('50051', '0'),
  'tsconfig.json': JSON.stringify({ extends: relative(t.testdirName, resolve('tsconfig.json')), compilerOptions: { rootDir: process.cwd(), outDir: 'out', noEmit: true }, include: ['*.ts'] })
})

await t.test('the file has at most 40 lines, and compiles under the strictest settings', async t => {
  t.ok(text.split('\n').length <= 40)
  const compiled = promisify(execFile)(process.execPath, [resolve('node_modules/typescript/bin/tsc'), '-p', folder], { env: { PATH: process.env.PATH } })
  t.equal((await compiled.catch(error => error)).stdout, '')
})

await t.test('it prints what the guide says, but for the ports', async t => {
  const withoutPorts = (lines: string) => lines.replaceAll(/127\.0\.0\.1:\d+/g, '127.0.0.1')
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', join(folder, 'bindings.ts')], { env: { PATH: process.env.PATH } })
  t.equal(withoutPorts(stdout), withoutPorts(printed))
})
