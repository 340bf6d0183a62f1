import { systemClock, type Clock } from '../../../runtime/ports/clock.ts'
import type { Session } from '../../postgres/session/session.ts'
import { NOW } from './statements.ts'

/** A clock of this process that nobody can set: it goes on when the clock of the machine is set. */
export const steadyClock: Clock = { ...systemClock, now: () => performance.timeOrigin + performance.now() }

/**
 * The time of the database, which all nodes share: the clocks of their machines need not agree. A node sees the database's clock between
 * two moments of its own, so it is wrong by the duration of a round trip at most.
 */
export class SharedClock implements Clock {
  readonly #own: Clock
  #aheadMs = 0

  constructor(own: Clock) {
    this.#own = own
  }

  /** The time of the database of a session. Rejects with the error of `pg`. */
  static async of(session: Session, own: Clock): Promise<SharedClock> {
    const clock = new SharedClock(own)
    const fromMs = own.now()
    const [[nowMs] = []] = await session.rows(NOW)
    clock.saw(Number(nowMs), fromMs)
    return clock
  }

  now(): number {
    return Math.floor(this.#own.now() + this.#aheadMs)
  }

  setTimeout(callback: () => void, delayMs: number): unknown {
    return this.#own.setTimeout(callback, delayMs)
  }

  clearTimeout(timer: unknown): void {
    this.#own.clearTimeout(timer)
  }

  /** The database's clock showed a time, in milliseconds since 1970, between `fromMs` of this process and now. */
  saw(theirMs: number, fromMs: number): void {
    this.#aheadMs = Math.min(Math.max(this.#aheadMs, theirMs - this.#own.now()), theirMs - fromMs)
  }
}
