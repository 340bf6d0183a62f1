import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { register } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { tsImport } from 'tsx/esm/api'
import { connect } from '../../adapters/client/connect.ts'
import { compilerOutput, guideConfig, payingProvider } from '../fixtures/guides/compiled-guide.ts'
import { NO_CURL } from '../fixtures/guides/curl.ts'
import { movingPicture, README_TALK, readmeAgent } from '../fixtures/guides/readme-picture.ts'
import { runCommand } from '../fixtures/cli/run-command.ts'
import { say, taskIn, textOf } from '../fixtures/runtime/runtime-helpers.ts'
import { NO_SQLITE } from '../fixtures/stores/sqlite.ts'
import { createRuntime, type Agent } from '../../runtime/index.ts'

const execute = promisify(execFile)

const readme = readFileSync('README.md', 'utf8')
const blocks = Array.from(readme.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm), ([, language = '', text = '']) => ({
  language,
  text
}))

const [first, , cashier] = blocks
const folder = t.testdir({
  'first.ts': first?.text ?? '',
  'agent.mts': readmeAgent(readme),
  'cashier.ts': (cashier?.text ?? '').replace("'@ai-sdk/openai'", "'./openai.ts'"),
  'openai.ts': payingProvider(t.testdirName),
  'tsconfig.json': guideConfig(t.testdirName)
})

await t.test('the first code of the README starts before its line 20', async t => {
  const line = readme.split('\n').findIndex(text => text.startsWith('```ts'))
  t.ok(line >= 0 && line < 20)
  t.ok(readme.split('\n').length <= 121, 'and it has at most 120 lines')
})

await t.test('every block of the README is of a tested kind', async t => {
  t.same(
    blocks.map(({ language }) => language),
    ['ts', 'sh', 'ts', 'sh', 'sh']
  )
})

await t.test("the guides' drawings equal the output of npm run graph", async t => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  const [, drawing = '', ...others] = (scripts['graph'] ?? '').split(/bin\.js | && /)
  const drawn = t.testdir()
  t.match(await runCommand(drawing.split(' ').map(word => (word === 'docs/charts' ? drawn : word))), { code: 0 })
  t.same(others, ['node .build/test/fixtures/guides/readme-picture.js write'])
  const same = (name: string, text: string) =>
    t.ok(text === readFileSync(join('docs/charts', name), 'utf8'), `${name}: run npm run graph`)
  for (const name of readdirSync(drawn)) same(name, readFileSync(join(drawn, name), 'utf8'))
  t.strictSame(
    readdirSync('docs/charts').filter(name => !readdirSync(drawn).includes(name)),
    ['barista.svg']
  )
  same('barista.svg', await movingPicture(join(folder, 'agent.mts'), README_TALK))
})

await t.test('the TypeScript of the README compiles under the strictest settings', async t => {
  t.equal(await compilerOutput(folder), '')
})

await t.test('the first agent of the README starts, prints its address, asks and completes', async t => {
  const agent = spawn(process.execPath, ['--import', 'tsx', join(folder, 'first.ts')], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  t.teardown(() => agent.kill('SIGKILL'))
  const [said] = (await once(agent.stdout, 'data')) as [Buffer]
  const [, url = ''] = /^The agent is at (http:\/\/127\.0\.0\.1:42\d\d\/)\n$/.exec(said.toString()) ?? []
  const client = await connect(url)
  t.teardown(() => client.close())
  const say = (words: string, more = {}) =>
    client.sendMessage({ message: { messageId: words, role: 'ROLE_USER', parts: [{ text: words }], ...more } })
  const asked = await say('a coffee')
  t.match(asked, {
    task: { status: { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text: 'Small or large?' }] } } }
  })
  const taskId = 'task' in asked ? asked.task.id : ''
  t.match(await say('large', { taskId }), { task: { artifacts: [{ parts: [{ text: 'One large coffee.' }] }] } })
  await t.test('and the curl lines of the README work as printed', { skip: NO_CURL }, async t => {
    const lines = (blocks[4]?.text ?? '')
      .replaceAll('http://127.0.0.1:4242/', url)
      .trim()
      .split(/\n(?=curl)/)
    const [sent, listed] = await Promise.all(
      lines.map(async line => (await execute('sh', ['-c', line.replace('curl', 'curl -sS')])).stdout)
    )
    t.match(JSON.parse(sent ?? ''), { task: { status: { state: 'TASK_STATE_INPUT_REQUIRED' } } })
    t.match(JSON.parse(listed ?? ''), { tasks: Array, pageSize: 2 })
  })
})

await t.test("the README's agent with a model asks before it pays", async t => {
  const { default: agent } = (await tsImport(pathToFileURL(join(folder, 'cashier.ts')).href, import.meta.url)) as {
    default: Agent
  }
  const runtime = createRuntime({ agent })
  t.teardown(() => runtime.close())
  const { id: taskId, status } = taskIn(await runtime.sendMessage(say('rent')))
  t.equal(status.state, 'TASK_STATE_INPUT_REQUIRED')
  t.match(textOf(status.message), /pay/)
  const paid = taskIn(await runtime.sendMessage(say('yes', { taskId })))
  t.equal(paid.status.state, 'TASK_STATE_COMPLETED')
  t.match(paid.artifacts?.map(textOf).join(''), /^I +pay +it\.\s+rent +is +paid\.$/)
})

await t.test(
  'with the packages that the README names, the paths of its first agent pass as it says',
  { skip: NO_SQLITE },
  async t => {
    register(new URL('../fixtures/processes/without-peers.js', import.meta.url))
    const { code, stdout } = await runCommand(['test', join(folder, 'agent.mts')])
    t.equal(code, 0)
    const [passed = ''] = /^\d+ passed, 0 failed$/m.exec(stdout) ?? []
    t.ok(passed && readme.includes(`\`${passed}\``), stdout)
  }
)

await t.test('the pictures of the README are in the package, and small', async t => {
  const { files } = JSON.parse(readFileSync('package.json', 'utf8')) as { files: string[] }
  const pictures = Array.from(readme.matchAll(/^!\[[^\]]+\]\(([^)]+)\)$/gm), ([, path = '']) => path)
  t.equal(pictures.length, 2)
  for (const picture of pictures) t.ok(files.includes(dirname(picture)) && statSync(picture).size < 150_000, picture)
})

await t.test('the commands of the README match package.json and the checks', async t => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  for (const script of ['start', 'test']) t.ok(readme.includes(`npm ci && npm ${script}`) && scripts[script])
  const ci = readFileSync('.ci/run', 'utf8') + readFileSync('.ci/start', 'utf8')
  for (const command of ['npm ci', 'npm start', 'npm test']) t.match(ci, command)
})
