import type { AgentCard } from '../../machines/protocol/card.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import type { GetExtendedAgentCardRequest } from '../../machines/protocol/requests.ts'
import type { Caller } from '../access/authentication.ts'
import { callerOf, type CallContext } from '../access/call-context.ts'
import type { Tenants } from '../access/tenants.ts'
import { cardInTime } from '../access/time-limit.ts'
import { agentCard, type CardSource } from '../agent/agent-card.ts'
import { describedCard, type CardChanges, type ExtendedCard } from '../agent/described-card.ts'
import { tenantInterfaces } from '../agent/tenant-interfaces.ts'
import type { Admitted } from './admission.ts'

/** Why there is no card: the host of the request is the caller's own word, and nothing else says where the agent is. */
export const NO_ADDRESS = 'The agent does not know its own address, which its card has to give. Its operator has to set publicUrl or hosts of createRuntime, or url of httpHandler.'

/** Throws Unauthenticated for a caller whom nobody knows: the extended card is for others (§3.1.11). */
export function checkIsKnown({ principal }: CallContext): void {
  if (principal === undefined) throw new A2AError('Unauthenticated', 'The extended card is for callers with credentials. The public card says how to show them.')
}

/**
 * GetExtendedAgentCard (§3.1.11): the card as this caller may see it, with the interfaces of its call, for each tenant that it may use. Throws
 * ExtendedAgentCardNotConfigured if there is none for this caller, or the call has an empty list of interfaces. An error in the author's function, or a card that is
 * none, is an error of ours, of which the caller hears no more; without an answer within `limits.accessMs` the caller gets Overloaded.
 */
export async function extendedAgentCard(source: CardSource, { scope }: Admitted<GetExtendedAgentCardRequest>, call: CallContext, services: Parameters<typeof cardInTime>[2] & { readonly tenants: Tenants }): Promise<AgentCard> {
  const caller = callerOf(scope, call)
  const { extendedCard } = source.agent
  const changes = typeof extendedCard === 'function' ? await cardInTime(changesFor(extendedCard, caller), 'extendedCard', services) : extendedCard
  if (!changes) throw new A2AError('ExtendedAgentCardNotConfigured', 'There is no extended card for this caller. The public card says all.')
  if (call.interfaces?.length === 0) throw new A2AError('ExtendedAgentCardNotConfigured', NO_ADDRESS)
  const interfaces = tenantInterfaces(call.interfaces ?? [], services.tenants.namesFor(caller))
  return agentCard(source, interfaces, describedCard({ ...source.agent.card, ...changes }, 'extendedCard'))
}

async function changesFor(extendedCard: Extract<ExtendedCard, (caller: Caller) => unknown>, caller: Caller): Promise<CardChanges | undefined> {
  try {
    return await extendedCard(caller)
  } catch (cause) {
    // Whatever it is, an A2AError too: nothing of it is for the caller.
    throw new TypeError('extendedCard failed', { cause })
  }
}
