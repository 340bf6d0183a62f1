import { unrefTimer, type Clock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import { TransitionCounter } from '../xstate/transition-counter.ts'
import type { Store } from './store.ts'

/** The time from the first transition that is not stored to the commit that stores it. */
const FLUSH_MS = 1000

/** What a flush needs. */
interface FlushServices {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Counts transitions of charts in memory, and adds the counts to the store at most once a second, and on `close`. A kill loses those of
 * the last second, and so does a failed write. The timer does not keep the process alive.
 */
export class TransitionFlush {
  readonly counter: TransitionCounter
  readonly #services: FlushServices
  #timer: unknown
  #writing: Promise<void> = Promise.resolve()

  constructor(services: FlushServices) {
    const { clock } = services
    this.#services = services
    this.counter = new TransitionCounter(
      () => clock.now(),
      () => {
        this.#timer = unrefTimer(clock.setTimeout(() => void this.flush(), FLUSH_MS))
      }
    )
  }

  /** Stores what was counted so far. Resolves when it is stored. */
  flush(): Promise<void> {
    const { store, clock, logger } = this.#services
    clock.clearTimeout(this.#timer)
    const counts = this.counter.take()
    if (counts.length === 0) return this.#writing
    const written = store
      .countTransitions?.(counts, clock.now())
      .catch((error: unknown) => logger.warn?.('counts of transitions could not be stored', { error }))
    this.#writing = bothOf(this.#writing, written)
    return this.#writing
  }
}

async function bothOf(one: Promise<void>, other: Promise<void> | undefined): Promise<void> {
  await one
  await other
}
