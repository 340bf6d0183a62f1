import t from 'tap'
import { assign, fromCallback, fromPromise, spawnChild, type AnyStateMachine } from 'xstate'
import { mayRestart, restartsAfter, type RestartPolicy } from '../../../machines/supervision.ts'
import { restartPolicy, type RestartOption } from '../../../runtime/agent/policies.ts'
import {
  artifact,
  defineAgent,
  failed,
  inputRequired,
  progress,
  setupWork,
  textOf as wordsOf,
  type WorkFunction
} from '../../../runtime/index.ts'
import { eventsOf, failOnLooseErrors, lives } from '../../fixtures/runtime/lives.ts'
import {
  brief,
  deferred,
  heldStore,
  open,
  reaches,
  rest,
  say,
  start,
  stateName,
  taskIn,
  textOf,
  until
} from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

const SECOND = 1000
const CRASH = 'The work ended with an error.'
const AGAIN = [`working: ${CRASH}`, 'working']

await t.test('the supervisor’s decision', async t => {
  await t.test('refuses temporary work, and restarts transient work up to its intensity within the period', t => {
    const policy = (type: RestartPolicy['type'], intensity: number, periodMs = 5000): RestartPolicy => ({
      type,
      intensity,
      periodMs
    })
    const table: [policy: RestartPolicy, atMs: number, restarts: number[], decision: boolean, after: number[]][] = [
      [policy('temporary', 9), 0, [], false, [0]],
      [policy('transient', 0), 0, [], false, [0]],
      [policy('transient', 1), 100, [], true, [100]],
      [policy('transient', 1), 100, [100], false, [100, 100]],
      [policy('transient', 1), 5099, [100], false, [100, 5099]],
      [policy('transient', 1), 5100, [100], true, [5100]],
      [policy('transient', 2), 5100, [100, 200], true, [200, 5100]],
      [policy('transient', 2), 5100, [101, 200], false, [101, 200, 5100]],
      [policy('transient', 1, Infinity), 1e12, [0], false, [0, 1e12]]
    ]
    for (const [given, atMs, restarts, decision, after] of table) {
      const crash = { atMs, policy: given }
      t.equal(mayRestart(crash, restarts), decision, JSON.stringify([given, atMs, restarts]))
      t.strictSame(restartsAfter(crash, restarts), after)
    }
    t.end()
  })

  await t.test('follows a policy that is checked when the agent is defined', t => {
    const policyOf = (restart?: RestartOption) =>
      defineAgent({ card: { name: 'A' }, work: () => {}, ...(restart && { restart }) }).restart
    t.strictSame(policyOf(), { type: 'temporary', intensity: 1, periodMs: 5000 })
    t.strictSame(policyOf('transient'), { type: 'transient', intensity: 1, periodMs: 5000 })
    t.strictSame(policyOf({ type: 'transient', intensity: 0 }), { type: 'transient', intensity: 0, periodMs: 5000 })
    t.strictSame(policyOf({ type: 'temporary', periodMs: 1 }), { type: 'temporary', intensity: 1, periodMs: 1 })
    t.throws(() => policyOf('permanent' as never), {
      name: 'TypeError',
      message: /'temporary' or 'transient'.*cannot be permanent/
    })
    for (const restart of ['always', {}, { type: 'never' }, { intensity: 1, type: undefined }] as never[]) {
      t.throws(() => policyOf(restart), { name: 'TypeError', message: /'temporary' or 'transient'/ })
    }
    for (const intensity of [-1, 0.5, NaN, Infinity, '1' as never])
      t.throws(() => policyOf({ type: 'transient', intensity }), { name: 'RangeError', message: /restart\.intensity/ })
    for (const periodMs of [0, -1, NaN])
      t.throws(() => policyOf({ type: 'transient', periodMs }), { name: 'RangeError', message: /restart\.periodMs/ })
    for (const cancelGraceMs of [-1, NaN])
      t.throws(() => defineAgent({ card: { name: 'A' }, work: () => {}, cancelGraceMs }), {
        name: 'RangeError',
        message: /cancelGraceMs/
      })
    t.end()
  })
})

/** Work that crashes each time that the test has it. */
function crashing() {
  const runs: { crash: () => void; end: () => void }[] = []
  const work: WorkFunction = async ({ emit }) => {
    const gate = deferred()
    runs.push({ crash: () => gate.reject(new Error('secret')), end: () => gate.resolve() })
    emit(progress('begun'))
    await gate.promise
    return { artifact: `run ${runs.length}` }
  }
  return { work, runs, run: (n: number) => until(() => runs[n - 1], `run ${n}`) }
}

await t.test('work that crashes', async t => {
  await t.test('fails its task at once if it is temporary, which is the default', async t => {
    for (const restart of [undefined, 'temporary'] as const) {
      const { work, runs, run } = crashing()
      const { runtime, log } = start(t, { work, ...(restart && { restart }) })
      const { id } = await open(runtime)
      ;(await run(1)).crash()
      const { status } = await reaches(runtime, id, 'failed')
      t.equal(textOf(status.message), CRASH)
      t.equal(runs.length, 1)
      t.match(log, [{ level: 'error', message: 'the work of a task failed', details: { taskId: id, error: /secret/ } }])
    }
  })

  await t.test('restarts if it is transient, and its task has a status with the reason', async t => {
    const { work, run } = crashing()
    const life = lives(t, { work, restart: 'transient' })
    const { id } = await open(life.runtime)
    ;(await run(1)).crash()
    ;(await run(2)).end()
    await reaches(life.runtime, id, 'completed')
    t.strictSame(await life.told(id), [
      'submitted',
      'working',
      'working: begun',
      ...AGAIN,
      'artifact: run 2',
      'completed'
    ])
    t.equal(life.log.length, 1)
  })

  await t.test('fails its task with the reason on one crash over its intensity within the period', async t => {
    const { work, runs, run } = crashing()
    const life = lives(t, { work, restart: { type: 'transient', intensity: 2, periodMs: 10 * SECOND } })
    const { id } = await open(life.runtime)
    for (const n of [1, 2]) {
      ;(await run(n)).crash()
      life.clock.increment(4999)
    }
    ;(await run(3)).crash()
    const { status } = await reaches(life.runtime, id, 'failed')
    t.equal(textOf(status.message), CRASH)
    t.strictSame(await life.told(id), [
      'submitted',
      'working',
      'working: begun',
      ...AGAIN,
      ...AGAIN,
      `failed: ${CRASH}`
    ])
    t.equal(runs.length, 3)
    t.equal(life.log.length, 3)
  })

  await t.test('has a new count after the period', async t => {
    const { work, run } = crashing()
    const { runtime, clock } = start(t, { work, restart: 'transient' })
    const { id } = await open(runtime)
    for (const n of [1, 2, 3, 4]) {
      ;(await run(n)).crash()
      await run(n + 1)
      clock.increment(5 * SECOND)
    }
    ;(await run(5)).crash()
    const last = await run(6)
    clock.increment(5 * SECOND - 1)
    last.crash()
    await reaches(runtime, id, 'failed')
  })

  await t.test('keeps its count over a restore', async t => {
    const { work, runs, run } = crashing()
    const life = lives(t, { work, restart: { type: 'transient', intensity: 1, periodMs: 60 * SECOND } })
    const { id } = await open(life.runtime)
    ;(await run(1)).crash()
    await run(2)
    await life.again()
    ;(await run(3)).crash()
    await reaches(life.runtime, id, 'failed')
    t.equal(runs.length, 3)
    t.strictSame(await life.told(id), ['submitted', 'working', 'working: begun', ...AGAIN, `failed: ${CRASH}`])
  })

  await t.test('is restarted although the process ended before', async t => {
    const { work, run } = crashing()
    const life = lives(t, { work, restart: 'transient' }, {})
    const { id } = await open(life.runtime)
    const first = await run(1)
    // The restart is asked for with the commit of the crash, and begins after it: nothing lies between but the end of
    // the process.
    first.crash()
    await Promise.resolve()
    await life.again()
    ;(await run(2)).end()
    await reaches(life.runtime, id, 'completed')
    t.ok((await life.told(id)).includes('completed'))
  })

  await t.test('repeats no message, reuses its answers and results, and restarts another artifact', async t => {
    let runs = 0
    let steps = 0
    const life = lives(t, {
      work: async function* ({ step, sleep }) {
        runs += 1
        yield progress('looking')
        yield artifact({ artifactId: 'a', parts: [{ text: `try ${runs}` }] })
        const day = wordsOf(yield* inputRequired('Which day?'))
        const booked = await step('book', () => (steps += 1))
        await sleep(1000)
        if (runs === 1) throw new Error('secret')
        return { artifact: `${day} ${booked}` }
      },
      restart: 'transient'
    })
    const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
    await life.runtime.sendMessage(say('Monday', { taskId }, { returnImmediately: true }))
    await rest()
    life.clock.increment(1000)
    await until(() => runs === 2)
    await rest()
    life.clock.increment(0)
    t.strictSame((await reaches(life.runtime, taskId, 'completed')).artifacts?.map(textOf), ['try 2', 'Monday 1'])
    t.equal(steps, 1)
    t.strictSame(await life.told(taskId), [
      'submitted',
      'working',
      'working: looking',
      'artifact: try 1',
      'input-required: Which day?',
      'working',
      ...AGAIN,
      'artifact: try 2',
      'artifact: Monday 1',
      'completed'
    ])
  })

  await t.test('while its question is open asks it again, and accepts the answer', async t => {
    let runs = 0
    const gate = deferred()
    const life = lives(t, {
      work: async ({ ask }) => {
        runs += 1
        const answer = ask(inputRequired('Sure?', { deadlineMs: 60 * SECOND }))
        if (runs === 1) await Promise.race([answer, gate.promise])
        return { artifact: wordsOf(await answer) }
      },
      restart: 'transient'
    })
    const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
    life.clock.increment(10 * SECOND)
    gate.reject(new Error('secret'))
    await until(() => runs === 2)
    await reaches(life.runtime, taskId, 'input-required')
    t.strictSame(await life.told(taskId), [
      'submitted',
      'working',
      'input-required: Sure?',
      ...AGAIN,
      'input-required: Sure?'
    ])
    await life.again()
    t.equal((await life.told(taskId)).length, 6, 'it does not ask again after a restore with the answer')
    t.equal(textOf(taskIn(await life.runtime.sendMessage(say('yes', { taskId }))).artifacts?.[0]), 'yes')
    life.clock.increment(60 * SECOND)
    await rest()
    t.equal(life.clock.pending, 0)
  })

  await t.test("while its question is open keeps the question's remaining time", async t => {
    const gate = deferred()
    let runs = 0
    const life = lives(t, {
      work: async ({ ask }) => {
        runs += 1
        const answer = ask(inputRequired('Sure?', { deadlineMs: 60 * SECOND }))
        if (runs === 1) await Promise.race([answer, gate.promise])
        await answer.catch(() => {})
        return failed('too late')
      },
      restart: 'transient'
    })
    const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
    life.clock.increment(50 * SECOND)
    gate.reject(new Error('secret'))
    await until(() => runs === 2)
    await reaches(life.runtime, taskId, 'input-required')
    life.clock.increment(10 * SECOND)
    t.equal(textOf((await reaches(life.runtime, taskId, 'failed')).status.message), 'too late')
  })

  await t.test('restarts alone: its siblings and other contexts continue', async t => {
    const { runtime } = start(t, {
      work: async function* ({ message }) {
        if (wordsOf(message).startsWith('bad')) throw new Error('secret')
        return { artifact: wordsOf(yield* inputRequired('?')) }
      },
      restart: { type: 'transient', intensity: 3, periodMs: 1000 }
    })
    const good = taskIn(await runtime.sendMessage(say('good', { contextId: 'c' })))
    const states = await Promise.all(
      ['bad 1', 'bad 2'].map(async word =>
        stateName(taskIn(await runtime.sendMessage(say(word, { contextId: 'c' }))).status.state)
      )
    )
    t.strictSame(states, ['failed', 'failed'])
    t.strictSame(await runtime.getTask({ id: good.id }), good)
    t.equal(textOf(taskIn(await runtime.sendMessage(say('yes', { taskId: good.id }))).artifacts?.[0]), 'yes')
    t.equal(
      stateName(taskIn(await runtime.sendMessage(say('more', { contextId: 'c' }))).status.state),
      'input-required'
    )
  })

  await t.test('may be canceled between its crash and its restart', async t => {
    const store = heldStore()
    const { work, runs, run } = crashing()
    const { runtime } = start(t, { work, restart: 'transient' }, { store })
    const { id } = await open(runtime)
    const first = await run(1)
    await rest()
    store.hold()
    first.crash()
    await until(() => store.held.length === 1)
    const canceling = runtime.cancelTask({ id })
    await until(() => store.held.length === 2)
    await store.passAll()
    t.equal((await canceling).status.state, 'TASK_STATE_CANCELED')
    await rest()
    t.equal(runs.length, 1)
  })
})

await t.test('a chart that crashes', async t => {
  /** What lives and has lived of the chart's actors. */
  function actors() {
    const alive = new Set<string>()
    let count = 0
    const named = (name: string) =>
      fromCallback(() => {
        const mine = `${name} ${(count += 1)}`
        alive.add(mine)
        return () => void alive.delete(mine)
      })
    return { alive, named, count: () => count }
  }

  const bad = (): never => {
    throw new Error('secret')
  }
  type Actors = ReturnType<typeof actors>

  /** A chart with an actor, and one in its actor; on a message it crashes in the way that is named. */
  const charts: Record<string, (given: Actors) => AnyStateMachine> = {
    'a guard that throws': given =>
      machine(given).createMachine({
        ...base,
        states: { waiting: { ...waiting, on: { 'message.received': { guard: 'bad', target: 'after' } } }, after: {} }
      }),
    'an assignment that throws': given =>
      machine(given).createMachine({
        ...base,
        states: {
          waiting: {
            ...waiting,
            on: { 'message.received': { actions: [spawnChild('late'), assign(bad)], target: 'after' } }
          },
          after: {}
        }
      }),
    'an assignment that throws on the way into a state with an actor': given =>
      machine(given).createMachine({
        ...base,
        states: {
          waiting: { ...waiting, on: { 'message.received': 'after' } },
          after: { invoke: { src: 'late' }, always: 'broken' },
          broken: { entry: assign(bad) }
        }
      }),
    'an action of its own that throws': given =>
      machine(given).createMachine({
        ...base,
        states: {
          waiting: { ...waiting, on: { 'message.received': { actions: 'bad', target: 'after' } } },
          after: { invoke: { src: 'late' } }
        }
      }),
    'an actor whose error nobody handles': given =>
      machine(given).createMachine({
        ...base,
        states: {
          waiting: { ...waiting, on: { 'message.received': 'after' } },
          after: { invoke: [{ src: 'late' }, { src: 'failing' }] }
        }
      }),
    'an actor that is a chart and throws': given =>
      machine(given).createMachine({
        ...base,
        states: {
          waiting: { ...waiting, on: { 'message.received': 'after' } },
          after: { invoke: { src: 'nested', input: () => ({}) as never } }
        }
      }),
    'an actor that is a chart with an error that nobody handles': given =>
      machine(given).createMachine({
        ...base,
        states: {
          waiting: { ...waiting, on: { 'message.received': 'after' } },
          after: { invoke: { src: 'nestedFailing', input: () => ({}) as never } }
        }
      }),
    'an actor that is a chart and cannot begin': given =>
      machine(given).createMachine({
        ...base,
        states: {
          waiting: { ...waiting, on: { 'message.received': 'after' } },
          after: { invoke: { src: 'unborn', input: () => ({}) as never } }
        }
      })
  }
  const base = { initial: 'waiting' } as const
  const waiting = {
    tags: ['input-required'] as const,
    invoke: [{ src: 'watch' as const }, { src: 'inner' as const, input: () => ({}) as never }]
  }

  function machine({ named }: Actors) {
    const watch = named('watch')
    const inner = setupWork({ actors: { watch: named('inner watch') } }).createMachine({ invoke: { src: 'watch' } })
    const nested = setupWork({ actors: { watch: named('nested watch'), late: named('nested late') } }).createMachine({
      invoke: { src: 'watch' },
      initial: 'a',
      states: { a: { after: { 10: 'b' } }, b: { invoke: { src: 'late' }, always: 'c' }, c: { entry: assign(bad) } }
    })
    const nestedFailing = setupWork({
      actors: { watch: named('nested watch'), failing: fromPromise(async () => bad()) }
    }).createMachine({ invoke: [{ src: 'watch' }, { src: 'failing' }] })
    const unborn = setupWork({ actors: { watch: named('unborn watch') } }).createMachine({
      entry: [spawnChild('watch'), assign(bad)]
    })
    return setupWork({
      actors: {
        watch,
        inner,
        late: named('late'),
        failing: fromPromise(async () => bad()),
        nested,
        nestedFailing,
        unborn
      },
      actions: { bad },
      guards: { bad }
    })
  }

  for (const [how, chart] of Object.entries(charts)) {
    await t.test(`by ${how} restarts from its beginning, then fails its task, and leaves no actors`, async t => {
      const given = actors()
      const life = lives(t, { work: chart(given), restart: 'transient' })
      const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
      await until(() => given.alive.size === 2)
      const crash = async () => {
        await life.runtime.sendMessage(say('now', { taskId }, { returnImmediately: true })).catch(() => {})
        await rest()
        life.clock.increment(10)
        await rest()
      }
      await crash()
      await reaches(life.runtime, taskId, 'input-required')
      await until(() => given.alive.size === 2)
      t.strictSame(
        [...given.alive].map(name => name.replace(/ \d+$/, '')).toSorted(),
        ['inner watch', 'watch'],
        'those of the new chart alone'
      )
      await crash()
      t.equal(textOf((await reaches(life.runtime, taskId, 'failed')).status.message), CRASH)
      await rest()
      t.strictSame([...given.alive], [])
      const told = await life.told(taskId)
      t.strictSame(
        told.filter(word => word !== 'working'),
        [
          'submitted',
          'input-required: The agent needs an answer to go on.',
          `working: ${CRASH}`,
          'input-required: The agent needs an answer to go on.',
          `failed: ${CRASH}`
        ]
      )
      t.equal(life.log.filter(({ message }) => message === 'the work of a task failed').length, 2)
    })
  }

  await t.test('in its first state restarts, then fails its task, and starts none of its actors', async t => {
    const given = actors()
    const firsts: ((chart: ReturnType<typeof machine>) => AnyStateMachine)[] = [
      chart =>
        chart.createMachine({
          invoke: { src: 'watch' },
          initial: 'a',
          states: {
            a: { invoke: { src: 'inner', input: () => ({}) as never }, entry: [spawnChild('late'), assign(bad)] }
          }
        }),
      chart =>
        chart.createMachine({
          entry: spawnChild('late'),
          initial: 'a',
          states: { a: { invoke: { src: 'watch' }, always: { guard: 'bad', target: 'b' } }, b: {} }
        }),
      chart => chart.createMachine({ context: bad as never, invoke: { src: 'watch' } })
    ]
    for (const first of firsts) {
      const life = lives(t, { work: first(machine(given)), restart: 'transient' })
      const { id } = taskIn(await life.runtime.sendMessage(say('go')))
      await rest()
      t.strictSame(await life.told(id), ['submitted', 'working', ...AGAIN, `failed: ${CRASH}`])
      t.equal(given.count(), 0)
    }
  })

  await t.test('emits nothing in the failing step, and performs none of its actions', async t => {
    const seen: string[] = []
    const work = setupWork({ actions: { note: () => void seen.push('done') } }).createMachine({
      initial: 'asking',
      states: {
        asking: { tags: 'input-required', on: { 'message.received': { actions: ['note', assign(bad)], target: 'b' } } },
        b: {}
      }
    })
    const life = lives(t, { work })
    const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
    await life.runtime.sendMessage(say('now', { taskId }))
    await reaches(life.runtime, taskId, 'failed')
    t.strictSame(seen, [])
  })

  await t.test('restarts alone: its siblings in the same context continue', async t => {
    const work = setupWork({
      guards: { bad: ({ event }) => (wordsOf(event.message) === 'bad' ? bad() : true) }
    }).createMachine({
      initial: 'asking',
      states: {
        asking: { tags: 'input-required', on: { 'message.received': { guard: 'bad', target: 'done' } } },
        done: { type: 'final' }
      }
    })
    const { runtime } = start(t, { work })
    const [one, other] = [
      taskIn(await runtime.sendMessage(say('1', { contextId: 'c' }))),
      taskIn(await runtime.sendMessage(say('2', { contextId: 'c' })))
    ]
    await runtime.sendMessage(say('bad', { taskId: one.id }))
    await reaches(runtime, one.id, 'failed')
    t.equal(stateName(taskIn(await runtime.sendMessage(say('good', { taskId: other.id }))).status.state), 'completed')
  })
})

await t.test("a restarted task's events have no gap, and each run numbers its own", async t => {
  let runs = 0
  const life = lives(t, {
    work: async ({ emit }) => {
      runs += 1
      for (let word = 1; word <= runs; word += 1) emit(progress(`${word}`))
      if (runs < 3) throw new Error('secret')
    },
    restart: { type: 'transient', intensity: 5 }
  })
  const { id } = taskIn(await life.runtime.sendMessage(say('go')))
  t.strictSame(await life.told(id), [
    'submitted',
    'working',
    'working: 1',
    ...AGAIN,
    'working: 2',
    ...AGAIN,
    'working: 3',
    'completed'
  ])
  t.strictSame(
    (await eventsOf(life.store, id)).flatMap(({ ordinal }) => ordinal ?? []),
    [1, 2, 3]
  )
  t.equal(brief((await eventsOf(life.store, id)).at(-1)?.update ?? { message: say('').message }), 'completed')
})

await t.test('work is restarted only if its author says so', async t => {
  t.strictSame(restartPolicy(), { type: 'temporary', intensity: 1, periodMs: 5000 })
  t.strictSame(restartPolicy('temporary'), restartPolicy())
})

await t.test('a type alone means once within 5 seconds, and other values override it', async t => {
  t.strictSame(restartPolicy('transient'), { type: 'transient', intensity: 1, periodMs: 5000 })
  t.strictSame(restartPolicy({ type: 'transient' }), restartPolicy('transient'))
  t.strictSame(restartPolicy({ type: 'transient', intensity: 3 }), { type: 'transient', intensity: 3, periodMs: 5000 })
  t.strictSame(restartPolicy({ type: 'transient', periodMs: 0.5 }), { type: 'transient', intensity: 1, periodMs: 0.5 })
  t.strictSame(restartPolicy({ type: 'temporary', intensity: 0, periodMs: Infinity }), {
    type: 'temporary',
    intensity: 0,
    periodMs: Infinity
  })
})

await t.test('an unknown type is refused with what to write, and why work is not permanent', async t => {
  const says = "restart has to be 'temporary' or 'transient', or { type, intensity, periodMs }."
  for (const wrong of [
    '',
    'Transient',
    'always',
    null,
    3,
    true,
    [],
    {},
    { intensity: 3 },
    { type: undefined },
    { type: 'never' }
  ]) {
    t.throws(() => restartPolicy(wrong as never), { name: 'TypeError', message: says }, JSON.stringify(wrong))
  }
  for (const wrong of ['permanent', { type: 'permanent' }]) {
    t.throws(() => restartPolicy(wrong as never), {
      name: 'TypeError',
      message: `${says} A task has an end, so its work cannot be permanent.`
    })
  }
})

await t.test('an intensity that is no whole number from 0 is refused, also for temporary work', async t => {
  for (const type of ['temporary', 'transient']) {
    for (const wrong of [-1, 0.5, NaN, Infinity, '1', null, undefined]) {
      t.throws(() => restartPolicy({ type, intensity: wrong } as never), {
        name: 'RangeError',
        message: `restart.intensity has to be a whole number from 0, not ${String(wrong)}.`
      })
    }
  }
})

await t.test('a period that is not above 0 is refused', async t => {
  for (const wrong of [0, -1, NaN, -Infinity, '5000', null, undefined]) {
    t.throws(() => restartPolicy({ type: 'transient', periodMs: wrong } as never), {
      name: 'RangeError',
      message: `restart.periodMs has to be milliseconds above 0, not ${String(wrong)}.`
    })
  }
})
