import type { Limits } from '../access/limits.ts'
import type { Metering } from '../access/quotas.ts'
import type { ContextRegistry } from '../contexts/context-registry.ts'
import type { Negotiation } from '../negotiation/negotiation.ts'
import type { Clock } from '../ports/clock.ts'
import type { Ids } from '../ports/ids.ts'
import type { StandardSchema } from '../ports/standard-schema.ts'
import type { WebhookSender } from '../ports/webhook-sender.ts'
import type { Store } from '../store/store.ts'
import type { TaskSubscriptions } from '../streams/subscriptions.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import type { PendingSends } from './deduplication.ts'

/** What the operations work with. */
export interface OperationServices {
  readonly store: Store
  readonly contexts: ContextRegistry
  readonly feeds: TaskSubscriptions
  readonly clock: Clock
  readonly ids: Ids
  readonly limits: Limits
  readonly metering: Metering
  readonly sendsUnderWay: PendingSends
  /** No message is taken twice, whether its client asks for that or not. */
  readonly dedupe: boolean
  /** Whether tasks that work take messages. */
  readonly takesMessages: boolean
  /** The agent's negotiation, if it has one that lasts. */
  readonly negotiation?: Negotiation | undefined
  /** Media types that the agent takes. */
  readonly inputModes: ReadonlySet<string>
  /** What a message has to hold that opens a task by itself, without a negotiation. */
  readonly opening?: StandardSchema<unknown> | undefined
  /** What tells webhooks, if the agent pushes. */
  readonly push?: Push | undefined
}

/** What tells webhooks, and looks at their addresses before. */
export interface Push {
  readonly webhooks: Webhooks
  readonly sender: WebhookSender
}
