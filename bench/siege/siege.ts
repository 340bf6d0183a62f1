import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AttackOptions } from './attack.ts'
import { AttackerProcess } from './attacker-process.ts'
import { Besieged, type Peaks } from './besieged.ts'
import { Observer, type Wait } from './observer.ts'
import type { Told } from './tally.ts'

/** The options of a siege. */
export interface SiegeOptions extends Pick<AttackOptions, 'seed' | 'connections' | 'holdMs' | 'only'> {
  /** How long the server is attacked. */
  readonly attackMs: number
  /** How long the observer is measured without an attack, and with one at another server. */
  readonly idleMs: number
  readonly apartMs: number
  /** The Node that serves. */
  readonly node: string
}

/** The result of a siege. */
export interface Found {
  readonly idle: readonly Wait[]
  readonly apart: readonly Wait[]
  readonly beside: readonly Wait[]
  /** The attacks that were under way while a request of the observer waited. */
  readonly during: (wait: Wait) => readonly string[]
  readonly attacks: readonly Told[]
  /** The most while it was attacked. */
  readonly peaks: Peaks
  /** The most in a second, ten seconds after the attack and after a garbage collection. */
  readonly after: Peaks
  /** CPU time of the server as a part of the time; 1 is one core. */
  readonly busy: number
  readonly restartMs: number
  /** How many tasks the observer has opened. */
  readonly tasks: number
  /** Wrong answers, and the end of the server if it ended. */
  readonly failures: readonly string[]
  readonly log: string
}

const A_SECOND = 10
const WARM_UP_MS = 4000
const AFTER_MS = 10_000

/**
 * Attacks `taskchart serve --db` and measures its other caller meanwhile. Then kills the server and starts it again.
 */
export async function siege(options: SiegeOptions, say: (line: string) => void): Promise<Found> {
  return onStage(options, async ({ served, attackOn }) => {
    const [server, other] = [await served('tasks.db'), await served('other.db')]
    const observer = await Observer.connect(server.port, server.threads)
    const observed = (forMs: number) => observer.observe(A_SECOND, forMs, server.ended)
    await observed(WARM_UP_MS)
    say(`No attack, ${options.idleMs / 1000} s`)
    const idle = await observed(options.idleMs)
    say(`The attack at another server, ${options.apartMs / 1000} s`)
    const elsewhere = await attackOn(other, observer.ticking)
    const apart = await observed(options.apartMs)
    await Promise.all([elsewhere.kill(), other.kill()])
    server.takePeaks()
    say(`The attack, ${options.attackMs / 1000} s`)
    const attacker = await attackOn(server, observer.ticking)
    const [cpuBefore, beganMs] = [server.cpuMs, performance.now()]
    const beside = await observed(options.attackMs)
    const busy = (server.cpuMs - cpuBefore) / (performance.now() - beganMs)
    const attacks = await attacker.stop()
    const peaks = server.takePeaks()
    await observed(AFTER_MS)
    const after = await server.collectGarbage()
    const end = server.ended.aborted ? [`The server was ended: ${String(server.ended.reason)}`] : []
    observer.close()
    await server.kill()
    say('Killed, and started again')
    const again = await served('tasks.db').catch((error: unknown) => void end.push(String(error)))
    if (again) await observer.lookBack(again.port)
    return {
      idle,
      apart,
      beside,
      attacks,
      peaks,
      after,
      busy,
      during: wait => attacker.during(wait),
      restartMs: again?.startMs ?? NaN,
      tasks: observer.tasks.length,
      failures: [...end, ...observer.failures],
      log: server.log
    }
  })
}

/** The effect of one attack alone. */
export interface FoundOfOne {
  readonly longest: number
  readonly peaks: Peaks
  readonly failures: readonly string[]
  readonly told: Told | undefined
}

/** Attacks a fresh server with one kind of attack alone. */
export async function siegeOfOne(name: string, options: SiegeOptions): Promise<FoundOfOne> {
  return onStage({ ...options, only: [name] }, async ({ served, attackOn }) => {
    const server = await served('tasks.db')
    const observer = await Observer.connect(server.port)
    await observer.observe(A_SECOND, 1000, server.ended)
    const attacker = await attackOn(server, observer.ticking)
    const waits = await observer.observe(A_SECOND, options.attackMs, server.ended)
    const told = await attacker.stop().catch(() => [])
    observer.close()
    const end = server.ended.aborted ? [`The server was ended: ${String(server.ended.reason)}`] : []
    return {
      longest: Math.max(...waits.map(({ tookMs }) => tookMs)),
      peaks: server.takePeaks(),
      failures: [...end, ...observer.failures],
      told: told.find(({ attack }) => attack === name)
    }
  })
}

interface Stage {
  readonly served: (name: string) => Promise<Besieged>
  readonly attackOn: (server: Besieged, foreign: string) => Promise<AttackerProcess>
}

/** Runs `play` with processes and files that it removes afterwards. */
async function onStage<T>(options: SiegeOptions, play: (stage: Stage) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'taskchart-siege-'))
  const processes: { readonly kill: () => Promise<void> }[] = []
  const kept = <P extends { readonly kill: () => Promise<void> }>(process: P): P => {
    processes.push(process)
    return process
  }
  try {
    return await play({
      served: async name => kept(await Besieged.start(join(folder, name), options.node)),
      attackOn: async ({ port }, foreign) => kept(await AttackerProcess.start({ ...options, port, foreign }))
    })
  } finally {
    await Promise.all(processes.map(process => process.kill()))
    await rm(folder, { recursive: true, force: true })
  }
}
