import type { StreamResponse, Task } from '../../machines/protocol/objects.ts'

/** What is posted to a webhook. */
export interface WebhookPost {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/**
 * What came of a post: the HTTP status, with the text of `Retry-After` if there is one, or why there is none. `isRefused`:
 * the address is one that is not posted to, so that more tries are of little use. A failure holds no secrets.
 */
export type WebhookAnswer = { readonly status: number; readonly retryAfter?: string | undefined } | { readonly failure: string; readonly isRefused?: boolean }

/** How webhooks are reached: `webhooks()` of `taskchart/push`. */
export interface WebhookSender {
  /** What is wrong with an address that nothing would be posted to, as in `must be https`; `undefined` if nothing is. Gives up when the signal aborts. */
  faultOf(url: string, signal: AbortSignal): Promise<string | undefined>
  /** Posts once. Gives up when the signal aborts; what it then answers does not count. */
  post(post: WebhookPost, signal: AbortSignal): Promise<WebhookAnswer>
}

/** A body as it is posted. */
export interface WebhookBody {
  readonly type: string
  readonly text: string
}

/**
 * Writes what a webhook is told that was registered in an older version: an update, the task as it was after it, and the webhook's
 * id. `earlier` reads the tasks of the same name before that one, oldest first.
 */
export type WebhookBodyWriter = (update: StreamResponse, task: Task, webhookId: string, earlier: () => Promise<Task[]>) => WebhookBody | Promise<WebhookBody>
