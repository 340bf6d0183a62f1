import { AgentCardSchema, type AgentCard, type AgentCardSignature } from '../../machines/protocol/card.ts'
import { decode } from '../../machines/protocol/codec/decode.ts'
import { checkJson } from '../../machines/protocol/codec/json.ts'
import { A2AError, isA2AError, invalidParams } from '../../machines/protocol/errors.ts'
import { systemClock, type Clock } from '../../runtime/ports/clock.ts'
import { checkOptions, type OptionKinds } from '../../runtime/primitives/options.ts'
import { allowedAlgorithms } from '../auth/jwt-algorithms.ts'
import { KEY_OPTIONS, keySource } from '../auth/jwt-keys.ts'
import type { JwtKeys } from '../auth/jwt-options.ts'
import type { VerifyCard } from '../client/options.ts'
import { asCurrentCard } from '../v03/card.ts'
import { canonicalForms, PARTIAL_MARK } from './canonical-forms.ts'
import { checkCardPeers, loadCardPeers, type CardPeers } from './peers.ts'

/** Whose signatures count: the public keys, in exactly one of three forms, and how they may have been used. */
export type CardVerifierOptions = JwtKeys & {
  /** The algorithms that count. Default all that public keys have; never `none`, and none that is of a secret. */
  readonly algorithms?: readonly string[]
  readonly clock?: Pick<Clock, 'now'>
}

const OPTIONS: OptionKinds<CardVerifierOptions> = { ...KEY_OPTIONS, clock: true }

/** A card that is to be trusted: as much of it as was signed, and the key that signed it. */
export interface VerifiedCard {
  readonly card: AgentCard
  readonly kid: string
  readonly alg: string
  /** Members that the card had and that were not signed. */
  readonly left: readonly string[]
}

/** So many signatures of one card are looked at: more are no rotation of keys. */
const MOST_SIGNATURES = 16

/**
 * Verifies cards (§8.4.3), for `connect(url, { verifyCard: cardVerifier({ jwksUrl }) })`: one of a card's signatures has to be of a
 * trusted key, over the card as it is: with the members of A2A 0.3, if it has them. Gives what was signed, and nothing else. Keys come from where you say alone: what a card says of that (`jku`) is not looked at. Rejects
 * with InvalidAgentResponse that says what is wrong with each signature, Overloaded when the keys cannot be fetched. Needs
 * `@a2a-js/sdk` and `jose`. Throws TypeError or RangeError for wrong options.
 */
export function cardVerifier(options: CardVerifierOptions): VerifyCard {
  const verify = openVerifier(options)
  return async (given, url) => (await verify(given, url)).card
}

/** Does what `cardVerifier` does, and tells which signature holds. */
export function openVerifier(options: CardVerifierOptions): (given: unknown, url: string) => Promise<VerifiedCard> {
  checkCardPeers()
  checkOptions(options, OPTIONS, 'cardVerifier', 'cardVerifier({ jwksUrl })')
  const { kind, open } = keySource(options, options.clock ?? systemClock, { taker: 'cardVerifier', checked: 'cards' })
  if (kind === 'secret') throw new TypeError('key has to be a public key: who can verify a card by a secret can sign one.')
  const algorithms = allowedAlgorithms('public', options.algorithms)
  let opening: Promise<Trusted> | undefined
  const opened = async () => {
    const peers = await loadCardPeers()
    return { ...peers, keys: open(peers.jose), algorithms }
  }
  return async (given, url) => {
    const violation = checkJson(given, { root: 'card' })
    if (violation) throw invalidParams(violation)
    const card = decode(AgentCardSchema, asCurrentCard(given), 'card')
    const { signatures = [] } = card
    if (signatures.length === 0) throw untrusted(card, url, ['it has no signature'])
    if (signatures.length > MOST_SIGNATURES) throw untrusted(card, url, [`it has more than ${MOST_SIGNATURES} signatures`])
    const trusted = await (opening ??= opened())
    const forms = canonicalForms(given as object, trusted)
    const faults: string[] = []
    for (const [index, signature] of signatures.entries()) {
      const found = await held(signature, forms, trusted)
      if (typeof found === 'string') faults.push(`signature ${index + 1} ${found}`)
      else return { kid: found.kid, alg: found.alg, ...signedOf(given as object, found.form) }
    }
    throw untrusted(card, url, faults)
  }
}

/** What a signature is verified by. */
interface Trusted extends CardPeers {
  readonly keys: ReturnType<ReturnType<typeof keySource>['open']>
  readonly algorithms: string[]
}

/** The card of a canonical form, which has no empty members, and the members of the document that the form lacks. */
function signedOf(document: object, form: string): Pick<VerifiedCard, 'card' | 'left'> {
  const content = { capabilities: {}, ...(JSON.parse(form) as object) }
  const card = decode(AgentCardSchema, asCurrentCard(content), 'card')
  const signed = { ...content, ...card, signatures: [] }
  return { card, left: Object.keys(document).filter(member => !Object.hasOwn(signed, member)) }
}

/** A signature that holds, and over which form; else what is wrong with it. */
async function held(signature: AgentCardSignature, forms: readonly string[], { jose, keys, algorithms }: Trusted): Promise<Pick<VerifiedCard, 'kid' | 'alg'> & { form: string } | string> {
  const { alg, kid, isPartial } = headerOf(signature, jose)
  if (alg === undefined) return 'has a protected header that cannot be read, or names no algorithm (alg)'
  if (!algorithms.includes(alg)) return `is made with ${JSON.stringify(alg.slice(0, 32))}, which does not count: ${algorithms.join(', ')} do`
  if (kid === undefined) return 'names no key (kid)'
  if (isPartial) return 'is over a part of the card only, for verifiers that do not know the rest'
  const key = `${JSON.stringify(kid.slice(0, 128))} (${alg})`
  const { header, ...jws } = signature
  for (const form of forms) {
    const given = { ...jws, payload: jose.base64url.encode(form), ...(header && { header }) }
    try {
      // Two calls, as jose's types tell a key from a function that finds one.
      if (typeof keys === 'function') await jose.flattenedVerify(given, keys as Parameters<typeof jose.flattenedVerify>[1], { algorithms })
      else await jose.flattenedVerify(given, keys, { algorithms })
      return { kid, alg, form }
    } catch (error) {
      if (isA2AError(error)) throw error
      const { code } = error as { readonly code?: unknown }
      if (code === 'ERR_JWKS_NO_MATCHING_KEY') return `is of the key ${key}, which is not among those that are trusted`
      if (code !== 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED') return `by ${key} cannot be checked: ${(error as Error).message}`
    }
  }
  return `by ${key} does not fit: the card was changed after it was signed, or another key signed it`
}

/** What a signature says of itself. Only the header that it protects counts. */
function headerOf(signature: AgentCardSignature, jose: CardPeers['jose']): { readonly alg?: string; readonly kid?: string; readonly isPartial?: boolean } {
  try {
    const { alg, kid, ...others } = jose.decodeProtectedHeader(signature)
    return { ...(typeof alg === 'string' && { alg }), ...(typeof kid === 'string' && kid !== '' && { kid }), isPartial: PARTIAL_MARK in others }
  } catch {
    return {}
  }
}

function untrusted({ name }: AgentCard, url: string, faults: readonly string[]): A2AError {
  return new A2AError('InvalidAgentResponse', `The card of ${name} at ${url} is not to be trusted: ${faults.join('; ')}.`)
}
