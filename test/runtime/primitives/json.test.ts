import t from 'tap'
import { createActor, fromTransition } from 'xstate'
import { jsonBytes, contextLoss, jsonLoss, sameJson } from '../../../runtime/primitives/json.ts'

await t.test('values that JSON loses are detected at any depth, unless they define toJSON', async t => {
  class Ticket {
    readonly day = new Date(0)
  }
  const shared: Record<string, unknown> = { list: [] }
  shared['self'] = shared
  const actor = createActor(fromTransition(() => 0, 0))
  for (const kept of [1, null, 'x', new URL('http://a.example/'), { actor }, shared, Object.create(null), { toJSON: () => new Map() }]) t.equal(jsonLoss(kept, 'it'), undefined)
  t.equal(jsonLoss({ ticket: new Ticket() }, 'it'), 'it.ticket.day is a Date, which JSON does not keep. Write a text: date.toISOString().')
  t.equal(jsonLoss([shared, { ...shared, set: new Set() }], 'it'), 'it[1].set is a Set, which JSON does not keep. Write a list: [...set].')
  const before = { old: new Map(), same: 1 }
  t.equal(contextLoss({ ...before, same: 2 }, before), undefined, 'only values that a step changed are checked')
  t.match(contextLoss({ ...before, same: /x/ }, before), 'context.same is a RegExp')
  t.equal(contextLoss(undefined, undefined), undefined)
})

await t.test('JSON values are the same if their texts say the same, in any order of their members', t => {
  const values: unknown[] = [null, true, 0, '', '0', [], {}, [null], [[]], [1, 2], [2, 1], { a: 1 }, { a: 1, b: undefined }, { b: 1 }, { a: [1] }, { a: { b: null } }, { toString: null }]
  for (const one of values) for (const other of values) t.equal(sameJson(one, structuredClone(other)), one === other, JSON.stringify([one, other]))
  t.ok(sameJson({ a: 1, b: [{ c: 2, d: 3 }] }, { b: [{ d: 3, c: 2 }], a: 1 }))
  t.end()
})

await t.test('the size of a value is about that of its JSON text', async t => {
  for (const value of ['', 'é€😀', null, true, 123, [], {}, { text: 'x'.repeat(1000) }, { a: [{ b: 'c' }, 'd', null], metadata: { e: { f: 'g' } } }]) {
    const exact = Buffer.byteLength(JSON.stringify(value))
    t.ok(Math.abs(jsonBytes(value) - exact) <= 4 + exact / 2, `${JSON.stringify(value).slice(0, 40)}: ${jsonBytes(value)} for ${exact}`)
  }
  let deep: unknown = 'end'
  for (let depth = 0; depth < 100_000; depth += 1) deep = [deep]
  t.ok(jsonBytes(deep) > 100_000, 'at any depth')
})
