import { isObject } from '../../../../machines/protocol/codec/json.ts'
import { A2AError, ERROR_INFO, type ErrorCode, isA2AError } from '../../../../machines/protocol/errors.ts'
import { fromWireError } from '../../../../machines/protocol/wire-errors.ts'
import { ConnectionLost } from '../../retries/lost-errors.ts'

/**
 * Converts an error of the official client: to the agent's error by the `reason` of its class, or to InvalidAgentResponse if the
 * client could not read the answer.
 */
export function officialError(error: unknown): unknown {
  if (error instanceof ConnectionLost || isA2AError(error)) return error
  const { message, reason, metadata } = error as { message: string; reason?: unknown; metadata?: unknown }
  if (typeof reason === 'string') return fromWireError({ message, data: [{ '@type': ERROR_INFO, reason, ...(isObject(metadata) && { metadata }) }] })
  return new A2AError('InvalidAgentResponse', `The agent's answer cannot be read: ${message}`, { cause: error })
}

/** The error of REST and gRPC: a `google.rpc.Status`, with its details as JSON (§10.6, §11.6). */
interface RpcStatus {
  /** The name of the gRPC status, such as `NOT_FOUND`. */
  readonly status: unknown
  readonly message: unknown
  readonly details: unknown
}

/** The error for a status without ErrorInfo. */
const CODES: ReadonlyMap<unknown, ErrorCode> = new Map<unknown, ErrorCode>([
  ['INVALID_ARGUMENT', 'InvalidParams'],
  ['NOT_FOUND', 'TaskNotFound'],
  ['FAILED_PRECONDITION', 'UnsupportedOperation'],
  ['UNIMPLEMENTED', 'UnsupportedOperation'],
  ['UNAUTHENTICATED', 'Unauthenticated'],
  ['PERMISSION_DENIED', 'Forbidden'],
  ['RESOURCE_EXHAUSTED', 'RateLimited'],
  ['UNAVAILABLE', 'Overloaded'],
  ['DEADLINE_EXCEEDED', 'DeadlineExceeded']
])

/** Converts a status to its error: by the reason in ErrorInfo (§5.4), else by the status, else InternalError. */
export function fromRpcStatus({ status, message, details }: RpcStatus): A2AError {
  const error = fromWireError({ message, data: details })
  const code = error.code === 'InternalError' ? CODES.get(status) : undefined
  if (!code) return error
  const { violations, retryAfterMs } = error
  return new A2AError(code, error.message, { violations, cause: error, ...(retryAfterMs !== undefined && { retryAfterMs }) })
}
