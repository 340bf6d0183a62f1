import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { ClusterStatus } from '../../../runtime/ports/cluster-status.ts'
import {
  clusterStatus,
  newestMoves,
  SINGLE_SERVER,
  type OwnershipPeriod,
  taskPlace,
  wayOf
} from '../../cluster/status.ts'
import { readOptions, readPositionals } from '../arguments.ts'
import { CommandError, EXIT, usageError, type Io } from '../command.ts'
import { storeKindOf } from '../stores.ts'
import { lengthText, tableLines } from '../text/format.ts'
import { jsonLine, oneLine } from '../text/terminal.ts'
import { clusterFolder, URL_FILE } from './local-postgres.ts'

/** `taskchart cluster status`: shows the nodes and shards of a database. */
export async function showStatus(args: readonly string[], { cwd, clock, screen, stdout }: Io): Promise<number> {
  const {
    values: { db, json, task },
    positionals
  } = readOptions(args, { db: { type: 'string' }, json: { type: 'boolean' }, task: { type: 'string' } })
  if (db !== undefined && storeKindOf(db) !== 'database')
    throw usageError(`Nodes share a PostgreSQL database: --db postgres://HOST/DATABASE.`)
  const [file = ''] = readPositionals(positionals, db === undefined ? ['AGENT.ts|js or --db URL'] : [])
  const url = db ?? (await urlOf(file, cwd))
  const status = await clusterStatus(url)
  if (task === undefined) {
    stdout.write(json ? jsonLine(status) : clusterStatusText(status, clock.now(), screen?.columns))
    return EXIT.ok
  }
  const place = await taskPlace(url, task)
  if (!place) throw new CommandError(`There is no task ${task} in this database.`)
  const periods = wayOf(
    status.shards.flatMap(({ shard, tenures }) => (shard === place.shard ? tenures : [])),
    place.fromMs,
    place.untilMs
  )
  stdout.write(
    json ? jsonLine({ task, shard: place.shard, way: periods }) : wayText(task, place.shard, periods, screen?.columns)
  )
  return EXIT.ok
}

/** The URL of the database that `taskchart cluster` runs for an agent. */
async function urlOf(file: string, cwd: string): Promise<string> {
  const path = resolve(cwd, clusterFolder(file), URL_FILE)
  return readFile(path, 'utf8').catch((cause: unknown) => {
    throw new CommandError(
      `No cluster of ${file} has run in this folder. Start one with taskchart cluster ${file}, or give the URL of its database: --db postgres://HOST/DATABASE.`,
      { cause }
    )
  })
}

const NOBODY = 'no owner'

/** How many moves are shown. */
const MOVES = 10

/** The owners of a task's shard while the task lived, as text. */
function wayText(task: string, shard: number, periods: readonly OwnershipPeriod[], columns?: number): string {
  const time = (ms: number | undefined) => (ms === undefined ? 'now' : new Date(ms).toISOString())
  const rows = periods.map(({ owner = SINGLE_SERVER, epoch, fromMs, untilMs }) => [
    owner,
    String(epoch),
    time(fromMs),
    time(untilMs)
  ])
  return [
    oneLine(`Task ${task} is in shard ${shard}, which had these owners while the task lived:`),
    '',
    ...tableLines(
      [['OWNER', 'EPOCH', 'FROM', 'UNTIL'], ...rows].map(row => row.map(oneLine)),
      columns
    ),
    ''
  ].join('\n')
}

/** The status as text: a table of nodes, the shards of each owner with their epochs, and the newest moves. */
export function clusterStatusText({ nodes, shards }: ClusterStatus, nowMs: number, columns?: number): string {
  const of = (name: string) => shards.filter(({ owner = NOBODY }) => owner === name)
  const rows = nodes.map(({ address, state, takesShards, agent = '', process: { pid, host, since } }) => [
    address,
    takesShards || state !== 'alive' ? state : 'stopping',
    String(of(address).length),
    agent,
    `${pid} on ${host}`,
    `${lengthText(nowMs - Date.parse(since))} ago`
  ])
  const owners = [...new Set(shards.map(({ owner = NOBODY }) => owner))].toSorted()
  const lists = owners.map(
    owner =>
      `${owner}: ${of(owner)
        .map(({ shard, epoch }) => `${shard}@${epoch}`)
        .join(' ')}`
  )
  const table = tableLines(
    [['NODE', 'STATE', 'SHARDS', 'VERSION', 'PROCESS', 'JOINED'], ...rows].map(row => row.map(oneLine)),
    columns
  )
  const moves = newestMoves(shards, MOVES).map(
    ({ shard, epoch, from = SINGLE_SERVER, to = SINGLE_SERVER, atMs }) =>
      `shard ${shard}@${epoch}: ${from} → ${to}, ${lengthText(nowMs - atMs)} ago`
  )
  const shownMoves = moves.length === 0 ? [] : ['', 'The newest moves:', ...moves.map(oneLine)]
  return [
    ...table,
    '',
    `${shards.length} shards, each with its epoch after @:`,
    ...lists.map(oneLine),
    ...shownMoves,
    ''
  ].join('\n')
}
