import { BEGINNING, FairQueue, READING } from './fair-queue.ts'

/** The most calls of one user that look something up at the same time. */
const MOST_LOOKING_UP = 256

/** With so many calls of one user that are parsed and have not begun, no more of them are parsed. */
const MOST_WAITING = 16

type User = object | string

/**
 * The turns of calls: to be parsed, and to begin. A user with many calls that look something up in the store gets no turns until
 * some of them are done. This bounds the memory of these calls. The user's clients are not read meanwhile.
 */
export class CallTurns {
  /** Turns to parse messages and bodies, by {@link readingCost}. */
  readonly reading = new FairQueue(READING, user => this.#beginning.waiting(user) >= MOST_WAITING)
  readonly #beginning = new FairQueue(BEGINNING, user => this.#lookingUp(user) >= MOST_LOOKING_UP)
  readonly #counts = new Map<User, number>()

  /** Runs a call when it is its user's turn: now, or later. The call may say with `waits` that it waits for something else than the store. */
  take<T>(user: User, run: (waits: () => void) => Promise<T>): Promise<T> {
    const turn = this.#beginning.next(user)
    if (!turn) return this.#run(user, run)
    return turn.then(() => {
      this.reading.resume()
      return this.#run(user, run)
    })
  }

  #run<T>(user: User, run: (waits: () => void) => Promise<T>): Promise<T> {
    this.#counts.set(user, this.#lookingUp(user) + 1)
    let isOver = false
    const end = () => {
      if (!isOver) this.#end(user)
      isOver = true
    }
    return run(end).finally(end)
  }

  #end(user: User): void {
    const left = this.#lookingUp(user) - 1
    if (left === 0) this.#counts.delete(user)
    else this.#counts.set(user, left)
    if (left === MOST_LOOKING_UP - 1) this.#beginning.resume()
  }

  #lookingUp(user: User): number {
    return this.#counts.get(user) ?? 0
  }
}
