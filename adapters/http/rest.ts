import { A2AError } from '../../machines/protocol/errors.ts'
import { encodeOnce } from '../json-rpc/frames.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { Operations } from '../json-rpc/dispatch.ts'
import { jsonAnswer, statusAnswer, statusText } from './answers.ts'
import { holdBack } from './hold-back.ts'
import { contextOf, type HttpCall } from './http-call.ts'
import { answerType } from './media-type.ts'
import { decoded, parametersOf } from './parameters.ts'
import { routeOf } from './routes.ts'
import { streamed } from './streaming.ts'

/** How events stand in a stream: as they are. */
const REST = { encode: encodeOnce, encodeError: statusText }

/** How long a card that is not for everybody may be kept, and by whom (§13.3). */
const FOR_ITS_READER = { 'Cache-Control': 'private, max-age=300' }

/** Answers a request by REST (§11): parameters in path and query, or as the body's JSON; streams come as server-sent events. */
export async function answerRest(runtime: Runtime, operations: Operations, call: HttpCall): Promise<Response> {
  const { request, path, headers } = call
  const routed = routeOf(request.method, path)
  if (!routed) return statusAnswer(new A2AError('MethodNotFound', `There is nothing at ${path.slice(0, 255)}.`), headers)
  if (!('method' in routed)) return notAllowed(routed, headers)
  const type = { 'Content-Type': answerType(request) }
  try {
    const params = await parametersOf(runtime, call, routed)
    const placed = routed.tenant === undefined ? call : { ...call, tenant: decoded('tenant', routed.tenant) }
    const method = operations[routed.method]
    if (method.streaming) return await streamed(runtime, call, terms => method.events(params, contextOf(placed, terms)), REST)
    const answer = JSON.stringify(await method.answer(params, contextOf(placed)))
    return jsonAnswer(answer, { ...headers, ...type, ...(routed.method === 'GetExtendedAgentCard' && FOR_ITS_READER) })
  } catch (error) {
    await holdBack(error, runtime.settings)
    return statusAnswer(error, { ...headers, ...type })
  }
}

/** An answer to a verb that a path does not have. */
export function notAllowed(allowed: readonly string[], headers: HttpCall['headers']): Response {
  const allow = [...new Set(allowed)].join(', ')
  const error = { error: { code: 405, status: 'UNIMPLEMENTED', message: `Only ${allow} is answered here.`, details: [] } }
  return jsonAnswer(JSON.stringify(error), { ...headers, Allow: allow }, 405)
}
