import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import t, { type Test } from 'tap'
import type { AgentClient } from '../../../../adapters/client/agent-client.ts'
import { connect, type ConnectOptions } from '../../../../adapters/client/connect.ts'
import { A2AError, BAD_REQUEST, ERROR_INFO, RETRY_INFO } from '../../../../machines/protocol/errors.ts'
import type { StreamResponse } from '../../../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../../../machines/protocol/uris.ts'
import { cuttingProxy } from '../../../fixtures/network/cutting-proxy.ts'
import { grpcAgent } from '../../../fixtures/peers/scripted-grpc.ts'
import { body, cut, httpAgent, writeEvents, type Answer } from '../../../fixtures/peers/scripted-http.ts'
import { officialAgent } from '../../../fixtures/servers/official-agent.ts'
import {
  brief,
  collect,
  next,
  readUntil,
  refusal,
  rejection,
  say,
  taskIn
} from '../../../fixtures/runtime/runtime-helpers.ts'

async function connected(t: Test, url: string, options: ConnectOptions = {}): Promise<AgentClient> {
  const client = await connect(url, { random: () => 0, ...options })
  t.teardown(() => client.close())
  return client
}

for (const binding of ['JSONRPC', 'HTTP+JSON', 'GRPC'] as const) {
  await t.test(`the client calls an agent of the official SDK over ${binding}`, async t => {
    const agent = await officialAgent(t, [binding])
    const client = await connected(t, agent.url, {
      headers: { 'x-caller': 'anna' },
      credentialOrigins: [`grpc://127.0.0.1:${agent.grpcPort}`]
    })
    t.match(client, { binding, state: 'open' })

    await t.test('receives a message, or a completed task', async t => {
      t.match(await client.sendMessage(say('hi')), {
        message: { role: 'ROLE_AGENT', parts: [{ text: 'hi yourself' }] }
      })
      const task = taskIn(await client.sendMessage(say('boat', { contextId: 'c' })))
      t.match(task, {
        contextId: 'c',
        status: { state: 'TASK_STATE_COMPLETED' },
        artifacts: [{ artifactId: 'echo', name: 'echo', parts: [{ text: 'boat' }, { text: '!' }] }]
      })
      t.notOk('metadata' in task || 'description' in (task.artifacts?.[0] ?? {}), 'in canonical form')
      t.match(await client.getTask({ id: task.id, historyLength: 0 }), { id: task.id, history: undefined })
      t.match(await client.listTasks({ contextId: 'c', pageSize: 5, includeArtifacts: true }), {
        tasks: [{ id: task.id }],
        totalSize: 1,
        nextPageToken: ''
      })
    })

    await t.test('streams, receives a question and answers it', async t => {
      t.strictSame((await collect(client.sendStreamingMessage(say('hi')))).map(brief), ['message: hi yourself'])
      t.strictSame((await collect(client.sendStreamingMessage(say('boat')))).map(brief), [
        'task:submitted',
        'working',
        'artifact: boat',
        'artifact: !',
        'completed'
      ])
      const asking = await collect(client.sendStreamingMessage(say('ask')))
      t.strictSame(asking.map(brief), ['task:submitted', 'working', 'input-required: What?'])
      const { id } = taskIn(asking[0])
      t.match(taskIn(await client.sendMessage(say('that', { taskId: id }))), {
        id,
        status: { state: 'TASK_STATE_COMPLETED' },
        artifacts: [{ parts: [{ text: 'that' }, { text: '!' }] }]
      })
    })

    await t.test('subscribes to a task, and cancels it', async t => {
      const sent = client.sendStreamingMessage(say('wait'))
      const [first] = await readUntil(sent, event => brief(event) === 'working')
      const { id } = taskIn(first)
      const watched = client.subscribeToTask({ id })
      t.equal(brief(await next(watched)), 'task:working')
      agent.goOn()
      t.strictSame((await collect(watched)).map(brief).at(-1), 'completed')
      t.strictSame((await collect(sent)).map(brief), ['artifact: wait', 'artifact: !', 'completed'])
      const other = client.sendStreamingMessage(say('wait'))
      const task = taskIn((await readUntil(other, event => brief(event) === 'working'))[0])
      t.match(await client.cancelTask({ id: task.id }), { status: { state: 'TASK_STATE_CANCELED' } })
      t.equal((await collect(other)).map(brief).at(-1), 'canceled')
    })

    await t.test('registers webhooks of a task, reads and deletes them', async t => {
      const { id: taskId } = taskIn(await client.sendMessage(say('boat')))
      t.match(
        await client.createTaskPushNotificationConfig({
          taskId,
          id: 'w',
          url: 'https://client.example/hook',
          authentication: { scheme: 'Bearer', credentials: 's' }
        }),
        { taskId, id: 'w', url: 'https://client.example/hook', authentication: { scheme: 'Bearer' } }
      )
      t.match(await client.getTaskPushNotificationConfig({ taskId, id: 'w' }), {
        taskId,
        id: 'w',
        url: 'https://client.example/hook'
      })
      t.match(await client.listTaskPushNotificationConfigs({ taskId }), { configs: [{ id: 'w' }] })
      t.equal(await client.deleteTaskPushNotificationConfig({ taskId, id: 'w' }), undefined)
      t.strictSame((await client.listTaskPushNotificationConfigs({ taskId })).configs, [])
    })

    await t.test('receives errors as A2AErrors', async t => {
      const missing = await rejection(client.getTask({ id: 'nobody' }))
      t.type(missing, A2AError)
      t.match(missing, { code: 'TaskNotFound' })
      t.match(await refusal(client.cancelTask({ id: 'nobody' })), { code: 'TaskNotFound' })
      t.match(await refusal(collect(client.subscribeToTask({ id: 'nobody' }))), { code: 'TaskNotFound' })
      t.match(await refusal(client.sendMessage(say('x', { taskId: 'nobody' }))), { code: 'TaskNotFound' })
      t.match(await refusal(collect(client.sendStreamingMessage(say('x', { taskId: 'nobody' })))), {
        code: 'TaskNotFound'
      })
      const done = taskIn(await client.sendMessage(say('boat')))
      t.match(await refusal(client.cancelTask({ id: done.id })), { code: 'TaskNotCancelable' })
      t.match(await refusal(client.sendMessage(say('more', { taskId: done.id }))), { code: 'UnsupportedOperation' })
      t.match(await refusal(collect(client.subscribeToTask({ id: done.id }))), { code: 'UnsupportedOperation' })
    })

    await t.test('ends streams by a signal and by closing', async t => {
      const stop = new AbortController()
      const events = client.sendStreamingMessage(say('wait'), { signal: stop.signal })
      await next(events)
      const gone = new Error('enough')
      const rest = rejection(collect(events))
      stop.abort(gone)
      t.equal(await rest, gone)
      const other = await connected(t, agent.url)
      const cut = refusal(other.sendMessage(say('wait')))
      await other.close()
      t.match(await cut, { code: 'Overloaded', message: /closed by this client/ })
    })
  })
}

await t.test('the official servers receive the headers and the service parameters over HTTP', async t => {
  for (const [binding, path] of [
    ['JSONRPC', '/rpc'],
    ['HTTP+JSON', '/rest']
  ] as const) {
    const agent = await officialAgent(t, [binding])
    const client = await connected(t, agent.url, {
      headers: () => ({ authorization: 'Bearer anna' }),
      extensions: ['urn:other']
    })
    await client.getExtendedAgentCard().catch(() => {})
    t.match(
      agent.headers.at(-1),
      { authorization: 'Bearer anna', 'a2a-version': '1.0', 'a2a-extensions': `${RELIABILITY_EXTENSION},urn:other` },
      path
    )
  }
})

const JSON_TYPE = { 'content-type': 'application/json' }
const task = () => ({ id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } }) as const
const generation = (count: number) => ({ metadata: { [RELIABILITY_EXTENSION]: { generation: count } } })
const chunk = (text: string, count: number) => ({
  artifactUpdate: {
    taskId: 't',
    contextId: 'c',
    artifact: { artifactId: 'a', parts: [{ text }] },
    ...generation(count)
  }
})
const completed = (count: number) =>
  ({
    statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' }, ...generation(count) }
  }) as const
const info = (reason: string, metadata?: object) => ({
  '@type': ERROR_INFO,
  reason,
  domain: 'a2a-protocol.org',
  ...(metadata && { metadata })
})

/** Answers with a REST error. */
function restError(httpStatus: number, error: object, headers = {}): Answer {
  return body(JSON.stringify({ error }), { 'content-type': 'application/a2a+json', ...headers }, httpStatus)
}

/** Answers with a stream as REST has it. */
function events(list: readonly StreamResponse[], stop: 'end' | 'cut' | 'open' = 'end'): Answer {
  return (asked, response) => {
    writeEvents(list, response, { 'a2a-extensions': RELIABILITY_EXTENSION })
    const last = list.at(-1)
    if (stop === 'end') response.end()
    if (stop === 'cut' && last) asked.cutAfter(brief(last))
  }
}

/** Answers with a stream that fails. */
function failing(error: object): Answer {
  return (_, response) =>
    void response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .end(`event: error\ndata: ${JSON.stringify({ error })}\n\n`)
}

await t.test('over REST', async t => {
  const agent = await httpAgent(t, { binding: 'HTTP+JSON', tenant: 'acme' })
  const client = await connected(t, agent.url)
  const take = async (...answers: readonly Answer[]) => {
    agent.asked.length = 0
    agent.script(...answers)
  }

  await t.test('the tenant is in the path, and a lost call is resent where safe', async t => {
    await take(cut, body(JSON.stringify(task()), { ...JSON_TYPE, 'a2a-extensions': 'urn:other' }))
    t.match(await client.getTask({ id: 't', historyLength: 3 }), { id: 't' })
    t.strictSame(
      agent.asked.map(({ path }) => path),
      Array(2).fill('/agent/acme/tasks/t?historyLength=3')
    )
    await take(cut)
    t.match(await refusal(client.sendMessage(say('x'))), { code: 'Overloaded', message: /It is unknown whether/ })
  })

  await t.test('errors come from ErrorInfo, or from the HTTP status', async t => {
    const client = await connected(t, agent.url, { giveUpAfterMs: 0 })
    const violations = { '@type': BAD_REQUEST, fieldViolations: [{ field: 'id', description: 'must be there' }] }
    for (const [answer, wanted] of [
      [
        restError(404, {
          code: 404,
          status: 'NOT_FOUND',
          message: 'Gone.',
          details: [info('TASK_NOT_FOUND', { taskId: 't' })]
        }),
        { code: 'TaskNotFound', message: 'Gone.', metadata: { taskId: 't' } }
      ],
      [
        restError(409, { code: 409, status: 'ABORTED', message: 'Late.', details: [info('TASK_GENERATION_MISMATCH')] }),
        { code: 'TaskGenerationMismatch' }
      ],
      [
        restError(400, { code: 400, status: 'INVALID_ARGUMENT', message: 'Bad.', details: [violations] }),
        { code: 'InvalidParams', violations: [{ field: 'id' }] }
      ],
      [
        restError(429, {
          status: 'RESOURCE_EXHAUSTED',
          message: 'Slow.',
          details: [{ '@type': RETRY_INFO, retryDelay: '1.5s' }]
        }),
        { code: 'RateLimited', retryAfterMs: 1500 }
      ],
      [restError(500, { status: 'INTERNAL', message: 'Broken.' }), { code: 'InternalError', message: 'Broken.' }],
      [restError(413, { message: 'Long.' }), { code: 'TooLarge', message: 'Long.' }],
      [body('{"error":"no"}', JSON_TYPE, 401), { code: 'Unauthenticated' }],
      [body('[]', JSON_TYPE, 403), { code: 'Forbidden' }],
      [body('{', JSON_TYPE, 503), { code: 'Overloaded' }],
      [body('<html>', { 'content-type': 'text/html' }, 404), { code: 'UnsupportedOperation' }],
      [
        body('<html>', { 'content-type': 'text/html' }),
        { code: 'InvalidAgentResponse', message: /text\/html, not with JSON/ }
      ],
      [body('nonsense', JSON_TYPE), { code: 'InvalidAgentResponse', message: /not JSON/ }],
      [body('{}', JSON_TYPE), { code: 'InvalidAgentResponse' }],
      [body('', { location: '/elsewhere' }, 308), { code: 'InvalidAgentResponse', message: /not followed/ }]
    ] as const) {
      await take(answer)
      const error = await rejection(client.getTask({ id: 't' }))
      t.type(error, A2AError)
      t.match(error, wanted)
    }
    await take(body('', {}))
    t.match(await refusal(collect(client.subscribeToTask({ id: 't' }))), {
      code: 'InvalidAgentResponse',
      message: /not JSON/
    })
    await take(failing({ code: 500, message: 'Broken.', details: [info('UNSUPPORTED_OPERATION', { why: 'so' })] }))
    t.match(await rejection(collect(client.subscribeToTask({ id: 't' }))), {
      code: 'UnsupportedOperation',
      message: 'Broken.',
      metadata: { why: 'so' }
    })
    await take(failing({ code: 500, message: 'Broken.' }))
    t.match(await rejection(collect(client.subscribeToTask({ id: 't' }))), {
      code: 'InternalError',
      message: 'Broken.'
    })
    const strange = await connected(t, agent.url, { headers: { 'bad header': 'x' } })
    t.match(await rejection(strange.getTask({ id: 't' })), { name: 'TypeError' })
  })

  await t.test('a stream resumes after its last event, and delivers each event once', async t => {
    await take(
      events([{ task: { ...task(), ...generation(1) } }, chunk('one', 2)], 'cut'),
      cut,
      events([chunk('one', 2), chunk('two', 3)]),
      events([completed(4)], 'open')
    )
    const told: string[] = []
    for await (const event of client.sendStreamingMessage(say('x'))) {
      told.push(brief(event))
      agent.heard(brief(event))
    }
    t.strictSame(told, ['task:working', 'artifact: one', 'artifact: two', 'completed'])
    await agent.asked.at(-1)?.closed
    t.strictSame(
      agent.asked.map(({ path, headers }) => [path, headers['last-event-id'], headers['taskchart-after-generation']]),
      [
        ['/agent/acme/message:stream', undefined, undefined],
        ...['2', '2', '3'].map(after => ['/agent/acme/tasks/t:subscribe', after, after])
      ]
    )
  })
})

await t.test('over gRPC', async t => {
  const agent = await grpcAgent(t)
  const proxy = await cuttingProxy(agent.port)
  t.teardown(() => proxy.close())
  const { url } = await httpAgent(t, { binding: 'GRPC', tenant: 'acme', address: `localhost:${proxy.port}` })
  const client = await connected(t, url.replace('127.0.0.1', 'localhost'), {
    headers: { authorization: 'Bearer anna' },
    credentialOrigins: [`http://localhost:${proxy.port}`]
  })

  await t.test('service parameters and headers are metadata, and nothing else is', async t => {
    const address = `localhost:${proxy.port}`
    const other = await httpAgent(t, { binding: 'GRPC', tenant: 'acme', address, isReliable: true })
    const reliableClient = await connected(t, other.url.replace('127.0.0.1', 'localhost'), {
      headers: { authorization: 'Bearer anna' },
      credentialOrigins: [`http://${address}`]
    })
    agent.script({ task: task() })
    await reliableClient.getTask({ id: 't' }, { currentGeneration: 3 })
    t.match(agent.asked.at(-1), { method: 'GetTask', request: { id: 't', tenant: 'acme' } })
    t.strictSame(agent.asked.at(-1)?.metadata, {
      'a2a-version': '1.0',
      'a2a-extensions': RELIABILITY_EXTENSION,
      authorization: 'Bearer anna',
      'taskchart-current-generation': '3',
      'user-agent': agent.asked.at(-1)?.metadata['user-agent']
    })
  })

  await t.test('lost calls and streams are retried if that is safe, and events arrive once', async t => {
    agent.script({ open: () => proxy.cutAll() }, { task: task() })
    t.match(await client.getTask({ id: 't' }), { id: 't' })
    agent.script({ open: () => proxy.cutAll() })
    t.match(await refusal(client.sendMessage(say('x'))), { code: 'Overloaded', message: /It is unknown whether/ })
    const states: string[] = []
    for (const state of ['lost', 'open'] as const) client.on(state, () => states.push(state))
    const first = { 'a2a-extensions': RELIABILITY_EXTENSION }
    agent.script(
      { first, events: [{ task: { ...task(), ...generation(1) } }, chunk('one', 2)], open: true },
      { first, events: [chunk('one', 2), chunk('two', 3)] },
      { events: [completed(4)], open: true }
    )
    const stream = client.sendStreamingMessage(say('x'))
    t.strictSame((await readUntil(stream, event => brief(event) === 'artifact: one')).map(brief), [
      'task:working',
      'artifact: one'
    ])
    proxy.cutAll()
    t.strictSame((await collect(stream)).map(brief), ['artifact: two', 'completed'])
    t.strictSame(
      agent.asked
        .slice(-2)
        .map(({ method, request, metadata }) => [
          method,
          (request as { tenant: string }).tenant,
          metadata['taskchart-after-generation']
        ]),
      [
        ['SubscribeToTask', 'acme', '2'],
        ['SubscribeToTask', 'acme', '3']
      ]
    )
    t.strictSame(states, ['lost', 'open', 'lost', 'open'])
    agent.script({ open: () => proxy.cutAll() }, { task: task() })
    t.match(await client.sendMessage(say('x')), { task: { id: 't' } }, 'the agent said that it has the extension')
  })

  await t.test('errors come from ErrorInfo, or from the status of gRPC', async t => {
    const bin = statusOf(3, 'Bad.', [
      [
        ERROR_INFO,
        [
          [1, 'INVALID_PARAMS'],
          [2, 'taskchart'],
          [
            3,
            [
              [1, 'where'],
              [2, 'here']
            ]
          ]
        ]
      ],
      [
        BAD_REQUEST,
        [
          [
            1,
            [
              [1, 'id'],
              [2, 'must be there'],
              [9, 7]
            ]
          ]
        ]
      ],
      ['type.googleapis.com/google.rpc.Other', [[1, 'x']]]
    ])
    const later = statusOf(14, 'Later.', [
      [ERROR_INFO, [[1, 'OVERLOADED']]],
      [
        RETRY_INFO,
        [
          [
            1,
            [
              [1, 2],
              [2, 500_000_000]
            ]
          ]
        ]
      ]
    ])
    const soon = statusOf(8, 'Soon.', [
      [ERROR_INFO, [[1, 'RATE_LIMITED']]],
      [RETRY_INFO, []]
    ])
    for (const [error, wanted] of [
      [
        { code: 3, details: 'Bad.', bin },
        {
          code: 'InvalidParams',
          message: 'Bad.',
          metadata: { where: 'here' },
          violations: [{ field: 'id', description: 'must be there' }]
        }
      ],
      [
        { code: 14, details: 'Later.', bin: later },
        { code: 'Overloaded', message: 'Later.', retryAfterMs: 2500 }
      ],
      [
        { code: 8, details: 'Soon.', bin: soon },
        { code: 'RateLimited', retryAfterMs: 0 }
      ],
      [
        { code: 5, details: 'Gone.', bin: statusOf(5, 'Gone.', [[ERROR_INFO, [[1, 'TASK_NOT_FOUND']]]]) },
        { code: 'TaskNotFound', message: 'Gone.' }
      ],
      [
        { code: 16, details: 'Who?' },
        { code: 'Unauthenticated', message: 'Who?' }
      ],
      [
        { code: 7, details: 'No.', bin: new Uint8Array([0xff]) },
        { code: 'Forbidden', message: 'No.' }
      ],
      [{ code: 12, details: 'Never.', bin: new Uint8Array([0x0d, 1, 2, 3, 4]) }, { code: 'UnsupportedOperation' }],
      [
        { code: 2, details: 'Broken.' },
        { code: 'InternalError', message: 'Broken.' }
      ]
    ] as const) {
      agent.script({ error })
      const thrown = await rejection(client.getTask({ id: 't' }))
      t.type(thrown, A2AError)
      t.match(thrown, wanted)
    }
    agent.script({ events: [{ task: task() }], error: { code: 9, details: 'Ended.' } })
    t.match(await refusal(collect(client.subscribeToTask({ id: 't' }))), {
      code: 'UnsupportedOperation',
      message: 'Ended.'
    })
    agent.script({
      task: { ...task(), artifacts: [{ artifactId: 'a', parts: [{ text: 'x'.repeat(5 * 1024 * 1024) }] }] }
    })
    t.match(await refusal(client.getTask({ id: 't' })), { code: 'InvalidAgentResponse', message: /too large/ })
    agent.script({ task: {} })
    t.match(await refusal(client.getTask({ id: 't' })), { code: 'InvalidAgentResponse' })
    agent.script({ task: 'none' }, { events: [{}] })
    t.match(await refusal(client.sendMessage(say('x'))), { code: 'InvalidAgentResponse' })
    t.match(await refusal(collect(client.subscribeToTask({ id: 't' }))), { code: 'InvalidAgentResponse' })
    const { url: local } = await httpAgent(t, { binding: 'GRPC', address: `127.0.0.1:${agent.port}` })
    const strange = await connected(t, local, {
      headers: () => ({ 'bad header': 'x' }),
      credentialOrigins: [`http://127.0.0.1:${agent.port}`]
    })
    t.match(await rejection(strange.getTask({ id: 't' })), { message: /"bad header" contains illegal characters/ })
  })

  await t.test('an address may specify TLS, and an invalid address is refused', async t => {
    const connects = async (address: string) => {
      const { url } = await httpAgent(t, { binding: 'GRPC', address })
      return connected(t, url, { giveUpAfterMs: 0 })
    }
    for (const address of [
      `grpc://127.0.0.1:${agent.port}`,
      `http://127.0.0.1:${agent.port}/`,
      `127.0.0.1:${agent.port}`
    ]) {
      agent.script({ task: task() })
      t.match(await (await connects(address)).getTask({ id: 't' }), { id: 't' }, address)
    }
    for (const [address, plain] of [
      [`grpcs://localhost:${agent.port}`, `grpc://localhost:${agent.port}/`],
      [`https://localhost:${agent.port}`, `http://localhost:${agent.port}/`]
    ]) {
      t.match(await refusal((await connects(address ?? '')).getTask({ id: 't' })), {
        code: 'Overloaded',
        message: `The port of ${address} speaks no TLS. Write ${plain} instead.`
      })
    }
    for (const address of ['https://127.0.0.1', 'http://[::1]/', 'nobody.invalid:1', '127.0.0.1:1']) {
      t.match(await refusal((await connects(address)).getTask({ id: 't' })), {
        code: 'Overloaded',
        message: `Nobody answers at ${address}. Is the agent running?`
      })
    }
    for (const address of [
      'dns://127.0.0.1/evil.example:1',
      'unix:/tmp/socket',
      'http://a:b@127.0.0.1:1',
      '127.0.0.1:1/path',
      ' '
    ]) {
      t.match(await refusal(connects(address)), { code: 'InvalidAgentResponse', message: /not an address for gRPC/ })
    }
  })
})

/** A field of a message in binary form: text, a whole number, or a message in it. */
type Field = readonly [number, string | number | readonly Field[]]

function message(fields: readonly Field[]): Uint8Array {
  const writer = new BinaryWriter()
  for (const [number, value] of fields) {
    if (typeof value === 'number') writer.tag(number, WireType.Varint).int32(value)
    else if (typeof value === 'string') writer.tag(number, WireType.LengthDelimited).string(value)
    else writer.tag(number, WireType.LengthDelimited).bytes(message(value))
  }
  return writer.finish()
}

/** A google.rpc.Status in binary form. */
function statusOf(code: number, text: string, details: readonly (readonly [string, readonly Field[]])[]): Uint8Array {
  const writer = new BinaryWriter().tag(1, WireType.Varint).int32(code).tag(2, WireType.LengthDelimited).string(text)
  for (const [type, fields] of details) {
    const any = new BinaryWriter()
      .tag(1, WireType.LengthDelimited)
      .string(type)
      .tag(2, WireType.LengthDelimited)
      .bytes(message(fields))
      .finish()
    writer.tag(3, WireType.LengthDelimited).bytes(any)
  }
  return writer.finish()
}
