import t from 'tap'
import { z } from 'zod'
import { assign, emit, fromPromise } from 'xstate'
import { answerSchemaOf } from '../../../adapters/client/messages.ts'
import { ANSWER_SCHEMA, INPUT_EXTENSION } from '../../../machines/protocol/uris.ts'
import {
  accepted,
  dataOf,
  authRequired,
  createRuntime,
  data,
  defineAgent,
  inputRequired,
  progress,
  reply,
  setupWork,
  text,
  typed,
  type AgentDefinition,
  type AuthorizationReceived,
  type StandardSchema
} from '../../../runtime/index.ts'
import { isA2AError } from '../../../machines/protocol/errors.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { QuestionOptions } from '../../../runtime/authoring/questions.ts'
import { jsonSchemaOf } from '../../../runtime/authoring/input-schema.ts'
import { lives } from '../../fixtures/runtime/lives.ts'
import {
  collect,
  deferred,
  messageIn,
  open,
  reaches,
  recordingLogger,
  refusal,
  rejection,
  say,
  start,
  stateName,
  taskIn,
  textOf,
  userMessage
} from '../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'
import { servedRuntime } from '../../../runtime/runtime-options.ts'

const card = { name: 'A' }
const size = z.enum(['small', 'large'])
const order = z.object({ dish: z.string(), people: z.coerce.number().min(1) })
const SIZE = { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'string', enum: ['small', 'large'] }

/** A schema of a library that tells no JSON Schema: whole numbers in text. */
const byHand: StandardSchema<number> = {
  '~standard': {
    version: 1,
    vendor: 'hand',
    validate: value =>
      /^\d+$/.test(String(value)) ? { value: Number(value) } : { issues: [{ message: 'is no number', path: ['n'] }] }
  }
}

/** A schema whose library has this to say. */
function telling(input: () => Record<string, unknown>): StandardSchema<unknown> {
  return { '~standard': { version: 1, vendor: 'test', validate: value => ({ value }), jsonSchema: { input } } }
}

await t.test('an answer is validated once, and the work receives the result, JSON or not', async t => {
  let checks = 0
  const schema: StandardSchema<Set<unknown>> = {
    '~standard': { version: 1, vendor: 'test', validate: value => ((checks += 1), { value: new Set([value]) }) }
  }
  const asked = { tags: 'input-required' as const, meta: { prompt: '?', schema } }
  const chart = setupWork({ types: { context: typed<{ said: unknown[] }>() } }).createMachine({
    context: { said: [] },
    initial: 'asking',
    states: {
      asking: {
        ...asked,
        on: {
          'message.received': {
            target: 'done',
            actions: assign({ said: ({ event }) => [...dataOf(event, schema)] })
          }
        }
      },
      done: { type: 'final' }
    },
    output: ({ context }) => ({ artifact: String(context.said) })
  })
  const works: NonNullable<AgentDefinition['work']>[] = [
    async ({ ask }) => ({ artifact: [...(await ask(inputRequired('?', { schema })))].join() }),
    async function* () {
      return { artifact: [...(yield* inputRequired('?', { schema }))].join() }
    },
    chart
  ]
  for (const work of works) {
    checks = 0
    const { runtime } = start(t, { work })
    const { id: taskId } = taskIn(await runtime.sendMessage(say('x')))
    t.equal(textOf(taskIn(await runtime.sendMessage(say('blue', { taskId }))).artifacts?.[0]), 'blue')
    t.equal(checks, 1)
  }
  const { runtime } = start(t, {
    work: async ({ ask }) => ({
      artifact: String(((await ask(authRequired('?', { schema }))) as { data: Set<unknown> }).data.size)
    })
  })
  checks = 0
  const { id } = taskIn(await runtime.sendMessage(say('x')))
  await runtime.authorized(id, 'token')
  t.equal(textOf((await reaches(runtime, id, 'completed')).artifacts?.[0]), '1')
  t.equal(checks, 1)
})

await t.test('a question', async t => {
  await t.test('shows the client its schema, and keeps its metadata', async t => {
    const cases: [
      how: string,
      options: QuestionOptions<unknown> & { schema: StandardSchema<unknown> },
      shown: unknown
    ][] = [
      ['as its library tells it', { schema: size }, SIZE],
      ['as its author tells it', { schema: byHand, jsonSchema: { type: 'integer' } }, { type: 'integer' }],
      ['as its author tells it in place of the library', { schema: size, jsonSchema: {} }, {}],
      ['in no way, if nobody tells it', { schema: byHand }, undefined],
      [
        'in no way, if the library cannot',
        {
          schema: telling(() => {
            throw new Error('a Date is none')
          })
        },
        undefined
      ],
      ['in no way, if the library tells what is no schema', { schema: telling(() => 7 as never) }, undefined]
    ]
    for (const [how, options, shown] of cases) {
      for (const ask of [inputRequired<unknown>, authRequired]) {
        const { runtime } = start(t, {
          work: async function* () {
            yield* ask({ parts: [text('?')], metadata: { own: 1 } }, options)
          }
        })
        const {
          status: { message }
        } = await reaches(runtime, (await open(runtime)).id, ask === authRequired ? 'auth-required' : 'input-required')
        t.strictSame(message?.metadata, { own: 1, ...(shown !== undefined && { [ANSWER_SCHEMA]: shown }) }, how)
        t.strictSame(answerSchemaOf(message), shown)
      }
    }
    t.equal(answerSchemaOf(undefined), undefined)
    for (const wrong of [7, null, 'x', []])
      t.equal(answerSchemaOf(userMessage('?', { metadata: { [ANSWER_SCHEMA]: wrong } })), undefined)
  })

  await t.test('is refused where it is written if it is invalid', async t => {
    const wrong: [options: object, name: string, message: RegExp][] = [
      [{ schema: 7 }, 'TypeError', /^schema has to implement Standard Schema/],
      [{ schema: null }, 'TypeError', /^schema has to implement/],
      [{ schema: { '~standard': null } }, 'TypeError', /^schema has to implement/],
      [{ schema: { '~standard': {} } }, 'TypeError', /^schema has to implement/],
      [{ schema: { '~standard': { validate: 7 } } }, 'TypeError', /^schema has to implement/],
      [{ schema: { parse: Number } }, 'TypeError', /^schema has to implement/],
      [{ jsonSchema: {} }, 'TypeError', /^jsonSchema is only shown to clients. Add schema, which validates\.$/],
      [
        { schema: size, jsonSchema: 'string' },
        'TypeError',
        /^jsonSchema has to be a JSON Schema, such as \{ type: 'string' \}\.$/
      ],
      [{ schema: size, jsonSchema: { maximum: 7n } }, 'TypeError', /^jsonSchema has to be a JSON Schema/],
      [
        { schema: size, jsonSchema: { title: 'ä'.repeat(8200) } },
        'RangeError',
        /^The JSON Schema of schema has 16412 bytes, more than 16384\. Give a shorter one, such as jsonSchema: /
      ],
      [
        { schema: z.enum(Array.from({ length: 4000 }, (_, i) => `n${i}`)) },
        'RangeError',
        /^The JSON Schema of schema has \d+ bytes/
      ],
      [{ timeout: 1000 }, 'TypeError', /^A question has no timeout\. There are schema, jsonSchema, deadlineMs\.$/],
      [{ Schema: size }, 'TypeError', /^A question has no Schema\. Is schema meant\?$/]
    ]
    for (const [options, name, message] of wrong) {
      for (const ask of [inputRequired, authRequired])
        t.throws(() => ask('?', options as { deadlineMs: number }), { name, message })
    }
    t.doesNotThrow(() => inputRequired('?', { schema: size, jsonSchema: { title: 'ä'.repeat(8180) } }))
    t.doesNotThrow(
      () => inputRequired('?', { schema: Object.assign(() => {}, byHand) }),
      'schemas of some libraries are functions'
    )
  })

  await t.test('is the same when the work runs again with another schema', async t => {
    const asking = (schema: StandardSchema<unknown>) =>
      ({
        work: async function* () {
          return { artifact: String(yield* inputRequired('Which?', { schema })) }
        }
      }) satisfies Partial<AgentDefinition>
    const life = lives(t, asking(size))
    const { id: taskId } = taskIn(await life.runtime.sendMessage(say('x')))
    await life.restart(asking(z.enum(['large', 'huge'])))
    const { status, artifacts } = taskIn(await life.runtime.sendMessage(say('huge', { taskId })))
    t.strictSame([stateName(status.state), artifacts?.map(textOf)], ['completed', ['huge']])
    const events = await collect(
      life.runtime.subscribeToTask(
        { id: taskId },
        { conditions: { afterGeneration: 0 }, extensions: ['urn:taskchart:extension:reliability:1'] }
      )
    )
    t.equal(
      events.filter(event => 'statusUpdate' in event && event.statusUpdate.status.state === 'TASK_STATE_INPUT_REQUIRED')
        .length,
      1
    )
  })
})

/** A chart that asks for a size and then for a login, and notes what it hears. */
function barista(heard: unknown[] = [], schema: StandardSchema<'small' | 'large'> = size) {
  const login = z.object({ account: z.string() })
  return setupWork({
    types: { context: typed<{ size: string; account: string }>(), events: typed<AuthorizationReceived>() },
    guards: { isLarge: ({ event }) => event.type === 'message.received' && dataOf(event, schema) === 'large' },
    actions: {
      note: ({ event }) => {
        if ('answer' in event) throw new TypeError('dataOf is the one way to read an answer')
        if (event.type === 'authorization.received') heard.push(dataOf(event, login))
        else heard.push(event.question?.endsWith('asking') ? dataOf(event, schema) : event.type)
      }
    }
  }).createMachine({
    context: { size: '', account: '' },
    initial: 'asking',
    states: {
      asking: {
        tags: 'input-required',
        meta: { prompt: 'Small or large?', schema },
        on: {
          'message.received': [
            {
              guard: 'isLarge',
              target: 'paying',
              actions: ['note', assign({ size: ({ event }) => dataOf(event, schema) })]
            },
            { target: 'done', actions: ['note', assign({ size: ({ event }) => dataOf(event, schema) })] }
          ]
        }
      },
      paying: {
        tags: 'auth-required',
        meta: { prompt: 'Log in.', schema: login, jsonSchema: { type: 'object' } },
        on: {
          'authorization.received': {
            target: 'done',
            actions: ['note', assign({ account: ({ event }) => dataOf(event, login).account })]
          },
          'message.received': { target: 'done', actions: 'note' }
        }
      },
      done: { type: 'final' }
    },
    output: ({ context }) => ({ artifact: data(context) })
  })
}

await t.test('a chart that asks with a schema', async t => {
  await t.test('receives answers as the schema returns them, and refuses invalid ones by field', async t => {
    const heard: unknown[] = []
    const { runtime, store } = start(t, { work: barista(heard) })
    const { id: taskId, status } = taskIn(await runtime.sendMessage(say('coffee')))
    t.strictSame(status.message?.metadata, { [ANSWER_SCHEMA]: SIZE })
    const before = await store.readTask({ tenant: '', principal: 'anonymous' }, taskId)
    t.match(await rejection(runtime.sendMessage(say('huge', { taskId }))), {
      code: 'InvalidParams',
      violations: [{ field: 'message.parts' }],
      message: /^The answer is not valid: message\.parts /
    })
    t.strictSame(await store.readTask({ tenant: '', principal: 'anonymous' }, taskId), before)
    const done = taskIn(
      await runtime.sendMessage({ message: userMessage('', { taskId, parts: [text('ignored'), data('small')] }) })
    )
    t.strictSame(done.artifacts?.[0]?.parts, [{ data: { size: 'small', account: '' } }])
    t.strictSame(heard, ['small'])
  })

  await t.test('validates out-of-band authorizations too, and receives other messages unchanged', async t => {
    for (const [say2, end] of [
      [undefined, { size: 'large', account: 'a-1' }],
      ['later', { size: 'large', account: '' }]
    ] as const) {
      const heard: unknown[] = []
      const { runtime } = start(t, { work: barista(heard) })
      const { id: taskId } = await open(runtime)
      await reaches(runtime, taskId, 'input-required')
      await runtime.sendMessage(say('large', { taskId }, { returnImmediately: true }))
      const { status } = await reaches(runtime, taskId, 'auth-required')
      t.strictSame(answerSchemaOf(status.message), { type: 'object' })
      t.match(await rejection(runtime.authorized(taskId, { account: 1 })), {
        code: 'InvalidParams',
        violations: [{ field: 'data.account' }]
      })
      if (say2 === undefined) await runtime.authorized(taskId, { account: 'a-1', more: 1 })
      else await runtime.sendMessage(say(say2, { taskId }))
      t.strictSame((await reaches(runtime, taskId, 'completed')).artifacts?.[0]?.parts, [{ data: end }])
      t.strictSame(heard, ['large', say2 === undefined ? { account: 'a-1' } : 'message.received'])
    }
  })

  await t.test('skips a queued message that is no answer, and accepts the one that is', async t => {
    const gate = deferred()
    const work = setupWork({
      types: { context: typed<{ n: number }>() },
      actors: { wait: fromPromise(() => gate.promise) }
    }).createMachine({
      context: { n: 0 },
      initial: 'waiting',
      states: {
        waiting: { entry: emit(progress('wait')), invoke: { src: 'wait', onDone: 'asking' } },
        asking: {
          tags: 'input-required',
          meta: { prompt: 'How many?', schema: byHand },
          on: { 'message.received': { target: 'done', actions: assign({ n: ({ event }) => dataOf(event, byHand) }) } }
        },
        done: { type: 'final' }
      },
      output: ({ context }) => ({ artifact: `${context.n}` })
    })
    const { runtime } = start(t, { work, messages: 'queue' })
    const { id: taskId } = await open(runtime)
    await reaches(runtime, taskId, 'working')
    for (const words of ['many', '7']) await runtime.sendMessage(say(words, { taskId }, { returnImmediately: true }))
    gate.resolve()
    t.strictSame((await reaches(runtime, taskId, 'completed')).artifacts?.map(textOf), ['7'])
  })

  await t.test('asks the same after a restart, and accepts the answer', async t => {
    const life = lives(t, { work: barista() })
    const { id: taskId } = taskIn(await life.runtime.sendMessage(say('x')))
    await life.restart({ work: barista() })
    t.equal((await refusal(life.runtime.sendMessage(say('huge', { taskId })))).code, 'InvalidParams')
    t.strictSame(taskIn(await life.runtime.sendMessage(say('small', { taskId }))).artifacts?.[0]?.parts, [
      { data: { size: 'small', account: '' } }
    ])
  })

  await t.test('fails only its task if the schema throws or is asynchronous', async t => {
    const validates: (() => unknown)[] = [
      () => {
        throw new Error('secret')
      },
      async () => ({ value: 1 })
    ]
    for (const validate of validates) {
      const schema = { '~standard': { version: 1, vendor: 'test', validate } } as unknown as StandardSchema<'small'>
      const { runtime, log } = start(t, { work: barista([], schema) })
      const { id: taskId } = taskIn(await runtime.sendMessage(say('x')))
      t.equal(stateName(taskIn(await runtime.sendMessage(say('y', { taskId }))).status.state), 'failed')
      t.match(log, [{ message: 'the work of a task failed' }])
    }
  })

  await t.test('in parallel states takes words and schema from the same state', async t => {
    const heard: unknown[] = []
    const work = setupWork({
      actions: { note: ({ event }) => void heard.push(dataOf(event, byHand), dataOf(event, z.string())) }
    }).createMachine({
      id: 'c',
      type: 'parallel',
      states: {
        silent: { tags: 'input-required' },
        asking: {
          initial: 'one',
          states: { one: { tags: 'input-required', meta: { prompt: 'One?', schema: byHand } }, two: {} }
        }
      },
      on: { 'message.received': { target: '.asking.two', actions: 'note' } }
    })
    const { runtime } = start(t, { work })
    const { id: taskId, status } = taskIn(await runtime.sendMessage(say('x')))
    t.equal(textOf(status.message), 'One?')
    t.equal((await refusal(runtime.sendMessage(say('no', { taskId })))).code, 'InvalidParams')
    await runtime.sendMessage(say('7', { taskId }, { returnImmediately: true }))
    t.strictSame(heard, [7, '7'], 'another schema reads the message')
  })
})

await t.test("a message's data is its first data part or its text, with errors by path", t => {
  t.strictSame(dataOf(userMessage('7'), byHand), 7)
  t.strictSame(dataOf({ parts: [text('x'), data({ dish: 'soup', people: '2' }), data(1)] }, order), {
    dish: 'soup',
    people: 2
  })
  const drawn = { artifactId: 'a', parts: [data({})] }
  const failing = (run: () => unknown) => {
    try {
      run()
    } catch (error) {
      if (isA2AError(error))
        return { code: error.code, message: error.message, fields: error.violations.map(({ field }) => field) }
      throw error
    }
    throw new TypeError('It did not throw.')
  }
  t.match(
    failing(() => dataOf(userMessage('x'), byHand)),
    { code: 'InvalidParams', message: 'Invalid parameters: message.parts.n is no number', fields: ['message.parts.n'] }
  )
  t.match(
    failing(() => dataOf({ parts: [data({})] }, order)),
    { fields: ['message.parts.dish', 'message.parts.people'] }
  )
  t.match(
    failing(() => dataOf(drawn, order)),
    { fields: ['artifact.parts.dish', 'artifact.parts.people'] }
  )
  t.equal(
    failing(() => dataOf({ parts: [data(Array.from({ length: 1000 }, () => 'x'))] }, z.array(z.number()))).fields
      .length,
    20
  )
  t.match(
    failing(() => dataOf({ type: 'authorization.received', data: 'x' }, byHand)),
    { fields: ['data.n'] }
  )
  t.equal(
    dataOf({ type: 'message.received', message: userMessage('7') }, byHand),
    7,
    'a chart may run without a runtime'
  )
  t.equal(typed(size), undefined, 'a type has no value')
  t.end()
})

await t.test("a schema's JSON Schema comes from its library, if available", t => {
  t.strictSame(jsonSchemaOf(size), SIZE)
  t.equal(jsonSchemaOf(byHand), undefined)
  for (const wrong of [
    () => {
      throw new Error('no')
    },
    () => undefined,
    () => [],
    () => ({ n: 7n })
  ])
    t.equal(jsonSchemaOf(telling(wrong as () => Record<string, unknown>)), undefined)
  t.end()
})

await t.test('an agent with a schema for its messages', async t => {
  const cook = defineAgent({ card, input: order, work: ({ input }) => ({ artifact: data(input) }) })

  await t.test('opens no task for an invalid message, which is refused by field', async t => {
    const { runtime } = start(t, cook)
    for (const [message, fields] of [
      [userMessage('soup'), ['message.parts']],
      [userMessage('', { parts: [data({ dish: 1, people: 0 })] }), ['message.parts.dish', 'message.parts.people']]
    ] as const) {
      for (const contextId of [undefined, 'c']) {
        const error = await rejection(runtime.sendMessage({ message: { ...message, ...(contextId && { contextId }) } }))
        t.match(error, { code: 'InvalidParams', message: /^The message does not open a task: message\.parts/ })
        t.strictSame(
          (error as unknown as { violations: { field: string }[] }).violations.map(({ field }) => field),
          fields
        )
      }
    }
    t.strictSame((await runtime.listTasks({})).tasks, [])
    const done = taskIn(
      await runtime.sendMessage({
        message: userMessage('', { parts: [text('x'), data({ dish: 'soup', people: '2' })] })
      })
    )
    t.strictSame(done.artifacts?.[0]?.parts, [{ data: { dish: 'soup', people: 2 } }])
  })

  await t.test('passes the result to a generator and to a chart, and again after a restart', async t => {
    const taken = { input: order } as const
    const generator = {
      ...taken,
      work: async function* ({ input }: { input: unknown }) {
        const answer = yield* inputRequired('Sure?')
        return { artifact: data([input as never, textOf(answer) ?? '']) }
      }
    } satisfies Partial<AgentDefinition>
    const chart = {
      ...taken,
      work: setupWork({
        types: { context: typed<{ people: number; again: string }>(), input: typed(order) }
      }).createMachine({
        context: ({ input }) => ({ people: input.input.people, again: '' }),
        initial: 'a',
        states: { a: { tags: 'input-required', on: { 'message.received': 'b' } }, b: { type: 'final' } },
        output: ({ context }) => ({ artifact: data(context.people) })
      })
    }
    for (const [agent, end] of [
      [generator, [{ dish: 'soup', people: 2 }, 'yes']],
      [chart, 2]
    ] as const) {
      const life = lives(t, agent)
      const { id: taskId } = taskIn(
        await life.runtime.sendMessage({ message: userMessage('', { parts: [data({ dish: 'soup', people: '2' })] }) })
      )
      await life.restart(agent)
      t.strictSame(taskIn(await life.runtime.sendMessage(say('yes', { taskId }))).artifacts?.[0]?.parts, [
        { data: end }
      ])
    }
  })

  await t.test('fails opened tasks with messages that it no longer accepts, with the reason', async t => {
    const asking = (input: StandardSchema<unknown>) =>
      ({
        input,
        work: async function* () {
          yield* inputRequired('Sure?')
        }
      }) satisfies Partial<AgentDefinition>
    const life = lives(t, asking(z.string()))
    const { id: taskId } = taskIn(await life.runtime.sendMessage(say('x')))
    await life.restart(asking(order))
    await life.runtime.sendMessage(say('yes', { taskId })).catch(() => {})
    t.match(
      textOf((await reaches(life.runtime, taskId, 'failed')).status.message),
      /^The message that opened this task does not match the agent's present input schema/
    )
  })

  await t.test('validates after a negotiation has accepted, and not before', async t => {
    const { runtime, log } = start(t, {
      ...cook,
      negotiate: ({ message }) => (textOf(message) === 'hello' ? reply('hi') : accepted({ price: 1 }))
    })
    t.equal(textOf(messageIn(await runtime.sendMessage(say('hello')))), 'hi')
    t.match(await rejection(runtime.sendMessage(say('soup'))), {
      code: 'InvalidParams',
      violations: [{ field: 'message.parts' }]
    })
    t.strictSame((await runtime.listTasks({})).tasks, [])
    const done = taskIn(
      await runtime.sendMessage({ message: userMessage('', { parts: [data({ dish: 'soup', people: '2' })] }) })
    )
    t.strictSame(done.artifacts?.[0]?.parts, [{ data: { dish: 'soup', people: 2 } }])
    t.strictSame(log, [])
  })

  await t.test('shows it on its card as an extension, from its library or its author', async t => {
    const extensionsOf = (definition: Partial<AgentDefinition>) => {
      const runtime = createRuntime({
        agent: defineAgent({ card, work: () => {}, ...definition }),
        clock: new TestClock(),
        store: memoryStore(),
        logger: recordingLogger().logger
      })
      t.teardown(() => runtime.close())
      return servedRuntime(runtime, 'a test')
        .agentCard([])
        .capabilities.extensions?.filter(({ uri }) => uri === INPUT_EXTENSION)
    }
    t.match(extensionsOf({ input: order }), [{ params: { schema: { type: 'object', required: ['dish', 'people'] } } }])
    t.match(extensionsOf({ input: byHand, inputJsonSchema: { type: 'integer' } }), [
      { params: { schema: { type: 'integer' } } }
    ])
    t.strictSame(extensionsOf({ input: byHand }), [])
    t.strictSame(extensionsOf({}), [])
    t.throws(() => extensionsOf({ extensions: [{ uri: INPUT_EXTENSION }] }), { message: /one of taskchart's own/ })
  })

  await t.test('is refused if it is defined incorrectly', t => {
    const wrong: [definition: object, name: string, message: RegExp][] = [
      [{ card, input: 7, work: () => {} }, 'TypeError', /^input has to implement Standard Schema/],
      [
        { card, input: order, inputJsonSchema: [], work: () => {} },
        'TypeError',
        /^inputJsonSchema has to be a JSON Schema/
      ],
      [
        { card, inputJsonSchema: {}, work: () => {} },
        'TypeError',
        /^inputJsonSchema is only shown to clients\. Add input, which validates/
      ],
      [
        { card, input: order, inputJsonSchema: { title: 'x'.repeat(20_000) }, work: () => {} },
        'RangeError',
        /^The JSON Schema of input has 20012 bytes, .* as inputJsonSchema: /
      ],
      [
        { card, input: order, negotiate: () => reply('x') },
        'TypeError',
        /^input validates the message that opens a task, but an agent without work opens none\./
      ]
    ]
    for (const [definition, name, message] of wrong)
      t.throws(() => defineAgent(definition as AgentDefinition), { name, message })
    t.end()
  })
})
