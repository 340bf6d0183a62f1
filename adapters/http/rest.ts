import { A2AError } from '../../machines/protocol/errors.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { jsonAnswer, statusAnswer, statusText } from '../entry/answers.ts'
import type { Operations } from '../json-rpc/dispatch.ts'
import { encodeOnce } from '../json-rpc/frames.ts'
import { jsonPieces } from '../json-rpc/json-pieces.ts'
import { contextOf, type HttpCall } from './call.ts'
import { answerType, decoded, parametersOf, statusOfBody } from './parameters.ts'
import { delayRefusal } from './quota-delay.ts'
import { routeOf, type Routed } from './routes.ts'
import { inPieces, streamed } from './streaming.ts'

/** How events stand in a stream: as they are. */
const REST = { encode: encodeOnce, encodeLarge: jsonPieces, encodeError: statusText }

/** How long a card that is not for everybody may be kept, and by whom (§13.3). */
const FOR_ITS_READER = { 'Cache-Control': 'private, max-age=300' }

/** Answers a request by REST (§11): parameters in path and query, or as the body's JSON; streams come as server-sent events. */
export async function answerRest(runtime: Runtime, operations: Operations, call: HttpCall): Promise<Response> {
  const { request, path, headers } = call
  const routed = routeOf(request.method, path)
  if (!routed || !('method' in routed)) {
    const over = await overQuota(runtime, call)
    if (over) return over
    return routed ? notAllowed(routed, headers) : statusAnswer(new A2AError('MethodNotFound', `There is nothing at ${path.slice(0, 255)}.`), headers)
  }
  const type = { 'Content-Type': answerType(request) }
  try {
    const { params, placed } = await readRequest(runtime, call, routed)
    const method = operations[routed.method]
    if (method.streaming) return await streamed(runtime, call, terms => method.events(params, contextOf(placed, terms)), REST)
    const answer = await method.answer(params, contextOf(placed))
    if (call.space.isLarge) return inPieces(runtime, call, jsonPieces(answer), { ...headers, ...type })
    return jsonAnswer(JSON.stringify(answer), { ...headers, ...type, ...(routed.method === 'GetExtendedAgentCard' && FOR_ITS_READER) })
  } catch (error) {
    call.space.end()
    await delayRefusal(error, runtime.settings)
    return statusAnswer(error, { ...headers, ...type }, statusOfBody(error, request))
  }
}

/** The parameters of a request, and its tenant. What cannot be read is counted. */
async function readRequest(runtime: Runtime, call: HttpCall, routed: Routed): Promise<{ params: object; placed: HttpCall }> {
  let placed = call
  try {
    if (routed.tenant !== undefined) placed = { ...call, tenant: decoded('tenant', routed.tenant) }
    return { params: await parametersOf(runtime, call, routed), placed }
  } catch (error) {
    throw runtime.settings.countStray(contextOf(placed)) ?? error
  }
}

/** Counts a request that reaches no operation. Gives the answer if it is over a quota. */
export async function overQuota({ settings }: Runtime, call: HttpCall): Promise<Response | undefined> {
  const error = settings.countStray(contextOf(call))
  await delayRefusal(error, settings)
  return error && statusAnswer(error, call.headers)
}

/** An answer to a verb that a path does not have. */
export function notAllowed(allowed: readonly string[], headers: HttpCall['headers']): Response {
  const allow = [...new Set(allowed)].join(', ')
  const error = { error: { code: 405, status: 'UNIMPLEMENTED', message: `Only ${allow} is answered here.`, details: [] } }
  return jsonAnswer(JSON.stringify(error), { ...headers, Allow: allow }, 405)
}
