import type { Clock } from '../ports/clock.ts'
import type { Commit } from '../store/store.ts'

/** Recovered work that was running when its process ended again and again, so that it may be the cause. */
export interface CrashSuspect {
  readonly taskId: string
  /** Time of its last recovery, in milliseconds since 1970. */
  readonly recoveredAtMs: number
  /** Restarts it, and calls `started` when it runs. Never throws. */
  readonly recover: (started: () => void) => void
}

/** How long a suspect without progress runs before the next is started: a second, or less if many wait. */
const SLOT_MS = 1000

const ALL_WITHIN_MS = 10_000

/**
 * Restarts suspects one at a time, the one recovered last first. Work that crashes its process was the last one started
 * before, so only that one is counted as recovered; the others wait.
 */
export class RecoveryQueue {
  readonly #clock: Clock
  #startedAtMs: number
  readonly #waiting: CrashSuspect[] = []
  /** Id of the suspect that runs alone now; `undefined` if there is none, so that a commit checks only this. */
  suspect: string | undefined
  #timer: unknown

  constructor(clock: Clock) {
    this.#clock = clock
    this.#startedAtMs = clock.now()
  }

  /** Tasks that run or are due now count as interrupted: this node has got contexts of another. */
  takesOver(): void {
    this.#startedAtMs = this.#clock.now()
  }

  /** Whether a task with this wake time was running or due when the runtime was created, or last took contexts over. */
  concerns(wakeAtMs: number | undefined): boolean {
    return wakeAtMs !== undefined && wakeAtMs <= this.#startedAtMs
  }

  add(suspect: CrashSuspect): void {
    this.#waiting.push(suspect)
    this.#timer ??= this.#clock.setTimeout(() => this.#next(), SLOT_MS)
  }

  /** Starts the next suspect if a commit shows progress of `suspect`, which runs alone. */
  progressed(suspect: string, { log, journal }: Pick<Commit, 'log' | 'journal'>): void {
    if (!(log.some(({ taskId }) => taskId === suspect) || journal.some(({ taskId }) => taskId === suspect))) return
    this.suspect = undefined
    if (this.#waiting.length > 0) this.#next()
  }

  /** Restarts no more suspects. May be called twice. */
  close(): void {
    this.suspect = undefined
    this.#waiting.length = 0
    this.#clock.clearTimeout(this.#timer)
  }

  #next(): void {
    const newest = this.#waiting.reduce((one, other) => (other.recoveredAtMs > one.recoveredAtMs ? other : one))
    this.#waiting.splice(this.#waiting.indexOf(newest), 1)
    this.suspect = undefined
    this.#arm()
    newest.recover(() => {
      this.suspect = newest.taskId
      this.#arm()
    })
  }

  /** Starts the time slot of the newest suspect. */
  #arm(): void {
    const others = this.#waiting.length
    this.#clock.clearTimeout(this.#timer)
    this.#timer =
      others === 0 ? undefined : this.#clock.setTimeout(() => this.#next(), Math.min(SLOT_MS, ALL_WITHIN_MS / others))
  }
}
