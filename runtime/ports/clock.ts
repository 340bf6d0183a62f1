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
export function timestamp(clock: Clock): string {
  const ms = clock.now()
  if (written.ms !== ms) written = { ms, text: new Date(ms).toISOString() }
  return written.text
}

/** The last result, since many events share a millisecond. */
let written = { ms: NaN, text: '' }

/** The longest delay of `setTimeout`, in milliseconds: 24.86 days. It treats a longer one as 1. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1

/**
 * A clock with timers of any length: long delays are split into chunks, measured by the clock. A delay of 0, a negative one, or one
 * that is no number fires in the next round of the event loop, even if the clock stands still. An infinite one never fires.
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

  /** As Node's `unref`: the timer does not keep the process alive. */
  unref(): void {
    unrefTimer(this.#chunk)
  }

  #wait(): void {
    const leftMs = Math.max(0, this.#dueMs - this.#clock.now())
    if (leftMs <= LONGEST_TIMER_MS) this.#chunk = this.#clock.setTimeout(this.#callback, leftMs)
    else this.#chunk = this.#clock.setTimeout(() => this.#wait(), LONGEST_TIMER_MS)
  }
}

/** How often timers compare the time with the one that they wait for, in milliseconds. */
const LOOK_MS = 60_000

/**
 * A clock whose timers fire within a minute after its time has jumped past them: it was set forward, or the machine was suspended. The
 * timers of Node would wait for the rest of their delay. If the time is set back they wait no longer than their delay.
 */
export function noticeJumps(clock: Clock): Clock {
  const waiting = new Set<WatchedTimer>()
  let isLooking = false
  const look = () => {
    isLooking = false
    for (const timer of waiting) if (timer.dueMs <= clock.now()) timer.fire()
    watch()
  }
  const watch = () => {
    if (isLooking || waiting.size === 0) return
    isLooking = true
    unrefTimer(clock.setTimeout(look, LOOK_MS))
  }
  return {
    now: () => clock.now(),
    setTimeout: (callback, delayMs) => {
      if (!(delayMs > LOOK_MS)) return clock.setTimeout(callback, delayMs)
      const timer = new WatchedTimer(clock, waiting, callback, delayMs)
      watch()
      return timer
    },
    clearTimeout: timer => (timer instanceof WatchedTimer ? timer.clear() : clock.clearTimeout(timer))
  }
}

class WatchedTimer {
  readonly dueMs: number
  readonly fire: () => void
  readonly #clock: Clock
  readonly #waiting: Set<WatchedTimer>
  readonly #timer: unknown

  constructor(clock: Clock, waiting: Set<WatchedTimer>, callback: () => void, delayMs: number) {
    this.dueMs = clock.now() + delayMs
    this.#clock = clock
    this.#waiting = waiting.add(this)
    this.fire = () => {
      this.clear()
      callback()
    }
    this.#timer = clock.setTimeout(this.fire, delayMs)
  }

  clear(): void {
    this.#waiting.delete(this)
    this.#clock.clearTimeout(this.#timer)
  }

  /** As Node's `unref`. */
  unref(): void {
    unrefTimer(this.#timer)
  }
}

/** Calls `unref` of a timer, if it has one, so that it does not keep the process alive. Gives the timer. */
export function unrefTimer(timer: unknown): unknown {
  if (typeof timer === 'object' && timer !== null && 'unref' in timer && typeof timer.unref === 'function') timer.unref()
  return timer
}
