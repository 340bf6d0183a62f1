import type { WebhookAnswer } from '../ports/webhook-sender.ts'
import type { WebhookProgress } from '../store/rows.ts'

/** Exponential back-off: first and longest wait. Half of each wait is jitter. */
const FIRST_WAIT_MS = 1000
const LONGEST_WAIT_MS = 3_600_000

/** Maximum attempts with a receiver that refuses requests. */
const REFUSALS = 8

/** Statuses that reject only this event, not later ones (RFC 9110 §15.5: bad content, too large, media type, unprocessable). */
const REJECTIONS = [400, 413, 415, 422]

/** An HTTP date (RFC 9110 §5.6.7). */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/

/** One attempt to deliver an event. */
export interface Try {
  readonly generation: number
  /** Whether the event is the last of its task. */
  readonly isLast: boolean
  readonly nowMs: number
  /** Jitter of the next wait, from 0 up to 1. */
  readonly spread: number
  /** How long an event is retried, in milliseconds. */
  readonly triesMs: number
}

/**
 * Progress of a webhook after an attempt; `gone` if the receiver answered 410, or the task was removed. An event that the receiver rejects (400, 413, 415, 422)
 * is recorded and not retried. A failing receiver (5xx, 408, 429, no answer) is retried for `triesMs`, a refusing one (any other
 * status) 8 times. After that the webhook is a dead letter.
 */
export function afterAttempt(
  before: WebhookProgress,
  answer: WebhookAnswer | 'gone',
  { generation, isLast, nowMs, spread, triesMs }: Try
): WebhookProgress | 'gone' {
  if (answer === 'gone' || ('status' in answer && answer.status === 410)) return 'gone'
  const rejected =
    'status' in answer && REJECTIONS.includes(answer.status)
      ? { events: (before.rejected?.events ?? 0) + 1, generation, failure: `HTTP ${answer.status}` }
      : undefined
  if (rejected || ('status' in answer && answer.status >= 200 && answer.status < 300)) {
    const kept = rejected ?? before.rejected
    return { told: generation, tries: 0, ...(kept && { rejected: kept }), ...(isLast && { end: 'told' }) }
  }
  const { told, failingSinceMs = nowMs } = before
  const tries = before.tries + 1
  const refusals = isRefusal(answer) ? (before.refusals ?? 0) + 1 : 0
  const failure = 'status' in answer ? `HTTP ${answer.status}` : answer.failure
  const failed = {
    told,
    tries,
    refusals,
    failingSinceMs,
    failure,
    ...(before.rejected && { rejected: before.rejected })
  }
  if (refusals >= REFUSALS || nowMs - failingSinceMs >= triesMs) return { ...failed, end: 'given up' }
  const longestMs = Math.min(FIRST_WAIT_MS * 2 ** (tries - 1), LONGEST_WAIT_MS)
  const waitMs = Math.max(longestMs * (1 - spread / 2), Math.min(askedMs(answer, nowMs), LONGEST_WAIT_MS))
  return { ...failed, dueAtMs: nowMs + waitMs }
}

function isRefusal(answer: WebhookAnswer): boolean {
  if ('failure' in answer) return answer.isRefused === true
  return answer.status < 500 && answer.status !== 408 && answer.status !== 429
}

/** The wait that `Retry-After` asks for, in milliseconds: given in seconds or as a date (RFC 9110 §10.2.3). */
function askedMs(answer: WebhookAnswer, nowMs: number): number {
  const asked = 'status' in answer ? (answer.retryAfter ?? '') : ''
  if (/^\d{1,9}$/.test(asked)) return Number(asked) * 1000
  return HTTP_DATE.test(asked) ? Date.parse(asked) - nowMs : 0
}
