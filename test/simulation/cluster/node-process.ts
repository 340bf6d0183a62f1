import type { ClientSocket } from '../../../adapters/client/transports/websocket/client-socket.ts'
import { ClusterNode } from '../../../adapters/cluster/node.ts'
import type { Placement } from '../../../adapters/cluster/placement/placement.ts'
import { PostgresPlacement } from '../../../adapters/cluster/placement/postgres-placement.ts'
import type { Runtime } from '../../../runtime/index.ts'
import { Life } from '../life.ts'
import type { OneProcessServices } from '../one-process.ts'
import type { ClockView } from '../virtual-clock.ts'
import type { Wire } from '../wire.ts'
import { poolOf } from './connection.ts'
import type { Database } from './database.ts'
import type { Links } from './links.ts'
import type { Machine } from './machine.ts'
import { dataOf, nodeStore } from './node-store.ts'

/** What a node needs of its world. */
export interface NodeServices extends OneProcessServices {
  readonly database: Database
  readonly links: Links
  readonly latencyMs: () => number
  /** Hears that a node owns shards from now on. */
  readonly gained: (machine: Machine, epochs: ReadonlyMap<number, number>) => void
  /** The process dies at this very moment. */
  readonly killed: () => void
}

/** Where other nodes reach the one of a host. */
export function addressOf(host: string): string {
  return `ws://${host}:1`
}

/** What placement may say of trouble that the world makes. */
const EXPECTED: readonly string[] = [
  'the node has lost its session: other nodes take its shards',
  'the node cannot take part in the cluster now',
  'the node could not hand its shards over'
]

/** One process of a node: it joins the cluster, serves clients, and may be killed at any moment of that. */
export class NodeProcess {
  readonly machine: Machine
  readonly #services: NodeServices
  #life: Life | undefined
  #isServing = false
  #isOver = false
  #closing: Promise<void> | undefined
  #died: () => void = () => {}

  constructor(machine: Machine, services: NodeServices) {
    this.machine = machine
    this.#services = services
  }

  get isOver(): boolean {
    return this.#isOver
  }

  get isClosing(): boolean {
    return this.#closing !== undefined
  }

  /** Whether clients reach it. */
  get isServing(): boolean {
    return this.#isServing && !this.#isOver && !this.isClosing
  }

  get runtime(): Runtime | undefined {
    return this.isServing ? this.#life?.runtime : undefined
  }

  /** Resolves when it serves. Rejects if there is no database. */
  async start(): Promise<void> {
    const { machine } = this
    const { database, links, network, latencyMs, disk, violations, killed, ids } = this.#services
    const pool = poolOf({
      machine,
      database,
      clock: network,
      latencyMs,
      data: dataOf(database, disk, violations, killed)
    })
    const placement = await PostgresPlacement.open({
      pool,
      place: 'the database',
      schema: 'simulated',
      shards: database.shards,
      takesShards: true,
      secret: 'a secret',
      logger: this.#logger(),
      clock: machine.clock
    })
    if (this.#isOver) return
    const node = new ClusterNode({
      placement: this.#watched(placement),
      store: nodeStore(placement, pool),
      address: addressOf(machine.host),
      secret: placement.secret,
      clock: placement.time,
      network: links.of(machine),
      ids
    })
    this.#life = new Life(this.#services, {
      store: node.store,
      clock: placement.time,
      own: machine.clock,
      around: machine.arrivals,
      cluster: node
    })
    await node.open()
    this.#isServing = true
  }

  accept(wireTo: (serverClock: ClockView) => Wire, principal: string): ClientSocket | undefined {
    return this.#life?.accept(wireTo(this.machine.arrivals), principal)
  }

  kill(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.machine.stop()
    this.#life?.kill()
    this.#services.links.died(this.machine)
    this.#died()
  }

  /** Ends in order, unless it is killed meanwhile. */
  close(): Promise<void> {
    return (this.#closing ??= Promise.race([this.#close(), new Promise<void>(resolve => (this.#died = resolve))]))
  }

  async #close(): Promise<void> {
    if (this.#life && this.#isServing) await this.#life.close()
    this.kill()
  }

  #logger() {
    const { journal, violations } = this.#services
    const noted = (message: string, details: Record<string, unknown> = {}) => {
      if (this.#isOver) return
      journal.note(`${this.machine.name}: ${message}: ${String(details['reason'])}`)
      if (!EXPECTED.includes(message)) violations.add(`the node says: ${message} ${JSON.stringify(details)}`)
    }
    return { warn: noted, error: noted }
  }

  /** The placement, which tells the world who owns what. */
  #watched(placement: PostgresPlacement): Placement {
    const { gained } = this.#services
    return {
      shards: placement.shards,
      get nodes() {
        return placement.nodes
      },
      join: seat =>
        placement.join({
          ...seat,
          gained: epochs => {
            gained(this.machine, epochs)
            seat.gained(epochs)
          }
        }),
      ownerOf: shard => placement.ownerOf(shard),
      status: () => placement.status(),
      leave: () => placement.leave()
    }
  }
}
