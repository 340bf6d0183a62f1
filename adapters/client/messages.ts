import { isObject } from '../../machines/protocol/codec/json.ts'
import { movePart, type Offer } from '../../machines/protocol/negotiation.ts'
import type { Message, Part } from '../../machines/protocol/objects.ts'
import { ANSWER_SCHEMA, QUESTION } from '../../machines/protocol/uris.ts'
import { checkOptions, type Kind, withMembers } from '../../runtime/primitives/options.ts'

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

/** A move of a client in a negotiation: exactly one of the three. */
type Move =
  | { readonly accept: Pick<Offer, 'offerId'>; readonly decline?: never; readonly propose?: never }
  | { readonly decline: Pick<Offer, 'offerId'>; readonly accept?: never; readonly propose?: never }
  | { readonly propose: object; readonly accept?: never; readonly decline?: never }

const MOVES = { accept: AN_OFFER, decline: AN_OFFER, propose: [isObject, 'terms as an object'] as Kind }

/**
 * A part that negotiates, for the next message in the context: `accept` or `decline` an offer, or `propose` terms,
 * which is a counter-offer if an offer stands. The answer is a task, an offer, or a Message in words. Throws TypeError
 * unless there is exactly one of them.
 */
export function negotiate(move: Move): Part {
  checkOptions(move, MOVES, 'negotiate', 'negotiate({ accept: offerIn(message) })')
  const { accept, decline, propose } = move
  if ([accept, decline, propose].filter(given => given !== undefined).length !== 1)
    throw new TypeError('negotiate takes one move, an offer or terms: negotiate({ accept: offerIn(message) }).')
  if (accept) return movePart({ accept: { offerId: accept.offerId } })
  if (decline) return movePart({ decline: { offerId: decline.offerId } })
  return movePart({ propose: { terms: { ...propose } } })
}
