import t from 'tap'
import { soak } from '../../bench/soak/soak.ts'
import { failuresOf } from '../../bench/soak/verdict.ts'
import { IS_DEEP } from '../fixtures/sample.ts'
import { NO_SQLITE } from '../fixtures/stores/sqlite.ts'

/** Two minutes of `npm run soak` if everything is tested, else a few seconds. */
const options = IS_DEEP ? { lives: 12, lifeMs: 10_000, visitors: 4, pauseMs: 20 } : { lives: 2, lifeMs: 1500, visitors: 4, pauseMs: 20 }

await t.test('a server that is used and killed again and again loses nothing and does not grow', { skip: NO_SQLITE, timeout: 600_000 }, async t => {
  const found = await soak(options, line => t.comment(line))
  t.strictSame(failuresOf(found), [])
  t.equal(found.sizes.length, options.lives)
  t.ok(found.done >= options.visitors)
})
