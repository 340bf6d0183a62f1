import t, { type Test } from 'tap'
import { defaultLimits } from '../../runtime/access/limits.ts'
import { createRuntime, type Agent, type Runtime } from '../../runtime/index.ts'
import { openGuide } from '../fixtures/guides/compiled-guide.ts'
import { reaches, rejection, rest, say, stateName, taskIn, textOf } from '../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../fixtures/runtime/test-clock.ts'

const guide = await openGuide(t, 'work')

interface Block {
  readonly default: Agent
  readonly loggedIn?: (runtime: Runtime, taskId: string, principal: string) => Promise<void>
}

/** The blocks, and for some of their runtimes the package that they import. */
const all = await guide.load<Record<string, Block> & { createRuntime: typeof createRuntime }>('all.ts')

/** Brings the agent of a block to life: by a runtime of the copy of the package that the block has, or of another. */
function lifeOf(t: Test, block: number, create = all.createRuntime) {
  const module = all[`block${block}`] as Block
  const clock = new TestClock()
  const runtime = create({ agent: module.default, clock })
  t.teardown(() => runtime.close())
  return { ...module, runtime, clock }
}

await t.test('the waiter asks for a time and a number, and refuses invalid ones', async t => {
  const { runtime } = lifeOf(t, 0)
  const { id: taskId, status } = taskIn(await runtime.sendMessage(say('the sea')))
  t.equal(textOf(status.message), 'At what time?')
  t.equal(textOf(taskIn(await runtime.sendMessage(say('8', { taskId }))).status.message), 'For how many?')
  t.match(await rejection(runtime.sendMessage(say('us', { taskId }))), {
    code: 'InvalidParams',
    violations: [{ field: 'message.parts' }]
  })
  const done = taskIn(await runtime.sendMessage(say('2', { taskId })))
  t.strictSame(done.artifacts?.map(textOf), ['Soup\n Bread\n', 'A table for 2 at 8.'])
})

await t.test('the printer prints after its login, and fails if the login is denied', async t => {
  const { runtime, loggedIn } = lifeOf(t, 1)
  const [one, other] = [
    taskIn(await runtime.sendMessage(say('a page'))),
    taskIn(await runtime.sendMessage(say('a page')))
  ]
  await loggedIn?.(runtime, one.id, 'anonymous')
  t.strictSame((await reaches(runtime, one.id, 'completed')).artifacts?.map(textOf), ['a page, for a-17'])
  t.equal(
    textOf(taskIn(await runtime.sendMessage(say('no', { taskId: other.id }))).status.message),
    'Nobody is logged in.'
  )
})

await t.test('the shop ships after three days, and says so', async t => {
  const { runtime, clock } = lifeOf(t, 2)
  const { id: taskId, status } = taskIn(await runtime.sendMessage(say('something')))
  t.match(textOf(status.message), /^Where shall I send the (?:tea|coffee)\?$/)
  await runtime.sendMessage(say('Bonn', { taskId }, { returnImmediately: true }))
  await rest()
  clock.increment(3 * 24 * 3600 * 1000)
  t.strictSame((await reaches(runtime, taskId, 'completed')).artifacts?.map(textOf), ['Parcel 4-1 should be there.'])
})

await t.test('the cashier pays once, also in a runtime of another copy of the package', async t => {
  for (const create of [all.createRuntime, createRuntime]) {
    const { runtime } = lifeOf(t, 3, create)
    const { id: taskId } = taskIn(await runtime.sendMessage(say('go')))
    t.match(taskIn(await runtime.sendMessage(say('yes', { taskId }))).artifacts?.map(textOf), [
      /^5 EUR, .+\/step\/pay\/1$/
    ])
  }
})

await t.test('the tea shop adds a tax to new tasks', async t => {
  const { runtime } = lifeOf(t, 4)
  const { id: taskId } = taskIn(await runtime.sendMessage(say('go')))
  const asked = taskIn(await runtime.sendMessage(say('Assam', { taskId })))
  t.equal(textOf(asked.status.message), 'That is 6. Shall I send it?')
  t.strictSame(taskIn(await runtime.sendMessage(say('yes', { taskId }))).artifacts?.map(textOf), ['Assam for 6'])
})

await t.test('the form asks for an age, then for a colour', async t => {
  const { runtime } = lifeOf(t, 5)
  const { id: taskId, status } = taskIn(await runtime.sendMessage(say('go')))
  t.equal(textOf(status.message), 'Age?')
  t.equal(textOf(taskIn(await runtime.sendMessage(say('7', { taskId }))).status.message), 'Colour?')
  t.strictSame(taskIn(await runtime.sendMessage(say('red', { taskId }))).artifacts?.map(textOf), ['7, red'])
})

await t.test('the scribe takes notes', async t => {
  const { runtime } = lifeOf(t, 6)
  const { id: taskId } = taskIn(await runtime.sendMessage(say('go')))
  for (const note of ['one', 'two']) await runtime.sendMessage(say(note, { taskId }))
  const done = taskIn(await runtime.sendMessage(say('stop', { taskId })))
  t.strictSame([stateName(done.status.state), textOf(done.artifacts?.[0])], ['completed', 'one; two'])
})

await t.test('the numbers of the guide match the code', async t => {
  t.match(guide.text, `\`limits.queuedMessages\` (${defaultLimits.queuedMessages})`)
  t.match(guide.text, `\`limits.eventsPerTask\` events (${defaultLimits.eventsPerTask.toLocaleString('en')})`)
  const {
    default: { restart, cancelGraceMs }
  } = lifeOf(t, 1)
  t.match(
    guide.text,
    `\`intensity\` times (${restart.intensity}) within \`periodMs\` (${restart.periodMs.toLocaleString('en')})`
  )
  t.match(guide.text, `\`cancelGraceMs\` (${cancelGraceMs.toLocaleString('en')})`)
})

await t.test("the guide's agent reads the details of requests beside their messages", async t => {
  const { runtime } = lifeOf(t, 8)
  const asked = taskIn(
    await runtime.sendMessage({
      ...say('go', {}, { acceptedOutputModes: ['text/markdown'] }),
      metadata: { 'https://example.com/ext/locale': 'fi' }
    })
  )
  t.equal(textOf(asked.status.message), 'Minne?')
  const done = taskIn(
    await runtime.sendMessage({ ...say('Helsinki', { taskId: asked.id }), metadata: { haste: true } })
  )
  t.equal(textOf(done.artifacts?.[0]), '# To Helsinki, fast.')
  t.strictSame(done.metadata, { haste: true, found: 1 })
})
