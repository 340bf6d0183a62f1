import { A2AError, type ErrorCode } from '../../machines/protocol/errors.ts'

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

/**
 * The error of a response that is none of A2A's: what its status says, or InvalidAgentResponse if that is not what an
 * agent answers with. `Retry-After` is kept if it is a number of seconds.
 */
export function statusError({ status, headers, url }: Response): A2AError {
  const text = TEXTS.get(status)
  const said = text === undefined ? 'answered with what is not A2A' : text
  const delay = /^\d{1,6}$/.exec(headers.get('retry-after') ?? '')?.[0]
  return new A2AError(CODES.get(status) ?? 'InvalidAgentResponse', `The agent at ${url} ${said} (HTTP ${status}).`, {
    ...(delay !== undefined && { retryAfterMs: Number(delay) * 1000 })
  })
}
