import { isA2AError } from '../../machines/protocol/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { Store } from './store.ts'

/** The first and the longest pause before a read is repeated, in milliseconds. */
const FIRST_MS = 50
const LONGEST_MS = 2000

/** The reads of a store that work needs. */
export type WorkStore = Pick<
  Store,
  'readTask' | 'readEvents' | 'readTaskMessages' | 'readJournal' | 'readMessages' | 'measureTasks'
>

/**
 * The reads of a store for work. While the database is away, the store refuses them with Overloaded. They are repeated
 * until they are answered or the runtime closes, so that work waits for the database, as its commits do, and no task
 * fails by it.
 */
export class RetryingReads implements WorkStore {
  readonly #clock: Clock
  readonly #pauses = new Set<() => void>()
  #isClosed = false
  readonly readTask: Store['readTask']
  readonly readEvents: Store['readEvents']
  readonly readTaskMessages: Store['readTaskMessages']
  readonly readJournal: Store['readJournal']
  readonly readMessages: Store['readMessages']
  readonly measureTasks: Store['measureTasks']

  constructor(store: WorkStore, clock: Clock) {
    this.#clock = clock
    this.readTask = (...args) => this.#read(() => store.readTask(...args))
    this.readEvents = (...args) => this.#read(() => store.readEvents(...args))
    this.readTaskMessages = (...args) => this.#read(() => store.readTaskMessages(...args))
    this.readJournal = (...args) => this.#read(() => store.readJournal(...args))
    this.readMessages = (...args) => this.#read(() => store.readMessages(...args))
    this.measureTasks = (...args) => this.#read(() => store.measureTasks(...args))
  }

  /** Repeats no read any more. */
  close(): void {
    this.#isClosed = true
    for (const end of this.#pauses) end()
  }

  async #read<T>(read: () => Promise<T>, pauseMs = FIRST_MS): Promise<T> {
    try {
      return await read()
    } catch (error) {
      if (this.#isClosed || !isA2AError(error) || error.code !== 'Overloaded') throw error
    }
    await this.#pause(pauseMs)
    return this.#read(read, Math.min(2 * pauseMs, LONGEST_MS))
  }

  #pause(ms: number): Promise<void> {
    return new Promise(resolve => {
      const end = () => {
        this.#clock.clearTimeout(timer)
        this.#pauses.delete(end)
        resolve()
      }
      const timer = this.#clock.setTimeout(end, ms)
      this.#pauses.add(end)
    })
  }
}
