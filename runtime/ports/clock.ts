import { unrefTimer } from '../primitives/event-loop.ts'

/** Where time comes from. Timers are given back to `clearTimeout`; a delay is in milliseconds. */
export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number
  setTimeout(callback: () => void, delayMs: number): unknown
  clearTimeout(timer: unknown): void
}

/** The machine's own time: the default. */
export const systemClock: Clock = {
  now: () => Date.now(),
  setTimeout: (callback, delayMs) => setTimeout(callback, delayMs),
  clearTimeout: timer => clearTimeout(timer as ReturnType<typeof setTimeout>)
}

/** The time as the wire writes it: UTC with milliseconds, `2026-05-28T09:30:00.000Z` (§5.6.1). */
export function timestamp(clock: Clock): string {
  const ms = clock.now()
  if (written.ms !== ms) written = { ms, text: new Date(ms).toISOString() }
  return written.text
}

/** The last time that was written: many events happen in one millisecond. */
let written = { ms: NaN, text: '' }

/** The longest delay that `setTimeout` keeps to, in milliseconds: 24.86 days. It takes a longer one for 1. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1

/**
 * The clock with timers of any length. Long ones go by chunks, and by the time of the clock. One that is due, because its
 * delay is 0, below, or no number, waits for no time to pass: it fires when what runs has come to rest. One whose delay is
 * infinite never fires.
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
  #immediate: NodeJS.Immediate | undefined
  #chunk: unknown

  constructor(clock: Clock, callback: () => void, delayMs: number) {
    this.#clock = clock
    this.#callback = callback
    this.#dueMs = clock.now() + delayMs
    if (delayMs === 0) this.#immediate = setImmediate(callback)
    else if (delayMs < Infinity) this.#wait()
  }

  clear(): void {
    clearImmediate(this.#immediate)
    this.#clock.clearTimeout(this.#chunk)
  }

  /** As Node's: it does not hold the process. */
  unref(): void {
    unrefTimer(this.#chunk)
  }

  #wait(): void {
    const leftMs = Math.max(0, this.#dueMs - this.#clock.now())
    if (leftMs <= LONGEST_TIMER_MS) this.#chunk = this.#clock.setTimeout(this.#callback, leftMs)
    else this.#chunk = this.#clock.setTimeout(() => this.#wait(), LONGEST_TIMER_MS)
  }
}
