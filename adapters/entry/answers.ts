import { getRequestListener } from '@hono/node-server'
import { A2AError, ERRORS, isA2AError } from '../../machines/protocol/errors.ts'
import { toWireError } from '../../machines/protocol/wire-errors.ts'
import { DEFAULT_CHALLENGE } from '../../runtime/access/authentication.ts'
import type { RefusedRequest } from './admission.ts'

/**
 * Hono's Response, which its server sends without a Response of Node: with Node's own, a request takes a fifth longer.
 * Hono also replaces the global classes. A library must not do that, so they are restored.
 */
export const LightResponse: typeof Response = lightResponse()

function lightResponse(): typeof Response {
  const { Request: request, Response: response } = Object.getOwnPropertyDescriptors(globalThis)
  getRequestListener(nobody, { overrideGlobalObjects: true })
  const light = globalThis.Response
  Object.defineProperties(globalThis, { Request: request, Response: response })
  return light
}

/* c8 ignore start -- the listener is created for its side effect, and never called */
function nobody(): Response {
  return new Response()
}
/* c8 ignore stop */

/** Headers of every answer. */
export type AnswerHeaders = Readonly<Record<string, string>>

const JSON_TYPE = 'application/json'

/** A response of JSON text. */
export function jsonAnswer(body: string, headers: AnswerHeaders = {}, status = 200): Response {
  return new LightResponse(body, { status, headers: Object.assign({ 'Content-Type': JSON_TYPE }, headers) })
}

/**
 * The binding that determines the form of an error's body: a JSON-RPC response, or `google.rpc.Status`. REST of 0.3
 * also has the code and the message of JSON-RPC, by which its clients know the error.
 */
export type Form = 'JSONRPC' | 'HTTP+JSON' | 'HTTP+JSON 0.3'

/** The answer to a refused request; `more` are the headers of every answer. */
export function refusalAnswer(refusal: RefusedRequest, more: AnswerHeaders = {}, form: Form = 'JSONRPC'): Response {
  return jsonAnswer(refusalBody(refusal, form), { ...more, ...refusal.headers }, refusal.status)
}

/** The body of a refusal. */
export function refusalBody({ status, message, error }: RefusedRequest, form: Form = 'JSONRPC'): string {
  if (!error) return JSON.stringify({ error: message })
  return form === 'JSONRPC'
    ? JSON.stringify({ jsonrpc: '2.0', id: null, error: toWireError(error) })
    : restErrorBody(error, status, form)
}

/** An error as a refusal of a request or connection. */
export function refusalOf(error: A2AError): RefusedRequest {
  return { status: ERRORS[error.code].http, message: error.message, headers: errorHeaders(error), error }
}

/** The error that a client may see: anything but an A2AError becomes InternalError. */
export function shownError(error: unknown): A2AError {
  return isA2AError(error) ? error : new A2AError('InternalError')
}

/** A REST error (§11.6): `google.rpc.Status` with the error's HTTP status, or with another `status`. */
export function statusAnswer(thrown: unknown, headers: AnswerHeaders = {}, status?: number, form?: Form): Response {
  const error = shownError(thrown)
  const { http } = ERRORS[error.code]
  return jsonAnswer(restErrorBody(error, status, form), { ...headers, ...errorHeaders(error) }, status ?? http)
}

/** Errors that JSON-RPC also reports by the HTTP status, since they concern access and quotas; all others have 200. */
const CODES_WITH_STATUS: ReadonlySet<string> = new Set([
  'Unauthenticated',
  'Forbidden',
  'TooLarge',
  'RateLimited',
  'Overloaded'
])

/** The HTTP status of a JSON-RPC error. */
export function rpcStatus({ code }: A2AError): number {
  return CODES_WITH_STATUS.has(code) ? ERRORS[code].http : 200
}

/** The body of a REST error; `status` is its HTTP status, if it differs from the error's. */
export function restErrorBody(thrown: unknown, status?: number, form?: Form): string {
  const error = shownError(thrown)
  const { code, http, grpc } = ERRORS[error.code]
  const { message, details } = error
  return JSON.stringify({
    ...(form === 'HTTP+JSON 0.3' && { code, message }),
    error: { code: status ?? http, status: grpc, message, details }
  })
}

/** The headers of an error. */
export function errorHeaders({ code, retryAfterMs }: A2AError): Record<string, string> {
  return {
    ...(retryAfterMs !== undefined && { 'Retry-After': String(Math.ceil(retryAfterMs / 1000)) }),
    ...(code === 'Unauthenticated' && { 'WWW-Authenticate': DEFAULT_CHALLENGE })
  }
}

/** REST paths of POST requests, below any base. */
const POSTED = /(?::[a-z]+|\/pushNotificationConfigs)\/?$/

/** The form of errors for a request that is refused before routing. */
export function formOf(method: string | undefined, path: string): Form {
  return method === 'POST' && !POSTED.test(path) ? 'JSONRPC' : 'HTTP+JSON'
}
