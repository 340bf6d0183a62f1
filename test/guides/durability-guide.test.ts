import t from 'tap'
import { defaultLimits } from '../../runtime/access/limits.ts'
import { setupWork, type Agent } from '../../runtime/index.ts'
import { openGuide } from '../fixtures/guides/compiled-guide.ts'
import { lives } from '../fixtures/runtime/lives.ts'
import { open, rest, say, stateName, taskIn, textOf } from '../fixtures/runtime/runtime-helpers.ts'

const guide = await openGuide(t, 'durability')
const all = await guide.load<Record<string, { readonly default: Agent }>>('all.ts')
const agentOf = (block: number): Agent => (all[`block${block}`] as { default: Agent }).default

await t.test('the cannon does not fire again', async t => {
  const life = lives(t, agentOf(0))
  const { id } = await open(life.runtime)
  await rest()
  await life.kill()
  t.equal(stateName((await life.runtime.getTask({ id })).status.state), 'failed')
})

await t.test('the painter resumes work that its first version stored', async t => {
  const first = setupWork({ types: { context: {} as { colour: string } } }).createMachine({
    id: 'painting',
    context: { colour: 'red' },
    initial: 'choosing',
    states: { choosing: { tags: 'input-required', on: { 'message.received': {} } } }
  })
  const life = lives(t, { work: first, version: '1' })
  const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
  await life.again(agentOf(1))
  t.strictSame(taskIn(await life.runtime.sendMessage(say('yes', { taskId }))).artifacts?.map(textOf), [
    'painted in red'
  ])

  const older = lives(t, { work: first, version: '1' })
  const { id } = taskIn(await older.runtime.sendMessage(say('go')))
  const { migrate: _migrate, ...unable } = agentOf(1)
  await older.again(unable)
  const { message } = (await older.runtime.getTask({ id })).status
  t.match(guide.text, textOf(message), 'the reason is the one that the guide shows')
})

await t.test('the tailor goes on with the version of each task', async t => {
  const { earlier, ...tailor } = agentOf(2)
  const life = lives(t, { ...tailor, work: earlier?.['1']?.work as NonNullable<Agent['work']>, version: '1' })
  const { id: old } = taskIn(await life.runtime.sendMessage(say('go')))
  await life.restart(agentOf(2))
  const young = taskIn(await life.runtime.sendMessage(say('go')))
  t.equal(textOf(young.status.message), 'How wide?')
  t.strictSame(taskIn(await life.runtime.sendMessage(say('50', { taskId: old }))).artifacts?.map(textOf), [
    'A suit in 50'
  ])
})

await t.test('the numbers and words of the guide match the code', async t => {
  t.match(guide.text, `\`limits.advanced.recoveries\` (${defaultLimits.recoveries})`)
})
