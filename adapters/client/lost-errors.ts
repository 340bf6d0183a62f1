import { A2AError, isA2AError, type ErrorCode } from '../../machines/protocol/errors.ts'

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

/** A request was cut off that cannot be sent again. */
export function cutOff(url: string, method: string): A2AError {
  const text = `The connection to ${url} was lost while ${method} was under way. Nobody knows whether the agent took it: look before you send it again.`
  return new A2AError('Overloaded', text)
}

/** The client itself closed its connection. */
export function closedHere(url: string): A2AError {
  return new A2AError('Overloaded', `The connection to ${url} was closed by this client.`)
}
