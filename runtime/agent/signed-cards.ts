import { type AgentCard, type AgentInterface, tenantUrl } from '../../machines/protocol/card.ts'
import { NATIVE_VERSIONS, nativeVersionIn } from '../../machines/protocol/versions.ts'
import type { Tenants } from '../access/tenants.ts'
import { cardInTime } from '../access/time-limit.ts'
import { LruCache } from '../primitives/collections.ts'
import { agentCard, type CardSource } from './agent-card.ts'

/**
 * Signs a card (§8.4): `cardSigner({ key })` of `taskchart/auth`. Gives the card with its signature, within
 * `limits.accessMs`.
 */
export type SignCard = (card: AgentCard) => Promise<AgentCard>

/** Size of the LRU cache. Cards differ by requested address, and by authenticated caller. */
const MOST_CARDS = 64

/** LRU cache of signed cards, so that equal cards are signed once. */
export class SignedCards {
  readonly #sign: SignCard
  readonly #services: Parameters<typeof cardInTime>[2]
  /** By the JSON of the card. */
  readonly #cards = new LruCache<Promise<AgentCard>>(MOST_CARDS)

  constructor(sign: SignCard, services: Parameters<typeof cardInTime>[2]) {
    this.#sign = sign
    this.#services = services
  }

  /** Signs a card. A failed signature is not cached. */
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

  /** Without `sign` cards are not signed. */
  constructor(
    source: CardSource,
    tenants: Tenants,
    sign: SignCard | undefined,
    services: Parameters<typeof cardInTime>[2]
  ) {
    this.source = source
    this.#tenants = tenants
    this.#signatures = sign && new SignedCards(sign, services)
  }

  /** The public card for a server with these interfaces: for all listed tenants, or for one. */
  publicCard(interfaces: readonly AgentInterface[], tenant?: string): AgentCard {
    return agentCard(this.source, tenantInterfaces(interfaces, tenant === undefined ? this.#tenants.listed : [tenant]))
  }

  /** Signs a card, if this runtime signs cards. */
  async signed(card: AgentCard): Promise<AgentCard> {
    return this.#signatures?.of(card) ?? card
  }
}

/**
 * The interfaces (§4.4.6) of these tenants, grouped by tenant; unchanged if there are no tenants. Requests from A2A 1.0
 * on name their tenant. Those of older versions cannot, so the URL's path has it; REST of older versions has no path
 * for it and is left out.
 */
export function tenantInterfaces(
  interfaces: readonly AgentInterface[],
  tenants: readonly string[] = []
): readonly AgentInterface[] {
  if (tenants.length === 0) return interfaces
  return tenants.flatMap(tenant => (tenant === '' ? interfaces : interfaces.flatMap(each => ofTenant(each, tenant))))
}

function ofTenant(each: AgentInterface, tenant: string): readonly AgentInterface[] {
  if (nativeVersionIn(each.protocolVersion, NATIVE_VERSIONS)) return [{ ...each, tenant }]
  return each.protocolBinding === 'HTTP+JSON' ? [] : [{ ...each, url: tenantUrl(each.url, tenant) }]
}
