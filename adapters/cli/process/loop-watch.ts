import { unrefTimer, type Clock } from '../../../runtime/ports/clock.ts'
import type { Logger } from '../../../runtime/ports/logger.ts'
import type { Observer } from '../../../runtime/telemetry-port.ts'

/** A timer that is this late is logged. */
const STALL_MS = 1000

/** The interval of the timer. */
const TICK_MS = 100

interface WatchParts {
  readonly clock: Clock
  readonly logger: Logger
  /** A monotonic clock in milliseconds: neither setting the machine's clock nor suspending the machine changes it. */
  readonly elapsedMs?: (() => number) | undefined
}

/**
 * Logs when the event loop was blocked for more than a second, which it measures by a late timer. As an observer of the
 * runtime it knows which task got control last. If that task ran for most of the delay, the log line names it.
 */
export class LoopWatch implements Observer {
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #elapsedMs: () => number
  #timer: unknown
  #dueMs = 0
  /** The task that got control in this turn of the event loop, and when. */
  #running: { readonly taskId: string; readonly sinceMs: number } | undefined
  #turnEnd: unknown
  /** The task that had control for the longest time since the last tick. */
  #longest: { readonly taskId: string; readonly ms: number } | undefined

  constructor({ clock, logger, elapsedMs = performance.now.bind(performance) }: WatchParts) {
    this.#clock = clock
    this.#logger = logger
    this.#elapsedMs = elapsedMs
    this.#wait()
  }

  /** Called before a task's code runs. */
  runs(taskId: string): void {
    this.#noteTime()
    this.#running = { taskId, sinceMs: this.#elapsedMs() }
    this.#turnEnd ??= unrefTimer(
      this.#clock.setTimeout(() => {
        this.#turnEnd = undefined
        this.#noteTime()
      }, 0)
    )
  }

  stop(): void {
    this.#clock.clearTimeout(this.#timer)
    this.#clock.clearTimeout(this.#turnEnd)
  }

  #wait(): void {
    this.#dueMs = this.#elapsedMs() + TICK_MS
    this.#timer = unrefTimer(this.#clock.setTimeout(() => this.#look(), TICK_MS))
  }

  #look(): void {
    this.#noteTime()
    const lateMs = this.#elapsedMs() - this.#dueMs
    const longest = this.#longest && this.#longest.ms > lateMs / 2 ? this.#longest : undefined
    const ms = Math.round(longest?.ms ?? lateMs)
    if (ms > STALL_MS)
      this.#logger.warn('the event loop was blocked', { ms, ...(longest && { taskId: longest.taskId }) })
    this.#longest = undefined
    this.#wait()
  }

  /** Ends the current measurement, and records its duration if it is the longest. */
  #noteTime(): void {
    if (!this.#running) return
    const { taskId, sinceMs } = this.#running
    const ms = this.#elapsedMs() - sinceMs
    if (ms > (this.#longest?.ms ?? 0)) this.#longest = { taskId, ms }
    this.#running = undefined
  }
}
