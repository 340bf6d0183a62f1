import type { AgentCard, AgentInterface } from '../machines/protocol/card.ts'
import { INPUT_EXTENSION, RELIABILITY_EXTENSION } from '../machines/protocol/uris.ts'
import type { Agent } from './agent.ts'
import type { Capabilities } from './capabilities.ts'
import { isNegotiation, negotiationExtension } from './negotiation.ts'
import { securityOf, type CardSecurity } from './card-security.ts'
import { shownInput } from './opening.ts'

/** What the cards of one runtime are made of: its agent, and what its `authenticate` says for them. */
export interface CardSource {
  readonly agent: Agent
  readonly security: CardSecurity
  readonly capabilities: Capabilities
}

/** The card (§4.4.1) of an agent where it is served: what the author says, and the interfaces and capabilities that are there. */
export function agentCard({ agent, security, capabilities }: CardSource, interfaces: readonly AgentInterface[], described = agent.card): AgentCard {
  const reliability = { uri: RELIABILITY_EXTENSION, description: 'Generations in metadata, exact resume, sends that are taken once, conditional sends, long poll.' }
  const schema = shownInput(agent)
  const wanted = { uri: INPUT_EXTENSION, description: 'What the message that opens a task has to hold.', params: { schema } }
  const negotiation = isNegotiation(agent.negotiate) ? [negotiationExtension(agent.negotiate)] : []
  const ours = agent.capabilities?.extensions === false ? [] : [reliability, ...(schema ? [wanted] : []), ...negotiation]
  const offered = { ...capabilities, extensions: [...ours, ...agent.extensions] }
  return { ...described, ...securityOf(described, security), supportedInterfaces: [...interfaces], capabilities: offered }
}
