import t, { type Test } from 'tap'
import type { AgentClient } from '../../../adapters/client/agent-client.ts'
import { connect, type ConnectOptions } from '../../../adapters/client/connect.ts'
import { collectOddities } from '../../../adapters/client/warnings.ts'
import { grpc } from '../../../adapters/grpc/index.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import type { NativeVersion } from '../../../machines/protocol/versions.ts'
import { createRuntime, defineAgent } from '../../../runtime/index.ts'
import { unusedPort } from '../../fixtures/network/unused-port.ts'
import {
  failure,
  httpAgent,
  result,
  stream,
  writeEvents,
  type Answer,
  type Asked,
  type HttpAgent,
  type ScriptedCard
} from '../../fixtures/peers/scripted-http.ts'
import { steeredWork } from '../../fixtures/runtime/agents.ts'
import { lastingStore } from '../../fixtures/runtime/lives.ts'
import { brief, collect, deferred, next, refusal, say } from '../../fixtures/runtime/runtime-helpers.ts'

const NOT_SUPPORTED = { code: -32_009, message: 'A2A-Version is not supported.' }

const task = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } }

/** Answers requests of 1.0 with this, and refuses those of 1.1. */
const only10 =
  (answer: Answer): Answer =>
  (asked, response) =>
    (asked.headers['a2a-version'] === '1.0' ? answer : failure(NOT_SUPPORTED))(asked, response)

async function scripted(
  t: Test,
  answer: Answer,
  card: ScriptedCard = {},
  options: ConnectOptions = {}
): Promise<{ agent: HttpAgent; client: AgentClient }> {
  const agent = await httpAgent(t, { version: '1.1', olderVersions: ['1.0'], ...card })
  agent.script(answer)
  const client = await connect(agent.url, { random: () => 0, ...options })
  t.teardown(() => client.close())
  return { agent, client }
}

const versions = ({ asked }: HttpAgent) => asked.map(({ headers }: Asked) => headers['a2a-version'])

await t.test('a card is used by its interfaces of 1.1, then of 1.0, then of 0.3', async t => {
  for (const [version, older, used] of [
    ['0.3', ['1.0', '1.1'], '1.1'],
    ['0.3', ['1.0'], '1.0'],
    ['1.1', [], '1.1'],
    ['1.1.4', ['1.2'], '1.1'],
    ['0.3', [], '0.3']
  ] as const) {
    const { client } = await scripted(t, result(task), { version, olderVersions: older })
    t.equal(client.version, used)
  }
  const { client } = await scripted(t, result(task), {}, { versions: ['1.0'] })
  t.equal(client.version, '1.0')
})

await t.test('an agent that refuses 1.1 is called by the next interface of its card, with a warning', async t => {
  const oddities = collectOddities()
  t.teardown(() => oddities.stop())
  const { agent, client } = await scripted(t, only10(result(task)), { isReliable: true })
  t.match(await client.getTask({ id: 't' }, { currentGeneration: 3 }), { id: 't' })
  t.match(client, { version: '1.0', binding: 'JSONRPC', url: `${agent.url}/agent` })
  await client.getTask({ id: 't' })
  t.strictSame(versions(agent), ['1.1', '1.0', '1.0'])
  t.equal(agent.asked[0]?.params.currentGeneration, '3')
  t.equal(agent.asked[1]?.params.currentGeneration, undefined)
  t.equal(agent.asked[1]?.headers['taskchart-current-generation'], '3', 'a condition takes the form of the version')
  t.strictSame(oddities.take(), ['It refused A2A 1.1 over JSONRPC, which its card offers. The interface was skipped.'])
})

await t.test('a condition that 1.0 would ignore is not sent there', async t => {
  const { agent, client } = await scripted(t, only10(result(task)))
  t.equal((await refusal(client.getTask({ id: 't' }, { currentGeneration: 3 }))).code, 'UnsupportedOperation')
  t.strictSame(versions(agent), ['1.1'])
})

await t.test('calls at the same time open the next interface once', async t => {
  const { agent, client } = await scripted(t, only10(result(task)))
  await Promise.all([client.getTask({ id: 't' }), client.getTask({ id: 't' }), client.getTask({ id: 't' })])
  t.strictSame(versions(agent), ['1.1', '1.1', '1.1', '1.0', '1.0', '1.0'])
})

await t.test('a stream is opened by the next interface, and goes on there once it has events', async t => {
  const events = [{ task: { ...task, status: { state: 'TASK_STATE_WORKING' } } }, { task }]
  const { agent, client } = await scripted(t, only10(stream(events)))
  t.match((await collect(client.sendStreamingMessage(say('x')))).map(brief), ['task:working', 'task:completed'])
  t.strictSame(versions(agent).slice(0, 2), ['1.1', '1.0'])
  const late = await scripted(t, stream(events.slice(0, 1), 'cut'))
  const read = late.client.sendStreamingMessage(say('x'))
  const first = await read.next()
  t.equal(first.done, false)
  late.agent.script(failure(NOT_SUPPORTED))
  late.agent.heard('task:working')
  late.agent.script(only10(stream(events)))
  t.match((await collect(read)).map(brief), ['task:working', 'task:completed'])
  t.equal(late.client.version, '1.0')
  t.strictSame(
    late.agent.asked.map(({ method }) => method),
    ['SendStreamingMessage', 'SubscribeToTask', 'SubscribeToTask', 'GetTask'],
    'the message is not sent again'
  )
})

await t.test('the stream of a message ends at a question, also where it goes on', async t => {
  const working = { task: { ...task, status: { state: 'TASK_STATE_WORKING' } } }
  const asks = { statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_INPUT_REQUIRED' } } }
  const { agent, client } = await scripted(t, stream([working], 'cut'))
  const own = { extensions: ['urn:one'], serviceParameters: { 'x-trip': '7' } }
  const read = client.sendStreamingMessage(say('x'), own)
  await read.next()
  agent.script(only10(stream([working, asks], 'open')))
  agent.heard('task:working')
  t.strictSame((await collect(read)).map(brief), ['task:working', 'input-required'])
  const last = agent.asked.at(-1)
  t.match(last, { method: 'SubscribeToTask', headers: { 'x-trip': '7', 'a2a-extensions': /urn:one/ } })
  await last?.closed
})

await t.test('a message that was answered is not sent again after the version is refused', async t => {
  const message = { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'hello' }] }
  const answered: Answer = ({ id }, response) => {
    const events = [{ result: { message } }, { error: NOT_SUPPORTED }]
    writeEvents(
      events.map(event => ({ jsonrpc: '2.0', id, ...event })),
      response
    )
    response.end()
  }
  const { agent, client } = await scripted(t, answered)
  t.equal((await refusal(collect(client.sendStreamingMessage(say('x'))))).code, 'VersionNotSupported')
  t.equal(agent.asked.length, 1)
})

/** An agent in a process that ends, and another that takes its address and its tasks. */
async function deployed(t: Test) {
  const store = lastingStore()
  const { work, run } = steeredWork()
  const agent = defineAgent({ card: { name: 'Deployed' }, work })
  const grpcPort = await unusedPort()
  const start = async (versions: readonly NativeVersion[], port: number) => {
    const runtime = createRuntime({ agent, store, versions })
    const served = await serve(runtime, { port, grpc: grpc({ port: grpcPort }) })
    const stop = async () => {
      await served.close()
      await runtime.close()
    }
    t.teardown(stop)
    return { url: served.url, stop }
  }
  const first = await start(['1.0', '1.1'], 0)
  const redeploy = async (versions: readonly NativeVersion[]) => {
    await first.stop()
    return start(versions, Number(new URL(first.url).port))
  }
  return { url: first.url, run, redeploy }
}

await t.test('a stream goes on in 1.0 from its cursor when the agent is deployed again without 1.1', async t => {
  for (const binding of ['JSONRPC', 'HTTP+JSON', 'WEBSOCKET', 'GRPC']) {
    const { url, run, redeploy } = await deployed(t)
    const first = new AbortController()
    const client = await connect(url, { bindings: [binding], random: () => 0, signal: first.signal })
    first.abort()
    t.teardown(() => client.close())
    const sent = client.sendStreamingMessage(say('go'))
    const events = [await next(sent), await next(sent)]
    const id = events[0] && 'task' in events[0] ? events[0].task.id : ''
    const watched = client.subscribeToTask({ id })
    t.equal(brief(await next(watched)), 'task:working', binding)
    t.equal(client.version, '1.1', binding)
    await run(0)
    await redeploy(['1.0'])
    ;(await run(1)).resolve({ artifact: 'done' })
    events.push(...(await collect(sent)))
    t.strictSame(events.map(brief), ['task:submitted', 'working', 'artifact: done', 'completed'], binding)
    t.strictSame(
      (await collect(watched)).map(brief),
      ['artifact: done', 'completed'],
      `${binding}: a subscription, too`
    )
    t.match(client, { version: '1.0', binding })
    t.match(await client.getTask({ id }), { id, status: { state: 'TASK_STATE_COMPLETED' } })
  }
})

await t.test('a stream ends with a clear error if the card has no other version that the client may use', async t => {
  for (const binding of ['JSONRPC', 'WEBSOCKET', 'GRPC']) {
    const { url, run, redeploy } = await deployed(t)
    const client = await connect(url, { bindings: [binding], versions: ['1.1'], random: () => 0 })
    t.teardown(() => client.close())
    const sent = client.sendStreamingMessage(say('go'))
    await next(sent)
    await next(sent)
    await run(0)
    await redeploy(['1.0'])
    const error = await refusal(collect(sent))
    t.equal(error.code, 'VersionNotSupported', binding)
    t.match(error.message, /refuses A2A 1\.1: .* does not offer A2A 1\.1, only 1\.0\. Its tasks continue\.$/, binding)
    t.equal(client.version, '1.1')
  }
})

await t.test('without another interface, or one that can be used, the error stays', async t => {
  const alone = await scripted(t, failure(NOT_SUPPORTED), { olderVersions: [] })
  t.match(await refusal(alone.client.getTask({ id: 't' })), { code: 'VersionNotSupported' })
  const both = await scripted(t, failure(NOT_SUPPORTED))
  t.match(await refusal(both.client.getTask({ id: 't' })), { code: 'VersionNotSupported' })
  t.strictSame(versions(both.agent), ['1.1', '1.0'], 'each interface is tried once')
  const other = await httpAgent(t)
  const place = { tenant: '', protocolVersion: '1.1' }
  const odd = await httpAgent(t)
  const supportedInterfaces = [
    { ...place, url: `${other.url}/agent`, protocolBinding: 'JSONRPC' },
    { ...place, url: 'ws://127.0.0.1:1/', protocolBinding: 'WEBSOCKET', protocolVersion: '1.0' }
  ]
  other.script(failure(NOT_SUPPORTED))
  const { url } = await httpAgent(t, { card: { supportedInterfaces } })
  const client = await connect(url, { random: () => 0 })
  t.teardown(() => client.close())
  t.match(await refusal(client.getTask({ id: 't' })), { code: 'VersionNotSupported' })
  t.match(client, { version: '1.1', binding: 'JSONRPC' })
  t.strictSame(odd.asked, [])
})

await t.test('listeners of the connection move with it, and it closes for good', async t => {
  const { client } = await scripted(t, only10(result(task)))
  const heard: string[] = []
  client.on('closed', () => heard.push('closed'))
  const stop = client.on('closed', () => heard.push('stopped'))
  await client.getTask({ id: 't' })
  t.strictSame(heard, [])
  t.equal(client.state, 'open')
  stop()
  await client.close()
  t.strictSame(heard, ['closed'])
  t.equal(client.state, 'closed')
})

await t.test('closing while the next interface is opened closes that one', async t => {
  const refused = deferred()
  const { client } = await scripted(t, (asked, response) => {
    failure(NOT_SUPPORTED)(asked, response)
    refused.resolve()
  })
  const call = refusal(client.getTask({ id: 't' }))
  await refused.promise
  await client.close()
  t.match((await call).code, /Overloaded|VersionNotSupported/)
  t.equal(client.state, 'closed')
  t.match(await refusal(client.getTask({ id: 't' })), { code: 'Overloaded' })
})
