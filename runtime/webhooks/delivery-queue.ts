import { crc32 } from 'node:zlib'
import type { Logger } from '../ports/logger.ts'
import { killPoint } from '../primitives/kill-points.ts'
import type { StoredWebhook, WebhookProgress, WebhookRow } from '../store/rows.ts'
import { contextName, type Scope } from '../store/store.ts'
import { isLast } from '../store/task-record.ts'
import { deliver, type DeliveryServices } from './delivery.ts'
import type { Slot, KeyedSemaphore } from './keyed-semaphore.ts'
import type { ProgressWriter } from './progress-writer.ts'
import { afterAttempt } from './retry-policy.ts'

/** How long an outlet rests when the store is in trouble. */
const TROUBLED_MS = 1000

/** The longest that an outlet sleeps at once, whatever clocks do meanwhile. */
const LONGEST_SLEEP_MS = 3_600_000

/** What outlets work with. */
export interface OutletServices extends DeliveryServices {
  readonly logger: Logger
  /** Whether each tenant has a share of the posts at once. */
  readonly sharesByTenant: boolean
  readonly slots: KeyedSemaphore
  readonly notes: ProgressWriter
  /** Hears that an outlet has nothing more to do. */
  over(outlet: DeliveryQueue): void
}

/**
 * Tells one webhook the events of its task: one after the other, in their order, each until it is received, rejected or given up.
 * How far it has come is durable before it goes on, so that a kill repeats at most the last delivery, under the same id.
 */
export class DeliveryQueue {
  readonly scope: Scope
  readonly row: WebhookRow
  readonly #services: OutletServices
  readonly #hasEnded: boolean
  readonly #slot: Slot
  /** Generation of the task's newest event, as far as it is known here. */
  #generation: number
  #progress: WebhookProgress
  #timer: unknown
  /** A try is under way, or waits for its slot. */
  #isBusy = false
  #isOver = false
  #isStopped = false
  #stop: AbortController | undefined
  #trying: Promise<void> | undefined

  constructor({ scope, row, generation, hasEnded }: StoredWebhook, services: OutletServices) {
    this.scope = scope
    this.row = row
    this.#services = services
    this.#generation = generation
    this.#hasEnded = hasEnded
    this.#progress = row.progress
    const names = [`host ${new URL(row.webhook.url).host}`, `of ${contextName({ ...scope, contextId: '' })}`, ...(services.sharesByTenant ? [`tenant ${scope.tenant}`] : []), 'all']
    this.#slot = { names, run: () => (this.#trying = this.#try()) }
  }

  /** Hears how far its task has come. */
  advance(generation: number): void {
    this.#generation = Math.max(this.#generation, generation)
    this.schedule()
  }

  /** Sees to what is due, now or when its time has come. */
  schedule(): void {
    if (this.#isBusy || this.#isOver) return
    const { clock, slots } = this.#services
    clock.clearTimeout(this.#timer)
    if (this.#isUpToDate && !this.#hasEnded) return
    const waitMs = (this.#progress.dueAtMs ?? 0) - clock.now()
    if (waitMs > 0) {
      this.#timer = clock.setTimeout(() => this.schedule(), Math.min(waitMs, LONGEST_SLEEP_MS))
      return
    }
    this.#isBusy = true
    slots.enter(this.#slot)
  }

  /** Begins no more tries. Resolves when the one under way is over. */
  async finish(): Promise<void> {
    this.#isOver = true
    this.#services.clock.clearTimeout(this.#timer)
    this.#services.slots.withdraw(this.#slot)
    await this.#trying
  }

  /** Stops at once, in the middle of a try too. */
  stop(): void {
    this.#isStopped = true
    this.#stop?.abort()
    void this.finish()
  }

  get #isUpToDate(): boolean {
    return this.#progress.told >= this.#generation
  }

  async #try(): Promise<void> {
    const { clock, logger } = this.#services
    const { taskId, id } = this.row
    try {
      const next = await this.#next()
      if (!this.#isStopped) await this.#keep(next)
    } catch (error) {
      if (!this.#isStopped) logger.error('a webhook could not be told', { taskId, webhook: id, error })
      this.#progress = { ...this.#progress, dueAtMs: clock.now() + TROUBLED_MS }
    }
    this.#isBusy = false
    this.schedule()
  }

  /** Tells it the next event. Gives how far it is then; `gone` if there is nothing to tell, or nobody who wants to hear. */
  async #next(): Promise<WebhookProgress | 'gone'> {
    if (this.#isUpToDate) return { ...this.#progress, end: 'told' }
    const { store, clock, limits } = this.#services
    const { taskId, id } = this.row
    const [event] = await store.readEvents(this.scope, taskId, this.#progress.told, 1)
    if (!event || this.#isStopped) return 'gone'
    this.#stop = new AbortController()
    killPoint('before delivery')
    const answer = await deliver(this.#services, this.scope, this.row, event, this.#stop.signal)
    killPoint('delivery answered')
    this.#stop = undefined
    const { generation } = event
    const spread = crc32(`${taskId}/${id}/${generation}/${this.#progress.tries}`) / 2 ** 32
    return afterAttempt(this.#progress, answer, { generation, isLast: isLast(event), nowMs: clock.now(), spread, triesMs: limits.webhookTriesMs })
  }

  /** Makes durable how far it is. */
  async #keep(next: WebhookProgress | 'gone'): Promise<void> {
    const { store, notes, logger } = this.#services
    const { scope } = this
    const { taskId, id } = this.row
    if (next === 'gone') {
      await store.deleteWebhook(scope, taskId, id)
      return this.#end()
    }
    this.#progress = next
    const isThere = await notes.write({ scope, taskId, id, progress: next })
    if (next.rejected?.generation === next.told) logger.warn('a receiver rejected an event', { taskId, webhook: id, ...next.rejected })
    if (next.end === 'given up') logger.warn('a webhook is given up', { taskId, webhook: id, generation: next.told + 1, tries: next.tries, failure: next.failure })
    if (next.end || !isThere) this.#end()
  }

  #end(): void {
    this.#isOver = true
    this.#services.over(this)
  }
}
