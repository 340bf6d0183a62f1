import { setImmediate } from 'node:timers/promises'
import type { Clock } from './clock.ts'
import { fault } from './fault.ts'
import type { Logger } from './logger.ts'
import type { Retention } from './retention.ts'
import type { Due, Store } from './store.ts'
import { unheld } from './unheld.ts'

/** How many tasks, contexts and sends go at once, before others have their turn. */
const PORTION = 256

/** What upkeep works with. The clock's timers are the machine's, or a test's. */
interface UpkeepServices {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Removes what is old from the store, every now and then and in small portions. What fails is tried again the next time.
 * Waiting for its time does not keep the process alive.
 */
export class Upkeep {
  readonly #services: UpkeepServices
  readonly #retention: Retention
  #timer: unknown
  #sweeping: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(services: UpkeepServices, retention: Retention) {
    this.#services = services
    this.#retention = retention
    this.#arm()
  }

  /** Resolves when the portion that is being removed is gone; no other follows. May be called twice. */
  close(): Promise<void> {
    this.#isClosed = true
    this.#services.clock.clearTimeout(this.#timer)
    return this.#sweeping
  }

  #arm(): void {
    if (this.#isClosed) return
    this.#timer = this.#services.clock.setTimeout(() => {
      this.#sweeping = this.#sweep().finally(() => this.#arm())
    }, this.#retention.sweepEveryMs)
    unheld(this.#timer)
  }

  async #sweep(): Promise<void> {
    const { store, clock, logger } = this.#services
    const due = dueAt(clock.now(), this.#retention)
    let removed = 0
    try {
      while (!this.#isClosed) {
        fault('P16')
        const count = await store.sweep(due, PORTION)
        if (count === 0) break
        removed += count
        await setImmediate()
      }
      if (removed > 0) logger.info?.('what is old was removed', { removed })
    } catch (error) {
      logger.error('what is old could not be removed', { error })
    }
  }
}

function dueAt(nowMs: number, { endedTasksMs, idleContextsMs }: Retention): Due {
  return { endedBeforeMs: nowMs - endedTasksMs, idleBeforeMs: nowMs - idleContextsMs, sendsBeforeMs: nowMs }
}
