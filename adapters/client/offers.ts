import { movePart, type Offer } from '../../machines/protocol/negotiation.ts'
import type { Part } from '../../machines/protocol/parts.ts'

/** Accepts an offer, as a part of the client's next message in its context: the answer is the task, or a Message if the offer no longer stands. */
export function acceptOffer({ offerId }: Pick<Offer, 'offerId'>): Part {
  return movePart({ accept: { offerId } })
}

/** Proposes terms, likewise: while an offer stands, a counter-offer. The answer is another offer, a task, or a refusal in words. */
export function proposeTerms(terms: object): Part {
  return movePart({ propose: { terms: { ...terms } } })
}

/** Declines an offer, likewise: no offer stands after that. */
export function declineOffer({ offerId }: Pick<Offer, 'offerId'>): Part {
  return movePart({ decline: { offerId } })
}
