import { isObject } from '../../machines/protocol/codec/json.ts'
import { movePart, type Offer } from '../../machines/protocol/negotiation.ts'
import type { Message, Part } from '../../machines/protocol/parts.ts'
import { ANSWER_SCHEMA, QUESTION } from '../../machines/protocol/uris.ts'
import { checkArgument, withMembers } from '../../runtime/primitives/options.ts'

/**
 * The JSON Schema of the answer to a question, for a form or a model: from the status message of a task that waits for
 * its client. `undefined` if the agent gives none. The schema is untrusted JSON.
 */
export function answerSchemaOf(message: Message | undefined): Record<string, unknown> | undefined {
  const schema = message?.metadata?.[ANSWER_SCHEMA]
  return isObject(schema) ? schema : undefined
}

/**
 * A message that answers this question and no other one: its metadata names the question. Unchanged without a question.
 */
export function nameQuestion<Content extends Pick<Message, 'metadata'>>(
  content: Content,
  question: Message | undefined
): Content {
  return question ? { ...content, metadata: { ...content.metadata, [QUESTION]: question.messageId } } : content
}

/** The text parts of a message or an artifact, joined by line breaks; empty without any. It is untrusted text. */
export function textOf(content: { readonly parts: readonly Part[] } | undefined): string {
  return (content?.parts ?? []).flatMap(part => ('text' in part ? [part.text] : [])).join('\n')
}

const AN_OFFER = withMembers(['offerId'], 'an offer')

/**
 * A part that accepts an offer, for the next message in its context. The answer is the task, or a Message if the offer
 * has expired.
 */
export function acceptOffer(offer: Pick<Offer, 'offerId'>): Part {
  checkArgument(offer, AN_OFFER, 'acceptOffer(offerIn(message))')
  return movePart({ accept: { offerId: offer.offerId } })
}

/**
 * A part that proposes terms, which is a counter-offer if an offer stands. The answer is an offer, a task, or a refusal
 * in words.
 */
export function proposeTerms(terms: object): Part {
  checkArgument(terms, [isObject, 'terms as an object'], 'proposeTerms({ euros: 40 })')
  return movePart({ propose: { terms: { ...terms } } })
}

/** A part that declines an offer. No offer stands after it. */
export function declineOffer(offer: Pick<Offer, 'offerId'>): Part {
  checkArgument(offer, AN_OFFER, 'declineOffer(offerIn(message))')
  return movePart({ decline: { offerId: offer.offerId } })
}
