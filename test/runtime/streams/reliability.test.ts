import t from 'tap'
import { assign, emit } from 'xstate'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import type { CallContext, Conditions } from '../../../runtime/access/call-context.ts'
import { progress, setupWork, text } from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import {
  collect,
  deferred,
  generationOf,
  messageIn,
  next,
  open,
  reaches,
  refusal,
  rest,
  say,
  start,
  taskIn,
  userMessage,
  withGenerations
} from '../../fixtures/runtime/runtime-helpers.ts'
import { generationsIn } from '../../fixtures/runtime/lives.ts'

const extensions = [RELIABILITY_EXTENSION]
const given = (conditions: Conditions): CallContext => ({ extensions, conditions })

/** Asks twice, and completes with both answers. */
const asksTwice = setupWork({ types: { context: {} as { answers: string[] } } }).createMachine({
  context: { answers: [] },
  initial: 'first',
  states: {
    first: {
      tags: 'input-required',
      meta: { prompt: 'First?' },
      on: {
        'message.received': {
          target: 'second',
          actions: assign({ answers: ({ event }) => [JSON.stringify(event.message.parts)] })
        }
      }
    },
    second: {
      tags: 'input-required',
      entry: emit(progress('half way')),
      meta: { prompt: 'Second?' },
      on: { 'message.received': 'done' }
    },
    done: { type: 'final' }
  },
  output: ({ context }) => ({ artifact: text(context.answers.join()) })
})

const anyone = { tenant: '', principal: 'anonymous' }

await t.test('a subscription with a cursor', async t => {
  await t.test('receives the events after it, without an initial task', async t => {
    const { runtime } = start(t, { work: asksTwice })
    const task = await open(runtime)
    await reaches(runtime, task.id, 'input-required')
    await runtime.sendMessage(say('one', { taskId: task.id }))
    const stream = runtime.subscribeToTask({ id: task.id }, given({ afterGeneration: 3 }))
    t.same([generationOf(await next(stream)), generationOf(await next(stream))], [4, 6], 'the message has 5')
    await stream.return()
  })

  await t.test('continues live, without gap or repeat', async t => {
    const { runtime } = start(t, { work: asksTwice })
    const task = await open(runtime)
    await reaches(runtime, task.id, 'input-required')
    const events = collect(runtime.subscribeToTask({ id: task.id }, given({ afterGeneration: 0 })))
    await runtime.sendMessage(say('one', { taskId: task.id }))
    await runtime.sendMessage(say('two', { taskId: task.id }))
    const generations = (await events).map(generationOf)
    t.same(generations, [2, 3, 4, 6, 7, 8, 10, 11, 12], 'the messages have 1, 5 and 9')
  })

  await t.test('replays the end of an ended task, and then ends', async t => {
    const { runtime } = start(t, { work: () => ({ artifact: text('x') }) })
    const task = taskIn(await runtime.sendMessage(say('go')))
    const all = await collect(runtime.subscribeToTask({ id: task.id }, given({ afterGeneration: 0 })))
    t.same(all.map(generationOf), [2, 3, 4, 5], 'the message that opened it has 1')
    t.same(await collect(runtime.subscribeToTask({ id: task.id }, given({ afterGeneration: 5 }))), [])
  })

  await t.test('receives the same event objects as every other, encoded once', async t => {
    const { runtime } = start(t, { work: () => ({ artifact: text('x') }) })
    const task = taskIn(await runtime.sendMessage(say('go')))
    const streams = [given({ afterGeneration: 0 }), given({ afterGeneration: 0 })].map(call =>
      collect(runtime.subscribeToTask({ id: task.id }, call))
    )
    const [one = [], other = []] = await Promise.all(streams)
    t.equal(one.length, 4)
    t.ok(one.every((event, i) => event === other[i]))
  })

  await t.test('that is ahead of the task, or invalid, is refused', async t => {
    const { runtime } = start(t, { work: () => ({}) })
    const task = taskIn(await runtime.sendMessage(say('go')))
    t.match(await refusal(next(runtime.subscribeToTask({ id: task.id }, given({ afterGeneration: 99 })))), {
      code: 'InvalidParams',
      message: /afterGeneration must not be ahead/
    })
    for (const afterGeneration of [-1, 0.5, NaN]) {
      t.match(await refusal(next(runtime.subscribeToTask({ id: task.id }, given({ afterGeneration })))), {
        code: 'InvalidParams',
        message: /afterGeneration must be a whole number from 0/
      })
    }
  })

  await t.test('is ignored unless the extension is active', async t => {
    const { runtime } = start(t, { work: () => ({}) })
    const task = taskIn(await runtime.sendMessage(say('go')))
    t.match(await refusal(next(runtime.subscribeToTask({ id: task.id }, { conditions: { afterGeneration: 0 } }))), {
      code: 'UnsupportedOperation'
    })
  })
})

await t.test('a message or cancel with a condition', async t => {
  await t.test('takes effect while the task is at that generation, and not afterwards', async t => {
    const { runtime } = start(t, { work: asksTwice })
    const { id: taskId } = await open(runtime)
    await reaches(runtime, taskId, 'input-required')
    const before = await runtime.getTask({ id: taskId }, withGenerations)
    t.match(await refusal(runtime.sendMessage(say('one', { taskId }), given({ ifGenerationMatch: 1 }))), {
      code: 'TaskGenerationMismatch',
      metadata: { taskId, expectedGeneration: '1', currentGeneration: '4' }
    })
    t.match(await refusal(runtime.cancelTask({ id: taskId }, given({ ifGenerationMatch: 1 }))), {
      code: 'TaskGenerationMismatch',
      metadata: { taskId, expectedGeneration: '1', currentGeneration: '4' }
    })
    t.same(await runtime.getTask({ id: taskId }, withGenerations), before)
    taskIn(await runtime.sendMessage(say('one', { taskId }), given({ ifGenerationMatch: 4 })))
    const { metadata } = await runtime.getTask({ id: taskId }, withGenerations)
    t.match(metadata, { [RELIABILITY_EXTENSION]: { generation: 8 } })
    t.match(await runtime.cancelTask({ id: taskId }, given({ ifGenerationMatch: 8 })), {
      status: { state: 'TASK_STATE_CANCELED' }
    })
    const ended = { taskId, expectedGeneration: '8', currentGeneration: '9' }
    t.match(await refusal(runtime.cancelTask({ id: taskId }, given({ ifGenerationMatch: 8 }))), {
      code: 'TaskGenerationMismatch',
      metadata: ended
    })
    t.match(await refusal(runtime.sendMessage(say('x', { taskId }), given({ ifGenerationMatch: 8 }))), {
      code: 'TaskGenerationMismatch',
      metadata: ended
    })
    t.match(await refusal(runtime.sendMessage(say('y', { taskId }), given({ ifGenerationMatch: 9 }))), {
      code: 'UnsupportedOperation'
    })
  })

  await t.test('is exclusive also while the task works: of two with one condition the second is refused', async t => {
    const goOn = deferred()
    const { runtime, store } = start(t, { work: () => goOn.promise, messages: 'queue' })
    const { id: taskId } = await open(runtime)
    await reaches(runtime, taskId, 'working')
    const sent = (words: string, ifGenerationMatch: number) =>
      runtime.sendMessage(say(words, { taskId }, { returnImmediately: true }), given({ ifGenerationMatch }))
    const [first, second] = await Promise.allSettled([sent('one', 3), sent('two', 3)])
    t.equal(first?.status, 'fulfilled')
    t.match(second, {
      reason: {
        code: 'TaskGenerationMismatch',
        metadata: { taskId, expectedGeneration: '3', currentGeneration: '4' }
      }
    })
    taskIn(await sent('three', 4))
    t.match(await refusal(runtime.cancelTask({ id: taskId }, given({ ifGenerationMatch: 4 }))), {
      metadata: { expectedGeneration: '4', currentGeneration: '5' }
    })
    t.strictSame(await generationsIn(store, anyone, taskId), [1, 2, 3, 4, 5])
    goOn.resolve()
  })
})

await t.test('a long poll', async t => {
  await t.test('is answered at once if the task has passed the generation, or has ended', async t => {
    const { runtime, clock } = start(t, { work: () => ({}) })
    const { id } = taskIn(await runtime.sendMessage(say('go')))
    t.equal((await runtime.getTask({ id }, given({ currentGeneration: 1 }))).status.state, 'TASK_STATE_COMPLETED')
    t.equal((await runtime.getTask({ id }, given({ currentGeneration: 3 }))).status.state, 'TASK_STATE_COMPLETED')
    t.equal(clock.pending, 0)
  })

  await t.test('waits for the next message, too', async t => {
    const goOn = deferred()
    const { runtime, clock } = start(t, { work: () => goOn.promise, messages: 'queue' })
    const { id: taskId } = await open(runtime)
    await reaches(runtime, taskId, 'working')
    const poll = runtime.getTask({ id: taskId }, given({ currentGeneration: 3 }))
    await rest()
    await runtime.sendMessage(say('one', { taskId }, { returnImmediately: true }))
    const { metadata, history } = await poll
    t.match([metadata, history?.length], [{ [RELIABILITY_EXTENSION]: { generation: 4 } }, 2])
    t.equal(clock.pending, 0)
    goOn.resolve()
  })

  await t.test('waits for the next event', async t => {
    const { runtime, clock } = start(t, { work: asksTwice })
    const { id: taskId } = await open(runtime)
    await reaches(runtime, taskId, 'input-required')
    const poll = runtime.getTask({ id: taskId }, given({ currentGeneration: 4 }))
    await rest()
    await runtime.sendMessage(say('one', { taskId }))
    t.match((await poll).metadata, { [RELIABILITY_EXTENSION]: { generation: 8 } })
    t.equal(clock.pending, 0)
  })

  await t.test('returns the current task after a timeout, and stops at its signal', async t => {
    const { runtime, clock } = start(t, { work: asksTwice })
    const { id } = await open(runtime)
    await reaches(runtime, id, 'input-required')
    const poll = runtime.getTask({ id }, given({ currentGeneration: 4 }))
    await rest()
    clock.increment(30_000)
    t.match((await poll).metadata, { [RELIABILITY_EXTENSION]: { generation: 4 } })
    const stop = new AbortController()
    const stopped = runtime.getTask({ id }, { ...given({ currentGeneration: 4 }), signal: stop.signal })
    await rest()
    stop.abort(new TypeError('enough'))
    await t.rejects(stopped, { message: 'enough' })
    t.equal(clock.pending, 0)
  })

  await t.test('of a missing task is refused', async t => {
    const { runtime } = start(t, { work: () => ({}) })
    t.match(await refusal(runtime.getTask({ id: 'nobody' }, given({ currentGeneration: 3 }))), { code: 'TaskNotFound' })
  })
})

await t.test('a resent message', async t => {
  await t.test('opens one task, also while the first is pending, and each caller waits', async t => {
    const gate = deferred()
    let runs = 0
    const { runtime } = start(t, {
      work: async () => {
        runs += 1
        await gate.promise
      }
    })
    const request = say('go')
    const first = runtime.sendMessage(request, withGenerations)
    const second = runtime.sendMessage(structuredClone(request), withGenerations)
    await rest()
    const third = runtime.sendMessage(request, withGenerations)
    const streamed = runtime.sendStreamingMessage(request, withGenerations)[Symbol.asyncIterator]()
    await next(streamed)
    gate.resolve()
    const tasks = (await Promise.all([first, second, third])).map(taskIn)
    t.same(new Set(tasks.map(({ id }) => id)).size, 1)
    t.same(
      tasks.map(({ status }) => status.state),
      Array(3).fill('TASK_STATE_COMPLETED')
    )
    t.equal((await streamed.next()).done, false)
    await streamed.return?.()
    t.equal(runs, 1)
    t.equal(taskIn(await runtime.sendMessage(request, withGenerations)).id, tasks[0]?.id, 'and also after its end')
  })

  await t.test('answers a question once', async t => {
    const { runtime } = start(t, { work: asksTwice })
    const { id: taskId } = await open(runtime)
    await reaches(runtime, taskId, 'input-required')
    const answer = say('one', { taskId })
    const [first, second] = await Promise.all([
      runtime.sendMessage(answer, withGenerations),
      runtime.sendMessage(answer, withGenerations)
    ])
    t.same(taskIn(second), taskIn(first))
    t.match(taskIn(second).status.message?.parts, [{ text: 'Second?' }])
  })

  await t.test('receives the same reply', async t => {
    let calls = 0
    const { runtime } = start(t, { negotiate: () => ({ type: 'reply', message: `call ${(calls += 1)}` }) })
    const request = say('hello')
    const first = messageIn(await runtime.sendMessage(request, withGenerations))
    t.same(messageIn(await runtime.sendMessage(request, withGenerations)), first)
    t.same(await collect(runtime.sendStreamingMessage(request, withGenerations)), [{ message: first }])
    t.equal(calls, 1)
  })

  await t.test('with another address is a new one, and with another text is refused', async t => {
    const { runtime } = start(t, { work: () => ({}) })
    const message = userMessage('go')
    const first = taskIn(await runtime.sendMessage({ message }, withGenerations))
    const elsewhere = taskIn(await runtime.sendMessage({ message: { ...message, contextId: 'c2' } }, withGenerations))
    t.not(elsewhere.id, first.id)
    const other = { message: { ...message, parts: [{ text: 'stop' }] } }
    t.match(await refusal(runtime.sendMessage(other, withGenerations)), { code: 'IdempotencyConflict' })
    const [, conflict] = await Promise.allSettled([
      runtime.sendMessage({ message: { ...message, messageId: 'fresh' } }, withGenerations),
      runtime.sendMessage({ message: { ...other.message, messageId: 'fresh' } }, withGenerations)
    ])
    t.match(conflict, { status: 'rejected', reason: { code: 'IdempotencyConflict' } })
  })

  await t.test('counts as new for another caller, and after its record has expired', async t => {
    const { runtime, clock } = start(t, { work: () => ({}) })
    const request = say('go')
    const send = async (principal: string) =>
      taskIn(await runtime.sendMessage(request, { ...withGenerations, principal })).id
    const first = await send('ann')
    t.equal(await send('ann'), first)
    t.not(await send('bob'), first)
    clock.increment(60 * 60 * 1000)
    t.not(await send('ann'), first)
  })

  await t.test('is processed if the first was refused', async t => {
    const store = memoryStore()
    let broken = true
    const commit: typeof store.commit = given => (broken ? Promise.reject(new TypeError('disk')) : store.commit(given))
    const { runtime } = start(t, { work: () => ({}) }, { store: { ...store, commit } })
    const request = say('go')
    const [first, second] = await Promise.allSettled([
      runtime.sendMessage(request, withGenerations),
      runtime.sendMessage(request, withGenerations)
    ])
    t.same([first.status, second.status], ['rejected', 'rejected'])
    broken = false
    t.equal(taskIn(await runtime.sendMessage(request, withGenerations)).status.state, 'TASK_STATE_COMPLETED')
  })

  await t.test('opens two tasks without the extension, unless the runtime deduplicates all', async t => {
    const request = say('go')
    const plain = start(t, { work: () => ({}) }).runtime
    t.not(taskIn(await plain.sendMessage(request)).id, taskIn(await plain.sendMessage(request)).id)
    const strict = start(t, { work: () => ({}) }, { deduplicate: true }).runtime
    t.equal(taskIn(await strict.sendMessage(request)).id, taskIn(await strict.sendMessage(request)).id)
  })
})
