import t, { type Test } from 'tap'
import {
  assign,
  cancel,
  emit,
  fromCallback,
  fromEventObservable,
  fromObservable,
  fromPromise,
  fromTransition,
  log,
  raise,
  sendParent,
  sendTo,
  setup,
  spawnChild,
  type ActorRefFrom,
  type AnyActorRef,
  type Subscribable
} from 'xstate'
import { agentTests, proveAgent, testAgent, type Cases, type Proof } from '../../../adapters/testing/index.ts'
import { planFor } from '../../../adapters/testing/plan/plan.ts'
import { modelWith } from '../../../adapters/testing/plan/acted-model.ts'
import type { Property } from '../../../machines/properties/properties.ts'
import {
  defineAgent,
  progress,
  propertiesOf,
  setupWork,
  textOf,
  typed,
  type AgentDefinition,
  type MessageReceived
} from '../../../runtime/index.ts'
import { someWalks } from '../../fixtures/charts/some-walks.ts'

/** An agent with this chart as its work. */
function agentOf(work: AgentDefinition['work'], properties: Readonly<Record<string, Property>> = {}) {
  return defineAgent({ card: { name: 'Staffed' }, ...(work && { work }), properties })
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

const DRIVERS = [
  'the chart',
  'the chart, restored from JSON before every step',
  'in process',
  'in process, killed before every step'
] as const

/** The chart as an actor, and with the runtime: each has to go the way of the model. */
async function passes(t: Test, work: AgentDefinition['work'], cases: Cases = {}): Promise<void> {
  const { states } = await testAgent(someWalks(t), agentOf(work), { cases, drivers: DRIVERS })
  t.strictSame(states.missing, [])
}

await t.test(
  'a chart among the actors is walked as that chart: its timers, its moves, its events and its end',
  async t => {
    const inner = setup({
      types: { events: {} as { type: 'go' } },
      actors: { job: fromPromise<number>(async () => 1) }
    }).createMachine({
      id: 'inner',
      initial: 'idle',
      states: {
        idle: { on: { go: 'counting' } },
        counting: { after: { 10: { target: 'working', actions: sendParent({ type: 'halfway' }) } } },
        working: { invoke: { src: 'job', id: 'job', onDone: 'done', onError: 'broken' } },
        done: { type: 'final' },
        broken: { entry: sendParent({ type: 'broke' }) }
      },
      output: { said: 'inner is done' }
    })
    const work = setupWork({
      types: { events: typed<{ type: 'halfway' } | { type: 'broke' }>() },
      actors: { inner }
    }).createMachine({
      id: 'outer',
      initial: 'asking',
      invoke: { src: 'inner', id: 'inner', onDone: '.finished' },
      states: {
        asking: {
          tags: 'input-required',
          meta: { prompt: 'Go?' },
          on: { 'message.received': { target: 'running', actions: sendTo('inner', { type: 'go' }) } }
        },
        running: { on: { halfway: { actions: emit(progress('Halfway.')) }, broke: 'failed' } },
        finished: { type: 'final' },
        failed: { type: 'final', tags: 'failed' }
      }
    })
    const { never, precedes, event, done, atMostOnce, leadsTo } = propertiesOf(work)
    const properties = {
      'it never finishes': never('finished'),
      'it never fails': never('failed'),
      'it hears half before its end': precedes(event('halfway'), 'finished'),
      'it goes on at once': precedes(done('inner'), 'finished'),
      'it is halfway once': atMostOnce(event('halfway')),
      'it ends once told': leadsTo(event('message.received'), event('halfway'))
    }
    const cases = { results: { job: { one: 1, no: new Error('no') } } }
    const says = ['the client says "an answer"', '10 ms pass', 'it receives "halfway" from inner']
    t.strictSame(found(await proveAgent(agentOf(work, properties), { cases, only: 'it ' })), {
      'it never finishes': [
        'confirmed',
        ...says,
        'job ends with "one"',
        'it receives "xstate.done.actor.inner" from inner'
      ],
      'it never fails': ['confirmed', ...says, 'job ends with the error "no"', 'it receives "broke" from inner'],
      'it hears half before its end': 'proved',
      'it goes on at once': 'proved',
      'it is halfway once': 'proved',
      'it ends once told': 'proved'
    })
    await passes(t, work, cases)
  }
)

const settled = setup({
  types: { events: {} as { type: 'more' } | { type: 'enough' }, context: {} as { n: number } }
}).createMachine({
  id: 'gauge',
  context: { n: 0 },
  initial: 'low',
  states: {
    low: { on: { more: { target: 'high', actions: assign({ n: ({ context }) => Math.min(context.n + 1, 2) }) } } },
    high: { after: { 20: 'low' }, on: { enough: 'over' } },
    over: { type: 'final' }
  }
})

await t.test('a chart sees the snapshots of the charts among its actors', async t => {
  const work = setupWork({
    types: { context: typed<{ shown: number; gauge?: ActorRefFrom<typeof settled> }>() },
    actors: { gauge: settled }
  }).createMachine({
    id: 'watching',
    context: { shown: 0 },
    initial: 'asking',
    invoke: {
      src: 'gauge',
      id: 'gauge',
      systemId: 'the gauge',
      onSnapshot: { actions: assign({ shown: ({ event }) => event.snapshot.context.n }) },
      onDone: '.over'
    },
    states: {
      asking: {
        entry: assign({ gauge: ({ system }) => system.get('the gauge') }),
        tags: 'input-required',
        meta: {
          prompt: ({ context }: { context: { gauge?: ActorRefFrom<typeof settled> } }) =>
            `At ${JSON.stringify(context.gauge?.getSnapshot().value)}`
        },
        on: {
          'message.received': [
            {
              guard: ({ context }) => context.gauge?.getSnapshot().matches('high') === true,
              actions: sendTo('gauge', { type: 'enough' })
            },
            { target: 'asking', reenter: true, actions: sendTo('gauge', { type: 'more' }) }
          ]
        }
      },
      over: { type: 'final' }
    },
    output: ({ context, self }) => ({
      artifact: `${context.shown} ${self.getSnapshot().children['gauge']?.getSnapshot().status}`
    })
  })
  const { never, always } = propertiesOf(work)
  const properties = {
    'it is never over': never('over'),
    'it knows the gauge': always(({ context }) => context.shown === context.gauge?.getSnapshot().context.n)
  }
  const cases = { messages: { more: 'more' } }
  const told = 'it receives "xstate.snapshot.gauge" from gauge'
  t.strictSame(found(await proveAgent(agentOf(work, properties), { cases, only: 'it ' })), {
    'it is never over': [
      'confirmed',
      told,
      'the client says "more"',
      told,
      'the client says "more"',
      'it receives "xstate.done.actor.gauge" from gauge'
    ],
    'it knows the gauge': ['confirmed', told, 'the client says "more"']
  })
  await passes(t, work, cases)
})

await t.test('charts that send each other events for ever are not followed', async t => {
  const echo = setup({ types: { events: {} as { type: 'ping' } } }).createMachine({
    on: { ping: { actions: sendParent({ type: 'pong' }) } }
  })
  const work = setupWork({ types: { events: typed<{ type: 'pong' }>() }, actors: { echo } }).createMachine({
    id: 'loud',
    initial: 'asking',
    invoke: { src: 'echo', id: 'echo' },
    states: {
      asking: { tags: 'input-required', on: { 'message.received': 'calling' } },
      calling: { entry: sendTo('echo', { type: 'ping' }), on: { pong: { target: 'calling', reenter: true } } }
    }
  })
  const { never, tag } = propertiesOf(work)
  const { verdicts } = await proveAgent(agentOf(work, { 'it never fails': never(tag('failed')) }), {
    only: 'never fails'
  })
  t.match(verdicts, [
    {
      outcome: 'unknown',
      why: /^in loud\.asking, if the client says "an answer": the chart and its actors send each other "(ping|pong)" for ever/
    }
  ])
})

await t.test('guards of a chart among the actors hold both ways where no case gives the data', async t => {
  const inner = setup({
    actors: { job: fromPromise<number>(async () => 1) },
    guards: { isLarge: ({ event }) => (event as unknown as { output: number }).output > 3 }
  }).createMachine({
    id: 'inner',
    initial: 'on',
    states: {
      on: {
        invoke: {
          src: 'job',
          id: 'job',
          onDone: [{ guard: 'isLarge', target: 'large' }, { target: 'small' }],
          onError: 'small'
        }
      },
      large: { entry: sendParent({ type: 'large' }) },
      small: {}
    }
  })
  const work = setupWork({ types: { events: typed<{ type: 'large' }>() }, actors: { inner } }).createMachine({
    id: 'outer',
    initial: 'on',
    states: { on: { invoke: { src: 'inner', id: 'inner' }, on: { large: 'over' } }, over: { type: 'final' } }
  })
  const agent = agentOf(work, { 'it is never over': propertiesOf(work).never('over') })
  t.match(await proveAgent(agent, { only: 'over' }), {
    verdicts: [{ outcome: 'possible', guards: [{ guard: 'isLarge', isTrue: true }] }],
    guesses: ['results of job']
  })
  t.match(found(await proveAgent(agent, { cases: { results: { job: { little: 1 } } }, only: 'over' })), {
    'it is never over': 'proved'
  })
  t.match(found(await proveAgent(agent, { cases: { results: { job: { much: 10 } } }, only: 'over' })), {
    'it is never over': ['confirmed', 'job ends with "much"', 'it receives "large" from inner']
  })
})

await t.test('a chart among the actors whose results cases give is not walked', async t => {
  const work = setupWork({ actors: { gauge: settled } }).createMachine({
    id: 'outer',
    initial: 'on',
    states: { on: { invoke: { src: 'gauge', id: 'gauge', onDone: 'over' } }, over: { type: 'final' } }
  })
  const agent = agentOf(work, { 'it is never over': propertiesOf(work).never('over') })
  t.match(found(await proveAgent(agent, { only: 'over' })), { 'it is never over': 'proved' })
  const cases = { results: { gauge: { 'a limit': 3 } } }
  t.match(found(await proveAgent(agent, { cases, only: 'over' })), {
    'it is never over': ['confirmed', 'gauge ends with "a limit"']
  })
  await passes(t, work, cases)
})

await t.test('spawned actors without an id are walked', async t => {
  const inner = setup({ actors: { job: fromPromise<number>(async () => 1) } }).createMachine({
    id: 'inner',
    initial: 'on',
    states: { on: { after: { 10: 'busy' } }, busy: { invoke: { src: 'job', onDone: 'over' } }, over: { type: 'final' } }
  })
  for (const src of ['job', 'inner']) {
    const work = setupWork({
      types: { context: typed<{ all: readonly unknown[] }>(), events: typed<{ type: 'xstate.done.actor.*' }>() },
      actors: { inner, job: fromPromise<number>(async () => 1) }
    }).createMachine({
      id: 'outer',
      context: { all: [] },
      initial: 'asking',
      states: {
        asking: {
          tags: 'input-required',
          meta: { prompt: 'Another?' },
          on: {
            'message.received': [
              { guard: ({ context }: { context: { all: unknown[] } }) => context.all.length > 1, target: 'over' },
              { actions: assign({ all: ({ context, spawn }) => [...context.all, spawn(src)] }) }
            ],
            'xstate.done.actor.*': { actions: emit(progress('one')), target: 'one' }
          }
        },
        one: { on: { 'xstate.done.actor.*': 'over' } },
        over: { type: 'final' }
      }
    } as never)
    const cases = {
      results: { job: { done: 1 } },
      memory: (context: unknown) => (context as { all: unknown[] }).all.length
    }
    await t.test(src, t => passes(t, work as never, cases))
  }
})

const silent: Subscribable<never> = { subscribe: () => ({ unsubscribe: () => {} }) }
const leaves = {
  'a callback': fromCallback(() => {}),
  'an observable': fromObservable<number, undefined>(() => silent),
  'events that are observed': fromEventObservable(() => silent),
  'a reducer': fromTransition((n: number) => n, 0),
  'a promise': fromPromise(async () => {}),
  'no logic': {} as never
}

await t.test(
  'events of actors that no case gives leave a verdict unknown, with the state, the actor and the line to add',
  async t => {
    const sensing = (sensor: (typeof leaves)[keyof typeof leaves], on: object = { beep: 'warned' }) =>
      setupWork({
        types: { events: typed<{ type: 'beep' }>() },
        actors: { 'the sensor': sensor as never }
      }).createMachine({
        id: 'sensing',
        initial: 'watching',
        states: {
          watching: {
            invoke: { src: 'the sensor', id: 'sensor', onDone: 'over', onError: 'over' },
            on,
            after: { 10: 'over' }
          },
          warned: { type: 'final' },
          over: { type: 'final' }
        }
      } as never)
    const verdict = async (work: ReturnType<typeof sensing>, cases: Cases = {}) =>
      (
        await proveAgent(agentOf(work as never, { 'it never warns': propertiesOf(work as never).never('warned') }), {
          cases,
          only: 'warns'
        })
      ).verdicts[0]
    const why =
      "in sensing.watching the actor the sensor may send \"beep\", which no case gives. Add to the module: export const cases = { events: { 'an event': { type: 'beep' } } }, or cases = { results: { 'the sensor': {} } } if it neither sends events nor ends"
    for (const [name, logic] of Object.entries(leaves)) {
      t.match(
        await verdict(sensing(logic)),
        name === 'a promise' ? { outcome: 'proved' } : { outcome: 'unknown', why },
        name
      )
    }
    const callback = leaves['a callback']
    t.match(await verdict(sensing(callback), { results: { 'the sensor': {} } }), { outcome: 'proved' })
    t.match(await verdict(sensing(callback), { events: { 'it beeps': { type: 'beep' } } }), {
      outcome: 'confirmed',
      walk: { steps: [{ says: 'the event "it beeps" comes' }] }
    })
    t.match(
      await verdict(sensing(callback), { events: { 'it beeps': { type: 'beep' } }, results: { 'the sensor': {} } }),
      { outcome: 'confirmed' }
    )
    t.match(
      await verdict(sensing(callback, {})),
      { outcome: 'proved' },
      'a state without transitions for events ignores them'
    )
    t.match(await verdict(sensing(callback, { 'beep.*': 'warned' })), { outcome: 'unknown' })
    t.match(await verdict(sensing(callback, { 'beep.*': 'over' }), { events: { 'it beeps': { type: 'beep.loud' } } }), {
      outcome: 'proved'
    })
    t.match(await verdict(sensing(callback, { '*': 'warned' })), { outcome: 'unknown', why: /may send "\*", which/ })
    t.match(await verdict(sensing(callback, { '*': 'over' }), { events: { other: { type: 'other' } } }), {
      outcome: 'proved'
    })

    const { notes } = await agentTests(agentOf(sensing(callback) as never), { drivers: ['the chart'] })
    t.equal(notes()[0], `not walked: ${why}`)
    const given = await agentTests(agentOf(sensing(callback) as never), {
      cases: { results: { 'the sensor': {} } },
      drivers: ['the chart']
    })
    t.notMatch(given.notes(), [/not walked/])

    const nested = setupWork({ actors: { inner: sensing(callback) as never } }).createMachine({
      id: 'outer',
      initial: 'on',
      states: { on: { invoke: { src: 'inner', id: 'inner', onDone: 'warned' } }, warned: { type: 'final' } }
    } as never)
    t.match(await verdict(nested as never), { outcome: 'confirmed' })
    const { unmodelled } = await proveAgent(agentOf(nested as never), {})
    t.match(unmodelled, [
      /^in sensing\.watching the actor the sensor may send "beep", which no case gives\. Add to the module: export const cases = \{ results: \{ 'the sensor': \{\} \} \} if it/
    ])
  }
)

await t.test('what an actor may send is no end that never comes', async t => {
  const work = setupWork({
    types: { events: typed<{ type: 'beep' }>() },
    actors: { sensor: leaves['a callback'] }
  }).createMachine({
    id: 'waiting',
    initial: 'on',
    states: { on: { invoke: { src: 'sensor' }, on: { beep: 'over' } }, over: { type: 'final' } }
  })
  const { eventually, terminal } = propertiesOf(work)
  const proof = await proveAgent(agentOf(work, { 'it ends': eventually(terminal) }), {
    cases: { events: {} },
    only: 'ends'
  })
  t.match(proof.verdicts, [{ outcome: 'unknown' }])
})

await t.test(
  'a snapshot that no case gives is not read: those steps are not reached, with the line to add',
  async t => {
    const work = setupWork({
      types: { context: typed<{ meter?: AnyActorRef }>() },
      actors: { meter: leaves['an observable'] }
    }).createMachine({
      id: 'metering',
      context: {},
      initial: 'asking',
      invoke: { src: 'meter', id: 'meter', systemId: 'meter' },
      states: {
        asking: {
          entry: assign({ meter: ({ system }) => system.get('meter') as AnyActorRef }),
          tags: 'input-required',
          meta: { prompt: 'Read?' },
          on: {
            'message.received': [
              { guard: ({ context }) => context.meter?.getSnapshot().context > 3, target: 'high' },
              { target: 'low' }
            ]
          }
        },
        high: { type: 'final' },
        low: { type: 'final' }
      }
    })
    const { never } = propertiesOf(work)
    const agent = agentOf(work, { 'it is never high': never('high'), 'it never asks': never('asking') })
    const line =
      "it reads the snapshot of meter, which no case gives. Add to the module: export const cases = { events: { 'a reading': { type: 'xstate.snapshot.meter', snapshot: { context: … } } } }"
    const messages = { please: 'please' }
    t.match((await proveAgent(agent, { cases: { messages }, only: 'it ' })).verdicts, [
      { outcome: 'unknown', why: `in metering.asking, if the client says "please": ${line}` },
      { outcome: 'confirmed' }
    ])
    const { notes, tests } = await agentTests(agent, {
      cases: { messages, results: { meter: {} } },
      drivers: ['the chart']
    })
    t.equal(notes()[0], `not walked: in metering.asking, if the client says "please": ${line}`)
    t.strictSame(
      tests.map(({ name }) => name),
      ['opened by "start", but not "an authorization" arrives', 'opened by "start", then the client cancels']
    )

    const cases = {
      messages,
      results: { meter: {} },
      events: {
        'it reads 1': { type: 'xstate.snapshot.meter', snapshot: { context: 1 } },
        'it reads 5': { type: 'xstate.snapshot.meter', snapshot: { context: 5 } }
      }
    }
    t.match(found(await proveAgent(agent, { cases, only: 'high' })), {
      'it is never high': ['confirmed', 'the event "it reads 5" comes', 'the client says "please"']
    })
    await passes(t, work, cases)
  }
)

await t.test('what an observed value does is walked with the values of the cases', async t => {
  const work = setupWork({
    types: { context: typed<{ last: number }>() },
    actors: { meter: leaves['an observable'] }
  }).createMachine({
    id: 'metering',
    context: { last: 0 },
    initial: 'on',
    states: {
      on: {
        invoke: {
          src: 'meter',
          id: 'meter',
          onSnapshot: { actions: assign({ last: ({ event }) => event.snapshot.context ?? 0 }) }
        },
        always: { guard: ({ context }) => context.last > 3, target: 'over' }
      },
      over: { type: 'final' }
    }
  })
  const agent = agentOf(work, { 'it is never over': propertiesOf(work).never('over') })
  t.match((await proveAgent(agent, { only: 'over' })).verdicts, [
    { outcome: 'unknown', why: /^opened by "start": it reads the snapshot of meter/ }
  ])
  const cases = {
    results: { meter: {} },
    events: {
      'it reads 1': { type: 'xstate.snapshot.meter', snapshot: { context: 1 } },
      'it reads 5': { type: 'xstate.snapshot.meter', snapshot: { context: 5 } }
    }
  }
  t.match(found(await proveAgent(agent, { cases, only: 'over' })), {
    'it is never over': ['confirmed', 'it receives "xstate.snapshot.meter" from meter', 'the event "it reads 5" comes']
  })
  await passes(t, work, cases)
})

await t.test(
  'a chart that begins by reading such a snapshot has no tests and no proof, which both say what to add',
  async t => {
    const work = setupWork({
      types: { context: typed<{ n: number }>() },
      actors: { meter: leaves['an observable'] }
    }).createMachine({
      id: 'hasty',
      context: ({ spawn }) => ({ n: spawn('meter', { id: 'meter' }).getSnapshot().context as number }),
      initial: 'on',
      states: { on: { after: { 5: 'over' } }, over: { type: 'final' } }
    })
    await t.rejects(planFor(agentOf(work)), {
      name: 'TypeError',
      message: /^nothing can be walked\. opened by "start": it reads the snapshot of meter, which no case gives\. Add/
    })
    t.match(await proveAgent(agentOf(work)), {
      isWhole: false,
      configurations: 0,
      verdicts: [
        { outcome: 'unknown', why: /^opened by "start": it reads the snapshot of meter/ },
        { outcome: 'unknown' }
      ]
    })
  }
)

await t.test('what is spawned within an action is walked if it has a name and cases give its snapshots', async t => {
  const spawning = (spawned: (spawn: (src: never, options?: object) => AnyActorRef) => AnyActorRef) =>
    setupWork({
      types: {
        context: typed<{ one?: AnyActorRef; last: unknown }>(),
        events: typed<{ type: 'xstate.snapshot.meter'; snapshot: { context: number } }>()
      },
      actors: { meter: leaves['an observable'] }
    }).createMachine({
      id: 'spawning',
      context: { last: 0 },
      initial: 'asking',
      states: {
        asking: {
          tags: 'input-required',
          meta: { prompt: 'Go?' },
          on: { 'message.received': { target: 'on', actions: assign({ one: ({ spawn }) => spawned(spawn as never) }) } }
        },
        on: {
          on: { 'xstate.snapshot.meter': { actions: assign({ last: ({ event }) => event.snapshot.context ?? 0 }) } },
          always: { guard: ({ context }: { context: { last: unknown } }) => context.last === 5, target: 'over' }
        },
        over: { type: 'final' }
      }
    } as never)
  const never = async (work: ReturnType<typeof spawning>, cases: Cases) =>
    (
      await proveAgent(agentOf(work as never, { 'it is never over': propertiesOf(work as never).never('over') }), {
        cases: { messages: { go: 'go' }, ...cases },
        only: 'over'
      })
    ).verdicts[0]
  const synced = spawning(spawn => spawn('meter' as never, { id: 'meter', syncSnapshot: true }))
  t.match(await never(synced, {}), {
    outcome: 'unknown',
    why: /^in spawning\.asking, if the client says "go": it reads the snapshot of meter, which no case gives/
  })
  const cases = {
    results: { meter: {} },
    events: { 'it reads 5': { type: 'xstate.snapshot.meter', snapshot: { context: 5 } } }
  }
  t.match(await never(synced, cases), { outcome: 'confirmed' })
  await passes(t, synced as never, cases)
  const inline = spawning(spawn => spawn(settled as never, { id: 'gauge' }))
  t.match(await never(inline, {}), {
    outcome: 'unknown',
    why: /it spawns a chart without a name, which is not walked\. Name it: setup/
  })
})

await t.test('an actor that runs on unseen, since another one has its id, is not followed', async t => {
  const inner = setup({}).createMachine({
    id: 'inner',
    initial: 'on',
    states: { on: { after: { 10: 'over' } }, over: { type: 'final' } }
  })
  for (const src of ['job', 'inner'] as const) {
    const region = {
      initial: 'on',
      states: { on: { invoke: { src, id: 'one', onDone: 'off', onError: 'off' } }, off: { type: 'final' } }
    } as const
    const both = setupWork({ actors: { inner, job: fromPromise(async () => {}) } }).createMachine({
      id: 'both',
      type: 'parallel',
      states: { left: region, right: region }
    } as never)
    t.match((await proveAgent(agentOf(both as never))).verdicts, [
      { outcome: 'unknown', why: /^opened by "start": two actors have the id one, of which XState keeps the second/ },
      {}
    ])
    const again = setupWork({ actors: { inner, job: fromPromise(async () => {}) } }).createMachine({
      id: 'again',
      initial: 'asking',
      states: {
        asking: {
          tags: 'input-required',
          meta: { prompt: 'Another?' },
          on: { 'message.received': { actions: spawnChild(src, { id: 'one' }) } }
        }
      }
    } as never)
    t.match(
      (await proveAgent(agentOf(again as never))).verdicts,
      [
        { outcome: 'unknown', why: /^in again\.asking, if the client says "an answer": two actors have the id one/ },
        {}
      ],
      src
    )
  }
})

await t.test('charts among the actors keep their own timers, which end with them', async t => {
  const inner = setup({ types: { events: {} as { type: 'calm' } | { type: 'wait' } } }).createMachine({
    id: 'inner',
    initial: 'on',
    states: {
      on: {
        entry: [
          raise({ type: 'wait' }, { delay: 30, id: 'shared' }),
          sendParent({ type: 'late' }, { delay: 40, id: 'late' }),
          sendParent({ type: 'soon' }, { delay: -1 })
        ],
        on: { calm: { actions: cancel('shared') }, wait: 'over' }
      },
      over: { type: 'final' }
    }
  })
  const logged: string[] = []
  const work = setupWork({
    types: { events: typed<{ type: 'late' } | { type: 'soon' } | { type: 'mine' }>() },
    actors: { inner },
    actions: { shout: () => void logged.push('shout') }
  }).createMachine({
    id: 'outer',
    initial: 'asking',
    states: {
      asking: {
        tags: 'input-required',
        meta: { prompt: 'Stop?' },
        invoke: { src: 'inner', id: 'inner', onDone: 'waited' },
        entry: [
          'shout',
          log('begun'),
          raise({ type: 'mine' }, { delay: 35, id: 'shared' }),
          sendTo('inner', { type: 'calm' }, { delay: 20 }),
          sendTo(({ self }) => self, { type: 'soon' })
        ],
        on: { 'message.received': 'stopped', mine: 'mine', soon: { actions: emit(progress('Soon.')) } }
      },
      stopped: { after: { 60: 'over' }, on: { late: 'haunted' } },
      mine: { after: { 60: 'over' }, on: { late: 'haunted' } },
      waited: { type: 'final' },
      haunted: { type: 'final' },
      over: { type: 'final' }
    }
  } as never)
  const never = propertiesOf(work as never).never as (state: string) => Property
  const proof = await proveAgent(
    agentOf(work as never, {
      'it never waits': never('waited'),
      'it is never its own': never('mine'),
      'it is never haunted': never('haunted')
    }),
    { only: 'never ' }
  )
  t.match(found(proof), {
    'it never waits': 'proved',
    'it is never its own': ['confirmed'],
    'it is never haunted': 'proved'
  })
  logged.length = 0
  const { begin } = modelWith(work as never, { events: {} })
  const { timers, inbox } = begin(undefined)
  t.strictSame(
    [timers.map(({ id }) => id), inbox],
    [['inner/shared', 'inner/late', 'inner/soon', 'shared', 'calm'], [{ type: 'soon' }]]
  )
  t.strictSame(logged, [], 'custom actions do not run')
})

await t.test('a chart that throws, or whose actors do, is walked to its error', async t => {
  const inner = setup({ types: { events: {} as { type: 'break' } | { type: 'call' } } }).createMachine({
    id: 'inner',
    on: {
      break: {
        actions: assign(() => {
          throw new Error('inner breaks')
        })
      },
      call: {
        actions: [sendParent({ type: 'called' }), sendParent({ type: 'thrown' }), sendParent({ type: 'called' })]
      }
    }
  })
  const chart = (handles: object, on: object) =>
    setupWork({ types: { events: typed<{ type: 'called' } | { type: 'thrown' }>() }, actors: { inner } }).createMachine(
      {
        id: 'outer',
        initial: 'asking',
        invoke: { src: 'inner', id: 'inner', ...handles },
        states: {
          asking: {
            tags: 'input-required',
            meta: { prompt: 'Go?' },
            on: {
              'message.received': {
                target: 'busy',
                actions: sendTo('inner', ({ event }) => ({
                  type: textOf((event as unknown as MessageReceived).message)
                }))
              }
            }
          },
          busy: { on },
          over: { type: 'final' }
        }
      } as never
    )
  const thrown = {
    called: {},
    thrown: {
      actions: assign(() => {
        throw new Error('outer breaks')
      })
    }
  }
  const cases = { messages: { break: 'break', call: 'call' } }
  const { tests, notes } = await agentTests(agentOf(chart({ onError: '.over' }, thrown) as never), {
    cases,
    drivers: DRIVERS
  })
  for (const { run, name, driver } of tests) await t.resolves(run(), `${driver}: ${name}`)
  t.match(notes(), [
    /^the chart throws, opened by "start", then the client says "call": Error: outer breaks \(at .*actors\.test\.ts:\d+/
  ])
  const { verdicts } = await proveAgent(agentOf(chart({}, {}) as never), { cases, only: 'throws' })
  t.match(verdicts, [
    {
      outcome: 'confirmed',
      walk: {
        steps: [{ says: 'the client says "break"' }, { says: 'it receives "xstate.error.actor.inner" from inner' }]
      }
    }
  ])
  const first = setupWork({ types: { context: typed<{ n: number }>() }, actors: { inner } }).createMachine({
    id: 'first',
    context: () => {
      throw new Error('it begins')
    },
    invoke: { src: 'inner' }
  })
  t.match((await planFor(agentOf(first))).crashes, [{ error: { message: 'it begins' } }])
})

await t.test('a prompt that reads such a snapshot is not reached, and one that throws says so', async t => {
  const asking = (prompt: (given: { context: { meter?: AnyActorRef } }) => string, initial: string) =>
    setupWork({
      types: { context: typed<{ meter?: AnyActorRef }>() },
      actors: { meter: leaves['an observable'] }
    }).createMachine({
      id: 'prompting',
      context: ({ spawn }: { spawn: (src: string, options: object) => AnyActorRef }) => ({
        meter: spawn('meter', { id: 'meter' })
      }),
      initial,
      states: {
        first: { tags: 'input-required', meta: { prompt: 'Go?' }, on: { 'message.received': 'second' } },
        second: { tags: 'input-required', meta: { prompt }, on: { 'message.received': 'over' } },
        over: { type: 'final' }
      }
    } as never)
  const reading = agentOf(asking(({ context }) => `At ${context.meter?.getSnapshot().context}`, 'first') as never)
  const cases = { messages: { go: 'go' }, results: { meter: {} } }
  const line = /in prompting\.first, if the client says "go": it reads the snapshot of meter, which no case gives/
  t.match((await proveAgent(reading, { cases, only: 'end' })).verdicts, [{ outcome: 'unknown', why: line }])
  t.match((await agentTests(reading, { cases, drivers: ['the chart'] })).notes(), [line])
  const broken = (initial: string) =>
    agentOf(
      asking(() => {
        throw new Error('no words')
      }, initial) as never
    )
  await t.rejects(proveAgent(broken('second'), { cases }), { message: 'no words' })
  await t.rejects(planFor(broken('first'), { cases }), { message: 'no words' })
})
