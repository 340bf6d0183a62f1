import t from 'tap'
import { A2AError } from '../../../machines/protocol/errors.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { RetryingReads } from '../../../runtime/store/retrying-reads.ts'
import { rest } from '../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

const WHOSE = { tenant: '', principal: 'anna' }

/** Reads of a store that refuses each of its first reads with the next of these errors. */
function reads(...errors: Error[]) {
  const clock = new TestClock()
  const counts = { reads: 0 }
  const store = memoryStore()
  const readMessages: typeof store.readMessages = async (...args) => {
    counts.reads += 1
    const error = errors.shift()
    if (error) throw error
    return store.readMessages(...args)
  }
  const patient = new RetryingReads({ ...store, readMessages }, clock)
  return { clock, counts, patient, read: () => patient.readMessages({ ...WHOSE, contextId: 'c' }, 10) }
}

const away = () => new A2AError('Overloaded', 'The database is away.')

await t.test('a read is repeated while the database is away, at growing intervals', async t => {
  const { clock, counts, read } = reads(away(), away(), away())
  const answer = read()
  for (const [ms, expected] of [
    [49, 1],
    [1, 2],
    [99, 2],
    [1, 3],
    [200, 4]
  ] as const) {
    await rest()
    clock.increment(ms)
    await rest()
    t.equal(counts.reads, expected)
  }
  t.ok(await answer)
})

await t.test('each read of work is one of the store', async t => {
  const reads = new RetryingReads(memoryStore(), new TestClock())
  const key = { ...WHOSE, contextId: 'c' }
  t.equal(await reads.readTask(WHOSE, 'x'), undefined)
  t.strictSame(
    await Promise.all([
      reads.readEvents(WHOSE, 'x', 0, 1),
      reads.readJournal(WHOSE, 'x'),
      reads.readMessages(key, 1),
      reads.measureTasks({ ...key, taskIds: ['x'] })
    ]),
    [[], [], [], []]
  )
  t.match(await reads.readTaskMessages(WHOSE, 'x', 0, 1), [])
})

await t.test('another error is no reason to wait', async t => {
  const { counts, read } = reads(new A2AError('InternalError', 'Damaged.'))
  await t.rejects(read(), { code: 'InternalError' })
  t.equal(counts.reads, 1)
})

await t.test('after closing a read that waits is tried once more, and none is repeated', async t => {
  const { clock, counts, patient, read } = reads(away(), away())
  const answer = read()
  await rest()
  patient.close()
  await t.rejects(answer, { code: 'Overloaded' })
  t.equal(counts.reads, 2)
  t.equal(clock.size, 0)
})
