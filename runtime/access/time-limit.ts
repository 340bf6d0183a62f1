import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import type { Limits } from './limits.ts'

/**
 * What a function of the author's gives, or Overloaded if it has given nothing after this many milliseconds. Only a promise
 * is waited for. `told` is what the caller hears.
 */
export async function inTime<T>(given: T | PromiseLike<T>, ms: number, what: string, clock: Clock, told = 'The agent cannot tell now who may do this.'): Promise<T> {
  if (!isPromise(given)) return given
  let timer: unknown
  const late = new Promise<never>((_, reject) => {
    timer = clock.setTimeout(() => reject(new A2AError('Overloaded', `${told} Send the request again later.`, { retryAfterMs: 1000, cause: new Error(`${what} gave no answer within ${ms} ms`) })), ms)
  })
  try {
    return await Promise.race([given, late])
  } finally {
    clock.clearTimeout(timer)
  }
}

/** The same for a function that makes a part of a card. A timeout is logged. */
export async function cardInTime<T>(given: T | PromiseLike<T>, what: string, { limits, clock, logger }: { readonly limits: Limits; readonly clock: Clock; readonly logger: Logger }): Promise<T> {
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
