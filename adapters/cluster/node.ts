import { A2AError } from '../../machines/protocol/errors.ts'
import type {
  OwnerCall,
  OwnerCallName,
  Cluster,
  OwnerResult,
  ClusterMember,
  Membership,
  NodeFigures,
  ShardSelector
} from '../../runtime/operations/cluster.ts'
import { systemClock, type Clock } from '../../runtime/ports/clock.ts'
import type { Ids } from '../../runtime/ports/ids.ts'
import type { Logger } from '../../runtime/ports/logger.ts'
import type { Scope } from '../../runtime/store/rows.ts'
import { NOT_OWNER, type Erasure, type Store, OUTCOME_UNKNOWN } from '../../runtime/store/store.ts'
import { Following } from './following.ts'
import { LinkServer } from './link/link-server.ts'
import { NodeLink, LinkLost, type LinkWays } from './link/link.ts'
import { webSockets, type ListenPlace, type Network } from './link/network.ts'
import type { Placement, Seat } from './placement/placement.ts'
import { Shards } from './shards.ts'

/** How long a change waits for an owner of its shard, and the pause between two attempts. */
const WAIT_MS = 30_000
const LOOK_MS = 20

/** How long the other nodes may take to stop the contexts that are to be erased. */
const WITHHOLD_MS = 5000

/** The options of a node. */
export interface NodeOptions {
  readonly placement: Placement
  /** The store that all nodes share. */
  readonly store: Store
  /** Where other nodes reach this one, `ws://HOST:PORT`; it listens there, or at `listen`. */
  readonly address: string
  readonly listen?: ListenPlace
  /** Proves to other nodes that this is one of them. Never sent. */
  readonly secret: string
  /** The time that all nodes share. Default: the system clock. */
  readonly clock?: Clock
  /** Default: WebSocket. */
  readonly network?: Network
  readonly ids?: Ids
  readonly logger?: Logger
}

/**
 * One node of a cluster: a runtime for the contexts of its shards, and a way to the nodes of the others. A caller may
 * use any node. Its node checks the call, asks the owner for the change alone, and follows and reads the task itself.
 */
export class ClusterNode implements Cluster {
  /** The store for this node's runtime. */
  readonly store: Store
  readonly shards: Shards
  readonly clock: Clock
  readonly #network: Network
  readonly #options: NodeOptions
  readonly #links = new Map<string, NodeLink>()
  #server: LinkServer | undefined
  #member: ClusterMember | undefined

  constructor(options: NodeOptions) {
    this.#options = options
    this.clock = options.clock ?? systemClock
    this.#network = options.network ?? webSockets
    this.shards = new Shards(options.placement.shards, options.ids)
    this.store = this.shards.viewOf(options.store)
  }

  /** Listens for other nodes, then takes part. Call it after `createNode`. Rejects if the address is in use. */
  async open(): Promise<void> {
    const { address, listen, secret, placement } = this.#options
    const { hostname, port } = new URL(address)
    const member = this.#joined
    this.#server = await LinkServer.listen(
      listen ?? { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) },
      member,
      this.shards,
      secret,
      this.#ways
    )
    placement.join(this.#seat(member))
  }

  join(member: ClusterMember): Membership {
    this.#member = member
    const { placement } = this.#options
    this.#following = new Following({
      member,
      shards: this.shards,
      placement,
      clock: this.clock,
      linkTo: address => this.#linkTo(address),
      shardOfTask: (scope, taskId) => this.#shardOfTask(scope, taskId)
    })
    return {
      figures: () => this.#figures(),
      observed: {
        address: this.#options.address,
        status: () => placement.status(),
        shardOf: key => this.shards.of(key)
      },
      runOnOwner: (change, here) => this.#runOnOwner(change, here),
      owns: key => this.shards.has(this.shards.of(key)),
      contextId: shard => this.shards.idIn(shard),
      taskId: key => this.shards.idIn(this.shards.of(key)),
      followed: this.#following.follow,
      erase: (whose, erase) => this.#erase(whose, erase),
      leave: () => (this.#left ??= this.#leave())
    }
  }

  #following: Following | undefined
  /** The last epoch of each shard that this node has had. */
  readonly #epochs = new Map<number, number>()
  #left: Promise<void> | undefined
  /** Whether it has left: nothing is forwarded any more. */
  #isOver = false
  /** Ends the pauses of changes that wait for an owner. */
  readonly #pauses = new Set<() => void>()
  #forwarded = 0
  readonly #moves = { gained: 0, given: 0, lost: 0 }
  #faults = 0

  #figures(): NodeFigures {
    return {
      shards: this.shards.owned.length,
      nodes: this.#options.placement.nodes.length,
      forwarded: this.#forwarded,
      moves: this.#moves,
      refusals: { join: this.#options.placement.refused ?? 0, caller: this.#server?.refused ?? 0, node: this.#faults }
    }
  }

  get #ways(): LinkWays {
    return { network: this.#network, clock: this.clock }
  }

  get #joined(): ClusterMember {
    if (!this.#member)
      throw new TypeError('The node has no runtime yet: createNode({ cluster: node, store: node.store }).')
    return this.#member
  }

  #seat(member: ClusterMember): Seat {
    const lost = (shards: readonly number[], isOrderly: boolean) =>
      member.release(
        { context: key => shards.includes(this.shards.of(key)), task: taskId => this.shards.mayBeIn(shards, taskId) },
        isOrderly
      )
    const released = (shards: readonly number[]) => {
      this.shards.remove(shards)
      this.#server?.release(shards)
      this.#following?.moved()
    }
    return {
      address: this.#options.address,
      version: { format: member.format, agent: member.version },
      gained: epochs => {
        const shards = [...epochs.keys()]
        const continued = shards.filter(shard => this.#epochs.get(shard) === Number(epochs.get(shard)) - 1)
        for (const [shard, epoch] of epochs) this.#epochs.set(shard, epoch)
        this.shards.add(shards)
        this.#moves.gained += shards.length
        member.gained(key => continued.includes(this.shards.of(key)))
        this.#following?.gained(shards)
      },
      giving: async shards => {
        this.shards.give(shards)
        this.#moves.given += shards.length
        await lost(shards, true)
        released(shards)
      },
      lost: shards => {
        this.#moves.lost += shards.length
        released(shards)
        void lost(shards, false)
      },
      changed: () => {
        for (const [address, link] of this.#links) {
          // A node that is only away from the database still answers open requests.
          if (this.#options.placement.nodes.includes(address) || !link.isIdle) continue
          link.close()
          this.#links.delete(address)
        }
        this.#following?.moved()
      }
    }
  }

  async #runOnOwner<Here>(
    { name, place, request, isRepeatable, signal }: OwnerCall,
    here: (shard: number) => Promise<Here>
  ): Promise<OwnerResult<Here>> {
    const { placement, address } = this.#options
    const endMs = this.clock.now() + WAIT_MS
    for (;;) {
      signal?.throwIfAborted()
      const shard = place ? await this.#shardOf(place) : this.#anyShard()
      const owner = shard === undefined ? undefined : placement.ownerOf(shard)
      const link = owner === undefined || owner === address ? undefined : this.#linkTo(owner)
      try {
        // An unknown task is not found here either.
        if (shard === undefined || this.shards.has(shard)) return { here: await here(shard ?? 0) }
        if (link && link.fault === undefined)
          return { there: await this.#forward(link, { change: name, shard, request }, signal) }
      } catch (error) {
        const isUnknown = error === OUTCOME_UNKNOWN || (error instanceof LinkLost && error.wasSent)
        const isRetried = isUnknown ? isRepeatable : error === NOT_OWNER || error instanceof LinkLost
        if (!isRetried) throw error instanceof LinkLost ? unknownOutcome(error) : error
      }
      if (link?.fault !== undefined) throw unreachable()
      if (this.#isOver || this.clock.now() >= endMs) throw nobody()
      await this.#pause()
    }
  }

  /** Resolves before the next search for an owner, or when the node has left. */
  #pause(): Promise<void> {
    return new Promise(resolve => {
      const end = () => {
        this.clock.clearTimeout(timer)
        this.#pauses.delete(end)
        resolve()
      }
      const timer = this.clock.setTimeout(end, LOOK_MS)
      this.#pauses.add(end)
    })
  }

  async #forward(
    link: NodeLink,
    change: { readonly change: OwnerCallName; readonly shard: number; readonly request: object },
    signal: AbortSignal | undefined
  ): Promise<unknown> {
    const answer = await link.call(change, signal)
    this.#forwarded += 1
    return answer
  }

  async #shardOf(place: NonNullable<ShardSelector>): Promise<number | undefined> {
    if ('text' in place) return this.shards.ofText(place.text)
    return 'context' in place
      ? this.shards.of(place.context)
      : (this.shards.ofTask(place.taskId) ?? this.#shardOfTask(place.scope, place.taskId))
  }

  /** The shard of a task whose id does not contain it. */
  async #shardOfTask(scope: Scope, taskId: string): Promise<number | undefined> {
    const key = await this.#joined.contextOf(scope, taskId)
    return key && this.shards.of(key)
  }

  /** A shard of this node, else of any. */
  #anyShard(): number {
    const { owned, count } = this.shards
    return owned[Math.floor(Math.random() * owned.length)] ?? Math.floor(Math.random() * count)
  }

  #linkTo(address: string): NodeLink {
    const known = this.#links.get(address)
    if (known) return known
    const link = new NodeLink(address, this.#options.secret, this.#ways, fault => {
      this.#faults += 1
      this.#options.logger?.warn(`another node ${fault}: its tasks cannot be used through this node`, { node: address })
    })
    if (this.#isOver) link.close()
    this.#links.set(address, link)
    return link
  }

  /**
   * Erases data while the other nodes withhold it. A node that does not answer in time is ignored: its later commits
   * lose their race.
   */
  async #erase(whose: Erasure, erase: () => Promise<boolean>): Promise<boolean> {
    const { placement, address } = this.#options
    const ends = await Promise.all(
      placement.nodes.filter(node => node !== address).map(node => this.#withheldAt(node, whose))
    )
    let wasThere = false
    try {
      wasThere = await erase()
      return wasThere
    } finally {
      await Promise.all(ends.map(end => end(wasThere)))
    }
  }

  /**
   * Resolves when a node withholds data, with a function that reports their erasure, and waits until the node has done
   * the same.
   */
  #withheldAt(node: string, whose: Erasure): Promise<(erased: boolean) => Promise<void>> {
    return new Promise(withheld => {
      const ended = new Promise<void>(resolve => {
        const over = () => {
          this.clock.clearTimeout(timer)
          resolve()
          withheld(end)
        }
        const timer = this.clock.setTimeout(over, WITHHOLD_MS)
        const request = this.#linkTo(node).request({ withhold: whose }, answer => {
          if (typeof answer === 'object' && 'withheld' in answer) withheld(end)
          else over()
        })
        const end = (erased: boolean) => {
          request.sendErased(erased)
          return ended
        }
      })
    })
  }

  async #leave(): Promise<void> {
    await this.#options.placement.leave()
    this.#isOver = true
    for (const end of this.#pauses) end()
    for (const link of this.#links.values()) link.close()
    await this.#server?.close()
  }
}

function unknownOutcome(cause: unknown): A2AError {
  return new A2AError(
    'Overloaded',
    'The node that received this request has failed. It is unknown whether the request was carried out.',
    { retryAfterMs: 1000, cause }
  )
}

function unreachable(): A2AError {
  return new A2AError(
    'Overloaded',
    'The node that has this context cannot be asked now. Send the request again later.',
    { retryAfterMs: 1000 }
  )
}

function nobody(): A2AError {
  return new A2AError('Overloaded', 'No node of the agent has this context now. Send the request again later.', {
    retryAfterMs: 1000
  })
}
