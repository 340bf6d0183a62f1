import type { Clock } from '../../runtime/ports/clock.ts'
import { jitter } from '../../runtime/primitives/jitter.ts'
import type { Intake } from './intake.ts'

/** Requests of a client that its quota refuses one after the other, before it is read more slowly. */
const REFUSALS = 16

/** How long nothing is read from such a client, in milliseconds. */
const pauseMs = jitter(1000)

/** Counts the refusals of one connection. A client that goes on over its quota gets its answers, and then is not read for a while: others have their turn. */
export class Refusals {
  readonly #intake: Intake
  readonly #clock: Clock
  #count = 0
  #pause: unknown

  constructor(intake: Intake, clock: Clock) {
    this.#intake = intake
    this.#clock = clock
  }

  /** Counts a request that was over the quota. */
  note(): void {
    this.#count += 1
    if (this.#count < REFUSALS || this.#intake.isPausedFor('quota')) return
    this.#count = 0
    this.#intake.pause('quota')
    this.#pause = this.#clock.setTimeout(() => this.#intake.resume('quota'), pauseMs())
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
