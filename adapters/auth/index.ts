/**
 * taskchart/auth: `authenticate` functions for `createRuntime`, for JWTs and API keys, which add their security scheme
 * to the card; and signed cards (§8.4), `cardSigner` for servers and `cardVerifier` for clients.
 */
export { apiKey, anyOf } from './schemes.ts'
export { bearerJwt } from './bearer-jwt.ts'
export { cardSigner } from './card-signer.ts'
export { cardVerifier } from './card-verifier.ts'

export type { JwtClaims } from './jwt-options.ts'
export type { VerifyCard } from '../client/options.ts'
