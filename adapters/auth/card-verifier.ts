import type { AgentCard, AgentCardSignature } from '../../machines/protocol/card.ts'
import { checkJson } from '../../machines/protocol/codec/json.ts'
import { A2AError, isA2AError, invalidParams } from '../../machines/protocol/errors.ts'
import { systemClock, type Clock } from '../../runtime/ports/clock.ts'
import { checkOptions, type OptionKinds } from '../../runtime/primitives/options.ts'
import { readCard } from '../client/card/lenient-card.ts'
import type { VerifyCard } from '../client/options.ts'
import { canonicalForms, type CardPeers, checkCardPeers, loadCardPeers, PARTIAL_MARK } from './canonical-forms.ts'
import { allowedAlgorithms, JWT_KEY_OPTIONS, keySource } from './jwt-keys.ts'
import type { JwtKeys } from './jwt-options.ts'

/** The options of `cardVerifier`: the public keys, in exactly one of three forms, and the allowed algorithms. */
export type CardVerifierOptions = JwtKeys & {
  /** The allowed algorithms. Default all for public keys; never `none` or one with a shared secret. */
  readonly algorithms?: readonly string[]
  readonly clock?: Pick<Clock, 'now'>
}

const OPTIONS: OptionKinds<CardVerifierOptions> = { ...JWT_KEY_OPTIONS, clock: true }

/** A verified card: its signed members, and the key of the signature. */
export interface VerifiedCard {
  readonly card: AgentCard
  readonly kid: string
  readonly alg: string
  /** The names of members of the document that were not signed. */
  readonly left: readonly string[]
}

/** The most signatures that a card may have. A rotation of keys needs fewer. */
const MOST_SIGNATURES = 16

/**
 * Verifies cards (§8.4.3), for `connect(url, { verifyCard: cardVerifier({ jwksUrl }) })`. One signature of the card has
 * to be by a trusted key, over the whole card, including its members of A2A 0.3. Resolves with the signed members only.
 * Keys come from the options alone; the card's `jku` is ignored. Rejects with InvalidAgentResponse, which names the
 * fault of each signature, or with Overloaded when the keys cannot be fetched. Needs `@a2a-js/sdk` and `jose`. Throws
 * TypeError or RangeError for invalid options.
 */
export function cardVerifier(options: CardVerifierOptions): VerifyCard {
  const verify = openVerifier(options)
  return async (given, url) => (await verify(given, url)).card
}

/** Like `cardVerifier`, and returns the valid signature. */
export function openVerifier(options: CardVerifierOptions): (given: unknown, url: string) => Promise<VerifiedCard> {
  checkCardPeers()
  checkOptions(options, OPTIONS, 'cardVerifier', 'cardVerifier({ jwksUrl })')
  const { kind, open } = keySource(options, options.clock ?? systemClock, { taker: 'cardVerifier', checked: 'cards' })
  if (kind === 'secret')
    throw new TypeError('key has to be a public key: a secret that verifies cards can also sign them.')
  const algorithms = allowedAlgorithms('public', options.algorithms)
  let opening: Promise<Trusted> | undefined
  const opened = async () => {
    const peers = await loadCardPeers()
    return { ...peers, keys: open(peers.jose), algorithms }
  }
  return async (given, url) => {
    const violation = checkJson(given, { root: 'card' })
    if (violation) throw invalidParams(violation)
    const card = await readCard(given, url)
    const { signatures = [] } = card
    if (signatures.length === 0) throw untrusted(card, url, ['it has no signature'])
    if (signatures.length > MOST_SIGNATURES)
      throw untrusted(card, url, [`it has more than ${MOST_SIGNATURES} signatures`])
    const trusted = await (opening ??= opened())
    const forms = canonicalForms(given as object, trusted)
    const faults: string[] = []
    for (const [index, signature] of signatures.entries()) {
      const found = await verified(signature, forms, trusted)
      if (typeof found === 'string') faults.push(`signature ${index + 1} ${found}`)
      else return { kid: found.kid, alg: found.alg, ...(await signedOf(given as object, found.form, url)) }
    }
    throw untrusted(card, url, faults)
  }
}

/** The keys, algorithms and packages for the verification of signatures. */
interface Trusted extends CardPeers {
  readonly keys: ReturnType<ReturnType<typeof keySource>['open']>
  readonly algorithms: string[]
}

/** The card in a canonical form, which omits empty members, and the members of the document that the form lacks. */
async function signedOf(document: object, form: string, url: string): Promise<Pick<VerifiedCard, 'card' | 'left'>> {
  const content = { capabilities: {}, ...(JSON.parse(form) as object) }
  const card = await readCard(content, url)
  const signed = { ...content, ...card, signatures: [] }
  return { card, left: Object.keys(document).filter(member => !Object.hasOwn(signed, member)) }
}

/** The key and the form of a valid signature; else what is wrong with it, as text. */
async function verified(
  signature: AgentCardSignature,
  forms: readonly string[],
  { jose, keys, algorithms }: Trusted
): Promise<(Pick<VerifiedCard, 'kid' | 'alg'> & { form: string }) | string> {
  const { alg, kid, isPartial } = headerOf(signature, jose)
  if (alg === undefined) return 'has an unreadable protected header, or no algorithm (alg) in it'
  if (!algorithms.includes(alg))
    return `is made with ${JSON.stringify(alg.slice(0, 32))}, which is not allowed (only ${algorithms.join(', ')})`
  if (kid === undefined) return 'has no key id (kid)'
  if (isPartial) return 'is over only a part of the card, for verifiers that do not know the rest'
  const key = `${JSON.stringify(kid.slice(0, 128))} (${alg})`
  const { header, ...jws } = signature
  for (const form of forms) {
    const given = { ...jws, payload: jose.base64url.encode(form), ...(header && { header }) }
    try {
      // Two calls: jose has separate overloads for a key and for a function that finds one.
      if (typeof keys === 'function')
        await jose.flattenedVerify(given, keys as Parameters<typeof jose.flattenedVerify>[1], { algorithms })
      else await jose.flattenedVerify(given, keys, { algorithms })
      return { kid, alg, form }
    } catch (error) {
      if (isA2AError(error)) throw error
      const { code } = error as { readonly code?: unknown }
      if (code === 'ERR_JWKS_NO_MATCHING_KEY') return `is by the key ${key}, which is not trusted`
      if (code !== 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED')
        return `by ${key} cannot be checked: ${(error as Error).message}`
    }
  }
  return `by ${key} does not match: the card was changed after it was signed, or another key signed it`
}

/** The protected header of a signature. The unprotected one is ignored. */
function headerOf(
  signature: AgentCardSignature,
  jose: CardPeers['jose']
): { readonly alg?: string; readonly kid?: string; readonly isPartial?: boolean } {
  try {
    const { alg, kid, ...others } = jose.decodeProtectedHeader(signature)
    return {
      ...(typeof alg === 'string' && { alg }),
      ...(typeof kid === 'string' && kid !== '' && { kid }),
      isPartial: PARTIAL_MARK in others
    }
  } catch {
    return {}
  }
}

function untrusted({ name }: AgentCard, url: string, faults: readonly string[]): A2AError {
  return new A2AError('InvalidAgentResponse', `The card of ${name} at ${url} cannot be trusted: ${faults.join('; ')}.`)
}
