import { TokenBucket } from '../../../runtime/access/shares.ts'
import type { Clock } from '../../../runtime/ports/clock.ts'
import { ReleasingMap } from '../../../runtime/primitives/collections.ts'
import { isErased, type Commit, type Erasure } from '../../../runtime/store/store.ts'
import type { LiveActors } from '../../../runtime/telemetry-port.ts'
import { ContextRecord, type RecordListener } from './context-record.ts'

/** The number of contexts kept, the newest. */
export const REMEMBERED_CONTEXTS = 100

/**
 * The number of contexts that may start being recorded per minute: so many at once, then evenly. It bounds the cost of
 * many new contexts, of which nobody can look at each. Watched ones always are.
 */
export const RECORDED_A_MINUTE = 600

/**
 * The bound of all recorded steps, in bytes. Above it the oldest contexts are dropped, then the oldest steps of watched
 * ones.
 */
export const RECORDED_BYTES = 64 * 1024 * 1024

/** Receives the events of all recorded contexts. */
export interface RecorderListener extends RecordListener {
  /** A context is recorded from now on, with its present actors. */
  began(actors: LiveActors): void
}

/** Records the actors of contexts, while someone uses the inspector. */
export class Recorder {
  readonly #clock: Clock
  readonly #listener: RecorderListener
  readonly #live = new ReleasingMap<LiveActors>()
  /** By context name, oldest first. */
  readonly #records = new ReleasingMap<ContextRecord>()
  /** The ids of watched contexts, once per watcher. */
  readonly #watched: string[] = []
  readonly #budget = new TokenBucket(RECORDED_A_MINUTE)
  #bytes = 0
  readonly #mostBytes: number

  constructor(clock: Clock, listener: RecorderListener, mostBytes = RECORDED_BYTES) {
    this.#clock = clock
    this.#listener = { ...listener, grew: bytes => this.#grew(bytes) }
    this.#mostBytes = mostBytes
  }

  /** The recorded actors. */
  get recorded(): LiveActors[] {
    return this.#records.values().flatMap(({ actors }) => actors ?? [])
  }

  /** The contexts in memory. */
  get live(): LiveActors[] {
    return this.#live.values()
  }

  liveOf(name: string): LiveActors | undefined {
    return this.#live.get(name)
  }

  /** The record of a context; if several callers have a context of that id, the newest. */
  find(contextId: string): ContextRecord | undefined {
    return this.#records.values().findLast(({ key }) => key.contextId === contextId)
  }

  /** Records a context regardless of the limit. Returns the function that ends this. */
  watch(contextId: string): () => void {
    this.#watched.push(contextId)
    if (!this.find(contextId)?.actors) {
      for (const actors of this.#live.values()) if (actors.key.contextId === contextId) this.#record(actors)
    }
    return () => void this.#watched.splice(this.#watched.indexOf(contextId), 1)
  }

  isWatched(contextId: string): boolean {
    return this.#watched.includes(contextId)
  }

  entered(actors: LiveActors): void {
    const { name } = actors
    this.#live.set(name, actors)
    if (this.#records.has(name) || this.isWatched(actors.key.contextId) || this.#useBudget()) this.#record(actors)
  }

  left({ name }: LiveActors): void {
    this.#live.delete(name)
    const record = this.#records.get(name)
    if (!record) return
    record.detach()
    this.#listener.stirred()
  }

  committed(commit: Commit, { name }: LiveActors): void {
    this.#records.get(name)?.committed(commit)
  }

  erased(whose: Erasure): void {
    for (const [name, { key }] of this.#records.entries()) {
      if (isErased(whose, key)) this.#drop(name)
    }
  }

  /** Stops recording, and keeps what was recorded. */
  pause(): void {
    for (const record of this.#records.values()) record.detach()
    this.#live.clear()
  }

  /** Stops recording, and drops everything. */
  stop(): void {
    this.pause()
    this.#records.clear()
    this.#bytes = 0
  }

  /**
   * Drops the oldest contexts, except watched ones, while there are too many bytes; then the oldest steps of the
   * largest.
   */
  #grew(bytes: number): void {
    this.#bytes += bytes
    for (const [name, { key, bytes }] of this.#bytes > this.#mostBytes ? this.#records.entries() : []) {
      if (this.#bytes <= this.#mostBytes) return
      if (bytes > 0 && !this.isWatched(key.contextId)) this.#drop(name)
    }
    if (this.#bytes <= this.#mostBytes) return
    for (const record of this.#records.values()) record.shrinkTo(this.#mostBytes / 2 / this.#records.values().length)
  }

  #drop(name: string): void {
    const record = this.#records.get(name)
    record?.detach()
    this.#records.delete(name)
    this.#bytes -= record?.bytes ?? 0
  }

  #record(actors: LiveActors): void {
    const { name } = actors
    const record = this.#records.get(name) ?? new ContextRecord(actors.key, this.#clock, this.#listener)
    this.#records.delete(name)
    this.#records.set(name, record)
    record.attach(actors)
    this.#listener.began(actors)
    if (this.#records.size <= REMEMBERED_CONTEXTS) return
    for (const [other, oldest] of this.#records.entries()) {
      if (this.#records.size <= REMEMBERED_CONTEXTS) break
      if (!this.isWatched(oldest.key.contextId)) this.#drop(other)
    }
  }

  #useBudget(): boolean {
    const nowMs = this.#clock.now()
    if (this.#budget.waitMs(1, nowMs) > 0) return false
    this.#budget.use(1, nowMs)
    return true
  }
}
