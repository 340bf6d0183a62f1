import t from 'tap'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { compress, decompress } from '../../../runtime/store/memory/context.ts'
import type { Commit, MessageRow, Store, TaskEvent } from '../../../runtime/store/store.ts'
import { painter } from '../../fixtures/runtime/agents.ts'
import { reaches, say, start, taskIn, tasksIn, textOf } from '../../fixtures/runtime/runtime-helpers.ts'

const ids: [string, string] = ['Z5t9HFbkkP75JEwJwx7tL', '714Zijon7FsnkwBkHq5zn']
const scope = { tenant: '', principal: 'anonymous' }

await t.test('a folded value is restored unchanged, whatever it contains', t => {
  const values = [
    {},
    [],
    '',
    null,
    'ä'.repeat(1000),
    { text: '\u0000\u001f\n é 😀 \ud83d $& \\ "' },
    Array.from({ length: 5000 }, (_, i) => `${i}`)
  ]
  for (const value of values) t.strictSame(decompress(compress(value)), value)
  t.end()
})

await t.test('a folded value is short, ids included', t => {
  const events = [1, 2, 3].map(generation => ({
    taskId: ids[1],
    generation,
    update: {
      statusUpdate: {
        taskId: ids[1],
        contextId: ids[0],
        status: { state: 'TASK_STATE_WORKING', timestamp: '2026-01-02T03:04:05.006Z' }
      }
    }
  }))
  t.ok(compress(events).length < JSON.stringify(events).length / 4)
  t.end()
})

let crowds = 0

/** Opens contexts until those before them are folded. */
async function crowd(store: Store): Promise<void> {
  crowds += 1
  for (let i = 0; i < 300; i += 1) {
    const key = { ...scope, contextId: `crowd ${crowds} ${i}` }
    await store.commit({
      key,
      expected: 0,
      atMs: 0,
      snapshot: '{}',
      tasks: [{ taskId: `crowd ${crowds} ${i}`, generation: 0, state: 'TASK_STATE_INPUT_REQUIRED', snapshot: '{}' }],
      log: [],
      journal: [],
      sends: [],
      webhooks: []
    })
  }
}

await t.test('a context that waited long reads as before, and continues', async t => {
  const store = memoryStore()
  const { runtime } = start(t, { work: painter() }, { store, limits: { advanced: { idleContexts: 1 } } })
  const { id, contextId = '' } = taskIn(await runtime.sendMessage(say('a boat')))
  const { id: other } = taskIn(await runtime.sendMessage(say('a house', { contextId })))
  await runtime.cancelTask({ id: other })
  const key = { ...scope, contextId }
  const read = async () => [
    await store.readTask(scope, id),
    await store.readTask(scope, other),
    await store.readEvents(scope, id, 0, 10),
    await store.readMessages(key, 10),
    await tasksIn(store, key),
    await store.loadContext(key),
    await store.readWakes(10, { atMs: 0, taskId: '' })
  ]
  const before = await read()
  for (let i = 0; i < 2; i += 1) {
    await crowd(store)
    t.strictSame(await read(), before)
  }
  await crowd(store)
  const done = taskIn(await runtime.sendMessage(say('red', { taskId: id })))
  t.strictSame(done.artifacts?.map(textOf), ['a sketch', 'a red boat'])
  t.strictSame((await reaches(runtime, id, 'completed')).history?.map(textOf).slice(0, 1), ['a boat'])
})

await t.test(
  'messages keep their places among a task’s events, and artifacts, metadata and the journal are rebuilt',
  async t => {
    const store = memoryStore()
    const key = { ...scope, contextId: 'c' }
    const said = (text: string, generation?: number): MessageRow => ({
      message: { messageId: text, role: 'ROLE_USER', parts: [{ text }] },
      ...(generation !== undefined && { taskId: 't', generation })
    })
    const status = (
      generation: number,
      text: string,
      state: 'TASK_STATE_WORKING' | 'TASK_STATE_INPUT_REQUIRED' = 'TASK_STATE_WORKING'
    ): TaskEvent => ({
      taskId: 't',
      generation,
      update: {
        statusUpdate: {
          taskId: 't',
          contextId: 'c',
          metadata: { [text]: generation },
          status: { state, message: { messageId: text, role: 'ROLE_AGENT', parts: [{ text }] } }
        }
      }
    })
    const produced = (generation: number): TaskEvent => ({
      taskId: 't',
      generation,
      update: {
        artifactUpdate: {
          taskId: 't',
          contextId: 'c',
          append: true,
          artifact: { artifactId: 'a', parts: [{ text: `${generation}` }] }
        }
      }
    })
    const log: Commit['log'] = [
      said('loose'),
      { ...said('unplaced'), taskId: 't' },
      said('open', 0),
      status(1, 'one'),
      said('first', 1),
      said('second', 1),
      status(2, 'two'),
      produced(3),
      produced(4),
      status(5, 'asks', 'TASK_STATE_INPUT_REQUIRED'),
      said('last', 5)
    ]
    const row = {
      taskId: 't',
      generation: 5,
      state: 'TASK_STATE_INPUT_REQUIRED' as const,
      snapshot: '{"a":1}',
      wakeAtMs: 7
    }
    await store.commit({
      key,
      expected: 0,
      atMs: 0,
      snapshot: '{"b":2}',
      tasks: [row],
      log,
      journal: [{ taskId: 't', key: 'step', value: 1 }],
      sends: [],
      webhooks: []
    })
    const read = async () => [
      await store.readTask(scope, 't'),
      await store.readEvents(scope, 't', 0, 10),
      await store.readMessages(key, 10),
      await store.readJournal(key, 't'),
      await store.loadContext(key)
    ]
    const before = await read()
    await crowd(store)
    t.strictSame(await read(), before)
    await crowd(store)
    t.equal(
      await store.commit({
        key,
        expected: 1,
        atMs: 0,
        snapshot: '{}',
        tasks: [{ taskId: 't', generation: 6, state: 'TASK_STATE_CANCELED' }],
        log: [],
        journal: [],
        sends: [],
        webhooks: []
      }),
      true
    )
    t.strictSame(await store.readWakes(10, { atMs: 1, taskId: '' }), [])
  }
)

await t.test('a context that cannot be folded stays unchanged', async t => {
  const store = memoryStore()
  const key = { ...scope, contextId: 'c' }
  await store.commit({
    key,
    expected: 0,
    atMs: 0,
    snapshot: 'a\nb',
    tasks: [{ taskId: 't', generation: 0, state: 'TASK_STATE_INPUT_REQUIRED', snapshot: '' }],
    log: [],
    journal: [],
    sends: [],
    webhooks: []
  })
  await crowd(store)
  t.equal((await store.loadContext(key))?.snapshot, 'a\nb')
})

await t.test('folded contexts are swept and erased like others, and their remainder is unchanged', async t => {
  const store = memoryStore()
  const keyOf = (i: number) => ({ ...scope, contextId: `c${i}` })
  for (let i = 0; i < 600; i += 1) {
    const message: MessageRow = {
      message: { messageId: `m${i}`, role: 'ROLE_USER', parts: [{ text: `${i}` }] },
      taskId: `waits ${i}`,
      generation: 0
    }
    const tasks = [
      { taskId: `ended ${i}`, generation: 1, state: 'TASK_STATE_COMPLETED' as const },
      { taskId: `waits ${i}`, generation: 1, state: 'TASK_STATE_INPUT_REQUIRED' as const, snapshot: '{}', wakeAtMs: 5 }
    ]
    const log = [
      message,
      ...tasks.map(({ taskId, state }): TaskEvent => ({
        taskId,
        generation: 1,
        update: { statusUpdate: { taskId, contextId: `c${i}`, status: { state } } }
      }))
    ]
    await store.commit({
      key: keyOf(i),
      expected: 0,
      atMs: i,
      snapshot: '{}',
      tasks,
      log,
      journal: [],
      sends: [],
      webhooks: []
    })
  }
  t.equal(await store.sweep({ endedBeforeMs: 500, idleBeforeMs: 500, sendsBeforeMs: 0 }, 1000), 500)
  t.equal((await store.listTasks(scope, { limit: 1 })).total, 700)
  for (const i of [0, 499, 500]) {
    t.strictSame(
      (await tasksIn(store, keyOf(i))).map(({ task }) => task.id),
      i < 500 ? [`waits ${i}`] : [`waits ${i}`, `ended ${i}`]
    )
    t.equal((await store.readTask(scope, `waits ${i}`))?.task.history?.length, 1)
    t.equal((await store.readEvents(scope, `waits ${i}`, 0, 10)).length, 1)
  }
  t.equal(await store.erase(keyOf(1)), true)
  t.equal((await store.readWakes(1000, { atMs: 0, taskId: '' })).length, 599)
  t.equal(await store.erase(scope), true)
  t.strictSame(await store.readWakes(1000, { atMs: 0, taskId: '' }), [])
  t.equal((await store.listTasks(scope, { limit: 1 })).total, 0)
})
