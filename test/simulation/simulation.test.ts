import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { sqliteStore } from '../../adapters/storage/sqlite.ts'
import { counted } from './counted.ts'
import { runSeed } from './simulation.ts'

/** Seeds of one run of the tests. `npm run simulate -- --seed N --runs N` runs others, and shows one that failed. */
const SEEDS = 1000
const SEEDS_TWICE = 30
const SEEDS_ON_DISK = 15

t.setTimeout(300_000)

await t.test('whatever happens, by a thousand seeds, nothing that was acknowledged is lost, and no task takes another course than its script', async t => {
  t.setTimeout(300_000)
  let tasks = 0
  for (let seed = 0; seed < SEEDS; seed += 1) {
    const outcome = await runSeed(seed)
    tasks += outcome.tasks
    if (outcome.failure === undefined) continue
    t.fail(`seed ${seed}: ${outcome.failure}\nnpm run simulate -- --seed ${seed} --verbose`)
    break
  }
  t.ok(tasks > SEEDS, 'there were tasks')
})

await t.test('the same seed gives the same world, byte by byte', async t => {
  t.setTimeout(300_000)
  for (let seed = 0; seed < SEEDS_TWICE; seed += 1) t.strictSame((await runSeed(seed)).digests, (await runSeed(seed)).digests, `seed ${seed}`)
})

await t.test('it is the same with a store in a file', async t => {
  t.setTimeout(300_000)
  const folder = await mkdtemp(join(tmpdir(), 'simulation-'))
  t.teardown(() => rm(folder, { recursive: true }))
  for (let seed = 0; seed < SEEDS_ON_DISK; seed += 1) {
    const { store, isBusy } = counted(sqliteStore(join(folder, `${seed}.db`)))
    const { failure } = await runSeed(seed, { open: async () => ({ store, isBusy }), shrinks: false })
    await store.close()
    t.equal(failure, undefined, `seed ${seed}`)
  }
})
