import { setTimeout as elapsed } from 'node:timers/promises'
import { waiting } from '../checks.ts'
import { ours, oursMcp, oursMcpHttp, sdkMcp } from '../contenders.ts'
import { median } from '../figures.ts'
import type { FloodOptions } from '../load/flood.ts'
import { repeat, type Load } from '../load/load.ts'
import { a2aPollLoad } from '../load/poll-load.ts'
import type { Race } from '../race.ts'
import type { Scale } from '../scale.ts'
import { ServerProcess } from '../server-process.ts'
import { percent, short, table, whole } from '../tables.ts'
import { at, Flood } from './tenants.ts'

const IN_FLIGHT = 16
const TASKS = 1000

/** Polls of tasks that wait for an answer: tasks/get, beside GetTask of the same server, and beside the SDK alone. */
export function pollRaces({ requests, requestRounds: rounds, warmUps }: Scale): Race[] {
  const begin = async (load: Load) => {
    const taskIds: string[] = []
    await repeat(TASKS, IN_FLIGHT, async () => void taskIds.push(await load.call('open', undefined)))
    let asked = 0
    return async () => {
      asked += 1
      waiting(await load.call('poll', taskIds[asked % TASKS]))
      return 1
    }
  }
  const warmUp = async (load: Load) => {
    const once = await begin(load)
    await repeat(warmUps, IN_FLIGHT, async () => void (await once()))
  }
  return [
    {
      title: `A poll of a task that waits, ${IN_FLIGHT} in flight`,
      unit: 'poll',
      contenders: [oursMcp, oursMcpHttp, sdkMcp],
      baseline: { contender: sdkMcp, name: 'the SDK alone' },
      work: 'ask',
      inFlight: IN_FLIGHT,
      rounds,
      times: requests,
      warmUp,
      begin
    }
  ]
}

/** The other caller asks so often. */
const TICK_MS = 50

/** How long the answers to a caller took, in milliseconds, and how busy its server was. */
interface Waits {
  readonly longest: number
  readonly p99: number
  /** The longest without the time for which the server waited for a processor. */
  readonly own: number
  readonly busy: number
}

/** What was found beside so many polls in flight, by rounds. */
interface Row {
  readonly inFlight: number
  readonly alone: Waits[]
  readonly apart: Waits[]
  readonly beside: Waits[]
  /** Polls a second beside the caller. */
  readonly polls: number[]
}

/**
 * How long GetTask of one principal takes while another polls its 1,000 tasks over MCP as fast as it can: the polls go
 * to a second server, which takes the machine's cores as well and nothing else, and to the same server. In turns.
 */
export async function pollerTable({ pacedMs, rounds }: Scale): Promise<string> {
  const options = { work: 'ask', mcp: true, named: true }
  const server = await ServerProcess.start(ours.file, options)
  const other = await ServerProcess.start(ours.file, options)
  const load = await a2aPollLoad(server.port, 2, 'quiet')
  const taskId = await load.call('open')
  const asked = async () => {
    const answers: Promise<{ readonly tookMs: number; readonly ownMs: number }>[] = []
    const cpuBefore = await server.cpuMicros()
    const beganMs = performance.now()
    const ask = async () => {
      const sentMs = performance.now()
      const waitedBefore = server.waitedMs
      waiting(await load.call('poll', taskId))
      const tookMs = performance.now() - sentMs
      return { tookMs, ownMs: Math.max(0, tookMs - (server.waitedMs - waitedBefore)) }
    }
    for (let n = 1; n * TICK_MS <= pacedMs; n += 1) {
      answers.push(ask())
      await elapsed(Math.max(0, beganMs + n * TICK_MS - performance.now()))
    }
    const all = await Promise.all(answers)
    const took = all.map(({ tookMs }) => tookMs)
    const busy = ((await server.cpuMicros()) - cpuBefore) / 1000 / (performance.now() - beganMs)
    return { longest: Math.max(...took), p99: at(0.99, took), own: Math.max(...all.map(({ ownMs }) => ownMs)), busy }
  }
  const besidePolls = async ({ port }: ServerProcess, inFlight: number) => {
    const over: FloodOptions['over'] = { polls: TASKS, principal: 'poller' }
    const flood = await Flood.start({ port, over, tenant: '', connections: inFlight, inFlight })
    return { waits: await asked(), polls: (await flood.stop()).taken }
  }
  const rows: Row[] = []
  try {
    await asked()
    for (const inFlight of [IN_FLIGHT, TASKS]) {
      const row: Row = { inFlight, alone: [], apart: [], beside: [], polls: [] }
      for (let round = 0; round < rounds; round += 1) {
        row.alone.push(await asked())
        row.apart.push((await besidePolls(other, inFlight)).waits)
        const { waits, polls } = await besidePolls(server, inFlight)
        row.beside.push(waits)
        row.polls.push(polls)
      }
      rows.push(row)
    }
  } finally {
    await load.close()
    await Promise.all([server.stop(), other.stop()])
  }
  const of = (waits: readonly Waits[], name: keyof Waits) => median(waits.map(each => each[name]))
  return table(
    [
      'Polls in flight',
      'alone: longest, ms',
      'polls at another server: longest',
      'beside: p99',
      'beside: longest',
      'at another server: longest without the wait for a processor',
      'beside: the same',
      'more beside',
      'the most of a round',
      'busy: server',
      'polls a second'
    ],
    rows.map(({ inFlight, alone, apart, beside, polls }) => {
      const more = beside.map(({ own }, round) => own - (apart[round]?.own ?? NaN))
      return [
        whole(inFlight),
        short(of(alone, 'longest')),
        short(of(apart, 'longest')),
        short(of(beside, 'p99')),
        short(of(beside, 'longest')),
        short(of(apart, 'own')),
        short(of(beside, 'own')),
        whole(median(more)),
        whole(Math.max(...more)),
        percent(of(beside, 'busy')),
        whole(median(polls))
      ]
    })
  )
}
