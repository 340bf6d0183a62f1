import { EventEmitter } from 'node:events'
import type { LinkSocket, Network } from '../../../adapters/cluster/link/network.ts'
import type { Random } from '../random.ts'
import type { ClockView } from '../virtual-clock.ts'
import type { Machine } from './machine.ts'
import { Gate, Way } from './way.ts'

const [CONNECTING, OPEN, CLOSED] = [0, 1, 3]

/** So many bytes wait now and then for a node that reads slowly. */
const SLOW_BYTES = 2 * 1024 * 1024

/** How long the peer of a killed node may take to notice. */
const UNNOTICED_MS = 20_000

/** What the links of a world are made of. */
export interface LinksOptions {
  readonly random: Random
  readonly latencyMs: () => number
  /** The true time. */
  readonly clock: ClockView
  /** How often a node is taken for a slow reader. */
  readonly slow: () => number
}

/** The network between the nodes of a world. */
export class Links {
  readonly #options: LinksOptions
  readonly #listening = new Map<
    string,
    { readonly machine: Machine; readonly accept: (socket: LinkSocket, proved: () => void) => void }
  >()
  readonly #gates = new Map<string, Gate>()
  readonly #ends = new Set<End>()

  constructor(options: LinksOptions) {
    this.#options = options
  }

  /** The network as one node has it. */
  of(machine: Machine): Network {
    return {
      connect: address => this.#connect(machine, address),
      listen: async (_, accept) => {
        this.#listening.set(machine.host, { machine, accept })
        return async () => {
          this.#listening.delete(machine.host)
          for (const end of this.#ends) if (end.machine === machine) end.terminate()
          // They close by then.
          await new Promise<void>(resolve => void machine.arrivals.setTimeout(resolve, 1))
        }
      }
    }
  }

  /** The way between two nodes. */
  gate(one: string, other: string): Gate {
    const name = [one, other].toSorted().join(' ')
    const gate = this.#gates.get(name) ?? new Gate()
    this.#gates.set(name, gate)
    return gate
  }

  /** Cuts one of the connections. */
  cut(which: number): void {
    const open = [...this.#ends].filter(({ readyState }) => readyState === OPEN)
    open[which % open.length]?.terminate()
  }

  /** A node is gone: the others notice it now, or later. */
  died(machine: Machine): void {
    const { random, clock } = this.#options
    if (this.#listening.get(machine.host)?.machine === machine) this.#listening.delete(machine.host)
    for (const end of this.#ends) {
      if (end.machine !== machine) continue
      this.#ends.delete(end)
      const { peer } = end
      clock.setTimeout(() => peer?.closed(), random.below(random.chance(0.2) ? UNNOTICED_MS : 20))
    }
  }

  #connect(machine: Machine, address: string): LinkSocket {
    const { latencyMs, clock } = this.#options
    const name = new URL(address).hostname
    const gate = this.gate(machine.host, name)
    const client = this.#end(machine)
    const knock = new Way({ clock, gate, latencyMs })
    knock.send(() => {
      const host = this.#listening.get(name)
      if (!host || client.readyState === CLOSED) return machine.arrivals.setTimeout(() => client.closed(), latencyMs())
      const server = this.#end(host.machine)
      client.meets(server, gate)
      server.meets(client, gate)
      host.machine.arrivals.setTimeout(() => host.accept(server, () => {}), 0)
      return undefined
    })
    return client
  }

  #end(machine: Machine): End {
    const { random, latencyMs, slow } = this.#options
    const end: End = new End(machine, latencyMs, {
      isSlow: () => random.chance(slow()),
      gone: () => void this.#ends.delete(end)
    })
    this.#ends.add(end)
    return end
  }
}

/** One end of a connection between two nodes, as `ws` has it. */
class End extends EventEmitter implements LinkSocket {
  readonly OPEN = OPEN
  readonly machine: Machine
  readonly #latencyMs: () => number
  readonly #told: { readonly isSlow: () => boolean; readonly gone: () => void }
  #state: number = CONNECTING
  /** To the other end. */
  #way: Way | undefined
  #peer: End | undefined

  constructor(
    machine: Machine,
    latencyMs: () => number,
    told: { readonly isSlow: () => boolean; readonly gone: () => void }
  ) {
    super()
    this.machine = machine
    this.#latencyMs = latencyMs
    this.#told = told
  }

  get readyState(): number {
    return this.#state
  }

  get bufferedAmount(): number {
    return this.#told.isSlow() ? SLOW_BYTES : 0
  }

  get peer(): End | undefined {
    return this.#peer
  }

  meets(peer: End, gate: Gate): void {
    this.#peer = peer
    this.#way = new Way({ clock: peer.machine.arrivals, gate, latencyMs: this.#latencyMs })
    this.#state = OPEN
  }

  send(frame: string): void {
    this.#say(peer => peer.emit('message', frame))
  }

  ping(): void {
    this.#say(peer => peer.emit('ping'))
  }

  close(): void {
    this.terminate()
  }

  terminate(): void {
    if (this.#state === CLOSED) return
    this.#say(peer => peer.closed())
    this.#state = CLOSED
    this.machine.arrivals.setTimeout(() => this.#isGone(), 0)
  }

  /** The other end is gone. */
  closed(): void {
    if (this.#state === CLOSED) return
    this.#state = CLOSED
    this.machine.arrivals.setTimeout(() => this.#isGone(), 0)
  }

  #say(heard: (peer: End) => void): void {
    const peer = this.#peer
    if (this.#state !== OPEN || !peer) return
    this.#way?.send(() => {
      if (peer.readyState !== CLOSED) heard(peer)
    })
  }

  #isGone(): void {
    this.#told.gone()
    this.emit('close')
  }
}
