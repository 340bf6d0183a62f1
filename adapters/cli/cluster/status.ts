import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { clusterStatus, type ClusterStatus } from '../../cluster/status.ts'
import { isPostgresUrl } from '../../postgres/session/pool.ts'
import { readOptions, readPositionals } from '../arguments.ts'
import { CommandError, EXIT, usageError, type Io } from '../command.ts'
import { tableLines } from '../text/columns.ts'
import { jsonLine, oneLine } from '../text/terminal-text.ts'
import { lengthText } from '../text/time-text.ts'
import { clusterFolder } from './folder.ts'
import { URL_FILE } from './local-postgres.ts'

/** `taskchart cluster status`: shows the nodes and shards of a database. */
export async function showStatus(args: readonly string[], { cwd, clock, screen, stdout }: Io): Promise<number> {
  const { values: { db, json }, positionals } = readOptions(args, { db: { type: 'string' }, json: { type: 'boolean' } })
  if (db !== undefined && !isPostgresUrl(db)) throw usageError(`Nodes share a PostgreSQL database: --db postgres://HOST/DATABASE.`)
  const [file = ''] = readPositionals(positionals, db === undefined ? ['AGENT.ts|js or --db URL'] : [])
  const status = await clusterStatus(db ?? (await urlOf(file, cwd)))
  stdout.write(json ? jsonLine(status) : statusText(status, clock.now(), screen?.columns))
  return EXIT.ok
}

/** The URL of the database that `taskchart cluster` runs for an agent. */
async function urlOf(file: string, cwd: string): Promise<string> {
  const path = resolve(cwd, clusterFolder(file), URL_FILE)
  return readFile(path, 'utf8').catch((cause: unknown) => {
    throw new CommandError(`No cluster of ${file} has run in this folder. Start one with taskchart cluster ${file}, or give the URL of its database: --db postgres://HOST/DATABASE.`, { cause })
  })
}

const NOBODY = 'no owner'

/** The status as text: a table of nodes, then the shards of each owner with their epochs. */
export function statusText({ nodes, shards }: ClusterStatus, nowMs: number, columns?: number): string {
  const of = (name: string) => shards.filter(({ owner = NOBODY }) => owner === name)
  const rows = nodes.map(({ address, state, takesShards, process: { pid, host, since } }) => [
    address, takesShards || state !== 'alive' ? state : 'stopping', String(of(address).length), `${pid} on ${host}`, `${lengthText(nowMs - Date.parse(since))} ago`
  ])
  const owners = [...new Set(shards.map(({ owner = NOBODY }) => owner))].toSorted()
  const lists = owners.map(owner => `${owner}: ${of(owner).map(({ shard, epoch }) => `${shard}@${epoch}`).join(' ')}`)
  const table = tableLines([['NODE', 'STATE', 'SHARDS', 'PROCESS', 'JOINED'], ...rows].map(row => row.map(oneLine)), columns)
  return [...table, '', `${shards.length} shards, each with its epoch after @:`, ...lists.map(oneLine), ''].join('\n')
}
