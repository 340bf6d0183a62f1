import type { AgentCard } from '../../machines/protocol/card.ts'
import { cardInTime } from '../access/time-limit.ts'

/** Signs a card (§8.4): `cardSigner({ key })` of `taskchart/cards`. Gives the card with its signature, within `limits.accessMs`. */
export type SignCard = (card: AgentCard) => Promise<AgentCard>

/** So many cards are kept: one for each address at which an agent is asked for, and for each kind of known caller. */
const MOST_CARDS = 64

/** Cards with their signatures, each made once, so that what was served before is served again. */
export class SignedCards {
  readonly #sign: SignCard
  readonly #services: Parameters<typeof cardInTime>[2]
  /** By the JSON of the card, that of longest ago first. */
  readonly #cards = new Map<string, Promise<AgentCard>>()

  constructor(sign: SignCard, services: Parameters<typeof cardInTime>[2]) {
    this.#sign = sign
    this.#services = services
  }

  /** Gives a card with its signature. What could not be signed is tried again the next time. */
  of(card: AgentCard): Promise<AgentCard> {
    const content = JSON.stringify(card)
    const known = this.#cards.get(content)
    if (known) return known
    const signed = cardInTime(this.#sign(card), 'signCard', this.#services)
    this.#cards.set(content, signed)
    signed.catch(() => this.#cards.delete(content))
    for (const oldest of this.#cards.keys()) {
      if (this.#cards.size <= MOST_CARDS) break
      this.#cards.delete(oldest)
    }
    return signed
  }
}
