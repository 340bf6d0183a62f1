import type { Credentials } from '../../runtime/access/authentication.ts'

/** What stands after `Authorization: Bearer`; nothing if there is no such header, or another scheme in it. */
export function bearerToken({ headers }: Credentials): string | undefined {
  return /^Bearer +(\S+)$/i.exec(headers['authorization'] ?? '')?.[1]
}
