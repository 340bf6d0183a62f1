import { A2AError, isA2AError, type ErrorCode } from '../../../machines/protocol/errors.ts'

/** The way to an agent failed under a request, before its answer was whole. Never leaves the client. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost'
  /** Whether it is certain that the request did not reach the agent. */
  readonly isUnsent: boolean

  constructor(why: string, { isUnsent = false, cause }: { isUnsent?: boolean; cause?: unknown } = {}) {
    super(why, { cause })
    this.isUnsent = isUnsent
  }
}

/** Errors of an agent that is there and not ready. */
const NOT_READY: readonly ErrorCode[] = ['Overloaded', 'RateLimited']

/** Says that the same request may succeed later: the agent is not reached, or not ready. */
export function mayPass(error: unknown): error is A2AError {
  return isA2AError(error) && NOT_READY.includes(error.code)
}

/** Nobody is at an agent's address, or somebody whose certificate is not trusted. */
export function nobodyAnswers(url: string, cause?: unknown): A2AError {
  const fault = certificateFault(cause)
  const text = fault === undefined ? `Nobody answers at ${url}. Is the agent running?` : `The TLS certificate at ${url} is not trusted: ${fault}.`
  return new A2AError('Overloaded', text, { cause })
}

/** Finds the fault of a certificate in Node's error, or in its cause, where `fetch` puts it. */
function certificateFault(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const code = 'code' in error ? String(error.code) : ''
  return /^(?:CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT)/.test(code) ? error.message : certificateFault(error.cause)
}

/** The way to an agent was lost, and is not looked for any more. */
export function wasLost(url: string, why: string): A2AError {
  return new A2AError('Overloaded', `The connection to ${url} was lost (${why}). Tasks go on; connect again to see them.`)
}

const UNKNOWN = 'Nobody knows whether the agent took it: look before you send it again.'

/** A request was cut off that cannot be sent again. */
export function cutOff(url: string, method: string, cause?: unknown): A2AError {
  return new A2AError('Overloaded', `The connection to ${url} was lost while ${method} was under way. ${UNKNOWN}`, { cause })
}

/** Errors that an agent, or a gateway, gives before it looks at a message. */
const BEFORE_A_LOOK: readonly ErrorCode[] = ['Unauthenticated', 'Forbidden', 'RateLimited', 'Overloaded', 'InvalidAgentResponse', 'DeadlineExceeded']

/** An error that ends a request of which an earlier try was cut off: it says so, unless it settles what became of that try. */
export function inDoubt(error: unknown, method: string): unknown {
  if (!isA2AError(error) || !BEFORE_A_LOOK.includes(error.code)) return error
  const { code, message, metadata, violations, retryAfterMs } = error
  const text = `${message} ${method} was cut off before its answer. ${UNKNOWN}`
  return new A2AError(code, text, { metadata, violations, cause: error, ...(retryAfterMs !== undefined && { retryAfterMs }) })
}

/** The client itself closed its connection. */
export function closedHere(url: string): A2AError {
  return new A2AError('Overloaded', `The connection to ${url} was closed by this client.`)
}
