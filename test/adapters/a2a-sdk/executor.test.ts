import { Artifact, Message, Role, TaskState, type Part, type Task, type TaskStatus } from '@a2a-js/sdk'
import type { AgentExecutionEvent, AgentExecutor, ExecutionEventBus, RequestContext } from '@a2a-js/sdk/server'
import t, { type Test } from 'tap'
import { fromExecutor } from '../../../adapters/a2a-sdk/index.ts'
import { accepted, inputRequired, type CallContext } from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import {
  brief,
  closed,
  collect,
  deferred,
  next,
  reaches,
  rejection,
  rest,
  say,
  start,
  stateName,
  taskIn,
  textOf,
  type Deferred,
  until
} from '../../fixtures/runtime/runtime-helpers.ts'

type Execute = (request: RequestContext, bus: ExecutionEventBus) => Promise<void> | void

/** An executor out of a function, that counts what is called. */
function executor(execute: Execute, cancelTask: AgentExecutor['cancelTask'] = async () => {}) {
  const runs: RequestContext[] = []
  const canceled: string[] = []
  return {
    runs,
    canceled,
    execute: (request: RequestContext, bus: ExecutionEventBus) => {
      runs.push(request)
      return execute(request, bus) as Promise<void>
    },
    cancelTask: (taskId: string, bus: ExecutionEventBus) => {
      canceled.push(taskId)
      return cancelTask(taskId, bus)
    }
  }
}

const startExecutor = (
  t: Test,
  work: AgentExecutor,
  options?: Parameters<typeof start>[2],
  definition: Partial<Parameters<typeof start>[1]> = {}
) => start(t, { work: fromExecutor(work), ...definition }, options)

function words(text: string): Message {
  return { ...Message.fromJSON({ messageId: `a-${text}`, parts: [{ text }] }), role: Role.ROLE_AGENT }
}

function status(
  { taskId, contextId }: RequestContext,
  state: TaskState,
  text?: string,
  metadata?: Record<string, unknown>
): AgentExecutionEvent {
  const data: TaskStatus = { state, message: text === undefined ? undefined : words(text), timestamp: undefined }
  return { kind: 'statusUpdate', data: { taskId, contextId, status: data, metadata } }
}

function piece(
  { taskId, contextId }: RequestContext,
  artifactId: string,
  text: string,
  append = false,
  lastChunk = false
): AgentExecutionEvent {
  const artifact = Artifact.fromJSON({ artifactId, name: `${artifactId}.txt`, parts: [{ text }] })
  return { kind: 'artifactUpdate', data: { taskId, contextId, artifact, append, lastChunk, metadata: undefined } }
}

function snapshot({ taskId, contextId, task }: RequestContext, more: Partial<Task>): AgentExecutionEvent {
  return {
    kind: 'task',
    data: task
      ? { ...task, ...more }
      : { id: taskId, contextId, status: undefined, artifacts: [], history: [], metadata: undefined, ...more }
  }
}

const {
  TASK_STATE_SUBMITTED: SUBMITTED,
  TASK_STATE_WORKING: WORKING,
  TASK_STATE_COMPLETED: COMPLETED,
  TASK_STATE_FAILED: FAILED
} = TaskState
const {
  TASK_STATE_INPUT_REQUIRED: INPUT_REQUIRED,
  TASK_STATE_AUTH_REQUIRED: AUTH_REQUIRED,
  TASK_STATE_REJECTED: REJECTED,
  TASK_STATE_CANCELED: CANCELED
} = TaskState

const inState = (state: TaskState): Partial<Task> => ({ status: { state, message: undefined, timestamp: undefined } })

await t.test('an executor runs as work, and its events update the task', async t => {
  const typical = executor(async (request, bus) => {
    bus.publish(snapshot(request, inState(SUBMITTED)))
    bus.publish(status(request, WORKING))
    bus.publish(status(request, WORKING, 'thinking', { percent: 5 }))
    bus.publish(piece(request, 'a', 'one '))
    await rest()
    bus.publish(piece(request, 'a', 'two', true, true))
    bus.publish(status(request, COMPLETED, 'there you are', { took: 1 }))
    bus.finished()
    bus.publish(status(request, FAILED, 'too late'))
  })
  const { runtime, log } = startExecutor(t, typical)
  const events = await collect(runtime.sendStreamingMessage(say('hello')))
  t.strictSame(events.map(brief), [
    'task:submitted',
    'working',
    'working: thinking',
    'artifact: one ',
    'artifact: two',
    'completed: there you are'
  ])
  t.match(events.slice(2), [
    { statusUpdate: { metadata: { percent: 5 } } },
    { artifactUpdate: { artifact: { artifactId: 'a', name: 'a.txt' } } },
    { artifactUpdate: { append: true, lastChunk: true } },
    { statusUpdate: { metadata: { took: 1 } } }
  ])
  const [request] = typical.runs
  t.match(request, {
    taskId: request?.taskId,
    task: undefined,
    referenceTasks: [],
    userMessage: { role: Role.ROLE_USER, parts: [{ content: { value: 'hello' } }] }
  })
  t.strictSame([request?.userMessage.taskId, request?.userMessage.contextId], [request?.taskId, request?.contextId])
  t.strictSame([typical.canceled, log], [[], []])
})

await t.test('the first chunk of an executor does not append, and no chunk ends within a character', async t => {
  const { runtime } = startExecutor(
    t,
    executor((request, bus) => {
      bus.publish(piece(request, 'a', 'one \ud83d', true))
      bus.publish(piece(request, 'a', '\ude42', true, true))
      bus.publish(status(request, COMPLETED))
    })
  )
  const events = await collect(runtime.sendStreamingMessage(say('hello')))
  t.strictSame(events.map(brief), ['task:submitted', 'working', 'artifact: one ', 'artifact: 🙂', 'completed'])
  t.match(events.slice(2), [
    { artifactUpdate: { append: undefined, lastChunk: undefined } },
    { artifactUpdate: { append: true, lastChunk: true } },
    {}
  ])
})

await t.test('a whole task in one event gives its artifacts and its final state', async t => {
  const whole = executor(async (request, bus) => {
    const artifacts = [Artifact.fromJSON({ artifactId: 'a', parts: [{ text: 'one' }] })]
    bus.publish(snapshot(request, { artifacts }))
    bus.publish(status(request, WORKING, 'more'))
    bus.publish(piece(request, 'b', 'two'))
    bus.publish(piece(request, 'b', ' three', true))
    const both = [
      ...artifacts,
      Artifact.fromJSON({ artifactId: 'b', name: 'b.txt', parts: [{ text: 'two' }, { text: ' three' }] })
    ]
    bus.publish(snapshot(request, { artifacts: both, ...inState(WORKING) }))
    bus.publish(
      snapshot(request, {
        artifacts: [Artifact.fromJSON({ artifactId: 'a', parts: [{ text: 'other' }] })],
        ...inState(COMPLETED),
        metadata: { a: 1 }
      })
    )
  })
  const { runtime } = startExecutor(t, whole)
  const events = await collect(runtime.sendStreamingMessage(say('go')))
  t.strictSame(events.map(brief), [
    'task:submitted',
    'working',
    'artifact: one',
    'working: more',
    'artifact: two',
    'artifact:  three',
    'artifact: other',
    'completed'
  ])
  const [last] = events.slice(-1)
  t.match(last, { statusUpdate: { metadata: { a: 1 } } })
})

await t.test('a single message completes the task with it', async t => {
  const { runtime } = startExecutor(
    t,
    executor(async (_, bus) => {
      bus.publish({ kind: 'message', data: { ...words('hi'), metadata: { a: 1 }, extensions: ['urn:x'] } })
      bus.publish({ kind: 'message', data: words('again') })
    })
  )
  const task = taskIn(await runtime.sendMessage(say('hello')))
  t.strictSame([stateName(task.status.state), textOf(task.status.message)], ['completed', 'hi'])
  t.match(task.status.message, { metadata: { a: 1 }, extensions: ['urn:x'], role: 'ROLE_AGENT', taskId: task.id })
})

await t.test('the executor sets the final state of the task', async t => {
  const rows: [TaskState, string | undefined, string, string][] = [
    [FAILED, 'no paint', 'failed', 'no paint'],
    [FAILED, undefined, 'failed', 'The agent failed the task.'],
    [REJECTED, 'not my trade', 'rejected', 'not my trade'],
    [REJECTED, undefined, 'rejected', 'The agent rejected the task.'],
    [CANCELED, 'gave up', 'failed', 'gave up'],
    [CANCELED, undefined, 'failed', 'The agent canceled the task.']
  ]
  for (const [state, text, end, reason] of rows) {
    const { runtime } = startExecutor(
      t,
      executor((request, bus) => bus.publish(status(request, state, text)))
    )
    const task = taskIn(await runtime.sendMessage(say('go')))
    t.strictSame([stateName(task.status.state), textOf(task.status.message)], [end, reason])
  }
})

await t.test("the executor receives each request's metadata and configuration", async t => {
  const work = asking(INPUT_REQUIRED, 2)
  const { runtime } = startExecutor(t, work)
  const { id: taskId } = taskIn(
    await runtime.sendMessage({
      ...say('go', {}, { acceptedOutputModes: ['image/png'], historyLength: 0 }),
      metadata: { locale: 'fi' }
    })
  )
  await runtime.sendMessage(say('red', { taskId }))
  await runtime.sendMessage({ ...say('blue', { taskId }), metadata: { locale: 'sv' } })
  const configuration = {
    acceptedOutputModes: ['image/png'],
    historyLength: 0,
    returnImmediately: false,
    taskPushNotificationConfig: undefined
  }
  t.strictSame(
    work.runs.map(({ request: { metadata, configuration } }) => ({ metadata, configuration })),
    [
      { metadata: { locale: 'fi' }, configuration },
      { metadata: undefined, configuration: undefined },
      { metadata: { locale: 'sv' }, configuration: undefined }
    ]
  )
  const authorizing = asking(AUTH_REQUIRED)
  const { runtime: other } = startExecutor(t, authorizing)
  const { id } = taskIn(
    await other.sendMessage({ ...say('go', {}, { returnImmediately: true }), metadata: { locale: 'fi' } })
  )
  await reaches(other, id, 'auth-required')
  await other.authorized(id, { token: 'x' })
  await reaches(other, id, 'completed')
  t.equal(authorizing.runs.length, 2)
  for (const { request } of authorizing.runs)
    t.match(
      request,
      { metadata: { locale: 'fi' }, configuration: { returnImmediately: true } },
      'an authorization has no message, so that the last one stays'
    )
})

/** An executor that asks as often as it is told, and tells what it got. */
function asking(state: TaskState, times = 1): ReturnType<typeof executor> {
  const self = executor(async (request, bus) => {
    const { length } = self.runs
    bus.publish(snapshot(request, inState(request.task ? WORKING : SUBMITTED)))
    bus.publish(piece(request, `turn-${length}`, textOfMessage(request.userMessage)))
    if (length <= times) return bus.publish(status(request, state, length === 1 ? 'Which?' : undefined))
    bus.publish(status(request, COMPLETED))
  })
  return self
}

function textOfMessage({ parts }: Message): string {
  return parts.map(({ content }: Part) => (content?.$case === 'text' ? content.value : '?')).join()
}

await t.test('an answer to a question runs the executor again with the current task', async t => {
  const work = asking(INPUT_REQUIRED, 2)
  const { runtime } = startExecutor(t, work)
  const asked = taskIn(await runtime.sendMessage(say('boat')))
  t.strictSame([stateName(asked.status.state), textOf(asked.status.message)], ['input-required', 'Which?'])
  const again = taskIn(await runtime.sendMessage(say('red', { taskId: asked.id })))
  t.strictSame([stateName(again.status.state), textOf(again.status.message)], ['input-required', 'Input is required.'])
  const done = taskIn(await runtime.sendMessage(say('very red', { taskId: asked.id })))
  t.strictSame([stateName(done.status.state), done.artifacts?.map(textOf)], ['completed', ['boat', 'red', 'very red']])
  t.strictSame(
    work.runs.map(({ userMessage, taskId }) => [textOfMessage(userMessage), taskId]),
    [
      ['boat', asked.id],
      ['red', asked.id],
      ['very red', asked.id]
    ]
  )
  const [, second, third] = work.runs.map(({ task }) => task)
  t.match(second, { id: asked.id, status: { state: INPUT_REQUIRED }, artifacts: [{ artifactId: 'turn-1' }] })
  t.strictSame(third?.history.map(textOfMessage), ['boat', 'Which?', 'red', 'Input is required.', 'very red'])
})

await t.test('an authorization arrives out of band or as a message', async t => {
  const work = asking(AUTH_REQUIRED, 2)
  const { runtime } = startExecutor(t, work)
  const { id, status } = taskIn(await runtime.sendMessage(say('boat')))
  t.strictSame([stateName(status.state), textOf(status.message)], ['auth-required', 'Which?'])
  await runtime.authorized(id, { account: 7 })
  const again = await reaches(runtime, id, 'auth-required')
  t.equal(textOf(again.status.message), 'An authorization is required.')
  await runtime.sendMessage(say('here', { taskId: id }))
  await reaches(runtime, id, 'completed')
  t.strictSame(
    work.runs.map(({ userMessage, context }) => [textOfMessage(userMessage), context.state.get('authorization')]),
    [
      ['boat', undefined],
      ['boat', { account: 7 }],
      ['here', undefined]
    ]
  )
  t.equal(work.runs[1]?.task?.status?.state, AUTH_REQUIRED)
})

await t.test('events published after a question are dropped, answered or not', async t => {
  const late = deferred()
  const work = executor(async (request, bus) => {
    if (request.task) return bus.publish(status(request, COMPLETED, 'done'))
    bus.publish(status(request, INPUT_REQUIRED, 'Which?'))
    bus.publish(piece(request, 'late', 'late'))
    await late.promise
    bus.publish(status(request, FAILED, 'late'))
  })
  const { runtime } = startExecutor(t, work)
  const { id: taskId } = taskIn(await runtime.sendMessage(say('go')))
  const done = taskIn(await runtime.sendMessage(say('this', { taskId })))
  late.resolve()
  await rest()
  t.strictSame([done.artifacts, textOf((await runtime.getTask({ id: taskId })).status.message)], [undefined, 'done'])
})

await t.test('the executor knows the caller, the referenced tasks and the agreed terms', async t => {
  const work = executor((request, bus) => bus.publish(status(request, COMPLETED)))
  const { runtime } = startExecutor(t, work, {}, { negotiate: () => accepted({ price: 5 }) })
  const call: CallContext = { principal: 'ann', tenant: 'acme' }
  const { id, contextId = '' } = taskIn(await runtime.sendMessage(say('one'), call))
  await runtime.sendMessage(say('two', { contextId, referenceTaskIds: [id] }), call)
  await runtime.sendMessage(say('three'))
  t.strictSame(
    work.runs.map(({ context: { user, tenant }, referenceTasks }) => [
      user?.isAuthenticated,
      user?.userName,
      tenant,
      referenceTasks?.map(task => task.id)
    ]),
    [
      [true, 'ann', 'acme', []],
      [true, 'ann', 'acme', [id]],
      [false, '', '', []]
    ]
  )
  t.strictSame(work.runs[0]?.context.state.get('terms'), { price: 5 })
})

await t.test('an executor that returns without a final state fails its task with the reason', async t => {
  const executes: Execute[] = [
    () => {},
    async (request, bus) => bus.publish(piece(request, 'a', 'something')),
    (_, bus) => {
      bus.finished()
      return new Promise(() => {})
    }
  ]
  for (const execute of executes) {
    const { runtime } = startExecutor(t, executor(execute))
    const { status } = taskIn(await runtime.sendMessage(say('go')))
    t.equal(stateName(status.state), 'failed')
    t.match(textOf(status.message), 'The executor returned without an end')
  }
})

await t.test('an executor that throws fails its task, and the client does not see the error', async t => {
  const executes: Execute[] = [
    () => {
      throw new Error('secret')
    },
    async (request, bus) => {
      bus.publish(status(request, WORKING, 'so far'))
      throw new Error('secret')
    }
  ]
  for (const execute of executes) {
    const { runtime, log } = startExecutor(t, executor(execute))
    const { status } = taskIn(await runtime.sendMessage(say('go')))
    t.strictSame([stateName(status.state), textOf(status.message)], ['failed', 'The work ended with an error.'])
    t.match(log, [{ level: 'error', details: { error: { message: 'secret' } } }])
  }
})

await t.test('an invalid event of an executor fails the task with the reason', async t => {
  const circle: Record<string, unknown> = {}
  circle.self = circle
  const other = { taskId: 'other', contextId: 'c' } as RequestContext
  const rows: [string, (request: RequestContext) => unknown, string][] = [
    ['nothing', () => undefined, 'not an event of the SDK'],
    ['text', () => 'x', 'not an event of the SDK'],
    ['a kind that there is not', () => ({ kind: 'other' }), 'not an event of the SDK'],
    ['an event without data', () => ({ kind: 'statusUpdate' }), 'not an event of the SDK'],
    ['a status without a status', ({ taskId }) => ({ kind: 'statusUpdate', data: { taskId } }), 'without a status'],
    ['a status without a state', request => status(request, TaskState.TASK_STATE_UNSPECIFIED), 'without a valid state'],
    ['a state that there is not', request => status(request, 99 as TaskState), 'without a valid state'],
    ['a status of another task', () => status(other, COMPLETED), 'of task other'],
    ['another task', () => snapshot(other, {}), 'of task other'],
    ['an artifact of another task', () => piece(other, 'a', 'b'), 'of task other'],
    [
      'an artifact event without an artifact',
      ({ taskId }) => ({ kind: 'artifactUpdate', data: { taskId } }),
      'without an artifact'
    ],
    [
      'an artifact without parts',
      ({ taskId }) => ({ kind: 'artifactUpdate', data: { taskId, artifact: { artifactId: 'a' } } }),
      'artifact.parts'
    ],
    [
      'parts that are none',
      ({ taskId }) => ({ kind: 'artifactUpdate', data: { taskId, artifact: { artifactId: 'a', parts: [null] } } }),
      'not an event of the SDK'
    ],
    ['a message without parts', () => ({ kind: 'message', data: { parts: [] } }), 'message.parts'],
    [
      'a question without parts',
      request => ({
        kind: 'statusUpdate',
        data: { taskId: request.taskId, status: { state: INPUT_REQUIRED, message: { parts: [] } } }
      }),
      'message.parts'
    ],
    [
      'data that is no JSON',
      request => status(request, WORKING, undefined, circle),
      'is an object that contains itself'
    ]
  ]
  for (const [what, event, reason] of rows) {
    const { runtime } = startExecutor(
      t,
      executor((request, bus) => {
        bus.publish(event(request) as AgentExecutionEvent)
        bus.publish(status(request, COMPLETED))
      })
    )
    const task = taskIn(await runtime.sendMessage(say('go')))
    t.equal(stateName(task.status.state), 'failed', what)
    t.match(textOf(task.status.message), reason, what)
  }
})

await t.test('an event without a task id belongs to the current task', async t => {
  const { runtime } = startExecutor(
    t,
    executor((_, bus) => bus.publish(status({ taskId: '', contextId: '' } as RequestContext, COMPLETED)))
  )
  t.equal(stateName(taskIn(await runtime.sendMessage(say('go'))).status.state), 'completed')
})

await t.test('an executor receives a cancel once, running or waiting, and its later events are dropped', async t => {
  const stopped = deferred()
  const running = executor(
    async (request, bus) => {
      bus.publish(status(request, WORKING, 'busy'))
      await stopped.promise
      bus.publish(status(request, COMPLETED, 'after all'))
    },
    async (taskId, bus) => {
      bus.publish(status({ taskId, contextId: '' } as RequestContext, CANCELED))
      stopped.resolve()
    }
  )
  for (const [work, state] of [
    [running, 'working'],
    [asking(INPUT_REQUIRED), 'input-required']
  ] as const) {
    const { runtime, log } = startExecutor(t, work)
    const events = runtime.sendStreamingMessage(say('go', {}, { returnImmediately: true }))
    const { id } = taskIn(await next(events))
    await reaches(runtime, id, state)
    t.equal(stateName((await runtime.cancelTask({ id })).status.state), 'canceled')
    await until(() => work.canceled.length > 0)
    await rest()
    t.strictSame([work.canceled, log], [[id], []])
    t.equal(stateName((await runtime.getTask({ id })).status.state), 'canceled')
    await events.return()
  }
})

await t.test('an executor that cannot be canceled blocks nothing', async t => {
  const { runtime } = startExecutor(
    t,
    executor(
      () => new Promise(() => {}),
      () => Promise.reject(new Error('no'))
    )
  )
  const { id } = taskIn(await runtime.sendMessage(say('go', {}, { returnImmediately: true })))
  await reaches(runtime, id, 'working')
  t.equal(stateName((await runtime.cancelTask({ id })).status.state), 'canceled')
})

/** A store that outlives its runtime. */
function kept(): Store {
  return { ...memoryStore(), close: async () => {} }
}

await t.test('a finished turn does not run again after a restart, and repeats no event', async t => {
  const store = kept()
  const first = asking(INPUT_REQUIRED)
  const before = startExecutor(t, first, { store })
  const { id, artifacts } = taskIn(await before.runtime.sendMessage(say('boat')))
  await closed(before.runtime, before.clock)
  t.strictSame(first.canceled, [], 'closing the runtime is no cancel')
  const second = executor((request, bus) => {
    bus.publish(snapshot(request, {}))
    bus.publish(status(request, COMPLETED, textOfMessage(request.userMessage)))
  })
  const after = startExecutor(t, second, { store })
  const done = taskIn(await after.runtime.sendMessage(say('red', { taskId: id })))
  t.strictSame(
    [stateName(done.status.state), textOf(done.status.message), done.artifacts],
    ['completed', 'red', artifacts]
  )
  t.strictSame([first.runs.length, second.runs.length], [1, 1])
})

await t.test('an unfinished turn runs again after a restart', async t => {
  const store = kept()
  const gates: Deferred<void>[] = []
  const work = executor(async (request, bus) => {
    const gate = deferred()
    gates.push(gate)
    bus.publish(piece(request, 'a', 'one'))
    await gate.promise
    bus.publish(status(request, COMPLETED))
  })
  const before = startExecutor(t, work, { store })
  const { id } = taskIn(await before.runtime.sendMessage(say('boat', {}, { returnImmediately: true })))
  await until(async () => (await before.runtime.getTask({ id })).artifacts?.length === 1)
  await closed(before.runtime, before.clock)
  const { runtime } = startExecutor(t, work, { store })
  await until(() => gates.length === 2)
  for (const gate of gates) gate.resolve()
  const done = await reaches(runtime, id, 'completed')
  t.strictSame([done.artifacts?.map(textOf), work.canceled], [['one'], []])
})

await t.test('an invalid executor is refused at once', async t => {
  for (const wrong of [undefined, null, {}, { execute: () => {} }, { cancelTask: () => {} }]) {
    t.throws(() => fromExecutor(wrong as unknown as AgentExecutor), {
      name: 'TypeError',
      message: /takes an AgentExecutor/
    })
  }
})

await t.test('work reads its task as committed, and an erased task is not found', async t => {
  const store = memoryStore()
  const read: unknown[] = []
  const { runtime } = start(
    t,
    {
      work: async ({ ask, readTask }) => {
        await ask(inputRequired('Well?'))
        read.push(await readTask())
        read.push(await rejection(readTask()))
      }
    },
    { store: { ...store, readTask: async (...query) => (read.length > 0 ? undefined : store.readTask(...query)) } }
  )
  const { id: taskId } = taskIn(await runtime.sendMessage(say('go')))
  await runtime.sendMessage(say('yes', { taskId }, { returnImmediately: true })).catch(() => {})
  await until(() => read.length === 2)
  t.match(read, [{ id: taskId, status: { state: 'TASK_STATE_WORKING' } }, { code: 'TaskNotFound' }])
})
