import * as sdk from '@a2a-js/sdk'
import { fromJsonRpcErrorResponse } from '@a2a-js/sdk/errors'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { type A2AError, ERRORS, isA2AError } from '../../machines/protocol/errors.ts'
import { toWireError } from '../../machines/protocol/wire-errors.ts'
import { checkArgument, withMembers } from '../../runtime/primitives/options.ts'
import { errorHeaders, rpcStatus, restErrorBody } from '../entry/answers.ts'
import { checkPackages } from '../peers/installed-packages.ts'

checkPackages(['@a2a-js/sdk'])

/** Converts the SDK's objects to wire JSON and back. */
export interface Codec<T> {
  fromJSON(json: unknown): T
  toJSON(object: T): unknown
}

/** The members that a binding adds to the SDK's objects, which have those of 1.0 alone. */
export interface Additions {
  /** Adds members to the JSON of a request. */
  request(message: object, json: unknown): unknown
  /** Gets the JSON of an answer or an event that was converted to the SDK's object. */
  answer(object: object, json: object): void
}

/** A task as the SDK's object. */
export function sdkTask(json: unknown): sdk.Task {
  return withNulls(sdk.Task.fromJSON(json))
}

/** A message as the SDK's object. */
export function sdkMessage(json: unknown): sdk.Message {
  const message = sdk.Message.fromJSON(json)
  keepNulls(message)
  return message
}

/** An answer to SendMessage (§3.1.1) as the SDK's object, without its wrapper. */
export function sdkAnswer(json: object): sdk.Task | sdk.Message {
  return 'task' in json ? sdkTask(json.task) : sdkMessage((json as { message: unknown }).message)
}

/** An event of a stream as the SDK's object. */
export function sdkEvent(json: unknown): sdk.StreamResponse {
  const event = sdk.StreamResponse.fromJSON(json)
  const { payload } = event
  if (payload?.$case === 'task') withNulls(payload.value)
  if (payload?.$case === 'message') keepNulls(payload.value)
  if (payload?.$case === 'statusUpdate') keepNulls(payload.value.status?.message)
  if (payload?.$case === 'artifactUpdate') keepNulls(payload.value.artifact)
  return event
}

/** A page of tasks (§3.1.4) as the SDK's object. */
export function sdkTasks(json: unknown): sdk.ListTasksResponse {
  const page = sdk.ListTasksResponse.fromJSON(json)
  page.tasks.forEach(withNulls)
  return page
}

function withNulls(task: sdk.Task): sdk.Task {
  for (const content of [task.status?.message, ...task.history, ...task.artifacts]) keepNulls(content)
  return task
}

/** Restores data that is null (§4.1.6), which the SDK's codec drops. No other valid content is dropped. */
function keepNulls(content: { parts: sdk.Part[] } | undefined): void {
  for (const part of content?.parts ?? []) part.content ??= { $case: 'data', value: null }
}

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
 * It uses the JSON-RPC class, which keeps its code and its details on every server. Express sends the code and
 * ErrorInfo over JSON-RPC and REST. gRPC sends its status and ErrorInfo, and the 0.3 layer sends all details. Fields
 * and the retry delay are added to ErrorInfo's metadata. By `transport` the SDK chooses which code it reads:
 * `envelopeCode`, `statusCode` (REST) or `status` (gRPC). So errors without a class also get the right one.
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
export function sdkFailureOf(key: object): A2AError | undefined {
  return failures.get(key)
}

function metadataOf({ metadata, violations, retryAfterMs }: A2AError): Record<string, string> {
  const fields = Object.fromEntries(violations.map(({ field, description }) => [field, description]))
  return { ...metadata, ...fields, ...(retryAfterMs !== undefined && { retryAfterMs: String(retryAfterMs) }) }
}

/** The used part of Express's response. */
interface ExpressResponse {
  json(body: unknown): unknown
  status(code: number): unknown
  setHeader(name: string, value: string): unknown
}

/**
 * Express middleware in front of the official handlers: errors get the HTTP status, headers (`Retry-After`,
 * `WWW-Authenticate`) and details of taskchart's own servers. On their own, the official handlers answer every JSON-RPC
 * error with 200, without these headers and without most details. An error in a started stream has the SDK's form.
 */
export function expressErrors(
  request: { readonly headers: object },
  response: ExpressResponse,
  next: () => void
): void {
  checkArgument(request, withMembers(['headers'], 'a request of express'), 'app.use(expressErrors)')
  const { headers } = request
  const write = response.json.bind(response)
  response.json = body => {
    const error = sdkFailureOf(headers)
    if (!error || !isObject(body)) return write(body)
    for (const [name, value] of Object.entries(errorHeaders(error))) response.setHeader(name, value)
    const isRpc = 'jsonrpc' in body
    response.status(isRpc ? rpcStatus(error) : ERRORS[error.code].http)
    if (isRpc) return write({ ...body, error: toWireError(error) })
    // An error in REST of 0.3 has no member `error`, and already has all details.
    return write('error' in body ? JSON.parse(restErrorBody(error)) : body)
  }
  next()
}
