import { request as nodeRequest } from 'node:http'
import { text as textOf } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { dialect01, dialect03 } from '../../../adapters/legacy/index.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import { ERRORS } from '../../../machines/protocol/errors.ts'
import type { Limits } from '../../../runtime/access/limits.ts'
import { errorReply, threeTasks, type ThreeTasks } from '../../fixtures/protocol/bad-input-agent.ts'
import { badParams, badTexts, goodMessages, nested } from '../../fixtures/protocol/bad-input.ts'
import { ask, rpc, serveAll, type Answer } from '../../fixtures/servers/http-agent.ts'
import { RawSocket } from '../../fixtures/servers/raw-socket.ts'
import { start } from '../../fixtures/runtime/runtime-helpers.ts'
import { obedient, type Reply, type ServedAgent } from '../../fixtures/servers/served-agent.ts'

type Prepared = ServedAgent & ThreeTasks

async function prepared(t: Test, limits: Partial<Limits> = {}): Promise<Prepared> {
  const agent = await serveAll(t, { work: obedient }, { limits })
  return { ...agent, ...(await threeTasks(agent.runtime)) }
}

/** Shows that nothing was written, and that the server goes on. */
async function unimpressed(t: Test, { url, commits, done }: Prepared, before: number): Promise<void> {
  t.match((await ask(`${url}tasks/${done.id}`)).json, { id: done.id })
  t.equal(commits(), before, 'nothing was written')
  t.equal(({} as Record<string, unknown>)['polluted'], undefined)
}

/** What betrays a stack. */
const STACK = /node_modules|\.[jt]s:\d/

/** The errors whose HTTP status by JSON-RPC is not 200. */
const rpcStatus = (code: keyof typeof ERRORS) => (['TooLarge', 'RateLimited'].includes(code) ? ERRORS[code].http : 200)

await t.test('a malformed JSON-RPC body is answered with an error, and nothing happens', async t => {
  const agent = await prepared(t)
  const before = agent.commits()
  for (const { what, text, id, code, message = '', fields } of badTexts) {
    const { status, json } = await ask(agent.url, { body: text })
    const reply = json as Reply
    const said = reply.error?.message ?? ''
    t.strictSame(
      [status, reply, said.startsWith(message), agent.commits()],
      [rpcStatus(code), errorReply(id, code, said, fields, fields && reply), true, before],
      `${what}: ${ERRORS[code].code}, "${message}", and nothing else`
    )
  }
  await unimpressed(t, agent, before)
})

await t.test('invalid JSON-RPC parameters are answered with an error, and nothing happens', async t => {
  const agent = await prepared(t)
  const before = agent.commits()
  for (const { what, methods, params, code, fields } of badParams) {
    for (const method of methods) {
      const { status, json, headers, text } = await ask(agent.url, {
        body: `{"jsonrpc":"2.0","id":7,"method":"${method}","params":${agent.filled(params)}}`
      })
      const reply = json as Reply
      const found = [status, headers.get('content-type'), reply, STACK.test(text), agent.commits()]
      t.strictSame(
        found,
        [
          rpcStatus(code),
          'application/json',
          errorReply(7, code, reply.error?.message ?? '', fields, reply),
          false,
          before
        ],
        `${method}, ${what}: ${ERRORS[code].code} and nothing else, of no stream, without a stack`
      )
    }
  }
  await unimpressed(t, agent, before)
})

/** The routes whose parameters are the body. */
const ROUTES: Readonly<Record<string, string>> = { SendMessage: 'message:send', SendStreamingMessage: 'message:stream' }

await t.test('invalid REST parameters are answered with an error, and nothing happens', async t => {
  const agent = await prepared(t)
  const before = agent.commits()
  for (const { what, methods, params, code, fields } of badParams) {
    for (const method of methods.filter(method => method in ROUTES)) {
      const found = {
        ...statusOf(await ask(`${agent.url}${ROUTES[method]}`, { body: agent.filled(params) })),
        commits: agent.commits()
      }
      t.match(
        found,
        {
          status: ERRORS[code].http,
          code: ERRORS[code].http,
          name: ERRORS[code].grpc,
          reason: ERRORS[code].reason,
          commits: before,
          fields: fields?.map(field => (field.startsWith('params') ? field.replace('params', 'body') : field)) ?? []
        },
        `${method}, ${what}: ${ERRORS[code].http}`
      )
    }
  }
  await unimpressed(t, agent, before)
})

/** What an error by REST says. */
function statusOf({ status, json, text }: Answer) {
  const { error } = json as {
    error?: { code: number; status: string; message: string; details: Record<string, unknown>[] }
  }
  const violations = (error?.details ?? []).flatMap(
    ({ fieldViolations = [] }) => fieldViolations as { field: string }[]
  )
  return {
    status,
    code: error?.code,
    name: error?.status,
    message: error?.message ?? text,
    reason: error?.details[0]?.['reason'],
    fields: violations.map(({ field }) => field)
  }
}

const GOOD = '{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}'

await t.test('a path that URL parsing would change is refused before parsing, except in data', async t => {
  const agent = await prepared(t)
  const status = async (path: string, method = 'GET') => {
    const raw = await RawSocket.to(t, agent.url)
    raw.write(`${method} ${path} HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\nConnection: close\r\n\r\n`)
    const { status, body } = await raw.answer()
    if (status === 400) t.match(JSON.parse(body), { error: /segment/ }, path)
    return status
  }
  const before = agent.commits()
  for (const path of [
    '/.',
    '/..',
    '/./',
    '/../',
    '/tasks/.',
    '/tasks/..',
    '/tasks/%2e',
    '/tasks/%2E',
    '/tasks/%2e%2e',
    '/tasks/%2E%2e',
    '/tasks/.%2e',
    '/tasks/%2E.',
    '/tasks/%2e/',
    '/tasks/../tasks',
    '/a/%2e%2e/tasks',
    '/tasks/..?pageSize=1',
    '/tasks/%2e?x',
    '/tasks/..#x',
    '/tasks\\..',
    '/tasks\\x',
    '/\\',
    '/..\\tasks',
    '/%2e%2e\\x',
    '/%2f/..',
    '/%2f../..',
    'http://localhost/tasks/%2e%2e',
    'http://localhost/..',
    '/.well-known/../tasks'
  ]) {
    for (const method of ['GET', 'POST', 'OPTIONS']) t.equal(await status(path, method), 400, `${method} ${path}`)
  }
  for (const path of [
    '/tasks/..%2f',
    '/tasks/%2e%2e%2f',
    '/tasks/..%5c',
    '/tasks/...',
    '/tasks/%2e%2e%2e',
    '/tasks/.x',
    '/tasks/..x',
    '/tasks/%252e%252e'
  ])
    t.equal(await status(path), 404, path)
  for (const path of ['/tasks?x=/../', '/tasks?contextId=\\..', '/.well-known/agent-card.json', '/tasks/'])
    t.equal(await status(path), 200, path)
  t.equal(agent.commits(), before)
})

await t.test("a body with a content coding gets 415 in its binding's form, and nothing happens", async t => {
  const agent = await prepared(t)
  const old = start(t, { work: obedient })
  const { url: older, close } = await serve(old.runtime, {
    port: 0,
    dialects: [dialect03(old.runtime), dialect01(old.runtime)]
  })
  t.teardown(close)
  const send = `{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":${GOOD}}`
  const before = agent.commits()
  for (const coding of ['gzip', 'GZIP', 'identity, br', 'deflate', 'x-none']) {
    const headers = { 'content-type': 'application/json', 'content-encoding': coding }
    const byRpc = [
      await ask(agent.url, { body: send, headers }),
      await ask(older, { body: send, headers: { ...headers, 'a2a-version': '' } })
    ]
    for (const { status, headers, json } of byRpc) {
      t.equal(status, 415, coding)
      t.equal(headers.get('accept-encoding'), 'identity')
      t.match(json, {
        jsonrpc: '2.0',
        id: null,
        error: { code: -32005, message: /without Content-Encoding/, data: Object }
      })
    }
    const byRest = [
      await ask(`${agent.url}message:send`, { body: GOOD, headers }),
      await ask(`${agent.url}message:stream`, { body: GOOD, headers }),
      await ask(`${agent.url}tasks/${agent.working.id}:cancel`, { body: '', headers }),
      await ask(`${older}v1/message:send`, { body: GOOD, headers: { ...headers, 'a2a-version': '0.3' } })
    ]
    for (const { status, headers, json } of byRest) {
      t.equal(status, 415, coding)
      t.equal(headers.get('accept-encoding'), 'identity')
      t.match(json, {
        error: { code: 415, status: 'INVALID_ARGUMENT', details: [{ reason: 'CONTENT_TYPE_NOT_SUPPORTED' }] }
      })
    }
  }
  t.equal(agent.commits(), before)
  for (const coding of ['identity', 'Identity', '', 'identity, identity'])
    t.equal(
      (
        await ask(agent.url, {
          body: send,
          headers: { 'content-type': 'application/json', 'content-encoding': coding }
        })
      ).status,
      200,
      coding
    )
  t.equal(
    (await ask(`${agent.url}tasks`, { headers: { 'content-encoding': 'gzip' } })).status,
    200,
    'a request without a body'
  )
  const raw = await RawSocket.to(t, agent.url)
  raw.write(
    `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: gzip, chunked\r\n\r\n${send.length.toString(16)}\r\n${send}\r\n0\r\n\r\n`
  )
  t.equal((await raw.answer()).status, 501, 'a transfer coding')
})

const JSON_TYPE = { 'content-type': 'application/json' }

await t.test('invalid REST requests get a status, and nothing happens', async t => {
  const agent = await prepared(t)
  const rows: [
    what: string,
    path: string,
    init: RequestInit & { headers?: Record<string, string> },
    status: number,
    reason: string | undefined,
    ...fields: string[]
  ][] = [
    ['no such path', 'nothing', {}, 404, 'METHOD_NOT_FOUND'],
    ['a deeper path', 'tasks/x/y/z', {}, 404, 'METHOD_NOT_FOUND'],
    ['another verb', 'tasks', { method: 'PUT' }, 405, undefined],
    ['a verb of another route', 'message:send', {}, 405, undefined],
    ['cancel by GET', 'tasks/$WORKING:cancel', {}, 405, undefined],
    ['another action', 'tasks/$WORKING:restart', { body: '' }, 405, undefined],
    ['an unknown task', 'tasks/nobody', {}, 404, 'TASK_NOT_FOUND'],
    ['an unknown task to cancel', 'tasks/nobody:cancel', { body: '' }, 404, 'TASK_NOT_FOUND'],
    ['an unknown task to subscribe to', 'tasks/nobody:subscribe', {}, 404, 'TASK_NOT_FOUND'],
    ['a task that is completed', 'tasks/$DONE:cancel', { body: '' }, 400, 'TASK_NOT_CANCELABLE'],
    ['a task that has ended', 'tasks/$DONE:subscribe', {}, 400, 'UNSUPPORTED_OPERATION'],
    ['an id that is not UTF-8', 'tasks/%ff', {}, 400, 'INVALID_PARAMS', 'id'],
    ['an id that is half encoded', 'tasks/%4', {}, 400, 'INVALID_PARAMS', 'id'],
    ['an id with NUL', 'tasks/a%00', {}, 400, 'INVALID_PARAMS', 'id'],
    ['an id of 129 characters', `tasks/${'a'.repeat(129)}`, {}, 400, 'INVALID_PARAMS', 'id'],
    ['a tenant that is not UTF-8', '%ff/tasks', {}, 400, 'INVALID_PARAMS', 'tenant'],
    ['another id in the body', 'tasks/$WORKING:cancel', { body: '{"id":"other"}' }, 400, 'INVALID_PARAMS', 'id'],
    [
      'another tenant in the body',
      't1/message:send',
      { body: `{"tenant":"t2",${GOOD.slice(1)}` },
      400,
      'INVALID_PARAMS',
      'tenant'
    ],
    ['another tenant in the query', 't1/tasks?tenant=t2', {}, 400, 'INVALID_PARAMS', 'tenant'],
    ['a page of 0', 'tasks?pageSize=0', {}, 400, 'INVALID_PARAMS', 'pageSize'],
    ['a page of 101', 'tasks?page_size=101', {}, 400, 'INVALID_PARAMS', 'pageSize'],
    ['a page of 1.5', 'tasks?pageSize=1.5', {}, 400, 'INVALID_PARAMS', 'pageSize'],
    ['a page twice', 'tasks?pageSize=1&pageSize=2', {}, 400, 'INVALID_PARAMS', 'pageSize'],
    ['a page in both spellings', 'tasks?pageSize=1&page_size=2', {}, 400, 'INVALID_PARAMS', 'pageSize'],
    ['a history of -1', 'tasks/$DONE?historyLength=-1', {}, 400, 'INVALID_PARAMS', 'historyLength'],
    ['an unknown state', 'tasks?status=working', {}, 400, 'INVALID_PARAMS', 'status'],
    ['a day as a time', 'tasks?statusTimestampAfter=2026-01-02', {}, 400, 'INVALID_PARAMS', 'statusTimestampAfter'],
    ['a made-up page', 'tasks?pageToken=made-up', {}, 400, 'INVALID_PARAMS', 'pageToken'],
    ['artifacts "yes"', 'tasks?includeArtifacts=yes', {}, 400, 'INVALID_PARAMS', 'includeArtifacts'],
    ['a prototype in the query', 'tasks?__proto__=x&pageSize=0', {}, 400, 'INVALID_PARAMS', 'pageSize'],
    ['no version', 'tasks', { headers: { 'a2a-version': '' } }, 400, 'VERSION_NOT_SUPPORTED'],
    ['the version 9.9', 'tasks', { headers: { 'a2a-version': '9.9' } }, 400, 'VERSION_NOT_SUPPORTED'],
    ['no type', 'message:send', { body: GOOD, headers: { 'content-type': '' } }, 415, 'CONTENT_TYPE_NOT_SUPPORTED'],
    [
      'text',
      'message:send',
      { body: GOOD, headers: { 'content-type': 'text/plain' } },
      415,
      'CONTENT_TYPE_NOT_SUPPORTED'
    ],
    [
      'a form',
      'message:send',
      { body: GOOD, headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      415,
      'CONTENT_TYPE_NOT_SUPPORTED'
    ],
    ['half an object', 'message:send', { body: '{bad' }, 400, 'PARSE_ERROR'],
    ['a byte order mark', 'message:send', { body: `\ufeff${GOOD}` }, 400, 'PARSE_ERROR'],
    [
      'bytes that are not UTF-8',
      'message:send',
      { body: Buffer.from([0x22, 0xff, 0x22]), headers: JSON_TYPE },
      400,
      'PARSE_ERROR'
    ],
    ['a list', 'message:send', { body: '[]' }, 400, 'INVALID_PARAMS'],
    ['null', 'message:send', { body: 'null' }, 400, 'INVALID_PARAMS'],
    ['500,000 arrays', 'message:send', { body: `{"x":${nested(500_000)}}` }, 400, 'INVALID_PARAMS', 'body.x[0]'],
    ['no body', 'message:send', { body: '' }, 400, 'INVALID_PARAMS', 'message'],
    [
      'a webhook',
      'tasks/$DONE/pushNotificationConfigs',
      { body: '{"url":"https://a.example"}' },
      400,
      'PUSH_NOTIFICATION_NOT_SUPPORTED'
    ],
    ['the webhooks', 'tasks/$DONE/pushNotificationConfigs', {}, 400, 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
    ['one webhook', 'tasks/$DONE/pushNotificationConfigs/x', {}, 400, 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
    [
      'a webhook to delete',
      'tasks/$DONE/pushNotificationConfigs/x',
      { method: 'DELETE' },
      400,
      'PUSH_NOTIFICATION_NOT_SUPPORTED'
    ],
    ['an extended card', 'extendedAgentCard', {}, 400, 'UNSUPPORTED_OPERATION']
  ]
  const before = agent.commits()
  for (const [what, path, init, status, reason, ...fields] of rows) {
    const answer = await ask(`${agent.url}${agent.filled(path)}`, init)
    const told = statusOf(answer)
    t.match(
      [told.status, told.code, told.reason, agent.commits()],
      [status, status, reason, before],
      `${what}: ${status}`
    )
    t.strictSame(
      told.fields.map((field, i) => field.slice(0, fields[i]?.length)),
      fields,
      what
    )
    if (status === 405) t.match(answer.headers.get('allow'), /GET|POST|DELETE/)
  }
  await unimpressed(t, agent, before)
})

await t.test('a message that is valid but unusual is processed by both bindings', async t => {
  const { url } = await serveAll(t, { card: { name: 'T', defaultInputModes: ['*/*'] }, work: obedient })
  for (const { what, message, sees } of goodMessages) {
    const task = { task: { history: [sees], status: { state: 'TASK_STATE_COMPLETED' } } }
    t.match(
      (await ask(url, { body: `{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":${message}}}` }))
        .json,
      { id: 7, result: task },
      what
    )
    t.match((await ask(`${url}message:send`, { body: `{"message":${message}}` })).json, task, what)
  }
})

await t.test('a JSON-RPC request over wrong HTTP gets a status and an error', async t => {
  const agent = await prepared(t)
  const body = `{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":${GOOD}}`
  for (const type of ['', 'text/plain', 'application/jsonp', 'multipart/form-data']) {
    const { status, json } = await ask(agent.url, { body, headers: { 'content-type': type } })
    t.equal(status, 415, type)
    t.match(json, { jsonrpc: '2.0', id: null, error: { code: -32005, message: /application\/json/ } })
  }
  for (const type of ['application/json; charset=utf-8', 'APPLICATION/JSON', 'application/a2a+json'])
    t.equal((await ask(agent.url, { body, headers: { 'content-type': type } })).status, 200, type)
  for (const method of ['PUT', 'PATCH', 'DELETE']) {
    const { status, headers } = await ask(agent.url, { method })
    t.strictSame([status, headers.get('allow')], [405, 'GET, HEAD, POST'])
  }
  for (const version of ['', '0.3', '9.9', 'latest']) {
    t.match(
      (await ask(agent.url, { body, headers: { 'a2a-version': version } })).json,
      { id: 7, error: { code: -32009, data: [{ metadata: { supportedVersions: '1.0' } }] } },
      version
    )
  }
  t.match((await ask(`${agent.url}?a2a-version=1.0`, { body, headers: { 'a2a-version': '1.0.3' } })).json, {
    result: { task: {} }
  })
  t.match(
    await fetch(`${agent.url}?A2A-Version=1.0`, { method: 'POST', body, headers: JSON_TYPE }).then(response =>
      response.json()
    ),
    { result: { task: {} } },
    'the version may be in the query'
  )
  t.match((await ask(`${agent.url}?api_key=s3cret`, { body })).json, { error: /end up in logs/ })
})

await t.test('a request without id is not executed, and a response is ignored', async t => {
  const agent = await prepared(t)
  const before = agent.commits()
  t.strictSame(
    await ask(agent.url, { body: `{"jsonrpc":"2.0","method":"SendMessage","params":${GOOD}}` }).then(
      ({ status, text }) => [status, text]
    ),
    [204, '']
  )
  t.match((await ask(agent.url, { body: '{"jsonrpc":"2.0","id":7,"result":{}}' })).json, {
    id: null,
    error: { code: -32600 }
  })
  await unimpressed(t, agent, before)
})

await t.test('a body over the limit gets 413 at once, with or without its length', async t => {
  const agent = await prepared(t, { messageBytes: 1000 })
  const before = agent.commits()
  const large = JSON.stringify({ filler: 'a'.repeat(1000) })
  t.match(await ask(agent.url, { body: large }), { status: 413, json: { id: null, error: { code: -31413 } } })
  t.match(statusOf(await ask(`${agent.url}message:send`, { body: large })), { status: 413, reason: 'TOO_LARGE' })
  const endless = new ReadableStream<Uint8Array>({ pull: controller => controller.enqueue(Buffer.alloc(600, 'a')) })
  const chunked = await ask(agent.url, { body: endless, duplex: 'half', headers: JSON_TYPE }).catch(error => error)
  t.ok(chunked instanceof Error || chunked.status === 413, 'an endless one is not read completely')
  await unimpressed(t, agent, before)
  const exact = `{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"${agent.done.id}"}}`.padEnd(1000)
  t.match(await ask(agent.url, { body: exact }), { status: 200, json: { result: { id: agent.done.id } } })
  t.match(await rpc(agent.url, 'GetTask', { id: agent.done.id }), { status: 200 })
})

await t.test('a chunked body without a length is read, and a truncated one is not executed', async t => {
  const agent = await prepared(t)
  const body = Buffer.from(`{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"${agent.done.id}"}}`)
  const asked = nodeRequest(agent.url, {
    method: 'POST',
    headers: { ...JSON_TYPE, 'a2a-version': '1.0', 'transfer-encoding': 'chunked' }
  })
  const answered = new Promise<string>((resolve, reject) =>
    asked.on('response', response => void textOf(response).then(resolve, reject))
  )
  for (const byte of body) asked.write(Buffer.from([byte]))
  asked.end()
  t.match(JSON.parse(await answered), { result: { id: agent.done.id } })
  const before = agent.commits()
  const raw = await RawSocket.to(t, agent.url)
  raw.write(
    `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"jsonrpc"`
  )
  raw.socket.destroy()
  await unimpressed(t, agent, before)
})
