import type { Clock } from './clock.ts'
import type { Contexts } from './contexts.ts'
import type { Feeds } from './feeds.ts'
import type { Ids } from './ids.ts'
import type { Limits } from './limits.ts'
import type { Metering } from './metering.ts'
import type { Negotiation } from './negotiation.ts'
import type { SendsUnderWay } from './send-once.ts'
import type { StandardSchema } from './standard-schema.ts'
import type { Store } from './store.ts'
import type { WebhookSender } from './webhook-sender.ts'
import type { Webhooks } from './webhooks.ts'

/** What the operations work with. */
export interface OperationServices {
  readonly store: Store
  readonly contexts: Contexts
  readonly feeds: Feeds
  readonly clock: Clock
  readonly ids: Ids
  readonly limits: Limits
  readonly metering: Metering
  readonly sendsUnderWay: SendsUnderWay
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
