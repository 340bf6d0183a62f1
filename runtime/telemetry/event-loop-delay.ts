import { monitorEventLoopDelay, performance, type IntervalHistogram } from 'node:perf_hooks'

/** The interval of Node's timer, whose lateness is the delay; in milliseconds. */
const RESOLUTION_MS = 10

/** The minimum length of a window. */
const WINDOW_MS = 30_000

/** Delays of the event loop in seconds. */
export interface Delays {
  readonly p50: number
  readonly p99: number
  readonly max: number
}

const NONE: Delays = { p50: 0, p99: 0, max: 0 }

/**
 * The delay of this process's event loop, over the current window and the one before, which have 30 seconds or more
 * each. So nothing is missed by a reader that reads at least every 30 seconds, whoever else reads. Node measures in
 * native code, from the first read on.
 */
export class EventLoopDelay {
  #histogram: IntervalHistogram | undefined
  #before = NONE
  #sinceMs = 0
  #isStopped = false

  /** The larger values of both windows. */
  read(nowMs = performance.now()): Delays {
    const current = this.#current(nowMs)
    const { p50, p99, max } = this.#before
    if (nowMs - this.#sinceMs >= WINDOW_MS) {
      this.#before = current
      this.#sinceMs = nowMs
      this.#histogram?.reset()
    }
    return { p50: Math.max(p50, current.p50), p99: Math.max(p99, current.p99), max: Math.max(max, current.max) }
  }

  /** Ends the measurement. From then on, there is no delay. */
  stop(): void {
    this.#isStopped = true
    this.#histogram?.disable()
    this.#histogram = undefined
    this.#before = NONE
  }

  #current(nowMs: number): Delays {
    if (this.#isStopped) return NONE
    if (!this.#histogram) {
      this.#histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
      this.#histogram.enable()
      this.#sinceMs = nowMs
    }
    const histogram = this.#histogram
    if (histogram.max === 0) return NONE
    return {
      p50: inSeconds(histogram.percentile(50)),
      p99: inSeconds(histogram.percentile(99)),
      max: inSeconds(histogram.max)
    }
  }
}

/** The delay of a recorded interval, which is in nanoseconds and includes the timer's own. */
function inSeconds(intervalNs: number): number {
  return Math.max(0, intervalNs / 1e9 - RESOLUTION_MS / 1000)
}

/** The time for which this process's event loop ran code, in seconds. */
export function busySeconds(): number {
  return performance.eventLoopUtilization().active / 1000
}
