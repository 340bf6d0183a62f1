import { A2AError } from '../machines/protocol/errors.ts'
import type { Clock } from './clock.ts'

/**
 * What a function of the author's gives, or Overloaded if it has given nothing after this many milliseconds. Only a promise
 * is waited for.
 */
export async function inTime<T>(given: T | PromiseLike<T>, ms: number, what: string, clock: Clock): Promise<T> {
  if (!isPromise(given)) return given
  let timer: unknown
  const late = new Promise<never>((_, reject) => {
    timer = clock.setTimeout(() => reject(new A2AError('Overloaded', 'The agent cannot tell now who may do this. Send the request again later.', { retryAfterMs: 1000, cause: new Error(`${what} gave no answer within ${ms} ms`) })), ms)
  })
  try {
    return await Promise.race([given, late])
  } finally {
    clock.clearTimeout(timer)
  }
}

function isPromise<T>(given: T | PromiseLike<T>): given is PromiseLike<T> {
  return typeof given === 'object' && given !== null && 'then' in given
}
