import * as sdk from '@a2a-js/sdk'
import {
  Client,
  JsonRpcTransportFactory,
  RestTransportFactory,
  type RequestOptions,
  type Transport
} from '@a2a-js/sdk/client'
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc'
import * as sdkErrors from '@a2a-js/sdk/errors'
import { ServerCallContext, UnauthenticatedUser, type User } from '@a2a-js/sdk/server'
import { jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express'
import { A2AService, grpcService } from '@a2a-js/sdk/server/grpc'
import * as wire from '@bufbuild/protobuf/wire'
import * as grpc from '@grpc/grpc-js'
import express, { type Request } from 'express'
import { execFile } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { expressErrors, toRequestHandler, whileConnected } from '../../../adapters/a2a-sdk/index.ts'
import type { RequestHandlerOptions } from '../../../adapters/a2a-sdk/request-handler.ts'
import { statusDetailsOf } from '../../../adapters/client/transports/official/grpc.ts'
import { grpcErrors } from '../../../adapters/grpc/index.ts'
import { webhooks } from '../../../adapters/push/webhooks.ts'
import { A2AError, ERRORS, type ErrorCode } from '../../../machines/protocol/errors.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import type { CallContext } from '../../../runtime/access/call-context.ts'
import {
  accepted,
  artifact,
  inputRequired,
  progress,
  reply,
  type Runtime,
  type WorkFunction
} from '../../../runtime/index.ts'
import { steeredWork } from '../../fixtures/runtime/agents.ts'
import { httpReceiver } from '../../fixtures/peers/http-receiver.ts'
import {
  collect,
  next,
  rejection,
  say,
  start,
  taskIn,
  textOf as wireText,
  until,
  type Started
} from '../../fixtures/runtime/runtime-helpers.ts'
import { type ServedRuntime } from '../../../runtime/runtime-options.ts'

const { TaskState, Role } = sdk

/** Echoes; says that it works; asks when it is told to; and waits for ever when it is told to. */
const work: WorkFunction = async ({ message, emit, ask, signal, owner }) => {
  const text = wireText(message) ?? ''
  if (text === 'who') return { message: `${owner.tenant}/${owner.principal}` }
  if (text === 'wait') await once(signal, 'abort')
  if (text === 'ask') return { message: `You said ${wireText(await ask(inputRequired('Well?')))}.` }
  emit(progress('working on it'))
  emit(
    artifact(
      { artifactId: 'a', name: 'echo.txt', parts: [{ text }, { data: null }, { raw: 'aGk=', filename: 'hi' }] },
      { lastChunk: true }
    )
  )
  return { message: { parts: [{ data: null }] } }
}

const startAgent = (t: Test, options?: Parameters<typeof start>[2]) =>
  start(
    t,
    {
      card: {
        name: 'Echo',
        description: 'Says it again.',
        skills: [{ id: 'e', name: 'Echo', description: 'Again.', tags: ['echo'] }],
        securitySchemes: { key: { apiKeySecurityScheme: { location: 'header', name: 'X-Key' } } }
      },
      work,
      negotiate: ({ message }) =>
        wireText(message) === 'hello' ? reply({ parts: [{ text: 'hi' }, { data: null }] }) : accepted()
    },
    options
  )

type Binding = 'JSONRPC' | 'HTTP+JSON' | 'GRPC'

/** Everyone is whom the header `x-user` names; nobody without it. */
function named(name: unknown): User {
  if (name === 'nobody') throw new A2AError('Unauthenticated', 'Nobody is known here.')
  return typeof name === 'string' && name !== '' ? { isAuthenticated: true, userName: name } : new UnauthenticatedUser()
}

interface Served {
  readonly runtime: ServedRuntime
  readonly url: string
  /** The SDK's client of a binding, for whom its requests name. */
  readonly client: (binding: Binding) => Promise<Client>
  readonly transport: (binding: Binding) => Promise<Transport>
  /** Where each binding is. */
  readonly urls: Readonly<Record<Binding, string>>
}

/** Serves a runtime on the three official servers. */
async function serve(
  t: Test,
  { runtime }: Pick<Started, 'runtime'>,
  { mapsErrors = false, ...options }: RequestHandlerOptions & { mapsErrors?: boolean } = {}
): Promise<Served> {
  const app = express()
  const http = createServer(app).listen(0, '127.0.0.1')
  await once(http, 'listening')
  t.teardown(() => void http.close())
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  const rpc = new grpc.Server()
  const port = await promisify(rpc.bindAsync.bind(rpc))('127.0.0.1:0', grpc.ServerCredentials.createInsecure())
  t.teardown(() => rpc.forceShutdown())
  const urls: Record<Binding, string> = { JSONRPC: `${url}/rpc`, 'HTTP+JSON': `${url}/rest`, GRPC: `127.0.0.1:${port}` }
  const interfaces = Object.entries(urls).map(([protocolBinding, url]) => ({
    url,
    protocolBinding,
    protocolVersion: '1.0'
  }))
  const requestHandler = toRequestHandler(runtime, { interfaces, ...options })
  const userBuilder = whileConnected(async (request: Request) => named(request.header('x-user')))
  if (mapsErrors) app.use(expressErrors)
  app.use('/rpc', jsonRpcHandler({ requestHandler, userBuilder, legacyCompat: { enabled: true } }))
  app.use('/rest', restHandler({ requestHandler, userBuilder, legacyCompat: { enabled: true } }))
  const service = grpcService({
    requestHandler,
    userBuilder: whileConnected(async (call: { metadata: grpc.Metadata }) => named(call.metadata.get('x-user')[0]))
  })
  rpc.addService(A2AService, mapsErrors ? grpcErrors(service) : service)
  const factories = {
    JSONRPC: new JsonRpcTransportFactory(),
    'HTTP+JSON': new RestTransportFactory(),
    GRPC: new GrpcTransportFactory({ grpcChannelCredentials: grpc.credentials.createInsecure() })
  }
  const card = await requestHandler.getAgentCard()
  const transport = (binding: Binding) => factories[binding].create(urls[binding], card)
  return { runtime, url, urls, transport, client: async binding => new Client(await transport(binding), card) }
}

let messages = 0

function saying(
  text: string,
  more: Partial<sdk.Message> = {},
  configuration?: Partial<sdk.SendMessageConfiguration>,
  tenant = ''
): sdk.SendMessageRequest {
  const message = sdk.Message.fromJSON({ messageId: `m-${(messages += 1)}`, role: 'ROLE_USER', parts: [{ text }] })
  const configured = configuration && { ...sdk.SendMessageConfiguration.fromJSON({}), ...configuration }
  return { tenant, message: { ...message, ...more }, configuration: configured, metadata: undefined }
}

function taskOf(answer: sdk.Message | sdk.Task): sdk.Task {
  if ('status' in answer) return answer
  throw new TypeError('The agent answered with a message.')
}

function kindsOf(events: sdk.StreamResponse[]): (string | undefined)[] {
  return events.map(({ payload }) => payload?.$case)
}

const as = (user: string, more: Record<string, string> = {}): RequestOptions => ({
  serviceParameters: { 'x-user': user, ...more }
})
const byId = (id: string, tenant = '') => ({ id, tenant, historyLength: undefined, metadata: undefined })
const allTasks: sdk.ListTasksRequest = {
  tenant: '',
  contextId: '',
  status: TaskState.TASK_STATE_UNSPECIFIED,
  pageToken: '',
  statusTimestampAfter: undefined,
  pageSize: undefined,
  historyLength: undefined,
  includeArtifacts: undefined
}

/** What the SDK writes to the console about requests that it refuses is no news. */
const { error: writeError } = console
t.before(() => (console.error = () => {}))
t.teardown(() => (console.error = writeError))

for (const binding of ['JSONRPC', 'HTTP+JSON', 'GRPC'] as const) {
  await t.test(`the official client calls the official server of ${binding}`, async t => {
    const { client: clientOf, transport, runtime } = await serve(t, startAgent(t))
    const client = await clientOf(binding)

    await t.test('receives a message', async t => {
      const answer = await client.sendMessage(saying('hello'))
      t.match(answer, { role: Role.ROLE_AGENT, parts: [{ content: { $case: 'text', value: 'hi' } }] })
    })

    await t.test('waits for a task, or returns immediately', async t => {
      const done = taskOf(await client.sendMessage(saying('one')))
      t.equal(done.status?.state, TaskState.TASK_STATE_COMPLETED)
      t.match(done.artifacts[0], {
        artifactId: 'a',
        name: 'echo.txt',
        parts: [{ content: { value: 'one' } }, {}, { filename: 'hi', content: { $case: 'raw' } }]
      })
      const begun = taskOf(await client.sendMessage(saying('wait', {}, { returnImmediately: true })))
      t.ok(begun.status && begun.status.state < TaskState.TASK_STATE_COMPLETED)
      const canceled = await client.cancelTask(byId(begun.id))
      t.equal(canceled.status?.state, TaskState.TASK_STATE_CANCELED)
    })

    await t.test('receives every event of a stream', async t => {
      const events = await collect(client.sendMessageStream(saying('two')))
      t.same(kindsOf(events), ['task', 'statusUpdate', 'statusUpdate', 'artifactUpdate', 'statusUpdate'])
      t.match(events[3]?.payload, { value: { lastChunk: true, append: false } })
      t.same(kindsOf(await collect(client.sendMessageStream(saying('hello')))), ['message'])
    })

    await t.test('answers a question, and reads and lists its tasks', async t => {
      const asked = taskOf(await client.sendMessage(saying('ask')))
      t.equal(asked.status?.state, TaskState.TASK_STATE_INPUT_REQUIRED)
      const { id: taskId, contextId } = asked
      const done = taskOf(await client.sendMessage(saying('42', { taskId, contextId })))
      t.match(done.status?.message?.parts, [{ content: { value: 'You said 42.' } }])
      t.equal((await client.getTask({ ...byId(taskId), historyLength: 1 })).history.length, 1)
      const page = await client.listTasks({ ...allTasks, contextId, includeArtifacts: true, pageSize: 5 })
      t.match(page, { tasks: [{ id: taskId }], totalSize: 1, pageSize: 5, nextPageToken: '' })
      t.equal((await client.listTasks({ ...allTasks, contextId, status: TaskState.TASK_STATE_WORKING })).totalSize, 0)
    })

    await t.test('subscribes to a task until it ends', async t => {
      const { id } = taskOf(await client.sendMessage(saying('ask')))
      const events = client.resubscribeTask(byId(id))
      t.match(await next(events), { payload: { $case: 'task', value: { id } } })
      const rest = collect(events)
      await client.cancelTask(byId(id))
      t.same(kindsOf(await rest), ['statusUpdate'])
    })

    await t.test('receives errors as its own classes, with their details', async t => {
      const done = taskOf(await client.sendMessage(saying('three')))
      const unknown = await rejection(client.getTask(byId('nobody')))
      t.ok(unknown instanceof sdkErrors.TaskNotFoundError)
      t.match(unknown.message, 'Task nobody was not found.')
      await t.rejects(client.cancelTask(byId(done.id)), sdkErrors.TaskNotCancelableError)
      await t.rejects(client.sendMessage(saying('more', { taskId: done.id })), sdkErrors.UnsupportedOperationError)
      await t.rejects(collect(client.resubscribeTask(byId(done.id))), sdkErrors.UnsupportedOperationError)
      await t.rejects(client.sendMessage(saying('', { parts: [] })), sdkErrors.RequestMalformedError)
      await t.rejects(
        collect(client.sendMessageStream(saying('x', { role: Role.ROLE_AGENT }))),
        sdkErrors.RequestMalformedError
      )
      await t.rejects(client.listTasks({ ...allTasks, pageToken: 'x' }), sdkErrors.RequestMalformedError)
    })

    await t.test('receives an error for operations that the agent does not support', async t => {
      const direct = await transport(binding)
      const options = { serviceParameters: { 'A2A-Version': '1.0' } }
      const name = { tenant: '', taskId: 't', id: 'p' }
      await t.rejects(
        direct.createTaskPushNotificationConfig(
          { ...name, url: 'https://example.com/', token: '', authentication: undefined },
          options
        ),
        sdkErrors.PushNotificationNotSupportedError
      )
      await t.rejects(direct.getTaskPushNotificationConfig(name, options), sdkErrors.PushNotificationNotSupportedError)
      await t.rejects(
        direct.listTaskPushNotificationConfig({ tenant: '', taskId: 't', pageSize: 0, pageToken: '' }, options),
        sdkErrors.PushNotificationNotSupportedError
      )
      await t.rejects(
        direct.deleteTaskPushNotificationConfig(name, options),
        sdkErrors.PushNotificationNotSupportedError
      )
      await t.rejects(direct.getExtendedAgentCard({ tenant: '' }, options), sdkErrors.UnsupportedOperationError)
      await t.rejects(
        direct.getTask(byId('x'), { serviceParameters: { 'A2A-Version': '0.3' } }),
        sdkErrors.VersionNotSupportedError
      )
    })

    await t.test('sees only the tasks of its user and tenant, which the work receives', async t => {
      const own = taskOf(await client.sendMessage(saying('who', {}, undefined, 'acme'), as('ann')))
      t.match(own.status?.message?.parts, [{ content: { value: 'acme/ann' } }])
      t.equal((await client.getTask(byId(own.id, 'acme'), as('ann'))).id, own.id)
      await t.rejects(client.getTask(byId(own.id, 'acme'), as('bob')), sdkErrors.TaskNotFoundError)
      await t.rejects(client.getTask(byId(own.id, 'acme')), sdkErrors.TaskNotFoundError)
      await t.rejects(client.getTask(byId(own.id), as('ann')), sdkErrors.TaskNotFoundError)
      t.equal((await runtime.getTask({ id: own.id, tenant: 'acme' }, { principal: 'ann' })).id, own.id)
      t.equal((await client.listTasks({ ...allTasks, tenant: 'acme' }, as('ann'))).totalSize, 1)
      t.equal((await client.listTasks({ ...allTasks, tenant: 'acme' }, as('bob'))).totalSize, 0)
    })

    await t.test('activates the reliability extension and its conditions', async t => {
      const extended = { 'A2A-Extensions': RELIABILITY_EXTENSION }
      const { id, metadata } = taskOf(await client.sendMessage(saying('ask'), { serviceParameters: extended }))
      t.same(metadata, { [RELIABILITY_EXTENSION]: { generation: 4 } })
      const resumed = client.resubscribeTask(byId(id), {
        serviceParameters: { ...extended, 'taskchart-after-generation': '1' }
      })
      t.match(await next(resumed), {
        payload: { $case: 'statusUpdate', value: { metadata: { [RELIABILITY_EXTENSION]: { generation: 2 } } } }
      })
      await client.cancelTask(byId(id))
      await collect(resumed)
    })
  })
}

for (const binding of ['JSONRPC', 'HTTP+JSON', 'GRPC'] as const) {
  await t.test(
    `the official client registers webhooks over the official server of ${binding}, and they receive updates`,
    async t => {
      const started = startAgent(t, { push: webhooks({ allowLoopback: true }) })
      const { client: clientOf } = await serve(t, started)
      const client = await clientOf(binding)
      const { url, got } = await httpReceiver(t)
      const config = (id: string, taskId = ''): sdk.TaskPushNotificationConfig => ({
        tenant: '',
        taskId,
        id,
        url,
        token: 'tok',
        authentication: { scheme: 'Bearer', credentials: 'cred' }
      })
      const { id: taskId } = taskOf(
        await client.sendMessage(saying('ask', {}, { taskPushNotificationConfig: config('first') }))
      )
      await until(() => got.length === 3)
      t.strictSame(
        got.map(({ body }) => sdk.StreamResponse.fromJSON(JSON.parse(body)).payload?.$case),
        ['statusUpdate', 'statusUpdate', 'statusUpdate']
      )
      t.match(got[0]?.headers, { authorization: 'Bearer cred', 'x-a2a-notification-token': 'tok' })
      t.match(await client.createTaskPushNotificationConfig(config('second', taskId)), {
        id: 'second',
        taskId,
        url,
        token: 'tok'
      })
      const { configs } = await client.listTaskPushNotificationConfig({
        tenant: '',
        taskId,
        pageSize: 0,
        pageToken: ''
      })
      t.strictSame(
        configs.map(({ id, token }) => ({ id, token })),
        [
          { id: 'first', token: '' },
          { id: 'second', token: '' }
        ]
      )
      t.match(await client.getTaskPushNotificationConfig({ tenant: '', taskId, id: 'second' }), {
        url,
        authentication: { scheme: 'Bearer', credentials: '' }
      })
      await client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id: 'first' })
      await client.sendMessage(saying('red', { taskId }))
      await until(() => got.at(-1)?.body.includes('COMPLETED'))
      t.strictSame(
        new Set(got.slice(3).map(({ headers }) => String(headers['taskchart-delivery-id']).split('/')[1])),
        new Set(['second'])
      )
    }
  )
}

await t.test('a response names the activated extension, and a stream does so before its first event', async t => {
  const { url } = await serve(t, startAgent(t))
  const ask = (method: string) =>
    fetch(`${url}/rpc`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'A2A-Version': '1.0',
        'A2A-Extensions': `urn:example:other, ${RELIABILITY_EXTENSION}`
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: say('one') })
    })
  for (const method of ['SendMessage', 'SendStreamingMessage']) {
    const response = await ask(method)
    t.equal(response.headers.get('A2A-Extensions'), RELIABILITY_EXTENSION)
    await response.text()
  }
})

await t.test('messages that the SDK decodes without validation are refused, and open no task', async t => {
  const { url, runtime } = await serve(t, startAgent(t, { limits: { advanced: { jsonNodes: 1000 } } }))
  const post = async (
    path: string,
    body: unknown
  ): Promise<{ error?: { code: number; data?: [{ metadata: object }]; details?: [{ metadata: object }] } }> => {
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'A2A-Version': '1.0' },
      body: JSON.stringify(body)
    })
    return response.json() as Promise<{}>
  }
  const good = say('x').message
  const rows: [object, string][] = [
    [{}, 'message'],
    [{ message: { ...good, parts: undefined } }, 'message.parts'],
    [{ message: { ...good, parts: 'zzz' } }, 'message.parts'],
    [{ message: { ...good, parts: [{}] } }, 'message.parts[0]'],
    [{ message: { ...good, role: 'BOGUS' } }, 'message.role'],
    [{ message: { ...good, role: undefined } }, 'message.role'],
    [{ message: { ...good, messageId: undefined } }, 'message.messageId'],
    [{ message: good, configuration: { historyLength: 'x' } }, 'configuration.historyLength']
  ]
  for (const [params, field] of rows) {
    const { error } = await post('/rpc', { jsonrpc: '2.0', id: 1, method: 'SendMessage', params })
    t.equal(error?.code, -32602, JSON.stringify(params))
    t.ok(Object.keys(error?.data?.[0].metadata ?? {}).includes(field), `${field} is named in ${JSON.stringify(error)}`)
    t.equal((await post('/rest/message:send', params)).error?.code, 400, JSON.stringify(params))
  }
  const [text, data] = [
    JSON.stringify({ message: { ...good, parts: [{ text: 'TEXT' }] } }),
    JSON.stringify({ message: { ...good, parts: [{ data: ['TEXT'] }] } })
  ]
  const raw: [string, string][] = [
    [text.replace('TEXT', '\\ud83d'), 'params.message.parts[0].text'],
    [data.replace('"TEXT"', '1e999'), 'params.message.parts[0].data[0]'],
    [data.replace('"TEXT"', `[${'[],'.repeat(30_000)}[]]`), 'params.message.parts[0].data[0]']
  ]
  for (const [params, field] of raw) {
    const send = async (path: string, body: string) =>
      (
        await fetch(url + path, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', 'A2A-Version': '1.0' },
          body
        })
      ).json() as ReturnType<typeof post>
    const { error } = await send('/rpc', `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":${params}}`)
    t.equal(error?.code, -32602, field)
    t.ok(Object.keys(error?.data?.[0].metadata ?? {}).includes(field), `${field} is named in ${JSON.stringify(error)}`)
    t.equal((await send('/rest/message:send', params)).error?.code, 400, field)
  }
  const listed = await post('/rpc', { jsonrpc: '2.0', id: 1, method: 'ListTasks', params: { status: 'BOGUS' } })
  t.match(listed.error, { code: -32602, data: [{ reason: 'INVALID_PARAMS', metadata: { status: /^must be one of/ } }] })
  t.equal((await runtime.listTasks({})).totalSize, 0)
})

/** A runtime of which one operation fails as it is told. */
function failing(runtime: ServedRuntime, error: unknown): ServedRuntime {
  return { ...runtime, getTask: () => Promise.reject(error) }
}

await t.test('each A2AError keeps as many details as the SDK supports', async t => {
  const { runtime } = startAgent(t)
  const context = () => new ServerCallContext({ requestedVersion: '1.0' })
  const thrown = async (error: unknown) =>
    rejection(toRequestHandler(failing(runtime, error)).getTask(byId('x'), context()))
  const classes: [ErrorCode, number, number][] = [
    ['TaskNotFound', -32001, 404],
    ['TaskNotCancelable', -32002, 400],
    ['PushNotificationNotSupported', -32003, 400],
    ['UnsupportedOperation', -32004, 400],
    ['ContentTypeNotSupported', -32005, 400],
    ['InvalidAgentResponse', -32006, 500],
    ['ExtendedAgentCardNotConfigured', -32007, 400],
    ['ExtensionSupportRequired', -32008, 400],
    ['VersionNotSupported', -32009, 400],
    ['InvalidParams', -32602, 400],
    ['InternalError', -32603, 500],
    ['RateLimited', -31429, 500],
    ['Overloaded', -31503, 500],
    ['TaskGenerationMismatch', -32010, 500]
  ]
  for (const [code, number, status] of classes) {
    const ours = new A2AError(code, 'Why.', {
      metadata: { taskId: 'x' },
      violations: [{ field: 'a.b', description: 'must be c' }],
      retryAfterMs: 1500
    })
    const theirs = await thrown(ours)
    t.match(sdkErrors.toJsonRpcError(theirs), { code: number, message: 'Why.' }, code)
    t.equal(sdkErrors.restStatusFor(theirs), status, code)
    const [info] = ours.details
    t.strictSame(
      sdkErrors.toRestErrorBody(theirs, status).error.details,
      [{ ...info, metadata: { taskId: 'x', 'a.b': 'must be c', retryAfterMs: '1500' } }],
      code
    )
    t.match(theirs, { data: ours.details, cause: ours, metadata: { taskId: 'x' } }, code)
  }
  const plain = new TypeError('not ours')
  t.equal(await thrown(plain), plain)
})

/** How the same failure arrives on each official server. */
async function arrivals(t: Test, error: A2AError, mapsErrors: boolean, user = 'ann') {
  const { runtime } = startAgent(t)
  const interfaces = ['JSONRPC', 'HTTP+JSON', 'GRPC'].flatMap(protocolBinding =>
    ['1.0', '0.3'].map(protocolVersion => ({ url: 'x', protocolBinding, protocolVersion }))
  )
  const subscribeToTask = async function* () {
    yield* []
    throw error
  }
  const { urls } = await serve(
    t,
    { runtime: { ...failing(runtime, error), subscribeToTask } },
    { mapsErrors, interfaces }
  )
  const headers = { 'content-type': 'application/json', 'a2a-version': '1.0', 'x-user': user }
  const answer = async (url: string, version: string, body?: object) => {
    const response = await fetch(url, {
      headers: { ...headers, 'a2a-version': version },
      ...(body && { method: 'POST', body: JSON.stringify(body) })
    })
    const { error, ...others } = (await response.json()) as { error?: Record<string, unknown> }
    return {
      status: response.status,
      retryAfter: response.headers.get('retry-after'),
      challenge: response.headers.get('www-authenticate'),
      error: error ?? others
    }
  }
  const rpc = (method: string) => ({ jsonrpc: '2.0', id: 1, method, params: { id: 'x' } })
  const metadata = new grpc.Metadata()
  for (const [name, value] of Object.entries(headers).slice(1)) metadata.set(name, value)
  const Client = grpc.makeGenericClientConstructor(A2AService, 'A2AService')
  const client = new Client(urls.GRPC, grpc.credentials.createInsecure())
  t.teardown(() => client.close())
  const methods = client as unknown as {
    getTask: (...given: unknown[]) => void
    subscribeToTask: (...given: unknown[]) => EventEmitter
  }
  const told = ({ code, details, metadata }: grpc.ServiceError) => ({
    status: grpc.status[code],
    message: details,
    details: statusDetailsOf(wire, Buffer.from(metadata.get('grpc-status-details-bin')[0] ?? ''))
  })
  return {
    rpc: [await answer(urls.JSONRPC, '1.0', rpc('GetTask')), await answer(urls.JSONRPC, '1.0', rpc('SubscribeToTask'))],
    rest: [
      await answer(`${urls['HTTP+JSON']}/tasks/x`, '1.0'),
      await answer(`${urls['HTTP+JSON']}/tasks/x:subscribe`, '1.0', {})
    ],
    rpc03: await answer(urls.JSONRPC, '0.3', rpc('tasks/get')),
    rest03: await answer(`${urls['HTTP+JSON']}/v1/tasks/x`, '0.3'),
    grpc: [
      told(await new Promise<grpc.ServiceError>(resolve => methods.getTask(byId('x'), metadata, resolve))),
      told(
        ((await once(methods.subscribeToTask({ tenant: '', id: 'x' }, metadata), 'error')) as [grpc.ServiceError])[0]
      )
    ]
  }
}

const REFUSALS = [
  ['Unauthenticated', 401],
  ['Forbidden', 403],
  ['RateLimited', 429],
  ['Overloaded', 503],
  ['TooLarge', 413]
] as const

await t.test('the official servers give access and quota errors their status over REST and gRPC', async t => {
  for (const [code, status] of [
    ...REFUSALS,
    ['TaskGenerationMismatch', 409],
    ['DeadlineExceeded', 504],
    ['TaskNotFound', 404]
  ] as const) {
    const { grpc: name, reason, code: number } = ERRORS[code]
    const { rpc, rest, rpc03, grpc } = await arrivals(t, new A2AError(code, 'Why.'), false)
    for (const answer of rest)
      t.match(answer, { status, error: { code: status, message: 'Why.', details: [{ reason }] } }, code)
    for (const answer of grpc) t.match(answer, { status: name, message: 'Why.' }, code)
    for (const answer of [...rpc, rpc03])
      t.match(answer, { status: 200, error: { code: number, message: 'Why.' } }, code)
  }
})

await t.test("expressErrors and grpcErrors write errors as taskchart's own servers do", async t => {
  for (const [code, status] of REFUSALS) {
    const error = new A2AError(code, 'Why.', {
      metadata: { taskId: 'x' },
      violations: [{ field: 'a.b', description: 'must be c' }],
      retryAfterMs: 1500
    })
    const { grpc: name, code: number } = ERRORS[code]
    const { rpc, rest, rpc03, rest03, grpc } = await arrivals(t, error, true)
    const head = { status, retryAfter: '2', challenge: code === 'Unauthenticated' ? 'Bearer' : null }
    for (const answer of [...rpc, rpc03])
      t.strictSame(answer, { ...head, error: { code: number, message: 'Why.', data: error.details } }, code)
    for (const answer of rest)
      t.strictSame(
        answer,
        { ...head, error: { code: status, status: name, message: 'Why.', details: error.details } },
        code
      )
    t.strictSame(rest03, { ...head, error: { code: number, message: 'Why.', data: error.details } }, code)
    for (const answer of grpc) t.strictSame(answer, { status: name, message: 'Why.', details: error.details }, code)
  }
  const { rpc, rest, grpc } = await arrivals(t, new A2AError('TaskNotFound', 'Why.'), true)
  for (const answer of rpc) t.match(answer, { status: 200, error: { code: -32001 } })
  for (const answer of rest) t.match(answer, { status: 404, error: { code: 404, status: 'NOT_FOUND' } })
  for (const answer of grpc) t.match(answer, { status: 'NOT_FOUND', details: [{ reason: 'TASK_NOT_FOUND' }] })
})

await t.test('an error of userBuilder keeps its status, and an unknown error is an internal one', async t => {
  for (const mapsErrors of [false, true]) {
    const { rest, rpc, grpc } = await arrivals(t, new A2AError('TaskNotFound'), mapsErrors, 'nobody')
    for (const answer of rest) t.match(answer, { status: 401, error: { message: 'Nobody is known here.' } })
    for (const answer of rpc) t.match(answer, { status: mapsErrors ? 401 : 200, error: { code: -31401 } })
    for (const answer of grpc) t.match(answer, { status: 'UNAUTHENTICATED' })
    const foreign = await arrivals(t, new TypeError('secret') as never, mapsErrors)
    for (const { status } of foreign.rest) t.equal(status, 500)
    for (const { status } of foreign.grpc) t.equal(status, 'UNKNOWN')
  }
})

await t.test("a handler returns the card of the runtime in the SDK's form, and validates streamIdleMs", async t => {
  const { runtime } = startAgent(t)
  const interfaces = [{ url: 'https://example.com/rpc', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]
  const card = await toRequestHandler(runtime, { interfaces }).getAgentCard()
  t.strictSame(sdk.AgentCard.toJSON(card), runtime.agentCard(interfaces))
  t.strictSame((await toRequestHandler(runtime).getAgentCard()).supportedInterfaces, [])
  for (const streamIdleMs of [0, -1, NaN, Infinity])
    t.throws(() => toRequestHandler(runtime, { streamIdleMs }), { name: 'RangeError' })
})

await t.test('null is valid data in the form of the SDK', async t => {
  const { runtime } = startAgent(t)
  const handler = toRequestHandler(runtime)
  const context = new ServerCallContext({ requestedVersion: '1.0' })
  const nothing = { $case: 'data', value: null }
  const task = taskOf(await handler.sendMessage(saying('one'), context))
  t.strictSame([task.artifacts[0]?.parts[1]?.content, task.status?.message?.parts[0]?.content], [nothing, nothing])
  t.match(await handler.sendMessage(saying('hello'), context), { parts: [{}, { content: nothing }] })
  t.match(await collect(handler.sendMessageStream(saying('hello'), context)), [
    { payload: { value: { parts: [{}, { content: nothing }] } } }
  ])
  const events = await collect(handler.sendMessageStream(saying('one'), context))
  t.match(events.slice(-2), [
    { payload: { value: { artifact: { parts: [{}, { content: nothing }] } } } },
    { payload: { value: { status: { message: { parts: [{ content: nothing }] } } } } }
  ])
  t.match((await handler.listTasks({ ...allTasks, includeArtifacts: true }, context)).tasks, [
    { artifacts: [{ parts: [{}, { content: nothing }] }] },
    {}
  ])
})

await t.test('the handler converts responses about webhooks', async t => {
  const { runtime } = startAgent(t)
  const config = { taskId: 't', id: 'p', url: 'https://example.com/' }
  const serving = {
    ...runtime,
    createTaskPushNotificationConfig: async () => config,
    getTaskPushNotificationConfig: async () => config,
    listTaskPushNotificationConfigs: async () => ({ configs: [config] }),
    deleteTaskPushNotificationConfig: async () => ({})
  } as unknown as Runtime
  const handler = toRequestHandler(serving)
  const context = new ServerCallContext({ requestedVersion: '1.0' })
  const name = { tenant: '', taskId: 't', id: 'p' }
  t.match(
    await handler.createTaskPushNotificationConfig(
      { ...name, url: 'x', token: '', authentication: undefined },
      context
    ),
    config
  )
  t.match(await handler.getTaskPushNotificationConfig(name, context), config)
  t.match(await handler.listTaskPushNotificationConfigs({ ...name, pageSize: 0, pageToken: '' }, context), {
    configs: [config]
  })
  t.equal(await handler.deleteTaskPushNotificationConfig(name, context), undefined)
})

await t.test('a call keeps its user, tenant, version, extensions, conditions and signal', async t => {
  const { runtime } = startAgent(t)
  const calls: CallContext[] = []
  const watched: ServedRuntime = {
    ...runtime,
    getTask: (params, call = {}) => (calls.push(call), runtime.getTask(params, call))
  }
  const handler = toRequestHandler(watched)
  const ask = (options: ConstructorParameters<typeof ServerCallContext>[0]) =>
    rejection(handler.getTask(byId('x'), new ServerCallContext(options)))
  await ask({
    requestedVersion: '1.0',
    user: named('ann'),
    tenant: 'acme',
    requestedExtensions: ['urn:x'],
    state: new Map([['headers', { 'Taskchart-Current-Generation': '7', other: ['1'] }]])
  })
  await ask({ user: named(undefined) })
  await ask({ requestedVersion: '0.2', user: Object.assign(named('ann'), { signal: 'no' }) })
  t.strictSame(calls, [
    { principal: 'ann', tenant: 'acme', version: '1.0', extensions: ['urn:x'], conditions: { currentGeneration: '7' } },
    { version: '1.0', dialect: '0.3', extensions: [], conditions: {} },
    { principal: 'ann', version: '0.2', extensions: [], conditions: {} }
  ])
})

await t.test("a stream ends by itself when its client's disconnection is not reported", async t => {
  const started = startAgent(t)
  const { runtime, clock } = started
  const handler = toRequestHandler(runtime, { streamIdleMs: 1000 })
  const { id } = taskIn(await runtime.sendMessage(say('ask')))
  const context = new ServerCallContext({ requestedVersion: '1.0' })
  const events = handler.resubscribe(byId(id), context)
  await next(events)
  const last = events.next()
  clock.increment(999)
  const other = handler.resubscribe(byId(id), context)
  await next(other)
  const otherLast = other.next()
  clock.increment(1)
  t.strictSame(await last, { done: true, value: undefined })
  await runtime.sendMessage(say('42', { taskId: id }))
  t.match(await otherLast, { value: { payload: { $case: 'statusUpdate' } } }, 'a stream that is not idle yet continues')
  await collect(other)
  t.equal(clock.pending, 0, 'and leaves no timer')
})

await t.test('a call ends when its client disconnects, and the task continues', async t => {
  const served = await serve(t, startAgent(t))
  const { url, runtime, client: clientOf } = served
  const { id } = taskIn(await runtime.sendMessage(say('ask')))
  let ended = 0
  const watched = {
    ...runtime,
    subscribeToTask: async function* (...call: Parameters<ServedRuntime['subscribeToTask']>) {
      yield* runtime.subscribeToTask(...call)
      ended += 1
    }
  }
  const other = await serve(t, { runtime: watched })
  const socket = connect(Number(new URL(other.url).port), '127.0.0.1')
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id } })
  socket.write(
    `POST /rpc HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  )
  await once(socket, 'data')
  socket.destroy()
  await until(() => ended === 1)
  const gone = new AbortController()
  const events = (await other.client('GRPC')).resubscribeTask(byId(id), { signal: gone.signal })
  await next(events)
  gone.abort()
  await rejection(next(events))
  await until(() => ended === 2)
  t.equal(
    taskOf(await (await clientOf('JSONRPC')).getTask(byId(id))).status?.state,
    TaskState.TASK_STATE_INPUT_REQUIRED
  )
  t.ok(url)
})

await t.test('whileConnected detects disconnections by the Express response and the gRPC call', async t => {
  const res = new EventEmitter()
  const users = [
    await whileConnected(UserBuilder.noAuthentication)({ res }),
    await whileConnected(async () => named('ann'))(res)
  ] as (User & { signal: AbortSignal })[]
  t.strictSame(
    users.map(({ isAuthenticated, userName, signal }) => [isAuthenticated, userName, signal.aborted]),
    [
      [false, '', false],
      [true, 'ann', false]
    ]
  )
  res.emit('close')
  t.strictSame(
    users.map(({ signal }) => signal.aborted),
    [true, false]
  )
  res.emit('cancelled')
  t.strictSame(
    users.map(({ signal }) => signal.aborted),
    [true, true]
  )
})

await t.test('an anonymous Express caller is counted by its connection if whileConnected reports it', async t => {
  const { runtime } = start(t, { work: steeredWork().work }, { limits: { liveContexts: 4 } })
  const { sendMessage } = toRequestHandler(runtime)
  const contextOf = async (socket?: object) =>
    new ServerCallContext({
      requestedVersion: '1.0',
      user: await whileConnected(UserBuilder.noAuthentication)({ res: new EventEmitter(), ...(socket && { socket }) })
    })
  const send = async (socket?: object) =>
    sendMessage(saying('x', {}, { returnImmediately: true }), await contextOf(socket))
  const [first, second] = [{}, {}]
  await send(first)
  t.match(await rejection(send(first)), { message: /This connection has reached the limit of \d+ active contexts/ })
  for (const socket of [second, undefined, undefined]) t.ok(await send(socket))
})

await t.test('loading the adapters loads neither Express nor gRPC', async t => {
  const script = `
    await import('taskchart/a2a-sdk'); await import('taskchart/http')
    const { createRequire } = await import('node:module')
    console.log(Object.keys(createRequire(import.meta.url).cache).filter(path => /node_modules.(?:express|@grpc)/.test(path)).length)`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
  t.equal(stdout.trim(), '0')
})
