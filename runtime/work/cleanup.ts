import type { Clock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'

/** Waits for the cleanup of work whose task has ended, for `graceMs` milliseconds each at most. */
export class CleanupTracker {
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #graceMs: number
  readonly #underWay = new Set<Promise<void>>()

  constructor(clock: Clock, logger: Logger, graceMs: number) {
    this.#clock = clock
    this.#logger = logger
    this.#graceMs = graceMs
  }

  /** Waits until stopped work settles. Logs a warning if that takes too long. With a grace period of 0 nothing is awaited. */
  add(taskId: string, settled: Promise<unknown>): void {
    if (this.#graceMs === 0) return
    const cleanUp = new Promise<void>(resolve => {
      const end = () => {
        this.#underWay.delete(cleanUp)
        resolve()
      }
      const timer = this.#clock.setTimeout(() => {
        this.#logger.warn('a work did not stop within its grace period', { taskId, cancelGraceMs: this.#graceMs })
        end()
      }, this.#graceMs)
      const stopped = () => {
        this.#clock.clearTimeout(timer)
        end()
      }
      settled.then(stopped, stopped)
    })
    this.#underWay.add(cleanUp)
  }

  /** Resolves when no cleanup is running. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay)
  }
}
