import { A2AError } from '../machines/protocol/errors.ts'
import type { ContextServices } from './context-services.ts'
import { LiveContext } from './live-context.ts'
import { contextName, type ContextKey } from './store.ts'

/**
 * The contexts in memory, by tenant, principal and id; the others are in the store and come back when they are needed.
 * At most `limits.liveContexts`: idle ones leave first, the longest unused before the others.
 */
export class Contexts {
  readonly #services: ContextServices
  readonly #live = new Map<string, LiveContext>()
  readonly #loading = new Map<string, Promise<LiveContext>>()
  #closed = false

  constructor(services: ContextServices) {
    this.#services = services
  }

  /** How many are in memory. */
  get size(): number {
    return this.#live.size
  }

  /** The context of this key, from memory or from the store; a new one if nobody has used the key yet. */
  async get(key: ContextKey): Promise<LiveContext> {
    const name = contextName(key)
    const live = this.#live.get(name)
    if (live) {
      this.#live.delete(name)
      this.#live.set(name, live)
      return live
    }
    const loading = this.#loading.get(name) ?? this.#load(key, name)
    return loading
  }

  /** Restores the contexts that have tasks which have not ended, so that their work goes on. */
  async resume(): Promise<void> {
    for (const key of await this.#services.store.unfinishedContexts()) {
      await this.get(key).catch(error => this.#services.logger.error('a context could not be loaded', { contextId: key.contextId, error }))
    }
  }

  /** Stops every context. What is committed stays. */
  close(): void {
    this.#closed = true
    for (const live of this.#live.values()) live.stop()
    this.#live.clear()
  }

  #load(key: ContextKey, name: string): Promise<LiveContext> {
    const loading = this.#services.store
      .loadContext(key)
      .then(stored => {
        if (this.#closed) throw new A2AError('Overloaded', 'The agent is shutting down. Send the request again later.')
        this.#makeRoom()
        const live = new LiveContext(key, stored, this.#services, taskIds => void this.#reload(live, taskIds))
        this.#live.set(name, live)
        return live
      })
      .finally(() => this.#loading.delete(name))
    this.#loading.set(name, loading)
    return loading
  }

  /**
   * A context whose commit failed starts again from what the store holds, so that its work goes on; who listens to tasks
   * of which nobody knows whether they were written hears of what was.
   */
  async #reload({ key }: LiveContext, taskIds: ReadonlySet<string>): Promise<void> {
    const { store, feeds, logger } = this.#services
    this.#live.delete(contextName(key))
    try {
      for (const taskId of taskIds) {
        const stored = await store.readTask(key, taskId, { historyLength: 0, artifacts: false })
        if (stored) feeds.advance(taskId, stored.generation)
      }
      await this.get(key)
    } catch (error) {
      logger.error('a context could not be loaded again', { contextId: key.contextId, error })
    }
  }

  #makeRoom(): void {
    if (this.#live.size < this.#services.limits.liveContexts) return
    for (const [name, live] of this.#live) {
      if (!live.isIdle) continue
      live.stop()
      this.#live.delete(name)
      return
    }
    throw new A2AError('Overloaded', 'The agent has as many conversations under way as it takes. Send the request again later.', {
      retryAfterMs: 1000
    })
  }
}
