import t from 'tap'
import { storedTraces } from '../../../runtime/contexts/work-spans.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'

await t.test("a task's trace is not read from a journal that is too large", async t => {
  const key = { tenant: '', principal: 'anonymous', contextId: 'c' }
  const store: Store = {
    ...memoryStore(),
    measureTasks: async () => [
      { taskId: 'small', bytes: 0, journalBytes: 5 },
      { taskId: 'large', bytes: 0, journalBytes: 6 }
    ],
    readJournal: async (_, taskId) => [{ taskId, key: 'trace', value: { traceparent: taskId } }]
  }
  const traces = await storedTraces(store, key, { tasks: [{ taskId: 'small' }, { taskId: 'large' }] } as never, {
    restoredBytes: 5
  })
  t.strictSame(
    [...traces],
    [
      ['small', { traceparent: 'small' }],
      ['large', {}]
    ]
  )
})
