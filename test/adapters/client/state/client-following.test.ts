import t, { type Test } from 'tap'
import type { AgentClient } from '../../../../adapters/client/agent-client.ts'
import {
  conversation,
  textOf,
  watchTask,
  type Conversation,
  type StreamResponse,
  type Task
} from '../../../../adapters/client/connect.ts'
import { isTerminal } from '../../../../machines/protocol/states.ts'
import { A2AError } from '../../../../machines/protocol/errors.ts'
import { deferred, reaches, rest, say, taskIn, until as become } from '../../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../../fixtures/runtime/test-clock.ts'
import { connected, painter, until } from '../../../fixtures/servers/watched.ts'

const RED = { data: { colour: 'red' } }
const FIRST_POLL_MS = 1000
const LOOK_MS = 10_000

const said = ({ snapshot }: Conversation) => snapshot().messages.map(message => textOf(message) || 'data')
const isAsked = ({ question }: { question: unknown }) => question !== undefined
const isDone = ({ tasks: [task] }: { tasks: readonly Task[] }) => task !== undefined && isTerminal(task.status.state)

/** Advances the clock once something waits for it. */
async function passing(clock: TestClock, ms: number): Promise<void> {
  await become(() => clock.size > 0, 'a timer')
  clock.increment(ms)
}

/** A client whose streams are counted, and end where `isEnd` says. */
function counted<Client extends Pick<AgentClient, 'subscribeToTask' | 'sendStreamingMessage'>>(
  client: Client,
  isEnd: (event: StreamResponse) => boolean = () => false
) {
  const count = { open: 0, most: 0, all: 0 }
  async function* through(events: AsyncIterable<StreamResponse>, signal = new AbortController().signal) {
    let isOpen = true
    const left = () => {
      count.open -= isOpen ? 1 : 0
      isOpen = false
    }
    signal.addEventListener('abort', left)
    count.all += 1
    count.open += 1
    count.most = Math.max(count.most, count.open)
    try {
      for await (const event of events) {
        yield event
        if (isEnd(event)) return
      }
    } finally {
      left()
    }
  }
  const subscribeToTask: AgentClient['subscribeToTask'] = (...given) =>
    through(client.subscribeToTask(...given), given[1]?.signal)
  const sendStreamingMessage: AgentClient['sendStreamingMessage'] = (...given) =>
    through(client.sendStreamingMessage(...given), given[1]?.signal)
  return { agent: { ...client, subscribeToTask, sendStreamingMessage }, count }
}

/** As agents of the official SDK end their streams. */
function isQuestion(event: StreamResponse): boolean {
  const status = 'task' in event ? event.task.status : 'statusUpdate' in event ? event.statusUpdate.status : undefined
  return status?.state === 'TASK_STATE_INPUT_REQUIRED'
}

/**
 * Two conversations of one context, as in two tabs, the first of which has sent a message that ended with a question.
 */
async function twoTabs(t: Test, isEnd?: (event: StreamResponse) => boolean) {
  const { client } = await connected(t, painter)
  const clock = new TestClock()
  const { agent, count } = counted({ ...client, binding: client.binding }, isEnd)
  const here = conversation(agent, undefined, { clock })
  t.teardown(here.open())
  await here.send('paint')
  const there = conversation({ ...client }, here.snapshot().contextId, { clock })
  t.teardown(there.open())
  await until(there, isAsked)
  return { here, there, clock, count, client }
}

await t.test('a question that another client answers is followed, with that answer', async t => {
  const { here, there } = await twoTabs(t)
  await there.send(RED)
  await until(here, isDone)
  t.strictSame(said(here), ['paint', 'Thinking.', 'Which colour?', 'data', 'Here it is.'])
  t.match(here.snapshot(), { question: undefined, error: undefined, isBusy: false })
  t.equal(here.snapshot().artifacts.get('boat')?.[0]?.artifact.parts.length, 2)
})

await t.test('an agent that ends its streams at a question is asked again later', async t => {
  const { here, there, clock } = await twoTabs(t, isQuestion)
  await become(() => clock.size === 3, 'the timers of a poll and of two looks')
  await there.send(RED)
  clock.increment(FIRST_POLL_MS)
  await until(here, isDone)
  t.strictSame(said(here), ['paint', 'Thinking.', 'Which colour?', 'data', 'Here it is.'])
})

await t.test('a watched task is answered and canceled, also if the agent ends its streams at a question', async t => {
  const { client } = await connected(t, painter)
  const { agent } = counted(client, isQuestion)
  const begin = async () => taskIn(await client.sendMessage(say('paint'))).id
  const watched = watchTask(agent, await begin(), { clock: new TestClock() })
  t.teardown(watched.open())
  await until(watched, isAsked)
  t.match(await watched.answer({ data: 'green' }).catch((error: unknown) => error), { code: 'InvalidParams' })
  await watched.answer(RED)
  t.match(await until(watched, ({ task }) => task?.status.state === 'TASK_STATE_COMPLETED'), {
    question: undefined,
    error: undefined
  })
  const other = watchTask(agent, await begin())
  t.teardown(other.open())
  await until(other, isAsked)
  await other.cancel()
  t.match(other.snapshot(), { task: { status: { state: 'TASK_STATE_CANCELED' } } })
  t.match(await watched.cancel().catch((error: unknown) => error), { code: 'TaskNotCancelable' })
})

await t.test('tasks of an agent without streaming are polled', async t => {
  const gate = deferred()
  const { client, runtime } = await connected(t, async () => (await gate.promise, { message: 'done' }), {
    capabilities: { streaming: false }
  })
  const clock = new TestClock()
  const { id, contextId } = taskIn(await client.sendMessage(say('go', {}, { returnImmediately: true })))
  const { agent, count } = counted(client)
  const talk = conversation(agent, contextId, { clock })
  t.teardown(talk.open())
  const watched = watchTask(agent, id, { clock })
  t.teardown(watched.open())
  await until(talk, ({ tasks, isBusy }) => tasks.length === 1 && !isBusy)
  for (const waitMs of [1000, 2000, 4000]) {
    await become(() => clock.size === 2, 'the timers of a poll and of a look')
    clock.increment(waitMs)
  }
  await become(() => clock.size === 2)
  gate.resolve()
  await reaches(runtime, id, 'completed')
  clock.increment(8000)
  await until(talk, isDone)
  t.strictSame(said(talk), ['go', 'done'])
  t.match(
    [talk.snapshot().error, watched.snapshot()],
    [undefined, { task: { status: { state: 'TASK_STATE_COMPLETED' } }, error: undefined }]
  )
  t.equal(count.all, 1, 'it refused a stream once')
})

await t.test('a task has one stream, however many show it and send messages to it', async t => {
  const { client } = await connected(t, painter)
  const { agent, count } = counted(client)
  const begun = conversation(agent)
  await begun.send('paint')
  const { contextId, question } = begun.snapshot()
  const talk = conversation(agent, contextId)
  t.teardown(talk.open())
  const watched = watchTask(agent, String(question?.taskId))
  t.teardown(watched.open())
  const late = talk.send(RED, { taskId: String(question?.taskId) })
  t.teardown(begun.open())
  await late
  await Promise.all([until(begun, isDone), until(talk, isDone)])
  t.equal(count.most, 1)
  t.same(
    [begun, talk].map(({ snapshot }) => snapshot().tasks[0]?.artifacts?.[0]?.parts.length),
    [2, 2]
  )
  t.strictSame(watched.snapshot().task, talk.snapshot().tasks[0])
  await become(() => count.open === 0)
})

await t.test('over HTTP few tasks have a stream, and the others are polled', async t => {
  const { client } = await connected(t, painter)
  const { agent, count } = counted({ ...client, binding: 'JSONRPC' })
  const clock = new TestClock()
  const asked = await Promise.all(Array.from({ length: 5 }, async () => taskIn(await client.sendMessage(say('paint')))))
  const watched = asked.map(({ id }) => watchTask(agent, id, { clock }))
  for (const { open } of watched) t.teardown(open())
  for (const task of watched) await until(task, isAsked)
  await become(() => clock.size === 3, 'the timers of three polls')
  t.equal(count.most, 2)
  for (const { id } of asked) await client.sendMessage(say('', { taskId: id, parts: [RED] }))
  clock.increment(FIRST_POLL_MS)
  for (const task of watched) await until(task, ({ task }) => task?.status.state === 'TASK_STATE_COMPLETED')
  t.equal(count.most, 2)
})

await t.test('an open conversation finds what other clients begin in its context', async t => {
  const { here, there, clock } = await twoTabs(t)
  await become(() => clock.size === 2, 'the timers of two looks')
  await there.send('another', { taskId: null })
  t.equal(here.snapshot().tasks.length, 1)
  clock.increment(LOOK_MS)
  await until(here, ({ tasks }) => tasks.length === 2)
  const { tasks } = here.snapshot()
  await become(() => clock.size === 2)
  clock.increment(LOOK_MS)
  await become(() => clock.size === 2)
  t.equal(here.snapshot().tasks, tasks, 'what has not changed is the same value')
  await there.send(RED)
  await until(here, ({ tasks }) => tasks.some(({ status }) => isTerminal(status.state)))
})

await t.test('a look ends at an empty page and at a repeated token', async t => {
  const { client } = await connected(t, painter)
  const task: Task = {
    id: 't',
    contextId: 'c',
    status: { state: 'TASK_STATE_COMPLETED', timestamp: '2026-01-02T03:04:05.006Z' }
  }
  for (const [more, asked] of [
    [[], 2],
    [[task], 3]
  ] as const) {
    const clock = new TestClock()
    let asks = 0
    const listTasks = async () => ({
      tasks: (asks += 1) === 1 ? [task] : [...more],
      nextPageToken: '1',
      pageSize: 1,
      totalSize: 1
    })
    const talk = conversation({ ...client, listTasks }, 'c', { clock })
    const close = talk.open()
    await passing(clock, LOOK_MS)
    await become(() => clock.size > 0, 'the timer of the next look')
    t.equal(asks, asked)
    close()
  }
})

await t.test('an agent that cannot list tasks is no error of a new conversation; another error is', async t => {
  for (const [code, shown] of [
    ['UnsupportedOperation', false],
    ['InternalError', true]
  ] as const) {
    const { client } = await connected(t, async () => ({ message: 'done' }))
    const clock = new TestClock()
    let looks = 0
    const talk = conversation(
      { ...client, listTasks: async () => Promise.reject(((looks += 1), new A2AError(code, 'no'))) },
      undefined,
      { clock }
    )
    t.teardown(talk.open())
    await passing(clock, LOOK_MS)
    await rest()
    t.equal(looks, 0, 'there is no context yet')
    await talk.send('go')
    await passing(clock, LOOK_MS)
    await become(() => looks === 1 && clock.size === 0)
    await rest()
    t.equal(talk.snapshot().error !== undefined, shown)
  }
})

await t.test('a conversation reads a hundred tasks at a time, and older ones on demand', async t => {
  const { client, runtime, clock } = await connected(t, async ({ message }) => ({
    message: `done: ${textOf(message)}`
  }))
  const contextId = 'long'
  const begin = async (first: number, end: number) => {
    for (let n = first; n < end; n += 1) {
      clock.increment(1)
      await runtime.sendMessage(say(`${n}`, { contextId }))
    }
  }
  await begin(0, 230)
  const talk = conversation(client, contextId)
  const stop = talk.open()
  await until(talk, ({ tasks, isBusy }) => tasks.length === 100 && !isBusy)
  t.match(talk.snapshot(), { hasMore: true, error: undefined })
  t.equal(said(talk)[0], '130')
  await Promise.all([talk.more(), talk.more()])
  t.equal(said(talk)[0], '30')
  await talk.more()
  t.match(talk.snapshot(), { hasMore: false, tasks: { length: 230 } })
  t.strictSame(said(talk), Array.from({ length: 230 }, (_, n) => [`${n}`, `done: ${n}`]).flat())
  await talk.more()
  stop()
  await begin(230, 345)
  t.teardown(talk.open())
  await until(talk, ({ tasks, isBusy }) => tasks.length === 345 && !isBusy)
  t.equal(talk.snapshot().hasMore, false, 'all that came meanwhile is read')

  let isDown = true
  const failing = conversation(
    {
      ...client,
      listTasks: async (params, call) => {
        if (isDown && params.pageToken !== undefined) throw new A2AError('Overloaded', 'down')
        return client.listTasks(params, call)
      }
    },
    contextId
  )
  t.teardown(failing.open())
  await until(failing, ({ tasks, isBusy }) => tasks.length === 100 && !isBusy)
  await failing.more()
  t.match(failing.snapshot(), { hasMore: true, error: { code: 'Overloaded' } })
  isDown = false
  await failing.more()
  t.match(failing.snapshot(), { tasks: { length: 200 }, error: undefined })
})

await t.test('a task whose stream failed is followed again with the next message', async t => {
  const { client } = await connected(t, painter)
  let isDown = true
  const agent = {
    ...client,
    subscribeToTask: (...given: Parameters<AgentClient['subscribeToTask']>) =>
      client.subscribeToTask(isDown ? { id: 'none' } : given[0], given[1])
  }
  const here = conversation(agent)
  t.teardown(here.open())
  await here.send('paint')
  t.match(await until(here, ({ error }) => error !== undefined), { error: { code: 'TaskNotFound' } })
  isDown = false
  await here.send({ data: 'green' })
  t.match(here.snapshot(), { error: { code: 'InvalidParams' } })
  await client.sendMessage(say('', { taskId: String(here.snapshot().question?.taskId), parts: [RED] }))
  await until(here, isDone)
})
