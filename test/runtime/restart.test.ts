import t from 'tap'
import { restartPolicy } from '../../runtime/agent/policies.ts'

await t.test('work is never started again unless its author says so', async t => {
  t.strictSame(restartPolicy(), { type: 'temporary', intensity: 1, periodMs: 5000 })
  t.strictSame(restartPolicy('temporary'), restartPolicy())
})

await t.test('a type alone means once within 5 seconds; what else is given takes the place of that', async t => {
  t.strictSame(restartPolicy('transient'), { type: 'transient', intensity: 1, periodMs: 5000 })
  t.strictSame(restartPolicy({ type: 'transient' }), restartPolicy('transient'))
  t.strictSame(restartPolicy({ type: 'transient', intensity: 3 }), { type: 'transient', intensity: 3, periodMs: 5000 })
  t.strictSame(restartPolicy({ type: 'transient', periodMs: 0.5 }), { type: 'transient', intensity: 1, periodMs: 0.5 })
  t.strictSame(restartPolicy({ type: 'temporary', intensity: 0, periodMs: Infinity }), { type: 'temporary', intensity: 0, periodMs: Infinity })
})

await t.test('a type that is none is refused with what to write, and why work is not permanent', async t => {
  const says = "restart has to be 'temporary' or 'transient', or { type, intensity, periodMs }."
  for (const wrong of ['', 'Transient', 'always', null, 3, true, [], {}, { intensity: 3 }, { type: undefined }, { type: 'never' }]) {
    t.throws(() => restartPolicy(wrong as never), { name: 'TypeError', message: says }, JSON.stringify(wrong))
  }
  for (const wrong of ['permanent', { type: 'permanent' }]) {
    t.throws(() => restartPolicy(wrong as never), { name: 'TypeError', message: `${says} A task has an end, so its work cannot be permanent.` })
  }
})

await t.test('an intensity that is no whole number from 0 is refused, also for work that is never started again', async t => {
  for (const type of ['temporary', 'transient']) {
    for (const wrong of [-1, 0.5, NaN, Infinity, '1', null, undefined]) {
      t.throws(() => restartPolicy({ type, intensity: wrong } as never), {
        name: 'RangeError',
        message: `restart.intensity has to be a whole number from 0, not ${String(wrong)}.`
      })
    }
  }
})

await t.test('a period that is not above 0 is refused', async t => {
  for (const wrong of [0, -1, NaN, -Infinity, '5000', null, undefined]) {
    t.throws(() => restartPolicy({ type: 'transient', periodMs: wrong } as never), {
      name: 'RangeError',
      message: `restart.periodMs has to be milliseconds above 0, not ${String(wrong)}.`
    })
  }
})
