import { setImmediate } from 'node:timers/promises'
import type { WebhookBodyWriter } from '../ports/webhook-sender.ts'
import { ReleasingMap } from '../primitives/collections.ts'
import type { StoredWebhook, Scope } from '../store/rows.ts'
import { contextName, isSameScope } from '../store/store.ts'
import { DeliveryQueue, KeyedSemaphore, type QueueServices, ProgressWriter } from './delivery-queue.ts'

/** Batch size of reads. */
const PORTION = 256

/** Grace period of running attempts when the runtime closes. */
const GRACE_MS = 2000

/** Delay before a failed read of webhooks is retried. */
const TROUBLED_MS = 1000

/** A task that may have webhooks. */
interface WebhookTask {
  /** Generation of the newest committed event. */
  generation: number
  /** By id of the webhook. */
  readonly queues: Map<string, DeliveryQueue>
  /** Number of pending reads of its webhooks. */
  reads: number
}

/**
 * The delivery queues of all active webhooks. Concurrent attempts are limited in total (`limits.webhooksAtOnce`), per
 * host (`limits.webhooksAtOncePerHost`), and by the shares of principals and tenants.
 */
export class Webhooks {
  /** Writers of bodies in older versions of A2A, by version. */
  readonly writings: Map<string, WebhookBodyWriter>
  readonly #services: QueueServices
  readonly #tasks = new ReleasingMap<WebhookTask>()
  readonly #counts = new Map<string, number>()
  #isReading = true
  #isClosed = false
  #timer: unknown

  constructor(services: Omit<QueueServices, 'slots' | 'notes' | 'over' | 'writings'>) {
    const { webhooksAtOnce, webhooksAtOncePerHost, principalShare, tenantShare } = services.limits
    const limitOf = (name: string) => {
      if (name.startsWith('host ')) return webhooksAtOncePerHost
      return Math.ceil(
        webhooksAtOnce * (name === 'all' ? 1 : name.startsWith('tenant ') ? tenantShare : principalShare)
      )
    }
    this.writings = new Map()
    this.#services = {
      ...services,
      writings: this.writings,
      slots: new KeyedSemaphore(limitOf),
      notes: new ProgressWriter(services.store),
      over: queue => this.#forget(queue)
    }
  }

  /** Resumes the webhooks in the store. Called again when this node has got tasks of another. */
  start(): void {
    this.#isReading = true
    void this.#readAll(0)
  }

  /**
   * Stops the queues of tasks that are no longer this node's. Resolves when their running attempts are done, after a
   * grace period.
   */
  async release(isLost: (taskId: string) => boolean): Promise<void> {
    const lost = this.#tasks.entries().flatMap(([taskId, { queues }]) => (isLost(taskId) ? [...queues.values()] : []))
    await this.#finish(lost)
    for (const queue of lost) this.#forget(queue)
  }

  /** Whether a task may have webhooks. */
  has(taskId: string): boolean {
    return this.#isReading || this.#tasks.has(taskId)
  }

  /** Sets the generation of a task's newest committed event. */
  advance(taskId: string, generation: number): void {
    const task = this.#taskOf(taskId)
    task.generation = Math.max(task.generation, generation)
    for (const queue of task.queues.values()) queue.advance(generation)
  }

  /** Number of webhooks with an event that is not delivered. Looks at every active webhook. */
  get waiting(): number {
    let waiting = 0
    for (const { queues } of this.#tasks.values())
      for (const queue of queues.values()) if (!queue.isUpToDate) waiting += 1
    return waiting
  }

  /** Number of active webhooks of a principal. */
  countOf(scope: Scope): number {
    return this.#counts.get(nameOf(scope)) ?? 0
  }

  /** Reads the webhooks of a task again, because these, or any, may have changed. Retries if that fails. */
  async refresh(scope: Scope, taskId: string, ids?: readonly string[]): Promise<void> {
    const task = this.#taskOf(taskId)
    task.reads += 1
    for (const id of ids ?? task.queues.keys()) this.drop(taskId, id)
    try {
      const stored = await this.#services.store.readWebhooks(scope, taskId)
      for (const each of stored) this.#take(each)
    } catch (error) {
      this.#trouble(error)
    } finally {
      task.reads -= 1
      this.#tidy(taskId)
    }
  }

  /** Stops the queue of a webhook at once. */
  drop(taskId: string, id: string): void {
    const queue = this.#tasks.get(taskId)?.queues.get(id)
    if (!queue) return
    queue.stop()
    this.#forget(queue)
  }

  /** Reads the webhooks of a scope again after an erasure. */
  async erased(whose: Scope): Promise<void> {
    for (const [taskId, { queues }] of this.#tasks.entries()) {
      const gone = [...queues.values()].filter(({ scope }) => isSameScope(scope, whose))
      if (gone.length > 0) await this.refresh(whose, taskId)
    }
  }

  /** Starts no more attempts, and gives running ones a grace period. Resolves when all progress is stored. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#services.clock.clearTimeout(this.#timer)
    await this.#finish(this.#tasks.values().flatMap(({ queues }) => [...queues.values()]))
  }

  async #finish(queues: readonly DeliveryQueue[]): Promise<void> {
    const { clock, notes } = this.#services
    const stop = clock.setTimeout(() => queues.forEach(queue => queue.stop()), GRACE_MS)
    await Promise.all(queues.map(queue => queue.finish()))
    clock.clearTimeout(stop)
    await notes.settled()
  }

  async #readAll(from: number): Promise<void> {
    let after = from
    try {
      while (!this.#isClosed) {
        const page = await this.#services.store.readOpenWebhooks(PORTION, after)
        for (const stored of page) this.#take(stored)
        after = page.at(-1)?.place ?? after
        if (page.length < PORTION) break
        await setImmediate()
      }
      this.#isReading = false
      for (const [taskId] of this.#tasks.entries()) this.#tidy(taskId)
    } catch (error) {
      this.#trouble(error, after)
    }
  }

  /** Reads all webhooks again after a delay; those in memory stay. */
  #trouble(error: unknown, after = 0): void {
    const { clock, logger } = this.#services
    if (this.#isClosed) return
    logger.error('the webhooks could not be read', { error })
    this.#isReading = true
    clock.clearTimeout(this.#timer)
    this.#timer = clock.setTimeout(() => void this.#readAll(after), TROUBLED_MS)
  }

  /** Adds the queue of an active webhook, unless it exists. */
  #take(stored: StoredWebhook): void {
    const { scope, row } = stored
    const task = this.#taskOf(row.taskId)
    if (this.#isClosed || row.progress.end || task.queues.has(row.id)) return
    const queue = new DeliveryQueue(stored, this.#services)
    task.queues.set(row.id, queue)
    this.#count(scope, 1)
    queue.advance(task.generation)
  }

  #forget(queue: DeliveryQueue): void {
    const {
      scope,
      row: { taskId, id }
    } = queue
    const task = this.#tasks.get(taskId)
    if (task?.queues.get(id) !== queue) return
    task.queues.delete(id)
    this.#count(scope, -1)
    this.#tidy(taskId)
  }

  #count(scope: Scope, change: number): void {
    const name = nameOf(scope)
    const count = this.countOf(scope) + change
    if (count === 0) this.#counts.delete(name)
    else this.#counts.set(name, count)
  }

  #taskOf(taskId: string): WebhookTask {
    const known = this.#tasks.get(taskId)
    if (known) return known
    const task: WebhookTask = { generation: 0, queues: new Map(), reads: 0 }
    this.#tasks.set(taskId, task)
    return task
  }

  /** Forgets a task without queues and reads. */
  #tidy(taskId: string): void {
    const task = this.#tasks.get(taskId)
    if (task && task.queues.size === 0 && task.reads === 0 && !this.#isReading) this.#tasks.delete(taskId)
  }
}

function nameOf({ tenant, principal }: Scope): string {
  return contextName({ tenant, principal, contextId: '' })
}
