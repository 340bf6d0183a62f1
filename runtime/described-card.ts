import { AgentCardSchema, type AgentCard } from '../machines/protocol/card.ts'
import { tryDecode } from '../machines/protocol/decode.ts'

/**
 * What an author says of an agent; interfaces and capabilities follow from how it is served. Defaults: no description,
 * version `1.0.0`, text in and out (`text/plain`), no skills.
 */
export type AgentDescription = Pick<AgentCard, 'name'> & Partial<Omit<AgentCard, 'name' | ServedMember>>

/** What of a card an author has described: checked, with its defaults filled in. */
export type DescribedCard = Omit<AgentCard, ServedMember>

type ServedMember = 'supportedInterfaces' | 'capabilities' | 'signatures'

/** Checks a description and fills in its defaults. Throws TypeError that names each wrong member, as one of `name`. */
export function describedCard(card: AgentDescription, name = 'card'): DescribedCard {
  const defaults = { description: '', version: '1.0.0', defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'], skills: [] }
  const served = { capabilities: {}, supportedInterfaces: [{ url: 'ws://localhost', protocolBinding: 'none', protocolVersion: '1.0' }] }
  const { value, violations } = tryDecode(AgentCardSchema, { ...defaults, ...card, ...served }, name)
  if (violations) throw new TypeError(violations.map(({ field, description }) => `${field} ${description}`).join('; '))
  const { supportedInterfaces: _, capabilities: __, signatures: ___, ...described } = value
  return described
}
