import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readSqlite } from '../../adapters/storage/sqlite.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import { taskIdIn } from '../checks.ts'
import { CHUNK_TEXT } from '../errands.ts'
import type { Load } from '../load/load.ts'
import { webSocketLoad } from '../load/websocket-load.ts'
import type { Scale } from '../scale.ts'
import { ServerProcess } from '../server-process.ts'
import { mebibytes, short, table, whole } from '../tables.ts'
import { messageParams } from './message.ts'

/** Its file in `servers/`. */
const LEAN = 'lean'

/** A task has two statuses before its first chunk, and one after its last. */
const STATUSES = 3
const PART_CHARACTERS = 100_000
const PARTS = 200
/** The part of its events after which the server is killed. */
const KILLED_AFTER = 0.9

/** A server whose limits do not end a large task. */
const LIMITS = { eventsPerTask: 10_000_000, taskBytes: 1024 ** 3, advanced: { restoredBytes: 1024 ** 3 } }

/**
 * One task with many events, one with a large artifact, in a SQLite file: how long it takes, and what the process
 * holds.
 */
export async function largeTables({ largeEvents }: Scale): Promise<{ title: string; rows: string }[]> {
  const folder = await mkdtemp(join(tmpdir(), 'taskchart-bench-'))
  try {
    return [
      {
        title: `Large: one task of ${whole(largeEvents)} events, SQLite`,
        rows: await manyEvents(join(folder, 'events.db'), largeEvents)
      },
      {
        title: `Large: one artifact of ${PARTS} parts of ${whole(PART_CHARACTERS)} characters, SQLite`,
        rows: await manyBytes(join(folder, 'parts.db'))
      }
    ]
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function manyEvents(file: string, events: number): Promise<string> {
  const chunks = events - STATUSES
  const written = await using(file, async (server, load) => {
    const beganMs = performance.now()
    const stream = await streamed(load, chunks)
    return {
      ...stream,
      tookMs: performance.now() - beganMs,
      cpuMs: (await server.cpuMicros()) / 1000,
      ...(await server.memory())
    }
  })
  if (written.seen !== events) throw new Error(`A task of ${events} events had ${written.seen} of them in its stream.`)
  const read = await using(file, (server, load) => readWhole(server, load, written.taskId, chunks * CHUNK_TEXT.length))
  const nextMs = await nextAfterKill(`${file}-killed`, chunks)
  return table(
    ['', ''],
    [
      ['from the message to the end of its stream, ms', short(written.tookMs)],
      ['CPU of the server, µs an event', short((1000 * written.cpuMs) / events)],
      ['bytes of the file an event', whole((await stat(file)).size / events)],
      ['resident after it, MiB', mebibytes(written.rss)],
      ['read whole by a fresh server, ms', short(read.tookMs)],
      ['resident before, MiB', mebibytes(read.before)],
      ['resident after it, MiB', mebibytes(read.rss)],
      ['the most that was resident, MiB', mebibytes(read.most)],
      [
        `killed after ${KILLED_AFTER * 100} % of its events: the next event, from the start of the process, ms`,
        short(nextMs)
      ]
    ]
  )
}

async function manyBytes(file: string): Promise<string> {
  const written = await using(file, async (server, load) => ({
    ...(await streamed(load, PARTS, PART_CHARACTERS)),
    ...(await server.memory())
  }))
  const read = await using(file, (server, load) => readWhole(server, load, written.taskId, PARTS * PART_CHARACTERS))
  return table(
    ['', ''],
    [
      ['resident after it was made, MiB', mebibytes(written.rss)],
      ['read whole by a fresh server, ms', short(read.tookMs)],
      ['resident before, MiB', mebibytes(read.before)],
      ['resident after it, MiB', mebibytes(read.rss)],
      ['the most that was resident, MiB', mebibytes(read.most)]
    ]
  )
}

/** Runs a server of a file. */
async function using<T>(file: string, use: (server: ServerProcess, load: Load) => Promise<T>): Promise<T> {
  const server = await ServerProcess.start(LEAN, { work: 'chunks', file, limits: LIMITS })
  const load = await webSocketLoad(server.port, 1)
  try {
    return await use(server, load)
  } finally {
    await load.close()
    await server.stop()
  }
}

/** Reads the stream of a new task to its end. */
async function streamed(load: Load, count: number, characters?: number): Promise<{ taskId: string; seen: number }> {
  let taskId = ''
  let seen = 0
  await load.stream(
    'SendStreamingMessage',
    messageParams({ kind: 'chunks', count, ...(characters !== undefined && { characters }) }),
    event => {
      if (seen === 0) taskId = taskIdIn(event)
      seen += 1
    }
  )
  return { taskId, seen }
}

async function readWhole(server: ServerProcess, load: Load, id: string, least: number) {
  const before = await server.memory()
  const beganMs = performance.now()
  const { length } = await load.call('GetTask', { id })
  const tookMs = performance.now() - beganMs
  if (length < least) throw new Error(`A task of at least ${least} characters was read as ${length}.`)
  const { rss, most } = await server.memory()
  return { tookMs, before: before.rss, rss, most }
}

/**
 * Kills a server while it makes a task, and waits for an event of the next process, from whose start the time counts.
 */
async function nextAfterKill(file: string, chunks: number): Promise<number> {
  const server = await ServerProcess.start(LEAN, { work: 'chunks', file, limits: LIMITS })
  const load = await webSocketLoad(server.port, 1)
  let [taskId, seen] = ['', 0]
  const far = new Promise<void>(resolve => {
    const see = (event: string) => {
      if (seen === 0) taskId = taskIdIn(event)
      seen += 1
      if (seen >= KILLED_AFTER * chunks) resolve()
    }
    load.stream('SendStreamingMessage', messageParams({ kind: 'chunks', count: chunks }), see).catch(() => {})
  })
  await far
  await server.stop('SIGKILL')
  // The store may have more events than the stream had.
  const stored = await generationIn(file, taskId)
  const startedMs = performance.now()
  const next = await ServerProcess.start(LEAN, { work: 'chunks', file, limits: LIMITS })
  const again = await webSocketLoad(next.port, 1)
  try {
    const parameters = {
      'a2a-version': '1.0',
      'a2a-extensions': RELIABILITY_EXTENSION,
      'taskchart-after-generation': String(stored)
    }
    await new Promise<void>((resolve, reject) => {
      again.stream('SubscribeToTask', { id: taskId }, () => resolve(), parameters).catch(reject)
    })
    return performance.now() - startedMs
  } finally {
    await again.close()
    await next.stop()
  }
}

async function generationIn(file: string, taskId: string): Promise<number> {
  const store = readSqlite(file)
  const stored = await store.readTask({ tenant: '', principal: 'anonymous' }, taskId, {
    historyLength: 0,
    artifacts: false
  })
  await store.close()
  return stored?.generation ?? NaN
}
