import type { A2AError } from '../machines/protocol/errors.ts'
import type { CallContext } from './call.ts'

/** Counts a request that reaches no operation. Gives RateLimited if it is over the quotas of its caller. */
export type CountStray = (call: Pick<CallContext, 'principal' | 'tenant' | 'claims' | 'bytes'>, params?: unknown) => A2AError | undefined

/** Reads a request. One that cannot be read is counted, and refused with RateLimited if it is over the quotas of its caller. */
export function counted<T>(countStray: CountStray, call: CallContext, params: unknown, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw countStray(call, params) ?? error
  }
}
