import { createHash, timingSafeEqual } from 'node:crypto'
import type { Authenticate } from '../../runtime/authentication.ts'
import { usageError } from './command.ts'

/** Lets in who knows the key, as the principal `api-key`: `Authorization: Bearer KEY`, compared in constant time. */
export function apiKeyAuthentication(key: string): Authenticate {
  const wanted = digest(key)
  return ({ headers }) => {
    const given = /^Bearer +(\S+)$/i.exec(headers['authorization'] ?? '')?.[1]
    return given !== undefined && timingSafeEqual(digest(given), wanted) ? { id: 'api-key' } : undefined
  }
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

/** Keys of all lengths are compared by digests of one length. */
function digest(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}
