import t from 'tap'
import { assign, cancel, createMachine, emit, enqueueActions, fromPromise, raise, sendTo, setup } from 'xstate'
import { BoundError, ExplorationBounds } from '../../../adapters/testing/bounds.ts'
import { planFor } from '../../../adapters/testing/plan/plan.ts'
import { proveAgent, proveChart, type Proof, type Verdict } from '../../../adapters/testing/index.ts'
import { OWN_PROPERTIES } from '../../../adapters/testing/proof/prove.ts'
import { defineAgent, propertiesOf, setupWork, typed, type AuthorizationReceived } from '../../../runtime/index.ts'

const card = { name: 'Proved' }

/** The verdicts of a proof by their properties. */
function outcomes({ verdicts }: Proof): Record<string, string> {
  return Object.fromEntries(verdicts.map(({ property, outcome }) => [property, outcome]))
}

/** A counterexample as the clauses of its steps. */
function walkOf({ verdicts }: Proof, name: string) {
  const verdict = verdicts.find(({ property }) => property === name)
  if (!verdict || !('walk' in verdict)) throw new Error(`${name} has no counterexample`)
  const { kind, steps, again } = verdict.walk
  return { kind, steps: steps.map(({ says }) => says), again: again.map(({ says }) => says) }
}

const refund = setupWork({
  types: { events: typed<AuthorizationReceived>() },
  actors: { pay: fromPromise<string>(async () => 'paid') }
}).createMachine({
  id: 'refund',
  initial: 'asking',
  states: {
    asking: { tags: 'input-required', on: { 'message.received': 'approving' } },
    approving: { tags: 'auth-required', on: { 'authorization.received': 'paying' } },
    paying: { invoke: { src: 'pay', onDone: 'paid', onError: 'declined' } },
    declined: { tags: 'input-required', on: { 'message.received': 'paying' }, after: { 60_000: 'paying' } },
    paid: { type: 'final' }
  }
})

const {
  always,
  any,
  all,
  atMostOnce,
  done,
  event,
  eventually,
  fails,
  leadsTo,
  never,
  not,
  precedes,
  tag,
  terminal,
  told,
  unreachable
} = propertiesOf(refund)
const approved = 'an amount is approved before it is paid'
const refunds = defineAgent({
  card,
  work: refund,
  properties: {
    [approved]: precedes(event('authorization.received'), 'paying', { after: event('message.received') }),
    'every refund ends': eventually(terminal),
    'every refund can end': eventually(terminal, { fairness: 'choice' }),
    'it is paid at most once': atMostOnce(done('pay')),
    'it is tried at most once': atMostOnce('paying'),
    'it fails at most once between two amounts': atMostOnce(fails('pay'), { after: event('message.received') }),
    'nothing is told after the end': never(told(), { after: told('terminal') }),
    'a question goes on': leadsTo(tag('input-required'), any('paying', 'approving')),
    'a paid refund is completed': leadsTo('paid', told('COMPLETED')),
    'a decline is asked about': leadsTo(fails('pay'), told('INPUT_REQUIRED')),
    'it asks or pays': always(any('asking', 'approving', 'paying', 'declined', terminal)),
    'an amount comes while it is asked for': never(all(event('message.received'), not(tag('input-required')))),
    'it is never declined': unreachable('declined'),
    'it always asks': always('asking'),
    'it is never canceled': never(told('CANCELED'))
  }
})
const cases = {
  messages: { 300: '300' },
  authorizations: { yes: true },
  results: { pay: { receipt: 'r', no: new Error('no') } }
}

await t.test('properties of work are proved or refuted by the shortest walk', async t => {
  const proof = await proveAgent(refunds, { cases })
  t.strictSame(outcomes(proof), {
    [approved]: 'confirmed',
    'every refund ends': 'confirmed',
    'every refund can end': 'proved',
    'it is paid at most once': 'proved',
    'it is tried at most once': 'confirmed',
    'it fails at most once between two amounts': 'confirmed',
    'nothing is told after the end': 'proved',
    'a question goes on': 'proved',
    'a paid refund is completed': 'proved',
    'a decline is asked about': 'proved',
    'it asks or pays': 'proved',
    'an amount comes while it is asked for': 'proved',
    'it is never declined': 'confirmed',
    'it always asks': 'confirmed',
    'it is never canceled': 'confirmed',
    'the chart never throws': 'proved',
    'every task can end': 'proved'
  })
  const [amount, yes, no] = ['the client says "300"', '"yes" arrives', 'pay ends with the error "no"']
  t.strictSame(walkOf(proof, approved), { kind: 'moment', steps: [amount, yes, no, amount], again: [] })
  t.strictSame(walkOf(proof, 'every refund ends'), { kind: 'loop', steps: [amount, yes], again: [no, amount] })
  t.strictSame(walkOf(proof, 'it fails at most once between two amounts').steps, [amount, yes, no, '60000 ms pass', no])
  const { walk } = proof.verdicts.find(({ property }) => property === approved) as Extract<Verdict, { walk: unknown }>
  t.match(walk.begins, { states: ['refund', 'refund.asking'], transitions: [] })
  t.strictSame(
    walk.steps.map(({ states, transitions }) => [states.at(-1), ...transitions]),
    [
      ['refund.approving', 'refund.asking on message.received to approving'],
      ['refund.paying', 'refund.approving on authorization.received to paying'],
      ['refund.declined', 'refund.paying on xstate.error.actor.0.refund.paying to declined'],
      ['refund.paying', 'refund.declined on message.received to paying']
    ]
  )
  t.match(proof, { configurations: 9, isWhole: true, openings: ['opened by "start"'], guesses: [], lost: [] })
})

await t.test('data that no case gives, the events of actors, and artifacts are part of a proof', async t => {
  const open = await proveAgent(refunds, { only: 'approved' })
  t.strictSame(open.guesses, ['answers of the client', 'authorizations', 'results of pay'])
  t.match(open.verdicts, [{ outcome: 'confirmed' }], 'no guard is asked')
  const work = setupWork({
    types: { events: typed<{ type: 'ring' }>(), context: typed<{ said: { text: string } | undefined }>() },
    actors: { bell: fromPromise<{ text: string }>(async () => ({ text: 'x' })) }
  }).createMachine({
    id: 'bell',
    context: { said: undefined },
    initial: 'still',
    states: {
      still: {
        invoke: {
          src: 'bell',
          onDone: { target: 'asking', actions: assign({ said: ({ event }) => event.output }) },
          onError: 'over'
        },
        on: { ring: 'over' }
      },
      asking: {
        tags: 'input-required',
        meta: { prompt: ({ context }) => String(context.said?.text.trim()) },
        on: { 'message.received': 'over' }
      },
      over: { type: 'final' }
    },
    output: { artifact: { name: 'sound', parts: [{ text: 'ding' }] } }
  })
  const { precedes, told, event, leadsTo, unreachable } = propertiesOf(work)
  const agent = defineAgent({
    card,
    work,
    properties: {
      'it is told what rang': precedes(told('artifact'), told('COMPLETED')),
      'a ring is over': leadsTo(event('ring'), 'over'),
      'it never ends': unreachable('over')
    }
  })
  const given = { events: { ring: { type: 'ring' } }, opening: { one: 'one', two: 'two' }, messages: { yes: 'yes' } }
  const rung = await proveAgent(agent, { cases: { ...given, results: { bell: { x: { text: 'x' } } } } })
  t.strictSame(outcomes(rung), {
    'it is told what rang': 'proved',
    'a ring is over': 'proved',
    'it never ends': 'confirmed',
    'the chart never throws': 'proved',
    'every task can end': 'proved'
  })
  t.match(rung.openings, ['opened by "one"', 'opened by "two"'])
  t.strictSame(
    outcomes(
      await proveAgent(agent, { cases: { ...given, results: { bell: { number: { text: 5 } } } }, only: 'throws' })
    ),
    { 'the chart never throws': 'confirmed' }
  )
  t.match((await proveAgent(defineAgent({ ...agent, work: silent(), properties: {} }), {})).lost, [
    /^bell ends with "done", with data that no case gives: .*text/
  ])
})

/** A question whose words need data. */
function silent() {
  return setupWork({
    types: { context: typed<{ said: { text: string } }>() },
    actors: { bell: fromPromise<{ text: string }>(async () => ({ text: 'x' })) }
  }).createMachine({
    id: 'silent',
    context: { said: { text: '' } },
    initial: 'still',
    states: {
      still: {
        invoke: {
          src: 'bell',
          onDone: { target: 'asking', actions: assign({ said: ({ event }) => event.output }) },
          onError: 'over'
        }
      },
      asking: {
        tags: 'input-required',
        meta: { prompt: ({ context }) => context.said.text },
        on: { 'message.received': 'over' }
      },
      over: { type: 'final' }
    }
  })
}

await t.test('an endless walk counts if nothing leads out of it', async t => {
  const pingPong = setupWork({}).createMachine({
    id: 'table',
    initial: 'serve',
    states: { serve: { after: { 1: 'ping' } }, ping: { after: { 1: 'pong' } }, pong: { after: { 1: 'ping' } } }
  })
  t.strictSame(walkOf(await proveAgent(defineAgent({ card, work: pingPong })), 'every task can end'), {
    kind: 'loop',
    steps: ['1 ms pass'],
    again: ['1 ms pass', '1 ms pass']
  })
  const over = defineAgent({
    card,
    work: pingPong,
    properties: { 'it is served again': propertiesOf(pingPong).leadsTo('ping', 'serve', { fairness: 'choice' }) }
  })
  t.strictSame(
    walkOf(await proveAgent(over), 'it is served again').kind,
    'loop',
    'a client that cancels leads out of no loop'
  )
  const trap = setupWork({}).createMachine({
    id: 'trap',
    initial: 'free',
    states: {
      free: {
        tags: 'input-required',
        on: { 'message.received': { target: 'free', reenter: true } },
        after: { 1: 'held' }
      },
      held: {}
    }
  })
  t.strictSame(
    walkOf(
      await proveAgent(defineAgent({ card, work: trap }), { cases: { messages: { wait: 'wait' } } }),
      'every task can end'
    ),
    { kind: 'end', steps: ['1 ms pass'], again: [] }
  )
})

await t.test('a state that nothing leaves refutes that something follows', async t => {
  const work = setupWork({}).createMachine({
    id: 'still',
    initial: 'here',
    states: { here: { on: { '*': 'there' } }, there: { type: 'final' } }
  })
  const { eventually, terminal } = propertiesOf(work)
  const agent = defineAgent({ card, work, properties: { 'it ends': eventually(terminal) } })
  const proof = await proveAgent(agent)
  t.strictSame(walkOf(proof, 'it ends'), { kind: 'end', steps: [], again: [] })
  t.strictSame(walkOf(proof, 'every task can end').kind, 'end')
  const late = await proveAgent(defineAgent({ ...agent, deadlineMs: 1000 }))
  t.strictSame(outcomes(late), {
    'it ends': 'proved',
    'the chart never throws': 'proved',
    'every task can end': 'proved'
  })
})

await t.test('guards are evaluated with the data of cases, and else taken both ways', async t => {
  const work = setupWork({
    types: { context: typed<{ euros: number }>() },
    actors: { price: fromPromise<number>(async () => 1) },
    guards: { isCheap: (_, euros: number) => euros < 10, isKnown: ({ context }) => context.euros > 0 }
  }).createMachine({
    id: 'price',
    context: { euros: 0 },
    initial: 'asking',
    states: {
      asking: {
        invoke: {
          src: 'price',
          onError: 'failed',
          onDone: [
            {
              guard: { type: 'isCheap', params: ({ event }) => event.output },
              target: 'cheap',
              actions: assign({ euros: ({ event }) => event.output })
            },
            { guard: ({ event }) => event.output > 1000, target: 'failed' },
            { target: 'dear' }
          ]
        }
      },
      cheap: { after: { 10: [{ guard: 'isKnown', target: 'paid' }, { target: 'failed' }] } },
      dear: { type: 'final' },
      paid: { type: 'final' },
      failed: { type: 'final', tags: 'failed', meta: { reason: 'no' } }
    }
  })
  const { never, unreachable } = propertiesOf(work)
  const properties = {
    'nothing is dear': unreachable('dear'),
    'what is cheap is paid': never(({ context, value }) => value === 'failed' && context.euros > 0)
  }
  const agent = defineAgent({ card, work, properties })
  const given = await proveAgent(agent, { cases: { results: { price: { five: 5 } } }, only: 'nothing' })
  t.strictSame(outcomes(given), { 'nothing is dear': 'proved' })
  const open = await proveAgent(agent)
  t.match(open.verdicts[0], {
    outcome: 'possible',
    guards: [
      { guard: 'isCheap', isTrue: false },
      { guard: 'a condition', isTrue: false }
    ]
  })
  t.strictSame(walkOf(open, 'nothing is dear').steps, ['price ends with "done" (if not isCheap and not a condition)'])
  t.match(
    open.verdicts[0],
    {
      walk: {
        steps: [
          {
            states: ['price', 'price.dear'],
            transitions: ['price.asking on xstate.done.actor.0.price.asking (branch 3) to dear']
          }
        ]
      }
    },
    'with the guards of the walk'
  )
  t.match(open.verdicts[1], { outcome: 'unknown', why: /context/ })
  t.strictSame(open.guesses, ['results of price'])
  t.strictSame(outcomes(await proveAgent(agent, { cases: { results: { price: { dear: 50 } } }, only: 'nothing' })), {
    'nothing is dear': 'confirmed'
  })
})

await t.test('a guard that throws with data that no case gives may also do that', async t => {
  const work = setupWork({
    actors: { price: fromPromise<{ euros: number }>(async () => ({ euros: 1 })) },
    guards: { isCheap: (_, given: { euros: number }) => given.euros < 10 }
  }).createMachine({
    id: 'price',
    initial: 'asking',
    states: {
      asking: {
        invoke: {
          src: 'price',
          onError: 'failed',
          onDone: [
            { guard: { type: 'isCheap', params: ({ event }) => event.output }, target: 'cheap' },
            { target: 'dear' }
          ]
        }
      },
      cheap: { type: 'final' },
      dear: { type: 'final' },
      failed: { type: 'final', tags: 'failed' }
    }
  })
  const { never, unreachable } = propertiesOf(work)
  const agent = defineAgent({
    card,
    work,
    properties: {
      'nothing is dear': unreachable('dear'),
      'it never starts again': never(told('SUBMITTED'), { after: 'dear' })
    }
  })
  const open = await proveAgent(agent)
  t.strictSame(outcomes(open), {
    'nothing is dear': 'possible',
    'it never starts again': 'proved',
    'the chart never throws': 'possible',
    'every task can end': 'proved'
  })
  t.match(open.verdicts[2], {
    guards: [{ guard: 'isCheap', isTrue: false, throws: true }],
    walk: { steps: [{ says: 'price ends with "done" (if isCheap throws)', states: ['price', 'price.asking'] }] }
  })
  t.match(outcomes(await proveAgent(agent, { cases: { results: { price: { five: { euros: 5 } } } } })), {
    'the chart never throws': 'proved',
    'nothing is dear': 'proved'
  })
  const door = createMachine({
    id: 'door',
    initial: 'closed',
    states: {
      closed: { on: { open: { guard: () => Boolean(Object(undefined).key.fits), target: 'opened' } } },
      opened: {}
    }
  })
  t.match((await proveChart(door, { 'it goes on': propertiesOf(door).never(terminal) })).verdicts, [
    { outcome: 'possible', guards: [{ guard: 'a condition', throws: true }] }
  ])
})

await t.test('the proof says what it could not see', async t => {
  const work = setupWork({
    types: { context: typed<{ n: number }>() },
    actors: { count: fromPromise<{ n: number }>(async () => ({ n: 1 })) }
  }).createMachine({
    id: 'count',
    context: { n: 0 },
    initial: 'counting',
    states: {
      counting: {
        invoke: {
          src: 'count',
          onDone: {
            target: 'counting',
            reenter: true,
            actions: assign({ n: ({ context, event }) => context.n + event.output.n })
          },
          onError: 'over'
        }
      },
      over: { type: 'final' }
    }
  })
  const { unreachable } = propertiesOf(work)
  const agent = defineAgent({
    card,
    work,
    properties: {
      'it goes on': unreachable('over'),
      'it counts': propertiesOf(work).always('counting', { after: 'over' })
    }
  })
  const results = { count: { one: { n: 1 } } }
  const bounded = await proveAgent(agent, { cases: { results }, limit: 5 })
  t.match(bounded, {
    isWhole: false,
    met: 'there are more than 5 configurations',
    verdicts: [{ outcome: 'unknown', why: 'there are more than 5 configurations' }, {}, {}, { outcome: 'unknown' }]
  })
  const open = await proveAgent(agent)
  t.match(open.lost, [/^count ends with "done", with data that no case gives: .*undefined/])
  t.match(open.verdicts[1], { outcome: 'unknown', why: 'the chart throws with data that no case gives' })
  const thrown = await proveAgent(agent, { cases: { results: { count: { nothing: undefined } } } })
  t.strictSame(walkOf(thrown, 'the chart never throws').steps, ['count ends with "nothing"'])
})

await t.test('timers fire in every order that time allows', async t => {
  const machine = (delays: Record<'a' | 'b' | 'c', number>) =>
    setup({ actors: { step: fromPromise(async () => {}) } }).createMachine({
      id: 'timers',
      type: 'parallel',
      states: {
        one: { initial: 'a', states: { a: { after: { [delays.a]: 'rung' } }, rung: {} } },
        two: { initial: 'b', states: { b: { after: { [delays.b]: 'rung' } }, rung: {} } },
        three: {
          initial: 'working',
          states: {
            working: { invoke: { id: 'step', src: 'step', onDone: 'c', onError: 'c' } },
            c: { after: { [delays.c]: 'rung' } },
            rung: {}
          }
        }
      }
    })
  const order = async (delays: Record<'a' | 'b' | 'c', number>) => {
    const chart = machine(delays)
    const { precedes } = propertiesOf(chart)
    const events = [{ type: 'xstate.done.actor.step', actorId: 'step' }]
    return outcomes(
      await proveChart(
        chart,
        {
          'a before b': precedes('one.rung', 'two.rung'),
          'b before a': precedes('two.rung', 'one.rung'),
          'a before c': precedes('one.rung', 'three.rung'),
          'b before c': precedes('two.rung', 'three.rung')
        },
        { events }
      )
    )
  }
  t.strictSame(await order({ a: 10, b: 20, c: 15 }), {
    'a before b': 'proved',
    'b before a': 'confirmed',
    'a before c': 'proved',
    'b before c': 'confirmed'
  })
  t.strictSame(await order({ a: 10, b: 10, c: 5 }), {
    'a before b': 'confirmed',
    'b before a': 'confirmed',
    'a before c': 'confirmed',
    'b before c': 'confirmed'
  })
})

await t.test('a bare chart', async t => {
  const bell = setup({
    types: {
      context: {} as { rings: number },
      events: {} as { type: 'ring' } | { type: 'stop' } | { type: 'poll' },
      emitted: {} as { type: 'rang'; n: number }
    },
    actors: { hand: fromPromise(async () => {}) },
    guards: { isTired: ({ context }) => context.rings > 1 }
  }).createMachine({
    id: 'bell',
    context: { rings: 0 },
    initial: 'still',
    states: {
      still: { on: { ring: 'ringing', poll: {} } },
      ringing: {
        invoke: { id: 'hand', src: 'hand', onDone: 'still', onError: 'still' },
        entry: [
          emit(({ context }) => ({ type: 'rang' as const, n: context.rings })),
          sendTo('hand', { type: 'pull' }),
          enqueueActions(({ enqueue }) => enqueue.raise({ type: 'poll' }, { delay: 5, id: 'again' }))
        ],
        exit: cancel('again'),
        on: { stop: { guard: 'isTired', target: 'over' }, poll: { target: 'ringing', reenter: true } }
      },
      over: { type: 'final' }
    }
  })
  const { leadsTo, told, sent, event, never, terminal, eventually, atMostOnce } = propertiesOf(bell)
  const properties = {
    'a ring rings': leadsTo(
      event('ring', ({ type }) => type === 'ring'),
      told('rang', ({ n }: { n: number }) => n === 0)
    ),
    'it is pulled': leadsTo('ringing', sent('pull')),
    'it becomes still': leadsTo('ringing', 'still'),
    'it goes on': never(terminal),
    'it ends': eventually(terminal),
    'it rings once': atMostOnce(told('rang'))
  }
  const ends = [{ type: 'xstate.done.actor.hand', actorId: 'hand' }]

  await t.test('has the events of its cases', async t => {
    const proof = await proveChart(bell, properties, {
      events: ({ value }) => [{ type: 'ring' }, { type: 'stop' }, ...(value === 'still' ? [] : ends)]
    })
    t.strictSame(outcomes(proof), {
      'a ring rings': 'proved',
      'it is pulled': 'proved',
      'it becomes still': 'confirmed',
      'it goes on': 'proved',
      'it ends': 'confirmed',
      'it rings once': 'confirmed'
    })
    t.strictSame(
      walkOf(proof, 'it becomes still'),
      { kind: 'loop', steps: ['ring'], again: ['5 ms pass'] },
      'the timer starts the actor anew each time'
    )
  })

  await t.test('has all of its events without cases, and guards both ways', async t => {
    const proof = await proveChart(bell, properties, {}, { only: 'it ' })
    t.match(outcomes(proof), { 'it goes on': 'possible', 'it ends': 'confirmed' })
    t.match(walkOf(proof, 'it goes on').steps, ['ring', 'stop (if isTired)'])
    t.match(proof.guesses, ['data of events'])
  })

  await t.test('may wait for events that come in the end, and name what it emits', async t => {
    const proof = await proveChart(
      bell,
      { 'it rings': eventually(told('a ring')) },
      {
        events: [{ type: 'ring' }, { type: 'ring', loud: true } as { type: 'ring' }, ...ends],
        awaited: ['ring'],
        toldAs: () => 'a ring',
        memory: () => 0
      }
    )
    t.strictSame(outcomes(proof), { 'it rings': 'proved' })
  })
})

await t.test('wrong properties and charts are refused', async t => {
  t.throws(() => propertiesOf(refund).never('payed' as never), {
    message: 'The chart refund has no state "payed". It has: asking, approving, paying, declined, paid.'
  })
  t.throws(() => defineAgent({ card, work: refund, properties: { wrong: 'never' as never } }), {
    message: /^The property "wrong" has to be made with a word of propertiesOf/
  })
  t.throws(() => defineAgent({ card, work: async () => ({ artifact: 'a' }), properties: {} }), {
    message: /^properties are proved on a statechart/
  })
  await t.rejects(proveAgent(defineAgent({ card, work: async () => ({ artifact: 'a' }) })), {
    message: /^its work is no statechart/
  })
  await t.rejects(proveAgent(refunds, { cases, only: 'paint' }), { message: /^no property's name contains "paint"/ })
  await t.rejects(proveAgent(refunds, { limit: 0 }), { message: /^limit has to be a number above 0/ })
  const input = {
    '~standard': { version: 1, vendor: 'test', validate: () => ({ issues: [{ message: 'never' }] }) }
  } as never
  await t.rejects(proveAgent(defineAgent({ card, work: refund, input })), { message: /^no message opens a task/ })
  await t.rejects(proveAgent(defineAgent({ card, work: refund, input }), { cases: { opening: { one: 'one' } } }), {
    message: /never/
  })
})

await t.test('a guard that throws makes a bare chart throw, which is a step', async t => {
  const chart = createMachine({
    id: 'door',
    initial: 'closed',
    states: {
      closed: { on: { open: { guard: () => Boolean(Object(undefined).key.fits), target: 'opened' } } },
      opened: {}
    }
  })
  const { never, terminal } = propertiesOf(chart)
  t.match((await proveChart(chart, { 'it goes on': never(terminal) }, { events: [{ type: 'open' }] })).verdicts, [
    { outcome: 'confirmed' }
  ])
})

await t.test(
  'a chart that goes round for ever is a counterexample, at its start and later, whatever the data is',
  async t => {
    const round = { a: { always: 'b' }, b: { always: 'a' } } as const
    const atOnce = await proveAgent(
      defineAgent({ card, work: setupWork({}).createMachine({ initial: 'a', states: round }) })
    )
    t.match(atOnce, {
      configurations: 1,
      verdicts: [
        {
          property: 'the chart never throws',
          outcome: 'confirmed',
          walk: {
            kind: 'moment',
            begins: {
              state: 'a',
              transitions: ['(machine).a on its own to b', '(machine).b on its own to a'],
              told: ['SUBMITTED', 'WORKING', 'FAILED']
            }
          }
        },
        { outcome: 'proved' }
      ]
    })
    const work = setupWork({ actors: { below: createMachine({}) } }).createMachine({
      id: 'round',
      initial: 'asking',
      states: { asking: { tags: 'input-required', on: { 'message.received': 'a' } }, ...round }
    })
    for (const given of [{}, { messages: { yes: 'yes' } }]) {
      const later = await proveAgent(defineAgent({ card, work }), { cases: given })
      t.match(later.verdicts[0], {
        outcome: 'confirmed',
        walk: {
          steps: [
            {
              transitions: [
                'round.asking on message.received to a',
                'round.a on its own to b',
                'round.b on its own to a'
              ]
            }
          ]
        }
      })
      t.equal(later.lost.length, 0)
    }
    const counting = setupWork({
      types: { context: {} as { n: number } },
      guards: { goesOn: () => true }
    }).createMachine({
      id: 'counting',
      context: { n: 0 },
      initial: 'asking',
      states: {
        asking: { tags: 'input-required', on: { 'message.received': 'a' } },
        a: {
          always: {
            guard: 'goesOn',
            target: 'a',
            reenter: true,
            actions: assign({ n: ({ context }) => context.n + 1 })
          }
        }
      }
    })
    const {
      verdicts: [counted]
    } = await proveAgent(defineAgent({ card, work: counting }))
    t.not(counted?.outcome, 'proved', 'each of its guards could fail')
    const raising = createMachine({
      initial: 'a',
      states: { a: { entry: raise({ type: 'on' }), on: { on: { target: 'a', reenter: true } } } }
    })
    t.match((await proveChart(raising, OWN_PROPERTIES)).verdicts, [{ outcome: 'confirmed' }, {}])
    const { crashes } = await planFor(
      defineAgent({ card, work: setupWork({}).createMachine({ initial: 'a', states: round }) })
    )
    t.match(crashes, [{ way: 'opened by "start"', error: /more than 10000 microsteps/ }])
  }
)

await t.test('a chart that grows for ever meets a bound of configurations, time or memory, which is said', async t => {
  const work = setupWork({
    types: { context: typed<{ n: number }>() },
    actors: { worker: fromPromise(async () => {}) }
  }).createMachine({
    context: { n: 0 },
    initial: 'asking',
    states: {
      asking: {
        tags: 'input-required',
        on: {
          'message.received': {
            actions: assign({
              n: ({ context, spawn }) => {
                spawn('worker', { id: `worker ${context.n}` })
                return context.n + 1
              }
            })
          }
        }
      }
    }
  })
  const agent = defineAgent({ card, work })
  const bounds = [
    [{ limit: 3 }, /^there are more than 3 configurations$/],
    [{ timeLimitMs: 1e-3 }, /^the time limit of 0.000001 s has passed after \d+ configurations$/]
  ] as const
  for (const [bound, met] of bounds) {
    t.match(await proveAgent(agent, bound), {
      isWhole: false,
      met,
      verdicts: [
        { outcome: 'unknown', why: met },
        { outcome: 'unknown', why: met }
      ]
    })
    t.match((await proveChart(work, OWN_PROPERTIES, {}, bound)).met, met)
    const refused = {
      name: 'RangeError',
      message: new RegExp(
        `^not every configuration of the chart was found: ${met.source.slice(1, -1)}\\. Raise that bound, or give cases\\.memory`
      )
    }
    await t.rejects(planFor(agent, bound), refused)
    t.ok((await planFor(agent, bound).catch((error: unknown) => error)) instanceof BoundError)
  }
  let used = 5
  const bounded = new ExplorationBounds({ limit: 9, memoryLimitBytes: 2 ** 21 }, { ms: () => 0, bytes: () => used })
  used += 2 ** 21
  t.equal(bounded.met(9), undefined)
  used += 1
  t.equal(bounded.met(9), 'more than the memory limit of 2 MB is needed after 9 configurations')
  for (const wrong of ['timeLimitMs', 'memoryLimitBytes'])
    await t.rejects(planFor(agent, { [wrong]: 0 }), { name: 'TypeError', message: new RegExp(`^${wrong} has to be`) })
})
