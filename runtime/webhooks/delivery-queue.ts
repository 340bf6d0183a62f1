import { crc32 } from 'node:zlib'
import type { Logger } from '../ports/logger.ts'
import { killPoint } from '../primitives/kill-points.ts'
import type { StoredWebhook, WebhookNote, WebhookProgress, WebhookRow, Scope } from '../store/rows.ts'
import { contextName, type Store } from '../store/store.ts'
import { isLast } from '../store/task-record.ts'
import type { Counters } from '../telemetry/counters.ts'
import { afterAttempt, deliver, type DeliveryServices } from './delivery.ts'

/** Pause of a queue after an error of the store. */
const TROUBLED_MS = 1000

/** Dependencies of delivery queues. */
export interface QueueServices extends DeliveryServices {
  readonly logger: Logger
  readonly counters: Counters
  /** Whether each tenant has a share of concurrent posts. */
  readonly sharesByTenant: boolean
  readonly slots: KeyedSemaphore
  readonly notes: ProgressWriter
  /** Called when a queue is done. */
  over(queue: DeliveryQueue): void
}

/**
 * Delivers the events of a task to one webhook, in order, one at a time, each until it is received, rejected or given
 * up. Progress is stored before the next delivery, so a kill of the process repeats at most the last one, with the same
 * id.
 */
export class DeliveryQueue {
  readonly scope: Scope
  readonly row: WebhookRow
  readonly #services: QueueServices
  readonly #hasEnded: boolean
  readonly #slot: Slot
  /** Known generation of the task's newest event, or of a later message. */
  #generation: number
  /** Up to this generation there is nothing to deliver after the newest delivered event: only messages. */
  #emptyUntil = 0
  /** Generation of the event that was posted last. */
  #posted = 0
  #progress: WebhookProgress
  #timer: unknown
  /** Whether an attempt is running, or waits for its slot. */
  #isBusy = false
  #isOver = false
  #isStopped = false
  #stop: AbortController | undefined
  #trying: Promise<void> | undefined

  constructor({ scope, row, generation, hasEnded }: StoredWebhook, services: QueueServices) {
    this.scope = scope
    this.row = row
    this.#services = services
    this.#generation = generation
    this.#hasEnded = hasEnded
    this.#progress = row.progress
    const names = [
      `host ${new URL(row.webhook.url).host}`,
      `of ${contextName({ ...scope, contextId: '' })}`,
      ...(services.sharesByTenant ? [`tenant ${scope.tenant}`] : []),
      'all'
    ]
    this.#slot = { names, run: () => (this.#trying = this.#try()) }
  }

  /** Sets the generation of the task's newest event. */
  advance(generation: number): void {
    this.#generation = Math.max(this.#generation, generation)
    this.schedule()
  }

  /** Schedules the next attempt: now, or when it is due. */
  schedule(): void {
    if (this.#isBusy || this.#isOver) return
    const { clock, slots } = this.#services
    clock.clearTimeout(this.#timer)
    if (this.isUpToDate && !this.#hasEnded) return
    const waitMs = (this.#progress.dueAtMs ?? 0) - clock.now()
    if (waitMs > 0) {
      this.#timer = clock.setTimeout(() => this.schedule(), waitMs)
      return
    }
    this.#isBusy = true
    slots.enter(this.#slot)
  }

  /** Starts no more attempts. Resolves when the running one is done. */
  async finish(): Promise<void> {
    this.#isOver = true
    this.#services.clock.clearTimeout(this.#timer)
    this.#services.slots.withdraw(this.#slot)
    await this.#trying
  }

  /** Stops at once, and aborts a running attempt. */
  stop(): void {
    this.#isStopped = true
    this.#stop?.abort()
    void this.finish()
  }

  /** Generation of the newest delivered event. */
  get #delivered(): number {
    return this.#progress.told
  }

  /** Whether every known event is delivered. */
  get isUpToDate(): boolean {
    return Math.max(this.#delivered, this.#emptyUntil) >= this.#generation
  }

  async #try(): Promise<void> {
    const { clock, logger } = this.#services
    const { taskId, id } = this.row
    try {
      const next = await this.#next()
      if (next && !this.#isStopped) await this.#keep(next)
    } catch (error) {
      if (!this.#isStopped) logger.error('an event could not be delivered to a webhook', { taskId, webhook: id, error })
      this.#progress = { ...this.#progress, dueAtMs: clock.now() + TROUBLED_MS }
    }
    this.#isBusy = false
    this.schedule()
  }

  /**
   * Delivers the next event, if there is one. Gives the new progress; `gone` if the webhook is to be deleted.
   */
  async #next(): Promise<WebhookProgress | 'gone' | undefined> {
    if (this.isUpToDate) return { ...this.#progress, end: 'told' }
    const { store, clock, limits, counters } = this.#services
    const { taskId, id } = this.row
    const newest = this.#generation
    const [event] = await store.readEvents(this.scope, taskId, this.#delivered, 1)
    if (!event && (await store.readTask(this.scope, taskId, { historyLength: 0, artifacts: false }))) {
      this.#emptyUntil = newest
      return undefined
    }
    if (!event || this.#isStopped) return 'gone'
    this.#stop = new AbortController()
    killPoint('before delivery')
    const answer = await deliver(this.#services, this.scope, this.row, event, this.#stop.signal)
    killPoint('delivery answered')
    this.#stop = undefined
    const { generation } = event
    this.#posted = generation
    const spread = crc32(`${taskId}/${id}/${generation}/${this.#progress.tries}`) / 2 ** 32
    const after = afterAttempt(this.#progress, answer, {
      generation,
      isLast: isLast(event),
      nowMs: clock.now(),
      spread,
      triesMs: limits.webhookTriesMs
    })
    counters.deliveries[resultOf(after, generation)] += 1
    return after
  }

  /** Stores the progress, or deletes the webhook. */
  async #keep(next: WebhookProgress | 'gone'): Promise<void> {
    const { store, notes, logger, counters } = this.#services
    const { scope } = this
    const { taskId, id } = this.row
    if (next === 'gone') {
      await store.deleteWebhook(scope, taskId, id)
      return this.#end()
    }
    this.#progress = next
    const delivered = this.#delivered
    const isThere = await notes.write({ scope, taskId, id, progress: next })
    if (next.rejected?.generation === delivered)
      logger.warn('a receiver rejected an event', { taskId, webhook: id, ...next.rejected })
    if (next.end === 'given up') counters.webhooksGivenUp += 1
    if (next.end === 'given up')
      logger.warn('a webhook is given up', {
        taskId,
        webhook: id,
        generation: this.#posted,
        tries: next.tries,
        failure: next.failure
      })
    if (next.end || !isThere) this.#end()
  }

  #end(): void {
    this.#isOver = true
    this.#services.over(this)
  }
}

/** The result of an attempt to deliver an event. */
function resultOf(after: WebhookProgress | 'gone', generation: number): keyof Counters['deliveries'] {
  if (after === 'gone' || after.told < generation) return 'failed'
  return after.rejected?.generation === generation ? 'rejected' : 'received'
}

/**
 * Semaphore with a limit per name. A slot has several names and needs a place in each. Slots that wait for a full name
 * are served in order, and do not delay slots without that name.
 */
export class KeyedSemaphore {
  readonly #limitOf: (name: string) => number
  readonly #running = new Map<string, number>()
  readonly #waiting = new Map<string, Set<Slot>>()

  constructor(limitOf: (name: string) => number) {
    this.#limitOf = limitOf
  }

  /** Runs a slot as soon as all of its names have a free place. */
  enter(slot: Slot): void {
    const full = slot.names.find(name => !this.#isBelowLimit(name))
    if (full === undefined) return this.#run(slot)
    const waiting = this.#waiting.get(full) ?? new Set()
    this.#waiting.set(full, waiting.add(slot))
  }

  /** Removes a waiting slot. */
  withdraw(slot: Slot): void {
    for (const name of slot.names) this.#forget(name, slot)
  }

  /** Number of running slots with a name. */
  runningOf(name: string): number {
    return this.#running.get(name) ?? 0
  }

  #run(slot: Slot): void {
    for (const name of slot.names) this.#running.set(name, this.runningOf(name) + 1)
    void slot.run().finally(() => this.#leave(slot))
  }

  #leave({ names }: Slot): void {
    for (const name of names) {
      const running = this.runningOf(name) - 1
      if (running === 0) this.#running.delete(name)
      else this.#running.set(name, running)
    }
    for (const name of names) this.#admit(name)
  }

  #admit(name: string): void {
    for (const slot of this.#waiting.get(name) ?? []) {
      if (!this.#isBelowLimit(name)) return
      this.#forget(name, slot)
      this.enter(slot)
    }
  }

  #forget(name: string, slot: Slot): void {
    const waiting = this.#waiting.get(name)
    if (waiting?.delete(slot) && waiting.size === 0) this.#waiting.delete(name)
  }

  #isBelowLimit(name: string): boolean {
    return this.runningOf(name) < this.#limitOf(name)
  }
}

/** An asynchronous function for a {@link KeyedSemaphore}. */
interface Slot {
  readonly names: readonly string[]
  /** Never rejects. */
  readonly run: () => Promise<void>
}

interface Waiting {
  readonly note: WebhookNote
  readonly settle: (outcome: Promise<boolean>) => void
}

/** Writes the progress of webhooks in batches: entries that arrive during a write share the next one. */
export class ProgressWriter {
  readonly #store: Store
  #waiting: Waiting[] = []
  #writing: Promise<void> | undefined

  constructor(store: Store) {
    this.#store = store
  }

  /** Resolves when the progress is stored, with whether the webhook exists. Rejects if the store fails. */
  write(note: WebhookNote): Promise<boolean> {
    return new Promise(settle => {
      this.#waiting.push({ note, settle })
      this.#writing ??= this.#writeAll()
    })
  }

  /** Resolves when nothing waits to be written. */
  async settled(): Promise<void> {
    while (this.#writing) await this.#writing
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const written = this.#waiting
      this.#waiting = []
      const answers = this.#store.noteWebhooks(written.map(({ note }) => note))
      for (const [i, { settle }] of written.entries()) settle(answers.then(each => each[i] === true))
      await answers.catch(() => {})
    }
    // Synchronous with the last check, so that no entry is missed.
    this.#writing = undefined
  }
}
