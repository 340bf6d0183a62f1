import t, { type Test } from 'tap'
import { assign, fromCallback, raise, type AnyStateMachine } from 'xstate'
import { z } from 'zod'
import { RecoveryQueue } from '../../../runtime/contexts/recovery-queue.ts'
import {
  artifact,
  defineAgent,
  fromPromise,
  inputRequired,
  progress,
  setupWork,
  textOf as wordsOf,
  type WorkFunction
} from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { anyone, eventsOf, failOnLooseErrors, lives, type Lives } from '../../fixtures/runtime/lives.ts'
import {
  deferred,
  open,
  reaches,
  rest,
  say,
  stateName,
  taskIn,
  textOf,
  until
} from '../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

failOnLooseErrors(t)

const SECOND = 1000
const DAY = 24 * 3600 * SECOND
const reason = (ends: number) =>
  `The process ended ${ends} times while this task was working, without progress in between.`

/** Kills the process and has it begin again, until suspects have had their turn. */
async function killed(life: Lives, times = 1): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    await life.kill()
    await life.pass(SECOND)
  }
}

const textOfTask = async (life: Lives, id: string) => textOf((await life.runtime.getTask({ id })).status.message)
const stateOf = async (life: Lives, id: string) => stateName((await life.runtime.getTask({ id })).status.state)

await t.test('the agent decides what happens to work that was running', async t => {
  const chart = setupWork({}).createMachine({})
  const card = { name: 'A' }
  t.equal(defineAgent({ card, work: chart }).recovery, 'resume')
  t.equal(defineAgent({ card, work: () => {} }).recovery, 'rerun')
  t.equal(defineAgent({ card, work: chart, recovery: 'fail' }).recovery, 'fail')
  t.equal(defineAgent(defineAgent({ card, work: chart })).recovery, 'resume', 'also if it is defined again')
  t.throws(() => defineAgent({ card, work: () => {}, recovery: 'resume' }), {
    name: 'TypeError',
    message: /needs work as a statechart.*'rerun'.*step/
  })
  t.throws(() => defineAgent({ card, work: chart, recovery: 'rerun' }), {
    name: 'TypeError',
    message: /is for functions.*'resume' or 'fail'/
  })
  t.throws(() => defineAgent({ card, work: chart, recovery: 'again' as never }), {
    name: 'TypeError',
    message: "recovery has to be 'resume', 'rerun' or 'fail', not again."
  })
})

/** Work that takes its process with it before it does anything, in every form. */
const poisons: Record<string, (run: () => void) => Parameters<typeof lives>[1]> = {
  'a function': run => ({ work: async () => (run(), new Promise(() => {})) }),
  'a function in a step': run => ({
    work: async ({ step }) => void (await step('die', () => (run(), new Promise(() => {}))))
  }),
  'a generator after its words': run => ({
    work: async function* () {
      yield progress('here')
      run()
      await new Promise(() => {})
    }
  }),
  'a promise of a chart': run => ({
    work: setupWork({ actors: { die: fromPromise(() => (run(), new Promise(() => {}))) } }).createMachine({
      invoke: { src: 'die' }
    })
  }),
  'a callback below a chart below a chart': run => {
    const inner = setupWork({
      actors: {
        die: fromCallback(() => {
          run()
        })
      }
    }).createMachine({ invoke: { src: 'die' } })
    return {
      work: setupWork({ actors: { inner } }).createMachine({
        initial: 'a',
        states: { a: { invoke: { src: 'inner', input: () => ({}) as never } } }
      })
    }
  }
}

await t.test('work that makes no progress before its process ends', async t => {
  for (const [form, poison] of Object.entries(poisons)) {
    await t.test(`as ${form} is restarted five times, and then fails with the reason`, async t => {
      let runs = 0
      const life = lives(
        t,
        poison(() => (runs += 1))
      )
      const { id } = await open(life.runtime)
      await rest()
      for (let recovered = 1; recovered <= 5; recovered += 1) {
        await killed(life)
        t.equal(runs, recovered + 1)
        t.equal(await stateOf(life, id), 'working')
      }
      const before = await life.told(id)
      await killed(life)
      t.equal(runs, 6)
      t.strictSame(await life.told(id), [...before, `failed: ${reason(6)}`])
      t.strictSame(life.log, [])
    })
  }

  await t.test('fails sooner with a lower limit of the runtime', async t => {
    let runs = 0
    const life = lives(
      t,
      { work: async () => ((runs += 1), new Promise(() => {})) },
      { limits: { advanced: { recoveries: 1 } } }
    )
    const { id } = await open(life.runtime)
    await killed(life, 2)
    t.equal(await textOfTask(life, id), reason(2))
    t.equal(runs, 2)
  })

  await t.test('fails also if it never started', async t => {
    // What the chart does in its first step it does before its task is working: the process is gone before that is
    // stored.
    const begun: number[] = []
    const life: Lives = lives(t, {
      work: setupWork({}).createMachine({
        context: () => {
          begun.push(begun.length)
          life.die()
          return {} as never
        }
      })
    })
    const { id } = await open(life.runtime)
    await rest()
    await killed(life, 5)
    t.strictSame(await life.told(id), ['submitted'])
    await killed(life)
    t.strictSame(await life.told(id), ['submitted', `failed: ${reason(6)}`])
    t.equal(begun.length, 6)
  })

  await t.test('blocks no others: its siblings and other contexts continue', async t => {
    const runs: string[] = []
    const gate = deferred()
    let life: Lives | undefined
    const work: WorkFunction = async ({ message }) => {
      const name = wordsOf(message)
      runs.push(name)
      await gate.promise
      return { artifact: name }
    }
    life = lives(t, { work })
    const ids = new Map<string, string>()
    for (const name of ['a', 'b', 'bad', 'c', 'd']) {
      ids.set(name, (await open(life.runtime, name, { contextId: name < 'c' ? 'c1' : 'c2' })).id)
      await rest()
    }
    t.strictSame(runs.splice(0), ['a', 'b', 'bad', 'c', 'd'])
    for (let lived = 0; lived < 20 && (await stateOf(life, ids.get('bad') ?? '')) === 'working'; lived += 1) {
      runs.length = 0
      await life.kill()
      // Time goes by until the bad one runs, which ends the process at once.
      for (let seconds = 0; seconds < 10 && !runs.includes('bad'); seconds += 1) await life.pass(SECOND)
    }
    t.equal(await textOfTask(life, ids.get('bad') ?? ''), reason(6))
    await life.pass(10 * SECOND)
    gate.resolve()
    for (const name of ['a', 'b', 'c', 'd'])
      t.equal(textOf((await reaches(life.runtime, ids.get(name) ?? '', 'completed')).artifacts?.[0]), name)
  })
})

/** Charts that end their process by what a timer of theirs runs, not by an actor. */
const timed: Record<string, (end: () => void) => AnyStateMachine> = {
  'a guard of an `after`': end =>
    setupWork({}).createMachine({
      initial: 'a',
      states: { a: { after: { 700: { target: 'b', guard: () => (end(), true) } } }, b: {} }
    }),
  'an assignment on the way': end =>
    setupWork({}).createMachine({
      initial: 'a',
      states: { a: { after: { 700: { target: 'b', actions: assign(() => (end(), {})) } } }, b: {} }
    }),
  'an action of a state that it enters again': end =>
    setupWork({}).createMachine({
      initial: 'a',
      states: { a: { after: { 700: { target: 'a', reenter: true, actions: end } } } }
    }),
  'an action of one of two states in turn': end =>
    setupWork({}).createMachine({
      initial: 'a',
      states: { a: { after: { 700: 'b' } }, b: { entry: end, after: { 700: 'a' } } }
    }),
  'what a delayed event leads to': end =>
    setupWork({ types: { events: {} as { type: 'ring' } } }).createMachine({
      entry: raise({ type: 'ring' }, { delay: 700 }),
      initial: 'a',
      states: {
        a: { always: { guard: ({ event }) => event.type === 'ring' && (end(), true), target: 'b' }, on: { ring: {} } },
        b: {}
      }
    }),
  'a timer of a chart below it': end =>
    setupWork({ actors: { inner: timed['a guard of an `after`']?.(end) as AnyStateMachine } }).createMachine({
      invoke: { src: 'inner', input: () => ({}) as never }
    }),
  'a timer while it waits for its client': end =>
    setupWork({}).createMachine({
      initial: 'a',
      states: {
        a: {
          tags: 'input-required',
          after: { 700: { target: 'b', guard: () => (end(), true) } },
          on: { 'message.received': 'b' }
        },
        b: {}
      }
    })
}

await t.test('a chart that ends its process', async t => {
  for (const [way, chart] of Object.entries(timed)) {
    await t.test(`by ${way} is restarted five times, and then fails with the reason`, async t => {
      let ends = 0
      let isOver = false
      // The runtime that died goes on in this process until it is closed.
      const life: Lives = lives(t, {
        work: chart(() => {
          if (!isOver) ends += 1
          isOver = true
          life.die()
        })
      })
      const { id } = await open(life.runtime)
      for (let lived = 1; lived <= 6; lived += 1) {
        for (let seconds = 0; seconds < 3; seconds += 1) await life.pass(SECOND)
        t.equal(ends, lived)
        isOver = false
        await life.kill()
      }
      for (let seconds = 0; seconds < 3; seconds += 1) await life.pass(SECOND)
      t.equal(ends, 6)
      t.equal(await textOfTask(life, id), reason(6))
      t.strictSame(life.log, [])
    })
  }
})

await t.test("a delayed event that is due at the start waits for its task's stored recovery", async t => {
  const rung: string[] = []
  const work = setupWork({}).createMachine({
    initial: 'a',
    states: { a: { after: { 500: 'b' } }, b: { entry: () => void rung.push('b'), type: 'final' } }
  })
  const inner = memoryStore()
  let disk: 'writes' | 'loses' | 'is silent' = 'writes'
  const life = lives(
    t,
    { work },
    {
      store: {
        ...inner,
        commit: async commit => {
          const written = disk === 'loses' || (await inner.commit(commit))
          return disk === 'writes' ? written : new Promise(() => {})
        }
      }
    }
  )
  const { id } = await open(life.runtime)
  life.die()
  await life.pass(500)
  for (disk of ['loses', 'is silent'] as const) {
    await life.kill()
    await life.pass(SECOND)
    t.strictSame(rung, [], `the disk ${disk}`)
  }
  disk = 'writes'
  await killed(life)
  await reaches(life.runtime, id, 'completed')
  await rest()
  t.strictSame(rung, ['b'])
})

await t.test('a chart with a timer whose process is killed', async t => {
  const chart = (delay: number) =>
    setupWork({}).createMachine({ initial: 'a', states: { a: { after: { [delay]: { target: 'a', reenter: true } } } } })
  await t.test('before the timer is due is not counted', async t => {
    const life = lives(t, { work: chart(DAY) }, { limits: { advanced: { recoveries: 1 } } })
    const { id } = await open(life.runtime)
    await killed(life, 5)
    t.equal(await stateOf(life, id), 'working')
  })

  await t.test('and that is canceled before its recovery does not receive the event', async t => {
    const life = lives(t, { work: chart(500) })
    const { id } = await open(life.runtime)
    for (let lived = 0; lived < 2; lived += 1) {
      life.die()
      await life.pass(SECOND)
      await life.kill()
    }
    await life.pass(0)
    t.equal(stateName((await life.runtime.cancelTask({ id })).status.state), 'canceled')
    await life.pass(2 * SECOND)
    t.strictSame(await life.told(id), ['submitted', 'working', 'canceled'])
    t.equal(life.clock.pending, 0)
    t.strictSame(life.log, [])
  })

  await t.test('continues under `recovery: fail`, since nothing was running', async t => {
    const life = lives(t, { work: chart(500), recovery: 'fail' })
    const { id } = await open(life.runtime)
    life.die()
    await life.pass(SECOND)
    await killed(life)
    t.equal(await stateOf(life, id), 'working')
  })
})

await t.test('work that makes progress between process ends continues forever', async t => {
  const turns: (() => void)[] = []
  const turn = () => new Promise<void>(resolve => turns.push(resolve))
  const forms: Record<string, Parameters<typeof lives>[1]> = {
    'by its words': {
      work: async function* () {
        for (;;) {
          yield progress('on')
          await turn()
          yield artifact('x')
          await turn()
        }
      }
    },
    'by its steps': {
      work: async ({ step }) => {
        for (let n = 0; ; n += 1) await step(`step ${n}`, turn)
      }
    },
    'by its states': {
      work: setupWork({
        types: { context: {} as { n: number } },
        actors: { pass: fromCallback(({ sendBack }) => void turn().then(() => sendBack({ type: 'on' }))) },
        delays: { soon: 1 }
      }).createMachine({
        context: { n: 0 },
        initial: 'a',
        states: {
          a: { invoke: { src: 'pass' }, on: { '*': 'b' } },
          b: { invoke: { src: 'pass' }, after: { soon: 'a' } }
        }
      })
    }
  }
  for (const [form, definition] of Object.entries(forms)) {
    await t.test(form, async t => {
      const life = lives(t, definition, { limits: { eventsPerTask: 100_000, advanced: { recoveries: 2 } } })
      const { id } = await open(life.runtime, 'go', { contextId: 'c' })
      for (let lived = 0; lived < 8; lived += 1) {
        const rows = async () => {
          const stored = await life.store.loadContext({ ...anyone, contextId: 'c' })
          const { children } = JSON.parse(stored?.tasks[0]?.snapshot ?? '{}') as { children?: unknown }
          return JSON.stringify([
            (await eventsOf(life.store, id)).length,
            await life.store.readJournal(anyone, id),
            children
          ])
        }
        const before = await rows()
        await killed(life)
        await until(async () => {
          for (const go of turns.splice(0)) go()
          await life.pass(1)
          return (await rows()) !== before
        })
      }
      t.equal(await stateOf(life, id), 'working')
    })
  }
})

await t.test('process ends', async t => {
  const waiting = (runs: { n: number }): Parameters<typeof lives>[1] => ({
    work: async () => ((runs.n += 1), new Promise(() => {}))
  })

  await t.test('by a regular shutdown are not counted', async t => {
    const runs = { n: 0 }
    const life = lives(t, waiting(runs), { limits: { advanced: { recoveries: 2 } } })
    const { id } = await open(life.runtime)
    await rest()
    for (let lived = 0; lived < 6; lived += 1) {
      await life.restart()
      await life.pass(SECOND)
    }
    t.equal(runs.n, 7)
    await killed(life)
    t.equal(await stateOf(life, id), 'working')
    await killed(life)
    t.equal(await textOfTask(life, id), reason(3))
  })

  await t.test(
    'that come twice in a row delay no work, and after the third all of it continues as it makes progress',
    async t => {
      const runs: string[] = []
      const gates = new Map<string, () => void>()
      const life = lives(t, {
        work: async ({ message, step }) => {
          const name = wordsOf(message)
          runs.push(name)
          await step('wait', () => new Promise<void>(resolve => gates.set(name, resolve)))
          await new Promise(() => {})
        }
      })
      for (const name of ['a', 'b', 'c']) await open(life.runtime, name, { contextId: name })
      await rest()
      for (let end = 0; end < 3; end += 1) {
        t.strictSame(runs.splice(0), ['a', 'b', 'c'])
        await life.kill()
      }
      t.strictSame(runs, [])
      await life.pass(SECOND)
      t.equal(runs.length, 1)
      gates.get(runs[0] ?? '')?.()
      await rest()
      t.equal(runs.length, 2, 'its progress starts the next')
      await life.pass(SECOND)
      t.equal(runs.length, 3, 'which takes a second without progress')
      for (const go of gates.values()) go()
      await rest()
      await life.kill()
      await rest()
      t.equal(runs.length, 6)
    }
  )

  await t.test('more than a day apart start a new count', async t => {
    const runs = { n: 0 }
    const life = lives(t, waiting(runs), { limits: { advanced: { recoveries: 1 } } })
    const { id } = await open(life.runtime)
    await rest()
    for (let lived = 0; lived < 3; lived += 1) {
      await killed(life)
      await life.pass(DAY)
    }
    t.equal(await stateOf(life, id), 'working')
    t.equal(runs.n, 4)
  })

  await t.test('during a sleep count less, and start a new count after it', async t => {
    let runs = 0
    const life = lives(
      t,
      {
        work: async ({ sleep }) => {
          runs += 1
          await sleep(DAY)
          await new Promise(() => {})
        }
      },
      { limits: { advanced: { recoveries: 2 } } }
    )
    const { id } = await open(life.runtime)
    await rest()
    await killed(life, 10)
    t.equal(await stateOf(life, id), 'working')
    await life.pass(DAY)
    await killed(life, 2)
    t.equal(await stateOf(life, id), 'working')
    await killed(life)
    t.equal(await textOfTask(life, id), reason(3))
    t.equal(runs, 13)
  })

  await t.test('differ from failed commits: a failing store does not count', async t => {
    let runs = 0
    const gates: (() => void)[] = []
    const life = lives(
      t,
      {
        work: async ({ emit }) => {
          runs += 1
          await new Promise<void>(resolve => gates.push(resolve))
          emit(progress('said'))
          await new Promise(() => {})
        }
      },
      { limits: { advanced: { recoveries: 1 } } }
    )
    const { id } = await open(life.runtime)
    await rest()
    for (let trouble = 1; trouble <= 3; trouble += 1) {
      const { commit } = life.store
      Object.assign(life.store, { commit: () => Promise.reject(new Error('no disk')) })
      gates.at(-1)?.()
      await rest()
      Object.assign(life.store, { commit })
      await life.pass(60 * SECOND)
      t.equal(runs, trouble + 1)
    }
    t.equal(await stateOf(life, id), 'working')
    t.strictSame(await life.told(id), ['submitted', 'working'])
  })

  await t.test('do not affect waiting tasks, which are restored any number of times', async t => {
    let runs = 0
    const life = lives(
      t,
      {
        work: async ({ ask }) => {
          runs += 1
          return { artifact: wordsOf(await ask(inputRequired('?'))) }
        }
      },
      { limits: { advanced: { recoveries: 1 } } }
    )
    const { id: taskId } = taskIn(await life.runtime.sendMessage(say('go')))
    for (let lived = 0; lived < 4; lived += 1) {
      await life.kill()
      await life.again()
    }
    t.equal(textOf(taskIn(await life.runtime.sendMessage(say('yes', { taskId }))).artifacts?.[0]), 'yes')
    t.ok(runs > 4)
  })

  await t.test('of a task that ends before its recovery leave nothing behind', async t => {
    const life = lives(t, waiting({ n: 0 }))
    const { id } = await open(life.runtime)
    await killed(life)
    await life.kill()
    t.equal(stateName((await life.runtime.cancelTask({ id })).status.state), 'canceled')
    await life.pass(2 * SECOND)
    t.strictSame(await life.told(id), ['submitted', 'working', 'canceled'])
    t.strictSame(life.log, [])
  })

  await t.test('while a journal is read leave the task to the next process', async t => {
    for (const settle of ['resolve', 'reject'] as const) {
      const life = lives(t, waiting({ n: 0 }))
      const { id } = await open(life.runtime)
      await rest()
      const { readJournal } = life.store
      const gate = deferred<never[]>()
      Object.assign(life.store, { readJournal: () => gate.promise })
      await life.kill()
      Object.assign(life.store, { readJournal })
      await life.kill()
      if (settle === 'resolve') gate.resolve([])
      else gate.reject(new Error('no disk'))
      await rest()
      t.strictSame(await life.told(id), ['submitted', 'working'])
      t.strictSame(life.log, [])
    }
  })

  await t.test('with an unreadable journal fail the task', async t => {
    const life = lives(t, waiting({ n: 0 }))
    const { id } = await open(life.runtime)
    await rest()
    Object.assign(life.store, { readJournal: () => Promise.reject(new Error('no disk')) })
    await life.kill()
    t.equal(await stateOf(life, id), 'failed')
    t.match(life.log, [{ message: 'the work of a task failed', details: { taskId: id, error: /no disk/ } }])
  })
})

await t.test('the start of recovered work is stored before it runs', async t => {
  const seen: unknown[] = []
  const life: Lives = lives(t, {
    work: async ({ taskId }) => {
      const stored = await life.store.loadContext({ tenant: '', principal: 'anonymous', contextId: 'c' })
      const text = stored?.tasks.find(task => task.taskId === taskId)?.snapshot ?? '{}'
      seen.push((JSON.parse(text) as { context: { recoveries?: { atMs: number[] } } }).context.recoveries?.atMs.length)
      await new Promise(() => {})
    }
  })
  await open(life.runtime, 'go', { contextId: 'c' })
  await until(() => seen.length === 1)
  await killed(life, 2)
  t.strictSame(seen, [undefined, 1, 2])
})

await t.test('recovery: fail', async t => {
  const fail = (t: Test, work: Parameters<typeof lives>[1]['work'] & {}) => lives(t, { work, recovery: 'fail' })

  await t.test('fails a running task, and none that waits or had not started', async t => {
    let runs = 0
    const life = fail(t, async ({ ask, message }) => {
      runs += 1
      if (wordsOf(message) === 'ask') return { artifact: wordsOf(await ask(inputRequired('?'))) }
      return new Promise<undefined>(() => {})
    })
    const { id: working } = await open(life.runtime)
    const { id: taskId } = taskIn(await life.runtime.sendMessage(say('ask')))
    await rest()
    await life.kill()
    t.strictSame(await life.told(working), [
      'submitted',
      'working',
      'failed: The process ended while this task was working, and this agent does not restart such work.'
    ])
    t.equal(runs, 2)
    t.equal(textOf(taskIn(await life.runtime.sendMessage(say('yes', { taskId }))).artifacts?.[0]), 'yes')
  })

  await t.test('continues a chart in which nothing runs', async t => {
    const life = fail(
      t,
      setupWork({}).createMachine({ initial: 'a', states: { a: { after: { 1000: 'b' } }, b: { type: 'final' } } })
    )
    const { id } = await open(life.runtime)
    await rest()
    await life.kill()
    await life.pass(SECOND)
    t.equal(await stateOf(life, id), 'completed')
  })

  await t.test('starts accepted work that had not started', async t => {
    const life = lives(t, { input: z.string(), work: async () => ({ artifact: 'done' }), recovery: 'fail' })
    const commits: (() => void)[] = []
    const { commit } = life.store
    Object.assign(life.store, {
      commit: (given: Parameters<typeof commit>[0]) =>
        commits.length > 0 ? new Promise(() => {}) : (commits.push(() => {}), commit(given))
    })
    const { id } = await open(life.runtime)
    await rest()
    Object.assign(life.store, { commit })
    await life.kill()
    t.equal(await stateOf(life, id), 'completed')
  })
})

await t.test('suspects start one by one, the latest first, at most a second apart', async t => {
  const clock = new TestClock()
  const recoveries = new RecoveryQueue(clock)
  const started: string[] = []
  const add = (name: string, recoveredAtMs: number) =>
    recoveries.add({ taskId: name, recoveredAtMs, recover: () => void started.push(`${name} ${clock.now()}`) })
  const begun = clock.now()
  const seconds = (s: number) => begun + s * SECOND
  add('one', 1)
  add('three', 3)
  clock.increment(SECOND)
  add('two', 2)
  clock.increment(SECOND)
  clock.increment(SECOND)
  t.strictSame(started.splice(0), [`three ${seconds(1)}`, `two ${seconds(2)}`, `one ${seconds(3)}`])
  recoveries.add({
    taskId: 'slow',
    recoveredAtMs: 2,
    recover: running => {
      started.push('slow')
      clock.setTimeout(running, 300)
    }
  })
  add('next', 1)
  clock.increment(SECOND)
  clock.increment(SECOND)
  clock.increment(299)
  t.strictSame(started.splice(0), ['slow'])
  clock.increment(1)
  t.strictSame(started.splice(0), [`next ${seconds(5) + 300}`], 'its time starts when it is working')
  const late = 1300
  for (let n = 0; n < 1001; n += 1) add(`${n}`, n)
  clock.increment(SECOND)
  clock.increment(10)
  t.strictSame(started.splice(0), [`1000 ${seconds(5) + late}`, `999 ${seconds(5) + late + 10}`])
  clock.increment(100 * SECOND)
  t.equal(started.length, 999)
  add('late', 1)
  recoveries.close()
  recoveries.close()
  clock.increment(DAY)
  t.equal(started.length, 999)
  t.equal(clock.pending, 0)
})
