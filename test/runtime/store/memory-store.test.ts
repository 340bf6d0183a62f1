import t from 'tap'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { TimeIndex } from '../../../runtime/store/memory/indexes.ts'
import { storeSuite } from '../../fixtures/stores/store-suite.ts'

interface Entry {
  readonly atMs: number
  readonly id: string
}

await t.test('an index by time deletes only its own entries', t => {
  const index = new TimeIndex<Entry>(
    ({ atMs }) => atMs,
    ({ id }) => id
  )
  const entry = (id: string, atMs: number) => ({ id, atMs })
  index.delete(entry('nobody', 1))
  index.add(entry('a', 1))
  for (const other of [entry('b', 1), entry('a', 2), entry('0', 1), entry('a', 0)]) index.delete(other)
  t.strictSame(index.read(10, { atMs: 0, id: '' }), [entry('a', 1)])
  t.strictSame(index.readBefore(10, 1), [])
  t.strictSame(index.readBefore(10, 1.5), [entry('a', 1)])
  t.strictSame(index.readBefore(0, 1.5), [])
  index.delete(entry('a', 1))
  t.strictSame(index.read(10, { atMs: 0, id: '' }), [])
  t.end()
})

await storeSuite(t, 'memoryStore', () => memoryStore())
