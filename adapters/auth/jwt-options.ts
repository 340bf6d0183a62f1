import type { KeyObject } from 'node:crypto'
import type { Clock } from '../../runtime/ports/clock.ts'

/** The keys that verify signatures, in exactly one of three forms. */
export type JwtKeys =
  | {
      /** The URL of the issuer's key set (RFC 7517): https, or http on this machine. Keys are fetched on demand. */
      readonly jwksUrl: string | URL
      /** For how long after a fetch a missing key causes no other, in milliseconds. Default 30,000. */
      readonly keysCooldownMs?: number
      /** After how long fetched keys expire, in milliseconds. Default 600,000. */
      readonly keysMaxAgeMs?: number
    }
  /** The issuer's public keys. */
  | { readonly jwks: { readonly keys: readonly object[] } }
  /**
   * One key: `createPublicKey(pem)`, or a secret shared with the issuer, `createSecretKey(bytes)`, of at least 32
   * bytes.
   */
  | { readonly key: KeyObject }

/** The claims of a valid token (RFC 7519 §4). `exp` is in seconds since 1970. */
export interface JwtClaims {
  readonly iss: string
  readonly aud: string | readonly string[]
  readonly exp: number
  readonly sub?: unknown
  readonly [claim: string]: unknown
}

/** The options of `bearerJwt`. */
export type BearerJwtOptions = JwtKeys & {
  /** The issuer. Has to equal the token's `iss`. */
  readonly issuer: string
  /** The name or names of the agent. The token's `aud` has to contain one of them. */
  readonly audience: string | readonly string[]
  /** Returns the principal id for the claims of a valid token; `undefined` refuses it. Default its `sub`. */
  readonly principal?: (claims: JwtClaims) => string | undefined
  /** The algorithms that tokens may be signed with. Default all that fit the kind of key; never `none`. */
  readonly algorithms?: readonly string[]
  /**
   * Tolerance for the issuer's clock in seconds: a token is valid this long before its `nbf` and after its `exp`, and
   * its connections end this long after `exp`. Default 60.
   */
  readonly clockToleranceS?: number
  /** The scopes that the card lists as required. They are not checked here: `authorize` does that, by operation. */
  readonly scopes?: readonly string[]
  /** The URL of the issuer's discovery document. With it the card lists OpenID Connect. */
  readonly openIdConnectUrl?: string
  /** The name of the scheme in the card. Default `bearer`. */
  readonly scheme?: string
  readonly clock?: Pick<Clock, 'now'>
}
