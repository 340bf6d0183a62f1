import * as grpcJs from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import t, { type Test } from 'tap'
import { connect, type AgentClient } from '../../../../adapters/client/connect.ts'
import { grpc } from '../../../../adapters/grpc/index.ts'
import { serve } from '../../../../adapters/serve/serve.ts'
import type { StreamResponse, Task } from '../../../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../../../machines/protocol/uris.ts'
import { httpAgent } from '../../../fixtures/peers/scripted-http.ts'
import { steeredWork } from '../../../fixtures/runtime/agents.ts'
import { brief, collect, refusal, say, start, taskIn, until } from '../../../fixtures/runtime/runtime-helpers.ts'

const PROTO = 'test/fixtures/protocol/a2a-1.1.proto'

/** An agent over gRPC by the proto of 1.1, without the SDK: each method answers with its object, or a list of events. */
async function protoAgent(
  t: Test,
  answers: Readonly<Record<string, unknown>>
): Promise<{ client: AgentClient; requests: unknown[] }> {
  const definition = loadSync(PROTO, { longs: String, enums: String, keepCase: false })['lf.a2a.v1.A2AService']
  const requests: unknown[] = []
  const unary =
    (name: string) => (call: grpcJs.ServerUnaryCall<unknown, unknown>, done: grpcJs.sendUnaryData<unknown>) => {
      requests.push(call.request)
      t.equal(call.metadata.get('a2a-version')[0], '1.1')
      done(null, answers[name])
    }
  const streaming = (name: string) => (call: grpcJs.ServerWritableStream<unknown, unknown>) => {
    requests.push(call.request)
    for (const event of answers[name] as readonly unknown[]) call.write(event)
    call.end()
  }
  const server = new grpcJs.Server()
  t.teardown(() => server.forceShutdown())
  server.addService(definition as grpcJs.ServiceDefinition, {
    GetTask: unary('GetTask'),
    ListTasks: unary('ListTasks'),
    CancelTask: unary('CancelTask'),
    SendMessage: unary('SendMessage'),
    SendStreamingMessage: streaming('SendStreamingMessage'),
    SubscribeToTask: streaming('SubscribeToTask')
  })
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', grpcJs.ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(port)
    )
  )
  const { url } = await httpAgent(t, { version: '1.1', binding: 'GRPC', address: `127.0.0.1:${port}` })
  const client = await connect(url, { random: () => 0 })
  t.teardown(() => client.close())
  t.match(client, { version: '1.1', binding: 'GRPC' })
  return { client, requests }
}

const working = { state: 'TASK_STATE_WORKING' }
const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'a boat' }] }
const artifact = { artifactId: 'a', parts: [{ text: 'boat' }], startGeneration: '3', endGeneration: '4' }
const whole = {
  id: 't',
  contextId: 'c',
  status: working,
  artifacts: [artifact, { artifactId: 'b', parts: [{ text: 'ship' }] }],
  generation: '9007199254740993',
  timeline: [{ message, generation: '1' }, { status: working, generation: '2' }, { generation: '3' }]
}

await t.test('over gRPC the client reads what 1.1 adds to objects', async t => {
  const place = { taskId: 't', contextId: 'c' }
  const events = [
    { task: { ...whole, generation: '4' } },
    { statusUpdate: { ...place, status: working, generation: '5' } },
    { artifactUpdate: { ...place, artifact, append: true, generation: '6' } },
    { statusUpdate: { ...place, status: { state: 'TASK_STATE_COMPLETED' }, generation: '7' } }
  ]
  const { client } = await protoAgent(t, {
    GetTask: whole,
    CancelTask: { ...whole, timeline: [] },
    ListTasks: { tasks: [whole, { id: 'u', status: working, generation: '2' }], pageSize: 2, totalSize: 2 },
    SendMessage: { task: whole },
    SendStreamingMessage: events,
    SubscribeToTask: [{ artifactUpdate: place }, ...events]
  })
  t.strictSame(await client.getTask({ id: 't' }), whole)
  const { timeline: _, ...others } = whole
  t.strictSame(await client.cancelTask({ id: 't' }), others)
  t.strictSame((await client.listTasks({})).tasks, [whole, { id: 'u', status: working, generation: '2' }])
  t.strictSame(await client.sendMessage(say('x')), { task: whole })
  t.strictSame(await collect(client.sendStreamingMessage(say('x'))), events)
  t.strictSame(await collect(client.subscribeToTask({ id: 't' })), events, 'an event without an artifact is skipped')
})

await t.test('over gRPC a task without the members of 1.1, and a message, are read as they are', async t => {
  const bare = { id: 't', status: working }
  const reply = { messageId: 'r', role: 'ROLE_AGENT', parts: [{ text: 'hi' }] }
  const { client } = await protoAgent(t, {
    GetTask: bare,
    SendMessage: { message: reply },
    SendStreamingMessage: [{ message: reply }]
  })
  t.strictSame(await client.sendMessage(say('x')), { message: reply })
  t.strictSame(await collect(client.sendStreamingMessage(say('x'))), [{ message: reply }])
  t.strictSame(await client.getTask({ id: 't' }), bare)
  t.equal((await refusal(client.getTask({ id: 't' }, { currentGeneration: 1 }))).code, 'UnsupportedOperation')
})

await t.test('over gRPC the client writes what 1.1 adds to requests', async t => {
  const { client, requests } = await protoAgent(t, {
    GetTask: whole,
    ListTasks: { tasks: [] },
    SendMessage: { task: whole },
    SendStreamingMessage: [{ task: { ...whole, status: { state: 'TASK_STATE_COMPLETED' } } }]
  })
  await client.getTask({ id: 't', historyLength: 2, timelineLength: 3 }, { currentGeneration: '9007199254740993' })
  await client.getTask({ id: 't' }, { currentGeneration: 0 })
  await client.listTasks({ timelineLength: 0 })
  const modes = ['text/plain', 'image/png']
  const request = {
    ...say('x', { taskId: 't' }),
    configuration: { acceptedOutputModes: modes, historyLength: 1, returnImmediately: true, timelineLength: 4 }
  }
  await client.sendMessage(request, { ifGenerationMatch: 7 })
  await client.sendMessage(say('x', { taskId: 't' }), { ifGenerationMatch: 0 })
  await client.sendMessage({ ...say('x'), configuration: { acceptedOutputModes: modes } })
  await client.sendMessage(say('x'))
  await collect(client.sendStreamingMessage(request, { ifGenerationMatch: '8' }))
  const plain = requests.map(request => {
    const { configuration, message: _, ...others } = request as { configuration?: object; message?: unknown }
    return configuration ?? others
  })
  t.match(plain, [
    { id: 't', historyLength: 2, timelineLength: 3, currentGeneration: '9007199254740993' },
    { id: 't', currentGeneration: '0' },
    { timelineLength: 0 },
    {
      acceptedOutputModes: modes,
      historyLength: 1,
      returnImmediately: true,
      timelineLength: 4,
      ifGenerationMatch: '7'
    },
    { ifGenerationMatch: '0' },
    { acceptedOutputModes: modes },
    {},
    { acceptedOutputModes: modes, historyLength: 1, timelineLength: 4, ifGenerationMatch: '8' }
  ])
  t.notOk('currentGeneration' in (requests[2] as object))
  t.strictSame((plain[3] as { acceptedOutputModes: unknown }).acceptedOutputModes, modes)
  t.strictSame((plain[7] as { acceptedOutputModes: unknown }).acceptedOutputModes, modes)
})

await t.test('over gRPC 1.1 is used if the card of taskchart offers it, with the same calls', async t => {
  for (const versions of [['1.0', '1.1'], ['1.0']] as const) {
    const { work, run } = steeredWork()
    const { runtime } = start(t, { work }, { versions: [...versions] })
    const served = await serve(runtime, { port: 0, grpc: grpc({ port: 0 }) })
    t.teardown(() => served.close())
    const client = await connect(served.url, { bindings: ['GRPC'] })
    t.teardown(() => client.close())
    const isNext = versions.length > 1
    t.match(client, { binding: 'GRPC', version: isNext ? '1.1' : '1.0' })
    const events = client.sendStreamingMessage(say('go'))
    const { id } = taskIn((await events.next()).value as StreamResponse)
    const read = await until(async () => {
      const task: Task = await client.getTask({ id })
      return task.status.state === 'TASK_STATE_WORKING' && task
    })
    t.equal(read.generation !== undefined, isNext)
    const { generation } = (read.metadata?.[RELIABILITY_EXTENSION] ?? {}) as { generation: number }
    t.equal(read.generation ?? String(generation), String(generation))
    t.strictSame(Object.keys(read.metadata ?? {}), [RELIABILITY_EXTENSION])
    t.match(await refusal(client.sendMessage(say('x', { taskId: id }), { ifGenerationMatch: generation + 7 })), {
      code: 'TaskGenerationMismatch'
    })
    const poll = client.getTask({ id }, { currentGeneration: generation })
    ;(await run(0)).resolve({ artifact: 'a boat' })
    t.match(await poll, { id })
    t.equal(brief((await collect(events)).at(-1) as StreamResponse), 'completed')
  }
})
