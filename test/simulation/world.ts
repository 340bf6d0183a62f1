import { nobodyAnswers } from '../../adapters/client/retries/lost-errors.ts'
import type { ClientSocket } from '../../adapters/client/transports/websocket/client-socket.ts'
import type { Message, Task } from '../../machines/protocol/objects.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import type { Store } from '../../runtime/store/store.ts'
import { Client } from './client.ts'
import { SimulatedCluster } from './cluster/cluster.ts'
import type { WorldConfig } from './config.ts'
import { Disk } from './disk.ts'
import { FrameTap } from './frame-tap.ts'
import { Journal } from './journal.ts'
import { entriesOf, Ledger } from './ledger.ts'
import { OneProcess, type OneProcessServices } from './one-process.ts'
import { Outside } from './outside.ts'
import type { Processes } from './processes.ts'
import { randomOf, type Random } from './random.ts'
import { Requests, type Request } from './requests.ts'
import { atRest } from './rest.ts'
import { Violations } from './violations.ts'
import { VirtualClock, type ClockView } from './virtual-clock.ts'
import { Wire } from './wire.ts'

/** Who calls: two clients of one principal, and one of another. */
const CLIENTS = [
  ['a', 'alice'],
  ['b', 'alice'],
  ['c', 'bob']
] as const

/** What a world is made of beside its config. */
export interface WorldOptions {
  readonly store: Store
  /** Whether the store is at work outside of the world's time. */
  readonly isBusy?: () => boolean
  /** Hears of each line of the journal. */
  readonly print?: ((line: string) => void) | undefined
}

/** A process with an agent, its disk, its clients and the network between them, in a time of their own. */
export class World {
  readonly config: WorldConfig
  readonly clock: VirtualClock
  readonly journal: Journal
  readonly violations = new Violations()
  readonly ledger: Ledger
  readonly disk: Disk
  readonly outside: Outside
  readonly requests: Requests
  /** What was sent as an authorization for each task. */
  readonly authorizations = new Map<string, Set<string>>()
  /** Tasks that somebody wanted canceled. */
  readonly canceled = new Set<string>()
  /** Ids of messages that were sent again, on other terms. */
  readonly repeated = new Set<string>()
  /** Ids under which another message was sent, too: whichever comes first is taken. */
  readonly contested = new Set<string>()
  /** Lists that were read to their end: the tasks on them, and those that were known before. */
  readonly listed: {
    readonly principal: string
    readonly listed: readonly string[]
    readonly known: readonly string[]
  }[] = []
  /** Messages that were sent, to be sent again. */
  readonly sent: { readonly principal: string; readonly message: Message }[] = []
  readonly #random: Random
  readonly #network: ClockView
  readonly #wires = new Set<Wire>()
  readonly #clients: Client[] = []
  #connections = 0
  #ids = 0
  #messages = 0
  #isCalm = false
  #isTroubled = false
  readonly #processes: Processes
  /** The nodes, if there are several. */
  readonly cluster: SimulatedCluster | undefined

  constructor(config: WorldConfig, { store, isBusy = () => false, print }: WorldOptions) {
    this.config = config
    this.clock = new VirtualClock(() => atRest(isBusy))
    this.ledger = new Ledger(this.violations, () => this.clock.now() + (this.cluster?.aheadMs ?? 0))
    this.#network = this.clock.view()
    this.#random = randomOf(config.seed, 'world')
    this.journal = new Journal(() => this.clock.elapsedMs, print)
    this.requests = new Requests(this)
    this.outside = new Outside(config, this)
    this.disk = new Disk(store, {
      config,
      journal: this.journal,
      ledger: this.ledger,
      killed: () => this.kill(this.#random.below(500))
    })
    const { cluster } = config
    this.cluster = cluster && new SimulatedCluster(cluster, this.#services)
    this.#processes = this.cluster ?? new OneProcess(this.#services)
    CLIENTS.forEach((_, which) => this.client(which))
  }

  /** A client, by its number; one that has ended is made anew. */
  client(which: number): Client {
    const index = which % CLIENTS.length
    const [name, principal] = CLIENTS[index] as (typeof CLIENTS)[number]
    const known = this.#clients[index]
    if (known?.isOpen) return known
    const { seed } = this.config
    return (this.#clients[index] = new Client({
      name,
      principal,
      seed,
      clock: this.#network,
      requests: this.requests,
      open: () => this.#connect(name, principal)
    }))
  }

  /** Lets time pass. Throws as soon as something is seen that must not be. */
  async pass(ms: number): Promise<void> {
    await this.clock.pass(ms)
    this.violations.check()
  }

  /** Lets a moment pass, as between two things that people do. */
  async moment(): Promise<void> {
    await this.pass(this.#random.chance(0.5) ? 0 : this.#random.below(60))
  }

  messageId(): string {
    return `m-${(this.#messages += 1)}`
  }

  /** Cuts one of the connections. */
  cut(which: number): void {
    const whole = [...this.#wires].filter(({ isWhole }) => isWhole)
    whole[which % whole.length]?.cut()
  }

  /** Kills a process, and starts another after a while. */
  kill(downMs: number): void {
    if (this.#processes.isAway) return
    this.#isTroubled = true
    this.#processes.kill(downMs)
  }

  /** Ends a process in order and starts another. */
  restart(downMs: number): void {
    this.#isTroubled = true
    this.#processes.restart(downMs)
  }

  /** The application hears of an authorization for a task, and tells the process. */
  authorize(principal: string, taskId: string): void {
    const data = `d-${this.messageId()}`
    this.authorizations.set(taskId, (this.authorizations.get(taskId) ?? new Set()).add(data))
    const outcome = (text: string) => this.journal.note(`authorization ${data}: ${text}`)
    this.#processes.use(runtime => {
      this.journal.note(`authorizes ${taskId} with ${data}`)
      runtime.authorized(taskId, data, { principal }).then(
        (task: Task) => outcome(task.status.state),
        error => outcome(String(error))
      )
    })
  }

  /** From now on there are no more faults. */
  calmDown(): void {
    this.#isCalm = true
    this.disk.calmDown()
    this.#processes.calmDown()
  }

  /** Requests that have no outcome. */
  get pending(): readonly Request[] {
    return this.requests.all.filter(({ outcome }) => !outcome)
  }

  /** Tasks that have not ended. */
  get open(): readonly string[] {
    return [...this.ledger.tasks.values()]
      .filter(({ state }) => state && !isTerminal(state))
      .map(({ taskId }) => taskId)
  }

  /** Changes with everything that matters: while it stays as it is, all is quiet. */
  get progress(): string {
    const generations = [...this.ledger.tasks.values()].map(entriesOf)
    return [this.pending.length, this.#processes.progress, this.#ids, ...generations].join()
  }

  /** The tasks of a principal, each with its generation. */
  still(principal: string): readonly string[] {
    return [...this.ledger.tasks.values()]
      .filter(({ key }) => key.principal === principal)
      .map(({ taskId, events }) => `${taskId} ${events.length}`)
  }

  /** Gives the next commits a fate. */
  trouble(fates: Parameters<Disk['order']>[0]): void {
    this.#isTroubled = true
    this.disk.order(fates)
  }

  /** Whether something was done to the process that its clients may rightly hear of. */
  get isTroubled(): boolean {
    const { commitFaults, crashes, readFaults, liveContexts } = this.config
    return (
      this.#isTroubled || this.cluster !== undefined || liveContexts < 10 || commitFaults + crashes + readFaults > 0
    )
  }

  /** Ends a task that its owner does not want any more. */
  end(taskId: string): void {
    const { principal } = this.ledger.tasks.get(taskId)?.key ?? { principal: '' }
    const owner = CLIENTS.findIndex(([, name]) => name === principal)
    this.canceled.add(taskId)
    this.client(owner).cancel({ id: taskId }, {}, { taskId, codes: ['TaskNotCancelable'] })
  }

  /** Ends everything. */
  async close(): Promise<void> {
    await this.#passUntil('the end of the clients', Promise.all(this.#clients.map(client => client.close())))
    await this.#passUntil('the end of the processes', this.#processes.close())
    await this.pass(120_000)
    if (this.#network.size > 0) this.violations.add(`I13: ${this.#network.size} timers are left of the clients`)
    this.violations.check()
  }

  /**
   * Lets time pass until something is over, at most a minute. Nothing else waits for more than time, so a world cannot
   * stall.
   */
  async #passUntil(what: string, over: Promise<unknown>): Promise<void> {
    const wait = { isOver: false }
    over.then(
      () => (wait.isOver = true),
      (error: unknown) => this.violations.add(`${what} fails: ${String(error)}`)
    )
    for (let ms = 0; ms < 60_000 && !wait.isOver; ms += 500) await this.pass(500)
    if (!wait.isOver) this.violations.add(`I11: ${what} never comes`)
    this.violations.check()
  }

  /** Stops without a word, whatever is under way. */
  abandon(): void {
    this.#processes.abandon()
    this.#network.stop()
  }

  get #services(): OneProcessServices {
    const { config, clock, disk, outside, journal, violations } = this
    return {
      config,
      clock,
      disk,
      outside,
      journal,
      violations,
      network: this.#network,
      ids: () => `i${this.#random.below(36 ** 3).toString(36)}-${(this.#ids += 1)}`
    }
  }

  #connect(name: string, principal: string): Promise<ClientSocket> {
    const { config } = this
    const number = (this.#connections += 1)
    const random = randomOf(config.seed, `connection ${number}`)
    const handshakeMs = random.below(config.latencyMs + 1)
    return new Promise((resolve, reject) => {
      this.#network.setTimeout(() => {
        const wireTo = (serverClock = this.#network) => {
          const tap = new FrameTap(`${name}${number}`, this)
          const wire: Wire = new Wire({
            config,
            random,
            clock: this.#network,
            serverClock,
            isCalm: () => this.#isCalm,
            tapped: (to, frame) => tap.heard(to, frame)
          })
          this.#wires.add(wire)
          return wire
        }
        const socket = this.#processes.accept(wireTo, principal)
        if (!socket) return reject(nobodyAnswers(`sim:${name}`))
        this.#network.setTimeout(() => resolve(socket), handshakeMs)
      }, handshakeMs)
    })
  }
}
