import * as fc from 'fast-check'
import t from 'tap'
import { checkJson, checkJsonText, isObject, pathText } from '../../../machines/protocol/codec/json.ts'

const nestedText = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
const nested = (depth: number): unknown => JSON.parse(nestedText(depth))
const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, index]))

await t.test('ordinary JSON of every kind has no violation', async t => {
  for (const value of [
    null,
    true,
    0,
    '',
    'text',
    [],
    {},
    [1, [2, { a: [{}] }]],
    { message: { parts: [{ text: 'x' }] } },
    undefined
  ]) {
    t.equal(checkJson(value), undefined, JSON.stringify(value))
  }
})

await t.test('64 containers inside each other are allowed and 65 are not', async t => {
  t.equal(checkJson(nested(64)), undefined)
  t.match(checkJson(nested(65)), { field: /^params(\[0\])+…?$/, description: 'must not be nested more than 64 deep' })
  t.strictSame(checkJson({ a: { b: [{}] } }, { depth: 3 }), {
    field: 'params.a.b[0]',
    description: 'must not be nested more than 3 deep'
  })
  t.equal(checkJson([[[]], [[]], [[]]], { depth: 3 }), undefined, 'sibling containers do not add up')
})

await t.test('half a million nested arrays are refused without reading beyond the limit', async t => {
  t.match(checkJson(nested(500_000)), { description: /nested/ })
  let deep: unknown = new Proxy([], {
    get: (_, name) => t.fail(`${String(name)} was read 66 deep`),
    getOwnPropertyDescriptor: (_, name) => void t.fail(`${String(name)} was read 66 deep`)
  })
  for (let depth = 65; depth > 0; depth -= 1) deep = [deep]
  t.match(checkJson(deep), { description: /nested/ })
})

await t.test('10,000 members in total are allowed and one more is not', async t => {
  t.equal(checkJson(members(10_000)), undefined)
  t.strictSame(checkJson(members(10_001)), {
    field: 'params',
    description: 'must not bring the total to more than 10000 members'
  })
  t.strictSame(checkJson([members(3), members(3)], { keys: 5 }), {
    field: 'params[1]',
    description: 'must not bring the total to more than 5 members'
  })
  t.equal(checkJson(Array.from({ length: 20_000 }, () => 0)), undefined, 'elements of lists are no members')
})

await t.test('200,000 values in total are allowed and one more is not, members and elements alike', async t => {
  const empty = (count: number) => Array.from({ length: count }, () => [])
  t.equal(checkJson(empty(199_999)), undefined)
  t.strictSame(checkJson(empty(200_000)), {
    field: 'params',
    description: 'must not bring the total to more than 200000 values'
  })
  t.equal(checkJson([members(2), [1, 2]], { nodes: 7 }), undefined)
  t.strictSame(checkJson({ a: members(2), b: [1, 2] }, { nodes: 6 }), {
    field: 'params.b',
    description: 'must not bring the total to more than 6 values'
  })
})

await t.test('half a surrogate pair is refused in texts and names, and whole pairs are allowed', async t => {
  const [inText, inName] = ['must be text without lone surrogates', 'must have a name without lone surrogates']
  t.equal(checkJson({ '⛵🙂': '🙂é\u0000', raw: '🙂' }), undefined)
  for (const half of ['\ud83d', '\ude42', 'a\ud83d', '\ude42\ud83d', '🙂\ud83d']) {
    t.strictSame(checkJson(half), { field: 'params', description: inText })
    t.strictSame(checkJson({ a: ['x', half] }), { field: 'params.a[1]', description: inText })
    t.strictSame(checkJson({ raw: half }), { field: 'params.raw', description: inText })
    t.match(checkJson({ a: { [half]: 1 } }), { field: /^params\.a\["/, description: inName })
  }
})

await t.test('a number that a double cannot represent is refused', async t => {
  t.equal(checkJson(JSON.parse('[1e308,-1e308,1e-400,0.1]')), undefined)
  for (const number of ['1e999', '-1e999', '1e400']) {
    t.strictSame(checkJson(JSON.parse(`{"data":{"x":[0,${number}]}}`)), {
      field: 'params.data.x[1]',
      description: 'must be a number that a double can hold'
    })
  }
  t.match(checkJson(Infinity), { field: 'params' })
})

await t.test('only the name that would set a prototype is refused, anywhere', async t => {
  const named = (name: string): unknown =>
    JSON.parse(`{"message":{"parts":[{},{"data":{"x":[{"${name}":{"polluted":true}}]}}]}}`)
  t.strictSame(checkJson(named('__proto__'), { root: '' }), {
    field: 'message.parts[1].data.x[0].__proto__',
    description: 'must not have this name'
  })
  for (const name of ['constructor', 'prototype', 'toString', 'hasOwnProperty'])
    t.equal(checkJson(named(name)), undefined, name)
  t.equal(Reflect.get({}, 'polluted'), undefined)
})

await t.test('a string longer than the limit is refused, except as the value of raw', async t => {
  const limit = { stringLength: 3 }
  const wrong = { description: 'must not be longer than 3 characters' }
  t.equal(checkJson({ a: ['abc'], raw: 'abcdef' }, limit), undefined)
  t.match(checkJson('abcd', limit), { field: 'params', ...wrong })
  t.match(checkJson({ a: ['abc', 'abcd'] }, limit), { field: 'params.a[1]', ...wrong })
  t.match(
    checkJson({ raw: ['abcd'] }, limit),
    { field: 'params.raw[0]', ...wrong },
    'objects inside raw are no exception'
  )
  t.match(checkJson({ abcd: 1 }, limit), { field: 'params.abcd', ...wrong }, 'a name counts as a string')
  t.equal(checkJson('x'.repeat(512 * 1024)), undefined)
  t.match(checkJson('x'.repeat(512 * 1024 + 1)), { field: 'params' })
})

await t.test('the first violation is reported, and the caller names the root', async t => {
  t.match(checkJson({ a: 'xxxx', b: 'xxxx' }, { root: 'result', stringLength: 3 }), { field: 'result.a' })
})

await t.test('only own members count', async t => {
  t.equal(checkJson(Object.create({ long: 'xxxx' }), { stringLength: 3 }), undefined)
})

await t.test('a path is written with dots, brackets and quotes, and truncated when long', async t => {
  t.equal(pathText('params', ['a', 0, 'b_c', 1, 2]), 'params.a[0].b_c[1][2]')
  t.equal(pathText('', ['a', 'b']), 'a.b')
  t.equal(pathText('', [0]), '[0]')
  t.equal(pathText('params', []), 'params')
  t.equal(pathText('metadata', ['urn:x', '', 'a"b\n']), 'metadata["urn:x"][""]["a\\"b\\n"]')
  t.equal(
    pathText(
      '',
      Array.from({ length: 1000 }, () => 'abcdefghi')
    ).length,
    201
  )
  t.equal(pathText('a', ['x'.repeat(1_000_000)]).length, 201)
  t.match(pathText('a', ['x'.repeat(1_000_000)]), /^a\["x+…$/)
})

await t.test('an object is neither null nor a list', async t => {
  t.strictSame([{}, null, [], 'x', 1, undefined].map(isObject), [true, false, false, false, false, false])
})

/** The text of a value, long enough to be looked at. */
const longText = (value: unknown, space?: number) => ' '.repeat(64 * 1024) + JSON.stringify(value, undefined, space)

const zeros = (length: number) => Array.from({ length }, () => 0)

/** How many values and members a value has, and how deep it nests. */
function sizeOf(value: unknown): { nodes: number; keys: number; depth: number } {
  if (typeof value !== 'object' || value === null) return { nodes: 1, keys: 0, depth: 0 }
  const inner = Object.values(value).map(sizeOf)
  const sum = (of: 'nodes' | 'keys') => inner.reduce((all, size) => all + size[of], 0)
  return {
    nodes: 1 + sum('nodes'),
    keys: sum('keys') + (isObject(value) ? inner.length : 0),
    depth: 1 + Math.max(0, ...inner.map(({ depth }) => depth))
  }
}

const anyText = fc.oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^["\\[\]{}:, ]{0,12}$/))
const anyJson = fc.letrec<{ value: unknown }>(tie => ({
  value: fc.oneof(
    { maxDepth: 6 },
    fc.oneof(anyText, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constantFrom(null, true)),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(anyText, tie('value'), { maxKeys: 4 })
  )
})).value

await t.test('text is refused before parsing exactly if its value exceeds a limit', async t => {
  const away = { depth: Infinity, keys: Infinity, nodes: Infinity }
  fc.assert(
    fc.property(fc.array(anyJson, { maxLength: 3 }), fc.constantFrom(undefined, 2), (value, space) => {
      const text = longText(value, space)
      const size = sizeOf(value)
      t.equal(checkJsonText(text, size), undefined, 'at its bounds')
      for (const bound of ['depth', 'keys', 'nodes'] as const) {
        if (size[bound] === 0) continue
        const [tight, words] = [
          { ...away, [bound]: size[bound] - 1 },
          { depth: 'nested', keys: 'members', nodes: 'values' }[bound]
        ]
        t.match(checkJsonText(text, tight)?.description ?? '', words, `one less than its ${bound}`)
      }
    }),
    { numRuns: 500 }
  )
})

await t.test('text over a limit gets the same error as its parsed value', async t => {
  const limits = { depth: 4, keys: 6, nodes: 12 }
  for (const value of [
    { a: { 'b c': [0, [{}]] } },
    { a: [[[[[]]]]] },
    members(7),
    { a: { b: members(5) } },
    Array.from({ length: 12 }, () => []),
    { a: ['"]}', zeros(11)] }
  ]) {
    const violation = checkJson(value, limits)
    t.not(violation, undefined)
    t.strictSame(checkJsonText(longText(value), limits), violation, JSON.stringify(value))
    t.strictSame(
      checkJsonText(
        longText({ id: ['"'], params: value }),
        { ...limits, root: 'request', keys: Infinity, nodes: Infinity },
        'params'
      )?.field,
      checkJson(value, { ...limits, keys: Infinity, nodes: Infinity })?.field,
      'within a request'
    )
  }
})

await t.test('a member may use all limits, as its envelope has 1,000 values and one level', async t => {
  const limits = { depth: 3, keys: 5, nodes: 10, root: 'request' }
  const around = { id: 7, x: zeros(900) }
  t.equal(checkJsonText(longText({ ...around, params: [[[0]]] }), limits, 'params'), undefined)
  t.equal(checkJsonText(longText({ ...around, params: zeros(9) }), limits, 'params'), undefined)
  t.strictSame(checkJsonText(longText({ ...around, params: [[[[]]]] }), limits, 'params'), {
    field: 'params[0][0][0]',
    description: 'must not be nested more than 3 deep'
  })
  t.strictSame(checkJsonText(longText({ x: zeros(1100) }), limits, 'params'), {
    field: 'request.x',
    description: 'must not bring the total to more than 10 values'
  })
  t.strictSame(checkJsonText(longText(members(1006)), limits, 'params'), {
    field: 'request',
    description: 'must not bring the total to more than 5 members'
  })
})

await t.test('text of 64 Ki characters is checked only after parsing', async t => {
  const text = '[]'.padEnd(64 * 1024)
  t.equal(checkJsonText(text, { nodes: 0 }), undefined)
  t.match(checkJsonText(`${text} `, { nodes: 0 }), { field: 'params' })
})

await t.test('the check before parsing never throws for text that is not JSON', async t => {
  const around = ' '.repeat(64 * 1024)
  for (const text of ['', ']]', '}', ',', ':', '"', '"\\"', '"\\', '{{{', '{"\\x"[{', '{"a"{"b":[', '[}', '"a"{{{']) {
    t.equal(checkJsonText(around + text), undefined, text)
    t.type(checkJsonText(`${around}${text}[[[`, { depth: 2 })?.description ?? '', 'string')
  }
  t.strictSame(checkJsonText(`${around}{"\\x":[{}]}`, { depth: 2 }), {
    field: 'params[""][0]',
    description: 'must not be nested more than 2 deep'
  })
  fc.assert(
    fc.property(
      fc.stringMatching(/^["\\[\]{}:, a]{0,30}$/),
      text => void checkJsonText(around + text, { depth: 3, nodes: 3, keys: 3 })
    )
  )
})

await t.test('4 MiB of many or deep values are refused, valid JSON or not', async t => {
  const half = 2 * 1024 * 1024
  for (const text of [
    `[${'[],'.repeat(half / 2)}[]]`,
    `[${'{},'.repeat(half / 2)}{}]`,
    `{${'"k":0,'.repeat(half / 4)}"k":0}`,
    nestedText(half)
  ]) {
    t.not(checkJsonText(text), undefined)
    t.strictSame(checkJsonText(`${text.slice(0, -1)}?`), checkJsonText(text))
  }
})
