import type { EventEmitter } from 'node:events'
import type { User } from '@a2a-js/sdk/server'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { connectionOf } from '../entry/connection.ts'
import { noteFailure, toSdkError, type Transport } from './sdk-objects.ts'

/** A request of Express, which has its response, or a call of gRPC. */
type Request = EventEmitter & {
  readonly res?: EventEmitter | undefined
  readonly socket?: object | undefined
  readonly headers?: object
  readonly body?: unknown
  readonly request?: object
}

/** Additional members of a user. */
interface KnownUser extends User {
  readonly claims?: Readonly<Record<string, unknown>>
  readonly connection?: object
}

/**
 * Wraps the `userBuilder` of the official servers, so that calls and streams end when their client disconnects, which
 * those servers do not report. Tasks continue. Without it, a stream ends after an idle time (`streamIdleMs`). A user
 * may have `claims`, which the call gets, and a `connection`. The wrapper also passes the calling server to the request
 * handler, so that errors get the right status. Over Express it passes on the connection, by which anonymous callers
 * are counted.
 */
export function whileConnected<R extends object>(
  userBuilder: (request: R) => Promise<User>
): (request: R) => Promise<User> {
  return async request => {
    const gone = new AbortController()
    const abort = () => gone.abort()
    const { res, socket, headers, request: message } = request as Partial<Request>
    if (res) res.once('close', abort)
    else (request as unknown as Request).once('cancelled', abort)
    const transport = transportOf(request)
    try {
      const user = await userBuilder(request)
      const {
        isAuthenticated,
        userName,
        claims,
        connection = connectionOf({ incoming: { socket } })
      } = user as KnownUser
      return {
        isAuthenticated,
        userName,
        ...(claims && { claims }),
        signal: gone.signal,
        transport,
        ...(connection && { connection })
      } as User
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
