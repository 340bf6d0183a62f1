import { BEGINNING, FairQueue, READING } from './fair-queue.ts'

/** Maximum concurrent calls that read from the store: several users have equal parts of it, but each has the least at least. */
const MOST_READING = 256
const LEAST_READING = 32

/** Maximum parsed calls of one user that wait to begin. Over it, no more of its calls are parsed. */
const MOST_WAITING = 16

type User = object | string

/**
 * Fair scheduling of calls: of their parsing, and of their start. To bound memory, a user with too many calls that read from the
 * store has to wait until some are done. Its connections are not read meanwhile.
 */
export class CallScheduler {
  /** Schedules the parsing of messages and bodies, by {@link readingCost}. */
  readonly reading = new FairQueue(READING, user => this.#beginning.waiting(user) >= MOST_WAITING)
  readonly #beginning = new FairQueue(BEGINNING, user => this.#active(user) >= this.#most)
  readonly #counts = new Map<User, number>()

  /** Number of calls that wait to be parsed or to start. */
  get waiting(): number {
    return this.reading.size + this.#beginning.size
  }

  /** Runs a call when its user is scheduled. The call may call `waits` when it no longer reads from the store, but waits for something else. */
  take<T>(user: User, run: (waits: () => void) => Promise<T>): Promise<T> {
    const turn = this.#beginning.next(user)
    if (!turn) return this.#run(user, run)
    return turn.then(() => {
      this.reading.resume()
      return this.#run(user, run)
    })
  }

  #run<T>(user: User, run: (waits: () => void) => Promise<T>): Promise<T> {
    this.#counts.set(user, this.#active(user) + 1)
    let isOver = false
    const end = () => {
      if (!isOver) this.#end(user)
      isOver = true
    }
    return run(end).finally(end)
  }

  #end(user: User): void {
    const left = this.#active(user) - 1
    if (left === 0) this.#counts.delete(user)
    else this.#counts.set(user, left)
    this.#beginning.resume()
  }

  /** The part of one user. */
  get #most(): number {
    return Math.max(LEAST_READING, MOST_READING / this.#counts.size)
  }

  #active(user: User): number {
    return this.#counts.get(user) ?? 0
  }
}
