import t from 'tap'
import { IS_DEEP, IS_WHOLE, sampleOf } from '../../fixtures/sample.ts'
import { runSeed } from '../simulation.ts'

/**
 * The seeds, of which `npm test` takes some. `npm run simulate -- --nodes 3 --seed N --runs N` runs others, and shows
 * one that failed.
 */
const SEEDS = Array.from({ length: IS_DEEP && !IS_WHOLE ? 200 : 2000 }, (_, seed) => seed)
const SEEDS_TWICE = SEEDS.slice(0, IS_WHOLE ? 30 : IS_DEEP ? 6 : 1)
const SAMPLE = 5

/** How many nodes a seed has. */
const nodesOf = (seed: number) => 2 + (seed % 2)

t.setTimeout(1_800_000)

await t.test(
  'two thousand seeds of several nodes lose nothing acknowledged, whatever fails, and streams have no gap',
  async t => {
    t.setTimeout(1_800_000)
    let tasks = 0
    const seeds = sampleOf(t, SEEDS, SAMPLE)
    for (const seed of seeds) {
      const outcome = await runSeed(seed, { nodes: nodesOf(seed) })
      tasks += outcome.tasks
      if (outcome.failure === undefined) continue
      t.fail(`seed ${seed}: ${outcome.failure}\nnpm run simulate -- --nodes ${nodesOf(seed)} --seed ${seed} --verbose`)
      break
    }
    t.ok(tasks > seeds.length, 'there were tasks')
  }
)

await t.test('the same seed gives the same nodes, byte by byte', async t => {
  t.setTimeout(300_000)
  const digests = async (seed: number) => (await runSeed(seed, { nodes: 3 })).digests
  for (const seed of SEEDS_TWICE) t.strictSame(await digests(seed), await digests(seed), `seed ${seed}`)
})
