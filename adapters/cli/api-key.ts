import type { Authenticate } from '../../runtime/access/authentication.ts'
import { apiKey } from '../auth/api-key.ts'
import { usageError } from './command.ts'

/** Lets in who knows the key, as the principal `api-key`: `Authorization: Bearer KEY`. */
export function apiKeyAuthentication(key: string): Authenticate {
  return apiKey({ keys: { 'api-key': key }, header: 'authorization' })
}

/** The headers that show a key to an agent. */
export function apiKeyHeaders(key: string): { authorization: string } {
  return { authorization: `Bearer ${key}` }
}

/** The key of `--api-key`, if it was given. Throws a usage error for one that no header can carry. */
export function readApiKey(key: string | undefined): string | undefined {
  if (key === undefined || /^[\x21-\x7e]+$/.test(key)) return key
  throw usageError('--api-key takes letters, digits and signs of ASCII, without spaces.')
}
