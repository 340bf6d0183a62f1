import { once } from 'node:events'
import { WebSocket } from 'ws'
import type { WireRefusal } from '../../../adapters/conformance/callers/caller.ts'
import type { OperationMethod } from '../../../machines/protocol/operations.ts'
import { closed, say, userMessage } from '../../fixtures/runtime/runtime-helpers.ts'
import type { Binding } from '../binding.ts'
import { byName, type Column } from '../column.ts'
import { except, row, type Row } from '../row.ts'
import { REST_ONLY } from './reasons.ts'

/** What each error is called on each kind of binding (§5.4). */
const NAMES: Readonly<Record<string, readonly [rpc: string, rest: string, grpc: string]>> = {
  TASK_NOT_FOUND: ['-32001', '404 NOT_FOUND', 'NOT_FOUND'],
  TASK_NOT_CANCELABLE: ['-32002', '400 FAILED_PRECONDITION', 'FAILED_PRECONDITION'],
  PUSH_NOTIFICATION_NOT_SUPPORTED: ['-32003', '400 FAILED_PRECONDITION', 'FAILED_PRECONDITION'],
  UNSUPPORTED_OPERATION: ['-32004', '400 FAILED_PRECONDITION', 'FAILED_PRECONDITION'],
  CONTENT_TYPE_NOT_SUPPORTED: ['-32005', '400 INVALID_ARGUMENT', 'INVALID_ARGUMENT'],
  INVALID_PARAMS: ['-32602', '400 INVALID_ARGUMENT', 'INVALID_ARGUMENT']
}

const APP_AUTHENTICATES = except(
  ['gRPC'],
  "over the official gRPC server the app's userBuilder identifies the caller and decides about access"
)

/** §10.6: errors. */
export const errors: readonly Row[] = [
  row(95, 'M', '3.3.2', 'An error has a code and a message, and details that name their types', async (t, column) => {
    for (const { native, message, details } of await refusals(column)) {
      t.match({ native, message }, { native: /./, message: /./ })
      for (const detail of details) t.match(detail, { '@type': /^type\.googleapis\.com\/google\.rpc\.\w+$/ })
    }
  }),
  row(96, 'M', '5.4', 'Errors have the codes of the binding', async (t, column) => {
    const kind = kindOf(column.binding)
    for (const [i, { native }] of (await refusals(column)).entries())
      t.equal(native, Object.values(NAMES)[i]?.[kind], `error ${i}`)
  }),
  row(97, 'M/S', '9.5, 10.6, 11.6', 'The errors of A2A have an ErrorInfo with reason and domain', async (t, column) => {
    for (const [i, { details }] of (await refusals(column)).entries()) {
      t.match(details[0], { reason: Object.keys(NAMES)[i], domain: 'a2a-protocol.org' })
    }
  }),
  row(
    98,
    'M',
    '11.6',
    'An error by REST is { error: { code, status, message, details } } under its HTTP status',
    async (t, { address }) => {
      const response = await fetch(`${address}/tasks/none`, { headers: { 'a2a-version': '1.0' } })
      t.equal(response.status, 404)
      t.match(await response.json(), {
        error: { code: 404, status: 'NOT_FOUND', message: /none/, details: [{ '@type': /ErrorInfo$/ }] }
      })
    },
    REST_ONLY
  ),
  row(
    99,
    'M/S',
    '3.3.2',
    'Parameters are checked before anything is done, and a refusal says which is wrong and what it has to be',
    async (t, { client, commits }) => {
      const before = commits()
      const { reason, message } = await client.refusal('SendMessage', {
        message: { ...userMessage('x'), messageId: '' }
      })
      t.match({ reason, message }, { reason: 'INVALID_PARAMS', message: /messageId .*must be/ })
      t.equal(commits(), before)
    }
  ),
  row(
    100,
    'M/S',
    '3.3.2, 7.4',
    'Missing or invalid credentials are refused with a challenge: 401 with WWW-Authenticate',
    async (t, { binding, serve }) => {
      const { address, open, runtime } = await serve(t, { authenticate: byName })
      for (const credentials of [undefined, 'nobody']) {
        const { status, challenge } = await knock(binding, address, credentials)
        t.match({ status, challenge }, { status: 401, challenge: /\w/ })
      }
      t.equal((await (await open({ credentials: 'ann' })).task('x')).status.state, 'TASK_STATE_COMPLETED')
      t.equal((await runtime.listTasks({}, { principal: 'ann' })).totalSize, 1)
    },
    APP_AUTHENTICATES
  ),
  row(
    101,
    'M/S',
    '3.3.2',
    'A caller without permission gets an authorization error, which may name the permission',
    async (t, { serve, binding }) => {
      const { open } = await serve(t, {
        authenticate: byName,
        authorize: ({ operation }) => operation !== 'cancelTask' || 'The scope tasks:cancel is missing.'
      })
      const { native, reason, message } = await (
        await open({ credentials: 'ann' })
      ).refusal('CancelTask', { id: 'none' })
      t.equal(native, (['-31403', '403 PERMISSION_DENIED', 'PERMISSION_DENIED'] as const)[kindOf(binding)])
      t.match({ reason, message }, { reason: 'FORBIDDEN', message: /tasks:cancel/ })
    }
  ),
  row(102, 'M/S', '3.3.2', 'Resources of another caller look nonexistent', async (t, { serve }) => {
    const { open } = await serve(t, { authenticate: byName })
    const [ann, bob] = [await open({ credentials: 'ann' }), await open({ credentials: 'bob' })]
    const { id } = await ann.task('ask')
    const attempts: readonly (readonly [OperationMethod, (id: string) => object])[] = [
      ['GetTask', id => ({ id })],
      ['CancelTask', id => ({ id })],
      ['SubscribeToTask', id => ({ id })],
      ['SendMessage', taskId => say('x', { taskId })],
      ['SendStreamingMessage', taskId => say('x', { taskId })]
    ]
    for (const [method, params] of attempts) {
      const [foreign, missing] = [await bob.refusal(method, params(id)), await bob.refusal(method, params('made-up'))]
      t.equal(foreign.reason, 'TASK_NOT_FOUND')
      t.same(shown(foreign).replaceAll(id, 'made-up'), shown(missing), method)
    }
  }),
  row(
    103,
    'S',
    '3.3.2',
    'Temporary errors differ from permanent ones, and may say when to retry',
    async (t, { binding, serve }) => {
      const { open, runtime, clock } = await serve(t, { limits: { tasksPerContext: 1 } })
      const client = await open()
      await client.task('wait', { contextId: 'full' }, { returnImmediately: true })
      const full = await client.refusal('SendMessage', say('x', { contextId: 'full' }))
      t.match(
        { native: full.native, reason: full.reason },
        {
          native: (['-31429', '429 RESOURCE_EXHAUSTED', 'RESOURCE_EXHAUSTED'] as const)[kindOf(binding)],
          reason: 'RATE_LIMITED'
        }
      )
      t.notMatch(JSON.stringify((await client.refusal('GetTask', { id: 'made-up' })).details), /retry/i)
      await closed(runtime, clock)
      const { native, details } = await client.refusal('GetTask', { id: 'made-up' })
      t.equal(native, (['-31503', '503 UNAVAILABLE', 'UNAVAILABLE'] as const)[kindOf(binding)])
      t.match(JSON.stringify(details), /retry/i)
    }
  )
]

/** An error of each name that can be had here, in the order of the names. */
async function refusals({ client }: Column): Promise<WireRefusal[]> {
  const { id, contextId = '' } = await client.task('x')
  return [
    await client.refusal('GetTask', { id: 'made-up' }),
    await client.refusal('CancelTask', { id }),
    await client.refusal('GetTaskPushNotificationConfig', { taskId: id, id: 'p' }),
    await client.refusal('SendMessage', say('x', { taskId: id })),
    await client.refusal('SendMessage', say('', { parts: [{ raw: 'AAAA', mediaType: 'video/mp4' }] })),
    await client.refusal('SendMessage', say('x', { contextId, parts: [] }))
  ]
}

function kindOf({ name }: Binding): 0 | 1 | 2 {
  if (name === 'gRPC') return 2
  return name.includes('REST') ? 1 : 0
}

function shown({ native, message, details }: WireRefusal): string {
  return JSON.stringify({ native, message, details })
}

/** How a server answers at its door: to a handshake, or to a request. */
async function knock(
  { name }: Binding,
  address: string,
  credentials: string | undefined
): Promise<{ status?: number | undefined; challenge?: unknown }> {
  const headers = { 'a2a-version': '1.0', ...(credentials !== undefined && { authorization: `Bearer ${credentials}` }) }
  if (!name.includes('WebSocket')) {
    const response = await fetch(name.includes('REST') ? `${address}/tasks` : address, {
      ...(!name.includes('REST') && { method: 'POST', body: '{}' }),
      headers
    })
    return { status: response.status, challenge: response.headers.get('www-authenticate') }
  }
  const socket = new WebSocket(address.replace('http', 'ws'), { headers })
  socket.on('error', () => {})
  const [, response] = (await once(socket, 'unexpected-response')) as [
    unknown,
    { statusCode?: number; headers: Record<string, string> }
  ]
  return { status: response.statusCode, challenge: response.headers['www-authenticate'] }
}
