import type { StoredWebhook, WebhookProgress } from '../../../runtime/store/rows.ts'
import { oneLine } from '../text/terminal-text.ts'
import { momentText } from '../text/time-text.ts'

/** A webhook and its progress. The path and query of its URL are left out, since they may be secret. */
export interface ShownWebhook extends WebhookProgress {
  readonly id: string
  readonly host: string
  /** The version of A2A in which events are delivered. */
  readonly version: string
  /** The generation of the task's newest event. */
  readonly generation: number
}

export function shownWebhook({ row: { id, webhook, version, progress }, generation }: StoredWebhook): ShownWebhook {
  return { id, host: new URL(webhook.url).origin, version, generation, ...progress }
}

/** A webhook in one line: `p1  https://hooks.example  told 3 of 5; given up after 8 tries: HTTP 404`. */
export function webhookLine(
  { id, host, told, tries, end, dueAtMs, failure = '', rejected, generation }: ShownWebhook,
  nowMs: number
): string {
  const next = dueAtMs === undefined ? '' : `, the next ${momentText(dueAtMs, nowMs)}`
  const trouble =
    end === 'given up'
      ? `; given up after ${tries} tries: ${failure}`
      : tries > 0
        ? `; tried ${tries} times${next}: ${failure}`
        : ''
  const refused = rejected
    ? `; ${rejected.events} rejected, the newest was ${rejected.generation}: ${rejected.failure}`
    : ''
  return `${oneLine(id)}  ${host}  told ${told} of ${generation}${oneLine(trouble + refused)}`
}
