import { randomUUID } from 'node:crypto'
import { tryDecode } from '../../../machines/protocol/codec/decode.ts'
import type { ClusterMember } from '../../../runtime/operations/cluster.ts'
import type { Clock } from '../../../runtime/ports/clock.ts'
import { onReceived } from '../../../runtime/primitives/event-loop.ts'
import { NOT_OWNER, OUTCOME_UNKNOWN } from '../../../runtime/store/store.ts'
import type { Shards } from '../shards.ts'
import {
  REQUEST_FRAMES,
  isProof,
  NO_NODE,
  NUMBERED,
  OTHER_SECRET,
  parseFrame,
  PROVED,
  proofOf,
  readFrame,
  toFrameError,
  type NodeAnswer,
  type NodeRequestFrame
} from './frames.ts'
import { DEFAULT_WAYS, type LinkWays } from './link.ts'
import type { LinkSocket, ListenPlace } from './network.ts'

/** How long a caller may take to prove that it is a node. */
const PROOF_MS = 2000

/** The most callers at a time that have not proved it. */
const MOST_UNPROVED = 64

/** The pause between two signs of life. */
const PING_MS = 1000

/** The most bytes that wait for another node. Over it, that node reads events from the store. */
const WAITING_BYTES = 1024 * 1024

/** A request in progress: its end, and for a watched task its shard. */
interface Running {
  readonly shard?: number
  readonly stop: () => void
  readonly erased?: (wasThere: boolean) => void
}

/** Serves the shards of this node to other nodes. */
export class LinkServer {
  readonly #member: ClusterMember
  readonly #shards: Shards
  readonly #secret: string
  readonly #clock: Clock
  readonly #callers = new Map<LinkSocket, Map<number, Running>>()
  readonly #listening: Promise<() => Promise<void>>
  /** The refused connections: with another secret, or not from a node. */
  refused = 0
  /** The connections that have not proved yet to be nodes. */
  #unproved = 0

  private constructor(
    place: ListenPlace,
    member: ClusterMember,
    shards: Shards,
    secret: string,
    { network, clock }: LinkWays
  ) {
    this.#member = member
    this.#shards = shards
    this.#secret = secret
    this.#clock = clock
    this.#listening = network.listen(place, (socket, proved) => this.#greet(socket, proved))
  }

  /** Listens. Rejects if the port is in use. */
  static async listen(
    place: ListenPlace,
    member: ClusterMember,
    shards: Shards,
    secret: string,
    ways = DEFAULT_WAYS
  ): Promise<LinkServer> {
    const server = new LinkServer(place, member, shards, secret, ways)
    await server.#listening
    return server
  }

  /** Notifies the watchers of tasks in these shards that this node does not have them any more. */
  release(shards: readonly number[]): void {
    for (const [socket, running] of this.#callers) {
      for (const [id, { shard, stop }] of running) {
        if (shard === undefined || !shards.includes(shard)) continue
        stop()
        running.delete(id)
        sendAnswer(socket, id, { moved: true })
      }
    }
  }

  async close(): Promise<void> {
    const end = await this.#listening
    await end()
  }

  /**
   * Accepts requests once the caller has proved that it knows the secret. A frame that is none of a node ends the
   * connection.
   */
  #greet(socket: LinkSocket, proved: () => void): void {
    if (this.#unproved >= MOST_UNPROVED) return socket.terminate()
    this.#unproved += 1
    const own = randomUUID()
    let running: Map<number, Running> | undefined
    const refuse = (code: number, reason: string) => {
      this.refused += 1
      socket.close(code, reason)
    }
    const late = this.#clock.setTimeout(() => socket.terminate(), PROOF_MS)
    const receive = (data: unknown) => {
      if (socket.readyState !== socket.OPEN) return
      if (running) return this.#receive(socket, running, data)
      this.#clock.clearTimeout(late)
      const { number, proof } = readFrame(PROVED, data)
      const numbers = [own, number]
      if (!isProof(proof, this.#secret, 'caller', numbers)) return refuse(OTHER_SECRET, 'the secret is another')
      proved()
      this.#unproved -= 1
      socket.send(JSON.stringify({ proof: proofOf(this.#secret, 'server', numbers) }))
      running = this.#accept(socket)
    }
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#clock.clearTimeout(late)
      if (!running) this.#unproved -= 1
    })
    onReceived(socket, 'message', receive, () => refuse(NO_NODE, 'this is no frame of a node'))
    socket.send(JSON.stringify({ number: own }))
  }

  #accept(socket: LinkSocket): Map<number, Running> {
    const running = new Map<number, Running>()
    this.#callers.set(socket, running)
    let ping: unknown
    const pings = () => {
      ping = this.#clock.setTimeout(() => {
        socket.ping()
        pings()
      }, PING_MS)
    }
    pings()
    socket.on('close', () => {
      this.#clock.clearTimeout(ping)
      this.#callers.delete(socket)
      for (const { stop, erased } of running.values()) {
        stop()
        erased?.(false)
      }
    })
    return running
  }

  /** A request that this node does not know may be of a newer one. */
  #receive(socket: LinkSocket, running: Map<number, Running>, data: unknown): void {
    const { id } = readFrame(NUMBERED, data)
    const { value } = tryDecode(REQUEST_FRAMES, parseFrame(data))
    if (value) this.#take(socket, running, value)
    else sendAnswer(socket, id, { error: { message: 'This node does not know the request of the other.' } })
  }

  #take(socket: LinkSocket, running: Map<number, Running>, frame: NodeRequestFrame): void {
    const { id } = frame
    if ('stop' in frame) {
      running.get(id)?.stop()
      running.delete(id)
    } else if ('erased' in frame) running.get(id)?.erased?.(frame.erased)
    else if ('withhold' in frame) {
      const erased = new Promise<boolean>(resolve => running.set(id, { stop() {}, erased: resolve }))
      void this.#answer(
        socket,
        running,
        id,
        this.#member.withhold(frame.withhold, () => sendAnswer(socket, id, { withheld: true }), erased)
      )
    } else if (!this.#shards.has(frame.shard)) sendAnswer(socket, id, { moved: true })
    else if ('watch' in frame) void this.#watch(socket, running, frame)
    else {
      const abort = new AbortController()
      running.set(id, { stop: () => abort.abort() })
      void this.#answer(socket, running, id, this.#member.run(frame.change, frame.request, frame.shard, abort.signal))
    }
  }

  async #answer(socket: LinkSocket, running: Map<number, Running>, id: number, made: Promise<unknown>): Promise<void> {
    const answer = await made.then(
      (answer: unknown): NodeAnswer => ({ answer: answer ?? null }),
      (error: unknown): NodeAnswer =>
        error === NOT_OWNER
          ? { moved: true }
          : { error: toFrameError(error), ...(error === OUTCOME_UNKNOWN && { isUnknown: true }) }
    )
    running.delete(id)
    sendAnswer(socket, id, answer)
  }

  /** Passes the log of a task on, beginning with its newest generation. */
  async #watch(
    socket: LinkSocket,
    running: Map<number, Running>,
    { id, watch, scope, shard }: Extract<NodeRequestFrame, { watch: string }>
  ): Promise<void> {
    const moved = () => {
      running.delete(id)
      sendAnswer(socket, id, { moved: true })
    }
    const stop = this.#member.listen(watch, {
      scope,
      onEntries: entries =>
        sendAnswer(
          socket,
          id,
          socket.bufferedAmount <= WAITING_BYTES
            ? { told: entries }
            : { advanced: Math.max(...entries.map(({ generation }) => generation)) }
        ),
      onGap: generation => sendAnswer(socket, id, { advanced: generation }),
      onClosed: moved
    })
    running.set(id, { shard, stop })
    try {
      const generation = await this.#member.generationOf(scope, watch)
      if (generation !== undefined) sendAnswer(socket, id, { advanced: generation })
    } catch {
      // The watcher repeats its request.
      stop()
      moved()
    }
  }
}

function sendAnswer(socket: LinkSocket, id: number, answer: NodeAnswer): void {
  if (socket.readyState === socket.OPEN) socket.send(JSON.stringify({ id, ...answer }))
}
