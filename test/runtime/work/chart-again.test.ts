import t from 'tap'
import {
  assign,
  emit,
  fromCallback,
  fromTransition,
  sendTo,
  setup,
  spawnChild,
  stopChild,
  type EventObject
} from 'xstate'
import { testAgent } from '../../../adapters/testing/index.ts'
import { defineAgent, fromPromise, progress, setupWork, textOf } from '../../../runtime/index.ts'
import { someWalks } from '../../fixtures/charts/some-walks.ts'
import { failOnLooseErrors, lives, type Lives } from '../../fixtures/runtime/lives.ts'
import { open, reaches, rest, say, stateName, taskIn, until } from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

const SECOND = 1000

/** A chart with all that may be under way in one when its process is killed. */
function trip(booked: string[]) {
  const look = fromPromise<string, { place: string }>(async ({ input, step }) =>
    step('look', ({ idempotencyKey }) => (booked.push(idempotencyKey), `a plan for ${input.place}`))
  )
  const knock = fromCallback<{ type: 'x' }>(({ sendBack }) => sendBack({ type: 'knocked' }))
  const pack = setup({ actors: { look } }).createMachine({
    initial: 'waiting',
    states: {
      waiting: { after: { 5000: 'packing' } },
      packing: { invoke: { src: 'look', input: { place: 'the bag' }, onDone: 'packed' } },
      packed: { type: 'final' }
    }
  })
  return setupWork({
    types: { context: {} as { plan: string; visits: number }, events: {} as { type: 'knocked' } },
    actors: { look, knock, pack }
  }).createMachine({
    id: 'trip',
    context: { plan: '', visits: 0 },
    initial: 'looking',
    states: {
      looking: {
        entry: emit(progress('looking')),
        invoke: {
          src: 'look',
          input: { place: 'Rome' },
          onDone: { target: 'resting', actions: assign({ plan: ({ event }) => event.output }) }
        }
      },
      resting: { after: { 10_000: 'preparing' } },
      preparing: {
        type: 'parallel',
        onDone: { target: 'house', actions: emit(progress('ready')) },
        states: {
          bag: {
            initial: 'packing',
            states: { packing: { invoke: { src: 'pack', onDone: 'packed' } }, packed: { type: 'final' } }
          },
          day: {
            initial: 'asking',
            states: {
              asking: { tags: 'input-required', meta: { prompt: 'Which day?' }, on: { 'message.received': 'known' } },
              known: { type: 'final' }
            }
          }
        }
      },
      house: {
        initial: 'hall',
        states: {
          hall: { after: { 1000: 'garden' } },
          garden: {
            tags: 'input-required',
            meta: { prompt: 'Who is there?' },
            on: { 'message.received': '#trip.door' }
          },
          before: { type: 'history' }
        }
      },
      door: {
        entry: [
          spawnChild('knock', { id: ({ context }) => `knock ${context.visits}` }),
          assign({ visits: ({ context }) => context.visits + 1 })
        ],
        on: {
          knocked: [
            { guard: ({ context }) => context.visits > 1, target: 'done' },
            { target: 'house.before', actions: emit(progress('back')) }
          ]
        }
      },
      done: { type: 'final' }
    },
    output: ({ context }) => ({ artifact: context.plan })
  })
}

const TOLD = [
  'submitted',
  'working',
  'working: looking',
  'input-required: Which day?',
  'working',
  'working: ready',
  'input-required: Who is there?',
  'working',
  'working: back',
  'input-required: Who is there?',
  'working',
  'artifact: a plan for Rome',
  'completed'
]

/**
 * Answers what a task asks and has time go by, until it is completed; `between` happens before each of the client's
 * moves.
 */
async function converse(life: Lives, id: string, between: () => Promise<unknown>): Promise<void> {
  for (let move = 0; move < 40; move += 1) {
    await rest()
    await between()
    const { status } = await life.runtime.getTask({ id })
    if (stateName(status.state) === 'completed') return
    // Not awaited: of a process that is killed there is no answer.
    if (stateName(status.state) === 'input-required')
      life.runtime.sendMessage(say('x', { taskId: id }, { returnImmediately: true })).catch(() => {})
    await life.pass(5 * SECOND)
  }
}

await t.test('a chart whose process ends at any point of a conversation', async t => {
  await t.test('repeats no message and loses nothing when its runtime closes', async t => {
    for (let at = -1; at < 12; at += 1) {
      const booked: string[] = []
      const life = lives(t, { work: trip(booked) })
      const { id } = await open(life.runtime)
      let move = 0
      await converse(life, id, async () => {
        if (move === at) await life.again()
        move += 1
      })
      t.strictSame(await life.told(id), TOLD, `closed before move ${at}`)
      t.equal(booked.length, 2, 'no step with a result runs again')
      t.strictSame(life.log, [])
    }
  })

  await t.test('does the same when its process is killed', async t => {
    let last = 0
    for (let survived = 1; survived <= last + 1; survived += 1) {
      const booked: string[] = []
      const life = lives(t, { work: trip(booked) })
      let commits = 0
      let isDead = false
      const { commit } = life.store
      Object.assign(life.store, {
        commit: (given: Parameters<typeof commit>[0]) => {
          commits += 1
          if (commits === survived + 1) {
            isDead = true
            life.die()
          }
          return commit(given)
        }
      })
      const { id } = await open(life.runtime)
      await converse(life, id, async () => {
        if (isDead) await life.kill()
        isDead = false
      })
      t.strictSame(await life.told(id), TOLD, `killed after commit ${survived}`)
      t.equal(new Set(booked).size, 2, 'a step keeps its key on every run')
      last = Math.max(last, commits < survived + 1 ? 0 : survived)
    }
    t.ok(last > 10, `it was killed after each of ${last} commits`)
  })
})

await t.test('actors that spawnChild created without an id', async t => {
  const ear = (begun: string[]) =>
    fromCallback<{ type: 'x' }, { name: string }>(({ input: { name }, sendBack }) => {
      begun.push(name)
      sendBack({ type: 'knocked' })
    })
  const listening = (begun: string[]) =>
    setupWork({
      types: { context: {} as { heard: number }, events: {} as { type: 'knocked' } },
      actors: { ear: ear(begun) }
    })

  await t.test('are restored, if there is one', async t => {
    const begun: string[] = []
    const life = lives(t, {
      work: listening(begun).createMachine({
        context: { heard: 0 },
        entry: spawnChild('ear', { input: { name: 'a' } }),
        on: { knocked: {} }
      })
    })
    await open(life.runtime)
    await until(() => begun.length === 1)
    await life.kill()
    t.strictSame(begun, ['a', 'a'])
  })

  await t.test('fail their task if there are two, since XState would lose one', async t => {
    const setting = listening([])
    const spawning = (name: string) => setting.spawnChild('ear', { input: { name } })
    for (const [how, chart] of Object.entries({
      'at once': setting.createMachine({ context: { heard: 0 }, entry: [spawning('a'), spawning('b')] }),
      later: setting.createMachine({
        context: { heard: 0 },
        entry: spawning('a'),
        initial: 'a',
        states: { a: { tags: 'input-required', on: { 'message.received': { actions: spawning('b') } } } }
      })
    })) {
      for (const isKilled of [false, true]) {
        const life = lives(t, { work: chart })
        const { id: taskId } = await open(life.runtime)
        await rest()
        if (isKilled) await life.kill()
        await life.runtime.sendMessage(say('x', { taskId }, { returnImmediately: true })).catch(() => {})
        t.equal(stateName((await reaches(life.runtime, taskId, 'failed')).status.state), 'failed', how)
        t.match(life.log, [
          { details: { error: /Two spawned actors have no id, so one replaces the other\. Give each an id/ } }
        ])
      }
    }
  })

  await t.test('may follow one another', async t => {
    const begun: string[] = []
    const done = fromPromise(async () => void begun.push('done'))
    const work = setupWork({ actors: { done } }).createMachine({
      entry: spawnChild('done'),
      initial: 'a',
      states: {
        a: { tags: 'input-required', on: { 'message.received': { target: 'b', actions: spawnChild('done') } } },
        b: { type: 'final' }
      }
    })
    const life = lives(t, { work })
    const { id: taskId } = await open(life.runtime)
    await rest()
    await life.runtime.sendMessage(say('x', { taskId }))
    t.equal((await life.told(taskId)).at(-1), 'completed')
    t.strictSame(begun, ['done'])
  })
})

await t.test('a chart with an actor that has failed goes on after a kill', async t => {
  const fails = fromPromise(async () => {
    throw new Error('no luck')
  })
  const work = setupWork({ actors: { fails } }).createMachine({
    initial: 'trying',
    states: {
      trying: {
        invoke: { src: 'fails', onError: '.asking' },
        initial: 'waiting',
        states: { waiting: {}, asking: { tags: 'input-required', on: { 'message.received': '#(machine).done' } } }
      },
      done: { type: 'final' }
    }
  })
  const life = lives(t, { work })
  const { id } = await open(life.runtime)
  await reaches(life.runtime, id, 'input-required')
  await life.kill()
  await life.runtime.sendMessage(say('go on', { taskId: id }))
  await reaches(life.runtime, id, 'completed')
})

await t.test('a chart sees the snapshots of its actors once, whenever it is killed', async t => {
  const counter = fromTransition((count: number, { type }: EventObject) => (type === 'add' ? count + 1 : count), 0)
  const work = setupWork({ types: { context: {} as { seen: number } }, actors: { counter } }).createMachine({
    context: { seen: 0 },
    initial: 'asking',
    invoke: {
      src: 'counter',
      id: 'counter',
      onSnapshot: { actions: assign({ seen: ({ context }) => context.seen + 1 }) }
    },
    states: {
      asking: {
        tags: 'input-required',
        meta: { prompt: ({ context }) => `seen ${context.seen} times` },
        on: { 'message.received': { actions: sendTo('counter', { type: 'add' }) } }
      }
    }
  })
  const life = lives(t, { work })
  const { id } = await open(life.runtime)
  for (const text of ['one', 'two']) {
    await life.kill()
    await life.runtime.sendMessage(say(text, { taskId: id }))
  }
  t.match((await life.told(id)).at(-1), 'input-required: seen 3 times')
})

await t.test('a chart that has failed takes no event that came with the one at which it failed', async t => {
  const broken = setup({}).createMachine({
    context: () => {
      throw new Error('a broken actor')
    }
  })
  const work = setupWork({ actors: { broken } }).createMachine({
    initial: 'working',
    states: {
      working: {
        entry: spawnChild('broken', { id: 'unheard' }),
        invoke: { src: 'broken', id: 'heard', onError: 'done' }
      },
      done: { type: 'final' }
    }
  })
  const life = lives(t, { work, restart: { type: 'temporary' } })
  await reaches(life.runtime, (await open(life.runtime)).id, 'failed')
})

await t.test('an invoked actor that the chart has stopped is not missing after the end of the process', async t => {
  const ear = fromCallback<EventObject>(() => {})
  const work = setupWork({ actors: { ear } }).createMachine({
    initial: 'a',
    states: {
      a: {
        tags: 'input-required',
        invoke: { src: 'ear', id: 'ear' },
        on: {
          'message.received': [
            { guard: ({ event }) => textOf(event.message) === 'stop', actions: stopChild('ear') },
            { target: 'b' }
          ]
        }
      },
      b: { type: 'final' }
    }
  })
  const life = lives(t, { work })
  const { id: taskId } = await open(life.runtime)
  await reaches(life.runtime, taskId, 'input-required')
  await life.runtime.sendMessage(say('stop', { taskId }, { returnImmediately: true }))
  await life.kill()
  t.equal(stateName(taskIn(await life.runtime.sendMessage(say('go', { taskId }))).status.state), 'completed')
})

await t.test('progress that a chart tells while it asks is dropped, and the log says so once', async t => {
  const work = setupWork({}).createMachine({
    initial: 'a',
    states: {
      a: {
        tags: 'input-required',
        after: { 1000: { actions: emit(progress('late')) }, 2000: { actions: emit(progress('later')) } },
        on: { 'message.received': 'b' }
      },
      b: { type: 'final' }
    }
  })
  const life = lives(t, { work })
  const { id } = await open(life.runtime)
  await reaches(life.runtime, id, 'input-required')
  await life.pass(SECOND)
  await life.pass(SECOND)
  t.strictSame(await life.told(id), ['submitted', 'working', 'input-required: The agent needs an answer to go on.'])
  t.match(life.log, [
    { level: 'warn', message: 'progress was dropped because the task waits for an answer', details: { taskId: id } }
  ])
  t.equal(life.log.length, 1)
  await testAgent(someWalks(t), defineAgent({ card: { name: 'Late' }, work }))
})

await t.test(
  'a constant context that an assignment changes in place is that of its task alone, also in a chart below it',
  async t => {
    const listed = { names: ['first'], by: { none: undefined } }
    const push = ({ context }: { context: typeof listed }) => ({ names: (context.names.push('next'), context.names) })
    const below = setup({ types: { context: {} as typeof listed } }).createMachine({
      context: listed,
      initial: 'a',
      states: { a: { type: 'final', entry: assign(push) } },
      output: ({ context }) => context.names.length
    })
    const work = setupWork({ types: { context: {} as typeof listed }, actors: { below } }).createMachine({
      context: listed,
      initial: 'a',
      entry: assign(push),
      states: {
        a: {
          invoke: {
            src: 'below',
            onDone: {
              target: 'b',
              actions: assign({ names: ({ context, event }) => [...context.names, `${event.output as number}`] })
            }
          }
        },
        b: { type: 'final' }
      },
      output: ({ context }) => ({ artifact: `${context.names.join()} ${String('none' in context.by)}` })
    })
    const { runtime } = lives(t, { work })
    for (const contextId of ['one', 'another']) {
      t.equal(
        taskIn(await runtime.sendMessage(say('x', { contextId })))
          .artifacts?.map(textOf)
          .join(),
        'first,next,2 true'
      )
    }
    t.strictSame(listed, { names: ['first'], by: { none: undefined } })
  }
)
