import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { AgentCard, TaskState } from '@a2a-js/sdk'
import { ClientFactory, ClientFactoryOptions } from '@a2a-js/sdk/client'
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc'
import { credentials, ServerCredentials } from '@grpc/grpc-js'
import t, { type Test } from 'tap'
import { announcement, grpcFor, placesOf } from '../../../adapters/cli/serve/parts.ts'
import { BINDINGS } from '../../../adapters/client/card/bindings.ts'
import { fetchCard } from '../../../adapters/client/card/discovery.ts'
import { connect } from '../../../adapters/client/connect.ts'
import { WireRefusal } from '../../../adapters/conformance/callers/caller.ts'
import { grpcCaller } from '../../../adapters/conformance/callers/grpc-caller.ts'
import { grpc } from '../../../adapters/grpc/index.ts'
import type { GrpcOptions } from '../../../adapters/grpc/grpc-binding.ts'
import { webhooks } from '../../../adapters/push/webhooks.ts'
import { serve, type PortBinding, type ServeOptions } from '../../../adapters/serve/serve.ts'
import type { Credentials } from '../../../runtime/access/authentication.ts'
import type { AgentDefinition } from '../../../runtime/agent/define-agent.ts'
import type { RuntimeOptions } from '../../../runtime/runtime-options.ts'
import { byName } from '../../conformance/column.ts'
import { echo, steeredWork } from '../../fixtures/runtime/agents.ts'
import { runCommand } from '../../fixtures/cli/run-command.ts'
import { deferred, refusal, rejection, rest, say, start, taskIn } from '../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

const DEFINITION = { card: { name: 'Echo' }, work: echo, extendedCard: { description: 'For those who are known.' } }

/** Serves an agent over every binding until the test ends. */
async function served(
  t: Test,
  options: Partial<RuntimeOptions> = {},
  rpc: Partial<GrpcOptions> = {},
  more: Partial<ServeOptions> = {},
  definition: Partial<AgentDefinition> = {}
) {
  const started = start(t, { ...DEFINITION, ...definition }, options)
  const at = await serve(started.runtime, { port: 0, grpc: grpc({ port: 0, ...rpc }), ...more })
  t.teardown(() => at.close())
  const address = at.interfaces.find(({ protocolBinding }) => protocolBinding === 'GRPC')?.url ?? ''
  return { ...started, at, address }
}

function callerAt(t: Test, address: string, credentials?: string) {
  const caller = grpcCaller(address, { version: '1.0', ...(credentials !== undefined && { credentials }) })
  t.teardown(() => caller.close())
  return caller
}

await t.test('one call serves every binding, and clients hold the same conversation over each', async t => {
  const { at, runtime, address } = await served(t)
  for (const binding of BINDINGS) {
    const client = await connect(at.url, { bindings: [binding] })
    t.equal(client.binding, binding)
    t.match(await client.sendMessage(say('hello')), { task: { status: { state: 'TASK_STATE_COMPLETED' } } }, binding)
    await client.close()
  }
  const card = AgentCard.fromJSON(await fetchCard(at.url))
  const factory = new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      transports: [new GrpcTransportFactory({ grpcChannelCredentials: credentials.createInsecure() })],
      preferredTransports: ['GRPC']
    })
  )
  const official = await factory.createFromAgentCard(card)
  const answer = await official.sendMessage({
    tenant: '',
    message: {
      messageId: 'm',
      role: 1,
      parts: [{ content: { $case: 'text', value: 'x' }, metadata: undefined, filename: '', mediaType: '' }],
      contextId: '',
      taskId: '',
      metadata: undefined,
      extensions: [],
      referenceTaskIds: []
    },
    configuration: undefined,
    metadata: undefined
  })
  t.match(answer, { status: { state: TaskState.TASK_STATE_COMPLETED } })
  t.match(await callerAt(t, address).call('SendMessage', say('x')), {
    result: { task: { status: { state: 'TASK_STATE_COMPLETED' } } }
  })
  t.equal((await runtime.listTasks({})).totalSize, BINDINGS.length + 2)
})

await t.test('clients register, read, list and remove webhooks over every binding', async t => {
  const { at } = await served(
    t,
    { push: webhooks({ resolve: async () => ['93.184.216.34'] }) },
    {},
    {},
    { work: steeredWork().work }
  )
  for (const binding of BINDINGS) {
    const client = await connect(at.url, { bindings: [binding] })
    const { id: taskId } = taskIn(await client.sendMessage(say('work', {}, { returnImmediately: true })))
    const webhook = {
      taskId,
      id: 'p1',
      url: 'https://client.example/hook',
      token: 'x',
      authentication: { scheme: 'Bearer', credentials: 's' }
    }
    const { authentication: _, token: __, ...shown } = webhook
    t.strictSame(await client.createTaskPushNotificationConfig(webhook), webhook, binding)
    t.match(await client.getTaskPushNotificationConfig({ taskId, id: 'p1' }), shown, binding)
    t.match(await client.listTaskPushNotificationConfigs({ taskId }), { configs: [shown] }, binding)
    for (const _ of [1, 2])
      t.equal(await client.deleteTaskPushNotificationConfig({ taskId, id: 'p1' }), undefined, binding)
    t.strictSame(await client.listTaskPushNotificationConfigs({ taskId }), { configs: [] }, binding)
    t.match(
      await refusal(client.getTaskPushNotificationConfig({ taskId, id: 'p1' })),
      { code: 'TaskNotFound' },
      binding
    )
    await client.close()
  }
})

await t.test('the public card and the extended one list the same interfaces over every binding', async t => {
  const { at } = await served(
    t,
    { authenticate: byName },
    {},
    { interfaces: [{ url: 'https://other.example/', protocolBinding: 'urn:other', protocolVersion: '1.0' }] }
  )
  const { supportedInterfaces } = await fetchCard(at.url)
  t.same(supportedInterfaces.map(({ protocolBinding }) => protocolBinding).slice(1), [
    'JSONRPC',
    'HTTP+JSON',
    'urn:other',
    'GRPC'
  ])
  t.strictSame(at.interfaces, supportedInterfaces)
  for (const binding of BINDINGS) {
    const client = await connect(at.url, {
      bindings: [binding],
      headers: { authorization: 'Bearer ann' },
      credentialOrigins: [new URL(at.url).origin, `http://${at.interfaces.at(-1)?.url}`]
    })
    t.strictSame((await client.getExtendedAgentCard()).supportedInterfaces, supportedInterfaces, binding)
    await client.close()
  }
})

await t.test('authenticate identifies callers by their metadata, and authorize receives their claims', async t => {
  const claims = { scopes: ['read'] }
  const seen: unknown[] = []
  const { address, runtime } = await served(t, {
    authenticate: async credentials => {
      const known = await byName(credentials)
      return known && { ...known, claims }
    },
    authorize: ({ claims }) => (seen.push(claims), true)
  })
  for (const stranger of [undefined, 'nobody']) {
    const refused = await rejection(callerAt(t, address, stranger).call('GetTask', { id: 'x' }))
    t.match(refused, { native: 'UNAUTHENTICATED', reason: 'UNAUTHENTICATED' })
    t.ok(refused instanceof WireRefusal)
  }
  await callerAt(t, address, 'ann').call('SendMessage', say('x'))
  t.equal((await runtime.listTasks({}, { principal: 'ann', claims })).totalSize, 1)
  t.strictSame(seen[0], claims)
})

await t.test('a stream ends with UNAUTHENTICATED when its credentials expire, and its task continues', async t => {
  const { work, run } = steeredWork()
  const authenticate = async (credentials: Credentials) => {
    const known = await byName(credentials)
    return known && { ...known, expiresAtMs: new TestClock().now() + 1000 }
  }
  const { clock, runtime, address } = await served(t, { authenticate }, {}, {}, { work })
  const caller = callerAt(t, address, 'ann')
  const timers = clock.size
  const [early, late] = [
    caller.stream('SendStreamingMessage', say('x')),
    caller.stream('SendStreamingMessage', say('y'))
  ]
  for (const stream of [early, late])
    t.match(await stream.next(), { task: { status: { state: 'TASK_STATE_SUBMITTED' } } })
  ;(await run(0)).resolve({})
  while (await early.next());
  clock.increment(999)
  t.match(await caller.call('ListTasks', {}), { result: { totalSize: 2 } })
  t.equal(clock.size, timers + 1, 'that of the open stream')
  t.match(await late.next(), { statusUpdate: { status: { state: 'TASK_STATE_WORKING' } } })
  clock.increment(1)
  t.match(await rejection(late.next()), {
    native: 'UNAUTHENTICATED',
    reason: 'UNAUTHENTICATED',
    message: /The credentials of this request have expired/
  })
  await rest()
  t.equal(clock.size, timers, 'no timer is left')
  t.equal((await runtime.listTasks({ status: 'TASK_STATE_WORKING' }, { principal: 'ann' })).totalSize, 1)
})

await t.test('each connection of unidentified callers has its own share', async t => {
  const { address } = await served(t, { limits: { liveContexts: 8 } }, {}, {}, { work: steeredWork().work })
  // Channels to one name share a connection.
  const [first, second] = [callerAt(t, address), callerAt(t, address.replace('127.0.0.1', 'localhost'))]
  const open = (caller: ReturnType<typeof callerAt>) =>
    caller.call('SendMessage', say('x', {}, { returnImmediately: true }))
  await open(first)
  await open(first)
  t.match(await rejection(open(first)), {
    native: 'RESOURCE_EXHAUSTED',
    reason: 'RATE_LIMITED',
    message: /^This connection has reached the limit of \d+ active contexts/
  })
  t.ok(await open(second))
})

await t.test('a draining server refuses calls with UNAVAILABLE and a delay, and may close twice', async t => {
  const { at, address } = await served(t)
  at.drain()
  t.match(await rejection(callerAt(t, address).call('GetTask', { id: 'x' })), {
    native: 'UNAVAILABLE',
    reason: 'OVERLOADED',
    details: [{}, { retryDelay: '1s' }]
  })
  await at.close()
  await at.close()
  t.match(await rejection(callerAt(t, address).call('GetTask', { id: 'x' })), { native: 'UNAVAILABLE', details: [] })
})

await t.test('a server whose port cannot be bound leaves nothing open', async t => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => void other.close())
  const { port } = other.address() as AddressInfo
  const { runtime } = start(t, DEFINITION)
  await t.rejects(serve(runtime, { port: 0, grpc: grpc({ port }) }), {
    code: 'EADDRINUSE',
    message: `Port ${port} is in use on 127.0.0.1. Choose another port, or 0 for a free one.`
  })
  const reached = start(t, DEFINITION, { authenticate: () => ({ id: 'anna' }) }).runtime
  await t.rejects(serve(reached, { port: 0, grpc: grpc({ port: 0, host: 'nowhere.invalid' }) }), {
    code: 'ENOTFOUND',
    message: 'This machine has no address nowhere.invalid. Choose another host, such as 127.0.0.1.'
  })
  const binding = grpc({ port: 0 })
  let closed = 0
  const counted: PortBinding = {
    open: async runtime => {
      const open = await binding.open(runtime)
      return { ...open, close: () => ((closed += 1), open.close()) }
    }
  }
  await t.rejects(serve(runtime, { port, grpc: counted }), { code: 'EADDRINUSE' })
  t.equal(closed, 1)
})

await t.test('cards give the address of url, publicUrl, hosts or the bound host', async t => {
  const rows = [
    [{}, {}, /^127\.0\.0\.1:\d+$/],
    [{}, { host: '::1' }, /^\[::1\]:\d+$/],
    [{ hosts: ['agent.example:80'] }, {}, /^agent\.example:\d+$/],
    [{ publicUrl: 'https://agent.example/a' }, {}, /^agent\.example:\d+$/],
    [{ publicUrl: 'https://agent.example/a' }, { url: 'rpc.example:443' }, /^rpc\.example:443$/]
  ] as const
  for (const [options, rpc, address] of rows) t.match((await served(t, options, rpc)).address, address)
})

await t.test('public addresses without authenticate and invalid options are refused with what to write', async t => {
  const { runtime } = start(t, DEFINITION)
  await t.rejects(serve(runtime, { port: 0, grpc: grpc({ port: 0, host: '0.0.0.0' }) }), {
    name: 'TypeError',
    message: /Without authenticate/
  })
  await t.rejects(serve(runtime, { port: 0, grpc: { port: 1 } as never }), {
    name: 'TypeError',
    message: /grpc has to be what grpc\(\{ port \}\)/
  })
  t.throws(() => grpc({ port: 'x' } as never), { name: 'TypeError', message: /port has to be a number/ })
  t.throws(() => grpc({} as never), { name: 'TypeError', message: 'grpc needs a port: grpc({ port: 50051 }).' })
  t.throws(() => grpc({ prot: 1 } as never), { name: 'TypeError', message: /grpc has no prot/ })
  t.throws(() => grpc({ port: 0, credentials: {} as never }), { name: 'TypeError', message: /createSsl/ })
  t.ok(grpc({ port: 0, credentials: ServerCredentials.createInsecure() }))
})

await t.test('taskchart serve --grpc', async t => {
  const cwd = t.testdir({
    'echo.js':
      "export default { card: { name: 'Echo' }, work: ({ message }) => ({ artifact: { parts: message.parts } }) }"
  })

  await t.test('serves gRPC beside the other bindings, and prints its address', async t => {
    for (const form of [[], ['--json']]) {
      const stop = new AbortController()
      const printed = deferred<string>()
      const ended = runCommand(['serve', 'echo.js', '--port', '0', '--grpc', '0', ...form], {
        cwd,
        signal: stop.signal,
        printed: printed.resolve
      })
      const [, address = ''] = /(127\.0\.0\.1:\d+)(?: for gRPC|"\})/.exec(await printed.promise) ?? []
      t.match(await callerAt(t, address).call('SendMessage', say('x')), {
        result: { task: { artifacts: [{ parts: [{ text: 'x' }] }] } }
      })
      stop.abort()
      t.match(await ended, { code: 0 })
    }
  })

  await t.test('refuses a port in use or an invalid one, and says what to do', async t => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    t.teardown(() => void other.close())
    const { port } = other.address() as AddressInfo
    t.match(await runCommand(['serve', 'echo.js', '--port', '0', '--grpc', String(port)], { cwd }), {
      code: 1,
      stderr: `taskchart: Port ${port} is in use on 127.0.0.1. Choose another with --grpc, or --grpc 0 for any.\n`
    })
    t.match(await runCommand(['serve', 'echo.js', '--grpc', 'x'], { cwd }), {
      code: 2,
      stderr: /--grpc takes a number from 0 to 65535/
    })
    t.match(await runCommand(['dev', 'echo.js', '--grpc', '0'], { cwd }), {
      code: 2,
      stderr: /taskchart dev does not speak gRPC/
    })
    await t.rejects(
      grpcFor({ port: 0 }, () => Promise.reject(new Error('Cannot find package'))),
      { name: 'CommandError', message: /npm install @a2a-js\/sdk @grpc\/grpc-js @bufbuild\/protobuf/ }
    )
  })

  await t.test('is not mentioned where it is not served', async t => {
    const places = placesOf({ card: { name: 'Echo' } } as never, 'http://127.0.0.1:1/', [])
    t.notOk('grpc' in places)
    t.notMatch(announcement({ card: { name: 'Echo', description: '', skills: [] } } as never, places, false), /gRPC/)
  })
})
