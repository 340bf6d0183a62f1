import { movePart, offerIn, type Offer } from '../../machines/protocol/negotiation.ts'
import type { Message, Part } from '../../machines/protocol/parts.ts'

/** The offer in an agent's message: on these terms it does the task, if they are accepted in time; `undefined` if there is none. */
export function offerOf(message: Pick<Message, 'parts'>): Offer | undefined {
  return offerIn(message)
}

/** What accepts an offer, as a part of the client's next message in its context: the answer is the task, or a Message if the offer stands no more. */
export function acceptance({ offerId }: Pick<Offer, 'offerId'>): Part {
  return movePart({ accept: { offerId } })
}

/** What proposes terms, likewise: while an offer stands, a counter-offer. The answer is another offer, a task, or a refusal in words. */
export function proposal(terms: object): Part {
  return movePart({ propose: { terms: { ...terms } } })
}

/** What declines an offer, likewise: nothing stands after that. */
export function declining({ offerId }: Pick<Offer, 'offerId'>): Part {
  return movePart({ decline: { offerId } })
}

export type { Offer }
