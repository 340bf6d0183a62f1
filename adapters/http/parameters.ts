import { checkJson, checkJsonText, isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError, invalidParams, isA2AError } from '../../machines/protocol/errors.ts'
import { A2A_JSON } from '../../machines/protocol/versions.ts'
import { jsonLimitsOf } from '../../runtime/access/limits.ts'
import { memoizeLast } from '../../runtime/primitives/collections.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { Refusal } from '../entry/admission.ts'
import type { HttpRequest } from '../entry/connection.ts'
import { bodyOf } from './body.ts'
import type { HttpCall } from './call.ts'
import type { Routed } from './routes.ts'

/** Whether a request declares a JSON body. */
export function isJson(request: HttpRequest): boolean {
  const type = typeOf(request)
  return type === 'application/json' || type === A2A_JSON
}

/** The content type of an answer: `application/json`, unless the client sends or accepts A2A's own. */
export function answerType(request: HttpRequest): string {
  const asked = request.headers.get('accept')?.toLowerCase().includes(A2A_JSON) ?? false
  return asked || typeOf(request) === A2A_JSON ? A2A_JSON : 'application/json'
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
 * The HTTP status of a REST error, if it differs from the status of its code. A body that is not JSON gets 415 (RFC 9110 §15.5.16), as
 * over JSON-RPC; ContentTypeNotSupported for a part of a message keeps its A2A status.
 */
export function statusOfBody(error: unknown, request: HttpRequest): number | undefined {
  return isA2AError(error) && error.code === 'ContentTypeNotSupported' && !isJson(request) ? 415 : undefined
}

/** Refuses a body with a content coding such as gzip (RFC 9110 §15.5.16); `undefined` without one. */
export function codingRefusal({ headers }: HttpRequest): Refusal | undefined {
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
export async function parametersOf(runtime: Runtime, call: HttpCall, { parameters }: Routed): Promise<Params> {
  const params =
    call.request.method === 'POST' ? await bodyParameters(runtime, call) : queryParameters(call.entered.query)
  for (const [name, encoded] of Object.entries(parameters)) {
    const [value, other] = [decoded(name, encoded), params[name] ?? '']
    if (other !== '' && other !== value)
      throw invalidParams({ field: name, description: 'must equal the value in the path' })
    params[name] = value
  }
  return params
}

/** Decodes percent-encoding in a path. */
export function decoded(name: string, encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    throw invalidParams({ field: name, description: 'must be percent-encoded UTF-8' })
  }
}

/** The body of a request as an object; an empty body is an empty object. */
export async function bodyParameters(runtime: Runtime, call: HttpCall): Promise<Params> {
  const { request } = call
  const { limits } = runtime.settings
  const text = await bodyOf(call, limits.messageBytes)
  if (text === '') return {}
  if (!isJson(request)) throw wrongType(request)
  const jsonLimits = { ...jsonLimitsOf(limits), root: 'body' }
  const excess = checkJsonText(text, jsonLimits)
  if (excess) throw invalidParams(excess)
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw new A2AError('ParseError', 'The body is not JSON.')
  }
  if (!isObject(body)) throw new A2AError('InvalidParams', 'Invalid parameters: the body must be an object.')
  const violation = checkJson(body, jsonLimits)
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
