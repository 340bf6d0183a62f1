import { ClientFactory, ClientFactoryOptions, type Client } from '@a2a-js/sdk/client'
import { PushNotificationNotSupportedError, TaskNotFoundError, UnsupportedOperationError } from '@a2a-js/sdk/errors'
import { Role, TaskState, type Message, type SendMessageRequest, type StreamResponse, type Task } from '@a2a-js/sdk'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocketServer } from 'ws'
import { z } from 'zod'
import { WebSocketTransport, WebSocketTransportFactory } from '../../../adapters/a2a-sdk/websocket-transport.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import sailboat from '../../../examples/sailboat.ts'
import { WEBSOCKET_BINDING } from '../../../machines/protocol/uris.ts'
import { createRuntime, defineAgent, negotiation, offer, type Agent } from '../../../runtime/index.ts'

/** Serves an agent, the sailboat's if no other, and makes the official client for it out of its card. */
async function officialClient(t: Test, agent: Agent = sailboat): Promise<Client> {
  const runtime = createRuntime({ agent })
  t.teardown(() => runtime.close())
  const served = await serve(runtime, { port: 0, http: false })
  t.teardown(() => served.close())
  const factory = new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports: [new WebSocketTransportFactory()] })
  )
  const client = await factory.createFromUrl(served.url.replace('ws:', 'http:'))
  t.teardown(() => transportOf(client).close())
  return client
}

function transportOf(client: Client): WebSocketTransport {
  const { transport } = client
  if (transport instanceof WebSocketTransport) return transport
  throw new TypeError(`The client speaks ${transport.protocolName}.`)
}

let messages = 0

function saying(text: string, more: Partial<Message> = {}): SendMessageRequest {
  const content = { $case: 'text' as const, value: text }
  const part = { content, metadata: undefined, filename: '', mediaType: '' }
  const message = {
    messageId: `m-${(messages += 1)}`,
    role: Role.ROLE_USER,
    parts: [part],
    contextId: '',
    taskId: '',
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...more
  }
  return { tenant: '', message, configuration: undefined, metadata: undefined }
}

function taskIn(answer: Message | Task): Task {
  if ('status' in answer) return answer
  throw new TypeError('The agent answered with a message.')
}

function kindsOf(events: StreamResponse[]): (string | undefined)[] {
  return events.map(({ payload }) => payload?.$case)
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

await t.test('the official client', async t => {
  await t.test('chooses the WebSocket binding from the card, and holds the sailboat conversation over it', async t => {
    const client = await officialClient(t)
    t.equal(client.transport.protocolName, WEBSOCKET_BINDING)
    t.equal(client.transport.protocolVersion, '1.0')

    const hello = await client.sendMessage(saying('hello'))
    t.match(hello, { role: Role.ROLE_AGENT, parts: [{ content: { $case: 'text', value: /What shall I draw/ } }] })
    const { contextId } = hello

    const first = taskIn(await client.sendMessage(saying('a sailboat', { contextId })))
    t.equal(first.status?.state, TaskState.TASK_STATE_COMPLETED)
    const events = await collect(
      client.sendMessageStream(saying('make it red', { contextId, referenceTaskIds: [first.id] }))
    )
    t.same(kindsOf(events), ['task', 'statusUpdate', 'statusUpdate', 'artifactUpdate', 'statusUpdate'])
    const [, , , update] = events
    const red = update?.payload?.$case === 'artifactUpdate' ? update.payload.value.artifact : undefined
    t.equal(red?.name, first.artifacts[0]?.name)
    t.not(red?.artifactId, first.artifacts[0]?.artifactId)
    const content = red?.parts[0]?.content
    t.same(
      content?.$case === 'raw' && Array.from(content.value.subarray(1, 4)),
      Array.from(Buffer.from('PNG')),
      'the bytes of a PNG'
    )
  })

  await t.test('negotiates by data parts: it reads an offer, counters it and accepts the next', async t => {
    const uri = 'urn:taskchart:extension:negotiation:1'
    const respond = negotiation({
      terms: z.object({ euros: z.number() }),
      respond: ({ proposal }) => offer({ euros: proposal ? proposal.euros + 5 : 40 })
    })
    const agent = defineAgent({
      card: { name: 'Bargainer', description: 'Bargains.' },
      negotiate: respond,
      work: ({ terms }) => ({ artifact: `${terms.euros} euros` })
    })
    const client = await officialClient(t, agent)
    const card = await client.getAgentCard()
    t.match(
      card.capabilities?.extensions.find(extension => extension.uri === uri),
      { params: { rounds: 5, offerMs: 600_000, terms: { type: 'object' } } }
    )
    const moving = (move: object, contextId: string) =>
      client.sendMessage(
        saying('', {
          contextId,
          parts: [
            { content: { $case: 'data', value: { [uri]: move } }, metadata: undefined, filename: '', mediaType: '' }
          ]
        })
      )
    const offerOf = (answer: Message | Task) => {
      if ('status' in answer) throw new TypeError('The agent answered with a task.')
      const content = answer.parts.at(-1)?.content
      return Object(content?.$case === 'data' && content.value)[uri].offer
    }

    const hello = await client.sendMessage(saying('hello'))
    t.match(offerOf(hello), { round: 1, terms: { euros: 40 } })
    const { contextId } = hello
    const second = offerOf(await moving({ propose: { terms: { euros: 30 } } }, contextId))
    t.match(second, { round: 3, terms: { euros: 35 } })
    const task = taskIn(await moving({ accept: { offerId: second.offerId } }, contextId))
    t.match(task, { status: { state: TaskState.TASK_STATE_COMPLETED }, metadata: { [uri]: { terms: { euros: 35 } } } })
    await t.rejects(moving({ propose: { terms: { euros: '30' } } }, contextId), { name: 'RequestMalformedError' })
  })

  await t.test('reads, cancels and subscribes to tasks', async t => {
    const client = await officialClient(t)
    const { contextId } = taskIn(await client.sendMessage(saying('a sailboat')))
    taskIn(await client.sendMessage(saying('another sailboat', { contextId })))
    const asked = taskIn(await client.sendMessage(saying('make it blue', { contextId })))
    t.equal(asked.status?.state, TaskState.TASK_STATE_INPUT_REQUIRED)
    t.equal((await client.getTask({ id: asked.id, tenant: '', historyLength: undefined })).id, asked.id)
    const watched = client.resubscribeTask({ id: asked.id, tenant: '' })
    t.equal((await watched.next()).value?.payload?.$case, 'task')
    const rest = collect(watched)
    const canceled = await client.cancelTask({ id: asked.id, tenant: '', metadata: undefined })
    t.equal(canceled.status?.state, TaskState.TASK_STATE_CANCELED)
    t.same(kindsOf(await rest), ['statusUpdate'])
  })

  await t.test('lists tasks page by page, by context and state, with artifacts on request', async t => {
    const client = await officialClient(t)
    const all = {
      tenant: '',
      contextId: '',
      status: TaskState.TASK_STATE_UNSPECIFIED,
      pageToken: '',
      statusTimestampAfter: undefined
    }
    const one = taskIn(await client.sendMessage(saying('a sailboat')))
    const { contextId } = one
    const two = taskIn(await client.sendMessage(saying('another sailboat', { contextId })))
    taskIn(await client.sendMessage(saying('a sailboat')))
    const first = await client.listTasks({ ...all, contextId, pageSize: 1, includeArtifacts: true })
    t.match(first, {
      tasks: [{ contextId, status: { state: TaskState.TASK_STATE_COMPLETED } }],
      pageSize: 1,
      totalSize: 2
    })
    t.equal(first.tasks[0]?.artifacts.length, 1)
    const second = await client.listTasks({
      ...all,
      contextId,
      pageSize: 1,
      pageToken: first.nextPageToken,
      historyLength: 0
    })
    t.match(second, { tasks: [{ artifacts: [], history: [] }], nextPageToken: '' })
    t.same(new Set([...first.tasks, ...second.tasks].map(({ id }) => id)), new Set([one.id, two.id]))
    const whole = await client.listTasks(all)
    t.match([whole.tasks.length, whole.pageSize, whole.totalSize, whole.nextPageToken], [3, 50, 3, ''])
    t.equal((await client.listTasks({ ...all, status: TaskState.TASK_STATE_WORKING })).totalSize, 0)
    t.equal(
      (await client.listTasks({ ...all, statusTimestampAfter: whole.tasks[0]?.status?.timestamp })).tasks[0]?.id,
      whole.tasks[0]?.id
    )
    await t.rejects(client.listTasks({ ...all, pageToken: first.nextPageToken }), { name: 'RequestMalformedError' })
  })

  await t.test('receives errors as its own classes', async t => {
    const client = await officialClient(t)
    const { id: taskId } = taskIn(await client.sendMessage(saying('a sailboat')))
    await t.rejects(client.sendMessage(saying('make it red', { taskId })), UnsupportedOperationError)
    await t.rejects(collect(client.sendMessageStream(saying('make it red', { taskId }))), UnsupportedOperationError)
    await t.rejects(client.getTask({ id: 'nobody', tenant: '', historyLength: undefined }), TaskNotFoundError)
  })

  await t.test("receives the specification's error for operations that the agent does not support", async t => {
    const transport = transportOf(await officialClient(t))
    const config = {
      tenant: '',
      id: 'p',
      taskId: 't',
      url: 'https://example.com/',
      token: '',
      authentication: undefined
    }
    await t.rejects(transport.createTaskPushNotificationConfig(config), PushNotificationNotSupportedError)
    await t.rejects(
      transport.getTaskPushNotificationConfig({ tenant: '', taskId: 't', id: 'p' }),
      PushNotificationNotSupportedError
    )
    await t.rejects(
      transport.listTaskPushNotificationConfig({ tenant: '', taskId: 't', pageSize: 0, pageToken: '' }),
      PushNotificationNotSupportedError
    )
    await t.rejects(
      transport.deleteTaskPushNotificationConfig({ tenant: '', taskId: 't', id: 'p' }),
      PushNotificationNotSupportedError
    )
    await t.rejects(transport.getExtendedAgentCard({ tenant: '' }), UnsupportedOperationError)
  })

  await t.test('sends the service parameters of a call in its frame', async t => {
    const transport = transportOf(await officialClient(t))
    const parameters = { 'A2A-Extensions': 'urn:example:other', 'A2A-Version': '9.9' }
    await t.rejects(
      transport.getTask({ id: 'x', tenant: '', historyLength: undefined }, { serviceParameters: parameters }),
      { name: 'VersionNotSupportedError' }
    )
  })

  await t.test('refuses an answer that is neither a task nor a message', async t => {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    t.teardown(() => server.close())
    await once(server, 'listening')
    server.on('connection', socket =>
      socket.on('message', (data: Buffer) => {
        const { id } = JSON.parse(data.toString()) as { id: number }
        socket.send(JSON.stringify({ jsonrpc: '2.0', id, result: {} }))
      })
    )
    const { port } = server.address() as AddressInfo
    const transport = await new WebSocketTransportFactory().create(`ws://127.0.0.1:${port}/`)
    t.teardown(() => transport.close())
    await t.rejects(transport.sendMessage(saying('hello')), {
      name: 'TypeError',
      message: /neither a task nor a message/
    })
    await transport.deleteTaskPushNotificationConfig({ tenant: '', taskId: 't', id: 'p' })
  })

  await t.test('stops waiting when its signal aborts', async t => {
    const transport = transportOf(await officialClient(t))
    const signal = AbortSignal.abort(new TypeError('enough'))
    await t.rejects(transport.getTask({ id: 'x', tenant: '', historyLength: undefined }, { signal }), {
      message: 'enough'
    })
  })
})
