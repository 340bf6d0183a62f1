import type { KeyObject } from 'node:crypto'
import type { Clock } from '../../runtime/ports/clock.ts'

/** Where the keys come from that tokens are verified with: exactly one of the three. */
export type JwtKeys =
  | {
      /** The address of the issuer's public keys (RFC 7517): https, or http on this machine. They are fetched when they are needed. */
      readonly jwksUrl: string | URL
      /** How long after a fetch a key that is not there leads to no other, in milliseconds. Default 30,000. */
      readonly keysCooldownMs?: number
      /** How long keys are good before they are fetched again, in milliseconds. Default 600,000. */
      readonly keysMaxAgeMs?: number
    }
  /** The issuer's public keys themselves. */
  | { readonly jwks: { readonly keys: readonly object[] } }
  /** One key: `createPublicKey(pem)`, or a secret that the issuer shares, `createSecretKey(bytes)`, of at least 32 bytes. */
  | { readonly key: KeyObject }

/** The claims of a token that is good (RFC 7519 §4). `exp` is in seconds since 1970. */
export interface JwtClaims {
  readonly iss: string
  readonly aud: string | readonly string[]
  readonly exp: number
  readonly sub?: unknown
  readonly [claim: string]: unknown
}

/** Whose tokens are taken, and how they are verified. */
export type BearerJwtOptions = JwtKeys & {
  /** The issuer: the token's `iss` has to be exactly this. */
  readonly issuer: string
  /** The agent, or several names of it: one of them has to be among the token's `aud`. */
  readonly audience: string | readonly string[]
  /** Makes of a good token the id of its principal; nothing refuses it. Default its `sub`. */
  readonly principal?: (claims: JwtClaims) => string | undefined
  /** The algorithms that tokens may be signed with. Default all that fit the kind of key; never `none`. */
  readonly algorithms?: readonly string[]
  /** Leeway in seconds for the issuer's clock: a token counts so long before its `nbf` and after its `exp`, and a connection ends so long after `exp`. Default 60. */
  readonly clockToleranceS?: number
  /** The scopes that the card says a token needs. They are told, not checked: `authorize` does that, by operation. */
  readonly scopes?: readonly string[]
  /** The address of the issuer's discovery document: the card then says OpenID Connect. */
  readonly openIdConnectUrl?: string
  /** The name of the scheme in the card. Default `bearer`. */
  readonly scheme?: string
  readonly clock?: Pick<Clock, 'now'>
}
