import type { JWTVerifyOptions } from 'jose'
import { isA2AError } from '../../machines/protocol/errors.ts'
import type { SecurityScheme } from '../../machines/protocol/security.ts'
import type { Authenticate } from '../../runtime/access/authentication.ts'
import { systemClock, type Clock } from '../../runtime/ports/clock.ts'
import { checkOptions, functionFor, textSuchAs, textsSuchAs, type OptionKinds } from '../../runtime/primitives/options.ts'
import { bearerToken } from './bearer-token.ts'
import { described } from './described.ts'
import { checkJose, loadJose } from './jose.ts'
import { allowedAlgorithms } from './jwt-algorithms.ts'
import { KEY_OPTIONS, keySource } from './jwt-keys.ts'
import type { BearerJwtOptions, JwtClaims } from './jwt-options.ts'

const OPTIONS: OptionKinds<BearerJwtOptions> = {
  ...KEY_OPTIONS, issuer: true, audience: true, clockToleranceS: true, clock: true,
  principal: functionFor('a function of the claims that gives the id of a principal'),
  scopes: textsSuchAs("['tasks']"),
  openIdConnectUrl: textSuchAs("'https://login.example/.well-known/openid-configuration'"),
  scheme: textSuchAs("'bearer'")
}

/**
 * Lets in who has a good JWT (RFC 7519) as `Authorization: Bearer`: signed with a key and an algorithm that count, of the
 * issuer, for the audience, and not before or after its time. It has to expire, and so do its connections. Its claims are the
 * principal's. Keys that cannot be fetched are Overloaded. Needs `jose`. Throws TypeError or RangeError for wrong options.
 */
export function bearerJwt(options: BearerJwtOptions): Authenticate {
  checkOptions(options, OPTIONS, 'bearerJwt', 'bearerJwt({ issuer, audience, jwksUrl })')
  const { issuer, principal = subjectOf, clock = systemClock, clockToleranceS = 60, openIdConnectUrl, scopes = [], scheme: name = 'bearer' } = options
  checkJose()
  const audience = [options.audience].flat()
  if (!isText(issuer)) throw new TypeError('issuer has to be the iss of the tokens that are good.')
  if (audience.length === 0 || !audience.every(isText)) throw new TypeError('audience has to be the aud of the tokens that are for this agent.')
  if (!(clockToleranceS >= 0 && clockToleranceS < Infinity)) throw new RangeError(`clockToleranceS has to be seconds from 0, not ${String(clockToleranceS)}.`)
  const source = keySource(options, clock, { taker: 'bearerJwt', checked: 'tokens' })
  const terms = { issuer, audience, algorithms: allowedAlgorithms(source.kind, options.algorithms), clockTolerance: clockToleranceS, requiredClaims: ['exp'] }
  const verify = verifier(source, terms, clock)

  const authenticate: Authenticate = async credentials => {
    const token = bearerToken(credentials)
    const claims = token === undefined ? undefined : await verify(token)
    const id = claims && principal(claims)
    return claims && isText(id) ? { id, claims, expiresAtMs: (claims.exp + clockToleranceS) * 1000 } : undefined
  }
  const challenge = scopes.length > 0 ? `Bearer scope="${scopes.join(' ')}"` : 'Bearer'
  return described(authenticate, { name, scheme: schemeOf(openIdConnectUrl), scopes, challenge })
}

type Terms = Required<Pick<JWTVerifyOptions, 'issuer' | 'audience' | 'algorithms' | 'clockTolerance' | 'requiredClaims'>>

/** Gives the claims of a token that is good, and nothing for others. */
function verifier({ open }: ReturnType<typeof keySource>, terms: Terms, clock: Pick<Clock, 'now'>): (token: string) => Promise<JwtClaims | undefined> {
  let opening: ReturnType<typeof opened> | undefined
  const opened = async () => {
    const jose = await loadJose()
    return { jose, keys: open(jose) }
  }
  return async token => {
    const { jose, keys } = await (opening ??= opened())
    const options = { ...terms, currentDate: new Date(clock.now()) }
    try {
      // Two calls, as jose's types tell a key from a function that finds one.
      const { payload } = typeof keys === 'function' ? await jose.jwtVerify(token, keys, options) : await jose.jwtVerify(token, keys, options)
      return payload as unknown as JwtClaims
    } catch (error) {
      if (isA2AError(error)) throw error
      return undefined
    }
  }
}

function schemeOf(openIdConnectUrl: string | undefined): SecurityScheme {
  if (openIdConnectUrl !== undefined) return { openIdConnectSecurityScheme: { openIdConnectUrl } }
  return { httpAuthSecurityScheme: { scheme: 'Bearer', bearerFormat: 'JWT' } }
}

function subjectOf({ sub }: JwtClaims): string | undefined {
  return isText(sub) ? sub : undefined
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
