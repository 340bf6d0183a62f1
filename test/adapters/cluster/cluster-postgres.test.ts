import '../../fixtures/stores/needs-postgres.ts'
import t, { type Test } from 'tap'
import { assign } from 'xstate'
import { connect } from '../../../adapters/client/connect.ts'
import { postgresNode, type PostgresNodeOptions } from '../../../adapters/cluster/cluster.ts'
import type { ClusterNode } from '../../../adapters/cluster/node.ts'
import { NodeLink } from '../../../adapters/cluster/link/link.ts'
import { wantedOwners } from '../../../adapters/cluster/placement/placement.ts'
import { JoinPauses, SignsOfLife } from '../../../adapters/cluster/placement/joining.ts'
import { PostgresPlacement } from '../../../adapters/cluster/placement/postgres-placement.ts'
import { NODE_CLASS, TAKE } from '../../../adapters/cluster/placement/statements.ts'
import { postgresStore } from '../../../adapters/postgres/postgres.ts'
import { LOCK_CLASS } from '../../../adapters/postgres/schema/migrate.ts'
import { poolOf, type PostgresPool } from '../../../adapters/postgres/session/pool.ts'
import { connectionsOf, storeOf } from '../../../adapters/postgres/store.ts'
import { systemClock, type Clock } from '../../../runtime/ports/clock.ts'
import {
  defineAgent,
  inputRequired,
  type MessageReceived,
  type Runtime,
  type RuntimeOptions,
  setupWork,
  type WorkFunction
} from '../../../runtime/index.ts'
import { createNode } from '../../../runtime/runtime.ts'
import { isA2AError } from '../../../machines/protocol/errors.ts'
import { onDatabase, PostgresServer } from '../../fixtures/stores/postgres.ts'
import {
  brief,
  deferred,
  reaches,
  recordingLogger,
  rejection,
  say,
  taskIn,
  textOf,
  until
} from '../../fixtures/runtime/runtime-helpers.ts'
import { opening, quiet } from '../../fixtures/stores/stored-tasks.ts'
import { runCommand } from '../../fixtures/cli/run-command.ts'
import { unusedPort } from '../../fixtures/network/unused-port.ts'
import { Session } from '../../../adapters/postgres/session/session.ts'

const server = await PostgresServer.start(['max_connections=60'])
t.teardown(() => server.stop())
const url = server.url()
const SHARDS = 6
let schemas = 0

interface Node {
  readonly node: ClusterNode
  readonly runtime: Runtime
  readonly address: string
  readonly said: unknown[]
}

const asks = defineAgent({
  card: { name: 'Asks' },
  work: async ({ ask }) => ({ artifact: textOf(await ask(inputRequired('Which day?'))) ?? '' })
})

/** Adds nodes to a cluster with a schema of its own. */
function cluster(t: Test, agent = asks) {
  const schema = `cluster_${(schemas += 1)}`
  const add = async ({
    options = {},
    ...more
  }: Partial<PostgresNodeOptions> & { readonly options?: Partial<RuntimeOptions> } = {}): Promise<Node> => {
    const address = more.address ?? `ws://127.0.0.1:${await unusedPort()}`
    const { logger, said } = quiet()
    const node = await postgresNode(url, {
      address,
      secret: 'a secret of nodes',
      schema,
      readers: 2,
      shards: SHARDS,
      logger,
      ...more
    })
    const runtime = createNode({ agent, logger, store: node.store, cluster: node, ...options })
    t.teardown(() => runtime.close())
    await node.open()
    return { node, runtime, address, said }
  }
  const run = (sql: string) => onDatabase(url, `SET search_path = ${schema}; ${sql}`)
  const epochs = async () => (await run('SELECT epoch FROM shards ORDER BY shard')).map(({ epoch }) => Number(epoch))
  return { schema, add, run, epochs }
}

/** Waits until each of some nodes has its part of the shards, and together they have all. */
async function shared(...nodes: readonly Node[]): Promise<void> {
  const addresses = nodes.map(({ address }) => address)
  await until(
    () =>
      nodes.every(({ node, address }) =>
        wantedOwners(SHARDS, addresses).every((owner, shard) => node.shards.has(shard) === (owner === address))
      ),
    'every shard has its owner'
  )
}

/** Takes locks in a session that is no node. The result ends it. */
async function locked(t: Test, schema: string, locks: string): Promise<() => void> {
  const pool = poolOf(url, 1)
  const client = await pool.connect()
  t.teardown(() => pool.end())
  await client.query({ text: `SET search_path = ${schema}; SELECT ${locks}`, rowMode: 'array' })
  let isOver = false
  const end = () => {
    if (!isOver) client.release(true)
    isOver = true
  }
  client.on('error', end)
  t.teardown(end)
  return end
}

/** A context of a node. */
async function contextOf({ node: { shards } }: Node): Promise<string> {
  for (let i = 0; ; i += 1)
    if (shards.has(shards.of({ tenant: '', principal: 'anonymous', contextId: `c${i}` }))) return `c${i}`
}

/** Ends the session that has the locks of a node. */
const endSession = ({ run }: ReturnType<typeof cluster>, { address }: Node) =>
  run(`SELECT pg_terminate_backend(pid) FROM nodes WHERE address = '${address}'`)

await t.test('every shard has one owner, and each new owner a higher epoch', async t => {
  const these = cluster(t)
  const one = await these.add()
  await shared(one)
  t.strictSame(
    await these.epochs(),
    Array.from({ length: SHARDS }, () => 1)
  )
  t.equal(one.runtime.health().isReady, true)
  const two = await these.add()
  await shared(one, two)
  const moved = two.node.shards.owned
  t.strictSame(
    await these.epochs(),
    Array.from({ length: SHARDS }, (_, shard) => (moved.includes(shard) ? 2 : 1))
  )
  await two.runtime.close()
  await shared(one)
  t.strictSame(
    (await these.epochs()).map((epoch, shard) => epoch - (moved.includes(shard) ? 2 : 0)),
    Array.from({ length: SHARDS }, () => 1)
  )
  t.equal((await these.run('SELECT * FROM nodes')).length, 1)
})

await t.test('nodes that start together make the tables once, and share the shards', async t => {
  const these = cluster(t)
  const nodes = await Promise.all([these.add(), these.add(), these.add()])
  await shared(...nodes)
})

await t.test('a node whose session ends has lost everything at once, and joins again by itself', async t => {
  const these = cluster(t)
  const one = await these.add()
  const two = await these.add()
  await shared(one, two)
  const task = taskIn(await one.runtime.sendMessage(say('x')))
  await endSession(these, one)
  await until(() => one.said.length > 0, 'it says so')
  await shared(one, two)
  const answer = say('Monday', { taskId: task.id })
  // Who asks while shards change hands may be told to ask again.
  const ended = await until(async () => {
    try {
      return await two.runtime.sendMessage(answer)
    } catch (error) {
      if (!isA2AError(error) || error.code !== 'Overloaded') throw error
      return undefined
    }
  }, 'it is answered')
  t.equal(taskIn(ended).status.state, 'TASK_STATE_COMPLETED')
})

await t.test('a hung node is ended by another after the lease, and writes nothing more', async t => {
  const these = cluster(t)
  let isHung = false
  const clock: Clock = {
    ...systemClock,
    setTimeout: (run, ms) => systemClock.setTimeout(() => void (isHung || run()), ms)
  }
  const hung = await these.add({ clock })
  await shared(hung)
  isHung = true
  const two = await these.add()
  await until(() => two.node.shards.owned.length === SHARDS, 'the other has everything')
  await until(() => hung.node.shards.owned.length === 0, 'it knows that it has nothing')
  isHung = false
  t.match(await rejection(hung.node.store.commit(opening('late'))), { code: 'Overloaded' })
  const later = taskIn(await two.runtime.sendMessage(say('x')))
  t.equal(later.status.state, 'TASK_STATE_INPUT_REQUIRED')
})

await t.test('nodes whose clocks are minutes off share the time of the database', async t => {
  const these = cluster(
    t,
    defineAgent({ card: { name: 'Sleeps' }, work: async ({ sleep }) => sleep(1500) as Promise<undefined> })
  )
  const off = (aheadMs: number): Clock => ({ ...systemClock, now: () => Date.now() + aheadMs })
  const ahead = await these.add({ clock: off(120_000) })
  const behind = await these.add({ clock: off(-120_000) })
  await shared(ahead, behind)
  const now = async () =>
    Number((await these.run('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS ms'))[0]?.['ms'])
  for (const { node } of [ahead, behind]) {
    const [before, is, after] = [await now(), node.clock.now(), await now()]
    t.ok(is > before - 1000 && is < after + 1000, `${is} is between ${before} and ${after}`)
  }
  // Sleeps that begin on one node, and end on the other.
  const fromMs = await now()
  const asleep = taskIn(
    await ahead.runtime.sendMessage(say('x', { contextId: await contextOf(ahead) }, { returnImmediately: true }))
  )
  await ahead.runtime.settled()
  await endSession(these, ahead)
  // On a busy machine the node may have lost its own session meanwhile, and joins again.
  const stateThere = () =>
    behind.runtime.getTask({ id: asleep.id }).then(
      ({ status: { state } }) => state,
      (error: unknown) => {
        t.match(error, { code: 'Overloaded' })
        return undefined
      }
    )
  await until(async () => (await stateThere()) === 'TASK_STATE_COMPLETED')
  t.ok((await now()) >= fromMs + 1500, 'not too early')
  const { timestamp = '' } = (await behind.runtime.getTask({ id: asleep.id })).status
  t.ok(Date.parse(timestamp) >= fromMs + 1400 && Date.parse(timestamp) <= (await now()) + 100, timestamp)
})

await t.test('streams and calls continue while nodes and the database fail', async t => {
  const gates = Array.from({ length: 4 }, () => deferred())
  const these = cluster(
    t,
    defineAgent({
      card: { name: 'Counts' },
      work: async ({ step, emit }) => {
        for (const [i, gate] of gates.entries()) {
          await step(`gate ${i}`, async () => gate.promise)
          emit({ type: 'progress', message: { parts: [{ text: String(i) }] } } as never)
        }
      }
    })
  )
  const one = await these.add()
  await shared(one)
  const front = await these.add({ takesShards: false })
  const task = taskIn(await front.runtime.sendMessage(say('go', {}, { returnImmediately: true })))
  const seen: string[] = []
  const reading = (async () => {
    for await (const event of front.runtime.subscribeToTask({ id: task.id })) seen.push(brief(event))
  })()
  await until(() => seen.length > 0, 'the task')
  gates[0]?.resolve()
  await until(() => seen.some(line => line.includes('0')), 'the first number')
  const two = await these.add()
  await shared(one, two)
  gates[1]?.resolve()
  await until(() => seen.some(line => line.includes('1')), 'the second number')
  await server.kill()
  await server.begin(['max_connections=60'])
  gates[2]?.resolve()
  gates[3]?.resolve()
  await reading
  t.equal(new Set(seen).size, seen.length, seen.join())
  t.equal((await reaches(front.runtime, task.id, 'completed')).status.state, 'TASK_STATE_COMPLETED')
})

await t.test('three nodes are replaced by version 2 and back by version 1, with tasks of both', async t => {
  const workOf =
    (version: string): WorkFunction =>
    async ({ ask, step }) => {
      const first = textOf(await ask(inputRequired(`${version}: one?`)))
      const ran = await step('version', () => version)
      const second = textOf(await ask(inputRequired(`${version}: two?`)))
      return { artifact: [ran, first, second].join() }
    }
  const agentOf = (version: string, other: string) =>
    defineAgent({
      card: { name: 'Asks' },
      version,
      work: workOf(version),
      ...(other !== '' && { earlier: { [other]: workOf(other) } })
    })
  const these = cluster(t)
  const add = (version: string, other = '') => these.add({ options: { agent: agentOf(version, other) } })
  /** Opens tasks by each of some nodes; gives the version that each task says. */
  const tasks = new Map<string, string>()
  const opensBy = async (...nodes: readonly Node[]) => {
    for (const { runtime } of nodes)
      for (let n = 0; n < 3; n += 1) {
        const { id, status } = taskIn(await runtime.sendMessage(say('go')))
        tasks.set(id, (textOf(status.message) ?? '').slice(0, 1))
      }
  }
  /** Answers every task once, by any node; a task that is stored by a newer version is refused. */
  const answers = async (words: string, { runtime }: Node) => {
    const refused: string[] = []
    for (const [id, version] of tasks)
      await runtime.sendMessage(say(words, { taskId: id })).catch((error: unknown) => {
        if (!isA2AError(error) || error.code !== 'Overloaded') throw error
        t.match(error.message, `Task ${id} was opened by version ${version} of this agent`)
        refused.push(version)
      })
    return refused
  }
  let nodes = [await add('1'), await add('1'), await add('1')]
  await shared(...nodes)
  await opensBy(...nodes)
  for (let n = 0; n < 3; n += 1) {
    const [oldest, ...others] = nodes as [Node, ...Node[]]
    nodes = [...others, await add('2', '1')]
    await shared(oldest, ...nodes)
    await opensBy(...nodes)
    await oldest.runtime.close()
    await shared(...nodes)
  }
  t.strictSame(new Set(tasks.values()), new Set(['1', '2']), 'tasks of both versions were opened meanwhile')
  t.strictSame(await answers('a', nodes[0] as Node), [], 'version 2 has the work of both')
  for (const last of [false, false, true]) {
    const [oldest, ...others] = nodes as [Node, ...Node[]]
    nodes = [...others, await add('1')]
    await oldest.runtime.close()
    await shared(...nodes)
    if (!last) await opensBy(nodes[0] as Node)
  }
  for (const [id, version] of tasks) {
    const { status } = await (nodes[0] as Node).runtime.getTask({ id })
    t.match(textOf(status.message), `${version}: `, 'each waits as it did')
  }
  const opened = [...tasks.values()]
  t.strictSame(
    (await answers('b', nodes[0] as Node)).length,
    opened.filter(version => version === '2').length,
    'version 1 alone leaves the tasks of version 2 in the store'
  )
  const both = await add('2', '1')
  for (const { runtime } of nodes) await runtime.close()
  await shared(both)
  for (const words of ['c', 'd'])
    for (const id of tasks.keys()) {
      const { status } = await both.runtime.getTask({ id })
      if (status.state === 'TASK_STATE_INPUT_REQUIRED') await both.runtime.sendMessage(say(words, { taskId: id }))
    }
  for (const [id, version] of tasks) {
    const { artifacts } = await reaches(both.runtime, id, 'completed')
    t.match(artifacts?.map(textOf).join(), new RegExp(`^${version},[a-d],[a-d]$`), 'each ran the work of its version')
  }
})

await t.test('three nodes are replaced by a version that renames states, and back, and lose no task', async t => {
  const chartOf = (one: string, two: string) =>
    setupWork({ types: { context: {} as { words: string[] } } }).createMachine({
      id: 'work',
      context: { words: [] },
      initial: one,
      states: Object.fromEntries([
        ...[one, two].map(
          name =>
            [
              name,
              {
                tags: 'input-required' as const,
                meta: { prompt: name },
                on: {
                  'message.received': {
                    target: name === one ? two : 'done',
                    actions: assign({
                      words: ({ context, event }: { context: { words: string[] }; event: MessageReceived }) => [
                        ...context.words,
                        String(textOf(event.message))
                      ]
                    })
                  }
                }
              }
            ] as const
        ),
        ['done', { type: 'final' as const }]
      ]),
      output: ({ context }) => ({ artifact: context.words.join() })
    })
  const agents = {
    '1': defineAgent({ card: { name: 'Asks' }, version: '1', work: chartOf('one', 'two') }),
    '2': defineAgent({
      card: { name: 'Asks' },
      version: '2',
      work: chartOf('first', 'second'),
      renamed: { '1': { states: { one: 'first', two: 'second' } } }
    })
  }
  const these = cluster(t)
  const tasks: string[] = []
  const opensBy = async (...nodes: readonly Node[]) => {
    for (const { runtime } of nodes)
      for (let n = 0; n < 3; n += 1) tasks.push(taskIn(await runtime.sendMessage(say('go'))).id)
  }
  const replaceAll = async (nodes: readonly Node[], version: '1' | '2', during: (nodes: Node[]) => Promise<void>) => {
    let now = [...nodes]
    for (const oldest of nodes) {
      now = [...now.filter(node => node !== oldest), await these.add({ options: { agent: agents[version] } })]
      await shared(oldest, ...now)
      await during(now)
      await oldest.runtime.close()
      await shared(...now)
    }
    return now as [Node, ...Node[]]
  }
  const stored = () => these.run('SELECT task, snapshot FROM snapshots ORDER BY task')
  const first = []
  for (let n = 0; n < 3; n += 1) first.push(await these.add({ options: { agent: agents['1'] } }))
  await shared(...first)
  await opensBy(...first)
  const newer = await replaceAll(first, '2', nodes => opensBy(...nodes))
  for (const id of tasks) await newer[0].runtime.sendMessage(say('a', { taskId: id }))
  const count = tasks.length
  const older = await replaceAll(newer, '1', async () => {})
  await opensBy(older[0])
  const before = await stored()
  for (const id of tasks.slice(0, count)) {
    t.equal(textOf((await older[0].runtime.getTask({ id })).status.message), 'second', 'it can be read')
    t.match(await rejection(older[0].runtime.sendMessage(say('b', { taskId: id }))), {
      code: 'Overloaded',
      message: `Task ${id} was opened by version 2 of this agent, and version 1 has it now.`
    })
  }
  t.strictSame(await stored(), before, 'version 1 leaves the tasks of version 2 in the store, untouched')
  for (const id of tasks.slice(count)) await older[0].runtime.sendMessage(say('a', { taskId: id }))
  const last = await replaceAll(older, '2', async () => {})
  for (const id of tasks) await last[0].runtime.sendMessage(say('b', { taskId: id }))
  for (const id of tasks) {
    const { artifacts } = await reaches(last[0].runtime, id, 'completed')
    t.equal(artifacts?.map(textOf).join(), 'a,b', 'every task went on where it was')
  }
})

await t.test('a node that cannot join says so, and joins when it can', async t => {
  const these = cluster(t)
  const one = await these.add()
  await shared(one)
  await these.run('DELETE FROM nodes')
  await until(() => JSON.stringify(one.said).includes('has lost its session'), 'it has lost its row')
  await shared(one)
  await these.run('ALTER TABLE nodes ADD CONSTRAINT no_beats CHECK (beats < 0) NOT VALID')
  await until(() => JSON.stringify(one.said).includes('cannot take part'), 'it says so')
  const { node, runtime, said } = await these.add({ listen: { host: '127.0.0.1', port: 0 } })
  t.equal(runtime.health().isReady, false)
  t.match(await rejection(runtime.getTask({ id: 'x' })), { code: 'Overloaded' })
  await until(() => JSON.stringify(said).includes('cannot take part'), 'it says so too')
  await one.runtime.close()
  await these.run('ALTER TABLE nodes DROP CONSTRAINT no_beats')
  await until(() => node.shards.owned.length === SHARDS, 'it has joined')
  await these.run("UPDATE meta SET value = '0' WHERE name = 'version'")
  t.match(await rejection(these.add()), { name: 'StorageError', message: /older schema version 0/ })
})

await t.test('a node with the address of another that lives waits for it with longer and longer pauses', async t => {
  const these = cluster(t)
  const one = await these.add()
  await shared(one)
  const pauses: number[] = []
  const clock: Clock = {
    ...systemClock,
    setTimeout: (run, ms) => systemClock.setTimeout(run, [500, 1000].includes(ms) ? (pauses.push(ms), 1) : ms)
  }
  const { logger, log } = recordingLogger()
  const two = await these.add({
    address: one.address,
    listen: { host: '127.0.0.1', port: await unusedPort() },
    clock,
    logger
  })
  await until(() => pauses.length === 2, 'it has tried again')
  t.strictSame(pauses, [500, 1000])
  const more = new JoinPauses()
  t.strictSame(
    Array.from({ length: 8 }, () => more.refused()),
    [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]
  )
  const flapping = new JoinPauses()
  const keptFor = (ms: number) => (flapping.joined(0), flapping.lost(ms))
  t.strictSame(
    [59_999, 0, 0, 10_000, 60_000, 0].map(keptFor),
    [0, 500, 1000, 2000, 0, 500],
    'a seat that is lost within a minute counts, and one that lasts a minute ends the count'
  )
  t.strictSame([flapping.refused(), keptFor(0)], [2000, 2000], 'refusals and losses count together')
  t.equal(
    log.filter(entry => JSON.stringify(entry).includes(`another node has the address ${one.address}`)).length,
    1,
    'one line names the address'
  )
  t.equal(two.runtime.health().isReady, false)
  t.notMatch(JSON.stringify(one.said), 'lost', 'the other has not noticed')
  await one.runtime.close()
  await shared(two)
  t.equal(two.runtime.health().isReady, true)
})

await t.test('a node replaces a session with its address that ends or gives no sign of life', async t => {
  const these = cluster(t)
  const one = await these.add()
  await shared(one)
  const address = `ws://127.0.0.1:${await unusedPort()}`
  // A hung node: its session is there, with the lock and the row of a node.
  const end = await locked(t, these.schema, `pg_advisory_lock(${NODE_CLASS}, pg_backend_pid())`)
  await these.run(
    `INSERT INTO nodes (address, pid, beats, takes, holder) SELECT '${address}', pid, 0, true, '{}' FROM pg_locks WHERE locktype = 'advisory' AND pid NOT IN (SELECT pid FROM nodes) LIMIT 1`
  )
  const two = await these.add({ address, takesShards: false })
  await until(() => two.runtime.health().isReady, 'it has joined')
  end()
})

await t.test('the first node of a cluster decides its secret, and others are refused by a line', async t => {
  const these = cluster(t)
  const one = await these.add()
  await shared(one)
  const { logger, log } = recordingLogger()
  const other = await these.add({ secret: 'another secret of nodes', logger })
  await until(() => JSON.stringify(log).includes('the nodes of this database have another secret'), 'it says so')
  t.equal(other.runtime.health().isReady, false)
  await until(
    async () =>
      (
        (await other.runtime.metrics.read()).find(({ name }) => name === 'taskchart.cluster.refusals')?.values ?? []
      ).some(({ value }) => value > 0),
    'it is counted'
  )
  t.strictSame(
    (await these.run('SELECT address FROM nodes')).map(({ address }) => address),
    [one.address]
  )
  await one.runtime.close()
  await shared(other)
})

await t.test('nodes on loopback without a secret share one of the database', async t => {
  const these = cluster(t)
  const [one, two] = [await these.add({ secret: undefined }), await these.add({ secret: undefined })]
  await shared(one, two)
  const [row] = await these.run(`SELECT value FROM meta WHERE name = 'secret'`)
  t.ok(String(row?.['value']).length >= 32)
  const stranger = new NodeLink(one.address, '')
  t.teardown(() => stranger.close())
  await rejection(stranger.call({ change: 'cancel', shard: 0, request: {} }))
  t.equal(stranger.fault, 'has another secret')
})

await t.test('a session whose node has joined again is ended with its locks', async t => {
  const these = cluster(t)
  const one = await these.add()
  await shared(one)
  await one.runtime.close()
  await locked(t, these.schema, `pg_advisory_lock(${NODE_CLASS}, pg_backend_pid()), pg_advisory_lock(${LOCK_CLASS}, 0)`)
  await shared(await these.add())
})

await t.test('a placement', async t => {
  const these = cluster(t)
  const { logger } = quiet()
  /** Opens a placement, and lists the sets of shards that it loses. */
  const placed = async (
    t: Test,
    {
      pool = poolOf(url, 4),
      clock = systemClock,
      takesShards = true,
      giving = async () => {},
      format = 1,
      agent = ''
    }: {
      readonly pool?: PostgresPool
      readonly clock?: Clock
      readonly takesShards?: boolean
      readonly giving?: () => Promise<void>
      readonly format?: number
      readonly agent?: string
    } = {}
  ) => {
    const placement = await PostgresPlacement.open({
      pool,
      place: 'test',
      schema: these.schema,
      shards: SHARDS,
      takesShards,
      logger,
      clock
    })
    const lost: (readonly number[])[] = []
    const address = `ws://127.0.0.1:${(ports += 1)}`
    placement.join({
      address,
      version: { format, agent },
      gained() {},
      giving,
      lost: shards => void lost.push(shards),
      changed() {}
    })
    t.teardown(() => placement.close())
    return {
      placement,
      lost,
      address,
      has: (shards: number) =>
        until(() => placement.isOwner && placement.owned.shards.length === shards, `${shards} shards`)
    }
  }
  let ports = 0

  await t.test('that loses its session while it gives shards joins again, and has given nothing twice', async t => {
    const [asked, given] = [deferred(), deferred()]
    const one = await placed(t, { giving: async () => (asked.resolve(), given.promise) })
    await one.has(SHARDS)
    const { session } = one.placement.owned
    const two = await placed(t)
    await asked.promise
    await these.run(`SELECT pg_terminate_backend(pid) FROM nodes WHERE address = '${one.address}'`)
    await until(() => one.lost.length === 1, 'it has lost its session')
    one.placement.lost(session, new Error('late'))
    given.resolve()
    const owners = wantedOwners(SHARDS, [one.address, two.address])
    await one.has(owners.filter(owner => owner === one.address).length)
    await two.has(owners.filter(owner => owner === two.address).length)
    t.equal(one.lost.length, 1)
    const epochs = await these.epochs()
    for (const {
      placement: { owned }
    } of [one, two])
      t.strictSame(
        owned.epochs,
        owned.shards.map(shard => epochs[shard])
      )
  })
  await t.test('takes no shard that another session takes first', async t => {
    const before = await these.epochs()
    const inner = poolOf(url, 4)
    let end: (() => void) | undefined
    const pool: PostgresPool = {
      connect: async () => {
        const client = await inner.connect()
        return {
          release: destroy => client.release(destroy),
          on: (event, listener) => client.on(event, listener),
          async query(query) {
            if (query.name !== 'taskchart_take' || end) return client.query(query)
            end = await locked(
              t,
              these.schema,
              Array.from({ length: SHARDS }, (_, shard) => `pg_advisory_lock(${LOCK_CLASS}, ${shard})`).join()
            )
            return client.query(query).finally(end)
          }
        }
      }
    }
    const { has } = await placed(t, { pool })
    await has(SHARDS)
    t.strictSame(
      await these.epochs(),
      before.map(epoch => epoch + 1)
    )
  })
  await t.test('gives everything up when the database has not answered for the lease', async t => {
    let expire = () => {}
    const clock: Clock = {
      ...systemClock,
      setTimeout: (run, ms) => systemClock.setTimeout(ms === 2000 ? (expire = run) : run, ms)
    }
    const { lost, has } = await placed(t, { clock })
    await has(SHARDS)
    expire()
    t.strictSame(
      lost.map(shards => shards.length),
      [SHARDS]
    )
    await has(SHARDS)
  })
  await t.test('of an older format gets no shard of a newer one, and of an older agent it does', async t => {
    const isHeld = async (...versions: string[]) =>
      t.strictSame(
        new Set(
          (await these.run(`SELECT holder::jsonb ->> 'version' AS version FROM shards`)).map(({ version }) => version)
        ),
        new Set(versions)
      )
    const newer = await placed(t, { agent: '2' })
    await newer.has(SHARDS)
    const old = await placed(t, { agent: '1' })
    await old.has(SHARDS / 2)
    await newer.placement.close()
    await old.has(SHARDS)
    await isHeld('{1}')
    const newest = await placed(t, { format: 2, agent: '1' })
    await newest.has(SHARDS / 2)
    await isHeld('{1}', '{2}')
    await old.placement.close()
    await newest.has(SHARDS)
    const again = await placed(t, { agent: '3' })
    await until(() => newest.placement.nodes.length === 2, 'it is there')
    t.strictSame(again.placement.owned.shards, [])
    // A take of a node that has not read the newest formats, and a holder that an older taskchart has written.
    await newest.placement.close()
    await again.placement.close()
    await these.run(`UPDATE shards SET holder = '{"version":"{1,2,7}"}' WHERE shard = 1`)
    const session = await Session.open(poolOf(url, 1), these.schema)
    t.strictSame(
      await session
        .rows(TAKE, [[0, 1], 1, '{}'])
        .then(rows => rows.map(([shard, epoch, unlocked]) => [shard, epoch !== null, unlocked])),
      [
        ['0', false, 't'],
        ['1', true, null]
      ]
    )
    session.close()
  })
  await t.test('shows shards that nobody has had, and nothing before it has joined', async t => {
    const { schema } = cluster(t)
    const placement = await PostgresPlacement.open({
      pool: poolOf(url, 4),
      place: 'test',
      schema,
      shards: 2,
      takesShards: false,
      logger,
      clock: systemClock
    })
    t.teardown(() => placement.close())
    t.match(await rejection(placement.status()), { code: 'Overloaded' })
    placement.join({
      address: 'ws://127.0.0.1:9',
      version: { format: 1, agent: 'a' },
      gained() {},
      giving: async () => {},
      lost() {},
      changed() {}
    })
    await until(() => placement.nodes.length === 1, 'it has joined')
    t.match(await placement.status(), {
      nodes: [{ address: 'ws://127.0.0.1:9', state: 'alive', agent: 'a' }],
      shards: [{ shard: 0, epoch: 0, owner: undefined, tenures: [] }, { shard: 1 }]
    })
  })
  await t.test('remembers the former owners of each shard', async t => {
    const owner = async () =>
      JSON.parse(String((await these.run('SELECT holder FROM shards WHERE shard = 0'))[0]?.holder)) as {
        readonly address?: string
        readonly before: readonly { readonly address?: string; readonly epoch: number }[]
      }
    const { epoch: last = 0 } = (await owner()).before.at(-1) ?? {}
    const addresses: string[] = []
    for (let i = 0; i < 2; i += 1) {
      const { placement, address, has } = await placed(t, { format: 2, agent: '1' })
      await has(SHARDS)
      addresses.push(address)
      await placement.close()
    }
    const { address, before } = await owner()
    t.strictSame([before.at(-1)?.address, address], addresses)
    t.strictSame(before.map(({ epoch }) => epoch).slice(-2), [last + 1, last + 2])
  })
  await t.test('without a shard writes nothing to it', async t => {
    const { placement, lost } = await placed(t, { takesShards: false })
    await until(() => placement.isOwner, 'it has joined')
    const store = storeOf(placement, connectionsOf(url, 1, 'test'), these.schema, logger)
    t.match(await rejection(store.commit(opening('x'))), { code: 'Overloaded' })
    t.strictSame(lost, [[]])
    await store.close()
  })
})

await t.test('a database that cannot be used is refused', async t => {
  const secret = 'a secret of nodes'
  const address = 'ws://127.0.0.1:1'
  t.match(await rejection(postgresNode('postgres://127.0.0.1:1/none', { address, secret })), { name: 'StorageError' })
  t.match(await rejection(postgresNode('sqlite.db', { address, secret })), { name: 'TypeError' })
  t.match(await rejection(postgresNode(url, { address: 'ws://10.0.0.1:4243', secret: '' })), {
    name: 'TypeError',
    message: /secret/
  })
  t.match(await rejection(postgresNode(url, { address: 'ws://127.0.0.1:4243', secret: 'short' })), {
    name: 'TypeError',
    message: /at least 16/
  })
  const these = cluster(t)
  const one = await these.add()
  await shared(one)
  t.match(await rejection(postgresStore(url, { schema: these.schema, logger: quiet().logger })), {
    name: 'StorageError',
    message: /is in use/
  })
  t.match(await rejection(these.add({ address: one.address })), { code: 'EADDRINUSE' })
})

await t.test('signs of life', async t => {
  const signs = new SignsOfLife(2000)
  const one = { pid: 1, address: 'a', beats: '1' }
  t.strictSame(signs.lateOf([one], 0), [])
  for (let atMs = 100; atMs < 2000; atMs += 100) t.strictSame(signs.lateOf([one], atMs), [])
  t.strictSame(signs.lateOf([one], 2000), [1], 'none for the lease')
  t.strictSame(signs.lateOf([{ ...one, beats: '2' }], 2100), [], 'a new one')
  t.strictSame(signs.lateOf([{ ...one, beats: '2' }], 9000), [], 'this process has paused itself')
  t.strictSame(signs.lateOf([], 9100), [])
  for (let atMs = 9200; atMs < 11_200; atMs += 100) signs.lateOf([{ pid: 2, address: undefined, beats: 'x' }], atMs)
  t.strictSame(
    signs.lateOf([{ pid: 2, address: undefined, beats: 'y' }], 11_200),
    [2],
    'the session of a node that has joined again'
  )
})

await t.test('taskchart serve --node', async t => {
  const cwd = t.testdir({ 'agent.js': "export default { card: { name: 'Echo' }, work: () => ({ artifact: 'x' }) }" })
  const secret = '0123456789abcdef'
  const run = (args: readonly string[], given: string | false = secret) =>
    runCommand(['serve', 'agent.js', '--port', '0', '--json', ...args], {
      cwd,
      env: given === false ? {} : { TASKCHART_CLUSTER_SECRET: given }
    })
  await t.test('refuses what is no node of a cluster', async t => {
    const rows: [args: readonly string[], secret: string | false, message: RegExp][] = [
      [
        ['--db', url, '--node', '10.0.0.7:4243'],
        secret,
        /--node takes the address by which other nodes reach this one, such as ws:\/\/10\.0\.0\.7:4243, not "10/
      ],
      [['--db', url, '--node', 'nowhere'], secret, /--node takes the address/],
      [['--db', url, '--node', 'ws://10.0.0.7:4243/path'], secret, /--node takes the address/],
      [['--db', url, '--node', 'ws://me@10.0.0.7:4243'], secret, /--node takes the address/],
      [['--db', url, '--node', 'ws://10.0.0.7'], secret, /--node takes the address/],
      [['--node', 'ws://10.0.0.7:4243'], secret, /--node needs the database/],
      [['--db', 'tasks.db', '--node', 'ws://10.0.0.7:4243'], secret, /--node needs the database/],
      [['--db', url, '--node', 'ws://10.0.0.7:4243'], 'short', /needs at least 16 characters/],
      [
        ['--db', url, '--node', 'ws://10.0.0.7:4243'],
        false,
        /Without a secret, anyone could act as a node at 10\.0\.0\.7:4243/
      ]
    ]
    for (const [args, given, message] of rows) t.match(await run(args, given), { code: 2, stderr: message })
    t.match(await runCommand(['dev', 'agent.js', '--db', url, '--node', 'ws://127.0.0.1:4243'], { cwd }), {
      code: 2,
      stderr: /taskchart dev is no node/
    })
  })
  await t.test('serves the tasks of the others', async t => {
    const stop = new AbortController()
    const printed: string[] = []
    const address = `ws://127.0.0.1:${await unusedPort()}`
    const serve = (node: string) =>
      runCommand(['serve', 'agent.js', '--port', '0', '--json', '--db', url, '--node', node], {
        cwd,
        signal: stop.signal,
        printed: text => void printed.push(text)
      })
    const ended = [serve(address), serve(`ws://127.0.0.1:${await unusedPort()}`)]
    await until(() => printed.length === 2, 'both serve')
    const places = printed.map(line => JSON.parse(line) as { url: string; http: string })
    await until(
      async () =>
        (await Promise.all(places.map(async ({ http }) => (await fetch(new URL('/readyz', http))).ok))).every(Boolean),
      'both are ready'
    )
    const [one, two] = await Promise.all(places.map(async place => connect(place.url)))
    const task = taskIn(await one?.sendMessage(say('x')))
    t.equal((await two?.getTask({ id: task.id }))?.id, task.id)
    t.match(await run(['--db', url, '--node', address]), {
      code: 1,
      stderr: `--node ${address} cannot be served: Port ${new URL(address).port} is in use on ${new URL(address).hostname}. Choose another address of this machine.`
    })
    await Promise.all([one?.close(), two?.close()])
    stop.abort()
    t.strictSame(
      (await Promise.all(ended)).map(({ code }) => code),
      [0, 0]
    )
  })
})
