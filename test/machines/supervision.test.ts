import t from 'tap'
import {
  fruitless,
  mayRecover,
  mayRestart,
  recoveriesAfter,
  restartsAfter,
  withoutNewest,
  type Recovery,
  type RestartPolicy
} from '../../machines/supervision.ts'

const atMs = 10_000
const periodMs = 5000

/**
 * Times as OTP's supervisor sees them: the period before a crash holds its own moment, not the moment at which it
 * begins.
 */
const [BEGIN, FIRST, LAST, NOW, AHEAD] = [atMs - periodMs, atMs - periodMs + 1, atMs - 1, atMs, atMs + 1]

/** Restarts before a crash, and those of them that are within its period. */
const HISTORIES: [name: string, restarts: number[], within: number[]][] = [
  ['none', [], []],
  ['one long ago', [0], []],
  ['one when the period begins', [BEGIN], []],
  ['one in its first millisecond', [FIRST], [FIRST]],
  ['one in its last', [LAST], [LAST]],
  ['one at the same time', [NOW], [NOW]],
  ['one that a clock set back put ahead', [AHEAD], [AHEAD]],
  ['two of which one is over', [BEGIN, FIRST], [FIRST]],
  ['two within', [FIRST, LAST], [FIRST, LAST]],
  ['two at one time', [NOW, NOW], [NOW, NOW]],
  ['two that are over', [0, BEGIN], []],
  ['three of which two are over', [0, BEGIN, LAST], [LAST]],
  ['three within', [FIRST, LAST, NOW], [FIRST, LAST, NOW]]
]

await t.test('transient work is restarted while its restarts within the period are below the intensity', async t => {
  for (const type of ['temporary', 'transient'] as const) {
    for (const intensity of [0, 1, 2, 3, 4]) {
      for (const [name, restarts, within] of HISTORIES) {
        const policy: RestartPolicy = { type, intensity, periodMs }
        const wanted = type === 'transient' && within.length < intensity
        t.equal(mayRestart({ atMs, policy }, restarts), wanted, `${type}, at most ${intensity}, after ${name}`)
      }
    }
  }
})

await t.test('the restarts within the period are remembered, oldest first, and then the new one', async t => {
  for (const [name, restarts, within] of HISTORIES) {
    const given = [...restarts]
    t.strictSame(
      restartsAfter({ atMs, policy: { type: 'transient', intensity: 5, periodMs } }, given),
      [...within, atMs],
      name
    )
    t.strictSame(given, restarts, 'the argument is unchanged')
  }
})

await t.test('an infinite period counts every restart', async t => {
  const policy: RestartPolicy = { type: 'transient', intensity: 2, periodMs: Infinity }
  t.equal(mayRestart({ atMs, policy }, [0]), true)
  t.equal(mayRestart({ atMs, policy }, [0, 1]), false)
  t.strictSame(restartsAfter({ atMs, policy }, [0]), [0, atMs])
})

await t.test('regular crashes are restarted forever at a low rate, and otherwise up to the intensity', async t => {
  const livesOf = (policy: RestartPolicy, everyMs: number, most: number) => {
    let restarts: number[] = []
    for (let lives = 1; lives < most; lives += 1) {
      const crash = { atMs: lives * everyMs, policy }
      if (!mayRestart(crash, restarts)) return lives
      restarts = restartsAfter(crash, restarts)
      if (restarts.length > policy.intensity) t.fail('no more is remembered than counts')
    }
    return most
  }
  for (const intensity of [1, 2, 5]) {
    const policy: RestartPolicy = { type: 'transient', intensity, periodMs: 1000 }
    t.equal(livesOf(policy, 1000 / intensity, 100), 100, `${intensity} in a second, just seldom enough`)
    t.equal(livesOf(policy, 1000 / intensity - 1, 100), intensity + 1, `${intensity} in a second, just too often`)
    t.equal(livesOf(policy, 0, 100), intensity + 1, `${intensity} in a second, all at once`)
  }
})

await t.test('work is recovered while recoveries since its last progress are below the intensity', async t => {
  for (const intensity of [0, 1, 2, 3, 4, Infinity]) {
    for (const [name, before, within] of HISTORIES) {
      const recovery: Recovery = { atMs, done: 'this', intensity, periodMs }
      const recoveries = { done: 'this', atMs: before }
      t.equal(mayRecover(recovery, recoveries), within.length < intensity, `at most ${intensity}, after ${name}`)
      t.strictSame(fruitless(recovery, recoveries), within)
      t.strictSame(recoveriesAfter(recovery, recoveries), { done: 'this', atMs: [...within, atMs] }, name)
      t.strictSame(withoutNewest(recoveriesAfter(recovery, recoveries)), { done: 'this', atMs: within })
      for (const other of [undefined, { done: 'less', atMs: before }]) {
        t.equal(mayRecover(recovery, other), intensity > 0, 'none counts after progress, or before the first')
        t.strictSame(recoveriesAfter(recovery, other), { done: 'this', atMs: [atMs] })
      }
    }
  }
})
