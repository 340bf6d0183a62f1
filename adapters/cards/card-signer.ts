import { createPublicKey } from 'node:crypto'
import type { AgentCardSignature } from '../../machines/protocol/card.ts'
import type { SignCard } from '../../runtime/agent/signed-cards.ts'
import { checkOptions, textSuchAs, type OptionKinds } from '../../runtime/primitives/options.ts'
import { canonicalForms, PARTIAL_MARK } from './canonical-forms.ts'
import { checkCardPeers, loadCardPeers } from './peers.ts'
import { signingKey, type PrivateKey } from './signing-key.ts'

/** By what a card is signed. */
export interface CardSignerOptions {
  /** The private key: EC (P-256, P-384, P-521), RSA or Ed25519. */
  readonly key: PrivateKey
  /** The name of the key, by which it is found among the public ones. Default that of the JWK, else its thumbprint (RFC 7638). */
  readonly kid?: string
  /** The algorithm. Default that of the JWK, else ES256, ES384 or ES512 by the curve, RS256, or EdDSA. */
  readonly alg?: string
  /** Where the public keys are, for who wants to look: an https: address, or an http: one on this machine. It is told, and nobody has to trust it. */
  readonly jku?: string
}

const OPTIONS: OptionKinds<CardSignerOptions> = { key: true, kid: textSuchAs("'2026-01'"), alg: true, jku: true }

/**
 * Signs cards (§8.4), for `createRuntime({ agent, signCard: cardSigner({ key }) })`: a JWS (RFC 7515) over the card in its canonical
 * form (RFC 8785), made by the official SDK. A card that also has the members of A2A 0.3 is signed as a whole, and its 1.0 form
 * once more for verifiers that know 1.0 alone. A card with `securitySchemes` gets another signature, over the form by which the
 * SDK's own clients verify. Signatures that a card has stay. Needs `@a2a-js/sdk` and `jose`. Throws TypeError for wrong options.
 */
export function cardSigner(options: CardSignerOptions): SignCard {
  checkCardPeers()
  checkOptions(options, OPTIONS, 'cardSigner', 'cardSigner({ key: createPrivateKey(pem) })')
  const { key: given, kid: wanted, alg: algorithm, jku } = options
  const { key, alg, kid: named } = signingKey(given, algorithm)
  if (wanted === '') throw new TypeError('kid has to be the name of the key. Leave it out for its thumbprint.')
  if (jku !== undefined && !isTrustworthy(jku)) throw new TypeError(`jku has to be an https: address, or an http: one on this machine, not ${JSON.stringify(jku)}.`)
  return async card => {
    const peers = await loadCardPeers()
    const kid = wanted ?? named ?? (await peers.jose.calculateJwkThumbprint(createPublicKey(key).export({ format: 'jwk' })))
    const header = { alg, kid, typ: 'JOSE', ...(jku !== undefined && { jku }) }
    const signature = async (form: string, more: object = {}): Promise<AgentCardSignature> => {
      const { protected: made, signature } = await new peers.jose.FlattenedSign(new TextEncoder().encode(form)).setProtectedHeader({ ...header, ...more }).sign(key)
      return { protected: String(made), signature }
    }
    const [main, ...parts] = canonicalForms(card, peers)
    const made = await Promise.all([signature(main), ...parts.map(part => signature(part, { [PARTIAL_MARK]: true }))])
    return { ...card, signatures: [...(card.signatures ?? []), ...made] }
  }
}

function isTrustworthy(jku: string): boolean {
  const url = URL.canParse(jku) ? new URL(jku) : undefined
  return url?.protocol === 'https:' || (url?.protocol === 'http:' && ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname))
}
