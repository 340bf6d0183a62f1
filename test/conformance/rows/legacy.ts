import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect } from '../../../adapters/client/connect.ts'
import { exchange } from '../../../adapters/conformance/callers/exchange.ts'
import { webhooks } from '../../../adapters/push/webhooks.ts'
import { AGENT_CARD_PATH, RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import { httpReceiver } from '../../fixtures/peers/http-receiver.ts'
import { collect, refusal, say, taskIn, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { JsonSocket } from '../../fixtures/servers/served-agent.ts'
import { jsonRpc } from '../bindings/json-rpc.ts'
import { clientOf, read } from '../client.ts'
import { byName, type Column, type Test } from '../column.ts'
import { only, row, type Row } from '../row.ts'

type Json = Record<string, unknown>

const OLD = only(['0.3 WebSocket', '0.3 JSON-RPC', '0.3 REST'], 'not 0.3')
const OLD_RPC = only(['0.3 WebSocket', '0.3 JSON-RPC'], 'not the JSON-RPC of 0.3')
const OLD_REST = only(['0.3 REST'], 'not the REST of 0.3')
const OLD_HTTP = only(['0.3 JSON-RPC', '0.3 REST'], 'not 0.3 over HTTP')

/** §10.12: 0.3, as its clients know it. */
export const legacy: readonly Row[] = [
  row(
    154,
    'D',
    '9.3',
    'message/send answers with a task or a message itself, and its kind',
    async (t, column) => {
      t.match(await rpc(column, 'message/send', saying({ text: 'x' })), {
        result: { kind: 'task', history: [{ kind: 'message' }], artifacts: [{ parts: [{ kind: 'text' }] }] }
      })
      t.match(await rpc(column, 'message/send', saying({ text: 'hello' })), {
        result: { kind: 'message', role: 'agent' }
      })
    },
    OLD_RPC
  ),
  row(
    155,
    'D',
    '9.4',
    'The last event of a stream is final, and it alone',
    async (t, column) => {
      for (const [text, last] of [
        ['count 2', 'completed'],
        ['ask', 'input-required']
      ] as const) {
        const updates = (await streamed(t, column, text))
          .map(event => (event.statusUpdate ?? event) as Json)
          .filter(({ final }) => final !== undefined)
        t.same(
          updates.map(({ final }) => final),
          updates.map((_, i) => i === updates.length - 1)
        )
        t.equal(stateIn(updates.at(-1)), last)
      }
    },
    OLD
  ),
  row(
    156,
    'D',
    '9.3',
    'States and roles have the names of 0.3: in JSON-RPC lower case with hyphens, in REST TASK_STATE_CANCELLED',
    async (t, column) => {
      const { id } = await column.client.opened('wait', 'working')
      await column.client.cancel(id)
      if (column.binding.name === '0.3 REST') {
        t.match((await get(column, `/v1/tasks/${id}`)).json, {
          status: { state: 'TASK_STATE_CANCELLED' },
          history: [{ role: 'ROLE_USER' }]
        })
        return
      }
      t.match(await rpc(column, 'tasks/get', { id }), {
        result: { status: { state: 'canceled' }, history: [{ role: 'user' }] }
      })
      t.match(await rpc(column, 'message/send', saying({ text: 'ask' })), {
        result: { status: { state: 'input-required' } }
      })
    },
    OLD
  ),
  row(
    157,
    'D',
    '9.3',
    'Files are parts with bytes or a uri, a name and a type inside',
    async (t, column) => {
      const bytes = { bytes: 'AP8=', name: 'a.bin', mimeType: 'application/octet-stream' }
      const uri = { uri: 'https://example.com/b.bin', name: 'b.bin', mimeType: 'application/octet-stream' }
      const parts = [
        { kind: 'file', file: bytes },
        { kind: 'file', file: uri }
      ]
      t.match(await rpc(column, 'message/send', saying(...parts)), { result: { artifacts: [{ parts }] } })
    },
    OLD_RPC
  ),
  row(
    158,
    'D',
    '9.6',
    'tasks/resubscribe begins with the task, and of one that has ended gives just that',
    async (t, { client }) => {
      const asked = await client.task('ask')
      const stream = client.subscribe(asked.id)
      t.match(await stream.next(), { task: { id: asked.id } })
      await client.cancel(asked.id)
      t.match((await read(stream)).at(-1), { statusUpdate: { status: { state: 'TASK_STATE_CANCELED' } } })
      t.match(await read(client.subscribe(asked.id)), [
        { task: { id: asked.id, status: { state: 'TASK_STATE_CANCELED' } } }
      ])
    },
    OLD
  ),
  row(
    159,
    'D',
    '9.1',
    'Push notifications are asked for by set, get, list and delete, which answer as 0.3 has it',
    async (t, column) => {
      const { task, client } = await pushingOn(t, column)
      const call = async (method: string, params: Json) =>
        (await rpc({ ...column, client }, `tasks/pushNotificationConfig/${method}`, params)).result
      const config = { id: 'p', url: 'http://127.0.0.1:4999/', authentication: { schemes: ['Bearer'] } }
      t.same(await call('set', { taskId: task, pushNotificationConfig: config }), {
        taskId: task,
        pushNotificationConfig: config
      })
      t.same(await call('get', { id: task, pushNotificationConfigId: 'p' }), {
        taskId: task,
        pushNotificationConfig: config
      })
      t.same(
        await call('get', { id: task }),
        { taskId: task, pushNotificationConfig: config },
        'without an id: the first'
      )
      t.same(await call('list', { id: task }), [{ taskId: task, pushNotificationConfig: config }])
      t.equal(await call('delete', { id: task, pushNotificationConfigId: 'p' }), null)
      t.match(await rpc({ ...column, client }, 'tasks/pushNotificationConfig/get', { id: task }), {
        error: { code: -32001 }
      })
    },
    OLD_RPC
  ),
  row(
    160,
    'D',
    '9.1',
    'agent/getAuthenticatedExtendedCard gives the extended card to authenticated callers',
    async (t, { serve }) => {
      const { open, address } = await serve(
        t,
        { authenticate: byName },
        { extendedCard: { description: 'For those who are known.' } }
      )
      const { result } = await (await open({ credentials: 'ann' })).call('GetExtendedAgentCard', {})
      t.match(result, {
        name: 'Obedient',
        description: 'For those who are known.',
        protocolVersion: /^0\.3/,
        url: new RegExp(`^${address}`)
      })
    },
    OLD
  ),
  row(
    161,
    'D',
    '9.1',
    'REST is below /v1, in the JSON of the proto of 0.3',
    async (t, { client, address }) => {
      const message = { messageId: 'm', role: 'ROLE_USER', content: [{ text: 'x' }] }
      const init = {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ message })
      }
      t.match((await exchange(`${address}/v1/message:send`, init)).json, {
        task: { artifacts: [{ parts: [{ text: 'x' }] }], history: [{ content: [{ text: 'x' }] }] }
      })
      const { id } = await client.task('x')
      t.match((await exchange(`${address}/v1/tasks/${id}`, {})).json, { id, status: { state: 'TASK_STATE_COMPLETED' } })
      t.match((await exchange(`${address}/v1/card`, {})).json, { error: { code: 400 } })
    },
    OLD_REST
  ),
  row(
    162,
    'D',
    '9.2',
    'Extensions are asked for, and named when active, in X-A2A-Extensions',
    async (t, { address, binding }) => {
      const headers = {
        'x-a2a-extensions': `urn:nobody:knows, ${RELIABILITY_EXTENSION}`,
        'content-type': 'application/json'
      }
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { id: 'none' } })
      const { response } =
        binding.name === '0.3 REST'
          ? await exchange(`${address}/v1/tasks/none`, { headers })
          : await exchange(address, { method: 'POST', headers, body })
      t.equal(response.headers.get('x-a2a-extensions'), RELIABILITY_EXTENSION)
    },
    OLD_HTTP
  ),
  row(
    163,
    'D',
    '9.2',
    'What is pushed is the task itself, and its kind, as application/json',
    async (t, column) => {
      const { task, client, release } = await pushingOn(t, column)
      const { url, got } = await httpReceiver(t)
      await client.call('CreateTaskPushNotificationConfig', { taskId: task, url, token: 'tok' })
      release()
      await until(() => got.length === 2)
      t.match(
        got.map(({ body }) => JSON.parse(body)),
        [
          { kind: 'task', id: task, artifacts: [{}, {}] },
          { kind: 'task', id: task, status: { state: 'completed' } }
        ]
      )
      t.match(got[0]?.headers, { 'content-type': 'application/json', 'x-a2a-notification-token': 'tok' })
    },
    OLD
  ),
  row(
    164,
    'D',
    '9.5',
    'The card of 0.3 is at its old place, at the new one for clients that name the version, and there with that of 1.0 for those that name none',
    async (t, { address }) => {
      const old = {
        protocolVersion: /^0\.3/,
        url: `${address}/`,
        preferredTransport: 'JSONRPC',
        additionalInterfaces: Array
      }
      t.match((await exchange(`${address}/.well-known/agent.json`, {})).json, old)
      t.match((await exchange(`${address}${AGENT_CARD_PATH}`, { headers: { 'a2a-version': '0.3' } })).json, old)
      t.match((await exchange(`${address}${AGENT_CARD_PATH}?A2A-Version=0.3`, {})).json, old)
      const both = (await exchange(`${address}${AGENT_CARD_PATH}`, {})).json as Json
      t.match(both, {
        ...old,
        supportedInterfaces: [
          { protocolVersion: '1.0' },
          { protocolVersion: '1.0' },
          { protocolVersion: '1.0' },
          { protocolVersion: '0.3' },
          { protocolVersion: '0.3' },
          { protocolVersion: '0.3' }
        ]
      })
      const current = (await exchange(`${address}${AGENT_CARD_PATH}`, { headers: { 'a2a-version': '1.0' } }))
        .json as Json
      t.match(both, current)
      t.notOk('url' in current)
    },
    OLD
  ),
  row(
    165,
    'D',
    '9.6',
    'One task is seen, followed and answered in 0.3 and in 1.0',
    async (t, { client, address }) => {
      const newer = clientOf(await jsonRpc.open(t, address), [])
      const asked = await client.task('ask')
      t.same((await newer.get(asked.id)).status, asked.status)
      const stream = client.subscribe(asked.id)
      await stream.next()
      const done = await newer.task('blue', { taskId: asked.id })
      t.match((await read(stream)).at(-1), { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } })
      t.same((await client.get(asked.id)).artifacts, done.artifacts)
    },
    OLD
  ),
  row(
    167,
    'D',
    '9.3',
    'A message without kind, with files as name, mediaType and fileWithBytes, is answered in that form',
    async (t, column) => {
      const parts = [
        { text: 'x' },
        { file: { name: 'a.bin', mediaType: 'application/octet-stream', fileWithBytes: 'AP8=' } }
      ]
      const message = { messageId: `old-${(messages += 1)}`, role: 'user', parts }
      const isRest = column.binding.name === '0.3 REST'
      const posted = {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ message })
      }
      const answer = isRest
        ? (await exchange(`${column.address}/v1/message:send`, posted)).json
        : (await rpc(column, 'message.send', { message })).result
      t.match(answer, { status: { state: 'completed' }, history: [{ role: 'user', parts }], artifacts: [{ parts }] })
      t.notMatch(JSON.stringify(answer), '"kind"')
      if (!isRest)
        t.notMatch(
          JSON.stringify((await rpc(column, 'tasks.get', { id: (answer as { id: string }).id })).result),
          '"kind"'
        )
    },
    OLD
  ),
  row(
    174,
    'D',
    '9.1',
    'A client calls an agent that knows nothing newer than 0.3, by the interfaces of its card',
    async (t, { address, binding }) => {
      const old = (await exchange(`${address}${AGENT_CARD_PATH}`, { headers: { 'a2a-version': '0.3' } })).json
      const server = createServer(
        (_, response) => void response.setHeader('connection', 'close').end(JSON.stringify(old))
      ).listen(0, '127.0.0.1')
      t.teardown(() => void server.close())
      await once(server, 'listening')
      const client = await connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, {
        bindings: [binding.name === '0.3 REST' ? 'HTTP+JSON' : 'JSONRPC']
      })
      t.teardown(() => client.close())
      t.match(await client.sendMessage(say('hello')), { message: { role: 'ROLE_AGENT' } })
      const { id } = taskIn(await client.sendMessage(say('ask')))
      t.match(taskIn(await client.sendMessage(say('blue', { taskId: id }))), {
        id,
        status: { state: 'TASK_STATE_COMPLETED' },
        artifacts: [{ parts: [{ text: 'blue' }] }]
      })
      t.match((await collect(client.sendStreamingMessage(say('count 2')))).at(-1), {
        statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } }
      })
      t.match(await refusal(client.getTask({ id: 'nobody' })), { code: 'TaskNotFound' })
      t.match(await refusal(client.listTasks({})), {
        code: 'UnsupportedOperation',
        message: /There is no ListTasks in A2A 0\.3/
      })
    },
    OLD_HTTP
  )
]

let messages = 0

/** What message/send takes. */
function saying(...parts: readonly Json[]): Json {
  return {
    message: {
      kind: 'message',
      messageId: `old-${(messages += 1)}`,
      role: 'user',
      parts: parts.map(part => ({ kind: 'text', ...part }))
    }
  }
}

async function rpc({ client: { caller } }: Column, method: string, params: Json): Promise<Json> {
  if (!caller.raw) throw new Error('This binding has no envelope')
  return caller.raw(JSON.stringify({ jsonrpc: '2.0', id: `${method} ${(messages += 1)}`, method, params }))
}

function get({ address }: Column, path: string): ReturnType<typeof exchange> {
  return exchange(`${address}${path}`, {})
}

/** The events of a message's stream, as they are on the wire. */
async function streamed(t: Test, { address, binding }: Column, text: string): Promise<Json[]> {
  const request = JSON.stringify({ jsonrpc: '2.0', id: 'stream', method: 'message/stream', params: saying({ text }) })
  if (binding.name === '0.3 WebSocket') {
    const socket = await JsonSocket.open(t, address.replace('http', 'ws'), { headers: {} })
    socket.send(request)
    return (await socket.stream('stream')).flatMap(({ result }) => (result === undefined ? [] : [result as Json]))
  }
  const isRest = binding.name === '0.3 REST'
  const body = isRest
    ? JSON.stringify({ message: { messageId: `old-${(messages += 1)}`, role: 'ROLE_USER', content: [{ text }] } })
    : request
  const { next } = await exchange(`${address}${isRest ? '/v1/message:stream' : ''}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body
  })
  const events: Json[] = []
  for (let event = (await next?.()) as Json | undefined; event; event = (await next?.()) as Json | undefined)
    events.push(isRest ? event : (event.result as Json))
  return events
}

function stateIn(update: Json | undefined): string {
  const { state = '' } = (update?.status ?? {}) as { state?: string }
  return state.replace('TASK_STATE_', '').toLowerCase().replace('_', '-')
}

/** An agent that pushes, also to this machine, and a task of it that works. */
async function pushingOn(t: Test, { serve, release }: Column) {
  const site = await serve(t, { push: webhooks({ allowLoopback: true }) })
  const client = await site.open()
  const { id: task } = await client.opened('hold', 'working')
  return { ...site, client, task, release }
}
