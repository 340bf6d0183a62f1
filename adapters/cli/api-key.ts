import type { Authenticate } from '../../runtime/access/authentication.ts'
import { apiKey, LONG_KEY, SHORTEST_KEY } from '../auth/api-key.ts'
import { usageError } from './command.ts'

/** Authenticates callers by `Authorization: Bearer KEY`. Their principal is `api-key`. */
export function apiKeyAuthentication(key: string): Authenticate {
  return apiKey({ keys: { 'api-key': key }, header: 'authorization' })
}

/** The validated value of `--api-key`, or of a variable. Throws a usage error for a key that an HTTP header cannot carry. */
export function readApiKey(key: string | undefined, name = '--api-key'): string | undefined {
  if (key === undefined || /^[\x21-\x7e]+$/.test(key)) return key
  throw usageError(`${name} takes printable ASCII characters without spaces.`)
}

/** The validated value of `--api-key` for an agent that is served. Throws a usage error for a key that can be guessed, too. */
export function readOwnApiKey(given: string | undefined): string | undefined {
  const key = readApiKey(given)
  if (key !== undefined && key.length < SHORTEST_KEY) throw usageError(`The key of --api-key is too short. ${LONG_KEY}`)
  return key
}
