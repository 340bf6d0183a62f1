import { fromJsonRpcErrorResponse } from '@a2a-js/sdk/errors'
import { ERRORS, isA2AError, type A2AError } from '../../machines/protocol/errors.ts'
import { toWireError } from '../../machines/protocol/wire-errors.ts'

/** The error format of an official server. The SDK reads it from the error itself. */
export type Transport = 'jsonrpc' | 'rest' | 'grpc'

/** The names of gRPC's statuses by number. */
export const GRPC_STATUSES: readonly string[] = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED'
]

/**
 * Converts an A2AError to the SDK's class; returns any other error unchanged.
 *
 * It uses the JSON-RPC class, which keeps its code and its details on every server. Express sends the code and ErrorInfo over JSON-RPC and
 * REST. gRPC sends its status and ErrorInfo, and the 0.3 layer sends all details. Fields and the retry delay are added to ErrorInfo's
 * metadata. By `transport` the SDK chooses which code it reads: `envelopeCode`, `statusCode` (REST) or `status` (gRPC). So errors without a
 * class also get the right one.
 */
export function toSdkError(error: unknown, transport: Transport = 'jsonrpc'): unknown {
  if (!isA2AError(error)) return error
  const metadata = metadataOf(error)
  const [info] = error.details
  const { http, grpc } = ERRORS[error.code]
  return Object.assign(fromJsonRpcErrorResponse({ jsonrpc: '2.0', id: null, error: toWireError(error) }), {
    cause: error,
    metadata,
    toErrorInfo: () => ({ ...info, metadata }),
    transport,
    statusCode: http,
    status: GRPC_STATUSES.indexOf(grpc)
  })
}

/** The errors of failed calls, by objects of the request that the official servers pass on unchanged. */
const failures = new WeakMap<object, A2AError>()

/** Records why a call failed: by the message of a gRPC call, or the headers of an Express request. */
export function noteFailure(error: unknown, ...keys: readonly unknown[]): void {
  if (!isA2AError(error)) return
  for (const key of keys) if (typeof key === 'object' && key !== null) failures.set(key, error)
}

/** The A2AError of a failed call; `undefined` for other calls. */
export function failureOf(key: object): A2AError | undefined {
  return failures.get(key)
}

function metadataOf({ metadata, violations, retryAfterMs }: A2AError): Record<string, string> {
  const fields = Object.fromEntries(violations.map(({ field, description }) => [field, description]))
  return { ...metadata, ...fields, ...(retryAfterMs !== undefined && { retryAfterMs: String(retryAfterMs) }) }
}
