import t from 'tap'
import {
  encodeOnce,
  errorFrame,
  methodsOf,
  noSuchMethod,
  readEnvelope,
  resultFrame,
  resultTexts,
  streamEndFrame
} from '../../../adapters/json-rpc/dispatch.ts'
import { A2AError } from '../../../machines/protocol/errors.ts'
import { OPERATIONS } from '../../../machines/protocol/operations.ts'
import { echo } from '../../fixtures/runtime/agents.ts'
import { collect, rejection, start } from '../../fixtures/runtime/runtime-helpers.ts'

const LIMITS = { depth: 64, nodes: 200_000 }

await t.test('an envelope gives the kind of a message and its contents', async t => {
  const request = readEnvelope(
    '{"jsonrpc":"2.0","id":"a","method":"M","params":{"x":1},"a2a-service-parameters":{"A2A-Version":"1.0","b":""}}',
    LIMITS
  )
  t.strictSame(request, {
    kind: 'request',
    id: 'a',
    method: 'M',
    params: { x: 1 },
    serviceParameters: new Map([
      ['a2a-version', '1.0'],
      ['b', '']
    ])
  })
  t.strictSame(readEnvelope('{"jsonrpc":"2.0","id":1,"method":"M"}', LIMITS), {
    kind: 'request',
    id: 1,
    method: 'M',
    params: {},
    serviceParameters: new Map()
  })
  t.strictSame(readEnvelope('{"jsonrpc":"2.0","method":"M","params":[1]}', LIMITS), {
    kind: 'notification',
    method: 'M',
    params: [1]
  })
  t.strictSame(readEnvelope('{"jsonrpc":"2.0","method":"M","a2a-service-parameters":7}', LIMITS), {
    kind: 'notification',
    method: 'M',
    params: undefined
  })
  for (const text of [
    '{"jsonrpc":"2.0","id":1,"result":null}',
    '{"jsonrpc":"2.0","id":null,"error":{}}',
    '{"jsonrpc":"2.0","result":1,"error":1}',
    '{"jsonrpc":"2.0","id":{},"error":1}'
  ]) {
    t.strictSame(readEnvelope(text, LIMITS), { kind: 'response' }, text)
  }
})

await t.test('the last spelling of a service parameter applies, and __proto__ is an ordinary name', async t => {
  const envelope = readEnvelope(
    '{"jsonrpc":"2.0","id":1,"method":"M","a2a-service-parameters":{"A2A-VERSION":"1.0","a2a-version":"0.3","__proto__":"x"}}',
    LIMITS
  )
  t.match(envelope, {
    kind: 'request',
    serviceParameters: new Map([
      ['a2a-version', '0.3'],
      ['__proto__', 'x']
    ])
  })
})

await t.test('an unexpected error is InternalError on the wire, without its text', async t => {
  for (const thrown of [
    new Error('s3cret'),
    's3cret',
    undefined,
    null,
    { code: -32001, message: 's3cret' },
    Object.assign(new Error('s3cret'), { code: 'TaskNotFound' })
  ]) {
    t.strictSame(JSON.parse(errorFrame('x', thrown)), {
      jsonrpc: '2.0',
      id: 'x',
      error: {
        code: -32603,
        message: 'Internal error',
        data: [
          { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'INTERNAL_ERROR', domain: 'a2a-protocol.org' }
        ]
      }
    })
  }
})

await t.test('an A2AError is sent as itself, without its cause', async t => {
  const error = new A2AError('TaskNotFound', 'Task "x" was not found.', {
    metadata: { taskId: 'x' },
    cause: new Error('s3cret')
  })
  t.equal(
    errorFrame(null, error),
    '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Task \\"x\\" was not found.","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"taskId":"x"}}]}}'
  )
})

await t.test('frames have exactly the expected text', async t => {
  const { head, end } = resultTexts('s', ['urn:a'])
  t.same(
    ['1', '[]'].map(result => head + result + end),
    [
      '{"jsonrpc":"2.0","id":"s","result":1,"a2a-service-parameters":{"a2a-extensions":"urn:a"}}',
      '{"jsonrpc":"2.0","id":"s","result":[],"a2a-service-parameters":{"a2a-extensions":"urn:a"}}'
    ],
    'a stream frames each of its events'
  )
  t.equal(resultFrame(7, '{"a":1}'), '{"jsonrpc":"2.0","id":7,"result":{"a":1}}')
  t.equal(resultFrame('7"', 'null', []), '{"jsonrpc":"2.0","id":"7\\"","result":null}')
  t.equal(
    resultFrame(7, '1', ['urn:a', 'urn:b']),
    '{"jsonrpc":"2.0","id":7,"result":1,"a2a-service-parameters":{"a2a-extensions":"urn:a,urn:b"}}'
  )
  t.equal(streamEndFrame('a'), '{"jsonrpc":"2.0","id":"a","streamEnd":true}')
})

await t.test('an object is encoded once, however often it is sent', async t => {
  let reads = 0
  const event = {
    get a() {
      return (reads += 1)
    }
  }
  t.equal(encodeOnce(event), '{"a":1}')
  t.equal(encodeOnce(event), '{"a":1}')
  t.equal(reads, 1)
  t.equal(encodeOnce({ ...event }), '{"a":2}', 'another object is another text')
})

await t.test('every operation of A2A is a method, and nothing else is', async t => {
  const { runtime } = start(t, { work: echo })
  const methods = methodsOf(runtime)
  const params = { id: 'nobody', taskId: 'nobody', url: 'https://a.example', pageToken: 'made up' }
  for (const [name, { streaming }] of Object.entries(OPERATIONS)) {
    const method = methods(name, '1.0')
    t.equal(method?.streaming, streaming)
    t.match(
      await rejection(
        method?.streaming ? collect(method.events(params, {})) : (method?.answer(params, {}) ?? Promise.resolve())
      ),
      { name: 'A2AError' },
      name
    )
  }
  for (const name of ['sendMessage', 'constructor', 'close', '', 'message/send']) {
    t.equal(methods(name, '1.0'), undefined)
    for (const version of ['', '0.3', 'x']) {
      const method = methods(name, version)
      t.match(
        await rejection(method && !method.streaming ? method.answer({}, {}) : Promise.resolve()),
        { code: 'VersionNotSupported' },
        'the version is checked before the name'
      )
    }
    for (const [version, told] of [
      ['1.0', '1.0'],
      ['1.0.1', '1.0'],
      ['0.1', '0.1'],
      ['0.3', '0.3'],
      ['', '0.3'],
      ['x', '1.0']
    ] as const) {
      t.match(noSuchMethod(name, version), {
        code: 'MethodNotFound',
        message: `There is no method ${JSON.stringify(name)} in A2A ${told}.`
      })
    }
  }
})
