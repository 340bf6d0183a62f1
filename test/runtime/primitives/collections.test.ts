import t from 'tap'
import { ReleasingMap } from '../../../runtime/primitives/collections.ts'

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
