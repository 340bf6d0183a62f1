import { createPrivateKey, createPublicKey, type JsonWebKeyInput, KeyObject } from 'node:crypto'
import type { AgentCardSignature } from '../../machines/protocol/card.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { SignCard } from '../../runtime/index.ts'
import { checkOptions, type OptionKinds, textSuchAs } from '../../runtime/primitives/options.ts'
import { canonicalForms, checkCardPeers, loadCardPeers, PARTIAL_MARK } from './canonical-forms.ts'

/** The options of `cardSigner`. */
export interface CardSignerOptions {
  /** The private key: EC (P-256, P-384, P-521), RSA or Ed25519. */
  readonly key: PrivateKey
  /** The key id, by which verifiers find the public key. Default that of the JWK, else its thumbprint (RFC 7638). */
  readonly kid?: string
  /** The algorithm. Default that of the JWK, else ES256, ES384 or ES512 by the curve, RS256, or EdDSA. */
  readonly alg?: string
  /**
   * The URL of the public key set: https, or http on this machine. It is a hint in the header; verifiers need not trust
   * it.
   */
  readonly jku?: string
}

const OPTIONS: OptionKinds<CardSignerOptions> = { key: true, kid: textSuchAs("'2026-01'"), alg: true, jku: true }

/**
 * Signs cards (§8.4), for `createRuntime({ agent, signCard: cardSigner({ key }) })`: a JWS (RFC 7515) over the
 * canonical form of the card (RFC 8785), which the official SDK makes. A card that also has members of A2A 0.3 gets a
 * signature over all of it, and one over its 1.0 form for verifiers of 1.0 alone. A card with `securitySchemes` gets
 * one more, over the form that the SDK's clients verify. Existing signatures are kept. Needs `@a2a-js/sdk` and `jose`.
 * Throws TypeError for invalid options.
 */
export function cardSigner(options: CardSignerOptions): SignCard {
  checkCardPeers()
  checkOptions(options, OPTIONS, 'cardSigner', 'cardSigner({ key: createPrivateKey(pem) })')
  const { key: given, kid: wanted, alg: algorithm, jku } = options
  const { key, alg, kid: named } = signingKey(given, algorithm)
  if (wanted === '') throw new TypeError('kid has to be a key id. Omit it to use the thumbprint of the key.')
  if (jku !== undefined && !isTrustworthy(jku))
    throw new TypeError(`jku has to be an https: URL, or an http: one on this machine, not ${JSON.stringify(jku)}.`)
  return async card => {
    const peers = await loadCardPeers()
    const kid =
      wanted ?? named ?? (await peers.jose.calculateJwkThumbprint(createPublicKey(key).export({ format: 'jwk' })))
    const header = { alg, kid, typ: 'JOSE', ...(jku !== undefined && { jku }) }
    const signature = async (form: string, more: object = {}): Promise<AgentCardSignature> => {
      const { protected: made, signature } = await new peers.jose.FlattenedSign(new TextEncoder().encode(form))
        .setProtectedHeader({ ...header, ...more })
        .sign(key)
      return { protected: String(made), signature }
    }
    const [main, ...parts] = canonicalForms(card, peers)
    const made = await Promise.all([signature(main), ...parts.map(part => signature(part, { [PARTIAL_MARK]: true }))])
    return { ...card, signatures: [...(card.signatures ?? []), ...made] }
  }
}

function isTrustworthy(jku: string): boolean {
  const url = URL.canParse(jku) ? new URL(jku) : undefined
  return (
    url?.protocol === 'https:' ||
    (url?.protocol === 'http:' && ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname))
  )
}

/** A private key: `createPrivateKey(pem)` from node:crypto, or a JWK (RFC 7517), whose `kid` and `alg` are used. */
export type PrivateKey = KeyObject | (JsonWebKeyInput['key'] & { readonly kid?: string; readonly alg?: string })

/** A key to sign with, and its algorithm; `kid` is the key id in the JWK, if any. */
interface SigningKey {
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
function signingKey(given: PrivateKey, wanted?: string): SigningKey {
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
