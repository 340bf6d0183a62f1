import type { A2AError } from '../../machines/protocol/errors.ts'
import { isInvalidOutput } from '../authoring/checked-words.ts'
import { ReleasingMap, TwoGenerationCache } from '../primitives/collections.ts'
import { isSameScope, type Erasure, type Scope, type TaskEvent } from '../store/store.ts'

/** Hears of a task's events once they are committed: in order and without a gap, while it listens. */
export interface FeedListener {
  /** Who listens. */
  readonly scope: Scope
  /** The context of a task that may not be stored yet. */
  readonly contextId?: string | undefined
  told(events: readonly TaskEvent[]): void
  /** The task is known to have come to this generation, its events not being told: they are in the log. */
  advanced(generation: number): void
  /** The task is gone, or the runtime closes: nothing will be told any more. */
  closed(error: unknown): void
}

/** How long it is remembered why a task failed. */
const REMEMBERED_MS = 60_000

/** Who listens to which task. Holds a task only as long as someone does. */
export class TaskSubscriptions {
  readonly #invalidOutputs = new TwoGenerationCache<{ error?: A2AError }>(() => ({}), REMEMBERED_MS)
  readonly #listeners = new ReleasingMap<Set<FeedListener>>()

  /** Adds a listener. The answer removes it, and may be called twice. */
  listen(taskId: string, listener: FeedListener): () => void {
    const listeners = this.#listeners.get(taskId) ?? new Set()
    this.#listeners.set(taskId, listeners.add(listener))
    return () => {
      if (listeners.delete(listener) && listeners.size === 0) this.#listeners.delete(taskId)
    }
  }

  /** Whether somebody listens to a task. */
  has(taskId: string): boolean {
    return this.#listeners.has(taskId)
  }

  /** The work of a task has failed. An error is remembered for a minute if it says that the agent's output is not valid A2A. */
  failed(taskId: string, error: unknown, nowMs: number): void {
    if (isInvalidOutput(error)) this.#invalidOutputs.get(taskId, nowMs).error = error
  }

  /** Why the output of a task's agent was not valid A2A, for the callers that wait for the end of the task. */
  invalidOutput(taskId: string): A2AError | undefined {
    return this.#invalidOutputs.find(taskId)?.error
  }

  publish(taskId: string, events: readonly TaskEvent[]): void {
    for (const listener of this.#listeners.get(taskId) ?? []) listener.told(events)
  }

  advance(taskId: string, generation: number): void {
    for (const listener of this.#listeners.get(taskId) ?? []) listener.advanced(generation)
  }

  close(error: unknown): void {
    for (const listener of this.#listeners.values().flatMap(listeners => [...listeners])) listener.closed(error)
  }

  /** The tasks to which somebody of a scope listens, without those that are known to be in another context than the one that is named. */
  tasksOf(whose: Erasure): string[] {
    return this.#listeners.entries().filter(([, listeners]) => of(whose, listeners).length > 0).map(([taskId]) => taskId)
  }

  /** Tells the listeners of a scope to a task that nothing will be told any more. */
  end(whose: Erasure, taskId: string, error: unknown): void {
    for (const listener of of(whose, this.#listeners.get(taskId) ?? [])) listener.closed(error)
  }

  /** How many tasks are listened to. */
  get size(): number {
    return this.#listeners.size
  }
}

function of(whose: Erasure, listeners: Iterable<FeedListener>): FeedListener[] {
  return [...listeners].filter(({ scope, contextId = whose.contextId }) => isSameScope(scope, whose) && (whose.contextId ?? contextId) === contextId)
}
