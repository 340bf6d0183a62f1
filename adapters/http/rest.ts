import { A2AError } from '../../machines/protocol/errors.ts'
import { NEXT_VERSION, nativeVersionIn } from '../../machines/protocol/versions.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { type Form, jsonAnswer, shownError, statusAnswer, restErrorBody } from '../entry/answers.ts'
import {
  type Dialect,
  encodeOnce,
  liveNotSupported,
  type Operations,
  type RestCall,
  type Versions
} from '../json-rpc/dispatch.ts'
import { jsonPieces } from '../json-rpc/json-pieces.ts'
import { callContextOf, delayRefusal, type RequestHead, type HttpCall } from './call.ts'
import {
  answerType,
  bodyParameters,
  decodePathText,
  requestParametersOf,
  type RoutedRequest,
  routeOf,
  statusOfBody
} from './parameters.ts'
import { inPieces, streamAnswer } from './streaming.ts'

/** Writes events of a stream as plain JSON. */
const REST = { encode: encodeOnce, encodeLarge: jsonPieces, encodeError: restErrorBody }

/** Caching of the extended card, which is private (§13.3). */
const FOR_ITS_READER = { 'Cache-Control': 'private, max-age=300' }

/** Answers a REST request (§11): parameters in path and query, or in the JSON body; streams are server-sent events. */
export async function answerRest(runtime: ServedRuntime, operations: Operations, call: HttpCall): Promise<Response> {
  const {
    request,
    head: { path },
    headers
  } = call
  const routed = routeOf(request.method, path)
  if (!routed) {
    return isLive(runtime, call)
      ? refused(runtime, call, liveNotSupported())
      : nothingAt(runtime, call, `There is nothing at ${path.slice(0, 255)}.`)
  }
  if (!('method' in routed)) {
    const over = runtime.settings.rejected.count(callContextOf(call))
    await delayRefusal(over, runtime.settings)
    return over ? statusAnswer(over, headers) : notAllowed(routed, headers)
  }
  const type = { 'Content-Type': answerType(request) }
  try {
    const params = await readRequest(runtime, call, routed)
    const method = operations[routed.method]
    if (method.streaming)
      return await streamAnswer(runtime, call, options => method.events(params, callContextOf(call, options)), REST)
    const answer = await method.answer(params, callContextOf(call))
    if (call.space) return inPieces(runtime, call, call.space, jsonPieces(answer), { ...headers, ...type })
    return jsonAnswer(JSON.stringify(answer), {
      ...headers,
      ...type,
      ...(routed.method === 'GetExtendedAgentCard' && FOR_ITS_READER)
    })
  } catch (error) {
    call.space?.end()
    await delayRefusal(error, runtime.settings)
    return statusAnswer(error, { ...headers, ...type }, statusOfBody(error, request))
  }
}

/**
 * The parameters of a request, whose tenant the call has from then on. A request that cannot be decoded counts against
 * the quota.
 */
async function readRequest(runtime: ServedRuntime, call: HttpCall, routed: RoutedRequest): Promise<object> {
  try {
    const tenant = routed.tenant === undefined ? undefined : decodePathText('tenant', routed.tenant)
    return await requestParametersOf(runtime, call, routed).finally(() => (call.tenant = tenant))
  } catch (error) {
    throw runtime.settings.rejected.answerTo(shownError(error), callContextOf(call))
  }
}

/** The path of an operation that is only proposed for 1.1. */
const LIVE = /^(?:\/[^/]+)?\/live$/

/** Whether a request is for live input, in the version that reserves its path. */
function isLive({ settings }: ServedRuntime, { request, head: { path, parameters } }: HttpCall): boolean {
  return (
    request.method === 'POST' &&
    LIVE.test(path) &&
    nativeVersionIn(parameters.version, settings.versions) === NEXT_VERSION
  )
}

/** Answers a request for a path that does not exist. */
function nothingAt(runtime: ServedRuntime, call: HttpCall, message: string, form?: Form): Promise<Response> {
  return refused(runtime, call, new A2AError('MethodNotFound', message), form)
}

/** Answers a request that reaches no operation: with this error, or with RateLimited if it is over a quota. */
async function refused({ settings }: ServedRuntime, call: HttpCall, refusal: A2AError, form?: Form): Promise<Response> {
  const error = settings.rejected.answerTo(refusal, callContextOf(call))
  await delayRefusal(error, settings)
  return statusAnswer(error, call.headers, undefined, form)
}

/** Answers an unsupported method of a path. */
export function notAllowed(allowed: readonly string[], headers: HttpCall['headers']): Response {
  const allow = [...new Set(allowed)].join(', ')
  const error = {
    error: { code: 405, status: 'UNIMPLEMENTED', message: `This path supports only ${allow}.`, details: [] }
  }
  return jsonAnswer(JSON.stringify(error), { ...headers, Allow: allow }, 405)
}

/** An older version with REST. */
type RestDialect = Dialect & Pick<Required<Dialect>, 'rest'>

/** The form of errors: only 0.3 has REST. */
const FORM: Form = 'HTTP+JSON 0.3'

/** Writes events of a stream as plain JSON. */
const EVENTS = {
  encode: (event: object) => JSON.stringify(event),
  encodeLarge: jsonPieces,
  encodeError: (error: unknown) => restErrorBody(error, undefined, FORM),
  errorName: 'error'
}

/** The older version of a REST request, whose path begins with `/v1/`; `undefined` for other requests. */
function dialectOf(versions: Versions, { path, parameters }: RequestHead): RestDialect | undefined {
  const dialect = path.startsWith('/v1/') ? versions.dialectOf(parameters.version) : undefined
  return dialect && hasRest(dialect) ? dialect : undefined
}

function hasRest(dialect: Dialect): dialect is RestDialect {
  return dialect.rest !== undefined
}

/** The form of errors for a REST request. */
export function restFormOf(versions: Versions, head: RequestHead): Form {
  return dialectOf(versions, head) ? FORM : 'HTTP+JSON'
}

/** Answers a REST request of an older version; `undefined` for other requests. */
export function answerDialect(
  runtime: ServedRuntime,
  versions: Versions,
  call: HttpCall
): Promise<Response> | undefined {
  const dialect = dialectOf(versions, call.head)
  return dialect && perform(runtime, dialect, call)
}

async function perform(runtime: ServedRuntime, dialect: RestDialect, call: HttpCall): Promise<Response> {
  const {
    head: { path },
    headers
  } = call
  try {
    const called = await readCall(runtime, call, dialect.rest)
    if (!called)
      return await nothingAt(
        runtime,
        call,
        `There is nothing at ${path.slice(0, 255)} in A2A ${dialect.version}.`,
        FORM
      )
    if (!called.streaming) {
      const answer = await called.answer(callContextOf(call))
      return call.space
        ? inPieces(runtime, call, call.space, jsonPieces(answer), headers)
        : jsonAnswer(JSON.stringify(answer), headers)
    }
    return await streamAnswer(runtime, call, options => called.events(callContextOf(call, options)), EVENTS)
  } catch (error) {
    call.space?.end()
    await delayRefusal(error, runtime.settings)
    return statusAnswer(error, headers, statusOfBody(error, call.request), FORM)
  }
}

/** The call of a request. A request that cannot be decoded counts against the quota. */
async function readCall(
  runtime: ServedRuntime,
  call: HttpCall,
  rest: RestDialect['rest']
): Promise<RestCall | undefined> {
  const {
    request,
    head: { path, query }
  } = call
  try {
    const body = request.method === 'POST' ? await bodyParameters(runtime, call) : undefined
    return rest({ verb: request.method, path, query, body })
  } catch (error) {
    throw runtime.settings.rejected.answerTo(shownError(error), callContextOf(call))
  }
}
