import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { brief, deferred, rest, say, textOf } from '../../fixtures/runtime/runtime-helpers.ts'
import { read, type Client } from '../client.ts'
import type { Site, Test } from '../column.ts'
import { row, type Row } from '../row.ts'

/** §10.3: SendStreamingMessage and SubscribeToTask. */
export const streaming: readonly Row[] = [
  row(
    49,
    'M',
    '3.3.4',
    'Streaming is declared and both operations are there; turned off, neither is: UnsupportedOperation',
    async (t, { client, runtime, serve }) => {
      t.equal(runtime.agentCard([]).capabilities.streaming, true)
      t.ok(await client.stream('x').next())
      const { id } = await client.task('ask')
      t.ok(await client.subscribe(id).next())
      await client.cancel(id)
      const without = await serve(t, {}, { capabilities: { streaming: false } })
      t.equal(without.runtime.agentCard([]).capabilities.streaming, false)
      const other = await without.open()
      const task = await other.task('ask')
      const refused = [
        ['SendStreamingMessage', say('x')],
        ['SubscribeToTask', { id: task.id }]
      ] as const
      for (const [method, params] of refused)
        t.match(await other.refusal(method, params), { reason: 'UNSUPPORTED_OPERATION', message: /stream/ }, method)
      await other.cancel(task.id)
      t.equal(
        (await other.refusal('SubscribeToTask', { id: task.id })).reason,
        'UNSUPPORTED_OPERATION',
        'also of an ended task'
      )
    }
  ),
  row(50, 'M', '3.1.2', 'A reply without a task is one message, then the stream closes', async (t, { client }) => {
    t.match(await read(client.stream('hello')), [
      { message: { role: 'ROLE_AGENT', parts: [{ text: 'Hello to you.' }] } }
    ])
  }),
  row(
    51,
    'M',
    '3.1.2',
    "A task's stream is first the task, then updates alone, and closes at its end",
    async (t, { client }) => {
      const events = await read(client.stream('count 2'))
      t.same(kinds(events).slice(0, 1), ['task'])
      t.same(new Set(kinds(events).slice(1)), new Set(['statusUpdate', 'artifactUpdate']))
      t.match(events.at(-1), { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } })
    }
  ),
  row(52, 'M', '3.1.2', 'What is refused without a stream is refused with one', async (t, { client }) => {
    const { id } = await client.task('x')
    const refused = async (more: object) => (await client.refusal('SendStreamingMessage', say('x', more))).reason
    t.equal(await refused({ taskId: id }), 'UNSUPPORTED_OPERATION')
    t.equal(await refused({ taskId: 'made-up' }), 'TASK_NOT_FOUND')
    t.equal(await refused({ parts: [{ raw: 'AAAA', mediaType: 'video/mp4' }] }), 'CONTENT_TYPE_NOT_SUPPORTED')
  }),
  row(53, 'M', '3.1.2', 'Progress comes while the task works, not at its end', async (t, { client, release }) => {
    const stream = client.stream('hold')
    const begun = await read(stream, event => 'artifactUpdate' in event)
    t.same(begun.map(brief), ['task:submitted', 'working', 'working: begun', 'artifact: begun'])
    release()
    t.same((await read(stream)).map(brief), ['artifact: released', 'completed'])
  }),
  row(54, 'M', '3.5.2', 'Events come in the order in which they happened', async (t, { client }) => {
    const events = await read(client.stream('count 30'))
    const expected = Array.from({ length: 30 }, (_, i) => [`working: at ${i + 1}`, `artifact: ${i + 1}`]).flat()
    t.same(events.map(brief), ['task:submitted', 'working', ...expected, 'completed'])
  }),
  row(55, 'M', '3.5.2', 'All streams of a task get all events, in one order', async (t, { client, open, release }) => {
    const { id } = await client.opened('hold', 'working')
    const streams = [client.subscribe(id), client.subscribe(id), (await open()).subscribe(id)]
    await Promise.all(streams.map(stream => stream.next()))
    release()
    const heard = await Promise.all(streams.map(async stream => (await read(stream)).map(brief)))
    for (const events of heard) t.same(events, ['artifact: released', 'completed'])
  }),
  row(
    56,
    'M',
    '3.5.2',
    'A stream that closes leaves the others, and the task, alone',
    async (t, { client, release }) => {
      const { id } = await client.opened('hold', 'working')
      const [leaving, staying] = [client.subscribe(id), client.subscribe(id)]
      await Promise.all([leaving.next(), staying.next()])
      leaving.leave()
      t.equal((await client.get(id)).status.state, 'TASK_STATE_WORKING')
      release()
      t.same((await read(staying)).map(brief), ['artifact: released', 'completed'])
    }
  ),
  row(57, 'M', '3.1.6', 'A subscription begins with the task as it is', async (t, { client }) => {
    const asked = await client.task('ask')
    t.same(await client.subscribe(asked.id).next(), { task: asked })
    await client.cancel(asked.id)
  }),
  row(58, 'M', '3.1.6', 'A subscription closes when the task ends, which is its last event', async (t, { client }) => {
    const { id } = await client.task('ask')
    const stream = client.subscribe(id)
    await stream.next()
    await client.task('blue', { taskId: id })
    t.equal((await read(stream)).map(brief).at(-1), 'completed')
  }),
  row(
    59,
    'M',
    '3.1.6',
    'A task that has ended takes no subscription: UnsupportedOperation',
    async (t, { client, binding }) => {
      const { id } = await client.task('x')
      if (binding.version === '1.0')
        t.equal((await client.refusal('SubscribeToTask', { id })).reason, 'UNSUPPORTED_OPERATION')
      else
        t.match(
          await read(client.subscribe(id)),
          [{ task: { id, status: { state: 'TASK_STATE_COMPLETED' } } }],
          '0.3 answers with the task'
        )
    }
  ),
  row(60, 'M', '3.1.6', 'An unknown task takes no subscription: TaskNotFound', async (t, { client }) => {
    t.equal((await client.refusal('SubscribeToTask', { id: 'made-up' })).reason, 'TASK_NOT_FOUND')
  }),
  row(61, 'S', '7.6.1', 'While an authorization is awaited streams stay open', async (t, { client, runtime }) => {
    const stream = client.stream('authorize')
    const asked = await read(stream, event => brief(event).startsWith('auth-required'))
    await runtime.authorized(taskIdIn(asked), { key: 1 })
    t.same((await read(stream)).map(brief), ['working', 'artifact: got {"key":1}', 'completed'])
  }),
  row(
    62,
    'D',
    '3.1.6',
    'A task and its events have no gap and no repeat, whenever one subscribes',
    async (t, { client, serve, binding }) => {
      const stream = client.stream('count 100')
      const whole = [...(await read(stream, event => 'artifactUpdate' in event))]
      const subscriptions: Promise<string>[] = []
      for (let times = 0; times < 8; times += 1) {
        subscriptions.push(counted(client, taskIdIn(whole)))
        whole.push(...(await read(stream, event => 'artifactUpdate' in event)))
      }
      whole.push(...(await read(stream)))
      const all = Array.from({ length: 100 }, (_, i) => String(i + 1)).join(' ')
      t.equal(textsIn(whole), all)
      t.same(await Promise.all(subscriptions), Array(8).fill(all))
      const held = storeAheadOfNews()
      await isToldOnce(t, await serve(t, { store: held.store }), held.written)
      if (binding.version === '0.3') return
      const ahead = { extensions: [RELIABILITY_EXTENSION], parameters: { 'taskchart-after-generation': '1000' } }
      t.equal(
        (await client.refusal('SubscribeToTask', { id: taskIdIn(whole) }, ahead)).reason,
        'INVALID_PARAMS',
        'a gap would follow'
      )
    }
  ),
  row(
    63,
    'D',
    '3.1.2, 11.7',
    'At a question a subscription stays open, and the stream of a message closes',
    async (t, { client }) => {
      const asked = await read(client.stream('ask'))
      t.equal(brief(asked.at(-1) ?? { task: await client.task('x') }), 'input-required: And then?')
      const stream = client.subscribe(taskIdIn(asked))
      await stream.next()
      await client.task('blue', { taskId: taskIdIn(asked) })
      t.same((await read(stream)).map(brief), ['working', 'artifact: blue', 'completed'])
    }
  ),
  row(64, 'D', '4.2.2', 'Chunks put together are the artifact that GetTask shows', async (t, { client }) => {
    const events = await read(client.stream('count 5'))
    const chunks = events.flatMap(event => ('artifactUpdate' in event ? [event.artifactUpdate] : []))
    t.same(
      chunks.map(({ append = false, lastChunk = false }) => [append, lastChunk]),
      [
        [false, false],
        [true, false],
        [true, false],
        [true, false],
        [true, true]
      ]
    )
    const [first] = chunks
    const { artifacts } = await client.get(taskIdIn(events))
    t.same(artifacts, [{ ...first?.artifact, parts: chunks.flatMap(({ artifact }) => artifact.parts) }])
  })
]

function kinds(events: readonly StreamResponse[]): (string | undefined)[] {
  return events.map(event => Object.keys(event)[0])
}

function taskIdIn([first]: readonly StreamResponse[]): string {
  return first && 'task' in first ? first.task.id : ''
}

/** What the first commit of a task holds is in the task with which a subscription begins, and is not told again. */
async function isToldOnce(t: Test, { open }: Site, written: Promise<string>): Promise<void> {
  const client = await open()
  const sent = client.send('ask', {}, { returnImmediately: true })
  const stream = client.subscribe(await written)
  const events = await read(stream, event => brief(event).startsWith('input-required'))
  t.same(events.map(brief), ['task:working', 'input-required: And then?'])
  await sent
}

/** What `count` had said when a subscription began, and says in its events. */
async function counted(client: Client, id: string): Promise<string> {
  const [first, ...events] = await read(client.subscribe(id))
  const known = first && 'task' in first ? (first.task.artifacts ?? []).map(textOf) : []
  return [...known, textsIn(events)].filter(text => text !== '').join(' ')
}

/** The texts of the artifacts in events. */
function textsIn(events: readonly StreamResponse[]): string {
  return events.flatMap(event => ('artifactUpdate' in event ? [textOf(event.artifactUpdate.artifact)] : [])).join(' ')
}

/**
 * A store that has written a task of which nobody is told, until somebody reads it; the answer to that comes after what
 * is told.
 */
function storeAheadOfNews(): { readonly store: Store; readonly written: Promise<string> } {
  const inner = memoryStore()
  const [written, isRead] = [deferred<string>(), deferred()]
  const commit: Store['commit'] = async commit => {
    const isWritten = await inner.commit(commit)
    const [task] = commit.tasks
    if (!task) return isWritten
    written.resolve(task.taskId)
    await isRead.promise
    return isWritten
  }
  const readTask: Store['readTask'] = async (...task) => {
    const stored = await inner.readTask(...task)
    isRead.resolve()
    await rest()
    return stored
  }
  return { store: { ...inner, commit, readTask }, written: written.promise }
}
