import { PostgresServer } from '../../test/fixtures/stores/postgres.ts'
import { unusedPort } from '../../test/fixtures/network/unused-port.ts'
import { completed, taskIdIn } from '../checks.ts'
import { median } from '../figures.ts'
import { repeat, type Load } from '../load/load.ts'
import { webSocketLoad } from '../load/websocket-load.ts'
import type { Scale } from '../scale.ts'
import { ServerProcess } from '../server-process.ts'
import { percent, short, table, times, whole } from '../tables.ts'
import { messageParams } from './message.ts'

const NODES = 3
const SECRET = 'a secret of the bench'
/** How much less is sent than to servers in memory. */
const FEWER = 2
/** Events of the task that is followed. */
const EVENTS = 500

/** Servers that are loaded together. */
interface Lane {
  readonly name: string
  readonly servers: readonly ServerProcess[]
  readonly loads: readonly Load[]
  readonly rates: number[]
  readonly cpuMicros: number[]
}

/**
 * Three nodes and their PostgreSQL beside one server with a SQLite file, all on the same cores: tasks a second, and how
 * late a follower on another node gets an event.
 */
export async function clusterTables({
  requests,
  requestRounds,
  warmUps
}: Scale): Promise<{ title: string; rows: string }[]> {
  const database = await PostgresServer.start(['fsync=on', 'shared_buffers=256MB', 'max_connections=60'], {
    onDisk: true
  })
  const servers: ServerProcess[] = []
  const start = async (options: object) => {
    const server = await ServerProcess.start('ours', {
      work: 'artifact',
      limits: { advanced: { callsPerConnection: 100_000 } },
      ...options
    })
    servers.push(server)
    return server
  }
  try {
    const node = async (work: string) =>
      start({
        work,
        database: database.url(),
        schema: work,
        node: { address: `ws://127.0.0.1:${await unusedPort()}`, secret: SECRET }
      })
    const nodes = [await node('artifact'), await node('artifact'), await node('artifact')]
    const lanes = [
      await laneOf('1 server, SQLite', [await start({ durable: true })]),
      await laneOf(`${NODES} nodes, PostgreSQL`, nodes)
    ]
    const tables: { title: string; rows: string }[] = []
    for (const lane of lanes) await repeat((lane.servers.length * warmUps) / 4, 64, index => send(lane, index))
    for (const inFlight of [1, 64]) {
      const count = inFlight === 1 ? requests / 10 : requests / FEWER
      for (const lane of lanes) lane.rates.length = lane.cpuMicros.length = 0
      for (let round = 0; round < Math.ceil(requestRounds / FEWER); round += 1)
        for (const lane of lanes) await measure(lane, count, inFlight)
      const base = lanes[0]?.rates ?? []
      tables.push({
        title: `Cluster: SendMessage → completed task, ${inFlight} in flight`,
        rows: table(
          ['Server', 'ms/task', 'tasks/s', 'nodes CPU µs/task', '× one server, rate'],
          lanes.map(({ name, rates, cpuMicros }) => [
            name,
            short((1000 * inFlight) / median(rates)),
            whole(median(rates)),
            short(median(cpuMicros)),
            times(median(rates.map((rate, i) => rate / (base[i] ?? NaN))))
          ])
        )
      })
    }
    for (const lane of lanes) for (const load of lane.loads) await load.close()
    tables.push({
      title: 'Cluster: from the work to a follower',
      rows: await following([await node('ticking'), await node('ticking'), await node('ticking')])
    })
    return tables
  } finally {
    await Promise.all(servers.map(server => server.stop()))
    await database.stop()
  }
}

async function laneOf(name: string, servers: readonly ServerProcess[]): Promise<Lane> {
  return {
    name,
    servers,
    loads: await Promise.all(servers.map(({ port }) => webSocketLoad(port, 1))),
    rates: [],
    cpuMicros: []
  }
}

async function send({ loads }: Lane, index: number): Promise<void> {
  completed(await (loads[index % loads.length] as Load).call('SendMessage', messageParams({ kind: 'artifact' })))
}

async function measure(lane: Lane, count: number, inFlight: number): Promise<void> {
  await repeat(inFlight, inFlight, index => send(lane, index))
  const cpu = async () =>
    (await Promise.all(lane.servers.map(server => server.cpuMicros()))).reduce((sum, micros) => sum + micros, 0)
  const before = await cpu()
  const startMs = performance.now()
  await repeat(count, inFlight, index => send(lane, index))
  lane.rates.push((1000 * count) / (performance.now() - startMs))
  lane.cpuMicros.push(((await cpu()) - before) / count)
}

/** How long the events of a task of the first node take to clients of the first and of the second. */
async function following(nodes: readonly ServerProcess[]): Promise<string> {
  const loads = await Promise.all(nodes.map(({ port }) => webSocketLoad(port, 1)))
  const [own, other] = loads as [Load, Load]
  const id = taskIdIn(
    await own.call('SendMessage', {
      ...messageParams({ kind: 'chunks', count: EVENTS }),
      configuration: { returnImmediately: true }
    })
  )
  const late = await Promise.all(
    [own, other].map(async load => {
      const tookMs: number[] = []
      await load.stream('SubscribeToTask', { id }, event => {
        const [, at] = /"text":"(\d+\.\d+)"/.exec(event.includes('"artifactUpdate"') ? event : '') ?? []
        if (at !== undefined) tookMs.push(performance.timeOrigin + performance.now() - Number(at))
      })
      return tookMs.toSorted((a, b) => a - b)
    })
  )
  for (const load of loads) await load.close()
  const row = (name: string, tookMs: readonly number[]) => [
    name,
    ...[0.5, 0.99].map(part => short(tookMs[Math.floor(part * tookMs.length)] ?? NaN)),
    percent(tookMs.length / EVENTS)
  ]
  return table(
    ['Follower', 'p50 ms', 'p99 ms', 'events'],
    [row('on the node of the task', late[0] ?? []), row('on another node', late[1] ?? [])]
  )
}
