import { getRequestListener } from '@hono/node-server'
import { A2AError, ERRORS, isA2AError } from '../../machines/protocol/errors.ts'
import { toWireError } from '../../machines/protocol/wire-errors.ts'
import { DEFAULT_CHALLENGE } from '../../runtime/access/authentication.ts'
import type { Refusal } from './admission.ts'

/**
 * Hono's Response, which its server sends without making one of Node's of it: with Node's own a request takes a fifth
 * longer. Hono would put it in the place of the global one. That is not for a library to do, so the global ones are put back.
 */
export const LightResponse = lightResponse()

function lightResponse(): typeof Response {
  const { Request: request, Response: response } = Object.getOwnPropertyDescriptors(globalThis)
  getRequestListener(nobody, { overrideGlobalObjects: true })
  const light = globalThis.Response
  Object.defineProperties(globalThis, { Request: request, Response: response })
  return light
}

/* c8 ignore start -- the listener is made for what that does, and never asked */
function nobody(): Response {
  return new Response()
}
/* c8 ignore stop */

/** Headers that every answer may have. */
export type Headers = Readonly<Record<string, string>>

const JSON_TYPE = 'application/json'

/** An answer that is JSON text. */
export function jsonAnswer(body: string, headers: Headers = {}, status = 200): Response {
  return new LightResponse(body, { status, headers: Object.assign({ 'Content-Type': JSON_TYPE }, headers) })
}

/** The binding whose form the body of an error has: a JSON-RPC response, or `google.rpc.Status`. */
export type Form = 'JSONRPC' | 'HTTP+JSON'

/** The answer to a request that does not get in; `more` are the headers of every answer to it. */
export function refusalAnswer(refusal: Refusal, more: Headers = {}, form: Form = 'JSONRPC'): Response {
  return jsonAnswer(refusalText(refusal, form), { ...more, ...refusal.headers }, refusal.status)
}

/** The body that a refusal has. */
export function refusalText({ status, message, error }: Refusal, form: Form = 'JSONRPC'): string {
  if (!error) return JSON.stringify({ error: message })
  return form === 'JSONRPC' ? JSON.stringify({ jsonrpc: '2.0', id: null, error: toWireError(error) }) : statusText(error, status)
}

/** An error as the refusal of a request, or of a connection. */
export function refusalOf(error: A2AError): Refusal {
  return { status: ERRORS[error.code].http, message: error.message, headers: headersFor(error), error }
}

/** What is thrown as what a client may see of it: an error that is not ours is none of its business. */
export function shownError(error: unknown): A2AError {
  return isA2AError(error) ? error : new A2AError('InternalError')
}

/** An error by REST (§11.6): `google.rpc.Status` under the error's HTTP status, or under another `status`. */
export function statusAnswer(thrown: unknown, headers: Headers = {}, status?: number): Response {
  const error = shownError(thrown)
  const { http } = ERRORS[error.code]
  return jsonAnswer(statusText(error, status), { ...headers, ...headersFor(error) }, status ?? http)
}

/** Errors that the HTTP status tells too, since they concern who calls and how much; all others come with 200. */
const TOLD_BY_STATUS: ReadonlySet<string> = new Set(['Unauthenticated', 'Forbidden', 'TooLarge', 'RateLimited', 'Overloaded'])

/** The HTTP status of an error by JSON-RPC. */
export function rpcStatus({ code }: A2AError): number {
  return TOLD_BY_STATUS.has(code) ? ERRORS[code].http : 200
}

/** The body of an error by REST; `status` is its HTTP status, if that is another than usual. */
export function statusText(thrown: unknown, status?: number): string {
  const error = shownError(thrown)
  const { http, grpc } = ERRORS[error.code]
  return JSON.stringify({ error: { code: status ?? http, status: grpc, message: error.message, details: error.details } })
}

/** What the headers say of an error beside its body. */
export function headersFor({ code, retryAfterMs }: A2AError): Record<string, string> {
  return {
    ...(retryAfterMs !== undefined && { 'Retry-After': String(Math.ceil(retryAfterMs / 1000)) }),
    ...(code === 'Unauthenticated' && { 'WWW-Authenticate': DEFAULT_CHALLENGE })
  }
}

/** The paths that REST has for POST, below whatever base. */
const POSTED = /(?::[a-z]+|\/pushNotificationConfigs)\/?$/

/** The form of errors for a request that is refused before it is routed. */
export function formOf(method: string | undefined, path: string): Form {
  return method === 'POST' && !POSTED.test(path) ? 'JSONRPC' : 'HTTP+JSON'
}
