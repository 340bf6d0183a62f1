import { A2AError, type ErrorCode } from '../../../../machines/protocol/errors.ts'
import { fromWireError } from '../../../../machines/protocol/wire-errors.ts'

/** An error as REST and gRPC carry it: a `google.rpc.Status`, with its details as JSON (§10.6, §11.6). */
export interface RpcStatus {
  /** The name of the gRPC status, such as `NOT_FOUND`. */
  readonly status: unknown
  readonly message: unknown
  readonly details: unknown
}

/** What a status means where no ErrorInfo says which error it is. */
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

/** The error that a status stands for: ErrorInfo's reason says which (§5.4), else the status does, else it is InternalError. */
export function fromRpcStatus({ status, message, details }: RpcStatus): A2AError {
  const error = fromWireError({ message, data: details })
  const code = error.code === 'InternalError' ? CODES.get(status) : undefined
  if (!code) return error
  const { violations, retryAfterMs } = error
  return new A2AError(code, error.message, { violations, cause: error, ...(retryAfterMs !== undefined && { retryAfterMs }) })
}
