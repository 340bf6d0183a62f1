import type { AgentCard, AgentInterface } from '../../machines/protocol/card.ts'
import type { Tenants } from '../access/tenants.ts'
import { cardInTime } from '../access/time-limit.ts'
import { LruCache } from '../primitives/lru-cache.ts'
import { agentCard, type CardSource } from './agent-card.ts'
import { tenantInterfaces } from './tenant-interfaces.ts'

/** Signs a card (§8.4): `cardSigner({ key })` of `taskchart/cards`. Gives the card with its signature, within `limits.accessMs`. */
export type SignCard = (card: AgentCard) => Promise<AgentCard>

/** So many cards are kept: one for each address at which an agent is asked for, and for each kind of known caller. */
const MOST_CARDS = 64

/** Cards with their signatures, each made once, so that what was served before is served again. */
export class SignedCards {
  readonly #sign: SignCard
  readonly #services: Parameters<typeof cardInTime>[2]
  /** By the JSON of the card. */
  readonly #cards = new LruCache<Promise<AgentCard>>(MOST_CARDS)

  constructor(sign: SignCard, services: Parameters<typeof cardInTime>[2]) {
    this.#sign = sign
    this.#services = services
  }

  /** Gives a card with its signature. What could not be signed is tried again the next time. */
  of(card: AgentCard): Promise<AgentCard> {
    const content = JSON.stringify(card)
    return this.#cards.get(content, () => {
      const signed = cardInTime(this.#sign(card), 'signCard', this.#services)
      signed.catch(() => this.#cards.delete(content))
      return signed
    })
  }
}

/** The cards of one runtime. */
export class AgentCards {
  readonly source: CardSource
  readonly #tenants: Tenants
  readonly #signatures: SignedCards | undefined

  /** Without `sign` they have no signature. */
  constructor(source: CardSource, tenants: Tenants, sign: SignCard | undefined, services: Parameters<typeof cardInTime>[2]) {
    this.source = source
    this.#tenants = tenants
    this.#signatures = sign && new SignedCards(sign, services)
  }

  /** The public card for a server that offers these interfaces: for all tenants that are listed, or for one. */
  publicCard(interfaces: readonly AgentInterface[], tenant?: string): AgentCard {
    return agentCard(this.source, tenantInterfaces(interfaces, tenant === undefined ? this.#tenants.listed : [tenant]))
  }

  /** Signs a card, if this runtime signs. */
  async signed(card: AgentCard): Promise<AgentCard> {
    return this.#signatures?.of(card) ?? card
  }
}
