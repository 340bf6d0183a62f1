import { fork } from 'node:child_process'
import { once } from 'node:events'
import { completed } from '../checks.ts'
import { ours } from '../contenders.ts'
import { median } from '../figures.ts'
import type { FloodOptions, FloodTold } from '../load/flood.ts'
import type { Load } from '../load/load.ts'
import { webSocketLoad } from '../load/websocket-load.ts'
import type { Scale } from '../scale.ts'
import { ServerProcess } from '../server-process.ts'
import { percent, short, table, times, whole } from '../tables.ts'
import { messageParams } from './message.ts'

const REQUESTS_A_SECOND = 50
const CONNECTIONS = 32
const IN_FLIGHT = 256

/**
 * One of the noisy tenants may send no more than the quiet one sends; all else has its defaults, which no flood uses
 * up.
 */
const TENANTS = { quiet: {}, noisy: { limits: { perTenant: { requestsPerMinute: 3000 } } }, endless: {} }

/** What the quiet tenant is measured beside. */
const FLOODS: readonly (Omit<FloodOptions, 'port'> & { readonly name: string })[] = [
  {
    name: 'a flood over WebSocket, over its quota',
    over: 'WebSocket',
    tenant: 'noisy',
    connections: CONNECTIONS,
    inFlight: IN_FLIGHT
  },
  {
    name: 'a flood over HTTP, over its quota',
    over: 'HTTP',
    tenant: 'noisy',
    connections: CONNECTIONS,
    inFlight: CONNECTIONS
  },
  {
    name: 'a flood over WebSocket, within its quota',
    over: 'WebSocket',
    tenant: 'endless',
    connections: CONNECTIONS,
    inFlight: IN_FLIGHT
  }
]

/** What was found beside one flood, by rounds: p99s in milliseconds. */
interface Row {
  readonly name: string
  readonly alone: number[]
  readonly apart: number[]
  readonly beside: number[]
  readonly busy: number[]
  readonly flood: FloodTold[]
}

interface Quiet {
  readonly tookMs: readonly number[]
  readonly serverBusy: number
}

/**
 * How long the requests of one tenant take: alone, while another floods a server of its own, which takes the machine's
 * cores as well and nothing else, and while it floods the same server. In turns.
 */
export async function tenantTable({ pacedMs, rounds }: Scale): Promise<string> {
  const server = await ServerProcess.start(ours.file, { work: 'artifact', tenants: TENANTS })
  const other = await ServerProcess.start(ours.file, { work: 'artifact', tenants: TENANTS })
  const load = await webSocketLoad(server.port, 1)
  const found: Row[] = []
  const besideFlood = async (flooding: Omit<FloodOptions, 'port'>, { port }: ServerProcess) => {
    const flood = await Flood.start({ port, ...flooding })
    const { tookMs, serverBusy } = await quiet(load, server, pacedMs)
    return { p99: at(0.99, tookMs), serverBusy, told: await flood.stop() }
  }
  try {
    await quiet(load, server, pacedMs)
    for (const { name, ...flooding } of FLOODS) {
      const row: Row = { name, alone: [], apart: [], beside: [], busy: [], flood: [] }
      for (let round = 0; round < rounds; round += 1) {
        row.alone.push(at(0.99, (await quiet(load, server, pacedMs)).tookMs))
        row.apart.push((await besideFlood(flooding, other)).p99)
        const { p99, serverBusy, told } = await besideFlood(flooding, server)
        row.beside.push(p99)
        row.busy.push(serverBusy)
        row.flood.push(told)
      }
      found.push(row)
    }
  } finally {
    await load.close()
    await Promise.all([server.stop(), other.stop()])
  }
  return table(
    [
      'Beside',
      'p99 alone, ms',
      'p99 with the flood at another server, ms',
      'p99 beside, ms',
      '× alone',
      '× at another server',
      'busy: server',
      'taken of it a second',
      'refused'
    ],
    found.map(({ name, alone, apart, beside, busy, flood }) => [
      name,
      short(median(alone)),
      short(median(apart)),
      short(median(beside)),
      times(median(quotients(beside, alone))),
      times(median(quotients(beside, apart))),
      percent(median(busy)),
      whole(median(flood.map(({ taken }) => taken))),
      whole(median(flood.map(({ refused }) => refused)))
    ])
  )
}

/** The quiet tenant: requests at a steady pace, whether those before are answered or not. */
async function quiet(load: Load, server: ServerProcess, forMs: number): Promise<Quiet> {
  const answers: Promise<number>[] = []
  const ask = async () => {
    const sentMs = performance.now()
    completed(await load.call('SendMessage', { ...messageParams({ kind: 'artifact' }), tenant: 'quiet' }))
    return performance.now() - sentMs
  }
  const cpuBefore = await server.cpuMicros()
  const beganMs = performance.now()
  for (let sent = 0; sent < (forMs * REQUESTS_A_SECOND) / 1000; sent += 1) {
    answers.push(ask())
    await new Promise(resolve => setTimeout(resolve, 1000 / REQUESTS_A_SECOND))
  }
  const tookMs = await Promise.all(answers)
  const serverBusy = ((await server.cpuMicros()) - cpuBefore) / 1000 / (performance.now() - beganMs)
  return { tookMs, serverBusy }
}

/** A process that sends as much as it can. */
export class Flood {
  readonly #child
  #told: FloodTold[] = []

  private constructor(options: FloodOptions) {
    this.#child = fork(new URL('../load/flood.js', import.meta.url), [JSON.stringify(options)], { execArgv: [] })
    this.#child.on('message', told => void this.#told.push(told as FloodTold))
  }

  /** Resolves when it has used up its quota, if it can, and gone on for a second. */
  static async start(options: FloodOptions): Promise<Flood> {
    const flood = new Flood(options)
    while (options.tenant === 'noisy' && !flood.#told.at(-1)?.refused) await once(flood.#child, 'message')
    flood.#told = []
    await once(flood.#child, 'message')
    return flood
  }

  /** Ends it, and says what became of its requests in a second. */
  async stop(): Promise<FloodTold> {
    const ended = once(this.#child, 'exit')
    this.#child.kill()
    await ended
    return {
      taken: median(this.#told.map(({ taken }) => taken)),
      refused: median(this.#told.map(({ refused }) => refused))
    }
  }
}

/** Each value by the other of its round. */
export function quotients(some: readonly number[], others: readonly number[]): number[] {
  return some.map((value, i) => value / (others[i] ?? NaN))
}

/** The time within which this part of the requests was answered. */
export function at(part: number, tookMs: readonly number[]): number {
  const sorted = tookMs.toSorted((a, b) => a - b)
  return sorted[Math.ceil(part * sorted.length) - 1] ?? NaN
}
