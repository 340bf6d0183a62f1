import { isObject } from '../../machines/protocol/codec/json.ts'
import { ERRORS } from '../../machines/protocol/errors.ts'
import { toWireError } from '../../machines/protocol/wire-errors.ts'
import { headersFor, rpcStatus, statusText } from '../entry/answers.ts'
import { failureOf } from './sdk-errors.ts'

/** A response of Express, as far as errors need it. */
interface ExpressResponse {
  json(body: unknown): unknown
  status(code: number): unknown
  setHeader(name: string, value: string): unknown
}

/**
 * Express middleware for the app, in front of the official handlers: errors get the HTTP status, the headers (`Retry-After`,
 * `WWW-Authenticate`) and the details that taskchart's own servers give. By themselves the official handlers answer every JSON-RPC
 * error with 200, and know neither headers nor most details. An error in a stream that has begun stays as the SDK writes it.
 */
export function expressErrors({ headers }: { readonly headers: object }, response: ExpressResponse, next: () => void): void {
  const write = response.json.bind(response)
  response.json = body => {
    const error = failureOf(headers)
    if (!error || !isObject(body)) return write(body)
    for (const [name, value] of Object.entries(headersFor(error))) response.setHeader(name, value)
    const isRpc = 'jsonrpc' in body
    response.status(isRpc ? rpcStatus(error) : ERRORS[error.code].http)
    if (isRpc) return write({ ...body, error: toWireError(error) })
    // REST of 0.3 has no member `error`, and all details already.
    return write('error' in body ? JSON.parse(statusText(error)) : body)
  }
  next()
}
