import type { AgentCard as SdkCard } from '@a2a-js/sdk'
import type { AgentCard } from '../../machines/protocol/card.ts'
import type { CardPeers } from './peers.ts'

/**
 * What signatures of a card are over (§8.4.1), each with the card in the form in which the official SDK's functions make it. `whole`
 * is the whole card, as the specification has it. What these functions make of a card as the SDK's own clients and servers have it is
 * `partial`: there they lose the contents of `securitySchemes`. It is not there where both are the same.
 */
export interface CanonicalForms {
  readonly whole: CanonicalForm
  readonly partial?: CanonicalForm
}

/** A canonical form as JSON text, and what the SDK's functions have to be given for it. */
export interface CanonicalForm {
  readonly text: string
  readonly given: SdkCard
}

/**
 * Marks a signature over the partial form, in its protected header: it is there for who verifies by the official SDK alone. With us
 * it does not count, since the whole card has a signature beside it, that somebody has taken away.
 */
export const PARTIAL_MARK = 'urn:taskchart:signature:partial'

/** The forms of a card. Its signatures, if any, are not in them. */
export function canonicalForms(card: AgentCard, { sdk }: CardPeers): CanonicalForms {
  const given = [card as unknown as SdkCard, sdk.AgentCard.fromJSON(card)] as const
  const [whole, partial] = given.map(given => ({ text: sdk.canonicalizeAgentCard(given), given })) as [CanonicalForm, CanonicalForm]
  return partial.text === whole.text ? { whole } : { whole, partial }
}
