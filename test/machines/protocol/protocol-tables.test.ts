import t from 'tap'
import { A2AError, ERRORS, errorCodeOf, isA2AError } from '../../../machines/protocol/errors.ts'
import { OPERATIONS, operationOf } from '../../../machines/protocol/operations.ts'
import {
  isInterrupted,
  isPause,
  isReplyEnd,
  isTerminal,
  TASK_STATES,
  type TaskState
} from '../../../machines/protocol/states.ts'
import * as uris from '../../../machines/protocol/uris.ts'
import { PROTOCOL_VERSION, normaliseVersion } from '../../../machines/protocol/versions.ts'
import { fromWireError, toWireError } from '../../../machines/protocol/wire-errors.ts'

await t.test('the binding and the extensions have these URIs', async t => {
  t.strictSame(
    { ...uris },
    {
      WEBSOCKET_BINDING: 'urn:taskchart:binding:websocket:1',
      RELIABILITY_EXTENSION: 'urn:taskchart:extension:reliability:1',
      NEGOTIATION_EXTENSION: 'urn:taskchart:extension:negotiation:1',
      INPUT_EXTENSION: 'urn:taskchart:extension:input:1',
      ANSWER_SCHEMA: 'urn:taskchart:answer-schema:1',
      QUESTION: 'urn:taskchart:question:1',
      AGENT_CARD_PATH: '/.well-known/agent-card.json',
      WEBSOCKET_SUBPROTOCOL: 'a2a.v1',
      SERVICE_PARAMETERS: 'a2a-service-parameters'
    }
  )
})

await t.test('a version is Major.Minor, 0.3 if it is absent, and none if it is malformed', async t => {
  t.equal(normaliseVersion(PROTOCOL_VERSION), '1.0')
  const expected: [string | undefined, string | undefined][] = [
    ['1.0', '1.0'],
    ['1.0.1', '1.0'],
    ['0.3.0', '0.3'],
    ['9.12', '9.12'],
    [' 1.0 ', '1.0'],
    ['', '0.3'],
    ['  ', '0.3'],
    [undefined, '0.3'],
    ['1', undefined],
    ['1.', undefined],
    ['v1.0', undefined],
    ['1.0.1.1', undefined],
    ['01.0', undefined],
    ['1.0-rc', undefined],
    ['1.0,1.1', undefined],
    ['-1.0', undefined],
    ['1.99999', undefined],
    ['1.0\n0', undefined]
  ]
  for (const [text, version] of expected) t.equal(normaliseVersion(text), version, JSON.stringify(text))
})

await t.test('the states have the numbers of the proto, their chart names and their classes', async t => {
  t.strictSame(
    Object.entries(TASK_STATES).map(([name, row]) => [name, row.number, row.chart, row.class]),
    [
      ['TASK_STATE_SUBMITTED', 1, 'submitted', 'active'],
      ['TASK_STATE_WORKING', 2, 'working', 'active'],
      ['TASK_STATE_COMPLETED', 3, 'completed', 'terminal'],
      ['TASK_STATE_FAILED', 4, 'failed', 'terminal'],
      ['TASK_STATE_CANCELED', 5, 'canceled', 'terminal'],
      ['TASK_STATE_INPUT_REQUIRED', 6, 'inputRequired', 'interrupted'],
      ['TASK_STATE_REJECTED', 7, 'rejected', 'terminal'],
      ['TASK_STATE_AUTH_REQUIRED', 8, 'authRequired', 'interrupted']
    ]
  )
  const states = Object.keys(TASK_STATES).filter((name): name is TaskState => name in TASK_STATES)
  t.strictSame(states.filter(isTerminal), [
    'TASK_STATE_COMPLETED',
    'TASK_STATE_FAILED',
    'TASK_STATE_CANCELED',
    'TASK_STATE_REJECTED'
  ])
  t.strictSame(states.filter(isInterrupted), ['TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED'])
  t.strictSame(
    states.filter(state => !isPause(state)),
    ['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING'],
    'where SendMessage does not answer'
  )
  t.strictSame(
    states.filter(state => isPause(state) && !isReplyEnd(state)),
    ['TASK_STATE_AUTH_REQUIRED'],
    'where it answers, and a stream goes on'
  )
})

await t.test('the operations have these names, streams and capabilities', async t => {
  t.strictSame(
    Object.entries(OPERATIONS).map(([method, row]) => [
      method,
      row.name,
      row.streaming,
      'capability' in row ? row.capability : undefined
    ]),
    [
      ['SendMessage', 'sendMessage', false, undefined],
      ['SendStreamingMessage', 'sendStreamingMessage', true, 'streaming'],
      ['GetTask', 'getTask', false, undefined],
      ['ListTasks', 'listTasks', false, undefined],
      ['CancelTask', 'cancelTask', false, undefined],
      ['SubscribeToTask', 'subscribeToTask', true, 'streaming'],
      ['CreateTaskPushNotificationConfig', 'createTaskPushNotificationConfig', false, 'pushNotifications'],
      ['GetTaskPushNotificationConfig', 'getTaskPushNotificationConfig', false, 'pushNotifications'],
      ['ListTaskPushNotificationConfigs', 'listTaskPushNotificationConfigs', false, 'pushNotifications'],
      ['DeleteTaskPushNotificationConfig', 'deleteTaskPushNotificationConfig', false, 'pushNotifications'],
      ['GetExtendedAgentCard', 'getExtendedAgentCard', false, 'extendedAgentCard']
    ]
  )
})

await t.test('an operation is found only by its method', async t => {
  for (const [method, operation] of Object.entries(OPERATIONS)) t.equal(operationOf(method), operation, method)
  for (const method of [
    'constructor',
    '__proto__',
    'toString',
    'hasOwnProperty',
    'prototype',
    'sendMessage',
    'message/send',
    ''
  ]) {
    t.equal(operationOf(method), undefined, JSON.stringify(method))
  }
})

const A2A = 'a2a-protocol.org'

const expectedErrors: [keyof typeof ERRORS, number, number, string, string, string][] = [
  ['TaskNotFound', -32001, 404, 'NOT_FOUND', 'TASK_NOT_FOUND', A2A],
  ['TaskNotCancelable', -32002, 400, 'FAILED_PRECONDITION', 'TASK_NOT_CANCELABLE', A2A],
  ['PushNotificationNotSupported', -32003, 400, 'FAILED_PRECONDITION', 'PUSH_NOTIFICATION_NOT_SUPPORTED', A2A],
  ['UnsupportedOperation', -32004, 400, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION', A2A],
  ['ContentTypeNotSupported', -32005, 400, 'INVALID_ARGUMENT', 'CONTENT_TYPE_NOT_SUPPORTED', A2A],
  ['InvalidAgentResponse', -32006, 500, 'INTERNAL', 'INVALID_AGENT_RESPONSE', A2A],
  ['ExtendedAgentCardNotConfigured', -32007, 400, 'FAILED_PRECONDITION', 'EXTENDED_AGENT_CARD_NOT_CONFIGURED', A2A],
  ['ExtensionSupportRequired', -32008, 400, 'FAILED_PRECONDITION', 'EXTENSION_SUPPORT_REQUIRED', A2A],
  ['VersionNotSupported', -32009, 400, 'FAILED_PRECONDITION', 'VERSION_NOT_SUPPORTED', A2A],
  ['TaskGenerationMismatch', -32010, 409, 'ABORTED', 'TASK_GENERATION_MISMATCH', A2A],
  ['ParseError', -32700, 400, 'INVALID_ARGUMENT', 'PARSE_ERROR', A2A],
  ['InvalidRequest', -32600, 400, 'INVALID_ARGUMENT', 'INVALID_REQUEST', A2A],
  ['MethodNotFound', -32601, 404, 'UNIMPLEMENTED', 'METHOD_NOT_FOUND', A2A],
  ['InvalidParams', -32602, 400, 'INVALID_ARGUMENT', 'INVALID_PARAMS', A2A],
  ['InternalError', -32603, 500, 'INTERNAL', 'INTERNAL_ERROR', A2A],
  ['Unauthenticated', -31401, 401, 'UNAUTHENTICATED', 'UNAUTHENTICATED', 'taskchart'],
  ['Forbidden', -31403, 403, 'PERMISSION_DENIED', 'FORBIDDEN', 'taskchart'],
  ['IdempotencyConflict', -31409, 409, 'ALREADY_EXISTS', 'IDEMPOTENCY_CONFLICT', 'taskchart'],
  ['TooLarge', -31413, 413, 'RESOURCE_EXHAUSTED', 'TOO_LARGE', 'taskchart'],
  ['RateLimited', -31429, 429, 'RESOURCE_EXHAUSTED', 'RATE_LIMITED', 'taskchart'],
  ['Overloaded', -31503, 503, 'UNAVAILABLE', 'OVERLOADED', 'taskchart'],
  ['DeadlineExceeded', -31504, 504, 'DEADLINE_EXCEEDED', 'DEADLINE_EXCEEDED', 'taskchart']
]

await t.test('the errors have these numbers, statuses, names, reasons and domains', async t => {
  t.strictSame(
    Object.entries(ERRORS).map(([code, row]) => [code, row.code, row.http, row.grpc, row.reason]),
    expectedErrors.map(row => row.slice(0, 5))
  )
  for (const [code, number, , , reason, domain] of expectedErrors) {
    t.equal(errorCodeOf(number), code)
    t.strictSame(
      new A2AError(code).details,
      [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain }],
      code
    )
    t.equal(new A2AError(code).message, ERRORS[code].message)
  }
  t.equal(errorCodeOf(-1), undefined)
})

await t.test('the five messages of JSON-RPC are those of the specification (§9.5)', async t => {
  t.strictSame(
    [ERRORS.ParseError, ERRORS.InvalidRequest, ERRORS.MethodNotFound, ERRORS.InvalidParams, ERRORS.InternalError].map(
      row => row.message
    ),
    [
      'Invalid JSON payload',
      'Request payload validation error',
      'Method not found',
      'Invalid parameters',
      'Internal error'
    ]
  )
})

const full = new A2AError('RateLimited', 'Slow down', {
  metadata: { taskId: 't1' },
  violations: [{ field: 'message.parts', description: 'must be a list' }],
  retryAfterMs: 1500,
  cause: 'why'
})

await t.test('an error carries its metadata, then its violations, then its delay', async t => {
  t.strictSame(toWireError(full), {
    code: -31429,
    message: 'Slow down',
    data: [
      {
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: 'RATE_LIMITED',
        domain: 'taskchart',
        metadata: { taskId: 't1' }
      },
      {
        '@type': 'type.googleapis.com/google.rpc.BadRequest',
        fieldViolations: [{ field: 'message.parts', description: 'must be a list' }]
      },
      { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '1.5s' }
    ]
  })
  t.equal(full.cause, 'why')
  t.notOk('cause' in new A2AError('TaskNotFound'), 'there is no such member without a cause')
  t.match(full, { name: 'A2AError', code: 'RateLimited' })
})

await t.test('a delay is written in seconds, rounded up to a millisecond and never below zero', async t => {
  for (const [ms, delay] of [
    [0, '0s'],
    [1, '0.001s'],
    [0.2, '0.001s'],
    [60_000, '60s'],
    [-5, '0s']
  ] as const) {
    t.equal(new A2AError('Overloaded', undefined, { retryAfterMs: ms }).details[1]?.retryDelay, delay)
  }
})

await t.test('an error read from the wire equals the one sent', async t => {
  for (const code of expectedErrors.map(([code]) => code)) {
    const back = fromWireError(JSON.parse(JSON.stringify(toWireError(new A2AError(code, 'Said')))))
    t.match(back, { code, message: 'Said' })
  }
  const wire: unknown = JSON.parse(JSON.stringify(toWireError(full)))
  const back = fromWireError(wire)
  t.strictSame(
    [back.metadata, back.violations, back.retryAfterMs, back.cause],
    [full.metadata, full.violations, 1500, wire]
  )
  t.strictSame(toWireError(back), toWireError(full))
})

const reason = (text: unknown) => [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: text }]

await t.test('an error with an unknown number is recognized by its reason, or is InternalError', async t => {
  t.match(fromWireError({ code: -1, message: 'x', data: reason('TASK_NOT_FOUND') }), {
    code: 'TaskNotFound',
    message: 'x'
  })
  t.match(fromWireError({ code: -1, message: 'x', data: reason('NOBODY_KNOWS') }), {
    code: 'InternalError',
    message: 'x'
  })
  for (const wire of [
    undefined,
    null,
    7,
    'x',
    [],
    {},
    { code: '-32001', message: 5, data: 'x' },
    { code: -1, data: [null, 1, 'x', []] }
  ]) {
    t.match(
      fromWireError(wire),
      { code: 'InternalError', message: 'Internal error', retryAfterMs: undefined },
      JSON.stringify(wire)
    )
  }
})

await t.test('malformed details of an error on the wire are omitted', async t => {
  const data = [
    { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 1, metadata: { a: 'x', b: 1, c: null } },
    {
      '@type': 'type.googleapis.com/google.rpc.BadRequest',
      fieldViolations: [null, { field: 1, description: 'x' }, { field: 'f' }, { field: 'f', description: 'd' }]
    },
    { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: 'soon' }
  ]
  const back = fromWireError({ code: -32602, message: 'x', data })
  t.strictSame(
    [back.code, back.metadata, back.violations, back.retryAfterMs],
    ['InvalidParams', { a: 'x' }, [{ field: 'f', description: 'd' }], undefined]
  )
})

await t.test('an A2AError is recognized by name and code, also of another copy of the package', async t => {
  const foreign = Object.assign(new Error('x'), { name: 'A2AError', code: 'TaskNotFound' })
  t.ok(isA2AError(full) && isA2AError(foreign))
  const others = [
    new Error('x'),
    Object.assign(new Error('x'), { name: 'A2AError' }),
    Object.assign(new Error('x'), { name: 'A2AError', code: 'toString' }),
    Object.assign(new Error('x'), { name: 'A2AError', code: -32001 }),
    Object.assign(new Error('x'), { code: 'TaskNotFound' }),
    { name: 'A2AError', code: 'TaskNotFound' },
    null,
    'A2AError'
  ]
  for (const other of others) t.notOk(isA2AError(other))
})
