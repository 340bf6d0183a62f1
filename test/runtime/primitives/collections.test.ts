import t from 'tap'
import { ReleasingMap, SmallMap } from '../../../runtime/primitives/collections.ts'

await t.test('a table keeps its entries while others are added and removed', async t => {
  const table = new ReleasingMap<{ readonly n: number }>()
  table.set('stays', { n: 0 })
  for (let n = 1; n <= 1000; n += 1) {
    table.set(`${n}`, { n })
    table.delete(`${n}`)
    table.delete('never there')
  }
  t.strictSame([table.size, table.get('stays'), table.entries()], [1, { n: 0 }, [['stays', { n: 0 }]]])
})

await t.test('a small map has the entries that were added and not deleted, the first one as the others', async t => {
  const map = new SmallMap<{ readonly n: number }>()
  t.strictSame([map.get('a'), map.keys()], [undefined, []])
  map.delete('a')
  for (const [n, name] of ['a', 'b', 'c'].entries()) map.add(name, { n })
  t.strictSame([map.get('a'), map.get('c'), map.get('d'), map.keys()], [{ n: 0 }, { n: 2 }, undefined, ['a', 'b', 'c']])
  for (const name of ['a', 'b', 'none']) map.delete(name)
  t.strictSame([map.get('a'), map.get('b'), map.keys()], [undefined, undefined, ['c']])
  map.add('d', { n: 3 })
  t.strictSame([map.get('d'), map.keys()], [{ n: 3 }, ['d', 'c']])
})
