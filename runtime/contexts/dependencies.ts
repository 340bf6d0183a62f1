import type { contextMachine } from '../../machines/context.machine.ts'
import type { Limits } from '../access/limits.ts'
import type { Metering } from '../access/quotas.ts'
import type { ResourceUsage, Owner } from '../access/shares.ts'
import type { Agent } from '../agent/define-agent.ts'
import type { Clock } from '../ports/clock.ts'
import type { Ids } from '../ports/ids.ts'
import type { Logger } from '../ports/logger.ts'
import type { TaskStamps } from '../snapshots/snapshot-text.ts'
import type { WorkStore } from '../store/retrying-reads.ts'
import type { Commit, ContextKey, Store } from '../store/store.ts'
import type { TaskSubscriptions } from '../streams/task-tail.ts'
import type { Counters } from '../telemetry/counters.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import type { CleanupTracker, TaskLoads } from '../work/task-loads.ts'
import type { EarlierTasks } from './earlier-tasks.ts'
import { runtimeClosing } from './errors.ts'
import type { NewerTasks } from './newer-tasks.ts'
import type { Observers } from './observers.ts'
import type { RecoveryQueue } from './recovery-queue.ts'

/** One residency of a context in memory, from its restore to its removal. */
export interface Residency {
  /** Counted in the shares of live contexts. */
  readonly owner: Owner
  /** Counts the bytes of its tasks in memory. */
  readonly bytes: ResourceUsage
  readonly sinceMs: number
  /** Set if the context was in memory before in this process, and broke. */
  readonly broken: BrokenContext | undefined
}

/** The life of a runtime: one value, which everything that depends on it reads. */
export class RuntimeState {
  /** `closing`: no new calls. `closed`: no contexts. */
  phase: 'open' | 'closing' | 'closed' = 'open'
  /**
   * When the store refused the newest commit of any context, in milliseconds since 1970; -Infinity if it accepted it.
   */
  refusedAtMs = -Infinity

  get isOpen(): boolean {
    return this.phase === 'open'
  }

  /** Whether the store refused the newest commit. */
  get isRefused(): boolean {
    return this.refusedAtMs > -Infinity
  }

  /** Throws Overloaded unless new calls are accepted. */
  checkOpen(): void {
    if (!this.isOpen) throw runtimeClosing()
  }

  /** Throws Overloaded if there are no contexts any more. Calls under way may need them while the runtime closes. */
  checkHasContexts(): void {
    if (this.phase === 'closed') throw runtimeClosing()
  }
}

/** The events of live contexts, which their registry handles. */
export interface ContextEvents<Live> {
  /** A commit has been written. */
  onCommitted(commit: Commit, live: Live): void
  /** Everything decided in a context is committed and published, so it may be idle. */
  onIdle(live: Live): void
  /**
   * A commit with these tasks failed and ended the context: the store refused it, another process was faster, or
   * another node owns it.
   */
  onCommitFailed(live: Live, taskIds: ReadonlySet<string>, reason: 'refused' | 'race' | 'not owner'): void
}

/** Dependencies of every context of a runtime. */
export interface ContextServices {
  readonly state: RuntimeState
  readonly store: Store
  /** The reads of the store for work. */
  readonly reads: WorkStore
  readonly clock: Clock
  readonly ids: Ids
  readonly logger: Logger
  readonly limits: Limits
  /** Whether each tenant has a share of the live contexts. Default false. */
  readonly sharesByTenant?: boolean
  readonly metering: Metering
  readonly subscriptions: TaskSubscriptions
  readonly loads: TaskLoads
  readonly logic: ContextLogic
  readonly agent: Agent
  readonly cleanUps: CleanupTracker
  readonly recoveryQueue: RecoveryQueue
  readonly observers: Observers
  readonly counters: Counters
  /** Traces work, if set. */
  readonly telemetry?: Telemetry | undefined
  /** In a cluster: whether a context belongs to this node. */
  readonly owns?: ((key: ContextKey) => boolean) | undefined
  /** The stamps of stored tasks. */
  readonly stamps: TaskStamps
  /** Notes the ends of tasks of earlier versions, if the agent has any. */
  readonly earlierTasks?: EarlierTasks | undefined
  /** In a cluster: leaves tasks of a newer version in the store. */
  readonly newerTasks?: NewerTasks | undefined
  /** Delivers to webhooks, if set. */
  readonly webhooks?: Webhooks | undefined
}

/** The context chart with an agent's logic. */
export type ContextLogic = typeof contextMachine

/** The absence of a context that broke. */
export interface BrokenContext {
  readonly key: ContextKey
  /**
   * Delay before it is reloaded, in milliseconds, because the store refused its commit; 0 if it is reloaded at once.
   */
  readonly reloadDelayMs: number
  /** The timer that reloads it. */
  timer: unknown
}
