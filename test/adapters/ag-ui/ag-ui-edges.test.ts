import t from 'tap'
import { agUiHandler } from '../../../adapters/ag-ui/index.ts'
import { readRunInput } from '../../../adapters/ag-ui/run-input.ts'
import { type AgentCalls, runEvents } from '../../../adapters/ag-ui/run.ts'
import type { AgUiEvent } from '../../../adapters/ag-ui/task-events.ts'
import { A2AError, invalidParams } from '../../../machines/protocol/errors.ts'
import { offerPart } from '../../../machines/protocol/negotiation.ts'
import type { Message, StreamResponse, Task } from '../../../machines/protocol/objects.ts'
import type { TaskState } from '../../../machines/protocol/states.ts'
import { artifact, authRequired, text } from '../../../runtime/index.ts'
import { openThread, textsOf } from '../../fixtures/peers/ag-ui-clients.ts'
import { collect, deferred, rejection, start, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

const REFUSED = new A2AError('UnsupportedOperation', 'Not here.')

const says = (messageId: string, text: string): Message => ({ messageId, role: 'ROLE_AGENT', parts: [{ text }] })

const taskIn = (state: TaskState, more: Partial<Task> = {}, message?: Message): Task => ({
  id: 'task',
  contextId: 't',
  status: { state, timestamp: '2026-01-01T00:00:00Z', ...(message && { message }) },
  ...more
})

async function* streamOf(...items: readonly (StreamResponse | Error)[]): AsyncGenerator<StreamResponse, void> {
  for (const item of items) {
    if (item instanceof Error) throw item
    yield item
  }
}

const pageOf =
  (...tasks: readonly Task[]) =>
  async () => ({
    tasks: [...tasks],
    nextPageToken: '',
    pageSize: 10,
    totalSize: tasks.length
  })

/** An agent whose calls are refused, apart from these. */
function agentWith(calls: Partial<AgentCalls>): AgentCalls {
  return {
    send: () => streamOf(REFUSED),
    subscribe: () => streamOf(REFUSED),
    getTask: () => Promise.reject(REFUSED),
    listTasks: pageOf(),
    cancelTask: () => Promise.reject(REFUSED),
    ...calls
  }
}

function runOf(body: object, calls: Partial<AgentCalls>, clock = new TestClock()): AsyncGenerator<AgUiEvent, void> {
  const input = readRunInput({ threadId: 't', runId: 'r', messages: [], ...body })
  return runEvents(input, agentWith(calls), { questions: 'interrupt', clock, signal: new AbortController().signal })
}

const SAYS = { messages: [{ id: 'm', role: 'user', content: 'hi' }] }
const resumes = (interruptId: string, payload: unknown = 'yes', status = 'resolved') => ({
  resume: [{ interruptId, status, payload }]
})
const ASKS = taskIn('TASK_STATE_INPUT_REQUIRED', { history: [says('q0', 'First?')] }, says('q', 'Sure?'))

await t.test('an agent that does not stream is read each second', async t => {
  const go = deferred()
  const { runtime, clock } = start(t, {
    work: async () => (await go.promise, { artifact: 'One coffee.' }),
    capabilities: { streaming: false }
  })
  const page = openThread('AG-UI 1.0', agUiHandler(runtime))
  const run = page.say('a coffee')
  await until(() => page.state.task !== undefined)
  const ticking = setInterval(() => clock.increment(500), 1)
  go.resolve(undefined)
  await run.finally(() => clearInterval(ticking))
  t.strictSame(textsOf(page), ['One coffee.'])
})

await t.test('a stream that ends early is gone on with by reading the task', async t => {
  const clock = new TestClock()
  let reads = 0
  const run = collect(
    runOf(
      SAYS,
      {
        send: () => streamOf({ task: taskIn('TASK_STATE_WORKING', {}, says('p', 'Brewing.')) }),
        getTask: async () => {
          reads += 1
          return reads < 3
            ? taskIn('TASK_STATE_WORKING', {}, says('p', 'Brewing.'))
            : taskIn('TASK_STATE_COMPLETED', {}, says('e', 'Done.'))
        }
      },
      clock
    )
  )
  const ticking = setInterval(() => clock.increment(500), 1)
  const events = await run.finally(() => clearInterval(ticking))
  t.equal(reads, 3)
  t.equal(events.filter(({ type }) => type === 'ACTIVITY_SNAPSHOT').length, 1, 'the same progress is told once')
  t.match(events.at(-1), { type: 'RUN_FINISHED', outcome: { type: 'success' } })
})

await t.test('a stream without anything, and events of another task, tell nothing', async t => {
  t.match(await collect(runOf(SAYS, { send: () => streamOf() })), [{ type: 'RUN_STARTED' }, { type: 'RUN_FINISHED' }])
  const chunk = { artifactId: 'a', parts: [{ text: 'x' }] }
  const events = await collect(
    runOf(SAYS, {
      send: () =>
        streamOf(
          { task: taskIn('TASK_STATE_WORKING') },
          { artifactUpdate: { taskId: 'other', contextId: 't', artifact: chunk } },
          { statusUpdate: { taskId: 'task', contextId: 't', status: { state: 'TASK_STATE_CANCELED' } } }
        )
    })
  )
  t.strictSame(
    events.map(({ type }) => type),
    ['RUN_STARTED', 'STATE_SNAPSHOT', 'STATE_DELTA', 'RUN_FINISHED']
  )
})

await t.test('the members of a task that A2A 1.1 adds are in the state', async t => {
  const events = await collect(
    runOf(SAYS, {
      send: () =>
        streamOf(
          { task: taskIn('TASK_STATE_WORKING', { generation: '2', metadata: { a: 1 }, timeline: [] }) },
          { task: taskIn('TASK_STATE_COMPLETED', { artifacts: [] }) }
        )
    })
  )
  t.match(events[1], { snapshot: { task: { generation: '2', metadata: { a: 1 } } } })
  t.notMatch(JSON.stringify(events[1]), /timeline/)
  t.match(events[2], {
    delta: [
      { op: 'replace', path: '/task/status' },
      { op: 'remove', path: '/task/generation' },
      { op: 'remove', path: '/task/metadata' },
      { op: 'add', path: '/task/artifacts', value: [] }
    ]
  })
})

await t.test('an error before the first event refuses the run, and a later one ends it', async t => {
  const overloaded = new A2AError('Overloaded')
  for (const calls of [
    { listTasks: () => Promise.reject(overloaded) },
    { send: () => streamOf(overloaded) },
    { listTasks: pageOf(ASKS), send: () => streamOf(overloaded) },
    { listTasks: pageOf(ASKS), send: () => streamOf(new Error('broken')) }
  ] satisfies Partial<AgentCalls>[])
    t.match(await rejection(collect(runOf(SAYS, calls))), { message: /./ })
  t.match(await rejection(collect(runOf({}, { listTasks: pageOf(ASKS), subscribe: () => streamOf(overloaded) }))), {
    code: 'Overloaded'
  })
  const seen: string[] = []
  const error = await rejection(
    (async () => {
      const later = { send: () => streamOf({ task: taskIn('TASK_STATE_WORKING') }, overloaded) }
      for await (const { type } of runOf(SAYS, later)) seen.push(type)
    })()
  )
  t.match(error, { code: 'Overloaded' })
  t.strictSame(seen, ['RUN_STARTED', 'STATE_SNAPSHOT'])
})

await t.test('an agent that lists no tasks has runs', async t => {
  for (const code of ['UnsupportedOperation', 'MethodNotFound', 'Forbidden'] as const) {
    const events = await collect(
      runOf(SAYS, {
        listTasks: () => Promise.reject(new A2AError(code)),
        send: () => streamOf({ message: says('a', 'Hello.') })
      })
    )
    t.match(events.at(-1), { type: 'RUN_FINISHED' })
  }
})

await t.test('a resume of what was never asked is an error that leaves the thread free', async t => {
  const known = { getTask: async () => ASKS, subscribe: () => streamOf({ task: ASKS }) }
  for (const [interruptId, calls] of [
    ['', { getTask: () => Promise.reject(invalidParams({ field: 'id', description: 'must be an id' })) }],
    ['x/y', { getTask: () => Promise.reject(new A2AError('TaskNotFound')) }],
    ['%/%', { getTask: () => Promise.reject(new A2AError('TaskNotFound')) }],
    ['task/other', known],
    ['task', known],
    ['task/q', { getTask: async () => ({ ...ASKS, contextId: 'another' }) }]
  ] as const) {
    const body = resumes(interruptId === '' ? '/' : interruptId)
    t.match(await collect(runOf(body, calls)), [
      { type: 'RUN_STARTED', runId: 'r' },
      { type: 'RUN_FINISHED', runId: 'r' },
      { type: 'RUN_STARTED', runId: 'r:end' },
      { type: 'RUN_ERROR', code: 'UnknownInterrupt', message: /never had/ }
    ])
  }
  t.match((await collect(runOf(resumes('task/q0'), known))).at(-1), { outcome: { interrupts: [{ id: 'task/q' }] } })
  const silent = taskIn('TASK_STATE_INPUT_REQUIRED')
  const events = await collect(
    runOf(resumes('task/gone'), { getTask: async () => silent, subscribe: () => streamOf({ task: silent }) })
  )
  t.match(
    events.at(-1),
    { outcome: { interrupts: [{ id: 'task/2026-01-01T00%3A00%3A00Z', message: '' }] } },
    'an agent without a history may have asked'
  )
})

await t.test('an answer that the agent refuses is asked for again, or follows a task that has moved on', async t => {
  const done = taskIn('TASK_STATE_COMPLETED', {}, says('e', 'Done.'))
  const asking = { getTask: async () => ASKS, subscribe: () => streamOf({ task: ASKS }) }
  const refused = new A2AError('InvalidParams', 'That is no answer.')
  t.match((await collect(runOf(resumes('task/q'), { ...asking, send: () => streamOf(refused) }))).at(-1), {
    outcome: { interrupts: [{ message: 'Not accepted: That is no answer.\n\nSure?' }] }
  })
  const moved = { getTask: async () => ASKS, subscribe: () => streamOf({ task: done }) }
  t.match((await collect(runOf(resumes('task/q'), moved))).at(-1), { outcome: { type: 'success' } })
  t.match(
    await rejection(collect(runOf(SAYS, { listTasks: pageOf(ASKS), getTask: async () => ASKS }))),
    { code: 'UnsupportedOperation' },
    'words that are refused are not lost without a word'
  )
})

await t.test('a cancel of a task that has ended shows its end, and another error is one', async t => {
  const done = taskIn('TASK_STATE_COMPLETED')
  const ended = new A2AError('TaskNotCancelable')
  const calls = { getTask: async () => done, cancelTask: () => Promise.reject(ended) }
  const cancel = { forwardedProps: { 'urn:taskchart:ag-ui:1': { cancel: 'task' } } }
  t.match((await collect(runOf(cancel, calls))).at(-1), { outcome: { type: 'success' } })
  const states: TaskState[] = ['TASK_STATE_WORKING', 'TASK_STATE_WORKING', 'TASK_STATE_CANCELED']
  const later = {
    getTask: async () => taskIn(states.shift() ?? 'TASK_STATE_CANCELED'),
    cancelTask: async () => undefined
  }
  t.strictSame((await collect(runOf(cancel, later))).at(-1), { type: 'RUN_FINISHED', threadId: 't', runId: 'r' })
  t.match(
    await rejection(collect(runOf(cancel, { ...calls, cancelTask: () => Promise.reject(new A2AError('Forbidden')) }))),
    { code: 'Forbidden' }
  )
})

await t.test('words that a task refuses while it waits for an authorization say that it was given', async t => {
  const waits = taskIn('TASK_STATE_AUTH_REQUIRED', {}, says('q', 'Log in.'))
  const done = taskIn('TASK_STATE_COMPLETED', {}, says('e', 'Done.'))
  const events = await collect(
    runOf(SAYS, { listTasks: pageOf(waits), subscribe: () => streamOf({ task: waits }, { task: done }) })
  )
  t.match(events.at(-1), { outcome: { type: 'success' } })
  const { runtime } = start(t, {
    async *work() {
      yield* authRequired('Log in.')
      return { message: 'Done.' }
    }
  })
  const page = openThread('AG-UI 1.0', agUiHandler(runtime, { questions: 'message' }))
  await page.say('go')
  await page.say('I did.')
  t.strictSame(textsOf(page), ['Log in.', 'Done.'], 'a task may take them too')
})

await t.test('an error while a run waits for an authorization is one', async t => {
  const waits = taskIn('TASK_STATE_AUTH_REQUIRED', {}, says('q', 'Log in.'))
  const body = { resume: [{ interruptId: 'task/q', status: 'resolved' }] }
  const calls = { getTask: async () => waits, subscribe: () => streamOf({ task: waits }, new A2AError('Overloaded')) }
  t.match(await rejection(collect(runOf(body, calls))), { code: 'Overloaded' })
})

await t.test('an offer without words says its terms', async t => {
  const offer = { offerId: 'o', round: 1, terms: { euros: 100 }, expiresAt: '2026-01-01T00:00:00.000Z' }
  const message: Message = { messageId: 'a', role: 'ROLE_AGENT', parts: [offerPart(offer)] }
  const events = await collect(runOf(SAYS, { send: () => streamOf({ message }) }))
  t.match(events, [
    { type: 'RUN_STARTED' },
    { type: 'TEXT_MESSAGE_START', messageId: 'a' },
    { delta: 'Terms: {"euros":100}' },
    { type: 'TEXT_MESSAGE_END' },
    { type: 'ACTIVITY_SNAPSHOT', activityType: 'offer', content: offer },
    { type: 'RUN_FINISHED' }
  ])
})

await t.test('a page that goes on with a text in two artifacts gets the rest of each', async t => {
  const go = deferred()
  const { runtime } = start(t, {
    async *work() {
      for (const artifactId of ['a', 'b']) {
        yield artifact({ artifactId, parts: [text(`${artifactId}1`)] })
        yield artifact({ artifactId, parts: [text(`${artifactId}2`)] }, { append: true })
      }
      await go.promise
      yield artifact({ artifactId: 'a', parts: [text('a3')] }, { append: true, lastChunk: true })
      yield artifact({ artifactId: 'b', parts: [text('b3')] }, { append: true, lastChunk: true })
    }
  })
  const handler = agUiHandler(runtime)
  const page = openThread('AG-UI 1.0', handler, { threadId: 'two' })
  const run = page.say('go')
  await until(() => textsOf(page).at(-1) === 'b1b2')
  const other = openThread('AG-UI 0.0.59', handler, { threadId: 'two', messages: page.messages.slice(0, 2) })
  const joined = other.run()
  await until(() => textsOf(other).at(-1) === 'b1b2')
  go.resolve(undefined)
  await Promise.all([run, joined])
  for (const { messages } of [page, other])
    t.match(
      messages.slice(1).map(({ content }) => content),
      ['a1a2a3', 'b1b2b3']
    )
})
