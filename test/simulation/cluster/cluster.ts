import type { ClientSocket } from '../../../adapters/client/transports/websocket/client-socket.ts'
import { wantedOwners } from '../../../adapters/cluster/placement/placement.ts'
import type { Runtime } from '../../../runtime/index.ts'
import type { ClusterConfig } from '../config.ts'
import type { OneProcessServices } from '../one-process.ts'
import type { Processes } from '../processes.ts'
import { randomOf, type Random } from '../random.ts'
import type { ClockView } from '../virtual-clock.ts'
import type { Wire } from '../wire.ts'
import { Database } from './database.ts'
import { Links } from './links.ts'
import { Machine } from './machine.ts'
import { addressOf, NodeProcess } from './node-process.ts'

/** How long the server keeps the sessions of a host that it does not hear of, as `tcp_user_timeout` says. */
const UNHEARD_MS = 30_000

/** How long a node whose start has failed waits for the next. */
const START_MS = 1000

/** The most nodes at once. */
const MOST = 4

/** What a clock gains while its node does not reach the database, until it gives up. */
const DRIFT_MS = 250

/** A place for a node, whose process may be away. */
interface Place {
  readonly host: string
  process: NodeProcess | undefined
  lives: number
  /** Whether it takes part at all. */
  isWanted: boolean
}

/** Several nodes, their database, and the network between them. */
export class SimulatedCluster implements Processes {
  readonly database: Database
  readonly #config: ClusterConfig
  readonly #services: OneProcessServices
  readonly #links: Links
  readonly #random: Random
  readonly #places: Place[]
  /** The process that was told of each shard in each epoch. */
  readonly #owners = new Map<string, string>()
  #isCalm = false

  constructor(config: ClusterConfig, services: OneProcessServices) {
    const { clock, network, journal, violations } = services
    const { seed, latencyMs } = services.config
    this.#config = config
    this.#services = services
    this.#random = randomOf(seed, 'cluster')
    const late = randomOf(seed, 'links')
    this.database = new Database({
      shards: config.shards,
      clock: clock.view({ aheadMs: config.databaseAheadMs }),
      journal,
      violations
    })
    this.#links = new Links({
      random: late,
      clock: network,
      latencyMs: () => (this.#isCalm ? 0 : late.below(latencyMs + 1)),
      slow: () => (this.#isCalm ? 0 : config.slowLinks)
    })
    this.#places = Array.from({ length: MOST }, (_, i) => ({
      host: `n${i + 1}`,
      process: undefined,
      lives: 0,
      isWanted: i < config.nodes
    }))
    for (const place of this.#places) this.#start(place)
  }

  get isAway(): boolean {
    return false
  }

  /**
   * How much later than the true time a node may have it: the time of the database, by a round trip and what its clock
   * gains until the next.
   */
  get aheadMs(): number {
    const { databaseAheadMs } = this.#config
    return databaseAheadMs + this.inexactMs
  }

  /** How much the times of two nodes may differ. */
  get inexactMs(): number {
    return 2 * this.#services.config.slowStoreMs + DRIFT_MS
  }

  /** Checks a cluster in which all is quiet: every node serves, and every shard has the owner that it should have. */
  judge(): void {
    const { violations } = this.#services
    const wanted = this.#places.filter(({ isWanted }) => isWanted)
    for (const { host, process } of wanted) if (!process?.isServing) violations.add(`I21: ${host} does not come back`)
    const owners = wantedOwners(
      this.database.shards,
      wanted.map(({ host }) => addressOf(host))
    )
    for (const [shard, owner] of owners.entries()) {
      const { backend } = this.database.ownership(shard)
      const is = backend && addressOf(String(backend.node.split('.')[0]))
      if (is !== owner) violations.add(`I21: shard ${shard} should be at ${owner}, and is at ${is}`)
    }
  }

  get progress(): string {
    return [this.database.moves, ...this.#places.map(({ process }) => process?.isServing)].join()
  }

  accept(wireTo: (serverClock?: ClockView) => Wire, principal: string): ClientSocket | undefined {
    const process = this.#anyOf(this.#serving)
    return process?.accept(wireTo, principal)
  }

  /** A process that hangs hears of it later. */
  use(run: (runtime: Runtime) => void): void {
    const process = this.#anyOf(this.#serving)
    process?.machine.arrivals.setTimeout(() => process.runtime && run(process.runtime), 0)
  }

  kill(downMs: number): void {
    const place = this.#anyOf(this.#present)
    if (place) this.#kill(place, downMs)
  }

  restart(downMs: number): void {
    const place = this.#anyOf(this.#present.filter(({ process }) => process?.isServing && !process.machine.isHung))
    if (place) this.#end(place, downMs)
  }

  /** A node comes, or one leaves in order, but never the last. */
  resize(): void {
    const { isWanted } = this.#anyOf([{ isWanted: true }, { isWanted: false }]) as { isWanted: boolean }
    const place = this.#anyOf(this.#places.filter(place => place.isWanted !== isWanted))
    if (!place || (!isWanted && this.#places.filter(place => place.isWanted).length < 2)) return
    place.isWanted = isWanted
    this.#services.journal.note(`${place.host} ${isWanted ? 'comes' : 'leaves'}`)
    if (isWanted) this.#start(place)
    else this.#end(place, 0)
  }

  /** A node stops in the middle of what it does, and goes on after a while. */
  hang(ms: number): void {
    const process = this.#anyOf(this.#serving.filter(({ machine }) => !machine.isHung))
    if (!process || this.#isCalm) return
    const { machine } = process
    this.#services.journal.note(`${machine.name} hangs`)
    machine.hang()
    this.#services.network.setTimeout(() => this.#goOn(machine), ms)
  }

  /** A node does not reach the database for a while. */
  part(ms: number): void {
    const process = this.#anyOf(this.#present.flatMap(({ process }) => process ?? []))
    if (!process || process.machine.database.isShut) return
    const { journal, network } = this.#services
    const { machine } = process
    journal.note(`${machine.name} does not reach the database`)
    machine.database.shut()
    const unheard = network.setTimeout(() => this.database.forgetNode(machine.name), UNHEARD_MS)
    network.setTimeout(() => {
      network.clearTimeout(unheard)
      if (!machine.database.isShut) return
      journal.note(`${machine.name} reaches the database`)
      machine.database.open()
    }, ms)
  }

  /** Two nodes do not reach each other for a while. */
  partNodes(ms: number): void {
    const [one, other] = [this.#anyOf(this.#places)?.host ?? '', this.#anyOf(this.#places)?.host ?? '']
    const gate = this.#links.gate(one, other)
    if (gate.isShut) return
    this.#services.journal.note(`${one} and ${other} do not reach each other`)
    gate.shut()
    this.#services.network.setTimeout(() => gate.open(), ms)
  }

  /** The database crashes, and is there again after a while. */
  crash(ms: number): void {
    if (this.database.isDown) return
    this.database.crash()
    this.#services.network.setTimeout(() => this.database.restart(), ms)
  }

  /** The session of a node that has its locks ends. */
  endSession(): void {
    const process = this.#anyOf(this.#present.flatMap(({ process }) => process ?? []))
    if (!process) return
    this.#services.journal.note(`the session of ${process.machine.name} ends`)
    this.database.endNode(process.machine.name)
  }

  /** The locks of a node are gone, as behind a pooler that gives its session to others. */
  unlock(): void {
    const process = this.#anyOf(this.#serving)
    if (!process) return
    this.#services.journal.note(`the locks of ${process.machine.name} are gone`)
    this.database.unlock(process.machine.name)
  }

  cutLink(): void {
    this.#links.cut(this.#random.below(100))
  }

  calmDown(): void {
    this.#isCalm = true
  }

  async close(): Promise<void> {
    for (const place of this.#places) place.isWanted = false
    await Promise.all(this.#places.map(async ({ process }) => process?.close()))
  }

  abandon(): void {
    for (const place of this.#places) {
      place.isWanted = false
      place.process?.kill()
    }
  }

  get #present(): readonly Place[] {
    return this.#places.filter(({ process }) => process && !process.isOver)
  }

  get #serving(): readonly NodeProcess[] {
    return this.#places.flatMap(({ process }) => (process?.isServing ? [process] : []))
  }

  #anyOf<T>(some: readonly T[]): T | undefined {
    return some[this.#random.below(Math.max(1, some.length))]
  }

  #start(place: Place): void {
    if (!place.isWanted || (place.process && !place.process.isOver)) return
    const {
      clock,
      config: { slowStoreMs },
      journal
    } = this.#services
    const { aheadMs, rates } = this.#config
    const index = this.#places.indexOf(place)
    const machine = new Machine(place.host, (place.lives += 1), clock, {
      aheadMs: aheadMs[index] ?? 0,
      rate: rates[index] ?? 1
    })
    const process: NodeProcess = new NodeProcess(machine, {
      ...this.#services,
      database: this.database,
      links: this.#links,
      latencyMs: () => (this.#isCalm ? 0 : this.#random.below(slowStoreMs + 1)),
      gained: (machine, epochs) => this.#gained(machine, epochs),
      killed: () => this.#kill(place, this.#random.below(2000))
    })
    place.process = process
    journal.note(`${machine.name} starts`)
    process.start().catch((error: unknown) => {
      if (process.isOver) return
      journal.note(`${machine.name} cannot start: ${String(error)}`)
      this.#kill(place, START_MS)
    })
  }

  #kill(place: Place, downMs: number): void {
    const { process } = place
    if (!process || process.isOver) return
    const { network, journal } = this.#services
    journal.note(`${process.machine.name} is killed`)
    process.kill()
    this.#forget(process)
    network.setTimeout(() => this.#start(place), downMs)
  }

  #end(place: Place, downMs: number): void {
    const { process } = place
    void process?.close().then(() => this.#restart(place, process, downMs))
  }

  #restart(place: Place, ended: NodeProcess, downMs: number): void {
    this.#forget(ended)
    this.#services.network.setTimeout(() => this.#start(place), downMs)
  }

  /** The server notices at once that a process is gone; if its host is gone, late, or only the other nodes do. */
  #forget({ machine }: NodeProcess): void {
    const isSilent = !this.#isCalm && this.#random.chance(0.2)
    this.#services.network.setTimeout(
      () => this.database.forgetNode(machine.name),
      isSilent ? UNHEARD_MS : this.#random.below(20)
    )
  }

  #goOn(machine: Machine): void {
    if (!machine.isHung) return
    this.#services.journal.note(`${machine.name} goes on`)
    machine.goOn()
  }

  #gained(machine: Machine, epochs: ReadonlyMap<number, number>): void {
    for (const [shard, epoch] of epochs) {
      const name = `${shard} ${epoch}`
      const owner = this.#owners.get(name)
      if (owner !== undefined && owner !== machine.name)
        this.#services.violations.add(`I19: ${owner} and ${machine.name} own shard ${shard} in epoch ${epoch}`)
      this.#owners.set(name, machine.name)
    }
  }
}
