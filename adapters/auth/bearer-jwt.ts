import type { JWTVerifyOptions } from 'jose'
import { isA2AError } from '../../machines/protocol/errors.ts'
import type { SecurityScheme } from '../../machines/protocol/security.ts'
import type { Authenticate } from '../../runtime/access/authentication.ts'
import { systemClock, type Clock } from '../../runtime/ports/clock.ts'
import {
  checkOptions,
  functionFor,
  textSuchAs,
  textsSuchAs,
  type OptionKinds
} from '../../runtime/primitives/options.ts'
import { allowedAlgorithms, checkJose, JWT_KEY_OPTIONS, keySource, loadJose } from './jwt-keys.ts'
import type { BearerJwtOptions, JwtClaims } from './jwt-options.ts'
import { bearerToken, withSecurityScheme } from './schemes.ts'

const OPTIONS: OptionKinds<BearerJwtOptions> = {
  ...JWT_KEY_OPTIONS,
  issuer: true,
  audience: true,
  clockToleranceS: true,
  clock: true,
  principal: functionFor('a function that returns the principal id for the claims'),
  scopes: textsSuchAs("['tasks']"),
  openIdConnectUrl: textSuchAs("'https://login.example/.well-known/openid-configuration'"),
  scheme: textSuchAs("'bearer'")
}

/**
 * Authenticates callers by a JWT (RFC 7519) in `Authorization: Bearer`. Checks the signature, the algorithm, `iss`,
 * `aud`, `nbf` and `exp`, which is required; connections end when the token expires. The claims are on the principal.
 * Throws Overloaded when the keys cannot be fetched. Needs `jose`. Throws TypeError or RangeError for invalid options.
 */
export function bearerJwt(options: BearerJwtOptions): Authenticate {
  checkOptions(options, OPTIONS, 'bearerJwt', 'bearerJwt({ issuer, audience, jwksUrl })')
  const {
    issuer,
    principal = subjectOf,
    clock = systemClock,
    clockToleranceS = 60,
    openIdConnectUrl,
    scopes = [],
    scheme: name = 'bearer'
  } = options
  checkJose()
  const audience = [options.audience].flat()
  if (!isText(issuer)) throw new TypeError('issuer has to be the iss claim of valid tokens.')
  if (audience.length === 0 || !audience.every(isText))
    throw new TypeError('audience has to be the aud claim of tokens for this agent.')
  if (!(clockToleranceS >= 0 && clockToleranceS < Infinity))
    throw new RangeError(`clockToleranceS has to be seconds from 0, not ${String(clockToleranceS)}.`)
  const source = keySource(options, clock, { taker: 'bearerJwt', checked: 'tokens' })
  const verifyOptions = {
    issuer,
    audience,
    algorithms: allowedAlgorithms(source.kind, options.algorithms),
    clockTolerance: clockToleranceS,
    requiredClaims: ['exp']
  }
  const verify = verifier(source, verifyOptions, clock)

  const authenticate: Authenticate = async credentials => {
    const token = bearerToken(credentials)
    const claims = token === undefined ? undefined : await verify(token)
    const id = claims && principal(claims)
    return claims && isText(id) ? { id, claims, expiresAtMs: (claims.exp + clockToleranceS) * 1000 } : undefined
  }
  const challenge = scopes.length > 0 ? `Bearer scope="${scopes.join(' ')}"` : 'Bearer'
  return withSecurityScheme(authenticate, { name, scheme: schemeOf(openIdConnectUrl), scopes, challenge })
}

type VerifyOptions = Required<
  Pick<JWTVerifyOptions, 'issuer' | 'audience' | 'algorithms' | 'clockTolerance' | 'requiredClaims'>
>

/** Resolves with the claims of a valid token, and with `undefined` for an invalid one. */
function verifier(
  { open }: ReturnType<typeof keySource>,
  verifyOptions: VerifyOptions,
  clock: Pick<Clock, 'now'>
): (token: string) => Promise<JwtClaims | undefined> {
  let opening: ReturnType<typeof opened> | undefined
  const opened = async () => {
    const jose = await loadJose()
    return { jose, keys: open(jose) }
  }
  return async token => {
    const { jose, keys } = await (opening ??= opened())
    const options = { ...verifyOptions, currentDate: new Date(clock.now()) }
    try {
      // Two calls: jose has separate overloads for a key and for a function that finds one.
      const { payload } =
        typeof keys === 'function'
          ? await jose.jwtVerify(token, keys, options)
          : await jose.jwtVerify(token, keys, options)
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
