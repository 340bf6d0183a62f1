import { rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteStore } from '../../../adapters/storage/sqlite.ts'
import { counted } from '../../simulation/counted.ts'
import { runSeed, type RunOptions } from '../../simulation/simulation.ts'

/** So many seeds find what is found often; `npm run simulate` runs more. */
const SEEDS = 120
const SEEDS_ON_DISK = 6
const SEEDS_OF_NODES = 40

/** Ends the process at the first seed that fails. */
async function run(seed: number, options: RunOptions = {}): Promise<void> {
  const { failure } = await runSeed(seed, { ...options, shrinks: false })
  if (failure === undefined) return console.log(`seed ${seed}`)
  console.error(`seed ${seed} fails: ${failure}`)
  process.exit(1)
}

for (let seed = 0; seed < SEEDS; seed += 1) await run(seed)

for (let seed = 0; seed < SEEDS_OF_NODES; seed += 1) await run(seed, { nodes: 3 })

const folder = await mkdtemp(join(tmpdir(), 'simulation-'))
process.on('exit', () => rmSync(folder, { recursive: true }))
for (let seed = 0; seed < SEEDS_ON_DISK; seed += 1) {
  const { store, isBusy } = counted(sqliteStore(join(folder, `${seed}.db`)))
  await run(seed, { open: async () => ({ store, isBusy }) })
  await store.close()
}
