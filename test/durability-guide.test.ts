import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { tsImport } from 'tsx/esm/api'
import { replayCommand } from '../adapters/cli/test/replay.ts'
import { defaultLimits } from '../runtime/access/limits.ts'
import { setupWork, type Agent } from '../runtime/index.ts'
import { compilerOutput, guideConfig } from './fixtures/compiled-guide.ts'
import { lives } from './fixtures/lives.ts'
import { open, rest, say, stateName, taskIn, textOf } from './fixtures/runtime-helpers.ts'

const guide = readFileSync('docs/durability.md', 'utf8')
const blocks = Array.from(guide.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm), ([, language = '', text = '']) => ({ language, text }))
const written = blocks.filter(({ language }) => language === 'ts')

const folder = t.testdir(
  Object.fromEntries([
    ...written.map(({ text }, i) => [`block-${i}.ts`, text]),
    ['all.ts', written.map((_, i) => `export * as block${i} from './block-${i}.ts'`).join('\n')],
    ['tsconfig.json', guideConfig(t.testdirName)]
  ])
)

const all = (await tsImport(pathToFileURL(join(folder, 'all.ts')).href, import.meta.url)) as Record<string, { readonly default: Agent }>
const agentOf = (block: number): Agent => (all[`block${block}`] as { default: Agent }).default

await t.test('every block of the guide is TypeScript that compiles under the strictest settings', async t => {
  t.equal(await compilerOutput(folder), '')
})

await t.test('the cannon does not fire again', async t => {
  const life = lives(t, agentOf(0))
  const { id } = await open(life.runtime)
  await rest()
  await life.kill()
  t.equal(stateName((await life.runtime.getTask({ id })).status.state), 'failed')
})

await t.test('the painter goes on with what its first version stored', async t => {
  const first = setupWork({ types: { context: {} as { colour: string } } }).createMachine({ id: 'painting', context: { colour: 'red' }, initial: 'choosing', states: { choosing: { tags: 'input-required', on: { 'message.received': {} } } } })
  const life = lives(t, { work: first, version: '1' })
  const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
  await life.again(agentOf(1))
  t.strictSame(taskIn(await life.runtime.sendMessage(say('yes', { taskId }))).artifacts?.map(textOf), ['painted in red'])

  const older = lives(t, { work: first, version: '1' })
  const { id } = taskIn(await older.runtime.sendMessage(say('go')))
  const { migrate: _migrate, ...unable } = agentOf(1)
  await older.again(unable)
  const { message } = (await older.runtime.getTask({ id })).status
  const shown = blocks.find(({ text }) => text.includes('fails  '))?.text ?? ''
  t.match(shown, textOf(message), 'the reason is the one that the guide shows')
})

await t.test('the numbers and words of the guide are those of the code', async t => {
  t.match(guide, `\`limits.recoveries\` (${defaultLimits.recoveries})`)
  for (const outlook of ['ok', 'migrates', 'runs again', 'fails']) {
    t.match(guide, new RegExp(`^${outlook} `, 'm'))
    t.match(replayCommand.details, new RegExp(`^ {2}${outlook} `, 'm'))
  }
  t.match(guide, blocks.find(({ language }) => language === 'sh')?.text.trim())
})
