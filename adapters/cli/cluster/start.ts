import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import type { ClusterStatus } from '../../../runtime/ports/cluster-status.ts'
import { checkDatabase, clusterStatus, isSettled } from '../../cluster/status.ts'
import { checkPg, isPostgresUrl, placeName } from '../../postgres/session/pool.ts'
import { readOwnApiKey } from '../api-key.ts'
import { readArguments } from '../arguments.ts'
import { CommandError, EXIT, usageError, type Io } from '../command.ts'
import { loadAgent } from '../load-agent.ts'
import { aborted } from '../process/process-events.ts'
import type { Places } from '../serve/announcement.ts'
import { SECRET_VARIABLE } from '../serve/open-node.ts'
import { jsonLine } from '../text/terminal-text.ts'
import { clusterText, type ServedNode } from './announcement.ts'
import { clusterFolder } from './folder.ts'
import { freePorts } from './free-ports.ts'
import { startPostgres, type LocalPostgres } from './local-postgres.ts'
import { NodeProcess } from './node-process.ts'

const OPTIONS = {
  nodes: { type: 'string', default: '3' },
  db: { type: 'string' },
  port: { type: 'string', default: '4242' },
  'api-key': { type: 'string' },
  json: { type: 'boolean' }
} as const

/** The most nodes on one machine. */
const MOST = 16

/** The highest first port: each node takes two, and others may be in use. */
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
  if (db !== undefined && !isPostgresUrl(db))
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

/** Starts the processes of all nodes. The password of the database is in their environment, since everyone can read their arguments. */
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
      said: line => stderr.write(`${name}: ${line}\n`)
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

/** Says when a node ends. Resolves when the user stops the command. Throws CommandError when all nodes or the database have ended, or one has not begun to serve. */
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
  const reason = await Promise.race([aborted(signal), Promise.all(ends).then(() => 'All nodes have ended.'), ...failed])
  if (reason !== undefined) throw new CommandError(reason)
}
