import type { JsonLimits } from '../../machines/protocol/codec/json.ts'
import { rejectUnknown } from '../primitives/options.ts'

/** What one tenant, or one principal in it, may use. What is over is refused with RateLimited, and may be sent again. */
export interface Quota {
  /** Tasks that have not ended. No more are opened. */
  openTasks: number
  /** Requests a minute, each of which counts, also one that is refused for another reason. At most so many at once. */
  requestsPerMinute: number
  /** Events of tasks a minute. What works say is never held back: while there is more, no message is taken. */
  eventsPerMinute: number
  /** Bytes of requests a minute, as they come over the wire. While there is more, no request is taken. */
  bytesPerMinute: number
}

/** Changes of single quotas; the others keep their defaults. */
export interface QuotaChanges {
  readonly perTenant?: Partial<Quota> | undefined
  readonly perPrincipal?: Partial<Quota> | undefined
}

/** The quotas of a tenant and of each principal in it. */
export type Quotas = Pick<Limits, keyof QuotaChanges>

/** Changes of single limits; the others keep their defaults. */
export type LimitChanges = Partial<Omit<Limits, keyof QuotaChanges>> & QuotaChanges

/** What a runtime and its servers hold at the most. Every limit is on by default. */
export interface Limits {
  /** Tasks of one context that have not ended. One more request is refused with RateLimited. Default 256. */
  tasksPerContext: number
  /** Events of one task. With more it fails. Default 10,000. */
  eventsPerTask: number
  /**
   * Bytes of one task: its artifacts with every chunk, its statuses and its messages, as JSON text. With more it fails, and a
   * message for which it has no room is refused with RateLimited. Default 16 MiB.
   */
  taskBytes: number
  /** Messages that wait for the next question of one task, or while one negotiation answers another. One more is refused with RateLimited. Default 16. */
  queuedMessages: number
  /**
   * How often work is started again, within a day, that was at work when its process ended and has made no progress since
   * the last time. One end of the process more fails its task. Work that sleeps has twenty times as many. Default 5.
   */
  recoveries: number
  /** Contexts in memory. When all are busy, new work is refused with Overloaded. Default 10,000. */
  liveContexts: number
  /**
   * Bytes of messages and snapshots that the open tasks of contexts in memory keep, and tasks that end until that is stored. Over it
   * contexts at rest leave memory. If that is not enough no message is taken: it is refused with Overloaded. Default 512 MiB.
   */
  liveBytes: number
  /**
   * Part of `liveContexts`, `liveBytes`, `connections`, `unfinishedBytes`, `answerBytes` and `webhooksAtOnce` that one principal may use, from 0 to 1; one more is
   * refused with RateLimited, or waits if it is a post to a webhook or a large answer.
   * Where callers are not known, each connection has this part of `liveContexts` and `liveBytes`. Default 0.25.
   */
  principalShare: number
  /** Part of `liveContexts`, `liveBytes`, `connections`, `unfinishedBytes`, `answerBytes` and `webhooksAtOnce` that one tenant may use where `tenants` names several, from 0 to 1. Default 0.5. */
  tenantShare: number
  /**
   * Contexts that stay in memory though nothing is under way in them: their tasks have ended, or wait for their clients.
   * The longest unused leave; they come back with the next message, cancel or timer. Default 32.
   */
  idleContexts: number
  /** Events that wait in memory for one stream; what is over is read again from the log. Default 64. */
  bufferedEvents: number
  /** How long a message that is not to be taken twice is remembered. Default 1 hour. */
  sendsRememberedMs: number
  /** How long the name that a client of A2A 0.1 has given a task is remembered after its last message under it. Default 1 year. */
  taskNamesRememberedMs: number
  /** How long GetTask waits for a task to change, when it is asked to. Default 30 seconds. */
  longPollMs: number
  /** How long `authenticate`, `authorize`, `extendedCard` and `signCard` may take for an answer, in milliseconds; then the caller gets Overloaded. Default 10,000. */
  accessMs: number
  /**
   * How long `negotiate`, or `respond` of a negotiation that lasts, may take for an answer, in milliseconds; then its signal aborts, and the
   * caller gets DeadlineExceeded. Default 5 minutes.
   */
  negotiationMs: number
  /** Webhooks of one task. One more is refused with RateLimited. Default 32. */
  webhooksPerTask: number
  /** Webhooks of one principal that are still told. One more is refused with RateLimited. Default 10,000. */
  webhooksPerPrincipal: number
  /** Posts to webhooks under way at once. One principal and one tenant have their shares of them. Default 256. */
  webhooksAtOnce: number
  /** Posts to webhooks of one host under way at once. Default 8. */
  webhooksAtOncePerHost: number
  /** How long one post to a webhook may take. Default 15 seconds. */
  webhookTimeoutMs: number
  /** How long an event is tried with a webhook whose receiver is in trouble. Default 3 days. */
  webhookTriesMs: number
  /** Frames that a client may send in a second on one connection. Default 10,000. */
  framesPerSecond: number
  /** Connections of one server. One more is refused with HTTP 503. Default 10,000. */
  connections: number
  /** Unary calls under way on one connection. One more is refused with RateLimited. Default 100. */
  callsPerConnection: number
  /** Streams open on one connection. One more is refused with RateLimited. Default 1,024. */
  streamsPerConnection: number
  /** Different tasks in the `referenceTaskIds` of one message. More are refused with InvalidParams. Default 32. */
  referencedTasks: number
  /**
   * Bytes of other tasks that are loaded for the work of one task: those that its message refers to, and those that may hold the artifact
   * it means. The work gets the ids of the others. All works of the process hold 16 times as much, those of one principal a
   * quarter of that. A history, too, has messages up to this, the newest. Default 16 MiB.
   */
  referencedBytes: number
  /** Stored bytes of one task with which its work can start again after a restart. A larger task fails. Default 64 MiB. */
  restoredBytes: number
  /**
   * Bytes of messages and bodies that have begun to come and are not complete, of all clients together. With more, another is
   * refused with Overloaded. At least as many that a message fits in one principal's share. Default 256 MiB.
   */
  unfinishedBytes: number
  /** Bytes of large answers, those with more than 1 MiB, that are read and sent at once. The others wait. Default 256 MiB. */
  answerBytes: number
  /** Size of one message on the wire, in bytes. Default 4 MiB. */
  messageBytes: number
  /** How deep JSON may nest. Default 64. */
  jsonDepth: number
  /** Values in the JSON of one message: members of objects and elements of lists. Default 200,000. */
  jsonNodes: number
  /**
   * All callers of a tenant together; without `tenants` all callers. Default 10,000,000 open tasks, 60,000,000 requests,
   * 600,000,000 events and 100 GiB a minute.
   */
  perTenant: Quota
  /**
   * One principal in one tenant; without `tenants` under whatever names of tenants it calls. Default a tenth of `perTenant`.
   */
  perPrincipal: Quota
}

/** The defaults of {@link Limits}. */
export const defaultLimits: Limits = {
  tasksPerContext: 256,
  eventsPerTask: 10_000,
  taskBytes: 16 * 1024 * 1024,
  queuedMessages: 16,
  recoveries: 5,
  liveContexts: 10_000,
  liveBytes: 512 * 1024 * 1024,
  principalShare: 0.25,
  tenantShare: 0.5,
  idleContexts: 32,
  bufferedEvents: 64,
  sendsRememberedMs: 60 * 60 * 1000,
  taskNamesRememberedMs: 365 * 24 * 60 * 60 * 1000,
  longPollMs: 30_000,
  accessMs: 10_000,
  negotiationMs: 5 * 60_000,
  webhooksPerTask: 32,
  webhooksPerPrincipal: 10_000,
  webhooksAtOnce: 256,
  webhooksAtOncePerHost: 8,
  webhookTimeoutMs: 15_000,
  webhookTriesMs: 3 * 24 * 60 * 60 * 1000,
  framesPerSecond: 10_000,
  connections: 10_000,
  callsPerConnection: 100,
  streamsPerConnection: 1024,
  referencedTasks: 32,
  referencedBytes: 16 * 1024 * 1024,
  restoredBytes: 64 * 1024 * 1024,
  unfinishedBytes: 256 * 1024 * 1024,
  answerBytes: 256 * 1024 * 1024,
  messageBytes: 4 * 1024 * 1024,
  jsonDepth: 64,
  jsonNodes: 200_000,
  perTenant: { openTasks: 10_000_000, requestsPerMinute: 60_000_000, eventsPerMinute: 600_000_000, bytesPerMinute: 100 * 2 ** 30 },
  perPrincipal: { openTasks: 1_000_000, requestsPerMinute: 6_000_000, eventsPerMinute: 60_000_000, bytesPerMinute: 10 * 2 ** 30 }
}

/** The limits that one pass over the JSON of a message checks. */
export function jsonLimitsOf({ jsonDepth, jsonNodes }: Pick<Limits, 'jsonDepth' | 'jsonNodes'>): JsonLimits {
  return { depth: jsonDepth, nodes: jsonNodes }
}

/** The defaults with these in their place. Throws TypeError for a limit that there is not, RangeError for one that is not a number above 0, or for a share above 1. */
export function limitsWith(changes: LimitChanges = {}): Limits {
  const { perTenant, perPrincipal, ...single } = changes
  for (const name of ['principalShare', 'tenantShare'] as const) {
    if (Number(single[name]) > 1) throw new RangeError(`limits.${name} has to be a part from 0 to 1, not ${String(single[name])}. Leave it out for the default.`)
  }
  return { ...changed('limits', defaultLimits, single), ...quotasWith({ perTenant, perPrincipal }) }
}

/** Quotas with these changes; `defaults` are those that stay. Throws like {@link limitsWith}, with `name` in front of the name of what is wrong. */
export function quotasWith(changes: QuotaChanges = {}, defaults: Quotas = defaultLimits, name = 'limits'): Quotas {
  rejectUnknown(changes, ['perTenant', 'perPrincipal'], name)
  return {
    perTenant: changed(`${name}.perTenant`, defaults.perTenant, changes.perTenant),
    perPrincipal: changed(`${name}.perPrincipal`, defaults.perPrincipal, changes.perPrincipal)
  }
}

function changed<Numbers extends object>(name: string, defaults: Numbers, changes: Partial<Numbers> = {}): Numbers {
  rejectUnknown(changes, Object.keys(defaults), name)
  for (const [member, limit] of Object.entries(changes)) {
    if (!(Number(limit) > 0)) throw new RangeError(`${name}.${member} has to be a number above 0, not ${String(limit)}. Leave it out for the default.`)
  }
  return { ...defaults, ...changes }
}
