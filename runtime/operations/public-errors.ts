import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { CallContext } from '../access/call-context.ts'
import type { Logger } from '../ports/logger.ts'

/** Runs an operation. What it throws is an A2AError or the reason of the call's signal; any other error is for our log alone. */
export async function hideInternalErrors<T>(logger: Logger, call: CallContext, operation: string, run: () => T | Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw toPublicError(logger, call, operation, error)
  }
}

/** The error that the caller of an operation gets of one that was thrown. */
export function toPublicError(logger: Logger, { signal }: CallContext, operation: string, error: unknown): unknown {
  if (isA2AError(error) || signal?.aborted) return error
  logger.error('an operation failed', { operation, error })
  return new A2AError('InternalError', undefined, { cause: error })
}
