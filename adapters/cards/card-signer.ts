import { createPublicKey } from 'node:crypto'
import type { AgentCardSignature } from '../../machines/protocol/card.ts'
import type { SignCard } from '../../runtime/agent/signed-cards.ts'
import { checkOptions, textSuchAs, type OptionKinds } from '../../runtime/primitives/options.ts'
import { canonicalForms, PARTIAL_MARK } from './canonical-forms.ts'
import { checkCardPeers, loadCardPeers } from './peers.ts'
import { signingKey, type PrivateKey } from './signing-key.ts'

/** The options of `cardSigner`. */
export interface CardSignerOptions {
  /** The private key: EC (P-256, P-384, P-521), RSA or Ed25519. */
  readonly key: PrivateKey
  /** The key id, by which verifiers find the public key. Default that of the JWK, else its thumbprint (RFC 7638). */
  readonly kid?: string
  /** The algorithm. Default that of the JWK, else ES256, ES384 or ES512 by the curve, RS256, or EdDSA. */
  readonly alg?: string
  /** The URL of the public key set: https, or http on this machine. It is a hint in the header; verifiers need not trust it. */
  readonly jku?: string
}

const OPTIONS: OptionKinds<CardSignerOptions> = { key: true, kid: textSuchAs("'2026-01'"), alg: true, jku: true }

/**
 * Signs cards (§8.4), for `createRuntime({ agent, signCard: cardSigner({ key }) })`: a JWS (RFC 7515) over the canonical form of the card
 * (RFC 8785), which the official SDK makes. A card that also has members of A2A 0.3 gets a signature over all of it, and one over its 1.0
 * form for verifiers that know only 1.0. A card with `securitySchemes` gets one more, over the form that the SDK's clients verify.
 * Existing signatures stay. Needs `@a2a-js/sdk` and `jose`. Throws TypeError for invalid options.
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
