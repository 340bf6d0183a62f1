import t from 'tap'
import { CleanupTracker } from '../../../runtime/work/task-loads.ts'
import { deferred, open, recordingLogger, rest, start } from '../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

function cleaning(graceMs = 100) {
  const { logger, log } = recordingLogger()
  const clock = new TestClock()
  return { cleanUps: new CleanupTracker(clock, logger, graceMs), clock, log }
}

/** Waits for all that clean up, and says whether that is over. */
function waitingFor(cleanUps: CleanupTracker): { isOver: () => Promise<boolean> } {
  let over = false
  void cleanUps.settled().then(() => (over = true))
  return { isOver: () => rest().then(() => over) }
}

const late = (taskId: string, cancelGraceMs: number) => ({
  level: 'warn',
  message: 'a work did not stop within its grace period',
  details: { taskId, cancelGraceMs }
})

await t.test('nothing is waited for without clean-ups', async t => {
  const { cleanUps, clock } = cleaning()
  await cleanUps.settled()
  t.equal(clock.pending, 0)
})

await t.test('a work that stops within its grace period is waited for, and leaves no timer', async t => {
  for (const end of ['resolve', 'reject'] as const) {
    const { cleanUps, clock, log } = cleaning()
    const work = deferred<unknown>()
    cleanUps.add('t', work.promise)
    const waiting = waitingFor(cleanUps)
    clock.increment(99)
    t.equal(await waiting.isOver(), false)
    work[end](new Error('secret'))
    t.equal(await waiting.isOver(), true)
    t.equal(clock.pending, 0)
    clock.increment(1000)
    t.strictSame(log, [])
  }
})

await t.test('a work that exceeds its grace period is reported once and no longer waited for', async t => {
  for (const graceMs of [1, 100]) {
    const { cleanUps, clock, log } = cleaning(graceMs)
    const work = deferred()
    cleanUps.add('t', work.promise)
    const waiting = waitingFor(cleanUps)
    t.equal(await waiting.isOver(), false)
    clock.increment(graceMs)
    t.equal(await waiting.isOver(), true)
    t.strictSame(log, [late('t', graceMs)])
    await cleanUps.settled()
    work.resolve()
    await rest()
    t.equal(clock.pending, 0)
    clock.increment(1000)
    t.equal(log.length, 1)
  }
})

await t.test('work without a grace period is neither waited for nor reported', async t => {
  const { cleanUps, clock, log } = cleaning(0)
  cleanUps.add('t', new Promise(() => {}))
  await cleanUps.settled()
  t.equal(clock.pending, 0)
  t.strictSame(log, [])
})

await t.test('each of several works has its own grace period, and all are waited for', async t => {
  const { cleanUps, clock, log } = cleaning()
  const [early, slow, stuck] = [deferred(), deferred(), deferred()]
  cleanUps.add('early', early.promise)
  cleanUps.add('stuck', stuck.promise)
  clock.increment(50)
  cleanUps.add('slow', slow.promise)
  const waiting = waitingFor(cleanUps)
  early.resolve()
  t.equal(await waiting.isOver(), false)
  clock.increment(50)
  t.strictSame(log, [late('stuck', 100)])
  t.equal(await waiting.isOver(), false)
  slow.resolve()
  t.equal(await waiting.isOver(), true)
  t.equal(log.length, 1)
})

await t.test("a closing runtime gives canceled work its agent's grace period", async t => {
  for (const graceMs of [70, 5000]) {
    const { runtime, clock, log } = start(t, { cancelGraceMs: graceMs, work: () => new Promise(() => {}) })
    const { id } = await open(runtime)
    await runtime.cancelTask({ id })
    await rest()
    let closed = false
    void runtime.close().then(() => (closed = true))
    clock.increment(graceMs - 1)
    await rest()
    t.equal(closed, false)
    clock.increment(1)
    await rest()
    t.equal(closed, true)
    t.match(log, [late(id, graceMs)])
  }
})
