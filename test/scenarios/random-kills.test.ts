import '../fixtures/stores/needs-sqlite.ts'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { keepResult } from '../fixtures/kills/guarantee-results.ts'
import { converse, persistentClient, tasksIn, violations, type Told } from '../fixtures/kills/kill-oracle.ts'
import { KilledHost } from '../fixtures/kills/killed-host.ts'
import { IS_DEEP, IS_WHOLE, randomFrom, SEED } from '../fixtures/sample.ts'

/** Kills of the run, and conversations at once. `KILLS=200` makes it long, `SEED` has it choose others. */
const KILLS = Number(process.env.KILLS ?? (IS_WHOLE ? 30 : IS_DEEP ? 15 : 5))
const AT_ONCE = 8

/** Between two kills, clients hear of this many events at the most. */
const MOST_EVENTS = 40

t.setTimeout(600_000)

await t.test(
  'conversations continue while the process is killed repeatedly under load',
  { timeout: 600_000 },
  async t => {
    t.comment(`SEED=${SEED}`)
    const random = randomFrom(SEED)
    const folder = await mkdtemp(join(tmpdir(), 'taskchart-kills-'))
    const { host, url } = await KilledHost.start('generator', folder)
    const told: Told[] = []
    let started = 0
    let left = MOST_EVENTS

    const heard = () => {
      left -= 1
      if (left > 0 || host.kills >= KILLS) return
      left = 1 + Math.floor(random() * MOST_EVENTS)
      host.kill()
    }
    const visitor = async () => {
      const client = await persistentClient(url)
      while (host.kills < KILLS) told.push(await converse(client, `conversation ${(started += 1)}`, heard))
      await client.close()
    }
    try {
      await Promise.all(Array.from({ length: AT_ONCE }, visitor))
      await host.end()
      for (const each of told) t.strictSame(await violations(folder, each), [], each.taskId)
      t.equal(await tasksIn(folder), started, 'each conversation has one task')
      t.equal(told.length, started)
      await keepResult({ agent: 'generator', point: 'random', kills: host.kills })
    } finally {
      await host.end()
      await rm(folder, { recursive: true, force: true })
    }
  }
)
