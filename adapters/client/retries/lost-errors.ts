import { A2AError, isA2AError, type ErrorCode } from '../../../machines/protocol/errors.ts'

/** The connection failed before the answer was complete. Internal: callers never see this error. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost'
  /** Whether the request certainly did not reach the agent. */
  readonly isUnsent: boolean

  constructor(why: string, { isUnsent = false, cause }: { isUnsent?: boolean; cause?: unknown } = {}) {
    super(why, { cause })
    this.isUnsent = isUnsent
  }
}

/** Temporary errors of an agent that is reachable. */
const NOT_READY: readonly ErrorCode[] = ['Overloaded', 'RateLimited']

/** Whether an error is temporary: the agent is unreachable or not ready. */
export function mayPass(error: unknown): error is A2AError {
  return isA2AError(error) && NOT_READY.includes(error.code)
}

/** The agent is unreachable, its certificate is not trusted, or its port has the other scheme. */
export function nobodyAnswers(url: string, cause?: unknown): A2AError {
  const fault = certificateFault(cause)
  const text = fault === undefined ? silence(url, cause) : `The TLS certificate at ${url} is not trusted: ${fault}.`
  return new A2AError('Overloaded', text, { cause })
}

/** The reason for a missing answer, if the errors contain one. */
function silence(url: string, cause: unknown): string {
  if (isAmongCauses(cause, /wrong.version.number|packet.length.too.long/i))
    return `The port of ${url} speaks no TLS. Write ${otherScheme(url)} instead.`
  // A server that expects TLS closes the connection at the first letter of plain text.
  const isClosed = /^(?:http|ws):/.test(url) && isAmongCauses(cause, /^(?:UND_ERR_SOCKET|ECONNRESET|EPIPE)$/)
  return `Nobody answers at ${url}. Is the agent running?${isClosed ? ` ${tlsHint(url)}` : ''}${originHint(url)}`
}

/** A hint for an address without TLS whose port may require it. */
export function tlsHint(url: string): string {
  return `If the port speaks TLS, write ${otherScheme(url)} instead.`
}

/** The origin of a URL with TLS instead of without, or without instead of with. */
function otherScheme(url: string): string {
  const { protocol, host } = new URL(url)
  const other =
    { 'https:': 'http:', 'wss:': 'ws:', 'ws:': 'wss:', 'grpcs:': 'grpc:', 'grpc:': 'grpcs:' }[protocol] ?? 'https:'
  return `${other}//${host}/`
}

/** Whether the code or the text of an error, or of one of its causes, matches. */
function isAmongCauses(error: unknown, pattern: RegExp): boolean {
  if (!(error instanceof Error)) return false
  return (
    ('code' in error && pattern.test(String(error.code))) ||
    pattern.test(error.message) ||
    isAmongCauses(error.cause, pattern)
  )
}

/** A hint for pages, since a browser does not reveal whether the agent refused the page's origin. */
function originHint(url: string): string {
  const { location } = globalThis as { readonly location?: { readonly origin: string } }
  if (location === undefined || new URL(url.replace(/^ws/, 'http')).origin === location.origin) return ''
  const { origin } = location
  if (origin === 'null') return ' A page of a file has no origin, and may not connect: serve it over http:.'
  return ` Does it allow pages of ${origin}? Start it with --origin ${origin}, or createRuntime({ origins: ['${origin}'] }).`
}

/** The certificate error in Node's error, or in its cause, where `fetch` puts it. */
function certificateFault(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const code = 'code' in error ? String(error.code) : ''
  return /^(?:CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT)/.test(code)
    ? error.message
    : certificateFault(error.cause)
}

/** The connection was lost, and the time limit for retries has passed. */
export function wasLost(url: string, why: string): A2AError {
  return new A2AError(
    'Overloaded',
    `The connection to ${url} was lost (${why}). Tasks continue; connect again to see them.`
  )
}

const UNKNOWN = 'It is unknown whether the agent received it: check before you send it again.'

/** The agent sent something that this client cannot read. */
export function unreadable(url: string, cause: unknown): A2AError {
  return new A2AError(
    'InvalidAgentResponse',
    `${url} sent a frame that is not valid A2A: ${(cause as Error).message}.`,
    { cause }
  )
}

/** The connection was lost during a request that cannot be sent again. */
export function cutOff(url: string, method: string, cause?: unknown): A2AError {
  return new A2AError('Overloaded', `The connection to ${url} was lost while ${method} was under way. ${UNKNOWN}`, {
    cause
  })
}

/** Errors that an agent, or a gateway, returns before it reads a message. */
const BEFORE_A_LOOK: readonly ErrorCode[] = [
  'Unauthenticated',
  'Forbidden',
  'RateLimited',
  'Overloaded',
  'InvalidAgentResponse',
  'DeadlineExceeded'
]

/**
 * Adds to the error of a retried request that the outcome of an earlier attempt is unknown, unless the error settles
 * it.
 */
export function inDoubt(error: unknown, method: string): unknown {
  if (!isA2AError(error) || !BEFORE_A_LOOK.includes(error.code)) return error
  const { code, message, metadata, violations, retryAfterMs } = error
  const text = `${message} ${method} was interrupted before its answer. ${UNKNOWN}`
  return new A2AError(code, text, {
    metadata,
    violations,
    cause: error,
    ...(retryAfterMs !== undefined && { retryAfterMs })
  })
}

/** This client closed the connection. */
export function closedHere(url: string): A2AError {
  return new A2AError('Overloaded', `The connection to ${url} was closed by this client.`)
}
