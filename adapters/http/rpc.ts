import { A2AError } from '../../machines/protocol/errors.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { errorHeaders, jsonAnswer, LightResponse, rpcStatus, shownError } from '../entry/answers.ts'
import { sendJson } from '../entry/small-request.ts'
import {
  encodeOnce,
  type Envelope,
  errorFrame,
  type Methods,
  noSuchMethod,
  readEnvelope,
  type RequestId,
  resultFrame,
  resultPieces,
  resultTexts
} from '../json-rpc/dispatch.ts'
import { callContextOf, delayRefusal, type HttpCall } from './call.ts'
import { bodyOf, isJson, wrongType } from './parameters.ts'
import { inPieces, streamAnswer, type Encoding } from './streaming.ts'

/** Answers a JSON-RPC request (§9): one request per body; streams are server-sent events. */
export async function answerRpc(runtime: ServedRuntime, methods: Methods, call: HttpCall): Promise<Response> {
  if (!isJson(call.request)) return refused(runtime, null, wrongType(call.request), call, 415)
  const { limits, jsonLimits } = runtime.settings
  let envelope: Envelope
  try {
    const text = bodyOf(call, limits.messageBytes)
    envelope = readEnvelope(typeof text === 'string' ? text : await text, jsonLimits)
  } catch (error) {
    envelope = { kind: 'invalid', id: null, error: shownError(error) }
  }
  if (envelope.kind === 'invalid') return refused(runtime, envelope.id, envelope.error, call)
  if (envelope.kind === 'response')
    return refused(runtime, null, new A2AError('InvalidRequest', 'A client sends requests, not responses.'), call)
  if (envelope.kind === 'notification') return ignored(runtime, call)
  const { id, method: name, params } = envelope
  const { version } = call.head.parameters
  const method = methods(name, version)
  if (!method) return refused(runtime, id, noSuchMethod(name, version), call, undefined, params)
  try {
    if (method.streaming)
      return await streamAnswer(
        runtime,
        call,
        options => method.events(params, callContextOf(call, options)),
        framesOf(id)
      )
    return send(runtime, id, await method.answer(params, callContextOf(call)), call)
  } catch (error) {
    call.space?.end()
    await delayRefusal(error, runtime.settings)
    return errorAnswer(id, shownError(error), call)
  }
}

function send(runtime: ServedRuntime, id: RequestId, answer: unknown, call: HttpCall): Response {
  if (call.space) return inPieces(runtime, call, call.space, resultPieces(id, answer), call.headers)
  const text = resultFrame(id, JSON.stringify(answer))
  const { direct } = call.served
  return direct ? sendJson(direct, text, call.headers) : jsonAnswer(text, call.headers)
}

/** Answers a request that reaches no operation: with this error, or with RateLimited if it is over a quota. */
async function refused(
  runtime: ServedRuntime,
  id: RequestId | null,
  error: A2AError,
  call: HttpCall,
  status?: number,
  params?: unknown
): Promise<Response> {
  const answered = runtime.settings.rejected.answerTo(error, callContextOf(call), params)
  await delayRefusal(answered, runtime.settings)
  return errorAnswer(id, answered, call, answered === error ? status : undefined)
}

/** Answers a request without an answer of its own: with nothing, or with RateLimited if it is over a quota. */
async function ignored({ settings }: ServedRuntime, call: HttpCall): Promise<Response> {
  const error = settings.rejected.count(callContextOf(call))
  await delayRefusal(error, settings)
  return error ? errorAnswer(null, error, call) : new LightResponse(null, { status: 204, headers: call.headers })
}

/** Wraps each event of a stream in a JSON-RPC response. */
function framesOf(id: RequestId): Encoding {
  const { head, end } = resultTexts(id)
  return {
    encode: event => head + encodeOnce(event) + end,
    encodeLarge: event => resultPieces(id, event),
    encodeError: error => errorFrame(id, error)
  }
}

function errorAnswer(
  id: RequestId | null,
  error: A2AError,
  { headers }: HttpCall,
  status = rpcStatus(error)
): Response {
  return jsonAnswer(errorFrame(id, error), { ...headers, ...errorHeaders(error) }, status)
}
