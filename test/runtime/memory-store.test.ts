import t from 'tap'
import { memoryStore } from '../../runtime/memory-store.ts'
import { WakeIndex } from '../../runtime/wake-index.ts'
import { storeSuite } from '../fixtures/store-suite.ts'

await t.test('an index of wakes gives away only what is in it', t => {
  const index = new WakeIndex()
  const wake = (taskId: string, atMs: number) => ({ key: { tenant: '', principal: '', contextId: taskId }, taskId, atMs })
  index.delete(wake('nobody', 1))
  index.add(wake('a', 1))
  for (const other of [wake('b', 1), wake('a', 2), wake('0', 1), wake('a', 0)]) index.delete(other)
  t.strictSame(index.read(10, { atMs: 0, taskId: '' }), [wake('a', 1)])
  index.delete(wake('a', 1))
  t.strictSame(index.read(10, { atMs: 0, taskId: '' }), [])
  t.end()
})

await storeSuite(t, 'memoryStore', () => memoryStore())
