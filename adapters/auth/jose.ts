import type * as jose from 'jose'

/** What verifies tokens: an optional peer, loaded when the first token comes. */
export type Jose = typeof jose

/** Throws TypeError that says how to install jose, if it is not there. */
export function checkJose(resolve: (name: string) => unknown = name => import.meta.resolve(name)): void {
  try {
    resolve('jose')
  } catch (cause) {
    throw new TypeError('bearerJwt verifies tokens with jose. Install it: npm install jose', { cause })
  }
}

/** Loads jose, once. */
export function loadJose(): Promise<Jose> {
  return import('jose')
}
