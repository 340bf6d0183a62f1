import type { Clock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'

/** Works whose tasks have ended and which clean up after themselves: each has `graceMs`, and is then no longer waited for. */
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

  /** Waits until a work that was told to stop settles, either way; one that does not in time is reported. Without a grace period none is waited for. */
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

  /** Resolves when none is under way. */
  async settled(): Promise<void> {
    await Promise.all(this.#underWay)
  }
}
