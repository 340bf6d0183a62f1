import t, { type Test } from 'tap'
import { z } from 'zod'
import {
  negotiate,
  connect,
  conversation,
  foldTask,
  questionOf,
  textOf,
  watchTask,
  type Conversation
} from '../../../../adapters/client/connect.ts'
import { artifactsByName } from '../../../../adapters/client/artifact-versions.ts'
import { isTerminal } from '../../../../machines/protocol/states.ts'
import { nameQuestion } from '../../../../adapters/client/messages.ts'
import type { StreamResponse, Task } from '../../../../machines/protocol/objects.ts'
import { QUESTION, RELIABILITY_EXTENSION } from '../../../../machines/protocol/uris.ts'
import { createRuntime, defineAgent, negotiation, offer, text } from '../../../../runtime/index.ts'
import { deferred, refusal } from '../../../fixtures/runtime/runtime-helpers.ts'
import { connected, painter, until } from '../../../fixtures/servers/watched.ts'

const said = ({ snapshot }: Conversation) => snapshot().messages.map(message => textOf(message) || message.parts)

for (const version of ['1.0', '1.1'] as const) {
  await t.test(`in ${version} the fold of a stream equals the result of GetTask, after each of its ends`, async t => {
    const { client } = await connected(t, painter, {}, version)
    t.equal(client.version, version)
    let task: Task | undefined
    const events: StreamResponse[] = []
    const send = async (parts: { text: string }[] | { data: { colour: string } }[]) => {
      const message = {
        messageId: crypto.randomUUID(),
        role: 'ROLE_USER' as const,
        parts,
        ...(task && { taskId: task.id })
      }
      for await (const event of client.sendStreamingMessage({ message })) {
        events.push(event)
        task = foldTask(task, event)
      }
    }
    await send([{ text: 'paint' }])
    t.strictSame(task, await client.getTask({ id: String(task?.id) }))
    t.match(task && questionOf(task), {
      kind: 'input',
      text: 'Which colour?',
      schema: { properties: { colour: { enum: ['red', 'blue'] } } }
    })
    await send([{ data: { colour: 'red' } }])
    t.strictSame(task, await client.getTask({ id: String(task?.id) }))
    t.match(task, {
      status: { state: 'TASK_STATE_COMPLETED' },
      artifacts: [{ name: 'boat', parts: [{ text: 'a ' }, { text: 'red boat' }], metadata: { part: 1, last: true } }]
    })
    t.equal(task && questionOf(task), undefined)
    t.equal(events.reduce<Task | undefined>(foldTask, task), task, 'events that it has already change nothing')
  })
}

await t.test('the fold works without the reliability extension, from any event, and mutates nothing', t => {
  const status = (state: 'TASK_STATE_WORKING' | 'TASK_STATE_AUTH_REQUIRED', words?: string) => ({
    statusUpdate: {
      taskId: 't',
      contextId: 'c',
      status: {
        state,
        ...(words !== undefined && {
          message: { messageId: words, role: 'ROLE_AGENT' as const, parts: [{ text: words }] }
        })
      },
      ...(words === 'b' && { metadata: { a: 1 } })
    }
  })
  const chunk = (id: string, words: string, append = false) => ({
    artifactUpdate: { taskId: 't', contextId: 'c', artifact: { artifactId: id, parts: [{ text: words }] }, append }
  })
  const first = foldTask(undefined, chunk('x', 'one', true))
  t.strictSame(first, {
    id: 't',
    contextId: 'c',
    status: { state: 'TASK_STATE_SUBMITTED' },
    artifacts: [{ artifactId: 'x', parts: [{ text: 'one' }] }]
  })
  const events: StreamResponse[] = [
    chunk('x', 'two', true),
    chunk('y', 'other'),
    chunk('y', 'better'),
    status('TASK_STATE_WORKING', 'a'),
    status('TASK_STATE_AUTH_REQUIRED', 'b')
  ]
  const task = events.reduce(foldTask, first)
  t.match(task, {
    artifacts: [{ parts: [{ text: 'one' }, { text: 'two' }] }, { parts: [{ text: 'better' }] }],
    history: [{ messageId: 'a' }],
    status: { message: { messageId: 'b' } },
    metadata: { a: 1 }
  })
  t.equal(first?.artifacts?.[0]?.parts.length, 1)
  t.match(task && questionOf(task), { kind: 'authorization', text: 'b', schema: undefined })
  const { message: reply } = { message: { messageId: 'm', role: 'ROLE_AGENT' as const, parts: [] } }
  t.equal(foldTask(task, { message: reply }), task)
  t.equal(foldTask(task, { task: { id: 'other', status: { state: 'TASK_STATE_WORKING' } } }), task)
  t.equal(textOf(undefined), '')
  t.ok(isTerminal('TASK_STATE_FAILED'))
  t.end()
})

await t.test('a whole task of the same generation replaces one with a shorter history', t => {
  const metadata = { [RELIABILITY_EXTENSION]: { generation: 2 } }
  const task: Task = { id: 't', status: { state: 'TASK_STATE_WORKING' }, metadata }
  const whole: Task = { ...task, history: [{ messageId: 'm', role: 'ROLE_USER', parts: [] }] }
  t.equal(foldTask(task, { task: { ...task } }), task)
  t.equal(foldTask(task, { task: whole }), whole)
  t.equal(foldTask(whole, { task }), whole)
  t.end()
})

await t.test('artifacts have their versions by name, in the order of their tasks', t => {
  const task = (id: string, name: string | undefined, artifactId: string): Task => ({
    id,
    status: { state: 'TASK_STATE_COMPLETED' },
    artifacts: [{ artifactId, ...(name !== undefined && { name }), parts: [{ text: id }] }]
  })
  const found = artifactsByName([
    task('1', 'boat', 'a'),
    task('2', undefined, 'b'),
    task('3', 'boat', 'c'),
    { id: '4', status: { state: 'TASK_STATE_WORKING' } }
  ])
  t.strictSame(
    Array.from(found, ([name, versions]) => [name, versions.map(({ taskId }) => taskId)]),
    [
      ['boat', ['1', '3']],
      ['b', ['2']]
    ]
  )
  t.end()
})

await t.test('a conversation sends, asks, answers, and is restored by another client', async t => {
  const { client, url } = await connected(t, painter)
  const talk = conversation(client)
  t.strictSame(talk.snapshot(), {
    contextId: undefined,
    messages: [],
    tasks: [],
    hasMore: false,
    artifacts: new Map(),
    question: undefined,
    offer: undefined,
    isBusy: false,
    error: undefined
  })
  t.teardown(talk.open())
  t.equal(talk.snapshot().isBusy, false, 'a new one has nothing to read')
  const sent = talk.send('paint')
  t.match(talk.snapshot(), { messages: [{ parts: [{ text: 'paint' }] }], isBusy: true })
  await sent
  const { contextId, question } = talk.snapshot()
  t.match(question, { text: 'Which colour?', schema: { required: ['colour'] } })

  const other = await connect(url)
  t.teardown(() => other.close())
  const reader = conversation(other, contextId)
  t.teardown(reader.open())
  await until(reader, ({ isBusy, question }) => !isBusy && question !== undefined)

  await talk.send({ data: { colour: 'green' } })
  t.match(
    talk.snapshot(),
    { question: { text: 'Which colour?' }, error: { code: 'InvalidParams' }, isBusy: false },
    'a refused answer leaves the question'
  )
  await talk.send({ data: { colour: 'red' } })
  t.match(talk.snapshot(), {
    question: undefined,
    error: undefined,
    tasks: [{ status: { state: 'TASK_STATE_COMPLETED' } }]
  })
  t.match(talk.snapshot().artifacts.get('boat'), [{ artifact: { parts: [{ text: 'a ' }, { text: 'red boat' }] } }])
  t.strictSame(said(talk), [
    'paint',
    'Thinking.',
    'Which colour?',
    [{ data: { colour: 'green' } }],
    [{ data: { colour: 'red' } }],
    'Here it is.'
  ])

  await until(reader, ({ tasks: [task] }) => task !== undefined && isTerminal(task.status.state))
  t.match(
    reader.snapshot().artifacts.get('boat'),
    [{ artifact: { parts: [{ text: 'a ' }, { text: 'red boat' }] } }],
    'the other client follows it'
  )
  t.strictSame(reader.snapshot().artifacts.get('boat')?.length, 1)
})

await t.test('an answer names its question, and a message of its own names none', async t => {
  const unknown = { parts: [], metadata: { a: 1 } }
  t.equal(nameQuestion(unknown, undefined), unknown)
  const { client } = await connected(t, painter)
  const namedIn = async (taskId: string) => {
    const { history = [] } = await client.getTask({ id: taskId })
    const question = history.find(({ parts: [part] }) => part && 'text' in part && part.text === 'Which colour?')
    t.type(question?.messageId, 'string')
    return history
      .filter(({ role }) => role === 'ROLE_USER')
      .map(({ metadata }) => [undefined, question?.messageId].indexOf(metadata?.[QUESTION] as string | undefined))
  }
  const talk = conversation(client)
  t.teardown(talk.open())
  await talk.send('paint')
  const { question } = await until(talk, ({ question }) => question !== undefined)
  await talk.send({ data: { colour: 'red' } })
  t.strictSame(await namedIn(String(question?.taskId)), [0, 1])
  await talk.send('paint')
  const asked = await until(talk, ({ question: next }) => next !== undefined && next.taskId !== question?.taskId)
  const watched = watchTask(client, String(asked.question?.taskId))
  t.teardown(watched.open())
  await until(watched, ({ question }) => question !== undefined)
  await watched.answer({ data: { colour: 'blue' } })
  t.strictSame(await namedIn(String(asked.question?.taskId)), [0, 1])
})

await t.test('a message to a followed task replaces its stream', async t => {
  const { client } = await connected(t, painter)
  const begun = conversation(client)
  await begun.send('paint')
  const talk = conversation(client, begun.snapshot().contextId)
  const stop = talk.open()
  await until(talk, ({ isBusy, question }) => !isBusy && question !== undefined)
  await talk.send({ data: { colour: 'blue' } })
  t.match(talk.snapshot(), { error: undefined, tasks: [{ status: { state: 'TASK_STATE_COMPLETED' } }] })
  t.equal(talk.snapshot().tasks[0]?.artifacts?.[0]?.parts.length, 2, 'no chunk twice')
  await talk.send('another', { taskId: null, referenceTaskIds: [String(talk.snapshot().tasks[0]?.id)] })
  t.match(talk.snapshot().messages.at(-3), { referenceTaskIds: [/./] })
  t.equal(talk.snapshot().tasks.length, 2)
  stop()
  stop()
})

await t.test('a conversation takes thousands of artifacts and messages at once, each a single time', async t => {
  const count = 1500
  const ids = { taskId: 't', contextId: 'c' }
  const agent = {
    ...(await connected(t, painter)).client,
    sendStreamingMessage: async function* (): AsyncGenerator<StreamResponse, void, undefined> {
      for (let n = 0; n < count; n++) {
        yield { artifactUpdate: { ...ids, artifact: { artifactId: `a${n}`, name: 'boat', parts: [{ text: 'x' }] } } }
        yield {
          statusUpdate: {
            ...ids,
            status: {
              state: 'TASK_STATE_WORKING',
              message: { messageId: `m${n}`, role: 'ROLE_AGENT', parts: [{ text: 'x' }] }
            }
          }
        }
      }
    }
  }
  const talk = conversation(agent)
  await talk.send('paint')
  t.equal(talk.snapshot().artifacts.get('boat')?.length, count)
  t.equal(talk.snapshot().messages.length, count + 1)
})

await t.test('a closed conversation still sends', async t => {
  const { client } = await connected(t, async () => ({ message: 'done' }))
  const talk = conversation(client)
  talk.open()()
  await talk.send('go')
  t.match(talk.snapshot(), { isBusy: false, error: undefined, tasks: [{ status: { state: 'TASK_STATE_COMPLETED' } }] })
})

await t.test('a closed conversation stops its streams, and the work continues', async t => {
  const gate = deferred()
  const { client } = await connected(t, async () => (await gate.promise, { message: 'done' }))
  const talk = conversation(client)
  const close = talk.open()
  const sent = talk.send('go')
  await until(talk, ({ tasks }) => tasks.length === 1)
  close()
  await sent
  t.match(talk.snapshot(), { isBusy: false, error: undefined })
  gate.resolve()
  const again = talk.open()
  await until(talk, ({ tasks: [task] }) => task?.status.state === 'TASK_STATE_COMPLETED')
  again()
})

await t.test('a followed stream that fails leaves its error', async t => {
  const { client } = await connected(t, painter)
  const begun = conversation(client)
  await begun.send('paint')
  const failing = { ...client, subscribeToTask: () => client.subscribeToTask({ id: 'none' }) }
  const talk = conversation(failing, begun.snapshot().contextId)
  t.teardown(talk.open())
  t.match((await until(talk, ({ error }) => error !== undefined)).error, { code: 'TaskNotFound' })
  t.match(
    (await until(conversationOpened(t, failing), ({ error }) => error !== undefined)).error,
    { code: /./ },
    'a context that cannot be read does too'
  )
})

function conversationOpened(t: Test, client: Parameters<typeof conversation>[0]): Conversation {
  const talk = conversation(
    { ...client, listTasks: async () => Promise.reject(Object.assign(new Error('none'), { code: 'none' })) },
    'c'
  )
  t.teardown(talk.open())
  return talk
}

await t.test('an agent without streaming gives one answer', async t => {
  const { client } = await connected(t, async () => ({ artifact: text('done') }), {
    capabilities: { streaming: false }
  })
  const talk = conversation(client)
  await talk.send([{ text: 'go' }])
  t.match(talk.snapshot(), { error: undefined, tasks: [{ artifacts: [{ parts: [{ text: 'done' }] }] }] })
})

await t.test('an agent that names no context leaves the context as it is', async t => {
  const { client } = await connected(t, painter)
  const answering = async function* (): AsyncGenerator<StreamResponse, void, undefined> {
    yield { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'hello' }] } }
    yield { task: { id: 't', status: { state: 'TASK_STATE_COMPLETED' } } }
  }
  const listTasks = async () => ({ tasks: [], nextPageToken: '', pageSize: 100, totalSize: 0 })
  const talk = conversation({ ...client, sendStreamingMessage: answering, listTasks }, 'c')
  t.teardown(talk.open())
  await until(talk, ({ isBusy }) => !isBusy)
  await talk.send('hi')
  t.match(talk.snapshot(), { contextId: 'c', messages: [{}, { messageId: 'm' }], tasks: [{ id: 't' }] })
})

await t.test('an offer stays open until the next message', async t => {
  const terms = z.object({ euros: z.number() })
  const agent = defineAgent({
    card: { name: 'Gardener' },
    negotiate: negotiation({ terms, respond: () => offer({ euros: 50 }, { message: 'Tomorrow.' }) }),
    work: ({ terms }) => ({ artifact: `for ${terms.euros}` })
  })
  const runtime = createRuntime({ agent })
  t.teardown(() => runtime.close())
  const talk = conversation(runtime)
  await talk.send('mow my lawn')
  const { offer: standing, contextId } = talk.snapshot()
  t.match(standing, { terms: { euros: 50 } })
  t.type(contextId, 'string')
  if (!standing) return
  await talk.send([negotiate({ accept: standing })])
  t.match(talk.snapshot(), { offer: undefined, tasks: [{ contextId, artifacts: [{ parts: [{ text: 'for 50' }] }] }] })
})

await t.test('a task is watched until it ends', async t => {
  const gate = deferred()
  const { client } = await connected(t, async () => (await gate.promise, { message: 'done' }))
  const talk = conversation(client)
  void talk.send('go')
  const {
    tasks: [begun]
  } = await until(talk, ({ tasks }) => tasks.length === 1)
  const watched = watchTask(client, String(begun?.id))
  t.strictSame(watched.snapshot(), { task: undefined, question: undefined, error: undefined })
  const stop = watched.open()
  await until(watched, ({ task }) => task !== undefined)
  gate.resolve()
  await until(watched, ({ task }) => task?.status.state === 'TASK_STATE_COMPLETED')
  stop()
  const ended = watchTask(client, String(begun?.id))
  t.teardown(ended.open())
  t.match(await until(ended, ({ task }) => task !== undefined), {
    task: { status: { state: 'TASK_STATE_COMPLETED' } },
    error: undefined
  })
  const missing = watchTask(client, 'nothing')
  t.teardown(missing.open())
  t.match(await until(missing, ({ error }) => error !== undefined), { error: { code: 'TaskNotFound' } })
  const stopped = watchTask(client, 'nothing')
  stopped.open()()
  t.match(await refusal(client.getTask({ id: 'nothing' })), { code: 'TaskNotFound' })
  t.equal(stopped.snapshot().error, undefined)
})
