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
 * A clock that stands still until it is told to move. Timers fire in the order of their due times, equal ones as they
 * were set; one with a delay that Node cannot keep fires after 1 ms, as Node's do.
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

  /** How many timers are set that would keep a process alive. */
  get pending(): number {
    return [...this.#timers].filter(({ isHeld }) => isHeld).length
  }

  /** How many timers are set in all. */
  get size(): number {
    return this.#timers.size
  }

  /** Moves time on from due time to due time, also of timers that are set on the way. */
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
    const due = [...this.#timers].filter(({ dueMs }) => dueMs <= endMs)
    return due.toSorted((a, b) => a.dueMs - b.dueMs)[0]
  }
}
