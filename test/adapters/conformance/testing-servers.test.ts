import t, { type Test } from 'tap'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import { callerFor } from '../../../adapters/conformance/server-tests.ts'
import { FrameSocket } from '../../../adapters/conformance/callers/websocket-caller.ts'
import { grpcCaller } from '../../../adapters/conformance/callers/grpc-caller.ts'
import { REQUIREMENTS } from '../../../adapters/conformance/requirements/requirements.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import { WEBSOCKET_SUBPROTOCOL } from '../../../machines/protocol/uris.ts'
import { obedientAgent } from '../../conformance/agent.ts'
import { byName } from '../../conformance/column.ts'
import { faultyServer, type Fault, type Json, eachEvent } from '../../fixtures/servers/faulty-server.ts'
import { officialAgent } from '../../fixtures/servers/official-agent.ts'
import { start } from '../../fixtures/runtime/runtime-helpers.ts'
import { sampleOf } from '../../fixtures/sample.ts'
import { grpcAgent } from '../../fixtures/peers/scripted-grpc.ts'
import { ids, tested } from '../../fixtures/servers/tested-server.ts'

/** As much as is needed until one task was opened, has ended, and was listed with others. */
const ONE_TASK = { answerMs: 2000, tasks: 4 }

/** As much as is needed for what takes no task. */
const NO_TASK = { answerMs: 2000, tasks: 1 }

const TEXTS = ['count 3', 'ask', 'wait', 'hello', 'authorize']

await t.test('a correct server meets every testable requirement', async t => {
  const result = await tested(await faultyServer(t, {}), { texts: TEXTS })
  t.same(ids(result, 'failed'), [])
  t.same(ids(result, 'warning'), [120], 'the card of the fixture may not be cached')
  const passed = ids(result, 'passed')
  for (const id of [
    26, 27, 33, 34, 35, 36, 50, 51, 54, 55, 56, 57, 58, 62, 65, 69, 70, 73, 76, 77, 78, 79, 80, 140, 142
  ])
    t.ok(passed.includes(id), `${id}`)
  const [column] = result.columns
  t.equal(column?.verdicts.length, REQUIREMENTS.length)
  for (const { outcome, reason } of column?.verdicts ?? [])
    t.equal(outcome === 'skipped', reason !== undefined && reason !== '')
})

/** Keeps webhooks, as a server does that has push notifications. */
function withWebhooks(change: (method: string, answer: Json) => Json = (_, answer) => answer): Fault {
  const configs = new Map<string, Json>()
  const results: Record<string, (params: Json) => Json> = {
    CreateTaskPushNotificationConfig: params => {
      const config = { ...params, id: `c-${configs.size}` }
      configs.set(config.id, config)
      return config
    },
    GetTaskPushNotificationConfig: ({ id }) => configs.get(id),
    ListTaskPushNotificationConfigs: () => ({ configs: [...configs.values()] }),
    DeleteTaskPushNotificationConfig: ({ id }) => {
      configs.delete(id)
      return {}
    }
  }
  const tasks = new Set<string>()
  return {
    card: card => ({ ...card, capabilities: { streaming: true, pushNotifications: true } }),
    answer: ({ method, params, id }, answer) => {
      if (method === 'GetTask' && answer.result) tasks.add(params.id)
      const given =
        tasks.has(params.taskId) || method.includes('Delete') || method.includes('List')
          ? results[method]?.(params)
          : undefined
      if (!(method in results)) return answer
      return change(
        method,
        given === undefined
          ? { jsonrpc: '2.0', id, error: { code: -32001, message: 'none' } }
          : { jsonrpc: '2.0', id, result: given }
      )
    }
  }
}

await t.test('webhooks are stored, read, listed and deleted', async t => {
  const verdicts = async (fault: Fault, text = 'ask') =>
    ids(await tested(await faultyServer(t, fault), { texts: [text], bounds: ONE_TASK }), 'failed').filter(
      id => id >= 81 && id <= 86
    )
  t.same(await verdicts(withWebhooks()), [])
  t.same(await verdicts(withWebhooks(), 'x'), [], 'also if all tasks have ended')
  const broken = (wrong: string, result: Json) =>
    verdicts(
      withWebhooks((method, answer) => (method.startsWith(wrong) ? { ...answer, error: undefined, result } : answer))
    )
  const refused = (wrong: string, text?: string) =>
    verdicts(
      withWebhooks((method, answer) =>
        method.startsWith(wrong) ? { ...answer, result: undefined, error: { code: -32603, message: 'no' } } : answer
      ),
      text
    )
  t.ok((await broken('Create', {})).includes(82))
  t.ok((await broken('Get', 5)).includes(84))
  t.ok((await broken('List', {})).includes(85))
  t.ok((await refused('Get')).includes(83))
  t.same(await refused('Get', 'x'), [], 'a server may forget webhooks when the task ends')
  t.ok((await refused('Delete')).includes(86))
  t.same(await refused('Create'), [])
})

await t.test('the extended card needs credentials, or is not configured', async t => {
  const fault = (given: Json): Fault => ({
    card: card => ({ ...card, capabilities: { streaming: true, extendedAgentCard: true } }),
    answer: ({ method, id }, answer) => (method === 'GetExtendedAgentCard' ? { jsonrpc: '2.0', id, ...given } : answer)
  })
  const verdict = async (given: Json, apiKey?: string) => {
    const { columns } = await tested(await faultyServer(t, fault(given)), {
      texts: ['x'],
      bounds: NO_TASK,
      ...(apiKey && { credentials: { apiKey } })
    })
    return [122, 123].map(id => columns[0]?.verdicts[id - 1]?.outcome)
  }
  t.same(await verdict({ error: { code: -31401, message: 'no' } }), ['skipped', 'passed'])
  t.same(await verdict({ error: { code: -31401, message: 'no' } }, 'key'), ['failed', 'passed'])
  t.same(await verdict({ error: { code: -32007, message: 'none' } }, 'key'), ['passed', 'passed'])
  t.same(await verdict({ error: { code: -31403, message: 'no' } }, 'key'), ['passed', 'passed'])
  t.same(await verdict({ result: {} }, 'key'), ['passed', 'failed'])
})

await t.test('a REST error is classified by its status without details, and its form is checked', async t => {
  const rest = (change: (answer: Json) => Json): Fault => ({
    rest: true,
    answer: ({ method }, answer) => (method.includes('/rest/') ? change(answer) : answer)
  })
  const findings = async (fault: Fault) =>
    ids(
      await tested(await faultyServer(t, fault), { texts: ['x'], bindings: ['HTTP+JSON'], bounds: ONE_TASK }),
      'failed'
    )
  t.same(await findings(rest(answer => answer)), [])
  t.same(
    await findings(rest(answer => (answer?.error ? { error: { ...answer.error, details: undefined } } : answer))),
    [97]
  )
  t.ok((await findings(rest(answer => (answer?.error ? { error: 'no' } : answer)))).includes(98))
  t.ok((await findings(rest(answer => (answer?.error ? '<html>no</html>' : answer)))).includes(97))
  t.ok((await findings({ ...rest(answer => answer), status: () => 200 })).includes(96))
  t.ok((await findings({ rest: true, status: ({ method }) => (method.includes(':cancel') ? 405 : 400) })).includes(19))
  t.ok(
    (await findings({ ...rest(answer => (answer?.error ? '<html>no</html>' : answer)), status: () => 400 })).includes(
      65
    ),
    'a status of another error'
  )
  t.ok((await findings(rest(answer => (answer?.tasks ? '' : answer)))).includes(5), 'no body is null')
  const noStreams = {
    code: 400,
    status: 'FAILED_PRECONDITION',
    message: 'no streams',
    details: [
      {
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: 'UNSUPPORTED_OPERATION',
        domain: 'a2a-protocol.org'
      }
    ]
  }
  t.ok(
    (
      await findings({
        rest: true,
        events: async function* () {
          yield { error: noStreams }
        }
      })
    ).includes(49),
    'an error in a stream has a code of its own'
  )
})

await t.test("every request names the card's tenant", async t => {
  const tenants = new Set<unknown>()
  const url = await faultyServer(t, {
    card: card => ({
      ...card,
      supportedInterfaces: card.supportedInterfaces.map((one: Json) => ({ ...one, tenant: 'acme' }))
    }),
    answer: ({ params, method }, answer) => {
      if (!method.includes('/') && params.taskId !== 0 && Object.keys(params).length > 0 && params.id !== 'none')
        tenants.add(params.tenant)
      return answer
    }
  })
  t.same(ids(await tested(url, { texts: ['x'], bounds: ONE_TASK }), 'failed'), [])
  t.same([...tenants], ['acme'])
})

await t.test('an agent without streams is tested without them', async t => {
  const url = await faultyServer(t, {
    card: card => ({ ...card, capabilities: {}, skills: [{ examples: ['ask', 'x'] }], defaultInputModes: ['*/*'] })
  })
  const result = await tested(url)
  t.match(
    result.columns[0]?.verdicts.find(({ requirement }) => requirement.id === 57),
    { outcome: 'skipped', reason: 'the card says streaming is not supported' }
  )
  t.match(
    result.columns[0]?.verdicts.find(({ requirement }) => requirement.id === 28),
    { outcome: 'skipped', reason: 'the card accepts every media type' }
  )
  t.ok(ids(result, 'passed').includes(33))
  t.ok(ids(result, 'failed').includes(49), 'the fixture still streams')
})

await t.test('all bindings of a server are tested, and compared', async t => {
  const { runtime } = start(t, { ...obedientAgent().definition })
  const served = await serve(runtime, { port: 0 })
  t.teardown(() => served.close())
  const { columns, notes } = await tested(new URL(served.url).origin, { texts: TEXTS })
  t.same(
    columns.map(({ binding }) => binding),
    ['WEBSOCKET', 'JSONRPC', 'HTTP+JSON']
  )
  t.same(
    columns.flatMap(({ binding, verdicts }) =>
      verdicts.flatMap(({ requirement, findings }) => findings.map(finding => [binding, requirement.id, finding]))
    ),
    []
  )
  t.same(notes, [])
  const passed = (binding: string) =>
    columns
      .find(column => column.binding === binding)
      ?.verdicts.filter(({ outcome }) => outcome === 'passed')
      .map(({ requirement }) => requirement.id) ?? []
  for (const id of [14, 17, 128, 129, 130, 144, 147, 150]) t.ok(passed('WEBSOCKET').includes(id), `${id}`)
  for (const id of [19, 20, 21, 22, 98, 129, 130]) t.ok(passed('HTTP+JSON').includes(id), `${id}`)
  for (const task of (await runtime.listTasks({ pageSize: 100 })).tasks)
    t.notMatch(task.status.state, /WORKING|REQUIRED|SUBMITTED/, `nothing is left running: ${JSON.stringify(task)}`)
})

await t.test('different answers of two bindings are found, and garbage is compared as it is', async t => {
  const both = async (answer: NonNullable<Fault['answer']>) =>
    tested(await faultyServer(t, { rest: true, card: card => ({ ...card, capabilities: {} }), answer }), {
      texts: ['x'],
      bounds: ONE_TASK
    })
  const isRead = (method: string) => method === 'GetTask' || /^GET \/rest\/tasks\/[^/]+$/.test(method)
  const garbage = await both(({ method, id }, answer) =>
    isRead(method) ? (answer.jsonrpc ? { jsonrpc: '2.0', id, result: { a: 1 } } : { a: 2 }) : answer
  )
  t.ok(ids(garbage, 'failed').includes(129))
  const nothing = await both(({ method, id }, answer) =>
    method === 'SendMessage'
      ? { jsonrpc: '2.0', id, error: { code: -32603, message: 'no' } }
      : method.includes('message:')
        ? { error: { code: 500, status: 'INTERNAL', message: 'no' } }
        : answer
  )
  t.match(
    nothing.columns[0]?.verdicts.find(({ requirement }) => requirement.id === 130),
    { outcome: 'passed' }
  )
})

await t.test('a ws: address tests only the WebSocket, and an option selects bindings', async t => {
  const { runtime } = start(t, { ...obedientAgent().definition })
  const served = await serve(runtime, { port: 0 })
  t.teardown(() => served.close())
  const url = new URL(served.url).origin
  t.same(
    (await tested(url.replace('http', 'ws'))).columns.map(({ binding }) => binding),
    ['WEBSOCKET']
  )
  t.same(
    (await tested(url, { bindings: ['HTTP+JSON'] })).columns.map(({ binding }) => binding),
    ['HTTP+JSON']
  )
  await t.rejects(
    tested(url, { bindings: ['GRPC'] }),
    /offers no GRPC, only urn:taskchart:binding:websocket:1, JSONRPC, HTTP\+JSON/
  )
  await t.rejects(tested(url, { bindings: ['SMOKE'] }), TypeError)
})

await t.test('a server with the official SDK is tested over three bindings, with the documented findings', async t => {
  const agent = await officialAgent(t, ['JSONRPC', 'HTTP+JSON', 'GRPC'])
  const clock = setInterval(() => agent.goOn(), 1)
  t.teardown(() => clearInterval(clock))
  const { columns, notes } = await tested(agent.url, { texts: ['hello', 'hi', 'ask', 'wait'] })
  t.same(notes, [])
  const found = Object.fromEntries(
    columns.map(({ binding, verdicts }) => [
      binding,
      verdicts.filter(({ outcome }) => outcome === 'failed').map(({ requirement }) => requirement.id)
    ])
  )
  t.same(found, {
    JSONRPC: [7, 17, 28, 73, 75, 107, 123],
    'HTTP+JSON': [7, 28, 73, 107, 123],
    GRPC: [7, 28, 73, 75, 107, 123]
  })
})

await t.test('an untestable server is an error with the reason', async t => {
  await t.rejects(tested('http://127.0.0.1:9'), /Nobody answers at/)
  await t.rejects(tested('nowhere'), TypeError)
  const older = await faultyServer(t, {
    card: card => ({
      ...card,
      supportedInterfaces: [{ url: 'http://localhost/', protocolBinding: 'JSONRPC', protocolVersion: '0.3' }]
    })
  })
  await t.rejects(tested(older), /speaks only A2A 0\.3/)
  await t.rejects(tested(await faultyServer(t, { card: () => [] })), /lists no interface/)
  await t.rejects(tested(await faultyServer(t, { card: () => '<html>' })), /is not JSON/)
  await t.rejects(
    tested(
      await faultyServer(t, {
        card: card => ({
          ...card,
          supportedInterfaces: [{ url: 'http://localhost/', protocolBinding: 'urn:pigeon', protocolVersion: '1.0' }]
        })
      })
    ),
    /offers no binding that could be tested, only urn:pigeon/
  )
  await t.rejects(tested(`${older}/nothing.json`), /no agent card at .*: HTTP 4/)
  await t.rejects(
    tested(
      await faultyServer(t, {
        answer: ({ id }) => ({ jsonrpc: '2.0', id, error: { code: -31401, message: 'Who are you?' } })
      })
    ),
    { code: 'Unauthenticated' }
  )
})

await t.test('optional behaviour is no finding', async t => {
  const verdicts = async (fault: Fault, ...texts: string[]) =>
    (await tested(await faultyServer(t, fault), { texts, bounds: ONE_TASK })).columns[0]?.verdicts ?? []
  const sizes = await verdicts(
    {
      answer: ({ method, params }, answer) =>
        method === 'ListTasks' && answer.result && params.pageSize === undefined
          ? { ...answer, result: { ...answer.result, pageSize: answer.result.tasks.length } }
          : answer
    },
    'x'
  )
  t.equal(sizes[73]?.outcome, 'passed', 'a page with the number of its tasks')
  const timeless = await verdicts(
    {
      answer: (_, answer) =>
        JSON.parse(JSON.stringify(answer, (name, value: unknown) => (name === 'timestamp' ? undefined : value))),
      events: async function* (_, events) {
        for await (const event of events)
          yield JSON.parse(JSON.stringify(event, (name, value: unknown) => (name === 'timestamp' ? undefined : value)))
      }
    },
    'x'
  )
  t.match(timeless[2], { outcome: 'skipped', reason: 'no answer had a timestamp' })
  t.equal(timeless[72]?.outcome, 'passed')
  const stubborn = await verdicts(
    {
      answer: ({ method, params, id }, answer) =>
        method === 'SendMessage' && params.message?.taskId && answer.result
          ? { jsonrpc: '2.0', id, error: { code: -32602, message: 'another answer, please' } }
          : answer
    },
    'ask'
  )
  t.match(stubborn[32], { outcome: 'skipped' }, 'an answer that is refused')
  const over = new Set<unknown>()
  const quick = await verdicts(
    {
      events: async function* ({ method, params, id }, events) {
        if (method === 'SubscribeToTask') {
          over.add(params.id)
          yield { jsonrpc: '2.0', id, error: { code: -32004, message: 'over' } }
        } else yield* events
      },
      answer: ({ method, params }, answer) =>
        method === 'GetTask' && over.has(params.id) && answer.result
          ? { ...answer, result: { ...answer.result, status: { state: 'TASK_STATE_COMPLETED' } } }
          : answer
    },
    'wait'
  )
  t.match(quick[56], { outcome: 'skipped' }, 'a task that ends before it is subscribed to')
})

await t.test('a request without credentials is refused', async t => {
  const fault: Fault = {
    card: card => ({ ...card, securityRequirements: [{ schemes: { key: { list: [] } } }] }),
    answer: ({ method, params, id, version }, answer) =>
      method === 'ListTasks' && Object.keys(params).length === 0 && version === '1.0'
        ? { jsonrpc: '2.0', id, error: { code: -31401, message: 'Who are you?' } }
        : answer
  }
  t.equal(
    (await tested(await faultyServer(t, fault), { texts: ['x'], bounds: NO_TASK })).columns[0]?.verdicts[99]?.outcome,
    'passed'
  )
})

await t.test('the extended card is not requested anonymously on an authenticated connection', async t => {
  const { runtime } = start(
    t,
    { ...obedientAgent().definition, extendedCard: { description: 'For those who are known.' } },
    { authenticate: byName }
  )
  const served = await serve(runtime, { port: 0 })
  t.teardown(() => served.close())
  const { columns } = await tested(served.url, {
    texts: ['x'],
    bindings: ['WEBSOCKET'],
    credentials: { apiKey: 'ann' },
    bounds: ONE_TASK
  })
  t.same(
    [122, 123].map(id => columns[0]?.verdicts[id - 1]?.outcome),
    ['passed', 'skipped']
  )
})

await t.test('untested interfaces are reported', async t => {
  const more = (url: string) => [
    { url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
    { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    { url: 'http://localhost:9/', protocolBinding: 'urn:pigeon', protocolVersion: '1.0' },
    { url: 'grpc://example.com', protocolBinding: 'GRPC', protocolVersion: '1.0' }
  ]
  const url = await faultyServer(t, {
    card: card => ({
      ...card,
      supportedInterfaces: [...card.supportedInterfaces, ...more(card.supportedInterfaces[0].url)]
    })
  })
  const result = await tested(url, { texts: ['x'], credentials: { apiKey: 'key' } })
  t.match(result.notes, [
    /JSONRPC 0\.3 at .* only A2A 1\.0 is/,
    /JSONRPC 1\.0 at .* the first interface of its binding is/,
    /urn:pigeon 1\.0 .* does not speak it/
  ])
  const grpc = result.columns.find(({ binding }) => binding === 'GRPC')
  t.equal(grpc?.verdicts.length, REQUIREMENTS.length)
  for (const { outcome, reason } of grpc?.verdicts ?? [])
    t.match({ outcome, reason }, { outcome: 'skipped', reason: /names an agent of another origin/ })
  const noVersion = result.columns[0]?.verdicts.find(({ requirement }) => requirement.id === 105)
  t.match(noVersion, { outcome: 'skipped', reason: /offers A2A 0\.3 at the same address/ })
})

await t.test('a test ends at its limits, and says so', async t => {
  const url = await faultyServer(t, {})
  for (const [bounds, reason] of [
    [{ requests: 20 }, '20 requests'],
    [{ tasks: 2 }, '2 tasks'],
    [{ totalMs: -1 }, '-0.001 seconds']
  ] as const) {
    t.match((await tested(url, { bounds: { answerMs: 2000, ...bounds } })).notes, [
      new RegExp(`ended at a bound: ${reason}`)
    ])
  }
  const twice = await tested(await faultyServer(t, { rest: true }), { texts: ['x'], bounds: { requests: 10 } })
  t.match(
    twice.notes,
    [/^JSONRPC: ended at a bound: 10 requests$/, /^HTTP\+JSON: ended at a bound: 10 requests$/],
    'the findings so far are returned'
  )
  let answers = 0
  const mute = await faultyServer(t, { answer: (_, answer) => ((answers += 1) === 1 ? answer : 'hang') })
  t.match((await tested(mute)).notes, [/ended at a bound: 5 requests in a row without an answer/])
})

await t.test('an agent that refuses every message is reported', async t => {
  const url = await faultyServer(t, {
    card: card => ({ ...card, capabilities: { extensions: [{ uri: 'urn:x' }] } }),
    answer: ({ method, id, params }, answer) =>
      method === 'SendMessage' && !params.message.taskId
        ? { jsonrpc: '2.0', id, error: { code: -32603, message: 'no model' } }
        : answer
  })
  const result = await tested(url)
  t.match(result.notes, ['JSONRPC: a message was refused: -32603 InternalError: no model'])
  t.match(
    result.columns[0]?.verdicts.find(({ requirement }) => requirement.id === 51),
    { outcome: 'skipped', reason: 'no task ended' }
  )
  t.match(
    result.columns[0]?.verdicts.find(({ requirement }) => requirement.id === 112),
    { outcome: 'skipped' }
  )
})

await t.test('a stopped test rejects, and sends nothing more', async t => {
  const stop = new AbortController()
  const url = await faultyServer(t, {})
  await t.rejects(tested(url, { signal: stop.signal, onMove: () => stop.abort() }), { name: 'AbortError' })
})

/** A task that is broken inside. */
const BROKEN = {
  id: 'x',
  contextId: 'c',
  status: { state: 'TASK_STATE_COMPLETED' },
  artifacts: [null, { parts: [null] }],
  history: [null, 5]
}

/** What an operation may be answered with by a server that has gone wrong. */
const GARBAGE: readonly Json[] = [
  null,
  5,
  [],
  {},
  { task: 5 },
  { task: { id: 'x' } },
  { message: 5 },
  { tasks: 5 },
  { task: { id: 'x', status: { state: 'LOST' } } },
  { statusUpdate: 5, artifactUpdate: { artifact: { artifactId: 'a' } } },
  { task: null },
  { message: null },
  BROKEN,
  { task: BROKEN }
]

// What coverage takes, and one of the others.
for (const garbage of [null, ...sampleOf(t, GARBAGE.slice(1), 1)]) {
  await t.test(
    `a server that answers ${JSON.stringify(garbage)} gives findings, and does not stop the test`,
    async t => {
      for (const methods of [
        ['SendMessage', 'ListTasks'],
        ['GetTask', 'CancelTask']
      ]) {
        const url = await faultyServer(t, {
          answer: ({ method, id }, answer) =>
            methods.includes(method) ? { jsonrpc: '2.0', id, result: garbage } : answer
        })
        t.ok(
          ids(await tested(url, { texts: ['ask'], bounds: { answerMs: 500, tasks: 4 } }), 'failed').length > 0,
          methods.join(', ')
        )
      }
      const url = await faultyServer(
        t,
        eachEvent(event => [{ ...event, result: garbage }])
      )
      t.ok(ids(await tested(url, { texts: ['ask'], bounds: { answerMs: 500, tasks: 4 } }), 'failed').length > 0)
    }
  )
}

await t.test('garbage within streams gives findings, and does not stop the test', async t => {
  const middle: readonly Json[] = [
    ...GARBAGE,
    { artifactUpdate: { artifact: { artifactId: 'new', parts: [{ text: 'a' }] }, append: true } }
  ]
  const url = await faultyServer(
    t,
    eachEvent((event, index) => (index === 2 ? [...middle.map(result => ({ ...event, result })), event] : [event]))
  )
  const result = await tested(url, { texts: ['count 2', 'ask'] })
  for (const id of [5, 54, 64]) t.ok(ids(result, 'failed', 'warning').includes(id), `${id}`)
  for (const id of [33, 69, 80]) t.ok(ids(result, 'passed', 'failed').includes(id), `${id}`)
  t.same(result.notes, [])
})

/** Answers every request as a test wants. Gives the server's address. */
async function webServer(t: Test, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

await t.test('the card is searched below the address and at the root, with a time limit', async t => {
  const { runtime } = start(t, { ...obedientAgent().definition })
  const served = await serve(runtime, { port: 0 })
  t.teardown(() => served.close())
  const { origin } = new URL(served.url)
  const { columns } = await tested(`${origin}/some/agent`, {
    texts: ['x'],
    bindings: ['JSONRPC'],
    bounds: { requests: 1 }
  })
  t.equal(columns[0]?.verdicts.find(({ requirement }) => requirement.id === 117)?.outcome, 'passed')
  await t.rejects(tested(`${origin}/nothing.json`), {
    code: 'UnsupportedOperation',
    message: /^There is no agent card at [^ ]*\/nothing\.json: HTTP 404\.$/
  })
  const empty = await webServer(
    t,
    (_, response) => void response.writeHead(404, { 'content-type': 'application/json' }).end('{}')
  )
  await t.rejects(tested(`${empty}/agent`), {
    message: /no agent card at [^ ]*\/agent\/\.well-known\/[^ ]*: HTTP 404\. There is no agent card at /
  })
  await t.rejects(tested(await webServer(t, () => {})), { code: 'Overloaded', message: /Nobody answers at/ })
})

await t.test('a card with only a date is cacheable; an explicit card URL is not well-known', async t => {
  const url = await faultyServer(t, {})
  const card = await (await fetch(`${url}/.well-known/agent-card.json`)).text()
  const dated = await webServer(t, ({ headers }, response) => {
    response.writeHead(headers['if-modified-since'] ? 304 : 200, {
      'content-type': 'application/json',
      'cache-control': 'max-age=60',
      'last-modified': new Date(0).toUTCString()
    })
    response.end(headers['if-modified-since'] ? '' : card)
  })
  const { columns } = await tested(`${dated}/card.json`, { texts: ['x'], bounds: { requests: 1 } })
  t.same(
    [116, 120].map(id => columns[0]?.verdicts[id - 1]?.outcome),
    ['skipped', 'passed']
  )
})

await t.test('a binding without its packages is skipped, and they are named', async t => {
  const missing = async () => Promise.reject(Object.assign(new Error('none'), { code: 'ERR_MODULE_NOT_FOUND' }))
  const callers = { WEBSOCKET: missing, JSONRPC: missing, 'HTTP+JSON': missing, GRPC: missing }
  const why = await callerFor(
    { binding: 'GRPC', url: '127.0.0.1:9' },
    { requestedUrl: 'http://127.0.0.1', access: { places: [] }, extensions: [] },
    callers
  )
  t.match(why, /^a package is missing: npm install .*@grpc\/grpc-js/)
})

await t.test('a gRPC error without readable details is classified by its status', async t => {
  const { port, script } = await grpcAgent(t)
  const url = await faultyServer(t, {
    card: card => ({
      ...card,
      supportedInterfaces: [{ url: `127.0.0.1:${port}`, protocolBinding: 'GRPC', protocolVersion: '1.0' }]
    })
  })
  script(
    ...Array.from({ length: 100 }, () => ({ error: { code: 5, details: 'none', bin: new Uint8Array([255, 255]) } }))
  )
  const failed = ids(await tested(url, { texts: ['x'] }), 'failed')
  t.ok(failed.includes(97) && failed.includes(23), String(failed))
  for (const id of [29, 52, 60, 65, 77]) t.notOk(failed.includes(id), `${id}`)
  const caller = grpcCaller(`127.0.0.1:${port}`, {})
  t.teardown(() => caller.close())
  script({ error: { code: 99, details: 'odd' } }, { task: {} })
  t.match(await caller.call('GetTask', { id: 'a' }).catch((error: unknown) => error), { native: '99', message: 'odd' })
  t.same(await caller.call('DeleteTaskPushNotificationConfig', { taskId: 'a', id: 'b' }), {
    result: {},
    extensions: ''
  })
  const secure = grpcCaller(`grpcs://127.0.0.1:${port}`, {})
  t.teardown(() => secure.close())
  t.match(await secure.call('GetTask', { id: 'a' }).catch((error: unknown) => error), { native: 'UNAVAILABLE' })
})

await t.test('a WebSocket reports frames with unknown ids, and its end', async t => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => WEBSOCKET_SUBPROTOCOL })
  t.teardown(() => server.close())
  await once(server, 'listening')
  server.on('connection', socket =>
    socket.on('message', (data: Buffer) => socket.send((JSON.parse(data.toString()) as { say: string }).say))
  )
  const socket = new FrameSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, {})
  const first = socket.ask(1, '{"say":"no JSON"}')
  t.equal(await first.next(), 'no JSON')
  const second = socket.ask(2, JSON.stringify({ say: '{"id":"of nobody"}' }))
  t.same(await second.next(), { id: 'of nobody' })
  second.done()
  const third = socket.ask(3, JSON.stringify({ say: '{"id":1}' }))
  t.same(await first.next(), { id: 1 })
  first.done()
  socket.terminate()
  await t.rejects(third.next(), { code: 'InvalidAgentResponse', message: /ended: cut by this client/ })
})
