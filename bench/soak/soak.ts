import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as elapsed } from 'node:timers/promises'
import { unusedPort } from '../../test/fixtures/network/unused-port.ts'
import { Receiver } from './receiver.ts'
import { Soaked, type Sizes } from './soaked.ts'
import { Visitor, type Notes, type Visit } from './visitor.ts'

/** How long and how hard a server is used. */
export interface SoakOptions {
  /** How often it is killed and started again, and how long each of its processes lives. */
  readonly lives: number
  readonly lifeMs: number
  readonly visitors: number
  /** The pause of a visitor after each thing that it does. */
  readonly pauseMs: number
  readonly node?: string
}

/** The result of a soak. */
export interface Soak {
  /** The sizes of each process at the end of its life. */
  readonly sizes: readonly Sizes[]
  /** The things done while the server was there, and their number. */
  readonly visits: readonly Visit[]
  readonly done: number
  /** How long each restart took, until it served. */
  readonly restartsMs: readonly number[]
  readonly failures: readonly string[]
}

/** Ended tasks are stored for this many lives, and at least for this time; later they are removed. */
const STORED_LIVES = 2
const STORED_MS = 60_000

/** The part of its time in the store in which a task is looked for: it must not be removed meanwhile. */
const SURE = 0.8

/** The number of tasks that each visitor looks for after a restart. */
const AFTER_RESTART = 10

/** How long after a restart what is done still waits for it. */
const SETTLED_MS = 2000

/** Lets visitors use a server that is killed again and again. Then looks for all that was acknowledged. */
export async function soak(
  { lives, lifeMs, visitors: count, pauseMs, node }: SoakOptions,
  say: (line: string) => void
): Promise<Soak> {
  const folder = await mkdtemp(join(tmpdir(), 'taskchart-soak-'))
  const receiver = await Receiver.start()
  const storedMs = Math.max(STORED_MS, STORED_LIVES * lifeMs)
  const server = await Soaked.start(
    { file: join(folder, 'tasks.db'), port: await unusedPort(), retentionMs: storedMs },
    node
  )
  const notes: Notes = { visits: [], failures: [] }
  const over = new AbortController()
  const visitors: Visitor[] = []
  const sizes: Sizes[] = []
  try {
    for (let number = 0; number < count; number += 1)
      visitors.push(await Visitor.connect(server.url, number, receiver, notes))
    const visited = Promise.all(visitors.map(visitor => visitor.visit(pauseMs, over.signal)))
    for (let life = 1; life <= lives; life += 1) {
      await elapsed(lifeMs)
      if (server.ended !== undefined) break
      sizes.push(await server.sizes())
      notes.failures.push(...violationsIn(await server.metrics()))
      say(
        `Life ${life}: ${sizeText(sizes.at(-1) as Sizes)}, ${notes.visits.length} things done, ${notes.failures.length} failures`
      )
      if (life === lives) over.abort()
      else {
        await server.kill()
        await Promise.all(visitors.map(visitor => visitor.lookBack(SURE * storedMs, AFTER_RESTART)))
      }
    }
    over.abort()
    if (server.ended === undefined) {
      await visited
      await server.kill()
      await Promise.all(visitors.map(visitor => visitor.lookBack(SURE * storedMs)))
    } else notes.failures.push(server.ended)
    const isApart = ({ atMs, tookMs }: Visit) =>
      !server.gaps.some(({ killedMs, servedMs }) => atMs + tookMs > killedMs && atMs < servedMs + SETTLED_MS)
    return {
      sizes,
      visits: notes.visits.filter(isApart),
      done: notes.visits.length,
      restartsMs: server.gaps.map(({ killedMs, servedMs }) => servedMs - killedMs),
      failures: notes.failures
    }
  } finally {
    over.abort()
    await Promise.all(visitors.map(visitor => visitor.close()))
    receiver.close()
    await server.end()
    await rm(folder, { recursive: true, force: true })
  }
}

function violationsIn(metrics: string): string[] {
  return metrics
    .split('\n')
    .filter(line => /property_violations.* [1-9]/.test(line))
    .map(line => `A property was violated: ${line}`)
}

function sizeText({ heap, rss, handles, files, file, log }: Sizes): string {
  const mib = (bytes: number) => (bytes / 2 ** 20).toFixed(1)
  return `heap ${mib(heap)}, resident ${mib(rss)}, file ${mib(file)}, log ${mib(log)} MiB, ${handles} handles, ${files} files`
}
