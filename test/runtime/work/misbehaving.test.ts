/* oxlint-disable require-yield -- generators that end before they say anything are among what is tested */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { assign, emit, fromPromise, raise } from 'xstate'
import {
  artifact,
  authRequired,
  failed,
  inputRequired,
  progress,
  setupWork,
  text,
  textOf as wordsOf,
  type AgentDefinition,
  type RuntimeOptions,
  type WorkArguments,
  type WorkGenerator
} from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { sqliteStore } from '../../../adapters/storage/sqlite.ts'
import { eventsOf, failOnLooseErrors, generationsIn } from '../../fixtures/runtime/lives.ts'
import {
  brief,
  collect,
  open,
  reaches,
  refusal,
  rest,
  say,
  start,
  stateName,
  taskIn,
  textOf,
  until,
  type Started
} from '../../fixtures/runtime/runtime-helpers.ts'
import { NO_SQLITE } from '../../fixtures/stores/sqlite.ts'

failOnLooseErrors(t)

const ERROR = 'The work ended with an error.'
const anyone = { tenant: '', principal: 'anonymous' }
const TOO_MANY = /events/
const NOT_JSON = /JSON does not keep/
const INVALID = /^The agent's code/

const cyclic: Record<string, unknown> = {}
cyclic.self = cyclic
const trap = () =>
  new Proxy(
    {},
    {
      get() {
        throw new Error('a trap')
      },
      has() {
        throw new Error('a trap')
      },
      ownKeys() {
        throw new Error('a trap')
      }
    }
  )
const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}
const getter = {
  get artifact(): string {
    throw new Error('a getter')
  }
}
/** An error that throws when anybody looks at it. */
const evil = () =>
  new Proxy(new Error('evil'), {
    get() {
      throw new Error('a trap')
    },
    getPrototypeOf() {
      throw new Error('a trap')
    }
  })
const many = Array.from({ length: 600 }, (_, i) => `${i}`)
/** What `await` takes for a promise. */
const thenable = (then: unknown) =>
  Object.defineProperty(
    {},
    // oxlint-disable-next-line unicorn/no-thenable -- this is what is tested
    'then',
    typeof then === 'function'
      ? { value: then }
      : {
          get: () => {
            throw new Error('a getter')
          }
        }
  )

type Work = NonNullable<AgentDefinition['work']>
type Bad = (work: WorkArguments) => unknown

/** An agent that does what the message names as bad, and beside it echoes. */
function both(bad: Bad): Work {
  return ((work: WorkArguments) =>
    wordsOf(work.message) === 'bad' ? bad(work) : { artifact: wordsOf(work.message) }) as Work
}

/** Runs a bad task and, while and after it, good ones in its context and in another. */
async function amongOthers(t: Test, work: Work, options?: Partial<RuntimeOptions>): Promise<Started & { id: string }> {
  const started = start(t, { work }, options)
  const { runtime } = started
  const inC = { contextId: 'c' }
  const { id } = await open(runtime, 'bad', inC)
  const others = ['one', 'two'].flatMap(word => [runtime.sendMessage(say(word, inC)), runtime.sendMessage(say(word))])
  for (const other of await Promise.all(others)) t.equal(stateName(taskIn(other).status.state), 'completed')
  await until(async () => stateName((await runtime.getTask({ id })).status.state) !== 'working')
  t.equal(stateName(taskIn(await runtime.sendMessage(say('after', inC))).status.state), 'completed')
  return { ...started, id }
}

await t.test('a misbehaving function fails only its task, with a reason', async t => {
  const bad: [how: string, work: Bad, reason: string | RegExp][] = [
    [
      'throws',
      () => {
        throw new Error('secret')
      },
      ERROR
    ],
    [
      'throws undefined',
      () => {
        throw undefined
      },
      ERROR
    ],
    [
      'throws an error that throws',
      () => {
        throw evil()
      },
      ERROR
    ],
    [
      'rejects',
      async () => {
        throw new Error('secret')
      },
      ERROR
    ],
    ['rejects with undefined', () => Promise.reject(undefined), ERROR],
    ['returns garbage', () => 42, INVALID],
    ['returns a function', () => () => {}, INVALID],
    ['returns a Proxy that throws', () => trap(), ERROR],
    ['returns a Proxy that is revoked', () => revoked(), ERROR],
    ['returns an object whose getter throws', () => getter, ERROR],
    [
      'returns a thenable that throws',
      () =>
        thenable(() => {
          throw new Error('secret')
        }),
      ERROR
    ],
    ['returns a thenable whose then cannot be read', () => thenable(undefined), ERROR],
    ['returns a thenable of garbage', () => thenable((resolve: (value: unknown) => void) => resolve(7)), INVALID],
    ['returns an artifact that is no JSON', () => ({ artifact: { data: cyclic } }), NOT_JSON],
    ['returns metadata that are no JSON', () => ({ metadata: { n: 1n } }), NOT_JSON],
    ['emits garbage', ({ emit: tell }) => tell(42 as never), INVALID],
    ['emits a Proxy that throws', ({ emit: tell }) => tell(trap() as never), ERROR],
    ['emits an artifact that is no JSON', ({ emit: tell }) => tell(artifact({ data: cyclic } as never)), NOT_JSON],
    [
      'emits metadata that are no JSON',
      ({ emit: tell }) => tell({ type: 'progress', metadata: { f: cyclic } }),
      NOT_JSON
    ],
    ['asks garbage', ({ ask }) => ask(trap() as never), ERROR],
    ['asks what is no JSON', ({ ask }) => ask(inputRequired({ parts: [text('?')], metadata: cyclic })), NOT_JSON],
    [
      'has a step that throws',
      ({ step }) =>
        step('x', () => {
          throw new Error('secret')
        }),
      ERROR
    ],
    ['has a step whose result is no JSON', ({ step }) => step('x', () => cyclic), NOT_JSON],
    ['has a step whose result is a Proxy that throws', ({ step }) => step('x', trap), ERROR],
    ['has a step that is none', ({ step }) => step('x', 7 as never), ERROR],
    ['spawns nonsense', ({ spawn }) => spawn(7 as never), ERROR],
    [
      'says more than a task may hold',
      async ({ emit: tell }) => {
        for (let i = 0; i < 200; i += 1) tell(progress(`${i}`))
        await new Promise(() => {})
      },
      TOO_MANY
    ],
    [
      'hands over more artifacts than a task may hold',
      async ({ emit: tell }) => {
        for (let i = 0; i < 200; i += 1) tell(artifact(`${i}`))
        await new Promise(() => {})
      },
      TOO_MANY
    ],
    ['returns more artifacts than a task may hold', () => ({ artifacts: many }), TOO_MANY],
    ['returns one artifact more than a task may hold', () => ({ artifacts: many.slice(0, 98) }), TOO_MANY]
  ]
  for (const [how, work, reason] of bad) {
    await t.test(how, async t => {
      const { runtime, id, log, store } = await amongOthers(t, both(work), { limits: { eventsPerTask: 100 } })
      const { status } = await runtime.getTask({ id })
      t.equal(stateName(status.state), 'failed')
      t.match(textOf(status.message), reason)
      t.match(log, [{ level: 'error', message: 'the work of a task failed', details: { taskId: id } }])
      const generations = await generationsIn(store, anyone, id)
      t.strictSame(
        generations,
        generations.map((_, i) => i + 1)
      )
      t.ok(generations.length <= 101)
    })
  }
})

await t.test('a misbehaving generator fails only its task, with a reason', async t => {
  const bad: [how: string, work: WorkGenerator, reason: string | RegExp][] = [
    [
      'throws',
      async function* () {
        throw new Error('secret')
      },
      ERROR
    ],
    [
      'throws an error that throws',
      async function* () {
        yield progress()
        throw evil()
      },
      ERROR
    ],
    [
      'yields garbage',
      async function* () {
        yield 42 as never
      },
      INVALID
    ],
    [
      'yields a Proxy that is revoked',
      async function* () {
        yield revoked() as never
      },
      ERROR
    ],
    [
      'yields a promise that rejects',
      async function* () {
        yield Promise.reject(new Error('secret')) as never
      },
      ERROR
    ],
    [
      'yields an artifact that is no JSON',
      async function* () {
        yield artifact({ data: cyclic } as never)
      },
      NOT_JSON
    ],
    [
      'yields a question that is no JSON',
      async function* () {
        yield* inputRequired({ parts: [{ data: cyclic } as never] })
      },
      NOT_JSON
    ],
    [
      'returns a Proxy that throws',
      async function* () {
        return trap()
      },
      ERROR
    ],
    [
      'yields progress for ever',
      async function* () {
        for (let i = 0; ; i += 1) yield progress(`${i}`)
      },
      TOO_MANY
    ],
    [
      'yields artifacts for ever',
      async function* () {
        for (let i = 0; ; i += 1) yield artifact(`${i}`)
      },
      TOO_MANY
    ],
    [
      'yields chunks for ever',
      async function* () {
        for (let i = 0; ; i += 1) yield artifact({ artifactId: 'a', parts: [text('.')] }, { append: i > 0 })
      },
      TOO_MANY
    ],
    [
      'returns more artifacts than a task may hold',
      async function* () {
        return { artifacts: many }
      },
      TOO_MANY
    ],
    [
      'yields for ever, and does not care',
      async function* () {
        for (;;)
          try {
            yield progress()
          } catch {
            /* on and on */
          }
      },
      TOO_MANY
    ]
  ]
  for (const [how, work, reason] of bad) {
    await t.test(how, async t => {
      const { runtime, id, log, store } = await amongOthers(
        t,
        (given => (wordsOf(given.message) === 'bad' ? work(given) : echo(given))) as WorkGenerator,
        { limits: { eventsPerTask: 500 } }
      )
      const { status } = await runtime.getTask({ id })
      t.equal(stateName(status.state), 'failed')
      t.match(textOf(status.message), reason)
      t.match(log, [{ level: 'error', details: { taskId: id } }])
      t.ok((await eventsOf(store, id)).length <= 501)
    })
  }

  async function* echo({ message }: Pick<WorkArguments, 'message'>) {
    return { artifact: wordsOf(message) }
  }
})

await t.test('a result over the limit of events sends the first artifacts, and then fails', async t => {
  const { runtime, store, log } = start(
    t,
    { work: ({ message }) => ({ artifacts: many.slice(0, Number(wordsOf(message))) }) },
    { limits: { eventsPerTask: 6 } }
  )
  const told = (await collect(runtime.sendStreamingMessage(say('4')))).map(brief)
  t.strictSame(told, [
    'task:submitted',
    'working',
    'artifact: 0',
    'artifact: 1',
    'artifact: 2',
    'failed: The task was ended: its log had 6 events and messages, the limit of this agent for one task.'
  ])
  t.equal(log.length, 1)
  const done = taskIn(await runtime.sendMessage(say('2')))
  t.equal(stateName(done.status.state), 'completed')
  t.equal((await eventsOf(store, done.id)).length, 5)
})

await t.test('a task over a lowered limit of events fails when it is restored', async t => {
  const store: Store = { ...memoryStore(), close: async () => {} }
  const before = start(t, { work: both(({ ask }) => ask(inputRequired('?'))) }, { store })
  const { id } = taskIn(await before.runtime.sendMessage(say('bad')))
  await before.runtime.close()
  const after = start(t, { work: both(({ ask }) => ask(inputRequired('?'))) }, { store, limits: { eventsPerTask: 2 } })
  t.match(await refusal(after.runtime.sendMessage(say('yes', { taskId: id }))), {
    code: 'UnsupportedOperation',
    metadata: { state: 'TASK_STATE_FAILED' }
  })
  t.match(textOf((await after.runtime.getTask({ id })).status.message), TOO_MANY)
})

const TOO_LARGE =
  /^The task was ended: with its artifacts, statuses, messages, context and journal it would have [12]\d{4} bytes, and 10000 are the limit of this agent for one task\.$/
const kilobyte = 'x'.repeat(1000)

await t.test('a task over the limit of bytes fails with a reason, and stays readable', async t => {
  const bad: [how: string, work: Work, artifacts: number, isWarned: boolean][] = [
    [
      'artifacts',
      async function* () {
        for (;;) yield artifact(kilobyte)
      },
      8,
      true
    ],
    [
      'chunks of one artifact',
      async function* () {
        for (let i = 0; ; i += 1) yield artifact({ artifactId: 'a', parts: [text(kilobyte)] }, { append: i > 0 })
      },
      1,
      true
    ],
    [
      'an artifact that is begun again and again',
      async function* () {
        for (;;) yield artifact({ artifactId: 'a', parts: [text(kilobyte)] })
      },
      1,
      true
    ],
    [
      'statuses',
      async function* () {
        for (;;) yield progress(kilobyte)
      },
      0,
      true
    ],
    [
      'metadata',
      async function* () {
        for (;;) yield artifact({ parts: [text('.')], metadata: { kilobyte } })
      },
      8,
      true
    ],
    [
      'what a function emits that goes on',
      async ({ emit: tell }) => {
        for (let i = 0; i < 20; i += 1) tell(artifact(kilobyte))
        await new Promise(() => {})
      },
      8,
      true
    ],
    ['the artifacts of a result', () => ({ artifacts: Array.from({ length: 20 }, () => kilobyte) }), 8, true],
    ['a last message', () => ({ message: kilobyte.repeat(20) }), 0, false],
    ['a reason', () => failed(kilobyte.repeat(20)), 0, false],
    ['a question', ({ ask }) => ask(inputRequired(kilobyte.repeat(20))), 0, false]
  ]
  for (const [how, work, artifacts, isWarned] of bad) {
    await t.test(how, async t => {
      const { runtime, store, log } = start(t, { work }, { limits: { taskBytes: 10_000 } })
      const { id } = taskIn(await runtime.sendMessage(say('bad')))
      const task = await runtime.getTask({ id })
      t.equal(stateName(task.status.state), 'failed')
      t.match(textOf(task.status.message), TOO_LARGE)
      t.equal(task.artifacts?.length ?? 0, artifacts)
      t.ok(JSON.stringify(await eventsOf(store, id)).length < 12_000)
      t.equal(log.filter(({ level }) => level === 'error').length, 1)
      const warnings = log.filter(({ level }) => level === 'warn')
      t.match(
        warnings,
        isWarned
          ? [
              {
                message: 'a task is near its limit of bytes',
                details: { taskId: id, bytes: Number, taskBytes: 10_000 }
              }
            ]
          : []
      )
      t.equal(warnings.length, isWarned ? 1 : 0)
    })
  }
})

await t.test('messages count as bytes of their task, and one over the limit is refused', async t => {
  const asking: Work = async ({ ask }) => {
    for (;;) await ask(inputRequired('?'))
  }
  const { runtime } = start(t, { work: asking }, { limits: { taskBytes: 10_000 } })
  const { id } = taskIn(await runtime.sendMessage(say(kilobyte)))
  const answer = (words: string) => runtime.sendMessage(say(words, { taskId: id }))
  for (let count = 0; count < 2; count += 1) await answer(kilobyte)
  const before = await runtime.getTask({ id })
  t.match(await refusal(answer(kilobyte.repeat(5))), {
    code: 'RateLimited',
    message: /has no room for a message of this size/,
    metadata: { taskId: id }
  })
  t.strictSame(await runtime.getTask({ id }), before)
  t.match(taskIn(await answer('a short one')), { status: { state: 'TASK_STATE_INPUT_REQUIRED' } })
  const { runtime: narrow } = start(t, { work: asking }, { limits: { taskBytes: 100 } })
  const told = (await collect(narrow.sendStreamingMessage(say(kilobyte)))).map(brief)
  t.strictSame(told, ['task:failed'], 'the message that opens a task is always stored')
})

for (const engine of ['memory', 'SQLite'] as const) {
  await t.test(
    `the bytes of a task continue to count after a restore, in ${engine}`,
    { skip: engine === 'SQLite' && NO_SQLITE },
    async t => {
      const kept = engine === 'memory' ? memoryStore() : sqliteStore(join(t.testdir(), 'tasks.db'))
      t.teardown(() => kept.close())
      const store: Store = { ...kept, close: async () => {} }
      const work: Work = async ({ ask, emit: tell }) => {
        tell(artifact(kilobyte.repeat(5)))
        await ask(inputRequired('?'))
        tell(artifact(kilobyte.repeat(6)))
        await new Promise(() => {})
      }
      const before = start(t, { work }, { store, limits: { taskBytes: 10_000 } })
      const { id } = taskIn(await before.runtime.sendMessage(say('one')))
      const other = taskIn(await before.runtime.sendMessage(say('two')))
      await before.runtime.close()
      const after = start(t, { work }, { store, limits: { taskBytes: 10_000 } })
      t.match(textOf(taskIn(await after.runtime.sendMessage(say('go on', { taskId: id }))).status.message), TOO_LARGE)
      await after.runtime.close()
      const narrower = start(t, { work }, { store, limits: { taskBytes: 1000 } })
      t.match(await refusal(narrower.runtime.sendMessage(say('go on', { taskId: other.id }))), {
        code: 'UnsupportedOperation',
        metadata: { state: 'TASK_STATE_FAILED' }
      })
      t.equal((await narrower.runtime.getTask({ id: other.id })).artifacts?.length, 1)
    }
  )
}

for (const engine of ['memory', 'SQLite'] as const) {
  await t.test(
    `the context of a chart and the journal of a function count as bytes of their task, in ${engine}`,
    { skip: engine === 'SQLite' && NO_SQLITE },
    async t => {
      const growing = setupWork({ types: { context: { words: '' } } }).createMachine({
        context: { words: '' },
        initial: 'asking',
        states: {
          asking: {
            tags: 'input-required',
            meta: { prompt: '?' },
            on: { 'message.received': { actions: assign({ words: () => kilobyte.repeat(20) }) } }
          }
        }
      })
      const stepping: Work = async ({ ask, step }) => {
        await step('first', () => kilobyte.repeat(3))
        await ask(inputRequired('?'))
        await step('second', () => kilobyte.repeat(3))
        await ask(inputRequired('Again?'))
        await step('too large', () => kilobyte.repeat(5))
        await new Promise(() => {})
      }
      for (const [work, answers] of [
        [growing, 1],
        [stepping, 2]
      ] as const) {
        const kept = engine === 'memory' ? memoryStore() : sqliteStore(join(t.testdir(), `${answers}.db`))
        t.teardown(() => kept.close())
        const store: Store = { ...kept, close: async () => {} }
        let { runtime } = start(t, { work }, { store, limits: { taskBytes: 10_000 } })
        const { id } = taskIn(await runtime.sendMessage(say('one')))
        for (let sent = 1; sent < answers; sent += 1)
          t.match(taskIn(await runtime.sendMessage(say('go on', { taskId: id }))), {
            status: { state: 'TASK_STATE_INPUT_REQUIRED' }
          })
        await runtime.close()
        const again = start(t, { work }, { store, limits: { taskBytes: 10_000 } })
        ;({ runtime } = again)
        t.match(textOf(taskIn(await runtime.sendMessage(say('go on', { taskId: id }))).status.message), TOO_LARGE)
        t.equal(
          (await store.readJournal({ tenant: '', principal: 'anonymous' }, id)).some(({ key }) =>
            key.includes('too large')
          ),
          false
        )
        t.equal(again.log.filter(({ level }) => level === 'error').length, 1)
        await runtime.close()
      }
    }
  )
}

await t.test('a misbehaving chart fails only its task, with a reason', async t => {
  const words = (what: unknown) =>
    setupWork({}).createMachine({ initial: 'a', states: { a: { entry: emit(what as never) } } })
  const bad: [how: string, work: Work, reason: string | RegExp][] = [
    ['emits garbage', words(42), INVALID],
    ['emits a Proxy that throws', words(trap()), ERROR],
    ['emits an artifact that is no JSON', words(artifact({ data: cyclic } as never)), NOT_JSON],
    [
      'asks garbage',
      setupWork({}).createMachine({
        initial: 'a',
        states: {
          a: { tags: 'input-required', meta: { prompt: () => trap() as never }, on: { 'message.received': {} } }
        }
      }),
      ERROR
    ],
    [
      'outputs a Proxy that throws',
      setupWork({}).createMachine({ initial: 'a', states: { a: { type: 'final' } }, output: () => trap() }),
      ERROR
    ],
    [
      'has a promise that rejects with undefined',
      setupWork({
        actors: {
          p: fromPromise(async () => {
            throw undefined
          })
        }
      }).createMachine({ invoke: { src: 'p' } }),
      ERROR
    ],
    [
      'outputs more artifacts than a task may hold',
      setupWork({}).createMachine({
        initial: 'a',
        states: { a: { type: 'final' } },
        output: () => ({ artifacts: many })
      }),
      TOO_MANY
    ],
    [
      'goes round for ever without an event',
      setupWork({}).createMachine({
        initial: 'a',
        states: { a: { after: { 0: 'b' } }, b: { always: 'c' }, c: { always: 'b' } }
      }),
      ERROR
    ],
    [
      'goes round for ever in its first step',
      setupWork({}).createMachine({ initial: 'a', states: { a: { always: 'b' }, b: { always: 'a' } } }),
      ERROR
    ],
    [
      'goes round for ever beside another state',
      setupWork({}).createMachine({
        type: 'parallel',
        states: {
          one: {},
          two: { initial: 'a', states: { a: { after: { 0: 'b' } }, b: { always: 'c' }, c: { always: 'b' } } }
        }
      }),
      ERROR
    ],
    [
      'raises events for ever',
      setupWork({ types: { events: {} as { type: 'on' } } }).createMachine({
        initial: 'a',
        states: { a: { entry: raise({ type: 'on' }), on: { on: { target: 'a', reenter: true } } } }
      }),
      ERROR
    ],
    [
      'has a chart below it that goes round for ever',
      setupWork({
        actors: {
          inner: setupWork({}).createMachine({
            initial: 'a',
            states: { a: { after: { 0: 'b' } }, b: { always: 'c' }, c: { always: 'b' } }
          })
        }
      }).createMachine({ invoke: { src: 'inner', input: () => ({}) as never } }),
      ERROR
    ],
    [
      'takes more steps than it allows itself',
      setupWork({ types: { context: {} as { n: number } } }).createMachine({
        options: { maxIterations: 5 },
        context: { n: 0 },
        initial: 'a',
        states: {
          a: {
            always: {
              guard: ({ context }) => context.n < 10,
              target: 'a',
              reenter: true,
              actions: assign(({ context }) => ({ n: context.n + 1 }))
            }
          }
        }
      }),
      ERROR
    ],
    [
      'goes round for ever',
      setupWork({ actors: { p: fromPromise(async () => {}) } }).createMachine({
        initial: 'a',
        states: { a: { entry: emit(progress()), invoke: { src: 'p', onDone: { target: 'a', reenter: true } } } }
      }),
      TOO_MANY
    ]
  ]
  for (const [how, work, reason] of bad) {
    await t.test(how, async t => {
      const { runtime, clock, log } = start(t, { work }, { limits: { eventsPerTask: 100 } })
      const other = await open(runtime, 'other', { contextId: 'c' })
      const { id } = await open(runtime, 'bad', { contextId: 'c' })
      await rest()
      clock.increment(0)
      const { status } = await reaches(runtime, id, 'failed')
      t.match(textOf(status.message), reason)
      t.equal(stateName((await reaches(runtime, other.id, 'failed')).status.state), 'failed')
      const [first] = log.filter(({ level }) => level === 'error')
      t.match(first, { message: 'the work of a task failed' })
    })
  }
})

await t.test('a chart that throws in its first step logs one error', async t => {
  const boom = (): never => {
    throw new Error('boom')
  }
  const charts: Work[] = [
    setupWork({}).createMachine({ context: boom }),
    setupWork({}).createMachine({ initial: 'a', states: { a: { always: { guard: boom, target: 'b' } }, b: {} } }),
    setupWork({}).createMachine({ initial: 'a', states: { a: { entry: boom } } })
  ]
  for (const work of charts) {
    const { runtime, log } = start(t, { work })
    t.equal(stateName(taskIn(await runtime.sendMessage(say('x'))).status.state), 'failed')
    await rest()
    t.match(log, [{ message: 'the work of a task failed', details: { error: /boom/ } }])
    t.equal(log.length, 1)
  }
})

await t.test('a chart that takes ten thousand steps without an event settles', async t => {
  for (const type of ['compound', 'parallel'] as const) {
    const counting = {
      initial: 'a',
      states: {
        a: {
          always: [
            {
              guard: ({ context }: { context: { n: number } }) => context.n < 9_999,
              target: 'a',
              reenter: true,
              actions: assign(({ context }: { context: { n: number } }) => ({ n: context.n + 1 }))
            },
            'b'
          ]
        },
        b: { type: 'final' as const }
      }
    }
    const work = type === 'parallel' ? { type, states: { only: counting } } : counting
    const { runtime } = start(t, {
      work: setupWork({ types: { context: {} as { n: number } } }).createMachine({
        context: { n: 0 },
        ...work
      } as never) as unknown as Work
    })
    t.equal(stateName(taskIn(await runtime.sendMessage(say('x'))).status.state), 'completed')
  }
})

await t.test('work that never ends', async t => {
  const works: [how: string, work: Work][] = [
    ['hangs', () => new Promise(() => {})],
    ['returns a thenable that hangs', () => thenable(() => {}) as never],
    ['hangs in a step', ({ step }) => step('x', () => new Promise(() => {}))],
    [
      'hangs as a generator',
      async function* () {
        yield progress()
        await new Promise(() => {})
      }
    ],
    ['sleeps', ({ sleep }) => sleep(2 ** 40)]
  ]
  for (const [how, work] of works) {
    await t.test(`because it ${how} blocks nothing, and is canceled`, async t => {
      const { runtime, clock, log } = start(t, { work: both(work as Bad), cancelGraceMs: 100 })
      const { id } = await open(runtime, 'bad', { contextId: 'c' })
      t.equal(stateName(taskIn(await runtime.sendMessage(say('good', { contextId: 'c' }))).status.state), 'completed')
      t.equal(stateName((await runtime.cancelTask({ id })).status.state), 'canceled')
      await rest()
      clock.increment(100)
      t.equal(clock.pending, 0)
      t.ok(log.every(({ level }) => level === 'warn'))
      await runtime.close()
    })
  }

  await t.test('because nobody answers ends at its question’s deadline', async t => {
    for (const question of [inputRequired('?', { deadlineMs: 1000 }), authRequired('?', { deadlineMs: 1000 })]) {
      const { runtime, clock } = start(t, { work: ({ ask }) => ask(question as never) })
      const { id } = await open(runtime)
      await until(async () => /required/.test(stateName((await runtime.getTask({ id })).status.state)))
      clock.increment(1000)
      t.equal(textOf((await reaches(runtime, id, 'failed')).status.message), 'Nobody answered within 1000 ms.')
    }
  })
})

await t.test('work that continues after its end is ignored', async t => {
  await t.test('as a function: its words, steps and questions', async t => {
    let after: Promise<unknown> | undefined
    const { runtime, id, log, store } = await amongOthers(
      t,
      both(({ emit: tell, step, ask }) => {
        const goOn = async () => {
          await rest()
          tell(progress('late'))
          tell(artifact('late'))
          tell(42 as never)
          const results = await Promise.allSettled([step('late', () => 1), ask(inputRequired('late'))])
          return results.map(({ status }) => status)
        }
        after = goOn()
        return { artifact: 'done' }
      })
    )
    t.strictSame(await after, ['rejected', 'rejected'])
    t.strictSame(
      (await eventsOf(store, id)).map(({ update }) => brief(update)),
      ['submitted', 'working', 'artifact: done', 'completed']
    )
    t.match(log, [{ level: 'warn', message: 'a word was dropped because its work had ended' }])
    t.equal(log.length, 1)
    t.equal(stateName((await runtime.getTask({ id })).status.state), 'completed')
  })

  await t.test('as a canceled generator: its words, whatever it catches', async t => {
    let isThere = false
    const { runtime, store } = start(t, {
      work: async function* () {
        for (;;) {
          try {
            yield* inputRequired('?')
          } catch {
            isThere = true
          }
        }
      }
    })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    await runtime.cancelTask({ id })
    await rest()
    t.notOk(isThere, 'it gets a return, not an error')
    t.equal((await eventsOf(store, id)).length, 4)
  })
})

await t.test('a large amount', async t => {
  await t.test('of artifacts is sent, stored and read completely', async t => {
    const { runtime } = start(t, {
      work: async function* () {
        for (let i = 0; i < 9000; i += 1) yield artifact({ artifactId: `a${i}`, parts: [text('x')] })
      }
    })
    const told = await collect(runtime.sendStreamingMessage(say('x')))
    t.equal(told.length, 9003)
    t.equal((await runtime.getTask({ id: taskIn(told[0]).id })).artifacts?.length, 9000)
  })

  await t.test('of artifacts, 10,000, exceeds the limit of events, and fails the task', async t => {
    const { runtime, store } = start(t, {
      work: async function* () {
        for (let i = 0; i < 10_000; i += 1) yield artifact('x')
      }
    })
    const { id, status } = taskIn(await runtime.sendMessage(say('x')))
    t.strictSame([stateName(status.state), (await eventsOf(store, id)).length], ['failed', 10_000])
    t.match(textOf(status.message), TOO_MANY)
  })

  await t.test('of text in one artifact, 15 MB, is accepted while others are served', async t => {
    const big = 'x'.repeat(15_000_000)
    const { runtime, id } = await amongOthers(
      t,
      both(() => ({ artifact: big }))
    )
    t.equal(textOf((await runtime.getTask({ id })).artifacts?.[0])?.length, big.length)
  })

  await t.test('of words from one generator does not block the event loop', async t => {
    let words = 0
    const { runtime } = start(t, {
      work: async function* ({ message }) {
        if (wordsOf(message) === 'quick') return
        for (; ; words += 1) yield progress()
      }
    })
    const { id } = await open(runtime)
    await until(() => words > 0)
    const before = words
    await rest()
    t.ok(words - before <= 10 * 32, `${words - before} words in five turns`)
    t.equal(stateName(taskIn(await runtime.sendMessage(say('quick'))).status.state), 'completed')
    t.equal(stateName((await runtime.getTask({ id })).status.state), 'working')
    await runtime.cancelTask({ id })
  })

  await t.test('of long words from one generator waits for the store', async t => {
    const store = memoryStore()
    const held: (() => void)[] = []
    let isSlow = false
    const commit: Store['commit'] = async given => {
      if (isSlow) await new Promise<void>(resolve => held.push(resolve))
      return store.commit(given)
    }
    let words = 0
    const { runtime } = start(
      t,
      {
        work: async function* () {
          for (; words < 100; words += 1) {
            isSlow ||= words === 1
            yield artifact({ artifactId: 'a', parts: [text('x'.repeat(64 * 1024))] }, { append: words > 0 })
            await rest()
          }
        }
      },
      { store: { ...store, commit } }
    )
    const { id } = await open(runtime)
    await until(() => words > 3)
    for (let i = 0; i < 10; i += 1) await rest()
    t.ok(words <= 5, 'at most 256 KiB more')
    isSlow = false
    for (const go of held) go()
    await until(async () => stateName((await runtime.getTask({ id })).status.state) === 'completed')
    t.equal(words, 100)
  })

  await t.test('of invalid words from a generator that catches every error does not block it either', async t => {
    const life = { isOn: true }
    const { runtime } = start(t, {
      work: async function* ({ message }) {
        while (life.isOn && wordsOf(message) !== 'quick') {
          try {
            yield 42 as never
          } catch {
            /* on and on */
          }
        }
      }
    })
    const { id } = await open(runtime)
    t.equal(stateName(taskIn(await runtime.sendMessage(say('quick'))).status.state), 'completed')
    t.equal(stateName((await runtime.cancelTask({ id })).status.state), 'canceled')
    life.isOn = false
  })
})
