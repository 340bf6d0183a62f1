import type { StreamResponse, Task } from '../../machines/protocol/objects.ts'

/** One post to a webhook. */
export interface WebhookPost {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/**
 * Result of a post: the HTTP status, with the text of `Retry-After` if there is one, or why there is no answer.
 * `isRefused`: the URL is not allowed, so retries are useless. A failure has no secrets.
 */
export type WebhookAnswer =
  | { readonly status: number; readonly retryAfter?: string | undefined }
  | { readonly failure: string; readonly isRefused?: boolean }

/** Sends posts to webhooks: `webhooks()` of `taskchart/http`. */
export interface WebhookSender {
  /** Why a URL is not allowed, as in `must be https`; `undefined` if it is. Gives up when the signal aborts. */
  faultOf(url: string, signal: AbortSignal): Promise<string | undefined>
  /** Posts once. Gives up when the signal aborts; the result is then ignored. */
  post(post: WebhookPost, signal: AbortSignal): Promise<WebhookAnswer>
}

/** Body of a post. */
export interface WebhookBody {
  readonly type: string
  readonly text: string
}

/** The webhook of a body: its id, and the caller that owns its task. */
export interface OwnedWebhook {
  readonly id: string
  readonly tenant: string
  readonly principal: string
}

/**
 * Writes the body for a webhook that was registered in an older version of A2A, from an update and the task after it.
 */
export type WebhookBodyWriter = (
  update: StreamResponse,
  task: Task,
  webhook: OwnedWebhook
) => WebhookBody | Promise<WebhookBody>
