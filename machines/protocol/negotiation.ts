import type * as z from 'zod'
import { tryDecode, type Decoded } from './codec/decode.ts'
import { required } from './codec/fields.ts'
import { isObject, type JsonValue } from './codec/json.ts'
import { message, oneOf } from './codec/message.ts'
import { pathText } from './codec/paths.ts'
import { identifier, int32, struct, timestamp } from './codec/values.ts'
import type { Message, Part } from './parts.ts'
import { NEGOTIATION_EXTENSION } from './uris.ts'

/** An offer as it travels: in a data part of an agent's message, `{ data: { [NEGOTIATION_EXTENSION]: { offer } } }`. */
export const OfferSchema = message({
  offerId: required(identifier),
  round: required(int32(1)),
  terms: required(struct),
  expiresAt: required(timestamp)
})

/**
 * An offer of an agent's: on these terms it does the task, if `offerId` is accepted before `expiresAt` (RFC 3339). `round`
 * counts the offers of both sides so far, this one included.
 */
export interface Offer extends z.output<typeof OfferSchema> {}

/** What a client may answer, likewise: `{ data: { [NEGOTIATION_EXTENSION]: { accept: { offerId } } } }`. */
export const MoveSchema = oneOf(
  {
    propose: required(message({ terms: required(struct) })),
    accept: required(message({ offerId: required(identifier) })),
    decline: required(message({ offerId: required(identifier) }))
  },
  {}
)

/** A client's move: it proposes terms, which is a counter-offer while an offer stands, or accepts or declines an offer. */
export type Move = z.output<typeof MoveSchema>

/** The name of what negotiates in a part, as in a violation. */
type Member = { readonly name: string; readonly value: unknown }

/** An offer as a part of an agent's message. */
export function offerPart(offer: Offer): Part {
  return partOf({ offer })
}

/** A move as a part of a client's message. */
export function movePart(move: Move): Part {
  return partOf(move)
}

/** The offer in an agent's message; `undefined` if there is none, or none that is valid. */
export function offerIn(message: Pick<Message, 'parts'>): Offer | undefined {
  const offers = membersOf(message).flatMap(({ value }) => (isObject(value) ? [tryDecode(OfferSchema, value['offer']).value] : []))
  return offers.find(offer => offer !== undefined)
}

/**
 * The move in a client's message, and the name of its place there; `undefined` if there is none. What is none, and a second
 * one, is a violation.
 */
export function moveIn(message: Message): (Decoded<Move> & { readonly name: string }) | undefined {
  const [first, second] = membersOf(message)
  if (!first) return undefined
  if (second) return { name: second.name, violations: [{ field: second.name, description: 'must be the only one of the message' }] }
  return { name: first.name, ...tryDecode(MoveSchema, first.value, first.name) }
}

/** Terms are JSON: what is not would have been refused where they came from. */
function partOf(content: { readonly offer: Offer } | Move): Part {
  return { data: { [NEGOTIATION_EXTENSION]: content as JsonValue } }
}

function membersOf({ parts }: Pick<Message, 'parts'>): Member[] {
  return parts.flatMap((part, i) => {
    if (!('data' in part) || !isObject(part.data) || !Object.hasOwn(part.data, NEGOTIATION_EXTENSION)) return []
    return [{ name: pathText('message', ['parts', i, 'data', NEGOTIATION_EXTENSION]), value: part.data[NEGOTIATION_EXTENSION] }]
  })
}
