import type { Task } from '../../machines/protocol/objects.ts'
import { A2A_JSON, PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import type { Limits } from '../access/limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { WebhookAnswer, WebhookBody, WebhookSender, WebhookBodyWriter } from '../ports/webhook-sender.ts'
import type { WebhookRow } from '../store/rows.ts'
import type { Scope, Store, TaskEvent } from '../store/store.ts'
import { applyEvents, newTaskRecord, projectTask } from '../store/task-record.ts'
import { completed, eventPieces, LARGE_BYTES, messagesBefore, roundsBefore } from '../streams/whole-task.ts'

/** Dependencies of a delivery. */
export interface DeliveryServices {
  readonly store: Store
  readonly clock: Clock
  readonly limits: Limits
  readonly sender: WebhookSender
  /** Writers of bodies in older versions of A2A, by version. */
  readonly writings: ReadonlyMap<string, WebhookBodyWriter>
}

/** Makes one attempt to deliver an event to a webhook; `gone` if its task was removed. Ignore the answer if `stop` has aborted. */
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
  { store, limits, writings }: DeliveryServices,
  scope: Scope,
  { version, id }: WebhookRow,
  event: TaskEvent
): Promise<WebhookBody | { readonly failure: string } | 'gone'> {
  if (version === PROTOCOL_VERSION) return { type: A2A_JSON, text: JSON.stringify(event.update) }
  const write = writings.get(version)
  if (!write) return { failure: `this server does not speak A2A ${version}` }
  const task = await taskAfter(store, scope, event)
  return task
    ? write(event.update, task, id, {
        rounds: () => roundsBefore({ store, limits }, scope, task.id),
        messages: ({ id: taskId }) => messagesBefore(store, { ...scope, contextId: String(task.contextId) }, taskId)
      })
    : 'gone'
}

/** A task after an event; without history if it has changed since, `undefined` if it was removed. */
async function taskAfter(
  store: Store,
  scope: Scope,
  { taskId, generation, update }: TaskEvent
): Promise<Task | undefined> {
  const stored = await store.readTask(scope, taskId, { within: LARGE_BYTES })
  if (stored?.generation === generation) return (await completed(store, scope, stored, {}))?.task
  const { contextId } = 'artifactUpdate' in update ? update.artifactUpdate : update.statusUpdate
  const record = newTaskRecord({ ...scope, contextId }, taskId)
  for await (const piece of eventPieces(store, scope, taskId, generation)) applyEvents(record, piece, [])
  // The task may have been removed meanwhile.
  return record.generation === generation ? projectTask(record, { historyLength: 0 }).task : undefined
}
