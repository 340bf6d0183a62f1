import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { testServer, type ServerTest, type ServerTestOptions } from '../../adapters/testing/protocol/server-tests.ts'
import type { Verdict } from '../../adapters/testing/protocol/ledger.ts'
import { serve } from '../../adapters/http/serve.ts'
import { obedientAgent } from '../conformance/agent.ts'
import { officialAgent } from '../fixtures/official-agent.ts'
import { start } from '../fixtures/runtime-helpers.ts'
import { faultyServer, type Asked, type Fault, type Json } from '../fixtures/faulty-server.ts'
import { TestClock } from '../fixtures/test-clock.ts'

/** Runs a test on a clock that goes on while everything waits. */
async function tested(url: string, options: ServerTestOptions = {}): Promise<ServerTest> {
  const clock = new TestClock()
  const running = testServer(url, { clock, bounds: { answerMs: 2000 }, ...options })
  let isOver = false
  const settled = running.then(() => (isOver = true), () => (isOver = true))
  while (!isOver) {
    await setImmediate()
    clock.increment(1)
  }
  await settled
  return running
}

const ids = ({ columns }: ServerTest, ...outcomes: Verdict['outcome'][]) =>
  [...new Set(columns.flatMap(({ verdicts }) => verdicts.filter(({ outcome }) => outcomes.includes(outcome)).map(({ requirement }) => requirement.id)))]

const findings = ({ columns }: ServerTest, id: number) => columns.flatMap(({ verdicts }) => verdicts.filter(({ requirement }) => requirement.id === id).flatMap(verdict => verdict.findings))

const TEXTS = ['count 3', 'ask', 'wait', 'hello', 'authorize']

await t.test('a server that does what A2A asks meets every requirement that can be tried', async t => {
  const result = await tested(await faultyServer(t, {}), { texts: TEXTS })
  t.same(ids(result, 'failed'), [])
  t.same(ids(result, 'warning'), [120], 'the card of the fixture may not be cached')
  const passed = ids(result, 'passed')
  for (const id of [26, 27, 33, 34, 35, 36, 50, 51, 54, 55, 56, 57, 58, 62, 65, 69, 70, 73, 76, 77, 78, 79, 80, 140, 142]) t.ok(passed.includes(id), `${id}`)
  const [column] = result.columns
  t.equal(column?.verdicts.length, 165)
  for (const { outcome, reason } of column?.verdicts ?? []) t.equal(outcome === 'skipped', reason !== undefined && reason !== '')
})

const result = (change: (result: Json, asked: Asked) => Json, ...methods: string[]): Fault => ({
  answer: (asked, answer) => (methods.includes(asked.method) && answer.result ? { ...answer, result: change(answer.result, asked) } : answer)
})

const error = (code: number, method: string, when: (asked: Asked) => boolean = () => true): Fault => ({
  answer: (asked, answer) => (asked.method === method && answer.error && when(asked) ? { jsonrpc: '2.0', id: answer.id, error: { code, message: 'no' } } : answer)
})

const accepts = (method: string, given: Json, when: (asked: Asked) => boolean = () => true): Fault => ({
  answer: (asked, answer) => (asked.method === method && answer.error && when(asked) ? { jsonrpc: '2.0', id: answer.id, result: given } : answer)
})

const eachEvent = (change: (event: Json, index: number, asked: Asked) => Json[]): Fault => ({
  events: async function* (asked, events) {
    let index = 0
    for await (const event of events) yield* change(event, (index += 1), asked)
  }
})

const DONE = { id: 'done', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED', timestamp: '2026-01-02T03:04:05.006Z' } }

function reopening(): Fault {
  const reads = new Map<string, number>()
  return result((task, { params }) => {
    if (task.status.state !== 'TASK_STATE_COMPLETED') return task
    reads.set(params.id, (reads.get(params.id) ?? 0) + 1)
    return (reads.get(params.id) ?? 0) > 3 ? { ...task, status: { ...task.status, state: 'TASK_STATE_WORKING' } } : task
  }, 'GetTask')
}

function forgetting(): Fault {
  const canceled = new Set<string>()
  return {
    answer: ({ method, params, id }, answer) => {
      if (method !== 'CancelTask' || !canceled.has(params.id)) {
        canceled.add(params.id)
        return answer
      }
      return { jsonrpc: '2.0', id, error: { code: -32001, message: 'gone' } }
    }
  }
}

let reads = 0

/** What is wrong, the requirement that is not met for it, and the messages with which that is found. */
const FAULTS: readonly (readonly [what: string, id: number, fault: Fault, text?: string])[] = [
  ['a task that has ended goes on', 80, reopening()],
  ['a task that has ended changes', 80, result(task => ({ ...task, metadata: { reads: (reads += 1) } }), 'GetTask')],
  ['reading changes a task', 79, result(task => ({ ...task, metadata: { reads: (reads += 1) } }), 'GetTask')],
  ['a cancel does not cancel', 76, result(task => ({ ...task, status: { ...task.status, state: 'TASK_STATE_WORKING' } }), 'CancelTask', 'GetTask'), 'wait'],
  ['a canceled task is not found any more by a second cancel', 78, forgetting(), 'wait'],
  ['an ended task is canceled', 77, accepts('CancelTask', DONE)],
  ['an ended task is refused to be canceled with another error', 77, error(-32603, 'CancelTask')],
  ['an unknown task is found', 65, accepts('GetTask', DONE)],
  ['an unknown task has another error', 65, error(-32602, 'GetTask')],
  ['an unknown task takes a message', 29, accepts('SendMessage', { task: DONE })],
  ['an ended task takes a message', 27, accepts('SendMessage', { task: DONE })],
  ['an ended task takes a streamed message with another error', 52, error(-32603, 'SendStreamingMessage')],
  ['an ended task takes a subscription', 59, accepts('SubscribeToTask', { task: DONE })],
  ['an unknown task takes a subscription with another error', 60, error(-32004, 'SubscribeToTask')],
  ['the id of the answer is another', 14, { answer: (_, answer) => ({ ...answer, id: 'other' }) }],
  ['the version of JSON-RPC is missing', 14, { answer: (_, { jsonrpc: __, ...answer }) => answer }],
  ['the media type is another', 15, { headers: { 'content-type': 'text/plain' } }],
  ['a contextId is missing', 31, result(({ task, message }) => (task ? { task: { ...task, contextId: undefined } } : { message }), 'SendMessage')],
  ['the client\'s contextId is replaced', 32, result(({ task, message }) => (task ? { task: { ...task, contextId: 'mine' } } : { message }), 'SendMessage')],
  ['a contextId of another task is taken', 34, accepts('SendMessage', { task: DONE }, ({ params }) => params.message?.contextId !== undefined && params.message.taskId !== undefined)],
  ['states go backwards', 54, eachEvent((event, index) => (index === 3 ? [event, { ...event, result: { statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_SUBMITTED' } } } }] : [event]))],
  ['a stream begins with an update', 51, eachEvent((event, index) => (index === 1 ? [] : [event]))],
  ['a stream tells the task in its middle', 51, eachEvent((event, index) => (index === 2 ? [{ ...event, result: { task: DONE } }] : [event]))],
  ['a stream does not end', 51, { staysOpen: () => true }],
  ['a stream ends before its task', 51, eachEvent((event, index) => (index < 3 ? [event] : []))],
  ['something is told after the end of a task', 80, eachEvent(event => (event.result?.statusUpdate?.status.state === 'TASK_STATE_COMPLETED' ? [event, event] : [event]))],
  ['a subscription does not begin with the task', 57, eachEvent((event, index, { method }) => (method === 'SubscribeToTask' && index === 1 ? [] : [event])), 'ask'],
  ['a subscription does not end', 58, { staysOpen: ({ method }) => method === 'SubscribeToTask' }, 'ask'],
  ['artifacts come twice in a subscription', 62, eachEvent((event, _, { method }) => (method === 'SubscribeToTask' && event.result?.artifactUpdate ? [event, { ...event, result: { artifactUpdate: { ...event.result.artifactUpdate, append: true } } }] : [event])), 'ask'],
  ['GetTask lacks artifacts that were streamed', 65, result(({ artifacts: _, ...task }) => task, 'GetTask')],
  ['SendMessage lacks artifacts', 35, result(({ task, message }) => (task ? { task: { ...task, artifacts: undefined } } : { message }), 'SendMessage')],
  ['SendMessage does not wait', 35, result(({ task, message }) => (task ? { task: { ...task, status: { state: 'TASK_STATE_WORKING' } } } : { message }), 'SendMessage')],
  ['an answer is for another context', 33, result((given, { params }) => (params.message.taskId ? { task: { ...given.task, contextId: 'other' } } : given), 'SendMessage'), 'ask'],
  ['a message is not the agent\'s', 26, result(given => (given.message ? { message: { ...given.message, role: 'ROLE_USER' } } : given), 'SendMessage'), 'hello'],
  ['a message is streamed twice', 50, eachEvent(event => [event, event]), 'hello'],
  ['history is longer than asked for', 66, result(task => ({ ...task, history: [MESSAGE, MESSAGE] }), 'GetTask')],
  ['history comes though none is wanted', 39, result(({ task, message }) => (task ? { task: { ...task, history: [MESSAGE] } } : { message }), 'SendMessage')],
  ['a page comes again and again', 69, result((page, { params }) => ({ ...page, nextPageToken: params.pageSize === 1 ? 'again' : '' }), 'ListTasks')],
  ['a list is the wrong way round', 70, { answer: ({ method, params }, answer) => (method === 'ListTasks' && params.pageSize === 1 && answer.result?.tasks[0] ? { ...answer, result: { ...answer.result, tasks: [{ ...answer.result.tasks[0], status: { ...answer.result.tasks[0].status, timestamp: new Date(Date.UTC(2026, 1, 1) + (reads += 1)).toISOString() } }] } } : answer) }],
  ['nextPageToken is missing', 71, result(({ nextPageToken: _, ...page }) => page, 'ListTasks')],
  ['lists have artifacts', 72, result(page => ({ ...page, tasks: page.tasks.map((task: Json) => ({ ...task, artifacts: [] })) }), 'ListTasks')],
  ['the filter by context does not count', 73, result((page, { params }) => (params.contextId ? { ...page, tasks: [...page.tasks, DONE], totalSize: page.totalSize + 1 } : page), 'ListTasks')],
  ['the size of a list is wrong', 74, result(page => ({ ...page, totalSize: 0 }), 'ListTasks')],
  ['any page size is taken', 74, accepts('ListTasks', { tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 })],
  ['bad parameters of lists are internal errors', 75, error(-32603, 'ListTasks')],
  ['bad JSON is answered as bad parameters', 17, { answer: (_, answer) => (answer.error?.code === -32700 ? { ...answer, error: { ...answer.error, code: -32602 } } : answer) }],
  ['a message without parts is taken', 7, accepts('SendMessage', { task: DONE }, ({ params }) => params.message?.parts?.length === 0)],
  ['a message without an id is taken', 6, accepts('SendMessage', { task: DONE }, ({ params }) => params.message && !params.message.messageId)],
  ['unknown fields are refused', 8, { answer: ({ id, params }, answer) => (params.taskchartTest ? { jsonrpc: '2.0', id, error: { code: -32602, message: 'unknown field' } } : answer) }],
  ['every media type is taken', 28, accepts('SendMessage', { task: DONE })],
  ['any version is taken', 104, accepts('ListTasks', { tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 }, ({ version }) => version === '99.0')],
  ['no version is taken for 1.0', 105, accepts('ListTasks', { tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 }, ({ version }) => version === undefined)],
  ['a patch number is refused', 107, { answer: ({ id, version }, answer) => (version === '1.0.7' ? { jsonrpc: '2.0', id, error: { code: -32009, message: 'no' } } : answer) }],
  ['webhooks are taken though the card has none', 81, accepts('CreateTaskPushNotificationConfig', { id: 'a' })],
  ['there is an extended card though the card has none', 121, accepts('GetExtendedAgentCard', {})],
  ['streaming is refused though the card has it', 49, { events: async function* (asked, _) { yield { jsonrpc: '2.0', id: asked.id, error: { code: -32004, message: 'no streams' } } } }],
  ['names are in snake_case', 1, result(({ contextId, ...task }) => ({ ...task, context_id: contextId }), 'GetTask')],
  ['states are in lower case', 2, result(task => ({ ...task, history: [{ ...MESSAGE, role: 'user' }] }), 'GetTask')],
  ['times have an offset', 3, result(task => ({ ...task, status: { ...task.status, timestamp: '2026-01-02T03:04:05+02:00' } }), 'GetTask')],
  ['an artifact has no id', 5, result(task => ({ ...task, artifacts: [{ parts: [{ text: 'a' }] }] }), 'GetTask')],
  ['a part has two contents', 9, result(task => ({ ...task, artifacts: [{ artifactId: 'a', parts: [{ text: 'a', url: 'b' }] }] }), 'GetTask')],
  ['bytes are no base64', 10, result(task => ({ ...task, artifacts: [{ artifactId: 'a', parts: [{ raw: '!' }] }] }), 'GetTask')],
  ['an event has kind', 11, eachEvent(event => [{ ...event, result: { ...event.result, kind: 'task' } }])],
  ['details name no types', 95, { answer: (_, answer) => (answer.error ? { ...answer, error: { ...answer.error, data: [{}] } } : answer) }],
  ['the code is not that of the reason', 96, { answer: (_, answer) => (answer.error ? { ...answer, error: { ...answer.error, code: -32603 } } : answer) }],
  ['the events of a stream have another id', 18, eachEvent(event => [{ ...event, id: 'other' }])],
  ['an operation is not there', 16, { answer: ({ id, method }, answer) => (method === 'CancelTask' ? { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } } : answer) }],
  ['a required extension is not required', 110, { card: card => ({ ...card, capabilities: { ...card.capabilities, extensions: [{ uri: 'urn:x', required: true }] } }) }],
  ['the extended card is for everybody', 123, { card: card => ({ ...card, capabilities: { ...card.capabilities, extendedAgentCard: true } }), ...accepts('GetExtendedAgentCard', {}) }],
  ['whoever has no credentials is let in', 100, { card: card => ({ ...card, securityRequirements: [{ schemes: { key: { list: [] } } }] }) }],
  ['the card lacks its name', 117, { card: ({ name: _, ...card }) => card }],
  ['an answer is no JSON', 65, { answer: ({ method }, answer) => (method === 'GetTask' ? '<html>' : answer) }],
  ['an answer is no response', 65, { answer: ({ method }, answer) => (method === 'GetTask' ? '[]' : answer) }],
  ['an answer does not come', 76, { answer: ({ method, params }, answer) => (method === 'CancelTask' && params.id ? 'hang' : answer) }, 'wait'],
  ['a server answers nothing at all', 118, { answer: () => 'hang' }],
  ['a server redirects', 118, { status: () => 307, headers: { location: 'http://example.com/' } }]
]

const MESSAGE = { messageId: 'm', role: 'ROLE_AGENT', contextId: 'c', parts: [{ text: 'a' }] }

for (const [what, id, fault, text = 'count 3'] of FAULTS) {
  await t.test(`it is found that ${what}: ${id}`, async t => {
    const result = await tested(await faultyServer(t, fault), { texts: [text] })
    t.ok(ids(result, 'failed', 'warning').includes(id), JSON.stringify(ids(result, 'failed', 'warning')))
    for (const { sent, wanted, found } of findings(result, id)) t.ok(sent !== '' && wanted !== '' && found !== '', what)
  })
}

await t.test('all bindings of a server are tested, and compared', async t => {
  const { runtime } = start(t, { ...obedientAgent().definition })
  const served = await serve(runtime, { port: 0 })
  t.teardown(() => served.close())
  const { columns, notes } = await tested(new URL(served.url).origin, { texts: TEXTS })
  t.same(columns.map(({ binding }) => binding), ['WEBSOCKET', 'JSONRPC', 'HTTP+JSON'])
  t.same(columns.flatMap(({ binding, verdicts }) => verdicts.flatMap(({ requirement, findings }) => findings.map(finding => [binding, requirement.id, finding]))), [])
  t.same(notes, [])
  const passed = (binding: string) => columns.find(column => column.binding === binding)?.verdicts.filter(({ outcome }) => outcome === 'passed').map(({ requirement }) => requirement.id) ?? []
  for (const id of [14, 17, 128, 129, 130, 144, 147, 150]) t.ok(passed('WEBSOCKET').includes(id), `${id}`)
  for (const id of [19, 20, 21, 22, 98, 129, 130]) t.ok(passed('HTTP+JSON').includes(id), `${id}`)
  for (const task of (await runtime.listTasks({ pageSize: 100 })).tasks) t.notMatch(task.status.state, /WORKING|REQUIRED|SUBMITTED/, `nothing is left running: ${JSON.stringify(task)}`)
})

await t.test('a ws: address tests the WebSocket alone, and an option the bindings that it names', async t => {
  const { runtime } = start(t, { ...obedientAgent().definition })
  const served = await serve(runtime, { port: 0 })
  t.teardown(() => served.close())
  const url = new URL(served.url).origin
  t.same((await tested(url.replace('http', 'ws'))).columns.map(({ binding }) => binding), ['WEBSOCKET'])
  t.same((await tested(url, { bindings: ['HTTP+JSON'] })).columns.map(({ binding }) => binding), ['HTTP+JSON'])
  await t.rejects(tested(url, { bindings: ['GRPC'] }), /offers no GRPC, only urn:taskchart:binding:websocket:1, JSONRPC, HTTP\+JSON/)
  await t.rejects(tested(url, { bindings: ['SMOKE'] }), TypeError)
})

await t.test('a server made with the official SDK is tested over its three bindings, and each finding is one that stands in the guide', async t => {
  const agent = await officialAgent(t, ['JSONRPC', 'HTTP+JSON', 'GRPC'])
  const clock = setInterval(() => agent.goOn(), 1)
  t.teardown(() => clearInterval(clock))
  const { columns, notes } = await tested(agent.url, { texts: ['hello', 'hi', 'ask', 'wait'] })
  t.same(notes, [])
  const found = Object.fromEntries(columns.map(({ binding, verdicts }) => [binding, verdicts.filter(({ outcome }) => outcome === 'failed').map(({ requirement }) => requirement.id)]))
  t.same(found, { JSONRPC: [7, 17, 28, 73, 75, 107, 123], 'HTTP+JSON': [7, 28, 73, 107, 123], GRPC: [7, 28, 73, 75, 107, 123] })
})

await t.test('what cannot be tested at all is an error that says why', async t => {
  await t.rejects(tested('http://127.0.0.1:9'), /Nobody answers at/)
  await t.rejects(tested('nowhere'), TypeError)
  const older = await faultyServer(t, { card: card => ({ ...card, supportedInterfaces: [{ url: 'http://localhost/', protocolBinding: 'JSONRPC', protocolVersion: '0.3' }] }) })
  await t.rejects(tested(older), /speaks only A2A 0\.3/)
  await t.rejects(tested(await faultyServer(t, { card: () => [] })), /lists no interface/)
  await t.rejects(tested(`${older}/nothing.json`), /no agent card at .*: HTTP 4/)
  await t.rejects(tested(await faultyServer(t, { answer: ({ id }) => ({ jsonrpc: '2.0', id, error: { code: -31401, message: 'Who are you?' } }) })), { code: 'Unauthenticated' })
})

await t.test('interfaces that are not tested are told of', async t => {
  const more = (url: string) => [
    { url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
    { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    { url: 'http://localhost:9/', protocolBinding: 'urn:pigeon', protocolVersion: '1.0' },
    { url: 'grpc://example.com', protocolBinding: 'GRPC', protocolVersion: '1.0' }
  ]
  const url = await faultyServer(t, { card: card => ({ ...card, supportedInterfaces: [...card.supportedInterfaces, ...more(card.supportedInterfaces[0].url)] }) })
  const result = await tested(url, { texts: ['x'], apiKey: 'key' })
  t.match(result.notes, [/JSONRPC 0\.3 at .* only A2A 1\.0 is/, /JSONRPC 1\.0 at .* the first interface of its binding is/, /urn:pigeon 1\.0 .* does not speak it/])
  const grpc = result.columns.find(({ binding }) => binding === 'GRPC')
  t.equal(grpc?.verdicts.length, 165)
  for (const { outcome, reason } of grpc?.verdicts ?? []) t.match({ outcome, reason }, { outcome: 'skipped', reason: /names an agent on another host/ })
  const noVersion = result.columns[0]?.verdicts.find(({ requirement }) => requirement.id === 105)
  t.match(noVersion, { outcome: 'skipped', reason: /offers A2A 0\.3 at the same address/ })
})

await t.test('a test ends at its bounds, and says so', async t => {
  const url = await faultyServer(t, {})
  for (const [bounds, reason] of [[{ requests: 20 }, '20 requests'], [{ tasks: 2 }, '2 tasks'], [{ totalMs: -1 }, '-0.001 seconds']] as const) {
    t.match((await tested(url, { bounds: { answerMs: 2000, ...bounds } })).notes, [new RegExp(`ended at a bound: ${reason}`)])
  }
  let answers = 0
  const mute = await faultyServer(t, { answer: (_, answer) => ((answers += 1) === 1 ? answer : 'hang') })
  t.match((await tested(mute)).notes, [/ended at a bound: 5 requests in a row without an answer/])
})

await t.test('an agent that refuses every message is told of', async t => {
  const url = await faultyServer(t, { card: card => ({ ...card, capabilities: {} }), answer: ({ method, id, params }, answer) => (method === 'SendMessage' && !params.message.taskId ? { jsonrpc: '2.0', id, error: { code: -32603, message: 'no model' } } : answer) })
  const result = await tested(url)
  t.match(result.notes, ['JSONRPC: a message was refused: -32603 InternalError: no model'])
  t.match(result.columns[0]?.verdicts.find(({ requirement }) => requirement.id === 51), { outcome: 'skipped', reason: 'no task came to its end' })
})

await t.test('a test that is stopped rejects, and asks nothing more', async t => {
  const stop = new AbortController()
  const url = await faultyServer(t, {})
  await t.rejects(tested(url, { signal: stop.signal, told: () => stop.abort() }), { name: 'AbortError' })
})
