import type { Clock } from './clock.ts'

/** The longest delay that `setTimeout` keeps to, in milliseconds: 24.86 days. It takes a longer one for 1. */
const LONGEST_MS = 2 ** 31 - 1

/**
 * The clock with timers of any length: long ones go by chunks, and by the time of the clock. A timer whose delay is
 * infinite never fires; one whose delay is below 0, or no number, fires as soon as possible.
 */
export function withLongTimers(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    setTimeout: (callback, delayMs) => new LongTimer(clock, callback, clock.now() + (delayMs > 0 ? delayMs : 0)),
    clearTimeout: timer => {
      if (timer instanceof LongTimer) timer.clear()
    }
  }
}

class LongTimer {
  readonly #clock: Clock
  readonly #callback: () => void
  readonly #dueMs: number
  #chunk: unknown

  constructor(clock: Clock, callback: () => void, dueMs: number) {
    this.#clock = clock
    this.#callback = callback
    this.#dueMs = dueMs
    if (dueMs < Infinity) this.#wait()
  }

  clear(): void {
    this.#clock.clearTimeout(this.#chunk)
  }

  #wait(): void {
    const leftMs = Math.max(0, this.#dueMs - this.#clock.now())
    if (leftMs <= LONGEST_MS) this.#chunk = this.#clock.setTimeout(this.#callback, leftMs)
    else this.#chunk = this.#clock.setTimeout(() => this.#wait(), LONGEST_MS)
  }
}
