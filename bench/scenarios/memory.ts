import type { LimitChanges } from '../../runtime/access/limits.ts'
import { completed, taskIdIn, waiting } from '../checks.ts'
import { echo, express, ours, oursCrowd, oursDurable, type Contender } from '../contenders.ts'
import { median } from '../figures.ts'
import { repeat, type Load } from '../load/load.ts'
import { webSocketLoad } from '../load/websocket-load.ts'
import type { Scale } from '../scale.ts'
import { ServerProcess } from '../server-process.ts'
import type { Memory } from '../servers/control.ts'
import { table, times, whole } from '../tables.ts'
import { messageParams } from './message.ts'

interface Keeper {
  readonly name: string
  readonly contender: Contender
  readonly limits: LimitChanges
}

const IN_FLIGHT = 16
const WARM_UPS = 500
const FIRST_CONNECTIONS = 2000
const CONNECTIONS_AT_ONCE = 100
const ANSWERED = 10
const SETTLED_TRIES = 20
const SETTLE_MS = 100

/** Memory of a task that waits in input-required: what the process holds more for each of many such tasks. */
export async function memoryTable({ waitingTasks, memoryRounds }: Scale): Promise<string> {
  const all = waitingTasks + WARM_UPS
  const keepers: Keeper[] = [
    // A connection may only have a part of the live contexts.
    { name: 'taskchart, live', contender: oursCrowd, limits: live(all) },
    { name: 'taskchart, passivated', contender: ours, limits: { advanced: { idleContexts: 1 } } },
    { name: 'taskchart, passivated, SQLite', contender: oursDurable, limits: { advanced: { idleContexts: 1 } } },
    { name: 'official SDK', contender: express, limits: {} }
  ]
  const found = keepers.map(({ name }) => ({ name, heap: [] as number[], rss: [] as number[] }))
  for (let round = 0; round < memoryRounds; round += 1) {
    for (const [i, keeper] of keepers.entries()) {
      const { heap, rss } = await memoryOfATask(keeper, waitingTasks)
      found[i]?.heap.push(heap)
      found[i]?.rss.push(rss)
    }
  }
  const medians = found.map(({ name, heap, rss }) => ({ name, heap: median(heap), rss: median(rss) }))
  const theirs = medians.at(-1)?.heap ?? NaN
  const rows = medians.map(({ name, heap, rss }) => [name, whole(heap), whole(rss), times(theirs / heap)])
  return table(['Server', 'heap, bytes/task', 'resident, bytes/task', '× official SDK, heap'], rows)
}

/**
 * Memory of a connection that is open and does nothing: what the process holds more for each of many, and how much more
 * than bare `ws`.
 */
export async function connectionTable({ idleConnections, memoryRounds }: Scale): Promise<string> {
  const found = [echo, ours].map(({ name }) => ({ name, heap: [] as number[], rss: [] as number[] }))
  for (let round = 0; round < memoryRounds; round += 1) {
    for (const [i, contender] of [echo, ours].entries()) {
      const { heap, rss } = await memoryOfAConnection(contender, idleConnections)
      found[i]?.heap.push(heap)
      found[i]?.rss.push(rss)
    }
  }
  const [bare, ...others] = found.map(({ name, heap, rss }) => ({ name, heap: median(heap), rss: median(rss) }))
  const row = (
    { name, heap, rss }: { readonly name: string; readonly heap: number; readonly rss: number },
    limit?: typeof bare
  ) => [name, whole(heap), whole(rss), limit ? whole(rss - limit.rss) : '']
  return table(
    ['Server', 'heap, bytes/connection', 'resident, bytes/connection', 'resident, more than bare ws'],
    [...(bare ? [row(bare)] : []), ...others.map(other => row(other, bare))]
  )
}

async function memoryOfAConnection(
  { file, options }: Contender,
  connections: number
): Promise<Pick<Memory, 'heap' | 'rss'>> {
  const server = await ServerProcess.start(file, { ...options, work: 'ask' })
  try {
    // The first ones let the young generation of V8 grow, which the next ones use as well.
    const first = await connected(server, FIRST_CONNECTIONS)
    const before = await settled(server)
    const next = await connected(server, connections)
    const after = await settled(server)
    await Promise.all([...first, ...next].map(load => load.close()))
    return { heap: (after.heap - before.heap) / connections, rss: (after.rss - before.rss) / connections }
  } finally {
    await server.stop()
  }
}

/** So many connections, a few at a time: many handshakes at once would let the heap grow. */
async function connected(server: ServerProcess, connections: number): Promise<Load[]> {
  const loads: Load[] = []
  for (let open = 0; open < connections; open += CONNECTIONS_AT_ONCE)
    loads.push(await webSocketLoad(server.port, CONNECTIONS_AT_ONCE))
  return loads
}

/** Limits with which so many contexts stay in memory. */
function live(contexts: number): LimitChanges {
  return { liveContexts: contexts, advanced: { idleContexts: contexts } }
}

async function memoryOfATask({ contender, limits }: Keeper, tasks: number): Promise<Pick<Memory, 'heap' | 'rss'>> {
  const server = await ServerProcess.start(contender.file, { ...contender.options, work: 'ask', limits })
  try {
    await opened(server, contender, WARM_UPS)
    const before = await settled(server)
    const taskIds = await opened(server, contender, tasks)
    const after = await settled(server)
    await answered(
      server,
      contender,
      taskIds.filter((_, i) => i % Math.ceil(tasks / ANSWERED) === 0)
    )
    return { heap: (after.heap - before.heap) / tasks, rss: (after.rss - before.rss) / tasks }
  } finally {
    await server.stop()
  }
}

/** The ids of so many tasks that now wait. Their clients are gone. */
async function opened(server: ServerProcess, contender: Contender, tasks: number): Promise<string[]> {
  const taskIds: string[] = []
  await loaded(server, contender, async load => {
    await repeat(tasks, IN_FLIGHT, async () => {
      taskIds.push(taskIdIn(waiting(await load.call('SendMessage', messageParams({ kind: 'ask' })))))
    })
  })
  return taskIds
}

/** Answers some of the tasks, which have to complete: what is kept has to be enough to go on with. */
async function answered(server: ServerProcess, contender: Contender, taskIds: readonly string[]): Promise<void> {
  await loaded(server, contender, async load => {
    for (const taskId of taskIds) completed(await load.call('SendMessage', messageParams({ kind: 'artifact' }, taskId)))
  })
}

async function loaded(server: ServerProcess, contender: Contender, use: (load: Load) => Promise<void>): Promise<void> {
  const load = await contender.load(server.port, IN_FLIGHT)
  await use(load)
  await load.close()
}

/** The memory once it does not shrink any more: connections and idle contexts take a moment to leave. */
async function settled(server: ServerProcess): Promise<Memory> {
  let memory = await server.memory()
  for (let i = 0; i < SETTLED_TRIES; i += 1) {
    await new Promise(resolve => setTimeout(resolve, SETTLE_MS))
    const next = await server.memory()
    if (next.heap > 0.999 * memory.heap) return next
    memory = next
  }
  return memory
}
