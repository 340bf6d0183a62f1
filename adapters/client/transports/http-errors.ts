import { A2AError, type ErrorCode } from '../../../machines/protocol/errors.ts'
import { ConnectionLost } from '../retries/lost-errors.ts'

/** What a status says by itself, where the body does not say it better. */
const CODES: ReadonlyMap<number, ErrorCode> = new Map([
  [401, 'Unauthenticated'],
  [403, 'Forbidden'],
  [404, 'UnsupportedOperation'],
  [405, 'UnsupportedOperation'],
  [408, 'DeadlineExceeded'],
  [413, 'TooLarge'],
  [429, 'RateLimited'],
  [502, 'Overloaded'],
  [503, 'Overloaded'],
  [504, 'Overloaded']
])

const TEXTS: ReadonlyMap<number, string> = new Map([
  [401, 'wants credentials. Connect with { headers: { authorization: … } }'],
  [403, 'does not let this client in'],
  [404, 'is not there'],
  [405, 'takes no requests of this kind'],
  [408, 'waited too long for the request'],
  [413, 'does not take a request of this size'],
  [429, 'has had too many requests'],
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
 * The error of a response that is none of A2A's: what its status says, or InvalidAgentResponse if that is not what an
 * agent answers with. `Retry-After` is its `retryAfterMs`.
 */
export function statusError({ url, status, headers }: AnswerHead): A2AError {
  const said = TEXTS.get(status) ?? 'answered with what is not A2A'
  return new A2AError(CODES.get(status) ?? 'InvalidAgentResponse', `The agent at ${url} ${said} (HTTP ${status}).`, retryOf(headers))
}

/**
 * The error to throw over an HTTP answer that is not OK; `told` is the agent's error in its body. ConnectionLost, so that the
 * request is retried, if the agent is Overloaded, or a gateway answers in its place with 502, 503, 504, or 429 with `Retry-After`.
 * With `Retry-After` the request counts as not taken.
 */
export function failureOf(head: AnswerHead, told?: A2AError): A2AError | ConnectionLost {
  const error = told ?? statusError(head)
  const isAsked = error.retryAfterMs !== undefined
  if (error.code !== 'Overloaded' && (told || error.code !== 'RateLimited' || !isAsked)) return error
  return new ConnectionLost(error.message, { isUnsent: isAsked, cause: error })
}

/**
 * The error of a handshake, or of the request for a card, if the same request may succeed later: 408, 429, and the failures of
 * servers. `undefined` for every other status. Neither request changes anything, so both can be retried.
 */
export function passingError({ url, status, headers }: AnswerHead): A2AError | undefined {
  if (status !== 408 && status !== 429 && (status < 500 || status === 501 || status === 505)) return undefined
  const text = `The agent at ${url} ${TEXTS.get(status) ?? 'is in trouble'} (HTTP ${status}).`
  return new A2AError(status === 429 ? 'RateLimited' : 'Overloaded', text, retryOf(headers))
}

/** `Retry-After` (RFC 9110 §10.2.3): seconds, or a date, which counts from the server's own `Date`. */
function retryOf(headers: AnswerHead['headers']): { readonly retryAfterMs?: number } {
  const asked = headers.get('retry-after') ?? ''
  const retryAfterMs = /^\d{1,6}$/.test(asked) ? Number(asked) * 1000 : Date.parse(asked) - Date.parse(headers.get('date') ?? '')
  return retryAfterMs >= 0 ? { retryAfterMs } : {}
}
