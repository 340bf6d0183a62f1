import type { Clock } from '../../../runtime/ports/clock.ts'

/** What the waits between tries are made of. */
export interface BackOffOptions {
  readonly clock: Clock
  /** A random number from 0 up to 1, for the jitter. */
  readonly random: () => number
  /** How long what was lost is tried again. */
  readonly giveUpAfterMs: number
}

/** Longest wait before the first new try; it doubles up to the longest of all. Each wait is random within it (full jitter). */
const FIRST_BACKOFF_MS = 250
const LONGEST_BACKOFF_MS = 10_000

/** The waits between the tries to reach an agent that was lost, until it is time to give up. */
export class BackOff {
  readonly #options: BackOffOptions
  #failures = 0
  #lostAtMs: number | undefined

  constructor(options: BackOffOptions) {
    this.#options = options
  }

  /**
   * How long to wait before the next try, in milliseconds; `undefined` if the agent has been lost for too long. `askedMs` is how
   * long the agent asks to wait: the random wait comes on top, and the last try is when time is up at the latest.
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

  /** The agent is there again: the next loss begins from the start. */
  reset(): void {
    this.#failures = 0
    this.#lostAtMs = undefined
  }
}
