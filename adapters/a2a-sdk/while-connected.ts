import type { EventEmitter } from 'node:events'
import type { User } from '@a2a-js/sdk/server'
import { connectionOf } from '../http/http-call.ts'

/** A request of Express, which has its response, or a call of gRPC. */
type Request = EventEmitter & { readonly res?: EventEmitter | undefined; readonly socket?: object | undefined }

/**
 * Has calls and streams end when their client is gone, which the official servers do not tell: wraps their `userBuilder`.
 * Tasks go on. Without it a stream ends by itself, when nothing has happened for a while (`streamIdleMs`). Over Express it
 * also tells the runtime the connection, by which callers without a name are counted.
 */
export function whileConnected<R extends object>(userBuilder: (request: R) => Promise<User>): (request: R) => Promise<User> {
  return async request => {
    const gone = new AbortController()
    const abort = () => gone.abort()
    const { res, socket } = request as Partial<Request>
    if (res) res.once('close', abort)
    else (request as unknown as Request).once('cancelled', abort)
    const { isAuthenticated, userName } = await userBuilder(request)
    return { isAuthenticated, userName, signal: gone.signal, ...(socket && { connection: connectionOf({ incoming: { socket } }) }) } as User
  }
}
