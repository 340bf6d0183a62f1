import { onAbort } from '../primitives/promises.ts'
import type { Scope, Store, TaskEvent } from '../store/store.ts'
import { isLast } from '../store/task-record.ts'
import type { TaskSubscriptions } from './subscriptions.ts'

/** Bytes of the log that one read stops after. */
const PIECE_BYTES = 1024 * 1024

/** Result of a reader for one event: the next one follows at once, after a promise, or, for `false`, not at all. */
export type Seen = Promise<void> | false | undefined

/** Sources of a tail's events. */
export interface TailSources {
  readonly feeds: TaskSubscriptions
  readonly store: Store
  /** Maximum events buffered in memory. */
  readonly limits: { readonly bufferedEvents: number }
}

/** `signal` ends the tail early. `contextId` is the context of a task that may not be stored yet. */
export interface TailOptions {
  readonly signal?: AbortSignal | undefined
  readonly contextId?: string | undefined
}

/**
 * The events of one task after a generation, each exactly once and in order, until the last one or until `signal` aborts. It subscribes
 * in the constructor; {@link startAfter} sets the generation. A reader that falls behind by more than `limits.bufferedEvents` reads
 * from the log, so that memory is bounded.
 */
export class TaskTail {
  readonly #sources: TailSources
  readonly #scope: Scope
  readonly #taskId: string
  #endsAfter = isLast
  readonly #leaveFeed: () => void
  readonly #leaveSignal: (() => void) | undefined
  #waiting: TaskEvent[] = []
  #after = 0
  #newest = 0
  #open = true
  #error: { error: unknown } | undefined
  #wake = asleep
  /** Called directly with new events. */
  #reader: ((event: TaskEvent) => boolean) | undefined

  constructor(sources: TailSources, scope: Scope, taskId: string, { signal, contextId }: TailOptions = {}) {
    this.#sources = sources
    this.#scope = scope
    this.#taskId = taskId
    this.#leaveFeed = sources.feeds.listen(taskId, {
      scope,
      contextId,
      told: events => this.#told(events),
      advanced: generation => this.#advanced(generation),
      closed: error => this.#fail(error)
    })
    this.#leaveSignal = signal && onAbort(signal, () => this.end())
    if (signal?.aborted) this.end()
  }

  /** Ends the tail after such an event. Default: after the task's last event. */
  until(endsAfter: (event: TaskEvent) => boolean): this {
    this.#endsAfter = endsAfter
    return this
  }

  /** Skips events up to this generation, which the reader already has. `newest` is the generation of the log, if it is later. */
  startAfter(generation: number, newest = generation): this {
    this.#after = generation
    this.#newest = Math.max(this.#newest, newest)
    this.#waiting = this.#waiting.filter(event => event.generation > generation)
    return this
  }

  /** The next buffered event, if any. */
  take(): TaskEvent | undefined {
    const event = this.#open ? this.#waiting.shift() : undefined
    return event && this.#passed(event)
  }

  /**
   * Resolves when {@link take} should be called again; `undefined` at the end. Throws the error that ended the tail. Until then, `reader`
   * is called directly with new events, as long as it returns `true`.
   */
  more(reader?: (event: TaskEvent) => boolean): Promise<void> | undefined {
    if (this.#error) throw this.#error.error
    if (!this.#open) return undefined
    if (this.#newest > this.#after) return this.#readLog()
    this.#reader = reader
    return new Promise(resolve => (this.#wake = resolve))
  }

  /**
   * Calls `see` with every event until the end, directly when it is told: a promise per event would be a seventh of the cost of a
   * streamed event. Rejects with an error of `see`, and with the error that ended the tail.
   */
  async each(see: (event: TaskEvent) => Seen): Promise<void> {
    let busy: Promise<void> | undefined
    const reader = (event: TaskEvent) => {
      try {
        const seen = see(event)
        if (seen === false) this.end()
        busy = seen || undefined
      } catch (error) {
        // The commit pipeline must not get this error.
        busy = Promise.reject(error)
      }
      return busy === undefined
    }
    for (;;) {
      const event = this.take()
      const more = event ? undefined : this.more(reader)
      if (event) reader(event)
      else if (more) await more
      else return
      if (busy) await busy
    }
  }

  /** Waits for the end of the tail, and ignores its events. */
  drain(): Promise<void> {
    return this.each(() => undefined)
  }

  /** Ends the subscription. May be called twice. */
  end(): void {
    this.#open = false
    this.#leaveFeed()
    this.#leaveSignal?.()
    this.#rouse()
  }

  #passed(event: TaskEvent): TaskEvent {
    this.#after = event.generation
    if (this.#endsAfter(event)) this.end()
    return event
  }

  #told(events: readonly TaskEvent[]): void {
    for (const event of events) {
      this.#newest = Math.max(this.#newest, event.generation)
      const last = this.#waiting.at(-1)?.generation ?? this.#after
      if (event.generation !== last + 1) continue
      if (this.#reader && this.#waiting.length === 0) this.#handOver(event, this.#reader)
      else if (this.#waiting.length < this.#sources.limits.bufferedEvents) this.#waiting.push(event)
    }
    if (this.#waiting.length > 0 || this.#newest > this.#after) this.#rouse()
  }

  #advanced(generation: number): void {
    this.#newest = Math.max(this.#newest, generation)
    this.#rouse()
  }

  #handOver(event: TaskEvent, reader: (event: TaskEvent) => boolean): void {
    this.#passed(event)
    if (!reader(event)) this.#rouse()
  }

  /** Wakes the waiting reader, once, because resolving a promise again is slow. */
  #rouse(): void {
    const wake = this.#wake
    this.#wake = asleep
    this.#reader = undefined
    wake()
  }

  async #readLog(): Promise<void> {
    const { store, limits } = this.#sources
    this.#waiting = await store.readEvents(this.#scope, this.#taskId, this.#after, limits.bufferedEvents, PIECE_BYTES)
    if (this.#waiting.length === 0) this.#newest = this.#after
  }

  #fail(error: unknown): void {
    this.#error = { error }
    this.end()
  }
}

/** The wake function while no reader waits. */
function asleep(): void {}
