import type { AgentCard } from '../../machines/protocol/card.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { type NegotiationMove, type Offer, offerIn } from '../../machines/protocol/negotiation.ts'
import type { Message, Part } from '../../machines/protocol/objects.ts'
import { NEGOTIATION_EXTENSION } from '../../machines/protocol/uris.ts'
import { messageResult, type ToolResult, wordsIn } from './content.ts'
import { elicitedForm, type ElicitedForm, type FormOptions } from './form.ts'
import type { Elicitation } from './questions.ts'

type Schema = Readonly<Record<string, unknown>>

/** An agent's offer in a message, before there is a task. */
export interface OfferInMessage {
  readonly offer: Offer
  readonly message: Message & { readonly contextId: string }
  /** Where its answer belongs. */
  readonly contextId: string
}

/** The field of the user's decision. */
const DECISION = 'decision'
const DECISIONS = ['accept', 'decline', 'propose']
/** The field of other terms, if those have no schema that a form can show. */
const TERMS = 'terms'

/** The offer of a message; `undefined` if it makes none. */
export function openOfferIn(message: Message): OfferInMessage | undefined {
  const offer = offerIn(message)
  const { contextId } = message
  return offer && contextId !== undefined ? { offer, message: { ...message, contextId }, contextId } : undefined
}

/** An offer as a form: the decision, and other terms, which may stay as they are. */
export function offerForm({ terms }: Offer, card: AgentCard, options: FormOptions): ElicitedForm {
  const schema = termsSchemaOf(card)
  const properties = isObject(schema?.['properties']) ? schema['properties'] : {}
  const isShown = Object.keys(terms).every(name => name in properties) && !(DECISION in properties)
  const fields = isShown
    ? Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, presetTo(field, terms[name])]))
    : { [TERMS]: { type: 'object', description: 'Other terms, for propose.' } }
  const decision = {
    type: 'string',
    enum: DECISIONS,
    description: 'accept or decline the offer, or propose the terms below.'
  }
  const form = { type: 'object', properties: { [DECISION]: decision, ...fields }, required: [DECISION] }
  return elicitedForm({ ...form, ...(schema?.['$defs'] !== undefined && { $defs: schema['$defs'] }) }, options)
}

/** An offer as a request to the client's user. */
export function offerElicitation({ offer, message }: OfferInMessage, form: ElicitedForm): Elicitation {
  const words = [wordsIn(message.parts.filter(part => !isOffer(part))), `Terms: ${JSON.stringify(offer.terms)}`]
  return {
    method: 'elicitation/create',
    params: { mode: 'form', message: words.filter(line => line !== '').join('\n'), requestedSchema: form.schema }
  }
}

/** The move in the content of a form. A decision that is none of the three accepts nothing: it declines. */
export function decidedMove(
  { offerId, terms }: Pick<Offer, 'offerId' | 'terms'>,
  form: ElicitedForm,
  content: Schema
): NegotiationMove {
  const { data } = form.partOf(content) as { readonly data: Schema }
  const { [DECISION]: decision, [TERMS]: others, ...fields } = data
  if (decision === 'accept') return { accept: { offerId } }
  if (decision !== 'propose') return { decline: { offerId } }
  const given = isObject(others)
    ? others
    : Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''))
  return { propose: { terms: { ...terms, ...given } } }
}

/** The move in the argument `negotiation` of a tool; `undefined` if it is none. */
export function readMove(argument: unknown): NegotiationMove | undefined {
  if (!isObject(argument)) return undefined
  const { accept, decline, propose } = argument
  if (typeof accept === 'string') return { accept: { offerId: accept } }
  if (typeof decline === 'string') return { decline: { offerId: decline } }
  return isObject(propose) ? { propose: { terms: propose } } : undefined
}

/** The result of an offer for a client that cannot ask its user. */
export function offerResult({ offer, message }: OfferInMessage): ToolResult {
  const { offerId, terms, expiresAt } = offer
  return messageResult({ ...message, parts: message.parts.filter(part => !isOffer(part)) }, [
    `The agent offers to do it on these terms: ${JSON.stringify(terms)}`,
    `offerId: ${offerId}, until ${expiresAt}`,
    'Ask your user. Then call this tool again with the contextId and negotiation: { "accept": offerId }, { "decline": offerId } or { "propose": terms }.'
  ])
}

function isOffer(part: Part): boolean {
  return 'data' in part && isObject(part.data) && NEGOTIATION_EXTENSION in part.data
}

function termsSchemaOf({ capabilities }: AgentCard): Schema | undefined {
  const terms = capabilities.extensions?.find(({ uri }) => uri === NEGOTIATION_EXTENSION)?.params?.['terms']
  return isObject(terms) ? terms : undefined
}

function presetTo(field: unknown, value: unknown): unknown {
  return isObject(field) && value !== undefined ? { ...field, default: value } : field
}
