import { createPrivateKey, KeyObject, type JsonWebKeyInput } from 'node:crypto'
import { isObject } from '../../machines/protocol/codec/json.ts'

/** A private key: `createPrivateKey(pem)` from node:crypto, or a JWK (RFC 7517), whose `kid` and `alg` are used. */
export type PrivateKey = KeyObject | (JsonWebKeyInput['key'] & { readonly kid?: string; readonly alg?: string })

/** A key to sign with, and its algorithm; `kid` is the key id in the JWK, if any. */
export interface SigningKey {
  readonly key: KeyObject
  readonly alg: string
  readonly kid: string | undefined
}

const RSA = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']

/** The algorithms for a kind of key or a curve; the first is the default. */
const FITTING: Readonly<Record<string, readonly string[]>> = {
  rsa: RSA,
  prime256v1: ['ES256'],
  secp384r1: ['ES384'],
  secp521r1: ['ES512'],
  ed25519: ['EdDSA', 'Ed25519']
}

/** Reads a private key. Throws TypeError for anything else, and for an algorithm that does not fit the key. */
export function signingKey(given: PrivateKey, wanted?: string): SigningKey {
  if (!isObject(given))
    throw new TypeError('key is missing, the private key that signs: cardSigner({ key: createPrivateKey(pem) }).')
  const named = given instanceof KeyObject ? {} : given
  const key = given instanceof KeyObject ? given : fromJwk(given)
  if (key.type !== 'private')
    throw new TypeError(
      `key has to be a private key, not a ${key.type} one: every party that can verify a signature by a secret can also make it.`
    )
  const { asymmetricKeyType: kind = '', asymmetricKeyDetails: { namedCurve = kind } = {} } = key
  const fitting = FITTING[namedCurve]
  if (!fitting)
    throw new TypeError(
      `key is of the kind ${namedCurve}, which cannot sign cards. Use an EC key (P-256, P-384, P-521), an RSA or an Ed25519 one.`
    )
  const { alg = wanted ?? String(fitting[0]), kid } = named
  if (!fitting.includes(alg) || (wanted !== undefined && wanted !== alg))
    throw new TypeError(`alg has to be ${fitting.join(' or ')} for this key, not ${JSON.stringify(wanted ?? alg)}.`)
  return { key, alg, kid }
}

function fromJwk(jwk: JsonWebKeyInput['key']): KeyObject {
  if (jwk.kty === 'oct')
    throw new TypeError(
      'key has to be a private key, not a secret one: every party that can verify a signature by a secret can also make it.'
    )
  try {
    return createPrivateKey({ key: jwk, format: 'jwk' })
  } catch (cause) {
    throw new TypeError(
      'key has to be a private key: createPrivateKey(pem) from node:crypto, or a JWK with its private members.',
      { cause }
    )
  }
}
