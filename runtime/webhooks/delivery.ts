import type { Task } from '../../machines/protocol/objects.ts'
import { A2A_JSON, NEXT_VERSION, PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import type { Limits } from '../access/limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { WebhookAnswer, WebhookBody, WebhookBodyWriter, WebhookSender } from '../ports/webhook-sender.ts'
import { backOffMs } from '../primitives/event-loop.ts'
import type { WebhookProgress, WebhookRow, Scope } from '../store/rows.ts'
import type { Store, TaskEvent } from '../store/store.ts'
import { applyEvents, newTaskRecord, projectTask } from '../store/task-record.ts'
import { loadWholeTask, eventPieces, LARGE_BYTES, toWireEvent } from '../streams/task-stream.ts'

/** Dependencies of a delivery. */
export interface DeliveryServices {
  readonly store: Store
  readonly clock: Clock
  readonly limits: Limits
  readonly sender: WebhookSender
  /** Writers of bodies in older versions of A2A, by version. */
  readonly writings: ReadonlyMap<string, WebhookBodyWriter>
}

/**
 * Makes one attempt to deliver an event to a webhook; `gone` if its task was removed. Ignore the answer if `stop` has
 * aborted.
 */
export async function deliver(
  services: DeliveryServices,
  scope: Scope,
  row: WebhookRow,
  event: TaskEvent,
  stop: AbortSignal
): Promise<WebhookAnswer | 'gone'> {
  const { clock, limits, sender } = services
  const body = await bodyOf(services, scope, row, event)
  if (body === 'gone' || 'failure' in body) return body
  const late = new AbortController()
  const timer = clock.setTimeout(() => late.abort(), limits.webhookTimeoutMs)
  try {
    const answer = await sender.post(
      { url: row.webhook.url, headers: headersFor(row, event, body), body: body.text },
      AbortSignal.any([stop, late.signal])
    )
    return late.signal.aborted ? { failure: `no answer within ${limits.webhookTimeoutMs} ms` } : answer
  } finally {
    clock.clearTimeout(timer)
  }
}

/** Id of the delivery of an event to a webhook, the same for every attempt. */
function deliveryId({ taskId, id }: WebhookRow, { generation }: TaskEvent): string {
  return `${headerText(taskId)}/${headerText(id)}/${generation}`
}

/** Encodes text for a header; lone surrogates become replacement characters. */
function headerText(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString())
}

function headersFor(row: WebhookRow, event: TaskEvent, { type }: WebhookBody): Record<string, string> {
  const { token, authentication } = row.webhook
  return {
    'Content-Type': type,
    'Taskchart-Delivery-Id': deliveryId(row, event),
    ...(token !== undefined && { 'X-A2A-Notification-Token': token }),
    ...(authentication?.credentials !== undefined && {
      Authorization: `${authentication.scheme} ${authentication.credentials}`
    })
  }
}

async function bodyOf(
  { store, writings }: DeliveryServices,
  scope: Scope,
  { version, id }: WebhookRow,
  event: TaskEvent
): Promise<WebhookBody | { readonly failure: string } | 'gone'> {
  if (version === PROTOCOL_VERSION || version === NEXT_VERSION)
    return { type: A2A_JSON, text: JSON.stringify(toWireEvent(event, { version, reliable: false })) }
  const write = writings.get(version)
  if (!write) return { failure: `this server does not speak A2A ${version}` }
  const task = await taskAfter(store, scope, event)
  return task ? write(event.update, task, { id, ...scope }) : 'gone'
}

/** A task after an event; without history if it has changed since, `undefined` if it was removed. */
async function taskAfter(
  store: Store,
  scope: Scope,
  { taskId, generation, update }: TaskEvent
): Promise<Task | undefined> {
  const stored = await store.readTask(scope, taskId, { within: LARGE_BYTES })
  if (stored?.generation === generation) return (await loadWholeTask(store, scope, stored, {}))?.task
  const { contextId } = 'artifactUpdate' in update ? update.artifactUpdate : update.statusUpdate
  const record = newTaskRecord({ ...scope, contextId }, taskId)
  for await (const piece of eventPieces(store, scope, taskId, generation)) applyEvents(record, piece, [])
  // The task may have been removed meanwhile.
  return record.generation === generation ? projectTask(record, { historyLength: 0 }).task : undefined
}

/** Exponential back-off: first and longest wait. Half of each wait is jitter. */
const BACK_OFF = { firstMs: 1000, longestMs: 3_600_000 }

/** Maximum attempts with a receiver that refuses requests. */
const REFUSALS = 8

/**
 * Statuses that reject only this event, not later ones (RFC 9110 §15.5: bad content, too large, media type,
 * unprocessable).
 */
const REJECTIONS = [400, 413, 415, 422]

/** An HTTP date (RFC 9110 §5.6.7). */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/

/** One attempt to deliver an event. */
interface Try {
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
 * Progress of a webhook after an attempt; `gone` if the receiver answered 410, or the task was removed. An event that
 * the receiver rejects (400, 413, 415, 422) is recorded and not retried. A failing receiver (5xx, 408, 429, no answer)
 * is retried for `triesMs`, a refusing one (any other status) 8 times. After that the webhook is a dead letter.
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
  const requestedMs = Math.min(requestedWaitMs(answer, nowMs), BACK_OFF.longestMs)
  const waitMs = Math.max(backOffMs(tries, BACK_OFF) * (1 - spread / 2), requestedMs)
  return { ...failed, dueAtMs: nowMs + waitMs }
}

function isRefusal(answer: WebhookAnswer): boolean {
  if ('failure' in answer) return answer.isRefused === true
  return answer.status < 500 && answer.status !== 408 && answer.status !== 429
}

/** The wait that `Retry-After` asks for, in milliseconds: given in seconds or as a date (RFC 9110 §10.2.3). */
function requestedWaitMs(answer: WebhookAnswer, nowMs: number): number {
  const retryAfter = 'status' in answer ? (answer.retryAfter ?? '') : ''
  if (/^\d{1,9}$/.test(retryAfter)) return Number(retryAfter) * 1000
  return HTTP_DATE.test(retryAfter) ? Date.parse(retryAfter) - nowMs : 0
}
