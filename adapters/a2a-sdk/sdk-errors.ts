import { fromJsonRpcErrorResponse } from '@a2a-js/sdk/errors'
import { isA2AError, type A2AError } from '../../machines/protocol/errors.ts'
import { toWireError } from '../../machines/protocol/wire-errors.ts'

/**
 * An error of ours as the class that the SDK has for it; anything else stays as it is.
 *
 * Of the SDK's classes it is that of JSON-RPC, since this one keeps its code and its details on every server: Express
 * JSON-RPC and REST tell code and ErrorInfo, gRPC its status and ErrorInfo, the 0.3 layer all details. What ErrorInfo has
 * no place for, fields and retry delay, is in its metadata. Codes for which the SDK has no class are kept by JSON-RPC alone:
 * REST answers them with 500 and their ErrorInfo, gRPC with UNKNOWN.
 */
export function toSdkError(error: unknown): unknown {
  if (!isA2AError(error)) return error
  const metadata = metadataOf(error)
  const [info] = error.details
  return Object.assign(fromJsonRpcErrorResponse({ jsonrpc: '2.0', id: null, error: toWireError(error) }), {
    cause: error,
    metadata,
    toErrorInfo: () => ({ ...info, metadata })
  })
}

function metadataOf({ metadata, violations, retryAfterMs }: A2AError): Record<string, string> {
  const fields = Object.fromEntries(violations.map(({ field, description }) => [field, description]))
  return { ...metadata, ...fields, ...(retryAfterMs !== undefined && { retryAfterMs: String(retryAfterMs) }) }
}
