const MINUTE_MS = 60_000

/** How long after its last use every bucket is full again. */
export const REFILL_MS = 2 * MINUTE_MS

/** What may be used in a minute: a bucket that holds a minute's worth, or one if that is less, and fills evenly. It may go below empty, by as much again. */
export class Bucket {
  readonly #perMinute: number
  #used = 0
  #atMs = 0

  constructor(perMinute: number) {
    this.#perMinute = Math.min(perMinute, Number.MAX_SAFE_INTEGER)
  }

  /** How long it is, in milliseconds, until so many more may be used; 0 if they may now. None may be while it is below empty. */
  waitMs(more: number, nowMs: number): number {
    const over = this.#usedBy(nowMs) + more - Math.max(1, this.#perMinute)
    return over > 0 ? (over * MINUTE_MS) / this.#perMinute : 0
  }

  /** Uses so many, whether they may be or not. */
  use(count: number, nowMs: number): void {
    this.#used = Math.min(this.#usedBy(nowMs) + count, 2 * Math.max(1, this.#perMinute))
  }

  /** A clock that was set back has it fill from there on. */
  #usedBy(nowMs: number): number {
    if (nowMs === this.#atMs) return this.#used
    const filled = (Math.max(0, nowMs - this.#atMs) * this.#perMinute) / MINUTE_MS
    this.#atMs = nowMs
    return (this.#used = Math.max(0, this.#used - filled))
  }
}
