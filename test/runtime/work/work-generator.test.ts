/* oxlint-disable require-yield -- generators that end before they say anything are what is tested */
import t from 'tap'
import { emit } from 'xstate'
import { z } from 'zod'
import type { Message } from '../../../machines/protocol/objects.ts'
import {
  artifact,
  authRequired,
  failed,
  inputRequired,
  progress,
  rejected,
  setupWork,
  text,
  textOf as wordsOf,
  type StandardSchema,
  type Question,
  type WorkArguments,
  type WorkGenerator
} from '../../../runtime/index.ts'
import { isA2AError } from '../../../machines/protocol/errors.ts'
import { anyone, eventsOf, failOnLooseErrors } from '../../fixtures/runtime/lives.ts'
import { openRuntime } from '../../fixtures/runtime/open-runtime.ts'
import {
  brief,
  closed,
  collect,
  deferred,
  open,
  reaches,
  refusal,
  rejection,
  rest,
  say,
  start,
  stateName,
  taskIn,
  textOf,
  type Deferred,
  type Started,
  until,
  userMessage
} from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

const FAILURE = 'The work ended with an error.'

const thrown = (): never => {
  throw new Error('secret')
}

/** What a finally block may say, though nobody hears it. */
type LastWords = AsyncGenerator<ReturnType<typeof progress> | Question, void, unknown>

/** A number of people, as text: a schema written by hand. */
const people: StandardSchema<number> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: value =>
      Number.isInteger(Number(value))
        ? { value: Number(value) }
        : { issues: [{ message: 'must be a number of people' }] }
  }
}

await t.test('a yielded word', async t => {
  await t.test('is sent in order, and the returned result ends the task', async t => {
    const { runtime, log } = start(t, {
      work: async function* ({ message }) {
        yield progress('looking')
        yield progress({ parts: [text('found')], metadata: { flights: 3 } })
        yield progress()
        yield artifact({ name: 'note', parts: [text('one')] })
        return { artifact: `for ${wordsOf(message)}`, message: 'bye', metadata: { a: 1 } }
      }
    })
    const told = await collect(runtime.sendStreamingMessage(say('Ada')))
    t.strictSame(told.map(brief), [
      'task:submitted',
      'working',
      'working: looking',
      'working: found',
      'working',
      'artifact: one',
      'artifact: for Ada',
      'completed: bye'
    ])
    const task = await runtime.getTask({ id: taskIn(told[0]).id })
    t.strictSame(task.metadata, { a: 1 })
    t.strictSame(
      task.artifacts?.map(({ name }) => name),
      ['note', undefined]
    )
    t.strictSame(log, [])
  })

  await t.test('may be an artifact in chunks, sent as chunks and read as one', async t => {
    const { runtime } = start(t, {
      work: async function* () {
        for (const [i, word] of ['a', 'b', 'c'].entries()) {
          yield artifact(
            { artifactId: 'list', name: 'list', parts: [text(word)] },
            { append: i > 0, lastChunk: i === 2 }
          )
        }
      }
    })
    const told = await collect(runtime.sendStreamingMessage(say('x')))
    const chunks = told.flatMap(each => ('artifactUpdate' in each ? [each.artifactUpdate] : []))
    t.strictSame(
      chunks.map(({ append, lastChunk }) => [append, lastChunk]),
      [
        [undefined, undefined],
        [true, undefined],
        [true, true]
      ]
    )
    t.strictSame((await runtime.getTask({ id: taskIn(told[0]).id })).artifacts, [
      { artifactId: 'list', name: 'list', parts: [text('a'), text('b'), text('c')] }
    ])
  })

  await t.test('may be a promise', async t => {
    const { runtime } = start(t, {
      work: async function* () {
        yield Promise.resolve(progress('later')) as never
      }
    })
    t.match((await collect(runtime.sendStreamingMessage(say('x')))).map(brief), [
      'task:submitted',
      'working',
      'working: later',
      'completed'
    ])
  })

  await t.test('also counts if the generator comes from a plain function', async t => {
    const told = async function* (word: string) {
      yield progress(word)
    }
    const { runtime } = start(t, { work: (({ message }) => told(wordsOf(message))) satisfies WorkGenerator })
    t.strictSame((await collect(runtime.sendStreamingMessage(say('hi')))).map(brief), [
      'task:submitted',
      'working',
      'working: hi',
      'completed'
    ])
  })

  await t.test('is not taken from a promised generator, which fails the task with the reason', async t => {
    const { runtime } = start(t, { work: (async () => (async function* () {})()) as never })
    const { status } = taskIn(await runtime.sendMessage(say('x')))
    t.match([stateName(status.state), textOf(status.message)], ['failed', /result must be an object/])
  })

  await t.test('that is invalid throws at the yield, and the work may continue', async t => {
    const garbage: unknown[] = [
      undefined,
      null,
      0,
      'text',
      [],
      {},
      { type: 'progress', message: 7 },
      { type: 'artifact' },
      { type: 'artifact', artifact: { parts: [] } },
      { type: 'nonsense' },
      { type: 'input-required' },
      { type: 'input-required', message: 'x' },
      { type: 'input-required', message: 'x', options: undefined },
      { type: 'auth-required', message: [], options: {} },
      inputRequired(7 as never),
      inputRequired('x', { deadlineMs: NaN }),
      inputRequired('x', { deadlineMs: -1 }),
      inputRequired('x', { deadlineMs: Infinity }),
      inputRequired({ parts: [text('x')], metadata: { n: 1n } }),
      new Proxy(
        {},
        {
          has() {
            throw new Error('a trap')
          }
        }
      ),
      {
        get type(): string {
          throw new Error('a getter')
        }
      },
      {
        type: 'artifact',
        get artifact(): string {
          throw new Error('a getter')
        }
      }
    ]
    const errors: unknown[] = []
    const { runtime, log } = start(t, {
      work: async function* () {
        for (const word of garbage) {
          try {
            yield word as never
          } catch (error) {
            errors.push(error)
          }
        }
        const day = yield* inputRequired('Still here?')
        return { artifact: wordsOf(day) }
      }
    })
    const { id, status } = taskIn(await runtime.sendMessage(say('x')))
    t.equal(textOf(status.message), 'Still here?')
    t.equal(errors.length, garbage.length)
    t.ok(errors.every(error => error instanceof Error))
    t.match(errors[2], { code: 'InvalidAgentResponse', message: /progress\(…\) or artifact\(…\)/ })
    t.equal(stateName(taskIn(await runtime.sendMessage(say('yes', { taskId: id }))).status.state), 'completed')
    t.strictSame(log, [])
  })

  await t.test('that is invalid and not caught fails the task with a reason', async t => {
    const { runtime, log } = start(t, {
      work: async function* () {
        yield 42 as never
      }
    })
    const { status } = taskIn(await runtime.sendMessage(say('x')))
    t.match([status.state, textOf(status.message)], ['TASK_STATE_FAILED', /has to say progress/])
    t.match(log, [{ level: 'error', message: 'the work of a task failed' }])
  })
})

await t.test('a generator that emits or asks as a function does is told what to write', async t => {
  const uses: [use: (work: WorkArguments) => unknown, message: string][] = [
    [
      ({ emit }) => emit(progress('x')),
      "emit is for work that is a function. In a generator write: yield progress('…')."
    ],
    [
      ({ ask }) => ask(inputRequired('x')),
      "ask is for work that is a function. In a generator write: const answer = yield* inputRequired('…')."
    ]
  ]
  for (const [use, message] of uses) {
    const generator = async function* (work: WorkArguments) {
      await use(work)
    }
    for (const work of [generator, ((work: WorkArguments) => generator(work)) as never]) {
      const { runtime, log } = start(t, { work })
      t.equal(stateName(taskIn(await runtime.sendMessage(say('x'))).status.state), 'failed')
      t.match(
        log.map(({ details }) => details['error']),
        [{ name: 'TypeError', message }]
      )
    }
  }
})

await t.test('a generator may use helpers that ask, and that refine', async t => {
  const { runtime } = start(t, {
    work: async function* (work) {
      const { artifact: original } = await work.artifactToRefine({ what: 'poem' })
      yield progress(`about ${original.name}`)
      return { artifact: 'a poem' }
    }
  })
  const { id: taskId, status } = taskIn(await runtime.sendMessage(say('x')))
  t.equal(textOf(status.message), 'Which poem do you mean? There is none here yet.')
  t.equal((await runtime.cancelTask({ id: taskId })).status.state, 'TASK_STATE_CANCELED')
})

await t.test('words that a generator makes and never says are warned of, once', async t => {
  const later = () => new Promise(resolve => setImmediate(resolve))
  const warnings = (log: Started['log']) => log.map(({ level, message }) => `${level}: ${message}`)
  const warned = (words: string) => [`warn: a generator made words that it never said. Write ${words}`]

  await t.test('also after an await, and the task completes', async t => {
    const works: [work: WorkGenerator, words: string][] = [
      [
        async function* () {
          progress('x')
          yield progress('y')
        },
        'yield progress(…)'
      ],
      [
        async function* () {
          yield progress('y')
          artifact('x')
          rejected('no')
          failed('no')
        },
        'yield artifact(…), return rejected(…), return failed(…)'
      ],
      [
        async function* () {
          await later()
          progress('x')
          await later()
        },
        'yield progress(…)'
      ],
      [
        async function* () {
          inputRequired('x')
          authRequired('x')
          for (let i = 0; i < 9; i += 1) progress(`${i}`)
        },
        'yield* inputRequired(…), yield* authRequired(…), yield progress(…), yield progress(…)'
      ]
    ]
    for (const [work, words] of works) {
      const { runtime, log } = start(t, { work })
      t.equal(stateName(taskIn(await runtime.sendMessage(say('x'))).status.state), 'completed')
      t.strictSame(warnings(log), warned(words))
    }
  })

  await t.test('but not of words that it yields later, emits or returns, or for work that throws', async t => {
    const works: WorkGenerator[] = [
      async function* () {
        const all = Array.from({ length: 9 }, (_, i) => progress(`${i}`))
        await later()
        yield* all
      },
      async function* ({ step }) {
        await step('a', ({ emit }) => emit(artifact('x')))
        return rejected('no')
      },
      async function* () {
        return failed('no')
      },
      async function* () {
        progress('x')
        throw new Error('no')
      }
    ]
    for (const work of works) {
      const { runtime, log } = start(t, { work })
      await runtime.sendMessage(say('x'))
      t.strictSame(
        warnings(log).filter(line => line.startsWith('warn')),
        []
      )
    }
  })

  await t.test('but not of the words of others', async t => {
    const gate = deferred()
    const words: unknown[] = []
    const waits = start(t, {
      work: async function* () {
        await gate.promise
      }
    })
    const waiting = waits.runtime.sendMessage(say('x'))
    await later()
    const generator = start(t, {
      work: async function* () {
        await later()
        words.push(progress('x'))
        await later()
      }
    })
    await generator.runtime.sendMessage(say('x'))
    const chart = start(t, {
      work: setupWork({}).createMachine({
        entry: emit(() => progress('x')),
        initial: 'a',
        states: { a: { type: 'final' } }
      })
    })
    await chart.runtime.sendMessage(say('x'))
    const negotiates = start(t, { negotiate: () => rejected('no'), work: async () => {} })
    await negotiates.runtime.sendMessage(say('x'))
    gate.resolve()
    await waiting
    t.equal(words.length, 1)
    for (const { log } of [waits, generator, chart, negotiates]) t.strictSame(log, [])
  })

  await t.test('also in the next run, when the last one was stopped', async t => {
    const stopped = start(t, {
      work: async function* () {
        await new Promise(() => {})
      }
    })
    const { id } = await open(stopped.runtime)
    await stopped.runtime.cancelTask({ id })
    const { runtime, log } = start(t, {
      work: async function* () {
        await later()
        progress('x')
      }
    })
    await runtime.sendMessage(say('x'))
    t.strictSame(warnings(log), warned('yield progress(…)'))
  })
})

await t.test('the return value ends the task', async t => {
  const ends: [how: string, work: WorkGenerator, state: string, says: string | undefined][] = [
    [
      'an early return',
      async function* () {
        if (Number('1')) return
        yield progress('never')
      },
      'completed',
      undefined
    ],
    [
      'rejected',
      async function* () {
        yield progress('hm')
        return rejected('not mine')
      },
      'rejected',
      'not mine'
    ],
    [
      'failed',
      async function* () {
        yield progress('hm')
        return failed('no luck')
      },
      'failed',
      'no luck'
    ],
    [
      'an error at once',
      async function* () {
        throw new Error('secret')
      },
      'failed',
      FAILURE
    ],
    [
      'an error later',
      async function* () {
        yield progress('hm')
        throw new Error('secret')
      },
      'failed',
      FAILURE
    ],
    [
      'undefined thrown',
      async function* () {
        throw undefined
      },
      'failed',
      FAILURE
    ],
    [
      'an error in a finally block',
      async function* () {
        try {
          return
        } finally {
          thrown()
        }
      },
      'failed',
      FAILURE
    ],
    [
      'garbage returned',
      async function* () {
        return 7 as never
      },
      'failed',
      "The agent's code produced something that is not valid A2A: result must be an object such as { artifact: text('…') }."
    ]
  ]
  for (const [how, work, state, says] of ends) {
    const { runtime } = start(t, { work })
    const { status } = taskIn(await runtime.sendMessage(say('x')))
    t.strictSame([stateName(status.state), textOf(status.message)], [state, says], how)
  }
})

await t.test('questions', async t => {
  await t.test('in sequence return their answers: the message, or the result of their schema', async t => {
    const { runtime, log, store } = start(t, {
      work: async function* () {
        const day: Message = yield* inputRequired('Which day?')
        const number: number = yield* inputRequired('How many?', { schema: people })
        const { from, to } = yield* inputRequired('From where to where?', {
          schema: z.object({ from: z.string(), to: z.string() })
        })
        const budget: number = yield* inputRequired('How much?', {
          schema: z.string().transform(Number).pipe(z.number().positive())
        })
        return { artifact: JSON.stringify([wordsOf(day), number, from, to, budget]) }
      }
    })
    const { id } = taskIn(await runtime.sendMessage(say('a trip')))
    const answer = async (words: string, more = {}) => {
      const { status, artifacts } = taskIn(await runtime.sendMessage(say(words, { taskId: id, ...more })))
      return [stateName(status.state), textOf(status.message) ?? textOf(artifacts?.[0])]
    }
    t.strictSame(await answer('Monday'), ['input-required', 'How many?'])
    t.strictSame(await answer('2'), ['input-required', 'From where to where?'])
    t.strictSame(await answer('', { parts: [text('as follows'), { data: { from: 'Bonn', to: 'Rome' } }] }), [
      'input-required',
      'How much?'
    ])
    t.strictSame(await answer('120.5'), ['completed', '["Monday",2,"Bonn","Rome",120.5]'])
    t.strictSame(
      (await eventsOf(store, id)).map(({ update }) => brief(update)),
      [
        'submitted',
        'working',
        'input-required: Which day?',
        'working',
        'input-required: How many?',
        'working',
        'input-required: From where to where?',
        'working',
        'input-required: How much?',
        'working',
        'artifact: ["Monday",2,"Bonn","Rome",120.5]',
        'completed'
      ]
    )
    t.strictSame(log, [])
  })

  await t.test(
    'refuse an invalid answer with InvalidParams by field, without effect, and accept a valid one',
    async t => {
      const schema = z.object({ day: z.iso.date(), people: z.array(z.object({ age: z.number().min(0) })) })
      const { runtime, store } = start(t, {
        work: async function* () {
          const { day } = yield* inputRequired('When, and who?', { schema })
          return { artifact: day }
        }
      })
      const asked = taskIn(await runtime.sendMessage(say('x')))
      const { id: taskId, contextId = '' } = asked
      const answers: [parts: Message['parts'], fields: string[]][] = [
        [[text('Monday')], ['message.parts']],
        [[{ data: null }], ['message.parts']],
        [[{ data: { day: 'Monday', people: [] } }], ['message.parts.day']],
        [[{ data: { people: [{ age: 1 }, { age: -1 }] } }], ['message.parts.day', 'message.parts.people.1.age']]
      ]
      for (const [parts, fields] of answers) {
        const error = await rejection(runtime.sendMessage(say('', { taskId, parts })))
        t.match(error, { code: 'InvalidParams', message: /The task still waits/ })
        t.strictSame(isA2AError(error) && error.violations.map(({ field }) => field), fields)
        await t.rejects(collect(runtime.sendStreamingMessage(say('', { taskId, parts }))), { code: 'InvalidParams' })
      }
      t.strictSame(await runtime.getTask({ id: taskId }), asked)
      t.equal(
        (await store.readMessages({ tenant: '', principal: 'anonymous', contextId }, 100)).length,
        1,
        'none of them is stored'
      )
      t.equal((await eventsOf(store, taskId)).length, 3)
      const done = taskIn(
        await runtime.sendMessage(say('', { taskId, parts: [{ data: { day: '2026-05-01', people: [] } }] }))
      )
      t.strictSame([stateName(done.status.state), textOf(done.artifacts?.[0])], ['completed', '2026-05-01'])
    }
  )

  await t.test("read an answer's first data part, before any text", async t => {
    const given: unknown[] = []
    const schema: StandardSchema<unknown> = {
      '~standard': { version: 1, vendor: 'test', validate: value => (given.push(value), { value }) }
    }
    const { runtime } = start(t, {
      work: async function* () {
        yield* inputRequired('1', { schema })
        yield* inputRequired('2', { schema })
      }
    })
    const { id: taskId } = taskIn(await runtime.sendMessage(say('x')))
    await runtime.sendMessage(say('', { taskId, parts: [text('a'), { data: false }, { data: 2 }] }))
    await runtime.sendMessage(say('', { taskId, parts: [text('a'), text('b')] }))
    t.strictSame([...new Set(given)], [false, 'a\nb'])
  })

  await t.test("name an error's path in objects too, or the whole answer without a path", async t => {
    const issues = [
      { message: 'no', path: [{ key: 'a' }, 0] },
      { message: 'never', path: undefined }
    ]
    const schema: StandardSchema<unknown> = {
      '~standard': { version: 1, vendor: 'test', validate: () => ({ issues }) }
    }
    const { runtime } = start(t, {
      work: async function* () {
        yield* inputRequired('?', { schema })
      }
    })
    const { id: taskId } = taskIn(await runtime.sendMessage(say('x')))
    t.match(await rejection(runtime.sendMessage(say('x', { taskId }))), {
      violations: [
        { field: 'message.parts.a.0', description: 'no' },
        { field: 'message.parts', description: 'never' }
      ]
    })
  })

  await t.test('with an unusable schema throw into the work, with the reason', async t => {
    const validating = (validate: () => unknown) =>
      ({ '~standard': { version: 1, vendor: 'test', validate } }) as unknown as StandardSchema<unknown>
    const schemas: [what: string, schema: StandardSchema<unknown>, why: RegExp][] = [
      ['one of zod that is async', z.string().refine(async () => true), /has to validate synchronously/],
      ['one that is async', validating(async () => ({ value: 1 })), /has to validate synchronously/],
      [
        'a thenable',
        validating(() => Object.fromEntries(['then'].map(name => [name, () => {}]))),
        /has to validate synchronously/
      ],
      [
        'one that throws',
        validating(() => {
          throw new Error('broken')
        }),
        /broken/
      ],
      ['one that answers nothing', validating(() => undefined), /undefined/]
    ]
    for (const [what, schema, why] of schemas) {
      const caught: unknown[] = []
      const { runtime } = start(t, {
        work: async function* () {
          try {
            yield* inputRequired('?', { schema })
          } catch (error) {
            caught.push(error)
          }
          yield* inputRequired('And now?', { schema })
        }
      })
      const { id: taskId } = taskIn(await runtime.sendMessage(say('x')))
      const second = taskIn(await runtime.sendMessage(say('y', { taskId })))
      t.equal(textOf(second.status.message), 'And now?', what)
      t.match(caught, [{ message: why }], what)
      const { status } = taskIn(await runtime.sendMessage(say('z', { taskId })))
      t.strictSame(
        [stateName(status.state), textOf(status.message)],
        ['failed', FAILURE],
        'it fails the task if not caught'
      )
    }
  })

  await t.test('without a timely answer throw DeadlineExceeded, and the work may continue', async t => {
    const { runtime, clock, store } = start(t, {
      work: async function* () {
        try {
          return { artifact: wordsOf(yield* inputRequired('Window or aisle?', { deadlineMs: 60_000 })) }
        } catch (error) {
          if (!isA2AError(error) || error.code !== 'DeadlineExceeded') throw error
          return { artifact: 'any seat' }
        }
      }
    })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    clock.increment(59_999)
    await rest()
    t.equal(stateName((await runtime.getTask({ id })).status.state), 'input-required')
    clock.increment(1)
    await reaches(runtime, id, 'completed')
    t.strictSame((await eventsOf(store, id)).map(({ update }) => brief(update)).slice(2), [
      'input-required: Window or aisle?',
      'working',
      'artifact: any seat',
      'completed'
    ])
  })

  await t.test('with an uncaught deadline fail the task with that reason', async t => {
    const { runtime, clock, log } = start(t, {
      work: async function* () {
        yield* authRequired('Log in', { deadlineMs: 500 })
      }
    })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    clock.increment(500)
    t.equal(textOf((await reaches(runtime, id, 'failed')).status.message), 'Nobody answered within 500 ms.')
    t.match(log, [{ message: 'the work of a task failed', details: { error: { code: 'DeadlineExceeded' } } }])
  })

  await t.test('that are answered in time leave no timer, nor does a canceled task', async t => {
    const { runtime, clock } = start(t, {
      work: async function* () {
        yield* inputRequired('1', { deadlineMs: 500 })
        yield* inputRequired('2', { deadlineMs: 500 })
      }
    })
    const { id: taskId } = taskIn(await runtime.sendMessage(say('x')))
    t.equal(clock.pending, 1)
    await runtime.sendMessage(say('y', { taskId }))
    t.equal(clock.pending, 1)
    await runtime.cancelTask({ id: taskId })
    await rest()
    t.equal(clock.pending, 0)
  })
})

await t.test('authorizations', async t => {
  const schema = z.object({ token: z.string().startsWith('ref:') })
  const asking: WorkGenerator = async function* () {
    const authorization = yield* authRequired('Please log in.', { schema })
    yield progress(
      'data' in authorization ? `with ${authorization.data.token}` : `told ${wordsOf(authorization.message)}`
    )
    const again = yield* inputRequired('Sure?')
    return { artifact: wordsOf(again) }
  }

  await t.test('may have any JSON value, or none', async t => {
    for (const data of [undefined, null, 0, '', [1], { a: [] }]) {
      const got: unknown[] = []
      const { runtime } = start(t, {
        work: async function* () {
          got.push(yield* authRequired('?'))
        }
      })
      const { id } = taskIn(await runtime.sendMessage(say('x')))
      await runtime.authorized(id, data)
      await reaches(runtime, id, 'completed')
      t.strictSame(got, [{ data }])
    }
  })

  await t.test('are refused in other states, for other principals, and when unexpected, without effect', async t => {
    const gate = deferred()
    const { runtime, store } = start(t, {
      work: async function* (given) {
        yield* asking(given)
        await gate.promise
      }
    })
    const call = { principal: 'ann' }
    const { id } = await open(runtime, 'x', {}, call)
    const refused = async (state: string) => {
      const before = await reaches(runtime, id, state, call)
      t.match(
        await refusal(runtime.authorized(id, { token: 'ref:1' }, call)),
        { code: 'UnsupportedOperation', metadata: { taskId: id, state: before.status.state } },
        state
      )
      t.strictSame(await runtime.getTask({ id }, call), before)
    }
    const waiting = await reaches(runtime, id, 'auth-required', call)
    const foreign = await refusal(runtime.authorized(id, { token: 'ref:1' }, { principal: 'bob' }))
    t.equal(foreign.code, 'TaskNotFound')
    t.equal(foreign.message, (await refusal(runtime.authorized('unknown', {}))).message.replace('unknown', id))
    for (const [data, field] of [
      [{ token: 'abc' }, 'data.token'],
      [undefined, 'data'],
      [{ n: 1n }, 'data'],
      [() => {}, 'data']
    ] as const) {
      t.match(await rejection(runtime.authorized(id, data, call)), { code: 'InvalidParams', violations: [{ field }] })
    }
    t.match(await refusal(runtime.authorized('', {}, call)), { code: 'InvalidParams' })
    t.strictSame(await runtime.getTask({ id }, call), waiting)
    await runtime.authorized(id, { token: 'ref:1' }, call)
    await refused('input-required')
    await runtime.sendMessage(say('yes', { taskId: id }, { returnImmediately: true }), call)
    await refused('working')
    gate.resolve()
    await refused('completed')
    t.equal((await store.readEvents({ tenant: '', ...call }, id, 0, 100)).length, 8)
  })

  await t.test('of two at once the first is accepted, and the second refused', async t => {
    const { runtime } = start(t, { work: asking })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    const outcomes = await Promise.allSettled([
      runtime.authorized(id, { token: 'ref:1' }),
      runtime.authorized(id, { token: 'ref:2' })
    ])
    t.match(outcomes, [{ status: 'fulfilled' }, { status: 'rejected', reason: { code: 'UnsupportedOperation' } }])
  })
})

await t.test('a generator whose task ends early', async t => {
  /** Work that stands at a point of its life, and notes what it comes to. */
  function standing(at: 'a question' | 'a promise' | 'a sleep', leave: (seen: string[]) => LastWords | Promise<void>) {
    const seen: string[] = []
    const gate: Deferred<void> = deferred()
    const work: WorkGenerator = async function* ({ sleep }) {
      try {
        if (at === 'a question') yield* inputRequired('?')
        if (at === 'a sleep') await sleep(1000)
        if (at === 'a promise') await gate.promise
        yield progress('not told')
        seen.push('after')
      } catch (error) {
        seen.push(`caught ${(error as Error).name}`)
        throw error
      } finally {
        const left = leave(seen)
        if (left instanceof Promise) await left
        else yield* left
      }
    }
    return { work, seen, gate }
  }

  await t.test('runs its finally blocks wherever it is, and nothing after', async t => {
    for (const [at, expected] of [
      ['a question', ['finally']],
      ['a promise', ['finally']],
      ['a sleep', ['caught AbortError', 'finally']]
    ] as const) {
      const { work, seen, gate } = standing(at, async seen => void seen.push('finally'))
      const { runtime, log, store } = start(t, { work })
      const { id } = await open(runtime)
      await reaches(runtime, id, at === 'a question' ? 'input-required' : 'working')
      await rest()
      const canceled = await runtime.cancelTask({ id })
      gate.resolve()
      await until(() => seen.includes('finally'))
      await rest()
      t.strictSame(seen, expected, at)
      t.strictSame(await runtime.getTask({ id }), canceled)
      t.equal(brief((await eventsOf(store, id)).at(-1)?.update ?? { message: say('').message }), 'canceled')
      t.strictSame(log, [])
    }
  })

  await t.test('does not receive an answer that came just before a cancel', async t => {
    const { work, seen } = standing('a question', async seen => void seen.push('finally'))
    const agent = openRuntime(t, { work })
    const taskId = await agent.send('c')
    const live = await agent.contexts.get({ ...anyone, contextId: 'c' })
    const answered = live.send({ type: 'message.received', taskId, message: userMessage('yes') }, {})
    const canceled = live.send({ type: 'task.cancel', taskId }, {})
    t.equal(await answered, await canceled, 'both are processed in one turn')
    await until(() => seen.includes('finally'))
    await rest()
    t.strictSame([seen, agent.log], [['finally'], []])
    t.equal((await agent.store.readTask(anyone, taskId))?.task.status.state, 'TASK_STATE_CANCELED')
  })

  await t.test('has words in finally blocks dropped with one warning, and completes the blocks', async t => {
    const { work, seen } = standing('a question', async function* (seen) {
      yield progress('cleaning up')
      seen.push('one')
      yield progress('still cleaning up')
      try {
        yield* inputRequired('May I?')
      } catch (error) {
        seen.push((error as Error).message)
      }
    })
    const { runtime, log } = start(t, { work })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    const canceled = await runtime.cancelTask({ id })
    await until(() => seen.length === 2)
    t.strictSame(seen, ['one', 'The task has ended.'])
    t.strictSame(await runtime.getTask({ id }), canceled)
    t.match(log, [{ level: 'warn', message: 'a word was dropped because its work had ended', details: { taskId: id } }])
    t.equal(log.length, 1)
  })

  await t.test('is abandoned if a finally block yields forever', async t => {
    const { work } = standing('a question', async function* () {
      for (;;) yield progress('on and on')
    })
    const { runtime, clock, log } = start(t, { work })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    await runtime.cancelTask({ id })
    await until(() => clock.pending === 0)
    t.equal(log.length, 1)
  })

  await t.test('has errors in its finally blocks ignored', async t => {
    const { work } = standing('a question', async () => {
      throw new Error('in finally')
    })
    const { runtime, log } = start(t, { work })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    await runtime.cancelTask({ id })
    await rest()
    t.strictSame(log, [])
  })

  await t.test('has its grace period to clean up, for which closing waits', async t => {
    const cleaned = deferred()
    const { work } = standing('a question', () => cleaned.promise)
    const { runtime, clock, log } = start(t, { work, cancelGraceMs: 1000 })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    await runtime.cancelTask({ id })
    let isClosed = false
    const closing = runtime.close().then(() => (isClosed = true))
    clock.increment(999)
    await rest()
    t.notOk(isClosed)
    cleaned.resolve()
    await closing
    t.equal(clock.pending, 0)
    t.strictSame(log, [])
  })

  await t.test('is reported if it does not stop in time, and closing waits no longer', async t => {
    for (const at of ['a question', 'a promise'] as const) {
      const { work } = standing(at, () => new Promise(() => {}))
      const { runtime, clock, log } = start(t, { work, cancelGraceMs: 1000 })
      const { id } = await open(runtime)
      await reaches(runtime, id, at === 'a question' ? 'input-required' : 'working')
      await rest()
      t.equal(stateName((await runtime.cancelTask({ id })).status.state), 'canceled', 'the task is canceled at once')
      const closing = runtime.close()
      clock.increment(1000)
      await closing
      t.match(log, [
        {
          level: 'warn',
          message: 'a work did not stop within its grace period',
          details: { taskId: id, cancelGraceMs: 1000 }
        }
      ])
    }
  })

  await t.test('does not run its finally blocks when the runtime closes', async t => {
    for (const at of ['a question', 'a sleep'] as const) {
      const { work, seen } = standing(at, async seen => void seen.push('finally'))
      const { runtime, clock } = start(t, { work })
      const { id } = await open(runtime)
      await reaches(runtime, id, at === 'a question' ? 'input-required' : 'working')
      await rest()
      await closed(runtime, clock)
      await rest()
      t.strictSame(seen, [], at)
    }
  })
})
