import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import { A2A_JSON } from '../../machines/protocol/versions.ts'
import { memoizeLast } from '../../runtime/primitives/memoize-last.ts'
import type { Refusal } from './entry.ts'

/** True when a request says that its body is JSON. */
export function isJson(request: Request): boolean {
  const type = typeOf(request)
  return type === 'application/json' || type === A2A_JSON
}

/** The type of an answer: `application/json`, unless the client sends or asks for A2A's own. */
export function answerType(request: Request): string {
  const asked = request.headers.get('accept')?.toLowerCase().includes(A2A_JSON) ?? false
  return asked || typeOf(request) === A2A_JSON ? A2A_JSON : 'application/json'
}

/** The error for a body of another type. */
export function wrongType(request: Request): A2AError {
  const given = typeOf(request)
  return new A2AError('ContentTypeNotSupported', `Send the body as Content-Type: application/json${given === '' ? '' : `, not ${given.slice(0, 64)}`}.`)
}

/**
 * The HTTP status of an error by REST, if it is not that of its code. A body that is not JSON gets 415 (RFC 9110 §15.5.16), as over
 * JSON-RPC; ContentTypeNotSupported for a part of a message keeps the status that A2A gives it.
 */
export function statusOfBody(error: unknown, request: Request): number | undefined {
  return isA2AError(error) && error.code === 'ContentTypeNotSupported' && !isJson(request) ? 415 : undefined
}

/** Refuses a body in a content coding (RFC 9110 §15.5.16), such as gzip; `undefined` for one that has none. */
export function codingRefusal({ headers }: Request): Refusal | undefined {
  const codings = headers.get('content-encoding')
  if (codings === null || codings.split(',').every(coding => ['', 'identity'].includes(coding.trim().toLowerCase()))) return undefined
  const error = new A2AError('ContentTypeNotSupported', `Send the body as it is, without Content-Encoding: ${codings.slice(0, 64)}.`)
  return { status: 415, message: error.message, headers: { 'Accept-Encoding': 'identity' }, error }
}

function typeOf({ headers }: Request): string {
  return nameOf(headers.get('content-type') ?? '')
}

/** The name of a type without its parameters. */
const nameOf = memoizeLast(type => type.replace(/;.*/s, '').trim().toLowerCase())
