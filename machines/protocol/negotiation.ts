import type * as z from 'zod'
import {
  type Decoded,
  identifier,
  int32,
  message,
  oneOf,
  requiredField,
  struct,
  timestamp,
  tryDecode
} from './codec/decode.ts'
import { isObject, type JsonValue, pathText } from './codec/json.ts'
import type { Message, Part } from './objects.ts'
import { NEGOTIATION_EXTENSION } from './uris.ts'

/** Wire form of an offer, in a data part of an agent's message: `{ data: { [NEGOTIATION_EXTENSION]: { offer } } }`. */
export const OfferSchema = message({
  offerId: requiredField(identifier),
  round: requiredField(int32(1)),
  terms: requiredField(struct),
  expiresAt: requiredField(timestamp)
})

/**
 * An agent's offer: it does the task on these terms if `offerId` is accepted before `expiresAt` (RFC 3339). `round`
 * counts the offers of both sides, including this one.
 */
export interface Offer extends z.output<typeof OfferSchema> {}

/**
 * Wire form of a client's move, in a data part of its message: `{ data: { [NEGOTIATION_EXTENSION]: { accept: { offerId
 * } } } }`.
 */
export const MoveSchema = oneOf(
  {
    propose: requiredField(message({ terms: requiredField(struct) })),
    accept: requiredField(message({ offerId: requiredField(identifier) })),
    decline: requiredField(message({ offerId: requiredField(identifier) }))
  },
  {}
)

/**
 * A client's move: it accepts or declines an offer, or proposes terms, which is a counter-offer while an offer is open.
 */
export type NegotiationMove = z.output<typeof MoveSchema>

/** The negotiation member of a data part; `name` is its path, as in a violation. */
type Member = { readonly name: string; readonly value: unknown }

/** An offer as a part of an agent's message. */
export function offerPart(offer: Offer): Part {
  return partOf({ offer })
}

/** A move as a part of a client's message. */
export function movePart(move: NegotiationMove): Part {
  return partOf(move)
}

/** The first valid offer in an agent's message; `undefined` if there is none. */
export function offerIn(message: Pick<Message, 'parts'>): Offer | undefined {
  if (!isObject(message) || !Array.isArray(message.parts))
    throw new TypeError(
      `offerIn takes a message, which has parts, not ${JSON.stringify(message)}: offerIn(task.status.message).`
    )
  const offers = membersOf(message).flatMap(({ value }) =>
    isObject(value) ? [tryDecode(OfferSchema, value['offer']).value] : []
  )
  return offers.find(offer => offer !== undefined)
}

/**
 * The move in a client's message, and its path; `undefined` if there is none. An invalid move, or a second one, gives
 * violations.
 */
export function moveIn(message: Message): (Decoded<NegotiationMove> & { readonly name: string }) | undefined {
  const [first, second] = membersOf(message)
  if (!first) return undefined
  if (second)
    return {
      name: second.name,
      violations: [{ field: second.name, description: 'must be the only one of the message' }]
    }
  return { name: first.name, ...tryDecode(MoveSchema, first.value, first.name) }
}

/** Whether a part has a negotiation member: an offer or a move, valid or not. */
export function isNegotiationPart(
  part: Part
): part is Extract<Part, { readonly data: unknown }> & { readonly data: Readonly<Record<string, unknown>> } {
  return 'data' in part && isObject(part.data) && Object.hasOwn(part.data, NEGOTIATION_EXTENSION)
}

/** Terms are JSON here, since they were validated on arrival. */
function partOf(content: { readonly offer: Offer } | NegotiationMove): Part {
  return { data: { [NEGOTIATION_EXTENSION]: content as JsonValue } }
}

function membersOf({ parts }: Pick<Message, 'parts'>): Member[] {
  return parts.flatMap((part, i) => {
    if (!isNegotiationPart(part)) return []
    return [
      {
        name: pathText('message', ['parts', i, 'data', NEGOTIATION_EXTENSION]),
        value: part.data[NEGOTIATION_EXTENSION]
      }
    ]
  })
}
