import type { Clock } from '../../../runtime/ports/clock.ts'

/** The options of a back-off. */
export interface BackOffOptions {
  readonly clock: Clock
  /** A random number from 0 up to 1, for the jitter. */
  readonly random: () => number
  /** How long a lost connection is retried. */
  readonly giveUpAfterMs: number
}

/** The upper bound of the first wait; it doubles up to the maximum. Each wait is random below its bound (full jitter). */
const FIRST_BACKOFF_MS = 250
const LONGEST_BACKOFF_MS = 10_000

/** Exponential back-off with a time limit, for connections to an agent. */
export class BackOff {
  readonly #options: BackOffOptions
  #failures = 0
  #lostAtMs: number | undefined

  constructor(options: BackOffOptions) {
    this.#options = options
  }

  /**
   * The next wait in milliseconds; `undefined` after the time limit. `askedMs` is the wait that the agent asks for: the random wait is
   * added to it. The last attempt is at the time limit at the latest.
   */
  next(askedMs = 0): number | undefined {
    const { clock, random, giveUpAfterMs } = this.#options
    this.#lostAtMs ??= clock.now()
    const leftMs = this.#lostAtMs + giveUpAfterMs - clock.now()
    if (leftMs <= 0) return undefined
    const longestMs = Math.min(FIRST_BACKOFF_MS * 2 ** this.#failures, LONGEST_BACKOFF_MS)
    this.#failures += 1
    return Math.min(askedMs, leftMs) + random() * longestMs
  }

  /** Starts over after a success. */
  reset(): void {
    this.#failures = 0
    this.#lostAtMs = undefined
  }
}
