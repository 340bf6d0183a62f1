import { LONGEST_TIMER_MS, type Clock } from '../../../runtime/ports/clock.ts'

class Timer {
  readonly callback: () => void
  readonly dueMs: number
  isHeld = true

  constructor(callback: () => void, dueMs: number) {
    this.callback = callback
    this.dueMs = dueMs
  }

  unref(): void {
    this.isHeld = false
  }
}

/**
 * A clock that moves only on demand. Timers fire in the order of their due times, and in the order of creation if those
 * are equal. A delay beyond Node's limit fires after 1 ms, as in Node.
 */
export class VirtualClock implements Clock {
  #nowMs: number
  readonly #timers = new Set<Timer>()

  constructor(start = '2026-01-02T03:04:05.006Z') {
    this.#nowMs = Date.parse(start)
  }

  now(): number {
    return this.#nowMs
  }

  setTimeout(callback: () => void, delayMs: number): unknown {
    const timer = new Timer(callback, this.#nowMs + (delayMs >= 0 && delayMs <= LONGEST_TIMER_MS ? delayMs : 1))
    this.#timers.add(timer)
    return timer
  }

  clearTimeout(timer: unknown): void {
    this.#timers.delete(timer as Timer)
  }

  /** The number of timers that would keep a process alive. */
  get pending(): number {
    return [...this.#timers].filter(({ isHeld }) => isHeld).length
  }

  /** The number of all timers. */
  get size(): number {
    return this.#timers.size
  }

  /** Advances the time from timer to timer, including timers that are set meanwhile. */
  increment(ms: number): void {
    const endMs = this.#nowMs + ms
    for (let timer = this.#next(endMs); timer; timer = this.#next(endMs)) {
      this.#timers.delete(timer)
      this.#nowMs = timer.dueMs
      timer.callback()
    }
    this.#nowMs = endMs
  }

  #next(endMs: number): Timer | undefined {
    let next: Timer | undefined
    for (const timer of this.#timers) {
      if (timer.dueMs <= endMs && (!next || timer.dueMs < next.dueMs)) next = timer
    }
    return next
  }
}
