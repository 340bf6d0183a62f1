import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { attack } from '../../bench/siege/attack.ts'
import { ATTACKS } from '../../bench/siege/attacks.ts'
import { Besieged } from '../../bench/siege/besieged.ts'
import { Observer } from '../../bench/siege/observer.ts'
import { BOUNDS } from '../../bench/siege/verdict.ts'
import { NO_SQLITE } from '../fixtures/stores/sqlite.ts'

/** A short siege with a fixed seed: `npm run siege` attacks for a minute, and measures the waits too. */
const SEED = 23
const CONNECTIONS = 8

await t.test(
  'a server under attack serves others, limits its heap and restarts on its file',
  { skip: NO_SQLITE, timeout: 120_000 },
  async t => {
    const folder = mkdtempSync(join(tmpdir(), 'taskchart-siege-'))
    t.teardown(() => rm(folder, { recursive: true, force: true }))
    const file = join(folder, 'tasks.db')
    const server = await Besieged.start(file)
    t.teardown(() => server.kill())
    const observer = await Observer.connect(server.port)
    t.teardown(() => observer.close())
    const over = new AbortController()
    const attacked = attack(
      {
        port: server.port,
        seed: SEED,
        connections: CONNECTIONS,
        rounds: Math.ceil(Object.keys(ATTACKS).length / CONNECTIONS),
        holdMs: 100,
        foreign: observer.ticking,
        only: []
      },
      server.ended
    )
    const observed = observer.observe(5, Infinity, AbortSignal.any([over.signal, server.ended]))
    const told = await attacked
    over.abort()
    await observed
    if (server.ended.aborted) t.comment(server.log)
    t.equal(server.ended.aborted, false, 'the server continues')
    t.strictSame(
      told.filter(({ times }) => times === 0),
      [],
      'every attack was made'
    )
    t.strictSame(
      told.flatMap(({ attack, defects }) => defects.map(text => `${attack}: ${text}`)),
      [],
      'none was answered with an internal error'
    )
    t.ok(server.takePeaks().heap <= BOUNDS.heap * 2 ** 20)
    observer.close()
    await server.kill()
    const again = await Besieged.start(file)
    t.teardown(() => again.kill())
    await observer.lookBack(again.port)
    t.strictSame(observer.failures, [])
  }
)
