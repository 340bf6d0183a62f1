import t from 'tap'
import { assign } from 'xstate'
import {
  failed,
  inputRequired,
  progress,
  rejected,
  setupWork,
  taskCompleted,
  textOf as wordsOf,
  type WorkFunction
} from '../../../runtime/index.ts'
import { isA2AError } from '../../../machines/protocol/errors.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { anyone, failOnLooseErrors, lives, type Lives } from '../../fixtures/runtime/lives.ts'
import { openRuntime } from '../../fixtures/runtime/open-runtime.ts'
import { open, reaches, rest, say, start, stateName, textOf, until } from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

const contextId = 'c'

/** Long enough for all that is to be recovered one after the other. */
const MINUTE = 60_000

/**
 * What its message says: `after`, with tasks that it refers to, or an end, perhaps once somebody has said something, or
 * after a while.
 */
const does: WorkFunction = async work => {
  const { message, ask, sleep, emit } = work
  const [what = '', words = ''] = wordsOf(message).split(': ')
  if (what === 'after') {
    const needed = await work.prerequisites()
    emit(progress(`after ${needed.map(task => (task.artifacts ?? []).map(wordsOf).join()).join(' and ')}`))
    await sleep(1000)
    return { artifact: words }
  }
  if (what === 'asks') return { artifact: wordsOf(await ask(inputRequired('What?'))) }
  if (what === 'sleeps') await sleep(1000)
  if (what === 'fails') return failed(words)
  if (what === 'rejects') return rejected(words)
  if (what === 'breaks') throw new Error('secret')
  return { artifact: words }
}

/** The same as a statechart, as far as it waits for one other, or asks. */
const chart = setupWork({
  types: { context: {} as { taskId: string; words: string } },
  actors: { taskCompleted },
  guards: { needsNone: ({ context }) => context.taskId === '' },
  delays: { second: 1000 }
}).createMachine({
  context: ({ input: { message } }) => ({ taskId: message.referenceTaskIds?.[0] ?? '', words: '' }),
  initial: 'reading',
  states: {
    reading: { always: [{ guard: 'needsNone', target: 'asking' }, { target: 'waiting' }] },
    asking: {
      tags: 'input-required',
      on: { 'message.received': { target: 'done', actions: assign({ words: ({ event }) => wordsOf(event.message) }) } }
    },
    waiting: {
      invoke: {
        src: 'taskCompleted',
        input: ({ context: { taskId } }) => ({ taskId }),
        onDone: {
          target: 'working',
          actions: assign({ words: ({ event: { output } }) => (output.artifacts ?? []).map(wordsOf).join() })
        }
      }
    },
    working: { after: { second: 'done' } },
    done: { type: 'final' }
  },
  output: ({ context: { words } }) => ({ artifact: words })
})

await t.test('work that needs other tasks', async t => {
  await t.test('continues when all of them have completed, with their final state', async t => {
    const { runtime, clock } = start(t, { work: does })
    const slow = await open(runtime, 'sleeps: a', { contextId })
    const asks = await open(runtime, 'asks', { contextId: 'other' })
    const done = await open(runtime, 'says: c')
    const { id } = await open(runtime, 'after: d', {
      contextId,
      referenceTaskIds: [slow.id, asks.id, done.id, 'unknown']
    })
    const spoken = async () => textOf((await runtime.getTask({ id })).status.message)
    await rest()
    t.equal(await spoken(), undefined)
    await runtime.sendMessage(say('b', { taskId: asks.id }))
    await rest()
    t.equal(await spoken(), undefined)
    clock.increment(1000)
    await rest()
    t.equal(await spoken(), 'after a and b and c')
    clock.increment(1000)
    t.match((await reaches(runtime, id, 'completed')).artifacts, [{ parts: [{ text: 'd' }] }])
  })

  await t.test('waits for none if its message refers to none', async t => {
    const { runtime } = start(t, { work: does })
    const { id } = await open(runtime, 'after: a')
    await until(async () => textOf((await runtime.getTask({ id })).status.message) === 'after ')
  })

  await t.test('fails with the reason, without a retry, when one of them ends without success', async t => {
    const { runtime, log } = start(t, { work: does, restart: { type: 'transient' } })
    const never = await open(runtime, 'asks')
    const after = async (needed: string) =>
      (await reaches(runtime, (await open(runtime, 'after: x', { referenceTaskIds: [never.id, needed] })).id, 'failed'))
        .status.message
    for (const [words, text] of [
      ['fails: No room.', 'has failed: No room.'],
      ['rejects: Not today.', 'has been rejected: Not today.']
    ] as const) {
      const { id } = await open(runtime, words)
      t.equal(textOf(await after(id)), `Task ${id}, which this one needs, ${text}`)
    }
    const { id } = await open(runtime, 'asks')
    const waiting = await open(runtime, 'after: x', { referenceTaskIds: [id] })
    await rest()
    await runtime.cancelTask({ id })
    t.equal(
      textOf((await reaches(runtime, waiting.id, 'failed')).status.message),
      `Task ${id}, which this one needs, has been canceled.`
    )
    t.strictSame(log, [], 'this is not logged')
    const broken = await open(runtime, 'breaks')
    t.match(textOf(await after(broken.id)), /has failed: The work ended with an error\.$/)
  })

  await t.test('fails when the task that it waits for is erased', async t => {
    const { runtime } = start(t, { work: does })
    const { id: needed } = await open(runtime, 'asks', { contextId: 'other' })
    const { id } = await open(runtime, 'after: x', { contextId, referenceTaskIds: [needed] })
    await rest()
    await runtime.erase({ principal: 'anonymous', contextId: 'other' })
    const { status } = await reaches(runtime, id, 'failed')
    t.equal(textOf(status.message), `Task ${needed}, which this one needs, was not found.`)
  })

  await t.test('may need any task of its caller by id, and catch its failure', async t => {
    const caught: unknown[] = []
    const { runtime } = start(t, {
      work: async work => {
        const [what, id = ''] = wordsOf(work.message).split(' ')
        if (what !== 'needs') return does(work)
        const needed = await work
          .completed(id === 'itself' ? work.taskId : id)
          .catch((error: unknown) => void caught.push(error))
        return { artifact: needed ? (needed.artifacts ?? []).map(wordsOf).join() : 'none' }
      }
    })
    const call = { principal: 'anna' }
    const needs = async (id: string) =>
      reaches(runtime, (await open(runtime, `needs ${id}`, {}, call)).id, 'completed', call)
    const [own, foreign, bad] = [
      await open(runtime, 'says: hello', {}, call),
      await open(runtime, 'says: secret', {}, { principal: 'bob' }),
      await open(runtime, 'fails: x', {}, call)
    ]
    t.match((await needs(own.id)).artifacts, [{ parts: [{ text: 'hello' }] }])
    for (const id of [foreign.id, 'unknown', bad.id, 'itself'])
      t.match((await needs(id)).artifacts, [{ parts: [{ text: 'none' }] }])
    t.match(
      caught.map(error =>
        isA2AError(error) ? [error.code, error.message.replace(/^Task \S+,/, 'Task …,'), error.metadata.state] : error
      ),
      [
        ['TaskNotFound', 'Task …, which this one needs, was not found.', undefined],
        ['TaskNotFound', 'Task …, which this one needs, was not found.', undefined],
        ['UnsupportedOperation', 'Task …, which this one needs, has failed: x', 'TASK_STATE_FAILED'],
        TypeError
      ]
    )
  })

  await t.test('waits at most until its deadline for a task that waits for its client', async t => {
    const { runtime, clock } = start(t, { work: does, deadlineMs: 5000 })
    const asks = await open(runtime, 'asks')
    clock.increment(1)
    const { id } = await open(runtime, 'after: x', { referenceTaskIds: [asks.id] })
    await rest()
    clock.increment(5000)
    t.match((await reaches(runtime, id, 'failed')).status.message?.parts, [
      { text: 'The task was not finished within 5 seconds.' }
    ])
  })

  await t.test('reads other tasks of its caller in their current state', async t => {
    const read: string[] = []
    const { runtime } = start(t, {
      work: async ({ message, ask, readTask }) => {
        const id = wordsOf(message)
        if (id === 'ask') await ask(inputRequired('?'))
        for (const taskId of [id, undefined]) read.push(stateName((await readTask(taskId)).status.state))
        await readTask('unknown').catch((error: Error) => read.push(error.message))
      }
    })
    const { id } = await open(runtime, 'ask')
    await open(runtime, id)
    await until(() => read.length === 3)
    t.strictSame(read, ['input-required', 'working', 'Task unknown was not found.'])
  })
})

await t.test('a task that waits for another counts as working, and leaves nothing behind', async t => {
  let neededId = ''
  const heard: string[] = []
  const { subscriptions, clock, loads, send } = openRuntime(
    t,
    {
      work: async ({ ask, completed, contextId: own }) => {
        const question = ask(inputRequired('?'))
        // A question beside it does not let the task leave memory.
        if (own === 'waits') await Promise.all([question, completed(neededId).then(({ id }) => heard.push(id))])
        else if (own === 'gives up') await Promise.race([question, completed(neededId)])
        else if (own === 'comes late')
          await Promise.all([question, completed(neededId), completed('unknown').catch(() => heard.push('none'))])
        else await question
      }
    },
    { idleContexts: 1 }
  )

  neededId = await send('needed')
  const timers = clock.size
  const [waiting, givingUp] = [await send('waits'), await send('gives up')]
  await until(() => subscriptions.tasksOf(anyone).length === 1)
  for (const other of ['a', 'b', 'c']) await send(other)
  t.equal(clock.size, timers, 'no timer')
  await send('gives up', givingUp)
  await send('needed', neededId)
  await until(() => heard.length > 0)
  t.strictSame(heard, [neededId])
  t.equal(subscriptions.size, 0, 'no listener')
  await send('comes late')
  await until(() => heard.length > 1)
  t.equal(subscriptions.size, 0, 'nor one for an ended or missing task')
  await send('waits', waiting)
  t.strictSame(
    loads.filter(id => id !== 'needed'),
    ['waits', 'gives up', 'a', 'b', 'c', 'comes late']
  )

  neededId = await send('needed')
  const last = await send('gives up')
  await until(() => subscriptions.size === 1)
  await send('gives up', last)
  t.equal(subscriptions.size, 0, 'nor one of work that ended before')
})

for (const [form, work] of [
  ['a function', does],
  ['a statechart', chart]
] as const) {
  await t.test(`${form} that waits for a task`, async t => {
    /** A task that asks, and one that waits for it. */
    const waiting = async (life: Lives) => {
      const needed = await open(life.runtime, 'asks', { contextId })
      await reaches(life.runtime, needed.id, 'input-required')
      const { id } = await open(life.runtime, 'after: x', { contextId: 'other', referenceTaskIds: [needed.id] })
      await rest()
      return { id, neededId: needed.id }
    }

    await t.test('continues to wait after any number of kills, and resumes when that completes', async t => {
      for (const kills of [0, 1, 2, 10]) {
        const life = lives(t, { work })
        const { id, neededId } = await waiting(life)
        for (let i = 0; i < kills; i += 1) {
          await life.kill()
          await life.pass(MINUTE)
        }
        t.equal(stateName((await life.runtime.getTask({ id })).status.state), 'working')
        await life.runtime.sendMessage(say('now', { taskId: neededId }))
        await rest()
        await life.kill()
        await life.pass(MINUTE)
        await reaches(life.runtime, id, 'completed')
        t.strictSame(life.log, [])
      }
    })

    await t.test('detects a task that completed while it was stopped', async t => {
      const inner = memoryStore()
      let isCut = false
      const commit: Store['commit'] = commit =>
        isCut && commit.key.contextId === 'other' ? new Promise(() => {}) : inner.commit(commit)
      const life = lives(t, { work }, { store: { ...inner, commit } })
      const { id, neededId } = await waiting(life)
      isCut = true
      await life.runtime.sendMessage(say('now', { taskId: neededId }))
      const killed = life.kill()
      isCut = false
      await killed
      await life.pass(1000)
      const { artifacts } = await reaches(life.runtime, id, 'completed')
      t.match(artifacts, [{ parts: [{ text: form === 'a function' ? 'x' : 'now' }] }])
    })

    await t.test('fails with a reason when that is canceled, also after a restart', async t => {
      const life = lives(t, { work })
      const { id, neededId } = await waiting(life)
      await life.restart()
      await life.runtime.cancelTask({ id: neededId })
      const { status } = await reaches(life.runtime, id, 'failed')
      t.equal(textOf(status.message), `Task ${neededId}, which this one needs, has been canceled.`)
    })

    await t.test('stops waiting when it is canceled itself', async t => {
      const life = lives(t, { work })
      const { id, neededId } = await waiting(life)
      await life.runtime.cancelTask({ id })
      await life.runtime.sendMessage(say('now', { taskId: neededId }))
      t.strictSame(await life.told(id), ['submitted', 'working', 'canceled'])
      t.strictSame(life.log, [])
    })
  })
}

await t.test('a statechart that would wait for itself fails', async t => {
  const { runtime } = start(t, {
    work: setupWork({ types: { context: {} as { taskId: string } }, actors: { taskCompleted } }).createMachine({
      context: ({ input: { taskId } }) => ({ taskId }),
      invoke: { src: 'taskCompleted', input: ({ context }) => context }
    })
  })
  await reaches(runtime, (await open(runtime)).id, 'failed')
})
