import { rejectUnknown } from '../primitives/options.ts'

/** Quota of one tenant, or of one principal in it. Calls over it are refused with RateLimited, and may be retried. */
export interface Quota {
  /** Tasks that have not ended. */
  openTasks: number
  /** Requests per minute, including refused ones. It is also the largest burst. */
  requestsPerMinute: number
  /** Events of tasks per minute. Over it, messages are refused, but running work is not held back. */
  eventsPerMinute: number
  /** Bytes of requests per minute, as on the wire. Over it, all requests are refused. */
  bytesPerMinute: number
}

/** Changes of single quotas; the others keep their defaults. */
export interface QuotaChanges {
  readonly perTenant?: Partial<Quota> | undefined
  readonly perPrincipal?: Partial<Quota> | undefined
}

/** The quotas of a tenant and of each principal in it. */
export type Quotas = Pick<Limits, keyof QuotaChanges>

/** The limits that have a name of their own in the options: docs/sizing.md says which to think of first. */
const FIRST = [
  'messageBytes',
  'taskBytes',
  'eventsPerTask',
  'tasksPerContext',
  'liveContexts',
  'connections',
  'queuedMessages',
  'referencedBytes',
  'longPollMs'
] as const

type FirstLimit = (typeof FIRST)[number]

/** Changes of single limits; the others keep their defaults. */
export type LimitChanges = Partial<Pick<Limits, FirstLimit>> &
  QuotaChanges & {
    /** The limits that few have to change. */
    readonly advanced?: Partial<Omit<Limits, FirstLimit | keyof QuotaChanges>> | undefined
  }

/** Limits of a runtime and its servers. Every limit is on by default. */
export interface Limits {
  /** Tasks of one context that have not ended. Over it, requests are refused with RateLimited. Default 256. */
  tasksPerContext: number
  /** Events and messages of one task. Over it, the task fails. Default 10,000. */
  eventsPerTask: number
  /**
   * Bytes of one task: its artifacts with every chunk, its statuses and its messages, its newest snapshot, which has
   * the context of a chart, and the journal of its work, as JSON text. Over it, the task fails, and messages that do
   * not fit are refused with RateLimited. Default 16 MiB.
   */
  taskBytes: number
  /**
   * Turns of one task within a second that only the chart's own haste causes: events that it delays by less than 10 ms,
   * and actors that ended less than 10 ms after they started. Over it, turns of the task wait, 10 ms at first, up to a
   * second. Default 100.
   */
  hastyTurns: number
  /**
   * Messages that wait for the next question of one task, or for an answer of one negotiation. Over it, they are
   * refused with RateLimited. Default 16.
   */
  queuedMessages: number
  /**
   * Recoveries within a day of work that was running when its process ended, without progress in between. One more
   * fails its task. Work that sleeps has twenty times as many. Default 5.
   */
  recoveries: number
  /** Contexts in memory. If all are busy, requests for others are refused with Overloaded. Default 10,000. */
  liveContexts: number
  /**
   * Bytes of messages and snapshots of tasks in memory: open tasks, and ended ones until their end is stored. Over it,
   * idle contexts leave memory. If that is not enough, messages are refused with Overloaded. Default 512 MiB.
   */
  liveBytes: number
  /**
   * Share of one principal in `liveContexts`, `liveBytes`, `connections`, `unfinishedBytes`, `answerBytes` and
   * `webhooksAtOnce`, from 0 to 1. Over it, requests are refused with RateLimited; posts to webhooks and large answers
   * wait. Anonymous connections each have this share of `liveContexts` and `liveBytes`. Default 0.25.
   */
  principalShare: number
  /** Share of one tenant in the same limits, from 0 to 1, if `tenants` has several. Default 0.5. */
  tenantShare: number
  /**
   * Idle contexts in memory: their tasks have ended or wait for their clients. Over it, the least recently used leave
   * memory. They are restored by the next message, cancel or timer. Default 32.
   */
  idleContexts: number
  /** Events buffered in memory for one stream. Later ones are read from the log. Default 64. */
  bufferedEvents: number
  /** How long a message is remembered for deduplication, in milliseconds. Default 1 hour. */
  dedupeWindowMs: number
  /** How long GetTask waits for a task to change, if the client asks for that, in milliseconds. Default 30 seconds. */
  longPollMs: number
  /**
   * Time limit of `authenticate`, `authorize`, `extendedCard` and `signCard`, in milliseconds. After it, the caller
   * gets Overloaded. Default 10,000.
   */
  accessMs: number
  /**
   * Time limit of `negotiate`, or of `respond` of a `negotiation`, in milliseconds. After it, its signal aborts, and
   * the caller gets DeadlineExceeded. Default 5 minutes.
   */
  negotiationMs: number
  /** Webhooks of one task. Over it, they are refused with RateLimited. Default 32. */
  webhooksPerTask: number
  /** Active webhooks of one principal. Over it, they are refused with RateLimited. Default 10,000. */
  webhooksPerPrincipal: number
  /** Concurrent posts to webhooks. Principals and tenants have shares of it. Default 256. */
  webhooksAtOnce: number
  /** Concurrent posts to webhooks of one host. Default 8. */
  webhooksAtOncePerHost: number
  /** Time limit of one post to a webhook, in milliseconds. Default 15 seconds. */
  webhookTimeoutMs: number
  /** How long a delivery to a failing webhook is retried, in milliseconds. Default 3 days. */
  webhookTriesMs: number
  /** Frames per second from a client on one connection. Default 10,000. */
  framesPerSecond: number
  /** Connections of one server. Over it, they are refused with HTTP 503. Default 10,000. */
  connections: number
  /** Concurrent unary calls on one connection. Over it, they are refused with RateLimited. Default 100. */
  callsPerConnection: number
  /** Open streams on one connection. Over it, they are refused with RateLimited. Default 1,024. */
  streamsPerConnection: number
  /**
   * Different tasks in the `referenceTaskIds` of one message. Over it, the message is refused with InvalidParams.
   * Default 32.
   */
  referencedTasks: number
  /**
   * Bytes of other tasks that are loaded for the work of one task: referenced tasks, and tasks that may have the
   * artifact to refine. Of tasks that do not fit, the work gets the ids. All works of the process have 16 times as
   * much, those of one principal `principalShare` of that. The messages of a history have this limit too. Default 16
   * MiB.
   */
  referencedBytes: number
  /** Stored bytes of one task whose work can be replayed. A larger task fails. Default 64 MiB. */
  restoredBytes: number
  /**
   * Bytes of incomplete messages and bodies of all clients. Over it, another is refused with Overloaded. It is raised
   * if needed so that one message fits in a principal's share. Default 256 MiB.
   */
  unfinishedBytes: number
  /**
   * Bytes of large answers that are read and sent at the same time: tasks over 1 MiB, pages of tasks over 512 KiB.
   * Others wait. Default 256 MiB.
   */
  answerBytes: number
  /** Size of one message on the wire, in bytes. Default 4 MiB. */
  messageBytes: number
  /** Nesting depth of JSON. Default 64. */
  jsonDepth: number
  /** Values in the JSON of one message: members of objects and elements of lists. Default 200,000. */
  jsonNodes: number
  /**
   * Quota of all callers of a tenant; without `tenants` of all callers. Default 10,000,000 open tasks, 60,000,000
   * requests, 600,000,000 events and 100 GiB per minute.
   */
  perTenant: Quota
  /**
   * Quota of one principal in one tenant; without `tenants` in all tenant names together. Default a tenth of
   * `perTenant`.
   */
  perPrincipal: Quota
}

/** The defaults of {@link Limits}. */
export const defaultLimits: Limits = {
  tasksPerContext: 256,
  eventsPerTask: 10_000,
  taskBytes: 16 * 1024 * 1024,
  hastyTurns: 100,
  queuedMessages: 16,
  recoveries: 5,
  liveContexts: 10_000,
  liveBytes: 512 * 1024 * 1024,
  principalShare: 0.25,
  tenantShare: 0.5,
  idleContexts: 32,
  bufferedEvents: 64,
  dedupeWindowMs: 60 * 60 * 1000,
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
  perTenant: {
    openTasks: 10_000_000,
    requestsPerMinute: 60_000_000,
    eventsPerMinute: 600_000_000,
    bytesPerMinute: 100 * 2 ** 30
  },
  perPrincipal: {
    openTasks: 1_000_000,
    requestsPerMinute: 6_000_000,
    eventsPerMinute: 60_000_000,
    bytesPerMinute: 10 * 2 ** 30
  }
}

const { perTenant: _, perPrincipal: __, ...SINGLE } = defaultLimits
const isFirst = (name: string) => FIRST.some(first => first === name)

/** The defaults of the limits with a name of their own, and of all others. */
const [FIRST_DEFAULTS, ADVANCED] = [true, false].map(wanted =>
  Object.fromEntries(Object.entries(SINGLE).filter(([name]) => isFirst(name) === wanted))
) as [Pick<Limits, FirstLimit>, Omit<Limits, FirstLimit | keyof QuotaChanges>]

/**
 * The default limits with these changes. Throws TypeError for an unknown limit, RangeError for one that is not above 0,
 * or for a share above 1.
 */
export function limitsWith(changes: LimitChanges = {}): Limits {
  const { perTenant, perPrincipal, advanced = {}, ...first } = changes
  const misplaced = Object.keys(first).find(name => Object.hasOwn(ADVANCED, name))
  if (misplaced !== undefined)
    throw new TypeError(`limits has no ${misplaced}. It is an advanced one: limits: { advanced: { ${misplaced} } }.`)
  for (const name of ['principalShare', 'tenantShare'] as const) {
    if (Number(advanced[name]) > 1)
      throw new RangeError(
        `limits.advanced.${name} has to be a part from 0 to 1, not ${String(advanced[name])}. Leave it out for the default.`
      )
  }
  return {
    ...changed('limits', FIRST_DEFAULTS, first),
    ...changed('limits.advanced', ADVANCED, advanced),
    ...quotasWith({ perTenant, perPrincipal })
  }
}

/**
 * The quotas `defaults` with these changes. Throws as {@link limitsWith} does, with `name` as the root of the name in
 * errors.
 */
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
    if (!(Number(limit) > 0))
      throw new RangeError(
        `${name}.${member} has to be a number above 0, not ${String(limit)}. Leave it out for the default.`
      )
  }
  return { ...defaults, ...changes }
}
