import { isObject } from '../../../machines/protocol/codec/json.ts'
import { ERRORS, type ErrorCode } from '../../../machines/protocol/errors.ts'
import { fieldsOf } from '../fields-of.ts'
import { Refusal, type Note } from './caller.ts'

/** Reads the error of a JSON-RPC response (§9.5), and records its format. */
export function rpcRefusal(error: unknown, note: Note): Refusal {
  const { code, message, data } = fieldsOf(error)
  noteShape(note, Number.isInteger(code) && typeof message === 'string', data, error)
  const refusal = new Refusal(String(code), String(message), data)
  noteCode(note, refusal, ({ code: number }) => number === code)
  return refusal
}

/** Reads the error of a REST answer (§11.6), and records its format. */
export function restRefusal(status: number, error: unknown, note: Note): Refusal {
  const { code, status: name, message, details } = fieldsOf(error)
  note(
    98,
    code === status && typeof name === 'string' && typeof message === 'string',
    '{ error: { code, status, message, details } }, whose code is the HTTP status',
    { http: status, error }
  )
  noteShape(note, Number.isInteger(code) && typeof message === 'string', details, error)
  const refusal = new Refusal(typeof name === 'string' ? `${status} ${name}` : String(status), String(message), details)
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
function noteCode(note: Note, { reason, native }: Refusal, fits: (row: (typeof ERRORS)[ErrorCode]) => boolean): void {
  const row = Object.values(ERRORS).find(({ reason: known }) => known === reason)
  if (row) note(96, fits(row), `${row.reason} is ${row.code} by JSON-RPC, HTTP ${row.http} by REST`, native)
}
