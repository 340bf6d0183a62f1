import type { SecurityScheme } from '../../machines/protocol/security.ts'
import type { Authenticate } from '../../runtime/access/authentication.ts'

/** What an `authenticate` function says of itself: the name of its scheme in the card, the scheme, the scopes that it takes, and its challenge. */
export interface Description {
  readonly name: string
  readonly scheme: SecurityScheme
  readonly scopes?: readonly string[]
  readonly challenge: string
}

/** An `authenticate` function that says in the card how it wants to be shown who calls. Throws TypeError for a scope that no token can have. */
export function described(authenticate: Authenticate, { name, scheme, scopes = [], challenge }: Description): Authenticate {
  // RFC 6749 §3.3.
  const wrong = scopes.find(scope => !/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope))
  if (wrong !== undefined) throw new TypeError(`scopes holds ${JSON.stringify(wrong)}, which is no scope: no spaces, quotes and backslashes.`)
  const list = scopes.length > 0 ? { list: [...scopes] } : {}
  return Object.assign(authenticate, { securitySchemes: { [name]: scheme }, securityRequirements: [{ schemes: { [name]: list } }], challenge })
}
