/**
 * taskchart/auth: ready `authenticate` functions for `createRuntime`, for tokens and for API keys. Each says in the card how
 * one shows who one is.
 */
export { anyOf } from './any-of.ts'
export { apiKey, type ApiKeyOptions } from './api-key.ts'
export { bearerJwt } from './bearer-jwt.ts'
export type { BearerJwtOptions, JwtClaims, JwtKeys } from './jwt-options.ts'
