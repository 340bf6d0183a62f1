import t from 'tap'
import type { Message, Task } from '../../../machines/protocol/objects.ts'
import {
  A2AError,
  inputRequired,
  text,
  textOf as wordsOf,
  type WorkArguments,
  type WorkFunction
} from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { findArtifactToRefine } from '../../../runtime/work/refining.ts'
import { failOnLooseErrors, isReadByWork, lastingStore, lives } from '../../fixtures/runtime/lives.ts'
import { open, reaches, rest, say, start, taskIn, textOf, until } from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

const KILOBYTE = 1024

/** What a work was given of other tasks, by the order of their ids. */
const given = ({ referenceTasks, unloadedTasks }: WorkArguments) => ({
  loaded: referenceTasks.map(({ id }) => id),
  unloaded: [...unloadedTasks]
})

/** Says its message's text as an artifact; a text `KILOBYTES k` becomes so many kilobytes. */
const speaks: WorkFunction = async ({ message }) => {
  const kilobytes = Number(/^(\d+)k$/.exec(wordsOf(message))?.[1] ?? 0)
  return {
    artifact: {
      name: wordsOf(message),
      parts: [text(kilobytes > 0 ? 'x'.repeat(kilobytes * KILOBYTE) : wordsOf(message))]
    }
  }
}

const ends = async (
  runtime: Parameters<typeof reaches>[0],
  words: string,
  more: Partial<Message> = {},
  call = {}
): Promise<Task> => taskIn(await runtime.sendMessage(say(words, more), call))

await t.test('a message refers to each task once, and to at most 32 different tasks', async t => {
  const seen: unknown[] = []
  const { runtime } = start(t, {
    work: async work => (seen.push(work.message.referenceTaskIds, given(work)), speaks(work))
  })
  const { id } = await ends(runtime, 'first')
  await ends(runtime, 'second', { referenceTaskIds: Array.from({ length: 2000 }, () => id) })
  t.strictSame(seen.slice(2), [[id], { loaded: [id], unloaded: [] }])
  const ids = Array.from({ length: 33 }, (_, i) => `t${i}`)
  await ends(runtime, 'third', { referenceTaskIds: ids.slice(1) })
  const before = await runtime.listTasks({})
  await t.rejects(ends(runtime, 'fourth', { referenceTaskIds: ids }), {
    code: 'InvalidParams',
    violations: [{ field: 'message.referenceTaskIds', description: 'must name at most 32 different tasks, not 33' }]
  })
  await t.rejects(ends(runtime, 'to a task', { taskId: id, referenceTaskIds: ids }), { code: 'InvalidParams' })
  t.strictSame(await runtime.listTasks({}), before)
})

await t.test('the tasks with the latest status are loaded up to the limit, others on demand', async t => {
  let seen: unknown
  const { runtime, clock } = start(
    t,
    {
      work: async work => {
        if (!work.message.referenceTaskIds) return speaks(work)
        const read = []
        for (const id of work.unloadedTasks) read.push((await work.readTask(id)).artifacts?.length)
        seen = { ...given(work), earlier: work.earlierArtifacts.map(({ taskId }) => taskId), read }
        return {}
      }
    },
    { limits: { referencedBytes: 16 * KILOBYTE } }
  )
  const ids: string[] = []
  for (const words of ['4k', '20k', '4k', '4k', '1k']) {
    clock.increment(1000)
    ids.push((await ends(runtime, words)).id)
  }
  const [oldest, large, third, fourth, newest] = ids as [string, string, string, string, string]
  await ends(runtime, 'refers', { referenceTaskIds: [...ids, 'unknown', 'unknown'] })
  t.strictSame(
    seen,
    { loaded: [third, fourth, newest], unloaded: [large, oldest], earlier: [newest, fourth, third], read: [1, 1] },
    "in the message's order"
  )
})

await t.test('the artifacts of a context are loaded up to the same limit', async t => {
  let seen: unknown
  const { runtime, clock } = start(
    t,
    {
      work: async work => {
        if (wordsOf(work.message) !== 'look') return speaks(work)
        seen = { earlier: work.earlierArtifacts.map(({ taskId }) => taskId), unloaded: [...work.unloadedTasks] }
        return {}
      }
    },
    { limits: { referencedBytes: 7 * KILOBYTE } }
  )
  const ids: string[] = []
  for (const words of ['4k', '4k']) {
    clock.increment(1000)
    ids.push((await ends(runtime, words, { contextId: 'c' })).id)
  }
  await ends(runtime, 'look', { contextId: 'c' })
  t.strictSame(seen, { earlier: [ids[1]], unloaded: [ids[0]] })
})

await t.test('an artifact is refined even if its task is too large to be loaded', async t => {
  const { runtime } = start(
    t,
    {
      work: async work =>
        wordsOf(work.message) === 'refine'
          ? { artifact: `refined ${(await work.artifactToRefine()).artifact.name}` }
          : speaks(work)
    },
    { limits: { referencedBytes: KILOBYTE, advanced: { restoredBytes: 6 * KILOBYTE } } }
  )
  const { id } = await ends(runtime, '4k', { contextId: 'c' })
  const { id: unreadable } = await ends(runtime, '9k', { contextId: 'c' })
  const refined = async (more: Partial<Message>) =>
    textOf((await ends(runtime, 'refine', { contextId: 'c', ...more })).artifacts?.[0])
  t.equal(await refined({ referenceTaskIds: [id, unreadable] }), 'refined 4k')
  const { artifacts = [] } = await runtime.getTask({ id })
  const parts = [{ text: 'refine', metadata: { taskId: id, artifactId: String(artifacts[0]?.artifactId) } }]
  t.equal(await refined({ parts }), 'refined 4k')
  const { status } = await ends(runtime, 'refine', { contextId: 'd', referenceTaskIds: ['unknown'] })
  t.equal(status.state, 'TASK_STATE_INPUT_REQUIRED')
})

await t.test("a principal's works hold a quarter of the loaded bytes until they end or passivate", async t => {
  const seen: string[] = []
  const { runtime, clock } = start(
    t,
    {
      work: async work => {
        if (!work.message.referenceTaskIds) return speaks(work)
        seen.push(`${wordsOf(work.message)} ${work.referenceTasks.length}`)
        await work.ask(inputRequired('Go on?'))
      }
    },
    { limits: { referencedBytes: 12 * KILOBYTE, advanced: { idleContexts: 100 } } }
  )
  const of = async (principal: string) => (await ends(runtime, '9k', {}, { principal })).id
  const [annas, bobs] = [await of('anna'), await of('bob')]
  const refer = async (principal: string, words: string, id: string) =>
    (await ends(runtime, words, { referenceTaskIds: [id] }, { principal })).id
  const first = await refer('anna', 'a1', annas)
  for (const words of ['a2', 'a3', 'a4', 'a5']) await refer('anna', words, annas)
  await refer('bob', 'b1', bobs)
  t.strictSame(seen, ['a1 1', 'a2 1', 'a3 1', 'a4 1', 'a5 0', 'b1 1'])
  await runtime.cancelTask({ id: first }, { principal: 'anna' })
  await refer('anna', 'a6', annas)
  await refer('anna', 'a7', annas)
  t.strictSame(seen.slice(6), ['a6 1', 'a7 0'])
  clock.increment(0)
})

await t.test('a referenced task with damaged data is not loaded, and this is logged', async t => {
  let damaged = ''
  let error: unknown = new A2AError('InternalError', 'Damaged.')
  const inner = memoryStore()
  const store: Store = {
    ...inner,
    readTask: (scope, taskId, options) =>
      taskId === damaged && isReadByWork(options) ? Promise.reject(error) : inner.readTask(scope, taskId, options)
  }
  let seen: unknown
  const { runtime, log } = start(
    t,
    {
      work: async work => (
        (seen = given(work)),
        wordsOf(work.message) === 'needs' ? void (await work.completed(damaged)) : speaks(work)
      )
    },
    { store }
  )
  damaged = (await ends(runtime, 'first')).id
  const whole = (await ends(runtime, 'second')).id
  await ends(runtime, 'refers', { referenceTaskIds: [damaged, whole] })
  t.strictSame(seen, { loaded: [whole], unloaded: [damaged] })
  t.match(log, [
    { level: 'warn', message: 'a task was not loaded for the work of another task', details: { taskId: damaged } }
  ])
  error = new Error('no disk')
  t.equal(textOf((await ends(runtime, 'needs')).status.message), 'The work ended with an error.')
  t.equal((await ends(runtime, 'refers', { referenceTaskIds: [damaged, whole] })).status.state, 'TASK_STATE_FAILED')
})

await t.test('a task that was removed after it was found is not loaded', async t => {
  let removed = ''
  const inner = memoryStore()
  const store: Store = {
    ...inner,
    readTask: async (scope, taskId, options) =>
      taskId === removed && isReadByWork(options) ? undefined : inner.readTask(scope, taskId, options)
  }
  let seen: unknown
  const { runtime } = start(
    t,
    {
      work: async work => (
        (seen = given(work)),
        work.message.referenceTaskIds && wordsOf(work.message) === 'needs'
          ? void (await work.prerequisites())
          : speaks(work)
      )
    },
    { store }
  )
  removed = (await ends(runtime, 'first')).id
  await ends(runtime, 'refers', { referenceTaskIds: [removed] })
  t.strictSame(seen, { loaded: [], unloaded: [removed] })
  t.equal(
    textOf((await ends(runtime, 'needs', { referenceTaskIds: [removed] })).status.message),
    `Task ${removed}, which this one needs, was not found.`
  )
})

await t.test('prerequisites also wait for unloaded tasks, and fail the task if they do not fit', async t => {
  const { runtime } = start(
    t,
    {
      work: async work => {
        if (!work.message.referenceTaskIds) return speaks(work)
        const needed = await work.prerequisites()
        // A task that is loaded twice counts once.
        for (const { id } of needed) await work.completed(id)
        return { artifact: needed.map(({ artifacts = [] }) => artifacts.map(({ name }) => name).join()).join(' ') }
      }
    },
    { limits: { referencedBytes: 13 * KILOBYTE } }
  )
  const ids: string[] = []
  for (const words of ['6k', '3k', '6k', '2000k']) ids.push((await ends(runtime, words)).id)
  const after = (referenceTaskIds: string[]) => ends(runtime, 'after', { referenceTaskIds })
  t.equal(textOf((await after(ids.slice(0, 2))).artifacts?.[0]), '6k 3k')
  const { status } = await after(ids.slice(0, 3))
  t.equal(status.state, 'TASK_STATE_FAILED')
  t.match(textOf(status.message), /^Task \S+, which this one needs, has completed, but there is no room to load it/)
  t.match(textOf((await after(ids.slice(3))).status.message), /no room to load it/)
})

await t.test('tasks of more than 1 MiB together are loaded one by one, each in pieces', async t => {
  const inner = memoryStore()
  const ids: string[] = []
  let [current, pieces] = ['', 0]
  const store: Store = {
    ...inner,
    readTask: async (scope, taskId, options) => {
      if (ids.includes(taskId) && isReadByWork(options)) current = taskId
      return inner.readTask(scope, taskId, options)
    },
    readEvents: async (scope, taskId, ...range) => {
      if (ids.includes(taskId)) t.equal(taskId, current)
      pieces += 1
      return inner.readEvents(scope, taskId, ...range)
    }
  }
  let loaded = 0
  const { runtime } = start(
    t,
    {
      work: async work => {
        if (!work.message.referenceTaskIds) return speaks(work)
        loaded = work.referenceTasks.length + (await work.prerequisites()).length
        return {}
      }
    },
    { store }
  )
  for (let i = 0; i < 3; i += 1) ids.push((await ends(runtime, '1100k')).id)
  await Promise.all([ends(runtime, 'a', { referenceTaskIds: ids }), ends(runtime, 'b', { referenceTaskIds: ids })])
  t.equal(loaded, 6)
  t.ok(pieces >= 30, `${pieces}`)
})

await t.test('after a restart', async t => {
  await t.test('a stored message with too many references loads as many as a work may have', async t => {
    const seen: { loaded: string[]; unloaded: string[] }[] = []
    const work: WorkFunction = async work => (
      seen.push(given(work)),
      work.message.referenceTaskIds ? new Promise(() => {}) : speaks(work)
    )
    const store = lastingStore()
    const before = lives(t, { work }, { store, limits: { advanced: { referencedTasks: 2000 } } })
    const ids: string[] = []
    for (let i = 0; i < 10; i += 1) ids.push((await ends(before.runtime, `t${i}`)).id)
    await open(before.runtime, 'refers', {
      referenceTaskIds: [...ids, ...Array.from({ length: 1000 }, (_, i) => `unknown ${i}`)]
    })
    await until(() => seen.length === 11)
    before.die()
    lives(t, { work }, { store, limits: { advanced: { referencedTasks: 3 } } })
    await until(() => seen.length === 12)
    t.strictSame(seen.map(({ loaded, unloaded }) => [loaded.length, unloaded.length]).slice(10), [
      [10, 0],
      [3, 7]
    ])
  })

  await t.test('a task that is too large to be read fails alone, and others continue', async t => {
    const limits = { advanced: { restoredBytes: 10 * KILOBYTE } }
    const life = lives(
      t,
      { work: async ({ message, sleep }) => (await sleep(1000), { artifact: wordsOf(message) }) },
      { limits }
    )
    const large = await open(life.runtime, 'x'.repeat(20 * KILOBYTE))
    const small = await open(life.runtime, 'small')
    await rest()
    await life.kill()
    const { status } = await reaches(life.runtime, large.id, 'failed')
    t.equal(
      textOf(status.message),
      `Task ${large.id} is too large to be read: it has more than ${10 * KILOBYTE} stored bytes.`
    )
    await life.pass(1000)
    await reaches(life.runtime, small.id, 'completed')
  })

  await t.test('a task whose journal is too large fails alone', async t => {
    const life = lives(
      t,
      {
        work: async ({ message, step, sleep }) => {
          await step('large', () => 'x'.repeat(wordsOf(message) === 'large' ? 20 * KILOBYTE : 1))
          await sleep(1000)
          return { artifact: 'done' }
        }
      },
      { limits: { advanced: { restoredBytes: 10 * KILOBYTE } } }
    )
    const [large, small] = [await open(life.runtime, 'large'), await open(life.runtime, 'small')]
    await rest()
    await life.kill()
    await reaches(life.runtime, large.id, 'failed')
    await life.pass(1000)
    await reaches(life.runtime, small.id, 'completed')
  })
})

await t.test('another task that is too large is not read', async t => {
  const errors: unknown[] = []
  const { runtime } = start(
    t,
    {
      work: async work => {
        const words = wordsOf(work.message)
        if (!words.startsWith('x')) await work.readTask(words).catch((error: unknown) => errors.push(error))
      }
    },
    { limits: { advanced: { restoredBytes: KILOBYTE } } }
  )
  const { id } = await ends(runtime, 'x'.repeat(2 * KILOBYTE))
  await ends(runtime, id)
  t.match(errors, [{ code: 'RateLimited', metadata: { taskId: id } }])
})

await t.test('unloaded tasks are read to find refinable artifacts, and missing ones are skipped', async t => {
  const choosing = (read: (taskId: string) => Promise<unknown>) =>
    findArtifactToRefine({
      message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'make it red' }] },
      earlierArtifacts: [],
      unloadedTasks: ['none', 'gone', 'good'],
      step: (_: string, find: () => unknown) => find(),
      readTask: read
    } as unknown as WorkArguments)
  const artifact = { artifactId: 'a', name: 'boat', parts: [{ text: 'x' }] }
  const tasks: Record<string, unknown> = { none: {}, good: { artifacts: [artifact] } }
  const chosen = await choosing(async taskId => tasks[taskId] ?? Promise.reject(new A2AError('TaskNotFound')))
  t.equal(chosen?.artifact.name, 'boat')
  await t.rejects(
    choosing(() => Promise.reject(new A2AError('InternalError', 'The store is broken.'))),
    { message: 'The store is broken.' }
  )
  await t.rejects(
    choosing(() => Promise.reject(new TypeError('wrong'))),
    { message: 'wrong' }
  )
})
