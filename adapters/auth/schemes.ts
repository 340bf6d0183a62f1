import type { SecurityScheme } from '../../machines/protocol/security.ts'
import type { Authenticate, Credentials } from '../../runtime/access/authentication.ts'

/** The security scheme of an `authenticate` function: its name in the card, its definition, its scopes, and its challenge. */
interface Description {
  readonly name: string
  readonly scheme: SecurityScheme
  readonly scopes?: readonly string[]
  readonly challenge: string
}

/** Adds the security scheme to an `authenticate` function, for the card. Throws TypeError for an invalid scope. */
export function described(
  authenticate: Authenticate,
  { name, scheme, scopes = [], challenge }: Description
): Authenticate {
  // RFC 6749 §3.3.
  const wrong = scopes.find(scope => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope))
  if (wrong !== undefined)
    throw new TypeError(
      `scopes holds ${JSON.stringify(wrong)}, which is not a scope: a scope has no spaces, quotes or backslashes.`
    )
  const list = scopes.length > 0 ? { list: [...scopes] } : {}
  return Object.assign(authenticate, {
    securitySchemes: { [name]: scheme },
    securityRequirements: [{ schemes: { [name]: list } }],
    challenge
  })
}

/** The token in `Authorization: Bearer`; `undefined` without that header or with another scheme. */
export function bearerToken({ headers }: Credentials): string | undefined {
  return /^Bearer +(\S+)$/i.exec(headers['authorization'] ?? '')?.[1]
}
