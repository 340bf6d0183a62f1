import { isObject } from '../../../machines/protocol/codec/json.ts'
import { A2AError, type ErrorCode, ERRORS } from '../../../machines/protocol/errors.ts'
import type { OperationMethod } from '../../../machines/protocol/operations.ts'
import type { PlacedOptions } from '../../client/options.ts'
import { mediaType, wholeBody } from '../../client/transports/body.ts'
import { readServerSentEvents, sendRequest } from '../../client/transports/http.ts'
import { objectMembersOf } from '../requirements/needs.ts'
import { type Note, WireRefusal } from './caller.ts'

/** An HTTP answer: JSON, or a stream of events. */
export interface HttpAnswer {
  readonly response: Response
  readonly json?: unknown
  /** The data of the next event; `undefined` at the end. */
  readonly next?: () => Promise<unknown>
}

/**
 * Sends a request, and reads the answer according to its media type. Throws the errors of `sendRequest`, including
 * redirects. Throws InvalidAgentResponse for an answer that is too long, or neither JSON nor a stream, and a Refusal
 * with the status if HTTP failed.
 */
export async function exchange(
  url: string,
  init: RequestInit,
  access: PlacedOptions = {},
  send = sendRequest
): Promise<HttpAnswer> {
  const response = await send(url, init, access)
  const type = mediaType(response)
  if (type !== 'text/event-stream') return { response, json: jsonIn(await wholeBody(response), response) }
  const events = readServerSentEvents(response)
  const next = async () => {
    const { done, value } = await events.next()
    return done ? undefined : parsed(value, 'an event')
  }
  return { response, next }
}

function jsonIn(text: string, { ok, status }: Response): unknown {
  if (ok) return parsed(text || 'null', `HTTP ${status}`)
  try {
    return JSON.parse(text)
  } catch {
    throw new WireRefusal(String(status), text.slice(0, 120), [])
  }
}

function parsed(text: string, what: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new A2AError(
      'InvalidAgentResponse',
      `The answer (${what}) is not JSON: ${JSON.stringify(text.slice(0, 120))}`,
      { cause }
    )
  }
}

/** The inspected members of a JSON-RPC response. */
export interface RpcResponse {
  readonly id?: unknown
  readonly result?: unknown
  readonly error?: unknown
  readonly streamEnd?: unknown
  readonly 'a2a-service-parameters'?: { readonly 'a2a-extensions'?: string }
}

/** The result in the response to a request id. Throws its error, and InvalidAgentResponse for an invalid response. */
export function resultOf(response: unknown, id: unknown, note: Note): unknown {
  const { jsonrpc, id: found, result, error } = objectMembersOf(response)
  note(14, jsonrpc === '2.0' && found === id, `jsonrpc "2.0" and id ${JSON.stringify(id)}`, response)
  if (error !== undefined && error !== null) throw rpcRefusal(error, note)
  if (result === undefined)
    throw new A2AError(
      'InvalidAgentResponse',
      `The answer is no JSON-RPC response: ${JSON.stringify(response)?.slice(0, 120)}`
    )
  return result
}

/** Translates operations of A2A 1.0 to a version. */
export interface Translation {
  readonly extensionsHeader: string
  method(operation: OperationMethod): string
  params(operation: OperationMethod, params: object): unknown
  /** Converts the result of an operation, or an event of its stream. */
  result(operation: OperationMethod, result: unknown): unknown
}

export const asItIs: Translation = {
  extensionsHeader: 'a2a-extensions',
  method: operation => operation,
  params: (_, params) => params,
  result: (_, result) => result
}

/** Reads the error of a JSON-RPC response (§9.5), and records its format. */
function rpcRefusal(error: unknown, note: Note): WireRefusal {
  const { code, message, data } = objectMembersOf(error)
  noteShape(note, Number.isInteger(code) && typeof message === 'string', data, error)
  const refusal = new WireRefusal(String(code), String(message), data)
  noteCode(note, refusal, ({ code: number }) => number === code)
  return refusal
}

/** Reads the error of a REST answer (§11.6), and records its format. */
export function restRefusal(status: number, error: unknown, note: Note): WireRefusal {
  const { code, status: name, message, details } = objectMembersOf(error)
  note(
    98,
    code === status && typeof name === 'string' && typeof message === 'string',
    '{ error: { code, status, message, details } }, whose code is the HTTP status',
    { http: status, error }
  )
  noteShape(note, Number.isInteger(code) && typeof message === 'string', details, error)
  const refusal = new WireRefusal(
    typeof name === 'string' ? `${status} ${name}` : String(status),
    String(message),
    details
  )
  noteCode(note, refusal, ({ http }) => http === status)
  return refusal
}

function noteShape(note: Note, isWhole: boolean, details: unknown, error: unknown): void {
  const isTyped =
    details === undefined ||
    (Array.isArray(details) && details.every(detail => isObject(detail) && typeof detail['@type'] === 'string'))
  note(95, isWhole && isTyped, 'a code, a message, and details that are a list of objects with @type', error)
}

/** If ErrorInfo identifies the error, the binding's own code must match it. */
function noteCode(
  note: Note,
  { reason, native }: WireRefusal,
  fits: (row: (typeof ERRORS)[ErrorCode]) => boolean
): void {
  const row = Object.values(ERRORS).find(({ reason: known }) => known === reason)
  if (row) note(96, fits(row), `${row.reason} is ${row.code} by JSON-RPC, HTTP ${row.http} by REST`, native)
}
