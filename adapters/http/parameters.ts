import { checkJson, checkJsonText, isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError, invalidParams } from '../../machines/protocol/errors.ts'
import { jsonLimitsOf } from '../../runtime/access/limits.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { bodyOf } from './body.ts'
import { intakeOf, type HttpCall } from './http-call.ts'
import { isJson, wrongType } from './media-type.ts'
import type { Routed } from './routes.ts'

type Params = Record<string, unknown>

/** The parameters of a request: its path's, and beside them those of its body, where it may have one, or of its query. */
export async function parametersOf(runtime: Runtime, call: HttpCall, { parameters }: Routed): Promise<Params> {
  const params = call.request.method === 'POST' ? await bodyParameters(runtime, call) : queryParameters(call.query)
  for (const [name, encoded] of Object.entries(parameters)) {
    const [value, other] = [decoded(name, encoded), params[name] ?? '']
    if (other !== '' && other !== value) throw invalidParams({ field: name, description: 'must be that of the path' })
    params[name] = value
  }
  return params
}

/** What stands in a path, without its percent-encoding. */
export function decoded(name: string, encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    throw invalidParams({ field: name, description: 'must be percent-encoded UTF-8' })
  }
}

/** The body of a request as an object; none is an empty one. */
export async function bodyParameters(runtime: Runtime, call: HttpCall): Promise<Params> {
  const { request } = call
  const { limits } = runtime.settings
  const text = await bodyOf(request, limits.messageBytes, intakeOf(runtime, call))
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

/** The members of a query by name; what is given twice is refused, since no parameter by REST is a list. */
function queryParameters(query: URLSearchParams): Params {
  const params: Params = {}
  for (const [name, value] of query) {
    if (Object.hasOwn(params, name)) throw invalidParams({ field: name, description: 'must be given once' })
    const flag = FLAGS.includes(name) ? BOOLEANS.get(value) : undefined
    Object.defineProperty(params, name, { value: flag ?? value, enumerable: true, configurable: true, writable: true })
  }
  return params
}

/** The parameters that are booleans, which a query writes as text (§11.5). Numbers may be text everywhere. */
const FLAGS = ['includeArtifacts', 'include_artifacts']
const BOOLEANS: ReadonlyMap<string, boolean> = new Map([['true', true], ['false', false]])
