import { setImmediate } from 'node:timers/promises'
import { isA2AError } from '../../machines/protocol/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import type { ContextKey, Store, Wake, WakeCursor } from '../store/store.ts'

/** Batch size: wakes that are read, and contexts that are restored, at the same time. */
const AT_ONCE = 32

/** Delay of the first retry, and maximum delay of the exponential back-off. */
export const FIRST_RETRY_MS = 1000
export const LAST_RETRY_MS = 60_000

/** Minimum pause before a repeated search, as a multiple of the duration of the last search. */
const PAUSES = 4

/** The contexts that a {@link WakeScheduler} wakes. */
interface WakeTarget {
  /** Whether a context is in memory, where it has its own timers. */
  has(key: ContextKey): boolean
  /** Restores a context, whose due timers then fire. */
  wake(key: ContextKey): Promise<void>
}

/**
 * Restores contexts when their wake is due, in small batches, with one timer for the earliest wake. Those that cannot
 * be loaded, or do not fit into memory, are retried with exponential back-off from a second to a minute. Contexts over
 * the share of their principal or tenant do not delay others.
 */
export class WakeScheduler {
  readonly #store: Store
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #sleepers: WakeTarget
  /** Wakes before this time are done. */
  #fromMs = 0
  #nextMs = Infinity
  #timer: unknown
  #isPassing = false
  #isClosed = false
  #retryMs = FIRST_RETRY_MS

  constructor(
    { store, clock, logger }: { readonly store: Store; readonly clock: Clock; readonly logger: Logger },
    sleepers: WakeTarget
  ) {
    this.#store = store
    this.#clock = clock
    this.#logger = logger
    this.#sleepers = sleepers
  }

  /** Wakes all contexts that are due in the store, now and from then on. */
  start(): void {
    void this.#pass()
  }

  /** Schedules the wake of a context that has left memory; Infinity if only a message needs it. */
  expect(atMs: number): void {
    this.#fromMs = Math.min(this.#fromMs, atMs)
    this.#arm(atMs)
  }

  /** Schedules a full search, because a context that should be in memory is not. */
  retry(): void {
    this.#fromMs = 0
    this.#arm(this.#clock.now() + this.#retryMs)
  }

  /** May be called twice. */
  close(): void {
    this.#isClosed = true
    this.#clock.clearTimeout(this.#timer)
  }

  #arm(atMs: number): void {
    if (this.#isClosed || atMs >= this.#nextMs) return
    this.#nextMs = atMs
    if (this.#isPassing) return
    this.#clock.clearTimeout(this.#timer)
    this.#timer = this.#clock.setTimeout(() => void this.#pass(), Math.max(0, atMs - this.#clock.now()))
  }

  async #pass(): Promise<void> {
    this.#isPassing = true
    this.#nextMs = Infinity
    const later = await this.#wakeAll(this.#fromMs, this.#clock.now())
    this.#isPassing = false
    const nextMs = Math.min(this.#nextMs, later)
    this.#nextMs = Infinity
    this.#arm(nextMs)
  }

  /** Wakes the contexts that are due from `fromMs` to `nowMs`. Gives the time of the next search. */
  async #wakeAll(fromMs: number, nowMs: number): Promise<number> {
    this.#fromMs = nowMs
    let after: WakeCursor = { atMs: fromMs, taskId: '' }
    let isTroubled = false
    try {
      for (;;) {
        const wakes = await this.#store.readWakes(AT_ONCE, after)
        const due = wakes.filter(({ atMs }) => atMs <= nowMs)
        const outcomes = await Promise.all(due.map(wake => this.#wake(wake)))
        if (this.#isClosed) return Infinity
        isTroubled ||= outcomes.includes('failed') || outcomes.includes('over its share')
        const last = wakes.at(-1)
        if (outcomes.includes('no room')) return this.#again(nowMs)
        if (due.length < AT_ONCE || !last) return isTroubled ? this.#again(nowMs) : this.#laterThan(wakes, nowMs)
        after = last
        await setImmediate()
      }
    } catch (error) {
      if (this.#isClosed) return Infinity
      this.#logger.error('the wakes that are due could not be read', { error })
      this.#fromMs = Math.min(this.#fromMs, after.atMs)
      return this.#again(nowMs)
    }
  }

  async #wake({ key, atMs }: Wake): Promise<'awake' | 'failed' | 'no room' | 'over its share'> {
    if (this.#sleepers.has(key)) return 'awake'
    try {
      await this.#sleepers.wake(key)
      this.#retryMs = FIRST_RETRY_MS
      return 'awake'
    } catch (error) {
      this.#fromMs = Math.min(this.#fromMs, atMs)
      const code = isA2AError(error) ? error.code : undefined
      if (this.#isClosed || code === 'Overloaded') return 'no room'
      if (code === 'RateLimited') return 'over its share'
      this.#logger.error('a context could not be loaded', { contextId: key.contextId, error })
      return 'failed'
    }
  }

  #again(sinceMs: number): number {
    const nowMs = this.#clock.now()
    const retryMs = this.#retryMs
    this.#retryMs = Math.min(2 * retryMs, LAST_RETRY_MS)
    return nowMs + Math.max(retryMs, PAUSES * (nowMs - sinceMs))
  }

  /** The next wake of a context that is not in memory. If the batch has none, the time of its last wake. */
  #laterThan(wakes: readonly Wake[], nowMs: number): number {
    const next = wakes.find(({ key, atMs }) => atMs > nowMs && !this.#sleepers.has(key))
    const last = wakes[AT_ONCE - 1]
    return (next ?? last)?.atMs ?? Infinity
  }
}
