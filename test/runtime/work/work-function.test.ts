import t from 'tap'
import {
  assign,
  createMachine,
  emit,
  fromCallback,
  fromPromise,
  fromTransition,
  sendParent,
  setup,
  toPromise,
  type AnyActorRef
} from 'xstate'
import { z } from 'zod'
import { answerTo } from '../../../runtime/authoring/questions.ts'
import {
  artifact,
  authRequired,
  failed,
  inputRequired,
  progress,
  text,
  textOf as wordsOf,
  type WorkFunction
} from '../../../runtime/index.ts'
import { isA2AError } from '../../../machines/protocol/errors.ts'
import { runOf } from '../../../runtime/work/function-work.ts'
import { eventsOf, failOnLooseErrors, lives } from '../../fixtures/runtime/lives.ts'
import {
  brief,
  collect,
  deferred,
  heldStore,
  open,
  reaches,
  rejection,
  rest,
  say,
  start,
  stateName,
  taskIn,
  textOf,
  until,
  userMessage,
  type Started
} from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

/** What a task's events say, shortly. */
const told = async ({ store }: Pick<Started, 'store'>, id: string) =>
  (await eventsOf(store, id)).map(({ update }) => brief(update))

await t.test('a function emits and asks as a generator does', async t => {
  const started = start(t, {
    work: async ({ message, emit: say, ask, step, sleep }) => {
      say(progress('looking'))
      say(artifact({ artifactId: 'a', parts: [text('1')] }))
      say(artifact({ artifactId: 'a', parts: [text('2')] }, { append: true, lastChunk: true }))
      const day = await ask(inputRequired('Which day?'))
      const count = await ask(inputRequired('How many?', { schema: z.object({ count: z.int() }) }))
      const booking = await step('book', () => ({ number: 7 }))
      await sleep(1000)
      const authorization = await ask(authRequired('Pay.'))
      if ('message' in authorization) return failed(`not paid: ${wordsOf(authorization.message)}`)
      return {
        artifact: `${wordsOf(message)} ${wordsOf(day)} ${count.count} ${booking.number} ${JSON.stringify(authorization.data)}`
      }
    }
  })
  const { runtime, clock, log } = started
  const { id: taskId } = taskIn(await runtime.sendMessage(say('trip')))
  await runtime.sendMessage(say('Monday', { taskId }))
  t.match(await rejection(runtime.sendMessage(say('two', { taskId }))), {
    code: 'InvalidParams',
    violations: [{ field: 'message.parts' }]
  })
  await runtime.sendMessage(say('', { taskId, parts: [{ data: { count: 2 } }] }, { returnImmediately: true }))
  await rest()
  clock.increment(1000)
  await reaches(runtime, taskId, 'auth-required')
  await runtime.authorized(taskId, 'ok')
  await reaches(runtime, taskId, 'completed')
  t.strictSame(await told(started, taskId), [
    'submitted',
    'working',
    'working: looking',
    'artifact: 1',
    'artifact: 2',
    'input-required: Which day?',
    'working',
    'input-required: How many?',
    'working',
    'auth-required: Pay.',
    'working',
    'artifact: trip Monday 2 7 "ok"',
    'completed'
  ])
  t.strictSame(log, [])
})

await t.test('emit', async t => {
  await t.test('throws for an invalid word, and the work may continue', async t => {
    const { runtime, log } = start(t, {
      work: ({ emit: say }) => {
        try {
          say({ type: 'nonsense' } as never)
        } catch (error) {
          return { artifact: isA2AError(error) ? error.code : 'another error' }
        }
        return {}
      }
    })
    t.equal(textOf(taskIn(await runtime.sendMessage(say('x'))).artifacts?.[0]), 'InvalidAgentResponse')
    t.strictSame(log, [])
  })

  await t.test('after the end is dropped, with one warning for each work', async t => {
    const ends: [how: string, end: () => unknown][] = [
      ['returned', () => undefined],
      [
        'threw',
        () => {
          throw new Error('x')
        }
      ]
    ]
    for (const [how, end] of ends) {
      let late: (word: string) => void = () => {}
      const started = start(t, {
        work: async ({ emit: say }) => {
          late = word => say(progress(word))
          return end() as undefined
        }
      })
      const { id } = taskIn(await started.runtime.sendMessage(say('x')))
      const before = await told(started, id)
      const logged = started.log.length
      for (const word of ['one', 'two', 'three']) late(word)
      late = undefined as never
      await rest()
      t.strictSame(await told(started, id), before, how)
      t.match(started.log.slice(logged), [
        { level: 'warn', message: 'a word was dropped because its work had ended', details: { taskId: id } }
      ])
      t.equal(started.log.length, logged + 1)
    }
  })
})

await t.test('ask', async t => {
  await t.test('asks a second question after the answer to the first', async t => {
    const { runtime, log } = start(t, {
      work: async ({ ask }) => {
        const answers = await Promise.all([
          ask(inputRequired('One?')),
          ask(inputRequired('Two?')),
          ask(inputRequired('Three?'))
        ])
        return { artifact: text(answers.map(textOf).join(' ')) }
      }
    })
    const { id: taskId, status } = taskIn(await runtime.sendMessage(say('x')))
    const asked = [textOf(status.message)]
    for (const answer of ['1', '2'])
      asked.push(textOf(taskIn(await runtime.sendMessage(say(answer, { taskId }))).status.message))
    t.strictSame(asked, ['One?', 'Two?', 'Three?'])
    t.equal(textOf(taskIn(await runtime.sendMessage(say('3', { taskId }))).artifacts?.[0]), '1 2 3')
    t.strictSame(log, [])
  })

  await t.test('refuses an invalid question or deadline, and the next may be asked', async t => {
    const errors: unknown[] = []
    const { runtime } = start(t, {
      work: async ({ ask }) => {
        for (const question of [
          undefined,
          7,
          {},
          { type: 'input-required' },
          { type: 'input-required', message: 'x' },
          inputRequired('x', { deadlineMs: -1 }),
          inputRequired([])
        ]) {
          errors.push(await rejection(ask(question as never)))
        }
        return { artifact: wordsOf(await ask(inputRequired('Well?'))) }
      }
    })
    const { id: taskId } = taskIn(await runtime.sendMessage(say('x')))
    t.equal(errors.length, 7)
    t.equal(textOf(taskIn(await runtime.sendMessage(say('yes', { taskId }))).artifacts?.[0]), 'yes')
  })

  await t.test('lets the work send artifacts, but not progress, which would close the question', async t => {
    const started = start(t, {
      work: async ({ ask, emit: say }) => {
        const answer = ask(inputRequired('Sure?'))
        say(artifact('meanwhile'))
        say(progress('meanwhile'))
        say(progress('and again'))
        await answer
      }
    })
    const { id } = taskIn(await started.runtime.sendMessage(say('x')))
    await rest()
    t.strictSame(await told(started, id), ['submitted', 'working', 'input-required: Sure?', 'artifact: meanwhile'])
    t.match(started.log, [
      { level: 'warn', message: 'progress was dropped because the task waits for an answer', details: { taskId: id } }
    ])
  })
})

await t.test('a promise that is not awaited', async t => {
  await t.test('fails nothing: of steps, questions and sleeps only the steps are logged', async t => {
    const { runtime, log } = start(t, {
      work: ({ ask, step, sleep }) => {
        void step('fails', () => {
          throw new Error('x')
        })
        void step('rejects', () => Promise.reject(new Error('x')))
        void step('is none', undefined as never)
        void step('is no JSON', () => 1n)
        void ask(7 as never)
        void sleep(NaN)
        void sleep(1000)
        void ask(inputRequired('one'))
        void ask(inputRequired('two'))
      }
    })
    t.equal(stateName(taskIn(await runtime.sendMessage(say('x'))).status.state), 'completed')
    await rest()
    t.strictSame(log.map(({ details }) => String(details['step'])).toSorted(), [
      'fails',
      'is no JSON',
      'is none',
      'rejects'
    ])
  })

  await t.test('ends with the work, and later calls are refused asynchronously', async t => {
    const errors: unknown[] = []
    const gate = deferred()
    const { runtime, log } = start(t, {
      work: async ({ ask, step, sleep, spawn }) => {
        const pending = [
          ask(inputRequired('?')),
          sleep(1000),
          step('hangs', async () => {
            await gate.promise
          })
        ].map(rejection)
        const goOn = async () => {
          errors.push(
            ...(await Promise.all(pending)),
            ...(await Promise.all([ask(inputRequired('?')), step('late', () => 1), sleep(1)].map(rejection)))
          )
          try {
            spawn(fromCallback(() => {}))
          } catch (error) {
            errors.push(error)
          }
        }
        void goOn()
        await sleep(500)
      }
    })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    await runtime.cancelTask({ id })
    gate.resolve()
    await until(() => errors.length === 7)
    t.strictSame(
      [...new Set(errors.map(error => `${(error as Error).name}: ${(error as Error).message}`))],
      ['AbortError: The task has ended.']
    )
    t.strictSame(log, [])
  })

  await t.test('blocks no others, though the work catches all errors and retries forever', async t => {
    let tries = 0
    const life = { isOn: true }
    const { runtime } = start(t, {
      work: async ({ message, sleep }) => {
        if (wordsOf(message) === 'quick') return
        while (life.isOn) {
          tries += 1
          await sleep(1000).catch(() => {})
        }
      }
    })
    const { id } = await open(runtime)
    await reaches(runtime, id, 'working')
    await rest()
    await runtime.cancelTask({ id })
    t.equal(stateName(taskIn(await runtime.sendMessage(say('quick'))).status.state), 'completed')
    await until(() => tries > 3)
    life.isOn = false
  })
})

await t.test('child actors', async t => {
  const counter = fromTransition((count: number, event: { type: 'add'; by: number }) => count + event.by, 0)

  await t.test('are spawned, sent to, and awaited', async t => {
    const machine = setup({ types: { input: {} as { by: number } } }).createMachine({
      context: ({ input }) => ({ by: input.by }),
      initial: 'a',
      states: { a: { on: { go: 'b' } }, b: { type: 'final' } },
      output: ({ context }) => context.by * 2
    })
    const { runtime, log } = start(t, {
      work: async ({ spawn }) => {
        const promise = spawn(
          fromPromise<number, { n: number }>(async ({ input }) => input.n + 1),
          { id: 'promise', input: { n: 1 } }
        )
        const doubling = spawn(machine, { input: { by: 4 } })
        const count = spawn(counter)
        const counted = new Promise<number>(resolve =>
          count.subscribe(({ context }) => context > 0 && resolve(context))
        )
        count.send({ type: 'add', by: 3 })
        doubling.send({ type: 'go' })
        const all = [promise.id, await toPromise(promise), await toPromise(doubling), await counted]
        return { artifact: JSON.stringify(all) }
      }
    })
    t.equal(textOf(taskIn(await runtime.sendMessage(say('x'))).artifacts?.[0]), '["promise",2,8,3]')
    t.strictSame(log, [])
  })

  await t.test('stop with the work, however it ends, and restart with it', async t => {
    const seen: string[] = []
    const watcher = (name: string) =>
      fromCallback(() => (seen.push(`${name} starts`), () => void seen.push(`${name} stops`)))
    const inner = setup({ actors: { watch: watcher('inner') } }).createMachine({ invoke: { src: 'watch' } })
    const works: [how: string, end: WorkFunction | undefined][] = [
      ['an end', () => {}],
      [
        'an error',
        () => {
          throw new Error('x')
        }
      ],
      ['cancel', undefined],
      ['close', undefined]
    ]
    for (const [how, end] of works) {
      seen.length = 0
      const gate = deferred()
      const life = lives(t, {
        work: async given => {
          given.spawn(watcher('outer'))
          given.spawn(inner)
          if (!end) return void (await given.ask(inputRequired('?')))
          await gate.promise
          return end(given)
        }
      })
      const { id } = await open(life.runtime)
      await until(() => seen.length === 2)
      t.strictSame(seen.toSorted(), ['inner starts', 'outer starts'])
      gate.resolve()
      if (how === 'cancel') await life.runtime.cancelTask({ id })
      if (how === 'close') await life.again()
      await until(() => seen.length >= 4)
      t.strictSame(seen.slice(2, 4).toSorted(), ['inner stops', 'outer stops'], how)
      await rest()
      t.strictSame(seen.slice(4).toSorted(), how === 'close' ? ['inner starts', 'outer starts'] : [])
    }
  })

  await t.test('that fail are logged without effect, and an awaiting work receives the error', async t => {
    const failing = (error: unknown) =>
      fromPromise(async () => {
        throw error
      })
    const throwing = fromCallback(() => {
      throw new Error('callback')
    })
    const broken = createMachine({
      context: () => {
        throw new Error('context')
      }
    })
    const guarded = createMachine({
      initial: 'a',
      states: {
        a: {
          on: {
            go: {
              guard: () => {
                throw new Error('guard')
              },
              target: 'b'
            }
          }
        },
        b: {}
      }
    })
    const { runtime, log } = start(t, {
      work: async ({ spawn }) => {
        spawn(failing(new Error('alone')))
        spawn(failing(undefined))
        spawn(throwing)
        spawn(broken)
        spawn(guarded).send({ type: 'go' })
        await rest()
        const error = await rejection(toPromise(spawn(failing(new Error('awaited')))))
        return { artifact: error.message }
      }
    })
    const { id, status, artifacts } = taskIn(await runtime.sendMessage(say('x')))
    t.strictSame([stateName(status.state), textOf(artifacts?.[0])], ['completed', 'awaited'])
    t.ok(
      log.every(
        ({ level, message, details }) =>
          level === 'error' && message === 'an actor that a work spawned failed' && details.taskId === id
      )
    )
    const errors = log.map(({ details }) =>
      details.error instanceof Error
        ? (/alone|awaited|callback|context|guard$/.exec(details.error.message)?.[0] ?? '')
        : String(details.error)
    )
    t.strictSame(errors.toSorted(), ['alone', 'awaited', 'callback', 'context', 'guard', 'undefined'])
  })

  await t.test('cannot send to their parent, but to each other', async t => {
    const { runtime, log } = start(t, {
      work: async ({ spawn }) => {
        const count = spawn(counter)
        const talker = createMachine({
          entry: [
            sendParent({ type: 'hello' }),
            sendParent({ type: 'work.ended' }),
            emit({ type: 'heard' }),
            assign({})
          ],
          on: { add: { actions: () => count.send({ type: 'add', by: 1 }) } }
        })
        const talking = spawn(talker)
        talking.send({ type: 'add' })
        await until(() => count.getSnapshot().context === 1)
        return { artifact: 'done' }
      }
    })
    const { status } = taskIn(await runtime.sendMessage(say('x')))
    t.equal(stateName(status.state), 'completed')
    t.strictSame(log, [])
  })
})

await t.test('a function waits while it only asks, so that it may leave memory', async t => {
  let work: AnyActorRef | undefined
  const gate = deferred()
  const { runtime } = start(t, {
    work: async ({ ask, step, spawn }) => {
      spawn(
        fromCallback(({ self }) => {
          work = self._parent
        })
      )
      const stepping = step('slow', () => gate.promise)
      await ask(inputRequired('?'))
      await stepping
      await new Promise(() => {})
    }
  })
  const isWaiting = () => work?.getSnapshot().isWaiting
  const { id: taskId } = taskIn(await runtime.sendMessage(say('x')))
  t.equal(isWaiting(), false, 'a step is running')
  gate.resolve()
  await until(isWaiting)
  await runtime.sendMessage(say('y', { taskId }, { returnImmediately: true }))
  t.equal(isWaiting(), false)
})

await t.test('events without an open question are not for a function', async t => {
  const message = userMessage('early')
  let faults: unknown = 'none'
  const { runtime, log } = start(t, {
    work: async ({ ask, spawn }) => {
      const meanwhile = async () => {
        faults = 'none'
        spawn(
          fromCallback(({ self, sendBack }) => {
            if (!self._parent) return
            faults = runOf(self._parent)?.check({ type: 'message.received', message })
            sendBack({ type: 'message.received', message })
          })
        )
        await until(() => faults === undefined)
      }
      await meanwhile()
      const first = wordsOf(await ask(inputRequired('?')))
      await meanwhile()
      return { artifact: `${first}, ${wordsOf(await ask(inputRequired('?')))}` }
    }
  })
  const { id: taskId } = taskIn(await runtime.sendMessage(say('x')))
  await runtime.sendMessage(say('in time', { taskId }))
  t.equal(textOf(taskIn(await runtime.sendMessage(say('late', { taskId }))).artifacts?.[0]), 'in time, late')
  t.strictSame(log, [])
})

await t.test('a function never starts if its task is canceled before', async t => {
  let began = false
  const store = heldStore()
  const { runtime } = start(t, { input: z.string(), work: () => void (began = true) }, { store })
  store.hold()
  const opening = open(runtime)
  await until(() => store.held.length === 1)
  await store.release()
  const { id } = await opening
  await until(() => store.held.length === 1)
  const canceling = runtime.cancelTask({ id })
  await until(() => store.held.length === 2)
  await store.passAll()
  t.equal((await canceling).status.state, 'TASK_STATE_CANCELED')
  await rest()
  t.notOk(began)
})

await t.test('a question accepts only the event that it asks for', async t => {
  t.match(answerTo(inputRequired('?'), { type: 'authorization.received', data: 1 }), {
    violations: [{ field: 'data' }]
  })
  t.strictSame(answerTo(authRequired('?'), { type: 'authorization.received', data: 1 }), { answer: { data: 1 } })
})

await t.test('the signal', async t => {
  await t.test('is created on first use, always the same, and aborts with any end', async t => {
    for (const end of [
      () => {},
      () => {
        throw new Error('mine')
      }
    ]) {
      const signals: AbortSignal[] = []
      const { runtime } = start(t, {
        work: work => {
          signals.push(work.signal, work.signal)
          return end()
        }
      })
      await runtime.sendMessage(say('x'))
      const [one, other] = signals
      t.ok(one === other && one?.aborted)
    }
  })

  await t.test('is aborted already if it is first used after the end', async t => {
    let given: Parameters<WorkFunction>[0] | undefined
    const { runtime } = start(t, { work: work => void (given = work) })
    await runtime.sendMessage(say('x'))
    t.ok(given?.signal.aborted)
    t.match(given?.signal.reason, { name: 'AbortError' })
  })

  await t.test('of a task that exceeds its limit of events aborts too', async t => {
    let signal: AbortSignal | undefined
    const { runtime } = start(
      t,
      {
        work: async work => {
          signal = work.signal
          for (let i = 0; i < 20; i += 1) work.emit(progress(String(i)))
          await new Promise(() => {})
        }
      },
      { limits: { eventsPerTask: 10 } }
    )
    const { id } = await open(runtime)
    const { status } = await reaches(runtime, id, 'failed')
    t.match(textOf(status.message), /10/)
    t.ok(signal?.aborted)
  })
})

await t.test('the words of one commit are sent together, and in order', async t => {
  const { runtime } = start(t, {
    work: ({ emit: say }) => {
      for (const word of 'abc') say(progress(word))
    }
  })
  t.strictSame((await collect(runtime.sendStreamingMessage(say('x')))).map(brief), [
    'task:submitted',
    'working',
    'working: a',
    'working: b',
    'working: c',
    'completed'
  ])
})
