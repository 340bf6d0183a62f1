import type { Feeds } from './feeds.ts'
import { onAbort } from './on-abort.ts'
import type { Scope, Store, TaskEvent } from './store.ts'

/** What a tail reads. `endsAfter` names the last event; `limit` is how many events may wait in memory. */
export interface TailOptions {
  readonly feeds: Feeds
  readonly store: Store
  readonly scope: Scope
  readonly taskId: string
  readonly limit: number
  readonly endsAfter: (event: TaskEvent) => boolean
  readonly signal?: AbortSignal | undefined
}

/**
 * The events of one task after a generation, each exactly once and in order, until the last one or until `signal`
 * aborts. It listens from the moment it is made; {@link startAfter} then says from which generation on it tells.
 * A reader that falls behind by more than `limit` events reads on from the log, so that it costs no more memory.
 */
export class TaskTail {
  readonly #options: TailOptions
  readonly #stopListening: () => void
  #waiting: TaskEvent[] = []
  #after = 0
  #newest = 0
  #open = true
  #isDrained = false
  #error: { error: unknown } | undefined
  #wake = () => {}

  constructor(options: TailOptions) {
    this.#options = options
    const stop = options.feeds.listen(options.taskId, {
      scope: options.scope,
      told: events => this.#told(events),
      advanced: generation => this.#advanced(generation),
      closed: error => this.#fail(error)
    })
    const stayed = options.signal && onAbort(options.signal, () => this.end())
    this.#stopListening = () => {
      stop()
      stayed?.()
    }
    if (options.signal?.aborted) this.end()
  }

  /**
   * Leaves out what the reader already has: every event up to this generation. `newest` is that of the log, if it is further;
   * `told` are the first events after this generation, if they were told before it listened.
   */
  startAfter(generation: number, newest = generation, told: readonly TaskEvent[] = []): this {
    this.#after = generation
    this.#newest = Math.max(this.#newest, newest, told.at(-1)?.generation ?? 0)
    this.#waiting = [...told, ...this.#waiting.filter(event => event.generation > generation)]
    return this
  }

  /** The next event, if there is one now. */
  take(): TaskEvent | undefined {
    const event = this.#open ? this.#waiting.shift() : undefined
    return event && this.#passed(event)
  }

  /** The next event, as soon as there is one; `undefined` when no more comes. Rejects if that is because of an error. */
  async taken(): Promise<TaskEvent | undefined> {
    await this.#filled()
    const event = this.take()
    if (!event && this.#error) throw this.#error.error
    return event
  }

  /** Reads on to the end, for the sake of having got there. */
  async drain(): Promise<void> {
    this.#isDrained = true
    while (this.#open) {
      await this.#filled()
      while (this.take()) continue
    }
    if (this.#error) throw this.#error.error
  }

  /** Listens no more: nothing that comes is told. May be called twice. */
  end(): void {
    this.#open = false
    this.#stopListening()
    this.#wake()
  }

  /** Waits until there is an event to pass, or nothing more to come. */
  async #filled(): Promise<void> {
    while (this.#open && this.#waiting.length === 0) {
      if (this.#newest > this.#after) await this.#readLog()
      else await new Promise<void>(resolve => (this.#wake = resolve))
    }
  }

  #passed(event: TaskEvent): TaskEvent {
    this.#after = event.generation
    if (this.#options.endsAfter(event)) this.end()
    return event
  }

  #told(events: readonly TaskEvent[]): void {
    for (const event of events) {
      this.#newest = event.generation
      const last = this.#waiting.at(-1)?.generation ?? this.#after
      if (event.generation !== last + 1) continue
      if (this.#isDrained && this.#waiting.length === 0) this.#passed(event)
      else if (this.#waiting.length < this.#options.limit) this.#waiting.push(event)
    }
    if (this.#waiting.length > 0 || this.#newest > this.#after) this.#wake()
  }

  #advanced(generation: number): void {
    this.#newest = Math.max(this.#newest, generation)
    this.#wake()
  }

  async #readLog(): Promise<void> {
    const { store, scope, taskId, limit } = this.#options
    this.#waiting = await store.readEvents(scope, taskId, this.#after, limit)
    if (this.#waiting.length === 0) this.#newest = this.#after
  }

  #fail(error: unknown): void {
    this.#error = { error }
    this.end()
  }
}
