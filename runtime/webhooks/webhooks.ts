import { setImmediate } from 'node:timers/promises'
import type { WebhookBodyWriter } from '../ports/webhook-sender.ts'
import { ReleasingMap } from '../primitives/collections.ts'
import type { StoredWebhook } from '../store/rows.ts'
import { contextName, isSameScope, type Scope } from '../store/store.ts'
import { DeliveryQueue, type OutletServices } from './delivery-queue.ts'
import { KeyedSemaphore } from './keyed-semaphore.ts'
import { ProgressWriter } from './progress-writer.ts'

/** How many webhooks are read at once, before others have their turn. */
const PORTION = 256

/** How long tries under way may go on when the runtime closes. */
const GRACE_MS = 2000

/** How long to wait before the webhooks are read again when the store is in trouble. */
const TROUBLED_MS = 1000

/** What is known here of a task that may have webhooks. */
interface Told {
  /** Generation of its newest event that was told since it is known here. */
  generation: number
  /** By the ids of the webhooks. */
  readonly outlets: Map<string, DeliveryQueue>
  /** How many reads of its webhooks are under way. */
  reads: number
}

/**
 * The webhooks that are being told, of all tasks: in memory are those that are not at their end. At most
 * `limits.webhooksAtOnce` are tried at the same time, so many of one host, and of one principal and one tenant as much as its share (`limits.principalShare`, `limits.tenantShare`).
 */
export class Webhooks {
  /** How bodies of older versions are written, by version. */
  readonly writings: Map<string, WebhookBodyWriter>
  readonly #services: OutletServices
  readonly #tasks = new ReleasingMap<Told>()
  readonly #counts = new Map<string, number>()
  #isReading = true
  #isClosed = false
  #timer: unknown

  constructor(services: Omit<OutletServices, 'slots' | 'notes' | 'over' | 'writings'>) {
    const { webhooksAtOnce, webhooksAtOncePerHost, principalShare, tenantShare } = services.limits
    const limitOf = (name: string) => {
      if (name.startsWith('host ')) return webhooksAtOncePerHost
      return Math.ceil(webhooksAtOnce * (name === 'all' ? 1 : name.startsWith('tenant ') ? tenantShare : principalShare))
    }
    this.writings = new Map()
    this.#services = {
      ...services,
      writings: this.writings,
      slots: new KeyedSemaphore(limitOf),
      notes: new ProgressWriter(services.store),
      over: outlet => this.#forget(outlet)
    }
  }

  /** Goes on with those that a store holds from before. */
  start(): void {
    void this.#readAll(0)
  }

  /** Whether a task may have webhooks. */
  has(taskId: string): boolean {
    return this.#isReading || this.#tasks.has(taskId)
  }

  /** Hears that a task has come to a generation, which is durable. */
  told(taskId: string, generation: number): void {
    const told = this.#toldOf(taskId)
    told.generation = Math.max(told.generation, generation)
    for (const outlet of told.outlets.values()) outlet.advance(generation)
  }

  /** How many of a principal are being told. */
  countOf(scope: Scope): number {
    return this.#counts.get(nameOf(scope)) ?? 0
  }

  /** Reads the webhooks of a task again, since those with these ids, or any, may have changed. If that fails it is tried again. */
  async refresh(scope: Scope, taskId: string, ids?: readonly string[]): Promise<void> {
    const told = this.#toldOf(taskId)
    told.reads += 1
    for (const id of ids ?? told.outlets.keys()) this.drop(taskId, id)
    try {
      const stored = await this.#services.store.readWebhooks(scope, taskId)
      for (const each of stored) this.#take(each)
    } catch (error) {
      this.#trouble(error)
    } finally {
      told.reads -= 1
      this.#tidy(taskId)
    }
  }

  /** Stops telling a webhook, at once. */
  drop(taskId: string, id: string): void {
    const outlet = this.#tasks.get(taskId)?.outlets.get(id)
    if (!outlet) return
    outlet.stop()
    this.#forget(outlet)
  }

  /** Hears that data of a scope is gone: tells only those of its webhooks that are still there. */
  async erased(whose: Scope): Promise<void> {
    for (const [taskId, { outlets }] of this.#tasks.entries()) {
      const gone = [...outlets.values()].filter(({ scope }) => isSameScope(scope, whose))
      if (gone.length > 0) await this.refresh(whose, taskId)
    }
  }

  /** Begins no more tries; those under way have a while to end. Resolves when all that is known is durable. */
  async close(): Promise<void> {
    const { clock, notes } = this.#services
    this.#isClosed = true
    clock.clearTimeout(this.#timer)
    const outlets = this.#tasks.values().flatMap(({ outlets }) => [...outlets.values()])
    const stop = clock.setTimeout(() => outlets.forEach(outlet => outlet.stop()), GRACE_MS)
    await Promise.all(outlets.map(outlet => outlet.finish()))
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

  /** All are read again in a while: those in memory are taken as they are. */
  #trouble(error: unknown, after = 0): void {
    const { clock, logger } = this.#services
    if (this.#isClosed) return
    logger.error('the store does not say which webhooks there are', { error })
    this.#isReading = true
    clock.clearTimeout(this.#timer)
    this.#timer = clock.setTimeout(() => void this.#readAll(after), TROUBLED_MS)
  }

  /** Takes a webhook up that is not at its end, unless it is here. */
  #take(stored: StoredWebhook): void {
    const { scope, row } = stored
    const told = this.#toldOf(row.taskId)
    if (this.#isClosed || row.progress.end || told.outlets.has(row.id)) return
    const outlet = new DeliveryQueue(stored, this.#services)
    told.outlets.set(row.id, outlet)
    this.#count(scope, 1)
    outlet.advance(told.generation)
  }

  #forget(outlet: DeliveryQueue): void {
    const { scope, row: { taskId, id } } = outlet
    const told = this.#tasks.get(taskId)
    if (told?.outlets.get(id) !== outlet) return
    told.outlets.delete(id)
    this.#count(scope, -1)
    this.#tidy(taskId)
  }

  #count(scope: Scope, change: number): void {
    const name = nameOf(scope)
    const count = this.countOf(scope) + change
    if (count === 0) this.#counts.delete(name)
    else this.#counts.set(name, count)
  }

  #toldOf(taskId: string): Told {
    const known = this.#tasks.get(taskId)
    if (known) return known
    const told: Told = { generation: 0, outlets: new Map(), reads: 0 }
    this.#tasks.set(taskId, told)
    return told
  }

  /** Forgets a task of which nothing is told. */
  #tidy(taskId: string): void {
    const told = this.#tasks.get(taskId)
    if (told && told.outlets.size === 0 && told.reads === 0 && !this.#isReading) this.#tasks.delete(taskId)
  }
}

function nameOf({ tenant, principal }: Scope): string {
  return contextName({ tenant, principal, contextId: '' })
}
