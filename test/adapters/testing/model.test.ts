import t, { type Test } from 'tap'
import {
  assign,
  createMachine,
  enqueueActions,
  fromPromise,
  raise,
  sendTo,
  spawnChild,
  stopChild,
  type AnyActorRef,
  type DoneActorEvent
} from 'xstate'
import { planFor } from '../../../adapters/testing/plan/plan.ts'
import { proveAgent, proveChart, testAgent, type Cases, type Proof } from '../../../adapters/testing/index.ts'
import { agentTests } from '../../../adapters/testing/agent-tests.ts'
import { modelOf } from '../../../adapters/testing/plan/model.ts'
import type { ChartMove } from '../../../adapters/testing/plan/moves.ts'
import { takeMoves } from '../../../adapters/testing/run/chart-run.ts'
import type { Property } from '../../../machines/properties/properties.ts'
import {
  defineAgent,
  progress,
  propertiesOf,
  setupWork,
  textOf,
  typed,
  type AgentDefinition
} from '../../../runtime/index.ts'
import { generatedAgents } from '../../fixtures/charts/generated-charts.ts'
import { SEED, sampleOf } from '../../fixtures/sample.ts'
import { NO_SQLITE } from '../../fixtures/stores/sqlite.ts'
import { someWalks } from '../../fixtures/charts/some-walks.ts'

/** An agent with this chart as its work. */
function agentOf(work: AgentDefinition['work'], properties: Readonly<Record<string, Property>> = {}) {
  return defineAgent({ card: { name: 'Modelled' }, ...(work && { work }), properties })
}

/** The outcomes of a proof by property, each with its walk. */
function found({ verdicts }: Proof): Record<string, unknown> {
  return Object.fromEntries(
    verdicts.map(verdict => [
      verdict.property,
      'walk' in verdict
        ? [verdict.outcome, ...[...verdict.walk.steps, ...verdict.walk.again].map(({ says }) => says)]
        : verdict.outcome
    ])
  )
}

/** The chart as an actor, and with the runtime: each has to go the way of the model. */
async function passes(t: Test, work: AgentDefinition['work'], cases: Cases = {}): Promise<void> {
  await testAgent(someWalks(t), agentOf(work), {
    cases,
    drivers: [
      'the chart',
      'the chart, restored from JSON before every step',
      'in process',
      'in process, killed before every step'
    ]
  })
}

type Named = { readonly type: 'warn' } | { readonly type: 'expire' } | { readonly type: 'stop' }
const timed = setupWork({ types: { events: typed<Named>() } })

await t.test('timers without an id are several timers', async t => {
  const work = timed.createMachine({
    id: 'timed',
    initial: 'open',
    states: {
      open: {
        entry: [raise({ type: 'warn' }, { delay: 1000 }), raise({ type: 'expire' }, { delay: 3000 })],
        on: { warn: 'warned', expire: 'expired', 'message.received': 'taken' }
      },
      warned: { on: { expire: 'expired' } },
      expired: { type: 'final' },
      taken: { type: 'final' }
    }
  })
  const { never, precedes } = propertiesOf(work)
  const proof = await proveAgent(
    agentOf(work, {
      'it never warns': never('warned'),
      'it never expires': never('expired'),
      'it warns first': precedes('warned', 'expired')
    }),
    { only: 'it ' }
  )
  t.strictSame(found(proof), {
    'it never warns': ['confirmed', '1000 ms pass'],
    'it never expires': ['confirmed', '1000 ms pass', '3000 ms pass'],
    'it warns first': 'proved'
  })
  await passes(t, work)
})

await t.test('two timers with the same event are two', async t => {
  const work = timed.createMachine({
    id: 'twice',
    initial: 'none',
    states: {
      none: {
        entry: [raise({ type: 'warn' }, { delay: 10 }), raise({ type: 'warn' }, { delay: 20 })],
        on: { warn: 'one' }
      },
      one: { on: { warn: 'two' } },
      two: { type: 'final' }
    }
  })
  t.strictSame(
    found(
      await proveAgent(agentOf(work, { 'it never warns twice': propertiesOf(work).never('two') }), { only: 'twice' })
    ),
    { 'it never warns twice': ['confirmed', '10 ms pass', '20 ms pass'] }
  )
  await passes(t, work)
})

await t.test('a second timer with an id takes it from the first, which fires in any case', async t => {
  const two = (cancels: readonly string[]) =>
    timed.createMachine({
      id: 'shared',
      initial: 'open',
      states: {
        open: {
          entry: [
            raise({ type: 'warn' }, { delay: 10, id: 'clock' }),
            raise({ type: 'expire' }, { delay: 30, id: 'clock' }),
            ...cancels.map(id => timed.cancel(id))
          ],
          on: { warn: { target: 'warned', actions: timed.cancel('clock') }, expire: 'expired' }
        },
        warned: { on: { expire: 'expired' } },
        expired: { type: 'final' }
      }
    })
  const outcomes = async (work: ReturnType<typeof two>) =>
    found(
      await proveAgent(
        agentOf(work, {
          'it never warns': propertiesOf(work).never('warned'),
          'it never expires': propertiesOf(work).never('expired')
        }),
        { only: 'it ' }
      )
    )
  t.strictSame(
    await outcomes(two([])),
    { 'it never warns': ['confirmed', '10 ms pass'], 'it never expires': ['confirmed', '10 ms pass', '30 ms pass'] },
    "after the first has fired the id is nobody's"
  )
  t.strictSame(await outcomes(two(['clock'])), {
    'it never warns': ['confirmed', '10 ms pass'],
    'it never expires': 'proved'
  })
  t.strictSame(
    await outcomes(two(['clock', 'clock', 'another'])),
    { 'it never warns': ['confirmed', '10 ms pass'], 'it never expires': 'proved' },
    'a second cancel finds none'
  )
  await passes(t, two(['clock']))
})

/** The chart of some timers, with a kill before each step. */
async function passesRestored(t: Test, work: AgentDefinition['work'], cases: Cases): Promise<void> {
  await testAgent(t, agentOf(work), {
    cases,
    drivers: [
      'the chart, restored from JSON before every step',
      'in process, killed before every step',
      ...(NO_SQLITE === false ? (['in process on SQLite, killed before every step'] as const) : [])
    ]
  })
}

await t.test('the id of two timers finds the same one after a restart', async t => {
  const ends = { on: { warn: 'warned', expire: 'expired' } } as const
  const work = timed.createMachine({
    id: 'restarted',
    initial: 'open',
    states: {
      open: {
        tags: 'input-required',
        meta: { prompt: 'Stop?' },
        entry: [
          raise({ type: 'warn' }, { delay: 30, id: 'clock' }),
          raise({ type: 'expire' }, { delay: 10, id: 'clock' })
        ],
        on: {
          'message.received': { target: 'stopped', actions: timed.cancel('clock') },
          warn: 'warned',
          expire: 'late'
        }
      },
      stopped: ends,
      warned: { type: 'final' },
      expired: { type: 'final', tags: 'failed' },
      late: {
        tags: 'input-required',
        meta: { prompt: 'And now?' },
        on: { 'message.received': { target: 'stopped', actions: timed.cancel('clock') }, warn: 'warned' }
      }
    }
  })
  const { never, leadsTo } = propertiesOf(work)
  const proof = await proveAgent(
    agentOf(work, { 'the second is canceled': never('expired'), 'the first goes on': leadsTo('stopped', 'warned') }),
    { only: 'the ' }
  )
  t.match(found(proof), { 'the second is canceled': 'proved', 'the first goes on': 'proved' })
  await passesRestored(t, work, {})
})

await t.test('of regions that go on at once the same one goes first after a restart', async t => {
  const work = setupWork({
    types: { context: typed<{ n: number }>() },
    guards: { isOn: ({ context }) => context.n === 1 }
  }).createMachine({
    id: 'regions',
    context: { n: 0 },
    initial: 'both',
    states: {
      both: {
        tags: 'input-required',
        meta: { prompt: 'Well?' },
        type: 'parallel',
        states: {
          left: {
            initial: 'one',
            states: {
              one: { on: { 'message.received': 'two' } },
              two: {
                on: { 'message.received': { actions: assign({ n: 1 }) } },
                always: { guard: 'isOn', target: '#regions.leftFirst' }
              }
            }
          },
          right: { initial: 'one', states: { one: { always: { guard: 'isOn', target: '#regions.rightFirst' } } } }
        }
      },
      leftFirst: { type: 'final', tags: 'failed' },
      rightFirst: { type: 'final' }
    }
  })
  t.match(
    found(await proveAgent(agentOf(work, { 'the left never goes first': propertiesOf(work).never('leftFirst') }))),
    { 'the left never goes first': 'proved' }
  )
  await passesRestored(t, work, {})
})

await t.test('configurations whose timers have other events are two', async t => {
  const work = timed.createMachine({
    id: 'either',
    initial: 'open',
    states: {
      open: {
        tags: 'input-required',
        on: {
          'message.received': [
            {
              guard: ({ event }) => event.message.messageId === 'one',
              target: 'waiting',
              actions: raise({ type: 'warn' }, { delay: 10, id: 'clock' })
            },
            { target: 'waiting', actions: raise({ type: 'expire' }, { delay: 10, id: 'clock' }) }
          ]
        }
      },
      waiting: { on: { warn: 'warned', expire: 'expired' } },
      warned: { type: 'final' },
      expired: { type: 'final' }
    }
  })
  const { never } = propertiesOf(work)
  const cases = { messages: { one: 'one', two: 'two' } }
  const proof = await proveAgent(
    agentOf(work, { 'it never warns': never('warned'), 'it never expires': never('expired') }),
    { cases, only: 'it ' }
  )
  t.strictSame(found(proof), {
    'it never warns': ['confirmed', 'the client says "one"', '10 ms pass'],
    'it never expires': ['confirmed', 'the client says "two"', '10 ms pass']
  })
  const { states } = await testAgent(someWalks(t), agentOf(work), { cases, drivers: ['the chart'] })
  t.strictSame(states.missing, [])
})

await t.test('timers that are due together fire together in the tests', async t => {
  const region = (word: string) =>
    ({
      initial: 'off',
      states: { off: { after: { 10: { target: 'on', actions: timed.emit(progress(word)) } } }, on: { type: 'final' } }
    }) as const
  const work = timed.createMachine({
    id: 'both',
    type: 'parallel',
    states: {
      left: region('left'),
      right: region('right'),
      late: { initial: 'off', states: { off: { after: { 20: 'on' } }, on: { type: 'final' } } }
    }
  })
  await passes(t, work)
})

await t.test('a delay below zero is none', async t => {
  const work = timed.createMachine({
    id: 'past',
    initial: 'open',
    states: {
      open: { entry: raise({ type: 'warn' }, { delay: -5 }), on: { warn: 'warned' } },
      warned: { type: 'final' }
    }
  })
  t.match(found(await proveAgent(agentOf(work, { 'it never warns': propertiesOf(work).never('warned') }))), {
    'it never warns': ['confirmed']
  })
  await passes(t, work)
})

/** What names the chart itself as the receiver. */
const self = ({ self }: { self: AnyActorRef }) => self
const exploding = setupWork({ types: { events: typed<{ type: 'explode' } | { type: 'again' }>() } })

await t.test('what a chart sends itself is delivered', async t => {
  const ways = {
    'with a delay': [sendTo(self, { type: 'explode' }, { delay: 1000 }), '1000 ms pass'],
    'with a delay, by its name in SCXML': [sendTo('#_internal', { type: 'explode' }, { delay: 1000 }), '1000 ms pass'],
    'at once': [sendTo(self, { type: 'explode' }), 'it receives "explode" from itself'],
    'among other actions': [
      enqueueActions(({ enqueue }) => enqueue.sendTo(self, { type: 'explode' })),
      'it receives "explode" from itself'
    ]
  } as const
  for (const [way, [entry, step]] of Object.entries(ways)) {
    await t.test(way, async t => {
      const work = exploding.createMachine({
        id: 'bomb',
        initial: 'open',
        states: {
          open: { entry: entry as never, on: { explode: 'exploded', 'message.received': 'taken' } },
          exploded: { type: 'final' },
          taken: { type: 'final' }
        }
      })
      const { never, leadsTo, event } = propertiesOf(work)
      const proof = await proveAgent(
        agentOf(work, {
          'it never explodes': never('exploded'),
          'it is never open': never('open'),
          'it hears itself': leadsTo('open', event('explode'))
        }),
        { only: 'it ' }
      )
      t.strictSame(found(proof), {
        'it never explodes': ['confirmed', step],
        'it is never open': ['confirmed'],
        'it hears itself': 'proved'
      })
      t.match(
        (await proveChart(work, { 'it never explodes': never('exploded') }, { events: [] })).verdicts,
        [{ outcome: 'confirmed' }],
        'also of the chart alone'
      )
      await passes(t, work)
    })
  }
})

await t.test('a chart that finds itself in its context sends to itself', async t => {
  const work = setupWork({
    types: { context: typed<{ me: AnyActorRef | undefined }>(), events: typed<{ type: 'explode' }>() }
  }).createMachine({
    id: 'mirror',
    context: { me: undefined },
    initial: 'open',
    states: {
      open: {
        tags: 'input-required',
        entry: assign({ me: self }),
        on: {
          'message.received': {
            target: 'armed',
            actions: sendTo(({ context }) => context.me as AnyActorRef, { type: 'explode' }, { delay: 5 })
          }
        }
      },
      armed: { on: { explode: 'exploded' } },
      exploded: { type: 'final' }
    }
  })
  t.match(
    found(
      await proveAgent(agentOf(work, { 'it never explodes': propertiesOf(work).never('exploded') }), {
        cases: { memory: () => 0 }
      })
    ),
    { 'it never explodes': ['confirmed', 'the client says "an answer"', '5 ms pass'] }
  )
})

await t.test('a question that is passed at once is told', async t => {
  const asking = { tags: 'input-required', meta: { prompt: 'Well?' }, entry: sendTo(self, { type: 'again' }) } as const
  const work = exploding.createMachine({
    id: 'hasty',
    initial: 'waiting',
    states: {
      waiting: { tags: 'input-required', meta: { prompt: 'Go?' }, on: { 'message.received': 'asking' } },
      asking: { ...asking, on: { again: 'working' } },
      working: { after: { 5: 'done' } },
      done: { type: 'final' }
    }
  })
  const { leadsTo, told } = propertiesOf(work)
  t.match(found(await proveAgent(agentOf(work, { 'it works again': leadsTo('asking', told('WORKING')) }))), {
    'it works again': 'proved'
  })
  await passes(t, work)
})

await t.test('a chart that sends itself events for ever has no tests, and no end', async t => {
  const work = exploding.createMachine({
    id: 'echo',
    initial: 'open',
    states: { open: { entry: sendTo(self, { type: 'again' }), on: { again: { target: 'open', reenter: true } } } }
  })
  await t.rejects(planFor(agentOf(work)), {
    name: 'RangeError',
    message: /^the chart goes on for ever without time passing\. It sends itself "again"/
  })
  t.match(found(await proveAgent(agentOf(work))), {
    'every task can end': ['confirmed', 'it receives "again" from itself']
  })
  const later = exploding.createMachine({
    id: 'later',
    initial: 'asking',
    states: {
      asking: { tags: 'input-required', on: { 'message.received': 'open' } },
      open: { entry: sendTo(self, { type: 'again' }), on: { again: { target: 'open', reenter: true } } }
    }
  })
  await t.rejects(planFor(agentOf(later)), { name: 'RangeError', message: /^the chart goes on for ever/ })
})

const helped = setupWork({
  types: { events: typed<{ type: 'pull' }>() },
  actors: { hand: fromPromise(async () => {}) }
})

await t.test('an action that changes the context in place is named, by tests and by proofs', async t => {
  type Listed = { list: number[] }
  const listing = setupWork({
    types: { context: typed<Listed>() },
    actions: { push: assign(({ context }) => ({ list: (context.list.push(1), context.list) })) },
    guards: { pushes: ({ context }) => context.list.push(1) > 0 }
  })
  const asking = { tags: 'input-required', meta: { prompt: '?' } } as const
  const charts = [
    [
      listing.createMachine({
        id: 'c',
        context: () => ({ list: [] }),
        initial: 'a',
        states: { a: { ...asking, on: { 'message.received': { target: 'b', actions: 'push' } } }, b: { type: 'final' } }
      }),
      '"a" on message.received, by push'
    ],
    [
      listing.createMachine({
        id: 'c',
        context: { list: [] },
        initial: 'a',
        states: {
          a: { ...asking, on: { 'message.received': { target: 'b' } } },
          b: { type: 'final', entry: [{ type: 'push' }, () => {}] }
        }
      }),
      '"a" on message.received, by push'
    ],
    [
      listing.createMachine({
        id: 'c',
        context: { list: [] },
        initial: 'a',
        entry: 'push',
        states: { a: { ...asking, on: { 'message.received': 'b' } }, b: { type: 'final' } }
      }),
      '"a" on xstate.init, by push'
    ],
    [
      listing.createMachine({
        id: 'c',
        context: { list: [] },
        initial: 'a',
        states: { a: { after: { 1000: { guard: 'pushes', target: 'b' } } }, b: { type: 'final' } }
      }),
      '"a" on xstate.after.1000.c.a, by a guard'
    ]
  ] as const
  for (const [work, says] of charts) {
    const message = `The chart c changes its context in place, in the state ${says}. Give new values instead: assign({ list: ({ context }) => [...context.list, item] }).`
    const { never } = propertiesOf(work)
    await t.rejects(proveAgent(agentOf(work, { ends: never('b') })), { name: 'TypeError', message }, `proof: ${says}`)
    await t.rejects(agentTests(agentOf(work), {}), { name: 'TypeError', message }, `tests: ${says}`)
    const withChart = work.provide({ actors: { below: createMachine({}) } })
    await t.rejects(
      agentTests(agentOf(withChart as typeof work), {}),
      { name: 'TypeError', message },
      `with a chart among its actors: ${says}`
    )
  }
  const large = setupWork({ types: { context: typed<{ n: unknown }>() } }).createMachine({
    context: () => ({ n: 1n }),
    initial: 'a',
    states: { a: { after: { 1000: 'b' } }, b: { type: 'final' } }
  })
  const { begin, take } = modelOf(large)
  const begun = begin({})
  for (const timer of begun.timers) t.equal(take(begun, { type: 'timer', timer }).status, 'done')
})

await t.test('an event for an actor is sent when its delay is over', async t => {
  const work = helped.createMachine({
    id: 'bell',
    initial: 'waiting',
    states: {
      waiting: {
        tags: 'input-required',
        meta: { prompt: 'Stop?' },
        invoke: { src: 'hand', id: 'hand' },
        entry: [sendTo('hand', { type: 'pull' }, { delay: 10, id: 'pull' }), sendTo('hand', { type: 'push' })],
        on: { 'message.received': { actions: helped.cancel('pull') } }
      }
    }
  })
  const { atMostOnce, event, never, precedes, sent } = propertiesOf(work)
  const proof = await proveAgent(
    agentOf(work, {
      'it never pulls': never(sent('pull')),
      'it pulls once': atMostOnce(sent('pull')),
      'it pushes first': precedes(sent('push'), sent('pull')),
      'it never pulls after a stop': never(sent('pull'), { after: event('message.received') })
    }),
    { cases: { results: { hand: {} } }, only: 'it ' }
  )
  t.strictSame(found(proof), {
    'it never pulls': ['confirmed', '10 ms pass'],
    'it pulls once': 'proved',
    'it pushes first': 'proved',
    'it never pulls after a stop': 'proved'
  })
  await passes(t, work, { results: { hand: {} } })
})

await t.test('a chart that begins has no snapshot of itself', async t => {
  const work = helped.createMachine({
    id: 'newborn',
    initial: 'waiting',
    states: {
      waiting: {
        entry: [
          spawnChild('hand', { id: 'hand' }),
          enqueueActions(({ enqueue, self }) => {
            if (self.getSnapshot() !== undefined) enqueue.raise({ type: 'pull' })
          })
        ],
        on: { pull: 'pulled' },
        after: { 10: 'late' }
      },
      pulled: { type: 'final' },
      late: { type: 'final' }
    }
  })
  t.match(
    found(
      await proveAgent(agentOf(work, { 'it is never pulled': propertiesOf(work).never('pulled') }), {
        cases: { results: { hand: {} } }
      })
    ),
    { 'it is never pulled': 'proved' }
  )
  await passes(t, work, { results: { hand: {} } })
})

await t.test('an actor is found by its systemId in later steps, and by none of an earlier actor', async t => {
  const work = helped.createMachine({
    id: 'known',
    initial: 'waiting',
    states: {
      waiting: {
        tags: 'input-required',
        meta: { prompt: 'Pull?' },
        invoke: { src: 'hand', id: 'hand', systemId: 'the hand' },
        after: { 10: { target: 'waiting', reenter: true } },
        on: {
          'message.received': {
            actions: [
              stopChild('nobody'),
              sendTo(({ system }) => system.get('the hand') as AnyActorRef, { type: 'pull' })
            ]
          },
          pull: 'pulled'
        }
      },
      pulled: { type: 'final' }
    }
  })
  const { leadsTo, event, never, sent } = propertiesOf(work)
  t.match(
    found(
      await proveAgent(
        agentOf(work, {
          'it never pulls itself': never('pulled'),
          'it pulls the hand': leadsTo(event('message.received'), sent('pull'))
        }),
        { cases: { results: { hand: {} } } }
      )
    ),
    { 'it never pulls itself': 'proved', 'it pulls the hand': 'proved', 'the chart never throws': 'proved' }
  )
  await passes(t, work, { results: { hand: {} } })
})

await t.test('an actor ends once', async t => {
  const counting = setupWork({
    types: { context: typed<{ n: number }>() },
    actors: { a: fromPromise(async () => {}), b: fromPromise(async () => {}) }
  })
  const work = counting.createMachine({
    id: 'pair',
    context: { n: 0 },
    initial: 'working',
    states: {
      working: {
        invoke: [
          { src: 'a', id: 'a', onDone: { actions: assign({ n: ({ context }) => context.n + 1 }) }, onError: 'failed' },
          { src: 'b', id: 'b', onDone: { actions: assign({ n: ({ context }) => context.n + 1 }) }, onError: 'failed' }
        ],
        always: { guard: ({ context }) => context.n === 2, target: 'done' }
      },
      done: { type: 'final' },
      failed: { type: 'final', tags: 'failed' }
    }
  })
  const { done, precedes, atMostOnce, never } = propertiesOf(work)
  const properties = {
    'b ends before all is done': precedes(done('b'), 'done'),
    'a ends once': atMostOnce(done('a')),
    'all is never done': never('done'),
    'nothing fails after a has ended': never('failed', { after: done('a') })
  }
  const wanted = {
    'b ends before all is done': 'proved',
    'a ends once': 'proved',
    'all is never done': ['confirmed', 'a ends with "done"', 'b ends with "done"'],
    'nothing fails after a has ended': ['confirmed', 'a ends with "done"', 'b ends with the error "fails"']
  }
  const cases = { results: { a: { done: 1, fails: new Error('a') }, b: { done: 2, fails: new Error('b') } } }
  t.match(found(await proveAgent(agentOf(work, properties), { cases })), wanted)
  const { verdicts } = await proveChart(
    work,
    { 'b ends before all is done': precedes(done('b'), 'done') },
    { events: ['a', 'b'].map(id => ({ type: `xstate.done.actor.${id}` })) }
  )
  t.match(verdicts, [{ outcome: 'proved' }])
  await passes(t, work, cases)
})

await t.test('two actors of one logic are two', async t => {
  const region = (id: string) =>
    ({
      initial: 'on',
      states: { on: { invoke: { src: 'hand', id, onDone: 'off', onError: 'off' } }, off: { type: 'final' } }
    }) as const
  const work = helped.createMachine({
    id: 'hands',
    type: 'parallel',
    states: { left: region('left'), right: region('right') }
  })
  const { configurations } = await planFor(agentOf(work))
  t.equal(configurations, 4)
  await passes(t, work)
})

await t.test('a walk is confirmed by actors that really end', t => {
  const work = helped.createMachine({
    id: 'once',
    initial: 'on',
    states: { on: { invoke: { src: 'hand', id: 'hand', onDone: {} }, on: { pull: 'off' } }, off: {} }
  })
  const { begin, take } = modelOf(work)
  const end: ChartMove = { type: 'end', name: 'done', actor: 'hand', src: 'hand', result: undefined }
  const start = begin(undefined)
  const [once, never] = [take(start, end), take({ ...start, ended: [] }, end)]
  t.doesNotThrow(() => takeMoves(work, undefined, start, [{ move: end, turn: once }]))
  t.throws(
    () =>
      takeMoves(work, undefined, start, [
        { move: end, turn: once },
        { move: end, turn: never }
      ]),
    { name: 'PathError', step: 'hand ends with "done"' }
  )
  const stranger: ChartMove = { ...end, actor: 'foot' }
  t.throws(() => takeMoves(work, undefined, start, [{ move: stranger, turn: take(start, stranger) }]), {
    message: 'the chart has no actor foot'
  })
  const timer: ChartMove = { type: 'timer', timer: { id: 'none', event: { type: 'pull' }, dueMs: 5, isSent: false } }
  t.throws(() => takeMoves(work, undefined, start, [{ move: timer, turn: take(start, timer) }]), {
    message: 'the chart has not scheduled pull'
  })
  t.end()
})

await t.test('configurations with other actors or another history are two', async t => {
  const hiring = setupWork({
    types: { events: typed<DoneActorEvent<unknown, 'worker'>>() },
    actors: { hand: fromPromise(async () => {}), foot: fromPromise(async () => {}) }
  })
  const work = hiring.createMachine({
    id: 'hiring',
    initial: 'open',
    states: {
      open: {
        tags: 'input-required',
        meta: { prompt: 'Hire?' },
        on: {
          'message.received': [
            { guard: ({ event }) => textOf(event.message) === 'none', actions: hiring.emit(progress('nobody')) },
            { actions: spawnChild('hand', { id: 'worker' }) }
          ],
          'xstate.done.actor.worker': 'finished'
        }
      },
      finished: { type: 'final' }
    }
  })
  const cases = { messages: { none: 'none', one: 'one' }, results: { hand: { done: 1 } } }
  t.match(
    found(await proveAgent(agentOf(work, { 'nothing is finished': propertiesOf(work).never('finished') }), { cases })),
    { 'nothing is finished': ['confirmed', 'the client says "one"', 'hand ends with "done"'] }
  )
  const { states } = await testAgent(someWalks(t), agentOf(work), { cases, drivers: ['the chart', 'in process'] })
  t.strictSame(states.missing, [])

  const either = hiring.createMachine({
    id: 'either',
    initial: 'open',
    states: {
      open: {
        tags: 'input-required',
        meta: { prompt: 'Who?' },
        on: {
          'message.received': [
            {
              guard: ({ event }) => event.message.messageId === 'none',
              target: 'hired',
              actions: spawnChild('hand', { id: 'worker' })
            },
            { target: 'hired', actions: spawnChild('foot', { id: 'worker' }) }
          ]
        }
      },
      hired: {
        on: {
          'xstate.done.actor.worker': [
            { guard: ({ event }) => event.output === 'a step', target: 'gone' },
            { target: 'finished' }
          ]
        }
      },
      gone: { type: 'final' },
      finished: { type: 'final' }
    }
  })
  const both = { messages: cases.messages, results: { hand: { done: 1 }, foot: { stepped: 'a step' } } }
  t.match(
    found(
      await proveAgent(agentOf(either, { 'nothing is gone': propertiesOf(either).never('gone') }), { cases: both })
    ),
    { 'nothing is gone': ['confirmed', 'the client says "one"', 'foot ends with "stepped"'] }
  )
  t.strictSame(
    (await testAgent(someWalks(t), agentOf(either), { cases: both, drivers: ['the chart'] })).states.missing,
    []
  )

  const back = hiring.createMachine({
    id: 'back',
    initial: 'room',
    states: {
      room: {
        initial: 'dark',
        states: { dark: { after: { 10: 'light' } }, light: {}, last: { type: 'history' } },
        tags: 'input-required',
        meta: { prompt: 'Out?' },
        on: { 'message.received': 'out' }
      },
      out: { tags: 'input-required', meta: { prompt: 'In?' }, on: { 'message.received': 'again' } },
      again: { after: { 5: 'room.last' } }
    }
  })
  const { paths } = await planFor(agentOf(back))
  const ends = new Set(
    paths
      .filter(({ name }) => name.includes('5 ms pass'))
      .map(({ steps }) => JSON.stringify(steps.findLast(({ turn }) => turn)?.turn?.chart.value))
  )
  t.ok(ends.has('{"room":"dark"}') && ends.has('{"room":"light"}'), 'each history is followed')

  const nameless = setupWork({
    types: { context: typed<{ worker: unknown }>() },
    actors: { hand: fromPromise(async () => {}) }
  }).createMachine({
    id: 'nameless',
    context: { worker: undefined },
    initial: 'open',
    invoke: { src: 'hand', id: 'boss' },
    states: {
      open: {
        tags: 'input-required',
        meta: { prompt: 'Hire?' },
        on: { 'message.received': { target: 'hired', actions: assign({ worker: ({ spawn }) => spawn('hand') }) } }
      },
      hired: {
        tags: 'input-required',
        meta: { prompt: 'Fire?' },
        on: {
          'message.received': {
            target: 'open',
            actions: [stopChild(({ context }) => context.worker as AnyActorRef), assign({ worker: undefined })]
          }
        }
      }
    }
  })
  t.match(
    await proveAgent(agentOf(nameless), { cases: { results: { hand: {} } } }),
    { isWhole: true },
    'the number that XState gives to an actor tells nothing apart'
  )
})

await t.test('on generated charts the model goes the way of an actor of XState', async t => {
  // Some of these charts have states that nobody would write.
  t.capture(console, 'warn')
  const agents = sampleOf(t, generatedAgents(300, SEED), 30, 100)
  let walks = 0
  for (const { agent, cases, text } of agents) {
    const { verdicts } = await proveAgent(agent, { cases, limit: 500 })
    t.strictSame(
      verdicts.filter(verdict => verdict.outcome === 'possible' && verdict.guards.length === 0),
      [],
      'each walk without a guess is taken',
      { chart: text }
    )
    const planned = await agentTests(agent, {
      cases,
      limit: 200,
      drivers: ['the chart', 'the chart, restored from JSON before every step']
    }).catch((error: unknown) => {
      // It goes on for ever by itself, or counts its pending timers.
      if (error instanceof RangeError || /for ever without time passing/.test(String(error))) return { tests: [] }
      throw error
    })
    for (const { name, run } of planned.tests) {
      walks += 1
      await run().catch((error: unknown) => t.fail(name, { error: String(error), chart: text }))
    }
  }
  t.ok(walks > 100)
  t.comment(`${agents.length} charts, ${walks} walks`)
})
