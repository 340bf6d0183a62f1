import type { SendMessageRequest, Task } from '../../../machines/protocol/objects.ts'
import { isInterrupted, isTerminal } from '../../../machines/protocol/states.ts'
import { inputRequired } from '../../../runtime/authoring/questions.ts'
import type { WorkFunction } from '../../../runtime/work/function-work.ts'
import {
  messageIn,
  say,
  stateName,
  tasksIn,
  textOf,
  until,
  userMessage
} from '../../fixtures/runtime/runtime-helpers.ts'
import { read, type Client } from '../client.ts'
import { nowhere, row, type Row } from '../row.ts'

/** §10.2: which task, message or refusal comes of a message. */
export const sendMessage: readonly Row[] = [
  row(25, 'M', '3.1.1', 'SendMessage gives a task or a message', async (t, { client }) => {
    t.same(Object.keys(await client.send('hello')), ['message'])
    t.same(Object.keys(await client.send('x')), ['task'])
  }),
  row(
    26,
    'M',
    '3.1.1, 4.1.4',
    "A message in reply is the agent's, names its context, and opens no task",
    async (t, { client, store }) => {
      const { role, contextId, taskId, parts } = messageIn(await client.send('hello'))
      t.match({ role, contextId, parts }, { role: 'ROLE_AGENT', contextId: /.+/, parts: [{ text: 'Hello to you.' }] })
      t.equal(taskId, undefined)
      t.same(await tasksIn(store, { tenant: '', principal: 'anonymous', contextId: String(contextId) }), [])
    }
  ),
  row(
    27,
    'M',
    '3.1.1',
    'A task that has ended, in any of the four ways, takes no message: UnsupportedOperation',
    async (t, { client }) => {
      const canceled = await client.cancel((await client.opened('wait', 'working')).id)
      const ended = [
        await client.task('x'),
        await client.task('fail'),
        await client.task('reject'),
        await client.task('decline'),
        canceled
      ]
      t.same(
        ended.map(({ status }) => stateName(status.state)),
        ['completed', 'failed', 'rejected', 'rejected', 'canceled']
      )
      for (const { id, contextId } of ended) {
        t.equal((await client.refusal('SendMessage', say('more', { taskId: id }))).reason, 'UNSUPPORTED_OPERATION')
        t.equal(
          (
            await client.refusal(
              'SendMessage',
              say('more', { taskId: id, ...(contextId !== undefined && { contextId }) })
            )
          ).reason,
          'UNSUPPORTED_OPERATION'
        )
      }
    }
  ),
  row(
    28,
    'M',
    '3.1.1, 3.3.2',
    'A part of a media type that the agent does not take: ContentTypeNotSupported',
    async (t, { client }) => {
      const parts = [{ raw: 'AAAA', mediaType: 'video/mp4' }]
      t.equal((await client.refusal('SendMessage', say('', { parts }))).reason, 'CONTENT_TYPE_NOT_SUPPORTED')
      t.equal((await client.refusal('SendStreamingMessage', say('', { parts }))).reason, 'CONTENT_TYPE_NOT_SUPPORTED')
    }
  ),
  row(29, 'M', '3.4.2', 'An unknown taskId: TaskNotFound', async (t, { client }) => {
    t.equal((await client.refusal('SendMessage', say('x', { taskId: 'made-up' }))).reason, 'TASK_NOT_FOUND')
  }),
  row(30, 'M', '3.4.2', 'A new task has an id of its own, made by the server', async (t, { client }) => {
    const tasks = await Promise.all(Array.from({ length: 10 }, () => client.task('x')))
    t.equal(new Set(tasks.map(({ id }) => id)).size, 10)
    t.notOk(tasks.some(({ id }) => id === ''))
  }),
  row(31, 'M', '3.4.1', 'A contextId that the server made is in the answer', async (t, { client }) => {
    t.match(await client.task('x'), { contextId: /.+/ })
    t.match(messageIn(await client.send('hello')), { contextId: /.+/ })
  }),
  row(32, 'M', '3.4.1', 'A contextId that the client made is kept', async (t, { client }) => {
    t.equal((await client.task('x', { contextId: 'mine-1' })).contextId, 'mine-1')
    t.equal(messageIn(await client.send('hello', { contextId: 'mine-2' })).contextId, 'mine-2')
  }),
  row(
    33,
    'M',
    '3.4.3',
    'With a taskId alone the context is that of the task, and in all output',
    async (t, { client }) => {
      const { id, contextId } = await client.task('ask')
      const done = await client.task('blue', { taskId: id })
      t.match(done, { id, contextId, status: { state: 'TASK_STATE_COMPLETED' } })
      t.same(new Set(done.history?.map(message => message.contextId)), new Set([contextId]))
    }
  ),
  row(
    34,
    'M',
    '3.4.3',
    "A contextId that is not the task's is refused, and nothing has changed",
    async (t, { client }) => {
      const asked = await client.task('ask')
      t.equal(
        (await client.refusal('SendMessage', say('blue', { taskId: asked.id, contextId: 'another' }))).reason,
        'INVALID_PARAMS'
      )
      t.same(await client.get(asked.id), asked)
    }
  ),
  row(
    35,
    'M',
    '3.2.2',
    'Without more said it answers when the task has ended or asks, with all artifacts',
    async (t, { client }) => {
      const { status, artifacts } = await client.task('count 3')
      t.equal(status.state, 'TASK_STATE_COMPLETED')
      t.same(artifacts?.map(textOf), ['1 2 3'])
    }
  ),
  row(36, 'M', '3.2.2', 'It answers at a question, and at an authorization that is wanted', async (t, { client }) => {
    const asked = await client.task('ask')
    t.match(asked.status, {
      state: 'TASK_STATE_INPUT_REQUIRED',
      message: { role: 'ROLE_AGENT', parts: [{ text: 'And then?' }] }
    })
    t.equal((await client.task('authorize')).status.state, 'TASK_STATE_AUTH_REQUIRED')
    t.ok(isInterrupted(asked.status.state))
  }),
  row(
    37,
    'M',
    '3.2.2',
    'With returnImmediately it answers while the task works, which goes on',
    async (t, { client, release }) => {
      const { id, status } = await client.task('hold', {}, { returnImmediately: true })
      t.notOk(isTerminal(status.state))
      await until(async () => stateName((await client.get(id)).status.state) === 'working')
      release()
      t.same((await ended(client, id)).artifacts?.map(textOf), ['begun', 'released'])
    }
  ),
  row(38, 'M', '3.2.2', 'returnImmediately changes neither messages nor streams', async (t, { client }) => {
    t.equal(textOf(messageIn(await client.send('hello', {}, { returnImmediately: true }))), 'Hello to you.')
    const events = await read(client.stream('count 2', {}, { returnImmediately: true }))
    t.match(events.at(-1), { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } })
  }),
  row(39, 'M/S', '3.2.4', 'No more history than historyLength, and with 0 none', async (t, { client, binding }) => {
    const { id } = await client.task('ask')
    t.equal((await client.task('blue', { taskId: id }, { historyLength: 1 })).history?.length, 1)
    // In the proto of 0.3 no number is 0, which asks for all.
    t.equal('history' in (await client.task('x', {}, { historyLength: 0 })), binding.name === '0.3 REST')
    t.ok((await client.task('x', {}, { historyLength: 100 })).history?.length)
  }),
  nowhere(
    40,
    'S',
    '3.2.2',
    'Output follows acceptedOutputModes',
    'work is not told acceptedOutputModes: an agent answers in the output modes of its card'
  ),
  row(41, 'S', '3.7', 'Results are artifacts, not messages', async (t, { client }) => {
    const { artifacts, status } = await client.task('the result')
    t.same(artifacts?.map(textOf), ['the result'])
    t.notOk('message' in status)
  }),
  row(
    42,
    'S',
    '3.4.3',
    'Work is given the tasks that referenceTaskIds name; new tasks of one context run side by side',
    async (t, { client, release }) => {
      const [first, second] = [
        await client.task('draw boat', { contextId: 'trip' }),
        await client.task('draw train', { contextId: 'trip' })
      ]
      const { artifacts } = await client.task('after', {
        contextId: 'trip',
        referenceTaskIds: [first.id, second.id, 'unknown']
      })
      t.same(artifacts?.map(textOf), ['a boat, a train'])
      const held = await client.opened('hold', 'working', { contextId: 'trip' })
      t.equal(
        (await client.task('x', { contextId: 'trip' })).status.state,
        'TASK_STATE_COMPLETED',
        'while the other works'
      )
      t.equal((await client.get(held.id)).status.state, 'TASK_STATE_WORKING')
      release()
    }
  ),
  row(
    43,
    'S',
    '3.4.1, 3.4.3',
    'The agent can read what was said before in the context, and there alone',
    async (t, { client }) => {
      const { contextId = '' } = messageIn(await client.send('hello'))
      await client.task('a secret of another context')
      t.equal(textOf(messageIn(await client.send('recall', { contextId }))), 'hello, Hello to you.')
    }
  ),
  row(44, 'D', '3.2.2', 'An answer to a question waits for the next pause of the task', async (t, { client }) => {
    const { id } = await client.task('ask')
    const done = await client.task('blue', { taskId: id })
    t.match(done, { status: { state: 'TASK_STATE_COMPLETED' } })
    t.same(done.artifacts?.map(textOf), ['blue'])
  }),
  row(
    45,
    'D',
    '3.3.1',
    'One messageId twice opens two tasks, unless the client asks for one',
    async (t, { client, serve }) => {
      const message = userMessage('x')
      const ids = async (open: typeof client.task) => [(await open('x', message)).id, (await open('x', message)).id]
      t.equal(new Set(await ids(client.task)).size, 2)
      const once = await (await serve(t, { deduplicate: true })).open()
      t.equal(new Set(await ids(once.task)).size, 1)
    }
  ),
  row(
    46,
    'D',
    '3.3.3',
    'A message to a task that works is refused, or kept for its next question where the agent says so',
    async (t, { client, serve }) => {
      const { id } = await client.opened('wait', 'working')
      t.equal((await client.refusal('SendMessage', say('more', { taskId: id }))).reason, 'UNSUPPORTED_OPERATION')
      await client.cancel(id)
      const site = await serve(t, {}, { messages: 'queue', work: queueing })
      const queued = await site.open()
      const working = await queued.opened('x', 'working')
      await queued.task('kept', { taskId: working.id }, { returnImmediately: true })
      site.clock.increment(1000)
      t.same((await ended(queued, working.id)).artifacts?.map(textOf), ['kept'])
    }
  ),
  row(
    47,
    'D',
    '3.5.2',
    'A client that leaves while it waits stops no task',
    async (t, { client, open, runtime, release }) => {
      const leaving = await open()
      const cut = new AbortController()
      const waiting = leaving.call('SendMessage', say('hold', { contextId: 'left' }), { cut: cut.signal })
      const id = await until(
        async () => (await runtime.listTasks({ contextId: 'left', status: 'TASK_STATE_WORKING' })).tasks[0]?.id
      )
      cut.abort()
      await t.rejects(waiting)
      t.equal((await client.get(id)).status.state, 'TASK_STATE_WORKING')
      release()
      t.equal((await ended(client, id)).status.state, 'TASK_STATE_COMPLETED')
    }
  ),
  row(
    48,
    'D',
    '3.4.3',
    'A refined artifact comes of a new task, under the same name and a new id; where several fit, the agent asks',
    async (t, { client }) => {
      const boat = await client.task('draw boat')
      const { contextId = '' } = boat
      const red = await client.task('refine', { contextId })
      t.not(red.id, boat.id)
      t.equal(red.artifacts?.[0]?.name, 'boat')
      t.not(red.artifacts?.[0]?.artifactId, boat.artifacts?.[0]?.artifactId)
      await client.task('draw train', { contextId })
      const asked = await client.task('refine', { contextId })
      t.match(asked.status, { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text: 'Which one?' }] } })
      t.match(await client.task('train', { taskId: asked.id }), {
        status: { state: 'TASK_STATE_COMPLETED' },
        artifacts: [{ name: 'train' }]
      })
    }
  ),
  row(
    168,
    'D',
    '3.2.1, 3.2.2',
    'Metadata and configuration of a request reach the work, those of an answer too',
    async (t, { client }) => {
      const metadata = { 'https://example.com/ext/locale': 'fi', nested: { list: [1, null] } }
      const configuration = { acceptedOutputModes: ['image/png', 'text/plain'], historyLength: 3 }
      const heard = async (request: SendMessageRequest) =>
        ((await client.call('SendMessage', request)).result as { task: Task }).task
      const seenBy = ({ artifacts }: Task) => artifacts?.map(({ parts }) => parts[0])
      t.match(seenBy(await heard({ ...say('details', {}, configuration), metadata })), [
        { data: { opened: { metadata, ...configuration } } }
      ])
      t.same(seenBy(await heard(say('details'))), [{ data: { opened: {} } }])
      const { id: taskId } = await heard({ ...say('details asked'), metadata })
      t.match(seenBy(await heard({ ...say('blue', { taskId }, configuration), metadata: { answer: true } })), [
        { data: { opened: { metadata }, answer: { metadata: { answer: true }, ...configuration } } }
      ])
      const events = await read(client.caller.stream('SendStreamingMessage', { ...say('details'), metadata }))
      t.match(
        events.flatMap(event => ('artifactUpdate' in event ? [event.artifactUpdate.artifact.parts[0]] : [])),
        [{ data: { opened: { metadata } } }]
      )
    }
  )
]

/** Works for a second, and asks then. */
const queueing: WorkFunction = async ({ sleep, ask }) => {
  await sleep(1000)
  return { artifact: (await ask(inputRequired('What?'))).parts }
}

/** Waits until a task has ended. */
function ended(client: Client, id: string): Promise<Task> {
  return until(async () => {
    const task = await client.get(id)
    return isTerminal(task.status.state) && task
  })
}
