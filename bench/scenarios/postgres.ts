import { PostgresServer } from '../../test/fixtures/stores/postgres.ts'
import { completed } from '../checks.ts'
import { core, ours, oursDurable, oursHttp, type Contender } from '../contenders.ts'
import { figuresOf } from '../figures.ts'
import { repeat, type Load } from '../load/load.ts'
import { run, type Race } from '../race.ts'
import type { Scale } from '../scale.ts'
import { raceTable } from '../tables.ts'
import { messageParams } from './message.ts'

/** How much less the races of synced servers do than those in memory. */
const FEWER = 2

/**
 * SendMessage with every event synced to a PostgreSQL of its own, beside SQLite on the same disk and the official SDK
 * with its own task store in the same PostgreSQL. All of them share the cores.
 */
export async function postgresTables({
  requests,
  requestRounds,
  warmUps
}: Scale): Promise<{ title: string; rows: string }[]> {
  const server = await PostgresServer.start(['fsync=on', 'shared_buffers=256MB'], { onDisk: true })
  try {
    const url = server.url()
    const name = 'official SDK, its store'
    const sdk: Contender = { ...core, name: 'official SDK, its PostgreSQL store', options: { database: url } }
    const contenders: readonly Contender[] = [
      { ...ours, name: 'taskchart, WebSocket, PostgreSQL', options: { database: url } },
      { ...oursHttp, name: 'taskchart, HTTP, PostgreSQL', options: { database: url, schema: 'http' } },
      oursDurable,
      sdk
    ]
    const tables: { title: string; rows: string }[] = []
    for (const inFlight of [1, 16, 64]) {
      const race: Race = {
        title: `PostgreSQL: SendMessage → completed task, ${inFlight} in flight`,
        unit: 'task',
        contenders,
        baseline: { contender: sdk, name },
        work: 'artifact',
        inFlight,
        rounds: Math.ceil(requestRounds / FEWER),
        times: inFlight === 1 ? requests / 10 : requests / FEWER,
        isTimed: inFlight === 1,
        warmUp: load => repeat(warmUps / (inFlight === 1 ? 8 : 4), inFlight, () => send(load)),
        begin: async load => {
          await repeat(inFlight, inFlight, () => send(load))
          return async () => {
            await send(load)
            return 1
          }
        }
      }
      tables.push({ title: race.title, rows: raceTable(race, figuresOf(await run(race), race)) })
    }
    return tables
  } finally {
    await server.stop()
  }
}

async function send(load: Load): Promise<void> {
  completed(await load.call('SendMessage', messageParams({ kind: 'artifact' })))
}
