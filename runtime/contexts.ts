import { A2AError } from '../machines/protocol/errors.ts'
import type { ContextServices } from './context-services.ts'
import { LiveContext } from './live-context.ts'
import { contextName, type ContextKey, type StoredContext } from './store.ts'
import { Wakes } from './wakes.ts'

/**
 * Where a context is, or is to be. It is emptied when the context leaves: V8's maps and sets hold on to what was deleted
 * from them until the next full collection.
 */
interface Place {
  readonly name: string
  live?: LiveContext | undefined
  loading?: Promise<LiveContext> | undefined
}

/**
 * The contexts in memory, by tenant, principal and id; the others are in the store, and come back when a message needs
 * them or their time has come. Of those in which nothing is under way `limits.idleContexts` stay, the longest unused leave;
 * in all there are at most `limits.liveContexts`.
 */
export class Contexts {
  readonly #services: ContextServices
  readonly #wakes: Wakes
  readonly #places = new Map<string, Place>()
  /** Those at rest, the longest unused first. One that a timer has just stirred may still be among them. */
  readonly #resting = new Set<Place>()
  #size = 0
  #isClosed = false

  constructor(services: ContextServices) {
    this.#services = services
    this.#wakes = new Wakes(services, { has: key => this.#places.get(contextName(key))?.live !== undefined, wake: key => this.#wake(key) })
  }

  /** How many are in memory. */
  get size(): number {
    return this.#size
  }

  /** The context of this key, from memory or from the store; a new one if nobody has used the key yet. */
  async get(key: ContextKey): Promise<LiveContext> {
    const name = contextName(key)
    const place = this.#places.get(name)
    if (!place) return this.#load(key, name)
    this.#resting.delete(place)
    /* c8 ignore next -- a context that has a place is there, or on its way */
    return place.live ?? place.loading ?? this.#load(key, name)
  }

  /** A new context, under a key that nobody has used. */
  create(key: ContextKey): LiveContext {
    if (this.#isClosed) throw shutDown()
    const place: Place = { name: contextName(key) }
    const live = this.#fill(place, key, undefined)
    this.#places.set(place.name, place)
    return live
  }

  /** Brings the contexts into memory whose work goes on, now, and from then on those in which something becomes due. */
  resume(): void {
    this.#wakes.start()
  }

  /** Stops every context. What is committed stays. */
  close(): void {
    this.#isClosed = true
    this.#wakes.close()
    for (const { live } of this.#places.values()) live?.stop()
    this.#places.clear()
    this.#resting.clear()
    this.#size = 0
  }

  #load(key: ContextKey, name: string): Promise<LiveContext> {
    if (this.#isClosed) throw shutDown()
    const place: Place = { name }
    this.#places.set(name, place)
    const loading = this.#open(key, place)
    place.loading = loading
    return loading
  }

  async #open(key: ContextKey, place: Place): Promise<LiveContext> {
    try {
      const stored = await this.#services.store.loadContext(key)
      if (this.#isClosed) throw shutDown()
      return this.#fill(place, key, stored)
    } catch (error) {
      this.#places.delete(place.name)
      throw error
    } finally {
      place.loading = undefined
    }
  }

  #fill(place: Place, key: ContextKey, stored: StoredContext | undefined): LiveContext {
    this.#makeRoom()
    const live = new LiveContext(key, stored, this.#services, {
      settled: () => this.#settled(place),
      broke: taskIds => void this.#reload(key, place, taskIds)
    })
    place.live = live
    this.#size += 1
    return live
  }

  async #wake(key: ContextKey): Promise<void> {
    await this.get(key)
    const place = this.#places.get(contextName(key))
    if (place) this.#settled(place)
  }

  #settled(place: Place): void {
    this.#resting.delete(place)
    if (!place.live?.isAtRest) return
    this.#resting.add(place)
    while (this.#resting.size > this.#services.limits.idleContexts) this.#dismissOne()
  }

  /** Lets the longest unused context leave memory that can. Answers whether there was one. */
  #dismissOne(): boolean {
    for (const place of this.#resting) {
      const { live } = place
      this.#resting.delete(place)
      if (!live?.isAtRest) continue
      live.stop()
      this.#empty(place)
      this.#wakes.expect(live.nextWakeMs)
      return true
    }
    return false
  }

  #empty(place: Place): void {
    place.live = undefined
    this.#size -= 1
    this.#places.delete(place.name)
    this.#resting.delete(place)
  }

  /**
   * A context whose commit failed starts again from what the store holds, so that its work goes on; who listens to tasks
   * of which nobody knows whether they were written hears of what was.
   */
  async #reload(key: ContextKey, place: Place, taskIds: ReadonlySet<string>): Promise<void> {
    const { store, feeds, logger } = this.#services
    this.#empty(place)
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
    if (this.#size < this.#services.limits.liveContexts || this.#dismissOne()) return
    throw new A2AError('Overloaded', 'The agent has as many conversations under way as it takes. Send the request again later.', {
      retryAfterMs: 1000
    })
  }
}

function shutDown(): A2AError {
  return new A2AError('Overloaded', 'The agent is shutting down. Send the request again later.')
}
