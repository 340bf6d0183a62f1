import { A2AError, type ErrorCode } from '../../../machines/protocol/errors.ts'
import { fromWireError } from '../../../machines/protocol/wire-errors.ts'

/** The error of REST and gRPC: a `google.rpc.Status`, with its details as JSON (§10.6, §11.6). */
interface RpcStatus {
  /** The name of the gRPC status, such as `NOT_FOUND`. */
  readonly status?: unknown
  readonly message?: unknown
  readonly details?: unknown
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
  return new A2AError(code, error.message, {
    violations,
    cause: error,
    ...(retryAfterMs !== undefined && { retryAfterMs })
  })
}
