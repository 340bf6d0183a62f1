import type { AgentCard } from '../../machines/protocol/card.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import type { GetExtendedAgentCardRequest } from '../../machines/protocol/objects.ts'
import type { Caller } from '../access/authentication.ts'
import { callerOf, type CallContext, NO_ADDRESS } from '../access/call-context.ts'
import type { Tenants } from '../access/tenants.ts'
import { cardInTime } from '../access/time-limit.ts'
import { agentCard, type CardSource } from '../agent/agent-card.ts'
import { type CardChanges, describedCard, type ExtendedCard } from '../agent/described-card.ts'
import { tenantInterfaces } from '../agent/signed-cards.ts'
import type { Admitted } from './admission.ts'

/** Throws Unauthenticated for an anonymous caller (§3.1.11). */
export function checkIsKnown({ principal }: CallContext): void {
  if (principal === undefined)
    throw new A2AError(
      'Unauthenticated',
      'The extended card is for authenticated callers. The public card says how to authenticate.'
    )
}

/**
 * GetExtendedAgentCard (§3.1.11): the card for this caller, with the interfaces of its call for each tenant that it may
 * use.
 *
 * Throws ExtendedAgentCardNotConfigured if there is none for this caller, or if the call's list of interfaces is empty.
 * If the author's function throws or gives an invalid card, the caller gets InternalError without details. Without an
 * answer within `limits.accessMs` it gets Overloaded.
 */
export async function extendedAgentCard(
  source: CardSource,
  { scope }: Admitted<GetExtendedAgentCardRequest>,
  call: CallContext,
  services: Parameters<typeof cardInTime>[2] & { readonly tenants: Tenants }
): Promise<AgentCard> {
  const caller = callerOf(scope, call)
  const { extendedCard } = source.agent
  const changes =
    typeof extendedCard === 'function'
      ? await cardInTime(changesFor(extendedCard, caller), 'extendedCard', services)
      : extendedCard
  if (!changes)
    throw new A2AError(
      'ExtendedAgentCardNotConfigured',
      'There is no extended card for this caller. The public card is complete.'
    )
  if (call.interfaces?.length === 0) throw new A2AError('ExtendedAgentCardNotConfigured', NO_ADDRESS)
  const interfaces = tenantInterfaces(call.interfaces ?? [], services.tenants.namesFor(caller))
  return agentCard(source, interfaces, describedCard({ ...source.agent.card, ...changes }, 'extendedCard'))
}

async function changesFor(
  extendedCard: Extract<ExtendedCard, (caller: Caller) => unknown>,
  caller: Caller
): Promise<CardChanges | undefined> {
  try {
    return await extendedCard(caller)
  } catch (cause) {
    // Even an A2AError of the author's function is not for the caller.
    throw new TypeError('extendedCard failed', { cause })
  }
}
