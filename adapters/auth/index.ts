/** taskchart/auth: `authenticate` functions for `createRuntime`, for JWTs and API keys. Each adds its security scheme to the card. */
export { anyOf } from './any-of.ts'
export { apiKey, type ApiKeyOptions } from './api-key.ts'
export { bearerJwt } from './bearer-jwt.ts'
export type { BearerJwtOptions, JwtClaims, JwtKeys } from './jwt-options.ts'
