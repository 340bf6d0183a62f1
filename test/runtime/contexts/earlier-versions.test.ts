import t from 'tap'
import { assign } from 'xstate'
import { z } from 'zod'
import {
  defineAgent,
  inputRequired,
  setupWork,
  text,
  textOf as wordsOf,
  type AgentDefinition,
  type WorkFunction,
  type WorkGenerator
} from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { anyone, failOnLooseErrors, lives } from '../../fixtures/runtime/lives.ts'
import { deferred, open, reaches, rest, say, textOf } from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

const card = { name: 'A' }

/** A function that asks these questions, and ends with the answers. */
const asking =
  (...questions: string[]): WorkFunction =>
  async ({ ask }) => {
    const answers: string[] = []
    for (const question of questions) answers.push(wordsOf(await ask(inputRequired(question))))
    return { artifact: `${questions.join()}: ${answers.join()}` }
  }

/** A chart that asks once in a state of this name. */
const chart = (state: string) =>
  setupWork({ types: { context: {} as { answer: string } } }).createMachine({
    id: 'work',
    context: { answer: '' },
    initial: state,
    states: {
      [state]: {
        tags: 'input-required',
        meta: { prompt: state },
        on: {
          'message.received': { target: 'done', actions: assign({ answer: ({ event }) => wordsOf(event.message) }) }
        }
      },
      done: { type: 'final' }
    },
    output: ({ context }) => ({ artifact: text(`${state}: ${context.answer}`) })
  })

type Definition = Omit<AgentDefinition, 'card'>

const versionsOf = async (life: ReturnType<typeof lives>, contextId: string) => {
  const stored = await life.store.loadContext({ ...anyone, contextId })
  return stored?.tasks.map(({ snapshot = '{}' }) => (JSON.parse(snapshot) as { version?: string }).version)
}

await t.test('a task goes on with the work of the version that opened it, beside tasks of the version now', async t => {
  const forms: [name: string, earlier: Definition['work'], now: Definition['work']][] = [
    ['functions', asking('one', 'two'), asking('new')],
    ['charts', chart('one'), chart('new')],
    ['a function, now a chart', asking('one', 'two'), chart('new')],
    ['a chart, now a function', chart('one'), asking('new')]
  ]
  for (const [name, earlier = () => {}, now = () => {}] of forms) {
    const life = lives(t, { version: '1', work: earlier })
    const { id: old } = await open(life.runtime, 'go', { contextId: 'c' })
    await rest()
    const second: Definition = { version: '2', work: now, earlier: { '1': earlier } }
    await life.again(second)
    const { id: young } = await open(life.runtime, 'go', { contextId: 'c' })
    await reaches(life.runtime, young, 'input-required')
    t.strictSame(await versionsOf(life, 'c'), ['1', '2'], name)
    await life.again(second)
    await life.kill(second)
    for (const answer of ['x', 'y'].slice(0, typeof earlier === 'function' ? 2 : 1)) {
      await life.runtime.sendMessage(say(answer, { taskId: old }, { returnImmediately: true }))
      await rest()
      t.strictSame((await versionsOf(life, 'c'))?.at(-1), '2', 'the version of each task stays')
    }
    await life.runtime.sendMessage(say('z', { taskId: young }, { returnImmediately: true }))
    const results = await Promise.all([old, young].map(id => reaches(life.runtime, id, 'completed')))
    t.strictSame(
      results.map(({ artifacts }) => artifacts?.map(textOf)),
      [[typeof earlier === 'function' ? 'one,two: x,y' : 'one: x'], ['new: z']],
      name
    )
  }
})

await t.test('a version without an entry is migrated, or goes on with the work now', async t => {
  const life = lives(t, { version: '1', work: chart('one') })
  const { id } = await open(life.runtime, 'go', { contextId: 'c' })
  await rest()
  const migrated: unknown[] = []
  const migrate: Definition['migrate'] = ({ version, snapshot }) => (
    migrated.push(version),
    { ...snapshot, value: 'new' }
  )
  await life.again({ version: '3', work: chart('new'), migrate, earlier: { '2': chart('two') } })
  t.strictSame(migrated, ['1'])
  t.strictSame(await versionsOf(life, 'c'), ['3'])
  await life.runtime.sendMessage(say('x', { taskId: id }))
  t.strictSame((await reaches(life.runtime, id, 'completed')).artifacts?.map(textOf), ['new: x'])
})

await t.test('with an entry, migrate is not called', async t => {
  const life = lives(t, { version: '1', work: chart('one') })
  const { id } = await open(life.runtime)
  await rest()
  const migrate = () => t.fail('it is called')
  await life.again({ version: '2', work: chart('new'), migrate, earlier: { '1': { work: chart('one') } } })
  await life.runtime.sendMessage(say('x', { taskId: id }))
  t.strictSame((await reaches(life.runtime, id, 'completed')).artifacts?.map(textOf), ['one: x'])
})

await t.test('a task that does not fit its entry fails, with the reason', async t => {
  const life = lives(t, { version: '1', work: chart('one') })
  const { id } = await open(life.runtime)
  await rest()
  await life.again({ version: '2', work: chart('one'), earlier: { '1': chart('other') } })
  t.match(
    (await life.told(id)).at(-1),
    'failed: This task cannot be resumed with the present agent: the chart has no state work.one. It was stored under the same version, 1.'
  )
})

await t.test('an earlier version has its own recovery', async t => {
  const slow: WorkFunction = async ({ step }) => {
    await step('slow', () => new Promise<void>(() => {}))
  }
  for (const [recovery, state] of [
    ['fail', 'failed'],
    ['rerun', 'working']
  ] as const) {
    const life = lives(t, { version: '1', work: slow })
    const { id } = await open(life.runtime)
    await rest()
    await life.kill({ version: '2', work: chart('new'), earlier: { '1': { work: slow, recovery } } })
    await rest()
    await reaches(life.runtime, id, state)
  }
})

await t.test('an earlier version has its own input, that of the agent, or none', async t => {
  const work: WorkFunction = async ({ input, ask }) => {
    await ask(inputRequired('Go?'))
    return { artifact: JSON.stringify(input ?? null) }
  }
  const size = z.object({ size: z.string() })
  const [own, none] = [z.string().transform(words => ({ words })), undefined]
  for (const [entry, state, result] of [
    [{ work, input: own }, 'completed', '{"words":"large"}'],
    [{ work, input: none }, 'completed', 'null'],
    [{ work }, 'failed', undefined]
  ] as const) {
    const life = lives(t, { version: '1', work, input: own })
    const { id } = await open(life.runtime, 'large')
    await rest()
    const now: Definition = { version: '2', work, input: size, earlier: { '1': entry } }
    await life.again(now)
    // An agent may be defined twice, as one from another copy of the package is.
    await life.again(defineAgent({ card, ...now }))
    await life.runtime.sendMessage(say('go', { taskId: id })).catch(() => {})
    const task = await reaches(life.runtime, id, state)
    t.equal(task.artifacts?.map(textOf).join(), result)
  }
})

await t.test('a crash restarts the work of its own version', async t => {
  let tries = 0
  const earlier: WorkFunction = async ({ ask }) => {
    await ask(inputRequired('Go?'))
    if ((tries += 1) === 1) throw new Error('crash')
    return { artifact: 'one' }
  }
  const life = lives(t, { version: '1', work: earlier })
  const { id } = await open(life.runtime)
  await rest()
  await life.again({ version: '2', work: asking('new'), restart: 'transient', earlier: { '1': earlier } })
  await life.runtime.sendMessage(say('go', { taskId: id }))
  t.strictSame((await reaches(life.runtime, id, 'completed')).artifacts?.map(textOf), ['one'])
  t.equal(tries, 2)
})

await t.test('one line in the log says that the last open task of an earlier version has ended', async t => {
  let counts = 0
  let fails = false
  const store = memoryStore()
  const life = lives(
    t,
    { version: '1', work: asking('one') },
    {
      store: {
        ...store,
        countVersions: async (...args) => {
          counts += 1
          if (fails) throw new Error('no disk')
          return (await store.countVersions?.(...args)) ?? { versions: {} }
        }
      }
    }
  )
  const ids = await Promise.all(Array.from({ length: 4 }, async () => (await open(life.runtime)).id))
  await rest()
  const other = await open(await life.restart({ version: '1.5', work: asking('other') }))
  await rest()
  const earlier = { '1': asking('one'), '1.5': asking('other') }
  await life.restart({ version: '2', work: asking('new'), earlier })
  const lines = () => life.log.filter(({ message }) => message.includes('an earlier version')).map(line => line.details)
  const end = async (id: string) => {
    await life.runtime.sendMessage(say('x', { taskId: id }))
    await rest()
  }
  const young = await open(life.runtime)
  await rest()
  await end(young.id)
  t.equal(counts, 0, 'the end of a task of the version now counts nothing')
  await end(ids[0] ?? '')
  t.equal(counts, 1)
  await end(ids[1] ?? '')
  t.equal(counts, 1, 'the next count comes after a pause')
  await life.pass(10_000)
  t.equal(counts, 2)
  fails = true
  await life.pass(10_000)
  await end(ids[2] ?? '')
  fails = false
  await end(ids[3] ?? '')
  t.strictSame(lines(), [])
  await life.pass(10_000)
  t.strictSame(lines(), [{ version: '1' }])
  await life.pass(10_000)
  await end(other.id)
  await life.pass(10_000)
  t.strictSame(lines(), [{ version: '1' }, { version: '1.5' }])
  t.equal(counts, 5)
})

await t.test('a runtime that closes counts once more if that is due, and no more after it', async t => {
  const store = memoryStore()
  let counts = 0
  let fails = false
  const counted = deferred()
  const life = lives(
    t,
    { version: '1', work: asking('one') },
    {
      store: {
        ...store,
        countVersions: async (...args) => {
          counts += 1
          if (counts === 1) await counted.promise
          if (fails) throw new Error('no disk')
          return (await store.countVersions?.(...args)) ?? { versions: {} }
        }
      }
    }
  )
  const ids = await Promise.all(Array.from({ length: 3 }, async () => (await open(life.runtime)).id))
  await rest()
  const now = { version: '2', work: asking('new'), earlier: { '1': asking('one') } }
  await life.restart(now)
  const end = async (id: string | undefined) => {
    await life.runtime.sendMessage(say('x', { taskId: id ?? '' }))
    await rest()
  }
  await end(ids[0])
  await end(ids[1])
  const restarted = life.restart(now)
  await rest()
  t.equal(counts, 1, 'a count under way is awaited')
  counted.resolve()
  await restarted
  t.equal(counts, 2, 'the end meanwhile is counted too')
  fails = true
  await end(ids[2])
  await life.restart(now)
  t.equal(counts, 4)
  await life.pass(60_000)
  t.strictSame([counts, life.log], [4, []])
})

await t.test('wrong use of earlier is a TypeError that names the entry and what to write', async t => {
  const work = asking('one')
  const generator: WorkGenerator = async function* () {}
  const cases: [earlier: unknown, message: RegExp][] = [
    [5, /^earlier has to be an object of works by version: earlier: \{ '1': workOfVersion1 \}\.$/],
    [[work], /^earlier has to be an object/],
    [null, /^earlier has to be an object/],
    [{ '': work }, /^earlier has an empty version\. Name the version/],
    [{ '2': work }, /^earlier\["2"\] is the version of the agent now, .* Raise version, or leave the entry out\.$/],
    [{ '1': undefined }, /^earlier\["1"\] has to be the work of that version, or \{ work,/],
    [{ '1': {} }, /^earlier\["1"\] has to be the work/],
    [{ '1': 'work' }, /^earlier\["1"\] has to be the work/],
    [{ '1': { work: function* () {} } }, /^earlier\["1"\] has to be the work/],
    [{ '1': { work, inptu: z.string() } }, /^earlier\["1"\] has no inptu\. Is input meant\?/],
    [{ '1': { work, input: {} } }, /^earlier\["1"\]\.input has to be a schema/],
    [{ '1': { work, recovery: 'resume' } }, /^recovery: 'resume' needs work as a statechart/],
    [{ '1': { work, properties: {} } }, /^earlier\["1"\]\.properties are proved on a statechart/],
    [{ '1': { work: chart('one'), properties: { x: 1 } } }, /^The property "x" has to be made with/],
    [{ '1': { work: { transition() {}, initialState: {} } } }, /^earlier\["1"\]\.work was made with XState 4/],
    [{ '1': { transition() {}, initialState: {} } }, /^earlier\["1"\] was made with XState 4/],
    [
      { '1': setupWork({}).createMachine({ initial: 'a', states: { a: { type: 'final', tags: 'input-required' } } }) },
      /^The state /
    ]
  ]
  for (const [earlier, message] of cases)
    t.throws(
      () => defineAgent({ card, version: '2', work, earlier: earlier as never }),
      { name: 'TypeError', message },
      String(message)
    )
  t.throws(() => defineAgent({ card, negotiate: async () => ({}) as never, earlier: { '1': work } }), {
    name: 'TypeError',
    message: /^earlier has the work of other versions, but the agent has none now/
  })
  const { earlier } = defineAgent({
    card,
    version: '2',
    work: chart('now'),
    recovery: 'fail',
    earlier: { '0': generator, '1': chart('one'), constructor: work, '1.5': { work, recovery: 'fail' } }
  })
  t.strictSame(
    Object.entries(earlier ?? {}).map(([version, { recovery }]) => [version, recovery]),
    [
      ['0', 'rerun'],
      ['1', 'fail'],
      ['constructor', 'rerun'],
      ['1.5', 'fail']
    ]
  )
  t.equal(defineAgent({ card, version: '2', work, earlier: {} }).earlier?.['toString'], undefined)
})
