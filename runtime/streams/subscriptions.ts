import { ReleasingMap } from '../primitives/collections.ts'
import type { Scope } from '../store/rows.ts'
import { isSameScope, type Erasure, type TaskEvent } from '../store/store.ts'

/** Receives a task's events after their commit, in order and without a gap. */
export interface FeedListener {
  /** Scope of the caller. */
  readonly scope: Scope
  /** The context of a task that may not be stored yet. */
  readonly contextId?: string | undefined
  onEvents(events: readonly TaskEvent[]): void
  /** A client's message reached the task after its first one. It is no event, and precedes the next events. */
  onMessage?(): void
  /** The task has this generation, but the events were not published: read them from the log. */
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

  /** Tells events. `hasMessage`: a client's message reached the task before them. */
  publish(taskId: string, events: readonly TaskEvent[], hasMessage = false): void {
    for (const listener of this.#listeners.get(taskId) ?? []) {
      if (hasMessage) listener.onMessage?.()
      listener.onEvents(events)
    }
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
