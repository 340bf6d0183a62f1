import '../../fixtures/stores/needs-postgres.ts'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { cuttingProxy } from '../../fixtures/network/cutting-proxy.ts'
import { NodeProcesses, type Followed } from '../../fixtures/cluster/node-processes.ts'
import { PostgresServer } from '../../fixtures/stores/postgres.ts'
import { until } from '../../fixtures/runtime/runtime-helpers.ts'
import { IS_DEEP, IS_WHOLE, randomFrom, SEED } from '../../fixtures/sample.ts'
import { unusedPort } from '../../fixtures/network/unused-port.ts'

/** How many nodes are killed: `npm run cluster:kills` kills 200. */
const KILLS = Number(process.env.KILLS ?? (IS_WHOLE ? 20 : 10))

/** Tasks that are followed at any time, and how far each counts. */
const TASKS = 24
const COUNT = 60

/** Nodes that fail take seconds: they are tested whole, or not at all. */
if (!IS_DEEP && !process.env.KILLS) {
  t.plan(0, 'only in npm run test:deep')
  process.exit()
}

/** Follows so many tasks at a time, one after the other, until `during` is over. */
async function followed(nodes: NodeProcesses, during: () => Promise<void>): Promise<Followed[]> {
  const all: Followed[] = []
  const end = new AbortController()
  const follow = async () => {
    do all.push(await nodes.follow(COUNT))
    while (!end.signal.aborted)
  }
  const following = Promise.all(Array.from({ length: TASKS }, follow))
  const causing = until(() => nodes.begun >= TASKS, 'all streams')
    .then(during)
    .finally(() => end.abort())
  await Promise.all([causing, following])
  return all
}

function check(t: Test, what: string, all: readonly Followed[]): void {
  const faults = all.flatMap(({ faults }) => faults)
  const silentMs = all.flatMap(({ silentMs }) => silentMs).toSorted((a, b) => a - b)
  const at = (part: number) =>
    Math.round(silentMs[Math.min(silentMs.length - 1, Math.floor(part * silentMs.length))] ?? 0)
  t.comment(
    `${what}: ${all.length} tasks, ${faults.length} with a gap, a repeat or another end; next event of ${silentMs.length} after p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, at most ${at(1)} ms`
  )
  t.strictSame(faults, [])
}

async function served(t: Test): Promise<PostgresServer> {
  const server = await PostgresServer.start(['max_connections=80'])
  t.teardown(() => server.stop())
  return server
}

/** Starts nodes, has them fail while tasks are followed, and checks that no event is lost or repeated. */
async function fails(
  t: Test,
  what: string,
  cause: (nodes: NodeProcesses, server: PostgresServer) => Promise<void>
): Promise<void> {
  const server = await served(t)
  const nodes = await NodeProcesses.start(t, server.url(), 3)
  check(t, what, await followed(nodes, () => cause(nodes, server)))
}

await t.test('nodes that are killed lose nothing, and streams on another node go on', async t => {
  const nodes = await NodeProcesses.start(t, (await served(t)).url(), 3)
  const random = randomFrom(SEED)
  const all = await followed(nodes, async () => {
    for (let kill = 0; kill < KILLS; kill += 1) {
      // Kills come at any moment of the tasks.
      await setTimeout(random() * 500)
      const all = [...nodes.nodes]
      const victim = all[Math.floor(random() * all.length)]
      if (victim) nodes.fail(victim, 'SIGKILL')
      await nodes.add()
      await nodes.settled()
    }
  })
  check(t, `kill -9 × ${KILLS}`, all)
})

if (IS_DEEP)
  await t.test('streams go on without a gap or a repeat', async t => {
    await t.test('while a node hangs for ten seconds', t =>
      fails(t, 'SIGSTOP 10 s', async nodes => {
        const [victim] = nodes.nodes
        if (victim) nodes.fail(victim, 'SIGSTOP')
        await setTimeout(10_000)
        victim?.child.kill('SIGCONT')
        await nodes.settled()
      })
    )
    await t.test('while a node and the database do not reach each other', t =>
      fails(t, 'no packets between a node and PostgreSQL', async (nodes, server) => {
        const proxy = await cuttingProxy(server.port)
        t.teardown(() => proxy.close())
        const node = await nodes.add({ url: server.url(proxy.port) })
        await nodes.shares(node)
        proxy.hold(true)
        nodes.failed(node)
        await setTimeout(5000)
        proxy.hold(false)
        await nodes.shares(node)
      })
    )
    await t.test('while two nodes do not reach each other', t =>
      fails(t, 'no packets between two nodes', async nodes => {
        const port = await unusedPort()
        const proxy = await cuttingProxy(port)
        t.teardown(() => proxy.close())
        const node = await nodes.add({ address: `ws://127.0.0.1:${proxy.port}`, port })
        await nodes.shares(node)
        proxy.hold(true)
        await setTimeout(5000)
        proxy.hold(false)
        await setTimeout(1000)
      })
    )
    for (const version of ['1.0.0', '1.1.0'])
      await t.test(`while all nodes are replaced one after the other, by version ${version} of the agent`, t =>
        fails(t, `rolling restart, version ${version}`, async nodes => {
          for (const node of Array.from(nodes.nodes)) {
            await nodes.shares(await nodes.add({ version }))
            nodes.failed(node)
            await nodes.close(node)
            await nodes.settled()
          }
          // On a busy machine the node of this process may lose its own lease.
          t.strictSame(
            nodes.refused.filter(reason => !reason.startsWith('The database')),
            []
          )
        })
      )
    await t.test('from three nodes to four, and back', t =>
      fails(t, '3 → 4 → 3 nodes', async nodes => {
        const node = await nodes.add()
        await nodes.shares(node)
        nodes.failed(node)
        await nodes.close(node)
        await nodes.settled()
      })
    )
  })
