/**
 * taskchart/auth: `authenticate` functions for `createRuntime`, for JWTs and API keys. Each adds its security scheme to
 * the card.
 */
export { anyOf } from './schemes.ts'
export { apiKey, type ApiKeyOptions } from './schemes.ts'
export { bearerJwt } from './bearer-jwt.ts'
export type { BearerJwtOptions, JwtClaims, JwtKeys } from './jwt-options.ts'
