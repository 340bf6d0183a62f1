import { A2AError } from '../../machines/protocol/errors.ts'

const WINDOW_MS = 1000

/** Seconds in a row over the rate after which a client is cut off. */
const WINDOWS_OVER = 3

/** Counts what comes in, second by second. */
export class FrameRate {
  readonly #limit: number
  #windowStartMs = -Infinity
  #count = 0
  #windowsOver = 0

  /** `limit` is how many may come in a second. */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** Counts one more, and tells whether it is within the rate, over it, or over it for too long. */
  count(nowMs: number): 'within' | 'over' | 'tooLong' {
    if (nowMs - this.#windowStartMs >= WINDOW_MS) {
      const isNext = nowMs - this.#windowStartMs < 2 * WINDOW_MS
      this.#windowsOver = isNext && this.#count > this.#limit ? this.#windowsOver + 1 : 0
      this.#windowStartMs = nowMs
      this.#count = 0
    }
    this.#count += 1
    if (this.#count <= this.#limit) return 'within'
    return this.#windowsOver + 1 >= WINDOWS_OVER ? 'tooLong' : 'over'
  }
}

/** The error for a frame over the rate of its connection. */
export function tooFast(limit: number): A2AError {
  return new A2AError('RateLimited', `This connection sends more than ${limit} frames a second. Send less.`, { retryAfterMs: 1000 })
}
