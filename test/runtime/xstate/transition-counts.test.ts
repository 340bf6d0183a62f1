import t from 'tap'
import { raise, setup, type AnyStateMachine } from 'xstate'
import { text } from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { chartVersion, type TransitionCount } from '../../../runtime/xstate/transition-counter.ts'
import { say, start, taskIn, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { transitionSuite } from '../../fixtures/stores/transition-suite.ts'

/** A store that tells which counts were added, and the time. */
function counting(inner: Store = memoryStore()): { store: Store; added: TransitionCount[][]; times: number[] } {
  const added: TransitionCount[][] = []
  const times: number[] = []
  const countTransitions = async (counts: readonly TransitionCount[], atMs: number) => {
    added.push([...counts])
    times.push(atMs)
    await inner.countTransitions?.(counts, atMs)
  }
  return { store: { ...inner, countTransitions }, added, times }
}

const question = { tags: 'input-required', meta: { prompt: 'Which?' } } as const

/** Asks, hears words, and ends. */
const asking = setup({}).createMachine({
  id: 'a',
  initial: 'first',
  states: {
    first: { always: 'second' },
    second: {
      ...question,
      on: { 'message.received': [{ guard: ({ event }) => event.message.parts.length > 1, actions: () => {} }, 'third'] }
    },
    third: { always: 'end' },
    end: { type: 'final' }
  }
})

const flat = (counts: readonly TransitionCount[]) =>
  counts.map(({ previous, taken, count, timed, ms }) => [previous, taken, count, timed, ms])

await t.test('the store in memory keeps the contract', async t => transitionSuite(t, memoryStore()))

await t.test(
  'transitions are counted with the one before and the time in the state, and stored a second after the first',
  async t => {
    const { store, added, times } = counting()
    const { runtime, clock } = start(t, { work: asking }, { store })
    const begin = clock.now()
    const { id } = taskIn(await runtime.sendMessage(say('go')))
    clock.increment(400)
    await runtime.sendMessage({ message: { ...say('', { taskId: id }).message, parts: [text('one'), text('two')] } })
    clock.increment(300)
    t.strictSame(added, [], 'not yet')
    await runtime.sendMessage(say('this', { taskId: id }))
    clock.increment(300)
    await until(() => added.length === 1)
    const [toSecond, stays, toThird, toEnd] = [
      'a.first on its own to second',
      'a.second on message.received (branch 1) stays',
      'a.second on message.received (branch 2) to third',
      'a.third on its own to end'
    ]
    t.strictSame(flat(added[0] ?? []), [
      ['', toSecond, 1, 1, 0],
      [toSecond, stays, 1, 0, 0],
      [stays, toThird, 1, 1, 700],
      [toThird, toEnd, 1, 1, 0]
    ])
    t.strictSame(times, [begin + 1000])
    clock.increment(5000)
    t.equal(added.length, 1, 'nothing new is nothing to store')
    await runtime.sendMessage(say('again'))
    await runtime.close()
    t.strictSame(flat(added[1] ?? []), [['', toSecond, 1, 1, 0]], 'the rest is stored on close')
    t.equal(added.length, 2)
  }
)

await t.test('a restored chart does not know what was before, nor since when it is in its state', async t => {
  const { store, added } = counting()
  const kept = { ...store, close: async () => {} }
  const first = start(t, { work: asking }, { store: kept })
  const { id } = taskIn(await first.runtime.sendMessage(say('go')))
  await first.runtime.close()
  const second = start(t, { work: asking }, { store: kept })
  await second.runtime.sendMessage(say('this', { taskId: id }))
  await second.runtime.close()
  t.strictSame(flat(added[1] ?? []), [
    ['?', 'a.second on message.received (branch 2) to third', 1, 0, 0],
    ['a.second on message.received (branch 2) to third', 'a.third on its own to end', 1, 1, 0]
  ])
})

/** A chart with parallel states, which is not compiled, and a chart below it. */
const below = setup({}).createMachine({
  id: 'below',
  initial: 'x',
  states: { x: { always: 'y' }, y: { type: 'final' } }
})
const parallel: AnyStateMachine = setup({ actors: { below } }).createMachine({
  id: 'p',
  type: 'parallel',
  states: {
    one: { initial: 'a', states: { a: { invoke: { src: 'below', onDone: 'b' } }, b: { type: 'final' } } },
    two: { initial: 'a', states: { a: { entry: raise({ type: 'go' }), on: { go: 'b' } }, b: { type: 'final' } } }
  }
})

await t.test('charts with parallel states are counted, and charts that they start, inspected or not', async t => {
  for (const isInspected of [false, true]) {
    const { store, added } = counting()
    const { runtime } = start(t, { work: parallel }, { store })
    if (isInspected) runtime.observe({ entered: ({ root }) => void root.system.inspect(() => {}) })
    await runtime.sendMessage(say('go'))
    await runtime.close()
    const taken = (added[0] ?? []).map(({ chart, taken }) => `${chart} ${taken}`)
    t.strictSame(
      new Set(taken),
      new Set([
        `${chartVersion(below)} below.x on its own to y`,
        `${chartVersion(parallel)} p.one.a on xstate.done.actor.0.p.one.a to b`,
        `${chartVersion(parallel)} p.two.a on go to b`
      ]),
      `inspected: ${isInspected}`
    )
  }
})

await t.test('two runtimes of one agent count apart', async t => {
  const [one, two] = [counting(), counting()]
  const [first, second] = [one, two].map(({ store }) => start(t, { work: asking }, { store }).runtime)
  await first?.sendMessage(say('go'))
  await second?.close()
  await first?.close()
  t.strictSame([one.added.length, two.added.length], [1, 0])
})

await t.test('counts that cannot be stored are lost, with a warning, and later ones are stored', async t => {
  const inner = memoryStore()
  let isBroken = true
  const { runtime, clock, log } = start(
    t,
    { work: asking },
    {
      store: {
        ...inner,
        countTransitions: async (counts, atMs) =>
          isBroken ? Promise.reject(new Error('no disk')) : inner.countTransitions?.(counts, atMs),
        close: async () => {}
      }
    }
  )
  await runtime.sendMessage(say('go'))
  clock.increment(1000)
  await until(() => log.length === 1)
  t.match(log, [
    { level: 'warn', message: 'counts of transitions could not be stored', details: { error: { message: 'no disk' } } }
  ])
  isBroken = false
  await runtime.sendMessage(say('go'))
  await runtime.close()
  t.strictSame(
    (await inner.readTransitions?.(chartVersion(asking)))?.map(({ count }) => count),
    [1]
  )
})

await t.test('nothing is counted of work that is a function, nor in a store that cannot count', async t => {
  const { store, added } = counting()
  const { runtime } = start(t, { work: () => {} }, { store })
  await runtime.sendMessage(say('go'))
  await runtime.close()
  t.strictSame(added, [])
  const { countTransitions: _, readTransitions: __, ...other } = memoryStore()
  const without = start(t, { work: asking }, { store: other })
  await without.runtime.sendMessage(say('go'))
  await without.runtime.close()
})

await t.test('the version of a chart changes with its states and transitions, and with nothing else', t => {
  const chart = (end: string, value = 1) =>
    setup({}).createMachine({
      id: 'c',
      context: { value },
      initial: 'a',
      states: { a: { on: { go: end } }, b: {}, c: {} }
    })
  t.equal(chartVersion(chart('b')), chartVersion(chart('b', 2)))
  t.not(chartVersion(chart('b')), chartVersion(chart('c')))
  t.match(chartVersion(chart('b')), /^[\w-]{22}$/)
  t.end()
})
