import type { WebSocket } from 'ws'
import type { Clock } from '../../runtime/clock.ts'
import { spread } from '../../runtime/spread.ts'

/** Requests of a client that its quota refuses one after the other, before it is read more slowly. */
const REFUSALS = 16

/** How long nothing is read from such a client, in milliseconds. */
const pauseMs = spread(1000)

/** Counts the refusals of one connection. A client that goes on over its quota gets its answers, and then is not read for a while: others have their turn. */
export class Refusals {
  readonly #socket: WebSocket
  readonly #clock: Clock
  #count = 0
  #pause: unknown

  constructor(socket: WebSocket, clock: Clock) {
    this.#socket = socket
    this.#clock = clock
  }

  /** Counts a request that was over the quota. */
  note(): void {
    this.#count += 1
    if (this.#count < REFUSALS || this.#socket.isPaused) return
    this.#count = 0
    this.#socket.pause()
    this.#pause = this.#clock.setTimeout(() => this.#socket.resume(), pauseMs())
  }

  /** Starts to count anew: a request was within the quota. */
  forget(): void {
    this.#count = 0
  }

  /** The connection is closed. */
  end(): void {
    this.#clock.clearTimeout(this.#pause)
  }
}
