import type { Observer } from '../../../runtime/contexts/observers.ts'
import type { Clock } from '../../../runtime/ports/clock.ts'
import type { Logger } from '../../../runtime/ports/logger.ts'
import { unrefTimer } from '../../../runtime/primitives/event-loop.ts'

/** How late a timer has to be for a log line. */
const STALL_MS = 1000

/** How often the watch looks. */
const TICK_MS = 100

/** What a watch works with. */
interface WatchParts {
  readonly clock: Clock
  readonly logger: Logger
  /** Milliseconds since some moment. Setting the machine's clock, or suspending the machine, does not change it. */
  readonly elapsedMs?: (() => number) | undefined
}

/**
 * Logs when the event loop stood still for more than a second: a timer was late by that much. It observes the runtime, so it
 * knows which task got control last; if most of the time passed before the next turn of the loop, the line names that task.
 */
export class LoopWatch implements Observer {
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #elapsedMs: () => number
  #timer: unknown
  #dueMs = 0
  /** The task that got control in this turn of the loop, and when. */
  #running: { readonly taskId: string; readonly sinceMs: number } | undefined
  #turnEnd: unknown
  /** The task that had control for the longest time since the last look. */
  #longest: { readonly taskId: string; readonly ms: number } | undefined

  constructor({ clock, logger, elapsedMs = performance.now.bind(performance) }: WatchParts) {
    this.#clock = clock
    this.#logger = logger
    this.#elapsedMs = elapsedMs
    this.#wait()
  }

  /** The code of a task gets control. */
  runs(taskId: string): void {
    this.#noteTime()
    this.#running = { taskId, sinceMs: this.#elapsedMs() }
    this.#turnEnd ??= unrefTimer(this.#clock.setTimeout(() => {
      this.#turnEnd = undefined
      this.#noteTime()
    }, 0))
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
    if (ms > STALL_MS) this.#logger.warn('the event loop stood still', { ms, ...(longest && { taskId: longest.taskId }) })
    this.#longest = undefined
    this.#wait()
  }

  /** Takes control back from the task that has it, and notes for how long it had it. */
  #noteTime(): void {
    if (!this.#running) return
    const { taskId, sinceMs } = this.#running
    const ms = this.#elapsedMs() - sinceMs
    if (ms > (this.#longest?.ms ?? 0)) this.#longest = { taskId, ms }
    this.#running = undefined
  }
}
