import t from 'tap'
import { assign, fromCallback, sendParent, sendTo, setup, type AnyActorRef } from 'xstate'
import { defineAgent, setupWork, typed, type AgentDefinition, type Migrate } from '../../../runtime/index.ts'
import { onKillPoint } from '../../../runtime/primitives/kill-points.ts'
import { askingChart } from '../../fixtures/runtime/agents.ts'
import { anyone, failOnLooseErrors, lives, type Lives } from '../../fixtures/runtime/lives.ts'
import { open, rest, say, stateName, taskIn, textOf } from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

const never = fromCallback(() => {})

type Definition = Omit<AgentDefinition, 'card'>

/** A trip with nested states, regions, history, a timer and actors. */
const trip = (names: {
  readonly trip?: string
  readonly paying?: string
  readonly hotel?: string
  readonly past?: string
  readonly paint?: string
  readonly id?: string
}) => {
  const { trip = 'trip', paying = 'paying', hotel = 'hotel', past = 'past', paint = 'paint', id = 'painting' } = names
  return setupWork({
    actors: { [paint]: never } as Record<'paint', typeof never>,
    types: { context: typed<{ n: number }>() }
  }).createMachine({
    id: 'work',
    context: { n: 0 },
    initial: trip,
    states: {
      [trip]: {
        type: 'parallel',
        states: {
          money: {
            initial: paying,
            states: {
              [paying]: { after: { 5000: 'paid' }, invoke: { src: paint as 'paint' } },
              paid: {
                on: {
                  'message.received': { target: '#work.away', actions: assign({ n: ({ context }) => context.n + 1 }) }
                },
                tags: 'input-required',
                meta: { prompt: 'Go?' }
              },
              [past]: { type: 'history' }
            }
          },
          [hotel]: { initial: 'open', states: { open: { invoke: { id, src: paint as 'paint' } }, closed: {} } }
        }
      },
      away: {
        tags: 'input-required',
        meta: { prompt: 'Back?' },
        on: { 'message.received': `#work.${trip}.money.${past}` }
      }
    }
  })
}

const endOf = async (life: Lives, id: string) => (await life.told(id)).at(-1)

async function snapshotIn({ store }: Lives): Promise<Record<string, unknown>> {
  const stored = await store.loadContext({ ...anyone, contextId: 'c' })
  return JSON.parse(stored?.tasks[0]?.snapshot ?? '')
}

await t.test('a state that was renamed is replaced in the tasks of every other version, without migrate', async t => {
  const life = lives(t, { work: askingChart('old', 'last'), version: '1' })
  const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
  const points: string[] = []
  onKillPoint(point => void points.push(point))
  t.teardown(() => onKillPoint(undefined))
  await life.again({ work: askingChart('new', 'last'), version: '2', renamed: { states: { old: 'new' } } })
  t.equal(points.filter(point => point === 'before migration').length, 1)
  t.equal(await endOf(life, taskId), 'input-required: old', 'the client is not asked again')
  await life.again()
  t.equal(points.filter(point => point === 'before migration').length, 1, 'it is stored under the present version')
  t.equal(textOf(taskIn(await life.runtime.sendMessage(say('x', { taskId }))).status.message), 'last')
})

await t.test('a task that has nothing renamed is not migrated, and neither is one of the same version', async t => {
  const work = askingChart('old', 'last')
  const points: string[] = []
  onKillPoint(point => void points.push(point))
  t.teardown(() => onKillPoint(undefined))
  const life = lives(t, { work, version: '1' })
  const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
  await life.runtime.sendMessage(say('x', { taskId }))
  await life.again({ work: askingChart('new', 'last'), version: '2', renamed: { states: { old: 'new' } } })
  t.equal(stateName(taskIn(await life.runtime.sendMessage(say('x', { taskId }))).status.state), 'completed')
  t.notOk(points.includes('before migration'))
  const same = lives(t, { work, version: '1' })
  const { id } = taskIn(await same.runtime.sendMessage(say('go')))
  await same.again({ work: askingChart('new'), version: '1', renamed: { states: { old: 'new' } } })
  t.match(await endOf(same, id), /^failed: .*the chart has no state work.old/)
})

await t.test('a task may be several versions old: each version has its names', async t => {
  const now: Definition = {
    work: askingChart('c', 'last'),
    version: '3',
    renamed: { '1': { states: { a: 'c' } }, '2': { states: { b: 'c' } } }
  }
  for (const [version, name] of [
    ['1', 'a'],
    ['2', 'b']
  ] as const) {
    const life = lives(t, { work: askingChart(name, 'last'), version })
    const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
    await life.again(now)
    t.equal(textOf(taskIn(await life.runtime.sendMessage(say('x', { taskId }))).status.message), 'last')
  }
  const other = lives(t, { work: askingChart('a', 'last'), version: '0' })
  const { id } = taskIn(await other.runtime.sendMessage(say('go')))
  await other.again(now)
  t.match(await endOf(other, id), /the chart has no state work.a/, 'a version without names')
})

await t.test('two states may change their names with each other, for the version that stored them', async t => {
  const life = lives(t, { work: askingChart('a', 'b'), version: '1' })
  const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
  await life.again({ work: askingChart('b', 'a'), version: '2', renamed: { '1': { states: { a: 'b', b: 'a' } } } })
  t.equal(textOf(taskIn(await life.runtime.sendMessage(say('x', { taskId }))).status.message), 'a')
})

await t.test('nested states, regions, history, timers and actors have their new names', async t => {
  const names = { trip: 'journey', paying: 'settling', hotel: 'room', past: 'before', paint: 'draw', id: 'drawing' }
  const now: Definition = {
    work: trip(names),
    version: '2',
    renamed: {
      states: {
        trip: 'journey',
        'trip.money.paying': 'journey.money.settling',
        'trip.hotel': 'journey.room',
        'trip.money.past': 'journey.money.before'
      },
      actors: { paint: 'draw', painting: 'drawing' }
    }
  }

  await t.test('while its timer waits', async t => {
    const life = lives(t, { work: trip({}), version: '1' })
    const { id } = await open(life.runtime, 'go', { contextId: 'c' })
    await rest()
    await life.pass(3000)
    t.match(await snapshotIn(life), {
      children: {
        work: {
          snapshot: {
            value: { trip: { money: 'paying', hotel: 'open' } },
            children: { painting: { src: 'paint' }, '0.work.trip.money.paying': {} }
          }
        }
      },
      delayed: [{ id: 'xstate.after.5000.work.trip.money.paying' }]
    })
    await life.again(now)
    const { children, delayed } = (await snapshotIn(life)) as Record<string, Record<string, never>>
    t.match(children?.['work'], {
      snapshot: {
        value: { journey: { money: 'settling', room: 'open' } },
        children: {
          drawing: { src: 'draw' },
          '0.work.journey.money.settling': { src: 'draw' }
        }
      }
    })
    t.match(delayed, [{ id: 'xstate.after.5000.work.journey.money.settling', source: ['work'] }])
    t.notMatch(JSON.stringify([children, delayed]), /trip|paying|paint|hotel/)
    t.match(JSON.stringify(children), '"work.journey.money.settling"', 'the order in which its states were entered')
    await life.pass(1999)
    t.equal(await endOf(life, id), 'working')
    await life.pass(1)
    t.equal(await endOf(life, id), 'input-required: Go?', 'the timer of before fires at its time')
  })

  await t.test('in its history', async t => {
    const life = lives(t, { work: trip({}), version: '1' })
    const { id: taskId } = await open(life.runtime, 'go', { contextId: 'c' })
    await rest()
    await life.pass(5000)
    await life.runtime.sendMessage(say('go', { taskId }))
    t.match(await snapshotIn(life), {
      children: { work: { snapshot: { historyValue: { 'work.trip.money.past': [{ id: 'work.trip.money.paid' }] } } } }
    })
    await life.again(now)
    t.match(await snapshotIn(life), {
      children: {
        work: {
          snapshot: {
            value: 'away',
            historyValue: { 'work.journey.money.before': [{ id: 'work.journey.money.paid' }] }
          }
        }
      }
    })
    t.equal(textOf(taskIn(await life.runtime.sendMessage(say('back', { taskId }))).status.message), 'Go?')
  })
})

await t.test('the actor that an event waits for, and one in the context, have their new ids', async t => {
  const bell = setup({ types: { events: {} as { type: 'ring' } } }).createMachine({
    initial: 'quiet',
    entry: sendParent(({ self }) => ({ type: 'here', bell: self })),
    states: { quiet: { on: { ring: 'rung' }, after: { 9000: 'rung' } }, rung: { type: 'final' } }
  })
  const chart = (id: string) =>
    setupWork({
      actors: { bell },
      types: {
        context: typed<{ bells: AnyActorRef[]; note: null }>(),
        events: typed<{ type: 'here'; bell: AnyActorRef }>()
      }
    }).createMachine({
      id: 'work',
      context: { bells: [], note: null },
      initial: 'on',
      states: {
        on: {
          invoke: { id, src: 'bell', onDone: 'off' },
          on: {
            here: {
              actions: [
                assign({ bells: ({ event }) => [event.bell] }),
                sendTo(({ event }) => event.bell, { type: 'ring' }, { delay: 2000 })
              ]
            }
          }
        },
        off: { type: 'final' }
      }
    })
  const life = lives(t, { work: chart('old'), version: '1' })
  const { id } = await open(life.runtime, 'go', { contextId: 'c' })
  await rest()
  await life.again({ work: chart('new'), version: '2', renamed: { actors: { old: 'new' } } })
  t.notMatch(JSON.stringify(await snapshotIn(life)), /"old"/)
  await life.pass(2000)
  t.equal(await endOf(life, id), 'completed')
})

await t.test('the open one of two questions stays open', async t => {
  const region = (name: string) => ({
    initial: name,
    states: {
      [name]: { tags: 'input-required' as const, meta: { prompt: name }, on: { 'message.received': `${name} done` } },
      [`${name} done`]: { type: 'final' as const }
    }
  })
  const chart = (one: string) =>
    setupWork({}).createMachine({
      id: 'work',
      type: 'parallel',
      states: { [one]: region('first'), two: region('second') }
    })
  const life = lives(t, { work: chart('one'), version: '1' })
  const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go', { contextId: 'c' })))
  t.match(await snapshotIn(life), { context: { asks: 'work.one.first' } })
  await life.again({ work: chart('uno'), version: '2', renamed: { states: { one: 'uno' } } })
  t.match(await snapshotIn(life), { context: { asks: 'work.uno.first' } })
  t.equal(textOf(taskIn(await life.runtime.sendMessage(say('x', { taskId }))).status.message), 'second')
})

await t.test('two regions that become one fail their task', async t => {
  const chart = (...names: readonly string[]) =>
    setupWork({}).createMachine({
      id: 'work',
      type: 'parallel',
      states: Object.fromEntries(names.map(name => [name, { initial: 'x', states: { x: {} } }]))
    })
  const life = lives(t, { work: chart('a', 'b'), version: '1' })
  const { id } = await open(life.runtime)
  await rest()
  await life.again({ work: chart('b', 'c'), version: '2', renamed: { states: { a: 'b' } } })
  t.equal(
    await endOf(life, id),
    'failed: This task cannot be resumed with the present agent: two of its active states are named b now.'
  )
})

await t.test('migrate gets the new names', async t => {
  const life = lives(t, { work: askingChart('old', 'last'), version: '1' })
  const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
  const given: unknown[] = []
  await life.again({
    work: askingChart('new', 'last'),
    version: '2',
    renamed: { states: { old: 'new' } },
    migrate: ({ snapshot }) => (given.push(snapshot['value']), snapshot)
  })
  t.strictSame(given, ['new'])
  t.equal(textOf(taskIn(await life.runtime.sendMessage(say('x', { taskId }))).status.message), 'last')
})

await t.test('the stored task of a function keeps all that it has', async t => {
  const life = lives(t, { work: async ({ sleep }) => sleep(1000), version: '1' })
  const { id } = await open(life.runtime)
  await rest()
  await life.again({ work: askingChart('new'), version: '2', renamed: { states: { old: 'new' } } })
  t.match(await endOf(life, id), /^failed: .*the work was no statechart, and is one now/)
  const submitted = lives(t, { work: askingChart('a'), version: '1' })
  const { commit } = submitted.store
  let commits = 0
  Object.assign(submitted.store, {
    commit: (given: Parameters<typeof commit>[0]) => ((commits += 1) > 1 ? new Promise(() => {}) : commit(given))
  })
  const { id: first } = await open(submitted.runtime)
  await rest()
  Object.assign(submitted.store, { commit })
  await submitted.kill({ work: askingChart('b'), version: '2', renamed: { states: { a: 'b' } } })
  t.equal(await endOf(submitted, first), 'input-required: b')
})

await t.test('wrong names are TypeErrors of defineAgent', async t => {
  const work = trip({})
  const wrong: [what: string, definition: Definition, message: RegExp][] = [
    ['no object', { work, renamed: [] as never }, /renamed has to be an object: renamed: \{ states/],
    ['a text', { work, renamed: 'trip' as never }, /renamed has to be an object/],
    [
      'work that is a function',
      { work: async () => {}, renamed: {} },
      /renamed is for work as a statechart.*work.patch/
    ],
    [
      'an agent without work',
      { negotiate: () => ({}) as never, renamed: { states: {} } },
      /renamed is for work as a statechart/
    ],
    ['states that are no object', { work, renamed: { states: 'trip' } as never }, /renamed.states has to be an object/],
    [
      'a name that is no text',
      { work, renamed: { states: { old: 1 } } as never },
      /renamed.states\["old"\] has to be the name now, a text, not 1/
    ],
    ['an empty name', { work, renamed: { states: { '': 'trip' } } }, /renamed.states\[""\] has to be/],
    [
      'a state that the chart does not have',
      { work, renamed: { states: { old: 'journey' } } },
      /renamed.states: the chart has no state journey, as which old is named. A nested/
    ],
    ['a misspelled state', { work, renamed: { states: { old: 'trips' } } }, /Did you mean trip\?/],
    [
      'two names that became one',
      { work, renamed: { states: { old: 'trip', older: 'trip' } } },
      /old and older cannot both be named trip.*by version|old and older cannot both be named trip.*migrate/
    ],
    [
      'a state that is still there',
      { work, renamed: { states: { away: 'trip' } } },
      /renames away, but the chart has a state away now.*Name the version/
    ],
    [
      'a state in another one',
      { work, renamed: { states: { paying: 'trip.money.paying' } } },
      /paying cannot be named trip.money.paying, since what contains it is not named so: it would be paying\./
    ],
    [
      'an actor that the chart does not have',
      { work, renamed: { actors: { old: 'draw' } } },
      /renamed.actors: the chart has no actor draw, as which old is named/
    ],
    [
      'an actor that is still there',
      {
        work: trip({ id: 'paint' }).provide({ actors: { other: never } as never }),
        renamed: { actors: { other: 'paint' } }
      },
      /renames other, but the chart has an actor other now/
    ],
    [
      'a version that is no object',
      { work, version: '2', renamed: { '1': 'trip' } as never },
      /renamed\["1"\] has to be an object/
    ],
    [
      'an empty version',
      { work, version: '2', renamed: { '': {} } },
      /renamed\[""\] has to name another version than that of the agent, which is 2/
    ],
    [
      'the version of the agent',
      { work, version: '2', renamed: { '2': {} } },
      /renamed\["2"\] has to name another version/
    ],
    [
      'a version with its own work',
      { work, version: '2', earlier: { '1': work }, renamed: { '1': { states: {} } } },
      /renamed\["1"\] renames nothing.*earlier/
    ],
    [
      'an unknown member',
      { work, version: '2', renamed: { '1': { state: {} } as never } },
      /renamed\["1"\] has no state. Is states meant\?/
    ]
  ]
  for (const [what, definition, message] of wrong)
    t.throws(() => defineAgent({ card: { name: 'A' }, ...definition }), { name: 'TypeError', message }, what)
  const renamed = { '1': { states: { away: 'trip' } } }
  const agent = defineAgent({ card: { name: 'A' }, work, version: '2', renamed })
  t.equal(defineAgent(agent).renamed, renamed, 'a state of another version may have the name of one of now')
  t.strictSame(defineAgent({ card: { name: 'A' }, work, renamed: {} }).renamed, {})
})

await t.test('migrate has the types of both charts', async t => {
  const first = setupWork({ types: { context: typed<{ colour: string }>() } }).createMachine({
    context: { colour: '' },
    initial: 'choosing',
    states: { choosing: {}, painted: { type: 'final' } }
  })
  const second = setupWork({ types: { context: typed<{ colours: string }>() } }).createMachine({
    context: { colours: '' },
    initial: 'picking',
    states: { picking: {}, painted: { type: 'final' } }
  })
  const now = setupWork({ types: { context: typed<{ colours: string[] }>() } }).createMachine({
    context: { colours: [] },
    initial: 'asking',
    states: { asking: {}, painted: { type: 'final' } }
  })
  const migrate: Migrate<typeof first, typeof now> = ({ snapshot }) => ({
    status: 'active',
    value: snapshot.value === 'choosing' ? 'asking' : snapshot.value,
    context: { colours: [snapshot.context.colour] }
  })
  const byVersion: Migrate<{ '1': typeof first; '2': typeof second }, typeof now> = stored => ({
    ...stored.snapshot,
    value: 'asking',
    context: { colours: [stored.version === '1' ? stored.snapshot.context.colour : stored.snapshot.context.colours] }
  })
  const untyped: Migrate = ({ version, snapshot }) => (version === '1' ? { ...snapshot, value: 'asking' } : snapshot)
  const wrong: Migrate<typeof first, typeof now>[] = [
    // @ts-expect-error a state that the new chart does not have
    ({ snapshot }) => ({ ...snapshot, value: 'choosing', context: { colours: [snapshot.context.colour] } }),
    // @ts-expect-error a context of the old chart
    ({ snapshot }) => ({ ...snapshot, value: 'asking' }),
    // @ts-expect-error a context that the old chart does not have
    ({ snapshot }) => ({ status: 'active', value: 'asking', context: { colours: snapshot.context.colours } }),
    ({ snapshot }) => ({
      status: 'active',
      // @ts-expect-error a state that the old chart does not have
      value: snapshot.value === 'picking' ? 'asking' : 'painted',
      context: { colours: [] }
    })
  ]
  t.equal(wrong.length, 4)
  for (const given of [migrate, byVersion, untyped])
    t.equal(defineAgent({ card: { name: 'A' }, work: now, version: '3', migrate: given }).migrate, given)
  const stored = {
    version: '1',
    snapshot: { status: 'active', value: 'choosing', context: { colour: 'red' } }
  } as const
  t.match(migrate(stored), { value: 'asking', context: { colours: ['red'] } })
  t.match(byVersion(stored), { value: 'asking', context: { colours: ['red'] } })
})
