import type { AgentCard, AgentInterface } from '../machines/protocol/card.ts'
import { RELIABILITY_EXTENSION } from '../machines/protocol/uris.ts'
import type { Agent } from './agent.ts'

/** The card (§4.4.1) of an agent where it is served: what the author says, and the interfaces and capabilities that are there. */
export function agentCard({ card }: Agent, interfaces: readonly AgentInterface[]): AgentCard {
  const extensions = [{ uri: RELIABILITY_EXTENSION, description: 'Generations in metadata, exact resume, sends that are taken once, conditional sends, long poll.' }]
  const capabilities = { streaming: true, pushNotifications: false, extendedAgentCard: false, extensions }
  return { ...card, supportedInterfaces: [...interfaces], capabilities }
}
