import { exchange } from '../../../adapters/conformance/callers/exchange.ts'
import { OPERATIONS } from '../../../machines/protocol/operations.ts'
import { say, userMessage } from '../../fixtures/runtime/runtime-helpers.ts'
import type { Column, Test } from '../column.ts'
import { row, type Row } from '../row.ts'
import { GRPC_ONLY, JSON_RPC_ONLY, NOT_03, REST_ONLY, RPC_HTTP_ONLY } from './reasons.ts'

type Json = Record<string, unknown>

/**
 * The ids of the events of a task with seven, after the message that opened it: by them a client that was cut off says
 * where it goes on.
 */
const GENERATIONS = ['2', '3', '4', '5', '6', '7', '8']

/** §10.1: what requests, answers and routes are on each binding. */
export const envelope: readonly Row[] = [
  row(
    14,
    'M',
    '9.3',
    'JSON-RPC answers are of 2.0 and under the id of the request, null if there is none to tell',
    async (t, column) => {
      for (const id of ['text', 0, -7, 2 ** 53 - 1, ''])
        t.match(await rpc(column, { id }), { jsonrpc: '2.0', id, error: { code: -32001 } })
      t.match(await raw(column, '{'), { jsonrpc: '2.0', id: null })
      await isNotDoneWithoutId(t, column)
    },
    JSON_RPC_ONLY
  ),
  row(
    15,
    'M',
    '9.1',
    'JSON-RPC over HTTP is application/json',
    async (t, column) => {
      const { response } = await post(column, JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'nothing' }))
      t.equal(response.headers.get('content-type'), 'application/json')
      const { response: refused } = await post(column, 'x', { 'content-type': 'text/plain' })
      t.equal(refused.status, 415)
    },
    RPC_HTTP_ONLY
  ),
  row(
    16,
    'M',
    '5.3, 9.1',
    'The methods of JSON-RPC have the names of A2A',
    async (t, column) => {
      for (const method of Object.keys(OPERATIONS)) {
        const { error } = await rpc(column, { id: method, method, params: {} })
        t.not((error as Json | undefined)?.code, -32601, method)
      }
      t.match(await rpc(column, { id: 1, method: 'sendMessage' }), { error: { code: -32601 } })
    },
    JSON_RPC_ONLY,
    NOT_03
  ),
  row(
    17,
    'M',
    '9.5',
    'Bad JSON, no request, no such method and bad parameters have the codes of JSON-RPC',
    async (t, column) => {
      t.match(await raw(column, '{"jsonrpc"'), { error: { code: -32700 } })
      t.match(await raw(column, '[]'), { error: { code: -32600 } })
      t.match(await raw(column, '{"id":1,"method":"GetTask"}'), { error: { code: -32600 } })
      t.match(await rpc(column, { id: 1, method: 'Get/Nothing' }), { error: { code: -32601 } })
      t.match(await rpc(column, { id: 1, params: { id: 7 } }), { error: { code: -32602 } })
    },
    JSON_RPC_ONLY
  ),
  row(
    18,
    'M',
    '9.4.2',
    'JSON-RPC streams are server-sent events, each a whole response under the id of the request',
    async (t, column) => {
      const method = column.binding.version === '1.0' ? 'SendStreamingMessage' : 'message/stream'
      const params =
        column.binding.version === '1.0'
          ? say('count 2')
          : {
              message: { ...userMessage(''), kind: 'message', role: 'user', parts: [{ kind: 'text', text: 'count 2' }] }
            }
      const { response, next } = await post(column, JSON.stringify({ jsonrpc: '2.0', id: 'stream', method, params }))
      t.equal(response.headers.get('content-type'), 'text/event-stream')
      let count = 0
      for (let event = await next?.(); event; event = await next?.(), count += 1)
        t.match(event, { jsonrpc: '2.0', id: 'stream', result: Object })
      t.equal(count, 7)
      t.same(
        await eventIds(column.address, { jsonrpc: '2.0', id: 'stream', method, params }, column.binding.version),
        GENERATIONS
      )
    },
    RPC_HTTP_ONLY
  ),
  row(
    19,
    'M',
    '11.3',
    'REST has the verbs and routes of A2A',
    async (t, { address }) => {
      const routes = [
        ['POST', '/message:send'],
        ['POST', '/message:stream'],
        ['GET', '/tasks/none'],
        ['GET', '/tasks'],
        ['POST', '/tasks/none:cancel'],
        ['POST', '/tasks/none:subscribe'],
        ['POST', '/tasks/none/pushNotificationConfigs'],
        ['GET', '/tasks/none/pushNotificationConfigs/p'],
        ['GET', '/tasks/none/pushNotificationConfigs'],
        ['DELETE', '/tasks/none/pushNotificationConfigs/p'],
        ['GET', '/extendedAgentCard']
      ] as const
      for (const [method, path] of routes) {
        const { response, json } = await rest(address, method, path)
        t.notOk(response.status === 405 || JSON.stringify(json).includes('METHOD_NOT_FOUND'), `${method} ${path}`)
      }
      t.equal((await rest(address, 'GET', '/message:send')).response.status, 405)
      t.equal((await rest(address, 'GET', '/nothing')).response.status, 404)
    },
    REST_ONLY
  ),
  row(
    20,
    'S',
    '11.1',
    'REST speaks application/a2a+json, and takes application/json',
    async (t, { address }) => {
      for (const type of ['application/a2a+json', 'application/json']) {
        const { response } = await rest(address, 'POST', '/message:send', say('x'), { 'content-type': type })
        t.equal(response.status, 200)
        t.equal(response.headers.get('content-type'), type)
      }
      const { response } = await rest(address, 'GET', '/tasks', undefined, { accept: 'application/a2a+json' })
      t.equal(response.headers.get('content-type'), 'application/a2a+json')
    },
    REST_ONLY
  ),
  row(
    21,
    'M',
    '11.5',
    'REST reads parameters from path and query: camelCase, true and false, names of enums, ISO times, percent-encoded',
    async (t, { client, address }) => {
      const { id, contextId = '' } = await client.task('x', { contextId: 'a b/ü?&=#' })
      const query = `contextId=${encodeURIComponent(contextId)}&status=TASK_STATE_COMPLETED&pageSize=1&historyLength=0&includeArtifacts=true&statusTimestampAfter=2020-01-01T00:00:00Z`
      t.match((await rest(address, 'GET', `/tasks?${query}`)).json, {
        tasks: [{ id, artifacts: [Object] }],
        totalSize: 1,
        pageSize: 1
      })
      t.match((await rest(address, 'GET', `/tasks?${query.replace('COMPLETED', 'FAILED')}`)).json, { totalSize: 0 })
      t.notOk('artifacts' in tasks((await rest(address, 'GET', `/tasks?${query.replace('=true', '=false')}`)).json))
      for (const bad of ['includeArtifacts=TRUE', 'status=completed', 'pageSize=x'])
        t.equal((await rest(address, 'GET', `/tasks?${bad}`)).response.status, 400, bad)
    },
    REST_ONLY
  ),
  row(
    22,
    'M',
    '11.7',
    'REST streams are server-sent events, each a StreamResponse',
    async (t, { address }) => {
      const { response, next } = await rest(address, 'POST', '/message:stream', say('count 2'))
      t.equal(response.headers.get('content-type'), 'text/event-stream')
      const members: unknown[] = []
      for (let event = await next?.(); event; event = await next?.()) members.push(...Object.keys(event))
      t.same(members, [
        'task',
        'statusUpdate',
        'statusUpdate',
        'artifactUpdate',
        'statusUpdate',
        'artifactUpdate',
        'statusUpdate'
      ])
      t.same(await eventIds(`${address}/message:stream`, say('count 2')), GENERATIONS)
    },
    REST_ONLY
  ),
  row(
    23,
    'M',
    '10.1, 10.7',
    'gRPC is lf.a2a.v1.A2AService, with streams from the server; the app that serves it adds TLS',
    async (t, { client }) => {
      t.equal((await client.task('x')).status.state, 'TASK_STATE_COMPLETED')
      const stream = client.stream('x')
      t.ok(await stream.next())
      stream.leave()
    },
    GRPC_ONLY
  ),
  row(
    24,
    'D',
    '5.3, 11.3',
    'Subscribing works by GET and POST; tenants may stand in front, a slash behind, and an empty POST has no body',
    async (t, { client, address }) => {
      for (const verb of ['GET', 'POST'] as const) {
        const { id } = await client.opened('hold', 'working')
        const { response, next } = await rest(address, verb, `/tasks/${id}:subscribe/`)
        t.equal(response.status, 200)
        t.match(await next?.(), { task: { id } })
        t.match((await rest(address, 'POST', `/tasks/${id}:cancel`)).json, {
          id,
          status: { state: 'TASK_STATE_CANCELED' }
        })
      }
      t.match((await rest(address, 'POST', '/acme/message:send', say('x'))).json, { task: Object })
      t.match((await rest(address, 'GET', '/acme/tasks')).json, { totalSize: 1 })
    },
    REST_ONLY
  )
]

/** Asks for a task that is not there, unless `more` says otherwise. */
function rpc({ binding, client }: Column, more: Json): Promise<Json> {
  const method = binding.version === '1.0' ? 'GetTask' : 'tasks/get'
  return raw({ client }, JSON.stringify({ jsonrpc: '2.0', method, params: { id: 'none' }, ...more }))
}

/** A cancel without an id is not answered, which over HTTP is an answer without content, and cancels nothing. */
async function isNotDoneWithoutId(t: Test, { binding, open }: Column): Promise<void> {
  const client = await open()
  const { id } = await client.opened('wait', 'working')
  const method = binding.version === '1.0' ? 'CancelTask' : 'tasks/cancel'
  const answer = raw({ client }, JSON.stringify({ jsonrpc: '2.0', method, params: { id } }))
  if (binding.name.endsWith('JSON-RPC')) t.same(await answer, {})
  else answer.catch(() => {})
  // By the answer to what is sent after it, it would be done.
  await client.task('x')
  t.equal((await client.get(id)).status.state, 'TASK_STATE_WORKING')
  t.equal((await client.cancel(id)).status.state, 'TASK_STATE_CANCELED')
}

async function raw({ client: { caller } }: Pick<Column, 'client'>, text: string): Promise<Json> {
  if (!caller.raw) throw new Error('This binding has no envelope')
  return caller.raw(text)
}

function post(
  { address, binding }: Column,
  body: string,
  headers: Record<string, string> = {}
): ReturnType<typeof exchange> {
  const version = binding.version === '1.0' ? { 'a2a-version': '1.0' } : {}
  return exchange(address, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...version, ...headers }
  })
}

function rest(
  address: string,
  method: string,
  path: string,
  body?: object,
  headers: Record<string, string> = {}
): ReturnType<typeof exchange> {
  const own = body && { body: JSON.stringify(body) }
  return exchange(`${address}${path}`, {
    method,
    ...own,
    headers: { ...(body && { 'content-type': 'application/json' }), 'a2a-version': '1.0', ...headers }
  })
}

/** The ids of the events of a stream. */
async function eventIds(url: string, body: object, version = '1.0'): Promise<(string | undefined)[]> {
  const headers = { 'content-type': 'application/json', ...(version === '1.0' && { 'a2a-version': version }) }
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body), headers })
  return Array.from((await response.text()).matchAll(/^id: ?(.*)$/gm), ([, id]) => id)
}

function tasks(json: unknown): object {
  return (json as { tasks: object[] }).tasks[0] ?? {}
}
