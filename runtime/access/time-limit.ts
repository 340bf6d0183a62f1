import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import type { Limits } from './limits.ts'

/**
 * The result of an author's function. Rejects with Overloaded if its promise does not settle within this many
 * milliseconds. `message` is the message for the caller.
 */
export async function inTime<T>(
  given: T | PromiseLike<T>,
  ms: number,
  what: string,
  clock: Clock,
  message = 'The agent cannot check credentials and permissions now.'
): Promise<T> {
  if (!isPromise(given)) return given
  let timer: unknown
  const late = new Promise<never>((_, reject) => {
    timer = clock.setTimeout(
      () =>
        reject(
          new A2AError('Overloaded', `${message} Send the request again later.`, {
            retryAfterMs: 1000,
            cause: new Error(`${what} gave no answer within ${ms} ms`)
          })
        ),
      ms
    )
  })
  try {
    return await Promise.race([given, late])
  } finally {
    clock.clearTimeout(timer)
  }
}

/** Like `inTime`, for a function that makes a part of a card. A timeout is logged. */
export async function cardInTime<T>(
  given: T | PromiseLike<T>,
  what: string,
  { limits, clock, logger }: { readonly limits: Limits; readonly clock: Clock; readonly logger: Logger }
): Promise<T> {
  try {
    return await inTime(given, limits.accessMs, what, clock, 'The agent cannot give its card now.')
  } catch (error) {
    if (isA2AError(error)) logger.error(`${what} failed`, { error })
    throw error
  }
}

function isPromise<T>(given: T | PromiseLike<T>): given is PromiseLike<T> {
  return typeof given === 'object' && given !== null && 'then' in given
}
