import t from 'tap'
import { systemClock, currentTimestamp } from '../../../runtime/ports/clock.ts'
import { randomIds } from '../../../runtime/ports/ids.ts'
import { consoleLogger } from '../../../runtime/ports/logger.ts'
import { deferred } from '../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** The time with which an id begins. */
function timeIn(start: string): number {
  return start.split('').reduce((sum, digit) => sum * DIGITS.length + DIGITS.indexOf(digit), 0)
}

await t.test('the defaults are the system clock, random ids and the console', async t => {
  const before = Date.now()
  t.ok(systemClock.now() >= before)
  const fired = deferred()
  const never = systemClock.setTimeout(() => t.fail('was cleared'), 0)
  systemClock.clearTimeout(never)
  systemClock.setTimeout(fired.resolve, 0)
  await fired.promise
  t.match(currentTimestamp(systemClock), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  const many = Array.from({ length: 10_000 }, () => randomIds())
  t.equal(new Set(many).size, many.length)
  t.equal(new Set(many.map(id => id.slice(8))).size, many.length, 'those of one millisecond differ too')
  const madeAt = many.at(-1)?.slice(0, 8) ?? ''
  t.ok(timeIn(madeAt) >= before && timeIn(madeAt) <= Date.now(), 'each begins with its time')
  t.strictSame(
    many.map(id => id.slice(0, 8)).toSorted(),
    many.map(id => id.slice(0, 8)),
    'in the order of texts'
  )
  t.ok(
    many.every(id => /^[0-9A-Za-z]{22}$/.test(id)),
    'each has 22 letters and digits'
  )
  t.equal(new Set(many.join('')).size, 62, 'all letters and digits occur')
  for (const level of ['warn', 'error'] as const) {
    const written = t.capture(console, level, () => {})
    consoleLogger[level]('it happened', { taskId: 't' })
    t.strictSame(written.args(), [['taskchart: it happened', { taskId: 't' }]])
  }
})

await t.test('a test clock fires timers in order, including those set meanwhile', async t => {
  const clock = new TestClock('2026-01-01T00:00:00.000Z')
  const fired: string[] = []
  const note = (name: string) => () =>
    void fired.push(`${name}@${clock.now() - Date.parse('2026-01-01T00:00:00.000Z')}`)
  clock.setTimeout(note('late'), 100)
  clock.setTimeout(() => {
    note('first')()
    clock.setTimeout(note('chained'), 30)
  }, 50)
  const cleared = clock.setTimeout(note('never'), 60)
  clock.clearTimeout(cleared)
  clock.setTimeout(note('far'), 101)
  clock.increment(100)
  t.strictSame(fired, ['first@50', 'chained@80', 'late@100'])
  t.equal(clock.pending, 1)
})
