import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chown, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, parse } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { onReceived } from '../../../runtime/primitives/event-loop.ts'
import { findPostgres, type Machine, type PostgresPrograms } from '../../postgres/programs.ts'
import { CommandError } from '../command.ts'
import { makeFolder } from '../files.ts'
import { oneLine } from '../text/terminal.ts'

const RUN = fileURLToPath(new URL('./run-postgres.js', import.meta.url))

/** Enough for 16 nodes. */
const SETTINGS = ['max_connections=200', 'listen_addresses=127.0.0.1', 'unix_socket_directories=']

/** The file in a server's folder with the URL of its database, which only its owner may read. */
export const URL_FILE = 'url'

/** A PostgreSQL server of this machine, which runs as long as this process. */
export interface LocalPostgres {
  /** With its password. */
  readonly url: string
  /** Resolves when the server has ended, with its last words. */
  readonly ended: Promise<string>
  /** Shuts the server down. May be called twice. */
  stop(): Promise<void>
}

/**
 * Starts a server on a port of 127.0.0.1, with its data in a folder, created if needed. Throws CommandError if that is
 * impossible.
 */
export async function startPostgres(folder: string, port: number, machine?: Machine): Promise<LocalPostgres> {
  const programs = findPostgres(machine)
  if (typeof programs === 'string')
    throw new CommandError(
      `This machine has ${programs}. Or give the URL of a database: --db postgres://HOST/DATABASE.`
    )
  const data = join(folder, 'data')
  try {
    await makeFolder(folder)
    if (!existsSync(data)) await create(programs, folder, data)
    const url = `postgres://postgres:${(await readFile(join(folder, 'password'), 'utf8')).trim()}@127.0.0.1:${port}/postgres`
    await writeFile(join(folder, URL_FILE), url, { mode: 0o600 })
    return await begin(programs, { folder, data, url, port })
  } catch (cause) {
    if (cause instanceof CommandError) throw cause
    const { stderr, message } = cause as Error & { readonly stderr?: string }
    throw unusable(folder, stderr ?? message, cause)
  }
}

/** Creates the data of a server. They get their name last, so that an interrupted start leaves nothing half done. */
async function create({ folder: bin, user }: PostgresPrograms, folder: string, data: string): Promise<void> {
  const [made, password] = [join(folder, 'made'), join(folder, 'password')]
  await rm(made, { recursive: true, force: true })
  await writeFile(password, `${randomBytes(18).toString('hex')}\n`, { mode: 0o600 })
  if (user.uid !== undefined && user.gid !== undefined)
    for (const path of [folder, password]) await chown(path, user.uid, user.gid)
  await promisify(execFile)(
    join(bin, 'initdb'),
    ['-D', made, '-U', 'postgres', '-A', 'scram-sha-256', `--pwfile=${password}`, '-E', 'UTF8', '--locale=C'],
    { ...user, cwd: folder }
  )
  await rename(made, data)
}

async function begin(
  { folder: bin, user }: PostgresPrograms,
  {
    folder,
    data,
    url,
    port
  }: { readonly folder: string; readonly data: string; readonly url: string; readonly port: number }
): Promise<LocalPostgres> {
  const args = ['-D', data, '-p', String(port), ...SETTINGS.flatMap(setting => ['-c', setting])]
  const child = spawn(process.execPath, [RUN, JSON.stringify({ program: join(bin, 'postgres'), args, user, folder })], {
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc']
  })
  let output = ''
  // Not the event close, which does not follow a disconnect.
  const ended = Promise.all([once(child, 'exit'), once(child.stderr as Readable, 'close')]).then(() => output)
  const ready = new Promise<void>((resolve, reject) => {
    const read = (chunk: Buffer) => {
      output = `${output}${String(chunk)}`.slice(-4000)
      if (/ready to accept connections/.test(output)) resolve()
    }
    onReceived(child.stderr as Readable, 'data', read, reject)
  })
  const reason = await Promise.race([ready, ended])
  if (reason !== undefined) throw unusable(folder, reason)
  return { url, ended, stop: () => stop(child, ended) }
}

async function stop(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  if (child.connected) child.disconnect()
  await ended
}

/** The refusal of a folder, with the last output of PostgreSQL. */
function unusable(folder: string, output: string, cause?: unknown): CommandError {
  const reasons = output.split('\n').flatMap(line => /(?:FATAL|HINT|error): *(.*)/.exec(line)?.[1] ?? [])
  return new CommandError(
    `PostgreSQL cannot use ${folder}: ${oneLine(reasons.join('. ') || output).replace(/[.?]?$/, end => end || '.')} To use another database: --db postgres://HOST/DATABASE.`,
    { cause }
  )
}

/** The folder of the database of an agent's cluster, relative to the working folder: `.taskchart/cluster-countdown`. */
export function clusterFolder(file: string): string {
  return join('.taskchart', `cluster-${parse(file).name}`)
}
