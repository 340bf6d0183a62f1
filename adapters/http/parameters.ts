import { checkJson, checkJsonText, isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError, invalidParams, isA2AError } from '../../machines/protocol/errors.ts'
import type { OperationMethod } from '../../machines/protocol/operations.ts'
import { A2A_JSON } from '../../machines/protocol/versions.ts'
import { UNCOUNTED_BYTES, type IncompleteBytes } from '../../runtime/access/shares.ts'
import { memoizeLast } from '../../runtime/primitives/collections.ts'
import { roundEnd } from '../../runtime/primitives/event-loop.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import type { RefusedRequest } from '../entry/admission.ts'
import type { HttpRequest } from '../entry/connection.ts'
import type { HttpCall } from './call.ts'

/** Whether a request declares a JSON body. */
export function isJson(request: HttpRequest): boolean {
  const type = typeOf(request)
  return type === 'application/json' || type === A2A_JSON
}

/** The content type of an answer: `application/json`, unless the client sends or accepts A2A's own. */
export function answerType(request: HttpRequest): string {
  const acceptsOwn = request.headers.get('accept')?.toLowerCase().includes(A2A_JSON) ?? false
  return acceptsOwn || typeOf(request) === A2A_JSON ? A2A_JSON : 'application/json'
}

/** The error for a body of another content type. */
export function wrongType(request: HttpRequest): A2AError {
  const given = typeOf(request)
  return new A2AError(
    'ContentTypeNotSupported',
    `Send the body as Content-Type: application/json${given === '' ? '' : `, not ${given.slice(0, 64)}`}.`
  )
}

/**
 * The HTTP status of a REST error, if it differs from the status of its code. A body that is not JSON gets 415 (RFC
 * 9110 §15.5.16), as over JSON-RPC; ContentTypeNotSupported for a part of a message keeps its A2A status.
 */
export function statusOfBody(error: unknown, request: HttpRequest): number | undefined {
  return isA2AError(error) && error.code === 'ContentTypeNotSupported' && !isJson(request) ? 415 : undefined
}

/** Refuses a body with a content coding such as gzip (RFC 9110 §15.5.16); `undefined` without one. */
export function codingRefusal({ headers }: HttpRequest): RefusedRequest | undefined {
  const codings = headers.get('content-encoding')
  if (codings === null || codings.split(',').every(coding => ['', 'identity'].includes(coding.trim().toLowerCase())))
    return undefined
  const error = new A2AError(
    'ContentTypeNotSupported',
    `Send the body without Content-Encoding: ${codings.slice(0, 64)}.`
  )
  return { status: 415, message: error.message, headers: { 'Accept-Encoding': 'identity' }, error }
}

function typeOf({ headers }: HttpRequest): string {
  return nameOf(headers.get('content-type') ?? '')
}

/** A media type without its parameters. */
const nameOf = memoizeLast(type => type.replace(/;.*/s, '').trim().toLowerCase())

type Params = Record<string, unknown>

/** The parameters of a request: from its path, and from its body or its query. */
export async function requestParametersOf(
  runtime: ServedRuntime,
  call: HttpCall,
  { parameters }: RoutedRequest
): Promise<Params> {
  const params = call.request.method === 'POST' ? await bodyParameters(runtime, call) : queryParameters(call.head.query)
  for (const [name, encoded] of Object.entries(parameters)) {
    const [value, other] = [decodePathText(name, encoded), params[name] ?? '']
    if (other !== '' && other !== value)
      throw invalidParams({ field: name, description: 'must equal the value in the path' })
    params[name] = value
  }
  return params
}

/** Decodes percent-encoding in a path. */
export function decodePathText(name: string, encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    throw invalidParams({ field: name, description: 'must be percent-encoded UTF-8' })
  }
}

/** The body of a request as an object; an empty body is an empty object. */
export async function bodyParameters(runtime: ServedRuntime, call: HttpCall): Promise<Params> {
  const { request } = call
  const { limits, jsonLimits } = runtime.settings
  const text = await bodyOf(call, limits.messageBytes)
  if (text === '') return {}
  if (!isJson(request)) throw wrongType(request)
  const bodyLimits = { ...jsonLimits, root: 'body' }
  const excess = checkJsonText(text, bodyLimits)
  if (excess) throw invalidParams(excess)
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw new A2AError('ParseError', 'The body is not JSON.')
  }
  if (!isObject(body)) throw new A2AError('InvalidParams', 'Invalid parameters: the body must be an object.')
  const violation = checkJson(body, bodyLimits)
  if (violation) throw invalidParams(violation)
  return body
}

/** The members of a query. Duplicates are refused, since no REST parameter is a list. */
function queryParameters(query: URLSearchParams): Params {
  const params: Params = {}
  for (const [name, value] of query) {
    if (Object.hasOwn(params, name)) throw invalidParams({ field: name, description: 'must be given once' })
    const flag = FLAGS.includes(name) ? BOOLEANS.get(value) : undefined
    Object.defineProperty(params, name, { value: flag ?? value, enumerable: true, configurable: true, writable: true })
  }
  return params
}

/** The boolean parameters, which are text in a query (§11.5). Numbers may be text everywhere. */
const FLAGS = ['includeArtifacts', 'include_artifacts']
const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['false', false]
])

/** A REST route (§11.3): its method, its path, whose groups are parameters, and its operation. */
interface Route {
  readonly verb: 'GET' | 'POST' | 'DELETE'
  readonly path: RegExp
  readonly method: OperationMethod
}

/** The operation of a path, and the parameters in the path, still percent-encoded. */
export interface RoutedRequest {
  readonly method: OperationMethod
  readonly parameters: Readonly<Record<string, string>>
  readonly tenant?: string
}

const TASK = '/tasks/(?<id>(?![^/]*:(?:cancel|subscribe)$)[^/]+)'
const TASK_AND = '/tasks/(?<id>[^/]+)'
const CONFIGS = '/tasks/(?<taskId>[^/]+)/pushNotificationConfigs'

/** A2A's routes. SubscribeToTask accepts GET, as in the proto, and POST, as in the text. */
const ROUTES: readonly Route[] = [
  route('POST', '/message:send', 'SendMessage'),
  route('POST', '/message:stream', 'SendStreamingMessage'),
  route('GET', '/tasks', 'ListTasks'),
  route('POST', `${TASK_AND}:cancel`, 'CancelTask'),
  route('GET', `${TASK_AND}:subscribe`, 'SubscribeToTask'),
  route('POST', `${TASK_AND}:subscribe`, 'SubscribeToTask'),
  route('GET', TASK, 'GetTask'),
  route('POST', CONFIGS, 'CreateTaskPushNotificationConfig'),
  route('GET', CONFIGS, 'ListTaskPushNotificationConfigs'),
  route('GET', `${CONFIGS}/(?<id>[^/]+)`, 'GetTaskPushNotificationConfig'),
  route('DELETE', `${CONFIGS}/(?<id>[^/]+)`, 'DeleteTaskPushNotificationConfig'),
  route('GET', '/extendedAgentCard', 'GetExtendedAgentCard')
]

/** Every route may have a tenant as a prefix. */
const TENANT = /^\/(?<tenant>[^/]+)(?<path>\/.*)$/

/**
 * Finds the route of a path. A list of methods: the path exists for these only. `undefined`: the path does not exist.
 */
export function routeOf(verb: string, path: string): RoutedRequest | readonly string[] | undefined {
  const found = routeFrom(verb, path)
  if (found) return found
  const { tenant = '', path: rest = '' } = TENANT.exec(path)?.groups ?? {}
  const routed = routeFrom(verb, rest)
  return routed && 'method' in routed ? { ...routed, tenant } : routed
}

function routeFrom(verb: string, path: string): RoutedRequest | readonly string[] | undefined {
  const allowed: string[] = []
  for (const { verb: wanted, path: pattern, method } of ROUTES) {
    const match = pattern.exec(path)
    if (!match) continue
    if (wanted === verb) return { method, parameters: { ...match.groups } }
    allowed.push(wanted)
  }
  return allowed.length === 0 ? undefined : allowed
}

function route(verb: Route['verb'], path: string, method: OperationMethod): Route {
  return { verb, path: new RegExp(`^${path}$`), method }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text that stands for bytes that are not UTF-8. A text may have it too. */
const REPLACEMENT = '\uFFFD'

/**
 * Reads the body of a call: UTF-8 of at most `limit` bytes. No body is ''. Counts its bytes and schedules its parsing.
 * Throws TooLarge, as early as possible, and ParseError for invalid UTF-8 and incomplete bodies. Gives the text if the
 * body has arrived and may be parsed now, else a promise.
 */
export function bodyOf(call: HttpCall, limit: number): Promise<string> | string {
  const length = call.request.headers.get('content-length')
  if (Number(length ?? 0) > limit) return Promise.reject(tooLarge(limit))
  call.served.direct?.invite?.()
  const arrived = call.request.takeArrived?.()
  if (arrived) return textOf(arrived, call)
  return length !== null && Number(length) <= UNCOUNTED_BYTES
    ? smallBody(call)
    : largeBody(call, limit, call.incompleteBytes())
}

async function smallBody(call: HttpCall): Promise<string> {
  let bytes: ArrayBuffer | Uint8Array
  try {
    bytes = await call.request.arrayBuffer()
  } catch (cause) {
    throw incomplete(cause)
  }
  if (!call.served.direct) await roundEnd()
  return textOf(bytes, call)
}

/** The text of a small body, once it may be parsed. */
function textOf(bytes: ArrayBuffer | Uint8Array, call: HttpCall): Promise<string> | string {
  call.bytes = bytes.byteLength
  const turn = call.parsingTurn()
  return turn ? turn.then(() => decodeUtf8(bytes)) : decodeUtf8(bytes)
}

async function largeBody(call: HttpCall, limit: number, incompleteBytes: IncompleteBytes): Promise<string> {
  try {
    const bytes = await collected(call, limit, incompleteBytes)
    await roundEnd()
    const turn = call.parsingTurn()
    if (turn) await turn
    const text = decodeUtf8(bytes)
    incompleteBytes.count(0)
    return text
  } catch (cause) {
    incompleteBytes.count(0)
    throw cause instanceof A2AError ? cause : incomplete(cause)
  }
}

function decodeUtf8(bytes: ArrayBuffer | Uint8Array): string {
  const text = Buffer.isBuffer(bytes) ? bytes.toString('utf8') : REPLACEMENT
  if (!text.includes(REPLACEMENT)) return text
  try {
    return UTF8.decode(bytes)
  } catch (cause) {
    throw new A2AError('ParseError', 'The body is not UTF-8.', { cause })
  }
}

async function collected(call: HttpCall, limit: number, incompleteBytes: IncompleteBytes): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for await (const chunk of call.request.body ?? []) {
    call.bytes += chunk.byteLength
    if (call.bytes > limit) throw tooLarge(limit)
    const full = incompleteBytes.count(call.bytes)
    if (full) throw full
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function incomplete(cause: unknown): A2AError {
  return new A2AError('ParseError', 'The body is incomplete.', { cause })
}

function tooLarge(limit: number): A2AError {
  return new A2AError('TooLarge', `A body may have at most ${limit} bytes. Send large files by url.`)
}
