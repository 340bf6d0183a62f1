import { isObject } from './codec/json.ts'
import {
  A2AError,
  BAD_REQUEST,
  ERROR_INFO,
  errorCodeOf,
  ERRORS,
  type ErrorDetail,
  RETRY_INFO,
  type A2AErrorOptions,
  type ErrorCode,
  type FieldViolation
} from './errors.ts'

/** The JSON-RPC form of an error (§9.5). `data` is an array of `google.rpc` messages, unless the error has its own. */
export interface WireError {
  readonly code: number
  readonly message: string
  readonly data: ErrorDetail[] | Record<string, unknown>
}

/** Gives the JSON-RPC form of an error (§9.5). */
export function toWireError(error: A2AError): WireError {
  return {
    code: ERRORS[error.code].code,
    message: error.message,
    data: error.data ?? error.details
  }
}

/**
 * Reads the untrusted `error` member of a JSON-RPC response.
 *
 * The code comes from its number, else from ErrorInfo's `reason`, else it is InternalError. Message, metadata,
 * violations and retry delay are read where they are well formed. The whole input is the `cause`.
 */
export function fromWireError(wire: unknown): A2AError {
  const error = isObject(wire) ? wire : {}
  const details = Array.isArray(error.data) ? error.data.filter(isObject) : []
  const message = typeof error.message === 'string' ? error.message : undefined
  return new A2AError(codeOf(error.code, details), message, { ...optionsOf(details), cause: wire })
}

function codeOf(number: unknown, details: Record<string, unknown>[]): ErrorCode {
  const known = typeof number === 'number' ? errorCodeOf(number) : undefined
  return known ?? codeOfReason(find(details, ERROR_INFO)?.reason) ?? 'InternalError'
}

function codeOfReason(reason: unknown): ErrorCode | undefined {
  for (const { code, reason: known } of Object.values(ERRORS)) if (known === reason) return errorCodeOf(code)
  return undefined
}

function optionsOf(details: Record<string, unknown>[]): A2AErrorOptions {
  const metadata = stringsOf(find(details, ERROR_INFO)?.metadata)
  const violations = violationsOf(find(details, BAD_REQUEST)?.fieldViolations)
  const retryAfterMs = millisecondsOf(find(details, RETRY_INFO)?.retryDelay)
  return { metadata, violations, ...(retryAfterMs !== undefined && { retryAfterMs }) }
}

function find(details: Record<string, unknown>[], type: string): Record<string, unknown> | undefined {
  return details.find(detail => detail['@type'] === type)
}

function stringsOf(value: unknown): Record<string, string> {
  if (!isObject(value)) return {}
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  )
}

function violationsOf(value: unknown): FieldViolation[] {
  if (!Array.isArray(value)) return []
  return value
    .filter(isObject)
    .flatMap(({ field, description }) =>
      typeof field === 'string' && typeof description === 'string' ? [{ field, description }] : []
    )
}

function millisecondsOf(delay: unknown): number | undefined {
  const match = typeof delay === 'string' ? /^(\d{1,12}(?:\.\d{1,9})?)s$/.exec(delay) : null
  return match ? Math.ceil(Number(match[1]) * 1000) : undefined
}
