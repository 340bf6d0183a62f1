import t from 'tap'
import { decode, int64, tryDecode, type Schema } from '../../../machines/protocol/codec/decode.ts'
import {
  ANSWER_SCHEMAS,
  GET_TASK_REQUESTS,
  LIST_TASKS_REQUESTS,
  type RequestForm,
  SEND_MESSAGE_REQUESTS
} from '../../../machines/protocol/objects.ts'
import { NATIVE_VERSIONS, nativeVersionIn, checkVersion } from '../../../machines/protocol/versions.ts'
import { refusal } from '../../fixtures/runtime/runtime-helpers.ts'

const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] }
const WANTED = 'must be a whole number from 0 to 9223372036854775807, as text above 9007199254740991'
const FORMS: readonly RequestForm[] = ['1.0', 'conditional', '1.1']

function violations(schema: Schema<unknown>, value: unknown): string[] {
  return (tryDecode(schema, value).violations ?? []).map(({ field, description }) => `${field} ${description}`)
}

await t.test('an int64 is decimal text, and a JSON number is accepted', async t => {
  for (const [given, decoded] of [
    ['0', '0'],
    [0, '0'],
    [-0, '0'],
    [7, '7'],
    ['7', '7'],
    [2 ** 53 - 1, '9007199254740991'],
    ['9007199254740993', '9007199254740993'],
    ['999999999999999999', '999999999999999999'],
    ['9223372036854775807', '9223372036854775807']
  ] as const)
    t.equal(decode(int64, given), decoded, String(given))
})

await t.test('a value that is negative, fractional, too large or no number is no int64', async t => {
  for (const given of [
    -1,
    '-1',
    1.5,
    '1.5',
    '1e3',
    // JSON.parse rounds 2^53 + 1 to this one.
    2 ** 53,
    2 ** 63,
    '9223372036854775808',
    '10000000000000000000',
    '07',
    ' 7',
    '',
    'x',
    true,
    {},
    [],
    NaN
  ])
    t.strictSame(violations(int64, given), [`params ${WANTED}`], JSON.stringify(given))
})

await t.test('a request has conditions in 1.1, and in 1.0 of a server that speaks both', async t => {
  const given = { id: 't', currentGeneration: 5, historyLength: 1, timelineLength: 2 }
  const configuration = { if_generation_match: '5', timelineLength: 2, historyLength: 0 }
  const expected: Record<RequestForm, readonly [object, object, object]> = {
    '1.0': [{ id: 't', historyLength: 1 }, { historyLength: 0 }, {}],
    conditional: [
      { id: 't', historyLength: 1, currentGeneration: '5' },
      { historyLength: 0, ifGenerationMatch: '5' },
      {}
    ],
    '1.1': [
      { id: 't', historyLength: 1, currentGeneration: '5', timelineLength: 2 },
      { historyLength: 0, ifGenerationMatch: '5', timelineLength: 2 },
      { timelineLength: 2 }
    ]
  }
  for (const form of FORMS) {
    const [get, sent, listed] = expected[form]
    t.strictSame(decode(GET_TASK_REQUESTS[form], given), get, form)
    t.strictSame(decode(SEND_MESSAGE_REQUESTS[form], { message, configuration }).configuration, sent, form)
    t.strictSame(decode(LIST_TASKS_REQUESTS[form], { timelineLength: 2 }), listed, form)
  }
})

await t.test('a condition of 0 is a condition, and null is none', async t => {
  t.strictSame(decode(GET_TASK_REQUESTS['1.1'], { id: 't', currentGeneration: '0' }), {
    id: 't',
    currentGeneration: '0'
  })
  t.strictSame(decode(GET_TASK_REQUESTS['1.1'], { id: 't', currentGeneration: null }), { id: 't' })
})

await t.test('an invalid condition or length is refused where it counts, and ignored elsewhere', async t => {
  for (const [form, isRead, isBounded] of [
    ['1.0', false, false],
    ['conditional', true, false],
    ['1.1', true, true]
  ] as const) {
    t.strictSame(
      violations(GET_TASK_REQUESTS[form], { id: 't', currentGeneration: '-1' }),
      isRead ? [`currentGeneration ${WANTED}`] : [],
      form
    )
    t.strictSame(
      violations(SEND_MESSAGE_REQUESTS[form], { message, configuration: { ifGenerationMatch: 'x' } }),
      isRead ? [`configuration.ifGenerationMatch ${WANTED}`] : [],
      form
    )
    t.strictSame(
      violations(LIST_TASKS_REQUESTS[form], { timelineLength: -1 }),
      isBounded ? ['timelineLength must be a whole number from 0 to 2147483647'] : [],
      form
    )
  }
})

await t.test('answers keep the members of 1.1 in 1.1, and drop them in 1.0', async t => {
  const status = { state: 'TASK_STATE_WORKING' }
  const artifact = { artifactId: 'a', parts: [{ text: 'x' }] }
  const numbered = { ...artifact, startGeneration: '4', endGeneration: '6' }
  const timeline = [
    { message, generation: '1' },
    { status, generation: '2' }
  ]
  const plain = { id: 't', status, artifacts: [artifact], history: [message] }
  const task = { id: 't', status, artifacts: [numbered], history: [message], generation: '6', timeline }
  const page = { nextPageToken: '', pageSize: 50, totalSize: 1 }
  const event = { taskId: 't', contextId: 'c' }
  const { '1.0': before, '1.1': next } = ANSWER_SCHEMAS
  t.strictSame(decode(next.task, task), task)
  t.strictSame(decode(before.task, task), plain)
  t.strictSame(decode(next.sendMessage, { task }), { task })
  t.strictSame(decode(before.sendMessage, { task }), { task: plain })
  t.strictSame(decode(next.listTasks, { tasks: [task], ...page }), { tasks: [task], ...page })
  t.strictSame(decode(before.listTasks, { tasks: [task], ...page }), { tasks: [plain], ...page })
  for (const [given, others] of [
    [{ statusUpdate: { ...event, status, generation: '6' } }, { statusUpdate: { ...event, status } }],
    [{ artifactUpdate: { ...event, artifact: numbered, generation: '6' } }, { artifactUpdate: { ...event, artifact } }]
  ]) {
    t.strictSame(decode(next.event, given), given)
    t.strictSame(decode(before.event, given), others)
  }
})

await t.test('a generation of 0 is none, and one as a number becomes text', async t => {
  const status = { state: 'TASK_STATE_WORKING' }
  t.strictSame(decode(ANSWER_SCHEMAS['1.1'].task, { id: 't', status, generation: 0 }), { id: 't', status })
  t.strictSame(decode(ANSWER_SCHEMAS['1.1'].task, { id: 't', status, generation: '0' }), { id: 't', status })
  t.strictSame(decode(ANSWER_SCHEMAS['1.1'].task, { id: 't', status, generation: 3 }), {
    id: 't',
    status,
    generation: '3'
  })
})

await t.test('an entry of the timeline of an unknown kind is read as its generation', async t => {
  const status = { state: 'TASK_STATE_WORKING' }
  const timeline = [{ toolCall: { name: 'x' }, generation: 2 }]
  t.strictSame(decode(ANSWER_SCHEMAS['1.1'].task, { id: 't', status, timeline }), {
    id: 't',
    status,
    timeline: [{ generation: '2' }]
  })
})

await t.test('a version is read without its patch, among those that are spoken', async t => {
  t.equal(nativeVersionIn('1.1.3', NATIVE_VERSIONS), '1.1')
  t.equal(nativeVersionIn('1.1', ['1.0']), undefined)
  t.equal(checkVersion('1.0.1', NATIVE_VERSIONS), '1.0')
  for (const [given, versions, text] of [
    ['1.1', ['1.0'], 'The request has A2A-Version "1.1"; this agent speaks 1.0. Send A2A-Version: 1.0.'],
    [
      '2.0',
      NATIVE_VERSIONS,
      'The request has A2A-Version "2.0"; this agent speaks 1.1 and 1.0. Send A2A-Version: 1.1 or 1.0.'
    ],
    [
      '',
      NATIVE_VERSIONS,
      'The request names no A2A-Version, which means 0.3; this agent speaks 1.1 and 1.0. Send A2A-Version: 1.1 or 1.0.'
    ]
  ] as const) {
    const error = await refusal(Promise.resolve().then(() => checkVersion(given, versions)))
    t.match(error, { code: 'VersionNotSupported', message: text, metadata: { supportedVersions: versions.join(', ') } })
  }
})
