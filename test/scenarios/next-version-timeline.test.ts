import * as sdk from '@a2a-js/sdk'
import { A2AService } from '@a2a-js/sdk/server/grpc'
import * as grpcJs from '@grpc/grpc-js'
import t, { type Test } from 'tap'
import { sqliteStore } from '../../adapters/storage/sqlite.ts'
import type { StreamResponse, Task, TimelineEntry } from '../../machines/protocol/objects.ts'
import type { NativeVersion } from '../../machines/protocol/versions.ts'
import type { CallContext } from '../../runtime/access/call-context.ts'
import type { AgentDefinition } from '../../runtime/agent/define-agent.ts'
import { accepted, artifact, inputRequired, reply, text } from '../../runtime/index.ts'
import type { WebhookSender } from '../../runtime/ports/webhook-sender.ts'
import { memoryStore } from '../../runtime/store/memory/memory-store.ts'
import { applyEvent, applyMessage, newTaskRecord, projectTask } from '../../runtime/store/task-record.ts'
import { steeredWork } from '../fixtures/runtime/agents.ts'
import { say, start, textOf, until } from '../fixtures/runtime/runtime-helpers.ts'
import { ASKING, DOORS, serveNext, taskOf } from '../fixtures/servers/next-version.ts'
import { NO_SQLITE } from '../fixtures/stores/sqlite.ts'

await t.test('an answer without a task, a cancellation and a subscription are as in 1.0, with numbers', async t => {
  const { work, run } = steeredWork()
  const { open } = await serveNext(t, {
    work,
    negotiate: ({ message }) => (textOf(message) === 'hi' ? reply('hello') : accepted())
  })
  let runs = 0
  for (const door of DOORS) {
    const caller = open(door)
    t.match((await caller.call('SendMessage', say('hi'))).result, { message: { parts: [{ text: 'hello' }] } }, door)
    const stream = caller.stream('SendStreamingMessage', say('hi'))
    t.match(await stream.next(), { message: { parts: [{ text: 'hello' }] } }, door)
    t.equal(await stream.next(), undefined, door)
    const { id } = taskOf((await caller.call('SendMessage', say('go', {}, { returnImmediately: true }))).result)
    await run((runs += 1) - 1)
    const events = caller.stream('SubscribeToTask', { id })
    const first = taskOf(await events.next())
    t.ok(first.timeline?.length, door)
    const canceled = (await caller.call('CancelTask', { id })).result as Task
    t.equal(canceled.status.state, 'TASK_STATE_CANCELED', door)
    t.equal(canceled.timeline?.at(-1)?.generation, canceled.generation, door)
    t.match(await events.next(), { statusUpdate: { generation: canceled.generation } }, door)
    t.equal(await events.next(), undefined, door)
  }
})

/** Produces artifacts in every way: whole, replaced, in chunks, marked as the last, and cut by the end of the task. */
const PRODUCING: Partial<AgentDefinition> = {
  async work({ emit, ask }) {
    const chunk = (artifactId: string, value: string, how: { append?: boolean; lastChunk?: boolean } = {}) =>
      emit(artifact({ artifactId, parts: [text(value)] }, how))
    chunk('whole', 'one')
    chunk('replaced', 'one')
    chunk('replaced', 'two')
    chunk('streamed', 'one')
    chunk('streamed', 'two', { append: true })
    chunk('streamed', 'three', { append: true, lastChunk: true })
    chunk('cut', 'one')
    chunk('cut', 'two', { append: true })
    await ask(inputRequired('More?'))
    return {}
  }
}

await t.test('an artifact has the generations in which it first appeared and became complete', async t => {
  const { open } = await serveNext(t, PRODUCING)
  for (const door of DOORS) {
    const caller = open(door)
    const stream = caller.stream('SendStreamingMessage', say('go'))
    const seen: Record<string, string[]> = {}
    let id = ''
    let contextId: string | undefined
    for (let event = await stream.next(); event; event = await stream.next()) {
      if ('task' in event) ({ id, contextId } = event.task)
      if (!('artifactUpdate' in event)) continue
      const { artifact, generation = '' } = event.artifactUpdate
      seen[artifact.artifactId] = [...(seen[artifact.artifactId] ?? []), generation]
    }
    const numbers = (task: Task) =>
      task.artifacts?.map(({ artifactId, startGeneration, endGeneration }) => [
        artifactId,
        startGeneration,
        endGeneration
      ])
    const wanted = [
      ['whole', seen['whole']?.[0], seen['whole']?.[0]],
      ['replaced', seen['replaced']?.[0], seen['replaced']?.[1]],
      ['streamed', seen['streamed']?.[0], seen['streamed']?.[2]],
      ['cut', seen['cut']?.[0], undefined]
    ]
    const read = async () => (await caller.call('GetTask', { id, timelineLength: 0 })).result as Task
    t.strictSame(numbers(await read()), wanted, door)
    await caller.call('SendMessage', say('no', { taskId: id }))
    t.strictSame(numbers(await read()), wanted, `${door}: an artifact that was cut has no end`)
    const { tasks } = (await caller.call('ListTasks', { includeArtifacts: true, timelineLength: 0, contextId }))
      .result as { tasks: Task[] }
    t.strictSame(tasks.map(numbers), [wanted], door)
    t.equal(tasks[0]?.timeline, undefined, door)
  }
})

await t.test(
  'a timeline has the messages of the client and the statuses, the latest of them if it is bounded',
  async t => {
    const { open } = await serveNext(t, ASKING)
    for (const door of DOORS) {
      const caller = open(door)
      const { id } = taskOf((await caller.call('SendMessage', say('go'))).result)
      const answered = taskOf((await caller.call('SendMessage', say('red', { taskId: id }))).result)
      const whole = ((await caller.call('GetTask', { id })).result as Task).timeline ?? []
      t.match(
        whole.map(({ message, status }) => textOf(message) ?? textOf(status?.message) ?? status?.state),
        [
          'go',
          'TASK_STATE_SUBMITTED',
          'TASK_STATE_WORKING',
          'Which color?',
          'red',
          'TASK_STATE_WORKING',
          'TASK_STATE_COMPLETED'
        ],
        door
      )
      // The status between is the artifact's event.
      t.strictSame(
        whole.map(({ generation }) => Number(generation)),
        [1, 2, 3, 4, 5, 6, 8],
        door
      )
      t.strictSame(answered.timeline, whole, door)
      for (const [timelineLength, kept] of [
        [0, undefined],
        [2, whole.slice(-2)],
        [99, whole]
      ] as const) {
        const { timeline, history } = (await caller.call('GetTask', { id, timelineLength })).result as Task
        t.strictSame(timeline, kept, `${door}: ${timelineLength}`)
        t.equal(history?.length, 3, `${door}: the history stays`)
        const { tasks } = (await caller.call('ListTasks', { timelineLength, contextId: answered.contextId }))
          .result as { tasks: Task[] }
        t.strictSame(tasks[0]?.timeline, kept, `${door}: ${timelineLength} in a list`)
        const sent = await caller.call('SendMessage', say('go', {}, { timelineLength }))
        t.equal(
          taskOf(sent.result).timeline?.length,
          kept && Math.min(4, kept.length),
          `${door}: ${timelineLength} in an answer`
        )
      }
    }
  }
)

await t.test('a stream of a message that continues a task begins with its whole timeline', async t => {
  const { open } = await serveNext(t, ASKING)
  for (const door of DOORS) {
    const caller = open(door)
    const { id } = taskOf((await caller.call('SendMessage', say('go'))).result)
    const stream = caller.stream('SendStreamingMessage', say('red', { taskId: id }))
    const events: StreamResponse[] = []
    for (let event = await stream.next(); event; event = await stream.next()) events.push(event)
    const [first, ...others] = events
    const seen = [...(taskOf(first).timeline ?? []), ...others.map(event => Object.values(event)[0] as TimelineEntry)]
    t.strictSame(
      seen.map(({ generation }) => Number(generation)),
      seen.map((_, place) => place + 1),
      door
    )
    t.match(seen[4], { message: { parts: [{ text: 'red' }] } }, door)
  }
})

await t.test('a task in a file has the same timeline as one in memory', { skip: NO_SQLITE }, async t => {
  const timelines: unknown[] = []
  for (const store of [memoryStore(), sqliteStore(`${t.testdir()}/tasks.db`)]) {
    let ids = 0
    const { runtime } = start(t, PRODUCING, { versions: ['1.0', '1.1'], store, ids: () => `id-${(ids += 1)}` })
    const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'go' }] }
    const { id } = taskOf(await runtime.sendMessage({ message }, { version: '1.1' }))
    await runtime.sendMessage({ message: { ...message, messageId: 'n', taskId: id } }, { version: '1.1' })
    timelines.push([await runtime.getTask({ id }, { version: '1.1' }), await runtime.listTasks({}, { version: '1.1' })])
  }
  t.strictSame(timelines[1], timelines[0])
  t.match(timelines[0], [
    { timeline: [{ message: {} }], artifacts: [{ startGeneration: '4' }] },
    { tasks: [{ timeline: [{}] }] }
  ])
})

await t.test('a message of before messages were numbered stands in the timeline without a number', async t => {
  const record = newTaskRecord({ tenant: '', principal: 'anna', contextId: 'c' }, 't', true)
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'go' }] }
  const status = { state: 'TASK_STATE_SUBMITTED' as const }
  applyMessage(record, { message, taskId: 't', generation: 0 })
  applyEvent(record, { taskId: 't', generation: 1, update: { statusUpdate: { taskId: 't', contextId: 'c', status } } })
  applyMessage(record, { message, taskId: 't', generation: 2, isNumbered: true })
  t.strictSame(projectTask(record).task.timeline, [
    { message },
    { status, generation: '1' },
    { message, generation: '2' }
  ])
})

await t.test('a webhook gets the form of the version in which it was registered', async t => {
  const bodies: { url: string; event: object }[] = []
  const push: WebhookSender = {
    faultOf: async () => undefined,
    async post({ url, body }) {
      bodies.push({ url, event: JSON.parse(body) as object })
      return { status: 200 }
    }
  }
  const { runtime } = start(t, ASKING, { versions: ['1.0', '1.1'], push })
  const { id: taskId } = taskOf(await runtime.sendMessage(say('go')))
  for (const version of ['1.0', '1.1'])
    await runtime.createTaskPushNotificationConfig({ taskId, url: `https://${version}.example/` }, { version })
  const webhook = { taskPushNotificationConfig: { url: 'https://sent.example/' } }
  await runtime.sendMessage(say('red', { taskId }, webhook), { version: '1.1' })
  const told = (host: string) =>
    bodies.flatMap(({ url, event }) => (url.includes(host) ? (Object.values(event) as Task[]) : []))
  await until(() =>
    ['1.0', '1.1', 'sent'].every(host => told(host).some(({ status }) => status?.state === 'TASK_STATE_COMPLETED'))
  )
  t.strictSame(
    told('1.0').map(({ generation }) => generation),
    told('1.0').map(() => undefined)
  )
  for (const host of ['1.1', 'sent']) {
    const generations = told(host).map(({ generation }) => Number(generation))
    t.ok(generations.length > 1 && generations.every(generation => generation > 1), host)
  }
})

await t.test('a page with timelines has half as much as one without, and large answers wait for memory', async t => {
  const { runtime } = start(
    t,
    { work: async ({ message }) => ({ artifact: text((textOf(message) ?? '').repeat(300 * 1024)) }) },
    { versions: ['1.0', '1.1'], limits: { taskBytes: 16 * 1024 * 1024 } }
  )
  for (const _ of [1, 2, 3, 4]) await runtime.sendMessage(say('x'))
  const large = taskOf(await runtime.sendMessage(say('xxxxx', { contextId: 'large' })))
  const reserved: number[] = []
  const call = (version: string): CallContext => ({ version, budget: bytes => void reserved.push(bytes) })
  const pages = async (version: string) => {
    const counts: number[] = []
    let pageToken = ''
    do {
      const page = await runtime.listTasks({ includeArtifacts: true, pageToken }, call(version))
      counts.push(page.tasks.length)
      pageToken = page.nextPageToken
    } while (pageToken !== '')
    return counts
  }
  t.ok(Math.max(...(await pages('1.0'))) > 1)
  t.strictSame(await pages('1.1'), [1, 1, 1, 1, 1])
  /** How often memory was waited for. */
  const waits = async (request: Promise<unknown>) => {
    reserved.splice(0)
    await request
    return reserved.length
  }
  const contextId = 'large'
  t.equal(await waits(runtime.listTasks({ contextId }, call('1.1'))), 1, 'a large page')
  t.equal(await waits(runtime.listTasks({ contextId, timelineLength: 0 }, call('1.1'))), 1, 'its history alone')
  t.equal(await waits(runtime.getTask({ id: large.id }, call('1.1'))), 1, 'a large task')
  t.equal(await waits(runtime.sendMessage(say(''), call('1.1'))), 0, 'a small answer')
  const { tasks } = await runtime.listTasks({ pageSize: 1 }, call('1.1'))
  t.equal(await waits(runtime.getTask({ id: tasks[0]?.id ?? '' }, call('1.1'))), 0, 'a small task')
})
/** What a script of requests of 1.0 gets over every binding, as bytes, from an agent that speaks these versions. */
async function answersIn10(t: Test, versions: readonly NativeVersion[]): Promise<string[]> {
  let ids = 0
  const { origin, grpcAddress, open, runtime } = await serveNext(t, ASKING, {
    versions,
    ids: () => `id-${(ids += 1)}`
  })
  const answers: string[] = []
  let sent = 0
  const message = (more: object = {}) => ({
    message: { messageId: `m-${(sent += 1)}`, role: 'ROLE_USER', parts: [{ text: 'red' }], ...more }
  })
  const post = async (path: string, body: object, method = 'POST') => {
    const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' }
    const answer = await fetch(`${origin}${path}`, {
      method,
      headers,
      ...(method === 'POST' && { body: JSON.stringify(body) })
    })
    const { date: _, ...kept } = Object.fromEntries(answer.headers)
    answers.push(JSON.stringify([answer.status, kept, await answer.text()]))
  }
  const rpc = (method: string, params: object) => post('/', { jsonrpc: '2.0', id: 1, method, params })
  const { raw } = open('WebSocket', { version: '1.0' })
  const frame = async (method: string, params: object) => {
    answers.push(
      JSON.stringify(await raw?.(JSON.stringify({ jsonrpc: '2.0', id: `f-${answers.length}`, method, params })))
    )
  }
  const client = new grpcJs.Client(grpcAddress, grpcJs.credentials.createInsecure())
  t.teardown(() => client.close())
  const base64 = (bytes: Buffer) => bytes.toString('base64')
  const call = (method: string, params: object, bytes: (params: object) => Buffer) =>
    new Promise<void>(resolve => {
      const metadata = new grpcJs.Metadata()
      metadata.set('a2a-version', '1.0')
      client.makeUnaryRequest(`/lf.a2a.v1.A2AService/${method}`, bytes, base64, params, metadata, (error, value) => {
        answers.push(error ? `${error.code} ${error.details}` : JSON.stringify(value))
        resolve()
      })
    })
  const { sendMessage, getTask, listTasks, cancelTask } = A2AService
  const codecs: Readonly<Record<string, (params: object) => Buffer>> = {
    SendMessage: params => sendMessage.requestSerialize(sdk.SendMessageRequest.fromJSON(params)),
    GetTask: params => getTask.requestSerialize(sdk.GetTaskRequest.fromJSON(params)),
    ListTasks: params => listTasks.requestSerialize(sdk.ListTasksRequest.fromJSON(params)),
    CancelTask: params => cancelTask.requestSerialize(sdk.CancelTaskRequest.fromJSON(params))
  }
  const rest = (method: string, { id, ...params }: { readonly id?: string; readonly [member: string]: unknown }) =>
    method === 'SendMessage'
      ? post('/message:send', params)
      : method === 'CancelTask'
        ? post(`/tasks/${id}:cancel`, {})
        : post(`/tasks${id === undefined ? '?includeArtifacts=true' : `/${id}`}`, {}, 'GET')
  for (const ask of [
    rpc,
    rest,
    frame,
    (method: string, params: object) => call(method, params, codecs[method] as never)
  ]) {
    await ask('SendMessage', message({ contextId: 'c' }))
    const { tasks } = await runtime.listTasks({ pageSize: 1 })
    const id = tasks[0]?.id ?? ''
    await ask('GetTask', { id })
    await ask('SendMessage', message({ taskId: id }))
    await ask('GetTask', { id, historyLength: 1, timelineLength: 'x' })
    await ask('ListTasks', { includeArtifacts: true })
    await ask('CancelTask', { id })
    await ask('GetTask', { id: 'nobody' })
    await ask('SendMessage', message({ taskId: id }))
  }
  const metadata = new grpcJs.Metadata()
  metadata.set('a2a-version', '1.0')
  const events = client.makeServerStreamRequest(
    '/lf.a2a.v1.A2AService/SendStreamingMessage',
    codecs['SendMessage'] as never,
    base64,
    message(),
    metadata
  )
  for await (const event of events) answers.push(String(event))
  for (const path of ['/message:stream', '/tasks/id-1:subscribe', '/live']) await post(path, message())
  await rpc('SendStreamingMessage', message())
  await rpc('SendLiveMessage', {})
  return answers
}

await t.test('every answer of 1.0 is byte for byte the same beside 1.1, over every binding', async t => {
  const [alone, beside] = [await answersIn10(t, ['1.0']), await answersIn10(t, ['1.0', '1.1'])]
  t.ok(alone.length > 30)
  t.strictSame(beside, alone)
  t.match(alone.join(), 'TASK_STATE_COMPLETED')
})
