import type { Limits } from '../access/limits.ts'
import type { Metering } from '../access/quotas.ts'
import type { Share, Sharer } from '../access/shares.ts'
import type { Agent } from '../agent/define-agent.ts'
import type { Clock } from '../ports/clock.ts'
import type { Ids } from '../ports/ids.ts'
import type { Logger } from '../ports/logger.ts'
import type { Commit, Store } from '../store/store.ts'
import type { TaskSubscriptions } from '../streams/subscriptions.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import type { CleanupTracker } from '../work/cleanup.ts'
import type { TaskLoads } from '../work/task-loads.ts'
import type { ContextLogic } from './context-logic.ts'
import type { Observers } from './observers.ts'
import type { RecoveryQueue } from './recovery-queue.ts'

/** Who holds a live context, and hears from it. */
export interface ContextOwner {
  /** Whose share of the live contexts it uses. */
  readonly sharer: Sharer
  /** Counts the bytes that its tasks keep in memory. */
  readonly bytes: Share
  /** Whether the context was in memory before, in this process, and broke there. */
  readonly wasHere: boolean
  /** Whether the store has refused the newest commit, of this context or another. */
  isRefused(): boolean
  /** The store has taken a commit. */
  committed(commit: Commit): void
  /** Everything decided is committed and told: it may be at rest. */
  settled(): void
  /** It has come to an end by itself, because of a commit that these tasks were part of: the store refused it, or it lost its race. */
  broke(taskIds: ReadonlySet<string>, isRefused: boolean): void
}

/** What every context of a runtime works with. */
export interface ContextServices {
  readonly store: Store
  readonly clock: Clock
  readonly ids: Ids
  readonly logger: Logger
  readonly limits: Limits
  /** Whether each tenant has a share of the live contexts. Default false. */
  readonly sharesByTenant?: boolean
  readonly metering: Metering
  readonly feeds: TaskSubscriptions
  readonly loads: TaskLoads
  readonly logic: ContextLogic
  readonly agent: Agent
  readonly cleanUps: CleanupTracker
  readonly recoveryQueue: RecoveryQueue
  readonly observers: Observers
  /** What traces the works, if anything does. */
  readonly telemetry?: Telemetry | undefined
  /** What tells webhooks, if the agent pushes. */
  readonly webhooks?: Webhooks | undefined
}
