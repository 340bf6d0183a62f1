import t from 'tap'
import { eachEvent, type Json } from '../../fixtures/servers/faulty-server.ts'
import {
  accepts,
  DONE,
  error,
  findFaults,
  MESSAGE,
  result,
  type FaultRow
} from '../../fixtures/servers/planted-faults.ts'
import { sampleOf } from '../../fixtures/sample.ts'

let lists = 0

/** What is wrong with lists, and with how things are written. */
await findFaults([
  ['history is longer than requested', 66, result(task => ({ ...task, history: [MESSAGE, MESSAGE] }), 'GetTask')],
  [
    'history is sent though none is requested',
    39,
    result(({ task, message }) => (task ? { task: { ...task, history: [MESSAGE] } } : { message }), 'SendMessage')
  ],
  ['lists are empty', 69, result(page => ({ ...page, tasks: [], nextPageToken: '' }), 'ListTasks')],
  ['names are in snake_case', 1, result(({ contextId, ...task }) => ({ ...task, context_id: contextId }), 'GetTask')]
])

/** Most of these take the same ways through the tests: `npm run test:deep` plants them all. */
await findFaults(
  sampleOf<FaultRow>(
    t,
    [
      [
        'a page is repeated forever',
        69,
        result((page, { params }) => ({ ...page, nextPageToken: params.pageSize === 1 ? 'again' : '' }), 'ListTasks')
      ],
      [
        'a list has the wrong order',
        70,
        {
          answer: ({ method, params }, answer) =>
            method === 'ListTasks' && params.pageSize === 1 && answer.result?.tasks[0]
              ? {
                  ...answer,
                  result: {
                    ...answer.result,
                    tasks: [
                      {
                        ...answer.result.tasks[0],
                        status: {
                          ...answer.result.tasks[0].status,
                          timestamp: new Date(Date.UTC(2026, 1, 1) + (lists += 1)).toISOString()
                        }
                      }
                    ]
                  }
                }
              : answer
        }
      ],
      ['nextPageToken is missing', 71, result(page => ({ ...page, nextPageToken: undefined }), 'ListTasks')],
      [
        'lists have artifacts',
        72,
        result(page => ({ ...page, tasks: page.tasks.map((task: Json) => ({ ...task, artifacts: [] })) }), 'ListTasks')
      ],
      [
        'the filter by context is ignored',
        73,
        result(
          (page, { params }) =>
            params.contextId ? { ...page, tasks: [...page.tasks, DONE], totalSize: page.totalSize + 1 } : page,
          'ListTasks'
        )
      ],
      ['the size of a list is wrong', 74, result(page => ({ ...page, totalSize: 0 }), 'ListTasks')],
      ['webhooks are accepted though the card has none', 81, accepts('CreateTaskPushNotificationConfig', { id: 'a' })],
      [
        'states are in lower case',
        2,
        result(task => ({ ...task, history: [{ ...MESSAGE, role: 'user' }] }), 'GetTask')
      ],
      [
        'times have an offset',
        3,
        result(task => ({ ...task, status: { ...task.status, timestamp: '2026-01-02T03:04:05+02:00' } }), 'GetTask')
      ],
      ['an artifact has no id', 5, result(task => ({ ...task, artifacts: [{ parts: [{ text: 'a' }] }] }), 'GetTask')],
      [
        'a part has two contents',
        9,
        result(task => ({ ...task, artifacts: [{ artifactId: 'a', parts: [{ text: 'a', url: 'b' }] }] }), 'GetTask')
      ],
      [
        'bytes are not base64',
        10,
        result(task => ({ ...task, artifacts: [{ artifactId: 'a', parts: [{ raw: '!' }] }] }), 'GetTask')
      ],
      ['an event has kind', 11, eachEvent(event => [{ ...event, result: { ...event.result, kind: 'task' } }])],
      ['the events of a stream have another id', 18, eachEvent(event => [{ ...event, id: 'other' }])],
      [
        'an operation is missing',
        16,
        {
          answer: ({ id, method }, answer) =>
            method === 'CancelTask'
              ? { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }
              : answer
        }
      ]
    ],
    3
  )
)

/** What is wrong before any task is opened: one is tried with fields that nobody knows. */
await findFaults(
  [
    ['an unknown task is found', 65, accepts('GetTask', DONE)],
    ['an unknown task has another error', 65, error(-32602, 'GetTask')],
    ['an unknown task accepts a message', 29, accepts('SendMessage', { task: DONE })],
    ['an ended task refuses a streamed message with another error', 52, error(-32603, 'SendStreamingMessage')],
    ['an unknown task refuses a subscription with another error', 60, error(-32004, 'SubscribeToTask')],
    ['the id of the answer is another', 14, { answer: (_, answer) => ({ ...answer, id: 'other' }) }],
    ['the version of JSON-RPC is missing', 14, { answer: (_, answer) => ({ ...answer, jsonrpc: undefined }) }],
    ['the media type is another', 15, { headers: { 'content-type': 'text/plain' } }],
    [
      'any page size is accepted',
      74,
      accepts('ListTasks', { tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 })
    ],
    ['invalid parameters of lists are internal errors', 75, error(-32603, 'ListTasks')],
    [
      'invalid JSON is answered as invalid parameters',
      17,
      {
        answer: (_, answer) =>
          answer.error?.code === -32700 ? { ...answer, error: { ...answer.error, code: -32602 } } : answer
      }
    ],
    [
      'a message without parts is accepted',
      7,
      accepts('SendMessage', { task: DONE }, ({ params }) => params.message?.parts?.length === 0)
    ],
    [
      'a message without an id is accepted',
      6,
      accepts('SendMessage', { task: DONE }, ({ params }) => params.message && !params.message.messageId)
    ],
    [
      'unknown fields are refused',
      8,
      {
        answer: ({ id, params }, answer) =>
          params.taskchartTest ? { jsonrpc: '2.0', id, error: { code: -32602, message: 'unknown field' } } : answer
      }
    ],
    ['every media type is accepted', 28, accepts('SendMessage', { task: DONE })],
    [
      'any version is accepted',
      104,
      accepts(
        'ListTasks',
        { tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 },
        ({ version }) => version === '99.0'
      )
    ],
    [
      'a missing version counts as 1.0',
      105,
      accepts(
        'ListTasks',
        { tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 },
        ({ version }) => version === undefined
      )
    ],
    [
      'a patch number is refused',
      107,
      {
        answer: ({ id, version }, answer) =>
          version === '1.0.7' ? { jsonrpc: '2.0', id, error: { code: -32009, message: 'no' } } : answer
      }
    ],
    ['there is an extended card though the card has none', 121, accepts('GetExtendedAgentCard', {})],
    [
      'details name no types',
      95,
      { answer: (_, answer) => (answer.error ? { ...answer, error: { ...answer.error, data: [{}] } } : answer) }
    ],
    [
      'the code is not that of the reason',
      96,
      { answer: (_, answer) => (answer.error ? { ...answer, error: { ...answer.error, code: -32603 } } : answer) }
    ],
    [
      'a required extension is not required',
      110,
      {
        card: card => ({
          ...card,
          capabilities: { ...card.capabilities, extensions: [{ uri: 'urn:x', required: true }] }
        })
      }
    ],
    [
      'the extended card needs no credentials',
      123,
      {
        card: card => ({ ...card, capabilities: { ...card.capabilities, extendedAgentCard: true } }),
        ...accepts('GetExtendedAgentCard', {})
      }
    ],
    [
      'a request without credentials is accepted',
      100,
      { card: card => ({ ...card, securityRequirements: [{ schemes: { key: { list: [] } } }] }) }
    ],
    ['the card lacks its name', 117, { card: card => ({ ...card, name: undefined }) }],
    ['an answer is not JSON', 65, { answer: ({ method }, answer) => (method === 'GetTask' ? '<html>' : answer) }],
    ['an answer is no response', 65, { answer: ({ method }, answer) => (method === 'GetTask' ? '[]' : answer) }],
    ['a server answers nothing at all', 118, { answer: () => 'hang' }],
    ['a server redirects', 118, { status: () => 307, headers: { location: 'http://example.com/' } }]
  ],
  1
)
