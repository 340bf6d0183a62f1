import { A2AError } from '../machines/protocol/errors.ts'
import type { ContextServices } from './context-services.ts'
import { LiveContext } from './live-context.ts'
import { contextName, type ContextKey, type StoredContext } from './store.ts'
import { Wakes } from './wakes.ts'

/**
 * The contexts in memory, by tenant, principal and id; the others are in the store, and come back when a message needs
 * them or their time has come. Of those in which nothing is under way `limits.idleContexts` stay, the longest unused leave;
 * in all there are at most `limits.liveContexts`.
 */
export class Contexts {
  readonly #services: ContextServices
  readonly #wakes: Wakes
  readonly #live = new Map<string, LiveContext>()
  readonly #loading = new Map<string, Promise<LiveContext>>()
  /** The names of those that broke, and are to come back: their work was not at work at the end of a process. */
  readonly #broken = new Set<string>()
  /** Those at rest, the longest unused first. One that a timer has just stirred may still be among them. */
  readonly #resting = new Set<LiveContext>()
  #isClosed = false

  constructor(services: ContextServices) {
    this.#services = services
    this.#wakes = new Wakes(services, { has: key => this.#live.has(contextName(key)), wake: key => this.#wake(key) })
  }

  /** How many are in memory. */
  get size(): number {
    return this.#live.size
  }

  /** The context of this key, from memory or from the store; a new one if nobody has used the key yet. */
  async get(key: ContextKey): Promise<LiveContext> {
    const name = contextName(key)
    const live = this.#live.get(name)
    if (!live) return this.#loading.get(name) ?? this.#load(key, name)
    this.#resting.delete(live)
    return live
  }

  /** A new context, under a key that nobody has used. */
  create(key: ContextKey): LiveContext {
    if (this.#isClosed) throw shutDown()
    return this.#add(key, contextName(key), undefined)
  }

  /** Brings the contexts into memory whose work goes on, now, and from then on those in which something becomes due. */
  resume(): void {
    this.#wakes.start()
  }

  /** Tells every context that the process ends in order. Resolves when what follows from that is on its way to the store. */
  processEnds(): Promise<void> {
    for (const live of this.#live.values()) live.processEnds()
    return Promise.resolve()
  }

  /** Stops every context. What is committed stays. */
  close(): void {
    this.#isClosed = true
    this.#wakes.close()
    for (const live of this.#live.values()) live.stop()
    this.#live.clear()
    this.#resting.clear()
  }

  #load(key: ContextKey, name: string): Promise<LiveContext> {
    if (this.#isClosed) throw shutDown()
    const loading = this.#open(key, name).finally(() => this.#loading.delete(name))
    this.#loading.set(name, loading)
    return loading
  }

  async #open(key: ContextKey, name: string): Promise<LiveContext> {
    const stored = await this.#services.store.loadContext(key)
    if (this.#isClosed) throw shutDown()
    return this.#add(key, name, stored)
  }

  #add(key: ContextKey, name: string, stored: StoredContext | undefined): LiveContext {
    this.#makeRoom()
    const live: LiveContext = new LiveContext(key, stored, this.#services, {
      wasHere: this.#broken.has(name),
      settled: () => this.#settled(live),
      broke: taskIds => void this.#reload(live, taskIds)
    })
    this.#broken.delete(name)
    this.#live.set(name, live)
    return live
  }

  async #wake(key: ContextKey): Promise<void> {
    this.#settled(await this.get(key))
  }

  #settled(live: LiveContext): void {
    this.#resting.delete(live)
    if (!live.isAtRest) return
    this.#resting.add(live)
    while (this.#resting.size > this.#services.limits.idleContexts) this.#dismissOne()
  }

  /** Lets the longest unused context leave memory that can. Answers whether there was one. */
  #dismissOne(): boolean {
    for (const live of this.#resting) {
      this.#resting.delete(live)
      if (!live.isAtRest) continue
      live.stop()
      this.#live.delete(contextName(live.key))
      this.#wakes.expect(live.nextWakeMs)
      return true
    }
    return false
  }

  /**
   * A context whose commit failed starts again from what the store holds, so that its work goes on; who listens to tasks
   * of which nobody knows whether they were written hears of what was.
   */
  async #reload(live: LiveContext, taskIds: ReadonlySet<string>): Promise<void> {
    const { store, feeds, logger } = this.#services
    const { key } = live
    this.#live.delete(contextName(key))
    this.#broken.add(contextName(key))
    this.#resting.delete(live)
    try {
      for (const taskId of taskIds) {
        const stored = await store.readTask(key, taskId, { historyLength: 0, artifacts: false })
        if (stored) feeds.advance(taskId, stored.generation)
      }
      await this.#wake(key)
    } catch (error) {
      logger.error('a context could not be loaded again', { contextId: key.contextId, error })
      this.#wakes.retry()
    }
  }

  #makeRoom(): void {
    if (this.#live.size < this.#services.limits.liveContexts || this.#dismissOne()) return
    throw new A2AError('Overloaded', 'The agent has as many conversations under way as it takes. Send the request again later.', {
      retryAfterMs: 1000
    })
  }
}

function shutDown(): A2AError {
  return new A2AError('Overloaded', 'The agent is shutting down. Send the request again later.')
}
