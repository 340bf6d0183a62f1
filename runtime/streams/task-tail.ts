import { onAbort } from '../primitives/promises.ts'
import type { Scope, Store, TaskEvent } from '../store/store.ts'
import { isLast } from '../store/task-record.ts'
import type { TaskSubscriptions } from './subscriptions.ts'

/** How many bytes of the log are read at once, or one event that has more. */
const PIECE_BYTES = 1024 * 1024

/** What who sees an event says of the next: it is told at once, after a promise, or, by `false`, no more is. */
export type Seen = Promise<void> | false | undefined

/** Where a tail has its events from. */
export interface TailSources {
  readonly feeds: TaskSubscriptions
  readonly store: Store
  /** How many events may wait in memory. */
  readonly limits: { readonly bufferedEvents: number }
}

/** What ends a tail early, and in which context its task is, which may not be stored yet. */
export interface TailOptions {
  readonly signal?: AbortSignal | undefined
  readonly contextId?: string | undefined
}

/**
 * The events of one task after a generation, each exactly once and in order, until the last one or until `signal`
 * aborts. It listens from the moment it is made; {@link startAfter} then says from which generation on it tells. A
 * reader that falls behind by more than `limits.bufferedEvents` reads on from the log, so that it costs no more memory.
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
  /** Who gets what is told at once. */
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

  /** Ends after such an event. Without it after the last event of the task. */
  until(endsAfter: (event: TaskEvent) => boolean): this {
    this.#endsAfter = endsAfter
    return this
  }

  /** Leaves out what the reader already has: every event up to this generation. `newest` is that of the log, if it is further. */
  startAfter(generation: number, newest = generation): this {
    this.#after = generation
    this.#newest = Math.max(this.#newest, newest)
    this.#waiting = this.#waiting.filter(event => event.generation > generation)
    return this
  }

  /** The next event, if there is one now. */
  take(): TaskEvent | undefined {
    const event = this.#open ? this.#waiting.shift() : undefined
    return event && this.#passed(event)
  }

  /**
   * Resolves when it is time to {@link take} again; `undefined` when no more comes. Throws the error because of which that is
   * so. Until then `reader` gets what is told as it is told, and goes on as long as it answers `true`.
   */
  more(reader?: (event: TaskEvent) => boolean): Promise<void> | undefined {
    if (this.#error) throw this.#error.error
    if (!this.#open) return undefined
    if (this.#newest > this.#after) return this.#readLog()
    this.#reader = reader
    return new Promise(resolve => (this.#wake = resolve))
  }

  /**
   * Hands every event to `see` until the end, as soon as it is told: a promise for each is a seventh of all that a streamed
   * event takes. Rejects with what it throws, and with the error because of which no more comes.
   */
  async each(see: (event: TaskEvent) => Seen): Promise<void> {
    let busy: Promise<void> | undefined
    const reader = (event: TaskEvent) => {
      try {
        const seen = see(event)
        if (seen === false) this.end()
        busy = seen || undefined
      } catch (error) {
        // Who tells must not get it.
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

  /** Reads on to the end, for the sake of having got there. */
  drain(): Promise<void> {
    return this.each(() => undefined)
  }

  /** Listens no more: nothing that comes is told. May be called twice. */
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

  /** Wakes up who waits, once: to resolve a promise again is slow. */
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

/** Wakes nobody up. */
function asleep(): void {}
