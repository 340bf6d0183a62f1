import { createHash } from 'node:crypto'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import type { AuthenticationInfo } from '../../machines/protocol/push.ts'
import type { Scope } from './store.ts'

/**
 * A message that is not to be taken twice: `key` names it within its scope by its messageId and by what it addresses,
 * `fingerprint` tells whether another message under that key is the same one.
 */
export interface DeduplicationKey {
  readonly key: string
  readonly fingerprint: string
  /** When it came, and when it may be forgotten, in milliseconds since 1970. */
  readonly atMs: number
  readonly expiresAtMs: number
}

/** What became of a send: the task that it opened or that took it, or the message that answered it. */
export type SendRow = DeduplicationKey & ({ readonly taskId: string } | { readonly reply: Message })

/** Names a client's message for de-duplication. */
export function sendOf(message: Message, atMs: number, rememberedMs: number): DeduplicationKey {
  const { messageId, taskId, contextId } = message
  const address = taskId === undefined ? (contextId === undefined ? ['none'] : ['context', contextId]) : ['task', taskId]
  const fingerprint = createHash('sha256').update(JSON.stringify(message, sorted)).digest('base64url')
  return { key: JSON.stringify([messageId, ...address]), fingerprint, atMs, expiresAtMs: atMs + rememberedMs }
}

/**
 * Names a task as its client does, to find it again: a row under this key says which task it is. All messages under a name are
 * the same to de-duplication, which does not look at them.
 */
export function taskNameKey(name: string, atMs: number, rememberedMs: number): DeduplicationKey {
  return { key: JSON.stringify([name, 'name']), fingerprint: '', atMs, expiresAtMs: atMs + rememberedMs }
}

/** Puts the members of objects in one order, so that equal values have equal text. */
function sorted(_name: string, value: unknown): unknown {
  return isObject(value) ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))) : value
}

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
