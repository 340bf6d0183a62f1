import { runInNewContext } from 'node:vm'
import t from 'tap'
import { createActor, fromTransition } from 'xstate'
import { jsonBytes, contextLoss, jsonLoss, plainCopy, sameJson } from '../../../runtime/primitives/json.ts'

await t.test('what JSON changes is found at any depth, with its path and what to write', async t => {
  class Ticket {
    readonly day = 'Monday'
  }
  class Bag extends Array<number> {}
  const itself: Record<string, unknown> = { list: [] }
  itself['self'] = [itself]
  const losses: [value: unknown, path: string, what: string, instead?: string][] = [
    [{ n: NaN }, 'it.n', 'NaN', 'a finite number, or null'],
    [[[-Infinity]], 'it[0][0]', '-Infinity'],
    [Infinity, 'it', 'Infinity'],
    [() => 1, 'it', 'a function', 'null, or leave it out'],
    [{ 'a b': Symbol('x') }, 'it["a b"]', 'a symbol'],
    [{ n: 1n }, 'it.n', 'a BigInt', 'a text: String(value)'],
    [undefined, 'it', 'undefined', 'null, or leave it out'],
    [[1, undefined], 'it[1]', 'undefined'],
    [Array.from({ length: 1 }), 'it[0]', 'undefined'],
    [{ set: new Set() }, 'it.set', 'a Set', 'a list: [...set]'],
    [new Map(), 'it', 'a Map', 'an object: Object.fromEntries(map)'],
    [new RangeError('x'), 'it', 'an Error'],
    [new DOMException('x'), 'it', 'a DOMException'],
    [new Float64Array(1), 'it', 'a Uint8Array'],
    [[new Ticket()], 'it[0]', 'an instance of Ticket', 'its data as a plain object'],
    [new Bag(), 'it', 'an instance of Bag'],
    [Object.create({}), 'it', 'an instance of Object'],
    [Object.create(Object.create({ constructor: undefined })), 'it', 'an instance of a class'],
    [Object.setPrototypeOf([1], Object.create(null)), 'it', 'an instance of a class'],
    [itself, 'it.self[0]', 'an object that contains itself', 'its id']
  ]
  for (const [value, path, what, instead] of losses) {
    for (const use of ['sent', 'kept', 'context'] as const)
      t.match(
        jsonLoss(value, 'it', use) ?? '',
        `${path} is ${what}, which JSON does not keep. Write ${instead ?? ''}`,
        `${path} is ${what}`
      )
  }
  const list = [1, null, 'x', true]
  const plain = {
    list,
    again: list,
    none: undefined,
    bare: Object.assign(Object.create(null), { a: 1 }),
    others: runInNewContext('({ list: [1] })')
  }
  for (const use of ['sent', 'kept', 'context'] as const) t.equal(jsonLoss(plain, 'it', use), undefined, use)
})

await t.test('an object with a toJSON counts as what that returns, but only in what goes out', async t => {
  for (const [value, kept] of [
    [new Date(0), 'a Date'],
    [new URL('http://a.example/'), 'a URL'],
    [Buffer.from('x'), 'a Uint8Array'],
    [{ toJSON: () => 1 }, 'a function']
  ] as const) {
    t.equal(jsonLoss({ value }, 'it', 'sent'), undefined)
    for (const use of ['kept', 'context'] as const) t.match(jsonLoss({ value }, 'it', use), `is ${kept}, which`)
  }
  t.match(jsonLoss([{ toJSON: () => ({ a: new Map() }) }], 'it', 'sent'), 'it[0].a is a Map, which')
  t.match(
    jsonLoss({ toJSON: () => new Date(0) }, 'it', 'sent'),
    'it is a Date, which',
    'JSON calls the toJSON of a result no more'
  )
  t.match(jsonLoss({ toJSON: () => {} }, 'it', 'sent'), 'it is undefined, which')
})

await t.test('the context of a chart may have actors', async t => {
  const actor = createActor(fromTransition(() => 0, 0))
  t.equal(jsonLoss({ actor }, 'it', 'context'), undefined)
  t.equal(jsonLoss({ actor }, 'it', 'kept'), 'it.actor is an actor, which JSON does not keep. Write its id.')
  const before = { old: new Map(), same: 1 }
  t.equal(contextLoss({ ...before, same: 2 }, before), undefined, 'only values that a step changed are checked')
  t.match(contextLoss({ ...before, same: /x/ }, before), 'context.same is a RegExp')
  t.equal(contextLoss(undefined, undefined), undefined)
})

await t.test('what nests too deeply to be copied in time is refused before it goes out', async t => {
  let deep: unknown = 'end'
  for (let depth = 0; depth < 5000; depth += 1) deep = [deep]
  t.match(jsonLoss(deep, 'it', 'sent'), /^it(\[0\])+… must not be nested more than 64 deep\.$/)
})

await t.test('a plain copy shares no list and no plain object with the original, also if that contains itself', t => {
  const shared = new Date(0)
  const original: Record<string, unknown> = { list: [1, { a: null, none: undefined }], shared, text: 'x' }
  original['self'] = original
  const copy = plainCopy(original)
  t.strictSame(copy, original)
  t.equal(copy['self'], copy)
  t.equal(copy['shared'], shared)
  t.not(copy['list'], original['list'])
  t.not((copy['list'] as unknown[])[1], (original['list'] as unknown[])[1])
  t.end()
})

await t.test('JSON values are the same if their texts say the same, in any order of their members', t => {
  const values: unknown[] = [
    null,
    true,
    0,
    '',
    '0',
    [],
    {},
    [null],
    [[]],
    [1, 2],
    [2, 1],
    { a: 1 },
    { a: 1, b: undefined },
    { b: 1 },
    { a: [1] },
    { a: { b: null } },
    { toString: null }
  ]
  for (const one of values)
    for (const other of values)
      t.equal(sameJson(one, structuredClone(other)), one === other, JSON.stringify([one, other]))
  t.ok(sameJson({ a: 1, b: [{ c: 2, d: 3 }] }, { b: [{ d: 3, c: 2 }], a: 1 }))
  t.end()
})

await t.test('the size of a value is about that of its JSON text', async t => {
  for (const value of [
    '',
    'é€😀',
    null,
    true,
    123,
    [],
    {},
    { text: 'x'.repeat(1000) },
    { a: [{ b: 'c' }, 'd', null], metadata: { e: { f: 'g' } } }
  ]) {
    const exact = Buffer.byteLength(JSON.stringify(value))
    t.ok(
      Math.abs(jsonBytes(value) - exact) <= 4 + exact / 2,
      `${JSON.stringify(value).slice(0, 40)}: ${jsonBytes(value)} for ${exact}`
    )
  }
  let deep: unknown = 'end'
  for (let depth = 0; depth < 100_000; depth += 1) deep = [deep]
  t.ok(jsonBytes(deep) > 100_000, 'at any depth')
})
