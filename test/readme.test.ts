import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { tsImport } from 'tsx/esm/api'
import { serve } from '../adapters/serve/serve.ts'
import { createRuntime, type Agent } from '../runtime/index.ts'
import { runBare } from './fixtures/bare-process.ts'
import { compilerOutput, guideConfig } from './fixtures/compiled-guide.ts'
import { NO_CURL } from './fixtures/curl.ts'
import { runCommand } from './fixtures/run-command.ts'

const execute = promisify(execFile)

const readme = readFileSync('README.md', 'utf8')
const blocks = Array.from(readme.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm), ([, language = '', text = '']) => ({ language, text }))

const folder = t.testdir(
  Object.fromEntries([
    ...blocks.map(({ language, text }, i) => [`block-${i}.${language}`, text.replace('port: 4242', 'port: 0')]),
    ['tsconfig.json', guideConfig(t.testdirName)]
  ])
)

await t.test('the first code of the README starts before its line 20', async t => {
  const line = readme.split('\n').findIndex(text => text.startsWith('```ts'))
  t.ok(line >= 0 && line < 20)
  t.ok(readme.split('\n').length <= 121, 'and it has at most 120 lines')
})

await t.test('every block of the README is of a kind that a test knows', async t => {
  t.same(blocks.map(({ language }) => language), ['sh', 'ts', 'text', 'ts', 'sh'])
})

await t.test('the drawing of the README, and those of the guide, are what npm run graph writes now', async t => {
  t.match(readme, '](docs/charts/task.svg)')
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  const [, ...words] = (scripts['graph'] ?? '').split('bin.js ').join(' ').split(' ')
  const drawn = t.testdir()
  t.match(await runCommand(words.slice(1).map(word => (word === 'docs/charts' ? drawn : word))), { code: 0 })
  t.same(readdirSync(drawn), readdirSync('docs/charts'))
  for (const name of readdirSync(drawn)) t.ok(readFileSync(join(drawn, name), 'utf8') === readFileSync(join('docs/charts', name), 'utf8'), `${name}: run npm run graph`)
})

await t.test('the TypeScript of the README compiles under the strictest settings', async t => {
  t.equal(await compilerOutput(folder), '')
})

await t.test('the first example prints what the README says', async t => {
  const { stdout } = await runBare('--import', 'tsx', join(folder, 'block-1.ts'))
  t.equal(stdout, blocks[2]?.text)
})

await t.test('the statechart of the README asks, takes the answer and completes', async t => {
  const { default: agent } = (await tsImport(pathToFileURL(join(folder, 'block-3.ts')).href, import.meta.url)) as { default: Agent }
  const runtime = createRuntime({ agent })
  t.teardown(() => runtime.close())
  const say = (words: string, more = {}) => runtime.sendMessage({ message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: words }], ...more } })
  t.match(await say('tea?'), { message: { parts: [{ text: 'I only make coffee.' }] } })
  const asked = await say('a coffee')
  t.match(asked, { task: { status: { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text: 'Small or large?' }] } } } })
  const taskId = 'task' in asked ? asked.task.id : ''
  t.match(await say('large', { taskId }), { task: { artifacts: [{ parts: [{ text: 'One large coffee.' }] }] } })
})

await t.test('the curl lines of the README work as they stand', { skip: NO_CURL }, async t => {
  const { default: agent } = (await tsImport(pathToFileURL(resolve('examples/sailboat.ts')).href, import.meta.url)) as { default: Agent }
  const runtime = createRuntime({ agent })
  t.teardown(() => runtime.close())
  const served = await serve(runtime, { port: 0 })
  t.teardown(() => served.close())
  const lines = (blocks[4]?.text ?? '').replaceAll('http://127.0.0.1:4242/', served.url).trim().split(/\n(?=curl)/)
  const [sent, listed] = await Promise.all(lines.map(async line => (await execute('sh', ['-c', line.replace('curl', 'curl -sS')])).stdout))
  t.match(JSON.parse(sent ?? ''), { task: { status: { state: 'TASK_STATE_COMPLETED' } } })
  t.match(JSON.parse(listed ?? ''), { tasks: Array, pageSize: 2 })
})

await t.test('the commands of the README are those of package.json and of the checks', async t => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  for (const script of ['start', 'test']) t.ok(readme.includes(`npm ci && npm ${script}`) && scripts[script])
  const ci = readFileSync('.ci/run', 'utf8') + readFileSync('.ci/start', 'utf8')
  for (const command of ['npm ci', 'npm start', 'npm test']) t.match(ci, command)
})
