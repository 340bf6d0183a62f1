import { KeyObject } from 'node:crypto'
import type * as jose from 'jose'
import type { JWTVerifyGetKey } from 'jose'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import type { Clock } from '../../runtime/ports/clock.ts'
import { type OptionKinds, textsSuchAs } from '../../runtime/primitives/options.ts'
import { wholeBody } from '../client/transports/body.ts'
import { checkPackages } from '../peers/installed-packages.ts'
import type { JwtKeys } from './jwt-options.ts'

/** The kind of the keys, and how jose gets them. */
interface KeySource {
  readonly kind: 'public' | 'secret'
  readonly open: (jose: Jose) => KeyObject | JWTVerifyGetKey
}

/** The options for keys and algorithms, for functions that accept these and others. */
export const JWT_KEY_OPTIONS: OptionKinds<JwtKeys & { readonly algorithms?: unknown }> = {
  jwksUrl: true,
  keysCooldownMs: true,
  keysMaxAgeMs: true,
  jwks: true,
  key: true,
  algorithms: textsSuchAs("['ES256']")
}

/** For how long after a failed fetch no other is started. */
const RETRY_MS = 5_000

const SHORTEST_SECRET_BYTES = 32

/** The largest key set that is fetched. jose follows no redirects, and has a timeout of 5 seconds. */
const LARGEST_SET_BYTES = 2 ** 20

/** For error messages: the function that has the keys as options, and what the keys verify. */
interface KeyUse {
  readonly taker: string
  readonly checked: string
}

/** Checks the key options. Throws TypeError or RangeError for invalid ones. */
export function keySource(keys: JwtKeys, clock: Pick<Clock, 'now'>, use: KeyUse): KeySource {
  const given = ['jwksUrl', 'jwks', 'key'].filter(name => name in keys)
  if (given.length !== 1)
    throw new TypeError(`Give ${use.taker} exactly one of jwksUrl, jwks and key, not ${given.join(' and ') || 'none'}.`)
  if ('key' in keys) return oneKey(keys.key)
  if ('jwks' in keys) {
    const { jwks } = keys
    checkSet(jwks)
    return {
      kind: 'public',
      open: jose => jose.createLocalJWKSet(structuredClone(jwks) as Parameters<Jose['createLocalJWKSet']>[0])
    }
  }
  const url = checkedUrl(keys.jwksUrl)
  const { keysCooldownMs = 30_000, keysMaxAgeMs = 600_000 } = keys
  if (!(keysCooldownMs >= 0))
    throw new RangeError(`keysCooldownMs has to be milliseconds from 0, not ${String(keysCooldownMs)}.`)
  if (!(keysMaxAgeMs > 0))
    throw new RangeError(`keysMaxAgeMs has to be milliseconds above 0, not ${String(keysMaxAgeMs)}.`)
  return {
    kind: 'public',
    open: jose => remoteKeys(jose, url, { cooldownDuration: keysCooldownMs, cacheMaxAge: keysMaxAgeMs }, clock, use)
  }
}

function oneKey(key: unknown): KeySource {
  if (!(key instanceof KeyObject) || key.type === 'private') {
    throw new TypeError(
      'key has to be a public key, createPublicKey(pem), or a shared secret, createSecretKey(bytes), both from node:crypto.'
    )
  }
  const { type: kind, symmetricKeySize = SHORTEST_SECRET_BYTES } = key
  if (symmetricKeySize < SHORTEST_SECRET_BYTES)
    throw new RangeError(`key has ${symmetricKeySize} bytes. A secret needs at least ${SHORTEST_SECRET_BYTES}.`)
  return { kind, open: () => key }
}

function checkSet(jwks: unknown): void {
  const keys = isObject(jwks) ? jwks.keys : undefined
  if (!Array.isArray(keys) || keys.length === 0 || !keys.every(isObject))
    throw new TypeError('jwks has to be a public key set: { keys: [{ kty, … }] }.')
  if (keys.some(key => 'd' in key || 'k' in key))
    throw new TypeError('jwks contains a private or secret key. Give only public keys.')
}

function checkedUrl(given: string | URL): URL {
  const url = URL.canParse(String(given)) ? new URL(given) : undefined
  if (url?.protocol === 'https:') return url
  if (url?.protocol === 'http:' && ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname)) return url
  throw new TypeError(
    `jwksUrl has to be an https: URL, or an http: one on this machine, not ${JSON.stringify(String(given))}.`
  )
}

/**
 * A remote key set, fetched on demand, one fetch at a time. It is not fetched during the cooldown for a missing key,
 * nor for a while after a failed fetch. A failed fetch is not the fault of the token: it gives Overloaded.
 */
function remoteKeys(
  jose: Jose,
  url: URL,
  options: { cooldownDuration: number; cacheMaxAge: number },
  clock: Pick<Clock, 'now'>,
  { checked }: KeyUse
): JWTVerifyGetKey {
  let failed: { readonly untilMs: number; readonly error: unknown } | undefined
  const recentFailure = () => (failed && clock.now() < failed.untilMs ? failed : undefined)
  const keys = jose.createRemoteJWKSet(url, {
    ...options,
    [jose.customFetch]: async (address, init) => {
      const failure = recentFailure()
      if (failure) throw failure.error
      const response = await fetch(address, init)
      return response.status === 200
        ? new Response(await wholeBody(response, LARGEST_SET_BYTES), { headers: response.headers })
        : response
    }
  })
  return async (header, token) => {
    try {
      return await keys(header, token)
    } catch (error) {
      if (isOfToken(error)) throw error
      if (!recentFailure()) failed = { untilMs: clock.now() + RETRY_MS, error }
      throw new A2AError('Overloaded', `The keys for ${checked} cannot be fetched now. Retry later.`, {
        retryAfterMs: RETRY_MS,
        cause: error
      })
    }
  }
}

/** Whether the token is at fault: the key set lacks its key, or its algorithm is not supported. */
function isOfToken(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown }
  return (
    code === 'ERR_JWKS_NO_MATCHING_KEY' ||
    code === 'ERR_JWKS_MULTIPLE_MATCHING_KEYS' ||
    code === 'ERR_JOSE_NOT_SUPPORTED'
  )
}

/** Verifies JWTs: an optional peer, loaded for the first token. */
type Jose = typeof jose

/** Throws TypeError with the install command if jose is not installed. */
export function checkJose(resolve: (name: string) => unknown = name => import.meta.resolve(name)): void {
  try {
    resolve('jose')
  } catch (cause) {
    throw new TypeError('bearerJwt verifies tokens with jose. Install it: npm install jose', { cause })
  }
}

/** Loads jose. Later calls get the same module. */
export function loadJose(): Promise<Jose> {
  checkPackages(['jose'])
  return import('jose')
}

/** Algorithms whose signatures a public key verifies. */
const PUBLIC = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'Ed25519', 'EdDSA']

/** Algorithms that sign and verify with one shared secret. */
const SECRET = ['HS256', 'HS384', 'HS512']

/**
 * The algorithms that tokens may be signed with: the ones in the options, else all that fit the kind of key. A public
 * key never serves as a secret, and `none` is never allowed, whatever the header of a token names. Throws TypeError for
 * an algorithm that does not fit.
 */
export function allowedAlgorithms(kind: 'public' | 'secret', wanted?: readonly string[]): string[] {
  const fitting = kind === 'public' ? PUBLIC : SECRET
  const algorithms = [...(wanted ?? fitting)]
  const wrong = algorithms.find(algorithm => !fitting.includes(algorithm))
  if (algorithms.length > 0 && wrong === undefined) return algorithms
  throw new TypeError(
    `algorithms has to name some of ${fitting.join(', ')}, the algorithms for a ${kind} key${wrong === undefined ? '' : `, not ${JSON.stringify(wrong)}`}.`
  )
}
