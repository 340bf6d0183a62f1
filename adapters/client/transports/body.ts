import { isObject } from '../../../machines/protocol/codec/json.ts'
import { A2AError, type ErrorCode } from '../../../machines/protocol/errors.ts'
import { ConnectionLost } from '../retries/lost-errors.ts'

/** The maximum length of an answer. */
const LONGEST_ANSWER_BYTES = 64 * 1024 * 1024

/**
 * Reads a response as text. Throws ConnectionLost if it is interrupted, InvalidAgentResponse beyond `most` bytes, by
 * default 64 MiB.
 */
export async function wholeBody(response: Response, most = LONGEST_ANSWER_BYTES): Promise<string> {
  let text = ''
  let bytes = 0
  const decoder = new TextDecoder()
  for await (const chunk of chunksOf(response)) {
    bytes += chunk.length
    if (bytes > most)
      throw new A2AError('InvalidAgentResponse', `The answer from ${response.url} is longer than ${most} bytes.`)
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}

/** The chunks of a body. Throws ConnectionLost if it is interrupted; leaving the loop ends the request. */
export async function* chunksOf({ body }: Response): AsyncGenerator<Uint8Array, void, undefined> {
  if (!body) return
  const reader = body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(cause => {
        throw new ConnectionLost('the answer was interrupted', { cause })
      })
      if (done) return
      yield value
    }
  } finally {
    // Not awaited: canceling a lost connection rejects again.
    void reader.cancel().catch(() => {})
  }
}

/** Cancels an unread body, which may be endless. */
export function discard({ body }: Response): void {
  // Not awaited: canceling a lost connection rejects.
  void body?.cancel().catch(() => {})
}

/** The media type of a response, without parameters; empty if it has none. */
export function mediaType({ headers }: Response): string {
  return (headers.get('content-type') ?? '').replace(/;.*$/s, '').trim().toLowerCase()
}

/** Whether a media type is JSON or a subtype such as `application/a2a+json`. A missing one counts as JSON. */
export function isJsonType(type: string): boolean {
  return type === '' || /^application\/(?:[\w.-]+\+)?json$/.test(type)
}

/** The error for a status, if the body contains no better one. */
const CODES: ReadonlyMap<number, ErrorCode> = new Map([
  [401, 'Unauthenticated'],
  [403, 'Forbidden'],
  [404, 'UnsupportedOperation'],
  [405, 'UnsupportedOperation'],
  [408, 'DeadlineExceeded'],
  [413, 'TooLarge'],
  [429, 'RateLimited'],
  [501, 'UnsupportedOperation'],
  [502, 'Overloaded'],
  [503, 'Overloaded'],
  [504, 'Overloaded']
])

const TEXTS: ReadonlyMap<number, string> = new Map([
  [401, 'requires credentials'],
  [403, 'refuses access'],
  [404, 'was not found'],
  [405, 'does not accept this kind of request'],
  [408, 'waited too long for the request'],
  [413, 'does not accept a request of this size'],
  [429, 'has received too many requests'],
  [501, 'does not support this request'],
  [502, 'cannot be reached'],
  [503, 'is not available at present'],
  [504, 'does not answer in time']
])

/** An HTTP answer without its body. */
export interface AnswerHead {
  readonly url: string
  readonly status: number
  readonly headers: { get(name: string): string | null }
}

/**
 * The error for a response without an A2A error: by its status, or InvalidAgentResponse for an unexpected status.
 * `Retry-After` becomes its `retryAfterMs`.
 */
export function statusError({ url, status, headers }: AnswerHead): A2AError {
  const summary = TEXTS.get(status) ?? 'sent a response that is not A2A'
  return new A2AError(
    CODES.get(status) ?? 'InvalidAgentResponse',
    `The agent at ${url} ${summary} (HTTP ${status}).`,
    retryOf(headers)
  )
}

/**
 * The error for an HTTP response that is not OK; `agentError` is the one in its body. Returns ConnectionLost, which is
 * retried, if the agent is Overloaded, or if a gateway answers with 502, 503, 504, or 429 with `Retry-After`. With
 * `Retry-After` the request counts as not received.
 */
export function callErrorOf(head: AnswerHead, agentError?: A2AError): A2AError | ConnectionLost {
  const error = agentError ?? statusError(head)
  const hasRetryAfter = error.retryAfterMs !== undefined
  if (error.code !== 'Overloaded' && (agentError || error.code !== 'RateLimited' || !hasRetryAfter)) return error
  return new ConnectionLost(error.message, { isUnsent: hasRetryAfter, cause: error })
}

/**
 * The temporary error of a handshake or of a request for a card: 408, 429, and server errors. `undefined` for every
 * other status. Neither request changes anything, so both can be retried.
 */
export function passingError({ url, status, headers }: AnswerHead): A2AError | undefined {
  if (status !== 408 && status !== 429 && (status < 500 || status === 501 || status === 505)) return undefined
  const text = `The agent at ${url} ${TEXTS.get(status) ?? 'is in trouble'} (HTTP ${status}).`
  return new A2AError(status === 429 ? 'RateLimited' : 'Overloaded', text, retryOf(headers))
}

/** `Retry-After` (RFC 9110 §10.2.3): seconds, or a date, which counts from the server's own `Date`. */
function retryOf(headers: AnswerHead['headers']): { readonly retryAfterMs?: number } {
  const retryAfter = headers.get('retry-after') ?? ''
  const retryAfterMs = /^\d{1,6}$/.test(retryAfter)
    ? Number(retryAfter) * 1000
    : Date.parse(retryAfter) - Date.parse(headers.get('date') ?? '')
  return retryAfterMs >= 0 ? { retryAfterMs } : {}
}

/**
 * The error in the text of a JSON-RPC 2.0 response; `undefined` for any other text. The `error` of a gateway's own JSON
 * is ignored, since its status says as much.
 */
export function jsonRpcErrorIn(text: string): Record<string, unknown> | undefined {
  const { jsonrpc, error } = answerIn(text)
  return jsonrpc === '2.0' && isObject(error) && Number.isInteger(error.code) ? error : undefined
}

function answerIn(text: string): Record<string, unknown> {
  try {
    const answer: unknown = JSON.parse(text)
    return isObject(answer) ? answer : {}
  } catch {
    return {}
  }
}
