import { appendItem, NONE, ReleasingMap } from '../primitives/collections.ts'
import { onAbort } from '../primitives/event-loop.ts'
import type { Scope } from '../store/rows.ts'
import {
  type Erasure,
  isSameScope,
  OPENING_GENERATION,
  type Store,
  type TaskEntry,
  type TaskEvent
} from '../store/store.ts'
import { isLast } from '../store/task-record.ts'

/** Receives the entries of a task's log after their commit, in order and without a gap. */
export interface FeedListener {
  /** Scope of the caller. */
  readonly scope: Scope
  /** The context of a task that may not be stored yet. */
  readonly contextId?: string | undefined
  onEntries(entries: readonly TaskEntry[]): void
  /** The task has this generation, but the entries were not published: read the events from the log. */
  onGap(generation: number): void
  /** No more events follow, because the task was removed or the runtime closes. */
  onClosed(error: unknown): void
}

/**
 * The listeners of one task. Most tasks have one, for which a Set would take as much memory as the rest of the
 * subscription.
 */
type Listeners = readonly [FeedListener] | Set<FeedListener>

/** Subscriptions by task. In a cluster, the events of tasks of other nodes are published here too. */
export class TaskSubscriptions {
  readonly #listeners = new ReleasingMap<Listeners>()
  /** Called when a task gets its first listener; its result when the last one leaves. */
  followed: ((taskId: string, scope: Scope) => () => void) | undefined
  readonly #left = new Map<string, () => void>()

  /** Adds a listener. */
  listen(taskId: string, listener: FeedListener): void {
    const others = this.#listeners.get(taskId)
    if (others instanceof Set) return void others.add(listener)
    this.#listeners.set(taskId, others ? new Set(others).add(listener) : [listener])
    if (this.followed && !others) this.#left.set(taskId, this.followed(taskId, listener.scope))
  }

  /** Removes a listener, if it is there. */
  leave(taskId: string, listener: FeedListener): void {
    const listeners = this.#listeners.get(taskId)
    if (listeners instanceof Set ? !listeners.delete(listener) || listeners.size > 0 : listeners?.[0] !== listener)
      return
    this.#listeners.delete(taskId)
    this.#left.get(taskId)?.()
    this.#left.delete(taskId)
  }

  /** Whether a task has listeners. */
  has(taskId: string): boolean {
    return this.#listeners.has(taskId)
  }

  publish(taskId: string, entries: readonly TaskEntry[]): void {
    for (const listener of this.#listeners.get(taskId) ?? []) listener.onEntries(entries)
  }

  advance(taskId: string, generation: number): void {
    for (const listener of this.#listeners.get(taskId) ?? []) listener.onGap(generation)
  }

  close(error: unknown): void {
    for (const listener of this.#listeners.values().flatMap(listeners => [...listeners])) listener.onClosed(error)
  }

  /** Ids of the tasks with listeners of a scope, except those known to be in another context than `whose` names. */
  tasksOf(whose: Erasure): string[] {
    return this.#listeners
      .entries()
      .filter(([, listeners]) => of(whose, listeners).length > 0)
      .map(([taskId]) => taskId)
  }

  /** Closes a scope's listeners of a task. */
  end(whose: Erasure, taskId: string, error: unknown): void {
    for (const listener of of(whose, this.#listeners.get(taskId) ?? [])) listener.onClosed(error)
  }

  /** Number of tasks with listeners. */
  get size(): number {
    return this.#listeners.size
  }
}

function of(whose: Erasure, listeners: Iterable<FeedListener>): FeedListener[] {
  return [...listeners].filter(
    ({ scope, contextId = whose.contextId }) =>
      isSameScope(scope, whose) && (whose.contextId ?? contextId) === contextId
  )
}

/** Bytes of the log that one read stops after. */
const READ_BYTES = 1024 * 1024

/** Result of a reader for one event: the next one follows at once, after a promise, or, for `false`, not at all. */
export type ReadResult = Promise<void> | false | undefined

/** Sources of a tail's events. */
export interface TailSources {
  readonly subscriptions: TaskSubscriptions
  readonly store: Pick<Store, 'readEvents'>
  /** Maximum events buffered in memory. */
  readonly limits: { readonly bufferedEvents: number }
}

/** `signal` ends the tail early. `contextId` is the context of a task that may not be stored yet. */
interface TailOptions {
  readonly signal?: AbortSignal | undefined
  readonly contextId?: string | undefined
}

/**
 * The events of one task after a generation, each exactly once and in order, until the last one or until `signal`
 * aborts. It subscribes in the constructor; {@link startAfter} sets the generation. A reader that falls behind by more
 * than `limits.bufferedEvents` reads from the log, so that memory is bounded.
 */
export class TaskTail implements FeedListener {
  readonly scope: Scope
  readonly contextId: string | undefined
  /** Whether clients' messages after the first one may have reached the task since the tail listens. */
  mayHaveMessages = false
  readonly #sources: TailSources
  readonly #taskId: string
  #endsAfter = isLast
  #endsAfterMessage = false
  readonly #leaveSignal: (() => void) | undefined
  #waiting: readonly TaskEntry[] = NONE
  #after = 0
  #newest = 0
  #open = true
  #error: { error: unknown } | undefined
  #wake = asleep
  #reader: Reader | undefined
  /** Whether the reader has to wait: for itself, or for the log. */
  #isBusy = false

  constructor(sources: TailSources, scope: Scope, taskId: string, { signal, contextId }: TailOptions = {}) {
    this.scope = scope
    this.contextId = contextId
    this.#sources = sources
    this.#taskId = taskId
    sources.subscriptions.listen(taskId, this)
    this.#leaveSignal = signal && onAbort(signal, () => this.end())
    if (signal?.aborted) this.end()
  }

  /** Ends the tail after such an event. Default: after the task's last event. */
  until(endsAfter: (event: TaskEvent) => boolean): this {
    this.#endsAfter = endsAfter
    return this
  }

  /** Ends the tail after the next entry: an event or a message. */
  untilNext(): this {
    this.#endsAfterMessage = true
    return this.until(() => true)
  }

  /**
   * Skips entries up to this generation, which the reader already has. `newest` is the generation of the log, if it is
   * later.
   */
  startAfter(generation: number, newest = generation): this {
    this.#after = generation
    this.#newest = Math.max(this.#newest, newest)
    if (this.#waiting.length > 0) this.#waiting = this.#waiting.filter(event => event.generation > generation)
    return this
  }

  /** The next buffered event, if any. */
  take(): TaskEvent | undefined {
    while (this.#open && this.#waiting.length > 0) {
      const event = this.#passed((this.#waiting as TaskEntry[]).shift() as TaskEntry)
      if (event) return event
    }
    return undefined
  }

  /**
   * Resolves when {@link take} should be called again; `undefined` at the end. Throws the error that ended the tail.
   */
  more(): Promise<void> | undefined {
    return this.#unread() ?? (this.#open ? new Promise(resolve => (this.#wake = resolve)) : undefined)
  }

  /**
   * Calls `see` with every event until the end, directly when it is published: a promise per event would be a seventh
   * of the cost of a streamed event. Rejects with an error of `see`, and with the error that ended the tail.
   */
  each(see: (event: TaskEvent) => ReadResult): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#reader = { see, resolve, reject }
      this.#read(this.#reader)
    })
  }

  /** Waits for the end of the tail, and ignores its events. */
  drain(): Promise<void> {
    return this.each(() => undefined)
  }

  /** Ends the subscription. May be called twice. */
  end(): void {
    if (!this.#open) return
    this.#open = false
    this.#sources.subscriptions.leave(this.#taskId, this)
    this.#leaveSignal?.()
    this.#rouse()
  }

  /** Moves on to an entry. Gives the event that the reader gets; a message only moves the place. */
  #passed(entry: TaskEntry): TaskEvent | undefined {
    this.#after = entry.generation
    if (entry.update ? this.#endsAfter(entry) : this.#endsAfterMessage) this.end()
    return entry.update && entry
  }

  onEntries(entries: readonly TaskEntry[]): void {
    for (const entry of entries) {
      this.#newest = Math.max(this.#newest, entry.generation)
      if (!entry.update && entry.generation > OPENING_GENERATION) this.mayHaveMessages = true
      // Only the entry that follows the one before is taken. After a gap the log is read.
      const last = this.#waiting.at(-1)?.generation ?? this.#after
      if (entry.generation !== last + 1) continue
      if (this.#reader && !this.#isBusy) this.#read(this.#reader, entry)
      else if (this.#waiting.length < this.#sources.limits.bufferedEvents)
        this.#waiting = appendItem(this.#waiting, entry)
    }
    if (this.#waiting.length > 0 || this.#newest > this.#after) this.#rouse()
  }

  onGap(generation: number): void {
    this.mayHaveMessages = true
    this.#newest = Math.max(this.#newest, generation)
    this.#rouse()
  }

  onClosed(error: unknown): void {
    this.#error = { error }
    this.end()
  }

  /** Gives the reader `published`, then the waiting events, until the reader has to wait. */
  #read(reader: Reader, published?: TaskEntry): void {
    this.#isBusy = true
    try {
      for (let event = (published && this.#passed(published)) ?? this.take(); event; event = this.take()) {
        const seen = reader.see(event)
        if (seen === false) this.end()
        else if (seen) return this.#readAfter(seen, reader)
      }
      const unread = this.#unread()
      if (unread) this.#readAfter(unread, reader)
      else if (this.#open) this.#isBusy = false
      else reader.resolve()
    } catch (error) {
      // The commit pipeline must not get this error.
      reader.reject(error)
    }
  }

  #readAfter(wait: Promise<void>, reader: Reader): void {
    wait.then(() => this.#read(reader), reader.reject)
  }

  /** Wakes the waiting reader, once, because resolving a promise again is slow. */
  #rouse(): void {
    if (this.#reader && !this.#isBusy) this.#read(this.#reader)
    const wake = this.#wake
    this.#wake = asleep
    wake()
  }

  /** Reads from the log if the next event is only there. Throws the error that ended the tail. */
  #unread(): Promise<void> | undefined {
    if (this.#error) throw this.#error.error
    return this.#open && this.#newest > this.#after ? this.#readLog() : undefined
  }

  async #readLog(): Promise<void> {
    const { store, limits } = this.#sources
    const announced = this.#newest
    const read = await store.readEvents(this.scope, this.#taskId, this.#after, limits.bufferedEvents, READ_BYTES)
    if (read.length > 0) this.#waiting = read
    else {
      // Only messages were announced. The next event is read from the log, since its place is not known here.
      if (this.#newest === announced) this.#newest = this.#after
      if (this.#endsAfterMessage) this.end()
    }
  }
}

/** A reader of all events: a function, and the functions that settle its promise. */
interface Reader {
  readonly see: (event: TaskEvent) => ReadResult
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

/** The wake function while no reader waits. */
function asleep(): void {}
