import t from 'tap'
import { assign, fromPromise as plainPromise, createActor } from 'xstate'
import { z } from 'zod'
import type { Message, Task } from '../../../machines/protocol/objects.ts'
import {
  accepted,
  artifact,
  authRequired,
  fromPromise,
  inputRequired,
  progress,
  reply,
  setupWork,
  text,
  textOf as wordsOf,
  type AgentDefinition,
  type Question,
  type Runtime,
  type WorkArguments,
  type WorkFunction,
  type WorkGenerator,
  type WorkWords
} from '../../../runtime/index.ts'
import { isA2AError } from '../../../machines/protocol/errors.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { anyone, eventsOf, failOnLooseErrors, lastingStore, lives, type Lives } from '../../fixtures/runtime/lives.ts'
import {
  brief,
  collect,
  deferred,
  next,
  open,
  reaches,
  refusal,
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
const schema = z.string().transform(Number).pipe(z.number())

/** A service that notes under which keys it was called. */
function service() {
  const keys: string[] = []
  return {
    keys,
    book: async ({ idempotencyKey }: { idempotencyKey: string }) => (
      keys.push(idempotencyKey),
      { booking: `B${new Set(keys).size}` }
    )
  }
}

type Service = ReturnType<typeof service>

/** A longer conversation, with all that work may do, as a generator. */
function tripAsGenerator({ book }: Service): WorkGenerator {
  return async function* ({ step, sleep }) {
    yield progress('looking')
    yield artifact({ artifactId: 'plan', name: 'plan', parts: [text('draft')] })
    const day = yield* inputRequired('Which day?')
    yield artifact({ artifactId: 'plan', parts: [text(wordsOf(day))] }, { append: true })
    const people = yield* inputRequired('How many?', { schema, deadlineMs: 3600 * SECOND })
    const { booking } = await step('book', book)
    yield progress(`booked ${booking}`)
    await sleep(10 * SECOND)
    const again = await step('book', book)
    const authorization = yield* authRequired('Pay, please.')
    yield progress('data' in authorization ? 'paid' : 'not paid')
    return { artifact: `${people} people, ${again.booking}` }
  }
}

/** The same as a function. */
function tripAsFunction({ book }: Service): WorkFunction {
  return async ({ emit, ask, step, sleep }) => {
    emit(progress('looking'))
    emit(artifact({ artifactId: 'plan', name: 'plan', parts: [text('draft')] }))
    const day = await ask(inputRequired('Which day?'))
    emit(artifact({ artifactId: 'plan', parts: [text(wordsOf(day))] }, { append: true }))
    const people = await ask(inputRequired('How many?', { schema, deadlineMs: 3600 * SECOND }))
    const { booking } = await step('book', book)
    emit(progress(`booked ${booking}`))
    await sleep(10 * SECOND)
    const again = await step('book', book)
    const authorization = await ask(authRequired('Pay, please.'))
    emit(progress('data' in authorization ? 'paid' : 'not paid'))
    return { artifact: `${people} people, ${again.booking}` }
  }
}

const TOLD = [
  'submitted',
  'working',
  'working: looking',
  'artifact: draft',
  'input-required: Which day?',
  'working',
  'artifact: Monday',
  'input-required: How many?',
  'working',
  'working: booked B1',
  'auth-required: Pay, please.',
  'working',
  'working: paid',
  'artifact: 2 people, B2',
  'completed'
]

/** Says what a task waits for, or has time go by, until the task moves or is stuck. */
async function push(life: Lives, task: Task): Promise<void> {
  const { runtime, clock } = life
  const asked = textOf(task.status.message)
  const send = (words: string) => runtime.sendMessage(say(words, { taskId: task.id }, { returnImmediately: true }))
  if (stateName(task.status.state) === 'auth-required') await runtime.authorized(task.id, { ok: true })
  else if (stateName(task.status.state) === 'input-required') await send(asked === 'Which day?' ? 'Monday' : '2')
  else clock.increment(10 * SECOND)
}

/** Has a conversation up to its end; `between` happens before each of the client's moves. */
async function converse(life: Lives, id: string, between: () => Promise<unknown>): Promise<void> {
  for (let move = 0; move < 20; move += 1) {
    await rest()
    await rest()
    await between()
    const task = await life.runtime.getTask({ id })
    if (stateName(task.status.state) === 'completed') return
    // Not awaited: of a process that is killed there is no answer.
    push(life, task).catch(() => {})
  }
}

for (const [form, workOf] of [
  ['a generator', tripAsGenerator],
  ['a function', tripAsFunction]
] as const) {
  await t.test(`${form} that runs again at every point of a conversation`, async t => {
    await t.test('repeats no message, and reuses its answers and results', async t => {
      for (const restarts of [[], [0], [1], [2], [3], [4], [5], [0, 1, 2, 3, 4, 5], [2, 2, 2]]) {
        const called = service()
        const life = lives(t, { work: workOf(called) })
        const { id } = await open(life.runtime)
        let move = 0
        await converse(life, id, async () => {
          for (const at of restarts) if (at === move) await life.again()
          move += 1
        })
        t.strictSame(await life.told(id), TOLD, `closed before the moves ${restarts.join()}`)
        t.strictSame(called.keys, [`${id}/step/book/1`, `${id}/step/book/2`], 'no step with a result runs again')
        t.strictSame((await life.runtime.getTask({ id })).artifacts?.[0], {
          artifactId: 'plan',
          name: 'plan',
          parts: [text('draft'), text('Monday')]
        })
        t.strictSame(life.log, [])
        t.strictSame(await life.store.readJournal(anyone, id), [], 'an ended task keeps no journal')
      }
    })

    await t.test('does the same wherever the process was killed', async t => {
      for (let survived = 1; survived < 25; survived += 1) {
        const inner = lastingStore()
        let commits = 0
        const store: Store = {
          ...inner,
          commit: commit => ((commits += 1) > survived ? new Promise(() => {}) : inner.commit(commit))
        }
        const called = service()
        const life = lives(t, { work: workOf(called) }, { store })
        const { id } = await open(life.runtime)
        let isKilled = false
        await converse(life, id, async () => {
          if (commits <= survived || isKilled) return
          isKilled = true
          commits = -Infinity
          await life.again()
        })
        t.strictSame(await life.told(id), TOLD, `killed after commit ${survived}`)
        t.strictSame(
          new Set(called.keys),
          new Set([`${id}/step/book/1`, `${id}/step/book/2`]),
          'a step keeps its key on every run'
        )
      }
    })
  })
}

/** Runs work until it waits, has it run again as it is now, and gives what follows. */
async function rerun(life: Lives, work: AgentDefinition['work'] & {}): Promise<Runtime> {
  await rest()
  return life.again({ work })
}

await t.test('steps', async t => {
  await t.test('that were running run again with the same key, and failed ones too', async t => {
    const keys: string[] = []
    const hanging: WorkFunction = async ({ step }) => {
      await step('fails', async ({ idempotencyKey }) => {
        keys.push(idempotencyKey)
        throw new Error('no luck')
      }).catch(() => {})
      await step('hangs', ({ idempotencyKey }) => (keys.push(idempotencyKey), new Promise(() => {})))
    }
    const life = lives(t, { work: hanging })
    const { id } = await open(life.runtime)
    await until(() => keys.length === 2)
    await rerun(life, async ({ step }) => {
      const all = [
        await step('fails', ({ idempotencyKey }) => idempotencyKey),
        await step('hangs', ({ idempotencyKey }) => idempotencyKey)
      ]
      return { artifact: all.join(' ') }
    })
    t.strictSame(keys, [`${id}/step/fails/1`, `${id}/step/hangs/1`])
    t.equal(textOf((await reaches(life.runtime, id, 'completed')).artifacts?.[0]), keys.join(' '))
  })

  await t.test('return their results as JSON, the first time too, without later changes', async t => {
    const results: unknown[] = []
    const work: WorkGenerator = async function* ({ step }) {
      const result = await step('one', () => ({ at: 'then', none: undefined, list: [1] }) as { list: number[] })
      const nothing = await step('two', () => undefined)
      const zero = await step('three', () => null)
      results.push(structuredClone([result, nothing, zero]))
      result.list.push(2)
      yield* inputRequired('?')
    }
    const store = { ...memoryStore(), close: async () => {} }
    const life = lives(t, { work }, { store })
    await open(life.runtime)
    await until(() => results.length === 1)
    for (const lived of [2, 3]) {
      await rerun(life, work)
      t.equal(results.length, lived)
    }
    const expected = [{ at: 'then', list: [1] }, undefined, null]
    t.strictSame(results, [expected, expected, expected])
  })

  await t.test('with a result that JSON cannot represent throw an error that names them and the member', async t => {
    const cyclic: Record<string, unknown> = {}
    cyclic.self = cyclic
    const results: [result: unknown, says: string][] = [
      [
        1n,
        'a value that cannot be stored: the result of step count is a BigInt, which JSON does not keep. Write a text: String(value).'
      ],
      [
        { at: [cyclic] },
        'a value that cannot be stored: the result of step count.at[0].self is an object that contains itself, which JSON does not keep. Write its id.'
      ],
      [
        () => {},
        'a value that cannot be stored: the result of step count is a function, which JSON does not keep. Write null, or leave it out.'
      ],
      [
        { mean: 0 / 0 },
        'a value that cannot be stored: the result of step count.mean is NaN, which JSON does not keep. Write a finite number, or null.'
      ],
      [
        {
          get at() {
            throw new Error('x')
          }
        },
        'something that is not valid A2A: the result of step count must be JSON that can be read: without getters that throw, and not nested many thousands deep.'
      ]
    ]
    for (const [result, says] of results) {
      const { runtime, log } = start(t, {
        work: async ({ step }) => {
          await step('count', () => result)
        }
      })
      const { status } = taskIn(await runtime.sendMessage(say('x')))
      t.strictSame([stateName(status.state), textOf(status.message)], ['failed', `The agent's code produced ${says}`])
      t.equal(log.length, 1)
    }
  })

  await t.test('with a result that JSON would lose fail the task, and say what to write', async t => {
    const bytes = new Uint8Array(2)
    const results: [result: unknown, loss: string][] = [
      [
        new Map([['a', 1]]),
        'the result of step count is a Map, which JSON does not keep. Write an object: Object.fromEntries(map).'
      ],
      [
        { seen: [{ ids: new Set(['a']) }] },
        'the result of step count.seen[0].ids is a Set, which JSON does not keep. Write a list: [...set].'
      ],
      [new Date(0), 'the result of step count is a Date, which JSON does not keep. Write a text: date.toISOString().'],
      [
        { error: new TypeError('x') },
        'the result of step count.error is an Error, which JSON does not keep. Write its text: error.message.'
      ],
      [
        Buffer.from(bytes),
        "the result of step count is a Uint8Array, which JSON does not keep. Write a text: Buffer.from(bytes).toString('base64')."
      ],
      [
        [Promise.resolve(1)],
        'the result of step count[0] is a Promise, which JSON does not keep. Write its result: await it first.'
      ]
    ]
    for (const [result, loss] of results) {
      let goesOn = false
      const { runtime } = start(t, {
        work: async ({ step }) => {
          await step('count', () => result)
          goesOn = true
        }
      })
      const { status } = taskIn(await runtime.sendMessage(say('x')))
      t.strictSame(
        [stateName(status.state), textOf(status.message), goesOn],
        ['failed', `The agent's code produced a value that cannot be stored: ${loss}`, false]
      )
    }
  })

  await t.test('emit again when they run again, and never once they have a result', async t => {
    const gate = deferred()
    let tries = 0
    const draft = async ({ step, emit, ask }: WorkArguments) => {
      emit(progress('begins'))
      await step('kept', ({ emit }) => emit(progress('in a step')))
      await step('draws', async ({ emit }) => {
        tries += 1
        emit(artifact({ artifactId: 'a', parts: [text(`try ${tries}`)] }))
        if (tries === 1) await gate.promise
        emit(artifact({ artifactId: 'a', parts: [text('drawn')] }, { append: true, lastChunk: true }))
        return 'drawn'
      })
      emit(progress('drawn'))
      const answer = await ask(inputRequired('Good?'))
      emit(artifact({ artifactId: 'b', parts: answer.parts }))
    }
    const life = lives(t, { work: draft })
    const { id } = await open(life.runtime)
    await until(() => tries === 1)
    await rest()
    await life.kill()
    await reaches(life.runtime, id, 'input-required')
    await life.again()
    await life.runtime.sendMessage(say('yes', { taskId: id }))
    t.strictSame(await life.told(id), [
      'submitted',
      'working',
      'working: begins',
      'working: in a step',
      'artifact: try 1',
      'artifact: try 2',
      'artifact: drawn',
      'working: drawn',
      'input-required: Good?',
      'working',
      'artifact: yes',
      'completed'
    ])
    t.equal(tries, 2)
    t.strictSame(
      (await life.runtime.getTask({ id })).artifacts?.[0]?.parts,
      [text('try 2'), text('drawn')],
      'the second run restarts the artifact'
    )
    t.strictSame(life.log, [])
  })

  await t.test("emit nothing after their task's end, and no progress during a question", async t => {
    const { runtime, log } = start(t, {
      work: async ({ step, ask }) => {
        const asking = ask(inputRequired('?'))
        await step('says', ({ emit }) => emit(progress('unheard')))
        await asking
        let late = () => {}
        await step('ends', ({ emit }) => {
          late = () => emit(progress('late'))
        })
        setImmediate(() => late())
      }
    })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    await runtime.sendMessage(say('y', { taskId: id }))
    await until(() => log.length === 2)
    t.strictSame(
      log.map(({ message }) => message),
      ['progress was dropped because the task waits for an answer', 'a word was dropped because its work had ended']
    )
  })

  await t.test('of one name are numbered in order, also in parallel, whatever the names contain', async t => {
    const keys: string[] = []
    const work: WorkFunction = async ({ step, ask }) => {
      const [a, b, c] = await Promise.all(
        ['x', 'x', 'x/1'].map(name => step(name, ({ idempotencyKey }) => (keys.push(idempotencyKey), keys.length)))
      )
      await ask(inputRequired(`${a} ${b} ${c}`))
      return { artifact: await step('x', ({ idempotencyKey }) => idempotencyKey) }
    }
    const life = lives(t, { work })
    const { id, status } = taskIn(await life.runtime.sendMessage(say('go')))
    t.equal(textOf(status.message), '1 2 3')
    await rerun(life, work)
    t.equal(textOf(taskIn(await life.runtime.sendMessage(say('y', { taskId: id }))).artifacts?.[0]), `${id}/step/x/3`)
    t.strictSame(keys, [`${id}/step/x/1`, `${id}/step/x/2`, `${id}/step/x/1/1`])
  })

  await t.test('return their results after the commit, and have a signal', async t => {
    let isAborted: boolean | undefined
    const { runtime, store } = start(t, {
      work: async ({ step, taskId }) => {
        await step('one', ({ signal }) => (isAborted = signal.aborted))
        return {
          artifact: JSON.stringify((await store.readJournal(anyone, taskId)).map(({ key, value }) => [key, value]))
        }
      }
    })
    t.equal(textOf(taskIn(await runtime.sendMessage(say('x'))).artifacts?.[0]), '[["step/one/1",{"result":false}]]')
    t.equal(isAborted, false)
  })
})

await t.test('sleeps', async t => {
  const sleeping: WorkGenerator = async function* ({ sleep }) {
    yield progress('before')
    await sleep(60 * SECOND)
    yield progress('after')
    await sleep(60 * SECOND)
  }

  await t.test('end at their time, whatever happens in between', async t => {
    const life = lives(t, { work: sleeping })
    const { id } = await open(life.runtime)
    await reaches(life.runtime, id, 'working')
    await rest()
    life.clock.increment(40 * SECOND)
    await rerun(life, sleeping)
    life.clock.increment(19 * SECOND)
    await rest()
    t.strictSame(await life.told(id), ['submitted', 'working', 'working: before'])
    life.clock.increment(SECOND)
    await rest()
    t.strictSame((await life.told(id)).slice(3), ['working: after'])
  })

  await t.test('that passed while nothing ran end at once, each by itself', async t => {
    const life = lives(t, { work: sleeping })
    const { id } = await open(life.runtime)
    await rest()
    const closing = life.runtime.close()
    life.clock.increment(3600 * SECOND)
    await closing
    const runtime = await life.again()
    life.clock.increment(0)
    await rest()
    t.strictSame((await life.told(id)).slice(3), ['working: after'], 'the second starts now')
    life.clock.increment(60 * SECOND)
    await reaches(runtime, id, 'completed')
  })

  await t.test('that were refused are refused again, and leave no gap in the journal', async t => {
    const work: WorkGenerator = async function* ({ sleep }) {
      await sleep(NaN).catch(() => {})
      yield progress('one')
      yield* inputRequired('two')
    }
    const life = lives(t, { work })
    const { id } = taskIn(await life.runtime.sendMessage(say('x')))
    await life.again()
    t.strictSame(await life.told(id), ['submitted', 'working', 'working: one', 'input-required: two'])
  })

  await t.test('with impossible times are refused', async t => {
    for (const ms of [-1, NaN, Infinity, '5' as never, '5x' as never, undefined as never]) {
      const { runtime, log } = start(t, { work: ({ sleep }) => sleep(ms) })
      t.equal(stateName(taskIn(await runtime.sendMessage(say('x'))).status.state), 'failed')
      t.match(log, [{ details: { error: /A wait is a number of milliseconds from 0/ } }])
    }
  })
})

await t.test('work that differs when it runs again', async t => {
  const chunks = (...words: string[]): WorkGenerator =>
    async function* () {
      yield progress(`saying ${words.join(' ')}`)
      for (const [i, word] of words.entries()) {
        yield artifact(
          { artifactId: 'poem', ...(i === 0 && { name: 'Poem', metadata: { of: word } }), parts: [text(word)] },
          { append: i > 0 }
        )
      }
      const more = yield* inputRequired(`Like it? ${words.join(' ')}`)
      yield artifact({ artifactId: 'poem', parts: [text(wordsOf(more))] }, { append: true, lastChunk: true })
    }
  const updates = async (life: Lives, id: string) =>
    (await eventsOf(life.store, id)).flatMap(({ update }) =>
      'artifactUpdate' in update
        ? [`${update.artifactUpdate.append ? '+' : '='} ${textOf(update.artifactUpdate.artifact)}`]
        : []
    )

  await t.test('in an artifact, sends it again with append false, and appends to that', async t => {
    const life = lives(t, { work: chunks('red', 'green', 'blue') })
    const { id } = taskIn(await life.runtime.sendMessage(say('x')))
    const stream = refusal(
      collect((await life.again({ work: chunks('red', 'yellow', 'blue') })).subscribeToTask({ id }))
    )
    await rest()
    t.strictSame(await updates(life, id), ['= red', '+ green', '+ blue', '= red yellow', '+ blue'])
    const poem = (...words: string[]) => [
      { artifactId: 'poem', name: 'Poem', metadata: { of: 'red' }, parts: words.map(text) }
    ]
    t.strictSame((await life.runtime.getTask({ id })).artifacts, poem('red', 'yellow', 'blue'))
    const asked = await life.runtime.getTask({ id })
    t.equal(textOf(asked.status.message), 'Like it? red green blue', 'an asked question is not repeated')

    await life.again()
    t.equal((await updates(life, id)).length, 5, 'equal words are not repeated')
    await life.again({ work: chunks('pink', 'yellow', 'blue') })
    t.strictSame(
      (await updates(life, id)).slice(5),
      ['= pink', '+ yellow', '+ blue'],
      'another change restarts the artifact again'
    )
    await life.runtime.sendMessage(say('violet', { taskId: id }))
    t.strictSame((await updates(life, id)).slice(8), ['+ violet'])
    t.strictSame(
      (await life.runtime.getTask({ id })).artifacts?.[0]?.parts,
      ['pink', 'yellow', 'blue', 'violet'].map(text)
    )
    t.match(await stream, { code: 'Overloaded' }, 'a stream ends with its runtime')
    t.equal((await life.told(id)).at(-1), 'completed')
  })

  await t.test('in an artifact is the same for a stream that resumes from a cursor', async t => {
    const life = lives(t, { work: chunks('a', 'b') })
    const { id } = taskIn(await life.runtime.sendMessage(say('x')))
    await life.again({ work: chunks('a', 'c') })
    const call = { extensions: ['urn:taskchart:extension:reliability:1'], conditions: { afterGeneration: 4 } }
    const stream = life.runtime.subscribeToTask({ id }, call)
    const told = [await next(stream), await next(stream), await next(stream), await next(stream)]
    t.strictSame(told.map(brief), ['artifact: a', 'artifact: b', 'input-required: Like it? a b', 'artifact: a c'])
    t.notOk(
      'artifactUpdate' in (told[3] ?? {}) && told[3] && 'artifactUpdate' in told[3] && told[3].artifactUpdate.append
    )
    await stream.return()
  })

  await t.test('in an artifact without an id, sends that artifact again under its first id', async t => {
    const painting = (word: string): WorkGenerator =>
      async function* () {
        yield artifact(word)
        yield* inputRequired('?')
      }
    const life = lives(t, { work: painting('one') })
    const { id, artifacts } = taskIn(await life.runtime.sendMessage(say('x')))
    await life.again({ work: painting('two') })
    const after = (await life.runtime.getTask({ id })).artifacts
    t.strictSame(after, [{ artifactId: artifacts?.[0]?.artifactId, parts: [text('two')] }])
  })

  await t.test('in the words of its progress, sends nothing: they were sent before', async t => {
    let word = 'one'
    const life = lives(t, {
      work: async function* () {
        yield progress(word)
        yield* inputRequired('?')
      }
    })
    const { id } = taskIn(await life.runtime.sendMessage(say('x')))
    word = 'two'
    await life.again()
    t.strictSame((await life.told(id)).slice(2), ['working: one', 'input-required: ?'])
  })

  await t.test('in the kind of a word fails its task, with the difference as the reason', async t => {
    type Word = (work: WorkArguments) => AsyncGenerator<WorkWords | Question, void>
    const words: Record<string, Word> = {
      progress: async function* () {
        yield progress('x')
      },
      artifact: async function* () {
        yield artifact('x')
      },
      question: async function* () {
        yield* inputRequired('x')
      },
      authorization: async function* () {
        yield* authRequired('x')
      },
      sleep: async function* ({ sleep }) {
        await sleep(SECOND)
        yield progress('slept')
      }
    }
    for (const [was, first] of Object.entries(words)) {
      for (const [is, second] of Object.entries(words)) {
        if (is === was) continue
        let word = first
        const life = lives(t, {
          work: async function* (work) {
            yield* word(work)
            yield progress('later')
            yield* inputRequired('end?')
          }
        })
        const { id } = await open(life.runtime)
        await rest()
        word = second
        await life.again()
        const { status } = await reaches(life.runtime, id, 'failed')
        t.equal(
          textOf(status.message),
          `The work did not replay as before: word 1 was ${was} and is now ${is}. Put anything non-deterministic in a step, and new code behind work.patch.`
        )
        t.match(life.log, [{ level: 'error', message: 'the work of a task failed', details: { taskId: id } }])
      }
    }
  })

  await t.test('by ending before a question that it asked fails its task', async t => {
    const asks: Record<string, WorkFunction> = {
      question: async ({ ask }) => void (await ask(inputRequired('?'))),
      authorization: async ({ ask }) => void (await ask(authRequired('?')))
    }
    for (const [kind, work] of Object.entries(asks)) {
      for (const answered of [false, true]) {
        const life = lives(t, {
          work: async given => {
            given.emit(progress('said'))
            await work(given)
            await given.sleep(1000 * SECOND)
          }
        })
        const { id } = taskIn(await life.runtime.sendMessage(say('x')))
        if (answered)
          await life.runtime
            .authorized(id, {})
            .catch(() => life.runtime.sendMessage(say('y', { taskId: id }, { returnImmediately: true })))
        await life.again({ work: async () => ({ artifact: 'done' }) })
        const { status } = await reaches(life.runtime, id, 'failed')
        t.equal(
          textOf(status.message),
          `The work did not replay as before: word 2 was ${kind} and is now missing. Put anything non-deterministic in a step, and new code behind work.patch.`
        )
      }
    }
  })

  await t.test('by ending earlier without a question ends normally', async t => {
    const life = lives(t, {
      work: async ({ emit, sleep }) => {
        emit(progress('said'))
        await sleep(1000 * SECOND)
      }
    })
    const { id } = await open(life.runtime)
    await rest()
    await life.again({ work: async () => ({ artifact: 'done' }) })
    await reaches(life.runtime, id, 'completed')
  })

  await t.test('in the artifact of a word fails its task too', async t => {
    let artifactId = 'a'
    const life = lives(t, {
      work: async function* () {
        yield artifact({ artifactId, parts: [text('x')] })
        yield* inputRequired('?')
      }
    })
    const { id } = taskIn(await life.runtime.sendMessage(say('x')))
    artifactId = 'b'
    await life.again()
    t.match(
      textOf((await reaches(life.runtime, id, 'failed')).status.message),
      /word 1 was artifact a and is now artifact b/
    )
  })

  await t.test('may catch that, as every error of its words', async t => {
    let isFirst = true
    const life = lives(t, {
      work: async function* () {
        if (isFirst) yield progress('x')
        else yield* inputRequired('x')
        yield* inputRequired('end?')
      }
    })
    const { id } = taskIn(await life.runtime.sendMessage(say('x')))
    isFirst = false
    await life.again({
      work: async function* () {
        try {
          yield* inputRequired('x')
        } catch (error) {
          return { artifact: isA2AError(error) ? error.code : '' }
        }
        return {}
      }
    })
    t.equal(textOf((await reaches(life.runtime, id, 'completed')).artifacts?.[0]), 'InvalidAgentResponse')
  })

  await t.test('in the schema of an answered question gets an error from the question', async t => {
    const asking = (wanted: z.ZodType): WorkGenerator =>
      async function* () {
        yield* inputRequired('?', { schema: wanted })
        yield* inputRequired('more?')
      }
    const life = lives(t, { work: asking(z.string()) })
    const { id } = taskIn(await life.runtime.sendMessage(say('x')))
    await life.runtime.sendMessage(say('red', { taskId: id }))
    await life.again({ work: asking(z.number()) })
    t.match(
      textOf((await reaches(life.runtime, id, 'failed')).status.message),
      /a question that its stored answer does not fit/
    )
  })
})

await t.test('work whose task is large runs again from a record that is read in pieces', async t => {
  const inner = memoryStore()
  const read = { pieces: 0, longest: 0, artifacts: 0 }
  const store: Store = {
    ...inner,
    readTask: (scope, taskId, options) => (
      (read.artifacts += Number(options?.artifacts !== false)),
      inner.readTask(scope, taskId, options)
    ),
    readEvents: async (...args) => {
      const events = await inner.readEvents(...args)
      read.pieces += 1
      read.longest = Math.max(read.longest, JSON.stringify(events).length)
      return events
    }
  }
  const painting = (last: string): WorkGenerator =>
    async function* () {
      for (let i = 0; i < 150; i += 1)
        yield artifact({ artifactId: 'poem', parts: [text('x'.repeat(10_000))] }, { append: i > 0 })
      yield artifact({ artifactId: 'poem', parts: [text(last)] }, { append: true })
      yield* inputRequired('Like it?')
    }
  const life = lives(t, { work: painting('red') }, { store })
  const { id } = await open(life.runtime)
  await reaches(life.runtime, id, 'input-required')
  Object.assign(read, { pieces: 0, artifacts: 0 })
  await life.again({ work: painting('blue') })
  await until(async () => (await eventsOf(inner, id)).length > 154, 'the artifact is sent again')
  t.equal(read.artifacts, 0, 'the artifacts are not read beside their events')
  t.ok(read.pieces >= 6, `${read.pieces} reads`)
  t.ok(read.longest < 300_000, `${read.longest} characters`)
  t.match((await life.runtime.getTask({ id })).artifacts?.[0]?.parts.at(-1), { text: 'blue' })
})

await t.test('work that is restored with a question', async t => {
  await t.test('accepts the answer of an early message, before it has reached the question', async t => {
    const gate = deferred()
    const asking = (wait: Promise<void>): WorkGenerator =>
      async function* () {
        await wait
        return { artifact: wordsOf(yield* inputRequired('?')) }
      }
    const life = lives(t, { work: asking(Promise.resolve()) })
    const { id } = taskIn(await life.runtime.sendMessage(say('x')))
    const runtime = await life.again({ work: asking(gate.promise) })
    const [first, second] = [
      runtime.sendMessage(say('one', { taskId: id })),
      refusal(runtime.sendMessage(say('two', { taskId: id })))
    ]
    await rest()
    gate.resolve()
    t.equal(textOf(taskIn(await first).artifacts?.[0]), 'one')
    t.match(await second, { code: 'UnsupportedOperation' })
  })

  await t.test('and no longer asks fails, and the sender of an answer receives the error', async t => {
    for (const [work, state] of [
      [async () => ({ artifact: 'done' }), 'failed'],
      [
        async () => {
          throw new Error('x')
        },
        'failed'
      ]
    ] as [WorkFunction, string][]) {
      const life = lives(t, {
        work: async function* () {
          yield* inputRequired('?')
        }
      })
      const { id } = taskIn(await life.runtime.sendMessage(say('x')))
      const gate = deferred()
      const runtime = await life.again({ work: async given => (await gate.promise, work(given)) })
      const answering = refusal(runtime.sendMessage(say('y', { taskId: id })))
      await rest()
      gate.resolve()
      t.match(await answering, {
        code: 'UnsupportedOperation',
        metadata: { state: `TASK_STATE_${state.toUpperCase()}` }
      })
    }
  })

  await t.test('is canceled while it runs again, and while it is read', async t => {
    for (const isStored of [true, false]) {
      const life = lives(t, {
        work: async function* () {
          yield* inputRequired('?')
        }
      })
      const { id } = taskIn(await life.runtime.sendMessage(say('x')))
      const [gate, disk] = [deferred(), deferred()]
      let ran = false
      await life.runtime.close()
      const slow: Store = {
        ...life.store,
        readJournal: async (...args) => (await gate.promise, life.store.readJournal(...args)),
        commit: async commit => (await disk.promise, life.store.commit(commit))
      }
      const { runtime } = start(t, { work: async () => void (ran = true) }, { store: slow })
      await rest()
      const canceling = runtime.cancelTask({ id })
      if (isStored) disk.resolve()
      await rest()
      gate.resolve()
      await rest()
      t.notOk(ran, isStored ? 'the end is stored' : 'the end is decided, and not stored yet')
      disk.resolve()
      t.equal((await canceling).status.state, 'TASK_STATE_CANCELED')
    }
  })

  await t.test('whose deadline passed while nothing ran expires at once, unless it was answered', async t => {
    const asking: WorkGenerator = async function* () {
      for (const question of ['one', 'two']) {
        try {
          yield progress(`got ${wordsOf(yield* inputRequired(question, { deadlineMs: SECOND }))}`)
        } catch (error) {
          yield progress(isA2AError(error) ? error.code : 'another error')
        }
      }
      yield* inputRequired('three')
    }
    const life = lives(t, { work: asking })
    const { id } = taskIn(await life.runtime.sendMessage(say('x')))
    await life.runtime.sendMessage(say('1', { taskId: id }))
    const closing = life.runtime.close()
    life.clock.increment(3600 * SECOND)
    await closing
    await life.again()
    life.clock.increment(0)
    await rest()
    const told = [
      'submitted',
      'working',
      'input-required: one',
      'working',
      'working: got 1',
      'input-required: two',
      'working',
      'working: DeadlineExceeded',
      'input-required: three'
    ]
    t.strictSame(await life.told(id), told)
    await life.again()
    t.strictSame(await life.told(id), told, 'an expired question stays expired')
  })
})

await t.test('promises of a chart with steps', async t => {
  /** Buys bread, asks, and buys bread again by the same actor. */
  const shopping = (bought: string[], hang: { now: boolean }) =>
    setupWork({
      types: { context: {} as { all: string[] } },
      actors: {
        buy: fromPromise<string, { what: string }>(async ({ input, step, signal }) => {
          const first = await step(
            'pay',
            ({ idempotencyKey }) => (bought.push(idempotencyKey), `${input.what} ${bought.length}`)
          )
          if (hang.now) await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
          return first
        })
      }
    }).createMachine({
      context: { all: [] },
      initial: 'first',
      states: {
        first: {
          invoke: {
            src: 'buy',
            id: 'buy',
            input: { what: 'bread' },
            onDone: { target: 'asking', actions: assign({ all: ({ event }) => [event.output] }) }
          }
        },
        asking: { tags: 'input-required', on: { 'message.received': 'second' } },
        second: {
          invoke: {
            src: 'buy',
            id: 'buy',
            input: { what: 'butter' },
            onDone: { target: 'done', actions: assign({ all: ({ context, event }) => [...context.all, event.output] }) }
          }
        },
        done: { type: 'final' }
      },
      output: ({ context }) => ({ artifact: context.all.join(', ') })
    })

  await t.test('are not reused by a later invocation of the same actor', async t => {
    const bought: string[] = []
    const { runtime } = start(t, { work: shopping(bought, { now: false }) })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    t.equal(textOf(taskIn(await runtime.sendMessage(say('more', { taskId: id }))).artifacts?.[0]), 'bread 1, butter 2')
    t.equal(new Set(bought).size, 2)
    t.ok(bought.every(key => key.startsWith(`${id}/`) && key.endsWith('/step/pay/1')))
  })

  await t.test('are reused after a restore, with the same input and key', async t => {
    const bought: string[] = []
    const hang = { now: true }
    const life = lives(t, { work: shopping(bought, hang) })
    const { id } = await open(life.runtime)
    await until(() => bought.length === 1)
    await life.again()
    t.equal(bought.length, 1, 'a step with a result does not run again')
    hang.now = false
    const runtime = await life.again()
    await reaches(runtime, id, 'input-required')
    t.equal(textOf(taskIn(await runtime.sendMessage(say('more', { taskId: id }))).artifacts?.[0]), 'bread 1, butter 2')
    t.equal(bought.length, 2)
  })

  await t.test('that are not awaited are logged, and fail nothing', async t => {
    const buy = fromPromise(async ({ step }) => {
      void step('lost', () => Promise.reject(new Error('x')))
    })
    const work = setupWork({ actors: { buy } }).createMachine({
      initial: 'a',
      states: { a: { invoke: { src: 'buy', onDone: 'b' } }, b: { type: 'final' } }
    })
    const { runtime, log } = start(t, { work })
    t.equal(stateName(taskIn(await runtime.sendMessage(say('x'))).status.state), 'completed')
    t.strictSame(
      log.map(({ details }) => details['step']),
      ['lost']
    )
  })

  await t.test('run only in a runtime, and give their errors as XState’s do', async t => {
    const failing = createActor(fromPromise(async () => 1))
    let error: unknown
    failing.subscribe({ error: given => (error = given) })
    failing.start()
    t.match(error, { message: 'This logic runs only in a context of a taskchart runtime.' })
    const work = setupWork({
      actors: {
        buy: fromPromise(async () => {
          throw new Error('sold out')
        }),
        plain: plainPromise(async () => 1)
      }
    }).createMachine({
      initial: 'a',
      states: {
        a: { invoke: { src: 'buy', onError: 'b' } },
        b: { invoke: { src: 'plain', onDone: 'c' } },
        c: { type: 'final' }
      }
    })
    const { runtime } = start(t, { work })
    t.equal(stateName(taskIn(await runtime.sendMessage(say('x'))).status.state), 'completed')
  })
})

await t.test('history', async t => {
  const texts = (messages: Message[]) =>
    messages.map(message => `${message.role === 'ROLE_USER' ? '>' : '<'} ${textOf(message)}`)

  await t.test("is the context's messages before the task, and the same when the work runs again", async t => {
    const seen: string[][] = []
    const work: WorkFunction = async ({ message, ask, emit, history }) => {
      if (wordsOf(message) === 'look') {
        seen.push(texts(await history()), texts(await history(2)), texts(await history(0)))
        await ask(inputRequired('Seen?'))
        seen.push(texts(await history()))
        return {}
      }
      emit(progress('on it'))
      const answer = wordsOf(await ask(inputRequired(`${wordsOf(message)}?`)))
      return { message: `${answer}!` }
    }
    const life = lives(t, {
      work,
      negotiate: ({ message }) => (wordsOf(message) === 'hello' ? reply('Hello!') : accepted())
    })
    const send = async (words: string, more: Partial<Message> = {}) => {
      const answer = await life.runtime.sendMessage(say(words, { contextId: 'c', ...more }))
      return 'task' in answer ? answer.task.id : ''
    }
    const ended = await send('one')
    const goesOn = await send('two')
    await send('hello')
    await send('yes', { taskId: ended })
    await life.runtime.sendMessage(say('elsewhere', { contextId: 'd' }))
    await send('bare')
    const looks = await send('look')
    life.clock.increment(SECOND)
    await send('later', { taskId: goesOn })
    await send('hello')
    await life.again()
    await send('ok', { taskId: looks })
    const before = ['> one', '< on it', '< one?', '> two', '> hello', '< Hello!', '> yes', '< yes!', '> bare']
    t.strictSame(
      seen,
      [before, before.slice(-2), [], before, before.slice(-2), [], before],
      "of tasks that continued then only the client's messages"
    )
  })

  await t.test('is complete, however many messages came since', async t => {
    const seen: string[][] = []
    const work: WorkFunction = async ({ ask, history }) => {
      for (let asked = 0; asked < 9; asked += 1) await ask(inputRequired('And?'))
      seen.push(texts(await history(2)))
    }
    const { runtime } = start(t, {
      work,
      negotiate: ({ message }) => (wordsOf(message).startsWith('hello') ? reply('Hi!') : accepted())
    })
    await runtime.sendMessage(say('hello 1', { contextId: 'c' }))
    await runtime.sendMessage(say('hello 2', { contextId: 'c' }))
    const { id } = taskIn(await runtime.sendMessage(say('go', { contextId: 'c' })))
    for (let sent = 0; sent < 9; sent += 1) await runtime.sendMessage(say('x', { taskId: id }))
    t.strictSame(seen, [['> hello 2', '< Hi!']])
  })

  await t.test("has the newest tasks' messages, up to limits.referencedBytes in total", async t => {
    const seen: string[][] = []
    const work: WorkFunction = async ({ message, history }) => {
      const word = wordsOf(message)
      if (word === 'look') seen.push(texts(await history()))
      return { message: word === 'large' ? 'x'.repeat(5000) : 'ok' }
    }
    const { runtime } = start(t, { work }, { limits: { referencedBytes: 4000 } })
    for (const word of ['small', 'large', 'small', 'look']) await runtime.sendMessage(say(word, { contextId: 'c' }))
    t.strictSame(seen, [['> small', '> large', '> small', '< ok']])
  })

  await t.test('refuses a limit that is not a whole number from 0', async t => {
    for (const limit of [-1, 1.5, NaN, Infinity]) {
      const { runtime, log } = start(t, {
        work: async ({ history }) => {
          await history(limit)
        }
      })
      t.equal(stateName(taskIn(await runtime.sendMessage(say('x'))).status.state), 'failed')
      t.match(log, [
        {
          details: {
            error: {
              name: 'RangeError',
              message: `The limit of history has to be a whole number from 0, not ${limit}.`
            }
          }
        }
      ])
    }
  })
})
