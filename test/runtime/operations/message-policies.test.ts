import t from 'tap'
import { assign, emit, fromPromise } from 'xstate'
import { z } from 'zod'
import {
  authRequired,
  inputRequired,
  progress,
  setupWork,
  textOf as wordsOf,
  type AgentDefinition,
  type WorkGenerator
} from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { MessagePolicy } from '../../../runtime/agent/policies.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { anyone, eventsOf, failOnLooseErrors, lives } from '../../fixtures/runtime/lives.ts'
import {
  brief,
  deferred,
  open,
  reaches,
  refusal,
  rest,
  say,
  start,
  stateName,
  taskIn,
  textOf,
  withGenerations,
  type Started
} from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

const immediately = { returnImmediately: true }

const told = async ({ store }: Pick<Started, 'store'>, id: string) =>
  (await eventsOf(store, id)).map(({ update }) => brief(update))

/** Works until the gate opens, then asks for two numbers, one after the other: as a generator. */
function generator(gate: Promise<void>): WorkGenerator {
  const schema = z.string().regex(/^\d+$/)
  return async function* () {
    await gate
    const one = yield* inputRequired('One?', { schema })
    const two = yield* inputRequired('Two?', { schema })
    return { artifact: `${one} ${two}` }
  }
}

/** The same as a chart. */
function chart(gate: Promise<void>) {
  return setupWork({
    types: { context: {} as { numbers: string[] } },
    actors: { gate: fromPromise(() => gate) },
    guards: { isNumber: ({ event }) => /^\d+$/.test(wordsOf(event.message)) },
    actions: { keep: assign(({ context, event }) => ({ numbers: [...context.numbers, wordsOf(event.message)] })) }
  }).createMachine({
    context: { numbers: [] },
    initial: 'working',
    states: {
      working: { invoke: { src: 'gate', onDone: 'one' } },
      one: {
        tags: 'input-required',
        meta: { prompt: 'One?' },
        on: { 'message.received': { guard: 'isNumber', actions: 'keep', target: 'two' } }
      },
      two: {
        tags: 'input-required',
        meta: { prompt: 'Two?' },
        on: { 'message.received': { guard: 'isNumber', actions: 'keep', target: 'done' } }
      },
      done: { type: 'final' }
    },
    output: ({ context }) => ({ artifact: context.numbers.join(' ') })
  })
}

/** Has the work of a task begin only when the store was read. */
const refersToOthers = { referenceTaskIds: ['another'] }

/**
 * A store that gives a task's work, if it has to read it, nothing to begin with until it is told to: so long the task
 * is submitted.
 */
function slowToBegin(): { store: Store; begin: () => void } {
  const inner = memoryStore()
  const gate = deferred()
  const readTaskMessages: Store['readTaskMessages'] = async (...args) => {
    await gate.promise
    return inner.readTaskMessages(...args)
  }
  return { store: { ...inner, readTaskMessages }, begin: () => gate.resolve() }
}

/** Sends a message to a task, and answers when it is taken. */
const sendTo = async ({ runtime }: Pick<Started, 'runtime'>, taskId: string, words: string) =>
  runtime.sendMessage(say(words, { taskId }, immediately))

for (const [form, workOf] of [
  ['a generator', generator],
  ['a chart', chart]
] as [string, (gate: Promise<void>) => NonNullable<AgentDefinition['work']>][]) {
  await t.test(`messages to ${form} that works, queued`, async t => {
    await t.test('answer later questions in order, and the client sees no question', async t => {
      const gate = deferred()
      const started = start(t, { work: workOf(gate.promise), messages: 'queue' })
      const { id } = await open(started.runtime)
      await reaches(started.runtime, id, 'working')
      const taken = taskIn(await sendTo(started, id, '1'))
      t.strictSame([taken.status.state, taken.history?.map(textOf)], ['TASK_STATE_WORKING', ['go', '1']])
      const end = started.runtime.sendMessage(say('2', { taskId: id }))
      await rest()
      gate.resolve()
      t.equal(textOf(taskIn(await end).artifacts?.[0]), '1 2')
      t.strictSame(await told(started, id), ['submitted', 'working', 'artifact: 1 2', 'completed'])
      t.strictSame((await started.runtime.getTask({ id })).history?.map(textOf), ['go', '1', '2'])
    })

    await t.test('are skipped if they do not answer the question, which is asked after the last', async t => {
      const gate = deferred()
      const started = start(t, { work: workOf(gate.promise), messages: 'queue' })
      const { id } = await open(started.runtime)
      await reaches(started.runtime, id, 'working')
      for (const words of ['hello', '1', 'and']) await sendTo(started, id, words)
      gate.resolve()
      await reaches(started.runtime, id, 'input-required')
      t.strictSame(await told(started, id), ['submitted', 'working', 'input-required: Two?'])
      t.equal(textOf(taskIn(await started.runtime.sendMessage(say('2', { taskId: id }))).artifacts?.[0]), '1 2')
      t.strictSame(started.log, [])
    })

    await t.test('are stored over a restart', async t => {
      const life = lives(t, { work: workOf(new Promise(() => {})), messages: 'queue' })
      const { id } = await open(life.runtime)
      await reaches(life.runtime, id, 'working')
      await sendTo(life, id, '1')
      await sendTo(life, id, 'x')
      const gate = deferred()
      await life.again({ work: workOf(gate.promise), messages: 'queue' })
      await sendTo(life, id, '2')
      gate.resolve()
      t.equal(textOf((await reaches(life.runtime, id, 'completed')).artifacts?.[0]), '1 2')
      t.strictSame(await life.told(id), ['submitted', 'working', 'artifact: 1 2', 'completed'])
      t.strictSame((await life.runtime.getTask({ id })).history?.map(textOf), ['go', '1', 'x', '2'])
    })

    await t.test('are reused as answers by a work that runs again after them', async t => {
      const gate = deferred()
      const life = lives(t, { work: workOf(gate.promise), messages: 'queue' })
      const { id } = await open(life.runtime)
      await reaches(life.runtime, id, 'working')
      await sendTo(life, id, '1')
      gate.resolve()
      await reaches(life.runtime, id, 'input-required')
      await life.again()
      t.strictSame(await life.told(id), ['submitted', 'working', 'input-required: Two?'])
      t.equal(textOf(taskIn(await life.runtime.sendMessage(say('2', { taskId: id }))).artifacts?.[0]), '1 2')
    })

    await t.test('over the limit are refused with RateLimited and dropped, until one is processed', async t => {
      const gate = deferred()
      const started = start(t, { work: workOf(gate.promise), messages: 'queue' }, { limits: { queuedMessages: 1 } })
      const { id, contextId = '' } = await open(started.runtime)
      await reaches(started.runtime, id, 'working')
      await sendTo(started, id, '1')
      const before = await started.runtime.getTask({ id })
      for (const words of ['2', '3'])
        t.match(await refusal(sendTo(started, id, words)), { code: 'RateLimited', metadata: { taskId: id } })
      t.strictSame(await started.runtime.getTask({ id }), before)
      t.equal((await started.store.readMessages({ ...anyone, contextId }, 100)).length, 2)
      gate.resolve()
      await reaches(started.runtime, id, 'input-required')
      t.equal(textOf(taskIn(await started.runtime.sendMessage(say('2', { taskId: id }))).artifacts?.[0]), '1 2')
    })

    await t.test('are accepted while the task is submitted and not started yet', async t => {
      const { store, begin } = slowToBegin()
      const started = start(t, { work: workOf(Promise.resolve()), messages: 'queue' }, { store })
      const { id } = await open(started.runtime, 'go', refersToOthers)
      t.equal(stateName(taskIn(await sendTo(started, id, '1')).status.state), 'submitted')
      begin()
      await reaches(started.runtime, id, 'input-required')
      t.strictSame(await told(started, id), ['submitted', 'working', 'input-required: Two?'])
    })

    await t.test('are processed once with the reliability extension', async t => {
      const gate = deferred()
      const started = start(t, { work: workOf(gate.promise), messages: 'queue' })
      const { runtime } = started
      const { id: taskId } = await open(runtime)
      await reaches(runtime, taskId, 'working')
      const message = say('1', { taskId }, immediately)
      await Promise.all([runtime.sendMessage(message, withGenerations), runtime.sendMessage(message, withGenerations)])
      await runtime.sendMessage(message, withGenerations)
      t.match(
        await refusal(
          runtime.sendMessage({ message: { ...message.message, parts: [{ text: '2' }] } }, withGenerations)
        ),
        { code: 'IdempotencyConflict' }
      )
      gate.resolve()
      await reaches(runtime, taskId, 'input-required')
      t.strictSame(
        await told(started, taskId),
        ['submitted', 'working', 'input-required: Two?'],
        'the second question has no answer yet'
      )
    })

    await t.test('that arrive while the question is open answer it, or are refused', async t => {
      const started = start(t, { work: workOf(Promise.resolve()), messages: 'queue' })
      const { id: taskId } = taskIn(await started.runtime.sendMessage(say('go')))
      const code = form === 'a chart' ? 'UnsupportedOperation' : 'InvalidParams'
      const before = await started.runtime.getTask({ id: taskId })
      t.match(await refusal(sendTo(started, taskId, 'what?')), { code })
      t.strictSame(await started.runtime.getTask({ id: taskId }), before)
    })

    await t.test('are removed with their task', async t => {
      const started = start(t, { work: workOf(new Promise(() => {})), messages: 'queue' })
      const { id } = await open(started.runtime)
      await reaches(started.runtime, id, 'working')
      await sendTo(started, id, '1')
      await started.runtime.cancelTask({ id })
      t.match(await refusal(sendTo(started, id, '2')), {
        code: 'UnsupportedOperation',
        metadata: { state: 'TASK_STATE_CANCELED' }
      })
    })
  })

  await t.test(
    `messages to ${form} that works are refused with UnsupportedOperation by default, without effect`,
    async t => {
      for (const messages of [undefined, 'reject'] as const) {
        const gate = deferred()
        const started = start(t, { work: workOf(gate.promise), ...(messages && { messages }) })
        const { id } = await open(started.runtime)
        const before = await reaches(started.runtime, id, 'working')
        t.match(await refusal(sendTo(started, id, '1')), {
          code: 'UnsupportedOperation',
          message: /Wait until it asks for input/,
          metadata: { state: 'TASK_STATE_WORKING' }
        })
        t.strictSame(await started.runtime.getTask({ id }), before)
        gate.resolve()
        await reaches(started.runtime, id, 'input-required')
      }
    }
  )
}

await t.test('a queued message', async t => {
  await t.test('does not count as an authorization', async t => {
    const gate = deferred()
    const started = start(t, {
      work: async function* () {
        await gate.promise
        yield* authRequired('Log in.')
        return { artifact: wordsOf(yield* inputRequired('?')) }
      },
      messages: 'queue'
    })
    const { id } = await open(started.runtime)
    await reaches(started.runtime, id, 'working')
    await sendTo(started, id, 'early')
    gate.resolve()
    await reaches(started.runtime, id, 'auth-required')
    await started.runtime.authorized(id, 'ok')
    t.equal(
      textOf((await reaches(started.runtime, id, 'completed')).artifacts?.[0]),
      'early',
      'but it answers the question after it'
    )
  })

  await t.test('that a chart accepts without an answer leaves its question asked, changed or not', async t => {
    for (const says of [undefined, 'hm']) {
      const gate = deferred()
      const work = setupWork({
        types: { context: {} as { tries: number } },
        actors: { gate: fromPromise(() => gate.promise) }
      }).createMachine({
        context: { tries: 0 },
        initial: 'working',
        states: {
          working: { invoke: { src: 'gate', onDone: 'asking' } },
          asking: {
            tags: 'input-required',
            meta: { prompt: ({ context }) => (says && context.tries > 0 ? says : 'Colour?') },
            on: {
              'message.received': [
                { guard: ({ event }) => wordsOf(event.message) === 'red', target: 'done' },
                { actions: [assign({ tries: ({ context }) => context.tries + 1 }), emit(progress('no'))] }
              ]
            }
          },
          done: { type: 'final' }
        },
        output: ({ context }) => ({ artifact: String(context.tries) })
      })
      const started = start(t, { work, messages: 'queue' })
      const { id } = await open(started.runtime)
      await reaches(started.runtime, id, 'working')
      await sendTo(started, id, 'green')
      await sendTo(started, id, 'blue')
      gate.resolve()
      await reaches(started.runtime, id, 'input-required')
      t.strictSame(await told(started, id), [
        'submitted',
        'working',
        'working: no',
        'working: no',
        `input-required: ${says ?? 'Colour?'}`
      ])
      t.equal(textOf(taskIn(await started.runtime.sendMessage(say('red', { taskId: id }))).artifacts?.[0]), '2')
    }
  })

  await t.test('throws into the work if the schema throws, as any answer', async t => {
    const gate = deferred()
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: () => {
          throw new Error('broken')
        }
      }
    }
    const started = start(t, {
      work: async function* () {
        await gate.promise
        try {
          yield* inputRequired('?', { schema })
        } catch (error) {
          yield progress((error as Error).message)
        }
      },
      messages: 'queue'
    })
    const { id } = await open(started.runtime)
    await reaches(started.runtime, id, 'working')
    await sendTo(started, id, 'x')
    gate.resolve()
    await reaches(started.runtime, id, 'completed')
    t.strictSame(await told(started, id), ['submitted', 'working', 'working: broken', 'completed'])
  })
})

await t.test('messages to a chart that works, steered', async t => {
  /** Drives on until it is told to stop; takes turns by message. */
  const driving = setupWork({
    types: { context: {} as { turns: string[] } },
    guards: { is: ({ event }, word: string) => wordsOf(event.message).startsWith(word) }
  }).createMachine({
    context: { turns: [] },
    initial: 'driving',
    states: {
      driving: {
        on: {
          'message.received': [
            {
              guard: { type: 'is', params: 'turn' },
              actions: [
                assign({ turns: ({ context, event }) => [...context.turns, wordsOf(event.message)] }),
                emit(progress('turning'))
              ]
            },
            { guard: { type: 'is', params: 'ask' }, target: 'asking' },
            { guard: { type: 'is', params: 'stop' }, target: 'parked' }
          ]
        }
      },
      asking: { tags: 'input-required', meta: { prompt: 'Where to?' }, on: { 'message.received': 'driving' } },
      parked: { type: 'final' }
    },
    output: ({ context }) => ({ artifact: context.turns.join(', ') })
  })

  await t.test('are delivered if it accepts them, and refused without effect otherwise', async t => {
    const started = start(t, { work: driving, messages: 'deliver' })
    const { id, contextId = '' } = await open(started.runtime)
    await reaches(started.runtime, id, 'working')
    await sendTo(started, id, 'turn left')
    const before = await started.runtime.getTask({ id })
    t.match(await refusal(sendTo(started, id, 'fly')), {
      code: 'UnsupportedOperation',
      metadata: { state: 'TASK_STATE_WORKING' }
    })
    t.strictSame(await started.runtime.getTask({ id }), before)
    t.equal((await started.store.readMessages({ ...anyone, contextId }, 10)).length, 2)
    const asked = taskIn(await started.runtime.sendMessage(say('ask', { taskId: id })))
    t.equal(stateName(asked.status.state), 'input-required')
    await sendTo(started, id, 'home')
    await sendTo(started, id, 'turn right')
    t.equal(
      textOf(taskIn(await started.runtime.sendMessage(say('stop', { taskId: id }))).artifacts?.[0]),
      'turn left, turn right'
    )
    t.strictSame(await told(started, id), [
      'submitted',
      'working',
      'working: turning',
      'input-required: Where to?',
      'working',
      'working: turning',
      'artifact: turn left, turn right',
      'completed'
    ])
  })

  await t.test('are steered after a restart as before', async t => {
    const life = lives(t, { work: driving, messages: 'deliver' })
    const { id } = await open(life.runtime)
    await reaches(life.runtime, id, 'working')
    await sendTo(life, id, 'turn left')
    await life.again()
    await sendTo(life, id, 'turn right')
    t.equal(
      textOf(taskIn(await life.runtime.sendMessage(say('stop', { taskId: id }))).artifacts?.[0]),
      'turn left, turn right'
    )
  })

  await t.test('are processed once with the reliability extension, and a refused one may be resent', async t => {
    const { runtime } = start(t, { work: driving, messages: 'deliver' })
    const { id: taskId } = await open(runtime)
    await reaches(runtime, taskId, 'working')
    const [turn, home] = [
      say('turn left', { taskId }, immediately),
      say('stop it', { taskId: taskId, messageId: 'm-home' }, immediately)
    ]
    await Promise.all([1, 2, 3].map(() => runtime.sendMessage(turn, withGenerations)))
    t.match(
      await refusal(runtime.sendMessage(say('fly', { taskId, messageId: 'm-home' }, immediately), withGenerations)),
      { code: 'UnsupportedOperation' }
    )
    await runtime.sendMessage(home, withGenerations)
    t.equal(textOf((await reaches(runtime, taskId, 'completed')).artifacts?.[0]), 'turn left')
  })

  await t.test('are refused before the task has started', async t => {
    const { store, begin } = slowToBegin()
    const started = start(t, { work: driving, messages: 'deliver' }, { store })
    const { id } = await open(started.runtime, 'go', refersToOthers)
    t.match(await refusal(sendTo(started, id, 'turn left')), {
      code: 'UnsupportedOperation',
      metadata: { state: 'TASK_STATE_SUBMITTED' }
    })
    begin()
    await reaches(started.runtime, id, 'working')
    t.ok(await sendTo(started, id, 'turn left'))
  })

  await t.test('crash a chart whose guard throws at one, and fail its task', async t => {
    const work = setupWork({
      guards: {
        bad: () => {
          throw new Error('secret')
        }
      }
    }).createMachine({
      initial: 'a',
      states: { a: { on: { 'message.received': { guard: 'bad', target: 'b' } } }, b: { type: 'final' } }
    })
    const started = start(t, { work, messages: 'deliver' })
    const { id } = await open(started.runtime)
    await reaches(started.runtime, id, 'working')
    const task = taskIn(await started.runtime.sendMessage(say('x', { taskId: id })))
    t.strictSame(
      [stateName(task.status.state), textOf(task.status.message)],
      ['failed', 'The work ended with an error.']
    )
  })
})

await t.test('an unknown or unsuitable message policy is refused', async t => {
  t.throws(() => start(t, { work: () => {}, messages: 'drop' as MessagePolicy }), {
    name: 'TypeError',
    message: /'reject', 'deliver' or 'queue', not drop/
  })
  t.throws(() => start(t, { work: () => {}, messages: 'deliver' }), {
    name: 'TypeError',
    message: /needs work as a statechart/
  })
  t.throws(
    () =>
      start(t, {
        work: async function* () {
          yield progress()
        },
        messages: 'deliver'
      }),
    { name: 'TypeError', message: /needs work as a statechart/ }
  )
  t.doesNotThrow(() => start(t, { work: chart(Promise.resolve()), messages: 'deliver' }))
})
