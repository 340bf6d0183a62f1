import { KeyObject } from 'node:crypto'
import type { JWTVerifyGetKey } from 'jose'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import type { Clock } from '../../runtime/ports/clock.ts'
import { textsSuchAs, type OptionKinds } from '../../runtime/primitives/options.ts'
import { wholeBody } from '../client/transports/body.ts'
import type { Jose } from './jose.ts'
import type { JwtKeys } from './jwt-options.ts'

/** Verifies with these keys: their kind, and what jose takes for them. */
export interface KeySource {
  readonly kind: 'public' | 'secret'
  readonly open: (jose: Jose) => KeyObject | JWTVerifyGetKey
}

/** The options that say where keys are from, and by which algorithms they count, for those who take them among others. */
export const KEY_OPTIONS: OptionKinds<JwtKeys & { readonly algorithms?: unknown }> = { jwksUrl: true, keysCooldownMs: true, keysMaxAgeMs: true, jwks: true, key: true, algorithms: textsSuchAs("['ES256']") }

/** How long after a fetch that failed none is tried. */
const RETRY_MS = 5_000

const SHORTEST_SECRET_BYTES = 32

/** The largest set of keys that is fetched. jose follows no redirect, and waits for 5 seconds. */
const LARGEST_SET_BYTES = 2 ** 20

/** For whom keys are, as errors call it: the function that takes them, and what is checked by them. */
export interface KeyUse {
  readonly taker: string
  readonly checked: string
}

/** Where keys come from, checked. Throws TypeError or RangeError for what can be none. */
export function keySource(keys: JwtKeys, clock: Pick<Clock, 'now'>, use: KeyUse): KeySource {
  const given = ['jwksUrl', 'jwks', 'key'].filter(name => name in keys)
  if (given.length !== 1) throw new TypeError(`Give ${use.taker} exactly one of jwksUrl, jwks and key, not ${given.join(' and ') || 'none'}.`)
  if ('key' in keys) return oneKey(keys.key)
  if ('jwks' in keys) {
    const { jwks } = keys
    checkSet(jwks)
    return { kind: 'public', open: jose => jose.createLocalJWKSet(structuredClone(jwks) as Parameters<Jose['createLocalJWKSet']>[0]) }
  }
  const url = checkedUrl(keys.jwksUrl)
  const { keysCooldownMs = 30_000, keysMaxAgeMs = 600_000 } = keys
  if (!(keysCooldownMs >= 0)) throw new RangeError(`keysCooldownMs has to be milliseconds from 0, not ${String(keysCooldownMs)}.`)
  if (!(keysMaxAgeMs > 0)) throw new RangeError(`keysMaxAgeMs has to be milliseconds above 0, not ${String(keysMaxAgeMs)}.`)
  return { kind: 'public', open: jose => remoteKeys(jose, url, { cooldownDuration: keysCooldownMs, cacheMaxAge: keysMaxAgeMs }, clock, use) }
}

function oneKey(key: unknown): KeySource {
  if (!(key instanceof KeyObject) || key.type === 'private') {
    throw new TypeError('key has to be a public key, createPublicKey(pem), or a shared secret, createSecretKey(bytes): both of node:crypto.')
  }
  const { type: kind, symmetricKeySize = SHORTEST_SECRET_BYTES } = key
  if (symmetricKeySize < SHORTEST_SECRET_BYTES) throw new RangeError(`key has ${symmetricKeySize} bytes. A secret that could not be guessed has at least ${SHORTEST_SECRET_BYTES}.`)
  return { kind, open: () => key }
}

function checkSet(jwks: unknown): void {
  const keys = isObject(jwks) ? jwks.keys : undefined
  if (!Array.isArray(keys) || keys.length === 0 || !keys.every(isObject)) throw new TypeError('jwks has to be a set of public keys: { keys: [{ kty, … }] }.')
  if (keys.some(key => 'd' in key || 'k' in key)) throw new TypeError('jwks holds a key that is secret. Give the public ones only.')
}

function checkedUrl(given: string | URL): URL {
  const url = URL.canParse(String(given)) ? new URL(given) : undefined
  if (url?.protocol === 'https:') return url
  if (url?.protocol === 'http:' && ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname)) return url
  throw new TypeError(`jwksUrl has to be an https: address, or an http: one on this machine, not ${JSON.stringify(String(given))}.`)
}

/**
 * Keys that are fetched when they are needed: never twice at once, not for a key that was not there a moment ago, and not
 * for a while after a fetch has failed. That nobody can have them is no fault of the token: it gets Overloaded.
 */
function remoteKeys(jose: Jose, url: URL, options: { cooldownDuration: number; cacheMaxAge: number }, clock: Pick<Clock, 'now'>, { checked }: KeyUse): JWTVerifyGetKey {
  let failed: { readonly untilMs: number; readonly error: unknown } | undefined
  const recentFailure = () => (failed && clock.now() < failed.untilMs ? failed : undefined)
  const keys = jose.createRemoteJWKSet(url, {
    ...options,
    [jose.customFetch]: async (address, init) => {
      const failure = recentFailure()
      if (failure) throw failure.error
      const response = await fetch(address, init)
      return response.status === 200 ? new Response(await wholeBody(response, LARGEST_SET_BYTES), { headers: response.headers }) : response
    }
  })
  return async (header, token) => {
    try {
      return await keys(header, token)
    } catch (error) {
      if (isOfToken(error)) throw error
      if (!recentFailure()) failed = { untilMs: clock.now() + RETRY_MS, error }
      throw new A2AError('Overloaded', `Nobody can check ${checked} just now. Try again later.`, { retryAfterMs: RETRY_MS, cause: error })
    }
  }
}

/** True for what is wrong with a token: it names a key or an algorithm that is not there. */
function isOfToken(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown }
  return code === 'ERR_JWKS_NO_MATCHING_KEY' || code === 'ERR_JWKS_MULTIPLE_MATCHING_KEYS' || code === 'ERR_JOSE_NOT_SUPPORTED'
}
