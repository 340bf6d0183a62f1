import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { appendToKept, ReleasingMap } from '../../../runtime/primitives/collections.ts'

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

await t.test('a short list that is kept has no spare capacity', t => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const inUse = () => {
    gc()
    return process.memoryUsage().heapUsed
  }
  const bytesOf = (make: () => unknown[]) => {
    const before = inUse()
    const lists = Array.from({ length: 20_000 }, make)
    return (inUse() - before) / lists.length
  }
  const item = {}
  const least = bytesOf(() => [item, item])
  const bytes = bytesOf(() => appendToKept(appendToKept([], item), item))
  t.ok(least > 32 && bytes < 1.5 * least, `${bytes.toFixed(0)} bytes, and ${least.toFixed(0)} at least`)
  t.end()
})
