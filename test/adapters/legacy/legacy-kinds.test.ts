import t, { type Test } from 'tap'
import { httpHandler } from '../../../adapters/http/handler.ts'
import { dialect01, dialect03 } from '../../../adapters/legacy/index.ts'
import { GetParams01, IdParams01, SendParams01, SetPushParams01 } from '../../../adapters/legacy/v01-requests.ts'
import { method03 } from '../../../adapters/legacy/v03-requests.ts'
import { echo } from '../../fixtures/runtime/agents.ts'
import { start } from '../../fixtures/runtime/runtime-helpers.ts'
import { fieldOf, JSON_KINDS, membersOf, placesIn, textWith, type Place } from '../../fixtures/protocol/json-kinds.ts'
import { sampleOf } from '../../fixtures/sample.ts'

const metadata = { m: [1] }
const webhook = { url: 'https://example.com/', token: 't', authentication: { schemes: ['Bearer'], credentials: 'c' } }
const contents = [
  { text: 'x' },
  { file: { bytes: 'aGk=', name: 'f', mimeType: 'text/plain' } },
  { file: { uri: 'https://example.com/', name: 'f', mimeType: 'text/plain' } },
  { data: { a: 1 } }
]
const kindOf = (content: object) => String(Object.keys(content)[0])

const parts01 = contents.map(content => ({ type: kindOf(content), ...content, metadata }))
const sent01 = {
  id: 'i',
  sessionId: 's',
  message: { role: 'user', parts: parts01, metadata },
  pushNotification: webhook,
  historyLength: 1,
  metadata
}

/** The methods of 0.1, each with its schema and whole params. */
const METHODS_01: readonly [string, object, object][] = [
  ['tasks/send', SendParams01, sent01],
  ['tasks/sendSubscribe', SendParams01, sent01],
  ['tasks/get', GetParams01, { id: 'i', historyLength: 1, metadata }],
  ['tasks/resubscribe', GetParams01, { id: 'i', historyLength: 1, metadata }],
  ['tasks/cancel', IdParams01, { id: 'i', metadata }],
  ['tasks/pushNotification/set', SetPushParams01, { id: 'i', pushNotificationConfig: webhook }],
  ['tasks/pushNotification/get', IdParams01, { id: 'i', metadata }]
]

const drafts03 = [
  { file: { fileWithBytes: 'aGk=', mediaType: 'text/plain' } },
  { file: { fileWithUri: 'https://example.com/' } }
]
const parts03 = [...contents, ...drafts03].map(content => ({ kind: kindOf(content), ...content, metadata }))
const message03 = {
  kind: 'message',
  messageId: 'm',
  contextId: 'c',
  role: 'user',
  parts: parts03,
  metadata,
  extensions: ['urn:x'],
  referenceTaskIds: ['r']
}
const webhook03 = { ...webhook, id: 'w' }
const sent03 = {
  message: message03,
  configuration: {
    acceptedOutputModes: ['text/plain'],
    pushNotificationConfig: webhook03,
    historyLength: 1,
    blocking: false
  },
  metadata
}

const toTask03 = { ...sent03, message: { ...message03, taskId: 't' } }

/** The methods of 0.3 with whole params. */
const METHODS_03: readonly [string, object][] = [
  ['message/send', sent03],
  ['message/send', toTask03],
  ['message/stream', toTask03],
  ['tasks/get', { id: 'i', historyLength: 1, metadata }],
  ['tasks/cancel', { id: 'i', metadata }],
  ['tasks/resubscribe', { id: 'i', metadata }],
  ['tasks/pushNotificationConfig/set', { taskId: 'i', pushNotificationConfig: webhook03 }],
  ['tasks/pushNotificationConfig/get', { id: 'i', pushNotificationConfigId: 'w' }],
  ['tasks/pushNotificationConfig/list', { id: 'i', metadata }],
  ['tasks/pushNotificationConfig/delete', { id: 'i', pushNotificationConfigId: 'w' }],
  ['agent/getAuthenticatedExtendedCard', {}]
]

const { parts: _, ...head03 } = message03
const content = [
  { text: 'x' },
  { file: { fileWithBytes: 'aGk=', mimeType: 'text/plain' } },
  { file: { fileWithUri: 'https://example.com/' } },
  { data: { data: { a: 1 } } }
].map(part => ({ ...part, metadata }))
const proto = {
  request: { ...head03, role: 'ROLE_USER', content },
  configuration: {
    acceptedOutputModes: ['text/plain'],
    pushNotification: webhook03,
    historyLength: 1,
    blocking: false
  },
  metadata
}

/** The routes of 0.3 that take a body. */
const ROUTES_03: readonly [string, object][] = [
  ['/v1/message:send', proto],
  ['/v1/message:stream', proto],
  ['/v1/message:send', sent03],
  ['/v1/message:send', { message: proto.request }],
  ['/v1/tasks/i:cancel', { metadata }],
  ['/v1/tasks/i:subscribe', { metadata }],
  ['/v1/tasks/i/pushNotificationConfigs', { pushNotificationConfig: webhook03 }]
]

/** An agent in this process that speaks all versions, and whose webhooks go nowhere. */
function speaking(t: Test) {
  const push = { faultOf: async () => undefined, post: async () => ({ status: 200 }) }
  const { runtime } = start(
    t,
    { card: { name: 'Legacy', defaultInputModes: ['*/*'] }, work: echo },
    { push, limits: { advanced: { webhooksPerPrincipal: 100_000 } } }
  )
  const handler = httpHandler(runtime, { dialects: [dialect03(runtime), dialect01(runtime)] })
  return async (path: string, version: string, body: string): Promise<Answer> => {
    const response = await handler(
      new Request(`http://localhost${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'a2a-version': version },
        body
      })
    )
    const text = await response.text()
    const shown = text.includes('data: ') ? text.slice(text.lastIndexOf('data: ') + 6) : text
    const { error, code } = shown.trim() === '' ? {} : (JSON.parse(shown) as { error?: Told; code?: number })
    const { data, details = data && 'details' in data ? data.details : data } = error ?? {}
    return {
      status: response.status,
      code: code ?? error?.code,
      fields: (details ?? []).flatMap(({ fieldViolations = [] }) => fieldViolations.map(({ field }) => field)),
      text
    }
  }
}

interface Detail {
  readonly fieldViolations?: readonly { readonly field: string }[]
}

interface Told {
  readonly code?: number
  readonly data?: readonly Detail[] | { readonly details: readonly Detail[] }
  readonly details?: readonly Detail[]
}

interface Answer {
  readonly status: number
  readonly code: number | undefined
  readonly fields: readonly string[]
  readonly text: string
}

/**
 * What a wrong request may be answered with: the errors of JSON-RPC about requests, and those of A2A that it may really
 * mean.
 */
const FAIR: readonly (number | undefined)[] = [
  undefined,
  -32600,
  -32601,
  -32602,
  -32001,
  -32002,
  -32003,
  -32004,
  -32005,
  -32007
]

/** A field by its name in JSON-RPC: the proto has others. */
const plain = (field: string) =>
  field
    .replace(/^(?:params|body)\.?/, '')
    .replace(/^request\b/, 'message')
    .replace('.content', '.parts')
    .replace(/\bpushNotification\b/, 'pushNotificationConfig')
    .replace('.data.data', '.data')
    .replace('fileWithBytes', 'bytes')
    .replace('fileWithUri', 'uri')

/** Whether an error names a place, or what is around or inside it. */
function isNamed(fields: readonly string[], place: Place): boolean {
  const wanted = plain(fieldOf(place))
  return fields.map(plain).some(field => wanted.startsWith(field) || field.startsWith(wanted))
}

await t.test(
  'JSON of every kind in every place of a request of 0.1 and 0.3 is accepted, or refused with the name of the place',
  async t => {
    const send = speaking(t)
    const rows: {
      readonly path: string
      readonly version: string
      readonly place: Place
      readonly text: string
      readonly name: string
    }[] = []
    for (const kind of JSON_KINDS) {
      for (const [version, method, whole] of [
        ...METHODS_01.map(([method, , whole]) => ['0.1', method, whole] as const),
        ...METHODS_03.map(([method, whole]) => ['0.3', method, whole] as const)
      ]) {
        const request = { jsonrpc: '2.0', id: 1, method, params: whole }
        for (const place of placesIn(request))
          rows.push({
            path: '/',
            version: kind.length % 2 ? version : '',
            place: place.slice(1),
            text: textWith(request, place, kind),
            name: `${method} of ${version}: ${kind} as ${fieldOf(place)}`
          })
      }
      for (const [path, whole] of ROUTES_03) {
        for (const place of placesIn(whole))
          rows.push({
            path,
            version: '0.3',
            place,
            text: textWith(whole, place, kind),
            name: `POST ${path}: ${kind} as ${fieldOf(place)}`
          })
      }
    }
    let lastId = 0
    for (const { path, version, place, text, name } of sampleOf(t, rows, 2500)) {
      lastId += 1
      const answer = await send(path, version, text.replace('"id":"i"', `"id":"i${lastId}"`))
      if (!FAIR.includes(answer.code) || answer.status >= 500) t.fail(name, { text: answer.text })
      if (answer.code === -32602 && place.length > 0 && answer.fields.length > 0 && !isNamed(answer.fields, place))
        t.fail(`${name} is named in ${answer.text}`)
    }
    t.ok(rows.length > 10_000)
  }
)

await t.test('an object as id of a task of 0.1 is refused by name, whatever its members are', async t => {
  const send = speaking(t)
  for (const [method] of METHODS_01) {
    for (const id of ['{"toString":1}', '{"valueOf":1,"toString":1}', '[{"toString":1}]', '{"toJSON":1}']) {
      const { code, fields } = await send(
        '/',
        '0.1',
        `{"jsonrpc":"2.0","id":1,"method":"${method}","params":{"id":${id}}}`
      )
      t.equal(code, -32602)
      t.ok(fields.includes('id'))
    }
  }
})

await t.test('the requests of this table have every member of their schemas', t => {
  const known = (whole: object) =>
    new Set(placesIn(whole).map(place => place.filter(name => typeof name === 'string').join('.')))
  for (const [name, schema, whole] of [
    ...METHODS_01,
    ...METHODS_03.map(([name, whole]) => [name, method03(name)?.params ?? {}, whole] as const)
  ]) {
    const places = known(whole)
    const members = membersOf(schema).filter(member => whole !== sent03 || member !== 'message.taskId')
    t.ok(name === 'agent/getAuthenticatedExtendedCard' || members.length > 0, name)
    t.strictSame(
      members.filter(member => !places.has(member)),
      [],
      name
    )
  }
  t.end()
})
