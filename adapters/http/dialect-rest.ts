import { normaliseVersion } from '../../machines/protocol/versions.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { Dialect } from '../legacy/dialect.ts'
import { jsonAnswer, statusAnswer, statusText } from './answers.ts'
import { contextOf, type HttpCall } from './http-call.ts'
import { bodyParameters } from './parameters.ts'
import { streamed, type StreamTerms } from './streaming.ts'

/** Answers a request by the REST of an older version, which is below a prefix (`/v1/`); `undefined` if it is none of those. */
export function answerDialect(runtime: Runtime, dialects: readonly Dialect[], call: HttpCall): Promise<Response> | undefined {
  const version = normaliseVersion(call.terms.version)
  const dialect = call.path.startsWith('/v1/') ? dialects.find(dialect => dialect.version === version) : undefined
  return dialect && perform(runtime, dialect, call)
}

async function perform(runtime: Runtime, dialect: Dialect, call: HttpCall): Promise<Response> {
  const { request, path, query, headers } = call
  try {
    const body = request.method === 'POST' ? await bodyParameters(runtime, request) : undefined
    const gone = new AbortController()
    const signal = AbortSignal.any([request.signal, gone.signal])
    const answer = dialect.rest({ verb: request.method, path, query, body }, { ...contextOf(call), signal })
    if (!answer) return jsonAnswer(JSON.stringify({ error: `There is nothing at ${path.slice(0, 255)} in A2A ${dialect.version}.` }), headers, 404)
    if (!answer.streaming) return jsonAnswer(JSON.stringify(await answer.answer), headers)
    const { events } = answer
    const open = ({ signal }: StreamTerms) => {
      signal.addEventListener('abort', () => gone.abort(signal.reason), { once: true })
      return events
    }
    return await streamed(runtime, call, open, { encode: event => JSON.stringify(event), encodeError: statusText })
  } catch (error) {
    return statusAnswer(error, headers)
  }
}
