import { A2AError } from '../../machines/protocol/errors.ts'
import { normaliseVersion } from '../../machines/protocol/versions.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { jsonAnswer, statusAnswer, statusText, type Form } from '../entry/answers.ts'
import type { Dialect, RestCall } from '../json-rpc/dialect.ts'
import { jsonPieces } from '../json-rpc/json-pieces.ts'
import { contextOf, delayRefusal, type Entered, type HttpCall } from './call.ts'
import { bodyParameters, statusOfBody } from './parameters.ts'
import { overQuota } from './rest.ts'
import { inPieces, streamed } from './streaming.ts'

/** An older version with REST. */
type RestDialect = Dialect & Pick<Required<Dialect>, 'rest'>

/** The form of errors: only 0.3 has REST. */
const FORM: Form = 'HTTP+JSON 0.3'

/** Writes events of a stream as plain JSON. */
const EVENTS = {
  encode: (event: object) => JSON.stringify(event),
  encodeLarge: jsonPieces,
  encodeError: (error: unknown) => statusText(error, undefined, FORM),
  errorName: 'error'
}

/** The older version of a REST request, whose path begins with `/v1/`; `undefined` for other requests. */
function dialectOf(dialects: readonly Dialect[], { path, terms }: Entered): RestDialect | undefined {
  const version = normaliseVersion(terms.version)
  return path.startsWith('/v1/')
    ? dialects.find((dialect): dialect is RestDialect => dialect.version === version && dialect.rest !== undefined)
    : undefined
}

/** The form of errors for a REST request. */
export function restFormOf(dialects: readonly Dialect[], entered: Entered): Form {
  return dialectOf(dialects, entered) ? FORM : 'HTTP+JSON'
}

/** Answers a REST request of an older version; `undefined` for other requests. */
export function answerDialect(
  runtime: Runtime,
  dialects: readonly Dialect[],
  call: HttpCall
): Promise<Response> | undefined {
  const dialect = dialectOf(dialects, call.entered)
  return dialect && perform(runtime, dialect, call)
}

async function perform(runtime: Runtime, dialect: RestDialect, call: HttpCall): Promise<Response> {
  const {
    entered: { path },
    headers
  } = call
  try {
    const called = await readRequest(runtime, call, dialect.rest)
    if (!called) {
      const over = await overQuota(runtime, call, FORM)
      if (over) return over
      runtime.settings.counters.failed('MethodNotFound')
      return statusAnswer(
        new A2AError('MethodNotFound', `There is nothing at ${path.slice(0, 255)} in A2A ${dialect.version}.`),
        headers,
        undefined,
        FORM
      )
    }
    if (!called.streaming) {
      const answer = await called.answer(contextOf(call))
      return call.space
        ? inPieces(runtime, call, call.space, jsonPieces(answer), headers)
        : jsonAnswer(JSON.stringify(answer), headers)
    }
    return await streamed(runtime, call, terms => called.events(contextOf(call, terms)), EVENTS)
  } catch (error) {
    call.space?.end()
    await delayRefusal(error, runtime.settings)
    return statusAnswer(error, headers, statusOfBody(error, call.request), FORM)
  }
}

/** The call of a request. A request that cannot be decoded counts against the quota. */
async function readRequest(runtime: Runtime, call: HttpCall, rest: RestDialect['rest']): Promise<RestCall | undefined> {
  const {
    request,
    entered: { path, query }
  } = call
  try {
    const body = request.method === 'POST' ? await bodyParameters(runtime, call) : undefined
    return rest({ verb: request.method, path, query, body })
  } catch (error) {
    throw runtime.settings.countStray(contextOf(call)) ?? error
  }
}
