import t from 'tap'
import { soak } from '../../bench/soak/soak.ts'
import { failuresOf } from '../../bench/soak/verdict.ts'
import { IS_DEEP, IS_WHOLE } from '../fixtures/sample.ts'
import { NO_SQLITE } from '../fixtures/stores/sqlite.ts'

/** Two minutes of `npm run soak` if everything is tested, else a few seconds. */
const options = IS_WHOLE
  ? { lives: 12, lifeMs: 10_000, visitors: 4, pauseMs: 20 }
  : IS_DEEP
    ? { lives: 4, lifeMs: 5000, visitors: 4, pauseMs: 20 }
    : { lives: 2, lifeMs: 1500, visitors: 4, pauseMs: 20 }

await t.test(
  'a server that is used and killed again and again loses nothing and does not grow',
  { skip: NO_SQLITE, timeout: 600_000 },
  async t => {
    const found = await soak(options, line => t.comment(line))
    t.strictSame(failuresOf(found), [])
    t.equal(found.sizes.length, options.lives)
    t.ok(found.done >= options.visitors)
  }
)

await t.test('a size that grows from life to life is named, and one that follows what is done is not', t => {
  const sizes = { heap: 2 ** 25, rss: 2 ** 27, handles: 12, files: 40, file: 2 ** 24, log: 2 ** 24 }
  const failures = (grown: (life: number) => Partial<typeof sizes>) =>
    failuresOf({
      sizes: Array.from({ length: 13 }, (_, life) => ({ ...sizes, ...grown(life) })),
      visits: [],
      done: 0,
      restartsMs: [],
      failures: ['lost']
    })
  t.strictSame(
    failures(life => ({ file: sizes.file * (1 + 0.2 * (life % 2)), rss: sizes.rss * (1 + 0.1 * (life % 3)) })),
    ['lost']
  )
  t.match(
    failures(life => ({ heap: sizes.heap * 1.05 ** life, file: sizes.file * 1.2 ** life })),
    ['lost', /^heap has grown: /, /^file has grown: /]
  )
  t.end()
})
