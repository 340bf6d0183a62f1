import type { AgentCard } from '../../machines/protocol/card.ts'
import { type Decoded, tryDecode } from '../../machines/protocol/codec/decode.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import {
  isNegotiationPart,
  MoveSchema,
  type NegotiationMove,
  type Offer,
  offerIn
} from '../../machines/protocol/negotiation.ts'
import type { Message } from '../../machines/protocol/objects.ts'
import { NEGOTIATION_EXTENSION } from '../../machines/protocol/uris.ts'
import { messageResult, type ToolResult, wordsIn } from './content.ts'
import { elicitedForm, type FormOptions, type FormSchema, MOST_FIELDS } from './form.ts'
import type { Elicitation } from './questions.ts'

type Schema = Readonly<Record<string, unknown>>

/** An agent's offer in a message, before there is a task. */
export interface OfferInMessage {
  readonly offer: Offer
  readonly message: Message & { readonly contextId: string }
  /** Where its answer belongs. */
  readonly contextId: string
}

/** An offer as a form. */
export interface OfferForm {
  readonly schema: FormSchema
  /**
   * The move in the content of the form. A decision that is none of the three accepts nothing: it declines. Terms that
   * are no object give violations.
   */
  readonly moveOf: (content: Schema) => Decoded<NegotiationMove>
}

/** The field of the user's decision. */
const DECISION = 'decision'
const DECISIONS = ['accept', 'decline', 'propose']
/** The field of other terms, if a form cannot show each as a field of its own. */
const TERMS = 'terms'

/** The offer of a message; `undefined` if it makes none. */
export function openOfferIn(message: Message): OfferInMessage | undefined {
  const offer = offerIn(message)
  const { contextId } = message
  return offer && contextId !== undefined ? { offer, message: { ...message, contextId }, contextId } : undefined
}

/** An offer as a form: the decision, and other terms, which may stay as they are. */
export function offerForm(
  { offerId, terms }: Pick<Offer, 'offerId' | 'terms'>,
  card: AgentCard,
  options: FormOptions
): OfferForm {
  const schema = termsSchemaOf(card)
  const properties = isObject(schema?.['properties']) ? schema['properties'] : {}
  const isShown =
    Object.keys(terms).every(name => Object.hasOwn(properties, name)) &&
    !Object.hasOwn(properties, DECISION) &&
    Object.keys(properties).length < MOST_FIELDS
  const fields = isShown
    ? Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, presetTo(field, terms[name])]))
    : { [TERMS]: { type: 'object', description: 'Other terms, for propose.' } }
  const decision = {
    type: 'string',
    enum: DECISIONS,
    description: 'accept or decline the offer, or propose the terms below.'
  }
  const { schema: requestedSchema, partOf } = elicitedForm(
    {
      type: 'object',
      properties: { [DECISION]: decision, ...fields },
      required: [DECISION],
      ...(schema?.['$defs'] !== undefined && { $defs: schema['$defs'] })
    },
    options
  )
  return {
    schema: requestedSchema,
    moveOf: content => {
      const { data } = partOf(content) as { readonly data: Schema }
      const { [DECISION]: decided, ...values } = data
      if (decided === 'accept') return { value: { accept: { offerId } } }
      if (decided !== 'propose') return { value: { decline: { offerId } } }
      // A field that the user left out keeps its term, also if that may be null.
      const given = Object.entries(values).filter(([name, value]) => Object.hasOwn(content, name) && value !== '')
      const others = isShown ? Object.fromEntries(given) : (values[TERMS] ?? '')
      if (others === '') return { value: { propose: { terms } } }
      if (!isObject(others)) return { violations: [{ field: TERMS, description: 'must be a JSON object' }] }
      return { value: { propose: { terms: { ...terms, ...others } } } }
    }
  }
}

/** An offer as a request to the client's user. */
export function offerElicitation({ offer, message }: OfferInMessage, form: OfferForm): Elicitation {
  const words = [
    wordsIn(message.parts.filter(part => !isNegotiationPart(part))),
    `Terms: ${JSON.stringify(offer.terms)}`
  ]
  return {
    method: 'elicitation/create',
    params: { mode: 'form', message: words.filter(line => line !== '').join('\n'), requestedSchema: form.schema }
  }
}

/**
 * The move in the argument `negotiation` of a tool, which has the id or the terms without the members of the wire form.
 * Anything but one move gives violations.
 */
export function readMove(argument: unknown): Decoded<NegotiationMove> {
  const { value, violations } = tryDecode(MoveSchema, isObject(argument) ? wireMove(argument) : argument, 'negotiation')
  if (violations === undefined) return { value }
  return {
    violations: violations.map(({ field, description }) => ({
      field: field.replace(/\.(?:offerId|terms)$/, ''),
      description
    }))
  }
}

function wireMove(argument: Schema): Schema {
  return Object.fromEntries(
    Object.entries(argument).map(([name, value]) => [
      name,
      value === null ? null : { [name === 'propose' ? 'terms' : 'offerId']: value }
    ])
  )
}

/** The result of an offer for a client that cannot ask its user. */
export function offerResult({ offer, message }: OfferInMessage): ToolResult {
  const { offerId, terms, expiresAt } = offer
  return messageResult({ ...message, parts: message.parts.filter(part => !isNegotiationPart(part)) }, [
    `The agent offers to do it on these terms: ${JSON.stringify(terms)}`,
    `offerId: ${offerId}, until ${expiresAt}`,
    'Ask your user. Then call this tool again with the contextId and negotiation: { "accept": offerId }, { "decline": offerId } or { "propose": terms }.'
  ])
}

function termsSchemaOf({ capabilities }: AgentCard): Schema | undefined {
  const terms = capabilities.extensions?.find(({ uri }) => uri === NEGOTIATION_EXTENSION)?.params?.['terms']
  return isObject(terms) ? terms : undefined
}

function presetTo(field: unknown, value: unknown): unknown {
  return isObject(field) && value !== undefined ? { ...field, default: value } : field
}
