import type { EventEmitter } from 'node:events'
import type { User } from '@a2a-js/sdk/server'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { connectionOf } from '../entry/connection.ts'
import { noteFailure, toSdkError, type Transport } from './sdk-errors.ts'

/** A request of Express, which has its response, or a call of gRPC. */
type Request = EventEmitter & {
  readonly res?: EventEmitter | undefined
  readonly socket?: object | undefined
  readonly headers?: object
  readonly body?: unknown
  readonly request?: object
}

/** What a user may have beside what the SDK knows of one. */
interface KnownUser extends User {
  readonly claims?: Readonly<Record<string, unknown>>
  readonly connection?: object
}

/**
 * Has calls and streams end when their client is gone, which the official servers do not tell: wraps their `userBuilder`.
 * Tasks go on. Without it a stream ends by itself, when nothing has happened for a while (`streamIdleMs`). A user may have `claims`, which are the call's, and a `connection`. It also tells the request
 * handler which server called it: errors get a status that this server can write. Over Express it tells the connection too, by which
 * callers without a name are counted.
 */
export function whileConnected<R extends object>(userBuilder: (request: R) => Promise<User>): (request: R) => Promise<User> {
  return async request => {
    const gone = new AbortController()
    const abort = () => gone.abort()
    const { res, socket, headers, request: message } = request as Partial<Request>
    if (res) res.once('close', abort)
    else (request as unknown as Request).once('cancelled', abort)
    const transport = transportOf(request)
    try {
      const user = await userBuilder(request)
      const { isAuthenticated, userName, claims, connection = connectionOf({ incoming: { socket } }) } = user as KnownUser
      return { isAuthenticated, userName, ...(claims && { claims }), signal: gone.signal, transport, ...(connection && { connection }) } as User
    } catch (error) {
      noteFailure(error, headers, message)
      throw toSdkError(error, transport)
    }
  }
}

function transportOf({ res, body }: Partial<Request>): Transport {
  if (!res) return 'grpc'
  return isObject(body) && 'jsonrpc' in body ? 'jsonrpc' : 'rest'
}
