import { fromJsonRpcErrorResponse } from '@a2a-js/sdk/errors'
import { ERRORS, isA2AError, type A2AError } from '../../machines/protocol/errors.ts'
import { toWireError } from '../../machines/protocol/wire-errors.ts'

/** How an official server writes errors. The SDK reads it from the error itself. */
export type Transport = 'jsonrpc' | 'rest' | 'grpc'

/** The names of gRPC's statuses, in the order of their numbers. */
export const GRPC_STATUSES: readonly string[] = [
  'OK', 'CANCELLED', 'UNKNOWN', 'INVALID_ARGUMENT', 'DEADLINE_EXCEEDED', 'NOT_FOUND', 'ALREADY_EXISTS', 'PERMISSION_DENIED', 'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION', 'ABORTED', 'OUT_OF_RANGE', 'UNIMPLEMENTED', 'INTERNAL', 'UNAVAILABLE', 'DATA_LOSS', 'UNAUTHENTICATED'
]

/**
 * An error of ours as the class that the SDK has for it; anything else stays as it is.
 *
 * Of the SDK's classes it is that of JSON-RPC, since this one keeps its code and its details on every server: Express
 * JSON-RPC and REST tell code and ErrorInfo, gRPC its status and ErrorInfo, the 0.3 layer all details. What ErrorInfo has
 * no place for, fields and retry delay, is in its metadata. By `transport` the SDK
 * chooses which code it reads: `envelopeCode`, `statusCode` (REST) or `status` (gRPC). So errors without a class get the right one too.
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

/** Why calls failed, by objects of the request that the official servers hand on as they are. */
const failures = new WeakMap<object, A2AError>()

/** Notes why a call failed: by the message of a gRPC call, and by the headers of a request to Express. */
export function noteFailure(error: unknown, ...keys: readonly unknown[]): void {
  if (!isA2AError(error)) return
  for (const key of keys) if (typeof key === 'object' && key !== null) failures.set(key, error)
}

/** The error with which a call failed; `undefined` if it did not, or the error was not one of ours. */
export function failureOf(key: object): A2AError | undefined {
  return failures.get(key)
}

function metadataOf({ metadata, violations, retryAfterMs }: A2AError): Record<string, string> {
  const fields = Object.fromEntries(violations.map(({ field, description }) => [field, description]))
  return { ...metadata, ...fields, ...(retryAfterMs !== undefined && { retryAfterMs: String(retryAfterMs) }) }
}
