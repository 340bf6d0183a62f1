import { normaliseVersion } from '../../machines/protocol/versions.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { jsonAnswer, statusAnswer, statusText } from '../entry/answers.ts'
import type { Dialect, RestCall } from '../json-rpc/dialect.ts'
import { jsonPieces } from '../json-rpc/json-pieces.ts'
import { contextOf, delayRefusal, type HttpCall } from './call.ts'
import { bodyParameters, statusOfBody } from './parameters.ts'
import { overQuota } from './rest.ts'
import { inPieces, streamed } from './streaming.ts'

/** Writes events of a stream as plain JSON. */
const EVENTS = { encode: (event: object) => JSON.stringify(event), encodeLarge: jsonPieces, encodeError: statusText }

/** Answers a REST request of an older version, whose paths begin with `/v1/`; `undefined` for other requests. */
export function answerDialect(runtime: Runtime, dialects: readonly Dialect[], call: HttpCall): Promise<Response> | undefined {
  const version = normaliseVersion(call.entered.terms.version)
  const dialect = call.entered.path.startsWith('/v1/') ? dialects.find(dialect => dialect.version === version) : undefined
  return dialect?.rest && perform(runtime, dialect.version, dialect.rest, call)
}

async function perform(runtime: Runtime, version: string, rest: Required<Dialect>['rest'], call: HttpCall): Promise<Response> {
  const { entered: { path }, headers } = call
  try {
    const called = await readRequest(runtime, call, rest)
    if (!called) return (await overQuota(runtime, call)) ?? jsonAnswer(JSON.stringify({ error: `There is nothing at ${path.slice(0, 255)} in A2A ${version}.` }), headers, 404)
    if (!called.streaming) {
      const answer = await called.answer(contextOf(call))
      return call.space ? inPieces(runtime, call, call.space, jsonPieces(answer), headers) : jsonAnswer(JSON.stringify(answer), headers)
    }
    return await streamed(runtime, call, terms => called.events(contextOf(call, terms)), EVENTS)
  } catch (error) {
    call.space?.end()
    await delayRefusal(error, runtime.settings)
    return statusAnswer(error, headers, statusOfBody(error, call.request))
  }
}

/** The call of a request. A request that cannot be decoded counts against the quota. */
async function readRequest(runtime: Runtime, call: HttpCall, rest: Required<Dialect>['rest']): Promise<RestCall | undefined> {
  const { request, entered: { path, query } } = call
  try {
    const body = request.method === 'POST' ? await bodyParameters(runtime, call) : undefined
    return rest({ verb: request.method, path, query, body })
  } catch (error) {
    throw runtime.settings.countStray(contextOf(call)) ?? error
  }
}
