import t from 'tap'
import * as z from 'zod'
import { AgentCardSchema } from '../../../machines/protocol/card.ts'
import { compileSchema, decode, tryDecode, type Schema } from '../../../machines/protocol/codec/decode.ts'
import { A2AError } from '../../../machines/protocol/errors.ts'
import {
  ArtifactSchema,
  CancelTaskRequestSchema,
  GetTaskRequestSchema,
  ListTasksRequestSchema,
  ListTasksResponseSchema,
  MessageSchema,
  type Part,
  PartSchema,
  SendMessageRequestSchema,
  StreamResponseSchema,
  TaskArtifactUpdateEventSchema,
  TaskSchema,
  TaskStatusSchema
} from '../../../machines/protocol/objects.ts'
import {
  CreateTaskPushNotificationConfigRequestSchema,
  ListTaskPushNotificationConfigsRequestSchema
} from '../../../machines/protocol/push.ts'
import { SecuritySchemeSchema } from '../../../machines/protocol/security.ts'
import { agentCard, samples, task, userMessage } from '../../fixtures/protocol/protocol-samples.ts'

const ID = 'an id of 1 to 128 characters without control characters'
const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] }
const camelToSnake = (name: string) => name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)

function violations(schema: Schema<unknown>, value: unknown, root?: string): string[] {
  return (tryDecode(schema, value, root).violations ?? []).map(({ field, description }) => `${field} ${description}`)
}

function describe(part: Part): string {
  if ('text' in part) return part.text.toUpperCase()
  if ('raw' in part) return `${part.raw.length} ${part.mediaType ?? ''}`
  return 'url' in part ? part.url : JSON.stringify(part.data)
}

/** Renames all members to snake_case except inside what is its author's. */
function asForeign(value: unknown, keep = false): unknown {
  if (Array.isArray(value)) return value.map(element => asForeign(element))
  if (typeof value !== 'object' || value === null || keep) return value
  const renamed = Object.entries(value).map(([name, member]) => [
    camelToSnake(name),
    asForeign(member, ['metadata', 'data', 'params', 'header'].includes(name))
  ])
  return Object.fromEntries(renamed)
}

for (const [name, schema, value] of samples) {
  await t.test(`a canonical ${name} decodes to itself, also from its snake_case names`, async t => {
    t.strictSame(decode(schema, value), value)
    t.strictSame(decode(schema, JSON.parse(JSON.stringify(value))), value)
    t.strictSame(decode(schema, asForeign(value)), value)
  })
}

await t.test('a decoded message has its fields in the order of the proto', async t => {
  t.strictSame(Object.keys(decode(MessageSchema, { parts: [{ text: 'x' }], role: 2, message_id: 'm' })), [
    'messageId',
    'role',
    'parts'
  ])
})

await t.test('decoding does not change its input', async t => {
  const input = { message_id: 'm', role: 1, parts: [{ raw: 'aGk' }], taskId: null }
  const before = structuredClone(input)
  decode(MessageSchema, input)
  t.strictSame(input, before)
})

await t.test('maps keep their own keys, whatever they look like', async t => {
  const securitySchemes = {
    camelCase: { mtls_security_scheme: {} },
    snake_case: { mtlsSecurityScheme: {} },
    'urn:x': { mtlsSecurityScheme: {} }
  }
  t.strictSame(Object.keys(decode(AgentCardSchema, { ...agentCard, securitySchemes }).securitySchemes ?? {}), [
    'camelCase',
    'snake_case',
    'urn:x'
  ])
})

await t.test('one field under both of its names is refused', async t => {
  t.strictSame(violations(MessageSchema, { ...message, message_id: 'other' }), [
    'messageId must not also be given as message_id'
  ])
  t.strictSame(violations(MessageSchema, { ...message, message_id: null }), [], 'null is not given')
})

await t.test('unknown fields and null are dropped at every level', async t => {
  const input = {
    extra: 1,
    message: {
      ...message,
      kind: 'message',
      taskId: null,
      metadata: null,
      parts: [{ text: 'x', kind: 'text', url: null, raw: null }]
    },
    configuration: null
  }
  t.strictSame(decode(SendMessageRequestSchema, input), { message })
  t.strictSame(decode(SendMessageRequestSchema, { message: { ...message, contextId: undefined } }), { message })
})

await t.test('default values of fields without presence are dropped and those with presence remain', async t => {
  const empty = { ...message, contextId: '', taskId: '', extensions: [], referenceTaskIds: [] }
  const configuration = { acceptedOutputModes: [], historyLength: 0, returnImmediately: false }
  t.strictSame(decode(SendMessageRequestSchema, { tenant: '', message: empty, configuration, metadata: {} }), {
    message,
    configuration: { historyLength: 0 },
    metadata: {}
  })
  t.strictSame(decode(PartSchema, { text: '', filename: '', mediaType: '', metadata: {} }), { text: '', metadata: {} })
  const chunk = { taskId: 't', contextId: 'c', artifact: { artifactId: 'a', parts: [{ text: 'x' }] } }
  t.strictSame(decode(TaskArtifactUpdateEventSchema, { ...chunk, append: false, lastChunk: false }), chunk)
  t.strictSame(
    decode(ListTasksRequestSchema, { includeArtifacts: false, historyLength: 0, pageToken: '', contextId: '' }),
    { historyLength: 0, includeArtifacts: false }
  )
  t.strictSame(decode(ListTaskPushNotificationConfigsRequestSchema, { taskId: 't', pageSize: 0 }), { taskId: 't' })
  t.strictSame(decode(ListTaskPushNotificationConfigsRequestSchema, { taskId: 't', pageSize: '0' }), { taskId: 't' })
})

await t.test('REQUIRED fields that may be empty are always present', async t => {
  t.strictSame(decode(ListTasksResponseSchema, {}), { tasks: [], nextPageToken: '', pageSize: 0, totalSize: 0 })
  const given = {
    name: 'n',
    version: '1',
    supportedInterfaces: [{ url: 'u', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: {}
  }
  t.strictSame(decode(AgentCardSchema, { ...given, skills: null, securitySchemes: {} }), {
    name: 'n',
    description: '',
    supportedInterfaces: given.supportedInterfaces,
    version: '1',
    capabilities: {},
    defaultInputModes: [],
    defaultOutputModes: [],
    skills: []
  })
  const flow = { flows: { clientCredentials: { tokenUrl: 't' } } }
  t.strictSame(decode(SecuritySchemeSchema, { oauth2SecurityScheme: flow }), {
    oauth2SecurityScheme: { flows: { clientCredentials: { tokenUrl: 't', scopes: {} } } }
  })
})

await t.test('enums are accepted by name or number, and nothing else', async t => {
  t.equal(decode(TaskStatusSchema, { state: 6 }).state, 'TASK_STATE_INPUT_REQUIRED')
  t.equal(decode(MessageSchema, { ...message, role: 2 }).role, 'ROLE_AGENT')
  for (const status of [0, 'TASK_STATE_UNSPECIFIED', null])
    t.strictSame(decode(ListTasksRequestSchema, { status }), {}, 'an unspecified filter is none')
  const one =
    'state must be one of TASK_STATE_SUBMITTED, TASK_STATE_WORKING, TASK_STATE_COMPLETED, TASK_STATE_FAILED, TASK_STATE_CANCELED, TASK_STATE_INPUT_REQUIRED, TASK_STATE_REJECTED, TASK_STATE_AUTH_REQUIRED'
  for (const state of [
    0,
    9,
    1.5,
    -1,
    '1',
    'TASK_STATE_UNSPECIFIED',
    'working',
    'TASK_STATE_CANCELLED',
    '',
    'constructor',
    '__proto__',
    true,
    [],
    {}
  ]) {
    t.strictSame(violations(TaskStatusSchema, { state }), [one], JSON.stringify(state))
  }
  t.match(violations(TaskStatusSchema, {}), [/^state is required and must be one of/])
})

await t.test('base64 of either alphabet, padded or not, is decoded to canonical form', async t => {
  const expected = [
    ['', ''],
    ['aGk=', 'aGk='],
    ['aGk', 'aGk='],
    ['YQ==', 'YQ=='],
    ['YQ', 'YQ=='],
    ['-_-_', '+/+/'],
    ['+/-_', '+/+/'],
    ['-_8', '+/8='],
    ['YWJj', 'YWJj'],
    ['YR==', 'YQ=='],
    ['aGl', 'aGk=']
  ]
  for (const [raw, canonical] of expected)
    t.strictSame(decode(PartSchema, { raw }), { raw: canonical }, JSON.stringify(raw))
  for (const raw of [
    'a',
    'aGk==',
    'YQ=',
    '=',
    '==',
    '====',
    'aG k',
    'aGk\n',
    'a=Gk',
    'aGk=aGk=',
    'é===',
    'YWJj=',
    'YWJj====',
    5,
    [],
    {}
  ]) {
    t.strictSame(violations(PartSchema, { raw }), ['raw must be base64'], JSON.stringify(raw))
  }
})

await t.test('timestamps of any offset and precision are decoded to UTC with milliseconds', async t => {
  const expected = [
    ['2023-10-27T10:00:00Z', '2023-10-27T10:00:00.000Z'],
    ['2023-10-27T10:00:00.1Z', '2023-10-27T10:00:00.100Z'],
    ['2023-10-27T10:00:00.123456789Z', '2023-10-27T10:00:00.123Z'],
    ['2023-10-27t10:00:00.999999z', '2023-10-27T10:00:00.999Z'],
    ['2023-10-27T10:00:00+02:00', '2023-10-27T08:00:00.000Z'],
    ['2023-12-31T23:30:00.5-05:30', '2024-01-01T05:00:00.500Z'],
    ['2024-02-29T00:00:00-00:00', '2024-02-29T00:00:00.000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999999999Z', '9999-12-31T23:59:59.999Z'],
    ['0000-12-31T23:00:00-01:00', '0001-01-01T00:00:00.000Z']
  ]
  for (const [timestamp, canonical] of expected)
    t.equal(decode(TaskStatusSchema, { state: 1, timestamp }).timestamp, canonical, JSON.stringify(timestamp))
})

await t.test('timestamps that do not exist or violate RFC 3339 are refused', async t => {
  const bad = [
    '',
    '2023-10-27',
    '2023-10-27T10:00:00',
    '2023-10-27 10:00:00Z',
    '2023-10-27T10:00Z',
    '2023-10-27T10:00:00.Z',
    '2023-10-27T10:00:00.1234567890Z',
    '2023-10-27T10:00:00+0200',
    '2023-10-27T10:00:00+02',
    '2023-10-27T10:00:00+24:00',
    '2023-10-27T10:00:00+00:60',
    '2023-02-29T00:00:00Z',
    '2023-13-01T00:00:00Z',
    '2023-00-01T00:00:00Z',
    '2023-01-00T00:00:00Z',
    '2023-04-31T00:00:00Z',
    '2023-01-01T24:00:00Z',
    '2023-01-01T00:60:00Z',
    '2016-12-31T23:59:60Z',
    '0000-12-31T23:59:59Z',
    '0001-01-01T00:00:00+00:01',
    '9999-12-31T23:59:59-00:01',
    '+12023-01-01T00:00:00Z',
    '2023-10-27T10:00:00Z\n',
    1698400800,
    {},
    []
  ]
  for (const timestamp of bad) {
    t.strictSame(
      violations(TaskStatusSchema, { state: 1, timestamp }),
      ['timestamp must be an RFC 3339 timestamp in the years 0001 to 9999'],
      JSON.stringify(timestamp)
    )
  }
})

await t.test('whole numbers are accepted as numbers or decimal text within their range', async t => {
  for (const [given, value] of [
    [0, 0],
    [-0, 0],
    ['0', 0],
    ['-0', 0],
    ['7', 7],
    [1e3, 1000],
    ['2147483647', 2147483647]
  ] as const) {
    t.strictSame(
      decode(GetTaskRequestSchema, { id: 't', historyLength: given }),
      { id: 't', historyLength: value },
      JSON.stringify(given)
    )
  }
  t.ok(Object.is(decode(GetTaskRequestSchema, { id: 't', historyLength: -0 }).historyLength, 0), 'minus zero is zero')
  for (const historyLength of [
    -1,
    '-1',
    1.5,
    '1.5',
    '1e2',
    '',
    ' 1',
    '01',
    '0x1',
    2147483648,
    '2147483648',
    Number.NaN,
    Infinity,
    true,
    [],
    {}
  ]) {
    t.strictSame(
      violations(GetTaskRequestSchema, { id: 't', historyLength }),
      ['historyLength must be a whole number from 0 to 2147483647'],
      JSON.stringify(historyLength)
    )
  }
  for (const pageSize of [1, 100, '50'])
    t.equal(decode(ListTasksRequestSchema, { pageSize }).pageSize, Number(pageSize))
  for (const pageSize of [0, 101, -1, '101'])
    t.strictSame(violations(ListTasksRequestSchema, { pageSize }), ['pageSize must be a whole number from 1 to 100'])
})

await t.test('a boolean is true or false and no other spelling', async t => {
  for (const includeArtifacts of ['true', 'false', 1, 0, '', [], {}]) {
    t.strictSame(
      violations(ListTasksRequestSchema, { includeArtifacts }),
      ['includeArtifacts must be true or false'],
      JSON.stringify(includeArtifacts)
    )
  }
})

await t.test('a part holds exactly one of text, raw, url and data', async t => {
  const wanted = 'must have exactly one of text, raw, url, data'
  const bad: [unknown, string][] = [
    [{}, wanted],
    [{ filename: 'x' }, wanted],
    [{ text: null }, wanted],
    [{ text: 'x', url: 'https://x' }, `${wanted}, not text and url`],
    [{ text: '', raw: '' }, `${wanted}, not text and raw`],
    [{ text: 'x', data: null }, `${wanted}, not text and data`],
    [{ kind: 'text', file: {} }, wanted]
  ]
  for (const [part, description] of bad) {
    t.strictSame(
      violations(SendMessageRequestSchema, { message: { ...message, parts: [{ text: 'x' }, part] } }),
      [`message.parts[1] ${description}`],
      JSON.stringify(part)
    )
  }
  for (const data of [null, 0, false, '', [], {}, { a: null }])
    t.strictSame(decode(PartSchema, { data }), { data }, 'any JSON value is data')
  t.strictSame(violations(PartSchema, { data: () => 1 }), ['data must be a JSON value'])
  t.strictSame(violations(PartSchema, { data: 1n }), ['data must be a JSON value'])
  t.strictSame(violations(PartSchema, { url: '' }), ['url must be a non-empty string'])
  t.strictSame(
    violations(PartSchema, Object.create({ text: 'x' })),
    ['params must have exactly one of text, raw, url, data'],
    'inherited members do not count'
  )
})

await t.test('a part in a list decodes as it does alone', async t => {
  class Written {
    get text() {
      return 'x'
    }
  }
  const named = Object.assign(Object.create({ text: 'x' }), { media_type: 'b' })
  const given: readonly unknown[] = [
    { text: 'x' },
    { text: '' },
    {
      get text() {
        return 'x'
      }
    },
    { text: 'x', kind: 'text' },
    { text: 'x', media_type: 'b' },
    { kind: 'text', text: 'x' },
    { text: 5 },
    { text: null },
    { text: undefined },
    { Text: 'x' },
    {},
    Object.create({ text: 'x' }),
    new Written(),
    named,
    Object.assign(['x'], { text: 'x' }),
    'x',
    null,
    undefined
  ]
  for (const part of given) {
    const alone = tryDecode(PartSchema, part, 'message.parts[0]')
    const inList = tryDecode(MessageSchema, { ...message, parts: [part] }, 'message')
    t.strictSame(inList.value?.parts ?? inList.violations, alone.violations ?? [alone.value])
    if (inList.value) t.not(inList.value.parts[0], part, 'and a copy')
  }
  const sparse: unknown[] = [{ text: 'x' }]
  sparse[2] = { text: 'y' }
  t.strictSame(
    violations(MessageSchema, { ...message, parts: sparse }),
    violations(MessageSchema, { ...message, parts: [{ text: 'x' }, undefined, { text: 'y' }] })
  )
})

await t.test('`in` distinguishes the kinds of part and the items of a stream', async t => {
  const parts: Part[] = [{ text: 'x' }, { raw: 'aGk=', filename: 'a', mediaType: 'b' }, { url: 'u' }, { data: null }]
  t.strictSame(parts.map(describe), ['X', '4 b', 'u', 'null'])
  const item = decode(StreamResponseSchema, { task })
  t.equal('task' in item ? item.task.status.state : undefined, 'TASK_STATE_INPUT_REQUIRED')
})

await t.test('a oneof with no member or two is refused', async t => {
  const wanted = 'must have exactly one of task, message, statusUpdate, artifactUpdate'
  t.strictSame(violations(StreamResponseSchema, {}, 'result'), [`result ${wanted}`])
  t.strictSame(violations(StreamResponseSchema, { task, message: userMessage }), [
    `params ${wanted}, not task and message`
  ])
  t.strictSame(
    violations(SecuritySchemeSchema, { oauth2_security_scheme: { flows: { implicit: {}, password: {} } } }),
    [
      'oauth2SecurityScheme.flows must have exactly one of authorizationCode, clientCredentials, implicit, password, deviceCode, not implicit and password'
    ]
  )
})

await t.test('ids have 1 to 128 characters and no control characters', async t => {
  for (const id of ['a', 'x'.repeat(128), 'ä 日本', '../x']) t.equal(decode(CancelTaskRequestSchema, { id }).id, id)
  for (const id of ['', 'x'.repeat(129), 'a\u0000b', 'a\n', '\u001F', '\u007F', 5, true, [], {}]) {
    t.strictSame(violations(CancelTaskRequestSchema, { id }), [`id must be ${ID}`], JSON.stringify(id))
  }
  const long = 'x'.repeat(129)
  t.strictSame(
    violations(MessageSchema, {
      ...message,
      messageId: long,
      contextId: long,
      taskId: '\t',
      referenceTaskIds: ['ok', '']
    }),
    [`messageId must be ${ID}`, `contextId must be ${ID}`, `taskId must be ${ID}`, `referenceTaskIds[1] must be ${ID}`]
  )
  t.strictSame(decode(PartSchema, { text: 'a\u0000b' }), { text: 'a\u0000b' }, 'text keeps them')
})

await t.test('an incomplete message is refused with the missing members', async t => {
  const cases: [unknown, string[]][] = [
    [{}, ['message is required and must be an object']],
    [{ message: null }, ['message is required and must be an object']],
    [{ message: [] }, ['message must be an object']],
    [{ message: 'x' }, ['message must be an object']],
    [
      { message: {} },
      [
        `message.messageId is required and must be ${ID}`,
        'message.role is required and must be one of ROLE_USER, ROLE_AGENT',
        'message.parts is required and must be a list of at least one'
      ]
    ],
    [{ message: { ...message, parts: [] } }, ['message.parts must be a list of at least one']],
    [{ message: { ...message, parts: { text: 'x' } } }, ['message.parts must be a list of at least one']],
    [{ message: { ...message, parts: [null] } }, ['message.parts[0] must be an object']],
    [{ message: { ...message, parts: [{ text: 5 }] } }, ['message.parts[0].text must be a string']],
    [
      { message: { ...message, parts: [{ text: 'x', media_type: 5 }] } },
      ['message.parts[0].mediaType must be a string']
    ],
    [{ message: { ...message, metadata: [] } }, ['message.metadata must be an object']],
    [{ message: { ...message, extensions: 'x' } }, ['message.extensions must be a list']],
    [{ message: { ...message, extensions: [null] } }, ['message.extensions[0] must be a non-empty string']],
    [{ message: { ...message, role: 'user' } }, ['message.role must be one of ROLE_USER, ROLE_AGENT']],
    [{ message: { ...message, role: 'ROLE_AGENT' } }, ['message.role must be ROLE_USER in a message from a client']],
    [{ message, tenant: false }, ['tenant must be a string']],
    [{ message, configuration: { returnImmediately: 0 } }, ['configuration.returnImmediately must be true or false']],
    [
      { message, configuration: { taskPushNotificationConfig: {} } },
      ['configuration.taskPushNotificationConfig.url is required and must be a non-empty string']
    ]
  ]
  for (const [request, expected] of cases)
    t.strictSame(violations(SendMessageRequestSchema, request), expected, JSON.stringify(request))
})

await t.test('a push configuration needs its task only on creation', async t => {
  t.strictSame(violations(CreateTaskPushNotificationConfigRequestSchema, { url: 'https://x' }), [
    `taskId is required and must be ${ID}`
  ])
})

await t.test('an incomplete card is refused with the missing members', async t => {
  t.strictSame(
    violations(AgentCardSchema, { ...agentCard, name: '', supportedInterfaces: [], capabilities: null, skills: 'x' }),
    [
      'name must be a non-empty string',
      'supportedInterfaces must be a list of at least one',
      'capabilities is required and must be an object',
      'skills must be a list'
    ]
  )
  t.strictSame(violations(AgentCardSchema, { ...agentCard, securitySchemes: { 'urn:x': { mtlsSecurityScheme: 1 } } }), [
    'securitySchemes["urn:x"].mtlsSecurityScheme must be an object'
  ])
})

await t.test('a map with a name that could reach a prototype is refused', async t => {
  const schemes: unknown = JSON.parse('{"__proto__":{"mtlsSecurityScheme":{}}}')
  t.strictSame(violations(AgentCardSchema, { ...agentCard, securitySchemes: schemes }), [
    'securitySchemes.__proto__ must not have this name'
  ])
})

await t.test('names that could reach a prototype are no fields', async t => {
  const input: unknown = JSON.parse('{"__proto__":{"messageId":"m"},"constructor":1,"role":1,"parts":[{"text":"x"}]}')
  t.strictSame(violations(MessageSchema, input), [`messageId is required and must be ${ID}`])
  t.equal(Reflect.get({}, 'messageId'), undefined)
})

await t.test('any value gives a result or InvalidParams', async t => {
  const values = [
    undefined,
    null,
    true,
    0,
    1.5,
    Number.NaN,
    'x',
    [],
    [[]],
    () => 1,
    Symbol('x'),
    1n,
    new Date(0),
    new Map(),
    /x/
  ]
  for (const [name, schema] of samples) {
    for (const value of values) {
      if (name === 'ListTasksRequest' || name.endsWith('Response') || name === 'GetExtendedAgentCardRequest') continue
      t.throws(() => decode(schema, value), { name: 'A2AError', code: 'InvalidParams' }, `${name} ${typeof value}`)
    }
  }
  for (const value of values)
    t.equal(
      tryDecode(MessageSchema, {
        messageId: value,
        role: value,
        parts: value,
        metadata: value,
        extensions: value,
        contextId: value
      }).value,
      undefined
    )
})

await t.test('the error names the first field, and each field in its violations, below the root', async t => {
  t.throws(
    () => decode(MessageSchema, { role: 1 }, 'params.message'),
    new A2AError(
      'InvalidParams',
      `Invalid parameters: params.message.messageId is required and must be ${ID} (and 1 more)`,
      {
        violations: [
          { field: 'params.message.messageId', description: `is required and must be ${ID}` },
          { field: 'params.message.parts', description: 'is required and must be a list of at least one' }
        ]
      }
    )
  )
  t.throws(() => decode(CancelTaskRequestSchema, { id: 1 }), { message: `Invalid parameters: id must be ${ID}` })
  t.throws(() => decode(CancelTaskRequestSchema, []), { message: 'Invalid parameters: params must be an object' })
})

await t.test('at most 20 violations are reported, and the rest of a long list is skipped', async t => {
  let looked = 0
  const bad = () => ({
    get text() {
      looked += 1
      return 5
    }
  })
  t.equal(violations(ArtifactSchema, { artifactId: 'a', parts: Array.from({ length: 10_000 }, bad) }).length, 20)
  t.ok(looked < 1000)
  looked = 0
  const schemes = Object.fromEntries(
    Array.from({ length: 10_000 }, (_, index) => [
      `s${index}`,
      {
        get mtlsSecurityScheme() {
          looked += 1
          return 5
        }
      }
    ])
  )
  t.equal(violations(AgentCardSchema, { ...agentCard, securitySchemes: schemes }).length, 20)
  t.ok(looked < 1000)
  t.equal(
    violations(TaskSchema, {
      history: Array.from({ length: 30 }, () => ({})),
      artifacts: Array.from({ length: 30 }, () => 1)
    }).length,
    20
  )
})

await t.test('a schema works the same when zod may not generate code', async t => {
  z.config({ jitless: true })
  t.teardown(() => z.config({ jitless: false }))
  const schema: Schema<string> = z.string()
  t.equal(compileSchema(schema), schema)
})
