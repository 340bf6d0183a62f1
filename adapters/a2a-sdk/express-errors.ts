import { isObject } from '../../machines/protocol/codec/json.ts'
import { ERRORS } from '../../machines/protocol/errors.ts'
import { toWireError } from '../../machines/protocol/wire-errors.ts'
import { checkArgument, withMembers } from '../../runtime/primitives/options.ts'
import { headersFor, rpcStatus, statusText } from '../entry/answers.ts'
import { failureOf } from './sdk-errors.ts'

/** The used part of Express's response. */
interface ExpressResponse {
  json(body: unknown): unknown
  status(code: number): unknown
  setHeader(name: string, value: string): unknown
}

/**
 * Express middleware in front of the official handlers: errors get the HTTP status, headers (`Retry-After`, `WWW-Authenticate`) and details
 * of taskchart's own servers. On their own, the official handlers answer every JSON-RPC error with 200, without these headers and
 * without most details. An error in a started stream stays in the SDK's form.
 */
export function expressErrors(
  request: { readonly headers: object },
  response: ExpressResponse,
  next: () => void
): void {
  checkArgument(request, withMembers(['headers'], 'a request of express'), 'app.use(expressErrors)')
  const { headers } = request
  const write = response.json.bind(response)
  response.json = body => {
    const error = failureOf(headers)
    if (!error || !isObject(body)) return write(body)
    for (const [name, value] of Object.entries(headersFor(error))) response.setHeader(name, value)
    const isRpc = 'jsonrpc' in body
    response.status(isRpc ? rpcStatus(error) : ERRORS[error.code].http)
    if (isRpc) return write({ ...body, error: toWireError(error) })
    // An error in REST of 0.3 has no member `error`, and already has all details.
    return write('error' in body ? JSON.parse(statusText(error)) : body)
  }
  next()
}
