import { isDeepStrictEqual } from 'node:util'
import { membersOf, schemaOf } from '../../../adapters/conformance/emitted.ts'
import { decode } from '../../../machines/protocol/codec/decode.ts'
import { isTerminal, TASK_STATES, type TaskState } from '../../../machines/protocol/states.ts'
import { taskIn, textOf, userMessage } from '../../fixtures/runtime/runtime-helpers.ts'
import { read } from '../client.ts'
import { except, lastRow, newer, row, type Row } from '../row.ts'
import { withoutDefaults } from './emitted.ts'
import { NOT_03 } from './reasons.ts'

const PROTOBUF = except(['gRPC'], "gRPC carries protobuf, whose JSON is the codec's of the official SDK")
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/

/** §10.1: how A2A's objects are written. Most are about everything that the other rows heard. */
export const serialization: readonly Row[] = [
  lastRow(
    1,
    'M',
    '5.5',
    'Names in JSON are camelCase',
    async (t, { heard }) => {
      const members = membersOf(heard)
      t.ok(members.length > 500, 'much was heard')
      t.same(
        members.filter(({ name }) => !/^[a-z][a-zA-Z0-9]*$/.test(name)),
        []
      )
    },
    PROTOBUF
  ),
  lastRow(
    2,
    'M',
    '5.5',
    'Enums are the names of the proto',
    async (t, { heard }) => {
      const members = membersOf(heard)
      const states = members.filter(({ name }) => name === 'state').map(({ value }) => value)
      t.same(new Set(states), new Set(Object.keys(TASK_STATES)), 'every state was heard, and nothing else')
      const roles = members.filter(({ name }) => name === 'role').map(({ value }) => value)
      t.same(new Set(roles), new Set(['ROLE_USER', 'ROLE_AGENT']))
    },
    PROTOBUF,
    NOT_03
  ),
  lastRow(
    3,
    'M',
    '5.6.1',
    'Timestamps are ISO 8601 in UTC, written with Z',
    async (t, { heard }) => {
      const timestamps = membersOf(heard).filter(({ name }) => name === 'timestamp')
      t.ok(timestamps.length > 50)
      t.same(
        timestamps.filter(({ value }) => !INSTANT.test(String(value))),
        []
      )
    },
    PROTOBUF
  ),
  lastRow(
    4,
    'S',
    '5.6.1',
    'Timestamps have milliseconds',
    async (t, { heard }) => {
      const timestamps = membersOf(heard).filter(({ name }) => name === 'timestamp')
      t.ok(timestamps.length > 50)
      t.same(
        timestamps.filter(({ value }) => !/\.\d{3}Z$/.test(String(value))),
        []
      )
    },
    PROTOBUF
  ),
  lastRow(
    5,
    'M',
    '4, 5.7',
    'Required fields are there in everything emitted, and no fields that A2A does not know',
    async (t, { heard, binding }) => {
      t.ok(heard.length > 100)
      // What translates between us and the wire may write fields that have their default value.
      const written = binding.version === '1.0' && binding.name !== 'gRPC' ? (value: unknown) => value : withoutDefaults
      // A card of 0.3 is another object.
      const items = heard.filter(({ method }) => binding.version === '1.0' || method !== 'GetExtendedAgentCard')
      const wrong = items.filter(
        item => !isDeepStrictEqual(written(decode(schemaOf(item), item.value)), written(item.value))
      )
      t.same(wrong, [])
    }
  ),
  row(
    6,
    'S',
    '3.3.2, 5.7',
    'A request that lacks a required field is refused, and the field is named',
    async (t, { client, binding }) => {
      const { messageId, role, parts } = userMessage('x')
      for (const [field, params] of [
        ['messageId', { role, parts }],
        ['parts', { messageId, role }],
        ['role', { messageId, parts }]
      ] as const) {
        const { reason, fields, message } = await client.refusal('SendMessage', { message: params })
        t.equal(reason, 'INVALID_PARAMS', field)
        t.ok(
          fields.includes(`message.${field}`) || message.includes(field) || binding.name === 'gRPC',
          `${field} is named: ${message}`
        )
      }
    }
  ),
  row(7, 'M', '5.7', 'A message without parts is invalid', async (t, { client }) => {
    t.equal(
      (await client.refusal('SendMessage', { message: { ...userMessage('x'), parts: [] } })).reason,
      'INVALID_PARAMS'
    )
    t.equal(
      (await client.refusal('SendStreamingMessage', { message: { ...userMessage('x'), parts: [] } })).reason,
      'INVALID_PARAMS'
    )
  }),
  row(
    8,
    'S',
    '5.7',
    'Unknown fields are ignored, at any depth',
    async (t, { client }) => {
      const unknown = { future: { deep: [1, null] } }
      const message = { ...userMessage('x'), parts: [{ text: 'known', ...unknown }], ...unknown }
      const { result } = await client.call('SendMessage', { message, configuration: { ...unknown }, ...unknown })
      const { artifacts } = taskIn(result as never)
      t.same(artifacts?.[0]?.parts, [{ text: 'known' }])
    },
    except(['gRPC'], 'protobuf has no names on the wire')
  ),
  lastRow(
    9,
    'M',
    '3.2.3, 4.1.6',
    'A part has exactly one content, an answer and an event exactly one member',
    async (t, { heard, client }) => {
      for (const part of [{}, { text: 'a', data: 1 }, { text: 'a', url: 'https://example.com/' }]) {
        t.equal(
          (await client.refusal('SendMessage', { message: { ...userMessage('x'), parts: [part] } })).reason,
          'INVALID_PARAMS',
          JSON.stringify(part)
        )
      }
      const answers = heard.filter(({ method, streamed }) => method === 'SendMessage' || streamed)
      t.ok(answers.length > 50)
      t.same(
        answers.filter(({ value }) => Object.keys(value as object).length !== 1),
        []
      )
    },
    except(['gRPC'], 'protobuf has a oneof'),
    newer('0.3 tells parts and events apart by kind')
  ),
  row(10, 'M', '4.1.6, 5.5', 'Bytes are base64 and come back exactly', async (t, { client }) => {
    const raw = Buffer.from(Array.from({ length: 256 }, (_, i) => 255 - i)).toString('base64')
    const { artifacts } = await client.task('', {
      parts: [{ raw, filename: 'all.bin', mediaType: 'application/octet-stream' }]
    })
    t.same(artifacts?.[0]?.parts, [{ raw, filename: 'all.bin', mediaType: 'application/octet-stream' }])
  }),
  lastRow(
    11,
    'M',
    'A.2.1',
    'Nothing emitted has kind or final',
    async (t, { heard }) => {
      const members = membersOf(heard)
      t.ok(members.length > 500)
      t.same(
        members.filter(({ name }) => name === 'kind' || name === 'final'),
        []
      )
    },
    NOT_03
  ),
  row(
    12,
    'D',
    '5.5',
    'snake_case names and enum numbers are understood, null is data',
    async (t, { client }) => {
      const message = { message_id: 'snake', role: 1, parts: [{ data: null, media_type: 'application/json' }] }
      const { result } = await client.call('SendMessage', {
        message,
        configuration: { return_immediately: false, history_length: 1 }
      })
      const { artifacts, history } = taskIn(result as never)
      t.same(artifacts?.[0]?.parts, [{ data: null, mediaType: 'application/json' }])
      t.equal(history?.[0]?.messageId, 'snake')
    },
    PROTOBUF,
    NOT_03
  ),
  row(13, 'M', '14.1', 'Text is UTF-8', async (t, { client }) => {
    const text = 'žluťoučký kůň 帆船 🦎 \u0000\u2028 \\ "'
    const events = await read(client.stream(text))
    const echoed = events.flatMap(event => ('artifactUpdate' in event ? [textOf(event.artifactUpdate.artifact)] : []))
    t.same(echoed, [text])
    const { history, status } = await client.task(text)
    t.equal(textOf(history?.[0]), text)
    t.ok(isTerminal(status.state satisfies TaskState))
  })
]
