import { setImmediate } from 'node:timers/promises'
import { LONGEST_TIMER_MS, unrefTimer, type Clock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import { killPoint } from '../primitives/kill-points.ts'
import { rejectUnknown } from '../primitives/options.ts'
import type { SweepBounds, Store } from './store.ts'

/** Retention of ended tasks and idle contexts, in milliseconds by the runtime's clock. */
export interface Retention {
  /** How long a task, with its events and messages, is stored after its end; Infinity for ever. Default 30 days. */
  endedTasksMs: number
  /** How long a context without tasks is stored after its last commit; Infinity for ever. Default 30 days. */
  idleContextsMs: number
  /** Interval of the sweeps, at most 2,147,483,647 ms, which is 24 days. Default 1 minute. */
  sweepEveryMs: number
}

const DAY_MS = 24 * 60 * 60 * 1000

/** The defaults of {@link Retention}. */
export const defaultRetention: Retention = {
  endedTasksMs: 30 * DAY_MS,
  idleContextsMs: 30 * DAY_MS,
  sweepEveryMs: 60_000
}

/** The default retention with these changes. Throws RangeError for an invalid time. */
export function retentionWith(changes: Partial<Retention> = {}): Retention {
  rejectUnknown(changes, Object.keys(defaultRetention), 'retention')
  const retention = { ...defaultRetention, ...changes }
  for (const [name, ms] of Object.entries(retention)) {
    if (!(typeof ms === 'number' && ms > 0)) throw notATime(name, ms, 'a number of milliseconds above 0, or Infinity')
  }
  const { sweepEveryMs } = retention
  if (sweepEveryMs > LONGEST_TIMER_MS) throw notATime('sweepEveryMs', sweepEveryMs, `at most ${LONGEST_TIMER_MS}`)
  return retention
}

function notATime(name: string, ms: unknown, wanted: string): RangeError {
  return new RangeError(`retention.${name} has to be ${wanted}, not ${String(ms)}. Leave it out for the default.`)
}

/** Batch size: tasks, contexts and deduplication rows that one call removes. */
const PORTION = 256

interface SweeperServices {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Deletes old data from the store, at an interval and in small batches. A failed sweep is retried at the next interval.
 * The timer does not keep the process alive.
 */
export class RetentionSweeper {
  readonly #services: SweeperServices
  readonly #retention: Retention
  #timer: unknown
  #sweeping: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(services: SweeperServices, retention: Retention) {
    this.#services = services
    this.#retention = retention
    this.#arm()
  }

  /** Stops after the current batch, and resolves when that is done. May be called twice. */
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
    unrefTimer(this.#timer)
  }

  async #sweep(): Promise<void> {
    const { store, clock, logger } = this.#services
    const due = dueAt(clock.now(), this.#retention)
    let removed = 0
    try {
      while (!this.#isClosed) {
        killPoint('before sweep')
        const count = await store.sweep(due, PORTION)
        if (count === 0) break
        removed += count
        await setImmediate()
      }
      if (removed > 0) logger.info?.('old data was deleted', { removed })
    } catch (error) {
      logger.error('old data could not be deleted', { error })
    }
  }
}

function dueAt(nowMs: number, { endedTasksMs, idleContextsMs }: Retention): SweepBounds {
  return { endedBeforeMs: nowMs - endedTasksMs, idleBeforeMs: nowMs - idleContextsMs, sendsBeforeMs: nowMs }
}
