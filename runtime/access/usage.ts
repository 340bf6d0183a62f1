import { A2AError } from '../../machines/protocol/errors.ts'
import type { Quota, Quotas } from './limits.ts'

const MINUTE_MS = 60_000

/** How long after its last use every bucket is full again. */
export const REFILL_MS = 2 * MINUTE_MS

/** What may be used in a minute: a bucket that holds a minute's worth, or one if that is less, and fills evenly. It may go below empty, by as much again. */
export class TokenBucket {
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

/** How soon to try again what waits for a task to end, of which nobody knows when. */
const TASK_ENDS_MS = 1000

/** What a tenant, or a principal in it, has used of its quota. What checks throws RateLimited, and counts nothing. */
export class Usage {
  readonly quota: Quota
  /** Tasks that have not ended; `undefined` while only the store knows. */
  open: number | undefined
  /** Tasks that are about to be opened. */
  opening = 0
  readonly #of: keyof Quotas
  readonly #requests: TokenBucket
  readonly #events: TokenBucket
  readonly #bytes: TokenBucket

  constructor(of: keyof Quotas, quota: Quota) {
    this.#of = of
    this.quota = quota
    this.#requests = new TokenBucket(quota.requestsPerMinute)
    this.#events = new TokenBucket(quota.eventsPerMinute)
    this.#bytes = new TokenBucket(quota.bytesPerMinute)
  }

  /** Tasks that are open or about to be, as far as that is known. */
  get tasks(): number {
    return (this.open ?? 0) + this.opening
  }

  checkRequest(nowMs: number): void {
    const requestsMs = this.#requests.waitMs(1, nowMs)
    if (requestsMs > 0) throw this.#used('requestsPerMinute', 'sent as many requests as you may in a minute', 'Send it again later.', requestsMs)
    const bytesMs = this.#bytes.waitMs(0, nowMs)
    if (bytesMs > 0) throw this.#used('bytesPerMinute', 'sent as many bytes as you may in a minute', 'Send it again later, and large files by url.', bytesMs)
  }

  countRequest(bytes: number, nowMs: number): void {
    this.#requests.use(1, nowMs)
    if (bytes > 0) this.#bytes.use(bytes, nowMs)
  }

  checkEvents(nowMs: number): void {
    const eventsMs = this.#events.waitMs(0, nowMs)
    if (eventsMs > 0) throw this.#used('eventsPerMinute', 'had more events of tasks than you may in a minute', 'Send it again later.', eventsMs)
  }

  checkOpening(): void {
    if (this.tasks < this.quota.openTasks) return
    throw this.#used('openTasks', 'as many tasks open as you may', 'Wait for one to end, or cancel one.', TASK_ENDS_MS)
  }

  /** Counts what was committed. */
  committed(events: number, open: number, nowMs: number): void {
    this.#events.use(events, nowMs)
    if (this.open !== undefined) this.open += open
  }

  #used(name: keyof Quota, what: string, advice: string, retryAfterMs: number): A2AError {
    const limit = String(this.quota[name])
    const text = this.#of === 'perTenant' ? `This tenant has ${what.replace('you', 'it')}` : `You have ${what}`
    return new A2AError('RateLimited', `${text}: ${limit}. ${advice}`, { retryAfterMs: Math.ceil(retryAfterMs), metadata: { quota: `${this.#of}.${name}`, limit } })
  }
}
