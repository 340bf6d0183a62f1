import { setImmediate } from 'node:timers/promises'
import { isA2AError } from '../../machines/protocol/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import type { ContextKey, Store, Wake, WakeCursor } from '../store/store.ts'

/** How many wakes are read, and contexts brought into memory, at once. */
const AT_ONCE = 32

/** How long what failed waits to be tried again: at first, and at the most. */
export const FIRST_RETRY_MS = 1000
export const LAST_RETRY_MS = 60_000

/** How many times as long as a search for what is due the pause after it lasts at least, where something has to be searched for again. */
const PAUSES = 4

/** What the wakes ask of the contexts. */
interface WakeTarget {
  /** Whether a context is in memory, where it sees to its own time. */
  has(key: ContextKey): boolean
  /** Brings a context into memory, where what is due happens. */
  wake(key: ContextKey): Promise<void>
}

/**
 * Brings the contexts that are not in memory there in time, a few at once, with one timer for the earliest. Those that
 * cannot be loaded, or find no room, are tried again after a second, then less and less often, at least once a minute.
 * Those over the share of their principal or tenant do not hold up the others.
 */
export class WakeScheduler {
  readonly #store: Store
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #sleepers: WakeTarget
  /** Wakes before this time have been seen to. */
  #fromMs = 0
  #nextMs = Infinity
  #timer: unknown
  #isPassing = false
  #isClosed = false
  #retryMs = FIRST_RETRY_MS

  constructor({ store, clock, logger }: { readonly store: Store; readonly clock: Clock; readonly logger: Logger }, sleepers: WakeTarget) {
    this.#store = store
    this.#clock = clock
    this.#logger = logger
    this.#sleepers = sleepers
  }

  /** Sees to all that is due in the store now, and from then on to what becomes due. */
  start(): void {
    void this.#pass()
  }

  /** A context has left memory, and is to be back at this time; Infinity if only a message needs it. */
  expect(atMs: number): void {
    this.#fromMs = Math.min(this.#fromMs, atMs)
    this.#arm(atMs)
  }

  /** A context has left memory that should be there. */
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

  /** Wakes what is due from one time to another. Gives the time at which to go on. */
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
      this.#logger.error('the store does not say what is due', { error })
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

  /** The time of the first context that is to come; contexts in memory are left out as far as they have been read. */
  #laterThan(wakes: readonly Wake[], nowMs: number): number {
    const next = wakes.find(({ key, atMs }) => atMs > nowMs && !this.#sleepers.has(key))
    const last = wakes[AT_ONCE - 1]
    return (next ?? last)?.atMs ?? Infinity
  }
}

/** Why a context is not in memory: it broke. */
export interface Absence {
  /** How long it stays away, since the store refused a commit of it; 0 if it comes back at once. */
  readonly awayMs: number
  /** What brings it back. */
  timer: unknown
}

/** How long a context stays away whose commit was refused: a second, or twice as long as before if it came back less than a minute ago. */
export function awayAfter(before: Absence | undefined, presentMs: number): number {
  if (!before || presentMs >= LAST_RETRY_MS) return FIRST_RETRY_MS
  return Math.min(Math.max(2 * before.awayMs, FIRST_RETRY_MS), LAST_RETRY_MS)
}
