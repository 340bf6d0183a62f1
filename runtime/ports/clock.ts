/** Source of time and timers. Delays are in milliseconds; `clearTimeout` takes the result of `setTimeout`. */
export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number
  setTimeout(callback: () => void, delayMs: number): unknown
  clearTimeout(timer: unknown): void
}

/** The system clock: the default. */
export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout: (callback, delayMs) => setTimeout(callback, delayMs),
  clearTimeout: timer => clearTimeout(timer as ReturnType<typeof setTimeout>)
}

/** The current time in wire form: UTC with milliseconds, `2026-05-28T09:30:00.000Z` (§5.6.1). */
export function currentTimestamp(clock: Clock): string {
  const ms = clock.now()
  if (written.ms !== ms) written = { ms, text: new Date(ms).toISOString() }
  return written.text
}

/** The last result, since many events share a millisecond. */
let written = { ms: NaN, text: '' }

/** The longest delay of `setTimeout`, in milliseconds: 24.86 days. It treats a longer one as 1. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1

/** A timer looks at the clock again after this time, because it may have been set. */
export const LOOK_AGAIN_MS = 60_000

/**
 * A clock with timers of any length: delays are split into chunks of a minute at most, measured by the clock. So a
 * timer is late by a minute at most if the clock is set ahead, or if the machine slept. If it is set back, nothing
 * waits longer than its delay. A delay of 0, a negative one, or one that is no number fires in the next round of the
 * event loop, even if the clock stands still. An infinite one never fires.
 */
export function withLongTimers(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    setTimeout: (callback, delayMs) => new LongTimer(clock, callback, delayMs > 0 ? delayMs : 0),
    clearTimeout: timer => {
      if (timer instanceof LongTimer) timer.clear()
    }
  }
}

class LongTimer {
  readonly #clock: Clock
  readonly #callback: () => void
  readonly #dueMs: number
  #leftMs: number
  #immediate: NodeJS.Immediate | undefined
  #chunk: unknown
  #isHeld = true

  constructor(clock: Clock, callback: () => void, delayMs: number) {
    this.#clock = clock
    this.#callback = callback
    this.#dueMs = clock.now() + delayMs
    this.#leftMs = delayMs
    if (delayMs === 0) this.#immediate = setImmediate(callback)
    else if (delayMs < Infinity) this.#wait()
  }

  clear(): void {
    clearImmediate(this.#immediate)
    this.#clock.clearTimeout(this.#chunk)
  }

  /** As Node's `unref`: the timer does not keep the process alive. */
  unref(): void {
    this.#isHeld = false
    unrefTimer(this.#chunk)
  }

  #wait(): void {
    const leftMs = Math.max(0, Math.min(this.#leftMs, this.#dueMs - this.#clock.now()))
    this.#leftMs = leftMs - LOOK_AGAIN_MS
    this.#chunk = this.#clock.setTimeout(
      leftMs <= LOOK_AGAIN_MS ? this.#callback : () => this.#wait(),
      Math.min(leftMs, LOOK_AGAIN_MS)
    )
    if (!this.#isHeld) unrefTimer(this.#chunk)
  }
}

/** Calls `unref` of a timer, if it has one, so that it does not keep the process alive. Gives the timer. */
export function unrefTimer(timer: unknown): unknown {
  if (typeof timer === 'object' && timer !== null && 'unref' in timer && typeof timer.unref === 'function')
    timer.unref()
  return timer
}
