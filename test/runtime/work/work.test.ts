import t from 'tap'
import {
  assign,
  createMachine,
  emit,
  enqueueActions,
  fromCallback,
  fromPromise,
  fromTransition,
  raise,
  sendTo,
  spawnChild,
  type ActorLogic,
  type AnyActorRef,
  type EventObject,
  type Snapshot
} from 'xstate'
import type { SendMessageResponse } from '../../../machines/protocol/objects.ts'
import type { AgentDefinition } from '../../../runtime/agent/define-agent.ts'
import {
  A2AError,
  accepted,
  artifact,
  data,
  failed,
  inputRequired,
  progress,
  rejected,
  reply,
  setupWork,
  text
} from '../../../runtime/index.ts'
import type { NegotiateFunction } from '../../../runtime/negotiation/per-message.ts'
import type { WorkFunction } from '../../../runtime/work/function-work.ts'
import { echo, painter, steeredWork } from '../../fixtures/runtime/agents.ts'
import {
  brief,
  collect,
  deferred,
  heldStore,
  messageIn,
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

const SECRET = 'secret: /etc/passwd'
const cyclic: Record<string, unknown> = {}
cyclic.self = cyclic

const ended = (response: SendMessageResponse) => {
  const { status, artifacts } = taskIn(response)
  return { state: stateName(status.state), says: textOf(status.message), artifacts: artifacts?.map(textOf) }
}

await t.test('work as a function', async t => {
  await t.test('its result completes the task: artifacts in order, last words and metadata', async t => {
    const results: [result: unknown, artifacts: (string | undefined)[] | undefined, says: string | undefined][] = [
      [undefined, undefined, undefined],
      [null, undefined, undefined],
      [{}, undefined, undefined],
      [{ artifact: 'x' }, ['x'], undefined],
      [
        { artifact: text('x'), artifacts: ['y', [text('z'), text('!')], { name: 'n', parts: [text('w')] }] },
        ['x', 'y', 'z !', 'w'],
        undefined
      ],
      [{ artifacts: [] }, undefined, undefined],
      [{ message: 'bye' }, undefined, 'bye'],
      [{ message: { parts: [text('bye')], metadata: { a: 1 } }, metadata: { b: 2 } }, undefined, 'bye'],
      [Promise.resolve({ artifact: 'later' }), ['later'], undefined]
    ]
    for (const [result, artifacts, says] of results) {
      const { runtime } = start(t, { work: () => result as never })
      t.strictSame(ended(await runtime.sendMessage(say('x'))), { state: 'completed', says, artifacts })
    }
  })

  await t.test('an artifact without an id gets one, and its chunks are sent as complete', async t => {
    const { runtime } = start(t, {
      work: () => ({ artifacts: ['x', { artifactId: 'mine', parts: [data({ n: 1 })] }] })
    })
    const told = await collect(runtime.sendStreamingMessage(say('x')))
    t.match(told[2], { artifactUpdate: { artifact: { artifactId: /^id-/ }, lastChunk: true } })
    t.match(told[3], {
      artifactUpdate: { artifact: { artifactId: 'mine', parts: [{ data: { n: 1 } }] }, lastChunk: true }
    })
  })

  await t.test('its metadata reaches the task', async t => {
    const { runtime } = start(t, { work: () => ({ metadata: { a: { b: [1] } } }) })
    t.strictSame(taskIn(await runtime.sendMessage(say('x'))).metadata, { a: { b: [1] } })
  })

  await t.test('it may reject or fail the task with a reason', async t => {
    for (const [result, state, says] of [
      [rejected('not mine'), 'rejected', 'not mine'],
      [failed([text('a'), text('b')]), 'failed', 'a b']
    ] as const) {
      const { runtime, log } = start(t, { work: () => result })
      t.strictSame(ended(await runtime.sendMessage(say('x'))), { state, says, artifacts: undefined })
      t.strictSame(log, [], 'this is no error')
    }
    for (const type of ['rejected', 'failed']) {
      const { runtime } = start(t, { work: () => ({ type }) as never })
      t.match(ended(await runtime.sendMessage(say('x'))), {
        state: type,
        says: `The task was ${type} without a reason.`
      })
    }
  })

  await t.test('an error fails the task, is logged, and is hidden from the client', async t => {
    const works: WorkFunction[] = [
      () => {
        throw new Error(SECRET)
      },
      async () => {
        throw new Error(SECRET)
      },
      () => Promise.reject(SECRET),
      () => Promise.reject(undefined),
      () => ({
        get artifact(): string {
          throw new Error(SECRET)
        }
      })
    ]
    for (const work of works) {
      const { runtime, log } = start(t, { work })
      const response = await runtime.sendMessage(say('x'))
      t.strictSame(ended(response), { state: 'failed', says: 'The work ended with an error.', artifacts: undefined })
      t.notMatch(JSON.stringify(response), 'passwd')
      t.match(log, [{ level: 'error', message: 'the work of a task failed', details: { taskId: taskIn(response).id } }])
    }
  })

  await t.test('a result that is not valid A2A fails the task, with the member as reason', async t => {
    const garbage: [result: unknown, names: string][] = [
      [42, 'result'],
      ['text', 'result'],
      [[], 'result'],
      [{ artifacts: 'x' }, 'result.artifacts'],
      [{ artifact: 7 }, 'artifact'],
      [{ artifact: [] }, 'artifact.parts'],
      [{ artifact: { parts: [{}] } }, 'artifact.parts[0]'],
      [{ artifact: { parts: [{ text: 1 }] } }, 'artifact.parts[0].text'],
      [{ artifact: null }, 'artifact'],
      [{ artifact: { text: 'a', url: 'b' } }, 'artifact.parts[0]'],
      [{ artifact: { artifactId: 'x\u0000', parts: [text('x')] } }, 'artifact.artifactId'],
      [{ message: 1 }, 'message'],
      [{ metadata: [] }, 'metadata'],
      [{ metadata: cyclic }, 'metadata.self'],
      [{ metadata: { n: 1n } }, 'metadata.n'],
      [{ artifact: { data: { n: 1n } } }, 'artifact.parts[0].data.n'],
      [{ artifact: { text: 'x', metadata: cyclic } }, 'artifact.parts[0].metadata.self'],
      [{ artifact: { parts: [text('x')], metadata: cyclic } }, 'artifact.metadata.self'],
      [{ message: { parts: [text('x')], metadata: cyclic } }, 'message.metadata.self'],
      [
        { artifact: { data: new Map([['a', 1]]) } },
        'artifact.parts[0].data is a Map, which JSON does not keep. Write an object: Object.fromEntries(map).'
      ],
      [{ message: { data: { seen: [new Set()] } } }, 'message.parts[0].data.seen[0] is a Set,'],
      [{ metadata: { mean: NaN } }, 'metadata.mean is NaN,']
    ]
    for (const [result, names] of garbage) {
      const { runtime, log } = start(t, { work: () => result as never })
      const { state, says, artifacts } = ended(await runtime.sendMessage(say('x')))
      t.equal(state, 'failed')
      t.match(says, `not valid A2A: ${names}`)
      t.equal(artifacts, undefined)
      t.match(log, [{ message: 'the work of a task failed' }])
    }
  })

  await t.test('an empty result fails the task, with what to return', async t => {
    const nothing: [result: unknown, says: string][] = [
      [
        { text: 'hello' },
        "has text, and none of artifact, artifacts, message, metadata. Return { artifact: text('…') }, or data(…) for a value"
      ],
      [
        { artefact: text('x'), price: 3 },
        'has artefact, price, and none of artifact, artifacts, message, metadata. Is artifact meant?'
      ],
      [
        Object.fromEntries('abcdefg'.split('').entries()),
        "has 0, 1, 2, 3, 4, and none of artifact, artifacts, message, metadata. Return { artifact: text('…') }, or data(…) for a value"
      ],
      [
        new Map([['artifact', 'x']]),
        "is a Map, and none of artifact, artifacts, message, metadata. Return { artifact: text('…') }, or data(…) for a value"
      ],
      [new Error('full'), "must not be an error: throw it, or return failed('…') with a reason for the client"],
      [
        inputRequired('Which?'),
        'must not be a question: await ask(…) in a function, or yield* it in a generator, and return the result'
      ]
    ]
    for (const [result, says] of nothing) {
      const { runtime } = start(t, { work: () => result as never })
      t.match(ended(await runtime.sendMessage(say('x'))), {
        state: 'failed',
        says: `The agent's code produced something that is not valid A2A: result ${says}.`
      })
    }
  })

  await t.test('later changes by its author do not reach the task', async t => {
    const metadata = { list: [1] }
    const part = { data: { list: [1] } }
    const { runtime } = start(t, { work: () => ({ artifact: { parts: [part], metadata }, metadata }) })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    metadata.list.push(2)
    part.data.list.push(2)
    const task = await runtime.getTask({ id })
    t.strictSame(
      [task.metadata, task.artifacts?.[0]?.metadata, task.artifacts?.[0]?.parts],
      [{ list: [1] }, { list: [1] }, [{ data: { list: [1] } }]]
    )
  })

  await t.test('an error of one task does not affect others', async t => {
    const { runtime } = start(t, {
      work: ({ message }) => {
        if (textOf(message) === 'bad') throw new Error('x')
        return {}
      }
    })
    const states = await Promise.all(
      ['a', 'bad', 'b', 'bad', 'c'].map(
        async word => ended(await runtime.sendMessage(say(word, { contextId: 'c' }))).state
      )
    )
    t.strictSame(states, ['completed', 'failed', 'completed', 'failed', 'completed'])
  })
})

await t.test('cancel', async t => {
  await t.test('a cancel is answered at once, aborts the work’s signal, and drops later words', async t => {
    const { work, run } = steeredWork()
    const { runtime, log } = start(t, { work })
    const stream = runtime.sendStreamingMessage(say('x'))
    const { given, resolve } = await run(await stream.next().then(() => 0))
    const canceled = await runtime.cancelTask({ id: given.taskId })
    t.equal(canceled.status.state, 'TASK_STATE_CANCELED')
    t.ok(given.signal.aborted)
    resolve({ artifact: 'too late' })
    await rest()
    t.strictSame(await runtime.getTask({ id: given.taskId }), canceled)
    t.equal(brief((await collect(stream)).at(-1) ?? { message: say('').message }), 'canceled')
    t.strictSame(log, [])
  })

  await t.test('an error of canceled work is neither sent nor logged', async t => {
    const { work, run } = steeredWork()
    const { runtime, log } = start(t, { work })
    const { id } = await open(runtime)
    const { given, reject } = await run()
    given.signal.addEventListener('abort', () => reject(given.signal.reason))
    const canceled = await runtime.cancelTask({ id })
    await rest()
    t.strictSame(await runtime.getTask({ id }), canceled)
    t.strictSame(log, [])
  })

  await t.test('a cancel during the commit of the end is refused', async t => {
    const store = heldStore()
    const { work, run } = steeredWork()
    const { runtime } = start(t, { work }, { store })
    const { id } = await open(runtime)
    const { resolve } = await run()
    await reaches(runtime, id, 'working')
    store.hold()
    resolve({ artifact: 'done' })
    await until(() => store.held.length === 1)
    const canceling = refusal(runtime.cancelTask({ id }))
    await rest()
    await store.passAll()
    t.match(await canceling, { code: 'TaskNotCancelable' })
    t.equal((await runtime.getTask({ id })).status.state, 'TASK_STATE_COMPLETED')
  })

  await t.test('a chart’s actors are stopped at any depth', async t => {
    const stopped: string[] = []
    const watch = fromCallback(() => () => void stopped.push('watch'))
    const inner = setupWork({ actors: { watch } }).createMachine({
      invoke: { src: 'watch' },
      initial: 'a',
      states: { a: {} }
    })
    const work = setupWork({ actors: { inner, watch } }).createMachine({
      entry: spawnChild('watch'),
      invoke: { src: 'inner', input: () => ({}) as never },
      initial: 'a',
      states: { a: {} }
    })
    const { runtime } = start(t, { work })
    const { id } = await open(runtime)
    await reaches(runtime, id, 'working')
    await rest()
    await runtime.cancelTask({ id })
    t.strictSame(stopped, ['watch', 'watch'])
  })
})

await t.test('work as a chart', async t => {
  await t.test("its tags, words and output become the task's states, events and result", async t => {
    const { runtime, log } = start(t, { work: painter() })
    const asked = taskIn(await runtime.sendMessage(say('a boat')))
    t.equal(textOf(asked.status.message), 'Which colour for a boat?')
    t.match(ended(await runtime.sendMessage(say('red', { taskId: asked.id }))), {
      state: 'completed',
      says: 'Here you are',
      artifacts: ['a sketch', 'a red boat']
    })
    t.strictSame(log, [])
  })

  await t.test('words before the first question are sent before it', async t => {
    const work = setupWork({}).createMachine({
      initial: 'a',
      states: {
        a: { entry: [emit(progress('one')), emit(artifact('two')), emit(progress('three'))], always: 'b' },
        b: { tags: 'input-required', meta: { prompt: 'four?' }, on: { 'message.received': {} } }
      }
    })
    const { runtime } = start(t, { work })
    const told = await collect(runtime.sendStreamingMessage(say('x')))
    t.strictSame(told.map(brief).slice(1), [
      'working',
      'working: one',
      'artifact: two',
      'working: three',
      'input-required: four?'
    ])
  })

  await t.test('words on leaving a question come after it, and those on entering another before that', async t => {
    const { runtime } = start(t, { work: interview() })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    const stream = runtime.subscribeToTask({ id })
    await stream.next()
    await runtime.sendMessage(say('answer', { taskId: id }))
    await runtime.sendMessage(say('last', { taskId: id }))
    t.strictSame((await collect(stream)).map(brief), [
      'working',
      'working: thanks',
      'artifact: note',
      'input-required: Second?',
      'working',
      'working: done',
      'completed'
    ])
  })

  await t.test('chunks of an artifact are sent as chunks and read as one artifact', async t => {
    const chunk = (word: string, how: { append?: boolean; lastChunk?: boolean }) =>
      artifact({ artifactId: 'a', parts: [text(word)] }, how)
    const work = setupWork({}).createMachine({
      initial: 'a',
      states: {
        a: {
          entry: [
            emit(chunk('1', {})),
            emit(chunk('2', { append: true })),
            emit(chunk('3', { append: true, lastChunk: true }))
          ],
          always: 'b'
        },
        b: { type: 'final' }
      }
    })
    const { runtime } = start(t, { work })
    const told = await collect(runtime.sendStreamingMessage(say('x')))
    const flags = told.flatMap(each =>
      'artifactUpdate' in each ? [[each.artifactUpdate.append, each.artifactUpdate.lastChunk]] : []
    )
    t.strictSame(flags, [
      [undefined, undefined],
      [true, undefined],
      [true, true]
    ])
    t.strictSame((await runtime.getTask({ id: taskIn(told[0]).id })).artifacts, [
      { artifactId: 'a', parts: [text('1'), text('2'), text('3')] }
    ])
  })

  await t.test('the task works briefly between two questions', async t => {
    const { runtime } = start(t, { work: interview() })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    const second = taskIn(await runtime.sendMessage(say('answer', { taskId: id })))
    t.equal(second.status.state, 'TASK_STATE_INPUT_REQUIRED')
    t.equal(textOf(second.status.message), 'Second?')
  })

  await t.test('its reply to an answer is sent, even if it asks in the same state', async t => {
    const work = setupWork({}).createMachine({
      initial: 'asking',
      states: {
        asking: { tags: 'input-required', meta: { prompt: 'And?' }, on: { 'message.received': 'noting' } },
        noting: { always: { target: 'asking', actions: emit(progress('noted')) } }
      }
    })
    const { runtime, store } = start(t, { work })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    t.equal(textOf(taskIn(await runtime.sendMessage(say('y', { taskId: id }))).status.message), 'And?')
    const events = await store.readEvents({ tenant: '', principal: 'anonymous' }, id, 4, 10)
    t.strictSame(
      events.map(({ update }) => brief(update)),
      ['working', 'working: noted', 'input-required: And?']
    )
  })

  await t.test('a question whose words change while it waits is asked again', async t => {
    const work = setupWork({ types: { context: {} as { tries: number } } }).createMachine({
      context: { tries: 0 },
      initial: 'asking',
      states: {
        asking: {
          tags: 'input-required',
          meta: { prompt: ({ context }) => (context.tries === 0 ? 'Which?' : `Which? (try ${context.tries + 1})`) },
          on: { 'message.received': { actions: assign({ tries: ({ context }) => context.tries + 1 }) } }
        }
      }
    })
    const { runtime } = start(t, { work })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    const again = taskIn(await runtime.sendMessage(say('hm', { taskId: id })))
    t.equal(textOf(again.status.message), 'Which? (try 2)')
    t.strictSame(again.history?.map(textOf), ['x', 'Which?', 'hm'])
  })

  await t.test('an unexpected answer is refused with UnsupportedOperation, without effect', async t => {
    const { runtime } = start(t, { work: painter() })
    const asked = taskIn(await runtime.sendMessage(say('a boat')))
    t.match(await refusal(runtime.sendMessage(say('green', { taskId: asked.id }))), {
      code: 'UnsupportedOperation',
      metadata: { state: 'TASK_STATE_INPUT_REQUIRED' }
    })
    t.strictSame(await runtime.getTask({ id: asked.id }), asked)
    t.match(ended(await runtime.sendMessage(say('red', { taskId: asked.id }))), { state: 'completed' })
  })

  await t.test('an awaited authorization may end by a message or by itself', async t => {
    const authorized = deferred()
    const work = setupWork({ actors: { authorization: fromPromise(() => authorized.promise) } }).createMachine({
      initial: 'waiting',
      states: {
        waiting: {
          tags: 'auth-required',
          invoke: { src: 'authorization', onDone: 'done' },
          on: { 'message.received': 'done' }
        },
        done: { type: 'final' }
      }
    })
    const { runtime } = start(t, { work })
    const [byMessage, byItself] = [
      taskIn(await runtime.sendMessage(say('x'))),
      taskIn(await runtime.sendMessage(say('y')))
    ]
    t.equal(byMessage.status.state, 'TASK_STATE_AUTH_REQUIRED')
    t.equal(textOf(byMessage.status.message), 'The agent needs an answer to go on.')
    t.match(ended(await runtime.sendMessage(say('never mind', { taskId: byMessage.id }))), { state: 'completed' })
    authorized.resolve()
    await reaches(runtime, byItself.id, 'completed')
  })

  await t.test('a final state tagged failed or rejected ends so, with its reason', async t => {
    const ends = [
      [{ tags: ['failed'], meta: { reason: 'out of paint' } }, 'failed', 'out of paint'],
      [
        { tags: ['rejected'], meta: { reason: ({ context }: { context: { wish: string } }) => `no ${context.wish}` } },
        'rejected',
        'no boat'
      ],
      [{ tags: ['failed'] }, 'failed', 'The task was failed without a reason.'],
      [{}, 'completed', undefined]
    ] as const
    for (const [state, expected, says] of ends) {
      const work = setupWork({ types: { context: {} as { wish: string } } }).createMachine({
        context: { wish: 'boat' },
        initial: 'a',
        states: { a: { type: 'final', ...state } }
      })
      const { runtime } = start(t, { work })
      t.strictSame(ended(await runtime.sendMessage(say('x'))), { state: expected, says, artifacts: undefined })
    }
  })

  await t.test('its output may reject or fail, too', async t => {
    const work = setupWork({}).createMachine({
      initial: 'a',
      states: { a: { type: 'final' } },
      output: rejected('closed')
    })
    const { runtime } = start(t, { work })
    t.match(ended(await runtime.sendMessage(say('x'))), { state: 'rejected', says: 'closed' })
  })

  await t.test('an error in its code fails the task, is logged and stays hidden', async t => {
    const bad = (): never => {
      throw new Error(SECRET)
    }
    const machine = setupWork({
      types: { context: {} as { n: number } },
      actors: { broken: fromPromise(async () => bad()), thrower: fromCallback(bad), shape: fromPromise(async () => 1) },
      actions: { bad },
      guards: { bad }
    })
    const one = (state: object, output?: object) =>
      machine.createMachine({
        context: { n: 0 },
        initial: 'a',
        states: { a: state as never, b: { type: 'final' } },
        ...(output && { output: output as never })
      })
    const charts: [where: string, chart: ReturnType<typeof one>][] = [
      ['an action', one({ entry: 'bad' })],
      ['an action in the chart', one({ entry: bad })],
      ['an assignment', one({ entry: assign(bad) })],
      ['a guard', one({ always: { guard: 'bad', target: 'b' } })],
      ['an invoked promise', one({ invoke: { src: 'broken' } })],
      ['a callback’s start', one({ invoke: { src: 'thrower' } })],
      ['the input of an actor', one({ invoke: { src: 'shape', input: bad } })],
      ['the prompt', one({ tags: 'input-required', meta: { prompt: bad }, on: { 'message.received': {} } })],
      ['the reason', one({ type: 'final', tags: 'failed', meta: { reason: bad } })],
      ['the output', one({ type: 'final' }, bad)],
      ['an event’s making', one({ entry: raise(bad as never) })],
      ['words', one({ entry: emit(bad as never) })]
    ]
    for (const [where, work] of charts) {
      const { runtime, log } = start(t, { work })
      const response = await runtime.sendMessage(say('x'))
      t.match(ended(response), { state: 'failed', says: 'The work ended with an error.' }, where)
      t.notMatch(JSON.stringify(response), 'passwd')
      t.match(log[0], { level: 'error', details: { taskId: taskIn(response).id } }, `${where} is logged`)
    }
  })

  await t.test('an error in a guard of an answer fails the task, hidden from the client', async t => {
    const work = setupWork({
      guards: {
        bad: () => {
          throw new Error(SECRET)
        }
      }
    }).createMachine({
      initial: 'asking',
      states: {
        asking: { tags: 'input-required', on: { 'message.received': { guard: 'bad', target: 'done' } } },
        done: { type: 'final' }
      }
    })
    const { runtime } = start(t, { work })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    const outcome = await runtime.sendMessage(say('y', { taskId: id })).catch((error: Error) => error.message)
    t.notMatch(JSON.stringify(outcome), 'passwd')
    t.equal((await runtime.getTask({ id })).status.state, 'TASK_STATE_FAILED')
  })

  await t.test('words that are not valid A2A fail the task, and are logged', async t => {
    for (const words of [
      { type: 'nonsense' },
      { type: 'artifact', artifact: 7 },
      { type: 'progress', message: [] },
      { type: 'progress', metadata: cyclic }
    ]) {
      const work = setupWork({}).createMachine({ initial: 'a', states: { a: { entry: emit(words as never) } } })
      const { runtime, log } = start(t, { work })
      const { state, says } = ended(await runtime.sendMessage(say('x')))
      t.equal(state, 'failed')
      t.match(says, /^The agent's code/)
      t.match(log, [{ level: 'error', message: 'the work of a task failed' }])
    }
  })

  await t.test('a word that is not valid A2A fails the task also if its transition ends the chart', async t => {
    const words = { type: 'hello' } as never
    const ends = setupWork({}).createMachine({
      initial: 'a',
      states: { a: { entry: emit(words), always: 'end' }, end: { type: 'final' } }
    })
    const atEnd = setupWork({}).createMachine({
      initial: 'a',
      states: { a: { after: { 1: 'end' } }, end: { type: 'final', entry: [emit(progress('first')), emit(words)] } }
    })
    const enqueued = setupWork({}).createMachine({
      initial: 'a',
      states: {
        a: { entry: enqueueActions(({ enqueue }) => enqueue.emit(words)), always: 'end' },
        end: { type: 'final' }
      }
    })
    for (const work of [ends, atEnd, enqueued]) {
      for (const isInspected of [false, true]) {
        const { runtime, log, clock } = start(t, { work })
        if (isInspected) runtime.observe({ entered: ({ root }) => void root.system.inspect(() => {}) })
        const sent = runtime.sendMessage(say('x'))
        if (work === atEnd) await until(() => clock.pending === 1).then(() => clock.increment(1))
        t.strictSame(ended(await sent), {
          state: 'failed',
          says: "The agent's code has to say progress(…) or artifact(…).",
          artifacts: undefined
        })
        t.strictSame(
          log.map(({ message }) => message),
          ['the work of a task failed']
        )
      }
    }
  })

  await t.test('a context with values that JSON changes fails the task, with the path', async t => {
    const losses = [
      [1n, 'context.value is a BigInt,'],
      [cyclic, 'context.value.self is an object that contains itself,'],
      [() => 1, 'context.value is a function,'],
      [{ at: new URL('http://a.example/') }, 'context.value.at is a URL,']
    ] as const
    for (const [value, says] of losses) {
      const work = setupWork({ types: { context: {} as { value: unknown } } }).createMachine({
        context: () => ({ value }),
        initial: 'a',
        states: { a: {} }
      })
      const { runtime, log } = start(t, { work })
      t.match(ended(await runtime.sendMessage(say('x'))), {
        state: 'failed',
        says: `The agent's chart has a context that cannot be stored: ${says}`
      })
      t.match(log[0], { level: 'error' })
    }
  })

  await t.test(
    'an input of an actor that JSON changes fails the task, since the actor would restart with another',
    async t => {
      const sleeper = fromPromise<void, unknown>(() => new Promise(() => {}))
      const chart = (input: unknown) =>
        setupWork({ actors: { sleeper } }).createMachine({
          initial: 'a',
          states: {
            a: { tags: 'input-required', on: { 'message.received': 'b' } },
            b: { invoke: { src: 'sleeper', id: 'sleeps', input: (() => input) as never, onError: 'c' } },
            c: { type: 'final' }
          }
        })
      const { runtime } = start(t, { work: chart({ until: new Date(0) }) })
      const { id } = taskIn(await runtime.sendMessage(say('x')))
      const says =
        "The agent's chart starts the actor sleeps with an input that cannot be stored: input.until is a Date, which JSON does not keep. Write a text: date.toISOString()."
      t.match(ended(await runtime.sendMessage(say('y', { taskId: id }))), { state: 'failed', says })
      const { runtime: other } = start(t, { work: chart({ until: '1970', none: undefined }) })
      const { id: at } = taskIn(await other.sendMessage(say('x')))
      t.equal(
        stateName(taskIn(await other.sendMessage(say('y', { taskId: at }, { returnImmediately: true }))).status.state),
        'working'
      )
    }
  )

  await t.test(
    'a state of fromTransition that JSON changes fails the task, since the actor would continue with another',
    async t => {
      for (const isLater of [false, true]) {
        const clock = fromTransition((): object => ({ at: new Date(0) }), isLater ? {} : { at: new Date(0) })
        const work = setupWork({ actors: { clock } }).createMachine({
          invoke: { src: 'clock', id: 'clock' },
          entry: sendTo('clock', { type: 'tick' }),
          initial: 'a',
          states: { a: { after: { 1000: 'b' } }, b: {} }
        })
        const { runtime } = start(t, { work })
        const says =
          "The agent's chart has an actor clock whose state cannot be stored: state.at is a Date, which JSON does not keep. Write a text: date.toISOString()."
        t.match(ended(await runtime.sendMessage(say('x'))), { state: 'failed', says })
      }
    }
  )

  await t.test("logic of one's own needs no state", async t => {
    const none: ActorLogic<Snapshot<unknown>, EventObject> = {
      getInitialSnapshot: () => ({ status: 'active', output: undefined, error: undefined }),
      transition: snapshot => snapshot,
      getPersistedSnapshot: snapshot => snapshot
    }
    const work = setupWork({ actors: { none } }).createMachine({
      invoke: { src: 'none', id: 'none' },
      entry: sendTo('none', { type: 'tick' }),
      initial: 'a',
      states: { a: { always: 'b' }, b: { type: 'final' } }
    })
    const { runtime } = start(t, { work })
    t.match(ended(await runtime.sendMessage(say('x'))), { state: 'completed' })
  })

  await t.test('a delayed event that JSON changes fails the task, since it would arrive as another', async t => {
    const late = { type: 'late', at: new Map() }
    const delays = [
      raise(late as never, { delay: 1000 }),
      sendTo(({ self }: { self: AnyActorRef }) => self, late as never, { delay: 1000 })
    ]
    for (const delay of delays) {
      const work = setupWork({}).createMachine({
        initial: 'a',
        states: { a: { entry: delay as never, always: 'b' }, b: {} }
      })
      const { runtime } = start(t, { work })
      const says =
        "The agent's chart delays late, which cannot be stored: event.at is a Map, which JSON does not keep. Write an object: Object.fromEntries(map)."
      t.match(ended(await runtime.sendMessage(say('x'))), { state: 'failed', says })
    }
  })

  await t.test('a context with values that JSON loses fails the task, with what to write', async t => {
    const mapped = { seen: new Map([['a', 1]]), other: 1 }
    const chart = (context: unknown) =>
      createMachine({
        id: 'shop',
        context,
        initial: 'a',
        states: {
          a: { tags: 'input-required', on: { 'message.received': { target: 'b', actions: assign(mapped) } } },
          b: {}
        }
      } as never) as never
    const [later, atOnce] = [chart({ seen: 1, other: {} }), chart(() => mapped)]
    const says =
      "The agent's chart has a context that cannot be stored: context.seen is a Map, which JSON does not keep. Write an object: Object.fromEntries(map)."
    const { runtime } = start(t, { work: later })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    t.match(ended(await runtime.sendMessage(say('a', { taskId: id }))), { state: 'failed', says })
    t.match(ended(await start(t, { work: atOnce }).runtime.sendMessage(say('x'))), { state: 'failed', says })
    for (const below of [later, atOnce]) {
      const work = createMachine({
        initial: 'a',
        states: {
          a: {
            invoke: [{ id: 'below', src: 'below', onError: 'b' }, { src: 'poke' }],
            on: { poke: { actions: sendTo('below', { type: 'message.received' }) } }
          },
          b: { type: 'final', tags: 'failed', meta: { reason: 'The actor failed.' } }
        }
      }).provide({ actors: { below, poke: fromCallback(({ sendBack }) => sendBack({ type: 'poke' })) } })
      t.match(ended(await start(t, { work: work as never }).runtime.sendMessage(say('x'))), {
        state: 'failed',
        says: 'The actor failed.'
      })
    }
    t.throws(() => start(t, { work: chart(mapped) }), {
      name: 'TypeError',
      message: /^The chart shop has a context that cannot be stored: context\.seen is a Map/
    })
  })

  await t.test('an actor spawned without a name fails the task, since it could not be restored', async t => {
    const nameless = fromCallback(() => {})
    const work = setupWork({}).createMachine({ entry: spawnChild(nameless as never), initial: 'a', states: { a: {} } })
    const { runtime, log } = start(t, { work })
    t.match(ended(await runtime.sendMessage(say('x'))), { state: 'failed' })
    t.match(String(log[0]?.details.error), 'has logic without a name')
  })

  await t.test('a nested actor without a name fails the task, too', async t => {
    const nameless = fromCallback(() => {})
    const inner = setupWork({}).createMachine({ entry: spawnChild(nameless as never), initial: 'a', states: { a: {} } })
    const work = setupWork({ actors: { inner } }).createMachine({
      invoke: { src: 'inner', input: () => ({}) as never },
      initial: 'a',
      states: { a: {} }
    })
    const { runtime } = start(t, { work })
    t.match(ended(await runtime.sendMessage(say('x'))), { state: 'failed' })
  })

  await t.test('a chart’s delays use the runtime’s clock', async t => {
    const work = setupWork({ delays: { aDay: 86_400_000 } }).createMachine({
      initial: 'a',
      states: { a: { after: { aDay: 'b' } }, b: { type: 'final' } }
    })
    const { runtime, clock } = start(t, { work })
    const { id } = await open(runtime)
    await until(() => clock.pending === 1)
    clock.increment(86_399_999)
    await rest()
    t.equal((await runtime.getTask({ id })).status.state, 'TASK_STATE_WORKING')
    clock.increment(1)
    t.equal((await reaches(runtime, id, 'completed')).status.timestamp, '2026-01-03T03:04:05.006Z')
  })

  await t.test("a callback actor receives its chart's events, also those sent before its start", async t => {
    const heard: string[] = []
    const listener = fromCallback<{ type: string }>(({ receive, sendBack }) =>
      receive(({ type }) => {
        heard.push(type)
        if (heard.length === 2) sendBack({ type: 'enough' })
      })
    )
    const { sendTo } = await import('xstate')
    const work = setupWork({ types: { events: {} as { type: 'enough' } }, actors: { listener } }).createMachine({
      invoke: { src: 'listener', id: 'listener' },
      entry: [sendTo('listener', { type: 'early' })],
      initial: 'a',
      states: {
        a: {
          tags: 'input-required',
          on: { 'message.received': { actions: sendTo('listener', { type: 'later' }) }, enough: 'b' }
        },
        b: { type: 'final' }
      }
    })
    const { runtime } = start(t, { work })
    const { id } = taskIn(await runtime.sendMessage(say('x')))
    await until(() => heard.length === 1)
    await runtime.sendMessage(say('y', { taskId: id }, { returnImmediately: true }))
    await reaches(runtime, id, 'completed')
    t.strictSame(heard, ['early', 'later'])
  })
})

await t.test('negotiation', async t => {
  const both = (negotiate: NegotiateFunction, more: Partial<AgentDefinition> = {}) => ({
    negotiate,
    work: echo,
    ...more
  })

  await t.test('it may open a task, whose work gets the terms and whose metadata shows them', async t => {
    const given: unknown[] = []
    const { runtime } = start(t, {
      negotiate: () => accepted({ price: 5 }),
      work: ({ terms }) => void given.push(terms)
    })
    const task = taskIn(await runtime.sendMessage(say('x')))
    t.strictSame(task.metadata, { 'urn:taskchart:extension:negotiation:1': { terms: { price: 5 } } })
    t.strictSame(given, [{ price: 5 }])
    t.equal(task.status.state, 'TASK_STATE_COMPLETED')
    await runtime.sendMessage(say('x', { contextId: task.contextId ?? '' }))
    t.strictSame(given.pop(), { price: 5 }, 'the next task of the context too')
    const { runtime: other } = start(t, { negotiate: () => accepted(), work: ({ terms }) => void given.push(terms) })
    t.equal(taskIn(await other.sendMessage(say('x'))).metadata, undefined)
    t.equal(given[1], undefined)
  })

  await t.test('an error or an invalid answer gives InternalError without its text', async t => {
    const negotiations: NegotiateFunction[] = [
      () => {
        throw new Error(SECRET)
      },
      async () => {
        throw new A2AError('TaskNotFound', SECRET)
      },
      () => undefined as never,
      () => ({ type: 'maybe' }) as never,
      () => reply(7 as never),
      () => accepted(cyclic),
      () => rejected(undefined as never)
    ]
    for (const negotiate of negotiations) {
      const { runtime, log } = start(t, both(negotiate))
      const { code, message } = await refusal(runtime.sendMessage(say('x')))
      t.equal(code, 'InternalError')
      t.notMatch(message, 'passwd')
      t.match(log, [{ level: 'error', message: 'the negotiation of a message failed' }])
      t.match(await refusal(collect(runtime.sendStreamingMessage(say('x')))), { code: 'InternalError' })
    }
    const { runtime, log } = start(t, { negotiate: () => accepted() })
    t.match(
      await refusal(runtime.sendMessage(say('x'))),
      { code: 'InternalError' },
      'an agent without work opens no task'
    )
    t.match(String(log[0]?.details.error), 'the agent has no work')
  })

  await t.test('it reads only its own context before the message, newest last', async t => {
    const read: unknown[] = []
    const negotiate: NegotiateFunction = async ({ message, history }) => {
      read.push(
        (await history()).map(({ role, parts }) => `${role === 'ROLE_USER' ? 'u' : 'a'}:${textOf({ parts })}`),
        (await history(1)).length
      )
      return reply(`re ${textOf(message)}`)
    }
    const { runtime } = start(t, { negotiate })
    for (const [word, call] of [
      ['a', {}],
      ['b', {}],
      ['c', {}],
      ['d', { principal: 'bob' }]
    ] as const)
      await runtime.sendMessage(say(word, { contextId: 'c' }), call)
    t.strictSame(read, [[], 0, ['u:a', 'a:re a'], 1, ['u:a', 'a:re a', 'u:b', 'a:re b'], 1, [], 0])
  })

  await t.test('messages of one context are negotiated concurrently, and block nothing', async t => {
    const answers = new Map<string, ReturnType<typeof deferred<ReturnType<typeof reply>>>>()
    const negotiate: NegotiateFunction = ({ message }) => {
      const word = textOf(message) ?? ''
      if (word === 'work') return accepted()
      const answer = deferred<ReturnType<typeof reply>>()
      answers.set(word, answer)
      return answer.promise
    }
    const { runtime } = start(t, both(negotiate))
    const [one, two] = ['one', 'two'].map(word => runtime.sendMessage(say(word, { contextId: 'c' })))
    await until(() => answers.size === 2)
    t.match(ended(await runtime.sendMessage(say('work', { contextId: 'c' }))), { state: 'completed' })
    answers.get('two')?.resolve(reply('2'))
    t.equal(textOf(messageIn((await two) as SendMessageResponse)), '2')
    answers.get('one')?.resolve(reply('1'))
    t.equal(textOf(messageIn((await one) as SendMessageResponse)), '1')
  })

  await t.test('its signal aborts when the runtime closes, and waiting callers receive Overloaded', async t => {
    const signals: AbortSignal[] = []
    const { runtime, log } = start(t, { negotiate: ({ signal }) => (signals.push(signal), new Promise(() => {})) })
    const waiting = refusal(runtime.sendMessage(say('x')))
    await until(() => signals.length === 1)
    await runtime.close()
    t.match(await waiting, { code: 'Overloaded' })
    t.ok(signals[0]?.aborted)
    t.strictSame(log, [])
  })

  await t.test('a follow-up to a task is not negotiated', async t => {
    let negotiated = 0
    const { runtime } = start(t, { negotiate: () => ((negotiated += 1), accepted()), work: painter() })
    const { id } = taskIn(await runtime.sendMessage(say('a boat')))
    await runtime.sendMessage(say('red', { taskId: id }))
    t.equal(negotiated, 1)
  })
})

/** Asks twice, and says something on each way. */
function interview() {
  return setupWork({}).createMachine({
    initial: 'first',
    states: {
      first: {
        tags: 'input-required',
        meta: { prompt: 'First?' },
        on: { 'message.received': { target: 'second', actions: [emit(progress('thanks')), emit(artifact('note'))] } }
      },
      second: {
        tags: 'input-required',
        meta: { prompt: 'Second?' },
        on: { 'message.received': { target: 'done', actions: emit(progress('done')) } }
      },
      done: { type: 'final' }
    }
  })
}
