/**
 * All errors, with JSON-RPC number, HTTP status, gRPC name, ErrorInfo reason and standard message.
 *
 * The first ten are A2A's, as A2A 1.0.1 maps them (§5.4; TaskGenerationMismatch is from 1.1). Then come the five of
 * JSON-RPC (§9.5), then taskchart's, with numbers outside the ranges that A2A and JSON-RPC reserve.
 */
export const ERRORS = {
  TaskNotFound: row(-32001, 404, 'NOT_FOUND', 'TASK_NOT_FOUND', 'Task not found'),
  TaskNotCancelable: row(-32002, 400, 'FAILED_PRECONDITION', 'TASK_NOT_CANCELABLE', 'Task cannot be canceled'),
  PushNotificationNotSupported: row(
    -32003,
    400,
    'FAILED_PRECONDITION',
    'PUSH_NOTIFICATION_NOT_SUPPORTED',
    'Push notifications are not supported'
  ),
  UnsupportedOperation: row(
    -32004,
    400,
    'FAILED_PRECONDITION',
    'UNSUPPORTED_OPERATION',
    'This operation is not supported'
  ),
  ContentTypeNotSupported: row(
    -32005,
    400,
    'INVALID_ARGUMENT',
    'CONTENT_TYPE_NOT_SUPPORTED',
    'Content type is not supported'
  ),
  InvalidAgentResponse: row(-32006, 500, 'INTERNAL', 'INVALID_AGENT_RESPONSE', 'Invalid agent response'),
  ExtendedAgentCardNotConfigured: row(
    -32007,
    400,
    'FAILED_PRECONDITION',
    'EXTENDED_AGENT_CARD_NOT_CONFIGURED',
    'Extended agent card is not configured'
  ),
  ExtensionSupportRequired: row(
    -32008,
    400,
    'FAILED_PRECONDITION',
    'EXTENSION_SUPPORT_REQUIRED',
    'Support for an extension is required'
  ),
  VersionNotSupported: row(
    -32009,
    400,
    'FAILED_PRECONDITION',
    'VERSION_NOT_SUPPORTED',
    'Protocol version is not supported'
  ),
  TaskGenerationMismatch: row(-32010, 409, 'ABORTED', 'TASK_GENERATION_MISMATCH', 'Task has another generation'),

  ParseError: row(-32700, 400, 'INVALID_ARGUMENT', 'PARSE_ERROR', 'Invalid JSON payload'),
  InvalidRequest: row(-32600, 400, 'INVALID_ARGUMENT', 'INVALID_REQUEST', 'Request payload validation error'),
  MethodNotFound: row(-32601, 404, 'UNIMPLEMENTED', 'METHOD_NOT_FOUND', 'Method not found'),
  InvalidParams: row(-32602, 400, 'INVALID_ARGUMENT', 'INVALID_PARAMS', 'Invalid parameters'),
  InternalError: row(-32603, 500, 'INTERNAL', 'INTERNAL_ERROR', 'Internal error'),

  Unauthenticated: row(-31401, 401, 'UNAUTHENTICATED', 'UNAUTHENTICATED', 'Authentication is required'),
  Forbidden: row(-31403, 403, 'PERMISSION_DENIED', 'FORBIDDEN', 'Permission denied'),
  IdempotencyConflict: row(
    -31409,
    409,
    'ALREADY_EXISTS',
    'IDEMPOTENCY_CONFLICT',
    'This messageId was used with another payload'
  ),
  TooLarge: row(-31413, 413, 'RESOURCE_EXHAUSTED', 'TOO_LARGE', 'Payload is too large'),
  RateLimited: row(-31429, 429, 'RESOURCE_EXHAUSTED', 'RATE_LIMITED', 'Too many requests'),
  Overloaded: row(-31503, 503, 'UNAVAILABLE', 'OVERLOADED', 'Temporarily unavailable'),
  DeadlineExceeded: row(-31504, 504, 'DEADLINE_EXCEEDED', 'DEADLINE_EXCEEDED', 'Deadline exceeded')
} as const

/** The name of an error: a key of `ERRORS`. */
export type ErrorCode = keyof typeof ERRORS

/** One invalid field: its path, as in `message.parts[0].text`, and what is required there. */
export interface FieldViolation {
  readonly field: string
  readonly description: string
}

/** Optional data of an `A2AError`; `metadata` goes into ErrorInfo, `retryAfterMs` into RetryInfo. */
export interface A2AErrorOptions {
  readonly metadata?: Readonly<Record<string, string>>
  readonly violations?: readonly FieldViolation[]
  readonly retryAfterMs?: number
  /** The `data` of the JSON-RPC error. Default: the list of its details. */
  readonly data?: Record<string, unknown>
  readonly cause?: unknown
}

/** One entry of an error's details: a `google.rpc` message as JSON, named by its `@type` (§5.4). */
export interface ErrorDetail {
  readonly '@type': string
  readonly [member: string]: unknown
}

const NUMBERS: ReadonlyMap<number, ErrorCode> = new Map(
  Object.keys(ERRORS)
    .filter(isErrorCode)
    .map(code => [ERRORS[code].code, code])
)

/**
 * An error that is sent to the other side as it is. `code` is a key of `ERRORS`, so a `switch` over it can be
 * exhaustive. The default message is the standard one of `ERRORS`.
 */
export class A2AError extends Error {
  override readonly name = 'A2AError'
  readonly code: ErrorCode
  readonly metadata: Readonly<Record<string, string>>
  readonly violations: readonly FieldViolation[]
  readonly retryAfterMs: number | undefined
  readonly data: Record<string, unknown> | undefined

  constructor(code: ErrorCode, message: string = textFor(code), options: A2AErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.metadata = options.metadata ?? {}
    this.violations = options.violations ?? []
    this.retryAfterMs = options.retryAfterMs
    this.data = options.data
  }

  /** Whether a value is such an error, also one of another copy of this package. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return isA2AError(value)
  }

  /** The error's details as `google.rpc` JSON (§5.4): ErrorInfo, then BadRequest and RetryInfo where they apply. */
  get details(): ErrorDetail[] {
    const details = [errorInfo(this)]
    if (this.violations.length > 0) details.push({ '@type': BAD_REQUEST, fieldViolations: this.violations })
    if (this.retryAfterMs !== undefined) details.push({ '@type': RETRY_INFO, retryDelay: seconds(this.retryAfterMs) })
    return details
  }
}

/** The standard message of a code. Throws TypeError for a code that does not exist. */
function textFor(code: ErrorCode): string {
  if (!isErrorCode(code))
    throw new TypeError(
      `A2AError takes a code, such as 'TaskNotFound', not ${JSON.stringify(code)}: new A2AError('TaskNotFound', 'There is no such order.'). There are ${Object.keys(ERRORS).join(', ')}.`
    )
  return ERRORS[code].message
}

/** The `@type` of ErrorInfo, which names an error by `reason` and `domain` (§5.4). */
export const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo'
/** The `@type` of BadRequest, which lists `fieldViolations` (§5.4). */
export const BAD_REQUEST = 'type.googleapis.com/google.rpc.BadRequest'
/** The `@type` of RetryInfo, whose `retryDelay` is in seconds, as in `1.5s` (§5.4). */
export const RETRY_INFO = 'type.googleapis.com/google.rpc.RetryInfo'

/** Gives the name of the error with this JSON-RPC number, or `undefined` if there is none. */
export function errorCodeOf(number: number): ErrorCode | undefined {
  return NUMBERS.get(number)
}

/** InvalidParams with these field violations. */
export function invalidParams(...violations: readonly FieldViolation[]): A2AError {
  return new A2AError('InvalidParams', `${ERRORS.InvalidParams.message}: ${violationsText(violations)}`, { violations })
}

/** Violations as text: each field and what it should be. */
export function violationsText(violations: readonly FieldViolation[]): string {
  return violations.map(({ field, description }) => `${field} ${description}`).join('; ')
}

/** Whether a thrown value is an `A2AError`, including one from another copy of this package. */
export function isA2AError(value: unknown): value is A2AError {
  return (
    value instanceof Error &&
    value.name === 'A2AError' &&
    'code' in value &&
    typeof value.code === 'string' &&
    isErrorCode(value.code)
  )
}

function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERRORS, code)
}

function row<const Grpc extends string, const Reason extends string>(
  code: number,
  http: number,
  grpc: Grpc,
  reason: Reason,
  message: string
) {
  return { code, http, grpc, reason, message }
}

function errorInfo(error: A2AError): ErrorDetail {
  const { code, reason } = ERRORS[error.code]
  const domain = code > -32000 ? 'taskchart' : 'a2a-protocol.org'
  return {
    '@type': ERROR_INFO,
    reason,
    domain,
    ...(Object.keys(error.metadata).length > 0 && { metadata: error.metadata })
  }
}

function seconds(milliseconds: number): string {
  return `${Math.ceil(Math.max(0, milliseconds)) / 1000}s`
}

/** The error for a task that does not exist or belongs to another caller, which look the same (§3.3.2). */
export function taskNotFound(taskId: string): A2AError {
  return new A2AError('TaskNotFound', `Task ${taskId} was not found.`, { metadata: { taskId } })
}
