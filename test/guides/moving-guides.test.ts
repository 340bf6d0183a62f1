import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { tsImport } from 'tsx/esm/api'
import { serve } from '../../adapters/serve/serve.ts'
import { defaultLimits } from '../../runtime/access/limits.ts'
import { createRuntime, defineAgent, type Agent, type Runtime } from '../../runtime/index.ts'
import { TESTED_MINOR } from '../../runtime/xstate/self-check.ts'
import { compilerOutput, guideConfig, payingProvider } from '../fixtures/guides/compiled-guide.ts'
import { say, taskIn, textOf } from '../fixtures/runtime/runtime-helpers.ts'

const pageOf = (name: string) => readFileSync(`docs/${name}.md`, 'utf8')

const weather = await serve(
  createRuntime({ agent: defineAgent({ card: { name: 'Weather' }, work: async () => ({ artifact: 'Sunny.' }) }) }),
  { port: 0 }
)
t.teardown(() => weather.close())

/**
 * A block with a scripted model for that of a provider, and with the agent of this test for that of a Mastra server.
 */
function withStubs(block: string): string {
  return block.replace("'@ai-sdk/openai'", "'./openai.ts'").replace(/http:\/\/127\.0\.0\.1:4111[^']*/, weather.url)
}

/** The blocks of TypeScript of some pages, named by page and number. */
const blocks = [
  'coming-from-xstate',
  'coming-from-a2a-js',
  'sizing',
  'coming-from-ai-sdk',
  'coming-from-mastra',
  'coming-from-langgraph'
].flatMap(page =>
  Array.from(pageOf(page).matchAll(/^```ts\n([\s\S]*?)^```$/gm), ([, text = ''], i) => ({
    name: `${page}-${i}`,
    text: withStubs(text)
  }))
)

const folder = t.testdir({
  ...Object.fromEntries(blocks.map(({ name, text }) => [`${name}.ts`, text])),
  'openai.ts': payingProvider(t.testdirName),
  'all.ts': blocks.map(({ name }, i) => `export * as block${i} from './${name}.ts'`).join('\n'),
  'tsconfig.json': guideConfig(t.testdirName)
})

interface Blocks {
  readonly block0: { readonly order: (size: string) => Promise<unknown> }
  readonly block1: { readonly default: Agent }
  readonly block2: { readonly ask: (url: string, text: string) => Promise<string[]> }
  readonly block3: { readonly ask: (url: string, text: string) => Promise<string[]> }
  readonly block4: { readonly smallRuntime: (agent: Agent) => Runtime }
  readonly block5: { readonly default: Agent }
  readonly block6: { readonly default: Agent }
  readonly block7: { readonly default: Agent }
  readonly block8: { readonly default: Agent }
}

const { block0, block1, block2, block3, block4, block5, block6, block7, block8 } = (await tsImport(
  pathToFileURL(join(folder, 'all.ts')).href,
  import.meta.url
)) as Blocks

await t.test('every block of the guides compiles under the strictest settings', async t => {
  t.equal(blocks.length, 9)
  t.equal(await compilerOutput(folder), '')
})

await t.test('the chart from XState makes its coffee as an actor', async t => {
  t.equal(await block0.order('large'), 'a large coffee')
})

for (const [from, { default: agent }] of Object.entries({ XState: block1, Mastra: block6, LangGraph: block8 })) {
  await t.test(`the agent of the page about ${from} makes the same coffee as a task`, async t => {
    const runtime = createRuntime({ agent })
    t.teardown(() => runtime.close())
    const { id: taskId, status } = taskIn(await runtime.sendMessage(say('a coffee')))
    t.equal(textOf(status.message), 'Small or large?')
    t.match(taskIn(await runtime.sendMessage(say('large', { taskId }))).artifacts?.map(textOf), ['a large coffee'])
  })
}

await t.test('the agent of the page about the AI SDK asks before it pays', async t => {
  const runtime = createRuntime({ agent: block5.default })
  t.teardown(() => runtime.close())
  const { id: taskId, status } = taskIn(await runtime.sendMessage(say('rent')))
  t.equal(status.state, 'TASK_STATE_INPUT_REQUIRED')
  t.match(
    taskIn(await runtime.sendMessage(say('yes', { taskId })))
      .artifacts?.map(textOf)
      .join(''),
    /rent +is +paid\.$/
  )
})

await t.test('the desk of the page about Mastra gets the weather from another agent', async t => {
  const runtime = createRuntime({ agent: block7.default })
  t.teardown(() => runtime.close())
  t.match(taskIn(await runtime.sendMessage(say('Prague'))).artifacts?.map(textOf), ['Sunny.'])
})

await t.test('both clients see the same task states, also with the limits of a small container', async t => {
  const runtime = block4.smallRuntime(
    defineAgent({ card: { name: 'Agent' }, work: async () => ({ artifact: 'done' }) })
  )
  t.teardown(() => runtime.close())
  const served = await serve(runtime, { port: 0 })
  t.teardown(() => served.close())
  for (const { ask } of [block2, block3])
    t.same(await ask(served.url, 'hi'), ['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING', 'TASK_STATE_COMPLETED'])
})

await t.test('the page about limits names every limit, with its default if that is a number', async t => {
  const page = pageOf('sizing')
  const rows = Array.from(page.matchAll(/^\| (`.*?) \| (.*?) \|/gm), ([, names = '', defaults = '']) => ({
    names: Array.from(names.matchAll(/`(\w+)`/g), ([, name = '']) => name),
    defaults: defaults.split('; ')
  }))
  const told = new Map(
    rows.flatMap(({ names, defaults }) => names.map((name, i) => [name, defaults[i] ?? ''] as const))
  )
  for (const [name, value] of Object.entries(defaultLimits)) {
    if (typeof value === 'object') continue
    const text = told.get(name) ?? ''
    t.equal(inUnits(text), value, `${name}: ${text}`)
  }
})

/** A number as the page writes it, in bytes or milliseconds. */
function inUnits(text: string): number {
  const [number = '', unit = ''] = text.split(' ')
  const units: Record<string, number> = {
    MiB: 2 ** 20,
    seconds: 1000,
    minutes: 60_000,
    hour: 3_600_000,
    days: 86_400_000,
    year: 365 * 86_400_000
  }
  return Number(number.replaceAll(',', '')) * (units[unit] ?? 1)
}

await t.test('the versions in the page about upgrading match package.json and the code', async t => {
  const page = pageOf('upgrading')
  const { peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    peerDependencies: Record<string, string>
  }
  for (const name of Object.keys(peerDependencies)) t.match(page, `\`${name}\``, name)
  t.equal(peerDependencies['xstate'], `>=${/xstate` is required, from ([\d.]+), below 6/.exec(page)?.[1]} <6`)
  t.match(page, `minors up to 5.${TESTED_MINOR}`)
  t.match(page, `xstate@5.${TESTED_MINOR}`)
})

await t.test('the texts on the page of symptoms occur in the code', async t => {
  const files = ['machines', 'runtime', 'adapters'].flatMap(folder =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter(name => name.endsWith('.ts'))
      .map(name => join(folder, name))
  )
  const code = files.map(file => readFileSync(file, 'utf8')).join('\n')
  const quoted = Array.from(pageOf('troubleshooting').matchAll(/^\| (.*?) \|/gm)).flatMap(([, cell = '']) =>
    Array.from(cell.matchAll(/`([^`]+)`/g), ([, text = '']) => text)
  )
  const parts = quoted
    .flatMap(text => text.split('…').map(part => part.trim().replace(/\.$/, '')))
    .filter(part => part.includes(' '))
  t.ok(parts.length > 25)
  for (const part of parts) t.ok(code.includes(part), part)
})
