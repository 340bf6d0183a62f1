import type { Limits } from '../access/limits.ts'
import type { Metering } from '../access/quotas.ts'
import type { ContextRegistry } from '../contexts/context-registry.ts'
import type { RuntimeState } from '../contexts/dependencies.ts'
import type { Negotiation } from '../negotiation/negotiation.ts'
import type { Clock } from '../ports/clock.ts'
import type { Ids } from '../ports/ids.ts'
import type { StandardSchema } from '../ports/standard-schema.ts'
import type { WebhookSender } from '../ports/webhook-sender.ts'
import type { ReleasingMap } from '../primitives/collections.ts'
import type { ContextKey, Store } from '../store/store.ts'
import type { TaskSubscriptions } from '../streams/task-tail.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import type { ConnectionNames, Membership } from './cluster.ts'

/** Dependencies of the operations. */
export interface OperationServices {
  readonly state: RuntimeState
  readonly store: Store
  readonly contexts: ContextRegistry
  readonly subscriptions: TaskSubscriptions
  readonly clock: Clock
  readonly ids: Ids
  readonly limits: Limits
  readonly metering: Metering
  readonly pendingSends: PendingSends
  readonly connections: ConnectionNames
  /** Whether messages are deduplicated even if the client does not ask for it. */
  readonly deduplicate: boolean
  /** Whether working tasks accept messages. */
  readonly takesMessages: boolean
  /** The agent's lasting negotiation, if it has one. */
  readonly negotiation?: Negotiation | undefined
  /** Media types that the agent accepts. */
  readonly inputModes: ReadonlySet<string>
  /** The agent's `input` schema, if messages open tasks without a negotiation. */
  readonly opening?: StandardSchema<unknown> | undefined
  /** Webhooks, if the agent has them. */
  readonly push?: Push | undefined
  /** Makes the id of a new context, in a shard, and that of a new task of a context. */
  readonly newIds: { contextId(shard: number | undefined): string; taskId(key: ContextKey): string }
  /** The other nodes, if the runtime is a node of a cluster. */
  readonly cluster?: Membership | undefined
}

/** Delivers to webhooks, and checks their URLs before. */
export interface Push {
  readonly webhooks: Webhooks
  readonly sender: WebhookSender
}

/** Pending messages by scope and key: their fingerprints, and promises that settle when they are done. */
export type PendingSends = ReleasingMap<{ readonly fingerprint: string; readonly end: Promise<unknown> }>
