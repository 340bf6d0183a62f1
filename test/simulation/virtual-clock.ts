import type { Clock } from '../../runtime/ports/clock.ts'

/** Where simulated time begins. */
const START_MS = Date.parse('2026-01-02T03:04:05.000Z')

/** The longest delay that Node's timers keep to; a longer one is taken for 1 ms. */
const LONGEST_MS = 2 ** 31 - 1

interface Timer {
  readonly dueMs: number
  readonly order: number
  readonly callback: () => void
  unref(): void
}

/** The time of one part of a world, which ends with it. */
export interface ClockView extends Clock {
  /** How many timers are set. */
  readonly size: number
  /** Drops all timers; those that are set from now on never fire. */
  stop(): void
  /** Timers that become due from now on fire when it goes on, in their order. */
  pause(): void
  goOn(): void
}

/** How a clock differs from the true one. */
export interface Pace {
  /** How much later its time is, in milliseconds. */
  readonly aheadMs?: number
  /** How much faster it goes. */
  readonly rate?: number
}

/**
 * Time that passes only when it is told to: from timer to timer, and after each of them until everything that follows
 * from it has come to rest. Timers of one moment fire as they were set.
 */
export class VirtualClock {
  #nowMs = START_MS
  #order = 0
  /** By due time, those of one moment as they were set. */
  readonly #timers: Timer[] = []
  readonly #rest: () => Promise<void>

  /** `rest` resolves when nothing moves any more without time. */
  constructor(rest: () => Promise<void>) {
    this.#rest = rest
  }

  now(): number {
    return this.#nowMs
  }

  /** Milliseconds since the beginning. */
  get elapsedMs(): number {
    return this.#nowMs - START_MS
  }

  /** A clock for one part of the world. */
  view({ aheadMs = 0, rate = 1 }: Pace = {}): ClockView {
    const own = new Set<Timer>()
    const late: (() => void)[] = []
    let isStopped = false
    let isPaused = false
    return {
      now: () => START_MS + Math.floor(this.elapsedMs * rate) + aheadMs,
      setTimeout: (callback, delayMs) => {
        if (isStopped) return undefined
        const due = () => {
          if (isPaused) late.push(due)
          else if (own.delete(timer)) callback()
        }
        const timer = this.#set(due, rate === 1 ? delayMs : Math.ceil(delayMs / rate))
        own.add(timer)
        return timer
      },
      clearTimeout: timer => {
        if (own.delete(timer as Timer)) this.#clear(timer as Timer)
      },
      get size() {
        return own.size
      },
      stop: () => {
        isStopped = true
        for (const timer of own) this.#clear(timer)
        own.clear()
      },
      pause: () => {
        isPaused = true
      },
      goOn: () => {
        isPaused = false
        for (const due of late.splice(0)) this.#set(due, 0)
      }
    }
  }

  /** Lets time pass. */
  async pass(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms
    await this.#rest()
    for (let next = this.#timers[0]; next && next.dueMs <= endMs; next = this.#timers[0]) {
      this.#timers.shift()
      this.#nowMs = Math.max(this.#nowMs, next.dueMs)
      next.callback()
      await this.#rest()
    }
    this.#nowMs = endMs
  }

  #set(callback: () => void, delayMs: number): Timer {
    const timer = {
      callback,
      order: (this.#order += 1),
      dueMs: this.#nowMs + (delayMs >= 0 && delayMs <= LONGEST_MS ? Math.trunc(delayMs) : 1),
      unref() {}
    }
    const at = this.#timers.findIndex(({ dueMs }) => dueMs > timer.dueMs)
    this.#timers.splice(at < 0 ? this.#timers.length : at, 0, timer)
    return timer
  }

  #clear(timer: Timer): void {
    const at = this.#timers.indexOf(timer)
    if (at >= 0) this.#timers.splice(at, 1)
  }
}
