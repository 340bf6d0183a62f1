import { createServer } from 'node:http'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { cardSigner, cardVerifier } from '../../../adapters/auth/index.ts'
import { fetchCard } from '../../../adapters/client/card/discovery.ts'
import { connect } from '../../../adapters/client/connect.ts'
import { delegate, remoteAgent } from '../../../adapters/delegation/index.ts'
import { dialect03 } from '../../../adapters/legacy/index.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import { asCurrentCard } from '../../../adapters/v03/card.ts'
import { fromResult03, toCall03 } from '../../../adapters/v03/client.ts'
import { toProtoSend } from '../../../adapters/v03/proto.ts'
import type { AgentCard } from '../../../machines/protocol/card.ts'
import { inputRequired, textOf, type WorkFunction } from '../../../runtime/index.ts'
import { agent03, type Transport03 } from '../../fixtures/servers/agent-03.ts'
import { runCommand } from '../../fixtures/cli/run-command.ts'
import {
  brief,
  collect,
  messageIn,
  next,
  refusal,
  rejection,
  say,
  start,
  taskIn,
  until
} from '../../fixtures/runtime/runtime-helpers.ts'
import {
  body,
  failure,
  httpAgent,
  result,
  stream,
  writeEvents,
  type Answer,
  type ScriptedCard
} from '../../fixtures/peers/scripted-http.ts'

const TRANSPORTS: readonly Transport03[] = ['JSONRPC', 'HTTP+JSON', 'GRPC']

for (const transport of TRANSPORTS) {
  await t.test(`the client speaks 1.0 to an agent on the official SDK of 0.3, by ${transport}`, async t => {
    const { url, release, headers } = await agent03(t, transport)
    const client = await connect(url)
    t.teardown(() => client.close())
    t.equal(client.binding, transport)
    t.equal(textOf(messageIn(await client.sendMessage(say('hello')))), 'Hello to you.')
    const parts = [
      { text: 'x' },
      { raw: 'AP8=', mediaType: 'application/octet-stream' },
      { url: 'https://example.com/b', mediaType: 'text/html' },
      { data: { a: 1 } }
    ]
    const echoed = taskIn(await client.sendMessage(say('', { parts })))
    t.match(echoed, {
      status: {
        state: 'TASK_STATE_COMPLETED',
        message: { role: 'ROLE_AGENT', parts: [{ text: 'done' }] },
        timestamp: '2025-06-01T12:00:00.123Z'
      },
      history: [{ role: 'ROLE_USER', parts }, {}, {}]
    })
    t.strictSame(echoed.artifacts, [{ artifactId: 'a', name: 'echo', description: 'An echo.', parts }])

    const asked = taskIn(
      await client.sendMessage(say('ask', {}, { acceptedOutputModes: ['text/plain'], historyLength: 1 }))
    )
    t.match(asked, { status: { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text: 'Which colour?' }] } } })
    const { id: taskId, contextId = '' } = asked
    const done = taskIn(await client.sendMessage(say('blue', { taskId, contextId })))
    t.match(done, { id: taskId, status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ parts: [{ text: 'blue' }] }] })

    const counted = await collect(client.sendStreamingMessage(say('count')))
    t.strictSame(counted.map(brief), [
      'task:submitted',
      'working: at it',
      'artifact: 1',
      'artifact: 2',
      'artifact: 3',
      'completed: done'
    ])
    t.match(counted.slice(2, 5), [
      { artifactUpdate: { append: undefined } },
      { artifactUpdate: { append: true, metadata: undefined } },
      { artifactUpdate: { append: true, lastChunk: true, metadata: { n: 3 } } }
    ])
    t.match(await collect(client.sendStreamingMessage(say('hello'))), [
      { message: { parts: [{ text: 'Hello to you.' }] } }
    ])
    t.strictSame((await collect(client.sendStreamingMessage(say('ask')))).map(brief), [
      'task:submitted',
      'working: at it',
      'input-required: Which colour?'
    ])

    const { id } = taskIn(await client.sendMessage(say('wait', {}, { returnImmediately: true })))
    await until(async () => (await client.getTask({ id })).status.state === 'TASK_STATE_WORKING')
    const stream = client.subscribeToTask({ id })
    t.match(await next(stream), { task: { id, status: { state: 'TASK_STATE_WORKING' } } })
    release()
    t.strictSame((await collect(stream)).map(brief), ['artifact: wait', 'completed: done'])
    t.match(await client.getTask({ id, historyLength: 1 }), { id, artifacts: [{ parts: [{ text: 'wait' }] }] })
    const other = taskIn(await client.sendMessage(say('wait', {}, { returnImmediately: true })))
    t.match(await client.cancelTask({ id: other.id }), { id: other.id, status: { state: 'TASK_STATE_CANCELED' } })

    t.match(await refusal(client.getTask({ id: 'nobody' })), {
      code: 'TaskNotFound',
      message: 'Task not found: nobody'
    })
    t.match(await refusal(client.cancelTask({ id })), {
      code: transport === 'GRPC' ? 'UnsupportedOperation' : 'TaskNotCancelable',
      message: /not cancelable/
    })
    t.match(await refusal(client.listTasks({})), {
      code: 'UnsupportedOperation',
      message: 'There is no ListTasks in A2A 0.3, and the agent speaks nothing newer.'
    })
    t.match(await refusal(client.getTask({ id, tenant: 'blue' })), { code: 'InvalidParams' })
    t.match(await refusal(client.getExtendedAgentCard()), { code: 'UnsupportedOperation' })
    if (transport !== 'GRPC') t.match(headers.at(-1), { 'a2a-version': '0.3', 'x-a2a-extensions': /reliability/ })
  })

  await t.test(
    `the client registers, reads, lists and removes webhooks with an agent of 0.3, by ${transport}`,
    async t => {
      const { url, release } = await agent03(t, transport, {
        capabilities: { streaming: true, pushNotifications: true }
      })
      const client = await connect(url)
      t.teardown(() => client.close())
      const { id: taskId } = taskIn(await client.sendMessage(say('wait', {}, { returnImmediately: true })))
      const webhook = {
        taskId,
        id: 'p1',
        url: 'https://client.example/hook',
        token: 'x',
        authentication: { scheme: 'Bearer', credentials: 's' }
      }
      t.strictSame(await client.createTaskPushNotificationConfig(webhook), webhook)
      t.strictSame(await client.getTaskPushNotificationConfig({ taskId, id: 'p1' }), webhook)
      t.strictSame(await client.listTaskPushNotificationConfigs({ taskId }), { configs: [webhook] })
      t.equal(await client.deleteTaskPushNotificationConfig({ taskId, id: 'p1' }), undefined)
      t.strictSame(await client.listTaskPushNotificationConfigs({ taskId }), { configs: [] })
      release()
    }
  )

  await t.test(`the command and a delegation call an agent of 0.3, by ${transport}`, async t => {
    const { url, release } = await agent03(t, transport)
    const sent = await runCommand(['send', url, 'count'])
    t.match(sent, { code: 0, stdout: /123/ })
    t.match(await runCommand(['send', url, 'hello']), { code: 0, stdout: /Hello to you\./ })
    const shown = await runCommand(['card', url])
    t.match(shown, { code: 0, stdout: /^Old 3\n/ })
    t.match(shown.stdout, /A2A 0\.3, JSONRPC/)

    const client = await connect(url)
    t.teardown(() => client.close())
    const { id } = taskIn(await client.sendMessage(say('wait', {}, { returnImmediately: true })))
    await until(async () => (await client.getTask({ id })).status.state === 'TASK_STATE_WORKING')
    const watched = runCommand(['watch', url, id], { printed: release, heard: release })
    release()
    t.match(await watched, { code: 0 })

    const other = remoteAgent(url)
    const work: WorkFunction = async work => {
      const { artifacts, message } = await delegate(work, other, work.message)
      return { artifact: artifacts.map(textOf).join() || textOf(message ?? { parts: [] }) }
    }
    const desk = start(t, { work })
    t.match(taskIn(await desk.runtime.sendMessage(say('count'))), {
      artifacts: [{ parts: [{ text: '1' }, { text: '2' }, { text: '3' }] }, { parts: [{ text: '1\n2\n3' }] }]
    })
    const asked = taskIn(await desk.runtime.sendMessage(say('ask')))
    t.match(asked.status, { state: 'TASK_STATE_INPUT_REQUIRED', message: { parts: [{ text: 'Which colour?' }] } })
    t.match(taskIn(await desk.runtime.sendMessage(say('blue', { taskId: asked.id }))), {
      status: { state: 'TASK_STATE_COMPLETED' }
    })
    t.match(taskIn(await desk.runtime.sendMessage(say('fail'))).status, {
      state: 'TASK_STATE_FAILED',
      message: { parts: [{ text: /Out of paint/ }] }
    })
  })
}

/** Serves an agent in 1.0 and 0.3 behind a card that lists only these interfaces. */
async function servedAs(t: Test, change: (card: AgentCard) => object): Promise<string> {
  const { runtime } = start(
    t,
    {
      work: async ({ message, ask }) => ({
        artifact: textOf(message) === 'ask' ? textOf(await ask(inputRequired('And then?'))) : textOf(message)
      }),
      extendedCard: { description: 'For those who are known.' }
    },
    { authenticate: () => ({ id: 'ann' }) }
  )
  const served = await serve(runtime, { port: 0, dialects: [dialect03(runtime)] })
  t.teardown(() => served.close())
  const card = (await (await fetch(`${served.url}.well-known/agent-card.json`)).json()) as AgentCard
  const server = createServer(
    (_, response) => void response.setHeader('connection', 'close').end(JSON.stringify(change(card)))
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

/** A card of both versions without its members of 1.0. */
function only03(card: AgentCard): object {
  const { supportedInterfaces: _, securityRequirements: __, ...others } = card
  return others
}

await t.test('a card of both versions selects 1.0, and 0.3 if 1.0 is not supported', async t => {
  const list = (change: (all: AgentCard['supportedInterfaces']) => AgentCard['supportedInterfaces']) =>
    servedAs(t, card => ({ ...card, supportedInterfaces: change(card.supportedInterfaces) }))
  const both = await connect(await list(all => all.toReversed()), { bindings: ['JSONRPC'] })
  t.teardown(() => both.close())
  t.match(await both.listTasks({}), { totalSize: 0 }, 'which 0.3 does not have')
  const older = await connect(
    await list(all =>
      all.filter(
        ({ protocolVersion, protocolBinding }) => protocolVersion === '0.3' || protocolBinding.startsWith('urn:')
      )
    ),
    { bindings: ['HTTP+JSON', 'JSONRPC'] }
  )
  t.teardown(() => older.close())
  t.equal(older.binding, 'HTTP+JSON')
  t.match(await refusal(older.listTasks({})), { code: 'UnsupportedOperation' })
  const socket = await list(all =>
    all.filter(
      ({ protocolBinding, protocolVersion }) => protocolVersion === '0.3' && protocolBinding.startsWith('urn:')
    )
  )
  t.match(await refusal(connect(socket)), {
    code: 'UnsupportedOperation',
    message: /offers no .* that this client speaks/
  })
})

await t.test('a stream of 0.3 resumes after a lost connection if the agent has the extension', async t => {
  for (const binding of ['JSONRPC', 'HTTP+JSON']) {
    const client = await connect(await servedAs(t, only03), { bindings: [binding] })
    t.teardown(() => client.close())
    const events = await collect(client.sendStreamingMessage(say('x')))
    t.strictSame(
      events.map(event =>
        'task' in event ? 1 : Object.values(event)[0].metadata['urn:taskchart:extension:reliability:1'].generation
      ),
      [1, 3, 4, 5]
    )
    const { id } = taskIn(events[0])
    t.strictSame((await collect(client.subscribeToTask({ id }, { afterGeneration: 3 }))).map(brief), [
      'artifact: x',
      'completed'
    ])
    t.match(await client.getExtendedAgentCard(), {
      description: 'For those who are known.',
      supportedInterfaces: [{ protocolVersion: '0.3', protocolBinding: 'JSONRPC' }, { protocolBinding: 'HTTP+JSON' }]
    })
    t.match(taskIn(await client.sendMessage(say('ask'))), { status: { state: 'TASK_STATE_INPUT_REQUIRED' } })
  }
})

await t.test('a verifying client trusts a card of 0.3 only if it is signed completely', async t => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const sign = cardSigner({ key: privateKey, kid: 'k' })
  const verifyCard = cardVerifier({ key: publicKey })
  let signed: object = {}
  const url = await servedAs(t, () => signed)
  const card = only03((await (await fetch(new URL(await servedAs(t, card => card)))).json()) as AgentCard)
  signed = await sign(card as AgentCard)
  t.equal((signed as AgentCard).signatures?.length, 1)
  const client = await connect(url, { verifyCard, bindings: ['JSONRPC'] })
  t.teardown(() => client.close())
  t.match(taskIn(await client.sendMessage(say('x'))), { artifacts: [{ parts: [{ text: 'x' }] }] })
  signed = { ...signed, url: 'http://127.0.0.1:1/' }
  t.match(await refusal(connect(url, { verifyCard })), {
    code: 'InvalidAgentResponse',
    message: /was changed after it was signed/
  })
})

/** A client of an agent that speaks 0.3 by a script. */
async function scripted(t: Test, binding: 'JSONRPC' | 'HTTP+JSON', more: ScriptedCard = {}) {
  const agent = await httpAgent(t, { binding, version: '0.3', ...more })
  const client = await connect(agent.url, { giveUpAfterMs: 0 })
  t.teardown(() => client.close())
  return { ...agent, client }
}

const TASK = { id: 't', contextId: 'c', status: { state: 'completed' } }

await t.test('an invalid answer of an agent of 0.3 is named, and its errors are unchanged', async t => {
  const { client, script, asked } = await scripted(t, 'JSONRPC')
  const rows: readonly (readonly [Answer, object])[] = [
    [result('x'), { code: 'InvalidAgentResponse' }],
    [result({}), { code: 'InvalidAgentResponse', message: /result\.task\.id/ }],
    [
      result({ kind: 'task', id: 't', contextId: 'c', status: 5 }),
      { code: 'InvalidAgentResponse', message: /result\.task\.status/ }
    ],
    [failure({ code: -32602, message: 'No such thing.' }), { code: 'InvalidParams', message: 'No such thing.' }],
    [failure({ code: -31999, message: 'Strange.' }), { code: 'InternalError', message: 'Strange.' }],
    [body('<p>', { 'content-type': 'text/html' }, 404), { code: 'UnsupportedOperation', message: /was not found/ }]
  ]
  for (const [answer, wanted] of rows) {
    script(answer)
    t.match(await rejection(client.sendMessage(say('x'))), wanted)
  }
  for (const [odd, wanted] of [
    [{ ...TASK, status: { state: 'unknown' } }, { task: { status: { state: 'TASK_STATE_WORKING' } } }],
    [{ ...TASK, status: { state: {} } }, { task: { status: { state: 'TASK_STATE_WORKING' } } }],
    [{ ...TASK, artifacts: 5, history: [5] }, { task: { artifacts: undefined, history: undefined } }],
    [{ kind: 'message', messageId: 'm', role: 'boss', parts: [5] }, { message: { role: 'ROLE_AGENT', parts: [] } }]
  ] as const) {
    script(result(odd))
    t.match(await client.sendMessage(say('x')), wanted, 'what is odd is left out')
  }
  t.match(asked[0], {
    method: 'message/send',
    params: {
      message: { kind: 'message', role: 'user', parts: [{ kind: 'text', text: 'x' }] },
      configuration: { blocking: true }
    },
    headers: { 'a2a-version': '0.3' }
  })
  script(stream([{ kind: 'task', ...TASK }]))
  t.match(await collect(client.sendStreamingMessage(say('x'))), [
    { task: { status: { state: 'TASK_STATE_COMPLETED' } } }
  ])
  t.notOk('configuration' in (asked.at(-1)?.params ?? {}))
})

await t.test('REST of 0.3 maps errors by code, message and status, also in streams', async t => {
  const { client, script, asked } = await scripted(t, 'HTTP+JSON')
  const json = { 'content-type': 'application/json' }
  const rows: readonly (readonly [Answer, object])[] = [
    [body('{"code":-32001,"message":"Gone."}', json, 404), { code: 'TaskNotFound', message: 'Gone.' }],
    [
      body('{"error":{"code":404,"status":"NOT_FOUND","message":"Gone.","details":[]}}', json, 404),
      { code: 'TaskNotFound', message: 'Gone.' }
    ],
    [body('{"message":"Not for you."}', json, 403), { code: 'Forbidden', message: 'Not for you.' }],
    [body('{"message":"Broken."}', json, 500), { code: 'InternalError', message: 'Broken.' }],
    [body('{"message":"Later."}', json, 503), { code: 'Overloaded' }],
    [body('no JSON', json, 401), { code: 'Unauthenticated' }],
    [body('<p>', { 'content-type': 'text/html' }, 404), { code: 'UnsupportedOperation' }],
    [body('no JSON', json), { code: 'InvalidAgentResponse', message: /not JSON/ }],
    [body('5', json), { code: 'InvalidAgentResponse' }],
    [body('{"task":{"id":"t","contextId":"c","status":5}}', json), { code: 'InvalidAgentResponse', message: /status/ }]
  ]
  for (const [answer, wanted] of rows) {
    script(answer)
    t.match(await rejection(client.sendMessage(say('x'))), wanted)
  }
  script(body(JSON.stringify({ id: 't', contextId: 'c', status: { state: 'TASK_STATE_CANCELLED' } }), json))
  t.match(await client.getTask({ id: 't/1', historyLength: 2 }), { status: { state: 'TASK_STATE_CANCELED' } })
  t.equal(asked.at(-1)?.path, '/agent/v1/tasks/t%2F1?historyLength=2')
  script(body(JSON.stringify({ id: 't', contextId: 'c', status: { state: {} }, artifacts: [7], history: [7] }), json))
  t.match(
    await client.getTask({ id: 't' }),
    { status: { state: 'TASK_STATE_WORKING' }, artifacts: undefined, history: undefined },
    'what is odd is left out'
  )
  script(body('5', json))
  t.match(await rejection(client.getTask({ id: 't' })), { code: 'InvalidAgentResponse' })
  script(body(JSON.stringify({ msg: { messageId: 'm', role: 'ROLE_AGENT', content: [{ text: 'hi' }] } }), json))
  t.match(await client.sendMessage(say('x')), { message: { parts: [{ text: 'hi' }] } })
  t.match(
    await collect(client.sendStreamingMessage(say('x'))),
    [{ message: { parts: [{ text: 'hi' }] } }],
    'a stream of one answer'
  )
  script((_, response) => {
    writeEvents(
      [{ task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } }, { scent: 'lavender' }],
      response
    )
    response.end('event: error\ndata: {"code":-32004,"message":"No more."}\n\n')
  })
  t.match(await rejection(collect(client.sendStreamingMessage(say('x')))), {
    code: 'UnsupportedOperation',
    message: 'No more.'
  })
})

await t.test('a card of 0.3 is converted with everything that 1.0 supports, from each form', async t => {
  const scopes = { read: 'Reads.' }
  const card = {
    name: 'Old',
    description: 'D',
    version: '1',
    protocolVersion: '0.3.1',
    url: 'https://a.example/',
    preferredTransport: 'GRPC',
    additionalInterfaces: [
      { url: 'https://a.example/', transport: 'GRPC' },
      { url: 'https://a.example/rpc', transport: 'JSONRPC' }
    ],
    capabilities: { streaming: true, stateTransitionHistory: true },
    supportsAuthenticatedExtendedCard: true,
    defaultInputModes: [],
    defaultOutputModes: [],
    skills: [
      { id: 's', name: 'S', description: '', tags: [], security: [{ key: [] }] },
      { id: 'r', name: 'R', description: '', tags: [] }
    ],
    security: [{ oauth: ['read'] }],
    securitySchemes: {
      key: { type: 'apiKey', in: 'header', name: 'x' },
      http: { type: 'http', scheme: 'Bearer' },
      oidc: { type: 'openIdConnect', openIdConnectUrl: 'https://id/' },
      tls: { type: 'mutualTLS' },
      oauth: {
        type: 'oauth2',
        flows: { clientCredentials: { tokenUrl: 'https://id/', scopes }, password: { tokenUrl: 'https://id/', scopes } }
      },
      proto: { apiKeySecurityScheme: { location: 'query', name: 'y' } }
    }
  }
  const read = async (card: unknown) => fetchCard(await servedAs(t, () => card as object))
  const found = await read(card)
  t.match(found, {
    supportedInterfaces: [
      { url: 'https://a.example/', protocolBinding: 'GRPC', protocolVersion: '0.3' },
      { url: 'https://a.example/rpc', protocolBinding: 'JSONRPC', protocolVersion: '0.3' }
    ],
    capabilities: { streaming: true, extendedAgentCard: true },
    skills: [
      { id: 's', securityRequirements: [{ schemes: { key: {} } }] },
      { id: 'r', securityRequirements: undefined }
    ],
    securityRequirements: [{ schemes: { oauth: { list: ['read'] } } }],
    securitySchemes: {
      key: { apiKeySecurityScheme: { location: 'header', name: 'x' } },
      http: { httpAuthSecurityScheme: { scheme: 'Bearer' } },
      oidc: { openIdConnectSecurityScheme: { openIdConnectUrl: 'https://id/' } },
      tls: { mtlsSecurityScheme: {} },
      oauth: { oauth2SecurityScheme: { flows: { clientCredentials: { tokenUrl: 'https://id/', scopes } } } },
      proto: { apiKeySecurityScheme: { location: 'query', name: 'y' } }
    }
  })
  t.equal(found.supportedInterfaces.length, 2, 'each once')
  const { protocolVersion: _, preferredTransport: __, additionalInterfaces: ___, ...bare } = card
  t.strictSame((await read({ ...bare, security: [{ schemes: { key: { list: ['a'] } } }] })).supportedInterfaces, [
    { url: 'https://a.example/', protocolBinding: 'JSONRPC', protocolVersion: '0.3' }
  ])
  t.strictSame((await read({ ...bare, security: [{ schemes: { key: { list: ['a'] } } }] })).securityRequirements, [
    { schemes: { key: { list: ['a'] } } }
  ])
  for (const [change, wanted] of [
    [{ capabilities: 5 }, { capabilities: {} }],
    [{ skills: 5 }, { skills: [] }],
    [{ skills: [5] }, { skills: [] }],
    [{ securitySchemes: { x: 5 } }, { securitySchemes: undefined }],
    [{ securitySchemes: { x: { type: 'oauth2', flows: 5 } } }, { securitySchemes: undefined }]
  ] as const) {
    t.match(await read({ ...card, ...change }), wanted, 'what is odd is left out')
  }
  t.match(
    (await rejection(connect(await servedAs(t, () => ({ ...card, protocolVersion: 'new' }))))).message,
    'speaks only A2A new'
  )
  t.match(await rejection(read({ ...card, url: undefined })), { message: /card\.supportedInterfaces is required/ })
  t.match(await rejection(read({ ...card, additionalInterfaces: Array.from({ length: 65 }, () => ({})) })), {
    code: 'InvalidAgentResponse',
    message: /65 interfaces/
  })
  t.equal(asCurrentCard(5), 5)
})

await t.test('calls of 1.0 are converted to 0.3', async t => {
  const authentication = { scheme: 'Bearer', credentials: 'c' }
  const parts = [
    { text: 'x', metadata: { a: 1 } },
    { raw: 'AA==', filename: 'n', mediaType: 'text/plain' },
    { url: 'https://a/' },
    { data: [1], metadata: { b: 2 } },
    { data: { c: 3 } }
  ]
  t.strictSame(
    toCall03('SendMessage', {
      message: { messageId: 'm', role: 'ROLE_AGENT', parts, contextId: 'c' },
      configuration: {
        returnImmediately: true,
        historyLength: 2,
        taskPushNotificationConfig: { id: 'p', url: 'https://b/', token: 't', authentication }
      },
      metadata: { d: 4 }
    }),
    {
      method: 'message/send',
      params: {
        message: {
          kind: 'message',
          role: 'agent',
          messageId: 'm',
          contextId: 'c',
          parts: [
            { kind: 'text', text: 'x', metadata: { a: 1 } },
            { kind: 'file', file: { bytes: 'AA==', name: 'n', mimeType: 'text/plain' } },
            { kind: 'file', file: { uri: 'https://a/' } },
            { kind: 'data', data: { value: [1] }, metadata: { b: 2, data_part_compat: true } },
            { kind: 'data', data: { c: 3 } }
          ]
        },
        configuration: {
          historyLength: 2,
          blocking: false,
          pushNotificationConfig: {
            id: 'p',
            url: 'https://b/',
            token: 't',
            authentication: { schemes: ['Bearer'], credentials: 'c' }
          }
        },
        metadata: { d: 4 }
      }
    }
  )
  t.match(
    toCall03('SendMessage', {
      message: { messageId: 'm', role: 'ROLE_USER', parts: [] },
      configuration: { taskPushNotificationConfig: { url: 'https://b/' } }
    }),
    { params: { configuration: { blocking: true, pushNotificationConfig: { url: 'https://b/' } } } }
  )
  t.strictSame(toCall03('GetTask', { id: 't', historyLength: 1, tenant: undefined }), {
    method: 'tasks/get',
    params: { id: 't', historyLength: 1 }
  })
  t.equal(toCall03('ListTasks', {}), undefined)
  const message = { kind: 'message', role: 'user', messageId: 'm', parts: [{ kind: 'text', text: 'x' }] }
  t.strictSame(
    toProtoSend({ message, configuration: { blocking: true, pushNotificationConfig: { url: 'https://b/' } } }),
    {
      message: { role: 'ROLE_USER', messageId: 'm', content: [{ text: 'x' }] },
      configuration: { blocking: true, pushNotification: { url: 'https://b/' } }
    }
  )
})

await t.test('answers of 0.3 are also read without kinds, and with times without a zone', async t => {
  const parts = [
    { text: 'x', metadata: { a: 1 } },
    { file: { bytes: 'AA==', name: 'n' }, metadata: { a: 1 } },
    { kind: 'data', data: { value: [1] }, metadata: { data_part_compat: true } },
    { data: { value: 1 }, metadata: { data_part_compat: true, b: 2 } },
    { data: { value: 1 } },
    { data: 1, metadata: { c: 3 } }
  ]
  t.strictSame(fromResult03('SendMessage', { messageId: 'm', role: 'agent', parts }), {
    message: {
      messageId: 'm',
      role: 'ROLE_AGENT',
      parts: [
        { text: 'x', metadata: { a: 1 } },
        { raw: 'AA==', filename: 'n', metadata: { a: 1 } },
        { data: [1] },
        { data: 1, metadata: { b: 2 } },
        { data: { value: 1 } },
        { data: 1, metadata: { c: 3 } }
      ]
    }
  })
  t.match(
    fromResult03('GetTask', {
      ...TASK,
      status: { state: 'working', timestamp: '2025-06-01T12:00:00.5' },
      history: null
    }),
    { status: { timestamp: '2025-06-01T12:00:00.5Z' } }
  )
  t.match(fromResult03('SendStreamingMessage', { kind: 'artifact-update', artifact: 5 }), {
    artifactUpdate: { artifact: 5 }
  })
  t.match(fromResult03('GetTask', { ...TASK, status: { state: 'working', message: 5 } }), { status: { message: 5 } })
})

await t.test('a webhook of 0.3 is read in either form, and one that is none stays as it is', t => {
  const list = (result: unknown) => fromResult03('ListTaskPushNotificationConfigs', result)
  t.strictSame(list(5), { configs: 5 })
  t.strictSame(list({}), { configs: undefined })
  t.strictSame(list([5, { pushNotificationConfig: 5 }]), { configs: [5, { pushNotificationConfig: 5 }] })
  t.strictSame(
    list({ configs: [{ name: 'tasks/t/pushNotificationConfigs/p', pushNotificationConfig: { id: 'p', url: 'u' } }] }),
    { configs: [{ id: 'p', url: 'u', taskId: 't' }] }
  )
  t.strictSame(
    fromResult03('GetTaskPushNotificationConfig', {
      name: 1,
      pushNotificationConfig: { url: 'u', authentication: {} }
    }),
    { url: 'u' }
  )
  t.end()
})
