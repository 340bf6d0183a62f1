import { createServer } from 'node:http'
import { once } from 'node:events'
import { createServer as createSocketServer, type AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import type { AgentClient } from '../../../../adapters/client/agent-client.ts'
import { connect, type ConnectOptions } from '../../../../adapters/client/connect.ts'
import { A2AError } from '../../../../machines/protocol/errors.ts'
import type { StreamResponse } from '../../../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../../../machines/protocol/uris.ts'
import { cuttingProxy } from '../../../fixtures/network/cutting-proxy.ts'
import {
  body,
  cut,
  failure,
  httpAgent,
  reliable,
  result,
  stream,
  type HttpAgent,
  type ScriptedCard
} from '../../../fixtures/peers/scripted-http.ts'
import {
  brief,
  collect,
  next,
  refusal,
  rejection,
  rest,
  say,
  until
} from '../../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../../fixtures/runtime/test-clock.ts'
import { IS_DEEP, IS_WHOLE } from '../../../fixtures/sample.ts'

/** How often a connection is cut under one stream. */
const CUTS = IS_WHOLE ? 100 : IS_DEEP ? 30 : 10

const JSON_TYPE = { 'content-type': 'application/json' }

const task = (state = 'WORKING', id = 't') => ({ id, contextId: 'c', status: { state: `TASK_STATE_${state}` } })
const generation = (count: number | undefined) =>
  count === undefined ? {} : { metadata: { [RELIABILITY_EXTENSION]: { generation: count } } }
const opened = (count?: number, state?: string) => ({ task: { ...task(state), ...generation(count) } })
const status = (state: string, count?: number) => ({
  statusUpdate: { taskId: 't', contextId: 'c', status: { state: `TASK_STATE_${state}` }, ...generation(count) }
})
const chunk = (text: string, count?: number) => ({
  artifactUpdate: {
    taskId: 't',
    contextId: 'c',
    artifact: { artifactId: 'a', parts: [{ text }] },
    ...generation(count)
  }
})
const reply = (text: string) => ({ message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text }] } })

interface Scripted {
  readonly agent: HttpAgent
  readonly client: AgentClient
}

/** A scripted agent, and a client that waits for nothing before it tries again. */
async function scripted(t: Test, card: ScriptedCard = {}, options: ConnectOptions = {}): Promise<Scripted> {
  const agent = await httpAgent(t, card)
  const client = await connect(agent.url, { random: () => 0, ...options })
  t.teardown(() => client.close())
  return { agent, client }
}

/** All that a stream tells, of which the agent hears. */
async function told(agent: HttpAgent, events: AsyncIterable<StreamResponse>): Promise<string[]> {
  const all: string[] = []
  for await (const event of events) {
    all.push(brief(event))
    agent.heard(brief(event))
  }
  return all
}

await t.test('a request is a POST of JSON-RPC, with its service parameters as headers', async t => {
  let asked = 0
  const headers = () => ({
    authorization: `Bearer ${(asked += 1)}`,
    'content-type': 'text/plain',
    'A2A-Version': '0.3'
  })
  const { agent, client } = await scripted(t, { isReliable: true }, { headers, extensions: ['urn:other'] })
  agent.script(result(task()))
  t.match(client, { url: `${agent.url}/agent`, binding: 'JSONRPC', state: 'open' })
  t.match(await client.getTask({ id: 't' }, { currentGeneration: 3 }), { id: 't', contextId: 'c' })
  await client.cancelTask({ id: 't' }, { ifGenerationMatch: 4 })
  const [first, second] = agent.asked
  t.match(first, {
    id: 1,
    method: 'GetTask',
    params: { id: 't' },
    path: '/agent',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      'a2a-version': '1.0',
      authorization: 'Bearer 1',
      'a2a-extensions': `${RELIABILITY_EXTENSION},urn:other`,
      'taskchart-current-generation': '3'
    }
  })
  t.match(second, {
    id: 2,
    method: 'CancelTask',
    headers: { authorization: 'Bearer 2', 'taskchart-if-generation-match': '4' }
  })
  t.notOk(second?.headers['taskchart-current-generation'])
  agent.script(stream([chunk('one', 6), status('COMPLETED', 7)]))
  t.strictSame(await told(agent, client.subscribeToTask({ id: 't' }, { afterGeneration: 5 })), [
    'artifact: one',
    'completed'
  ])
  t.match(agent.asked[2], {
    headers: { accept: 'text/event-stream, application/json', 'taskchart-after-generation': '5', 'last-event-id': '5' }
  })
})

await t.test('a client has every operation', async t => {
  const { agent, client } = await scripted(t)
  agent.script(
    result(reply('hi')),
    result({ tasks: [task()], nextPageToken: '', pageSize: 1, totalSize: 1 }),
    result({
      name: 'Whole',
      version: '1',
      capabilities: {},
      supportedInterfaces: [{ url: 'x', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]
    })
  )
  t.match(await client.sendMessage(say('hello')), { message: { parts: [{ text: 'hi' }] } })
  t.match(await client.listTasks({ pageSize: 1 }), { tasks: [{ id: 't' }], totalSize: 1 })
  t.match(await client.getExtendedAgentCard(), { name: 'Whole', skills: [] })
  t.strictSame(
    agent.asked.map(({ method }) => method),
    ['SendMessage', 'ListTasks', 'GetExtendedAgentCard']
  )
  t.strictSame(agent.asked[2]?.params, {})
})

await t.test('an invalid header, or a headers function that throws, fails the call at once', async t => {
  const { client } = await scripted(t, {}, { headers: { 'bad header': 'x' } })
  t.match(await rejection(client.getTask({ id: 't' })), { name: 'TypeError' })
  const forgetful = await scripted(
    t,
    {},
    {
      headers: () => {
        throw new RangeError('no token')
      }
    }
  )
  t.match(await rejection(forgetful.client.getTask({ id: 't' })), { message: 'no token' })
})

await t.test('an invalid response fails with a description of it', async t => {
  const { agent, client } = await scripted(t, {}, { giveUpAfterMs: 0 })
  const wire = {
    code: -32001,
    message: 'Task t was not found.',
    data: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'TASK_NOT_FOUND', metadata: { taskId: 't' } }]
  }
  const answers = [
    [
      'a JSON-RPC error',
      failure(wire),
      { code: 'TaskNotFound', message: 'Task t was not found.', metadata: { taskId: 't' } }
    ],
    ['one with another status', failure(wire, 404), { code: 'TaskNotFound' }],
    [
      'one for no request',
      body(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32700, message: 'no' } }), JSON_TYPE, 400),
      { code: 'ParseError' }
    ],
    [
      'one of the JSON media types of A2A',
      body(
        JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -31429 } }),
        { 'content-type': 'application/a2a+json' },
        429
      ),
      { code: 'RateLimited' }
    ],
    [
      '401',
      body('<html>who?</html>', { 'content-type': 'text/html' }, 401),
      {
        code: 'Unauthenticated',
        message: `The agent at ${agent.url}/agent requires credentials (HTTP 401). Connect with { credentials: { apiKey: '…' } } or { headers: { … } }.`
      }
    ],
    ['403', body('', {}, 403), { code: 'Forbidden' }],
    ['404', body('{"title":"nothing"}', JSON_TYPE, 404), { code: 'UnsupportedOperation', message: /was not found/ }],
    ['405', body('[1]', JSON_TYPE, 405), { code: 'UnsupportedOperation' }],
    ['413', body('<html>', { 'content-type': 'text/html' }, 413), { code: 'TooLarge' }],
    ['429', body('{', { ...JSON_TYPE, 'retry-after': '7' }, 429), { code: 'RateLimited', retryAfterMs: 7000 }],
    [
      '503',
      body('', { 'retry-after': 'Fri, 31 Dec 1999 23:59:59 GMT' }, 503),
      { code: 'Overloaded', retryAfterMs: undefined }
    ],
    ['500', body('oops', {}, 500), { code: 'InvalidAgentResponse', message: /HTTP 500/ }],
    [
      'a page of HTML',
      body('<html>', { 'content-type': 'text/html; charset=utf-8' }),
      { code: 'InvalidAgentResponse', message: /answered with text\/html, not with JSON/ }
    ],
    ['a stream', stream([task()]), { code: 'InvalidAgentResponse', message: /text\/event-stream/ }],
    ['what is not JSON', body('{"jsonrpc":', JSON_TYPE), { code: 'InvalidAgentResponse', message: /not JSON/ }],
    ['nothing', body('', JSON_TYPE), { code: 'InvalidAgentResponse', message: /not JSON/ }],
    ['nothing, with 204', body('', {}, 204), { code: 'InvalidAgentResponse' }],
    ['JSON that is no answer', body('[]'), { code: 'InvalidAgentResponse', message: /not JSON-RPC 2\.0/ }],
    ['another version of JSON-RPC', body('{"jsonrpc":"1.0","id":1}', JSON_TYPE), { code: 'InvalidAgentResponse' }],
    [
      'another id',
      body('{"jsonrpc":"2.0","id":"1","result":{}}', JSON_TYPE),
      { code: 'InvalidAgentResponse', message: /answered request "1", not \d+/ }
    ],
    [
      'no id',
      body('{"jsonrpc":"2.0","result":{}}', JSON_TYPE),
      { code: 'InvalidAgentResponse', message: /answered request null/ }
    ],
    [
      'no result',
      ({ id }: { id: number }, response: Parameters<typeof cut>[1]) =>
        void response.writeHead(200, JSON_TYPE).end(JSON.stringify({ jsonrpc: '2.0', id, error: null })),
      { code: 'InvalidAgentResponse', message: /neither/ }
    ],
    ['a result of another kind', result({ tasks: [] }), { code: 'InvalidAgentResponse', message: /result\.status/ }],
    [
      'a redirect',
      body('', { location: 'http://evil.example/' }, 307),
      { code: 'InvalidAgentResponse', message: /redirects to "http:\/\/evil\.example\/", which is not followed/ }
    ],
    [
      'a redirect to nowhere',
      body('', {}, 302),
      { code: 'InvalidAgentResponse', message: /redirects to another place/ }
    ]
  ] as const
  for (const [name, answer, wanted] of answers) {
    await t.test(name, async t => {
      agent.script(answer)
      const error = await rejection(client.getTask({ id: 't' }))
      t.type(error, A2AError)
      t.match(error, wanted)
    })
  }
  for (const status of [200, 502]) {
    agent.script((_, response) => void response.writeHead(status, { 'content-type': 'text/html' }).write('<html>'))
    t.match(
      await refusal(client.getTask({ id: 't' })),
      { code: status === 200 ? 'InvalidAgentResponse' : 'Overloaded' },
      'a page without end'
    )
    await agent.asked.at(-1)?.closed
  }
  agent.script(body(Buffer.alloc(65 * 1024 * 1024, 32), JSON_TYPE))
  t.match(
    await rejection(client.getTask({ id: 't' })),
    { code: 'InvalidAgentResponse', message: /longer than 67108864 bytes/ },
    'an answer without end'
  )
  agent.script(body(Buffer.from('{"jsonrpc":"2.0","id":"é"}'), { ...JSON_TYPE, 'transfer-encoding': 'chunked' }))
  t.match(await rejection(client.getTask({ id: 't' })), { message: /"é"/ })
  t.equal(client.state, 'open', 'all of these are answers')
})

await t.test('a server that does not speak HTTP is not retried', async t => {
  const server = createSocketServer(socket => socket.on('error', () => {}).end('220 mail.example ESMTP\r\n'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const card = {
    name: 'A',
    version: '1',
    capabilities: {},
    supportedInterfaces: [{ url: `http://127.0.0.1:${port}/`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]
  }
  const host = createServer((_, response) => response.end(JSON.stringify(card))).listen(0, '127.0.0.1')
  await once(host, 'listening')
  t.teardown(() => host.close())
  const client = await connect(`http://127.0.0.1:${(host.address() as AddressInfo).port}`)
  t.match(await refusal(client.getTask({ id: 't' })), { code: 'InvalidAgentResponse', message: /does not speak HTTP/ })
})

await t.test('a stream', async t => {
  const { agent, client } = await scripted(t)

  await t.test('is read with any line endings, and byte by byte', async t => {
    agent.script(({ id }, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream;charset=utf-8' })
      const lines = [opened(), chunk('schön'), status('COMPLETED')].map(event =>
        JSON.stringify({ jsonrpc: '2.0', id, result: event })
      )
      const text = `\uFEFF: hello\r\nretry: soon\r\nwhat: ever\r\n\r\nid: 1\r\nevent: any\r\ndata:${lines[0]?.replace(',"result"', '\r\ndata:,"result"')}\r\n\r\n:\n\ndata: ${lines[1]}\n\ndata: ${lines[2]}\n\ndata: {"half`
      for (const byte of Buffer.from(text)) response.write(Buffer.from([byte]))
      response.end()
    })
    t.strictSame(await told(agent, client.sendStreamingMessage(say('x'))), [
      'task:working',
      'artifact: schön',
      'completed'
    ])
  })

  await t.test('may be one message, or end where the task waits', async t => {
    agent.script(stream([reply('hi')]))
    t.strictSame(await told(agent, client.sendStreamingMessage(say('x'))), ['message: hi'])
    agent.script(stream([opened(), status('INPUT_REQUIRED')]))
    t.strictSame(await told(agent, client.sendStreamingMessage(say('x'))), ['task:working', 'input-required'])
    agent.script(stream([opened(), status('AUTH_REQUIRED')]))
    t.strictSame(await told(agent, client.subscribeToTask({ id: 't' })), ['task:working', 'auth-required'])
  })

  await t.test('with a JSON response has one event, or fails with its error', async t => {
    agent.script(result(opened()), result(task('COMPLETED')))
    t.strictSame(await told(agent, client.sendStreamingMessage(say('x'))), ['task:working', 'task:completed'])
    agent.script(failure({ code: -32004, message: 'No streams here.' }))
    t.match(await refusal(told(agent, client.sendStreamingMessage(say('x')))), {
      code: 'UnsupportedOperation',
      message: 'No streams here.'
    })
    agent.script(body('', {}, 401))
    t.match(await refusal(told(agent, client.sendStreamingMessage(say('x')))), { code: 'Unauthenticated' })
  })

  await t.test('fails at an invalid event', async t => {
    for (const [text, code] of [
      ['data: {"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"broken"}}', 'InternalError'],
      ['data: {"jsonrpc":"2.0","id":"x","result":{}}', 'InvalidAgentResponse'],
      ['data: nonsense', 'InvalidAgentResponse'],
      [`data: ${'x'.repeat(17 * 1024 * 1024)}`, 'InvalidAgentResponse']
    ] as const) {
      agent.script(({ id }, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(
          `data: ${JSON.stringify({ jsonrpc: '2.0', id, result: opened() })}\n\n${text.replace('ID', String(id))}\n\n`
        )
      })
      const events = client.sendStreamingMessage(say('x'))
      t.equal(brief(await next(events)), 'task:working')
      t.match(await refusal(collect(events)), { code })
      await agent.asked.at(-1)?.closed
    }
    t.equal(client.state, 'open')
  })

  await t.test('is aborted when its consumer leaves the loop', async t => {
    agent.script(stream([opened()], 'open'))
    const events = client.subscribeToTask({ id: 't' })
    await next(events)
    await events.return()
    await agent.asked.at(-1)?.closed
    const count = agent.asked.length
    await client.subscribeToTask({ id: 't' }).return()
    await rest()
    t.equal(agent.asked.length, count, 'an unread stream is not requested')
  })

  await t.test('and a call end with the reason of their signal, and are aborted', async t => {
    const gone = new Error('enough')
    const stop = new AbortController()
    agent.script(stream([opened()], 'open'), () => {})
    const events = client.subscribeToTask({ id: 't' }, { signal: stop.signal })
    await next(events)
    const second = rejection(next(events))
    const call = rejection(client.getTask({ id: 't' }, { signal: stop.signal }))
    const [streamed, asked] = [agent.asked.at(-1), await agent.request(agent.asked.length)]
    stop.abort(gone)
    t.equal(await second, gone)
    t.equal(await call, gone)
    await Promise.all([streamed?.closed, asked.closed])
    t.equal(await rejection(client.getTask({ id: 't' }, { signal: stop.signal })), gone)
    t.equal(await rejection(next(client.subscribeToTask({ id: 't' }, { signal: stop.signal }))), gone)
  })
})

await t.test('a stream whose connection is lost resumes', async t => {
  await t.test('after the last event without duplicates, if the agent has the extension', async t => {
    const { agent, client } = await scripted(t, { tenant: 'acme' })
    const states: string[] = []
    for (const state of ['lost', 'connecting', 'open'] as const) client.on(state, () => states.push(state))
    agent.script(
      stream([opened(1), chunk('one', 2)], 'cut', reliable),
      stream([chunk('two', 3)], 'cut', reliable),
      stream([], 'cut', reliable),
      stream([chunk('two', 3), chunk('three', 4)], 'end', reliable),
      cut,
      stream([status('COMPLETED', 5)], 'open', reliable)
    )
    t.strictSame(await told(agent, client.sendStreamingMessage(say('x'))), [
      'task:working',
      'artifact: one',
      'artifact: two',
      'artifact: three',
      'completed'
    ])
    await agent.asked.at(-1)?.closed
    t.strictSame(
      agent.asked.map(({ method, headers }) => [
        method,
        headers['taskchart-after-generation'],
        headers['last-event-id']
      ]),
      [
        ['SendStreamingMessage', undefined, undefined],
        ...['2', '3', '3', '4', '4'].map(after => ['SubscribeToTask', after, after])
      ]
    )
    t.strictSame(
      agent.asked.map(({ params }) => params['tenant']),
      Array(6).fill('acme')
    )
    t.strictSame(
      states,
      [...Array(3).fill('lost connecting open'), 'lost connecting lost connecting open'].join(' ').split(' ')
    )
  })

  await t.test('with the current task, if the agent lacks the extension', async t => {
    const { agent, client } = await scripted(t)
    agent.script(
      stream([opened(), chunk('one')], 'cut'),
      stream([opened()], 'end'),
      stream([opened(undefined, 'COMPLETED')]),
      result(task('COMPLETED'))
    )
    t.strictSame(await told(agent, client.sendStreamingMessage(say('x'))), [
      'task:working',
      'artifact: one',
      'task:working',
      'task:completed'
    ])
    t.strictSame(
      agent.asked.map(({ headers }) => headers['taskchart-after-generation']),
      Array(4).fill(undefined)
    )
    t.equal(agent.asked.at(-1)?.method, 'GetTask', 'since events may be missing, the task itself is the last')
  })

  await t.test('with the final task, if it ended meanwhile and refuses a subscription', async t => {
    const { agent, client } = await scripted(t)
    const over = failure({ code: -32004, message: 'It has ended.' })
    agent.script(stream([opened()], 'cut'), over, result(task('COMPLETED')))
    t.strictSame(await told(agent, client.sendStreamingMessage(say('x'))), ['task:working', 'task:completed'])
    t.match(agent.asked.at(-1), { method: 'GetTask', params: { id: 't' } })
    for (const answer of [failure({ code: -32001 }), result({})]) {
      agent.script(stream([opened()], 'cut'), over, answer)
      t.match(await refusal(told(agent, client.sendStreamingMessage(say('x')))), {
        code: 'UnsupportedOperation',
        message: 'It has ended.'
      })
    }
    agent.script(stream([opened()], 'cut'), failure({ code: -32001 }))
    t.match(await refusal(told(agent, client.sendStreamingMessage(say('x')))), { code: 'TaskNotFound' })
    agent.script(over)
    t.match(
      await refusal(told(agent, client.subscribeToTask({ id: 't' }))),
      { code: 'UnsupportedOperation' },
      'the first subscription is not a resumption'
    )
  })

  await t.test('after responses of an agent that is not ready', async t => {
    const { agent, client } = await scripted(t)
    agent.script(
      stream([opened(1)], 'cut', reliable),
      body('bad gateway', {}, 502),
      body('', {}, 429),
      failure({ code: -31503, message: 'Starting.' }),
      ({ id }, response) =>
        void response
          .writeHead(200, { 'content-type': 'text/event-stream' })
          .end(
            [{ result: status('WORKING', 2) }, { error: { code: -31503, message: 'Going down.' } }]
              .map(more => `data: ${JSON.stringify({ jsonrpc: '2.0', id, ...more })}\n\n`)
              .join('')
          ),
      stream([status('COMPLETED', 3)])
    )
    t.strictSame(await told(agent, client.sendStreamingMessage(say('x'))), ['task:working', 'working', 'completed'])
    t.equal(agent.asked.at(-1)?.headers['last-event-id'], '2')
  })

  await t.test('unless the reply was complete', async t => {
    const { agent, client } = await scripted(t)
    agent.script(stream([opened(1), status('INPUT_REQUIRED', 2)], 'cut', reliable))
    t.strictSame(await told(agent, client.sendStreamingMessage(say('x'))), ['task:working', 'input-required'])
    t.equal(agent.asked.length, 1)
  })

  await t.test('until the task ends, if it has a cursor', async t => {
    const { agent, client } = await scripted(t)
    agent.script(
      stream([], 'end', reliable),
      result(task()),
      stream([], 'end', reliable),
      failure({ code: -31503 }),
      stream([chunk('last', 8)], 'end'),
      result(task()),
      stream([], 'end', reliable),
      result(task('COMPLETED'))
    )
    t.strictSame(await told(agent, client.subscribeToTask({ id: 't' }, { afterGeneration: 7 })), ['artifact: last'])
    t.strictSame(
      agent.asked.map(({ method, headers }) => [method, headers['last-event-id']]),
      [
        ['SubscribeToTask', '7'],
        ['GetTask', undefined],
        ['SubscribeToTask', '7'],
        ['GetTask', undefined],
        ['SubscribeToTask', '7'],
        ['GetTask', undefined],
        ['SubscribeToTask', '8'],
        ['GetTask', undefined]
      ]
    )
  })

  await t.test('until the time limit for reconnecting has passed', async t => {
    const clock = new TestClock()
    const { agent, client } = await scripted(t, {}, { clock, random: () => 1, giveUpAfterMs: 1000 })
    agent.script(stream([opened()], 'cut'), cut)
    const outcome = refusal(told(agent, client.sendStreamingMessage(say('x'))))
    for (const [count, waitMs] of [
      [1, 250],
      [2, 500],
      [3, 1000]
    ] as const) {
      await agent.request(count - 1)
      await until(() => client.state === 'lost' && clock.pending === 1)
      clock.increment(waitMs - 1)
      await rest()
      t.equal(agent.asked.length, count)
      clock.increment(1)
    }
    t.match(await outcome, {
      code: 'Overloaded',
      message: /^The connection to .*\/agent was lost \(UND_ERR_SOCKET\)\. Tasks continue/
    })
    t.equal(client.state, 'lost')
    agent.script(result(task()))
    t.match(await client.getTask({ id: 't' }), { id: 't' }, 'a later call is attempted')
    t.equal(client.state, 'open')
  })

  await t.test('with a longer limit each time it was open, unless events only repeat', async t => {
    const clock = new TestClock()
    const { agent, client } = await scripted(t, {}, { clock, random: () => 1, giveUpAfterMs: 600 })
    agent.script(
      stream([opened()], 'cut'),
      stream([], 'cut'),
      stream([], 'cut'),
      stream([], 'cut'),
      stream([], 'cut'),
      stream([opened()])
    )
    const outcome = refusal(told(agent, client.sendStreamingMessage(say('x'))))
    const tried = async (count: number, waitMs: number) => {
      await agent.request(count - 1)
      await until(() => client.state === 'lost' && clock.pending === 1)
      clock.increment(waitMs)
    }
    for (const count of [1, 2, 3, 4, 5]) await tried(count, 250)
    await tried(6, 500)
    t.match(await outcome, { code: 'Overloaded', message: /the agent ended the stream before the task/ })
    t.equal(agent.asked.length, 7)
  })
})

await t.test('a call whose connection is lost', async t => {
  await t.test('is resent if it has no side effects', async t => {
    const { agent, client } = await scripted(t)
    agent.script(
      cut,
      ({ id }, response) => {
        response
          .writeHead(200, JSON_TYPE)
          .write(`{"jsonrpc":"2.0","id":${id},`, () => setImmediate(() => response.destroy()))
      },
      result(task())
    )
    t.match(await client.getTask({ id: 't' }), { id: 't' })
    t.equal(agent.asked.length, 3)
  })

  await t.test('is resent if the agent has the extension, by its card or by a response', async t => {
    const byCard = await scripted(t, { isReliable: true })
    byCard.agent.script(cut, result({ task: task() }))
    const message = say('x')
    t.match(await byCard.client.sendMessage(message), { task: { id: 't' } })
    t.strictSame(
      byCard.agent.asked.map(({ params }) => params),
      [message, message]
    )
    const { agent, client } = await scripted(t)
    agent.script(result(task(), reliable), cut, result({ task: task() }), cut, stream([reply('hi')]))
    await client.getTask({ id: 't' })
    t.match(await client.sendMessage(say('x')), { task: { id: 't' } })
    t.strictSame(await told(agent, client.sendStreamingMessage(say('x'))), ['message: hi'])
  })

  await t.test('fails otherwise, and the error says that the outcome is unknown', async t => {
    const { agent, client } = await scripted(t)
    agent.script(result(task(), { 'a2a-extensions': 'urn:other' }), cut)
    await client.getTask({ id: 't' })
    t.match(await refusal(client.sendMessage(say('x'))), {
      code: 'Overloaded',
      message: /was lost while SendMessage was under way\. It is unknown whether the agent received it/
    })
    t.match(await refusal(told(agent, client.sendStreamingMessage(say('x')))), {
      code: 'Overloaded',
      message: /SendStreamingMessage/
    })
    t.equal(agent.asked.length, 3)
  })

  await t.test("fails with the agent's error if the agent is not ready in time", async t => {
    const clock = new TestClock()
    const { agent, client } = await scripted(t, {}, { clock, giveUpAfterMs: 1 })
    agent.script(cut, failure({ code: -31503, message: 'Starting.' }))
    const outcome = refusal(client.getTask({ id: 't' }))
    await until(() => clock.pending === 1)
    clock.increment(1)
    t.match(await outcome, { code: 'Overloaded', message: 'Starting.' })
  })

  await t.test('is not retried with giveUpAfterMs 0', async t => {
    const { agent, client } = await scripted(t, {}, { giveUpAfterMs: 0 })
    agent.script(cut)
    t.match(await refusal(client.getTask({ id: 't' })), { code: 'Overloaded', message: /was lost/ })
    t.equal(agent.asked.length, 1)
  })

  await t.test('stops waiting when its signal aborts', async t => {
    const clock = new TestClock()
    const { agent, client } = await scripted(t, {}, { clock, random: () => 1 })
    agent.script(cut)
    const stop = new AbortController()
    const outcome = rejection(client.getTask({ id: 't' }, { signal: stop.signal }))
    await until(() => clock.pending === 1)
    const gone = new Error('enough')
    stop.abort(gone)
    t.equal(await outcome, gone)
    t.equal(clock.pending, 0)
  })
})

await t.test('the first call to an unreachable agent fails at once, and a later one waits', async t => {
  const clock = new TestClock()
  const first = await scripted(t)
  first.agent.close()
  t.match(await refusal(first.client.sendMessage(say('x'))), {
    code: 'Overloaded',
    message: `Nobody answers at ${first.agent.url}/agent. Is the agent running?`
  })
  const { agent, client } = await scripted(t, {}, { clock, giveUpAfterMs: 10, random: () => 1 })
  agent.script(result(task()))
  await client.getTask({ id: 't' })
  agent.close()
  for (const call of [() => client.getTask({ id: 't' }), () => client.sendMessage(say('x'))]) {
    const outcome = refusal(call())
    await until(() => client.state === 'lost' && clock.pending === 1)
    clock.increment(250)
    t.match(await outcome, { code: 'Overloaded', message: /was lost \(ECONNREFUSED\)/ })
  }
})

await t.test('close ends all calls and streams, may be called twice, and fails later calls', async t => {
  const { agent, client } = await scripted(t)
  const clock = new TestClock()
  const waiting = await connect(agent.url, { clock, random: () => 1 })
  const states: string[] = []
  client.on('closed', () => states.push('closed'))
  client.on('closed', () => states.push('never'))()
  agent.script(stream([opened()], 'open'), () => {})
  const events = client.subscribeToTask({ id: 't' })
  await next(events)
  const outcomes = [refusal(collect(events)), refusal(client.getTask({ id: 't' }))]
  const asked = await agent.request(1)
  agent.script(cut)
  const lost = refusal(waiting.getTask({ id: 't' }))
  await until(() => clock.pending === 1)
  await Promise.all([client.close(), client.close(), waiting.close()])
  await client.close()
  for (const error of await Promise.all([...outcomes, lost]))
    t.match(error, { code: 'Overloaded', message: `The connection to ${agent.url}/agent was closed by this client.` })
  await asked.closed
  t.match(await refusal(client.getTask({ id: 't' })), { code: 'Overloaded' })
  t.match(await refusal(collect(client.subscribeToTask({ id: 't' }))), { code: 'Overloaded' })
  t.strictSame([client.state, waiting.state, states], ['closed', 'closed', ['closed']])
  t.equal(clock.pending, 0)
})

await t.test('every request has the tenant of the card, and no other', async t => {
  const { agent, client } = await scripted(t, { tenant: 'acme' })
  agent.script(result(task()))
  await client.getTask({ id: 't' })
  await client.getTask({ id: 't', tenant: 'acme' })
  t.strictSame(
    agent.asked.map(({ params }) => params),
    [
      { id: 't', tenant: 'acme' },
      { id: 't', tenant: 'acme' }
    ]
  )
  t.match(await rejection(client.getTask({ id: 't', tenant: 'other' })), {
    code: 'InvalidParams',
    violations: [{ field: 'tenant', description: 'must be "acme", as the agent\'s card says' }]
  })
  const plain = await scripted(t)
  t.match(await refusal(collect(plain.client.subscribeToTask({ id: 't', tenant: 'acme' }))), {
    code: 'InvalidParams',
    message: /must be left out/
  })
  plain.agent.script(result(task()))
  await plain.client.getTask({ id: 't' })
  t.strictSame(
    plain.agent.asked.map(({ params }) => params),
    [{ id: 't' }]
  )
})

await t.test(
  'a stream that is disconnected again and again at random bytes delivers each event once and in order',
  async t => {
    const EVENTS = 2000
    const log = [
      opened(1),
      ...Array.from({ length: EVENTS - 2 }, (_, index) => chunk(`number ${index}`, index + 2)),
      status('COMPLETED', EVENTS)
    ]
    for (const binding of ['JSONRPC', 'HTTP+JSON'] as const) {
      const agent = await httpAgent(t)
      agent.script((asked, response) => {
        const after = Number(asked.headers['last-event-id'] ?? 0)
        const data = (result: unknown) => (binding === 'JSONRPC' ? { jsonrpc: '2.0', id: asked.id, result } : result)
        response.writeHead(200, { 'content-type': 'text/event-stream', ...reliable })
        for (const [index, event] of log.slice(after).entries())
          response.write(`id: ${after + index + 1}\ndata: ${JSON.stringify(data(event))}\n\n`)
        response.end()
      })
      const proxy = await cuttingProxy(Number(new URL(agent.url).port), { cuts: CUTS, most: 8000, seed: 11 })
      t.teardown(() => proxy.close())
      const { client } = await scripted(t, {
        binding,
        address: `http://127.0.0.1:${proxy.port}/agent`,
        isReliable: true
      })
      const events = await collect(client.sendStreamingMessage(say('talk')))
      t.strictSame(events, log, binding)
      t.ok(proxy.cuts >= CUTS, `cut ${proxy.cuts} times`)
    }
  }
)
