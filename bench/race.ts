import type { Contender } from './contenders.ts'
import { repeat, type Load } from './load/load.ts'
import { ServerProcess } from './server-process.ts'
import { cpuMicros } from './servers/control.ts'
import type { OursOptions } from './servers/ours.ts'

/** One thing that servers are compared in. */
export interface Race {
  readonly title: string
  /** What is counted: a task, an event. */
  readonly unit: string
  readonly contenders: readonly Contender[]
  /** Which of them the others are compared with, and what the tables call it. Default the official SDK on Express. */
  readonly baseline?: { readonly contender: Contender; readonly name: string }
  /** Which work our agent has. */
  readonly work: OursOptions['work']
  readonly inFlight: number
  /** How often the servers take turns. */
  readonly rounds: number
  /** How often it is done in one round. */
  readonly times: number
  /** Whether the tables say how long each of these takes. */
  readonly isTimed?: boolean
  /** What every server does before the first round, so that its code is compiled. */
  warmUp(load: Load): Promise<void>
  /**
   * Opens what a round needs, connections too, before the clock starts. The answer does it once and says how many units
   * that was.
   */
  begin(load: Load): Promise<() => Promise<number>>
}

/** What one round of one server took. */
export interface Round {
  readonly units: number
  readonly wallMs: number
  readonly serverCpuMs: number
  /** Bytes that the server allocated on its heap. */
  readonly allocated: number
  readonly loadCpuMs: number
}

/** A server of a race, with its rounds. */
export interface Lane {
  readonly contender: Contender
  readonly rounds: readonly Round[]
}

/** Runs a race: all servers are up, one at a time is loaded, and they take turns: A B C A B C. */
export async function run(race: Race): Promise<Lane[]> {
  const lanes: { contender: Contender; server: ServerProcess; rounds: Round[] }[] = []
  try {
    for (const contender of race.contenders) {
      const server = await ServerProcess.start(
        contender.file,
        { ...contender.options, work: race.work },
        contender.folder
      )
      lanes.push({ contender, server, rounds: [] })
      const load = await contender.load(server.port, race.inFlight)
      await race.warmUp(load)
      await load.close()
    }
    for (let round = 0; round < race.rounds; round += 1) {
      for (const { contender, server, rounds } of lanes) rounds.push(await measured(race, contender, server))
    }
  } finally {
    await Promise.all(lanes.map(({ server }) => server.stop()))
  }
  return lanes
}

async function measured(race: Race, contender: Contender, server: ServerProcess): Promise<Round> {
  const load = await contender.load(server.port, race.inFlight)
  const once = await race.begin(load)
  let units = 0
  const allocatedBefore = await server.allocated()
  const serverBefore = await server.cpuMicros()
  const loadBefore = cpuMicros()
  const startMs = performance.now()
  await repeat(race.times, race.inFlight, async () => {
    const done = await once()
    units += done
  })
  const wallMs = performance.now() - startMs
  const loadCpuMs = (cpuMicros() - loadBefore) / 1000
  const serverCpuMs = ((await server.cpuMicros()) - serverBefore) / 1000
  const allocated = (await server.allocated()) - allocatedBefore
  await load.close()
  return { units, wallMs, serverCpuMs, loadCpuMs, allocated }
}
