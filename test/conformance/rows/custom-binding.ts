import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { PING_INTERVAL_MS } from '../../../adapters/websocket/heartbeat.ts'
import { READER_STALL_MS } from '../../../adapters/entry/connection.ts'
import type { AgentCard } from '../../../machines/protocol/card.ts'
import { ERRORS } from '../../../machines/protocol/errors.ts'
import { OPERATIONS, type OperationMethod } from '../../../machines/protocol/operations.ts'
import { AGENT_CARD_PATH, RELIABILITY_EXTENSION, WEBSOCKET_BINDING } from '../../../machines/protocol/uris.ts'
import { artifact } from '../../../runtime/authoring/words.ts'
import type { WorkFunction } from '../../../runtime/work/function-work.ts'
import { brief, say, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { eventIn, JsonSocket } from '../../fixtures/servers/served-agent.ts'
import { standsStill } from '../../fixtures/runtime/stands-still.ts'
import { byName, type Column, type Test } from '../column.ts'
import { row, type Row } from '../row.ts'
import { WEBSOCKET_ONLY } from './reasons.ts'

const PARAMETERS = 'a2a-service-parameters'

/** §10.11: the WebSocket binding, which is a custom one. docs/websocket-binding.md is its text. */
export const customBinding: readonly Row[] = [
  row(
    144,
    'M',
    '12.1',
    'All eleven operations are there',
    async (t, column) => {
      const socket = await connected(t, column)
      for (const method of Object.keys(OPERATIONS) as OperationMethod[]) {
        const { error } = await socket.call(method, { bad: true })
        t.not(error?.code, ERRORS.MethodNotFound.code, method)
      }
    },
    WEBSOCKET_ONLY
  ),
  row(
    145,
    'M',
    '12.3',
    'Service parameters come with the handshake, in headers or query, and with a frame, whose count for it',
    async (t, { address }) => {
      const url = address.replace('http', 'ws')
      const [byHeader, byQuery, without] = [
        await JsonSocket.open(t, url, { headers: { 'a2a-version': '1.0', 'a2a-extensions': RELIABILITY_EXTENSION } }),
        await JsonSocket.open(t, `${url}/?A2A-Version=1.0&a2a-extensions=${RELIABILITY_EXTENSION}`, { headers: {} }),
        await JsonSocket.open(t, url, { headers: {} })
      ]
      const active = { [PARAMETERS]: { 'a2a-extensions': RELIABILITY_EXTENSION } }
      for (const socket of [byHeader, byQuery])
        t.match(await socket.call('ListTasks', {}), { ...active, result: Object })
      t.notOk(PARAMETERS in (await byHeader.call('ListTasks', {}, { [PARAMETERS]: { 'a2a-extensions': '' } })))
      t.match(await without.call('ListTasks', {}, { [PARAMETERS]: { 'a2a-version': '1.0' } }), { result: Object })
      t.match(await without.call('ListTasks', {}), { error: { code: ERRORS.VersionNotSupported.code } })
    },
    WEBSOCKET_ONLY
  ),
  row(
    146,
    'M',
    '5.4, 12.4',
    'All errors of A2A and of JSON-RPC differ, with their details, and are in the text',
    async (t, column) => {
      const text = readFileSync('docs/websocket-binding.md', 'utf8')
      for (const [name, { code, reason }] of Object.entries(ERRORS))
        t.match(text, `| ${name} | ${code} | \`${reason}\``)
      t.equal(new Set(Object.values(ERRORS).map(({ code }) => code)).size, Object.keys(ERRORS).length)
      const socket = await connected(t, column)
      t.match(await socket.call('GetTask', { id: 'none' }), {
        error: { code: -32001, data: [{ reason: 'TASK_NOT_FOUND', metadata: { taskId: 'none' } }] }
      })
      t.match(await socket.call('GetTask', { id: 1 }), {
        error: { code: -32602, data: [{ reason: 'INVALID_PARAMS' }, { fieldViolations: [{ field: 'id' }] }] }
      })
    },
    WEBSOCKET_ONLY
  ),
  row(
    147,
    'M',
    '3.5.2, 12.5',
    'Each stream is in order and its end is signalled; the others go on',
    async (t, column) => {
      const socket = await connected(t, column)
      const [counting, waiting] = [
        socket.request('SendStreamingMessage', say('count 20')),
        socket.request('SendStreamingMessage', say('wait'))
      ]
      const told = await socket.stream(counting)
      t.match(told.pop(), { id: counting, streamEnd: true })
      t.same(
        told
          .map(eventIn)
          .map(brief)
          .filter(text => text.startsWith('artifact')),
        Array.from({ length: 20 }, (_, i) => `artifact: ${i + 1}`)
      )
      const [first] = [await socket.next(waiting)]
      const { task } = eventIn(first) as { task: { id: string } }
      await socket.call('CancelTask', { id: task.id })
      const rest = await socket.stream(waiting)
      t.match(rest.at(-1), { streamEnd: true })
    },
    WEBSOCKET_ONLY
  ),
  row(
    148,
    'M',
    '12.5',
    'After a lost connection tasks have gone on, and a subscription begins with the task as it is',
    async (t, column) => {
      const lost = await connected(t, column)
      const id = lost.request('SendStreamingMessage', say('hold'))
      const { task } = eventIn(await lost.next(id)) as { task: { id: string } }
      lost.socket.terminate()
      const again = await connected(t, column)
      const stream = again.request('SubscribeToTask', { id: task.id })
      t.match(eventIn(await again.next(stream)), { task: { id: task.id } })
      column.release()
      t.equal((await again.stream(stream)).slice(0, -1).map(eventIn).map(brief).at(-1), 'completed')
      t.match(readFileSync('docs/websocket-binding.md', 'utf8'), /^## Reconnection$/m)
    },
    WEBSOCKET_ONLY
  ),
  row(
    149,
    'M',
    '12.6',
    'Credentials come with the handshake; without them it is refused, with a challenge',
    async (t, { serve }) => {
      const { address } = await serve(t, { authenticate: byName })
      const url = address.replace('http', 'ws')
      const known = await JsonSocket.open(t, url, { headers: { 'a2a-version': '1.0', authorization: 'Bearer ann' } })
      t.match(await known.call('ListTasks', {}), { result: { totalSize: 0 } })
      const refused = new WebSocket(url)
      refused.on('error', () => {})
      const [, { statusCode, headers }] = (await once(refused, 'unexpected-response')) as [
        unknown,
        { statusCode: number; headers: Record<string, string> }
      ]
      t.match({ statusCode, challenge: headers['www-authenticate'] }, { statusCode: 401, challenge: 'Bearer' })
    },
    WEBSOCKET_ONLY
  ),
  row(
    150,
    'M',
    '5.8, 12.7',
    'The card lists it by a URI, with its address and version',
    async (t, { address }) => {
      const { supportedInterfaces } = (await (await fetch(`${address}${AGENT_CARD_PATH}`)).json()) as AgentCard
      t.match(
        supportedInterfaces.find(({ protocolBinding }) => URL.canParse(protocolBinding)),
        { protocolBinding: WEBSOCKET_BINDING, url: /^ws:/, protocolVersion: '1.0' }
      )
    },
    WEBSOCKET_ONLY
  ),
  row(
    151,
    'S',
    '12.8',
    'Large payloads, errors and long tasks are tried, and samples and deviations are in the text',
    async (t, { client, serve }) => {
      const parts = Array.from({ length: 4 }, (_, i) => ({ text: String(i).repeat(500_000) }))
      t.same((await client.task('', { parts })).artifacts?.[0]?.parts, parts)
      const { open, clock } = await serve(t, {}, { work: async ({ sleep }) => sleep(90 * 24 * 60 * 60 * 1000) })
      const { id } = await (await open()).opened('x', 'working')
      clock.increment(90 * 24 * 60 * 60 * 1000)
      const later = await open()
      await until(async () => (await later.get(id)).status.state === 'TASK_STATE_COMPLETED')
      const binding = readFileSync('docs/websocket-binding.md', 'utf8')
      for (const heading of ['Samples', 'Deviations']) t.match(binding, new RegExp(`^## ${heading}$`, 'm'))
    },
    WEBSOCKET_ONLY
  ),
  row(
    152,
    'D',
    '12.5',
    'A live id is refused; cancelStream ends no task; binary and oversized frames, foreign pages and dead or slow clients are dealt with',
    async (t, column) => {
      const socket = await connected(t, column)
      const id = socket.request('SendStreamingMessage', say('wait'))
      const { task } = eventIn(await socket.next(id)) as { task: { id: string } }
      socket.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'GetTask', params: { id: task.id } }))
      t.match((await socket.stream(id)).at(-1), { error: { code: ERRORS.InvalidRequest.code } })
      socket.cancelStream(id)
      t.match((await socket.stream(id)).at(-1), { streamEnd: true })
      t.match(await socket.call('GetTask', { id: task.id }), { result: { status: { state: 'TASK_STATE_WORKING' } } })
      const pinged = once(socket.socket, 'ping')
      column.clock.increment(PING_INTERVAL_MS)
      await pinged
      const [binary, large] = [await connected(t, column), await connected(t, column)]
      binary.socket.send(Buffer.from('{}'))
      t.match(await binary.closed(), { code: 1003 })
      large.send(' '.repeat(5 * 2 ** 20))
      t.match(await large.closed(), { code: 1009 })
      const foreign = new WebSocket(column.address.replace('http', 'ws'), { origin: 'https://evil.example' })
      foreign.on('error', () => {})
      const [, { statusCode }] = (await once(foreign, 'unexpected-response')) as [unknown, { statusCode: number }]
      t.equal(statusCode, 403)
      const site = await column.serve(t, {}, { work: flood })
      const slow = await connected(t, site)
      slow.request('SendStreamingMessage', say('x'))
      slow.socket.pause()
      const timers = site.clock.size
      await standsStill(() => site.clock.size > timers && site.clock.size, 'the connection to be full')
      site.clock.increment(READER_STALL_MS)
      slow.socket.resume()
      t.match(await slow.closed(), { code: 4413 })
    },
    WEBSOCKET_ONLY
  ),
  row(
    153,
    'D',
    '12.5',
    'While a thousand streams are open on a connection calls are answered as ever',
    async (t, column) => {
      const socket = await connected(t, column)
      const { result } = await socket.call('SendMessage', say('hold', {}, { returnImmediately: true }))
      const { task } = result as { task: { id: string } }
      const streams = Array.from({ length: 1000 }, () => socket.request('SubscribeToTask', { id: task.id }))
      await Promise.all(streams.map(id => socket.next(id)))
      t.match(await socket.call('GetTask', { id: task.id }), { result: { id: task.id } })
      column.release()
      t.match(await socket.call('GetTask', { id: task.id }), { result: { id: task.id } })
      const ends = await Promise.all(streams.map(async id => (await socket.stream(id)).at(-1)?.streamEnd))
      t.equal(ends.filter(Boolean).length, 1000)
    },
    WEBSOCKET_ONLY
  )
]

/** Tells more than fits between two ends of a connection. */
const flood: WorkFunction = async ({ emit, signal }) => {
  for (let i = 0; i < 300 && !signal.aborted; i += 1) {
    emit(artifact('x'.repeat(64 * 1024)))
    await setImmediate()
  }
}

function connected(t: Test, { address }: Pick<Column, 'address'>): Promise<JsonSocket> {
  return JsonSocket.open(t, address.replace('http', 'ws'))
}
