import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { sqliteStore } from '../../adapters/storage/sqlite.ts'
import { memoryStore } from '../../runtime/store/memory/memory-store.ts'
import { IS_DEEP, IS_WHOLE, sampleOf } from '../fixtures/sample.ts'
import { counted } from './counted.ts'
import { runSeed } from './simulation.ts'
import { NO_SQLITE } from '../fixtures/stores/sqlite.ts'

/** So many find each fault that docs/simulation.md says is found. */
const FINDING = 200

/**
 * The seeds, of which `npm test` takes some. `npm run simulate -- --seed N --runs N` runs others, and shows one that
 * failed.
 */
const SEEDS = Array.from({ length: IS_DEEP && !IS_WHOLE ? FINDING : 2000 }, (_, seed) => seed)
const SEEDS_TWICE = SEEDS.slice(0, IS_WHOLE ? 30 : IS_DEEP ? 10 : 2)
const SEEDS_ON_DISK = SEEDS.slice(0, IS_WHOLE ? 15 : IS_DEEP ? 6 : 1)
const SAMPLE = 40

t.setTimeout(300_000)

await t.test('two thousand seeds lose nothing acknowledged, and tasks follow their scripts', async t => {
  t.setTimeout(300_000)
  let tasks = 0
  const seeds = sampleOf(t, SEEDS, SAMPLE)
  for (const seed of seeds) {
    const outcome = await runSeed(seed)
    tasks += outcome.tasks
    if (outcome.failure === undefined) continue
    t.fail(`seed ${seed}: ${outcome.failure}\nnpm run simulate -- --seed ${seed} --verbose`)
    break
  }
  t.ok(tasks > seeds.length, 'there were tasks')
})

await t.test('a world whose end never comes is a failure', async t => {
  const store = { ...memoryStore(), sweep: () => new Promise<never>(() => {}) }
  const { failure } = await runSeed(0, { open: async () => ({ store }), shrinks: false })
  t.match(failure, /I11: the end of the processes never comes/)
})

await t.test('the same seed gives the same world, byte by byte', async t => {
  t.setTimeout(300_000)
  for (const seed of SEEDS_TWICE)
    t.strictSame((await runSeed(seed)).digests, (await runSeed(seed)).digests, `seed ${seed}`)
})

await t.test('the result is the same with a store in a file', { skip: NO_SQLITE }, async t => {
  t.setTimeout(300_000)
  const folder = await mkdtemp(join(tmpdir(), 'simulation-'))
  t.teardown(() => rm(folder, { recursive: true }))
  for (const seed of SEEDS_ON_DISK) {
    const { store, isBusy } = counted(sqliteStore(join(folder, `${seed}.db`)))
    const { failure } = await runSeed(seed, { open: async () => ({ store, isBusy }), shrinks: false })
    await store.close()
    t.equal(failure, undefined, `seed ${seed}`)
  }
})
