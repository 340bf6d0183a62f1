import t from 'tap'
import { and, assign, emit, fromCallback, not, setup } from 'xstate'
import { setupWork } from '../../../runtime/index.ts'
import { statesWithin, writtenChart } from '../../../runtime/xstate/written-chart.ts'

const machine = setup({
  actors: { brew: fromCallback(() => {}) },
  guards: { isLarge: () => true, isLate: () => false },
  actions: { note: () => {} },
  delays: { patience: 5 }
}).createMachine({
  id: 'order',
  context: { n: 1 },
  initial: 'asking',
  states: {
    asking: {
      tags: 'input-required',
      meta: { prompt: 'How many?' },
      description: 'Asks for a number.',
      entry: ['note', assign({})],
      exit: () => {},
      on: {
        'message.received': [
          { guard: 'isLarge', target: 'brewing', actions: 'note' },
          { guard: and(['isLarge', not('isLate')]), target: ['brewing'], reenter: true },
          { guard: { type: 'isLate', params: { limit: 3 } } },
          { guard: ({ context }) => context.n > 1, actions: emit({ type: 'x' }), description: 'Counts.' }
        ]
      },
      after: { 10: 'over', patience: 'over' }
    },
    brewing: {
      invoke: [
        { src: 'brew', id: 'brewer', onDone: 'over', onError: { actions: 'note' } },
        { src: fromCallback(() => {}), onSnapshot: {} }
      ],
      initial: 'heating',
      states: { heating: { always: 'hot' }, hot: { type: 'final' }, before: { type: 'history', target: 'hot' } },
      onDone: 'over'
    },
    over: { id: 'the end', type: 'final' }
  }
})

await t.test(
  'the outline of a chart has its states, transitions, guards, actions and actors as they are written',
  t => {
    const chart = writtenChart(machine)
    t.match(chart, { id: 'order', context: { n: 1 } })
    t.equal(chart.states[0], chart.root)
    t.strictSame(
      chart.states.map(({ id, type, parent, initial, hasOwnId }) => [
        id,
        type,
        parent?.id,
        initial.map(({ key }) => key),
        hasOwnId
      ]),
      [
        ['order', 'compound', undefined, ['asking'], true],
        ['order.asking', 'atomic', 'order', [], false],
        ['order.brewing', 'compound', 'order', ['heating'], false],
        ['order.brewing.heating', 'atomic', 'order.brewing', [], false],
        ['order.brewing.hot', 'final', 'order.brewing', [], false],
        ['order.brewing.before', 'history', 'order.brewing', ['hot'], false],
        ['the end', 'final', 'order', [], true]
      ]
    )
    const [, asking, brewing, , , before] = chart.states
    t.match(asking, {
      path: ['asking'],
      tags: ['input-required'],
      meta: { prompt: 'How many?' },
      description: 'Asks for a number.'
    })
    t.match(
      [asking?.entry, asking?.exit],
      [
        [
          { kind: 'named', name: 'note', written: 'note' },
          { kind: 'own', name: 'assign', written: Function }
        ],
        [{ kind: 'inline', name: '', written: Function }]
      ]
    )
    t.match(before, { history: 'shallow', historyTarget: 'hot' })
    t.strictSame(
      brewing?.invoke.map(({ id, hasOwnId, src, onDone, onError, onSnapshot }) => [
        id,
        hasOwnId,
        src,
        ...[onDone, onError, onSnapshot].map(all => all.map(({ targets }) => targets.map(({ key }) => key)))
      ]),
      [
        ['brewer', true, 'brew', [['over']], [[]], []],
        ['1.order.brewing', false, undefined, [], [], [[]]]
      ]
    )
    t.strictSame(statesWithin(brewing as NonNullable<typeof brewing>).length, 4)
    t.end()
  }
)

await t.test('the transitions of an outline name the member that has them, and their guards', t => {
  const { transitions } = writtenChart(machine)
  t.strictSame(
    transitions.map(({ source, event, member, delay, targets }) => [
      source.key,
      event,
      member,
      delay,
      targets.map(({ key }) => key).join()
    ]),
    [
      ['asking', 'message.received', 'on', undefined, 'brewing'],
      ['asking', 'message.received', 'on', undefined, 'brewing'],
      ['asking', 'message.received', 'on', undefined, ''],
      ['asking', 'message.received', 'on', undefined, ''],
      ['asking', 'xstate.after.10.order.asking', 'after', 10, 'over'],
      ['asking', 'xstate.after.patience.order.asking', 'after', 'patience', 'over'],
      ['brewing', 'xstate.done.state.order.brewing', 'onDone', undefined, 'over'],
      ['brewing', 'xstate.done.actor.brewer', 'invoke', undefined, 'over'],
      ['brewing', 'xstate.error.actor.brewer', 'invoke', undefined, ''],
      ['brewing', 'xstate.snapshot.1.order.brewing', 'invoke', undefined, ''],
      ['heating', '', 'always', undefined, 'hot']
    ]
  )
  const [first, second, third, fourth, , last] = transitions
  const isLarge = { kind: 'named', name: 'isLarge' }
  t.strictSame(
    [first, second, third].map(one => one?.guard),
    [
      isLarge,
      { kind: 'and', guards: [isLarge, { kind: 'not', guards: [{ kind: 'named', name: 'isLate' }] }] },
      { kind: 'named', name: 'isLate', params: { limit: 3 } }
    ]
  )
  t.match(fourth, { guard: { kind: 'inline', name: '' }, description: 'Counts.', reenter: false })
  t.match(fourth?.actions, [{ kind: 'own', name: 'emit', written: Function }])
  t.equal(second?.reenter, true)
  t.equal(last?.guard, undefined)
  t.equal(new Set(transitions.map(({ name }) => name)).size, transitions.length)
  t.end()
})

await t.test('an outline is made once, and has no guard that the author did not write', t => {
  t.equal(writtenChart(machine), writtenChart(machine))
  const asks = (key: string) => ({
    initial: 'asking',
    states: {
      asking: { tags: 'input-required' as const, on: { 'message.received': { target: 'over', actions: [] } } },
      over: { type: 'final' as const, description: key }
    }
  })
  const both = setupWork({}).createMachine({ id: 'both', type: 'parallel', states: { a: asks('a'), b: asks('b') } })
  const { transitions } = writtenChart(both)
  t.equal(transitions.length, 2)
  t.ok(transitions.every(({ guard }) => guard === undefined))
  t.end()
})
