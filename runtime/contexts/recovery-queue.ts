import type { Clock } from '../ports/clock.ts'

/** Work that was at work at the end of a process in which it was recovered, and of which nobody knows yet whether it was the cause. */
export interface CrashSuspect {
  /** When it was recovered last, in milliseconds since 1970. */
  readonly recoveredAtMs: number
  /** Has it start again, and calls `started` when it has, if it does. Never throws. */
  readonly recover: (started: () => void) => void
}

/** How long a suspect has been at work before the next comes: a second, less if many wait, so that all are soon at work. */
const SLOT_MS = 1000
const ALL_WITHIN_MS = 10_000

/**
 * Starts suspects again one after the other, that which was started last first: work that takes its process with it is
 * the last that was started before, and so is blamed alone. The others wait meanwhile, and are not counted as recovered.
 */
export class RecoveryQueue {
  readonly #clock: Clock
  readonly #startedAtMs: number
  readonly #waiting: CrashSuspect[] = []
  #timer: unknown

  /** Made with the runtime. */
  constructor(clock: Clock) {
    this.#clock = clock
    this.#startedAtMs = clock.now()
  }

  /** Whether a task with this wake was due, or at work, when the runtime began. */
  concern(wakeAtMs: number | undefined): boolean {
    return wakeAtMs !== undefined && wakeAtMs <= this.#startedAtMs
  }

  add(suspect: CrashSuspect): void {
    this.#waiting.push(suspect)
    this.#timer ??= this.#clock.setTimeout(() => this.#next(), SLOT_MS)
  }

  /** Starts no more. May be called twice. */
  close(): void {
    this.#waiting.length = 0
    this.#clock.clearTimeout(this.#timer)
  }

  #next(): void {
    const newest = this.#waiting.reduce((one, other) => (other.recoveredAtMs > one.recoveredAtMs ? other : one))
    this.#waiting.splice(this.#waiting.indexOf(newest), 1)
    this.#arm()
    newest.recover(() => this.#arm())
  }

  /** Gives the newest its time from now on. */
  #arm(): void {
    const others = this.#waiting.length
    this.#clock.clearTimeout(this.#timer)
    this.#timer = others === 0 ? undefined : this.#clock.setTimeout(() => this.#next(), Math.min(SLOT_MS, ALL_WITHIN_MS / others))
  }
}
