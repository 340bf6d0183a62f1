import type { Authenticate } from '../../runtime/access/authentication.ts'
import { apiKey } from '../auth/api-key.ts'
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
