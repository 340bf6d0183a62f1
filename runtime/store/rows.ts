import { createHash } from 'node:crypto'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { Message } from '../../machines/protocol/objects.ts'
import type { AuthenticationInfo } from '../../machines/protocol/push.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import type { TransitionCount } from '../xstate/transition-counter.ts'

/**
 * Deduplication key of a message. `key` is unique in its scope, from the messageId and what the message addresses.
 * `fingerprint` differs for another message with that key.
 */
export interface DeduplicationKey {
  readonly key: string
  readonly fingerprint: string
  /** Time of arrival, and time after which it may be deleted, in milliseconds since 1970. */
  readonly atMs: number
  readonly expiresAtMs: number
}

/** Outcome of a message that is deduplicated or has a key: the task that it opened or reached, or the answer. */
export type SendRow = DeduplicationKey & ({ readonly taskId: string } | { readonly reply: Message })

/** The deduplication key of a client's message. */
export function deduplicationKeyOf(message: Message, atMs: number, rememberedMs: number): DeduplicationKey {
  const { messageId, taskId, contextId } = message
  const address =
    taskId === undefined ? (contextId === undefined ? ['none'] : ['context', contextId]) : ['task', taskId]
  const fingerprint = createHash('sha256').update(JSON.stringify(message, sorted)).digest('base64url')
  return { key: JSON.stringify([messageId, ...address]), fingerprint, atMs, expiresAtMs: atMs + rememberedMs }
}

/**
 * A client's own key for a task, as one of deduplication: its row has the target. The fingerprint is empty, since
 * messages with a key of the client are not deduplicated.
 */
export function clientKeyOf(name: string, atMs: number, storedMs: number): DeduplicationKey {
  return { key: JSON.stringify([name, 'name']), fingerprint: '', atMs, expiresAtMs: atMs + storedMs }
}

/** JSON replacer that sorts members, so that equal values have equal text. */
function sorted(_name: string, value: unknown): unknown {
  return isObject(value) ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))) : value
}

/** URL and credentials of a webhook (§4.3.1). Never log it: it has secrets. */
export interface Webhook {
  readonly url: string
  readonly token?: string
  readonly authentication?: AuthenticationInfo
}

/** A webhook of a task. */
export interface NewWebhook {
  readonly taskId: string
  /** Unique among the webhooks of the task. */
  readonly id: string
  readonly webhook: Webhook
  /** The version of A2A for its posts: that of its registration. */
  readonly version: string
}

/** Delivery progress of a webhook, and retries of its next event. */
export interface WebhookProgress {
  /** Generation of the last delivered event. */
  readonly told: number
  /** Failed attempts of the next event. */
  readonly tries: number
  /** How many of the last attempts were refused, which makes further retries useless. */
  readonly refusals?: number
  /** Times of the first failed attempt of this event and of the next one, in milliseconds since 1970. */
  readonly failingSinceMs?: number
  readonly dueAtMs?: number
  /** Why the last attempt failed, for the agent's operator. Has no secrets. */
  readonly failure?: string
  /** Events that the receiver rejected, if any: their number, and generation and answer of the newest. */
  readonly rejected?: { readonly events: number; readonly generation: number; readonly failure: string }
  /** Why no more is delivered: the end of its task was delivered, or the webhook is a dead letter (`given up`). */
  readonly end?: 'told' | 'given up'
}

/** A stored webhook. */
export interface WebhookRow extends NewWebhook {
  readonly progress: WebhookProgress
}

/** A stored webhook with data of its task. */
export interface StoredWebhook {
  readonly scope: Scope
  readonly row: WebhookRow
  /** Generation of the task's newest entry. */
  readonly generation: number
  readonly hasEnded: boolean
  /** Its position in the order of first writing, from 1. */
  readonly place: number
}

/** New progress of a webhook. */
export interface WebhookNote {
  readonly scope: Scope
  readonly taskId: string
  readonly id: string
  readonly progress: WebhookProgress
}

/** The portion of open tasks that a runtime counts in one read. */
export const COUNTED_AT_ONCE = 2000

/** Open tasks by state: a portion of all. */
export interface StateCounts {
  readonly states: Readonly<Partial<Record<TaskState, number>>>
  /** Where the next portion begins; missing in the last one. */
  readonly next?: string
}

/** Open tasks by the version of the agent that stored them: a portion of all. Without a version they count as ''. */
export interface VersionCounts {
  readonly versions: Readonly<Record<string, number>>
  /** Where the next portion begins; missing in the last one. */
  readonly next?: string
}

/** So many characters at the start of a task's snapshot have its version. */
export const VERSION_CHARACTERS = 500

/** The version in the start of a task's snapshot; '' if there is none. */
export function versionOfSnapshot(start: string): string {
  const [, version = '""'] = /^\{"format":\d+,"version":("(?:[^"\\]|\\.)*")/.exec(start) ?? []
  return JSON.parse(version) as string
}

/** The digest of the definition in the start of a task's snapshot, if it has one. */
export function definitionOfSnapshot(start: string): string | undefined {
  return /^\{"format":\d+,"version":"(?:[^"\\]|\\.)*","definition":"([\w-]+)"/.exec(start)?.[1]
}

/** Open tasks by version, of the starts of their snapshots. */
export function sumVersions(starts: Iterable<string>): Record<string, number> {
  const versions: Record<string, number> = Object.create(null)
  for (const start of starts) {
    const version = versionOfSnapshot(start)
    versions[version] = (versions[version] ?? 0) + 1
  }
  return { ...versions }
}

/** The state of an engine. */
export interface StoreStatus {
  /**
   * Whether it accepts nothing more from this process: its disk or file is broken, or belongs to another process now.
   */
  readonly isStopped: boolean
  /** Number of reads and of writes that have not been answered. */
  readonly waitingReads: number
  readonly waitingWrites: number
}

/**
 * The part of the storage port that counts transitions of charts. An engine has both methods or neither; then nothing
 * is counted.
 */
export interface TransitionStore {
  /**
   * Adds counts at this time, in milliseconds since 1970, and resolves when they are durable. Erasures leave them,
   * since they say nothing of a task. `sweep` deletes the counts of a chart that was counted last before
   * `endedBeforeMs`.
   */
  countTransitions?(counts: readonly TransitionCount[], atMs: number): Promise<void>
  /** The counts of a version of a chart: one for each pair of transitions, in any order. */
  readTransitions?(chart: string): Promise<TransitionCount[]>
}

/** One count for each pair of transitions, in the order of the first of each. */
export function sumTransitionCounts(counts: readonly TransitionCount[]): TransitionCount[] {
  const sums = new Map<string, TransitionCount>()
  for (const one of counts) {
    const pair = JSON.stringify([one.chart, one.previous, one.taken])
    const sum = sums.get(pair)
    sums.set(
      pair,
      sum ? { ...sum, count: sum.count + one.count, timed: sum.timed + one.timed, ms: sum.ms + one.ms } : one
    )
  }
  return [...sums.values()]
}

/** The first tasks of a page that fit into `bytes`, but at least one. */
export function fitting<Listed>(
  tasks: readonly Listed[],
  bytes = Infinity,
  bytesOf: (task: Listed) => number
): Listed[] {
  let left = bytes
  const end = bytes === Infinity ? -1 : tasks.findIndex((task, index) => (left -= bytesOf(task)) < 0 && index > 0)
  return tasks.slice(0, end < 0 ? tasks.length : end)
}

/** Decides for each task in turn whether it fits into the rest of `within` bytes. */
export function fitsInto(within = Infinity): (bytes: number) => boolean {
  let left = within
  return bytes => {
    const fits = bytes <= left
    if (fits) left -= bytes
    return fits
  }
}

/** Owner of data. Scopes are isolated: the data of another scope does not exist for this one. */
export interface Scope {
  readonly tenant: string
  readonly principal: string
}
