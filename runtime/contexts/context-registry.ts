import { A2AError } from '../../machines/protocol/errors.ts'
import { ANONYMOUS } from '../access/call-context.ts'
import { Share, type Lacking, type Sharer } from '../access/shares.ts'
import { ReleasingMap } from '../primitives/collections.ts'
import { contextName, isErased, type ContextKey, type Erasure, type StoredContext } from '../store/store.ts'
import type { TraceCarrier } from '../telemetry/telemetry.ts'
import { ContextRoom, type Dismiss } from './context-room.ts'
import type { ContextOwner, ContextServices } from './dependencies.ts'
import { ERASED, shutDown } from './errors.ts'
import { LiveContext } from './live-context.ts'
import { PendingErasures } from './pending-erasures.ts'
import { loadContext, snapshotBytes } from './stored-context.ts'
import { awayAfter, WakeScheduler, type Absence } from './wake-scheduler.ts'
import { WorkSpans, storedTraces } from './work-spans.ts'

/**
 * The contexts in memory, by tenant, principal and id; the others are in the store, and come back when a message needs
 * them or their time has come. Of those in which nothing is under way `limits.idleContexts` stay, the longest unused leave;
 * in all there are at most `limits.liveContexts`, of one principal, connection or tenant at most its share.
 */
export class ContextRegistry {
  readonly #services: ContextServices
  readonly #wakes: WakeScheduler
  readonly #live = new ReleasingMap<LiveContext>()
  readonly #room: ContextRoom
  readonly #bytes: ContextRoom
  readonly #loading = new ReleasingMap<{ readonly key: ContextKey; readonly live: Promise<LiveContext> }>()
  /** Those that broke, and are to come back: their work was not at work at the end of a process. */
  readonly #broken = new ReleasingMap<Absence>()
  /** Whether the store refused the newest commit. */
  #isRefused = false
  /** Those at rest, the longest unused first. One that a timer has just stirred may still be among them. */
  #resting: LiveContext[] = []
  readonly #erasures = new PendingErasures()
  #isClosed = false

  constructor(services: ContextServices) {
    this.#services = services
    const dismiss: Dismiss = (lacking, sharer) => this.#dismissOne(lacking, sharer)
    this.#room = ContextRoom.forContexts(services.limits, dismiss)
    this.#bytes = ContextRoom.forBytes(services.limits, dismiss)
    this.#wakes = new WakeScheduler(services, { has: key => this.#isSeenTo(contextName(key)), wake: key => this.#wake(key) })
  }

  /** How many are in memory. */
  get size(): number {
    return this.#live.size
  }

  /** Those in memory. */
  get live(): LiveContext[] {
    return this.#live.values()
  }

  /**
   * The context of this key, from memory or from the store; a new one if nobody has used the key yet. A context
   * that comes into memory uses the share of its principal, or else of this connection.
   */
  async get(key: ContextKey, connection?: object): Promise<LiveContext> {
    for (let erasure = this.#erasures.of(key); erasure; erasure = this.#erasures.of(key)) await erasure.catch(() => {})
    const name = contextName(key)
    const live = this.#live.get(name)
    if (!live) return this.#loading.get(name)?.live ?? this.#load(key, name, this.#sharerOf(key, connection))
    this.#stirs(live)
    return live
  }

  /** A new context, under a key that nobody has used. */
  create(key: ContextKey, connection?: object): LiveContext {
    if (this.#isClosed) throw shutDown()
    if (this.#erasures.of(key)) throw beingErased()
    return this.#add(key, this.#sharerOf(key, connection))
  }

  /** Makes room for a message to a live context: contexts at rest leave memory. Throws RateLimited or Overloaded if there is none. */
  makeRoomIn(live: LiveContext): void {
    this.#stirs(live)
    this.#bytes.make(live.owner.sharer)
  }

  /**
   * Ends contexts, and keeps everybody from them while `erase` runs: the works of their tasks stop as if canceled, whoever
   * waits for what is not committed gets TaskNotFound, and who asks for one of them has to wait. If it fails they go on.
   */
  withhold<T>(whose: Erasure, erase: () => Promise<T>): Promise<T> {
    return this.#erasures.run(whose, async () => {
      const loading = this.#loading.values().filter(({ key }) => isErased(whose, key))
      await Promise.allSettled(loading.map(({ live }) => live))
      for (const live of this.#live.values()) if (isErased(whose, live.key)) this.#end(live)
      try {
        return await erase()
      } catch (error) {
        this.#wakes.retry()
        throw error
      }
    })
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

  /** Resolves when everything decided until now is committed and told. */
  async settled(): Promise<void> {
    await Promise.all(Array.from(this.#live.values(), live => live.settled()))
  }

  /** Stops every context. What is committed stays. Resolves when what is being erased is. */
  close(): Promise<void> {
    this.#isClosed = true
    this.#wakes.close()
    for (const { timer } of this.#broken.values()) this.#services.clock.clearTimeout(timer)
    for (const live of this.#live.values()) live.stop()
    this.#live.clear()
    this.#resting = []
    return this.#erasures.settled()
  }

  #load(key: ContextKey, name: string, sharer: Sharer): Promise<LiveContext> {
    if (this.#isClosed) throw shutDown()
    this.#room.make(sharer)
    const live = this.#open(key, sharer).finally(() => this.#loading.delete(name))
    this.#loading.set(name, { key, live })
    return live
  }

  async #open(key: ContextKey, sharer: Sharer): Promise<LiveContext> {
    const { store, telemetry, limits } = this.#services
    const stored = await loadContext(store, key, this.#bytes.shares.most.user)
    const traces = telemetry && stored ? await storedTraces(store, key, stored, limits) : undefined
    if (this.#isClosed) throw shutDown()
    return this.#add(key, sharer, stored, traces)
  }

  #add(key: ContextKey, sharer: Sharer, stored?: StoredContext, traces?: ReadonlyMap<string, TraceCarrier>): LiveContext {
    this.#room.make(sharer)
    if (stored) this.#bytes.make(sharer, snapshotBytes(stored))
    const { telemetry, agent } = this.#services
    const broken = this.#broken.size > 0 ? this.#broken.get(contextName(key)) : undefined
    const live: LiveContext = new LiveContext(key, stored, this.#services, this.#ownerOf(sharer, () => live, broken), telemetry && new WorkSpans(telemetry, agent, key, traces))
    if (broken) this.#services.clock.clearTimeout(broken.timer)
    this.#broken.delete(live.name)
    this.#live.set(live.name, live)
    this.#room.shares.add(sharer)
    return live
  }

  /** What a context hears from here and tells; `broken` if it was in memory before, and broke. */
  #ownerOf(sharer: Sharer, live: () => LiveContext, broken: Absence | undefined): ContextOwner {
    const { clock, observers } = this.#services
    const backAtMs = clock.now()
    return {
      sharer,
      bytes: new Share(this.#bytes.shares, sharer),
      wasHere: broken !== undefined,
      isRefused: () => this.#isRefused,
      committed: commit => {
        this.#isRefused = false
        observers.told?.committed(commit)
      },
      settled: () => this.#settled(live()),
      broke: (taskIds, isRefused) => {
        if (isRefused) this.#isRefused = true
        void this.#reload(live(), taskIds, isRefused ? awayAfter(broken, clock.now() - backAtMs) : 0)
      }
    }
  }

  async #wake(key: ContextKey, connection?: object): Promise<void> {
    this.#settled(await this.get(key, connection))
  }

  #settled(live: LiveContext): void {
    this.#stirs(live)
    if (!live.isAtRest) return
    this.#resting.push(live)
    while (this.#resting.length > this.#services.limits.idleContexts) this.#dismissOne('whole')
  }

  #stirs(live: LiveContext): void {
    const index = this.#resting.indexOf(live)
    if (index >= 0) this.#resting.splice(index, 1)
  }

  /** Lets the longest unused context leave memory that can, for the whole or for a share. Answers whether there was one. */
  #dismissOne(lacking: Lacking, sharer: Sharer = {}): boolean {
    const isMeant = (live: LiveContext) => lacking === 'whole' || live.owner.sharer[lacking] === sharer[lacking]
    for (let live = this.#resting.find(isMeant); live; live = this.#resting.find(isMeant)) {
      this.#stirs(live)
      if (!live.isAtRest) continue
      this.#dismiss(live)
      return true
    }
    return false
  }

  #dismiss(live: LiveContext): void {
    live.stop()
    this.#forget(live)
    this.#wakes.expect(live.nextWakeMs)
  }

  #forget(live: LiveContext): void {
    this.#live.delete(live.name)
    this.#room.shares.add(live.owner.sharer, -1)
    live.owner.bytes.end()
  }

  /** Whether a context is in memory, or comes back by itself. */
  #isSeenTo(name: string): boolean {
    return this.#live.has(name) || this.#broken.get(name)?.timer !== undefined
  }

  /**
   * A context whose commit failed starts again from what the store holds, so that its work goes on: at once, or after a
   * while. Who listens to tasks of which nobody knows whether they were written hears of what was.
   */
  async #reload(live: LiveContext, taskIds: ReadonlySet<string>, awayMs: number): Promise<void> {
    const { store, feeds, clock, webhooks } = this.#services
    const { key, owner: { sharer: { user } } } = live
    const connection = typeof user === 'object' ? user : undefined
    const absence: Absence = { awayMs, timer: undefined }
    this.#forget(live)
    this.#broken.set(live.name, absence)
    this.#stirs(live)
    if (awayMs > 0) absence.timer = clock.setTimeout(() => void this.#comeBack(key, absence, connection), awayMs)
    const unread = new Set(taskIds)
    try {
      for (const taskId of taskIds) {
        const stored = await store.readTask(key, taskId, { historyLength: 0, artifacts: false })
        if (stored) feeds.advance(taskId, stored.generation)
        await webhooks?.refresh(key, taskId)
        unread.delete(taskId)
      }
      if (awayMs === 0) await this.#wake(key, connection)
    } catch (error) {
      this.#staysAway(key, error)
      // Who listens might wait for ever: a task that has ended is not brought back.
      for (const taskId of unread) feeds.end(key, taskId, unknown())
    }
  }

  async #comeBack(key: ContextKey, absence: Absence, connection: object | undefined): Promise<void> {
    absence.timer = undefined
    try {
      await this.#wake(key, connection)
    } catch (error) {
      this.#staysAway(key, error)
    }
  }

  #staysAway({ contextId }: ContextKey, error: unknown): void {
    this.#services.logger.error('a context could not be loaded again', { contextId, error })
    this.#wakes.retry()
  }

  #end(live: LiveContext): void {
    live.erase(ERASED)
    this.#forget(live)
    this.#stirs(live)
  }

  #sharerOf({ principal, tenant }: ContextKey, connection: object | undefined): Sharer {
    return { user: principal === ANONYMOUS ? connection : principal, tenant: this.#services.sharesByTenant ? tenant : undefined }
  }
}

function unknown(): A2AError {
  return new A2AError('Overloaded', 'The agent cannot tell what became of the task. Look at it again later.', { retryAfterMs: 1000 })
}

function beingErased(): A2AError {
  return new A2AError('Overloaded', 'What you have here is being erased. Send the request again later.', { retryAfterMs: 1000 })
}
