import { A2AError } from '../../machines/protocol/errors.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { jsonAnswer, shownError, statusAnswer, statusText, type Form } from '../entry/answers.ts'
import type { Operations } from '../json-rpc/dispatch.ts'
import { encodeOnce } from '../json-rpc/frames.ts'
import { jsonPieces } from '../json-rpc/json-pieces.ts'
import { contextOf, delayRefusal, type HttpCall } from './call.ts'
import { answerType, decoded, parametersOf, statusOfBody } from './parameters.ts'
import { routeOf, type Routed } from './routes.ts'
import { inPieces, streamed } from './streaming.ts'

/** Writes events of a stream as plain JSON. */
const REST = { encode: encodeOnce, encodeLarge: jsonPieces, encodeError: statusText }

/** Caching of the extended card, which is private (§13.3). */
const FOR_ITS_READER = { 'Cache-Control': 'private, max-age=300' }

/** Answers a REST request (§11): parameters in path and query, or in the JSON body; streams are server-sent events. */
export async function answerRest(runtime: Runtime, operations: Operations, call: HttpCall): Promise<Response> {
  const {
    request,
    entered: { path },
    headers
  } = call
  const routed = routeOf(request.method, path)
  if (!routed || !('method' in routed)) {
    const over = await overQuota(runtime, call)
    if (over) return over
    if (!routed) runtime.settings.counters.failed('MethodNotFound')
    return routed
      ? notAllowed(routed, headers)
      : statusAnswer(new A2AError('MethodNotFound', `There is nothing at ${path.slice(0, 255)}.`), headers)
  }
  const type = { 'Content-Type': answerType(request) }
  try {
    const params = await readRequest(runtime, call, routed)
    const method = operations[routed.method]
    if (method.streaming)
      return await streamed(runtime, call, terms => method.events(params, contextOf(call, terms)), REST)
    const answer = await method.answer(params, contextOf(call))
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

/** The parameters of a request, whose tenant the call has from then on. A request that cannot be decoded counts against the quota. */
async function readRequest(runtime: Runtime, call: HttpCall, routed: Routed): Promise<object> {
  try {
    const tenant = routed.tenant === undefined ? undefined : decoded('tenant', routed.tenant)
    return await parametersOf(runtime, call, routed).finally(() => (call.tenant = tenant))
  } catch (error) {
    const shown = runtime.settings.countStray(contextOf(call)) ?? shownError(error)
    runtime.settings.counters.failed(shown.code)
    throw shown
  }
}

/** Counts a request that reaches no operation. Returns the answer if it is over a quota. */
export async function overQuota({ settings }: Runtime, call: HttpCall, form?: Form): Promise<Response | undefined> {
  const error = settings.countStray(contextOf(call))
  await delayRefusal(error, settings)
  if (!error) return undefined
  settings.counters.failed(error.code)
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
