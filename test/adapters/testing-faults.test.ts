import t from 'tap'
import { faultyServer, type Asked, type Fault, type Json } from '../fixtures/faulty-server.ts'
import { findings, ids, tested } from '../fixtures/tested-server.ts'

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

const MESSAGE = { messageId: 'm', role: 'ROLE_AGENT', contextId: 'c', parts: [{ text: 'a' }] }

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
  ['the version of JSON-RPC is missing', 14, { answer: (_, answer) => ({ ...answer, jsonrpc: undefined }) }],
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
  ['GetTask lacks artifacts that were streamed', 65, result(task => ({ ...task, artifacts: undefined }), 'GetTask')],
  ['SendMessage lacks artifacts', 35, result(({ task, message }) => (task ? { task: { ...task, artifacts: undefined } } : { message }), 'SendMessage')],
  ['SendMessage does not wait', 35, result(({ task, message }) => (task ? { task: { ...task, status: { state: 'TASK_STATE_WORKING' } } } : { message }), 'SendMessage')],
  ['an answer is for another context', 33, result((given, { params }) => (params.message.taskId ? { task: { ...given.task, contextId: 'other' } } : given), 'SendMessage'), 'ask'],
  ['a message is not the agent\'s', 26, result(given => (given.message ? { message: { ...given.message, role: 'ROLE_USER' } } : given), 'SendMessage'), 'hello'],
  ['a message is streamed twice', 50, eachEvent(event => [event, event]), 'hello'],
  ['history is longer than asked for', 66, result(task => ({ ...task, history: [MESSAGE, MESSAGE] }), 'GetTask')],
  ['history comes though none is wanted', 39, result(({ task, message }) => (task ? { task: { ...task, history: [MESSAGE] } } : { message }), 'SendMessage')],
  ['a page comes again and again', 69, result((page, { params }) => ({ ...page, nextPageToken: params.pageSize === 1 ? 'again' : '' }), 'ListTasks')],
  ['a list is the wrong way round', 70, { answer: ({ method, params }, answer) => (method === 'ListTasks' && params.pageSize === 1 && answer.result?.tasks[0] ? { ...answer, result: { ...answer.result, tasks: [{ ...answer.result.tasks[0], status: { ...answer.result.tasks[0].status, timestamp: new Date(Date.UTC(2026, 1, 1) + (reads += 1)).toISOString() } }] } } : answer) }],
  ['nextPageToken is missing', 71, result(page => ({ ...page, nextPageToken: undefined }), 'ListTasks')],
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
  ['streaming is refused though the card has it', 49, { events: async function* (asked) { yield { jsonrpc: '2.0', id: asked.id, error: { code: -32004, message: 'no streams' } } } }],
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
  ['the card lacks its name', 117, { card: card => ({ ...card, name: undefined }) }],
  ['an answer is no JSON', 65, { answer: ({ method }, answer) => (method === 'GetTask' ? '<html>' : answer) }],
  ['an answer is no response', 65, { answer: ({ method }, answer) => (method === 'GetTask' ? '[]' : answer) }],
  ['an answer does not come', 76, { answer: ({ method, params }, answer) => (method === 'CancelTask' && params.id ? 'hang' : answer) }, 'wait'],
  ['a server answers nothing at all', 118, { answer: () => 'hang' }],
  ['a server redirects', 118, { status: () => 307, headers: { location: 'http://example.com/' } }]
]

/** What an operation may be answered with by a server that has gone wrong. */
const GARBAGE: readonly Json[] = [null, 5, [], {}, { task: 5 }, { task: { id: 'x' } }, { message: 5 }, { tasks: 5 }, { task: { id: 'x', status: { state: 'LOST' } } }, { statusUpdate: 5, artifactUpdate: { artifact: { artifactId: 'a' } } }]

for (const garbage of GARBAGE) {
  await t.test(`a server that answers ${JSON.stringify(garbage)} gives findings, and stops nothing`, async t => {
    for (const methods of [['SendMessage', 'ListTasks'], ['GetTask', 'CancelTask']]) {
      const url = await faultyServer(t, { answer: ({ method, id }, answer) => (methods.includes(method) ? { jsonrpc: '2.0', id, result: garbage } : answer) })
      t.ok(ids(await tested(url, { texts: ['ask'], bounds: { answerMs: 500 } }), 'failed').length > 0, methods.join(', '))
    }
    const url = await faultyServer(t, eachEvent(event => [{ ...event, result: garbage }]))
    t.ok(ids(await tested(url, { texts: ['ask'], bounds: { answerMs: 500 } }), 'failed').length > 0)
  })
}

for (const [what, id, fault, text = 'count 3'] of FAULTS) {
  await t.test(`it is found that ${what}: ${id}`, async t => {
    const result = await tested(await faultyServer(t, fault), { texts: [text] })
    t.ok(ids(result, 'failed', 'warning').includes(id), JSON.stringify(ids(result, 'failed', 'warning')))
    for (const { sent, wanted, found } of findings(result, id)) t.ok(sent !== '' && wanted !== '' && found !== '', what)
  })
}
