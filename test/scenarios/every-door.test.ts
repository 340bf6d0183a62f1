import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import * as sdk from '@a2a-js/sdk'
import { A2AService } from '@a2a-js/sdk/server/grpc'
import { Client, credentials, status } from '@grpc/grpc-js'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { proofOf } from '../../adapters/cluster/link/frames.ts'
import { WEBSOCKET_SUBPROTOCOL } from '../../machines/protocol/uris.ts'
import { TOKEN, feedUrl } from '../fixtures/pages/feed-reader.ts'
import { spawnBare } from '../fixtures/processes/bare-process.ts'
import { IS_WHOLE, SEED, randomFrom, sampleOf } from '../fixtures/sample.ts'
import { SECRET, type EveryDoor } from '../fixtures/servers/every-door.ts'

/** The text of JSON of every kind, which a place is given that expects another one. */
const KINDS = [
  'null',
  'true',
  'false',
  '0',
  '-1',
  '1.5',
  '1e400',
  '-0',
  '9007199254740993',
  '""',
  '"x"',
  '"\\u0000"',
  '"\\ud800"',
  '"\\u202e"',
  '"__proto__"',
  '"constructor"',
  `"${'x'.repeat(2000)}"`,
  '[]',
  '[null]',
  '[[]]',
  '{}',
  '{"toString":1}',
  '{"toString":null,"valueOf":null}',
  '{"__proto__":{"id":"x"}}',
  '{"constructor":{"prototype":1}}',
  '{"toJSON":1}',
  '{"then":1}',
  '{"length":1e9}',
  '{"size":"x","has":1}',
  `${'['.repeat(120)}${']'.repeat(120)}`
]

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

/** A place in a value: the names and indexes that lead there. */
type Place = readonly string[]

/** Every place in a value; each object also has one for a member that it does not know. */
function placesIn(value: Json, here: Place = []): Place[] {
  if (typeof value !== 'object' || value === null) return [here]
  const inside = Object.entries(value).flatMap(([name, inner]) => placesIn(inner, [...here, name]))
  return [here, ...inside, ...(Array.isArray(value) ? [] : [[...here, 'unknown']])]
}

/** The JSON text of a value in which other text stands at some places; '' takes a member out. */
function textWith(value: Json, changes: ReadonlyMap<string, string>, here: Place = []): string {
  const change = changes.get(here.join('/'))
  if (change !== undefined) return change
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value))
    return `[${value.map((inner, i) => textWith(inner, changes, [...here, String(i)]) || 'null').join(',')}]`
  const members: readonly [string, Json][] = [
    ...Object.entries(value),
    ...(changes.has([...here, 'unknown'].join('/')) ? [['unknown', null] as [string, null]] : [])
  ]
  return `{${members.flatMap(([name, inner]) => textWith(inner, changes, [...here, name]).replace(/^(?=.)/s, `${JSON.stringify(name)}:`) || []).join(',')}}`
}

/** Every value with one place of another kind, or with one member taken out. */
function changedOnce(value: Json): string[] {
  return placesIn(value).flatMap(place =>
    [...KINDS, ...(place.length > 0 ? [''] : [])].map(kind => textWith(value, new Map([[place.join('/'), kind]])))
  )
}

/** A value with up to four places of other kinds. */
function changedOften(value: Json, random: () => number): string {
  const of = <T>(all: readonly T[]) => all[Math.floor(random() * all.length)] as T
  const places = placesIn(value)
  return textWith(
    value,
    new Map(Array.from({ length: 1 + Math.floor(random() * 4) }, () => [of(places).join('/'), of(KINDS)]))
  )
}

/** One way into the process. */
interface Door {
  readonly name: string
  /** Good values of everything that it takes. */
  readonly samples: readonly Json[]
  /**
   * Sends the text of a changed value of a sample, and resolves with the answer as text, which begins with `refused`
   * where that is not in it.
   */
  readonly send: (text: string, sample: Json) => Promise<string>
}

/**
 * How many inputs of each door `npm test` takes, and a deep run. A whole one takes every one with one change, and as
 * many again with up to four.
 */
const [SAMPLE, DEEP_SAMPLE] = [40, 120]

/**
 * Answers that blame the server. A body that is no message of protobuf is what grpc-js itself answers with INTERNAL.
 */
const WRONG =
  /"code":\s*(?:-32603|"InternalError")|^refused with (?:50[02-9]|the close code (?:1006|1011)|UNKNOWN|INTERNAL: (?!.*deserializ))/im

/** Answers to what is not well formed. */
const MALFORMED = /"code":\s*-32(?:60[0-2]|700)|INVALID_|^refused with (?:415|the close code)/m

/** The door at which no value is good. */
const BEFORE_PROOF = 'the link, before a proof'

/** How long a door may leave an input without an answer, however busy the machine is. */
const PATIENCE_MS = 120_000

await t.test(
  'no input of any kind at any door ends the process, or is answered with an error of the server',
  async t => {
    const { child, doors, errors } = await started(t)
    for (const { name, samples, send } of doorsOf(t, doors)) {
      await t.test(name, async t => {
        const random = randomFrom(SEED)
        const inputs = samples.flatMap(sample => changedOnce(sample).map(text => ({ text, sample })))
        const drawn = IS_WHOLE ? inputs.map(({ sample }) => ({ text: changedOften(sample, random), sample })) : []
        for (const { text, sample } of [...sampleOf(t, inputs, SAMPLE, DEEP_SAMPLE), ...drawn]) {
          const answer = await send(text, sample)
          if (WRONG.test(answer)) t.fail(`${text.slice(0, 300)} is answered with ${answer.slice(0, 300)}`)
        }
        for (const [i, sample] of samples.entries())
          if (name !== BEFORE_PROOF)
            t.notMatch(await send(JSON.stringify(sample), sample), MALFORMED, `the good value ${i} is well formed`)
      })
    }
    t.equal(child.exitCode, null, 'the process lives')
    t.same(errors, [])
  }
)

/** Starts the process, which ends with the test. */
async function started(t: Test): Promise<{ child: ChildProcess; doors: EveryDoor; errors: string[] }> {
  const child = spawnBare([fileURLToPath(new URL('../fixtures/servers/every-door.js', import.meta.url))], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc']
  })
  t.teardown(() => child.kill('SIGKILL'))
  const errors: string[] = []
  child.on('message', ({ error }: { readonly error?: string }) => void (error !== undefined && errors.push(error)))
  const [{ doors }] = (await once(child, 'message')) as [{ readonly doors: EveryDoor }]
  return { child, doors, errors }
}

function doorsOf(t: Test, doors: EveryDoor): Door[] {
  const { url, link, metrics } = doors
  const calls = callsOf(doors)
  const [calls03, calls01] = [callsOf03(doors), callsOf01(doors)]
  return [
    { name: 'WebSocket', samples: calls, send: overWebSocket(t, url.replace('http', 'ws'), webSocketOf('1.0')) },
    { name: 'JSON-RPC', samples: calls, send: overHttp(url, '1.0') },
    { name: 'JSON-RPC of 0.3', samples: calls03, send: overHttp(url, '0.3') },
    { name: 'JSON-RPC of 0.1', samples: calls01, send: overHttp(url) },
    {
      name: 'WebSocket of 0.3',
      samples: calls03,
      send: overWebSocket(t, url.replace('http', 'ws'), webSocketOf('0.3'))
    },
    { name: 'REST', samples: restOf(calls), send: overRest(url, '1.0') },
    { name: 'REST of 0.3', samples: restOf03(doors), send: overRest(url, '0.3') },
    {
      name: 'gRPC',
      samples: calls.filter(({ method }) => method !== 'GetExtendedAgentCard'),
      send: overGrpc(t, doors.grpc)
    },
    {
      name: BEFORE_PROOF,
      samples: [{ number: 'n', proof: 'p' }],
      send: overWebSocket(t, link, { last: '{}', isAnswer: () => false })
    },
    {
      name: 'the link, after a proof',
      samples: requestsOfNodes(),
      send: overWebSocket(t, link, {
        secret: SECRET,
        last: '{"id":0,"withhold":{"tenant":"none","principal":"nobody"}}',
        isAnswer: ({ id }) => id === 0
      })
    },
    {
      name: 'the feed of the page',
      samples: requestsOfPages(doors),
      send: overWebSocket(t, feedUrl(url, TOKEN), {
        // No input has this id, so none before it has the same answer.
        last: '{"type":"authorize","taskId":"the last"}',
        isAnswer: ({ type, taskId }) => type === 'authorized' && taskId === 'the last'
      })
    },
    {
      name: 'the addresses of the page',
      samples: [
        { verb: 'GET', path: '/inspector/story', query: { context: doors.context, task: doors.done, token: TOKEN } },
        { verb: 'GET', path: '/inspector/', query: {} }
      ],
      send: overRest(url)
    },
    {
      name: 'the metrics',
      samples: [
        { verb: 'GET', path: '/metrics', query: { name: 'x' } },
        { verb: 'POST', path: '/metrics', body: {} }
      ],
      send: overRest(metrics.replace('/metrics', '/'))
    }
  ]
}

type Call = {
  readonly jsonrpc: '2.0'
  readonly id: string
  readonly method: string
  readonly params: { readonly [name: string]: Json }
}

function call(method: string, params: Call['params']): Call {
  return { jsonrpc: '2.0', id: 'r', method, params }
}

/** A call of each method of 1.0. */
function callsOf({ done, asking, context, metrics }: EveryDoor): Call[] {
  const hook = { id: 'p1', url: metrics, token: 'x', authentication: { scheme: 'Bearer', credentials: 'x' } }
  const message = {
    messageId: 'm',
    role: 'ROLE_USER',
    parts: [
      { text: 'x', metadata: { a: 1 } },
      { data: { a: [1] } },
      { raw: 'aGk=', mediaType: 'image/png', filename: 'a.png' },
      { url: 'https://a.example/x' }
    ]
  }
  const whole = { ...message, contextId: context, metadata: { a: 1 }, extensions: ['urn:x'], referenceTaskIds: [done] }
  const configuration = {
    acceptedOutputModes: ['text/plain'],
    historyLength: 1,
    returnImmediately: true,
    taskPushNotificationConfig: hook
  }
  return [
    call('SendMessage', { message: whole, configuration, metadata: { a: 1 } }),
    call('SendStreamingMessage', { message }),
    call('GetTask', { id: done, historyLength: 1 }),
    call('ListTasks', {
      contextId: context,
      status: 'TASK_STATE_COMPLETED',
      pageSize: 10,
      pageToken: '',
      historyLength: 0,
      includeArtifacts: true,
      statusTimestampAfter: '2026-01-02T03:04:05Z'
    }),
    call('CancelTask', { id: done, metadata: { a: 1 } }),
    call('SubscribeToTask', { id: done }),
    call('CreateTaskPushNotificationConfig', { ...hook, taskId: asking }),
    call('GetTaskPushNotificationConfig', { taskId: asking, id: 'p1' }),
    call('ListTaskPushNotificationConfigs', { taskId: asking, pageSize: 1, pageToken: '' }),
    call('DeleteTaskPushNotificationConfig', { taskId: done, id: 'p2' }),
    call('GetExtendedAgentCard', {})
  ]
}

/** A call of each method of 0.3. */
function callsOf03({ done, asking, context, metrics }: EveryDoor): Call[] {
  const hook = { id: 'p1', url: metrics, token: 'x', authentication: { schemes: ['Bearer'], credentials: 'x' } }
  const parts = [
    { kind: 'text', text: 'x', metadata: { a: 1 } },
    { kind: 'data', data: { a: 1 } },
    { kind: 'file', file: { bytes: 'aGk=', mimeType: 'image/png', name: 'a.png' } },
    { kind: 'file', file: { uri: 'https://a.example/x' } }
  ]
  const message = {
    kind: 'message',
    messageId: 'm',
    role: 'user',
    parts,
    contextId: context,
    metadata: { a: 1 },
    extensions: ['urn:x'],
    referenceTaskIds: [done]
  }
  return [
    call('message/send', {
      message,
      configuration: {
        acceptedOutputModes: ['text/plain'],
        historyLength: 1,
        blocking: false,
        pushNotificationConfig: hook
      },
      metadata: { a: 1 }
    }),
    call('message/stream', { message: { kind: 'message', messageId: 'm', role: 'user', parts } }),
    call('tasks/get', { id: done, historyLength: 1, metadata: { a: 1 } }),
    call('tasks/cancel', { id: done }),
    call('tasks/resubscribe', { id: done }),
    call('tasks/pushNotificationConfig/set', { taskId: asking, pushNotificationConfig: hook }),
    call('tasks/pushNotificationConfig/get', { id: asking, pushNotificationConfigId: 'p1' }),
    call('tasks/pushNotificationConfig/list', { id: asking }),
    call('tasks/pushNotificationConfig/delete', { id: done, pushNotificationConfigId: 'p2' }),
    call('agent/getAuthenticatedExtendedCard', {})
  ]
}

/** A call of each method of 0.1. */
function callsOf01({ done, metrics }: EveryDoor): Call[] {
  const parts = [
    { type: 'text', text: 'x', metadata: { a: 1 } },
    { type: 'data', data: { a: 1 } },
    { type: 'file', file: { bytes: 'aGk=', mimeType: 'image/png', name: 'a.png' } }
  ]
  const hook = { url: metrics, token: 'x', authentication: { schemes: ['Bearer'], credentials: 'x' } }
  const task = {
    id: 'an-id',
    sessionId: 'a-session',
    message: { role: 'user', parts, metadata: { a: 1 } },
    acceptedOutputModes: ['text'],
    pushNotification: hook,
    historyLength: 1,
    metadata: { a: 1 }
  }
  return [
    call('tasks/send', task),
    call('tasks/sendSubscribe', { ...task, id: 'other' }),
    call('tasks/get', { id: done, historyLength: 1 }),
    call('tasks/cancel', { id: done }),
    call('tasks/resubscribe', { id: done }),
    call('tasks/pushNotification/set', { id: 'an-id', pushNotificationConfig: hook }),
    call('tasks/pushNotification/get', { id: 'an-id' })
  ]
}

interface Rest {
  readonly [name: string]: Json
  readonly verb: string
  readonly path: string
}

/** The calls of 1.0 as REST requests. */
function restOf(calls: readonly Call[]): Rest[] {
  return calls.map(({ method, params }): Rest => {
    const { id = '', taskId = '', ...query } = params as { readonly id?: string; readonly taskId?: string }
    switch (method) {
      case 'SendMessage':
        return { verb: 'POST', path: '/message:send', body: params }
      case 'SendStreamingMessage':
        return { verb: 'POST', path: '/message:stream', body: params }
      case 'GetTask':
        return { verb: 'GET', path: `/tasks/${id}`, query }
      case 'ListTasks':
        return { verb: 'GET', path: '/tasks', query: params }
      case 'CancelTask':
        return { verb: 'POST', path: `/tasks/${id}:cancel`, body: query }
      case 'SubscribeToTask':
        return { verb: 'GET', path: `/tasks/${id}:subscribe`, query }
      case 'CreateTaskPushNotificationConfig':
        return { verb: 'POST', path: `/tasks/${taskId}/pushNotificationConfigs`, body: query }
      case 'GetTaskPushNotificationConfig':
        return { verb: 'GET', path: `/tasks/${taskId}/pushNotificationConfigs/${id}`, query }
      case 'ListTaskPushNotificationConfigs':
        return { verb: 'GET', path: `/tasks/${taskId}/pushNotificationConfigs`, query }
      case 'DeleteTaskPushNotificationConfig':
        return { verb: 'DELETE', path: `/tasks/${taskId}/pushNotificationConfigs/${id}`, query }
      default:
        return { verb: 'GET', path: '/extendedAgentCard', query }
    }
  })
}

function restOf03({ done, asking, context, metrics }: EveryDoor): Rest[] {
  const content = [
    { text: 'x' },
    { data: { data: { a: 1 } } },
    { file: { fileWithBytes: 'aGk=', mimeType: 'image/png', name: 'a.png' } }
  ]
  const message = {
    messageId: 'm',
    role: 'ROLE_USER',
    contextId: context,
    content,
    metadata: { a: 1 },
    extensions: ['urn:x']
  }
  const hook = { url: metrics, token: 'x', authentication: { schemes: ['Bearer'], credentials: 'x' } }
  return [
    {
      verb: 'POST',
      path: '/v1/message:send',
      body: {
        message,
        configuration: {
          acceptedOutputModes: ['text/plain'],
          historyLength: 1,
          blocking: false,
          pushNotification: hook
        },
        metadata: { a: 1 }
      }
    },
    { verb: 'POST', path: '/v1/message:stream', body: { message } },
    { verb: 'GET', path: `/v1/tasks/${done}`, query: { historyLength: 1 } },
    { verb: 'POST', path: `/v1/tasks/${done}:cancel`, body: {} },
    { verb: 'GET', path: `/v1/tasks/${done}:subscribe`, query: {} },
    {
      verb: 'POST',
      path: `/v1/tasks/${asking}/pushNotificationConfigs`,
      body: { name: `tasks/${asking}/pushNotificationConfigs/p1`, pushNotificationConfig: hook }
    },
    { verb: 'GET', path: `/v1/tasks/${asking}/pushNotificationConfigs/p1`, query: {} },
    { verb: 'GET', path: '/v1/card', query: {} }
  ]
}

/** What nodes ask each other. */
function requestsOfNodes(): Json[] {
  const scope = { tenant: '', principal: 'x' }
  return [
    { id: 1, change: 'cancel', shard: 0, request: { contextId: 'c', taskId: 't', scope } },
    { id: 1, watch: 'x~0', shard: 0, scope },
    { id: 1, withhold: { ...scope, contextId: 'c' } },
    { id: 1, stop: true },
    { id: 1, erased: false }
  ]
}

function requestsOfPages({ context, asking }: EveryDoor): Json[] {
  return [
    { type: 'watch', contextId: context, afterStep: 1, instance: 'x' },
    { type: 'frames', on: true },
    { type: 'authorize', taskId: asking, data: { a: 1 } },
    { type: 'test' },
    { type: 'prove' },
    { type: 'heat' },
    { type: 'nodes', taskId: asking }
  ]
}

/** Posts a JSON-RPC request. */
function overHttp(url: string, version?: string): Door['send'] {
  return text =>
    asked(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(version !== undefined && { 'a2a-version': version }) },
      body: text
    })
}

/**
 * A REST request whose parts are put together from the text: its members are those of `Rest`, as far as they can be
 * sent.
 */
function overRest(url: string, version?: string): Door['send'] {
  return (text, sample) => {
    const parts = JSON.parse(text.replace('1e400', '1e308')) as Json
    const given: Json = typeof parts === 'object' && parts !== null ? parts : { body: parts }
    const {
      verb = (sample as Rest).verb,
      path = (sample as Rest).path,
      query = null,
      body
    } = given as { readonly [Name in 'verb' | 'path' | 'query' | 'body']?: Json }
    const method = typeof verb === 'string' && /^[A-Z]+$/.test(verb) ? verb : 'GET'
    const target = typeof path === 'string' ? path : JSON.stringify(path)
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query ?? {}))
      search.append(name, typeof value === 'string' ? value : JSON.stringify(value))
    const address = new URL(`.${encodeURI(target.toWellFormed()).replaceAll('#', '%23')}?${search.toString()}`, url)
    const headers = { 'content-type': 'application/json', ...(version !== undefined && { 'a2a-version': version }) }
    return asked(address, {
      method,
      headers,
      ...(method === 'POST' && body !== undefined && { body: JSON.stringify(body) })
    })
  }
}

/** The answer to a request; of a stream, its first event. */
async function asked(url: string | URL, request: RequestInit): Promise<string> {
  const answer = await fetch(url, { ...request, signal: AbortSignal.timeout(PATIENCE_MS) })
  const refused = answer.ok ? '' : `refused with ${answer.status}: `
  if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) return refused + (await answer.text())
  const reader = answer.body?.getReader()
  const { value } = (await reader?.read()) ?? {}
  await reader?.cancel()
  return refused + Buffer.from(value ?? []).toString()
}

interface Opening {
  readonly protocol?: string | undefined
  readonly headers?: Record<string, string>
  /** Proves to be a node. */
  readonly secret?: string | undefined
  /** A good frame, which follows each input. */
  readonly last: string
  /** Whether a frame is the answer to the good one. */
  readonly isAnswer: (frame: { readonly id?: unknown; readonly type?: unknown; readonly taskId?: unknown }) => boolean
}

function webSocketOf(version: string): Opening {
  return {
    protocol: WEBSOCKET_SUBPROTOCOL,
    headers: { 'a2a-version': version },
    last: '{"jsonrpc":"2.0","id":"the last","method":"nothing"}',
    isAnswer: ({ id }) => id === 'the last'
  }
}

/**
 * Sends a frame over a connection, which is opened again when it was closed, then a good one, and reads until that one
 * is answered.
 */
function overWebSocket(t: Test, url: string, { last, isAnswer, ...opening }: Opening): Door['send'] {
  let open: WebSocket | undefined
  t.teardown(() => open?.terminate())
  return async text => {
    const socket = (open = open?.readyState === WebSocket.OPEN ? open : await connected(url, opening))
    return new Promise(resolve => {
      const frames: string[] = []
      const done = () => {
        socket.off('message', take).off('close', end)
        resolve(frames.join('\n'))
      }
      const take = (data: Buffer) => {
        const frame = data.toString()
        if (isAnswer(JSON.parse(frame) as { id?: unknown; type?: unknown; taskId?: unknown })) return done()
        frames.push(frame)
      }
      const end = (code: number) => {
        frames.push(`refused with the close code ${code}`)
        done()
      }
      socket.on('message', take).on('close', end)
      socket.send(text)
      socket.send(last)
    })
  }
}

async function connected(
  url: string,
  { protocol, headers = {}, secret }: Omit<Opening, 'last' | 'isAnswer'>
): Promise<WebSocket> {
  const socket = new WebSocket(url, protocol === undefined ? [] : [protocol], { headers })
  socket.on('error', () => {})
  if (url.includes('/inspector/') || protocol !== undefined) {
    await once(socket, 'open')
    return socket
  }
  const [greeting] = (await once(socket, 'message')) as [Buffer]
  if (secret === undefined) return socket
  const { number } = JSON.parse(greeting.toString()) as { readonly number: string }
  socket.send(JSON.stringify({ number: 'n', proof: proofOf(secret, 'caller', [number, 'n']) }))
  await once(socket, 'message')
  return socket
}

type Encoding = { readonly path: string; readonly requestSerialize: (value: never) => Buffer }

/**
 * The bytes of a message whose JSON is changed, as far as protobuf can say that, with one byte changed that the text
 * chooses.
 */
function overGrpc(t: Test, address: string): Door['send'] {
  const client = new Client(address, credentials.createInsecure())
  t.teardown(() => client.close())
  return async (text, sample) => {
    const { method, params } = sample as Call
    const { path, requestSerialize } = A2AService[
      `${method.charAt(0).toLowerCase()}${method.slice(1)}` as keyof typeof A2AService
    ] as unknown as Encoding
    const types = {
      ...sdk,
      SendStreamingMessageRequest: sdk.SendMessageRequest,
      CreateTaskPushNotificationConfigRequest: sdk.TaskPushNotificationConfig
    } as unknown as Record<string, { fromJSON(value: unknown): never }>
    const random = randomFrom(Buffer.from(text).reduce((sum, byte) => (Math.imul(sum, 31) + byte) | 0, 7))
    const bytes = requestSerialize(types[`${method}Request`]?.fromJSON(params) as never)
    if (text !== JSON.stringify(sample)) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256)
    return new Promise(resolve => {
      const call = client.makeServerStreamRequest(
        path,
        (given: Buffer) => given,
        (given: Buffer) => given,
        bytes
      )
      call.on('data', () => (resolve(''), call.cancel()))
      call.on('end', () => resolve(''))
      call.on('error', ({ code = 0, details = '' }: Error & { readonly code?: number; readonly details?: string }) =>
        resolve(`refused with ${status[code]}: ${details}`)
      )
    })
  }
}
