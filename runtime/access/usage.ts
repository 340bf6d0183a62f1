import { A2AError } from '../../machines/protocol/errors.ts'
import { TokenBucket } from './call-scheduler.ts'
import type { Quota, Quotas } from './limits.ts'

/** `retryAfterMs` of a refusal until some task ends, whose time is unknown. */
const TASK_ENDS_MS = 1000

/** In a cluster, with so many free places for each, tasks are opened without counting those of other nodes again. */
const UNCOUNTED_MARGIN = 1024

/**
 * In a cluster, with fewer free places for each, tasks are opened one after the other, so that every node opens at most
 * one too many.
 */
const CONCURRENT_MARGIN = 16

/** Usage of a quota by a tenant, or by a principal in it. The `check` methods throw RateLimited and count nothing. */
export class QuotaUsage {
  readonly quota: Quota
  /** Tasks that have not ended; `undefined` until it is read from the store. */
  open: number | undefined
  /** Tasks that are being opened. */
  opening = 0
  /** Tasks that were opened here. */
  #opened = 0
  /** Tasks that may be opened before the count is read again, in a cluster. */
  #left = 0
  /** The end of the last task's opening in turn. */
  #turn: Promise<unknown> = Promise.resolve()
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

  /** Known number of tasks that are open or being opened. */
  get tasks(): number {
    return (this.open ?? 0) + this.opening
  }

  checkRequest(nowMs: number): void {
    const requestsMs = this.#requests.waitMs(1, nowMs)
    if (requestsMs > 0)
      throw this.#usedUp('requestsPerMinute', 'requests per minute', 'Send it again later.', requestsMs)
    const bytesMs = this.#bytes.waitMs(0, nowMs)
    if (bytesMs > 0)
      throw this.#usedUp(
        'bytesPerMinute',
        'request bytes per minute',
        'Send it again later, and large files by url.',
        bytesMs
      )
  }

  countRequest(bytes: number, nowMs: number): void {
    this.#requests.use(1, nowMs)
    if (bytes > 0) this.#bytes.use(bytes, nowMs)
  }

  checkEvents(nowMs: number): void {
    const eventsMs = this.#events.waitMs(0, nowMs)
    if (eventsMs > 0) throw this.#usedUp('eventsPerMinute', 'task events per minute', 'Send it again later.', eventsMs)
  }

  checkOpening(): void {
    if (this.tasks < this.quota.openTasks) return
    throw this.#usedUp('openTasks', 'open tasks', 'Wait for one to end, or cancel one.', TASK_ENDS_MS)
  }

  /** Reads the count of open tasks, unless the last one permits more. */
  async recount(read: () => Promise<number>): Promise<void> {
    this.#left -= 1
    if (this.#left >= 0) return
    const before = this.#opened
    const count = await read()
    this.open = count + this.#opened - before
    this.#left = Math.floor((this.quota.openTasks - this.tasks) / UNCOUNTED_MARGIN)
  }

  /** Whether the quota is so nearly used up that the tasks which other nodes are opening count. */
  get isTight(): boolean {
    return this.quota.openTasks - this.tasks < CONCURRENT_MARGIN * (this.opening + 1)
  }

  /** Runs one after the other. */
  inTurn<T>(run: () => Promise<T>): Promise<T> {
    const end = this.#turn.then(run)
    this.#turn = end.catch(() => {})
    return end
  }

  committed(events: number, opened: number, ended: number, nowMs: number): void {
    this.#events.use(events, nowMs)
    this.#opened += opened
    if (this.open !== undefined) this.open += opened - ended
  }

  #usedUp(name: keyof Quota, what: string, advice: string, retryAfterMs: number): A2AError {
    const limit = String(this.quota[name])
    const who = this.#of === 'perTenant' ? 'This tenant has' : 'You have'
    return new A2AError('RateLimited', `${who} reached the limit of ${limit} ${what}. ${advice}`, {
      retryAfterMs: Math.ceil(retryAfterMs),
      metadata: { quota: `${this.#of}.${name}`, limit }
    })
  }
}
