import type { Clock } from '../ports/clock.ts'
import { ReleasingMap } from '../primitives/collections.ts'
import { contextName, isErased, type ContextKey, type Erasure } from '../store/store.ts'
import { FIRST_RETRY_MS, LAST_RETRY_MS } from './wake-scheduler.ts'

/** The absence of a context that broke. */
export interface BrokenContext {
  readonly key: ContextKey
  /**
   * Delay before it is reloaded, in milliseconds, because the store refused its commit; 0 if it is reloaded at once.
   */
  readonly reloadDelayMs: number
  /** The timer that reloads it. */
  timer: unknown
}

/**
 * Exponential back-off after a refused commit: a second, or twice the last delay if the context was reloaded less than
 * a minute ago.
 */
export function reloadDelayAfter(before: BrokenContext | undefined, presentMs: number): number {
  if (!before || presentMs >= LAST_RETRY_MS) return FIRST_RETRY_MS
  return Math.min(Math.max(2 * before.reloadDelayMs, FIRST_RETRY_MS), LAST_RETRY_MS)
}

/**
 * Contexts that have left the memory of this process by a failure. Reloading one is no recovery, because its process
 * has not ended.
 */
export class BrokenContexts {
  readonly #clock: Clock
  readonly #broken = new ReleasingMap<BrokenContext>()
  /** Contexts that this node of a cluster has lost with its session, until their owners since then are known. */
  readonly #lost = new Map<string, ContextKey>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The absence of a context, if it broke. */
  of(name: string): BrokenContext | undefined {
    return this.#broken.size > 0 ? this.#broken.get(name) : undefined
  }

  /** Notes that a context broke. After `awayMs`, unless that is 0, calls `reload`. */
  add(key: ContextKey, awayMs: number, reload: () => void): void {
    const absence: BrokenContext = { key, reloadDelayMs: awayMs, timer: undefined }
    this.#broken.set(contextName(key), absence)
    if (awayMs === 0) return
    absence.timer = this.#clock.setTimeout(() => {
      absence.timer = undefined
      reload()
    }, awayMs)
  }

  /** Ends an absence: the context is in memory again. */
  end(name: string): void {
    this.#clock.clearTimeout(this.#broken.get(name)?.timer)
    this.#broken.delete(name)
  }

  /** Notes that this node has lost a context with its session. */
  lose(key: ContextKey): void {
    this.#lost.set(contextName(key), key)
  }

  /** Ends the reloads of broken contexts, because this node has lost its session. */
  loseBroken(isLost: (key: ContextKey) => boolean): void {
    for (const [name, { key }] of this.#broken.entries()) {
      if (!isLost(key)) continue
      this.end(name)
      this.lose(key)
    }
  }

  /**
   * After this node regains its session: a lost context that no other node owned meanwhile is reloaded, not recovered.
   */
  regain(isContinued: (key: ContextKey) => boolean): void {
    for (const key of this.#lost.values()) if (isContinued(key)) this.add(key, 0, () => {})
    this.#lost.clear()
  }

  /** Ends all timers. */
  close(): void {
    for (const { timer } of this.#broken.values()) this.#clock.clearTimeout(timer)
  }
}

/** Pending erasures, which block access to their contexts. */
export class PendingErasures {
  readonly #underWay = new Map<Erasure, Promise<unknown>>()

  async run<T>(whose: Erasure, erase: () => Promise<T>): Promise<T> {
    const erased = erase()
    this.#underWay.set(whose, erased)
    try {
      return await erased
    } finally {
      this.#underWay.delete(whose)
    }
  }

  /** Settles when a pending erasure of this context is done; `undefined` if there is none. */
  of(key: ContextKey): Promise<unknown> | undefined {
    for (const [whose, erased] of this.#underWay) if (isErased(whose, key)) return erased
    return undefined
  }

  /** Resolves when all are done. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay.values())
  }
}
