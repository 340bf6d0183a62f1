import type { Agent } from '../agent/define-agent.ts'
import { type Clock, unrefTimer } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import type { Store } from '../store/store.ts'
import { TransitionCounter } from '../xstate/transition-counter.ts'

/** The time from the first transition that is not stored to the commit that stores it. */
const FLUSH_MS = 1000

/** Dependencies of the writer. */
interface CountServices {
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Counts transitions of charts in memory, and adds the counts to the store at most once a second, and on `close`. A
 * kill loses those of the last second, and so does a failed write. The timer does not keep the process alive.
 */
class CountWriter {
  readonly counter: TransitionCounter
  readonly #services: CountServices
  #timer: unknown
  #writing: Promise<void> = Promise.resolve()

  constructor(services: CountServices) {
    const { clock } = services
    this.#services = services
    this.counter = new TransitionCounter(
      () => clock.now(),
      () => {
        this.#timer = unrefTimer(clock.setTimeout(() => void this.flush(), FLUSH_MS))
      }
    )
  }

  /** Stores all counts so far. Resolves when they are stored. */
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

/** The writer of an agent whose work is a chart, if the store keeps counts. */
export function countWriterOf({ work }: Pick<Agent, 'work'>, services: CountServices): CountWriter | undefined {
  return services.store.countTransitions && typeof work === 'object' ? new CountWriter(services) : undefined
}
