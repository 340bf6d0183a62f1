import { A2AError } from '../../machines/protocol/errors.ts'
import { ANONYMOUS } from '../access/call-context.ts'
import type { Limits } from '../access/limits.ts'
import {
  type LimitLevel,
  liveBytes,
  overShare,
  ResourceUsage,
  type Owner,
  SharedLimit,
  type LimitText
} from '../access/shares.ts'
import { ReleasingMap } from '../primitives/collections.ts'
import { loadContext, snapshotBytes } from '../snapshots/restored-task.ts'
import {
  type Commit,
  type ContextKey,
  contextName,
  type Erasure,
  isErased,
  NOT_OWNER,
  type StoredContext,
  OUTCOME_UNKNOWN
} from '../store/store.ts'
import type { TraceCarrier } from '../telemetry/telemetry.ts'
import { BrokenContexts, reloadDelayAfter, PendingErasures } from './broken-contexts.ts'
import { LiveContext } from './context.ts'
import type { ContextEvents, ContextServices } from './dependencies.ts'
import { beingErased, ERASED } from './errors.ts'
import { WakeScheduler } from './wake-scheduler.ts'
import { storedTraces, WorkSpans } from './work-spans.ts'

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
    this.#services.state.checkOpen('closing')
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
    counters.committed(commit)
    recoveryQueue.progressed(commit)
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

const ADVICE = 'Wait for a task to end, or cancel one.'

const CONTEXTS: LimitText = { limit: 'liveContexts', what: 'active contexts', advice: ADVICE }
const BYTES: LimitText = { limit: 'liveBytes', what: 'bytes of contexts in memory', advice: ADVICE }

/**
 * Removes an idle context from memory: one of the owner's, or any if the whole limit is reached. Gives whether there
 * was one.
 */
type Dismiss = (exceeded: LimitLevel, owner: Owner) => boolean

/** Limit of one resource of contexts in memory, with shares. */
class ContextBudget {
  readonly limit: SharedLimit
  readonly #use: LimitText
  readonly #full: string
  readonly #dismiss: Dismiss

  private constructor(shares: SharedLimit, use: LimitText, full: string, dismiss: Dismiss) {
    this.limit = shares
    this.#use = use
    this.#full = full
    this.#dismiss = dismiss
  }

  /** Limits contexts by `limits.liveContexts`. */
  static forContexts(limits: Limits, dismiss: Dismiss): ContextBudget {
    return new ContextBudget(
      new SharedLimit(limits.liveContexts, limits),
      CONTEXTS,
      'The agent has too many active contexts. Send the request again later.',
      dismiss
    )
  }

  /** Limits bytes by `limits.liveBytes`. */
  static forBytes(limits: Limits, dismiss: Dismiss): ContextBudget {
    return new ContextBudget(
      liveBytes(limits),
      BYTES,
      'The agent has too many bytes of contexts in memory. Send the request again later.',
      dismiss
    )
  }

  /**
   * Removes idle contexts until `amount` more fits. If that is not enough, throws RateLimited for a share, Overloaded
   * for the whole limit.
   */
  freeFor(owner: Owner, amount = 1): void {
    const { limit: shares } = this
    for (let exceeded = shares.exceeded(owner, amount); exceeded; exceeded = shares.exceeded(owner, amount)) {
      if (this.#dismiss(exceeded, owner)) continue
      throw exceeded === 'whole'
        ? new A2AError('Overloaded', this.#full, { retryAfterMs: 1000 })
        : overShare(this.#use, exceeded, owner, shares)
    }
  }
}
