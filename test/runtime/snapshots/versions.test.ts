import t from 'tap'
import { assign, createMachine, fromCallback, sendTo, setup, spawnChild, type AnyStateMachine } from 'xstate'
import {
  defineAgent,
  fromPromise,
  setupWork,
  textOf as wordsOf,
  type AgentDefinition,
  type WorkFunction
} from '../../../runtime/index.ts'
import { onKillPoint } from '../../../runtime/primitives/kill-points.ts'
import type { StoredWork } from '../../../runtime/snapshots/restored-task.ts'
import { keepSpawnIdsApart } from '../../../runtime/xstate/actor-system.ts'
import { askingChart } from '../../fixtures/runtime/agents.ts'
import { anyone, failOnLooseErrors, lives, type Lives } from '../../fixtures/runtime/lives.ts'
import {
  deferred,
  open,
  reaches,
  refusal,
  rest,
  say,
  stateName,
  taskIn,
  textOf,
  until
} from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

const SECOND = 1000
const never = fromCallback(() => {})
const ends = 'It was stored by version 1, and this is version 2.'
const cannot = 'This task cannot be resumed with the present agent:'

/** Opens a task under version 1, and comes back under version 2. */
async function upgraded(life: Lives, now: Omit<AgentDefinition, 'card'>): Promise<string> {
  const { id } = await open(life.runtime, 'go', { contextId: 'c' })
  await rest()
  await life.again({ version: '2', ...now })
  return id
}

const endOf = async (life: Lives, id: string) => (await life.told(id)).at(-1)

await t.test('an agent has a version', async t => {
  const work = askingChart('a')
  t.equal(defineAgent({ card: { name: 'A' }, work }).version, '1.0.0')
  t.equal(defineAgent({ card: { name: 'A', version: '2.1' }, work }).version, '2.1')
  t.equal(defineAgent(defineAgent({ card: { name: 'A' }, work, version: 'blue' })).version, 'blue')
  const migrate = () => ({})
  t.equal(defineAgent({ card: { name: 'A' }, work, migrate }).migrate, migrate)
  for (const version of ['', 2, null])
    t.throws(() => defineAgent({ card: { name: 'A' }, work, version: version as never }), {
      name: 'TypeError',
      message: /version has to be a text such as '2.1.0'/
    })
  t.throws(() => defineAgent({ card: { name: 'A' }, work, migrate: {} as never }), {
    name: 'TypeError',
    message: /migrate has to be a function/
  })
  t.throws(() => defineAgent({ card: { name: 'A' }, work: () => {}, migrate }), {
    name: 'TypeError',
    message: /migrate is for work as a statechart.*runs again/
  })
})

await t.test("each stored task has its agent's version and the format of taskchart's charts", async t => {
  const life = lives(t, { work: askingChart('a'), version: '1' })
  const { id } = taskIn(await life.runtime.sendMessage(say('go', { contextId: 'c' })))
  const stored = await life.store.loadContext({ ...anyone, contextId: 'c' })
  t.match(JSON.parse(stored?.snapshot ?? ''), { format: 1, value: 'idle' })
  t.match(JSON.parse(stored?.tasks[0]?.snapshot ?? ''), { format: 1, version: '1', context: { taskId: id } })
})

await t.test('a task of another version, older or newer, continues if it fits', async t => {
  for (const [stored, present] of [
    ['1', '2'],
    ['2', '1'],
    ['1', '1']
  ] as const) {
    const life = lives(t, { work: askingChart('one', 'two'), version: stored })
    const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
    await life.again({ work: askingChart('one', 'more', 'two'), version: present })
    t.equal(textOf(taskIn(await life.runtime.sendMessage(say('x', { taskId }))).status.message), 'more')
  }
})

await t.test('a function replaces another of any version: it runs again', async t => {
  const life = lives(t, {
    work: async ({ step }) => {
      await step('one', () => 1)
      await new Promise(() => {})
    },
    version: '1'
  })
  const id = await upgraded(life, { work: async ({ step }) => ({ artifact: String(await step('one', () => 2)) }) })
  t.equal(textOf((await reaches(life.runtime, id, 'completed')).artifacts?.[0]), '1')
})

const box = (states: object, actors: Record<string, unknown> = {}) =>
  setupWork({ actors: { never, ...actors } }).createMachine({
    id: 'work',
    ...states
  } as never) as unknown as AnyStateMachine
const inner = (state: string) =>
  setup({ actors: { never } }).createMachine({
    id: 'inner',
    initial: state,
    states: { [state]: { invoke: { id: 'deep', src: 'never' } } }
  })
const region = (name: string) => ({ initial: name, states: { [name]: {} } })

const misfits: Record<
  string,
  [before: AnyStateMachine | WorkFunction, after: AnyStateMachine | WorkFunction | undefined, reason: string]
> = {
  'a state': [
    box({ initial: 'a', states: { a: {} } }),
    box({ initial: 'b', states: { b: {} } }),
    'the chart has no state work.a'
  ],
  'a state in a state': [
    box({ initial: 'a', states: { a: { initial: 'x', states: { x: {} } } } }),
    box({ initial: 'a', states: { a: { initial: 'y', states: { y: {} } } } }),
    'the chart has no state work.a.x'
  ],
  'a region': [
    box({ type: 'parallel', states: { a: region('x'), b: region('y') } }),
    box({ type: 'parallel', states: { a: region('x') } }),
    'the chart has no state work.b'
  ],
  'the logic of an actor': [
    box({ invoke: { id: 'it', src: 'other' } }, { other: never }),
    box({ invoke: { id: 'it', src: 'never' } }),
    'the chart has no logic other for the actor it'
  ],
  'the chart in a chart': [
    box({ invoke: { id: 'it', src: 'other' } }, { other: inner('x') }),
    box({ invoke: { id: 'it', src: 'other' } }, { other: never }),
    'the actor it was a statechart, and is none now'
  ],
  'the place of a callback, where a chart is now': [
    box({ invoke: { id: 'it', src: 'other' } }, { other: never }),
    box({ invoke: { id: 'it', src: 'other' } }, { other: inner('x') }),
    'the actor it was no statechart, and is one now'
  ],
  'a state of a chart in a chart': [
    box({ invoke: { id: 'it', src: 'other' } }, { other: inner('x') }),
    box({ invoke: { id: 'it', src: 'other' } }, { other: inner('y') }),
    'the chart has no state inner.x'
  ],
  'an actor that the state has come to invoke': [
    box({ initial: 'a', states: { a: {} } }),
    box({ initial: 'a', states: { a: { invoke: { id: 'it', src: 'never' } } } }),
    'the state work.a invokes an actor it, which was not there'
  ],
  'everything, for the state is the end now': [
    box({ initial: 'a', states: { a: {} } }),
    box({ initial: 'a', states: { a: { type: 'final' } } }),
    'the chart ends in the state work.a'
  ],
  'the state of its history': [
    box({
      initial: 'a',
      states: {
        a: { initial: 'x', states: { x: { always: 'y' }, y: {}, past: { type: 'history' } }, after: { 1: 'b' } },
        b: {}
      }
    }),
    box({ initial: 'a', states: { a: { initial: 'x', states: { x: {}, past: { type: 'history' } } }, b: {} } }),
    'the chart has no state work.a.y, to which its history leads'
  ],
  'the chart': [
    box({ initial: 'a', states: { a: {} } }),
    async () => ({}),
    'the work was a statechart, and is none now'
  ],
  'the function': [
    () => new Promise(() => {}),
    box({ initial: 'a', states: { a: {} } }),
    'the work was no statechart, and is one now'
  ],
  'its work': [box({ initial: 'a', states: { a: {} } }), undefined, 'the agent has no work']
}

await t.test('a task fails with the reason if the agent no longer supports it', async t => {
  for (const [what, [work, now, reason]] of Object.entries(misfits)) {
    await t.test(what, async t => {
      const life = lives(t, { work, version: '1' })
      const { id } = await open(life.runtime, 'go', { contextId: 'c' })
      await rest()
      await life.pass(1)
      const before = await life.told(id)
      const commits: string[] = []
      const { commit } = life.store
      Object.assign(life.store, {
        commit: (given: Parameters<typeof commit>[0]) => (
          commits.push(...given.tasks.map(({ state }) => state)),
          commit(given)
        )
      })
      await life.again({
        version: '2',
        ...(now ? { work: now } : { negotiate: () => ({ type: 'rejected', reason: 'no' }) as never })
      })
      t.strictSame(await life.told(id), [...before, `failed: ${cannot} ${reason}. ${ends}`])
      t.strictSame(commits, ['TASK_STATE_FAILED'], 'nothing else of it is written before')
      t.match(life.log, [{ level: 'error', message: 'the work of a task failed', details: { taskId: id } }])
    })
  }

  await t.test('which mentions an equal version, or a missing one', async t => {
    const life = lives(t, { work: askingChart('a'), version: '1' })
    const { id } = taskIn(await life.runtime.sendMessage(say('go')))
    await life.again({ work: askingChart('b'), version: '1' })
    t.equal(
      await endOf(life, id),
      `failed: ${cannot} the chart has no state work.a. It was stored under the same version, 1.`
    )

    const older = lives(t, { work: askingChart('a'), version: '1' })
    const { id: old } = taskIn(await older.runtime.sendMessage(say('go')))
    const { loadContext } = older.store
    Object.assign(older.store, {
      loadContext: async (key: Parameters<typeof loadContext>[0]) => withoutMembers(await loadContext(key))
    })
    await older.again({ work: askingChart('b'), version: '1' })
    t.equal(
      await endOf(older, old),
      `failed: ${cannot} the chart has no state work.a. It was stored by an agent without a version, and this is version 1.`
    )
  })
})

/** What an older taskchart stored: no format, no version. */
function withoutMembers(stored: Awaited<ReturnType<Lives['store']['loadContext']>>) {
  const bare = (text: string) => JSON.stringify({ ...JSON.parse(text), format: undefined, version: undefined })
  return (
    stored && {
      ...stored,
      snapshot: bare(stored.snapshot),
      tasks: stored.tasks.map(task => ({ ...task, snapshot: bare(String(task.snapshot)) }))
    }
  )
}

await t.test('migrate', async t => {
  const renamed = ({ snapshot }: StoredWork) => ({ ...snapshot, value: 'new' })

  await t.test('converts work of another version, which continues from the stored result', async t => {
    const given: StoredWork[] = []
    const migrate = (stored: StoredWork) => {
      given.push(structuredClone(stored))
      ;(stored.snapshot.context as { n?: number }).n = 5
      return renamed(stored)
    }
    const life = lives(t, { work: askingChart('old'), version: '1' })
    const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
    const points: string[] = []
    onKillPoint(point => void points.push(point))
    t.teardown(() => onKillPoint(undefined))
    await life.again({ work: askingChart('new', 'last'), version: '2', migrate })
    t.match(given, [{ version: '1', snapshot: { status: 'active', value: 'old', context: {}, children: {} } }])
    t.ok(points.includes('before migration'))
    await life.again()
    t.equal(given.length, 1, 'migrated work is stored under the present version')
    t.equal(textOf(taskIn(await life.runtime.sendMessage(say('x', { taskId }))).status.message), 'last')
    await life.again({
      work: askingChart('old'),
      version: '1',
      migrate: ({ snapshot }) => ({ ...snapshot, value: 'old' })
    })
    t.equal(
      stateName(taskIn(await life.runtime.sendMessage(say('x', { taskId }))).status.state),
      'completed',
      'and back'
    )
  })

  await t.test('is not called for the same version, nor for work that never started', async t => {
    const migrate = () => {
      throw new Error('never')
    }
    const life = lives(t, { work: askingChart('a'), version: '1', migrate })
    const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
    await life.again()
    t.equal(stateName(taskIn(await life.runtime.sendMessage(say('x', { taskId }))).status.state), 'completed')
    const { commit } = life.store
    let commits = 0
    Object.assign(life.store, {
      commit: (given: Parameters<typeof commit>[0]) => ((commits += 1) > 1 ? new Promise(() => {}) : commit(given))
    })
    const { id } = await open(life.runtime)
    await rest()
    Object.assign(life.store, { commit })
    await life.kill({ work: askingChart('b'), version: '2', migrate })
    t.equal(textOf((await reaches(life.runtime, id, 'input-required')).status.message), 'b')
  })

  await t.test('is called again if the process ends before its result is stored', async t => {
    let asked = 0
    const migrate = (stored: StoredWork) => {
      asked += 1
      return renamed(stored)
    }
    const life = lives(t, { work: askingChart('old'), version: '1' })
    const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
    onKillPoint(point => {
      if (point === 'before migration') life.die()
    })
    t.teardown(() => onKillPoint(undefined))
    await life.again({ work: askingChart('new'), version: '2', migrate })
    onKillPoint(undefined)
    await life.kill()
    await life.again()
    t.equal(asked, 2)
    t.equal(stateName(taskIn(await life.runtime.sendMessage(say('x', { taskId }))).status.state), 'completed')
  })

  await t.test('that throws or returns no snapshot fails only that task, with the reason', async t => {
    const from = 'The migration of this task from version 1 to version 2 failed:'
    const shape = `${from} migrate has to return a snapshot { status: 'active', value, context, children }.`
    const wrong: [name: string, migrate: (stored: StoredWork) => unknown, reason: string][] = [
      [
        'throws',
        () => {
          throw new Error('secret')
        },
        `${from} migrate threw an error.`
      ],
      [
        'cannot be stored',
        ({ snapshot }) => ({ ...snapshot, context: { n: 1n } }),
        `${from} what migrate returns.context.n is a BigInt, which JSON does not keep. Write a text: String(value).`
      ],
      ['nothing', () => undefined, shape],
      ['a text', () => 'new', shape],
      [
        'a promise',
        async stored => renamed(stored),
        `${from} what migrate returns is a Promise, which JSON does not keep. Write its result: await it first.`
      ],
      ['no state', ({ snapshot }) => ({ ...snapshot, value: undefined }), shape],
      ['no context', () => ({ status: 'active', value: 'new' }), shape],
      [
        'states that are none',
        ({ snapshot }) => ({ ...snapshot, value: { new: null } }),
        `${cannot} its stored work is not a statechart.`
      ],
      [
        'actors that are none',
        ({ snapshot }) => ({ ...snapshot, value: 'new', children: { it: null } }),
        `${cannot} its stored work is not a statechart.`
      ],
      [
        'half of a chart',
        ({ snapshot }) => ({
          ...snapshot,
          value: 'new',
          children: { it: { src: 'half', snapshot: { status: 'active', value: {} } } }
        }),
        'The work ended with an error.'
      ],
      ['its end', ({ snapshot }) => ({ ...snapshot, status: 'done', value: 'done' }), shape],
      [
        'a state that is none',
        ({ snapshot }) => ({ ...snapshot, value: 'newer' }),
        `${cannot} the chart has no state work.newer. ${ends}`
      ]
    ]
    for (const [name, migrate, reason] of wrong) {
      const life = lives(t, { work: askingChart('old', 'new'), version: '1' })
      const { id } = taskIn(await life.runtime.sendMessage(say('go', { contextId: 'c' })))
      const { id: other } = taskIn(await life.runtime.sendMessage(say('go', { contextId: 'c' })))
      await life.runtime.sendMessage(say('x', { taskId: other }))
      const half = setup({ actors: { never } }).createMachine({})
      await life.again({
        work: askingChart('new').provide({ actors: { half } }),
        version: '2',
        migrate: stored => (stored.snapshot.value === 'new' ? stored.snapshot : migrate(stored))
      })
      t.equal(await endOf(life, id), `failed: ${reason}`, name)
      t.equal(stateName(taskIn(await life.runtime.sendMessage(say('x', { taskId: other }))).status.state), 'completed')
    }
  })

  await t.test('may omit history and children, and may assign a version to older work', async t => {
    const life = lives(t, { work: askingChart('old'), version: '1' })
    const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
    const { loadContext } = life.store
    Object.assign(life.store, {
      loadContext: async (key: Parameters<typeof loadContext>[0]) => withoutMembers(await loadContext(key))
    })
    await life.again({
      work: askingChart('new'),
      version: '2',
      migrate: ({ version }) => (version === undefined ? { status: 'active', value: 'new', context: {} } : undefined)
    })
    t.equal(stateName(taskIn(await life.runtime.sendMessage(say('x', { taskId }))).status.state), 'completed')
    const wrong = lives(t, { work: askingChart('old'), version: '1' })
    const { id } = taskIn(await wrong.runtime.sendMessage(say('go')))
    const { loadContext: load } = wrong.store
    Object.assign(wrong.store, {
      loadContext: async (key: Parameters<typeof loadContext>[0]) => withoutMembers(await load(key))
    })
    await wrong.again({ work: askingChart('new'), version: '2', migrate: () => 1 })
    t.match(await endOf(wrong, id), /from no version to version 2 failed/)
  })
})

await t.test('a chart of another version', async t => {
  await t.test("updates its task's state if it now waits or not", async t => {
    const life = lives(t, { work: askingChart('a', 'b'), version: '1' })
    const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
    await life.again({
      version: '2',
      work: setupWork({}).createMachine({
        id: 'work',
        initial: 'a',
        states: { a: { after: { 1000: 'b' } }, b: { type: 'final' } }
      })
    })
    t.equal(await endOf(life, taskId), 'working')
    await life.again({ version: '3', work: askingChart('a') })
    t.equal(await endOf(life, taskId), 'input-required: a')
    t.equal(stateName(taskIn(await life.runtime.sendMessage(say('x', { taskId }))).status.state), 'completed')
  })

  await t.test('starts new timers, keeps equal ones and drops others', async t => {
    const chart = (after: Record<string, string>) =>
      setupWork({ delays: { long: ({ context }) => (context as { ms?: number }).ms ?? 0, short: 500 } }).createMachine({
        id: 'work',
        context: { ms: 5000 } as never,
        initial: 'a',
        on: { '*': '.wrong' } as never,
        states: {
          a: { after: after as never },
          b: { type: 'final' },
          c: { type: 'final', tags: 'failed', meta: { reason: 'c' } },
          wrong: { type: 'final', tags: 'failed', meta: { reason: 'wrong' } }
        }
      })
    for (const [before, now, passes, end] of [
      [{ 2000: 'b' }, { 2000: 'c' }, [999, 1], 'failed: c'],
      [{ 2000: 'b' }, { long: 'c' }, [4999, 1], 'failed: c'],
      [{ 2000: 'b' }, { short: 'c', 2000: 'b' }, [499, 1], 'failed: c'],
      [{}, { 3000: 'b' }, [2999, 1], 'completed']
    ] as [Record<string, string>, Record<string, string>, [number, number], string][]) {
      const life = lives(t, { work: chart(before), version: '1' })
      const { id } = await open(life.runtime)
      await rest()
      await life.pass(SECOND)
      await life.kill({ work: chart(now), version: '2' })
      await life.pass(passes[0])
      t.equal(await endOf(life, id), 'working', JSON.stringify([before, now]))
      await life.again()
      await life.pass(passes[1])
      t.equal(await endOf(life, id), end)
    }
  })

  await t.test('fires an overdue timer at once, and fails if the delay throws', async t => {
    for (const [delay, end] of [
      ['none', 'completed'],
      ['bad', 'failed: The work ended with an error.']
    ] as const) {
      const chart = (after: object) =>
        setupWork({
          delays: {
            none: 0,
            bad: () => {
              throw new Error('no time')
            }
          }
        }).createMachine({ id: 'work', initial: 'a', states: { a: { after }, b: { type: 'final' } } })
      const life = lives(t, { work: chart({}), version: '1' })
      const id = await upgraded(life, { work: chart({ [delay]: 'b' }) })
      await life.pass(0)
      t.equal(await endOf(life, id), end)
    }
  })

  await t.test('may contain charts that invoke inline logic', async t => {
    const inner = createMachine({ invoke: { src: never } })
    const life = lives(t, { work: box({ invoke: { id: 'it', src: 'inner' } }, { inner }), version: '1' })
    t.equal(
      await endOf(life, await upgraded(life, { work: box({ invoke: { id: 'it', src: 'inner' } }, { inner }) })),
      'working'
    )
  })

  await t.test('receives the delayed events that it sent itself before', async t => {
    const chart = (state: string) =>
      setupWork({ types: { events: {} as { type: 'ring' } } }).createMachine({
        id: 'work',
        initial: state,
        entry: sendTo(({ self }) => self, { type: 'ring' }, { delay: 2000 }),
        states: { [state]: { on: { ring: 'done' } }, done: { type: 'final' } }
      })
    const life = lives(t, { work: chart('a'), version: '1' })
    const id = await upgraded(life, { work: chart('b'), migrate: ({ snapshot }) => ({ ...snapshot, value: 'b' }) })
    await life.pass(2000)
    t.equal(await endOf(life, id), 'completed')
  })
})

await t.test('a context of a newer taskchart is not changed, and the error gives the reason', async t => {
  for (const of of ['context', 'task']) {
    const life = lives(t, { work: askingChart('a') })
    const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go', { contextId: 'c' })))
    const { loadContext, commit } = life.store
    const newer = (text: string) => JSON.stringify({ ...JSON.parse(text), format: 2 })
    Object.assign(life.store, {
      commit: () => t.fail('nothing is written'),
      loadContext: async (key: Parameters<typeof loadContext>[0]) => {
        const stored = await loadContext(key)
        return (
          stored && {
            ...stored,
            ...(of === 'context'
              ? { snapshot: newer(stored.snapshot) }
              : { tasks: stored.tasks.map(task => ({ ...task, snapshot: newer(String(task.snapshot)) })) })
          }
        )
      }
    })
    const runtime = await life.restart()
    t.match(await refusal(runtime.sendMessage(say('x', { taskId }))), {
      code: 'InternalError',
      message: /newer taskchart, in format 2, and this one knows formats up to 1.*Update taskchart/
    })
    t.equal(stateName((await runtime.getTask({ id: taskId })).status.state), 'input-required')
    Object.assign(life.store, { commit, loadContext })
    await life.restart()
    t.equal(stateName(taskIn(await life.runtime.sendMessage(say('x', { taskId }))).status.state), 'completed')
  }
})

await t.test('actors spawned without an id are not confused with those spawned after a restart', async t => {
  const heard: string[] = []
  const alive = new Set<string>()
  const bell = fromCallback<{ type: 'ring' }, { name: string }>(({ input: { name }, receive }) => {
    alive.add(name)
    receive(() => void heard.push(name))
    return () => void alive.delete(name)
  })
  const inner = setup({ actors: { bell }, types: {} }).createMachine({
    entry: spawnChild('bell', { input: { name: 'inner' } as never })
  })
  const work = setupWork({
    types: { context: {} as { bells: { send(event: { type: 'ring' }): void }[] } },
    actors: { bell, inner }
  }).createMachine({
    context: { bells: [] },
    initial: 'a',
    invoke: { id: 'inner', src: 'inner', input: (() => undefined) as never },
    states: {
      a: {
        tags: 'input-required',
        on: {
          'message.received': [
            {
              guard: ({ event }) => wordsOf(event.message) === 'ring',
              actions: ({ context }) => {
                for (const each of context.bells) each.send({ type: 'ring' })
              }
            },
            {
              actions: assign({
                bells: ({ context, spawn, event }) => [
                  ...context.bells,
                  spawn('bell', { input: { name: wordsOf(event.message) } })
                ]
              })
            }
          ]
        }
      }
    }
  })
  const life = lives(t, { work })
  const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go', { contextId: 'c' })))
  const send = (words: string) => life.runtime.sendMessage(say(words, { taskId }, { returnImmediately: true }))
  await send('one')
  await life.kill()
  for (const name of ['two', 'three', 'four', 'five', 'six']) await send(name)
  await until(() => alive.size === 7)
  await send('ring')
  await rest()
  t.strictSame(heard.toSorted(), ['five', 'four', 'one', 'six', 'three', 'two'])
})

await t.test('ids of restored actors are skipped, at any depth', async t => {
  let booked = 0
  const system = { _bookId: () => `x:${(booked += 1)}` }
  keepSpawnIdsApart(system as never, [
    {
      children: {
        work: {
          src: 'work',
          snapshot: {
            children: {
              'x:2': { src: 'a', snapshot: { children: { 'x:3': { src: 'b', snapshot: {} } } } },
              'x:y': { src: 'c', snapshot: {} }
            }
          }
        }
      }
    },
    {}
  ])
  t.strictSame([system._bookId(), system._bookId(), system._bookId()], ['x:1', 'x:4', 'x:5'])
})

await t.test('promise actors of a migrated task restart with their input', async t => {
  const gate = deferred()
  const inputs: unknown[] = []
  const paint = fromPromise<string, { what: string }>(async ({ input }) => {
    inputs.push(input)
    await gate.promise
    return input.what
  })
  const chart = (state: string) =>
    setupWork<{ picture?: string }, { paint: typeof paint }>({ actors: { paint } }).createMachine({
      id: 'work',
      context: {},
      initial: state,
      states: {
        [state]: {
          invoke: {
            id: 'painting',
            src: 'paint',
            input: { what: state },
            onDone: { target: 'done', actions: assign({ picture: ({ event }) => event.output }) }
          }
        },
        done: { type: 'final' }
      },
      output: ({ context }) => ({ artifact: context.picture ?? '' })
    })
  const life = lives(t, { work: chart('old'), version: '1' })
  const id = await upgraded(life, { work: chart('new'), migrate: ({ snapshot }) => ({ ...snapshot, value: 'new' }) })
  t.strictSame(inputs, [{ what: 'old' }, { what: 'old' }])
  gate.resolve()
  t.equal(textOf((await reaches(life.runtime, id, 'completed')).artifacts?.[0]), 'old')
})
