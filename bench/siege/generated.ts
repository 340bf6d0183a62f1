import * as fc from 'fast-check'
import * as z from 'zod'
import type { Schema } from '../../machines/protocol/codec/decode.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { OPERATIONS } from '../../machines/protocol/operations.ts'

/**
 * Requests made from the schemas of the protocol, each with up to three changes. `$TASK`, `$ASKING` and `$FOREIGN`
 * stand for ids.
 */

type JsonSchema = Readonly<Record<string, unknown>>
type Change = (value: unknown, pick: (below: number) => number) => unknown

/** Marks text that JSON.stringify would not write: the text between the signs is written unchanged. */
const LITERAL = /"@@([^"@]*)@@"/g

const id = fc.constantFrom('$TASK', '$TASK', '$ASKING', '$FOREIGN', 'nobody', '', '__proto__', 'a'.repeat(128))
const errand = fc.oneof(
  fc.constantFrom('hello', 'ask', 'sleep', 'throw', 'tick 20 1', 'grow 3'),
  fc.string({ unit: 'binary', maxLength: 30 })
)
const data = fc.jsonValue({ maxDepth: 3 })
const struct = fc.dictionary(fc.string({ maxLength: 8 }), data, { maxKeys: 4 })
const mediaType = fc.constantFrom('text/plain', 'application/json', 'x', '*/*', 'text/plain; charset=utf-16')
const part = fc.oneof(
  fc.record({ text: errand }),
  fc.record({ data }),
  fc.record({ raw: fc.base64String() }),
  fc.record({ url: fc.constant('file:///dev/zero') }),
  fc.record(
    { text: errand, data, mediaType, filename: fc.constantFrom('../../x', 'aux .txt', 'a\u0000b'), metadata: struct },
    { requiredKeys: [] }
  )
)

/** Values by field name, for fields whose schema does not show their form. No address is reachable. */
const FIELDS: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  id,
  taskId: id,
  metadata: struct,
  contextId: fc.constantFrom('one', 'two', ''),
  messageId: fc.oneof(fc.uuid(), fc.constantFrom('again', '')),
  parts: fc.array(part, { minLength: 1, maxLength: 4 }),
  referenceTaskIds: fc.array(id, { maxLength: 40 }),
  extensions: fc.array(fc.constantFrom('urn:taskchart:extension:reliability:1', 'urn:x', ''), { maxLength: 3 }),
  acceptedOutputModes: fc.array(mediaType, { maxLength: 3 }),
  url: fc.constantFrom('https://127.0.0.1:1/', 'http://[::1]/', 'file:///', 'https://', ''),
  historyLength: fc.integer({ min: -2, max: 5 }),
  pageSize: fc.integer({ min: -1, max: 102 }),
  pageToken: fc.oneof(fc.base64String(), fc.constant('')),
  statusTimestampAfter: fc.constantFrom('2026-01-01T00:00:00Z', '9999-12-31T23:59:60Z', '0000-00-00', 'now')
}

/** Values that are wrong for most fields. */
const STRANGERS: readonly unknown[] = [
  null,
  true,
  0,
  -0,
  2 ** 53,
  -(2 ** 63),
  '@@1e999@@',
  '@@-1e999@@',
  '@@1E-999@@',
  '@@00@@',
  '@@NaN@@',
  '',
  ' ',
  '\u0000',
  '\ud800',
  'a\udfffb',
  '\ufeff',
  'a'.repeat(129),
  'ä'.repeat(600_000),
  [],
  {},
  [[[]]],
  '@@{"__proto__":{"a":1}}@@',
  '@@{"constructor":1}@@',
  '@@{"a":1,"a":2}@@',
  `@@${'['.repeat(70)}${']'.repeat(70)}@@`,
  `@@[${'0,'.repeat(250_000)}0]@@`,
  '@@{"toJSON":1,"then":2,"length":-1}@@',
  'TASK_STATE_UNSPECIFIED',
  'ROLE_AGENT',
  99,
  '1'
]

const NAMES = [
  '__proto__',
  'constructor',
  'message_id',
  'MESSAGEID',
  'parts',
  'then',
  'toString',
  '',
  '\ud800',
  '0',
  'kind',
  'n'.repeat(600_000)
]

const CHANGES: readonly Change[] = [
  (_, pick) => STRANGERS[pick(STRANGERS.length)],
  (_, pick) => STRANGERS[pick(STRANGERS.length)],
  value => [value],
  value => ({ value }),
  value => (Array.isArray(value) ? Array.from({ length: 50 }, () => value).flat() : JSON.stringify(value)),
  (value, pick) =>
    isObject(value) ? { ...value, [NAMES[pick(NAMES.length)] ?? '']: STRANGERS[pick(STRANGERS.length)] } : value,
  (value, pick) =>
    isObject(value)
      ? Object.fromEntries(Object.entries(value).filter((_, i, all) => i !== pick(all.length)))
      : undefined
]

const SERVICE = fc.dictionary(
  fc.constantFrom(
    'a2a-version',
    'a2a-extensions',
    'taskchart-after-generation',
    'taskchart-if-generation-match',
    'taskchart-current-generation',
    'traceparent',
    'baggage',
    'authorization',
    'x'
  ),
  fc.constantFrom<unknown>(
    '1.0',
    '0.3',
    'urn:taskchart:extension:reliability:1',
    '0',
    '1',
    '99999999999999999999',
    '-1',
    '',
    'a'.repeat(9000),
    1,
    null
  ),
  { maxKeys: 4 }
)

const METHODS = [
  ...Object.keys(OPERATIONS),
  'cancelStream',
  'ping',
  'message/send',
  'tasks/get',
  'tasks/send',
  '__proto__'
]

/** Parameters of one operation, made from its schema, mostly with changes. */
const params = fc
  .tuple(
    fc.oneof(...Object.values(OPERATIONS).map(({ requests }) => paramsOf(requests['1.0']))),
    fc.array(fc.tuple(fc.nat(), fc.array(fc.nat(), { minLength: 4, maxLength: 4 })), { maxLength: 3 })
  )
  .map(([value, changes]) =>
    changes.reduce((value, [which, where]) => changed(value, CHANGES[which % CHANGES.length] as Change, where), value)
  )

const envelope = fc
  .record(
    {
      jsonrpc: fc.constant('2.0'),
      id: fc.oneof(fc.nat(), fc.constantFrom<unknown>('__proto__', null, '@@1e999@@', '\ud800', -1.5, {})),
      method: fc.constantFrom(...METHODS),
      params,
      'a2a-service-parameters': SERVICE
    },
    { requiredKeys: ['method', 'params'] }
  )
  .map(written)

/** A text that is cut, or has something inserted. */
const spoilt = fc
  .tuple(
    envelope,
    fc.nat(),
    fc.constantFrom('', '\u0000', '\ud800', ',', '}', '"', '\\u', '\\ud800', '{"', '/*', '\ufeff')
  )
  .map(([text, at, put]) => `${text.slice(0, at % text.length)}${put}${put === '' ? '' : text.slice(at % text.length)}`)

/** Texts of JSON-RPC requests. */
export const requests: fc.Arbitrary<string> = fc.oneof(
  { weight: 5, arbitrary: envelope },
  { weight: 1, arbitrary: spoilt }
)

/** Bodies of REST requests. */
export const bodies: fc.Arbitrary<string> = params.map(written)

const segment = fc.oneof(
  id,
  fc.constantFrom(
    'tasks',
    'message:send',
    'message:stream',
    'v1',
    '%2e%2e',
    '..',
    '%00',
    '%',
    '*',
    'pushNotificationConfigs',
    'extendedAgentCard',
    '$TASK:cancel',
    '$TASK:subscribe',
    '.well-known',
    'agent-card.json'
  )
)
const query = fc.array(
  fc.tuple(
    fc.constantFrom(
      'pageSize',
      'pageToken',
      'status',
      'historyLength',
      'includeArtifacts',
      'contextId',
      'a2a-version',
      'token',
      '__proto__',
      'statusTimestampAfter'
    ),
    fc.constantFrom('', '1', '-1', 'true', 'TASK_STATE_WORKING', '%ff', '1e9', '2026-01-01T00:00:00Z')
  ),
  { maxLength: 4 }
)

/** Targets of HTTP requests. */
export const targets: fc.Arbitrary<string> = fc
  .tuple(
    fc.oneof(
      fc.constantFrom(
        '/',
        '/tasks',
        '/tasks/$TASK',
        '/message:send',
        '/message:stream',
        '/tasks/$TASK:subscribe',
        '/tasks/$TASK/pushNotificationConfigs'
      ),
      fc.array(segment, { maxLength: 4 }).map(all => `/${all.join('/')}`)
    ),
    query
  )
  .map(([path, query]) => (query.length === 0 ? path : `${path}?${query.map(pair => pair.join('=')).join('&')}`))

/** Lines of headers. */
export const headers: fc.Arbitrary<string[]> = fc.subarray(
  [
    'Content-Type: text/plain',
    'Content-Type: application/json; charset=utf-16',
    'Content-Type: application/a2a+json',
    'Content-Encoding: gzip',
    'Transfer-Encoding: chunked',
    'Expect: 100-continue',
    'Expect: x',
    'Connection: close',
    'Connection: Upgrade',
    'Upgrade: h2c',
    'Upgrade: websocket',
    'Accept: text/event-stream',
    'Accept: text/html',
    'Accept: x',
    'Accept-Encoding: gzip',
    'Range: bytes=0-1',
    'Last-Event-ID: 5',
    'Origin: https://evil.example',
    'Origin: null',
    'A2A-Version: 0.3',
    'A2A-Version: 9.9',
    'A2A-Extensions: urn:taskchart:extension:reliability:1',
    'taskchart-after-generation: 1',
    'taskchart-current-generation: 1',
    'taskchart-if-generation-match: 9',
    'traceparent: 00-x',
    'baggage: a=1',
    'Cookie: a=b',
    'X-HTTP-Method-Override: DELETE',
    'X-Forwarded-Host: evil.example',
    'Content-Length: 0'
  ],
  { maxLength: 3 }
)

/** Values of an arbitrary, the same for the same seed. */
export function made<T>(arbitrary: fc.Arbitrary<T>, seed: number, count: number): T[] {
  return fc.sample(arbitrary, { seed, numRuns: count })
}

function paramsOf(request: Schema<unknown>): fc.Arbitrary<unknown> {
  return valueOf(z.toJSONSchema(request, { io: 'output', unrepresentable: 'any' }), '')
}

function valueOf({ type, properties, required, enum: names }: JsonSchema, name: string): fc.Arbitrary<unknown> {
  const named = FIELDS[name]
  if (named) return named
  if (Array.isArray(names)) return fc.constantFrom(...(names as unknown[]))
  if (type === 'boolean') return fc.boolean()
  if (type === 'number') return fc.integer()
  if (type === 'string') return fc.string({ maxLength: 20 })
  if (!isObject(properties)) return data
  const members = Object.entries(properties).map(
    ([name, schema]) => [name, valueOf(schema as JsonSchema, name)] as const
  )
  return fc.record(Object.fromEntries(members), {
    requiredKeys: Array.isArray(required) ? required : [],
    noNullPrototype: true
  })
}

/** Makes a change somewhere in a value; the numbers choose the path. */
function changed(value: unknown, change: Change, [at = 0, ...further]: readonly number[]): unknown {
  const names = typeof value === 'object' && value !== null ? Object.keys(value) : []
  if (names.length === 0 || further.length === 0 || at % 5 === 0)
    return change(value, below => (at + (further[0] ?? 0)) % Math.max(1, below))
  const name = names[at % names.length] as string
  if (Array.isArray(value)) return value.with(Number(name), changed(value[Number(name)], change, further))
  return { ...(value as object), [name]: changed((value as Record<string, unknown>)[name], change, further) }
}

function written(value: unknown): string {
  return (JSON.stringify(value) ?? '').replaceAll(LITERAL, (_, text: string) => JSON.parse(`"${text}"`) as string)
}
