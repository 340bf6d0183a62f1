import { ANONYMOUS } from '../access/call-context.ts'
import { ContextBudget, type Dismiss, type LimitLevel, type Owner, ResourceUsage } from '../access/shares.ts'
import type { Clock } from '../ports/clock.ts'
import { ReleasingMap } from '../primitives/collections.ts'
import { loadContext, snapshotBytes } from '../snapshots/restored-task.ts'
import {
  type Commit,
  type ContextKey,
  contextName,
  type Erasure,
  isErased,
  isOpeningMessage,
  NOT_OWNER,
  OUTCOME_UNKNOWN,
  type StoredContext
} from '../store/store.ts'
import type { TraceCarrier } from '../telemetry/telemetry.ts'
import { LiveContext } from './context.ts'
import type { BrokenContext, ContextEvents, ContextServices } from './dependencies.ts'
import { beingErased, ERASED } from './errors.ts'
import { FIRST_RETRY_MS, LAST_RETRY_MS, WakeScheduler } from './wake-scheduler.ts'
import { storedTraces, WorkSpans } from './work-spans.ts'

/**
 * Exponential back-off after a refused commit: a second, or twice the last delay if the context was reloaded less than
 * a minute ago.
 */
function reloadDelayAfter(before: BrokenContext | undefined, presentMs: number): number {
  if (!before || presentMs >= LAST_RETRY_MS) return FIRST_RETRY_MS
  return Math.min(Math.max(2 * before.reloadDelayMs, FIRST_RETRY_MS), LAST_RETRY_MS)
}

/**
 * Contexts that have left the memory of this process by a failure. Reloading one is no recovery, because its process
 * has not ended.
 */
class BrokenContexts {
  readonly #clock: Clock
  readonly #broken = new ReleasingMap<BrokenContext>()
  /** Contexts that this node of a cluster has lost with its session, until their owners since then are known. */
  readonly #lost = new Map<string, ContextKey>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The absence of a context, if it broke. */
  of(name: string): BrokenContext | undefined {
    return this.#broken.size > 0 ? this.#broken.get(name) : undefined
  }

  /** Notes that a context broke. After `awayMs`, unless that is 0, calls `reload`. */
  add(key: ContextKey, awayMs: number, reload: () => void): void {
    const absence: BrokenContext = { key, reloadDelayMs: awayMs, timer: undefined }
    this.#broken.set(contextName(key), absence)
    if (awayMs === 0) return
    absence.timer = this.#clock.setTimeout(() => {
      absence.timer = undefined
      reload()
    }, awayMs)
  }

  /** Ends an absence: the context is in memory again. */
  end(name: string): void {
    this.#clock.clearTimeout(this.#broken.get(name)?.timer)
    this.#broken.delete(name)
  }

  /** Notes that this node has lost a context with its session. */
  lose(key: ContextKey): void {
    this.#lost.set(contextName(key), key)
  }

  /** Ends the reloads of broken contexts, because this node has lost its session. */
  loseBroken(isLost: (key: ContextKey) => boolean): void {
    for (const [name, { key }] of this.#broken.entries()) {
      if (!isLost(key)) continue
      this.end(name)
      this.lose(key)
    }
  }

  /**
   * After this node regains its session: a lost context that no other node owned meanwhile is reloaded, not recovered.
   */
  regain(isContinued: (key: ContextKey) => boolean): void {
    for (const key of this.#lost.values()) if (isContinued(key)) this.add(key, 0, () => {})
    this.#lost.clear()
  }

  /** Ends all timers. */
  close(): void {
    for (const { timer } of this.#broken.values()) this.#clock.clearTimeout(timer)
  }
}

/** Pending erasures, which block access to their contexts. */
class PendingErasures {
  readonly #underWay = new Map<Erasure, Promise<unknown>>()

  async run<T>(whose: Erasure, erase: () => Promise<T>): Promise<T> {
    const erased = erase()
    this.#underWay.set(whose, erased)
    try {
      return await erased
    } finally {
      this.#underWay.delete(whose)
    }
  }

  /** Settles when a pending erasure of this context is done; `undefined` if there is none. */
  of(key: ContextKey): Promise<unknown> | undefined {
    for (const [whose, erased] of this.#underWay) if (isErased(whose, key)) return erased
    return undefined
  }

  /** Resolves when all are done. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay.values())
  }
}

/**
 * LRU registry of the contexts in memory, by tenant, principal and id. Others are in the store, and are restored by a
 * message or a timer. At most `limits.idleContexts` idle ones stay; the least recently used leave memory. In total
 * there are at most `limits.liveContexts`, with shares for each principal, connection and tenant.
 */
export class ContextRegistry implements ContextEvents<LiveContext> {
  readonly #services: ContextServices
  readonly #wakes: WakeScheduler
  readonly #live = new ReleasingMap<LiveContext>()
  readonly #contextBudget: ContextBudget
  readonly #byteBudget: ContextBudget
  readonly #loading = new ReleasingMap<{ readonly key: ContextKey; readonly live: Promise<LiveContext> }>()
  readonly #broken: BrokenContexts
  /** Idle contexts, the least recently used first. A context that a timer has just activated may still be here. */
  #idle: LiveContext[] = []
  readonly #erasures = new PendingErasures()

  constructor(services: ContextServices) {
    this.#services = services
    const dismiss: Dismiss = (exceeded, owner) => this.#dismissOne(exceeded, owner)
    this.#contextBudget = ContextBudget.forContexts(services.limits, dismiss)
    this.#byteBudget = ContextBudget.forBytes(services.limits, dismiss)
    this.#broken = new BrokenContexts(services.clock)
    this.#wakes = new WakeScheduler(services, {
      has: key => this.#isLiveOrPending(contextName(key)),
      wake: key => this.#wake(key)
    })
  }

  get size(): number {
    return this.#live.size
  }

  get live(): LiveContext[] {
    return this.#live.values()
  }

  /**
   * The context of this key, from memory or from the store, or a new one. A context that enters memory counts against
   * the share of its principal, or of `connection` for an anonymous caller.
   */
  async get(key: ContextKey, connection?: object): Promise<LiveContext> {
    for (let erasure = this.#erasures.of(key); erasure; erasure = this.#erasures.of(key)) await erasure.catch(() => {})
    const name = contextName(key)
    const live = this.#live.get(name)
    if (!live) return this.#loading.get(name)?.live ?? this.#load(key, name, this.#ownerOf(key, connection))
    this.#touch(live)
    return live
  }

  /** A new context with an unused key. */
  create(key: ContextKey, connection?: object): LiveContext {
    this.#checkOpen(key)
    if (this.#erasures.of(key)) throw beingErased()
    return this.#add(key, this.#ownerOf(key, connection))
  }

  /**
   * Makes memory for a message to a live context, by removing idle ones. Throws RateLimited or Overloaded if that is
   * not enough.
   */
  freeMemoryFor(live: LiveContext): void {
    this.#touch(live)
    this.#byteBudget.freeFor(live.residency.owner)
  }

  /**
   * Ends contexts and blocks access to them while `erase` runs. The work of their tasks stops as if canceled. Calls
   * that wait for a commit get TaskNotFound; new calls wait. If `erase` fails, the contexts are restored.
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

  /** Restores contexts with running work now, and from then on those with due timers. */
  resume(): void {
    this.#wakes.start()
  }

  /**
   * Restores the contexts that this node has gained. A context without another owner in between continues without a
   * recovery.
   */
  gained(isContinued: (key: ContextKey) => boolean): void {
    this.#broken.regain(isContinued)
    this.#wakes.expect(0)
  }

  /**
   * Stops the contexts that are no longer this node's. `isOrderly`: first their recoveries are undone, and everything
   * decided is committed. A call whose commit has not begun gets `NOT_OWNER`, others `OUTCOME_UNKNOWN`.
   */
  async release(isLost: (key: ContextKey) => boolean, isOrderly: boolean): Promise<void> {
    const lost = () => this.#live.values().filter(({ key }) => isLost(key))
    if (isOrderly) {
      for (const live of lost()) live.processEnds()
      await Promise.all(lost().map(live => live.settled()))
    }
    for (const live of lost()) {
      live.stop(live.pipeline.isSettled ? NOT_OWNER : OUTCOME_UNKNOWN)
      this.#forget(live)
      if (!isOrderly) this.#broken.lose(live.key)
    }
    if (!isOrderly) this.#broken.loseBroken(isLost)
  }

  /** Notifies every context of a clean shutdown. Resolves when the resulting commits have begun. */
  processEnds(): Promise<void> {
    for (const live of this.#live.values()) live.processEnds()
    return Promise.resolve()
  }

  /** Resolves when everything decided so far is committed and published. */
  async settled(): Promise<void> {
    await Promise.all(Array.from(this.#live.values(), live => live.settled()))
  }

  /** Stops every context, without loss of committed data. Resolves when pending erasures are done. */
  close(): Promise<void> {
    this.#services.state.phase = 'closed'
    this.#wakes.close()
    this.#broken.close()
    for (const live of this.#live.values()) live.stop()
    this.#live.clear()
    this.#idle = []
    return this.#erasures.settled()
  }

  #load(key: ContextKey, name: string, owner: Owner): Promise<LiveContext> {
    this.#checkOpen(key)
    this.#contextBudget.freeFor(owner)
    const live = this.#open(key, owner).finally(() => this.#loading.delete(name))
    this.#loading.set(name, { key, live })
    return live
  }

  async #open(key: ContextKey, owner: Owner): Promise<LiveContext> {
    const { store, telemetry, limits } = this.#services
    const stored = await loadContext(store, key, this.#byteBudget.limit.most.user)
    const traces = telemetry && stored ? await storedTraces(store, key, stored, limits) : undefined
    this.#checkOpen(key)
    return this.#add(key, owner, stored, traces)
  }

  #checkOpen(key: ContextKey): void {
    this.#services.state.checkHasContexts()
    if (this.#services.owns?.(key) === false) throw NOT_OWNER
  }

  #add(key: ContextKey, owner: Owner, stored?: StoredContext, traces?: ReadonlyMap<string, TraceCarrier>): LiveContext {
    this.#contextBudget.freeFor(owner)
    if (stored) this.#byteBudget.freeFor(owner, snapshotBytes(stored))
    const { telemetry, agent, clock } = this.#services
    const broken = this.#broken.of(contextName(key))
    const residency = { owner, bytes: new ResourceUsage(this.#byteBudget.limit, owner), sinceMs: clock.now(), broken }
    const live = new LiveContext(
      key,
      stored,
      this.#services,
      this,
      residency,
      telemetry && new WorkSpans(telemetry, agent, key, traces)
    )
    if (broken) this.#broken.end(live.name)
    this.#live.set(live.name, live)
    this.#contextBudget.limit.add(owner)
    return live
  }

  onCommitted(commit: Commit, live: LiveContext): void {
    const { state, counters, observers, recoveryQueue } = this.#services
    state.refusedAtMs = -Infinity
    counters.committed(commit, isOpeningMessage)
    const { suspect } = recoveryQueue
    if (suspect !== undefined) recoveryQueue.progressed(suspect, commit)
    observers.active?.committed(commit, live)
  }

  onCommitFailed(live: LiveContext, taskIds: ReadonlySet<string>, reason: 'refused' | 'race' | 'not owner'): void {
    if (reason === 'not owner') return this.#forget(live)
    const { state, clock, counters } = this.#services
    if (reason === 'refused') state.refusedAtMs = clock.now()
    counters[reason === 'refused' ? 'refusedCommits' : 'lostRaces'] += 1
    const { broken, sinceMs } = live.residency
    void this.#reload(live, taskIds, reason === 'refused' ? reloadDelayAfter(broken, clock.now() - sinceMs) : 0)
  }

  async #wake(key: ContextKey, connection?: object): Promise<void> {
    this.onIdle(await this.get(key, connection))
  }

  onIdle(live: LiveContext): void {
    this.#touch(live)
    if (!live.isAtRest) return
    this.#idle.push(live)
    while (this.#idle.length > this.#services.limits.idleContexts) this.#dismissOne('whole')
  }

  #touch(live: LiveContext): void {
    const index = this.#idle.indexOf(live)
    if (index >= 0) this.#idle.splice(index, 1)
  }

  /** Removes the least recently used idle context from memory, of any or of one owner. Gives whether there was one. */
  #dismissOne(exceeded: LimitLevel, owner: Owner = {}): boolean {
    const isCandidate = (live: LiveContext) =>
      exceeded === 'whole' || live.residency.owner[exceeded] === owner[exceeded]
    for (let live = this.#idle.find(isCandidate); live; live = this.#idle.find(isCandidate)) {
      this.#touch(live)
      if (!live.isAtRest) continue
      live.stop()
      this.#forget(live)
      this.#wakes.expect(live.nextWakeMs)
      return true
    }
    return false
  }

  #forget(live: LiveContext): void {
    this.#touch(live)
    this.#live.delete(live.name)
    this.#contextBudget.limit.add(live.residency.owner, -1)
    live.residency.bytes.end()
  }

  /** Whether a context is in memory, or has a timer that reloads it. */
  #isLiveOrPending(name: string): boolean {
    return this.#live.has(name) || this.#broken.of(name)?.timer !== undefined
  }

  /**
   * Reloads a context whose commit failed, at once or after `awayMs`, so that its work resumes. The commit may have
   * been written, so streams and webhooks of its tasks first get the events in the store.
   */
  async #reload(live: LiveContext, taskIds: ReadonlySet<string>, awayMs: number): Promise<void> {
    const { store, subscriptions, webhooks } = this.#services
    const {
      key,
      residency: {
        owner: { user }
      }
    } = live
    const connection = typeof user === 'object' ? user : undefined
    this.#forget(live)
    this.#broken.add(key, awayMs, () => void this.#wakeOrRetry(key, connection))
    const unread = new Set(taskIds)
    try {
      for (const taskId of taskIds) {
        const stored = await store.readTask(key, taskId, { historyLength: 0, artifacts: false })
        if (stored) subscriptions.advance(taskId, stored.generation)
        await webhooks?.refresh(key, taskId)
        unread.delete(taskId)
      }
      if (awayMs === 0) await this.#wake(key, connection)
    } catch (error) {
      this.#onReloadFailed(key, error)
      // Otherwise streams might wait for ever, because an ended task is not restored.
      for (const taskId of unread) subscriptions.end(key, taskId, OUTCOME_UNKNOWN)
    }
  }

  async #wakeOrRetry(key: ContextKey, connection: object | undefined): Promise<void> {
    try {
      await this.#wake(key, connection)
    } catch (error) {
      this.#onReloadFailed(key, error)
    }
  }

  #onReloadFailed({ contextId }: ContextKey, error: unknown): void {
    if (error === NOT_OWNER) return
    this.#services.logger.error('a context could not be loaded again', { contextId, error })
    this.#wakes.retry()
  }

  #end(live: LiveContext): void {
    live.erase(ERASED)
    this.#forget(live)
  }

  #ownerOf({ principal, tenant }: ContextKey, connection: object | undefined): Owner {
    return {
      user: principal === ANONYMOUS ? connection : principal,
      tenant: this.#services.sharesByTenant ? tenant : undefined
    }
  }
}
