import type { AuthenticationInfo } from '../machines/protocol/push.ts'
import type { Scope } from './store.ts'

/** Where a client wants to be told of a task's updates, and what it wants to see of us (§4.3.1). Holds secrets: for no log. */
export interface Webhook {
  readonly url: string
  readonly token?: string
  readonly authentication?: AuthenticationInfo
}

/** A webhook that is registered for a task. */
export interface NewWebhook {
  readonly taskId: string
  /** Its id among the webhooks of the task. */
  readonly id: string
  readonly webhook: Webhook
  /** The version of A2A in which it is told: that in which it was registered. */
  readonly version: string
}

/** How far a webhook has been told of its task's events, and how its tries of the next one go. */
export interface WebhookProgress {
  /** The generation of the last event that it has been told. */
  readonly told: number
  /** How often the next event was tried without success. */
  readonly tries: number
  /** How many of the last tries were refused, so that more are of little use. */
  readonly refusals?: number
  /** When the first and the next try of this event were and are, in milliseconds since 1970. */
  readonly failingSinceMs?: number
  readonly dueAtMs?: number
  /** Why the last try failed, for who runs the agent. Holds no secrets. */
  readonly failure?: string
  /** The events that its receiver rejected, if any: how many, and the generation and the answer of the newest. */
  readonly rejected?: { readonly events: number; readonly generation: number; readonly failure: string }
  /** Why it is told nothing more: its task has ended and it has heard so, or it is a dead letter. */
  readonly end?: 'told' | 'given up'
}

/** A webhook as a store keeps it. */
export interface WebhookRow extends NewWebhook {
  readonly progress: WebhookProgress
}

/** A webhook with what a store knows of its task. */
export interface StoredWebhook {
  readonly scope: Scope
  readonly row: WebhookRow
  /** Generation of the task's newest event. */
  readonly generation: number
  readonly hasEnded: boolean
  /** Where it stands in the order of first writing, from 1. */
  readonly place: number
}

/** How far a webhook has come. */
export interface WebhookNote {
  readonly scope: Scope
  readonly taskId: string
  readonly id: string
  readonly progress: WebhookProgress
}
